"""Every error that sufrep raises on purpose, and its warnings.

Each error message states what was found, what was expected and, after ``Hint:``, what to do. Each error is a
:class:`SufrepError` and also the built-in error that fits, so both kinds of ``except`` clause work. Where
scikit-learn's conformance suite looks for a phrase of its own, the message contains it.
"""

from __future__ import annotations

import re
import sys
import warnings
from dataclasses import dataclass, fields
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class SufrepError(Exception):
    """Base class of all errors of this package."""

    def __reduce__(self) -> Any:
        # joblib's workers send errors back by pickle, which would call the constructor with the message.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[SufrepError], args: tuple[Any, ...], state: dict[str, Any]) -> SufrepError:
    error = kind.__new__(kind, *args)
    error.args = args  # OSError.__new__ does not set them
    error.__dict__.update(state)
    return error


# Parameters


class InvalidParameterError(SufrepError, ValueError):
    """A parameter of a function has an invalid value."""

    def __init__(self, parameter: str, value: object, expected: str) -> None:
        # The command line says the same about the option (test_errors_name_the_option_that_was_typed).
        self.parameter, self.value, self.expected = parameter, value, expected
        super().__init__(f"{parameter} is {value!r}.\nHint: {parameter} must be {expected}.")


class ChangedParametersError(SufrepError, ValueError):
    """``partial_fit`` is called after parameters were changed that decide what is collected."""

    def __init__(self, encoder: str) -> None:
        super().__init__(
            f"Parameters of this {encoder} have changed since the first chunk, for which earlier chunks were "
            "collected.\nHint: call fit, or start again with a clone of the encoder."
        )


class NoRuleError(SufrepError, TypeError):
    """``learn_levels`` is called of an encoder that cannot estimate the vector of a new level."""

    def __init__(self, encoder: str) -> None:
        super().__init__(
            f"{encoder} has no rule by which the vector of a new level follows from its rows.\n"
            "Hint: call fit with all rows, or use an encoder that has one, such as MeansEncoder."
        )


