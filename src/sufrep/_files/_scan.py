"""What every format has in common once it is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """Rows that are not read yet, and what is known about them.

    Attributes
    ----------
    rows : LazyFrame
    n_rows : int
    notes : tuple of str
        What a user should know of how they are read.
    keep : object
        Whatever must live as long as the rows: a copy of the file.
    """

    rows: pl.LazyFrame
    n_rows: int
    notes: tuple[str, ...] = ()
    keep: object = None
