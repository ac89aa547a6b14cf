"""The target as one more covariate, or one for each class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import column_or_1d

from sufrep._accumulate import check_squares
from sufrep._frames import Factor, factorize_objects, number_or_nan
from sufrep.encoders._inputs import Covariate, indicator_order
from sufrep.errors import (
    FoldColumnError,
    IntegerClassesWarning,
    InvalidParameterError,
    SplitError,
    TargetError,
    warn,
)
from sufrep.representation import level_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Floats

# Integers with more distinct values than this are continuous, not classes.
MOST_CLASSES = 20
_TIMES = (date, timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A target: what it is, and its columns.

    Parameters
    ----------
    kind : {"continuous", "binary", "multiclass"}
    covariates : list of Covariate
        One, or one for each class, numbers by size and then text.
    columns : list of ndarray, each of shape (n,)
        The values, or an indicator for each class.
    raw : ndarray, shape (n,)
        The target as it was given, for splitters.
    """

    kind: str
    covariates: list[Covariate]
    columns: list[Array]
    raw: Array

    @property
    def classes(self) -> list[str | None]:
        """Labels of the columns in `outputs`; None for a continuous target."""
        return [self.covariates[j].level for j in self.outputs]

    @property
    def suffixes(self) -> list[str]:
        """Ends of the names of the columns in `outputs`."""
        return class_suffixes(self.kind, self.classes)

    @property
    def outputs(self) -> list[int]:
        """Positions of the columns that are encoded: of two classes the second one is enough."""
        return output_positions(self.kind, len(self.covariates))

    def output_columns(self) -> Floats:
        """The columns in `outputs`; (n_outputs, n)."""
        return np.array([np.asarray(self.columns[j], dtype=np.float64) for j in self.outputs])

    def values(self) -> Array:
        """The target as numbers, or as codes of its classes; (n,)."""
        if self.kind == "continuous":
            return np.asarray(self.columns[0], dtype=np.float64)
        codes: Codes = np.argmax(np.column_stack(self.columns), axis=1)
        return codes

    def take(self, rows: Codes) -> Target:
        """Return the target of some rows."""
        return Target(self.kind, self.covariates, [column[rows] for column in self.columns], self.raw[rows])


def output_positions(kind: str, n_columns: int) -> list[int]:
    """Positions of the target's columns that are encoded: of two classes the second one is enough."""
    return list(range(n_columns))[-1 if kind == "binary" else 0 :]


def class_suffixes(kind: str, classes: Sequence[str | None]) -> list[str]:
    """Ends of column names, one for each class that is encoded: its label if the target is multiclass.

    That depends on the kind of target, not on the number of classes that these rows have: one more chunk may
    add classes, and must not rename columns.
    """
    return [f"_{label}" if kind == "multiclass" else "" for label in classes]


def read_target(y: Any, target_type: str) -> Target:
    """Check the target, and find out whether it is continuous or classes if ``target_type`` is "auto"."""
    if y is None:
        raise TargetError(
            "This encoder requires y to be passed, but the target y is None.", "call fit(X, y) with a target."
        )
    values = _array(y)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise TargetError(
            f"Input y contains NaN or infinity in {int((~np.isfinite(values)).sum())} row(s).",
            "drop the rows whose target is unknown.",
        )
    kind = kind_of(values) if target_type == "auto" else target_type
    if kind == "continuous":
        numbers = _numbers(values)
        check_squares("target", numbers)
        return Target(kind, [Covariate(None)], [numbers], np.asarray(y))
    factor = _classes(values)
    check_classes(kind, len(factor.levels))
    found = [Covariate(None, class_label(level)) for level in factor.levels]
    if len(set(found)) < len(found):
        raise TargetError(
            "Several classes of y have the same name, such as the number 1 and the text '1'.",
            "convert all classes to text, or all to numbers.",
        )
    order = sorted(range(len(found)), key=lambda code: indicator_order(found[code]))
    return Target(
        kind, [found[code] for code in order], [factor.codes == code for code in order], np.asarray(y)
    )


def warn_of_integers(target: Target) -> None:
    """Warn that whole numbers are treated as classes, if nobody said what the target is."""
    if n_integer_classes(_array(target.raw), target.kind):
        warn_of_integer_classes(len(target.covariates))


def warn_of_integer_classes(n_classes: int) -> None:
    """Warn that so many whole numbers are treated as classes."""
    warn(
        f"The target has {n_classes} distinct whole numbers, which are treated as classes.\n"
        "Hint: target_type='continuous' treats them as numbers, target_type='multiclass' says that they "
        "are classes.",
        IntegerClassesWarning,
    )


def n_integer_classes(values: Array, kind: str) -> int:
    """Number of distinct whole numbers that are treated as classes; 0 if the target is anything else.

    Two values, such as 0 and 1, are the same as numbers and as classes.
    """
    is_guess = kind == "multiclass" and values.dtype.kind in "iuf" and kind_of(values) == "multiclass"
    return len(np.unique(values)) if is_guess else 0


def _array(y: Any) -> Array:
    """Return the target as an array (n,), of numbers if it holds nothing else."""
    try:
        values: Array = column_or_1d(np.asarray(y))
    except ValueError as error:
        raise TargetError(
            f"y is not one column of values: {error}", "give one value for each row."
        ) from error
    # Times with a zone are objects; numpy has no type for them.
    kinds = set(map(type, values)) if values.dtype == object else {values.dtype.type}
    times = [kind for kind in kinds if issubclass(kind, _TIMES)]
    if times:
        raise TargetError(
            f"y holds {times[0].__name__} values.", "convert times to numbers, for instance to days."
        )
    if values.dtype == object and all(_is_number(value) for value in values.tolist()):
        values = np.array([number_or_nan(value) for value in values.tolist()], dtype=np.float64)
    return values


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal, np.number)) and not isinstance(value, bool)