class UnknownMethodError(SufrepError, ValueError):
    """``make_encoder`` gets a method that is not in the registry."""

    def __init__(self, method: str, known: Sequence[str]) -> None:
        near = get_close_matches(method, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(f"No encoder is called {method!r}.\nHint: {hint}The methods are {', '.join(known)}.")


class UnknownLibraryError(SufrepError, ValueError):
    """A table is requested as a frame of an unknown library."""

    def __init__(self, library: str, known: Sequence[str]) -> None:
        super().__init__(f"library={library!r} is not supported.\nHint: use one of {', '.join(known)}.")


class TooManyComponentsError(SufrepError, ValueError):
    """``n_components`` is larger than the number of covariates."""

    def __init__(self, n_components: int, n_covariates: int) -> None:
        super().__init__(
            f"n_components={n_components} is more than the covariates allow: the limit is their number, "
            f"{n_covariates}.\nHint: use n_components='auto' or a number from 1 to {n_covariates}."
        )


class SparseCodingError(SufrepError, ValueError):
    """``sparse_output`` is requested for a coding other than one-hot."""

    def __init__(self, coding: str) -> None:
        super().__init__(
            f"sparse_output=True needs coding='one_hot'; coding={coding!r} has few zeros to leave out.\n"
            "Hint: use sparse_output=False."
        )


class ExpertError(SufrepError, TypeError):
    """The expert of a latent-state regressor does not accept sample weights."""

    def __init__(self, expert: object) -> None:
        super().__init__(
            f"expert is {expert!r}, whose fit takes no sample_weight; experts are fitted with weights.\n"
            "Hint: use a regressor that accepts them, such as Ridge or HistGradientBoostingRegressor."
        )


class MissingDependencyError(SufrepError, ImportError):
    """An optional package is needed but not installed."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed.\n"
            f'Hint: pip install "sufrep[{extra}]"'
        )


class MissingLibraryError(SufrepError, ImportError):
    """A frame of a library is requested that is not installed."""

    def __init__(self, library: str, installed: Sequence[str]) -> None:
        others = "".join(f", or use library={name!r}" for name in installed[:1])
        super().__init__(
            f"library={library!r} needs the package {library!r}, which is not installed.\n"
            f"Hint: pip install {library}{others}."
        )


class MissingPandasError(SufrepError, ImportError):
    """Pandas is needed but not installed; no extra of this package installs it."""

    def __init__(self, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package 'pandas', which is not installed.\n"
            "Hint: pip install pandas, or read the file from a folder (source='folder')."
        )


# Columns of a table


class UnknownColumnError(SufrepError, ValueError):
    """A parameter names a column that the table does not have."""

    def __init__(
        self, parameter: str, column: object, names: Sequence[str], expected: Sequence[object] = ()
    ) -> None:
        near = get_close_matches(str(column), [name for name in names if name not in expected], n=3)
        hint = f"did you mean {', '.join(map(repr, near))}?" if near else f"the columns are {listed(names)}."
        if isinstance(column, list):
            hint = f"write columns to be crossed as a tuple, as in [{tuple(column)!r}]."
        if isinstance(column, int):
            hint = f"positions run from 0 to {len(names) - 1}; {hint}"
        if parameter == "y" and not near:
            hint += " In a Pipeline, every step gets the same y: pass the values of the target there."
        super().__init__(f"{parameter} names the column {column!r}, which X does not have.\nHint: {hint}")


class UnnamedColumnsError(SufrepError, ValueError):
    """The target is given by name, but the columns of X have no names."""

    def __init__(self, target: str, X: object) -> None:
        super().__init__(
            f"y is the text {target!r}, which names a column of X, but X is a {_kind_in_words(X)} whose "
            "columns have no names.\nHint: pass a frame that holds the target, or pass its values as y."
        )


class EmptyGroupError(SufrepError, ValueError):
    """``group`` is an empty list, or is or contains an empty tuple."""

    def __init__(self, group: object) -> None:
        super().__init__(
            f"group={group!r} names no column.\n"
            "Hint: name at least one; group=None uses every text or categorical column."
        )


class ColumnNameError(SufrepError, ValueError):
    """Columns of a table share a name."""


class ColumnsMismatchError(SufrepError, ValueError):
    """``transform`` gets a frame whose columns are not those that ``fit`` saw, in the same order."""

    def __init__(self, expected: Sequence[str], found: Sequence[str]) -> None:
        unseen, missing = sorted({*found} - {*expected}), sorted({*expected} - {*found})
        # In scikit-learn's own words, which its conformance suite looks for.
        text = "The feature names should match those that were passed during fit.\n"
        if unseen:
            text += f"Feature names unseen at fit time:\n{_list_names(unseen)}"
        if missing:
            text += f"Feature names seen at fit time, yet now missing:\n{_list_names(missing)}"
        if not (unseen or missing):
            text += "Feature names must be in the same order as they were in fit.\n"
        renamed = [f"{near!r} to {name!r}" for name, near in _closest(missing, unseen).items()]
        hint = "rename " + ", ".join(renamed) if renamed else "pass the columns that fit had, in that order"
        super().__init__(f"{text}Hint: {hint}.")


def _list_names(names: Sequence[str], most: int = 5) -> str:
    """A line for each of the first names."""
    return "".join(f"- {name}\n" for name in names[:most]) + ("- ...\n" if len(names) > most else "")


class EffectDataError(SufrepError, ValueError):
    """A treatment effect cannot be estimated from these rows."""

    def __init__(self, found: str, hint: str) -> None:
        super().__init__(f"{found}\nHint: {hint}")


class OverlapWarning(UserWarning):
    """Too few rows, groups or clusters can be compared for an effect that is sure to be trusted."""


class TimeZoneError(SufrepError, ValueError):
    """Times with a zone and times without one cannot be compared."""

    def __init__(self, column: str, found: str) -> None:
        super().__init__(f"Column {column!r} holds {found}.\nHint: give all of them a zone, or none.")


class TimeColumnError(SufrepError, ValueError):
    """The column of times does not order the rows."""

    def __init__(self, found: str, hint: str) -> None:
        super().__init__(f"{found}\nHint: {hint}")


class LazyFrameError(SufrepError, TypeError):
    """X is a query that has not been executed, and what was asked for needs rows in memory."""

    def __init__(self, X: object, what: str = "", hint: str = "") -> None:
        kind = _kind_in_words(X)
        first = "call .pl() or .df()" if "duckdb" in kind.lower() else "collect it first"
        super().__init__(
            f"X is a {kind}, which holds no rows yet{what and f'; {what}'}.\n"
            f"Hint: {hint or f'{first}, or pass it in chunks to partial_fit.'}"
        )


@dataclass(frozen=True, slots=True)
class LazyWords:
    """What errors call a lazy frame and what can be done with it; commands have words of their own."""

    frame: str = "X is a lazy frame"
    of_frame: str = "on a lazy frame"
    collect: str = "collect the frame"
    new_rows: str = "call fit, and transform for new rows"
    narrow: str = "LowRankEncoder"


class LazyLimitError(SufrepError):
    """What was asked for works in memory, but not on a lazy frame.

    Parameters
    ----------
    what, hint : str
        Names of `LazyWords` in braces stand for these words.
    """

    def __init__(self, what: str, hint: str) -> None:
        self._template = f"{what}\nHint: {hint}"
        super().__init__(self.worded(LazyWords()))

    def worded(self, words: LazyWords) -> str:
        """Return the message in other words (test_errors_speak_of_tables_instead_of_frames)."""
        text = self._template
        for field in fields(words):
            text = text.replace(f"{{{field.name}}}", getattr(words, field.name))
        return text


class LazyOutputError(LazyLimitError, ValueError):
    """What was asked for cannot be returned as a lazy frame."""

    @classmethod
    def of_container(cls, engine: str, container: str) -> LazyOutputError:
        """Rows were asked for in the container of ``set_output``."""
        return cls(
            f"set_output asks for {container}, but a lazy frame of {engine} is encoded as such a frame.",
            'call set_output(transform="default") on every step, and collect the result.',
        )

    @classmethod
    def of_columns(cls, found: int, most: int) -> LazyOutputError:
        """So many columns would stall the planners of engines."""
        return cls(
            f"The encoding has {found:,} new columns; {{of_frame}} it has at most {most:,}.",
            "choose an encoder with fewer columns, such as {narrow}, or {collect} first.",
        )

    @classmethod
    def of_sparse(cls) -> LazyOutputError:
        """A lazy frame has no sparse columns."""
        return cls(
            "sparse_output=True asks for a sparse matrix, which no lazy frame can be.",
            "set sparse_output=False, or {collect} first.",
        )


class LazyTrainingError(LazyLimitError, ValueError):
    """``fit_transform`` on a lazy frame was asked for columns that each row would need for itself."""


class FoldColumnError(SufrepError, ValueError):
    """A column of folds does not put every row into one of at least two folds."""

    def __init__(self, column: str, what: str) -> None:
        super().__init__(
            f"The column of folds, {column!r}, holds {what}; expected one of at least two folds in every "
            "row.\nHint: make one, for instance of a hash of the row's identifier, modulo 5."
        )


class EmptySampleError(SufrepError, ValueError):
    """A sample of the rows of a lazy frame has no row of some level."""

    def __init__(self, column: str, empty: Sequence[str], n_levels: int, n_rows: int, parameter: str) -> None:
        shown = ", ".join(empty[:5]) + (", …" if len(empty) > 5 else "")
        super().__init__(
            f"The sample of {n_rows:,} rows has no row of {len(empty):,} of the {n_levels:,} levels of "
            f"{column!r}: {shown}.\n"
            "Hint: raise sample_rows or, if many rows hold the same values, name a column that distinguishes "
            f"rows in {parameter}, such as an identifier."
        )


class RowsNeededError(LazyLimitError, TypeError):
    """An encoder needs rows in memory, and X is a lazy frame."""


class EngineError(SufrepError, RuntimeError):
    """An engine failed: DuckDB, Spark, Dask, polars or a database behind Ibis."""

    def __init__(self, engine: str, step: str, cause: object) -> None:
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        super().__init__(
            f"{engine} failed while {step}: {type(cause).__name__}: {lines[0]}\n"
            "Hint: nothing was changed or written. The full message of the engine is the cause of this error."
        )


class ForbiddenUploadError(SufrepError, PermissionError):
    """A connection of DuckDB does not let a small table be joined to its own."""

    def __init__(self) -> None:
        super().__init__(
            "The DuckDB connection of X does not read Python objects, so the table of levels cannot be "
            'joined.\nHint: run "SET python_enable_replacements = true" on that connection.'
        )


class OldNarwhalsError(SufrepError, ImportError):
    """narwhals is too old for lazy frames."""

    def __init__(self, found: str, least: str) -> None:
        super().__init__(
            f"Lazy frames need narwhals {least} or newer, this is {found}.\n"
            f'Hint: pip install "narwhals>={least}", or collect the frame first.'
        )


class KeyTypeError(SufrepError, TypeError):
    """A group column of a lazy frame has a type whose values cannot be levels."""

    def __init__(self, column: str, dtype: str) -> None:
        super().__init__(
            f"Column {column!r} is of type {dtype}; the levels of a lazy frame are text, categories, "
            "integers, booleans, floats, dates or datetimes.\nHint: cast the column to text."
        )


class OtherTableError(SufrepError, TypeError):
    """X holds columns, but is neither a frame nor an array: a dict, a Series, a stream of Arrow data."""

    def __init__(self, X: object, what: str, hint: str) -> None:
        super().__init__(
            f"X is a {_kind_in_words(X)}, {what}; expected a frame (pandas, polars, pyarrow) or an array "
            f"with two dimensions.\nHint: {hint}"
        )


def _kind_in_words(X: object) -> str:
    """The library and the name of a type, such as "polars Series"; built-in types have no library."""
    library = type(X).__module__.partition(".")[0].lstrip("_")
    return type(X).__name__ if library == "builtins" else f"{library} {type(X).__name__}"


# What to do where an encoder is handed the group alone.
WHOLE_FRAME = "pass the whole frame and name the group, as in group='zipcode'"


def groups_alone(n_features: int, groups: Sequence[str]) -> str:
    """What is found where no covariate is, for an error or a warning."""
    return (
        f"Found X with {n_features} feature(s), none of which is a numeric covariate other than the "
        f"group column(s) {', '.join(map(repr, groups))}"
    )


class NoCovariateError(SufrepError, ValueError):
    """The table has no numeric column to represent the levels by.

    Parameters
    ----------
    n_features : int
        Number of columns of X.
    groups : sequence of str
    others : sequence of str
        Names of the columns that are part of no group. There are none inside a ColumnTransformer that hands
        over the group alone.
    """

    def __init__(self, n_features: int, groups: Sequence[str], others: Sequence[str]) -> None:
        add = WHOLE_FRAME
        if others:
            add = (
                "add numeric columns, turn text and dates into numbers (ToNumbers before the encoder, or "
                "categorical_covariates='share')"
            )
        super().__init__(
            f"{groups_alone(n_features, groups)}; at least one is needed, because levels are "
            "represented by their covariates.\n"
            f"Hint: {add}, or choose an encoder that needs none (ContrastEncoder, PermutationEncoder, "
            "FisherEncoder)."
        )


class NotNumericError(SufrepError, ValueError):
    """A covariate is not numeric, or was numeric in an earlier chunk and no longer is."""

    def __init__(self, column: str, dtype: str) -> None:
        super().__init__(
            f"Column {column!r} holds {dtype}, but it is to be a covariate, and covariates are numeric.\n"
            "Hint: leave it out, convert it (ToNumbers does that for text and dates), or use "
            "categorical_covariates='share', which includes text columns of at most 30 levels."
        )


class GroupAsCovariateError(SufrepError, ValueError):
    """A covariate is part of every group, so that there is no other column whose levels it could describe."""

    def __init__(self, column: str, groups: Sequence[str]) -> None:
        super().__init__(
            f"covariates names {column!r}, which is part of every group ({', '.join(groups)}). A covariate "
            "describes the levels of a column other than itself.\n"
            "Hint: leave it out of covariates, or out of group."
        )


class ParentError(SufrepError, ValueError):
    """``parent`` does not say which columns contain which groups, or nothing is shrunk towards parents."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what}\nHint: {hint}")


