"""Render a page as one HTML file: template, scripts, and the policy that allows nothing else to run."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sufrep._atomic import check_path, replace_file
from sufrep._charts import load_altair, require_renderer
from sufrep._report._parts import ChartPart, CodePart, TablePart
from sufrep._report._tables import html_table
from sufrep.errors import MissingDependencyError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from jinja2 import Template

    from sufrep._report._parts import Page, Part
    from sufrep._report._tables import HtmlTable


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write a page to a file, completely or not at all.

    Parameters
    ----------
    page : Page
    path : path-like
        Its folder must exist; an existing file is replaced.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    NotWritableError
        If the folder is missing or cannot be written to, or the path is a folder.
    """
    final = Path(path)
    check_path(final)
    replace_file(final, render_page(page).encode("utf-8"))
    return final


def render_page(page: Page) -> str:
    """Render a page as HTML that works offline.

    Parameters
    ----------
    page : Page

    Returns
    -------
    str
        About 900 kB of it are the drawing library, which is included only if a part is a chart.

    Raises
    ------
    MissingDependencyError
        If jinja2 is not installed, or, for a page with charts, altair or vl-convert-python.
    """
    template = _template()
    has_charts = any(isinstance(part, ChartPart) for part in page.parts)
    theme, scripts = read_asset("theme.js"), [read_asset("page.js")]
    if has_charts:
        scripts.insert(0, drawing_bundle())
    text = template.render(
        page=page,
        sections=[_section(part) for part in page.parts],
        policy=content_policy([theme, *scripts]),
        style=read_asset("page.css"),
        theme=theme,
        scripts=scripts,
    )
    # A lone surrogate, from bytes that could not be decoded, cannot be written as UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class Section:
    """A part as the template needs it.

    Parameters
    ----------
    kind : {"table", "chart", "code"}
    part : TablePart, ChartPart or CodePart
    table : HtmlTable, optional
        The part itself, if it is a table.
    folded : tuple of HtmlTable
        The tables that belong to the part.
    chart_json : str
        The specification of a chart; empty for other parts.
    """

    kind: Literal["table", "chart", "code"]
    part: Part
    table: HtmlTable | None = None
    folded: tuple[HtmlTable, ...] = ()
    chart_json: str = ""


def _section(part: Part) -> Section:
    if isinstance(part, CodePart):
        return Section("code", part)
    if isinstance(part, TablePart):
        return Section("table", part, html_table(part), tuple(map(html_table, part.tables)))
    folded = (html_table(part.table),) if part.table else ()
    return Section("chart", part, None, folded, chart_json(part.chart))


def chart_json(chart: Any) -> str:
    """The specification of a chart as JSON that can stand in a script element.

    Parameters
    ----------
    chart : altair chart or dict
        NaN and infinity, which JSON does not have, become null.

    Returns
    -------
    str
        Without ``<``, so that no text in the data can end the element or open a comment.
        test_any_text_in_the_data_of_a_chart_comes_back guards this.
    """
    # Altair validated the chart when it was built; validating its data again would take seconds.
    specification = dict(chart if isinstance(chart, dict) else chart.to_dict(validate=False))
    # The URL of the schema is of no use offline.
    specification.pop("$schema", None)
    text = json.dumps(_plain(specification), separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c")


def _plain(value: Any) -> Any:
    """The value with NumPy scalars as Python numbers, and None for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value.item() if hasattr(value, "item") else value


def read_asset(name: str) -> str:
    """The text of a file in this package."""
    return files("sufrep._report").joinpath(name).read_text(encoding="utf-8")


@cache
def _template() -> Template:
    if find_spec("jinja2") is None:
        raise MissingDependencyError("jinja2", "An HTML page", "report")
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(read_asset("page.html"))


@cache
def drawing_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, in the version that Altair writes for."""
    require_renderer("A page with charts")
    version = ".".join(load_altair().SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    from vl_convert import javascript_bundle

    # An end tag in a string or a pattern would end the script element; escaped, it means the same.
    return javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version).replace(
        "</script", r"<\/script"
    )


def content_policy(scripts: Iterable[str]) -> str:
    """Content security policy that allows these inline scripts, and no other script, request, form or frame.

    Inline styles are allowed because drawn charts set them on their marks. As requests are not allowed,
    styles cannot send data anywhere.
    """
    digests = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {digests}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()
