"""Points in a plane: a searchable map of levels, a plot for notebooks, and cost against gain."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import KDTree

from sufrep._charts._altair import NEUTRAL, load_altair, reference_rule, series_colour, tick_format, tooltips
from sufrep._charts._label_placement import ALIGNMENTS, OFFSETS, SIDES, label_sides

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._arrays import Codes, Floats

# More points make the page heavy and its search slow; only the largest are drawn.
MAX_LEVELS = 5_000
# Instructions for the reader of a map: nothing on the page shows that it can be moved.
ZOOM_HINT = "Drag to move, hold Ctrl and scroll (or pinch) to zoom, double-click to reset."

_MAP_HEIGHT = 460
# Labels are placed for the width of a phone, in pixels; on a desktop there is more room.
_MAP_WIDTH = 300
_MAP_LABELS = 12
# Only the largest levels are candidates for a label, and only this much of the text is shown.
_MAP_CANDIDATES = 60
# Of levels that stand apart, whatever their size, this many are labelled: readers ask what they are. Apart is
# what has no other level nearer than this share of the map.
_MAP_OUTLIERS = 5
_APART = 0.08
_MAP_LETTERS = 22
_MAX_LABELLED_MATCHES = 30
_MAP_SIDES = ("top", "right", "left")
# Between the outermost levels and the ends of an axis, as a share of their distance.
_MAP_MARGIN = 0.04
# The smallest ring around a match, as a share of the largest dot: small levels must be found too.
_RING = 0.25
# Low, middle, high. Of medium lightness, so that both ends are visible on white and on black.
_COLOURS = ["#2f78d6", "#868c95", "#d2691e"]
# Without a key, the wheel scrolls the page, and so does a finger, even when the pointer is over a map.
_ZOOM = "wheel![event.ctrlKey || event.metaKey]"
_PAN = "[pointerdown[event.pointerType != 'touch'], window:pointerup] > window:pointermove!"

_NOTEBOOK_LABELS = 30
# Standard errors from the middle of a 95 % region to its edge, in a plane (the root of the 95 % quantile of
# χ² with two degrees of freedom) and on a line.
_PLANE_REACH, _LINE_REACH = 2.4477, 1.96
_CORNERS = 40
_REGION_NOTE = "Ellipses: 95 % regions of the labelled levels"
_INTERVAL_NOTE = "Lines: 95 % intervals of the labelled levels"

_SCATTER_HEIGHT, _SCATTER_PADDING = 400, 20
# Labels are placed for the widths of the plot on a desktop and on a phone, in pixels.
_WIDE, _NARROW = 560, 190


def level_map(
    *,
    labels: Sequence[str],
    points: Floats,
    sizes: Floats,
    values: Floats | None,
    titles: Sequence[str],
    value_title: str = "mean of the target",
) -> Any:
    """Levels as points in a plane, coloured by a value; at most the ``MAX_LEVELS`` largest.

    The largest are labelled, and those that stand apart. The chart has a text parameter named ``search``:
    points whose label contains the text (in upper or lower case) get a ring and their label, the others fade.

    Parameters
    ----------
    labels : sequence of str, length n
    points : ndarray, shape (n, 2)
    sizes : ndarray, shape (n,)
    values : ndarray, shape (n,), optional
        May contain NaN.
    titles : sequence of 2 str
        Titles of the axes.
    value_title : str
        Title of the value in the tooltip and the legend.

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    drawn = _largest(sizes)
    labels, points, sizes = [labels[i] for i in drawn], points[drawn], sizes[drawn]
    values = None if values is None else values[drawn]
    rows = _map_rows(labels, points, sizes, values)
    hover = {"label": "level", "size": "rows", **({} if values is None else {"value": value_title})}
    matches = "(length(search) > 0 && indexof(lower(datum.label), lower(search)) >= 0)"
    # All layers have the tooltip, because rings and labels cover their dots.
    base = alt.Chart().encode(
        x=_map_axis(alt, "x", titles[0], points[:, 0]),
        y=_map_axis(alt, "y", titles[1], points[:, 1]),
        tooltip=tooltips(alt, rows, hover),
    )
    largest = float(sizes.max(initial=1.0))
    opacity = alt.condition(f"length(search) == 0 || {matches}", alt.value(0.75), alt.value(0.1))
    colour = {} if values is None else {"color": _map_colour(alt, values, value_title)}
    dots = base.mark_circle(clip=True).encode(size=_dot_size(alt, "size", largest), opacity=opacity, **colour)
    pan_zoom = alt.selection_interval(name="pan_zoom", bind="scales", zoom=_ZOOM, translate=_PAN)
    dots = dots.add_params(pan_zoom)
    layers = [dots, _rings(alt, base, matches, largest), _labels(alt, base, matches)]
    return (
        alt.layer(*layers, data=alt.Data(values=rows))
        .add_params(alt.param(name="search", value=""))
        .properties(width="container", height=_MAP_HEIGHT)
    )


