"""Tables of all formats, opened in the same way, and the code that reads them again."""

from __future__ import annotations

import gzip
import math
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep._files import open_table, write_table
from sufrep._files._sources import as_text
from sufrep.errors import (
    FileEndingError,
    InvalidParameterError,
    MissingDependencyError,
    TableColumnError,
    TableContentError,
    TableNotFoundError,
)

# .pq is read as .parquet, and .arrow and .ipc as .feather.
ENDINGS = ["csv", "tsv", "parquet", "feather"]
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)


def rows_of(n: int) -> st.SearchStrategy[pl.DataFrame]:
    def column(values: st.SearchStrategy[object]) -> st.SearchStrategy[list[object]]:
        return st.lists(st.none() | values, min_size=n, max_size=n)

    return st.builds(
        lambda text, whole, number, truth: pl.DataFrame(
            {"text": text, "whole": whole, "number": number, "truth": truth},
            schema={"text": pl.String, "whole": pl.Int64, "number": pl.Float64, "truth": pl.Boolean},
        ),
        column(texts),
        column(st.integers(-(2**63), 2**63 - 1)),
        column(st.floats()),
        column(st.booleans()),
    )


frames = st.integers(1, 12).flatmap(rows_of)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@pytest.mark.parametrize("ending", ENDINGS)
@given(frame=frames)
def test_tables_are_read_as_they_were_written(folder, ending, frame):
    path = folder / f"table.{ending}"
    write_table(frame, path)
    source = open_table(path, text=["text"])
    # In a text file, a column without any value has no type.
    assert source.read().cast(frame.schema).equals(frame)
    assert (source.n_rows, source.names) == (frame.height, tuple(frame.columns))


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
@given(frame=frames, size=st.integers(1, 13))
@settings(max_examples=15, deadline=None)
def test_batches_together_are_the_table_and_none_is_too_large(folder, ending, frame, size):
    path = folder / f"batches.{ending}"
    write_table(frame, path)
    source = open_table(path, text=["text"])
    batches = list(source.batches(size))
    assert pl.concat(batches).equals(source.read())
    assert all(1 <= batch.height <= size for batch in batches)


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_a_sample_is_drawn_without_replacement_in_the_order_of_the_table(folder, ending):
    path = folder / f"sample.{ending}"
    write_table(pl.DataFrame({"i": range(1000)}), path)
    source = open_table(path)
    sample = source.read(100, seed=3)["i"].to_list()
    assert len(set(sample)) == 100
    assert sample == sorted(sample)
    assert sample == source.read(100, seed=3)["i"].to_list()
    assert sample != source.read(100, seed=4)["i"].to_list()


def test_every_row_is_drawn_as_often_as_any_other(written):
    source = open_table(written("i\n" + "\n".join(map(str, range(10)))))
    drawn = [i for seed in range(200) for i in source.read(3, seed)["i"]]
    assert all(35 <= drawn.count(i) <= 85 for i in range(10))  # 60 expected, standard deviation 6.5


def test_a_sample_larger_than_the_table_is_the_table(written):
    source = open_table(written("i\n1\n2\n"))
    assert source.read(2)["i"].to_list() == source.read(9)["i"].to_list() == [1, 2]


def test_a_sample_of_nothing_is_refused(written):
    with pytest.raises(InvalidParameterError, match="n_rows is 0"):
        open_table(written("i\n1\n")).read(0)


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_stored_numbers_become_text_on_request(folder, ending):
    path = folder / f"typed.{ending}"
    write_table(pl.DataFrame({"zip": [98178, None], "area": [206.0, 206.5], "x": [1, 2]}), path)
    frame = open_table(path, text=["zip", "area"]).read()
    assert frame.rows() == [("98178", "206", 1), (None, "206.5", 2)]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_dropped_columns_leave_no_trace(folder, ending):
    path = folder / f"less.{ending}"
    write_table(pl.DataFrame({"id": ["01", "02"], "x": [1, 2]}), path)
    source = open_table(path, drop=["id"])
    assert source.names == ("x",)
    assert source.notes == ()
    assert source.read().columns == ["x"]


