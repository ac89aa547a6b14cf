"""The data of a comparison, read and checked once: table, group, target, and splits into folds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import column_or_1d

from sufrep._frames import FrameTable, is_frame, with_missing_level
from sufrep._sklearn import take_rows
from sufrep._splits import ALWAYS_TRAINING, level_folds, ordered_folds, spread_folds
from sufrep.encoders import ToNumbers
from sufrep.encoders._inputs import read_factor, read_table_and_target, resolve_layout
from sufrep.encoders._judging import whole_levels
from sufrep.encoders._target import MOST_CLASSES, kind_of, n_integer_classes
from sufrep.encoders._times import as_date, check_varied, read_times, time_position
from sufrep.errors import IdColumnWarning, InvalidParameterError, OneLevelError, TargetError, check_name, warn
from sufrep.representation import is_null, level_label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._arrays import Array, Codes, Levels
    from sufrep._frames import Factor, Table
    from sufrep.encoders._inputs import Column, Group, Layout

# A level with fewer training rows is rare.
RARE = 10
LEVEL_KINDS = ("common", "rare", "new")
# Tasks, and the target types of the encoders that they correspond to.
TASKS = {"regression": "continuous", "binary": "binary", "multiclass": "multiclass"}
FOLDS = ("spread", "grouped", "paper")


@dataclass(frozen=True, slots=True, eq=False)
class TimeColumn:
    """The column that says when each row happened.

    Attributes
    ----------
    name : str
    column : str or int
        As encoders take it: its name, or its position if the columns have no names.
    as_number : str or int
        The same after `ToNumbers`, which turns dates into days and moves columns.
    values : ndarray, shape (n,)
        Numbers in the order of the times.
    """

    name: str
    column: Column
    as_number: Column
    values: Array


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonData:
    """A table with a group to encode, and a target to predict.

    Attributes
    ----------
    X : frame or array, shape (n, n_features)
    y : ndarray, shape (n,)
        Numbers, or classes as the user gave them.
    group : str, int, tuple or list of these
        As encoders take it: names, or positions if the columns have no names.
    group_position : int
        If there are several groups, the position of the one with most levels.
    group_name : str
        Name of that group.
    groups_in_words : str
        The names of all groups.
    columns : list of str or int
        All columns of X that groups are made of.
    codes : ndarray of int, shape (n,)
        Level of each row in that group.
    levels : ndarray of object, shape (n_levels,)
    task : {"regression", "binary", "multiclass"}
    target_name : str
    all_numeric : bool
        Whether X can go to an encoder as it is: all other columns are numeric, and scikit-learn accepts it.
    moved : dict of int to int
        Positions of unnamed group columns, before and after `ToNumbers`.
    notes : tuple of str
        What a reader of the results should know about the data.
    time : TimeColumn or None
        If test rows are to be later than training rows.
    """

    X: Any
    y: Array
    group: Group | list[Group]
    group_position: int
    group_name: str
    groups_in_words: str
    columns: list[Column]
    codes: Codes
    levels: Levels
    task: str
    target_name: str
    all_numeric: bool
    moved: dict[int, int]
    notes: tuple[str, ...]
    time: TimeColumn | None = None

    @property
    def target_type(self) -> str:
        """The ``target_type`` of the encoders."""
        return TASKS[self.task]

    @property
    def counts(self) -> Codes:
        """Number of rows of each level; (n_levels,)."""
        return np.bincount(self.codes, minlength=len(self.levels))

    def after_to_numbers(self) -> ComparisonData:
        """Return the same data with the group and time columns of the table that `ToNumbers` returns."""
        data = self
        if self.time is not None:
            data = replace(data, time=replace(self.time, column=self.time.as_number))
        if self.moved:
            columns = [_move(column, self.moved) for column in self.columns]
            data = replace(data, group=_move(self.group, self.moved), columns=columns)
        return data

    @property
    def is_identifier(self) -> bool:
        """Whether every row has a level of its own, so that no level can occur in training and test rows."""
        return len(self.levels) == len(self.codes) and not isinstance(self.group, list)

    def level_kinds(self, split: Split) -> Codes:
        """Return the position in `LEVEL_KINDS` of the level of each test row, by its training rows."""
        n_train = np.bincount(self.codes[split.train], minlength=len(self.levels))[self.codes[split.test]]
        return np.where(n_train == 0, 2, np.where(n_train < RARE, 1, 0))

    def level_names(self) -> list[str]:
        """Return the levels as text."""
        return [level_label(level) for level in self.levels.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Training and test rows of one fold.

    Attributes
    ----------
    repeat, fold : int
    train, test : ndarray of int
        Positions of the rows.
    """

    repeat: int
    fold: int
    train: Codes
    test: Codes