def labelled_levels(sizes: Floats) -> Codes:
    """Positions of the levels that `labelled_points` labels, the largest first."""
    return np.asarray(_largest(sizes)[:_NOTEBOOK_LABELS])


def labelled_points(
    *,
    labels: Sequence[str],
    points: Floats,
    sizes: Floats,
    titles: Sequence[str],
    title: str,
    covariances: Floats | None = None,
) -> Any:
    """Levels as points in a plane, for a notebook: the largest are labelled, all have a tooltip.

    Parameters
    ----------
    labels : sequence of str, length n
    points : ndarray, shape (n, 2)
    sizes : ndarray, shape (n,)
    titles : sequence of 2 str
        Titles of the axes.
    title : str
    covariances : ndarray, shape (n_labelled, 2, 2), optional
        Covariance of the error of each of `labelled_levels`, drawn as an ellipse; NaN for none.

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    rows = [
        {
            "label": labels[i],
            "x": float(points[i, 0]),
            "y": float(points[i, 1]),
            "weight": float(sizes[i]),
            "named": labels[i] if rank < _NOTEBOOK_LABELS else "",
        }
        for rank, i in enumerate(_largest(sizes).tolist())
    ]
    base = alt.Chart().encode(
        x=alt.X("x:Q", title=titles[0], scale=alt.Scale(zero=False, padding=12)),
        y=alt.Y("y:Q", title=titles[1], scale=alt.Scale(zero=False, padding=12)),
    )
    dots = base.mark_circle(opacity=0.6).encode(
        size=alt.Size("weight:Q", title="rows", scale=alt.Scale(range=[20, 300])),
        tooltip=[alt.Tooltip("label:N", title="level"), alt.Tooltip("weight:Q", title="rows")],
    )
    layers, heading = [dots], title
    place: dict[str, Any] = {"dy": -9}
    if covariances is not None and np.isfinite(covariances).all(axis=(1, 2)).any():
        chosen = labelled_levels(sizes)
        outlines = _outlines([labels[i] for i in chosen], points[chosen], covariances)
        layers.insert(0, _ellipses(alt, outlines, titles))
        flat = not np.nan_to_num(covariances[:, 1, 1]).any()
        heading = alt.TitleParams(title, subtitle=_INTERVAL_NOTE if flat else _REGION_NOTE)
        place = {"align": "left", "dx": 12, "dy": -4} if flat else place  # next to the interval, not on one
    layers.append(base.mark_text(fontSize=10, limit=90, **place).encode(text="named:N"))
    return alt.layer(*layers, data=alt.Data(values=rows)).properties(title=heading, width=520, height=400)


def labelled_scatter(
    *,
    rows: Sequence[Mapping[str, Any]],
    series: Sequence[str],
    x_title: str,
    y_title: str,
    hover: Mapping[str, str],
    percent: bool = True,
    lowest: float | None = None,
    highlighted: tuple[str, str] | None = None,
) -> Any:
    """Cost against gain: labelled dots at x (positive, logarithmic) and y, with a line at y = 0.

    Dots that no other beats in both (further left and higher) are always labelled as far as their labels do
    not cover each other, the others as far as there is room.

    Parameters
    ----------
    rows : sequence of mappings
        With the keys ``name``, ``series``, ``x``, ``y`` and the other fields of `hover`.
    series : sequence of str
        In the order of the legend; each has its colour.
    x_title, y_title : str
    hover : mapping of str to str
        Fields to show in the tooltip, and their titles.
    percent : bool
        Whether y is a share.
    lowest : float, optional
        The lower end of the axis; dots below it are arrows at this end, and their labels have the number.
    highlighted : pair of str, optional
        Name and series of the dot whose label is bold, and has its place first.

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    lowest = min((row["y"] for row in rows), default=0.0) if lowest is None else lowest
    labels = [row["name"] if row["y"] >= lowest else _with_number(row, percent) for row in rows]
    strong = [(row["name"], row["series"]) == highlighted for row in rows]
    wide, narrow = (_scatter_sides(rows, labels, lowest, width, strong) for width in (_WIDE, _NARROW))
    placed = [
        {**row, "label": label, "wide": w, "narrow": n, **({"strong": True} if is_strong else {})}
        for row, label, w, n, is_strong in zip(rows, labels, wide, narrow, strong, strict=True)
    ]
    x = alt.X(
        "x:Q",
        title=x_title,
        scale=alt.Scale(type="log", nice=False, padding=24),
        axis=alt.Axis(format="~g", tickCount=5, grid=False),
    )
    y = _gain_axis(alt, y_title, percent, lowest, max((row["y"] for row in rows), default=0.0))
    base = alt.Chart().encode(x=x, y=y)
    is_below = f"datum.y < {lowest}"
    dots = base.mark_point(
        filled=True, size=80, opacity=0.9, shape=alt.expr(f"{is_below} ? 'triangle-down' : 'circle'")
    ).encode(
        color=series_colour(alt, "series", series),
        tooltip=tooltips(alt, rows, hover, {"y"} if percent else ()),
    )
    zero = reference_rule(alt.Chart(alt.Data(values=[{"y": 0}])).encode(y=y))
    return alt.layer(zero, dots, _names(alt, base), data=alt.Data(values=placed)).properties(
        width="container", height=_SCATTER_HEIGHT
    )