def test_a_column_of_lists_is_not_text(folder):
    path = folder / "nested.parquet"
    write_table(pl.DataFrame({"a": [[1, 2]], "b": [1]}), path)
    assert open_table(path, drop=["a"]).read().columns == ["b"]
    with pytest.raises(TableContentError, match=r"holds List\(Int64\) in column 'a'"):
        open_table(path, text=["a"])


def test_a_name_may_hold_brackets(folder):
    (folder / "[1]").mkdir()
    for ending in ("csv", "parquet", "feather"):
        path = folder / "[1]" / f"table[*].{ending}"
        write_table(pl.DataFrame({"a": [1]}), path)
        assert open_table(path).read().rows() == [(1,)]


def test_endings_may_be_in_capitals_and_files_compressed(written):
    assert open_table(written("a,b\n1,2\n", "TABLE.CSV")).n_rows == 1
    assert open_table(written(gzip.compress(b"a,b\n1,2\n"), "table.CSV.gz")).read().rows() == [(1, 2)]


@pytest.mark.parametrize("ending", ["pq", "arrow", "ipc"])
def test_every_ending_of_a_format_is_read(folder, ending):
    write_table(pl.DataFrame({"a": [1]}), folder / f"table.{ending}")
    assert open_table(folder / f"table.{ending}").read().rows() == [(1,)]


def test_a_path_may_be_text(written):
    assert open_table(str(written("a\n1\n"))).where.endswith("table.csv")


@pytest.mark.parametrize("option", ["text", "drop"])
def test_a_column_that_is_not_there_suggests_one_that_is(written, option):
    with pytest.raises(TableColumnError, match=r"has no column 'zipcod'.\nHint: did you mean 'zipcode'"):
        open_table(written("zipcode,x\n1,2\n"), **{option: ["zipcod"]})


def test_a_column_that_is_expected_anyway_is_not_suggested(written):
    with pytest.raises(TableColumnError, match=r"no column 'sqft_lot'.\nHint: the columns are 'sqft_living'"):
        open_table(written("sqft_living,x\n1,2\n"), needed=["sqft_lot", "sqft_living"])
    with pytest.raises(TableColumnError, match=r"no column 'zipcod'.\nHint: did you mean 'zip_code' for"):
        open_table(written("zipcode,zip_code\n1,2\n"), text=["zipcod"], needed=["zipcode"])


def test_a_required_column_unlike_any_other_lists_the_columns(written):
    with pytest.raises(TableColumnError, match=r"no column 'hospital'.\nHint: the columns are 'a', 'b'."):
        open_table(written("a,b\n1,2\n"), needed=["a", "hospital"])


def test_a_missing_file_suggests_its_neighbour(written):
    written("a\n1\n", "houses.csv")
    with pytest.raises(
        TableNotFoundError, match=r"no file .*house.csv'.\nHint: did you mean .*houses.csv'\?$"
    ):
        open_table(written("x", "other.bin").parent / "house.csv")


def test_a_missing_file_unlike_its_neighbours_is_reported_with_its_folder(tmp_path):
    with pytest.raises(TableNotFoundError, match="Hint: check the spelling; the folder is"):
        open_table(tmp_path / "houses.csv")


def test_a_missing_folder_is_reported(tmp_path):
    with pytest.raises(TableNotFoundError, match=r"There is no folder .*nowhere"):
        open_table(tmp_path / "nowhere" / "houses.csv")


def test_a_name_that_the_system_does_not_accept_is_reported(tmp_path):
    (tmp_path / "circle.csv").symlink_to("circle.csv")
    for name in ("a" * 300 + ".csv", "circle.csv", "null\0.csv"):
        with pytest.raises(TableNotFoundError, match=r"cannot be opened: .*\nHint: check its name"):
            open_table(tmp_path / name)


def test_a_folder_is_not_a_table(tmp_path):
    with pytest.raises(TableContentError, match=r"is a folder.\nHint: name a file in it"):
        open_table(tmp_path)


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather", "csv.gz"])
def test_an_empty_file_is_refused(written, ending):
    with pytest.raises(TableContentError, match="is empty: 0 bytes"):
        open_table(written(b"", f"table.{ending}"))


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_a_file_without_rows_is_refused(folder, ending):
    path = folder / f"norows.{ending}"
    write_table(pl.DataFrame({"a": []}, schema={"a": pl.Int64}), path)
    with pytest.raises(TableContentError, match="has columns but no rows"):
        open_table(path)


