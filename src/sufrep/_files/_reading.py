"""What reading a table settled about the meaning of its cells, to read other tables in the same way.

"1.708" is 1.708 in one file and 1708 in another; which one is found out from the whole file. An encoder must
read new rows as it read those it was fitted on, so the findings are saved with it. What changes the *meaning*
of a cell holds for every later table: the kinds of columns, the decimal and thousands signs, the spellings of
null, the time zones. What concerns only the container (separator, encoding, quotes, compression) is found out
anew for each file, and recorded for information. Findings about text do not concern typed formats: the same
table may come as a CSV file and as a Parquet file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sufrep.errors import ReadingMismatchError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import polars as pl

# Booleans are numbers, because databases without booleans hold 0 and 1.
KINDS = {"number": "numbers", "text": "text", "time": "dates or times", "other": "other values"}


@dataclass(frozen=True, slots=True)
class ColumnReading:
    """How a column was read.

    Attributes
    ----------
    name : str
    kind : str
        Key of `KINDS`.
    time_zone : str or None
        The zone of times with a date, "" if they have none; None for other columns.
    """

    name: str
    kind: str
    time_zone: str | None = None


@dataclass(frozen=True, slots=True)
class TableReading:
    """How a table was read.

    Attributes
    ----------
    columns : tuple of ColumnReading
        The columns with at least one value.
    decimal, thousands : str or None
        Signs in the numbers of a text file; None where no number has one, and for typed formats.
    nulls : tuple of str
        Spellings of null in columns of numbers.
    separator, encoding : str or None
        Those of a text file, for information.
    """

    columns: tuple[ColumnReading, ...] = ()
    decimal: str | None = None
    thousands: str | None = None
    nulls: tuple[str, ...] = ()
    separator: str | None = None
    encoding: str | None = None

    def select(self, names: Collection[str]) -> TableReading:
        """The same without what was found about other columns."""
        return replace(self, columns=tuple(column for column in self.columns if column.name in names))

    def kinds(self) -> dict[str, str]:
        """The kind of each column by its name."""
        return {column.name: column.kind for column in self.columns}

    def texts(self) -> tuple[str, ...]:
        """The columns that are text."""
        return tuple(column.name for column in self.columns if column.kind == "text")

    def check(self) -> None:
        """Raise ValueError for what no table gives, such as a record from a damaged file."""
        if not isinstance(self.columns, tuple) or not all(type(c) is ColumnReading for c in self.columns):
            raise ValueError("no columns")
        for column in self.columns:
            if not isinstance(column.name, str) or column.kind not in KINDS:
                raise ValueError("an unknown kind of column")
        zones = [column.time_zone for column in self.columns]
        if not all(text is None or isinstance(text, str) for text in (*zones, self.separator, self.encoding)):
            raise ValueError("no text")
        if self.decimal not in (None, ".", ",") or self.thousands != ("." if self.decimal == "," else None):
            raise ValueError("an unknown decimal sign")

    def check_types(self, where: str, schema: Mapping[str, pl.DataType]) -> None:
        """Raise if columns of a table are of other kinds, or their times of another zone."""
        for column in self.columns:
            dtype = schema.get(column.name)
            found = None if dtype is None else kind_of(dtype)
            # Text files and some databases hold dates as text; what was text is read as text (`open_table`).
            if dtype is None or found is None or column.kind == "text":
                continue
            if found != column.kind and "number" in (found, column.kind):
                raise ReadingMismatchError(
                    where, column.name, f"holds {KINDS[found]} ({dtype})", KINDS[column.kind]
                )
        self._check_zones(where, schema)

    def _check_zones(self, where: str, schema: Mapping[str, pl.DataType]) -> None:
        for column in self.columns:
            dtype = schema.get(column.name)
            found = None if dtype is None else zone_of(dtype)
            if found is not None and column.time_zone is not None and found != column.time_zone:
                shown, expected = (
                    f"times of the zone {zone!r}" if zone else "times without a zone"
                    for zone in (found, column.time_zone)
                )
                raise ReadingMismatchError(
                    where, column.name, f"holds {shown}", expected, "convert the column first."
                )


def kind_of(dtype: pl.DataType) -> str | None:
    """The kind of a column of this type; None for a column without values."""
    import polars as pl

    if dtype == pl.Null:
        return None
    if dtype.is_numeric() or dtype == pl.Boolean:
        return "number"
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    return "time" if dtype.is_temporal() else "other"


def zone_of(dtype: pl.DataType) -> str | None:
    """The time zone of a column, "" for none; None for columns that hold no times with a date."""
    import polars as pl

    return (dtype.time_zone or "") if isinstance(dtype, pl.Datetime) else None
