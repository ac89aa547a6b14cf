"""Altair charts from arrays and rows.

Charts for a page (all except ``labelled_points``, ``grouped_bars`` and ``dot_panels``) fill the width of
their container and leave the colours of text, axes and series to the theme of the page.
"""

from __future__ import annotations

from sufrep._charts._altair import load_altair, require_renderer, save_chart, write_chart
from sufrep._charts._bars import grouped_bars, size_bars, spectrum_bars
from sufrep._charts._drift import level_moves, level_sizes
from sufrep._charts._effects import group_shares, love_plot, propensity_bars
from sufrep._charts._points import (
    MAX_LEVELS,
    ZOOM_HINT,
    labelled_levels,
    labelled_points,
    labelled_scatter,
    level_map,
)
from sufrep._charts._rankings import axis_limits, dot_panels, interval_dots, paired_dots

__all__ = [
    "MAX_LEVELS",
    "ZOOM_HINT",
    "axis_limits",
    "dot_panels",
    "group_shares",
    "grouped_bars",
    "interval_dots",
    "labelled_levels",
    "labelled_points",
    "labelled_scatter",
    "level_map",
    "level_moves",
    "level_sizes",
    "load_altair",
    "love_plot",
    "paired_dots",
    "propensity_bars",
    "require_renderer",
    "save_chart",
    "size_bars",
    "spectrum_bars",
    "write_chart",
]
