"""The code of the report reads a table as the command did, or is not there."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sufrep._files import open_table
from sufrep.cli._encode import Roles
from sufrep.cli._loading import loading_code

ROLES = Roles(("zip",), "price", (), ())
NUMBERS = pl.DataFrame({"zip": [98178, 98001], "size": [1, 2], "price": [1.5, 2.5]})


def code_of(path: Path, roles: Roles = ROLES, text: Any = ()) -> tuple[str | None, pl.DataFrame]:
    """The code for a file, and the rows as the command reads them."""
    source = open_table(path, text=(*roles.group, *text), drop=roles.drop)
    return loading_code(source, roles, text), source.read()


def run(code: str | None) -> dict[str, Any]:
    place: dict[str, Any] = {}
    assert code is not None
    exec(code, place)
    return place


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("zeros.csv", "zip,size,price\n01234,1,2.5\n00007,2,3.5\n"),
        ("semicolons.csv", "zip;size;price\n01234;1;2\n00007;2;3\n"),
        ("tabs.tsv", "zip\tsize\tprice\n01234\t1\t2.5\n00007\t2\t3.5\n"),
        ("bars.txt", "zip|size|price\n01234|1|2.5\n00007|2|3.5\n"),
        ("nulls.csv", "zip,size,price\n01234,NA,2.5\n00007,2,3.5\n"),
        ("more_nulls.csv", "zip,size,price\n01234,N/A,2.5\n00007,NULL,3.5\n1,2,3\n"),
        ("gaps.csv", "zip,size,price\n01234,,2.5\n00007,,3.5\n"),
        ("words.csv", 'zip,size,price\n"01234",TRUE,2.5\n"a ""b""",false,3.5\n'),
        ("dates.csv", "zip,size,price\n01234,2014-10-13,2.5\n00007,2015-01-01,3.5\n"),
        ("mark.csv", "\ufeffzip,size,price\n01234,1,2.5\n"),
        ("lines.csv", "zip,size,price\r\n01234,1,2.5\r\n"),
        ("it's.csv", "zip,size,price\n01234,1,2.5\n"),
    ],
)
def test_text_files_are_read_alike(tmp_path, name, content):
    (tmp_path / name).write_bytes(content.encode())
    code, rows = code_of(tmp_path / name)
    place = run(code)
    assert place["X"].equals(rows.drop("price"))
    assert place["X"].schema == rows.drop("price").schema
    assert place["y"].equals(rows["price"])


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float64, pl.String, pl.Categorical])
def test_levels_that_are_stored_as_numbers_become_text_alike(tmp_path, ending, dtype):
    path = tmp_path / f"houses.{ending}"
    table = NUMBERS.with_columns(
        pl.col("zip").cast(pl.String if dtype != pl.Float64 else pl.Float64).cast(dtype)
    )
    table.write_parquet(path) if ending == "parquet" else table.write_ipc(path)
    place = run(code_of(path)[0])
    assert place["X"]["zip"].to_list() == ["98178", "98001"]


def test_columns_that_were_chosen_left_out_or_read_as_text_are_so_in_the_code(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text("id,zip,code,size,price\n1,01,007,1,2.5\n2,02,008,2,3.5\n")
    place = run(code_of(path, Roles(("zip",), "price", ("size",), ()))[0])
    assert place["X"].columns == ["zip", "size"]
    place = run(code_of(path, Roles(("zip",), "price", (), ("id",)), text=("code",))[0])
    assert place["X"].columns == ["zip", "code", "size"]
    assert place["X"]["code"].to_list() == ["007", "008"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("latin.csv", "zip,size,price\nKöln,1,2.5\n".encode("latin-1")),
        ("commas.csv", b"zip;size;price\n01;1,5;2,5\n02;2,5;3,5\n"),
        ("blanks.csv", b"zip, size,price\n01, 1,2.5\n"),
        ("packed.csv.gz", gzip.compress(b"zip,size,price\n01,1,2.5\n", mtime=0)),
    ],
)
def test_without_plain_code_that_does_it_there_is_none(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert code_of(tmp_path / name)[0] is None


def test_levels_that_plain_code_spells_otherwise_have_none(tmp_path):
    NUMBERS.with_columns(zip=pl.Series([98178.0, 0.5])).write_parquet(tmp_path / "houses.parquet")
    code, rows = code_of(tmp_path / "houses.parquet")
    assert rows["zip"].to_list() == ["98178", "0.5"]
    assert code is None


def test_a_large_table_is_not_read_twice(tmp_path, monkeypatch):
    NUMBERS.write_parquet(tmp_path / "houses.parquet")
    monkeypatch.setitem(loading_code.__globals__, "_MOST_ROWS", 1)
    assert code_of(tmp_path / "houses.parquet")[0] is None
