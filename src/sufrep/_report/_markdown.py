"""Texts and tables as Markdown (CommonMark with GitHub's tables) in which every name is only text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sufrep._report._tables import cell_text, html_table

if TYPE_CHECKING:
    from sufrep._report._parts import TablePart

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
