"""Pages of the gallery: the chart that ends a block of code becomes a picture, drawn by vl-convert."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt
from docutils import nodes
from sphinx_gallery.scrapers import figure_rst

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# The theme of all pictures: letters as large as those of the text next to them, and no frame.
_THEME = {
    "config": {
        "background": "white",
        "padding": 12,
        "view": {"stroke": None},
        "axis": {
            "labelFontSize": 12,
            "labelLimit": 320,
            "titleFontSize": 13,
            "titleFontWeight": "normal",
            "gridColor": "#e6e8eb",
        },
        "legend": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
        "header": {"labelFontSize": 13, "titleFontSize": 13},
        "title": {"fontSize": 15, "anchor": "start", "subtitleFontSize": 12, "offset": 12},
        "range": {"category": ["#2f78d6", "#d2691e", "#3a9a6d", "#8a5cc2", "#868c95", "#c2417c"]},
    }
}


@alt.theme.register("gallery", enable=True)
def _theme() -> alt.theme.ThemeConfig:
    return alt.theme.ThemeConfig(_THEME)


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
    chart.save(path, format="png", scale_factor=2)
    # The title is the text for readers who do not see the picture.
    title = chart.title if isinstance(chart.title, str) else ""
    return figure_rst([str(path)], gallery_conf["src_dir"], fig_titles=title)
