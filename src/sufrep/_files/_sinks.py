"""Tables that polars writes while it reads: files, partitioned folders and tables of DuckDB databases.

Rows pass through memory in batches. The output is written under another name, and takes its own when it is
complete; a table of a database that exists is written in one transaction.
"""

from __future__ import annotations

import errno
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sufrep._atomic import check_folder, check_path, replacing, replacing_folder
from sufrep._files._paths import database_parts
from sufrep._files._writing import ARROW, PARQUET, SEPARATORS, TableWriter, written_ending
from sufrep.errors import EngineError, FileEndingError, MissingDependencyError, NotWritableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    Write = Callable[[pl.LazyFrame], None]

_EXTENSIONS: Any = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
_FULL = (errno.ENOSPC, errno.EDQUOT)
_DUCKDB_MEMORY = "1GB"
_SHOWN_AS = "duckdb:results.db#houses"


@contextmanager
def table_sink(
    path: str | Path,
    partition_by: Sequence[str] = (),
    *,
    replace: bool = False,
    keep_order: bool = False,
    seen: Callable[[int], None] | None = None,
) -> Iterator[Write]:
    """What writes rows in the course of the ``with`` block; they appear at its end, or not at all.

    Parameters
    ----------
    path : str or Path
        A file, in the format of its ending; a folder, with ``partition_by``; or a table of a DuckDB database,
        such as ``duckdb:results.db#houses``.
    partition_by : sequence of str
        Columns: the rows of each combination of their values become Parquet files in a folder of their own,
        such as ``year=2024/state=CA``.
    replace : bool
        Whether a table of the database that exists is replaced.
    keep_order : bool
        Whether the rows keep their order, which takes more memory. Parts of a folder have none.
    seen : callable, optional
        Called with the number of rows of each batch that is written.

    Examples
    --------
    >>> import tempfile, polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with table_sink(f"{folder}/parts", ["a"]) as write:
    ...         write(pl.LazyFrame({"a": [1, 2], "b": [3, 4]}))
    ...     sorted(path.name for path in Path(folder, "parts").iterdir())
    ['a=1', 'a=2']
    """
    if is_database(path):
        with _database_sink(str(path), replace=replace, keep_order=keep_order) as copy:
            yield lambda rows: copy(_counted(rows, seen))
    elif partition_by:
        with replacing_folder(path) as whole:
            yield lambda rows: _sink_parts(_counted(rows, seen), whole, partition_by, path)
    else:
        ending = written_ending(path)
        with replacing(path) as whole:
            yield lambda rows: _sink_file(_counted(rows, seen), whole, ending, path, keep_order)


@contextmanager
def batch_sink(
    path: str | Path, partition_by: Sequence[str] = (), *, replace: bool = False
) -> Iterator[Callable[[pl.DataFrame], None]]:
    """The same for rows that come in batches of frames, whose order is kept in files and databases."""
    if not partition_by and not is_database(path):
        with TableWriter(path) as writer:
            yield writer.write
        return
    import polars as pl

    with (
        tempfile.TemporaryDirectory(prefix="sufrep-") as folder,
        table_sink(path, partition_by, replace=replace, keep_order=True) as write,
    ):
        parts: list[Path] = []

        def add(batch: pl.DataFrame) -> None:
            parts.append(Path(folder, f"{len(parts)}.arrow"))
            batch.write_ipc(parts[-1])

        yield add
        write(pl.scan_ipc(parts, glob=False))


def is_database(path: str | Path) -> bool:
    """Whether a path stands for a table of a database."""
    return bool(database_parts(str(path))[0])


def written_file(path: Path) -> Path:
    """The file that an output is written to: that of the database, if it is a table of one."""
    return Path(database_parts(str(path))[1])


def is_partitioned_table(folder: Path) -> bool:
    """Whether a folder holds nothing but what `table_sink` writes, so that it may be replaced."""
    return all(
        entry.is_dir() and "=" in entry.name if entry.parent == folder else _is_part(entry)
        for entry in folder.rglob("*")
    )


def _is_part(entry: Path) -> bool:
    return "=" in entry.name if entry.is_dir() else entry.suffix == ".parquet"


def check_partitions(path: Path) -> None:
    """Raise if no partitioned table can be written to a folder, or something else would be lost."""
    ending = path.suffix.lower()
    if ending in (*SEPARATORS, *ARROW, ".gz"):
        raise FileEndingError(path, PARQUET, "a partitioned table is a folder of Parquet files.")
    check_folder(path)
    if path.is_dir() and not is_partitioned_table(path):
        what = "the folder holds other files than a partitioned table."
        raise NotWritableError(path, what, "name another folder, or empty it first.")