def read_data(
    X: Any, y: Any, group: Group | list[Group] | None, task: str, time: Column | None = None
) -> ComparisonData:
    """Check the user's table, target and times, and find out the task."""
    if task not in ("auto", *TASKS):
        raise InvalidParameterError("task", task, f"'auto' or one of {', '.join(TASKS)}")
    to_numbers = ToNumbers()
    table, values = read_table_and_target(to_numbers, X, y)
    target_name = str(getattr(values, "name", None) or "y")
    if isinstance(y, str) and isinstance(table, FrameTable):
        target_name, X = y, table.frame.to_native()
    layout = _layout(table, group)
    group_position, factor = _largest_group(table, layout)
    group_names = layout.group_names(table.names)
    group_name = group_names[group_position]
    values, task = read_target_values(values, task)
    _refuse_target_in_table(table, target_name, values)
    # pandas columns may be named by numbers; these go by position, as the columns of arrays do.
    named = hasattr(to_numbers, "feature_names_in_")
    used = sorted({position for positions in layout.groups for position in positions})
    kept: list[Column] = [table.names[position] if named else position for position in used]
    when = None if time is None else _read_time_column(table, layout, time)
    to_numbers.set_params(keep=kept).fit(X)
    names = to_numbers.get_feature_names_out().tolist()
    notes = [*target_notes(values, task), *_dropped_notes(to_numbers)]
    notes += _level_notes(group_name, factor.codes, values)
    return ComparisonData(
        X=X if is_frame(X) else np.asarray(X, dtype=object if not hasattr(X, "dtype") else None),
        y=values,
        group=_group_of(layout, table.names if named else None),
        group_position=group_position,
        group_name=group_name,
        groups_in_words=" and ".join(filter(None, (", ".join(group_names[:-1]), group_names[-1]))),
        columns=kept,
        codes=factor.codes,
        levels=factor.levels,
        task=task,
        target_name=target_name,
        all_numeric=set(to_numbers.kinds_) <= {"kept", "numeric"} and not hasattr(X, "combine_chunks"),
        moved={} if named else {position: names.index(table.names[position]) for position in used},
        notes=tuple(notes),
        time=when and _after_to_numbers(when, to_numbers, named=named),
    )


def sampled(data: ComparisonData, max_rows: int | None, seed: int) -> tuple[ComparisonData, list[str]]:
    """Return the data, or the rows of some levels if there are too many rows, and a note on that."""
    n_rows = len(data.y)
    if max_rows is None or n_rows <= max_rows:
        return data, []
    rows = whole_levels(data.codes, max_rows, seed)
    present, codes = np.unique(data.codes[rows], return_inverse=True)
    time = None if data.time is None else replace(data.time, values=data.time.values[rows])
    note = (
        f"Compared on {len(rows):,} of {n_rows:,} rows, which belong to {len(present):,} of "
        f"{len(data.levels):,} levels drawn at random; max_rows=None takes all rows."
    )
    sample = replace(
        data,
        X=take_rows(data.X, rows),
        y=data.y[rows],
        codes=codes,
        levels=data.levels[present],
        time=time,
    )
    return sample, [note]


# The time


def _read_time_column(table: Table, layout: Layout, time: Column) -> TimeColumn:
    position = time_position(table, layout, time)
    name, values = table.names[position], read_times(table, position)
    # Two times to learn from in their order, and a later one to test on.
    check_varied(values, name, least=3)
    return TimeColumn(name, position, position, values)


