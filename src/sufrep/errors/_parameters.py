"""What a user asks for that cannot be had."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from sufrep.errors._base import SufrepError

if TYPE_CHECKING:
    from collections.abc import Sequence


class MomentsMismatchError(SufrepError, ValueError):
    """Moments that do not fit together, or that lack what is asked of them."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what}\nHint: {hint}")


class TooManyComponentsError(SufrepError, ValueError):
    """More components are asked for than there are covariates."""

    def __init__(self, n_components: int, n_covariates: int) -> None:
        super().__init__(
            f"n_components={n_components} is more than the covariates can give: the limit is their number, "
            f"{n_covariates}.\nHint: use n_components='auto' or a number from 1 to {n_covariates}."
        )


class UnknownMethodError(SufrepError, ValueError):
    """``make_encoder`` is asked for a method that is not in the registry."""

    def __init__(self, method: str, known: Sequence[str]) -> None:
        near = get_close_matches(method, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(f"No encoder is called {method!r}.\nHint: {hint}The methods are {', '.join(known)}.")


class UnknownLibraryError(SufrepError, ValueError):
    """A frame is asked for of a library that is not known."""

    def __init__(self, library: str, known: Sequence[str]) -> None:
        super().__init__(f"library={library!r} is not known.\nHint: it is one of {', '.join(known)}.")


class SparseCodingError(SufrepError, ValueError):
    """Only one-hot columns can be sparse."""

    def __init__(self, coding: str) -> None:
        super().__init__(
            f"sparse_output=True goes with coding='one_hot'; coding={coding!r} has few zeros to leave out.\n"
            "Hint: use sparse_output=False."
        )


class InvalidParameterError(SufrepError, ValueError):
    """A parameter of a function has a value that it cannot take."""

    def __init__(self, parameter: str, value: object, expected: str) -> None:
        super().__init__(f"{parameter} is {value!r}.\nHint: {parameter} is {expected}.")


class ExpertError(SufrepError, TypeError):
    """An expert of a hidden state cannot take weights."""

    def __init__(self, expert: object) -> None:
        super().__init__(
            f"expert is {expert!r}, whose fit takes no sample_weight.\n"
            "Hint: give a regressor that does, such as Ridge or HistGradientBoostingRegressor."
        )


class MissingPandasError(SufrepError, ImportError):
    """Pandas is needed, which no extra of this package brings."""

    def __init__(self, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package 'pandas', which is not installed.\n"
            "Hint: pip install pandas, or read the file from a folder (source='folder')."
        )


class MissingDependencyError(SufrepError, ImportError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed.\n"
            f'Hint: pip install "sufrep[{extra}]"'
        )
