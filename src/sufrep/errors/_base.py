"""The base of all errors."""

from __future__ import annotations

from typing import Any


class SufrepError(Exception):
    """Base of all errors of this package."""

    def __reduce__(self) -> Any:
        # Constructors here take parts, not the message; joblib's workers send errors back by pickle.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[SufrepError], args: tuple[Any, ...], state: dict[str, Any]) -> SufrepError:
    error = kind.__new__(kind, *args)
    error.args = args  # OSError's __new__ leaves them to __init__, which is not run again
    error.__dict__.update(state)
    return error
