"""What a page is made of: text, tables, charts and code, none of which knows what it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Cell: TypeAlias = str | float | int | None


@dataclass(frozen=True, slots=True)
class TablePart:
    """A table; readers sort it by its headers.

    Parameters
    ----------
    title : str
        Heading of the part; of a table that belongs to a chart, the text of the line that unfolds it.
    columns : sequence of str, length k
    rows : sequence of sequences of length k
        Numbers are rounded to four digits for the eye and sorted in full; None shows as a dash. Text that
        reads as one number (``"12.5 %"``) is sorted as that number.
    text, caption : str
        A paragraph above the table, and its caption.
    highlight : int, optional
        The row to mark.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    text: str = ""
    caption: str = ""
    highlight: int | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """A box that sets a parameter of a chart.

    Parameters
    ----------
    parameter : str
        Name of the chart's parameter.
    label : str
        Of the box, such as ``"Find a level"``.
    field : str
        The field of the chart's data (those at the top of its specification) in which hits are counted.
    """

    parameter: str
    label: str
    field: str


@dataclass(frozen=True, slots=True)
class ChartPart:
    """A chart, in words too.

    Parameters
    ----------
    title, text : str
        Heading, and a plain explanation of what is to be seen.
    chart : altair chart or dict
        Vega-Lite; with ``width="container"`` it fills the page.
    description : str
        What a screen reader says in place of the picture.
    table : TablePart, optional
        The numbers behind it, folded away.
    search : Search, optional
    """

    title: str
    text: str
    chart: Any
    description: str
    table: TablePart | None = None
    search: Search | None = None


@dataclass(frozen=True, slots=True)
class CodePart:
    """Code that is ready to be copied."""

    title: str
    text: str
    code: str


Part: TypeAlias = TablePart | ChartPart | CodePart


@dataclass(frozen=True, slots=True)
class Page:
    """All that one file says.

    Parameters
    ----------
    title, subtitle : str
    verdict : tuple of str
        Paragraphs; the first is the headline.
    facts : tuple of pairs of str
        A strip of small facts, such as ``("rows", "12,000")``.
    parts : tuple of TablePart, ChartPart and CodePart
    notes : tuple of str
        What a reader must know to trust the page, as a list near its end.
    footer : str
    """

    title: str
    subtitle: str
    verdict: tuple[str, ...]
    facts: tuple[tuple[str, str], ...] = ()
    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    footer: str = ""
