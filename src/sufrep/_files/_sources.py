"""A table in a file or a database, opened to be read as a whole, as a sample or in batches."""

from __future__ import annotations

import csv
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sufrep._files._reading import ColumnReading, TableReading, kind_of, zone_of
from sufrep._files._scan import Scan, call_code, has_pattern
from sufrep.errors import (
    FileEndingError,
    InvalidParameterError,
    MissingDependencyError,
    SufrepError,
    TableColumnError,
    TableContentError,
    TableNotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from sufrep._files._scan import TemporaryCopy

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".feather", ".arrow", ".ipc")
DATABASES = ("duckdb", "sqlite")
_SIDECARS = {"duckdb": (".wal", ".tmp"), "sqlite": ("-wal", "-shm", "-journal")}
# The zero after the point of a whole number, and the sign of -0.0.
_ZEROS = r"^-(0)\.0$|\.0$"
_NAME = "check its name, and that you may read it."
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
        found about the table: separator, decimal sign, encoding, spellings of null, types.
    reading : TableReading
        What was found about the meaning of the cells, to read other tables in the same way.
    """

    where: str
    names: tuple[str, ...]
    n_rows: int
    notes: tuple[str, ...]
    code: str
    reading: TableReading
    _rows: pl.LazyFrame
    _copy: TemporaryCopy | None

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
            with _reading(self.where):
                return self._rows.collect(engine="streaming")
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
        with _reading(self.where):
            for batch in self._rows.collect_batches(chunk_size=size, maintain_order=True, engine="streaming"):
                yield from batch.iter_slices(size)


def open_table(
    source: str | Path,
    *,
    text: Sequence[str] = (),
    drop: Sequence[str] = (),
    needed: Sequence[str] = (),
    reading: TableReading | None = None,
) -> TableSource:
    """Find a table, its columns and their types.

    Parameters
    ----------
    source : str or Path
        A file whose ending tells its format, or a table of a database such as ``duckdb:houses.db#sales``;
        see :mod:`sufrep._files`.
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
    where, text, drop = str(source), tuple(dict.fromkeys(text)), tuple(dict.fromkeys(drop))
    scan = _scan(where, text, drop, reading)
    with _reading(where):
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
    return TableSource(where, names, scan.n_rows, scan.notes, code, found, rows, scan.copy)


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


def table_files(source: str) -> list[Path]:
    """The file of a table, and the files in which a database keeps its latest changes; none need exist."""
    kind, name, _ = _parts(source)
    return [Path(name + ending) for ending in ("", *_SIDECARS.get(kind, ()))]


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


def _scan(where: str, text: Sequence[str], drop: Sequence[str], reading: TableReading | None) -> Scan:
    text = text if reading is None else (*text, *reading.texts())
    kind, name, table = _parts(where)
    path = _existing(Path(name))
    if kind:
        from sufrep._files._databases import scan_database

        return scan_database(kind, path, table, text)
    ending = _ending(path)
    if not path.stat().st_size:
        raise TableContentError(where, "is empty: 0 bytes.", "check the step that wrote it.")
    if ending in TEXT_ENDINGS:
        from sufrep._files._text import scan_text

        with _reading(where):
            # The types of columns that are left out do not matter, so they count as text.
            return scan_text(path, (*text, *drop), reading)
    return _scan_binary(path, where, "parquet" if ending in PARQUET_ENDINGS else "ipc")


def _parts(where: str) -> tuple[str, str, str]:
    """The kind of a database, its file and its table; the first and the last are empty for other files."""
    kind, colon, rest = where.partition(":")
    if not colon or kind not in DATABASES:
        return "", where, ""
    file, _, table = rest.partition("#")
    return kind, file, table


def _scan_binary(path: Path, where: str, kind: Literal["parquet", "ipc"]) -> Scan:
    import polars as pl

    code = f"table = pl.read_{kind}({where!r})"
    if has_pattern(where):
        code = f"table = pl.scan_{kind}({where!r}, glob=False).collect()"
    with _reading(where):
        # Brackets in a path are not a pattern (test_a_name_may_hold_brackets).
        rows = pl.scan_parquet(path, glob=False) if kind == "parquet" else pl.scan_ipc(path, glob=False)
        return Scan(rows, int(rows.select(pl.len()).collect(engine="streaming").item()), (), code)


def _ending(path: Path) -> str:
    """The ending that tells the format, in lower case."""
    name = path.name.lower()
    known = (*TEXT_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS)
    for ending in known:
        if name.endswith(ending):
            return ending
    hint = "rename the file, or save it as one of these."
    if name.endswith((".db", ".sqlite", ".sqlite3", ".duckdb")):
        kind = "duckdb" if name.endswith(".duckdb") else "sqlite"
        hint = f"name a database together with its table, as in {kind}:{path}#sales."
    raise FileEndingError(path, known, hint)


def _existing(path: Path) -> Path:
    """The path; raise if there is no such file."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # a name that is too long, a circle of links, a null character
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise TableNotFoundError(f"The file {str(path)!r} cannot be opened: {reason}.", [], _NAME) from error
    if path.is_dir():
        raise TableContentError(str(path), "is a folder.", "name a file in it.")
    if not path.exists():
        folder = path.parent
        if not folder.is_dir():
            raise TableNotFoundError(f"There is no folder {str(folder)!r}.", [], "check the spelling.")
        names = [entry.name for entry in folder.iterdir() if entry.is_file()]
        near = [str(folder / name) for name in get_close_matches(path.name, names, n=2)]
        hint = "" if near else f"check the spelling; the folder is {str(folder.resolve())!r}."
        raise TableNotFoundError(f"There is no file {str(path)!r}.", near, hint)
    return path


@contextmanager
def _reading(where: str) -> Iterator[None]:
    """Turn the errors of polars about a damaged file into an error of ours."""
    import polars as pl

    # A panic of polars is not an Exception (test_a_panic_of_polars_is_an_error_of_ours).
    polars_errors = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
    broken: Any = (*polars_errors, OSError, EOFError, zlib.error, csv.Error, UnicodeError)
    try:
        yield
    except SufrepError:
        raise
    except broken as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        what = f"cannot be read; it may be damaged, or not have the format of its ending ({first})."
        raise TableContentError(where, what, "get a new copy, or check the step that wrote it.") from error
