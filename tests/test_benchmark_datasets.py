"""The further data sets: each rule of their preparation on a tiny file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sufrep.datasets import (
    _parquet,
    load_county_murders,
    load_dataset,
    load_insteval,
    load_nycflights,
    load_orange_juice,
)
from sufrep.errors import DataContentError, DataNotFoundError

JUICE: dict[str, Any] = {
    "store": [2, 2, 5],
    "brand": [1, 3, 1],
    "week": [40, 46, 47],
    "logmove": [9.5, 8.25, 7.0],
    "price1": [0.06, 0.05, 0.04],
    "profit": [37.0, 30.1, 30.0],
    "feat": [0.0, 1.0, 0.5],
    "store_brand": ["2_1", "2_3", "5_1"],
}
FLIGHTS: dict[str, Any] = {
    "arr_delay": [math.e**2 - 1, 0.0, 1 - math.e],
    "delayed15": [0, 0, 0],
    "tailnum": ["N14228", "N24211", "N14228"],
    "dest": ["IAH", "MIA", "IAH"],
    "carrier_flight": ["UA1545", "AA1141", "UA1"],
    "carrier": ["UA", "AA", "UA"],
    "origin": ["b", "B", "a"],
    "manufacturer": ["BOEING", None, "AIRBUS"],
    "plane_model": [None, "747", "737"],
    "month": [1, 2, 12],
    "temp": [39.02, None, 50.0],
    "seats": [149, None, 178],
}
MURDERS = (
    "arrests,countyid,density,popul,rpcpersinc,year,murders,murdrate,arrestrate,statefips,countyfips,"
    "execs,lpopul,execrate"
)
MURDERS_ROWS = [
    "2,1001,54.05,32216,8780.8,1980,2,0,0.6,1,1,0,10.4,0",
    ",56045,53.66,31984,NA,1981,1,1.718281828459045,,56,45,1,10.3,0.1",
]
INSTEVAL = "s,d,studage,lectage,service,dept,y"
INSTEVAL_ROWS = ["1,1002,2,3,0,4,5", "9,0050,6,1,1,15,2"]


def parquet(folder: Path, file: str, columns: dict[str, Any], **changed: Any) -> Path:
    """Write columns, some of them changed, or left out where the change is None."""
    kept = {name: values for name, values in {**columns, **changed}.items() if values is not None}
    pl.DataFrame(kept).write_parquet(folder / file)
    return folder


def juice(folder: Path, **changed: Any) -> Path:
    return parquet(folder, "orange_juice.parquet", JUICE, **changed)


def flights(folder: Path, **changed: Any) -> Path:
    return parquet(folder, "nycflights.parquet", FLIGHTS, **changed)


def murders(folder: Path, *rows: str, header: str = MURDERS) -> Path:
    (folder / "countymurders.csv").write_text("\n".join([header, *(rows or MURDERS_ROWS)]), encoding="utf-8")
    return folder


def insteval(folder: Path, *rows: str, header: str = INSTEVAL) -> Path:
    (folder / "insteval.csv").write_text("\n".join([header, *(rows or INSTEVAL_ROWS)]), encoding="utf-8")
    return folder


def install(monkeypatch: pytest.MonkeyPatch, *libraries: str) -> None:
    """Let these libraries be the only ones that can be found."""
    monkeypatch.setattr(_parquet, "find_spec", lambda name: name if name in libraries else None)


@pytest.fixture(params=["polars", "pyarrow"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The library that reads Parquet files."""
    install(monkeypatch, request.param)
    return str(request.param)


# What writes each data set's tiny file, and what the file is called.
WRITE = {"orange_juice": juice, "county_murders": murders, "insteval": insteval, "nycflights": flights}
FILES = {
    "orange_juice": "orange_juice.parquet",
    "county_murders": "countymurders.csv",
    "insteval": "insteval.csv",
    "nycflights": "nycflights.parquet",
}


# --- the preparation ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("library")
def test_orange_juice_leaves_out_the_profit_and_what_the_group_says(tmp_path):
    data = load_orange_juice(juice(tmp_path))
    assert (data.name, data.group, data.target) == ("orange_juice", "store_brand", "logmove")
    assert data.covariates == ("week", "price1", "feat")
    np.testing.assert_array_equal(data.X, [[40, 0.06, 0], [46, 0.05, 1], [47, 0.04, 0.5]])
    np.testing.assert_array_equal(data.y, [9.5, 8.25, 7])
    assert data.labels.tolist() == ["2_1", "2_3", "5_1"]


