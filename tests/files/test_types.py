"""Columns of text: which of them hold numbers, and what points and commas mean in them."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep._files import _types
from sufrep._files._types import find_types


def parsed(values: list[str | None], *, commas: bool = False, **others: list[str | None]) -> pl.DataFrame:
    frame = pl.DataFrame({"a": values, **others}, schema=dict.fromkeys(("a", *others), pl.String))
    types = find_types(frame.lazy(), frame.columns, (), commas=commas)
    return frame.with_columns(types.expressions())


def notes(commas: bool = True, **columns: list[str]) -> tuple[str, ...]:
    frame = pl.DataFrame(columns)
    return find_types(frame.lazy(), frame.columns, (), commas=commas).notes


@pytest.mark.parametrize(
    ("values", "dtype", "read"),
    [
        (["1", "-2", " 3 "], pl.Int64, [1, -2, 3]),
        (["1", "2.5", "1e3", ".5"], pl.Float64, [1.0, 2.5, 1000.0, 0.5]),
        (["true", "False", "TRUE"], pl.Boolean, [True, False, True]),
        (["1", "x"], pl.String, ["1", "x"]),
        (["1", "NA", "", "null", None], pl.Int64, [1, None, None, None, None]),
        (["NA", "DE"], pl.String, ["NA", "DE"]),
        (["1.5", "NaN", "inf"], pl.Float64, [1.5, math.nan, math.inf]),
        ([str(2**64 - 1), "1"], pl.UInt64, [2**64 - 1, 1]),
        ([str(10**30), "1"], pl.String, [str(10**30), "1"]),
        ([None, None], pl.String, [None, None]),
        (["NA", None, ""], pl.String, [None, None, None]),
        (["1,5", "2"], pl.String, ["1,5", "2"]),
        (["1_000", "2"], pl.String, ["1_000", "2"]),
        (["2020-01-31"], pl.String, ["2020-01-31"]),
    ],
)
def test_the_type_of_a_column_is_the_first_that_fits_all_its_values(values, dtype, read):
    column = parsed(values)["a"]
    assert column.dtype == dtype
    assert column.equals(pl.Series("a", read, dtype=dtype))


@pytest.mark.parametrize(
    ("values", "read"),
    [
        (["1,5", "2"], [1.5, 2.0]),
        (["1.234,5", "-1.234.567", "7"], [1234.5, -1234567.0, 7.0]),
        (["1,5e3", "+2,0"], [1500.0, 2.0]),
        (["1.5,5", "2"], ["1.5,5", "2"]),
        (["1,234,567", "2"], ["1,234,567", "2"]),
        (["1,5", "2.5"], ["1,5", "2.5"]),
        ([",5", "2"], [",5", "2"]),
    ],
)
def test_commas_are_decimal_signs_unless_a_value_contradicts(values, read):
    assert parsed(values, commas=True)["a"].to_list() == read


def test_points_separate_thousands_where_another_column_has_decimal_commas():
    frame = parsed(["1,5", "2"], commas=True, b=["1.234", "12"])
    assert frame["b"].to_list() == [1234.0, 12.0]
    assert notes(a=["1,5", "2"], b=["1.234", "12"]) == (
        "commas read as decimal signs in 'a'",
        "points read as thousands separators in 'b'",
    )


def test_columns_with_commas_stay_text_next_to_decimal_points():
    frame = parsed(["1,234", "2"], commas=True, b=["1.5", "12"])
    assert frame["a"].to_list() == ["1,234", "2"]
    assert frame["b"].to_list() == [1.5, 12.0]
    assert notes(a=["1,234", "2"], b=["1.5", "12"]) == (
        "read as text, because some columns have decimal points and others commas: 'a'",
    )


def test_notes_report_leading_zeros_and_numbers_that_are_too_long():
    assert notes(a=["01", "2"], b=["0", "-0.5"], c=[str(10**30), "1"]) == (
        "read as text, because its numbers have more than 64 bits: 'c'",
        "read as numbers, which lose their leading zeros: 'a'",
    )


def test_a_long_list_of_columns_is_cut_in_a_note():
    (note,) = notes(**{f"x{j}": ["01"] for j in range(12)})
    assert note.endswith("'x8', 'x9' and 2 more")


@pytest.mark.parametrize(("last", "dtype"), [("0.5", pl.Float64), ("text", pl.String), ("8", pl.Int64)])
def test_a_late_value_counts_as_much_as_an_early_one(monkeypatch, last, dtype):
    monkeypatch.setattr(_types, "_HEAD_ROWS", 10)
    assert parsed([*map(str, range(100)), last])["a"].dtype == dtype


def test_a_column_with_an_empty_head_gets_the_type_of_the_rest(monkeypatch):
    monkeypatch.setattr(_types, "_HEAD_ROWS", 10)
    assert parsed([None] * 50 + ["1.5"])["a"].dtype == pl.Float64
    assert parsed([None] * 50 + ["x"])["a"].to_list()[-1] == "x"


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_whole_numbers_are_read_exactly(numbers):
    assert parsed([str(number) for number in numbers])["a"].to_list() == numbers


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_floats_are_read_exactly(numbers):
    assert parsed([repr(float(number)) for number in numbers])["a"].to_list() == numbers


@given(st.lists(st.floats(-1e9, 1e9).map(lambda x: round(x, 3)), min_size=1))
def test_decimal_commas_are_read_as_exactly_as_points(numbers):
    texts = [f"{number:.3f}".replace(".", ",") for number in numbers]
    assert parsed(texts, commas=True)["a"].to_list() == numbers
