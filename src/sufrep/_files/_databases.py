"""Tables of DuckDB and SQLite databases, copied to a temporary Parquet file before they are read.

The copy is a snapshot of a table that others may be writing to, and has what the other formats have: one type
for each column, and batches.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import polars as pl

from sufrep._files._scan import Scan, TemporaryCopy, call_code, dict_code
from sufrep._files._writing import TableWriter
from sufrep.errors import MissingDependencyError, TableContentError, TableNotFoundError, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

# Extensions are code, which is neither downloaded nor loaded for a file that asks for it.
_NO_EXTENSIONS: Any = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
# For the code of a report.
_NO_ACCESS = {"enable_external_access": False}
_PRODUCTS = {"duckdb": "DuckDB", "sqlite": "SQLite"}
# Rows that pass through Python at a time.
_BATCH = 50_000
# Types of DuckDB that Parquet and polars have too; others are read as text.
_PLAIN = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("FLOAT", "DOUBLE", "VARCHAR", "DATE", "TIME", "BLOB"),
)
_PLAIN_STARTS = ("DECIMAL", "TIMESTAMP")
# Types that arrive as another type when they do not pass through Parquet.
_ARROW_DIFFERS = ("TIMESTAMP_S", "TIMESTAMP WITH TIME ZONE")


def scan_database(kind: str, path: Path, table: str, text: Sequence[str]) -> Scan:
    """Copy a table; an empty name means the only table of the database."""
    _check_kind(kind, path, table)
    copy = TemporaryCopy(".parquet")
    copy_table = _copy_duckdb if kind == "duckdb" else _copy_sqlite
    code = copy_table(path, table, text, copy.path)
    rows = pl.scan_parquet(copy.path, glob=False)
    n_rows = int(rows.select(pl.len()).collect().item())
    imports = ("duckdb",) if kind == "duckdb" else ("sqlite3", "from contextlib import closing")
    return Scan(rows, n_rows, imports, code, copies=(copy,))


def _check_kind(kind: str, path: Path, table: str) -> None:
    """Raise if the file is a database of the other kind."""
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise _unreadable(f"{kind}:{path}", error) from error
    found = "sqlite" if head.startswith(b"SQLite format 3") else "duckdb" if head[8:12] == b"DUCK" else kind
    if found != kind:
        what = f"is a database of {_PRODUCTS[found]}, not of {_PRODUCTS[kind]}."
        place = f"{found}:{path}#{table}" if table else f"{found}:{path}"
        raise TableContentError(f"{kind}:{path}", what, f"write {place!r}.")


def _copy_duckdb(path: Path, table: str, text: Sequence[str], target: Path) -> str:
    """Copy a table, and return code that reads it."""
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise MissingDependencyError("duckdb", "Reading a DuckDB table", "duckdb") from error
    try:
        with closing(duckdb.connect(str(path), read_only=True, config=_NO_EXTENSIONS)) as connection:
            # A view may name any file of the user, or an address. Nothing but the copy may be opened.
            connection.execute(f"SET allowed_paths = [{_literal(target)}]")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            found = connection.execute(
                "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
            ).fetchall()
            tables = {
                name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in found
            }
            parts = tables[_chosen(f"duckdb:{path}", table, list(tables))]
            source = ".".join(map(_quoted, parts))
            types = {name: dtype for name, dtype, *_ in connection.execute(f"DESCRIBE {source}").fetchall()}
            query = _query([_duckdb_column(name, types[name], name in text) for name in types], types, source)
            connection.execute(f"COPY ({query}) TO {_literal(target)} (FORMAT parquet, USE_TMP_FILE false)")
    except duckdb.PermissionException as error:
        what = f"has a view that reads something outside the database ({_first_line(error)})."
        hint = "views are opened without access to files and networks; copy it to a table first."
        raise TableContentError(f"duckdb:{path}", what, hint) from error
    except duckdb.Error as error:
        raise _unreadable(f"duckdb:{path}", error) from error
    schema = pl.read_parquet_schema(target)
    casts = [f"{name!r}: pl.{schema[name]}" for name, dtype in types.items() if dtype in _ARROW_DIFFERS]
    lines = [
        f"with duckdb.connect({str(path)!r}, read_only=True, config={_NO_ACCESS!r}) as connection:",
        f"    table = connection.sql({query!r}).pl()",
    ]
    if casts:
        lines.append(f"table = table.cast({dict_code(casts)})")
    return "\n".join(lines)


def _duckdb_column(name: str, dtype: str, as_text: bool) -> str:
    if dtype in _PLAIN or dtype.startswith(_PLAIN_STARTS):
        return _quoted(name)
    # sum() of integers gives huge integers. Parquet has no such type, and a float is still a number.
    is_number = dtype in ("HUGEINT", "UHUGEINT") and not as_text
    return f"CAST({_quoted(name)} AS {'DOUBLE' if is_number else 'VARCHAR'}) AS {_quoted(name)}"


def _copy_sqlite(path: Path, table: str, text: Sequence[str], target: Path) -> str:
    """Copy a table, and return code that reads it."""
    where = f"sqlite:{path}"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            # Views may use only functions that are harmless, and no virtual tables that are not.
            connection.execute("PRAGMA trusted_schema = OFF")
            found = connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                # Names that begin with sqlite_ are SQLite's own; an underscore alone is any character.
                r" AND name NOT LIKE 'sqlite\_%' ESCAPE '\'"
            )
            source = _quoted(_chosen(where, table, sorted(name for (name,) in found)))
            header = connection.execute(f"SELECT * FROM {source} LIMIT 0").description
            types = {name: _stored_types(connection, source, name) for name, *_ in header}
            schema = {name: pl.String() if name in text else _sqlite_type(types[name]) for name in types}
            columns = [_sqlite_column(name, schema[name], types[name]) for name in types]
            query = _query(columns, types, source)
            _write_batches(connection.execute(query), schema, target)
    except (sqlite3.Error, UnicodeError) as error:  # names that are not UTF-8 are not an error of SQLite
        raise _unreadable(where, error) from error
    items = [f"{name!r}: pl.{dtype}" for name, dtype in schema.items()]
    arguments = [repr(query), "connection", f"schema_overrides={dict_code(items)}"]
    read = call_code("pl.read_database", arguments).replace("\n", "\n    ")
    return f"with closing(sqlite3.connect({str(path)!r})) as connection:\n    table = {read}"


def _write_batches(cursor: sqlite3.Cursor, schema: Mapping[str, pl.DataType], target: Path) -> None:
    with TableWriter(target) as writer:
        while True:
            rows = cursor.fetchmany(_BATCH)
            writer.write(pl.DataFrame(rows, schema=dict(schema), orient="row"))
            if len(rows) < _BATCH:
                break


def _stored_types(connection: sqlite3.Connection, source: str, name: str) -> set[str]:
    """The types of the values of a column, because each value has its own; nulls do not count."""
    found = connection.execute(f"SELECT DISTINCT typeof({_quoted(name)}) FROM {source}").fetchall()
    return {kind for (kind,) in found} - {"null"}


def _sqlite_type(types: set[str]) -> pl.DataType:
    """The type that holds all values of a column."""
    if types == {"integer"}:
        return pl.Int64()
    if types and types <= {"integer", "real"}:
        return pl.Float64()
    return pl.Binary() if types == {"blob"} else pl.String()


def _sqlite_column(name: str, dtype: pl.DataType, types: set[str]) -> str:
    column = _quoted(name)
    if dtype == pl.Float64 and types != {"real"}:
        return f"CAST({column} AS REAL) AS {column}"
    if dtype != pl.String or types <= {"text"}:
        return column
    if "real" not in types:
        return f"CAST({column} AS TEXT) AS {column}"
    whole = f"CAST({column} AS INTEGER)"
    return (
        f"CASE WHEN typeof({column}) = 'real' AND {column} = {whole} "
        f"THEN CAST({whole} AS TEXT) ELSE CAST({column} AS TEXT) END AS {column}"
    )


def _query(columns: Sequence[str], names: Iterable[str], source: str) -> str:
    is_plain = list(columns) == list(map(_quoted, names))
    return f"SELECT {'*' if is_plain else ', '.join(columns)} FROM {source}"


def _chosen(where: str, table: str, tables: Sequence[str]) -> str:
    """The name of the table; raise if there is no such table."""
    if not tables:
        raise TableContentError(where, "has no tables.", "check that this is the right file.")
    if not table and len(tables) == 1:
        return tables[0]
    if table in tables:
        return table
    what = f"{where!r} has no table {table!r}." if table else f"{where!r} has {len(tables)} tables."
    near = [f"{where}#{name}" for name in get_close_matches(table, tables, n=1)] if table else []
    hint = f"the tables are {listed(tables, quote=False)}; name one as in {where}#{tables[0]}."
    raise TableNotFoundError(what, near, "" if near else hint)


def _unreadable(where: str, error: Exception) -> TableContentError:
    what = f"cannot be read: {_first_line(error)}."
    return TableContentError(where, what, "check that this is the right file, and that it is not locked.")


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
