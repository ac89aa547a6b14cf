"""Tables in HTML and Markdown: what a cell shows, how it is sorted, and which columns are numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._report._parts import CellValue, TablePart

# One number with its sign and separators, optionally after "<", and optionally followed by a percent sign, a
# spread or a remark.
_NUMBER = re.compile(r"(?:< )?([+\-\u2212]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?:%|±.*|\(.*\))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HtmlCell:
    """One cell or header as the template needs it.

    Parameters
    ----------
    text : str
    classes : str
        CSS classes: ``number`` aligns to the right, ``none`` is sorted last. May be empty.
    sort_value : str
        The number to sort by; empty for text.
    explanation : str
        Shown to readers who point at the cell; may be empty.
    """

    text: str
    classes: str = ""
    sort_value: str = ""
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class HtmlTable:
    """A table as the template needs it.

    Parameters
    ----------
    part : TablePart
    header : tuple of HtmlCell, length k
    rows : tuple of tuples of HtmlCell, each of length k
        The first cell of a row is its header.
    """

    part: TablePart
    header: tuple[HtmlCell, ...]
    rows: tuple[tuple[HtmlCell, ...], ...]


def html_table(part: TablePart) -> HtmlTable:
    """Decide for each column whether it is sorted and aligned as numbers, and format every cell."""
    columns = list(zip(*part.rows, strict=True)) or [()] * len(part.columns)
    numeric = [_is_numeric(column) for column in columns]
    header = tuple(
        HtmlCell(name, _classes(j, is_number))
        for j, (name, is_number) in enumerate(zip(part.columns, numeric, strict=True))
    )
    return HtmlTable(part, header, tuple(_html_row(row, numeric, part.explained) for row in part.rows))


def cell_text(cell: CellValue) -> str:
    """The text of a cell: counts with commas, other numbers with four digits.

    >>> [cell_text(cell) for cell in ("a", 12345, 0.123456, 98765.4, None)]
    ['a', '12,345', '0.1235', '98,765', '–']
    """
    if isinstance(cell, str):
        return cell
    if cell is None or math.isnan(cell):
        return "\u2013"
    return f"{cell:,.0f}" if isinstance(cell, int) or abs(cell) >= 1000 else f"{cell:.4g}"


def sort_value(cell: CellValue) -> float | None:
    """The number that a cell is, bounds, or consists of apart from a unit or remark; None for other text.

    >>> [sort_value(cell) for cell in ("−1,234.5 %", "0.31 ± 0.02", "< 0.001", "3 folds", 7)]
    [-1234.5, 0.31, 0.001, None, 7.0]
    """
    if not isinstance(cell, str):
        return None if cell is None or math.isnan(cell) else float(cell)
    found = _NUMBER.fullmatch(cell.strip())
    return float(found[1].replace("\u2212", "-").replace(",", "")) if found else None


def _html_row(
    row: Sequence[CellValue], numeric: Sequence[bool], explained: Mapping[str, str]
) -> tuple[HtmlCell, ...]:
    return tuple(
        HtmlCell(
            cell_text(cell),
            _classes(j, is_number, _is_missing(cell)),
            repr(sort_value(cell)) if is_number and not _is_missing(cell) else "",
            explained.get(cell_text(cell), "") if j == 0 else "",
        )
        for j, (cell, is_number) in enumerate(zip(row, numeric, strict=True))
    )


def _classes(column: int, is_number: bool, missing: bool = False) -> str:
    # The first column names the rows: it is aligned as text even if the names are numbers.
    return " ".join(["number"] * (is_number and column > 0) + ["none"] * missing)


def _is_numeric(column: Sequence[CellValue]) -> bool:
    known = [cell for cell in column if not _is_missing(cell)]
    return bool(known) and all(sort_value(cell) is not None for cell in known)


def _is_missing(cell: CellValue) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


# Markdown (CommonMark with GitHub's tables), in which every name is only text

# Characters that end a line or that no terminal shows.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# What means something anywhere: code, emphasis, links, tags, entities, cells, struck text, formulas.
_MARKS = re.compile(r"[\\`*\[\]<>&|~$]")
# Between letters or digits, an underscore is only an underscore: one_hot stays readable.
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
# What means something at the start of a line: headings, lists, rules.
_START = re.compile(r"^(\d*)([#+\-=.)])")


def markdown_text(text: str) -> str:
    r"""Return one line of Markdown that is shown as the text.

    Examples
    --------
    >>> print(markdown_text("- one_hot, a|b, *c*"))
    \- one_hot, a\|b, \*c\*
    """
    return _START.sub(r"\1\\\2", _cell(text))


def markdown_table(part: TablePart) -> str:
    """Return a table, without its title and text; numbers are aligned to the right."""
    header = html_table(part).header
    lines = [
        [cell.text for cell in header],
        *([cell_text(cell) for cell in row] for row in part.rows),
    ]
    shown = ["| " + " | ".join(map(_cell, cells)) + " |" for cells in lines]
    rule = "|" + "|".join("--:" if "number" in cell.classes else "---" for cell in header) + "|"
    return "\n".join([shown[0], rule, *shown[1:]])


def _cell(text: str) -> str:
    line = _CONTROLS.sub(" ", text).strip()
    return _UNDERSCORE.sub(r"\\_", _MARKS.sub(r"\\\g<0>", line))
