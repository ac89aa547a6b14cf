"""Levels, and the table that gives each of them a short vector.

A level is a distinct value of a group column as a plain Python object: a ``str``, a number, a date, a tuple
of these (crossed columns) or ``None`` (the missing value). Levels have one canonical order, which does not
depend on the frame library or on the order of the rows, so neither does anything that is computed from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from sufrep._accumulate import weighted_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sufrep._arrays import Codes, Floats, Levels


# Types whose values compare with each other; others go by their printed form.
_ORDERED = (str, bytes, date, time, timedelta, Fraction)


@dataclass(frozen=True, slots=True, eq=False)
class Representation:
    """A vector for every level of one group column, and one for unseen levels.

    Parameters
    ----------
    levels : ndarray of object, shape (n_levels,)
        The levels; ``None`` stands for the missing value where that is a level of its own.
    values : ndarray or csr_array, shape (n_levels, n_columns)
        The vector of each level, one per row.
    columns : tuple of str
        Names of the columns of ``values``.
    weight : ndarray, shape (n_levels,)
        Number of rows (or their total weight) of each level when the table was made.
    prior : ndarray, shape (n_columns,)
        The vector of an unseen level: usually the weighted mean of the level vectors.

    Examples
    --------
    >>> table = Representation.from_values(["a", "b"], [[0.0], [4.0]], ["size"], weight=[3.0, 1.0])
    >>> table.lookup(["b", "a", "unseen"])
    array([[4.],
           [0.],
           [1.]])
    """

    levels: Levels
    values: Floats | sparse.csr_array
    columns: tuple[str, ...]
    weight: Floats
    prior: Floats
    # Filled when a level is looked up for the first time: with a million levels it takes a second.
    _position: dict[Any, int] = field(init=False, repr=False, default_factory=dict)

    @classmethod
    def from_values(
        cls, levels: Any, values: Any, columns: Iterable[str], *, weight: Any, prior: Any = None
    ) -> Self:
        """Build the table; its prior is the weighted mean of the level vectors if none is given."""
        vectors: Any = values if sparse.issparse(values) else np.asarray(values, dtype=np.float64)
        weights = np.asarray(weight, dtype=np.float64)
        if prior is None:
            is_sparse = sparse.issparse(vectors)
            prior = weights @ vectors / weights.sum() if is_sparse else weighted_mean(vectors, weights)
        return cls(as_levels(levels), vectors, tuple(columns), weights, prior)

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.levels)

    def positions(self, levels: Iterable[Any]) -> Codes:
        """Row of each level in ``values``, −1 for a level that is not in the table.

        Parameters
        ----------
        levels : iterable of hashable, length n

        Returns
        -------
        ndarray of int, shape (n,)
        """
        if not self._position:
            self._position.update(level_positions(self.levels))
        find, null = self._position.get, self._position.get(None, -1)
        found = ((find(level, -1), level) for level in levels)
        return np.fromiter(
            (null if place < 0 and is_null(level) else place for place, level in found), dtype=np.intp
        )

    def lookup(self, levels: Iterable[Any]) -> Any:
        """Vector of each of the given levels, the prior for those not in the table.

        Parameters
        ----------
        levels : iterable of hashable, length n

        Returns
        -------
        ndarray or csr_array, shape (n, n_columns)
        """
        return self.with_prior()[self.positions(levels)]

    def with_prior(self) -> Any:
        """Stack the prior below the vectors, where index −1 finds it; (n_levels + 1, n_columns)."""
        return stack_prior(self.values, self.prior)


class PooledLevel:
    """The level that rare levels are pooled into: equal to no level of the data, whatever they are called."""

    def __str__(self) -> str:
        return "infrequent"


def level_positions(levels: Levels) -> dict[Any, int]:
    """Position of each level, (n_levels,), by level."""
    return {level: position for position, level in enumerate(levels.tolist())}


def dense_values(values: Any) -> Floats:
    """Return vectors (n_levels, n_columns), dense or sparse, as a dense array."""
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)


def stack_prior(values: Any, prior: Floats) -> Any:
    """Append the prior to vectors (n_levels, n_columns), dense or sparse; (n_levels + 1, n_columns)."""
    if sparse.issparse(values):
        blocks: list[Any] = [values, sparse.csr_array(prior[None])]
        return sparse.vstack(blocks).tocsr()
    return np.vstack([values, prior])


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
    return as_levels(found)[level_order(found)]


def level_order(values: Sequence[Any]) -> Codes:
    """Positions of distinct levels in the order of `sort_levels`; (n_levels,)."""
    positions = range(len(values))
    try:
        # One type, the usual case: plain comparison is many times faster than a key.
        order = sorted(positions, key=values.__getitem__)
    except TypeError:
        order = sorted(positions, key=lambda position: _sort_key(values[position]))
    return np.array(order, dtype=np.intp)


def as_levels(values: Sequence[Any]) -> Levels:
    """Make a one-dimensional object array, also of tuples, which numpy would unpack."""
    levels = np.empty(len(values), dtype=object)
    levels[:] = values
    return levels


def is_null(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA (all that is not equal to itself)."""
    if value is None:
        return True
    try:
        return not bool(value == value)
    except (TypeError, ArithmeticError):  # the truth of pandas' NA, or a signalling NaN, is not defined
        return True
    except ValueError:  # that of an array neither, and an array is a value
        return False


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
    """Name levels so that no two share a name, such as null and a level called "missing".

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
    """Sort key for any two levels; numbers compare with numbers of every type."""
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