def test_county_murders_takes_the_logarithm_and_leaves_nulls(tmp_path):
    data = load_county_murders(murders(tmp_path))
    assert (data.name, data.group, data.target) == ("county_murders", "countyid", "log1p murdrate")
    assert data.covariates == ("density", "rpcpersinc", "year", "statefips", "execs", "lpopul")
    np.testing.assert_array_equal(
        data.X, [[54.05, 8780.8, 1980, 1, 0, 10.4], [53.66, math.nan, 1981, 56, 1, 10.3]]
    )
    np.testing.assert_allclose(data.y, [0, 1], rtol=1e-15)  # log(1 + (e - 1)) = 1
    assert data.labels.tolist() == ["1001", "56045"]


@pytest.mark.parametrize("names", [INSTEVAL, "s,d,dept,studage,lectage,service,y"])
def test_insteval_leaves_out_the_students(tmp_path, names):
    data = load_insteval(insteval(tmp_path, header=names))
    assert (data.name, data.group, data.target) == ("insteval", "d", "y")
    assert data.covariates == tuple(names.split(",")[2:6])
    np.testing.assert_array_equal(data.X, [[2, 3, 0, 4], [6, 1, 1, 15]])
    np.testing.assert_array_equal(data.y, [5, 2])
    assert data.labels.tolist() == ["1002", "0050"]


def test_insteval_needs_no_students_and_takes_no_further_column(tmp_path):
    data = load_insteval(insteval(tmp_path, "7,1,2,3,0,4,5", header=INSTEVAL.replace("s,", "row,", 1)))
    assert data.covariates == ("studage", "lectage", "service", "dept")


@pytest.mark.usefixtures("library")
def test_nycflights_codes_text_from_one_and_leaves_nulls(tmp_path):
    data = load_nycflights(flights(tmp_path))
    assert (data.name, data.group, data.target) == ("nycflights", "tailnum", "slog arr_delay")
    assert data.covariates == tuple(FLIGHTS)[5:]
    nan = math.nan
    # Capitals come first: "B", "a" and "b" are 1, 2 and 3.
    expected = [[2, 3, 2, nan, 1, 39.02, 149], [1, 1, nan, 2, 2, nan, nan], [2, 2, 1, 1, 12, 50, 178]]
    np.testing.assert_array_equal(data.X, expected)
    np.testing.assert_allclose(data.y, [2, 0, -1], rtol=1e-15)
    assert data.labels.tolist() == ["N14228", "N24211", "N14228"]


# --- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITE)
def test_a_file_that_is_not_there_is_told_with_its_origin(monkeypatch, tmp_path, name):
    install(monkeypatch)  # no library: the file comes first
    (tmp_path / "other.parquet").touch()
    text = rf"does not hold '{FILES[name]}'; its data files: other.parquet.\nHint: .* the R package \w+ \("
    with pytest.raises(DataNotFoundError, match=text):
        load_dataset(name, tmp_path)


@pytest.mark.parametrize("name", WRITE)
def test_without_a_folder_the_error_names_the_file(monkeypatch, name):
    monkeypatch.delenv("SUFREP_DATA", raising=False)
    with pytest.raises(DataNotFoundError, match=rf"'{FILES[name]}'(?s:.*)SUFREP_DATA is not set"):
        load_dataset(name)


@pytest.mark.parametrize("name", WRITE)
def test_the_variable_names_the_folder(monkeypatch, tmp_path, name):
    monkeypatch.setenv("SUFREP_DATA", str(WRITE[name](tmp_path)))
    assert load_dataset(name).name == name


def test_csv_files_need_no_library(monkeypatch, tmp_path):
    install(monkeypatch)
    assert len(load_insteval(insteval(tmp_path)).y) == len(load_county_murders(murders(tmp_path)).y) == 2


