"""numpy arrays as tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._frames._factorize import Factorized, factorize_numbers, factorize_objects
from sufrep._frames._table import Kind, Lookup, dense
from sufrep._levels import is_null
from sufrep.errors import NotNumericError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array


@dataclass(frozen=True, slots=True, eq=False)
class ArrayTable:
    """An array (n, n_columns) of numbers, text or objects.

    An object column is text as soon as it holds a string; otherwise it must convert to numbers,
    and numpy's own error tells of a value that does not.
    """

    array: Array
    names: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.array)

    def kind(self, position: int) -> Kind:
        """Tell numbers from text."""
        if self.array.dtype.kind in "biuf":
            return "numeric"
        if self.array.dtype.kind == "O":
            if any(isinstance(value, str) for value in self.array[:, position]):
                return "text"
            self.numbers(position)
            return "numeric"
        return "text"

    def dtype(self, position: int) -> str:  # noqa: ARG002
        """Name the type of the array."""
        return str(self.array.dtype)

    def numbers(self, position: int) -> Array:
        """Return a column as numbers."""
        column = self.array[:, position]
        if column.dtype.kind in "biuf":
            return column
        if any(isinstance(value, str) for value in column):
            raise NotNumericError(self.names[position], "text")
        return np.array([np.nan if is_null(value) else value for value in column], dtype=np.float64)

    def factorize(self, position: int) -> Factorized:
        """Return the levels of a column and the code of each row."""
        column = self.array[:, position]
        if column.dtype.kind in "biuf":
            return factorize_numbers(column)
        return factorize_objects(self.names[position], column.tolist())

    def append(self, keep: Sequence[int], lookups: Sequence[Lookup], container: str) -> Any:  # noqa: ARG002
        """Return an array; scikit-learn makes it the container that the user asked for."""
        if self.array.dtype.kind == "O" and all(self.kind(position) == "numeric" for position in keep):
            blocks = [self.numbers(position)[:, None] for position in keep]
        else:
            blocks = [self.array[:, run] for run in _runs(keep)]
        return dense(blocks, lookups, self.n_rows)


def _runs(positions: Sequence[int]) -> list[slice]:
    """Cut increasing positions into runs of neighbours, which numpy copies as blocks."""
    ends = [*np.flatnonzero(np.diff(positions) != 1).tolist(), len(positions) - 1] if positions else []
    starts = [0, *(end + 1 for end in ends[:-1])]
    return [slice(positions[a], positions[b] + 1) for a, b in zip(starts, ends, strict=False)]
