"""Parquet files as tables, read with polars and with pyarrow alike."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sufrep.datasets import _parquet
from sufrep.datasets._parquet import ParquetTable, read_parquet
from sufrep.errors import DataContentError, MissingDependencyError


@pytest.fixture(params=["polars", "pyarrow"], autouse=True)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The one library that can be found."""
    monkeypatch.setattr(_parquet, "find_spec", lambda name: name if name == request.param else None)
    return str(request.param)


def table(folder: Path, values: Any) -> ParquetTable:
    """A file with one column, x, read back."""
    path = folder / "tiny.parquet"
    pl.DataFrame({"x": pl.Series(values, strict=False)}).write_parquet(path)
    return read_parquet(path, "the makers")


@pytest.mark.parametrize("kind", [pl.Int64, pl.UInt16, pl.Float64, pl.Decimal(10, 0)], ids=str)
def test_levels_that_are_integers_are_their_text(tmp_path, kind):
    assert table(tmp_path, pl.Series([1001, 50]).cast(kind)).labels("x").tolist() == ["1001", "50"]


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["a", "é"])], ids=str)
def test_levels_are_read_from_any_kind_of_text(tmp_path, kind):
    assert table(tmp_path, pl.Series(["é", "a", "é"]).cast(kind)).labels("x").tolist() == ["é", "a", "é"]


def test_levels_beyond_the_integers_of_floats_stay_apart(tmp_path):
    assert table(tmp_path, [2**60, 2**60 + 1]).labels("x").tolist() == [str(2**60), str(2**60 + 1)]


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([1, 0, None], dtype=pl.UInt8),
        pl.Series([1, 0, None], dtype=pl.Float32),
        pl.Series([1.0, 0.0, math.nan]),
        pl.Series([True, False, None]),
        pl.Series([1, 0, None], dtype=pl.Decimal(10, 2)),
    ],
    ids=["integer", "single", "nan", "truth", "decimal"],
)
def test_numbers_of_any_type_are_numbers(tmp_path, values):
    numbers = table(tmp_path, values).numbers("x", missing=math.nan)
    assert numbers.dtype == np.float64
    np.testing.assert_array_equal(numbers, [1, 0, math.nan])


def test_what_is_missing_becomes_the_number_that_is_given(tmp_path):
    np.testing.assert_array_equal(table(tmp_path, [4, None]).numbers("x", missing=-1.0), [4, -1])


def test_codes_count_from_one_in_sorted_order_with_nan_where_missing(tmp_path):
    np.testing.assert_array_equal(table(tmp_path, ["b", None, "B", "a"]).codes("x"), [3, math.nan, 1, 2])


def test_text_is_missing_where_it_would_be_in_a_csv_file(tmp_path):
    np.testing.assert_array_equal(
        table(tmp_path, ["", "UA ", "NA", "UA"]).codes("x"), [math.nan, 1, math.nan, 1]
    )


@pytest.mark.parametrize("kind", [pl.Float64, pl.Int32, pl.String, pl.Null], ids=str)
def test_a_column_without_any_value_is_nan(tmp_path, kind):
    empty = table(tmp_path, pl.Series([None, None], dtype=kind))
    np.testing.assert_array_equal(empty.numbers("x", missing=math.nan), [math.nan] * 2)
    np.testing.assert_array_equal(empty.codes("x"), [math.nan] * 2)


def test_numbers_may_be_written_to(tmp_path):
    numbers = table(tmp_path, [1.5, 2.5]).numbers("x")
    numbers[0] = 3
    assert numbers.tolist() == [3, 2.5]


def test_a_folder_may_have_brackets(tmp_path):
    folder = tmp_path / "sales [1]"
    folder.mkdir()
    assert table(folder, [1]).names == ["x"]


# --- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ([0.5, None, None], "nothing in column 'x', row 2; expected a number"),
        ([0.5, 1.0, math.nan], "nothing in column 'x', row 3; expected a number"),
        ([-math.inf, None], "-inf in column 'x', row 1; expected a number"),
        (["40", "46"], "values of type String in column 'x'; expected numbers"),
        ([date(1990, 1, 7)], "values of type Date in column 'x'; expected numbers"),
    ],
)
def test_what_is_no_number_is_told(tmp_path, values, what):
    with pytest.raises(
        DataContentError, match=rf"tiny.parquet' holds {what}.\nHint: .* anew from the makers"
    ):
        table(tmp_path, values).numbers("x")


def test_infinity_is_not_missing(tmp_path):
    with pytest.raises(DataContentError, match="holds inf in column 'x', row 2; expected a number"):
        table(tmp_path, [None, math.inf]).numbers("x", missing=math.nan)


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (["2_1", "2_3", None], "nothing in column 'x', row 3; expected a level"),
        (["2_1", "", "2_3"], "nothing in column 'x', row 2; expected a level"),
        ([1.0, math.nan, 2.0], "nothing in column 'x', row 2; expected a level"),
        ([[1], [2], [3]], r"values of type List\(Int64\) in column 'x'; expected text"),
    ],
)
def test_what_is_no_level_is_told(tmp_path, values, what):
    with pytest.raises(
        DataContentError, match=rf"tiny.parquet' holds {what}.\nHint: .* anew from the makers"
    ):
        table(tmp_path, values).labels("x")


def test_a_missing_column_is_told_with_what_it_may_be_called(tmp_path):
    with pytest.raises(
        DataContentError, match=r"column\(s\) 'X'.\nHint: rename 'x' for 'X'. The file is from"
    ):
        table(tmp_path, [1]).require(["X"])


@pytest.mark.parametrize("content", ["nothing", "text", "head", "tail"])
def test_a_file_that_is_no_parquet_file_is_told(tmp_path, library, content):
    table(tmp_path, [1, 2])
    path = tmp_path / "tiny.parquet"
    whole, half = path.read_bytes(), path.stat().st_size // 2
    broken = {"nothing": b"", "text": b"store,brand\n2,1\n", "head": whole[:half], "tail": whole[half:]}
    path.write_bytes(broken[content])
    text = (
        rf"tiny.parquet' cannot be read as a Parquet file by {library}: (?s:.+)\nHint: get it anew from the"
    )
    with pytest.raises(DataContentError, match=text) as caught:
        read_parquet(path, "the makers")
    assert caught.value.__cause__ is not None


def test_a_file_without_rows_is_told(tmp_path):
    with pytest.raises(DataContentError, match=r"tiny.parquet' has no rows.\nHint: get it from the makers"):
        table(tmp_path, pl.Series([], dtype=pl.Int64))


def test_without_polars_and_pyarrow_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(_parquet, "find_spec", lambda _: None)
    text = r"Reading 'tiny.parquet' needs the package 'polars'(?s:.*)Hint: pip install \"sufrep\[cli\]\""
    with pytest.raises(MissingDependencyError, match=text):
        table(tmp_path, [1])
