"""The table that every encoder ends in: one short vector for each level."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from sufrep._levels import as_levels, is_null

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sufrep._arrays import Codes, Floats, Levels


@dataclass(frozen=True, slots=True, eq=False)
class Representation:
    """A vector for every level of one group column, and one for a level never seen.

    Parameters
    ----------
    levels : ndarray of object, shape (n_levels,)
        The levels; ``None`` stands for the missing value where that is a level of its own.
    values : ndarray or csr_array, shape (n_levels, n_columns)
        Row by row the vector of each level.
    columns : tuple of str
        Names of the columns of ``values``.
    weight : ndarray, shape (n_levels,)
        Rows (or their total weight) that each level had when the table was made.
    prior : ndarray, shape (n_columns,)
        The vector of a level never seen: as a rule the weighted mean of the level vectors.

    Examples
    --------
    >>> table = Representation.from_values(["a", "b"], [[0.0], [4.0]], ["size"], weight=[3.0, 1.0])
    >>> table.lookup(["b", "a", "never seen"])
    array([[4.],
           [0.],
           [1.]])
    """

    levels: Levels
    values: Floats | sparse.csr_array
    columns: tuple[str, ...]
    weight: Floats
    prior: Floats
    _position: dict[Any, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        position = {level: row for row, level in enumerate(self.levels.tolist())}
        object.__setattr__(self, "_position", position)

    @classmethod
    def from_values(
        cls, levels: Any, values: Any, columns: Iterable[str], *, weight: Any, prior: Any = None
    ) -> Self:
        """Build the table; its prior is the weighted mean of the level vectors if none is given."""
        vectors: Any = values if sparse.issparse(values) else np.asarray(values, dtype=np.float64)
        weights = np.asarray(weight, dtype=np.float64)
        if prior is None:
            prior = weights @ vectors / weights.sum()
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
        if sparse.issparse(self.values):
            return sparse.vstack([self.values, sparse.csr_array(self.prior[None])], format="csr")
        return np.vstack([self.values, self.prior])