def check_classes(kind: str, n_classes: int) -> None:
    """Refuse more classes than the kind of target has."""
    if kind == "binary" and n_classes > 2:
        raise TargetError(
            f"y has {n_classes} classes, but the target was found to be binary.",
            "pass target_type='multiclass' or target_type='continuous' from the first chunk on.",
        )


def check_still_classes(y: Any, known: Sequence[Covariate]) -> None:
    """Refuse a continuous target, or ever more numbers, if earlier chunks looked like classes."""
    values = _array(y)
    classes = {covariate.level for covariate in known}
    is_number = values.dtype.kind in "iuf"  # text is classes, however many there are
    if is_number:
        classes |= {class_label(value) for value in np.unique(values).tolist()}
    many = is_number and len(classes) > MOST_CLASSES
    if many or kind_of(values) == "continuous":
        raise TargetError(
            "y looked like classes in the first chunk, and now it is continuous.",
            "pass target_type='multiclass' or target_type='continuous' from the first chunk on.",
        )


def split_rows(
    cv: Any, n_rows: int, y: Any, random_state: int, *, first_rows: bool = False
) -> list[tuple[Codes, Codes]]:
    """Return (train, test) folds whose test parts partition the rows; none for a single row.

    scikit-learn's ``TimeSeriesSplit`` tests no row of the first block. It is accepted with ``first_rows``,
    and that block is then the first fold, without training rows.
    """
    # Loads half of scikit-learn, for encoders that cross-fit only (python -m benchmarks --only imports).
    from sklearn.model_selection import KFold, check_cv

    if n_rows < 2:
        return []

    if cv is None:
        cv = 5
    if isinstance(cv, Integral):
        cv = KFold(min(int(cv), n_rows), shuffle=True, random_state=random_state)
    found = check_cv(cv, y).split(np.zeros((n_rows, 1)), np.asarray(y))
    folds = [(_positions(train), _positions(test)) for train, test in found]
    if not folds:
        expected = "a number of folds, a splitter, or a list of (train, test); a generator works only once"
        raise InvalidParameterError("cv", cv, expected)
    if first_rows and is_time_series_split(cv):
        folds = [(np.empty(0, dtype=np.intp), np.arange(folds[0][1].min())), *folds]
    times, leaking = np.zeros(n_rows, dtype=np.intp), 0
    outside = sum(int(((rows < 0) | (rows >= n_rows)).sum()) for fold in folds for rows in fold)
    for train, test in folds if not outside else ():
        held_out = np.bincount(test, minlength=n_rows)
        times += held_out
        leaking += bool(held_out[train].any())
    never, twice = int((times == 0).sum()), int((times > 1).sum())
    if never or twice or leaking or outside:
        raise SplitError(n_rows, never, twice, leaking, outside)
    return folds


def folds_of(values: Any, name: str) -> list[tuple[Codes, Codes]]:
    """Return (train, test) for every value of a column of folds, given as a native column."""
    factor = factorize_objects(name, np.asarray(values).tolist())
    if (factor.codes < 0).any() or len(factor.levels) < 2:
        raise FoldColumnError(name, fold_problem(bool((factor.codes < 0).any())))
    rows = [factor.codes == code for code in range(len(factor.levels))]
    return [(np.flatnonzero(~fold), np.flatnonzero(fold)) for fold in rows]


def fold_problem(has_nulls: bool) -> str:
    """What is wrong with a column of folds."""
    return "nulls" if has_nulls else "the same fold in every row"


def _positions(rows: Any) -> Codes:
    """Positions of rows, which may be given as a mask."""
    found = np.asarray(rows)
    return np.flatnonzero(found) if found.dtype == bool else found.astype(np.intp)


def kind_of(values: Array) -> str:
    """Guess whether a target is continuous, binary or multiclass."""
    if values.dtype.kind in "iuf":
        if values.dtype.kind == "f" and not np.array_equal(values, np.trunc(values)):
            return "continuous"
        n_distinct = len(np.unique(values))
        return "binary" if n_distinct <= 2 else "multiclass" if n_distinct <= MOST_CLASSES else "continuous"
    return "binary" if len(_classes(values).levels) <= 2 else "multiclass"


def class_label(value: Any) -> str:
    """Name a class; 1, 1.0 and True are one class."""
    if isinstance(value, (bool, int, float)) and math.isfinite(value) and value == int(value):
        return str(int(value))
    return level_label(value)


def _numbers(values: Array) -> Array:
    try:
        return values if values.dtype.kind in "biuf" else values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TargetError(
            f"y holds {values.dtype} values, but target_type is 'continuous' ({error}).",
            "pass numbers, or target_type='auto'.",
        ) from error


def _classes(values: Array) -> Factor:
    factor = factorize_objects("y", values.tolist())
    if (factor.codes < 0).any():
        raise TargetError("Input y contains NaN or None.", "drop the rows whose target is unknown.")
    return factor


def is_time_series_split(cv: Any) -> bool:
    """Whether folds are those of scikit-learn's ``TimeSeriesSplit``."""
    if cv is None or isinstance(cv, (str, Integral)):
        return False
    from sklearn.model_selection import TimeSeriesSplit

    return isinstance(cv, TimeSeriesSplit)
