"""Raw tables of data sets, read from files by polars and pandas alike, or downloaded from OpenML."""

from __future__ import annotations

import math
from datetime import date
from http.client import IncompleteRead
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from sufrep.datasets import _sources
from sufrep.datasets._sources import DataFile, RawTable, open_raw_table
from sufrep.errors import (
    DataContentError,
    DataNotFoundError,
    DownloadError,
    InvalidParameterError,
    MissingDependencyError,
    MissingPandasError,
)

CSV = DataFile("tiny.csv", "the makers", "zip", openml=7)
PARQUET = DataFile("tiny.parquet", "the makers", "zip")


def install(monkeypatch: pytest.MonkeyPatch, *libraries: str) -> None:
    """Hide all libraries but these."""
    monkeypatch.setattr(_sources, "find_spec", lambda name: name if name in libraries else None)


@pytest.fixture(params=["polars", "pandas"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The only library that can be found."""
    install(monkeypatch, request.param)
    return str(request.param)


def parquet(folder: Path, values: Any) -> RawTable:
    """A Parquet file with one column, x, read back."""
    pl.DataFrame({"x": pl.Series(values, strict=False)}).write_parquet(folder / "tiny.parquet")
    return open_raw_table(PARQUET, folder)


def csv(folder: Path, *lines: str) -> RawTable:
    """A CSV file, read back."""
    (folder / "tiny.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return open_raw_table(CSV, folder)


# Columns


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "kind", [pl.Int64, pl.Float64, pl.Decimal(10, 0), pl.String, pl.Categorical], ids=str
)
def test_labels_of_any_type_are_their_text(tmp_path, kind):
    texts = pl.Series(["1001", "50"])
    values = texts.cast(kind) if kind in (pl.String, pl.Categorical) else texts.cast(pl.Int64).cast(kind)
    assert parquet(tmp_path, values).labels("x").tolist() == ["1001", "50"]


@pytest.mark.usefixtures("library")
def test_labels_keep_leading_zeros_quoted_commas_and_any_letters(tmp_path):
    table = csv(tmp_path, "\ufeffzip,y", "007,1", '"a, b",2', "é,3")
    assert table.labels("zip").tolist() == ["007", "a, b", "é"]


def test_integers_beyond_the_precision_of_floats_stay_distinct_labels(tmp_path):
    assert parquet(tmp_path, [2**60, 2**60 + 1]).labels("x").tolist() == [str(2**60), str(2**60 + 1)]


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "values",
    [
        pl.Series([1, 0, None], dtype=pl.UInt8),
        pl.Series([1.0, 0.0, math.nan]),
        pl.Series([1, 0, None], dtype=pl.Decimal(10, 2)),
        pl.Series(["1", "0", None]),
    ],
    ids=["integer", "nan", "decimal", "text"],
)
def test_numbers_of_any_type_are_floats_with_missing_values_replaced(tmp_path, values):
    numbers = parquet(tmp_path, values).numbers("x", missing=-1.0)
    assert numbers.dtype == np.float64
    np.testing.assert_array_equal(numbers, [1, 0, -1])
    numbers[0] = 3  # the array is ours, not the library's


@pytest.mark.usefixtures("library")
def test_codes_count_from_one_in_sorted_order(tmp_path):
    codes = parquet(tmp_path, ["b", None, "B", "a", "a"]).codes("x", missing=math.nan)
    np.testing.assert_array_equal(codes, [3, math.nan, 1, 2, 2])


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("kind", [pl.Float64, pl.String, pl.Null], ids=str)
def test_a_column_without_any_value_is_missing_throughout(tmp_path, kind):
    empty = parquet(tmp_path, pl.Series([None, None], dtype=kind))
    np.testing.assert_array_equal(empty.numbers("x", missing=math.nan), [math.nan] * 2)
    np.testing.assert_array_equal(empty.codes("x", missing=math.nan), [math.nan] * 2)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("values", "what"),
    [
        ([0.5, None, None], "nothing in column 'x', row 2"),
        ([0.5, 1.0, math.nan], "nothing in column 'x', row 3"),
        ([-math.inf, None], "-inf in column 'x', row 1"),
        (["40", "cheap"], "'cheap' in column 'x', row 2"),
        ([date(1990, 1, 7)], "'1990-01-07.*' in column 'x', row 1"),
    ],
)
def test_a_value_that_is_not_a_number_is_reported_with_its_row(tmp_path, values, what):
    text = (
        rf"tiny.parquet' holds {what}; expected a number.\nHint: .* download the file again from the makers"
    )
    with pytest.raises(DataContentError, match=text):
        parquet(tmp_path, values).numbers("x")


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("value", ["inf", "nan", "1_000", "1,5"])
def test_text_that_python_or_people_read_as_a_number_is_not_one(tmp_path, value):
    with pytest.raises(DataContentError, match=f"holds '?{value}'? in column 'x', row 2; expected a number"):
        csv(tmp_path, "x,y", "1,1", f'"{value}",1').numbers("x")


def test_infinity_is_not_a_missing_value(tmp_path):
    with pytest.raises(DataContentError, match="holds inf in column 'x', row 2; expected a number"):
        parquet(tmp_path, [None, math.inf]).numbers("x", missing=math.nan)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("values", [["2_1", None], [1.0, math.nan]])
def test_a_missing_label_is_reported_with_its_row(tmp_path, values):
    with pytest.raises(DataContentError, match="holds nothing in column 'x', row 2; expected a level"):
        parquet(tmp_path, values).labels("x")


def test_lists_are_not_text(tmp_path):
    with pytest.raises(DataContentError, match=r"values of type List\(Int64\) in column 'x'; expected text"):
        parquet(tmp_path, [[1], [2]]).labels("x")


@pytest.mark.parametrize("name", ["zip_code", "Zip code", "ZIPCODE", "zipcodes"])
def test_a_missing_column_is_reported_with_a_similar_one(tmp_path, name):
    text = rf"column\(s\) 'zipcode'.\nHint: rename '{name}' to 'zipcode'. The file is from the makers"
    with pytest.raises(DataContentError, match=text):
        csv(tmp_path, f"{name},price", "1,2").require(["zipcode", "price"])


def test_a_required_column_is_not_suggested_for_another_one(tmp_path):
    with pytest.raises(DataContentError, match=r"'sqft_lot15'.\nHint: the columns are 'sqft_lot'\. The file"):
        csv(tmp_path, "sqft_lot", "1").require(["sqft_lot", "sqft_lot15"])


# Files


@pytest.mark.usefixtures("library")
def test_a_folder_may_have_brackets(tmp_path):
    folder = tmp_path / "sales [1]"
    folder.mkdir()
    assert parquet(folder, [1]).names == ["x"]
    assert csv(folder, "x,y", "1,2").names == ["x", "y"]


@pytest.mark.parametrize("content", ["nothing", "text", "head", "tail"])
def test_a_damaged_parquet_file_is_refused(tmp_path, library, content):
    parquet(tmp_path, [1, 2])
    path = tmp_path / "tiny.parquet"
    whole, half = path.read_bytes(), path.stat().st_size // 2
    broken = {"nothing": b"", "text": b"store,brand\n2,1\n", "head": whole[:half], "tail": whole[half:]}
    path.write_bytes(broken[content])
    text = rf"tiny.parquet' cannot be read by {library}: (?s:.+)\nHint: download it again from the makers"
    with pytest.raises(DataContentError, match=text):
        open_raw_table(PARQUET, tmp_path)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ([], "cannot be read by"),
        (["x,y"], "has no rows"),
        (["x,y", "1,2", "1,2,3"], "cannot be read by|nothing"),
        ([",x", "1,2"], r"has no name for its column 1.\nHint: R writes row numbers without a name"),
    ],
)
def test_a_csv_file_that_is_not_a_table_is_refused(tmp_path, lines, what):
    if not lines:
        (tmp_path / "tiny.csv").touch()
    with pytest.raises(DataContentError, match=what):
        csv(tmp_path, *lines) if lines else open_raw_table(CSV, tmp_path)


def test_without_polars_and_pandas_the_error_says_what_to_install(monkeypatch, tmp_path):
    install(monkeypatch)
    text = r"Reading 'tiny.csv' needs the package 'polars'(?s:.*)Hint: pip install \"sufrep\[cli\]\""
    with pytest.raises(MissingDependencyError, match=text):
        csv(tmp_path, "x", "1")


def test_pandas_that_cannot_read_parquet_files_is_reported_as_missing_polars(monkeypatch, tmp_path):
    def without_pyarrow(*_: object) -> None:
        raise ImportError("Missing optional dependency 'pyarrow'")

    install(monkeypatch, "pandas")
    monkeypatch.setattr(pd, "read_parquet", without_pyarrow)
    with pytest.raises(MissingDependencyError, match=r"Reading 'tiny.parquet' needs the package 'polars'"):
        parquet(tmp_path, [1])


# Folders


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_folder_the_error_says_how_to_set_one(monkeypatch, value):
    monkeypatch.delenv("SUFREP_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("SUFREP_DATA", value)
    text = r"'tiny.csv'(?s:.*)SUFREP_DATA is not set.\nHint: use data_dir.* is available from the makers"
    with pytest.raises(DataNotFoundError, match=text):
        open_raw_table(CSV, None)


def test_the_environment_variable_sets_the_folder_and_the_argument_overrides_it(monkeypatch, tmp_path):
    csv(tmp_path, "x", "1")
    monkeypatch.setenv("SUFREP_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_raw_table(CSV, None).names == open_raw_table(CSV, "~").names == ["x"]
    with pytest.raises(DataNotFoundError, match=r"data_dir is '.*elsewhere', which is not a folder.\nHint: "):
        open_raw_table(CSV, tmp_path / "elsewhere")
    monkeypatch.setenv("SUFREP_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(
        DataNotFoundError, match=r"SUFREP_DATA is '.*nowhere', which is not a folder.\nHint: "
    ):
        open_raw_table(CSV, None)


@pytest.mark.parametrize(
    ("others", "shown"),
    [
        ([], "none"),
        (["b.csv", "a.parquet", "c.md"], "a.parquet, b.csv"),
        ([f"{j:02}.csv" for j in range(11)], "00.csv, .*, 09.csv and 1 more"),
    ],
)
def test_a_missing_file_is_reported_with_the_data_files_of_the_folder(tmp_path, others, shown):
    for file in others:
        (tmp_path / file).touch()
    text = rf"does not contain 'tiny.csv'; its data files: {shown}.\nHint: .* from the makers; save it there"
    with pytest.raises(DataNotFoundError, match=text):
        open_raw_table(CSV, tmp_path)


# OpenML


def openml(monkeypatch: pytest.MonkeyPatch, frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Replace OpenML by a frame; the arguments of each call are collected."""
    calls: list[dict[str, Any]] = []

    def fetch(**arguments: Any) -> Bunch:
        calls.append(arguments)
        return Bunch(frame=frame)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    return calls


@pytest.mark.parametrize("kind", ["int64", "float64", "str", "category", "object", "Int64"])
def test_zip_codes_of_openml_are_text_as_in_the_file(monkeypatch, kind):
    zips = pd.Series(["98178", "98125"] if kind == "str" else [98178, 98125]).astype(kind)
    calls = openml(monkeypatch, pd.DataFrame({"zipcode": zips}))
    assert open_raw_table(CSV, None, "openml").labels("zipcode").tolist() == ["98178", "98125"]
    assert calls == [{"data_id": 7, "target_column": None, "as_frame": True}]


def test_missing_values_of_openml_are_missing(monkeypatch):
    columns = {
        "a": pd.Series(["x", None, "y"], dtype="category"),
        "b": pd.Series([1, None, 2], dtype="Int64"),
    }
    openml(monkeypatch, pd.DataFrame(columns))
    table = open_raw_table(CSV, None, "openml")
    np.testing.assert_array_equal(table.codes("a", missing=0.0), [1, 0, 2])
    np.testing.assert_array_equal(table.numbers("b", missing=0.0), [1, 0, 2])
    with pytest.raises(DataContentError, match="OpenML's data set 7 holds nothing in column 'b', row 2"):
        table.numbers("b")


@pytest.mark.parametrize("failure", [URLError("no route"), IncompleteRead(b""), ValueError("md5 checksum")])
def test_a_failing_download_hints_at_the_folder(monkeypatch, failure):
    def fetch(**_: Any) -> Bunch:
        raise failure

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    text = rf"Data set 7 .*{type(failure).__name__}(?s:.*)Hint: .*'tiny.csv' in a folder .* data_dir"
    with pytest.raises(DownloadError, match=text):
        open_raw_table(CSV, None, "openml")


def test_without_pandas_openml_is_not_asked(monkeypatch):
    calls = openml(monkeypatch, pd.DataFrame())
    install(monkeypatch, "polars")
    with pytest.raises(
        MissingPandasError, match=r"needs the package 'pandas'(?s:.*)Hint: pip install pandas"
    ):
        open_raw_table(CSV, None, "openml")
    assert calls == []


def test_sources_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(
        InvalidParameterError, match=r"source is 'web'.\nHint: source must be 'folder' or 'openml'"
    ):
        open_raw_table(CSV, None, "web")  # type: ignore[arg-type]
    with pytest.raises(
        InvalidParameterError, match=r"'folder' for 'tiny.parquet', which OpenML does not have"
    ):
        open_raw_table(PARQUET, None, "openml")
    with pytest.raises(InvalidParameterError, match="None with source='openml'"):
        open_raw_table(CSV, tmp_path, "openml")
