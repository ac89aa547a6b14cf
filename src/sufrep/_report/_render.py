"""A page as one HTML text; whatever strings it is given stay text."""

from __future__ import annotations

import json
import math
from html import escape
from string import Template
from typing import TYPE_CHECKING, Any

from sufrep._report._parts import ChartPart, TablePart
from sufrep._report._scripts import content_policy, drawing_bundle, read_asset
from sufrep._report._tables import table_html

if TYPE_CHECKING:
    from sufrep._report._parts import CodePart, Page, Part, Search


def render_page(page: Page) -> str:
    """Return the page as HTML that needs no network.

    Parameters
    ----------
    page : Page

    Returns
    -------
    str
        Some 900 kB of it are the drawing library, which is there only if a part is a chart.
    """
    theme, behaviour = read_asset("theme.js"), read_asset("page.js")
    charts = any(isinstance(part, ChartPart) for part in page.parts)
    scripts = [*([drawing_bundle()] if charts else []), behaviour]
    text = Template(read_asset("page.html")).substitute(
        policy=escape(content_policy([theme, *scripts])),
        title=escape(page.title),
        subtitle=escape(page.subtitle),
        style=read_asset("page.css"),
        theme=theme,
        content="\n".join([_verdict(page), *_contents(page), *_sections(page), *_notes(page)]),
        footer=f"<footer><p>{escape(page.footer)}</p></footer>" if page.footer else "",
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )
    # Half of a surrogate pair (from undecodable bytes) has no place in a file of UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def _verdict(page: Page) -> str:
    first, *others = page.verdict or ("",)
    facts = "".join(f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>" for key, value in page.facts)
    return (
        '<section class="verdict" aria-labelledby="verdict">\n<h2 id="verdict">The verdict</h2>\n'
        f'<p class="headline">{escape(first)}</p>\n'
        + "".join(f"<p>{escape(paragraph)}</p>\n" for paragraph in others)
        + (f'<dl class="facts">{facts}</dl>\n' if facts else "")
        + "</section>"
    )


def _contents(page: Page) -> list[str]:
    links = "".join(
        f'<li><a href="#part-{number}">{escape(part.title)}</a></li>'
        for number, part in enumerate(page.parts)
    )
    return [f'<nav aria-label="On this page"><ul>{links}</ul></nav>'] if len(page.parts) > 1 else []


def _sections(page: Page) -> list[str]:
    return [
        f'<section aria-labelledby="part-{number}">\n<h2 id="part-{number}">{escape(part.title)}</h2>\n'
        + (f"<p>{escape(part.text)}</p>\n" if part.text else "")
        + _body(part, number)
        + "\n</section>"
        for number, part in enumerate(page.parts)
    ]


def _body(part: Part, number: int) -> str:
    if isinstance(part, TablePart):
        return table_html(part)
    if isinstance(part, ChartPart):
        return _figure(part, number) + (_folded(part.table) if part.table else "")
    return _code(part, number)


def _figure(part: ChartPart, number: int) -> str:
    return (
        "<figure data-chart>\n"
        + (_search_box(part.search, number) if part.search else "")
        # The drawing library gives its element a role of its own, so that of a picture stands around it.
        + f'<div role="img" aria-label="{escape(part.description)}">\n'
        + '<div class="chart" aria-hidden="true"></div>\n</div>\n'
        + f'<script type="application/json">{chart_json(part.chart)}</script>\n</figure>'
    )


def _search_box(search: Search, number: int) -> str:
    return (
        f'<div class="search"><label for="search-{number}">{escape(search.label)}</label>'
        f'<input type="search" id="search-{number}" autocomplete="off" spellcheck="false" disabled '
        f'data-parameter="{escape(search.parameter)}" data-field="{escape(search.field)}">'
        '<p class="count" role="status" aria-live="polite"></p></div>\n'
    )


def _folded(table: TablePart) -> str:
    text = f"<p>{escape(table.text)}</p>\n" if table.text else ""
    return f"\n<details><summary>{escape(table.title)}</summary>\n{text}{table_html(table)}</details>"


def _code(part: CodePart, number: int) -> str:
    return (
        f'<div class="code"><button type="button" data-copies="code-{number}" hidden>Copy</button>'
        f'<pre tabindex="0" role="region" aria-label="{escape(part.title)}">'
        f'<code id="code-{number}">{escape(part.code)}</code></pre></div>'
    )


def _notes(page: Page) -> list[str]:
    listed = "".join(f"<li>{escape(note)}</li>\n" for note in page.notes)
    title = '<h2 id="notes">How to read this</h2>'
    section = f'<section class="notes" aria-labelledby="notes">{title}\n<ul>\n{listed}</ul>\n</section>'
    return [section] if listed else []


def chart_json(chart: Any) -> str:
    """The specification of a chart, fit to stand within a script element.

    Parameters
    ----------
    chart : altair chart or dict
        NaN and infinity, which JSON does not know, become null.

    Returns
    -------
    str
        Without ``<``: neither an end tag nor a comment in somebody's data can leave the element.
        test_any_text_in_the_data_of_a_chart_comes_back guards it.
    """
    # Altair has checked the chart while it was made; to check its data again takes seconds.
    specification = dict(chart if isinstance(chart, dict) else chart.to_dict(validate=False))
    # The address of the schema is no use offline.
    specification.pop("$schema", None)
    text = json.dumps(_finite(specification), separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value.item() if hasattr(value, "item") else value