def check_database(path: Path) -> bool:
    """Return whether a table of a database exists; raise if none can be written."""
    kind, file, table = database_parts(str(path))
    if kind != "duckdb" or not table:
        hint = f"name a DuckDB database and its table, as in {_SHOWN_AS}."
        raise NotWritableError(path, "it does not name a table of a DuckDB database.", hint)
    check_path(file)
    if not Path(file).exists():
        return False
    with _connected(str(path), file, read_only=True) as connection:
        query = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'main' AND "
        found = connection.execute(f"{query} table_name = ?", [table]).fetchone()
    return bool(found[0])


def _counted(rows: pl.LazyFrame, seen: Callable[[int], None] | None) -> pl.LazyFrame:
    """The same rows, counted when they pass."""
    if seen is None:
        return rows

    def count(batch: pl.DataFrame) -> pl.DataFrame:
        seen(batch.height)
        return batch

    return rows.map_batches(count, streamable=True, schema=rows.collect_schema())


def _sink_file(rows: pl.LazyFrame, whole: Path, ending: str, path: str | Path, keep_order: bool) -> None:
    with _engine(path):
        if ending in PARQUET:
            rows.sink_parquet(whole, engine="streaming", maintain_order=keep_order)
        elif ending in SEPARATORS:
            rows.sink_csv(
                whole,
                separator=SEPARATORS[ending],
                compression="gzip" if ending.endswith(".gz") else "uncompressed",
                check_extension=False,
                engine="streaming",
                maintain_order=keep_order,
            )
        else:
            rows.sink_ipc(whole, engine="streaming", maintain_order=keep_order)


def _sink_parts(rows: pl.LazyFrame, whole: Path, partition_by: Sequence[str], path: str | Path) -> None:
    import polars as pl

    whole.mkdir()
    with _engine(path):
        # The columns stay in the files too, with their types: "01234" in the name of a folder is a number.
        parts = pl.PartitionBy(whole, key=list(partition_by), include_key=True)
        rows.sink_parquet(parts, mkdir=True, engine="streaming", maintain_order=False)


@contextmanager
def _database_sink(path: str, *, replace: bool, keep_order: bool) -> Iterator[Write]:
    """What copies rows to a Parquet file, and that to a table; a new database is a new file."""
    _, file, table = database_parts(path)
    exists = Path(file).exists()
    with replacing(file) as whole, _connected(path, file if exists else str(whole)) as connection:

        def copy(rows: pl.LazyFrame) -> None:
            rows_file = whole.with_name("rows.parquet")
            _sink_file(rows, rows_file, ".parquet", path, keep_order)
            name, create = table.replace('"', '""'), "CREATE OR REPLACE" if replace else "CREATE"
            connection.execute(f"SET preserve_insertion_order = {str(keep_order).lower()}")
            # Without a limit, DuckDB takes most of the memory of the computer.
            connection.execute(f"SET memory_limit = '{_DUCKDB_MEMORY}'")
            connection.execute("BEGIN")
            connection.execute(f'{create} TABLE "{name}" AS SELECT * FROM read_parquet(?)', [str(rows_file)])
            rows_file.unlink()

        yield copy
        # Without this, closing the connection takes everything back.
        connection.execute("COMMIT")
        connection.execute("CHECKPOINT")


@contextmanager
def _connected(path: str, file: str, *, read_only: bool = False) -> Iterator[Any]:
    """A connection to a database, whose errors are ours."""
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise MissingDependencyError("duckdb", "Writing a DuckDB table", "duckdb") from error
    try:
        with closing(duckdb.connect(file, read_only=read_only, config=_EXTENSIONS)) as connection:
            yield connection
    except duckdb.Error as error:
        what = f"{str(error).splitlines()[0].rstrip('.')}."
        raise NotWritableError(path, what, "check that it is a DuckDB database which nobody uses.") from error


@contextmanager
def _engine(path: str | Path) -> Iterator[None]:
    """Turn what polars raises into an error of ours; a full disk is reported by `replacing`."""
    import polars as pl

    # A panic of polars is not an Exception (test_a_panic_of_polars_is_an_error_of_ours).
    broken: Any = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
    try:
        yield
    except broken as error:
        if isinstance(error, OSError) and error.errno in _FULL:
            raise
        raise EngineError("polars", f"writing {str(path)!r}", error) from error