def _largest(sizes: Floats) -> Any:
    """Indices of the points to draw, the largest first."""
    return np.argsort(-sizes, kind="stable")[:MAX_LEVELS]


def _outlines(labels: Sequence[str], points: Floats, covariances: Floats) -> list[dict[str, Any]]:
    """Points on the edges of the 95 % regions around (n, 2) points; in one dimension they are intervals."""
    angle = np.linspace(0, 2 * np.pi, _CORNERS + 1)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    rows = []
    for i, label in enumerate(labels):
        if not np.isfinite(covariances[i]).all():
            continue
        values, vectors = np.linalg.eigh(covariances[i])
        spread = np.sqrt(np.maximum(values, 0.0))
        reach = _PLANE_REACH if spread.min() > 1e-9 * spread.max() else _LINE_REACH
        edge = points[i] + reach * (circle * spread) @ vectors.T
        rows += [
            {"label": label, "x": float(x), "y": float(y), "corner": corner}
            for corner, (x, y) in enumerate(edge)
        ]
    return rows


def _ellipses(alt: Any, outlines: list[dict[str, Any]], titles: Sequence[str]) -> Any:
    return (
        alt.Chart(alt.Data(values=outlines))
        .mark_line(color=NEUTRAL, strokeWidth=1, opacity=0.6)
        .encode(
            x=alt.X("x:Q", title=titles[0]),
            y=alt.Y("y:Q", title=titles[1]),
            detail="label:N",
            order="corner:Q",
            tooltip=[alt.Tooltip("label:N", title="95 % region of level")],
        )
    )


