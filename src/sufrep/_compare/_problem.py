"""What is compared on: the user's table and target, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import column_or_1d

from sufrep._frames import is_frame
from sufrep._levels import level_label
from sufrep._warnings import IdColumnWarning, warn
from sufrep.encoders import ToNumbers
from sufrep.encoders._layout import resolve_layout
from sufrep.encoders._reading import check_length, read_group, read_table
from sufrep.encoders._target import kind_of, read_target
from sufrep.errors import InvalidParameterError, OneLevelError, TargetError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Levels
    from sufrep._frames import Table
    from sufrep.encoders._layout import Column, Group, Layout

# The words of scikit-learn's users for the kinds of target that encoders know.
TASKS = {"regression": "continuous", "binary": "binary", "multiclass": "multiclass"}


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A table, its target and the column that is awkward.

    Attributes
    ----------
    X : frame or array, shape (n, n_features)
    y : ndarray, shape (n,)
        Numbers, or the classes as they were given.
    group : str, int, tuple or list of these
        As encoders take it.
    group_name : str
        Of the group with most levels, where there are several.
    columns : list of str or int
        The columns of X that groups are made of.
    codes : ndarray of int, shape (n,)
        The level of each row in that group.
    levels : ndarray of object, shape (n_levels,)
    task : {"regression", "binary", "multiclass"}
    target_name : str
    plain : bool
        Whether all other columns are numbers.
    notes : tuple of str
        What the reader of the results should know.
    """

    X: Any
    y: Array
    group: Group | list[Group]
    group_name: str
    columns: list[Column]
    codes: Codes
    levels: Levels
    task: str
    target_name: str
    plain: bool
    notes: tuple[str, ...]

    @property
    def target_type(self) -> str:
        """The kind of target in the words of the encoders."""
        return TASKS[self.task]

    @property
    def counts(self) -> Codes:
        """Rows of each level; (n_levels,)."""
        return np.bincount(self.codes, minlength=len(self.levels))

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
    factors = [read_group(table, positions, "level") for positions in layout.groups]
    names = layout.group_names(table.names)
    largest = int(np.argmax([len(factor.levels) for factor in factors]))
    factor, name = factors[largest], names[largest]
    if len(factor.levels) < 2:
        raise OneLevelError(name, [level_label(level) for level in factor.levels.tolist()])
    values, task = _target(y, task)
    used = sorted({position for positions in layout.groups for position in positions})
    named = is_frame(X)
    kept: list[Column] = [table.names[position] if named else position for position in used]
    prepared = ToNumbers(keep=kept).fit(X)
    notes = [*_target_notes(values, task), *_column_notes(prepared), *_level_notes(name, factor.codes)]
    return Problem(
        X if named else np.asarray(X, dtype=object if not hasattr(X, "dtype") else None),
        values,
        group if group is not None else kept[0],
        name,
        kept,
        factor.codes,
        factor.levels,
        task,
        str(getattr(y, "name", None) or "y"),
        set(prepared.kinds_) <= {"kept", "numeric"},
        tuple(notes),
    )


def _layout(table: Table, group: Group | list[Group] | None) -> Layout:
    if group is None:
        text = [name for j, name in enumerate(table.names) if table.kind(j) == "text"]
        if len(text) != 1:
            found = (
                f"the text columns of X are {', '.join(map(repr, text[:10]))}" if text else "X has no text"
            )
            raise InvalidParameterError("group", None, f"the column to represent; {found}")
    return resolve_layout(table, group=group, covariates=None, share_text=False, keep=True)


def _target(y: Any, task: str) -> tuple[Array, str]:
    """The target as an array, and its task."""
    kind = read_target(y, TASKS.get(task, "auto")).kind
    found = next(name for name, value in TASKS.items() if value == kind)
    values: Array = column_or_1d(np.asarray(y))
    if found == "regression":
        values = values.astype(np.float64)
    elif values.dtype.kind == "O":
        values = np.array(values.tolist())  # text has a type of its own, which sorts
    if len(np.unique(values)) < 2:
        raise TargetError(
            f"The target is {values[0]!r} in every row.",
            "there is nothing to predict; look at the step that made it, or name another column.",
        )
    return values, found


def _target_notes(values: Array, task: str) -> list[str]:
    if task == "multiclass" and values.dtype.kind in "iuf" and kind_of(values) == "multiclass":
        n_classes = len(np.unique(values))
        return [
            f"The target has {n_classes} whole values and was taken for classes; task='regression' takes "
            "them for numbers."
        ]
    return []


def _column_notes(prepared: ToNumbers) -> list[str]:
    dropped = prepared.dropped_
    if not dropped:
        return []
    return [
        f"Left out, because they are no numbers and have more than {prepared.max_levels} levels or none: "
        f"{_listed(dropped)}. They may be groups too."
    ]


def _level_notes(name: str, codes: Codes) -> list[str]:
    counts = np.bincount(codes)
    if counts.max() > 1:
        return []
    text = (
        f"{name!r} has a level of its own in every row, so it looks like an identifier: no representation "
        "of it can help to predict new rows."
    )
    warn(f"{text}\nHint: name a column whose levels come again.", IdColumnWarning)
    return [text]


def _listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
