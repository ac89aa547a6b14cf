"""What stands in the rows: levels, numbers, targets, weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sufrep.errors._base import SufrepError

if TYPE_CHECKING:
    from collections.abc import Sequence


class InfiniteValueError(SufrepError, ValueError):
    """A covariate holds an infinite value."""

    def __init__(self, column: str, n_infinite: int, first_row: int) -> None:
        super().__init__(
            f"Covariate {column!r} contains infinity: {n_infinite} value(s), the first in row {first_row}.\n"
            "Hint: replace them by nulls (NaN), which are skipped, or clip them."
        )


class GroupValueError(SufrepError, TypeError):
    """A group column holds a value that cannot be a level."""

    def __init__(self, column: str, value: object) -> None:
        super().__init__(
            f"Column {column!r} holds a {type(value).__name__}; the argument must be a string, a number or "
            "another hashable value to be a level.\nHint: convert the column to text first."
        )


class UnseenLevelError(SufrepError, ValueError):
    """Rows hold levels that ``fit`` never saw and ``unseen='error'`` forbids them."""

    def __init__(self, column: str, unseen: Sequence[str], n_known: int) -> None:
        shown = ", ".join(unseen[:5]) + (", …" if len(unseen) > 5 else "")
        super().__init__(
            f"Column {column!r} holds {len(unseen)} unseen level(s): {shown}. The encoder knows {n_known}.\n"
            "Hint: unseen='prior' gives them the vector of an average level."
        )


class MissingLevelError(SufrepError, ValueError):
    """A group column holds nulls and ``missing='error'`` forbids them."""

    def __init__(self, column: str, n_missing: int) -> None:
        super().__init__(
            f"Column {column!r} holds {n_missing} null(s) and missing='error' forbids them.\n"
            "Hint: missing='level' makes the null a level of its own, missing='prior' an average level."
        )


class NoLevelError(SufrepError, ValueError):
    """A group column has no level at all."""

    def __init__(self, column: str) -> None:
        super().__init__(
            f"Column {column!r} has no level: every value is null and missing='prior' leaves nulls out.\n"
            "Hint: drop the column, or use missing='level'."
        )


class OneLevelError(SufrepError, ValueError):
    """A group column has one level only."""

    def __init__(self, column: str, levels: Sequence[str]) -> None:
        super().__init__(
            f"Column {column!r} has the one level {', '.join(levels) or '(none)'} in every row; at least two "
            "are needed.\nHint: name the column with many levels, or look at the step that filtered the rows."
        )


class SampleWeightError(SufrepError, ValueError):
    """Weights that cannot be frequencies of rows."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"sample_weight {what}.\n"
            "Hint: give one finite weight >= 0 for each row, at least one of them above 0."
        )


class LengthMismatchError(SufrepError, ValueError):
    """X and something beside it have different numbers of rows."""

    def __init__(self, n_rows: int, name: str, length: int) -> None:
        super().__init__(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} row(s), "
            f"{name} has {length}.\nHint: both must describe the same rows, in the same order."
        )


class NoRowsError(SufrepError, ValueError):
    """A frame without rows."""

    def __init__(self, n_columns: int) -> None:
        super().__init__(
            f"Found array with 0 sample(s) (shape=(0, {n_columns})) while a minimum of 1 is required.\n"
            "Hint: look at the step that made X; a filter may have removed every row."
        )


class TargetError(SufrepError, ValueError):
    """The target is missing or of a kind that does not fit."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what}\nHint: {hint}")


class SplitError(SufrepError, ValueError):
    """A splitter does not put every row into exactly one test fold, apart from what it is to learn from."""

    def __init__(self, n_rows: int, n_never: int, n_twice: int, n_leaking: int) -> None:
        super().__init__(
            f"cv must put each of the {n_rows} rows into exactly one test fold; {n_never} row(s) are in none "
            f"and {n_twice} in several, and {n_leaking} fold(s) share rows between train and test.\n"
            "Hint: use a partition such as KFold(5), or list(GroupKFold(5).split(X, groups=...))."
        )


class NoEncoderError(SufrepError, ValueError):
    """The winner of a comparison is no encoder of ours, so there is nothing to save."""

    def __init__(self, method: str) -> None:
        super().__init__(
            f"The best method is {method!r}, which is no encoder of sufrep's, so there is nothing to save.\n"
            "Hint: use Comparison.fit_best(), or `sufrep encode` with the method that you want."
        )


class ComparisonError(SufrepError, RuntimeError):
    """No method of a comparison worked."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"No method worked on these data, so none is the best. The first reason: {reason}\n"
            "Hint: look at the failures in Comparison.table()."
        )