def _map_rows(
    labels: Sequence[str], points: Floats, sizes: Floats, values: Floats | None
) -> list[dict[str, Any]]:
    """The data of the map."""
    sides = _map_sides(labels, points)
    rows = []
    for i, label in enumerate(labels):
        size = float(sizes[i])
        row = {
            "label": label,
            "x": _five_digits(points[i, 0]),
            "y": _five_digits(points[i, 1]),
            "size": int(size) if size.is_integer() else size,
        }
        if values is not None:
            row["value"] = _five_digits(values[i])
        rows.append(row | ({"named": sides[i]} if sides[i] else {}))
    return rows


def _map_sides(labels: Sequence[str], points: Floats) -> list[str]:
    """The side of each label: of the levels that stand apart and of the largest, where they fit; else ''."""
    apart = _apart(points)
    order = dict.fromkeys([*apart, *range(min(_MAP_CANDIDATES, len(labels)))])
    return label_sides(
        [label[:_MAP_LETTERS] for label in labels],
        points,
        order,
        (_MAP_WIDTH, _MAP_HEIGHT),
        sides=_MAP_SIDES,
        over_dots=True,
        max_labels=_MAP_LABELS + len(apart),
        overhang=(_MAP_MARGIN * _MAP_WIDTH, _MAP_MARGIN * _MAP_HEIGHT),  # beyond it, they are clipped
    )


def _apart(points: Floats) -> list[int]:
    """Indices of the points that are furthest from their nearest neighbour, if that is far away."""
    if len(points) < 2:
        return []
    extent = np.ptp(points, axis=0)
    scaled = points / np.where(extent > 0, extent, 1.0)
    distances = np.asarray(KDTree(scaled).query(scaled, k=2)[0])[:, 1]
    furthest = np.argsort(-distances, kind="stable")[:_MAP_OUTLIERS]
    return [int(i) for i in furthest if distances[i] > _APART]


def _five_digits(value: float) -> float | None:
    """Five digits place a point to within a pixel and halve the size of the page."""
    return float(f"{value:.5g}") if np.isfinite(value) else None


def _rings(alt: Any, base: Any, matches: str, largest: float) -> Any:
    found = base.transform_filter(matches).transform_calculate(ring=f"max(datum.size, {_RING * largest})")
    rings = found.mark_point(style="ring", clip=True, strokeWidth=1.5)
    return rings.encode(size=_dot_size(alt, "ring", largest))


def _labels(alt: Any, base: Any, matches: str) -> Any:
    labelled = base.transform_filter(f"length(search) == 0 ? datum.named : {matches}")
    labelled = labelled.transform_window(
        rank="row_number()", sort=[alt.SortField("size", order="descending")]
    ).transform_filter(f"datum.rank <= {_MAX_LABELLED_MATCHES}")
    # Matches are above their dots.
    side = "(length(search) == 0 ? datum.named : 'top')"
    return labelled.mark_text(clip=True, fontSize=11, limit=140, **_at_side(alt, side)).encode(text="label:N")


def _dot_size(alt: Any, field: str, largest: float) -> Any:
    return alt.Size(f"{field}:Q", scale=alt.Scale(domain=[0, largest], range=[16, 420]), legend=None)


def _map_axis(alt: Any, field: str, title: str, values: Floats) -> Any:
    # Components have no unit, so tick labels would only be clutter.
    axis = alt.Axis(grid=False, ticks=False, labels=False)
    # Vega would log a warning if it had to find the domain of a layer without matches.
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    margin = _MAP_MARGIN * (high - low) or 1.0
    scale = alt.Scale(domain=[low - margin, high + margin], nice=False)
    return {"x": alt.X, "y": alt.Y}[field](f"{field}:Q", title=title, scale=scale, axis=axis)


