"""Tables of DuckDB and SQLite."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from sufrep._files import _databases, open_table
from sufrep.errors import MissingDependencyError, TableColumnError, TableContentError, TableNotFoundError

CONNECT: dict[str, Callable[[str], object]] = {"sqlite": sqlite3.connect, "duckdb": duckdb.connect}


@pytest.fixture(params=["sqlite", "duckdb"])
def kind(request) -> str:
    return str(request.param)


@pytest.fixture
def filled(tmp_path, kind) -> Callable[..., str]:
    """``filled("CREATE TABLE …", …)`` is the name of the database."""

    def fill(*statements: str) -> str:
        path: Path = tmp_path / "it's [a] house.db"
        with closing(CONNECT[kind](str(path))) as connection:  # type: ignore[type-var]
            for statement in statements:
                connection.execute(statement)  # type: ignore[attr-defined]
            connection.commit()  # type: ignore[attr-defined]
        return f"{kind}:{path}"

    return fill


SALES = ("CREATE TABLE sales (zip INTEGER, price DOUBLE, name VARCHAR)",)
SALES += ("INSERT INTO sales VALUES (98178, 1.5, 'a'), (NULL, 2, '😀'), (98001, NULL, NULL)",)


def test_a_table_is_read_with_its_types_and_nulls(filled):
    source = open_table(filled(*SALES) + "#sales")
    assert source.read().rows() == [(98178, 1.5, "a"), (None, 2.0, "😀"), (98001, None, None)]
    assert (source.names, source.n_rows) == (("zip", "price", "name"), 3)


def test_numbers_become_text_on_request(filled):
    assert open_table(filled(*SALES), text=["zip"]).read()["zip"].to_list() == ["98178", None, "98001"]


def test_batches_and_samples_work_as_for_files(filled):
    source = open_table(filled(*SALES))
    assert pl.concat(list(source.batches(2))).equals(source.read())
    assert source.read(2).height == 2


def test_odd_names_of_tables_and_columns_are_quoted(filled):
    source = filled('CREATE TABLE "my ""odd"" table" ("a b" INTEGER, "select" INTEGER)')
    with pytest.raises(TableContentError, match="has columns but no rows"):
        open_table(f'{source}#my "odd" table')


def test_of_several_tables_one_must_be_named(filled):
    source = filled(*SALES, "CREATE VIEW cheap AS SELECT * FROM sales WHERE price < 2")
    assert open_table(f"{source}#cheap").n_rows == 1
    with pytest.raises(
        TableNotFoundError, match=r"has 2 tables.\nHint: the tables are cheap, sales; name one"
    ):
        open_table(source)


def test_an_unknown_table_suggests_an_existing_one(filled):
    with pytest.raises(
        TableNotFoundError, match=r"""has no table .sale.\.\nHint: did you mean ".*#sales"\?$"""
    ):
        open_table(filled(*SALES) + "#sale")


def test_an_unknown_column_suggests_an_existing_one(filled):
    with pytest.raises(TableColumnError, match=r"has no column 'zpi'.\nHint: did you mean 'zip'"):
        open_table(filled(*SALES), text=["zpi"])


def test_a_database_without_tables_is_refused(filled):
    with pytest.raises(TableContentError, match="has no tables"):
        open_table(filled())


def test_a_file_that_is_not_a_database_is_refused(tmp_path, kind):
    path = tmp_path / "houses.db"
    path.write_bytes(b"this is not a database" * 500)
    with pytest.raises(TableContentError, match="cannot be read"):
        open_table(f"{kind}:{path}")


def test_a_missing_database_is_not_created(tmp_path, kind):
    with pytest.raises(TableNotFoundError, match="There is no file"):
        open_table(f"{kind}:{tmp_path}/houses.db")
    assert not list(tmp_path.iterdir())


def test_values_of_several_types_in_a_column_of_sqlite_become_one(tmp_path):
    with closing(sqlite3.connect(tmp_path / "mixed.db")) as connection:
        connection.execute("CREATE TABLE t (number, mixed, bytes, empty)")
        rows = [(1, "a", b"x", None), (2.5, 7.0, None, None), (None, 7.5, b"", None)]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    frame = open_table(f"sqlite:{tmp_path}/mixed.db").read()
    assert frame.dtypes == [pl.Float64, pl.String, pl.Binary, pl.String]
    assert frame["number"].to_list() == [1.0, 2.5, None]
    assert frame["mixed"].to_list() == ["a", "7", "7.5"]


def test_a_table_of_sqlite_that_is_larger_than_a_batch_is_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(_databases, "_BATCH", 4)
    with closing(sqlite3.connect(tmp_path / "long.db")) as connection:
        connection.execute("CREATE TABLE t (i INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(12)])
        connection.commit()
    assert open_table(f"sqlite:{tmp_path}/long.db").read()["i"].to_list() == list(range(12))


def test_types_that_only_duckdb_has_are_read_as_the_nearest_type(tmp_path):
    with closing(duckdb.connect(tmp_path / "odd.db")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 170141183460469231731687303715884105727::HUGEINT AS huge, "
            "INTERVAL 1 DAY AS span, [1, 2] AS list, DATE '2020-01-31' AS day, 'a'::ENUM('a', 'b') AS enum, "
            "7.50::DECIMAL(9, 2) AS decimal, true AS truth"
        )
        connection.execute("CREATE SCHEMA other")
        connection.execute("CREATE TABLE other.t AS SELECT 1 AS a")
    source = f"duckdb:{tmp_path}/odd.db"
    frame = open_table(f"{source}#t").read()
    assert frame["huge"].to_list() == [float(2**127)]
    assert frame.drop("huge", "decimal").row(0) == ("1 day", "[1, 2]", date(2020, 1, 31), "a", True)
    assert open_table(f"{source}#t", text=["huge"]).read()["huge"].to_list() == [str(2**127 - 1)]
    assert open_table(f"{source}#other.t").read().rows() == [(1,)]


def test_without_duckdb_the_extra_is_named(monkeypatch, tmp_path):
    (tmp_path / "houses.db").touch()
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingDependencyError, match=r"needs the package 'duckdb'.*\n.*sufrep\[duckdb\]"):
        open_table(f"duckdb:{tmp_path}/houses.db")


# Databases of strangers


def test_a_view_of_duckdb_cannot_read_other_files(tmp_path):
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    with closing(duckdb.connect(tmp_path / "a.db")) as connection:
        connection.execute(f"CREATE VIEW v AS SELECT * FROM read_csv('{tmp_path}/secret.csv')")
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    with pytest.raises(TableContentError, match=r"reads something outside the database.*\nHint: views are"):
        open_table(f"duckdb:{tmp_path}/a.db#v")
    assert open_table(f"duckdb:{tmp_path}/a.db#t").read().rows() == [(1,)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "secret.csv"]


def test_duckdb_is_opened_without_extensions_and_with_a_locked_configuration(tmp_path, monkeypatch):
    with closing(duckdb.connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    wanted = ("enable_external_access", "lock_configuration", "autoinstall_known_extensions")
    wanted += ("autoload_known_extensions", "access_mode")
    found: list[tuple[object, ...]] = []
    query = _databases._query

    def look(*arguments: Any) -> str:
        found.append(opened[0].execute(f"SELECT {', '.join(map(_setting, wanted))}").fetchall()[0])
        return query(*arguments)

    opened: list[duckdb.DuckDBPyConnection] = []
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *a, **k: opened.append(connect(*a, **k)) or opened[-1])
    monkeypatch.setattr(_databases, "_query", look)
    open_table(f"duckdb:{tmp_path}/a.db")
    assert [str(value).lower() for value in found[0]] == ["false", "true", "false", "false", "read_only"]


def _setting(name: str) -> str:
    return f"current_setting('{name}')"


@pytest.mark.parametrize(("made", "named"), [("sqlite", "duckdb"), ("duckdb", "sqlite")])
def test_a_database_of_the_other_kind_is_reported(tmp_path, made, named):
    with closing(CONNECT[made](str(tmp_path / "a.db"))) as connection:  # type: ignore[type-var]
        connection.execute("CREATE TABLE t (a INTEGER)")  # type: ignore[attr-defined]
    is_not = r"is a database of \w+, not of \w+\.\nHint: write"
    with pytest.raises(TableContentError, match=rf"{is_not} '{made}:.*/a.db'\."):
        open_table(f"{named}:{tmp_path}/a.db")
    with pytest.raises(TableContentError, match=rf"{is_not} '{made}:.*/a.db#t'\."):
        open_table(f"{named}:{tmp_path}/a.db#t")


def test_a_view_of_sqlite_cannot_use_functions_that_do_more_than_compute(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("CREATE VIEW v AS SELECT load_extension('/tmp/evil') AS a")
        connection.execute("CREATE VIEW w AS SELECT count(*) AS a FROM pragma_table_list")
        connection.commit()
    with pytest.raises(TableContentError, match=r"cannot be read: (unsafe use|not authorized)"):
        open_table(f"sqlite:{tmp_path}/a.db#v")


def test_names_in_a_damaged_sqlite_file_that_are_not_utf_8_are_reported(tmp_path):
    path = tmp_path / "houses.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE sales (zipcode, price)")
        connection.commit()
    path.write_bytes(path.read_bytes().replace(b"(zipcode", b"(\xff\xfe\xfdcode"))
    with pytest.raises(TableContentError, match="cannot be read: 'utf-8' codec"):
        open_table(f"sqlite:{path}")


def test_tables_whose_names_begin_with_sqlite_are_found(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        # AUTOINCREMENT makes SQLite's own table sqlite_sequence.
        connection.execute("CREATE TABLE sqlites (a INTEGER PRIMARY KEY AUTOINCREMENT)")
        connection.execute("INSERT INTO sqlites VALUES (7)")
        connection.commit()
    assert open_table(f"sqlite:{tmp_path}/a.db").read().rows() == [(7,)]