class TwoParentsError(SufrepError, ValueError):
    """A level occurs with several parents, so that none of them contains it."""

    def __init__(self, column: str, level: str, parent: str, found: Sequence[str]) -> None:
        shown = " and ".join(found[:2])
        more = f" and {len(found) - 2} more" if len(found) > 2 else ""
        super().__init__(
            f"The level {level!r} of {column!r} has {len(found)} parents in {parent!r}: {shown}{more}.\n"
            "Hint: on_conflict='majority' gives each level the parent of most of its rows; if a level means "
            f"something else in each of them, cross the columns: group=[({parent!r}, {column!r})]."
        )


class TooManySharesError(SufrepError, ValueError):
    """A text column used as shares turns out to have too many levels in a later chunk."""

    def __init__(self, column: str, n_levels: int, most: int) -> None:
        super().__init__(
            f"Column {column!r} is used with categorical_covariates='share' and now has {n_levels} levels; "
            f"at most {most} can join.\nHint: name it in `group`, or drop it before the first chunk."
        )


class ClashingNamesError(SufrepError, ValueError):
    """Two columns of the output would have the same name."""

    def __init__(
        self, names: Sequence[str], hint: str = "rename the input columns, or use remainder='drop'."
    ) -> None:
        super().__init__(
            f"The output would have two columns called {', '.join(map(repr, names[:5]))}.\nHint: {hint}"
        )


