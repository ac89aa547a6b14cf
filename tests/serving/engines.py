"""Databases that run the SQL of `to_sql`: each takes a table of rows and statements, and returns rows."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from sufrep._sql import SqlStatements

# The type of the columns of a source table, by engine.
TYPES = {
    "text": {"duckdb": "VARCHAR", "sqlite": "TEXT", "postgres": "TEXT", "spark": "STRING"},
    "int": {"duckdb": "BIGINT", "sqlite": "INTEGER", "postgres": "INTEGER", "spark": "BIGINT"},
    "decimal": {
        "duckdb": "DECIMAL(10, 0)",
        "sqlite": "INTEGER",
        "postgres": "NUMERIC(10, 0)",
        "spark": "DECIMAL(10, 0)",
    },
    "bool": dict.fromkeys(("duckdb", "postgres", "spark"), "BOOLEAN") | {"sqlite": "INTEGER"},
    "float": {"duckdb": "DOUBLE", "sqlite": "REAL", "postgres": "DOUBLE PRECISION", "spark": "DOUBLE"},
    "date": dict.fromkeys(("duckdb", "postgres", "spark"), "DATE") | {"sqlite": "TEXT"},
    "datetime": {
        "duckdb": "TIMESTAMP",
        "sqlite": "TEXT",
        "postgres": "TIMESTAMP",
        "spark": "TIMESTAMP_NTZ",
    },
}
Rows = Sequence[Sequence[Any]]
# From the columns of the source (name and kind), its rows, and statements, to the rows of the query.
Engine = Callable[[dict[str, str], Rows, SqlStatements], list[tuple[Any, ...]]]


def run_in_python(dialect: str, connection: Any, mark: str) -> Engine:
    """An engine with Python's interface to databases, whose parameters are written as ``mark``."""

    def run(columns: dict[str, str], rows: Rows, sql: SqlStatements) -> list[tuple[Any, ...]]:
        cursor = connection.cursor()
        quote = ", ".join(f'"{name}" {TYPES[kind][dialect]}' for name, kind in columns.items())
        cursor.execute(f'CREATE TABLE "source rows" ({quote})')
        marks = ", ".join([mark] * len(columns))
        cursor.executemany(
            f'INSERT INTO "source rows" VALUES ({marks})', [_stored(row, dialect) for row in rows]
        )
        for statement in sql.setup:
            cursor.execute(statement)
        return [tuple(row) for row in cursor.execute(sql.select).fetchall()]

    return run


def _stored(row: Sequence[Any], dialect: str) -> list[Any]:
    if dialect != "sqlite":
        return list(row)
    return [
        value.isoformat(" ")
        if isinstance(value, dt.datetime)
        else value.isoformat()
        if isinstance(value, dt.date)
        else int(value)
        if type(value).__name__ == "Decimal"
        else value
        for value in row
    ]


@pytest.fixture(params=["duckdb", "sqlite", "postgres", "spark"])
def dialect(request: pytest.FixtureRequest) -> str:
    """The dialects that are run."""
    return str(request.param)


@pytest.fixture
def engine(dialect: str, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An empty database of the dialect."""
    pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    if dialect == "duckdb":
        duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
        with closing(duckdb.connect()) as connection:
            yield run_in_python(dialect, connection, "?")
    elif dialect == "sqlite":
        with closing(sqlite3.connect(":memory:")) as connection:
            yield run_in_python(dialect, connection, "?")
    elif dialect == "postgres":
        with request.getfixturevalue("postgres_server").connect() as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
            yield run_in_python(dialect, connection, "%s")
    else:
        yield _run_in_spark(request.getfixturevalue("spark_session"))


def _run_in_spark(session: Any) -> Engine:
    def run(columns: dict[str, str], rows: Rows, sql: SqlStatements) -> list[tuple[Any, ...]]:
        for table in session.catalog.listTables():
            session.sql(f"DROP {'VIEW' if table.isTemporary else 'TABLE'} `{table.name}`")
        schema = ", ".join(f"`{name}` {TYPES[kind]['spark']}" for name, kind in columns.items())
        frame = session.createDataFrame([tuple(row) for row in rows], schema)
        frame.createOrReplaceTempView("source_rows")
        for statement in sql.setup:
            session.sql(statement)
        return [tuple(row) for row in session.sql(sql.select).collect()]

    return run


def source_name(dialect: str) -> str:
    """The name of the source table: with a space where the engine allows it."""
    return "source_rows" if dialect == "spark" else '"source rows"'
