"""A table of typed columns: read from a Parquet file, taken apart into numbers and labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any, NoReturn

import narwhals as nw
import numpy as np

from sufrep.datasets._table import as_text, coded, require_columns
from sufrep.errors import DataContentError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from sufrep._arrays import Array, Floats


@dataclass(frozen=True, slots=True, eq=False)
class ParquetTable:
    """Columns of the types of the file, where a null, a NaN and what a CSV file calls missing are missing.

    Attributes
    ----------
    where : str
        What errors call the table.
    origin : str
        Where the data can be had, in words.
    frame : narwhals.DataFrame, n rows
        The columns, in the order of the file.
    """

    where: str
    origin: str
    frame: nw.DataFrame[Any]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return self.frame.columns

    def require(self, names: Collection[str]) -> None:
        """Raise if one of the columns is not there."""
        require_columns(self.where, self.origin, self.names, names)

    def numbers(self, name: str, *, missing: float | None = None) -> Floats:
        """A column of numbers, shape (n,); `missing`, if given, stands in for missing values."""
        column = self.frame[name]
        typed = column.dtype.is_numeric() or column.dtype == nw.Boolean
        # A column without any value may have any type, or none.
        if not typed and column.null_count() < len(column):
            self._fail_type(name, "numbers")
        values = np.array(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
        null = np.isnan(values)
        wrong = np.isinf(values) if missing is not None else ~np.isfinite(values)
        if wrong.any():
            i = int(wrong.argmax())
            self._fail(name, i, None if null[i] else repr(values[i].item()), "a number")
        return values if missing is None else np.where(null, missing, values)

    def labels(self, name: str) -> Array:
        """A column as text, shape (n,), none of it missing; 1001 and 1001.0 are "1001"."""
        texts = self._texts(name)
        if None in texts:
            self._fail(name, texts.index(None), None, "a level")
        return np.array(texts, dtype=np.str_)

    def codes(self, name: str) -> Floats:
        """A column of text as 1, 2, … in sorted order of its levels, and NaN where missing, shape (n,)."""
        return coded(self._texts(name), missing=math.nan)

    def _texts(self, name: str) -> list[str | None]:
        if self.frame[name].dtype.is_nested():
            self._fail_type(name, "text")
        values = self.frame[name].to_list()
        # There are far fewer levels than rows.
        texts = {value: as_text(value) for value in set(values)}
        return [texts[value] for value in values]

    def _fail_type(self, name: str, expected: str) -> NoReturn:
        raise DataContentError(
            self.where,
            f"holds values of type {self.frame[name].dtype} in column {name!r}; expected {expected}.",
            f"get the file anew from {self.origin}.",
        )

    def _fail(self, name: str, i: int, found: str | None, expected: str) -> NoReturn:
        raise DataContentError(
            self.where,
            f"holds {found or 'nothing'} in column {name!r}, row {i + 1}; expected {expected}.",
            f"correct or remove the row, or get the file anew from {self.origin}.",
        )


def read_parquet(path: Path, origin: str) -> ParquetTable:
    """Read a file with polars, or with pyarrow where polars is not installed."""
    where = repr(str(path))
    library = next(filter(find_spec, ("polars", "pyarrow")), None)
    if library is None:
        raise MissingDependencyError("polars", f"Reading {path.name!r}", "cli")
    read = import_module("polars").read_parquet if library == "polars" else _read_table
    # As bytes, because polars takes a path with "[1]" for a pattern (test_a_folder_may_have_brackets).
    content = BytesIO(path.read_bytes())
    try:
        frame = nw.from_native(read(content), eager_only=True)
    except Exception as error:  # the errors of polars and those of pyarrow have no other base in common
        what = f"cannot be read as a Parquet file by {library}: {str(error).rstrip('.')}."
        raise DataContentError(where, what, f"get it anew from {origin}.") from error
    if len(frame) == 0:
        raise DataContentError(where, "has no rows.", f"get it from {origin}.")
    return ParquetTable(where, origin, frame)


def _read_table(source: BytesIO) -> Any:
    return import_module("pyarrow.parquet").read_table(source)