def _after_to_numbers(time: TimeColumn, to_numbers: ToNumbers, *, named: bool) -> TimeColumn:
    """Add where `ToNumbers` puts the column: as it is if it is numeric, else as days."""
    is_numeric = to_numbers.kinds_[int(time.column)] == "numeric"
    after = time.name if is_numeric else f"{time.name}_days"
    if named:
        return replace(time, column=time.name, as_number=after)
    return replace(time, as_number=to_numbers.get_feature_names_out().tolist().index(after))


# The group


def _layout(table: Table, group: Group | list[Group] | None) -> Layout:
    if group is None:
        text = [name for j, name in enumerate(table.names) if table.kind(j) == "text"]
        if len(text) != 1:
            found = (
                f"the text columns of X are {', '.join(map(repr, text[:10]))}"
                if text
                else "X has no text column"
            )
            raise InvalidParameterError("group", None, f"the column to encode; {found}")
    return resolve_layout(table, group=group, covariates=None, share_text=False, keep=True)


def _largest_group(table: Table, layout: Layout) -> tuple[int, Factor]:
    """Return position and levels of the group with most levels, of which it must have two."""
    factors = [read_factor(table, positions, "level") for positions in layout.groups]
    group_position = int(np.argmax([len(factor.levels) for factor in factors]))
    levels = factors[group_position].levels
    if len(levels) < 2:
        name = layout.group_names(table.names)[group_position]
        raise OneLevelError(name, [level_label(level) for level in levels.tolist()])
    return group_position, factors[group_position]


def _group_of(layout: Layout, names: Sequence[str] | None) -> Any:
    """Return the groups by the names of their columns, or by position if these have no names."""
    found: list[Any] = []
    for positions in layout.groups:
        columns = tuple(positions if names is None else (names[position] for position in positions))
        found.append(columns[0] if len(columns) == 1 else columns)
    return found[0] if len(found) == 1 else found


def _move(group: Any, moved: Mapping[int, int]) -> Any:
    if isinstance(group, (list, tuple)):
        return type(group)(_move(part, moved) for part in group)
    return moved[group]


def _dropped_notes(to_numbers: ToNumbers) -> list[str]:
    dropped = to_numbers.dropped_
    if not dropped:
        return []
    return [
        f"Dropped, because they are not numeric and have more than {to_numbers.max_levels} levels, or none: "
        f"{_shortened(dropped)}. They may be groups too."
    ]


def _level_notes(name: str, codes: Codes, y: Array) -> list[str]:
    """Note a group that looks like an identifier, or that determines the target."""
    if np.bincount(codes).max() > 1:
        _, values = np.unique(y, return_inverse=True)
        n_pairs = len(np.unique(codes * (values.max() + 1) + values))
        if n_pairs > codes.max() + 1 or n_pairs > values.max() + 1:
            return []
        return [
            f"Each level of {name!r} has its own value of the target, so the level determines the target; "
            "folds='grouped' tests on levels that training has not seen."
        ]
    text = (
        f"{name!r} has a different level in every row and looks like an identifier: no encoding of it can "
        "help to predict new rows."
    )
    warn(f"{text}\nHint: name a column whose levels occur more than once.", IdColumnWarning)
    return [text]


def _shortened(names: Sequence[str], limit: int = 8) -> str:
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")


# The target


def read_target_values(y: Any, task: str) -> tuple[Array, str]:
    """Return the target as an array (n,) of numbers or classes, and the task."""
    if y is None:
        raise TargetError("The target y is None.", "pass what is to be predicted, one value for each row.")
    values = _target_array(y)
    if task == "auto":
        kind = kind_of(values)
        task = next(name for name, target_type in TASKS.items() if target_type == kind)
    if task == "regression":
        values = _numbers(values)
    _check_classes(values, task)
    return values, task


