"""Tables: numbers are sorted as numbers and aligned, names are not changed, in HTML and in Markdown."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sufrep._report import Page, TablePart, markdown_table, markdown_text, render_page
from sufrep._report._tables import cell_text, sort_value


def rendered(read: Any, columns: list[str], rows: list[list[Any]], **changes: Any) -> Any:
    return read(render_page(Page("", "", (), parts=(TablePart("title", columns, rows, **changes),))))


def attributes(reader: Any, tag: str) -> list[dict[str, Any]]:
    return [found for name, found in reader.elements if name == tag]


def second_column(read: Any, *cells: Any) -> list[dict[str, Any]]:
    return attributes(rendered(read, ["name", "value"], [["a", cell] for cell in cells]), "td")


@given(st.floats(allow_nan=False) | st.integers(-(10**15), 10**15))
def test_a_number_is_sorted_in_full_precision(number):
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
def test_text_is_sorted_as_a_number_only_if_it_is_one(text, number):
    assert sort_value(text) == number


@pytest.mark.parametrize(
    ("cell", "text"),
    [(None, "–"), (float("nan"), "–"), (True, "1"), (1234567, "1,234,567"), (-0.00001234, "-1.234e-05")],
)
def test_cells_are_short(cell, text):
    assert cell_text(cell) == text


def test_a_column_of_numbers_is_aligned_and_sortable_even_with_gaps(read):
    assert second_column(read, 0.5, None, "12 %") == [
        {"class": "number", "data-value": "0.5"},
        {"class": "number none"},
        {"class": "number", "data-value": "12.0"},
    ]


def test_a_column_with_one_name_in_it_is_text(read):
    assert second_column(read, 0.5, "none") == [{}, {}]


def test_a_column_without_any_value_is_text(read):
    assert second_column(read, None) == [{"class": "none"}]


def test_headers_of_rows_are_aligned_as_text_and_sorted_as_numbers(read):
    headers = attributes(rendered(read, ["code", "value"], [["98178", 1], ["98101", 2]]), "th")
    assert headers == [
        {"scope": "col"},
        {"scope": "col", "class": "number"},
        {"scope": "row", "data-value": "98178.0"},
        {"scope": "row", "data-value": "98101.0"},
    ]


@pytest.mark.parametrize("highlighted", [None, 0, 1])
def test_only_the_chosen_row_is_highlighted(read, highlighted):
    rows = attributes(rendered(read, ["name"], [["a"], ["b"]], highlighted=highlighted), "tr")
    assert rows == [{}, *({"class": "highlighted"} if i == highlighted else {} for i in range(2))]


def test_a_table_without_rows_keeps_its_headers(read):
    assert "value" in rendered(read, ["name", "value"], []).texts


def test_names_in_the_first_column_have_their_explanation(read):
    explained = {"means": "The means of <b>.", "1": "not a name"}
    reader = rendered(read, ["method", "rank"], [["means", 1], ["drop", 2]], explained=explained)
    headers = [found for found in attributes(reader, "th") if found["scope"] == "row"]
    assert [header.get("title") for header in headers] == ["The means of <b>.", None]
    assert not any("title" in cell for cell in attributes(reader, "td"))


@pytest.mark.parametrize("unfolded", [False, True])
def test_a_further_table_is_folded_unless_it_is_to_be_seen(read, unfolded):
    further = TablePart("more", ["name"], [["last"]], unfolded=unfolded)
    reader = rendered(read, ["name"], [["first"]], tables=(further,))
    (details,) = attributes(reader, "details")
    assert ("open" in details) == unfolded
    assert "last" in reader.texts


# Markdown: any text is shown as it is, and no text can break a table

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKUP = [
    "|",
    "\\|",
    "`a`",
    "*a*",
    "_a_",
    "__",
    "<b>",
    "&lt;",
    "~~a~~",
    "[a](b)",
    "1. a",
    "- a",
    "# a",
    "a\nb",
    "--",
]
TEXTS = st.lists(st.sampled_from(MARKUP) | st.text(max_size=8), min_size=1, max_size=4).map("".join)


def shown(inline: Any) -> str:
    """The text of an inline element; anything but text is markup."""
    kinds = {child.type for child in inline.children}
    assert kinds <= {"text", "text_special"}, kinds
    return "".join(child.content for child in inline.children)


def plain(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", text).strip()


def cells(markdown: str) -> list[str]:
    tokens = PARSER.parse(markdown)
    assert tokens[0].type == "table_open"
    assert tokens[-1].type == "table_close"
    return [shown(token) for token in tokens if token.type == "inline"]


@given(TEXTS)
def test_any_text_is_shown_as_it_is(text):
    tokens = PARSER.parse(markdown_text(text))
    assert [token.type for token in tokens] in (["paragraph_open", "inline", "paragraph_close"], [])
    assert [shown(token) for token in tokens if token.type == "inline"] == [plain(text)] * bool(tokens)
    assert bool(tokens) == bool(plain(text))


@given(st.lists(TEXTS, min_size=4, max_size=4))
def test_no_text_can_break_a_table(texts):
    part = TablePart("title", texts[:2], [texts[2:], ["last", 1.5]])
    assert cells(markdown_table(part)) == [*map(plain, texts), "last", "1.5"]


def test_names_with_underscores_and_numbers_stay_readable():
    assert markdown_text("one_hot and target_encoder") == "one_hot and target_encoder"
    assert "| one_hot | -0.5 |" in markdown_table(TablePart("", ["name", "value"], [["one_hot", -0.5]]))


@pytest.mark.parametrize(("cell", "rule"), [(1.5, "|---|--:|"), ("text", "|---|---|")])
def test_numbers_are_aligned_to_the_right(cell, rule):
    assert markdown_table(TablePart("", ["name", "value"], [["a", cell]])).splitlines()[1] == rule
