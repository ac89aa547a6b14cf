"""A table somewhere outside, opened to be read as a whole, as a sample or in batches."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._files._scan import Scan
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
    from collections.abc import Iterator, Sequence

    import polars as pl

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".feather", ".arrow", ".ipc")
DATABASES = ("duckdb", "sqlite")
# Rows that are held at a time while a sample is drawn.
_BATCH = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class TableSource:
    """A table that was found and looked at, but whose rows are still where they were.

    Attributes
    ----------
    where : str
        What errors call it.
    names : tuple of str
        The columns.
    n_rows : int
    notes : tuple of str
        What a user should know of how it is read, such as "commas taken as decimal signs in 'price'".
    """

    where: str
    names: tuple[str, ...]
    n_rows: int
    notes: tuple[str, ...]
    _rows: pl.LazyFrame
    _keep: object

    def read(self, n_rows: int | None = None, seed: int = 0) -> pl.DataFrame:
        """Read all rows, or a simple random sample of them, in the order of the table.

        Parameters
        ----------
        n_rows : int, optional
            Size of the sample, drawn without replacement; all rows if there are not more.
        seed : int, default=0
            Of the sample.
        """
        if n_rows is not None and n_rows < 1:
            raise InvalidParameterError("n_rows", n_rows, "at least 1")
        if n_rows is None or n_rows >= self.n_rows:
            with _reading(self.where):
                return self._rows.collect(engine="streaming")
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
        """The rows in their order, about ``size`` at a time and never more, all batches of the same types.

        What is held in memory does not grow with the table.
        """
        with _reading(self.where):
            for batch in self._rows.collect_batches(chunk_size=size, maintain_order=True, engine="streaming"):
                yield from batch.iter_slices(size)

    def require(self, columns: Sequence[str]) -> None:
        """Raise if one of the columns is not there."""
        _require(self.where, columns, self.names)


def open_table(source: str | Path, *, text: Sequence[str] = (), drop: Sequence[str] = ()) -> TableSource:
    """Find a table, its columns and their types.

    Parameters
    ----------
    source : str or Path
        A file whose ending tells its format, or a table of a data base such as ``duckdb:houses.db#sales``;
        see :mod:`sufrep._files`.
    text : sequence of str
        Columns that are read as text whatever they look like, so that "01234" stays "01234". A number that
        is stored as such becomes its digits: 98178 and 98178.0 are "98178".
    drop : sequence of str
        Columns that are left out, as if they were not there.
    """
    try:
        import polars as pl
    except ModuleNotFoundError as error:
        raise MissingDependencyError("polars", f"Reading {str(source)!r}", "cli") from error
    from sufrep._files._types import as_text

    where, text, drop = str(source), tuple(dict.fromkeys(text)), tuple(dict.fromkeys(drop))
    scan = _scan(where, text, drop)
    with _reading(where):
        schema = scan.rows.collect_schema()
    _require(where, (*text, *drop), schema.names())
    if not scan.n_rows:
        raise TableContentError(where, "has columns but no rows.", "look at the step that wrote it.")
    for name in text:
        if schema[name].is_nested() or schema[name] == pl.Binary:
            what = f"holds {schema[name]} in column {name!r}, which cannot be read as text."
            raise TableContentError(where, what, "choose another column, or convert it first.")
    rows = scan.rows.with_columns(as_text(name, schema[name]) for name in text).drop(drop)
    names = tuple(name for name in schema.names() if name not in drop)
    return TableSource(where, names, scan.n_rows, scan.notes, rows, scan.keep)


def _require(where: str, columns: Sequence[str], names: Sequence[str]) -> None:
    missing = [name for name in dict.fromkeys(columns) if name not in names]
    if missing:
        raise TableColumnError(where, missing, names)


def _scan(where: str, text: Sequence[str], drop: Sequence[str]) -> Scan:
    kind, colon, rest = where.partition(":")
    if colon and kind in DATABASES:
        from sufrep._files._databases import scan_database

        name, _, table = rest.partition("#")
        return scan_database(kind, _found(Path(name)), table, text)
    path = _found(Path(where))
    ending = _ending(path)
    if not path.stat().st_size:
        raise TableContentError(where, "is empty: 0 bytes.", "look at the step that wrote it.")
    if ending in TEXT_ENDINGS:
        from sufrep._files._csv import scan_csv

        with _reading(where):
            # What is left out need not be understood, so it is as good as text.
            return scan_csv(path, (*text, *drop))
    return _scan_binary(path, where, parquet=ending in PARQUET_ENDINGS)


def _scan_binary(path: Path, where: str, *, parquet: bool) -> Scan:
    import polars as pl

    with _reading(where):
        # A path with brackets is no pattern (test_a_name_may_hold_brackets).
        rows = pl.scan_parquet(path, glob=False) if parquet else pl.scan_ipc(path, glob=False)
        return Scan(rows, int(rows.select(pl.len()).collect(engine="streaming").item()))


def _ending(path: Path) -> str:
    """The ending by which the format is known, in lower case."""
    name = path.name.lower()
    known = (*TEXT_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS)
    for ending in known:
        if name.endswith(ending):
            return ending
    hint = "rename the file, or save it as one of these."
    if name.endswith((".db", ".sqlite", ".sqlite3", ".duckdb")):
        kind = "duckdb" if name.endswith(".duckdb") else "sqlite"
        hint = f"a data base is named with its table, as in {kind}:{path}#sales."
    raise FileEndingError(path, known, hint)


def _found(path: Path) -> Path:
    """The path, if there is a file that may be read."""
    if path.is_dir():
        raise TableContentError(str(path), "is a folder.", "name a file in it.")
    if not path.exists():
        folder = path.parent
        if not folder.is_dir():
            raise TableNotFoundError(f"There is no folder {str(folder)!r}.", [], "look at how it is spelt.")
        names = [entry.name for entry in folder.iterdir() if entry.is_file()]
        near = [str(folder / name) for name in get_close_matches(path.name, names, n=2)]
        hint = "" if near else f"look at how it is spelt; this is the folder {str(folder.resolve())!r}."
        raise TableNotFoundError(f"There is no file {str(path)!r}.", near, hint)
    return path


@contextmanager
def _reading(where: str) -> Iterator[None]:
    """Turn whatever polars meets in a damaged file into an error of ours."""
    import polars as pl

    # A panic of polars is no Exception: it would pass every other net (test_damaged_files_are_refused).
    broken: Any = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, EOFError)
    try:
        yield
    except SufrepError:
        raise
    except broken as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        what = f"cannot be read; it may be damaged or not what its name says ({first})."
        raise TableContentError(where, what, "get it anew, or look at what wrote it.") from error