def target_notes(values: Array, task: str) -> list[str]:
    """Note integers that are treated as classes."""
    n_classes = n_integer_classes(values, TASKS[task])
    if not n_classes:
        return []
    return [
        f"The target has {n_classes} distinct integers, which are treated as classes; "
        "task='regression' treats them as numbers."
    ]


def _target_array(y: Any) -> Array:
    """Return the target as an array (n,) without missing values, of numbers, booleans or text."""
    values: Array = column_or_1d(np.asarray(y))
    if values.dtype.kind in "mM":
        raise TargetError(f"y holds {values.dtype} values.", "convert times to numbers, such as days.")
    if values.dtype == object:
        items = values.tolist()
        if not all(map(_is_number, items)) and any(map(is_null, items)):
            raise TargetError("Input y contains NaN or None.", "drop the rows whose target is unknown.")
        values = column_or_1d(np.array(items))
    if values.dtype == object:  # Decimals, and integers too large for numpy
        values = values.astype(np.float64)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise TargetError(
            f"Input y contains NaN or infinity in {int((~np.isfinite(values)).sum())} row(s).",
            "drop the rows whose target is unknown.",
        )
    return values


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _numbers(values: Array) -> Array:
    try:
        return values.astype(np.float64)
    except ValueError as error:
        raise TargetError(
            f"task='regression' needs numbers, but the target holds {values.tolist()[0]!r}.",
            "task='auto' treats text as classes; if these should be numbers, check how the file was read.",
        ) from error


def _check_classes(values: Array, task: str) -> None:
    """Refuse a constant target, and classes that cannot be learnt."""
    distinct = np.unique(values)
    if len(distinct) < 2:
        raise TargetError(
            f"The target is {distinct.tolist()[0]!r} in every row.",
            "there is nothing to predict; check how it was made, or name another column.",
        )
    if task == "regression":
        return
    if task == "binary" and len(distinct) > 2:
        raise TargetError(
            f"task='binary', but the target has {len(distinct):,} classes.",
            "use task='multiclass', or task='regression' for numbers.",
        )
    if distinct.dtype.kind == "U" and all(as_date(text) is not None for text in distinct.tolist()):
        raise TargetError(
            f"The target holds dates such as {distinct.tolist()[0]!r}.",
            "convert them to numbers, such as days.",
        )
    if len(distinct) > MOST_CLASSES and 2 * len(distinct) > len(values):
        raise TargetError(
            f"The target has {len(distinct):,} classes in {len(values):,} rows, too many to learn; "
            f"the first is {distinct.tolist()[0]!r}.",
            "name a column of numbers or of few classes; convert numbers that were read as text.",
        )


def _refuse_target_in_table(table: Table, name: str, values: Array) -> None:
    """Refuse a table that contains the target."""
    if name not in table.names:
        return
    factor = with_missing_level(table.factorize(table.names.index(name)))
    if factor.levels[factor.codes].tolist() == values.tolist():
        raise TargetError(
            f"X contains the target as its column {name!r}.",
            f"leave it out, as in X.drop(columns={name!r}).",
        )


# Folds


def make_splits(
    data: ComparisonData, *, cv: Any, n_repeats: int, folds: str, seed: int
) -> tuple[list[Split], list[str]]:
    """Return all splits, repetition by repetition, and notes on them."""
    check_name("folds", folds, FOLDS)
    if data.time is not None:
        return _later_splits(data.time, cv=cv, n_repeats=n_repeats, folds=folds)
    if not isinstance(cv, Integral):
        return _user_splits(data, cv), []
    n_folds, limit = int(cv), len(data.levels) if folds == "grouped" else len(data.y)
    if not 2 <= n_folds <= limit:
        unit = "levels" if folds == "grouped" else "rows"
        expected = f"a number of folds from 2 to the number of {unit}, {limit}"
        raise InvalidParameterError("cv", n_folds, expected)
    splits: list[Split] = []
    notes: list[str] = []
    for repeat in range(n_repeats):
        if folds == "spread":
            found = spread_folds(data.codes, n_folds, seed + repeat)
        elif folds == "grouped":
            found = _grouped_folds(data.codes, n_folds, seed + repeat)
        else:
            found, notes = _paper_folds(data.codes, n_folds, seed + repeat)
        splits += [Split(repeat, fold, train, test) for fold, (train, test) in enumerate(found)]
    return splits, notes


