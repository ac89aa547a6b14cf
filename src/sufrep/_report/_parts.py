"""The contents of a page: text, tables, charts and code."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CellValue: TypeAlias = str | float | int | None


@dataclass(frozen=True, slots=True)
class Page:
    """Everything on one page.

    Parameters
    ----------
    title, subtitle : str
    verdict : tuple of str
        Paragraphs; the first is the headline.
    origin : str
        What the page was made from, when and by what, for whom it is forwarded to; see `origin_text`.
    facts : tuple of pairs of str
        Short facts in one line, such as ``("rows", "12,000")``.
    parts : tuple of TablePart, ChartPart and CodePart
    notes : tuple of str
        What a reader must know to interpret the page, as a list near its end.
    footer : str
    """

    title: str
    subtitle: str
    verdict: tuple[str, ...]
    origin: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    parts: tuple[Part, ...] = ()
    notes: tuple[str, ...] = ()
    footer: str = ""


def origin_text(source: str | None = None, day: date | None = None) -> str:
    """Say what a page was made from, on which day and by which version.

    Parameters
    ----------
    source : str or None
        Where the rows come from, such as the name of a file, or "simulated data".
    day : datetime.date or None
        None is today.

    Examples
    --------
    >>> origin_text("houses.csv", date(2026, 3, 1)).rpartition(" · ")[0]
    'houses.csv · 1 March 2026'
    """
    day = day or date.today()
    parts = (source, f"{day.day} {day:%B %Y}", f"sufrep {version('sufrep')}")
    return " · ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class TablePart:
    """A table that readers can sort by its headers.

    Parameters
    ----------
    title : str
        Heading of the part. For a table that belongs to another part, the text that unfolds it.
    columns : sequence of str, length k
    rows : sequence of sequences of length k
        Numbers are shown with four digits and sorted in full precision; None is shown as a dash. Text that
        is a number with a unit or a remark (``"12.5 %"``) is sorted as this number.
    text : str
        A paragraph above the table.
    highlighted : int, optional
        The position of the row to highlight.
    explained : mapping of str to str
        Explanations of names in the first column, shown to readers who point at them.
    tables : tuple of TablePart
        Further tables, folded by default.
    unfolded : bool
        For a table that belongs to another part: whether it is unfolded from the start.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[CellValue]]
    text: str = ""
    highlighted: int | None = None
    explained: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[TablePart, ...] = ()
    unfolded: bool = False


@dataclass(frozen=True, slots=True)
class SearchBox:
    """A text field that sets a parameter of a chart.

    Parameters
    ----------
    parameter : str
        Name of the chart's parameter.
    label : str
        Label of the text field, such as ``"Find a level"``.
    field : str
        The field of the chart's top-level data in which matches are counted.
    """

    parameter: str
    label: str
    field: str


@dataclass(frozen=True, slots=True)
class ChartPart:
    """A chart with an explanation.

    Parameters
    ----------
    title, text : str
        Heading, and an explanation of the chart.
    chart : altair chart or dict
        A Vega-Lite chart; with ``width="container"`` it fills the page.
    description : str
        Replaces the picture for screen readers.
    table : TablePart, optional
        The numbers behind the chart, folded by default.
    search : SearchBox, optional
    """

    title: str
    text: str
    chart: Any
    description: str
    table: TablePart | None = None
    search: SearchBox | None = None


@dataclass(frozen=True, slots=True)
class CodePart:
    """Code with a button that copies it."""

    title: str
    text: str
    code: str


Part: TypeAlias = TablePart | ChartPart | CodePart