@pytest.mark.parametrize("name", ["store", "brand", "profit", "logmove", "store_brand"])
def test_a_column_to_be_left_out_must_be_there(tmp_path, name):
    """Under another name it would pass for a covariate."""
    juice(tmp_path, **{name: None, f"{name}_": JUICE[name]})
    with pytest.raises(DataContentError, match=f"'{name}'.\nHint: rename '{name}_' for '{name}'. The file"):
        load_orange_juice(tmp_path)


@pytest.mark.parametrize("name", list(FLIGHTS)[:9])
def test_nycflights_needs_each_column_that_it_names(tmp_path, name):
    with pytest.raises(DataContentError, match=rf"does not have the column\(s\) '{name}'"):
        load_nycflights(flights(tmp_path, **{name: None}))


@pytest.mark.parametrize(
    "name",
    ["arrests", "arrestrate", "murders", "execrate", "popul", "countyfips", "countyid", "murdrate"],
)
def test_county_murders_needs_each_column_that_it_names(tmp_path, name):
    header = ",".join("other" if column == name else column for column in MURDERS.split(","))
    with pytest.raises(DataContentError, match=rf"does not have the column\(s\) '{name}'"):
        load_county_murders(murders(tmp_path, header=header))


@pytest.mark.parametrize("name", INSTEVAL.split(",")[1:])
def test_insteval_needs_each_column_that_it_uses(tmp_path, name):
    header = ",".join("other" if column == name else column for column in INSTEVAL.split(","))
    with pytest.raises(DataContentError, match=rf"does not have the column\(s\) '{name}'"):
        load_insteval(insteval(tmp_path, header=header))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("column", "values", "what"),
    [
        ("feat", [0.5, None, None], "nothing in column 'feat', row 2; expected a number"),
        ("logmove", [None, 1.0, 2.0], "nothing in column 'logmove', row 1; expected a number"),
        ("store_brand", ["2_1", "2_3", None], "nothing in column 'store_brand', row 3; expected a level"),
        ("week", ["40", "46", "47"], "values of type String in column 'week'; expected numbers"),
    ],
)
def test_orange_juice_has_no_missing_values(tmp_path, column, values, what):
    with pytest.raises(DataContentError, match=rf"orange_juice.parquet' holds {what}.\nHint: .*bayesm"):
        load_orange_juice(juice(tmp_path, **{column: values}))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("column", "values", "what"),
    [
        ("arr_delay", [1.0, None, 2.0], "nothing in column 'arr_delay', row 2; expected a number"),
        ("tailnum", ["N1", None, "N2"], "nothing in column 'tailnum', row 2; expected a level"),
        ("temp", [None, math.inf, 3.0], "inf in column 'temp', row 2; expected a number"),
        ("seats", ["149", None, "178"], "values of type String in column 'seats'; expected numbers"),
    ],
)
def test_only_covariates_of_nycflights_may_be_missing(tmp_path, column, values, what):
    with pytest.raises(DataContentError, match=rf"nycflights.parquet' holds {what}.\nHint: "):
        load_nycflights(flights(tmp_path, **{column: values}))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("1980", "then", "'then' in column 'year', line 2; expected a number"),
        ("1001", "", "nothing in column 'countyid', line 2; expected a level"),
        (",2,0,", ",2,NA,", "nothing in column 'murdrate', line 2; expected a number"),
        (",2,0,", ",2,-0.5,", "-0.5 in column 'murdrate'; expected rates of 0 or more"),
    ],
)
def test_a_value_of_county_murders_that_does_not_fit_is_told(tmp_path, old, new, what):
    with pytest.raises(DataContentError, match=rf"countymurders.csv' holds {what}.\nHint: "):
        load_county_murders(murders(tmp_path, MURDERS_ROWS[0].replace(old, new, 1), MURDERS_ROWS[1]))


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("1,,2,3,0,4,5", "nothing in column 'd', line 2; expected a level"),
        ("1,1002,,3,0,4,5", "nothing in column 'studage', line 2; expected a number"),
        ("1,1002,2,3,0,4,NA", "nothing in column 'y', line 2; expected a number"),
        ("1,1002,2,3,yes,4,5", "'yes' in column 'service', line 2; expected a number"),
    ],
)
def test_insteval_has_no_missing_values(tmp_path, row, what):
    with pytest.raises(DataContentError, match=rf"insteval.csv' holds {what}.\nHint: "):
        load_insteval(insteval(tmp_path, row))
