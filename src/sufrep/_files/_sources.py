"""A table in files or a database, opened to be read as a whole, as a sample or in batches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sufrep._files._paths import database_parts, existing_file, table_kind_of
from sufrep._files._reading import ColumnReading, TableReading, kind_of, zone_of
from sufrep._files._scan import Scan, call_code, reading_errors
from sufrep.errors import (
    InvalidParameterError,
    MissingDependencyError,
    TableColumnError,
    TableContentError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from sufrep._files._scan import TemporaryCopy

# The zero after the point of a whole number, and the sign of -0.0.
_ZEROS = r"^-(0)\.0$|\.0$"
# Rows in memory at a time while a sample is drawn.
_BATCH = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class TableSource:
    """A table whose columns and types are known, but whose rows are not read yet.

    Attributes
    ----------
    where : str
        The table as the user named it.
    names : tuple of str
        The columns.
    n_rows : int
    notes : tuple of str
        What a user should know about how it is read, such as "commas read as decimal signs in 'price'".
    code : str
        Python code that defines `table`, a polars frame equal to `read()`. It is generated from what was
        found about the table: separator, decimal sign, encoding, spellings of null, types. Empty for several
        files.
    reading : TableReading
        What was found about the meaning of the cells, to read other tables in the same way.
    rows : LazyFrame
        The rows, not read yet. They may come from temporary copies, which live as long as this object.
    """

    where: str
    names: tuple[str, ...]
    n_rows: int
    notes: tuple[str, ...]
    code: str
    reading: TableReading
    rows: pl.LazyFrame
    _copies: tuple[TemporaryCopy, ...]

    @property
    def short_name(self) -> str:
        """The table without the folder that it is in, for a report that others read."""
        return Path(self.where).name

    def read(self, n_rows: int | None = None, seed: int = 0) -> pl.DataFrame:
        """Read all rows, or a random sample of them without replacement, in the order of the table.

        Parameters
        ----------
        n_rows : int, optional
            Size of the sample; all rows if the table has no more.
        seed : int, default=0
            Seed of the sample.
        """
        if n_rows is not None and n_rows < 1:
            raise InvalidParameterError("n_rows", n_rows, "at least 1")
        if n_rows is None or n_rows >= self.n_rows:
            with reading_errors(self.where):
                return self.rows.collect(engine="streaming")
        import numpy as np
        import polars as pl

        drawn = np.random.default_rng(seed).choice(self.n_rows, n_rows, replace=False, shuffle=False)
        chosen = np.zeros(self.n_rows, dtype=bool)
        chosen[drawn] = True
        parts, first = [], 0
        for batch in self.batches(_BATCH):
            parts.append(batch.filter(pl.Series(chosen[first : first + batch.height])))
            first += batch.height
        return pl.concat(parts)

    def batches(self, size: int) -> Iterator[pl.DataFrame]:
        """The rows in their order, at most ``size`` at a time, with the same types in all batches.

        Memory use does not grow with the table.
        """
        with reading_errors(self.where):
            for batch in self.rows.collect_batches(chunk_size=size, maintain_order=True, engine="streaming"):
                yield from batch.iter_slices(size)


def open_table(
    source: str | Path | Sequence[str],
    *,
    text: Sequence[str] = (),
    drop: Sequence[str] = (),
    needed: Sequence[str] = (),
    reading: TableReading | None = None,
) -> TableSource:
    """Find a table, its columns and their types.

    Parameters
    ----------
    source : str, Path or sequence of str
        A file whose ending tells its format, or a table of a database such as ``duckdb:houses.db#sales``;
        see :mod:`sufrep._files`. Several files, all of one format and with the same columns and types, are
        one table.
    text : sequence of str
        Columns that are read as text whatever they look like, so that "01234" stays "01234". Numbers of typed
        formats become their digits: 98178 and 98178.0 are "98178".
    drop : sequence of str
        Columns that are left out, as if they did not exist.
    needed : sequence of str
        Further columns that the table must have.
    reading : TableReading, optional
        How another table was read. This one is read in the same way; if that is impossible, a
        `ReadingMismatchError` shows both readings. Columns that are in only one of them do not matter.
    """
    try:
        import polars as pl
    except ModuleNotFoundError as error:
        raise MissingDependencyError("polars", f"Reading {str(source)!r}", "cli") from error
    sources = [str(source)] if isinstance(source, (str, Path)) else list(source)
    where, text, drop = _name(sources), tuple(dict.fromkeys(text)), tuple(dict.fromkeys(drop))
    scan = _scan(sources, where, text, drop, reading)
    with reading_errors(where):
        schema = scan.rows.collect_schema()
    _require(where, (*text, *drop, *needed), schema.names())
    if reading is not None:
        reading.check_types(where, {name: dtype for name, dtype in schema.items() if name not in scan.empty})
        text += tuple(name for name in reading.texts() if name in schema and name not in (*text, *drop))
    if not scan.n_rows:
        raise TableContentError(where, "has columns but no rows.", "check the step that wrote it.")
    for name in text:
        if schema[name].is_nested() or schema[name] == pl.Binary:
            what = f"holds {schema[name]} in column {name!r}, which cannot be read as text."
            raise TableContentError(where, what, "choose another column, or convert it first.")
    rows = scan.rows.with_columns(as_text(name, schema[name]) for name in text).drop(drop)
    names = tuple(name for name in schema.names() if name not in drop)
    code = _code(scan, {name: schema[name] for name in text}, drop)
    found = replace(scan.reading, columns=_columns(schema, text, (*drop, *scan.empty)))
    return TableSource(where, names, scan.n_rows, scan.notes, code, found, rows, scan.copies)


def _name(sources: Sequence[str]) -> str:
    """What several files are called together."""
    return sources[0] if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1} more"


def _columns(
    schema: Mapping[str, pl.DataType], text: Sequence[str], unknown: Sequence[str]
) -> tuple[ColumnReading, ...]:
    """How the columns are read; without those of an unknown kind."""
    kinds = {name: "text" if name in text else kind_of(dtype) for name, dtype in schema.items()}
    return tuple(
        ColumnReading(name, kind, zone_of(schema[name]))
        for name, kind in kinds.items()
        if kind is not None and name not in unknown
    )


def as_text(name: str, dtype: pl.DataType) -> pl.Expr:
    """A column as text: 98178 and 98178.0 are "98178", null and NaN are null."""
    import polars as pl

    column = pl.col(name)
    if dtype.is_float():
        return column.fill_nan(None).cast(pl.String).str.replace(_ZEROS, "$1")
    if dtype.is_decimal():
        return column.cast(pl.String).str.replace(r"\.0+$", "")
    return column.cast(pl.String)


def _as_text_code(name: str, dtype: pl.DataType) -> str:
    """What `as_text` does, as Python code."""
    if dtype.is_float():
        return f"pl.col({name!r}).fill_nan(None).cast(pl.String).str.replace(r'{_ZEROS}', '$1')"
    if dtype.is_decimal():
        return rf"pl.col({name!r}).cast(pl.String).str.replace(r'\.0+$', '')"
    return f"pl.col({name!r}).cast(pl.String)"


def _code(scan: Scan, text: Mapping[str, pl.DataType], drop: Sequence[str]) -> str:
    if not scan.code:
        return ""
    imports = [line if " " in line else f"import {line}" for line in scan.imports]
    lines = ["\n".join([*imports, "import polars as pl"]), "", scan.code]
    converted = [_as_text_code(name, dtype) for name, dtype in text.items() if str(dtype) != "String"]
    if converted:
        lines.append(call_code("table = table.with_columns", converted))
    if drop:
        lines.append(call_code("table = table.drop", list(map(repr, drop))))
    return "\n".join(lines)


def _require(where: str, columns: Sequence[str], names: Sequence[str]) -> None:
    missing = [name for name in dict.fromkeys(columns) if name not in names]
    if missing:
        raise TableColumnError(where, missing, names, columns)


def _scan(
    sources: Sequence[str], where: str, text: Sequence[str], drop: Sequence[str], reading: TableReading | None
) -> Scan:
    text = text if reading is None else (*text, *reading.texts())
    kind, name, table = database_parts(sources[0])
    if kind:
        from sufrep._files._databases import scan_database

        return scan_database(kind, existing_file(Path(name)), table, text)
    paths = [existing_file(Path(source)) for source in sources]
    kinds = [table_kind_of(path) for path in paths]
    for path, found in zip(paths, kinds, strict=True):
        if found != kinds[0]:
            what = f"is of another kind than {str(paths[0])!r}; several files are one table if all are alike."
            hint = "name files of one kind, as in 'data/*.parquet'."
            raise TableContentError(str(path), what, hint)
        if not path.stat().st_size:
            raise TableContentError(str(path), "is empty: 0 bytes.", "check the step that wrote it.")
    with reading_errors(where):
        if kinds[0] == "text":
            from sufrep._files._text import scan_text

            # The types of columns that are left out do not matter, so they count as text.
            return scan_text(paths, (*text, *drop), reading)
        from sufrep._files._typed import scan_typed

        return scan_typed(paths, "parquet" if kinds[0] == "parquet" else "ipc", text)