class SparseOutputError(SufrepError, ValueError):
    """Columns that are not numeric cannot be part of a sparse matrix."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            "sparse_output=True needs numeric columns other than the groups; not numeric: "
            f"{', '.join(names)}.\n"
            "Hint: use remainder='drop', or turn these columns into numbers first, with ToNumbers."
        )


class UnknownGroupError(SufrepError, KeyError):
    """A table or plot is requested for a group that was not encoded."""

    def __init__(self, group: object, known: Sequence[str]) -> None:
        names = ", ".join(known) or "(none)"
        self._text = (
            f"No group called {group!r} was encoded; there are: {names}.\n"
            "Hint: the name of a crossed group is its columns joined with ':', such as 'store:brand'."
            if group is not None
            else f"One group is needed, but there are {len(known)}: {names}.\nHint: name one of them."
        )
        super().__init__(self._text)

    def __str__(self) -> str:
        # KeyError would print the text with quotes and escapes.
        return self._text


# Values in the rows


class NoRowsError(SufrepError, ValueError):
    """A frame has no rows."""

    def __init__(self, n_columns: int) -> None:
        super().__init__(
            f"Found array with 0 sample(s) (shape=(0, {n_columns})) while a minimum of 1 is required.\n"
            "Hint: check the step that made X; a filter may have removed every row."
        )


class LengthMismatchError(SufrepError, ValueError):
    """X and another argument have different numbers of rows."""

    def __init__(self, n_rows: int, name: str, length: int) -> None:
        super().__init__(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} row(s), "
            f"{name} has {length}.\nHint: both must describe the same rows, in the same order."
        )


class InfiniteValueError(SufrepError, ValueError):
    """A covariate contains an infinite value."""

    def __init__(self, column: str, n_infinite: int, first_row: int | None = None) -> None:
        where = "" if first_row is None else f", the first in row {first_row}"
        super().__init__(
            f"Covariate {column!r} contains infinity: {n_infinite} value(s){where}. "
            "Numbers that are too large for a float count as infinite.\n"
            "Hint: replace them by nulls (NaN), which are skipped, or clip them."
        )


class MagnitudeError(SufrepError, ValueError):
    """A column is so large, or varies by so little, that its variance is no double."""

    def __init__(self, column: str, found: str, limit: str, remedy: str) -> None:
        super().__init__(
            f"Column {column!r} {found}, but what is {limit} has squares that are out of range.\n"
            f"Hint: rescale the column: {remedy} it by a power of ten before it is encoded."
        )


class GroupValueError(SufrepError, TypeError):
    """A group column contains a value that cannot be a level."""

    def __init__(self, column: str, value: object) -> None:
        super().__init__(
            f"Column {column!r} holds a {type(value).__name__}; the argument must be a string, a number or "
            "another hashable value to be a level.\nHint: convert the column to text first."
        )


class NoLevelError(SufrepError, ValueError):
    """A group column has no level at all."""

    def __init__(self, column: str) -> None:
        super().__init__(
            f"Column {column!r} has no level in any row with a positive weight; with missing='prior' "
            "nulls do not count as a level.\nHint: drop the column, or use missing='level'."
        )


class OneLevelError(SufrepError, ValueError):
    """A group column has only one level."""

    def __init__(self, column: str, levels: Sequence[str]) -> None:
        found = ", ".join(levels) or "(none)"
        super().__init__(
            f"Column {column!r} has only one level, {found}; at least two are needed.\n"
            "Hint: name the column with many levels, or check the step that filtered the rows."
        )


class UnseenLevelError(SufrepError, ValueError):
    """Rows have levels that ``fit`` never saw, and ``unseen='error'``."""

    def __init__(self, column: str, unseen: Sequence[str], n_known: int) -> None:
        shown = ", ".join(unseen[:5]) + (", …" if len(unseen) > 5 else "")
        super().__init__(
            f"Column {column!r} holds {len(unseen)} unseen level(s): {shown}. The encoder knows {n_known}.\n"
            "Hint: unseen='prior' gives them the vector of an average level."
        )


class OneLevelGivenError(SufrepError, TypeError):
    """A single level is given where an iterable of levels is expected."""

    def __init__(self, level: object) -> None:
        of = "; as an iterable, it is one of characters" if isinstance(level, (str, bytes)) else ""
        super().__init__(
            f"{level!r} is one level, and levels are expected{of}.\n"
            f"Hint: pass a list, [{level!r}], or take representation[{level!r}] for one vector."
        )


class MissingLevelError(SufrepError, ValueError):
    """A group column contains nulls, and ``missing='error'``."""

    def __init__(self, column: str, n_missing: int) -> None:
        super().__init__(
            f"Column {column!r} holds {n_missing} null(s) and missing='error' forbids them.\n"
            "Hint: missing='level' makes the null a level of its own, missing='prior' an average level."
        )


class SampleWeightError(SufrepError, ValueError):
    """Sample weights are not valid frequencies of rows."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"sample_weight {what}.\n"
            "Hint: pass a finite weight >= 0 for each row, at least one of them above 0."
        )


