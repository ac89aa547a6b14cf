"""Telling how far a comparison is."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Seconds between two lines.
_PERIOD = 2.0


@contextmanager
def teller(
    progress: bool | Callable[[int, int, str], None],
) -> Iterator[Callable[[int, int, str], None] | None]:
    """What a run tells how far it is: nobody, the error stream, or a function of the user."""
    if callable(progress):
        yield progress
    elif not progress:
        yield None
    else:
        yield _Lines()


class _Lines:
    """A line every few seconds, the last one always."""

    def __init__(self) -> None:
        self._start = self._last = monotonic()

    def __call__(self, done: int, total: int, what: str) -> None:
        now = monotonic()
        if now - self._last < _PERIOD and done < total:
            return
        self._last = now
        print(f"[compare] {done} of {total} ({now - self._start:.0f} s)  {what}".rstrip(), file=sys.stderr)
