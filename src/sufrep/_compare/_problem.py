"""What is compared on: the user's table and target, checked once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._compare._target import TASKS, read_values, target_notes
from sufrep._frames import is_frame
from sufrep.representation import level_label
from sufrep.encoders import ToNumbers
from sufrep.encoders._inputs import resolve_layout
from sufrep.encoders._inputs import check_length, read_factor, read_table
from sufrep.errors import IdColumnWarning, InvalidParameterError, OneLevelError, TargetError, warn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._arrays import Array, Codes, Levels
    from sufrep._frames import Factor, Table
    from sufrep.encoders._inputs import Column, Group, Layout


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A table, its target and the column that is awkward.

    Attributes
    ----------
    X : frame or array, shape (n, n_features)
    y : ndarray, shape (n,)
        Numbers, or the classes as they were given.
    group : str, int, tuple or list of these
        As encoders take it: names, or positions where columns have none.
    place : int
        Of the group with most levels, where there are several.
    group_name : str
        The name of that group.
    columns : list of str or int
        The columns of X that groups are made of.
    codes : ndarray of int, shape (n,)
        The level of each row in that group.
    levels : ndarray of object, shape (n_levels,)
    task : {"regression", "binary", "multiclass"}
    target_name : str
    plain : bool
        Whether all other columns are numbers in a table that scikit-learn takes.
    moved : dict of int to int
        Where columns without names that groups are made of stand behind `ToNumbers`.
    notes : tuple of str
        What the reader of the results should know.
    """

    X: Any
    y: Array
    group: Group | list[Group]
    place: int
    group_name: str
    columns: list[Column]
    codes: Codes
    levels: Levels
    task: str
    target_name: str
    plain: bool
    moved: dict[int, int]
    notes: tuple[str, ...]

    @property
    def target_type(self) -> str:
        """The kind of target in the words of the encoders."""
        return TASKS[self.task]

    @property
    def counts(self) -> Codes:
        """Rows of each level; (n_levels,)."""
        return np.bincount(self.codes, minlength=len(self.levels))

    def behind_numbers(self) -> Problem:
        """The same with groups where they stand behind `ToNumbers`, which takes columns before them away."""
        if not self.moved:
            return self
        columns = [_move(column, self.moved) for column in self.columns]
        return replace(self, group=_move(self.group, self.moved), columns=columns)

    def level_names(self) -> list[str]:
        """The levels as text."""
        return [level_label(level) for level in self.levels.tolist()]


def read_problem(X: Any, y: Any, group: Group | list[Group] | None, task: str) -> Problem:
    """Check what the user gave, and tell what kind of problem it is."""
    if task not in ("auto", *TASKS):
        raise InvalidParameterError("task", task, f"'auto' or one of {', '.join(TASKS)}")
    columns = ToNumbers()
    table = read_table(columns, X, reset=True)
    check_length(y, table.n_rows)
    layout = _layout(table, group)
    place, factor = _largest(table, layout)
    group_name = layout.group_names(table.names)[place]
    values, task = read_values(y, task)
    target_name = str(getattr(y, "name", None) or "y")
    _refuse_target(table, target_name, values)
    # pandas may name columns by numbers; these go by their positions, as those of arrays do.
    named = hasattr(columns, "feature_names_in_")
    used = sorted({position for positions in layout.groups for position in positions})
    kept: list[Column] = [table.names[position] if named else position for position in used]
    prepared = ToNumbers(keep=kept).fit(X)
    behind = prepared.get_feature_names_out().tolist()
    notes = [*target_notes(values, task), *_column_notes(prepared)]
    notes += _level_notes(group_name, factor.codes, values)
    return Problem(
        X=X if is_frame(X) else np.asarray(X, dtype=object if not hasattr(X, "dtype") else None),
        y=values,
        group=_as_named(layout, table.names if named else None),
        place=place,
        group_name=group_name,
        columns=kept,
        codes=factor.codes,
        levels=factor.levels,
        task=task,
        target_name=target_name,
        plain=set(prepared.kinds_) <= {"kept", "numeric"} and not hasattr(X, "combine_chunks"),
        moved={} if named else {position: behind.index(table.names[position]) for position in used},
        notes=tuple(notes),
    )


def _largest(table: Table, layout: Layout) -> tuple[int, Factor]:
    """The group with most levels, at least two: its place among the groups, and its levels."""
    factors = [read_factor(table, positions, "level") for positions in layout.groups]
    place = int(np.argmax([len(factor.levels) for factor in factors]))
    levels = factors[place].levels
    if len(levels) < 2:
        name = layout.group_names(table.names)[place]
        raise OneLevelError(name, [level_label(level) for level in levels.tolist()])
    return place, factors[place]


def _layout(table: Table, group: Group | list[Group] | None) -> Layout:
    if group is None:
        text = [name for j, name in enumerate(table.names) if table.kind(j) == "text"]
        if len(text) != 1:
            found = (
                f"the text columns of X are {', '.join(map(repr, text[:10]))}" if text else "X has no text"
            )
            raise InvalidParameterError("group", None, f"the column to represent; {found}")
    return resolve_layout(table, group=group, covariates=None, share_text=False, keep=True)


def _as_named(layout: Layout, names: Sequence[str] | None) -> Any:
    """The groups by the names of their columns, or else by their positions."""
    found: list[Any] = []
    for positions in layout.groups:
        columns = tuple(positions if names is None else (names[position] for position in positions))
        found.append(columns[0] if len(columns) == 1 else columns)
    return found[0] if len(found) == 1 else found


def _move(group: Any, moved: Mapping[int, int]) -> Any:
    if isinstance(group, (list, tuple)):
        return type(group)(_move(part, moved) for part in group)
    return moved[group]


def _column_notes(prepared: ToNumbers) -> list[str]:
    dropped = prepared.dropped_
    if not dropped:
        return []
    return [
        f"Left out, because they are no numbers and have more than {prepared.max_levels} levels or none: "
        f"{_listed(dropped)}. They may be groups too."
    ]


def _refuse_target(table: Table, name: str, values: Array) -> None:
    """Refuse a table with the target among its columns, from which it would be read off."""
    if name not in table.names:
        return
    factor = table.factorize(table.names.index(name)).with_missing_level()
    if factor.levels[factor.codes].tolist() == values.tolist():
        raise TargetError(
            f"X holds the target as its column {name!r}, from which it can be read off.",
            f"leave it out, as in X.drop(columns={name!r}).",
        )


def _level_notes(name: str, codes: Codes, y: Array) -> list[str]:
    if np.bincount(codes).max() > 1:
        _, values = np.unique(y, return_inverse=True)
        n_pairs = len(np.unique(codes * (values.max() + 1) + values))
        if n_pairs > codes.max() + 1 or n_pairs > values.max() + 1:
            return []
        return [
            f"Each level of {name!r} has a value of the target of its own, so that who knows the level knows "
            "the target; folds='grouped' tests levels that are new."
        ]
    text = (
        f"{name!r} has a level of its own in every row, so it looks like an identifier: no representation "
        "of it can help to predict new rows."
    )
    warn(f"{text}\nHint: name a column whose levels come again.", IdColumnWarning)
    return [text]


def _listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