class TargetError(SufrepError, ValueError):
    """The target is missing or of an unsuitable type."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what}\nHint: {hint}")


class SplitError(SufrepError, ValueError):
    """A splitter does not put every row into exactly one test fold, disjoint from its training rows."""

    def __init__(self, n_rows: int, n_never: int, n_twice: int, n_leaking: int, n_outside: int) -> None:
        found = (
            f"{n_outside} position(s) are not between 0 and {n_rows - 1}"
            if n_outside
            else f"{n_never} row(s) are in none and {n_twice} in several, and {n_leaking} fold(s) share rows "
            "between train and test"
        )
        super().__init__(
            f"cv must put each of the {n_rows} rows into exactly one test fold; {found}.\n"
            "Hint: use a partition such as KFold(5), or list(GroupKFold(5).split(X, groups=...))."
        )


class MomentsMismatchError(SufrepError, ValueError):
    """Moments are incompatible, or lack what an operation needs."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what}\nHint: {hint}")


# Comparisons


class NoMomentsError(SufrepError, ValueError):
    """``drift`` is called on an encoder that was saved without the moments of its rows."""

    def __init__(self, encoder: str) -> None:
        super().__init__(
            f"This {encoder} was saved by a version that did not keep what new rows are compared with, the "
            "moments of its training rows.\nHint: fit it again, and save it."
        )


