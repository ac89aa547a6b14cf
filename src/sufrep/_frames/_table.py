"""The interface of tables of every library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy import sparse

    from sufrep._arrays import Codes, Floats, Levels
    from sufrep.moments import GroupMoments

Kind = Literal["numeric", "text", "other"]


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A group column as codes.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Position of each row's value in ``levels``, −1 for a null.
    levels : ndarray of object, shape (n_levels,)
        The distinct values, sorted, without null.
    """

    codes: Codes
    levels: Levels

    def take(self, rows: Codes) -> Factor:
        """Return some of the rows, with the levels that they have."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        n_nulls = int((present < 0).sum())  # 1 if there are any
        return Factor(codes - n_nulls, self.levels[present[n_nulls:]])


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """New columns as a small table and, for each row of the data, its position in that table.

    Parameters
    ----------
    values : ndarray or csr_array, shape (n_entries, n_columns)
    positions : ndarray of int, shape (n,), or None
        None where ``values`` already has one row for each row of the data.
    names : tuple of str
        Names of the columns.
    """

    values: Floats | sparse.csr_array
    positions: Codes | None = None
    names: tuple[str, ...] = ()


class Table(Protocol):
    """Columns by position.

    `kind`, `dtype`, `is_categorical`, `numbers`, `levels`, `indicators` and so on are for reading
    (:mod:`sufrep.encoders._inputs`). What was read is handed back to the two verbs that encoders use,
    `moments` and `encode`. Tables in memory read arrays and `Factor`; lazy ones read expressions and
    `LazyFactor`.
    """

    @property
    def free_order(self) -> Literal[1, 2]:
        """Order of the moments that need no further pass over the rows."""

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, made up (x0, x1, …) where the table has none."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def kind(self, position: int) -> Kind:
        """Return whether a column is numeric (booleans too), text (categories too) or something else."""

    def dtype(self, position: int) -> str:
        """Return the name of a column's type in its library."""

    def is_categorical(self, position: int) -> bool:
        """Return whether a text column has the type of categories, not of strings."""

    def numbers(self, position: int) -> Any:
        """Return a numeric column as an array (n,), NaN for null, or as an expression."""

    def levels(self, position: int, most: int) -> Levels | None:
        """Return the levels of a column, without null; None if there are more than ``most``."""

    def indicators(self, position: int) -> tuple[Levels, Sequence[Any]]:
        """Return the levels of a column, null last if there is any, and for each whether a row has it."""

    def constant(self, value: float | None) -> Any:
        """Return a column of one number, or of nulls."""

    def times(self, position: int) -> Floats | None:
        """Return a column of dates as microseconds since 1970 (n,), in UTC, NaN for null; None for others."""

    def factorize(self, position: int) -> Factor:
        """Return the levels of a column and the code of each row."""

    def moments(
        self,
        group: Any,
        covariates: Sequence[Any],
        *,
        names: Sequence[str],
        weights: Any,
        order: Literal[1, 2],
    ) -> GroupMoments:
        """Return the moments of the covariates, which ``names`` names, within the levels of a group."""

    def encode(self, keep: Sequence[int], lookups: Sequence[Any], container: str) -> Any:
        """Return the kept columns, as they are, followed by the new ones.

        ``container`` is scikit-learn's word for the output: "default" (numpy; the same kind of frame for lazy
        tables), "pandas" or "polars". Sparse lookups give a sparse matrix.
        """
