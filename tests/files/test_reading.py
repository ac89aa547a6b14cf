"""How a table was read holds for later tables; what contradicts it is an error that shows both readings."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime
from itertools import product

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep._files import ColumnReading, TableReading, open_table, write_table
from sufrep.errors import ReadingMismatchError

COMMAS = "g;x\na;1,5\nb;2.876\n"
POINTS = "g,x\na,1.5\nb,2.876\n"


def read_as(old, new, **options):
    """The rows of a new table, read as an old one."""
    return open_table(new, reading=open_table(old, **options).reading).read()


def test_what_was_found_is_recorded(written):
    found = open_table(written("g;when;x\nä;2024-01-01;1,5\nb;;NA\n".encode("cp1252"))).reading
    assert found == TableReading(
        (ColumnReading("g", "text"), ColumnReading("when", "text"), ColumnReading("x", "number")),
        decimal=",",
        thousands=".",
        nulls=("", "NA", "N/A", "n/a", "null", "NULL", "None"),
        separator=";",
        encoding="cp1252",
    )


def test_columns_without_values_are_not_recorded(written):
    assert open_table(written("g,x\na,\nb,NA\n")).reading.columns == (ColumnReading("g", "text"),)


@pytest.mark.parametrize(("old", "expected"), [(COMMAS, 1708.0), (POINTS, 1.708)])
@pytest.mark.parametrize("new", ["g;x\na;1.708\n", "g,x\na,1.708\n", 'g|x\na|"1.708"\n', "g\tx\na\t1.708\n"])
def test_the_decimal_sign_is_that_of_the_first_table(old, expected, new, written):
    assert read_as(written(old, "old.csv"), written(new))["x"].to_list() == [expected]


@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), min_size=1, max_size=5), st.booleans())
def test_a_table_in_the_same_notation_is_read_alike_whatever_its_values_are(tmp_path_factory, values, commas):
    folder = tmp_path_factory.mktemp("tables")
    frame = pl.DataFrame({"g": "a", "x": pl.Series(values, dtype=pl.Float64)})
    (folder / "old.csv").write_text(COMMAS if commas else POINTS)
    frame.write_csv(folder / "new.csv", separator=";", decimal_comma=commas, float_scientific=False)
    assert read_as(folder / "old.csv", folder / "new.csv")["x"].to_list() == values


@pytest.mark.parametrize(
    ("old", "new", "found", "expected"),
    [
        (
            COMMAS,
            "g;x\na;1,5\nb;1.5\n",
            "'1.5' in row 2, which is 1.5 with a decimal point",
            "decimal commas",
        ),
        (POINTS, "g;x\na;1,5\n", "'1,5' in row 1, which is 1.5 with a decimal comma", "decimal points"),
        (POINTS, "g,x\na,?\n", r"'\?' in row 1, which is no number", "decimal points"),
        ("g,x\na,1\n", "g,x\na,1\nb,many\n", "'many' in row 2, which is no number", "numbers there"),
        ("g,x\na,1\n", "g,x\na,true\nb,2\n", "'true' in row 1, which is no number", "numbers there"),
    ],
)
def test_a_contradiction_shows_both_readings(old, new, found, expected, written):
    with pytest.raises(
        ReadingMismatchError, match=rf"(?s)Column 'x' of .*{found}.*{expected}.*\nHint: write"
    ):
        read_as(written(old, "old.csv"), written(new))


def test_numbers_without_a_decimal_sign_settle_nothing(written):
    old = written("g,x\na,1\n", "old.csv")
    assert open_table(old).reading.decimal is None
    assert read_as(old, written("g;x\na;1,5\n"))["x"].to_list() == [1.5]
    assert read_as(old, written("g,x\na,1.5\n"))["x"].to_list() == [1.5]


def test_a_number_stays_a_number_and_text_stays_text(written):
    old = written("code,x\n001,1.5\nx,2\n", "old.csv")
    new = written(f"code,x\n1,{10**30}\nNA,NA\n")
    assert read_as(old, new).rows() == [("1", 1e30), ("NA", None)]
    new = written("code,x\n001,\n,\n")
    assert read_as(old, new).rows() == [("001", None), (None, None)]


def test_columns_of_one_table_alone_do_not_matter(written):
    new = written("g;new;x\na;2,5;1,5\n")
    assert read_as(written(COMMAS, "old.csv"), new)["new"].to_list() == [2.5]
    assert read_as(written(COMMAS, "old.csv"), written("new\n1.5\n")).columns == ["new"]
    # It stays as it is written, because it is no number in the notation of the first table.
    assert read_as(written(COMMAS, "old.csv"), written("new;x\n1.5;2\n"))["new"].to_list() == ["1.5"]


FRAME = pl.DataFrame(
    {
        "g": ["01", "02", None],
        "x": [1.5, None, 2876.0],
        "flag": [True, False, None],
        "day": pl.Series(["2024-01-01", None, "2024-02-01"]).str.to_date(),
    }
)


def save(frame: pl.DataFrame, folder, name: str):
    """Write the frame in the format of the name, as ``folder / name``."""
    path = folder / name
    if name.endswith(".db"):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE t (g TEXT, x REAL, flag INTEGER, day TEXT)")
            rows = frame.with_columns(pl.col("day").cast(pl.String)).rows()
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
            connection.commit()
        return f"sqlite:{path}"
    if name == "commas.csv":
        frame.write_csv(path, separator=";", decimal_comma=True)
    else:
        write_table(frame, path)
    return path


def test_the_same_table_may_come_in_any_format(tmp_path):
    names = ("a.csv", "commas.csv", "a.tsv", "a.parquet", "a.arrow", "a.db")
    sources = {name: save(FRAME, tmp_path, name) for name in names}
    for old, new in product(names, names):
        if {old, new} == {"commas.csv", "a.csv"} or {old, new} == {"commas.csv", "a.tsv"}:
            continue  # these do contradict each other
        found = open_table(sources[new], reading=open_table(sources[old], text=["g"]).reading).read()
        assert found["g"].to_list() == ["01", "02", None], (old, new)
        assert found["x"].to_list() == [1.5, None, 2876.0], (old, new)
        assert found["flag"].cast(pl.Int8).to_list() == [1, 0, None], (old, new)
    with pytest.raises(ReadingMismatchError, match="with a decimal comma"):
        read_as(sources["a.csv"], sources["commas.csv"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ([1.5], ["a"], r"holds text \(String\)\. .* has numbers there"),
        ([datetime(2024, 1, 1)], [1], r"holds numbers \(Int64\)\. .* has dates or times there"),
        ([[1]], [1], r"holds numbers \(Int64\)\. .* has other values there"),
    ],
)
def test_typed_columns_of_another_kind_are_refused(old, new, message, tmp_path):
    pl.DataFrame({"x": old}).write_parquet(tmp_path / "old.parquet")
    pl.DataFrame({"x": new}).write_parquet(tmp_path / "new.parquet")
    with pytest.raises(ReadingMismatchError, match=message):
        read_as(tmp_path / "old.parquet", tmp_path / "new.parquet")


@pytest.mark.parametrize("text", [[], ["when"]], ids=["times", "a group of times"])
@pytest.mark.parametrize(
    ("zone", "message"),
    [("Europe/Zurich", "holds times of the zone 'Europe/Zurich'"), (None, "holds times without a zone")],
)
def test_times_of_another_zone_are_refused(zone, message, text, tmp_path):
    for name, one in (("old", "UTC"), ("new", zone)):
        when = pl.Series([datetime(2024, 1, 1)]).dt.replace_time_zone(one)
        pl.DataFrame({"when": when}).write_parquet(tmp_path / f"{name}.parquet")
    assert read_as(tmp_path / "old.parquet", tmp_path / "old.parquet", text=text).height == 1
    with pytest.raises(ReadingMismatchError, match=rf"{message}\. .* has times of the zone 'UTC' there"):
        read_as(tmp_path / "old.parquet", tmp_path / "new.parquet", text=text)


@pytest.mark.parametrize(
    "reading",
    [
        TableReading(columns=[ColumnReading("x", "number")]),  # type: ignore[arg-type]
        TableReading(columns=("x",)),  # type: ignore[arg-type]
        TableReading(columns=(ColumnReading("x", "wonder"),)),
        TableReading(columns=(ColumnReading(1, "text"),)),  # type: ignore[arg-type]
        TableReading(decimal=";"),
        TableReading(decimal=","),
        TableReading(decimal=".", thousands=","),
        TableReading(encoding=3),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_a_record_that_no_table_gives_is_refused(reading):
    with pytest.raises(ValueError, match=r"^(no|an unknown)"):
        reading.check()