class ComparisonError(SufrepError, RuntimeError):
    """No method of a comparison has a result."""

    def __init__(self, reason: str, hint: str = "look at the failures in Comparison.table().") -> None:
        what = f"No method has a result on these data, so none is the best. The first reason: {reason}"
        super().__init__(f"{what}\nHint: {hint}")


# Files


class TableNotFoundError(SufrepError, FileNotFoundError):
    """A file of rows, or a table of a database, does not exist."""

    def __init__(self, what: str, near: Sequence[str], hint: str) -> None:
        meant = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
        super().__init__(f"{what}\nHint: {' '.join(filter(None, (meant, hint)))}")


class TableContentError(SufrepError, ValueError):
    """A file or database does not contain a table that can be read."""

    def __init__(self, where: str, what: str, hint: str) -> None:
        super().__init__(f"{where!r} {what}\nHint: {hint}")


class TableColumnError(SufrepError, ValueError):
    """The table of a file or database does not have a named column."""

    def __init__(
        self, where: str, missing: Sequence[str], names: Sequence[str], expected: Sequence[str] = ()
    ) -> None:
        # The command line looks for groups that are crossed among them.
        self.missing, self.names = missing, names
        others = [name for name in names if name not in expected]
        meant = [f"{near!r} for {name!r}" for name, near in _closest(missing, others).items()]
        hint = f"did you mean {', '.join(meant)}?" if meant else f"the columns are {listed(names)}."
        if len(names) == 1 and any(name in re.split(r"\W+", names[0]) for name in missing):
            hint = "fields must be separated by commas, semicolons, tabs or pipes."
        super().__init__(f"{where!r} has no column {', '.join(map(repr, missing))}.\nHint: {hint}")


