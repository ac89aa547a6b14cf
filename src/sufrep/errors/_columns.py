"""What the columns of a table are, and which of them a parameter names."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from sufrep.errors._base import SufrepError

if TYPE_CHECKING:
    from collections.abc import Sequence


class UnknownColumnError(SufrepError, ValueError):
    """A column is named that the table does not have."""

    def __init__(self, parameter: str, column: object, names: Sequence[str]) -> None:
        near = get_close_matches(str(column), names, n=3)
        shown = ", ".join(map(repr, near or names[:10]))
        hint = f"did you mean {shown}?" if near else f"the columns are {shown}{', …' * (len(names) > 10)}."
        if isinstance(column, list):
            hint = f"columns to be crossed stand in a tuple, as in [{tuple(column)!r}]."
        if isinstance(column, int):
            hint = f"positions run from 0 to {len(names) - 1}; {hint}"
        super().__init__(f"{parameter} names the column {column!r}, which X does not have.\nHint: {hint}")


class EmptyGroupError(SufrepError, ValueError):
    """``group`` is an empty list, or is or holds an empty tuple."""

    def __init__(self, group: object) -> None:
        super().__init__(
            f"group={group!r} names no column.\n"
            "Hint: name at least one; group=None takes every text or categorical column."
        )


class LazyFrameError(SufrepError, TypeError):
    """X is a query that has not been run, not a table in memory."""

    def __init__(self, X: object) -> None:
        kind = f"{type(X).__module__.partition('.')[0]} {type(X).__name__}"
        super().__init__(
            f"X is a {kind}, which holds no rows yet; expected a frame in memory, or an array.\n"
            "Hint: collect it first, or feed chunks of it to partial_fit."
        )


class ColumnNameError(SufrepError, ValueError):
    """Column names that cannot be told apart."""


class MissingColumnsError(SufrepError, ValueError):
    """``transform`` gets a frame without some of the columns that ``fit`` saw."""

    def __init__(self, missing: Sequence[str], names: Sequence[str]) -> None:
        listed = "\n".join(f"- {name}" for name in missing)
        near = {name: get_close_matches(name, names, n=1) for name in missing}
        renamed = [f"{found[0]!r} for {name!r}" for name, found in near.items() if found]
        hint = "rename " + ", ".join(renamed) if renamed else "give transform the columns that fit had"
        super().__init__(
            "The feature names should match those that were passed during fit.\n"
            f"Feature names seen at fit time, yet now missing:\n{listed}\nHint: {hint}."
        )


class NoCovariateError(SufrepError, ValueError):
    """No numeric column is left from which levels could be described."""

    def __init__(self, n_features: int, groups: Sequence[str]) -> None:
        super().__init__(
            f"Found X with {n_features} feature(s), none of which is a numeric covariate beside the group "
            f"column(s) {', '.join(map(repr, groups))}; at least one is needed, because levels are "
            "described by their covariates.\n"
            "Hint: add numeric columns, use categorical_covariates='share' to let text columns count, or "
            "choose an encoder that needs none (ContrastEncoder, PermutationEncoder, FisherEncoder)."
        )


class NotNumericError(SufrepError, ValueError):
    """A covariate is not numeric: one that is named, or one that was numeric in an earlier chunk."""

    def __init__(self, column: str, dtype: str) -> None:
        super().__init__(
            f"Column {column!r} holds {dtype}, but it is to be a covariate, and covariates are numeric.\n"
            "Hint: leave it out, convert it, or use categorical_covariates='share', which lets text columns "
            "of at most 30 levels join."
        )


class TooManySharesError(SufrepError, ValueError):
    """A text column that joined as shares turns out, chunk by chunk, to have too many levels."""

    def __init__(self, column: str, n_levels: int, most: int) -> None:
        super().__init__(
            f"Column {column!r} joined with categorical_covariates='share' and now has {n_levels} levels; "
            f"at most {most} can join.\nHint: name it in `group`, or drop it before the first chunk."
        )


class ClashingNamesError(SufrepError, ValueError):
    """Two columns of the output would have the same name."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"The output would hold two columns called {', '.join(map(repr, names[:5]))}.\n"
            "Hint: rename the input columns, or use remainder='drop'."
        )


class SparseOutputError(SufrepError, ValueError):
    """Columns that are not numeric cannot stand in a sparse matrix."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"sparse_output=True needs numeric columns beside the encoding; not numeric: {', '.join(names)}."
            "\nHint: use remainder='drop', or drop these columns first."
        )


class UnknownGroupError(SufrepError, KeyError):
    """A table or plot is asked for of a group that was not encoded."""

    def __init__(self, group: object, known: Sequence[str]) -> None:
        self._text = (
            f"No group called {group!r} was encoded; there are: {', '.join(known) or '(none)'}.\n"
            "Hint: crossed groups are called by their columns joined with ':', such as 'store:brand'."
        )
        super().__init__(self._text)

    def __str__(self) -> str:
        # KeyError would print the text with quotes and escapes.
        return self._text
