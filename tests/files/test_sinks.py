"""Tables that polars writes while it reads."""

from __future__ import annotations

import sys

import duckdb
import polars as pl
import pytest

from sufrep._files import batch_sink, check_database, check_partitions, open_table, table_sink
from sufrep.errors import EngineError, FileEndingError, MissingDependencyError, NotWritableError

FRAME = pl.DataFrame({"g": ["01", "02", None, "a/b"], "x": [1.5, 2.5, None, 4.5], "n": [1, 2, 3, 4]})


def fail(_: pl.DataFrame) -> pl.DataFrame:
    raise pl.exceptions.ComputeError("a page is damaged\nin a file")


def write_table_and_fail(path: object, by: list[str], **options: bool) -> None:
    """Something else fails after the table is written, such as the encoder's file."""
    with table_sink(path, by, **options) as write:  # type: ignore[arg-type]
        write(FRAME.lazy().head(1))
        raise KeyError("later")


FAILING = FRAME.lazy().map_batches(fail, schema=FRAME.schema)
ENDINGS = ["csv", "tsv", "csv.gz", "parquet", "pq", "feather", "arrow"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_hold_the_rows(tmp_path, ending):
    with table_sink(tmp_path / f"out.{ending}") as write:
        write(FRAME.lazy())
        assert not (tmp_path / f"out.{ending}").exists()
    path = tmp_path / f"out.{ending}"
    assert open_table(path, text=["g"]).read().equals(FRAME)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_parts_keep_their_types_and_nulls(tmp_path):
    with table_sink(tmp_path / "out", ["g", "n"]) as write:
        write(FRAME.lazy())
    parts = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet"))
    assert [part.rpartition("/")[0] for part in parts] == [
        "out/g=01/n=1",
        "out/g=02/n=2",
        "out/g=__HIVE_DEFAULT_PARTITION__/n=3",
        "out/g=a%2Fb/n=4",
    ]
    assert open_table([str(tmp_path / part) for part in parts]).read().sort("n").equals(FRAME)


@pytest.mark.parametrize("place", ["out.csv", "out.parquet", "parts", "duckdb"])
def test_nothing_is_left_of_what_fails(tmp_path, place):
    by = ["g"] if place == "parts" else []
    path = f"duckdb:{tmp_path}/out.db#t" if place == "duckdb" else tmp_path / place
    with (
        pytest.raises(
            EngineError,
            match=r"^polars failed while writing '.*ComputeError: a page is damaged\nHint: nothing",
        ),
        table_sink(path, by) as write,
    ):
        write(FAILING)
    with pytest.raises(KeyError, match="later"):
        write_table_and_fail(path, by)
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_fails_leaves_the_database_as_it_was(tmp_path):
    path = f'duckdb:{tmp_path}/out.db#a "table"'
    with table_sink(path) as write:
        write(FRAME.lazy())
    assert check_database(path)  # type: ignore[arg-type]
    for replace, error in ((True, KeyError), (False, NotWritableError)):
        with pytest.raises(error, match=r"later|already exists"):
            write_table_and_fail(path, [], replace=replace)
    with duckdb.connect(str(tmp_path / "out.db"), read_only=True) as connection:
        assert connection.table('"a ""table"""').pl().equals(FRAME)
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.db"]


def test_without_duckdb_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingDependencyError, match="Writing a DuckDB table needs the package 'duckdb'"):  # noqa: SIM117
        with table_sink(f"duckdb:{tmp_path}/out.db#t"):
            pass


@pytest.mark.parametrize("place", ["out.parquet", "parts", "duckdb"])
def test_batches_become_one_table_in_their_order(tmp_path, place):
    path = f"duckdb:{tmp_path}/out.db#t" if place == "duckdb" else tmp_path / place
    with batch_sink(path, ["g"] if place == "parts" else []) as write:
        for start in range(0, 4, 2):
            write(FRAME[start : start + 2])
    if place == "parts":
        parts = [str(part) for part in path.rglob("*.parquet")]  # type: ignore[union-attr]
        assert open_table(parts).read().sort("n").equals(FRAME)
    else:
        assert open_table(path).read().equals(FRAME)


def test_partitioned_tables_are_recognised(tmp_path):
    check_partitions(tmp_path / "new")
    (tmp_path / "empty").mkdir()
    check_partitions(tmp_path / "empty")
    with table_sink(tmp_path / "parts", ["g", "n"]) as write:
        write(FRAME.lazy())
    check_partitions(tmp_path / "parts")
    for name in ("other.parquet", "g=01/letter.txt", "g=01/.git/config"):
        path = tmp_path / "parts" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
        with pytest.raises(NotWritableError, match="the folder holds other files than a partitioned table"):
            check_partitions(tmp_path / "parts")
        path.unlink()
        if path.parent.name == ".git":
            path.parent.rmdir()
    with pytest.raises(FileEndingError, match="a partitioned table is a folder of Parquet files"):
        check_partitions(tmp_path / "out.csv")