class ReadingMismatchError(SufrepError, ValueError):
    """A table would be read differently from the one that an encoder was fitted on."""

    def __init__(
        self,
        where: str,
        column: str,
        found: str,
        expected: str,
        hint: str = "write it as that table was written, or fit the encoder again on a table like this one.",
    ) -> None:
        super().__init__(
            f"Column {column!r} of {where!r} {found}. The table that the encoder was fitted on has {expected}"
            f" there.\nHint: {hint}"
        )


class FileEndingError(SufrepError, ValueError):
    """The ending of a file name does not stand for a supported format."""

    def __init__(self, path: object, known: Sequence[str], hint: str) -> None:
        super().__init__(
            f"The ending of {str(path)!r} is none of {', '.join(known)}, which determine the format.\n"
            f"Hint: {hint}"
        )


class NotWritableError(SufrepError, OSError):
    """A file cannot be written to its path."""

    def __init__(self, path: object, what: str, hint: str) -> None:
        super().__init__(f"Cannot write {str(path)!r}: {what}\nHint: {hint}")


class EncoderFileError(SufrepError, ValueError):
    """A file does not contain an encoder, or moments, that can be loaded."""

    def __init__(self, path: object, what: str, hint: str) -> None:
        super().__init__(f"Cannot read {str(path)!r}: {what}\nHint: {hint}")


class NotSavableError(SufrepError, TypeError):
    """An encoder has a value that the file format, which contains no code, cannot represent."""

    def __init__(self, what: str, value: object) -> None:
        super().__init__(
            f"{what} is {value!r} (a {type(value).__name__}), which cannot be saved without pickle.\n"
            "Hint: use plain values (numbers, text, lists), or pickle the encoder if its readers trust you."
        )


class NotExportableError(SufrepError, ValueError):
    """Vectors cannot be written as SQL, or as a table of one type for each column."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what}\nHint: {hint}")


class ForeignStepError(SufrepError, TypeError):
    """A step to be saved is another library's, and files hold steps of sufrep only."""

    def __init__(self, name: str, step: object, hint: str) -> None:
        super().__init__(
            f"The step {name!r} is {step!r}, which is no encoder of sufrep: a file without code cannot hold "
            f"it.\nHint: {hint}"
        )


