"""Pages of the gallery: the chart that ends a block of code becomes a picture, or two: light and dark."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import altair as alt
from docutils import nodes
from sphinx_gallery.scrapers import figure_rst

if TYPE_CHECKING:
    from collections.abc import Callable

    from sphinx.application import Sphinx

# Colours of the page, light and dark: its background, text and faint lines.
_PAGES = {"light": ("#ffffff", "#222832", "#e6e8eb"), "dark": ("#14181e", "#ced6dd", "#2f353d")}
_SERIES = ["#2f78d6", "#d2691e", "#3a9a6d", "#8a5cc2", "#868c95", "#c2417c"]


def _theme(background: str, ink: str, faint: str) -> Callable[[], Any]:
    """Letters as large as those of the text next to the picture, and no frame."""
    small = {"labelFontSize": 12, "titleFontSize": 13, "labelColor": ink, "titleColor": ink}
    config = {
        "background": background,
        "padding": 12,
        "view": {"stroke": None},
        "axis": {
            **small,
            "titleFontWeight": "normal",
            "labelLimit": 320,
            "gridColor": faint,
            "domainColor": ink,
            "tickColor": ink,
        },
        "legend": {**small, "titleFontWeight": "normal"},
        "header": small,
        "text": {"color": ink},
        "title": {
            "fontSize": 15,
            "anchor": "start",
            "subtitleFontSize": 12,
            "offset": 12,
            "color": ink,
            "subtitleColor": ink,
        },
        "range": {"category": _SERIES},
    }
    return lambda: {"config": config}


for _page, _colours in _PAGES.items():
    alt.theme.register(f"gallery_{_page}", enable=False)(_theme(*_colours))


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at every page once it is read."""
    app.connect("doctree-read", _drop_notes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _drop_notes(_app: Sphinx, doctree: nodes.document) -> None:
    """Take the link to the downloads from the top of an example: search results would begin with it."""
    for note in list(doctree.findall(nodes.note)):
        if "sphx-glr-download-link-note" in note["classes"]:
            note.parent.remove(note)


def scrape(_block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the chart that the block returned, if it is one (sphinx-gallery's interface of scrapers)."""
    found = block_vars["example_globals"]
    chart = found.get("___")
    # The value stays in the globals until another block ends with an expression: draw it once.
    if not isinstance(chart, alt.TopLevelMixin) or chart is found.get("_drawn"):
        return ""
    found["_drawn"] = chart
    path = Path(next(block_vars["image_path_iterator"]))
    # The title is the text for readers who do not see the picture.
    title = chart.title if isinstance(chart.title, str) else ""
    return "".join(_picture(chart, path, page, title, gallery_conf) for page in _PAGES)


def _picture(chart: Any, path: Path, page: str, title: str, gallery_conf: dict[str, Any]) -> str:
    """Draw the chart for light or dark pages, which alone show it."""
    # Thumbnails are made of the light one, under the name that sphinx-gallery expects.
    file = path if page == "light" else path.with_name(f"{path.stem}_{page}.png")
    with alt.theme.enable(f"gallery_{page}"):
        chart.save(file, format="png", scale_factor=2)
    shown = figure_rst([str(file)], gallery_conf["src_dir"], fig_titles=title)
    return f"\n.. container:: only-{page}\n\n{indent(shown, '    ')}\n"
