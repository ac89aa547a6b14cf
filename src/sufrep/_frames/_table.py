"""What an encoder asks of a table, whatever library it came from."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from joblib import cpu_count
from scipy import sparse

from sufrep.errors import SparseOutputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Floats
    from sufrep._frames._factorize import Factorized

Kind = Literal["numeric", "text", "other"]
# Rows that one thread writes at a time.
_CHUNK = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """New columns as a small table and, for each row of the data, the row of it to take.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    values : ndarray or csr_array, shape (n_entries, n_columns)
    rows : ndarray of int, shape (n,), or None
        None where ``values`` already has one row for each row of the data.
    """

    names: tuple[str, ...]
    values: Floats | sparse.csr_array
    rows: Codes | None = None

    def taken(self, rows: slice = slice(None)) -> Any:
        """Return the new columns of some rows; (n, n_columns)."""
        return self.values[rows] if self.rows is None else self.values[self.rows[rows]]


class Table(Protocol):
    """Columns by position."""

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, made up (x0, x1, …) where the table has none."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def kind(self, position: int) -> Kind:
        """Tell whether a column is numeric (booleans too), text (or categories) or something else."""

    def dtype(self, position: int) -> str:
        """Name the column's type in the words of its library."""

    def numbers(self, position: int) -> Array:
        """Return a numeric column as a real, integer or boolean array (n,), NaN for null."""

    def factorize(self, position: int) -> Factorized:
        """Return the levels of a column and the code of each row."""

    def append(self, keep: Sequence[int], lookups: Sequence[Lookup], container: str) -> Any:
        """Return the kept columns followed by the new ones.

        ``container`` is scikit-learn's word for the output: "default" (numpy), "pandas" or "polars".
        """


def dense(blocks: Sequence[Array], lookups: Sequence[Lookup], n_rows: int) -> Array:
    """Lay kept and new columns side by side in one array, of objects if a kept column is no number.

    Parameters
    ----------
    blocks : sequence of ndarray, each of shape (n, n_columns)
        The kept columns.
    lookups : sequence of Lookup
    n_rows : int

    Returns
    -------
    ndarray, shape (n, n_kept + n_new)
    """
    numeric = all(block.dtype.kind in "biuf" for block in blocks)
    width = sum(block.shape[1] for block in blocks) + sum(len(lookup.names) for lookup in lookups)
    result = np.empty((n_rows, width), dtype=np.float64 if numeric else object)

    def write(start: int) -> None:
        rows, left = slice(start, start + _CHUNK), 0
        for part in (*(block[rows] for block in blocks), *(lookup.taken(rows) for lookup in lookups)):
            result[rows, left : left + part.shape[1]] = part
            left += part.shape[1]

    # Most of the time goes into memory that is touched for the first time, which threads share.
    with ThreadPoolExecutor(min(cpu_count(), max(1, n_rows // _CHUNK))) as pool:
        list(pool.map(write, range(0, n_rows, _CHUNK)))
    return result


def sparse_rows(table: Table, keep: Sequence[int], lookups: Sequence[Lookup]) -> sparse.csr_array:
    """Lay kept and new columns side by side in a sparse matrix (n, n_kept + n_new)."""
    text = [table.names[position] for position in keep if table.kind(position) != "numeric"]
    if text:
        raise SparseOutputError(text)
    kept = sparse.csr_array(table.append(keep, [], "default"))
    return sparse.csr_array(sparse.hstack([kept, *(lookup.taken() for lookup in lookups)], format="csr"))
