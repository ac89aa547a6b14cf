"""Levels: the distinct values of a group column, as plain Python objects in one canonical order.

A level is a ``str``, a number, a date, a tuple of these (crossed columns) or ``None`` (the missing
value). The order does not depend on the frame library or on the order of the rows, so neither does
anything that is computed from it.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sufrep._arrays import Levels


# Types whose values compare with each other; others go by their printed form.
_ORDERED = (str, bytes, date, time, timedelta, Fraction)


def sort_levels(values: Iterable[Any]) -> Levels:
    """Sort distinct levels: by value within a type, types one after another, ``None`` last.

    Parameters
    ----------
    values : iterable of hashable
        Distinct levels.

    Returns
    -------
    ndarray of object, shape (n_levels,)

    Examples
    --------
    >>> sort_levels(["b", None, "a", 10, 9]).tolist()
    [9, 10, 'a', 'b', None]
    """
    found = list(values)
    try:
        # One type, the usual case: plain comparison is many times faster than a key.
        ordered = sorted(found)
    except TypeError:
        ordered = sorted(found, key=_sort_key)
    return as_levels(ordered)


def as_levels(values: Sequence[Any]) -> Levels:
    """Make a one-dimensional object array, also of tuples, which numpy would unpack."""
    levels = np.empty(len(values), dtype=object)
    levels[:] = values
    return levels


def is_null(value: Any) -> bool:
    """Tell None, NaN, NaT and pandas' NA (whatever is not equal to itself) from values."""
    if value is None:
        return True
    try:
        return not bool(value == value)
    except TypeError:  # the truth of pandas' NA is not defined
        return True


def level_label(level: Any) -> str:
    """Name a level for a column header or a chart.

    >>> level_label(("store 1", None))
    'store 1:missing'
    """
    if level is None:
        return "missing"
    if isinstance(level, tuple):
        return ":".join(level_label(part) for part in level)
    return str(level)


def distinct_labels(levels: Iterable[Any]) -> list[str]:
    """Name levels so that no two share a name, such as null beside a level called "missing".

    >>> distinct_labels(["missing", "other", None])
    ['missing', 'other', 'missing_2']
    """
    taken: set[str] = set()
    labels = []
    for level in levels:
        label = first = level_label(level)
        number = 1
        while label in taken:
            number += 1
            label = f"{first}_{number}"
        taken.add(label)
        labels.append(label)
    return labels


def _sort_key(level: Any) -> tuple[Any, ...]:
    """Order any two levels; numbers compare with numbers whatever their type."""
    if level is None:
        return (3, "", "")
    if isinstance(level, tuple):
        return (2, "", tuple(_sort_key(part) for part in level))
    if isinstance(level, (bool, int, float, Decimal)):
        return (0, "", level)
    # Times with a time zone do not compare with times without.
    aware = isinstance(level, (datetime, time)) and level.utcoffset() is not None
    kind = type(level).__name__ + aware * " with time zone"
    return (1, kind, level if isinstance(level, _ORDERED) else str(level))
