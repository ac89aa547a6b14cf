"""Tables as HTML: sortable, scrollable by themselves, numbers aligned."""

from __future__ import annotations

import math
import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._report._parts import Cell, TablePart

# One number with its sign and separators, and what may follow it: percent, a spread, a remark.
_NUMBER = re.compile(r"([+\-\u2212]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?:%|±.*|\(.*\))?", re.DOTALL)


def table_html(table: TablePart) -> str:
    """The table alone, without its title and text."""
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    # A column is sorted and aligned as numbers if all of it is; the first names the rows.
    numeric = [all(sort_value(cell) is not None or _missing(cell) for cell in column) for column in columns]
    numeric = [
        flag and any(not _missing(cell) for cell in c) for flag, c in zip(numeric, columns, strict=True)
    ]
    head = "".join(
        f'<th scope="col"{_class(flag and j > 0)}><button type="button">{escape(name)}</button></th>'
        for j, (name, flag) in enumerate(zip(table.columns, numeric, strict=True))
    )
    body = "\n".join(_row(row, numeric, i == table.highlight) for i, row in enumerate(table.rows))
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(table.title)}">\n'
        f"<table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _row(row: Sequence[Cell], numeric: Sequence[bool], marked: bool) -> str:
    cells = []
    for j, (cell, flag) in enumerate(zip(row, numeric, strict=True)):
        tag = 'th scope="row"' if j == 0 else "td"
        value = "" if not flag or _missing(cell) else f' data-value="{sort_value(cell)!r}"'
        style = _class(flag and j > 0, _missing(cell))
        cells.append(f"<{tag}{style}{value}>{escape(cell_text(cell))}</{tag[:2]}>")
    start = '<tr class="marked">' if marked else "<tr>"
    return f"{start}{''.join(cells)}</tr>"


def _class(number: bool, none: bool = False) -> str:
    names = " ".join(["number"] * number + ["none"] * none)
    return f' class="{names}"' if names else ""


def _missing(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def cell_text(cell: Cell) -> str:
    """What the reader sees: text as it is, counts with commas, other numbers to four digits.

    >>> [cell_text(cell) for cell in ("a", 12345, 0.123456, 98765.4, None)]
    ['a', '12,345', '0.1235', '98,765', '–']
    """
    if isinstance(cell, str):
        return cell
    if cell is None or math.isnan(cell):
        return "\u2013"
    return f"{cell:,.0f}" if isinstance(cell, int) or abs(cell) >= 1000 else f"{cell:.4g}"


def sort_value(cell: Cell) -> float | None:
    """The number that a cell is, or begins with and says no more than; None for other text.

    >>> [sort_value(cell) for cell in ("−1,234.5 %", "0.31 ± 0.02", "3 folds", 7)]
    [-1234.5, 0.31, None, 7.0]
    """
    if not isinstance(cell, str):
        return None if cell is None or math.isnan(cell) else float(cell)
    found = _NUMBER.fullmatch(cell.strip())
    return float(found[1].replace("\u2212", "-").replace(",", "")) if found else None
