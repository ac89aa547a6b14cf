"""One self-contained HTML page from a verdict, tables, charts and code.

This package does not know what a page is about: :mod:`sufrep._compare` and :mod:`sufrep._effect` fill it.
"""

from __future__ import annotations

from sufrep._report._parts import ChartPart, CodePart, Page, SearchBox, TablePart, origin_text
from sufrep._report._render import render_page, write_page
from sufrep._report._tables import markdown_table, markdown_text

__all__ = [
    "ChartPart",
    "CodePart",
    "Page",
    "SearchBox",
    "TablePart",
    "markdown_table",
    "markdown_text",
    "origin_text",
    "render_page",
    "write_page",
]
