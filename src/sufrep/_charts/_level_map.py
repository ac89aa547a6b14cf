"""Very many points in a plane, to be searched and zoomed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._charts._channels import tooltips
from sufrep._charts._labels import name_sides
from sufrep._charts._library import load_altair

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._arrays import Floats

# More points make a heavy page and a slow search; the largest are kept.
MOST_LEVELS = 5_000
# What the reader of a map must be told, because a page cannot show it.
ZOOM_HINT = "Drag to move; hold Ctrl and turn the wheel, or pinch, to zoom; double-click to see all again."
_N_NAMED, _N_ASKED = 12, 60
_HEIGHT = 460
# Names are placed for the plane of a phone, in pixels; on a desktop there is room for them anyway.
_WIDTH = 300
_LETTERS = 22
_MOST_HITS_NAMED = 30
# A hit is to be seen, also where its level is small: the least ring, as a share of the largest.
_RING = 0.25
# Low to high through grey: of middling lightness throughout, so that each end is seen on white and on black.
_COLOURS = ["#2f78d6", "#868c95", "#d2691e"]
# A wheel without a key scrolls the page and a finger moves it, also where the pointer is over a map.
_ZOOM = "wheel![event.ctrlKey || event.metaKey]"
_PAN = "[pointerdown[event.pointerType != 'touch'], window:pointerup] > window:pointermove!"


def level_map(
    *,
    labels: Sequence[str],
    points: Floats,
    sizes: Floats,
    values: Floats | None,
    titles: Sequence[str],
    value_title: str = "mean of the target",
    size_title: str = "rows",
    label_title: str = "level",
    more: Mapping[str, Sequence[Any]] | None = None,
    search: str = "search",
) -> Any:
    """Points in a plane, coloured by a value, of the largest at most ``MOST_LEVELS``.

    The largest carry their label. The parameter called `search` is text: points whose label holds it (in
    capitals or not) get a ring and their label, the others fade.

    Parameters
    ----------
    labels : sequence of str, length n
    points : ndarray, shape (n, 2)
    sizes : ndarray, shape (n,)
    values : ndarray, shape (n,), optional
        May hold NaN.
    titles : sequence of 2 str
        Of the axes.
    value_title, size_title, label_title : str
        What value, size and label are called on hover and in the legend.
    more : mapping of str to sequence of length n, optional
        What else to show on hover, by its title.
    search : str
        Name of the parameter.

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    drawn = np.argsort(-sizes, kind="stable")[:MOST_LEVELS]
    fields = {f"more{j}": title for j, title in enumerate(more or {})}
    rows = _rows(labels, points, sizes, values, dict(zip(fields, (more or {}).values(), strict=True)), drawn)
    hover = {"label": label_title, "size": size_title, **({} if values is None else {"value": value_title})}
    hit = f"(length({search}) > 0 && indexof(lower(datum.label), lower({search})) >= 0)"
    # A ring or a label must not hide what its dot has to say.
    base = alt.Chart().encode(
        x=_axis(alt, "x", titles[0], points[drawn, 0]),
        y=_axis(alt, "y", titles[1], points[drawn, 1]),
        tooltip=tooltips(alt, rows, hover | fields),
    )
    largest = float(sizes.max(initial=1.0))
    faded = alt.condition(f"length({search}) == 0 || {hit}", alt.value(0.75), alt.value(0.1))
    colour = {} if values is None else {"color": _colour(alt, values[drawn], value_title)}
    dots = base.mark_circle(clip=True).encode(size=_size(alt, "size", largest), opacity=faded, **colour)
    moved = alt.selection_interval(name="moved", bind="scales", zoom=_ZOOM, translate=_PAN)
    layers = [dots.add_params(moved), _rings(alt, base, hit, largest), _names(alt, base, search, hit)]
    return (
        alt.layer(*layers, data=alt.Data(values=rows))
        .add_params(alt.param(name=search, value=""))
        .properties(width="container", height=_HEIGHT)
    )


def _rings(alt: Any, base: Any, hit: str, largest: float) -> Any:
    found = base.transform_filter(hit).transform_calculate(ring=f"max(datum.size, {_RING * largest})")
    rings = found.mark_point(style="ring", clip=True, strokeWidth=1.5)
    return rings.encode(size=_size(alt, "ring", largest))


def _names(alt: Any, base: Any, search: str, hit: str) -> Any:
    named = base.transform_filter(f"length({search}) == 0 ? datum.named : {hit}")
    named = named.transform_window(rank="row_number()", sort=[alt.SortField("size", order="descending")])
    named = named.transform_filter(f"datum.rank <= {_MOST_HITS_NAMED}")
    return named.mark_text(clip=True, dy=-11, fontSize=11, limit=140).encode(text="label:N")


def _size(alt: Any, field: str, largest: float) -> Any:
    return alt.Size(f"{field}:Q", scale=alt.Scale(domain=[0, largest], range=[16, 420]), legend=None)


def _rows(
    labels: Sequence[str],
    points: Floats,
    sizes: Floats,
    values: Floats | None,
    more: Mapping[str, Sequence[Any]],
    drawn: Any,
) -> list[dict[str, Any]]:
    named = _named(labels, points, drawn)
    rows = []
    for rank, i in enumerate(drawn.tolist()):
        size = float(sizes[i])
        row = {
            "label": labels[i],
            "x": _short(points[i, 0]),
            "y": _short(points[i, 1]),
            "size": int(size) if size.is_integer() else size,
        }
        if values is not None:
            row["value"] = _short(values[i])
        row |= {field: column[i] for field, column in more.items()}
        rows.append(row | ({"named": True} if rank in named else {}))
    return rows


def _named(labels: Sequence[str], points: Floats, drawn: Any) -> set[int]:
    """Ranks of the largest that find room for their label above the dot."""
    sides = name_sides(
        [labels[i][:_LETTERS] for i in drawn],
        points[drawn],
        range(min(_N_ASKED, len(drawn))),
        (_WIDTH, _HEIGHT),
        sides=["top"],
        over_dots=True,
        most=_N_NAMED,
    )
    return {rank for rank, side in enumerate(sides) if side}


def _short(value: float) -> float | None:
    """Five digits place a point to less than a pixel and halve the page."""
    return float(f"{value:.5g}") if np.isfinite(value) else None


def _axis(alt: Any, field: str, title: str, values: Floats) -> Any:
    # Components have no unit, so numbers on their axes would only clutter.
    axis = alt.Axis(grid=False, ticks=False, labels=False)
    # Not left to the chart: layers without a hit have no extent, and a warning would be logged.
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    margin = 0.04 * (high - low) or 1.0
    scale = alt.Scale(domain=[low - margin, high + margin], nice=False)
    return {"x": alt.X, "y": alt.Y}[field](f"{field}:Q", title=title, scale=scale, axis=axis)


def _colour(alt: Any, values: Floats, title: str) -> Any:
    """Few far values must not leave one colour to all others: the ends stand at 2 % and 98 %."""
    known = values[np.isfinite(values)]
    low, middle, high = np.quantile(known, [0.02, 0.5, 0.98]).tolist() if len(known) else (0.0, 0.0, 0.0)
    if not low < middle < high:
        low, middle, high = low - 1.0, (low + high) / 2, high + 1.0
    scale = alt.Scale(domain=[low, middle, high], range=_COLOURS, clamp=True, interpolate="rgb")
    legend = alt.Legend(
        orient="top", titleOrient="left", gradientLength=140, gradientThickness=8, tickCount=3
    )
    return alt.Color("value:Q", title=title, scale=scale, legend=legend)