@pytest.mark.parametrize(("name", "hint"), [("a.xlsx", "save it as"), ("a.sqlite", "sqlite:.*#sales")])
def test_an_unknown_ending_is_refused_with_a_hint(written, name, hint):
    with pytest.raises(FileEndingError, match=f"none of .csv, .*\nHint: .*{hint}"):
        open_table(written("x", name))


@pytest.fixture(scope="module", params=["parquet", "feather"])
def sound(request, folder):
    """The bytes of a file, and its ending."""
    path = folder / f"sound.{request.param}"
    write_table(pl.DataFrame({"zip": [f"{i % 97:05d}" for i in range(500)], "x": range(500)}), path)
    return path.read_bytes(), request.param


@pytest.mark.parametrize("share", [0.001, 0.5, 0.999])
def test_truncated_files_are_refused(written, sound, share):
    content, ending = sound
    path = written(content[: int(len(content) * share) + 1], f"cut.{ending}")
    with pytest.raises(TableContentError, match=r"cannot be read; it may be damaged"):
        open_table(path)


def test_damaged_files_are_refused_or_read_but_never_crash(written):
    frame = pl.DataFrame({"zip": [f"{i % 97:05d}" for i in range(500)], "x": range(500)})
    code = (
        "import sys, pathlib\n"
        "from sufrep._files import open_table\n"
        "from sufrep.errors import TableContentError\n"
        "for path in map(pathlib.Path, sys.argv[1:]):\n"
        "    content = path.read_bytes()\n"
        "    for position in range(max(0, len(content) - 600), len(content), 10):\n"
        "        damaged = bytearray(content)\n"
        "        damaged[position] ^= 0x55\n"
        "        path.write_bytes(damaged)\n"
        "        try:\n"
        "            open_table(path).read()\n"
        "        except TableContentError as error:\n"
        "            print(str(error).splitlines()[0])\n"
    )
    paths = [written(b"", f"flipped.{ending}") for ending in ("parquet", "feather")]
    for path in paths:
        write_table(frame, path)
    # In a process of its own, because polars ends it where a flipped byte makes it ask for 2**61 bytes.
    shown = subprocess.run([sys.executable, "-c", code, *map(str, paths)], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    messages = shown.stdout.splitlines()
    for path in paths:
        assert sum(str(path) in message for message in messages) > 10
    assert all("cannot be read; it may be damaged" in message for message in messages)


def test_a_panic_of_polars_is_an_error_of_ours(written, sound, monkeypatch):
    def panic(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException("index out of bounds")

    source = open_table(written(sound[0], f"sound.{sound[1]}"))
    monkeypatch.setattr(pl.LazyFrame, "collect", panic)
    with pytest.raises(TableContentError, match=r"cannot be read; .* \(index out of bounds\)"):
        source.read()


def test_damage_that_shows_late_is_an_error_of_ours_too(written):
    path = written("a,b\n" + "1,2\n" * 1000)
    source = open_table(path)
    path.write_text("a,b\n" + "1,2\n" * 500 + "1,2,3\n" * 500)
    with pytest.raises(TableContentError, match="cannot be read"):
        list(source.batches(100))


def test_a_broken_archive_is_refused(written):
    path = written(gzip.compress(b"a,b\n1,2\n" * 1000)[:40], "cut.csv.gz")
    with pytest.raises(TableContentError, match="cannot be read; it may be damaged"):
        open_table(path)


def test_without_polars_the_extra_is_named(monkeypatch, written):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingDependencyError, match=r"needs the package 'polars'.*\n.*sufrep\[cli\]"):
        open_table(written("a\n1\n"))


# Levels of typed columns


@pytest.mark.parametrize(
    ("values", "dtype", "text"),
    [
        ([98178, None], pl.Int64, ["98178", None]),
        ([98178.0, 1.5, None, math.nan, -0.0], pl.Float64, ["98178", "1.5", None, None, "0"]),
        ([1e300, math.inf], pl.Float64, ["1e+300", "inf"]),
        ([2**100], pl.Int128, [str(2**100)]),
        (["01234", None], pl.String, ["01234", None]),
        (["a", "b"], pl.Categorical, ["a", "b"]),
        ([True, None], pl.Boolean, ["true", None]),
        ([Decimal("7.00"), Decimal("7.50")], pl.Decimal(5, 2), ["7", "7.50"]),
        ([date(2020, 1, 31)], pl.Date, ["2020-01-31"]),
        ([None], pl.Null, [None]),
    ],
)
def test_numbers_become_their_digits_and_nulls_stay_null(values, dtype, text):
    frame = pl.DataFrame({"a": pl.Series(values, dtype=dtype)})
    column = frame.select(as_text("a", frame.schema["a"]))["a"]
    assert column.dtype == pl.String
    assert column.to_list() == text


# The code that reads a table again


def check_code(table: str | Path, text: Sequence[str] = ("zip",), drop: Sequence[str] = ()) -> str:
    """Run the code of a table, and compare its frame with what was read."""
    source = open_table(table, text=text, drop=drop)
    namespace: dict[str, Any] = {}
    exec(source.code, namespace)
    rows = source.read()
    assert namespace["table"].schema == rows.schema
    assert namespace["table"].equals(rows)
    return source.code


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("comma.csv", "zip,size,price\n01234,1,2.5\n00007,2,3.5\n", "'zip': pl.String, 'size': pl.Int64"),
        ("semicolon.csv", "zip;size\n01234;1,5\n00007;-2,5e3\n", "separator=';', decimal_comma=True"),
        ("thousands.csv", "zip;size;price\n01;1.234,5;2.000\n02;2,5;NA\n", ".str.replace(',', '.'"),
        ("tab.tsv", "zip\tsize\n01234\t1\n", r"separator='\\t'"),
        ("pipe.txt", "zip|size\n01234|1\n", "separator='|'"),
        ("na.csv", "zip,size,price\nNA,NA,2.5\n07,2,N/A\n", "null_values={'size': 'NA', 'price': 'N/A'}"),
        ("spellings.csv", "zip,size\n1,NA\n2,null\nx,1\n", "pl.col('size').str.strip_chars().cast(pl.Int64"),
        ("namibia.csv", "zip,country,price\n1,NA,NA\n2,DE,1\n", "null_values={'price': 'NA'}"),
        ("quoted.csv", 'zip,size,price\n"01234","1","2.5"\n"a ""b""","","NA"\n', "'size': pl.Int64"),
        ("blank_lines.csv", "zip,size\n1,2\n\n00007,\n", "table.filter("),
        ("blank_lines.csv", "zip,size,x\n1,2,3\n\nNA,NA,NA\n", "table.filter("),
        ("padded.csv", "zip , size,ok\n1, 2, TRUE\n00007, 5 ,NA\n", "new_columns=['zip', 'size', 'ok']"),
        ("returns.csv", '"zip","size"\r\r\n"01",1\r\r\n"02",2\r\r\n', "new_columns=['zip', 'size']"),
        ("unnamed.csv", ",zip\n0,01\n1,02\n", "'column_1': pl.Int64"),
        ("boolean.csv", "zip,size\n1,TRUE\n2,false\n3,NA\n", "'size': pl.Boolean"),
        ("nothing.csv", "zip,size\n1,NA\n2,\n", "pl.lit(None, pl.String).alias('size')"),
        ("gaps.csv", "zip,size,x\n1,,1\n2,,2\n", "'size': pl.String"),
        ("empty_quotes.csv", 'zip,size\n1,""\n2,\n', "pl.lit(None, pl.String).alias('size')"),
        ("large.csv", f"zip,size,x\n1,{2**64 - 1},{10**30}\n", "'size': pl.UInt64, 'x': pl.String"),
        ("odd.csv", "zip,size,x\n1,+1,inf\n2,007,NaN\n3,-5,.5\n", "'size': pl.Int64, 'x': pl.Float64"),
        ("dates.csv", "zip,size\n01234,2014-10-13\n", "infer_schema=False"),
        ("mark.csv", "\ufeffzip,size\n01,1\n", "'size': pl.Int64"),
        ("lines.csv", "zip,size\r\n01,x\r\n", "infer_schema=False"),
        ("old_lines.csv", "zip,size\r01,1\r", r"eol_char='\\r'"),
        ("it's [1].csv", "zip,size\n01,1\n", "glob=False"),
        ("wide.csv", ",".join(["zip", *(f"x{j}" for j in range(40))]) + "\n" + "1," * 40 + "1\n", "x39"),
    ],
)
def test_the_code_of_a_text_file_reads_the_same_rows(written, name, content, expected):
    code = check_code(written(content, name)).replace("\n    ", " ").replace("\\", "\\\\")
    assert expected in code


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_the_code_handles_encoding_and_compression(written, encoding, ending):
    content = f"zip;Größe\nKöln{chr(0x81) if encoding == 'latin-1' else ''};1,5\n".encode(encoding)
    assert f"encoding='{encoding}'" in check_code(
        written(gzip.compress(content) if ending == "csv.gz" else content, f"orte.{ending}")
    )


