"""Every error that sufrep raises on purpose.

Each one says what was found, what was expected and, after ``Hint:``, what to do. Each is a
:class:`SufrepError` and the built-in error that fits, so both kinds of ``except`` clause work.
Where scikit-learn's conformance suite looks for a phrase of its own, the message keeps it.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


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


class InfiniteValueError(SufrepError, ValueError):
    """A covariate holds an infinite value."""

    def __init__(self, column: str, n_infinite: int, first_row: int) -> None:
        super().__init__(
            f"Covariate {column!r} contains infinity: {n_infinite} value(s), the first in row {first_row}.\n"
            "Hint: replace them by nulls (NaN), which are skipped, or clip them."
        )


class MomentsMismatchError(SufrepError, ValueError):
    """Moments that do not fit together, or that lack what is asked of them."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what}\nHint: {hint}")


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


class TooManyComponentsError(SufrepError, ValueError):
    """More components are asked for than there are covariates."""

    def __init__(self, n_components: int, n_covariates: int) -> None:
        super().__init__(
            f"n_components={n_components} is more than the covariates can give: the limit is their number, "
            f"{n_covariates}.\nHint: use n_components='auto' or a number from 1 to {n_covariates}."
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


class EncoderFileError(SufrepError, ValueError):
    """A file does not hold an encoder that can be read."""

    def __init__(self, path: object, what: str, hint: str) -> None:
        super().__init__(f"Cannot read {str(path)!r}: {what}\nHint: {hint}")


class NotSavableError(SufrepError, TypeError):
    """An encoder holds something that has no place in a file without code."""

    def __init__(self, what: str, value: object) -> None:
        super().__init__(
            f"{what} is {value!r} (a {type(value).__name__}), which cannot be saved without pickle.\n"
            "Hint: use plain values (numbers, text, lists), or pickle the encoder if you trust its readers."
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


class InvalidParameterError(SufrepError, ValueError):
    """A parameter of a function has a value that it cannot take."""

    def __init__(self, parameter: str, value: object, expected: str) -> None:
        super().__init__(f"{parameter} is {value!r}.\nHint: {parameter} is {expected}.")


class StoreError(SufrepError, OSError):
    """Results of experiments cannot be stored, or a store cannot be read."""

    def __init__(self, path: object, what: str, hint: str) -> None:
        super().__init__(f"The store {str(path)!r} {what}.\nHint: {hint}")


class DataNotFoundError(SufrepError, FileNotFoundError):
    """The folder or the file of a data set is not there, or no folder is named."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what}\nHint: {hint}")


class DataContentError(SufrepError, ValueError):
    """The table of a data set does not hold what its preparation expects."""

    def __init__(self, where: str, what: str, hint: str) -> None:
        super().__init__(f"{where} {what}\nHint: {hint}")


class DownloadError(SufrepError, ConnectionError):
    """A data set cannot be fetched from OpenML."""

    def __init__(self, data_id: int, reason: object, file: str) -> None:
        super().__init__(
            f"Data set {data_id} could not be fetched from OpenML: {reason}.\n"
            f"Hint: look at the connection, or save {file!r} in a folder and name it with data_dir."
        )


class MissingPandasError(SufrepError, ImportError):
    """Pandas is needed, which no extra of this package brings."""

    def __init__(self, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package 'pandas', which is not installed.\n"
            "Hint: pip install pandas, or read the file from a folder (source='folder')."
        )


class ExpertError(SufrepError, TypeError):
    """An expert of a hidden state cannot take weights."""

    def __init__(self, expert: object) -> None:
        super().__init__(
            f"expert is {expert!r}, whose fit takes no sample_weight.\n"
            "Hint: give a regressor that does, such as Ridge or HistGradientBoostingRegressor."
        )


class MissingDependencyError(SufrepError, ImportError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed.\n"
            f'Hint: pip install "sufrep[{extra}]"'
        )
