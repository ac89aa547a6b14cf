"""Arrays and tables to Altair charts.

Charts for a page (all but ``labelled_points`` and ``grouped_bars``) are as wide as what holds them and leave
the colours of text, axes and series to the theme of the page.
"""

from __future__ import annotations

from sufrep._charts._bars import size_bars, spectrum_bars
from sufrep._charts._level_map import MOST_LEVELS, ZOOM_HINT, level_map
from sufrep._charts._library import load_altair, require_renderer
from sufrep._charts._panels import grouped_bars
from sufrep._charts._points import labelled_points
from sufrep._charts._ranking import interval_dots, paired_dots
from sufrep._charts._scatter import labelled_scatter
from sufrep._charts._writing import write_chart

__all__ = [
    "MOST_LEVELS",
    "ZOOM_HINT",
    "grouped_bars",
    "interval_dots",
    "labelled_points",
    "labelled_scatter",
    "level_map",
    "load_altair",
    "paired_dots",
    "require_renderer",
    "size_bars",
    "spectrum_bars",
    "write_chart",
]