class StoreError(SufrepError, OSError):
    """Results of experiments cannot be written to or read from their store."""

    def __init__(self, path: object, what: str, hint: str) -> None:
        super().__init__(f"The store {str(path)!r} {what}.\nHint: {hint}")


# Data sets


class DataNotFoundError(SufrepError, FileNotFoundError):
    """The folder or file of a data set does not exist, or no folder is set."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"{what}\nHint: {hint}")


class DataContentError(SufrepError, ValueError):
    """The table of a data set does not have the expected contents."""

    def __init__(self, where: str, what: str, hint: str) -> None:
        super().__init__(f"{where} {what}\nHint: {hint}")


class DownloadError(SufrepError, ConnectionError):
    """A data set could not be downloaded from OpenML."""

    def __init__(self, data_id: int, reason: object, file: str) -> None:
        super().__init__(
            f"Data set {data_id} could not be downloaded from OpenML: {reason}.\n"
            f"Hint: check the connection, or save {file!r} in a folder and set data_dir to it."
        )


def listed(names: Sequence[str], limit: int = 10, *, quote: bool = True) -> str:
    """The first names and the number of the others, for a message.

    >>> listed(["a", "b", "c", "d"], 2)
    "'a', 'b' and 2 more"
    """
    shown = ", ".join(map(repr if quote else str, names[:limit]))
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown


# Control characters, marks that change the direction of text, line and paragraph separators, and half
# characters (bytes of file names that are not UTF-8).
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: str) -> str:
    r"""Text from files, names and messages as a terminal may show it: nothing in it controls the terminal.

    Line ends stay, because messages have several lines.

    >>> print(shown("price\x1b[31m"))
    price\x1b[31m
    """
    return UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def _closest(missing: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The most similar of the names, for each missing name that has one."""
    near = {name: get_close_matches(name, names, n=1) for name in missing}
    return {name: matches[0] for name, matches in near.items() if matches}


# Checks that raise these errors


def check_name(parameter: str, name: object, known: Collection[str], others: str = "") -> None:
    """Raise unless a name is known; the error lists all names and suggests the closest.

    Examples
    --------
    >>> check_name("colour", "gren", ["red", "green"])
    Traceback (most recent call last):
    sufrep.errors.InvalidParameterError: colour is 'gren'.
    Hint: colour must be one of red, green (did you mean 'green'?).
    """
    if name in known:
        return
    close = get_close_matches(str(name), known, n=1)
    suggestion = f" (did you mean {close[0]!r}?)" if close else ""
    raise InvalidParameterError(parameter, name, f"one of {', '.join(known)}{others}{suggestion}")


def import_package(package: str, purpose: str, extra: str) -> Any:
    """Import an optional package; if it is missing, the error names the extra to install."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingDependencyError(package.partition(".")[0], purpose, extra) from error


# Warnings


class NoGroupWarning(UserWarning):
    """A frame has no text column and no group was named, so nothing is encoded."""


class NoCovariateWarning(UserWarning):
    """An encoder that could use covariates is handed the group alone, as inside a ColumnTransformer."""


class TextColumnWarning(UserWarning):
    """Text that is no group and no covariate passes through an encoder; most learners refuse it."""


class IdColumnWarning(UserWarning):
    """Every row has its own level of a group, which looks like an identifier."""


class UnseenLevelsWarning(UserWarning):
    """No row has a level that ``fit`` saw; the types of the two columns may differ."""


class IntegerClassesWarning(UserWarning):
    """A target of few distinct whole numbers is treated as classes, because nobody said what it is."""


class UninformativeGroupWarning(UserWarning):
    """`SufficientEncoder` drops a group, because no encoding of it helps to predict the target."""


# Modules that are skipped to find the line that a warning points at.
_SKIPPED = ("sufrep.", "sklearn.", "joblib.", "contextlib")


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the user's line: the innermost one that is neither ours nor scikit-learn's."""
    # Python 3.12 has skip_file_prefixes for this; we support 3.11.
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_SKIPPED):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth + 1)
