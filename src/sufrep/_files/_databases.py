"""Tables of DuckDB and SQLite files, copied to a Parquet file of our own before they are read.

The copy makes a table that others may be writing to stand still, and gives it what the other formats have:
one type a column, and batches.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import polars as pl

from sufrep._files._scan import Scan
from sufrep._files._scratch import Scratch
from sufrep._files._writing import TableWriter
from sufrep.errors import MissingDependencyError, TableContentError, TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# Rows that pass through Python at a time.
_BATCH = 50_000
# Types of DuckDB that Parquet and polars have too; others are read as text.
_PLAIN = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("FLOAT", "DOUBLE", "VARCHAR", "DATE", "TIME", "BLOB"),
)
_PLAIN_STARTS = ("DECIMAL", "TIMESTAMP", "ENUM")


def scan_database(kind: str, path: Path, table: str, text: Sequence[str]) -> Scan:
    """Copy a table; an empty name stands for the only one there is."""
    scratch = Scratch(".parquet")
    if kind == "duckdb":
        _copy_duckdb(path, table, text, scratch.path)
    else:
        _copy_sqlite(path, table, text, scratch.path)
    rows = pl.scan_parquet(scratch.path, glob=False)
    return Scan(rows, int(rows.select(pl.len()).collect().item()), keep=scratch)


def _copy_duckdb(path: Path, table: str, text: Sequence[str], target: Path) -> None:
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise MissingDependencyError("duckdb", "Reading a DuckDB table", "duckdb") from error
    try:
        with closing(duckdb.connect(str(path), read_only=True)) as connection:
            found = connection.execute(
                "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
            ).fetchall()
            tables = {
                name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in found
            }
            parts = tables[_chosen(f"duckdb:{path}", table, list(tables))]
            source = ".".join(map(_quoted, parts))
            columns = connection.execute(f"DESCRIBE {source}").fetchall()
            wanted = ", ".join(_duckdb_column(name, dtype, name in text) for name, dtype, *_ in columns)
            connection.execute(f"COPY (SELECT {wanted} FROM {source}) TO {_literal(target)} (FORMAT parquet)")
    except duckdb.Error as error:
        raise _unreadable(f"duckdb:{path}", error) from error


def _duckdb_column(name: str, dtype: str, as_text: bool) -> str:
    if dtype == "HUGEINT" or dtype == "UHUGEINT":
        # What sum() makes of integers. Parquet has no such type, and a float is a number still.
        target = "VARCHAR" if as_text else "DOUBLE"
    elif dtype in _PLAIN or dtype.startswith(_PLAIN_STARTS):
        return _quoted(name)
    else:
        target = "VARCHAR"
    return f"CAST({_quoted(name)} AS {target}) AS {_quoted(name)}"


def _copy_sqlite(path: Path, table: str, text: Sequence[str], target: Path) -> None:
    where = f"sqlite:{path}"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            found = connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
            )
            source = _quoted(_chosen(where, table, sorted(name for (name,) in found)))
            names = [
                column[0] for column in connection.execute(f"SELECT * FROM {source} LIMIT 0").description
            ]
            schema = {
                name: pl.String() if name in text else _sqlite_type(connection, source, name)
                for name in names
            }
            wanted = ", ".join(_sqlite_column(name, dtype) for name, dtype in schema.items())
            cursor = connection.execute(f"SELECT {wanted} FROM {source}")
            with TableWriter(target) as writer:
                while True:
                    rows = cursor.fetchmany(_BATCH)
                    writer.write(pl.DataFrame(rows, schema=schema, orient="row"))
                    if len(rows) < _BATCH:
                        break
    except sqlite3.Error as error:
        raise _unreadable(where, error) from error


def _sqlite_type(connection: sqlite3.Connection, source: str, name: str) -> Any:
    """The type that holds all values of a column, because each value has a type of its own."""
    found = connection.execute(f"SELECT DISTINCT typeof({_quoted(name)}) FROM {source}").fetchall()
    types = {kind for (kind,) in found} - {"null"}
    if types == {"integer"}:
        return pl.Int64()
    if types and types <= {"integer", "real"}:
        return pl.Float64()
    return pl.Binary() if types == {"blob"} else pl.String()


def _sqlite_column(name: str, dtype: Any) -> str:
    column = _quoted(name)
    if dtype == pl.Float64:
        return f"CAST({column} AS REAL)"
    if dtype != pl.String:
        return column
    whole = f"CAST({column} AS INTEGER)"
    return (
        f"CASE WHEN typeof({column}) = 'real' AND {column} = {whole} "
        f"THEN CAST({whole} AS TEXT) ELSE CAST({column} AS TEXT) END"
    )


def _chosen(where: str, table: str, tables: Sequence[str]) -> str:
    """The name of the table, if there is such a one."""
    if not tables:
        raise TableContentError(where, "has no tables.", "look at whether this is the right file.")
    if not table and len(tables) == 1:
        return tables[0]
    if table in tables:
        return table
    listed = ", ".join(tables[:10]) + ", …" * (len(tables) > 10)
    what = f"{where!r} has no table {table!r}." if table else f"{where!r} has {len(tables)} tables."
    near = [f"{where}#{name}" for name in get_close_matches(table, tables, n=1)] if table else []
    hint = f"the tables are {listed}; name one as in {where}#{tables[0]}."
    raise TableNotFoundError(what, near, hint)


def _unreadable(where: str, error: Exception) -> TableContentError:
    what = f"cannot be read: {str(error).splitlines()[0].rstrip('.')}."
    return TableContentError(where, what, "look at whether this is the right file, and not locked.")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