def _later_splits(time: TimeColumn, *, cv: Any, n_repeats: int, folds: str) -> tuple[list[Split], list[str]]:
    """Return splits whose test rows are later than all their training rows, and notes on them."""
    because = f"because time is {time.name!r}"
    n_folds = int(cv) if isinstance(cv, Integral) else 0
    if not 2 <= n_folds < len(time.values):
        raise InvalidParameterError("cv", cv, f"a number of folds, 2 or more, below that of rows, {because}")
    if n_repeats > 1:
        raise InvalidParameterError("n_repeats", n_repeats, f"1, {because}, and time has only one order")
    if folds != FOLDS[0]:
        raise InvalidParameterError("folds", folds, f"{FOLDS[0]!r}, {because}")
    ranks = np.unique(time.values, return_inverse=True)[1]
    # The first training rows have two times, so that encoders can learn from them in order.
    first, *later = ordered_folds(np.maximum(ranks, 1), n_folds + 1)
    notes = [
        f"Every fold is tested on rows that are later, by {time.name!r}, than all rows it is trained on; "
        f"rows of the same time stay together. The first {len(first[1]):,} rows are never tested. Encoders "
        "of sufrep that use the target learn from earlier rows only."
    ]
    if len(later) < n_folds:
        notes.append(f"{time.name!r} has too few different times for {n_folds} folds; {len(later)} are used.")
    return [Split(0, fold, train, test) for fold, (train, test) in enumerate(later)], notes


def _user_splits(data: ComparisonData, cv: Any) -> list[Split]:
    """Return the splits of a splitter, or of a list of (train, test)."""
    n_rows = len(data.y)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        try:
            found = list(check_cv(cv, data.y).split(np.zeros((n_rows, 1)), data.y, data.codes))
        except (TypeError, ValueError) as error:
            expected = f"a number of folds, a splitter, or a valid list of (train, test) ({error})"
            raise InvalidParameterError("cv", cv, expected) from error
    splits = [Split(0, fold, _positions(train), _positions(test)) for fold, (train, test) in enumerate(found)]
    if not splits:
        raise InvalidParameterError("cv", cv, "one split or more")
    rows = np.concatenate([part for split in splits for part in (split.train, split.test)])
    if rows.min(initial=0) < 0 or rows.max(initial=0) >= n_rows:
        given = f"splits of rows {rows.min()} to {rows.max()}"
        raise InvalidParameterError("cv", given, f"splits of rows 0 to {n_rows - 1}")
    return splits


def _positions(rows: Any) -> Codes:
    """Return the positions of rows that may be given as a mask."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows


def _grouped_folds(codes: Codes, n_folds: int, seed: int) -> list[tuple[Codes, Codes]]:
    """Return folds that keep the rows of each level together."""
    splitter = GroupKFold(n_folds, shuffle=True, random_state=seed)
    return list(splitter.split(codes[:, None], groups=codes))


def _paper_folds(codes: Codes, n_folds: int, seed: int) -> tuple[list[tuple[Codes, Codes]], list[str]]:
    """Return folds that each test every level; rows of levels that are too small for that only train."""
    tested = level_folds(codes, n_folds, seed)
    n_untested = int((tested == ALWAYS_TRAINING).sum())
    if n_untested == len(codes):
        expected = f"'spread', because no level has {n_folds} rows, one for each fold"
        raise InvalidParameterError("folds", "paper", expected)
    note = (
        f"{n_untested:,} rows of levels with fewer than {n_folds} rows are used for training in every fold "
        "and never tested."
    )
    found: list[tuple[Codes, Codes]] = [
        (np.flatnonzero(tested != fold), np.flatnonzero(tested == fold)) for fold in range(n_folds)
    ]
    return found, [note] if n_untested else []
