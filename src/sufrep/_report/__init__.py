"""One self-contained HTML page from a verdict, tables, charts and code.

This layer knows nothing of what a page is about.
"""

from __future__ import annotations

from sufrep._report._parts import ChartPart, CodePart, Page, Search, TablePart
from sufrep._report._render import render_page
from sufrep._report._write import write_page

__all__ = ["ChartPart", "CodePart", "Page", "Search", "TablePart", "render_page", "write_page"]
