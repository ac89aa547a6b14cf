"""A table of text, written as text, Markdown or LaTeX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Format: TypeAlias = Literal["text", "markdown", "latex"]


@dataclass(frozen=True, slots=True)
class Table:
    """A title, a header, rows of text and notes."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def render(self, style: Format) -> str:
        """The table in one of the three formats, ending with a line end."""
        return {"text": self._text, "markdown": self._markdown, "latex": self._latex}[style]()

    def _text(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (self.header, tuple("-" * width for width in widths), *self.rows)
        ]
        return "\n".join([self.title, *lines, *self.notes]) + "\n"

    def _markdown(self) -> str:
        lines = [f"| {' | '.join(row)} |" for row in (self.header, ("---",) * len(self.header), *self.rows)]
        notes = [line for note in self.notes for line in ("", note)]
        return "\n".join([f"**{self.title}**", "", *lines, *notes]) + "\n"

    def _latex(self) -> str:
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{{'l' * len(self.header)}}}",
            r"\hline",
            _latex_row(self.header),
            r"\hline",
            *map(_latex_row, self.rows),
            r"\hline",
            r"\end{tabular}",
            rf"\caption{{{_latex(' '.join((self.title + '.', *self.notes)))}}}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex, cells)) + r" \\"


_LATEX = str.maketrans(
    {"±": r"$\pm$", "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {special: f"\\{special}" for special in "_%&#${}"}
)


def _latex(text: str) -> str:
    return text.translate(_LATEX)
