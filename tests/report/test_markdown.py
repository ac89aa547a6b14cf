"""Markdown: any text is shown as it is, and no text can break a table."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sufrep._report import TablePart, markdown_table, markdown_text

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
