"""When rows happened: reading a column of times, and folds in which a row learns from earlier rows only.

With ``cv="ordered"`` rows are cut into blocks by the column ``time``, ties together, and what a row gets is
learnt from the blocks before its own. scikit-learn's ``TimeSeriesSplit`` does the same by the position of
the rows. Then no later target changes the columns of a row (test_a_later_target_changes_nothing).
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._splits import ordered_folds
from sufrep.encoders._inputs import position_of
from sufrep.encoders._target import is_time_series_split, split_rows
from sufrep.errors import GroupValueError, InvalidParameterError, TimeColumnError, TimeZoneError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Floats
    from sufrep._frames import Table
    from sufrep.encoders._inputs import Column, Layout

ORDERED = "ordered"
# Kinds of dates, without a time zone and with one.
DATES = ("date", "date with zone")
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def is_ordered(cv: Any) -> bool:
    """Whether the folds of ``cv`` are cut by a column of times."""
    return isinstance(cv, str) and cv == ORDERED


def follows_time(cv: Any) -> bool:
    """Whether rows learn from earlier rows only."""
    return is_ordered(cv) or is_time_series_split(cv)


def read_order(
    table: Table, layout: Layout, *, cv: Any, time: Column | None, weights: Floats | None
) -> Array | None:
    """Return when each row happened (n,), checked for what ``cv`` needs; None without ``time``."""
    if time is None:
        if is_ordered(cv):
            expected = f"the column of X that says when each row happened, because cv is {cv!r}"
            raise InvalidParameterError("time", None, expected)
        return None
    if not follows_time(cv):
        expected = f"'ordered', or a TimeSeriesSplit of scikit-learn, because time is {time!r}"
        raise InvalidParameterError("cv", cv, expected)
    position = time_position(table, layout, time)
    times = read_times(table, position)
    if is_ordered(cv):
        check_varied(times if weights is None else times[weights > 0], table.names[position])
    else:
        _check_sorted(times, table.names[position], cv)
    return times


def time_position(table: Table, layout: Layout, time: Column) -> int:
    """Return the position of the column of times, which is no group."""
    position = position_of(table.names, time, "time")
    if any(position in columns for columns in layout.groups):
        raise TimeColumnError(
            f"The column {table.names[position]!r} is the time and part of the group: each of its levels "
            "happens at one time only, so earlier rows say nothing about it.",
            "name another column as the time, or leave this one out of group.",
        )
    return position


def read_times(table: Table, position: int) -> Array:
    """Return a column of numbers, dates or ISO text as numbers (n,) in the same order, without nulls."""
    name = table.names[position]
    times = table.numbers(position) if table.kind(position) == "numeric" else table.times(position)
    if times is None:
        times = _times_of_levels(table, position)
    null = np.isnan(times)
    if null.any():
        raise TimeColumnError(
            f"The time column {name!r} holds {int(null.sum())} null(s), the first in row "
            f"{int(np.argmax(null))}; expected a time in every row.",
            "drop these rows or fill in their times, because they come neither before nor after others.",
        )
    return times


def _times_of_levels(table: Table, position: int) -> Floats:
    """Return dates that are objects or ISO text as microseconds since 1970, NaN for null; (n,)."""
    name = table.names[position]
    try:
        factor = table.factorize(position)
    except GroupValueError as error:
        raise _no_times(name, table.dtype(position)) from error
    levels = factor.levels.tolist()
    if levels and date_kind(name, levels) is None:
        wrong = next(level for level in levels if as_date(level) is None)
        raise _no_times(name, f"{wrong!r}")
    found = [since_1970(when) / _MICROSECOND for when in map(as_date, levels) if when is not None]
    return np.array([*found, np.nan])[factor.codes]


def _no_times(name: str, found: str) -> TimeColumnError:
    return TimeColumnError(
        f"The time column {name!r} holds {found}; expected numbers, dates, or text such as 2024-05-31 or "
        "2024-05-31T18:30.",
        "convert the column to dates first, for instance with pandas.to_datetime.",
    )


def check_varied(times: Array, name: str, least: int = 2) -> None:
    """Refuse rows of fewer distinct times than this, unless there is only one row."""
    n_distinct = len(np.unique(times))
    if n_distinct < least and len(times) > 1:
        found = "the same time in every row" if n_distinct < 2 else f"{n_distinct} different times"
        wanted = {2: "two", 3: "three"}[least]
        raise TimeColumnError(
            f"The time column {name!r} holds {found}; expected at least {wanted}, so that some rows come "
            "before others.",
            "name the column that says when each row happened, or leave time out.",
        )


def _check_sorted(times: Array, name: str, cv: Any) -> None:
    later = np.flatnonzero(times[1:] < times[:-1])
    if len(later):
        first = int(later[0]) + 1
        raise TimeColumnError(
            f"The rows are not in the order of the time column {name!r}: row {first} is earlier than row "
            f"{first - 1}. {type(cv).__name__} goes by the position of the rows.",
            "sort the rows by this column, or use cv='ordered', which needs no sorted rows.",
        )


def training_folds(
    cv: Any, n_rows: int, y: Any, random_state: int, times: Array | None
) -> list[tuple[Codes, Codes]]:
    """Return the (train, test) folds of cross-fitting; each row is in one test fold.

    In time, the first block is a fold without training rows.
    """
    if not is_ordered(cv):
        return split_rows(cv, n_rows, y, random_state, first_rows=True)
    if times is None:
        raise TypeError("the times of the rows were not read")
    return ordered_folds(times)


# Dates


def date_kind(column: str, levels: Sequence[Any]) -> str | None:
    """Which kind of dates the levels are, or None if one of them is no date at all."""
    dates = [as_date(level) for level in levels]
    if not dates or any(found is None for found in dates):
        return None
    zoned = {found.tzinfo is not None for found in dates if found is not None}
    if len(zoned) > 1:
        raise TimeZoneError(column, "times with a time zone and others without")
    return DATES[zoned.pop()]


def as_date(value: Any) -> datetime | None:
    """A date, a time with its date, or either as ISO text; None for everything else."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    # Text of digits alone may be a zip code or a number.
    if not isinstance(value, str) or value.isdigit():
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def since_1970(when: datetime) -> timedelta:
    """Time since 1970, in UTC if there is a zone."""
    return when - (_EPOCH if when.tzinfo is None else _EPOCH.replace(tzinfo=UTC))
