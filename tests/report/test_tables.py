"""Tables: numbers are sorted as numbers and aligned, names are left alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep._report import TablePart
from sufrep._report._tables import cell_text, sort_value, table_html


def cells(read: Any, rows: list[list[Any]], **changes: Any) -> list[dict[str, Any]]:
    html = table_html(TablePart("title", ["name", "value"], rows, **changes))
    return [attributes for tag, attributes in read(html).elements if tag == "td"]


@given(st.floats(allow_nan=False) | st.integers(-(10**15), 10**15))
def test_a_number_is_sorted_in_full(number):
    assert sort_value(number) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1.0),
        ("-1.5", -1.5),
        ("\u22121,234.5 %", -1234.5),
        ("+12.5%", 12.5),
        ("0.31 ± 0.02", 0.31),
        ("4.1 % (3 to 5)", None),
        ("4.1 (3 to 5)", 4.1),
        ("1e-5", 1e-5),
        ("3 folds", None),
        ("", None),
        ("–", None),
        ("98178-1234", None),
        ("1.2.3", None),
    ],
)
def test_text_is_sorted_as_a_number_only_if_it_says_one(text, number):
    assert sort_value(text) == number


@pytest.mark.parametrize(
    ("cell", "text"),
    [(None, "–"), (float("nan"), "–"), (True, "1"), (1234567, "1,234,567"), (-0.00001234, "-1.234e-05")],
)
def test_cells_are_short(cell, text):
    assert cell_text(cell) == text


def test_a_column_of_numbers_is_aligned_and_sortable_with_its_gaps(read):
    found = cells(read, [["a", 0.5], ["b", None], ["c", "12 %"]])
    assert found == [
        {"class": "number", "data-value": "0.5"},
        {"class": "number none"},
        {"class": "number", "data-value": "12.0"},
    ]


def test_a_column_with_one_name_in_it_is_text(read):
    assert cells(read, [["a", 0.5], ["b", "none"]]) == [{}, {}]


def test_a_column_without_any_value_is_text(read):
    assert cells(read, [["a", None]]) == [{"class": "none"}]


def test_the_first_column_names_the_rows_and_headers_say_what_they_head(read):
    reader = read(table_html(TablePart("title", ["code", "value"], [["98178", 1], ["98101", 2]])))
    scopes = [a["scope"] for tag, a in reader.elements if tag == "th"]
    assert scopes == ["col", "col", "row", "row"]
    assert dict(reader.elements)["th"] == {"scope": "row", "data-value": "98101.0"}


def test_the_given_row_is_marked(read):
    html = table_html(TablePart("title", ["name"], [["a"], ["b"]], highlight=1))
    rows = [attributes for tag, attributes in read(html).elements if tag == "tr"]
    assert rows == [{}, {}, {"class": "marked"}]


def test_a_table_without_rows_keeps_its_headers(read):
    assert "value" in read(table_html(TablePart("title", ["name", "value"], []))).texts