def _map_colour(alt: Any, values: Floats, title: str) -> Any:
    """Colours end at the 2 % and 98 % quantiles, so that a few outliers do not leave all others grey."""
    known = values[np.isfinite(values)]
    low, middle, high = np.quantile(known, [0.02, 0.5, 0.98]).tolist() if len(known) else (0.0, 0.0, 0.0)
    if len(known) and not low < middle < high:  # most values are the same
        low, high = float(known.min()), float(known.max())
        middle = (low + high) / 2
    if not low < high:
        low, high = low - 1.0, high + 1.0
    scale = alt.Scale(domain=[low, middle, high], range=_COLOURS, clamp=True, interpolate="rgb")
    legend = alt.Legend(
        orient="top", titleOrient="left", gradientLength=140, gradientThickness=8, tickCount=3
    )
    return alt.Color("value:Q", title=title, scale=scale, legend=legend)


def _with_number(row: Mapping[str, Any], percent: bool) -> str:
    number = f"{100 * row['y']:.0f}\u00a0%" if percent else f"{row['y']:.4g}"
    return f"{row['name']} {number}".replace(" -", " \u2212")


def _scatter_sides(
    rows: Sequence[Mapping[str, Any]],
    labels: Sequence[str],
    lowest: float,
    width: float,
    strong: Sequence[bool],
) -> list[str]:
    points = np.array([[np.log(row["x"]), max(row["y"], lowest)] for row in rows], dtype=float).reshape(-1, 2)
    beaten = _is_beaten(points)
    is_arrow = np.array([row["y"] < lowest for row in rows], dtype=bool)
    # The highlighted one and those that no other beats come first; within each kind, the highest come first.
    order = np.lexsort((points[:, 0], -points[:, 1], beaten, ~np.array(strong, dtype=bool))).tolist()
    # The number of an arrow is nowhere else in the chart.
    required = np.flatnonzero(~beaten | is_arrow | np.array(strong, dtype=bool)).tolist()
    size = (width, _SCATTER_HEIGHT - 2 * _SCATTER_PADDING)
    # The line at zero, and the end of the axis, on which arrows are.
    lines = [0.0, *([lowest] if any(row["y"] < lowest for row in rows) else [])]
    return label_sides(labels, points, order, size, sides=SIDES, required=required, lines=lines)


def _is_beaten(points: Floats) -> Any:
    """Whether another point is further left and no lower, or higher and no further right; (n,)."""
    x, y = points.T
    no_worse = (x <= x[:, None]) & (y >= y[:, None])
    better = (x < x[:, None]) | (y > y[:, None])
    return (no_worse & better).any(axis=1)


def _names(alt: Any, base: Any) -> Any:
    """Labels on the side that was chosen for the width of the plot, which only the browser knows."""
    side = f"(width > {(_WIDE + _NARROW) // 2} ? datum.wide : datum.narrow)"
    names = base.transform_filter(f"{side} != ''").mark_text(
        fontSize=11, fontWeight=alt.expr("datum.strong ? 'bold' : 'normal'"), **_at_side(alt, side)
    )
    return names.encode(text="label:N")


def _at_side(alt: Any, side: str) -> dict[str, Any]:
    """Options of a text mark that stands at the side of a dot which an expression names."""
    across, down = ({name: offset[axis] for name, offset in OFFSETS.items()} for axis in (0, 1))
    return {
        "baseline": "middle",
        "align": alt.expr(f"{json.dumps(ALIGNMENTS)}[{side}]"),
        "dx": alt.expr(f"{json.dumps(across)}[{side}]"),
        "dy": alt.expr(f"{json.dumps(down)}[{side}]"),
    }


def _gain_axis(alt: Any, title: str, percent: bool, lowest: float, highest: float) -> Any:
    axis = alt.Axis(format=tick_format(percent), tickCount=6, domain=False, ticks=False)
    low, high = min(lowest, 0.0), max(highest, 0.0)
    margin = _SCATTER_PADDING / (_SCATTER_HEIGHT - 2 * _SCATTER_PADDING) * (high - low) or 1.0
    scale = alt.Scale(domain=[low - margin, high + margin], clamp=True, nice=False)
    return alt.Y("y:Q", title=title, scale=scale, axis=axis)