def test_the_code_of_a_compressed_file_is_one_call(written):
    code = check_code(written(gzip.compress(b"zip,size\n01,1\n"), "table.csv.gz"))
    assert code.count("\n\n") == 1
    assert "gzip" not in code


@pytest.mark.parametrize("name", ["typed.parquet", "typed[1].parquet", "typed.feather", "typed[1].feather"])
def test_the_code_of_a_typed_file_turns_numbers_into_text(tmp_path, name):
    columns = {
        "zip": [98178, None],
        "area": [206.0, -0.0],
        "kind": pl.Series(["a", "b"], dtype=pl.Categorical),
        "cost": pl.Series([Decimal("7.00"), Decimal("7.50")]),
        "id": [1, 2],
    }
    write_table(pl.DataFrame(columns), tmp_path / name)
    code = check_code(tmp_path / name, text=["zip", "area", "kind", "cost"], drop=["id"])
    assert code.endswith("table = table.drop('id')")


def test_the_code_of_a_sqlite_table_gives_each_column_one_type(tmp_path):
    with closing(sqlite3.connect(tmp_path / "it's.db")) as connection:
        connection.execute(
            'CREATE TABLE "my sales" (zip INTEGER, price DOUBLE, name VARCHAR, mixed, bytes, no)'
        )
        rows = [(1, 1.5, "a", 1, b"x", None), (2, 2, "b", 2.0, None, None), (3, None, None, "x", None, None)]
        connection.executemany('INSERT INTO "my sales" VALUES (?, ?, ?, ?, ?, ?)', rows)
        connection.commit()
    assert "sqlite3.connect" in check_code(f"sqlite:{tmp_path}/it's.db")
    assert check_code(f"sqlite:{tmp_path}/it's.db", text=["price"], drop=["bytes", "no"])


def test_the_code_of_a_duckdb_table_reads_types_that_only_duckdb_has(tmp_path):
    with closing(duckdb.connect(tmp_path / "it's.db")) as connection:
        connection.execute(
            "CREATE TABLE sales AS SELECT 98178 AS zip, 1::HUGEINT AS huge, INTERVAL 1 DAY AS span, "
            "'a'::ENUM('a', 'b') AS kind, 7.5::DECIMAL(9, 2) AS cost, [1, 2] AS list, "
            "TIMESTAMPTZ '2020-01-01 00:00:00+00' AS zoned, TIMESTAMP_S '2020-01-01 00:00:00' AS second"
        )
        connection.execute("CREATE TABLE plain AS SELECT 1 AS zip, 2.5::DOUBLE AS price")
    assert "CAST" in check_code(f"duckdb:{tmp_path}/it's.db#sales")
    assert "SELECT * FROM" in check_code(f"duckdb:{tmp_path}/it's.db#plain", drop=["price"])


@given(frame=frames)
@settings(max_examples=15, deadline=None)
def test_the_code_reads_whatever_was_written(folder, frame):
    for ending in ("csv", "parquet"):
        path = folder / f"code.{ending}"
        write_table(frame, path)
        check_code(path, text=["text"])
