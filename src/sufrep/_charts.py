"""Arrays and tables to Altair charts."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sufrep._arrays import Floats

# More labels than this cover each other, more points make a heavy page.
_MOST_LABELS = 30
_MOST_POINTS = 5_000


def labelled_points(
    *, labels: Sequence[str], points: Floats, sizes: Floats, titles: Sequence[str], title: str
) -> Any:
    """Points in the plane; the largest carry their label, all show it on hover.

    Parameters
    ----------
    labels : sequence of str, length n
    points : ndarray, shape (n, 2)
    sizes : ndarray, shape (n,)
    titles : sequence of 2 str
        Titles of the axes.
    title : str

    Returns
    -------
    altair.LayerChart
    """
    alt = _altair()
    largest = np.argsort(-sizes, kind="stable")[:_MOST_POINTS]
    rows = [
        {
            "label": labels[i],
            "x": float(points[i, 0]),
            "y": float(points[i, 1]),
            "weight": float(sizes[i]),
            "named": labels[i] if rank < _MOST_LABELS else "",
        }
        for rank, i in enumerate(largest.tolist())
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("x:Q", title=titles[0], scale=alt.Scale(zero=False, padding=12)),
        y=alt.Y("y:Q", title=titles[1], scale=alt.Scale(zero=False, padding=12)),
    )
    dots = base.mark_circle(opacity=0.6).encode(
        size=alt.Size("weight:Q", title="rows", scale=alt.Scale(range=[20, 300])),
        tooltip=[alt.Tooltip("label:N", title="level"), alt.Tooltip("weight:Q", title="rows")],
    )
    text = base.mark_text(dy=-9, fontSize=10, limit=90).encode(text="named:N")
    return (dots + text).properties(title=title, width=520, height=400)


def grouped_bars(
    *,
    rows: Sequence[Mapping[str, Any]],
    panels: Sequence[str],
    places: Sequence[str],
    series: Mapping[str, str],
    value_title: str,
    reference_title: str,
    title: str,
    subtitle: str = "",
) -> Any:
    """Bars of several series side by side at each place, in panels, with intervals and a mark for comparison.

    Parameters
    ----------
    rows : sequence of mappings
        With the keys ``panel``, ``place``, ``series``, ``value`` (a share), ``low``, ``high``, ``reference``
        (these three may be None) and whatever else shall be shown on hover.
    panels, places : sequences of str
        Their order.
    series : mapping of str to str
        The colour of each series, in the order of the bars.
    value_title, reference_title, title, subtitle : str
        Of the axis, of the marks, and of the whole.

    Returns
    -------
    altair.FacetChart
    """
    alt = _altair()
    shown = [name for name in rows[0] if name != "panel"] if rows else []
    base = alt.Chart().encode(
        x=alt.X(
            "place:N", sort=list(places), title=None, axis=alt.Axis(labelAngle=0, domain=False, ticks=False)
        ),
        xOffset=alt.XOffset("series:N", sort=list(series)),
        tooltip=[_hover(alt, name, rows) for name in shown],
    )
    # Bars below zero are told from those above by the line between them.
    zero = alt.condition("datum.value === 0", alt.value("#222"), alt.value("#ddd"))
    value = alt.Y("value:Q", title=value_title, axis=alt.Axis(format="%", gridColor=zero))
    colour = alt.Color(
        "series:N",
        sort=list(series),
        scale=alt.Scale(domain=list(series), range=list(series.values())),
        title=None,
        legend=alt.Legend(orient="top"),
    )
    bars = base.mark_bar().encode(y=value, color=colour)
    whiskers = base.mark_rule(color="#222").encode(y=alt.Y("low:Q", title=value_title), y2="high:Q")
    marks = base.transform_filter("datum.reference !== null").mark_point(
        shape="diamond", size=34, filled=True, opacity=1, stroke="white", strokeWidth=0.7
    )
    marks = marks.encode(
        y="reference:Q",
        fill=alt.Fill(
            "mark:N",
            scale=alt.Scale(domain=[reference_title], range=["#111"]),
            legend=alt.Legend(title=None, orient="top"),
        ),
    ).transform_calculate(mark=repr(reference_title))
    # Without marks, their name has no place in the legend either.
    drawn = [bars, whiskers, *([marks] if any(row["reference"] is not None for row in rows) else [])]
    layers = alt.layer(*drawn, data=alt.Data(values=list(rows))).properties(width=330, height=260)
    return layers.facet(
        column=alt.Column("panel:N", sort=list(panels), title=None, header=alt.Header(labelFontSize=13))
    ).properties(title=alt.Title(title, subtitle=subtitle))


def _hover(alt: Any, name: str, rows: Sequence[Mapping[str, Any]]) -> Any:
    numeric = any(isinstance(row[name], float) for row in rows)
    return alt.Tooltip(f"{name}:Q", format=".1%") if numeric else alt.Tooltip(f"{name}:N")


def write_chart(chart: Any, path: Path) -> list[Path]:
    """Write a chart as PNG, SVG and interactive HTML that needs no network; `path` is without its ending.

    Each file appears whole or not at all.
    """
    if find_spec("vl_convert") is None:
        raise MissingDependencyError("vl-convert-python", "Writing pictures", "report")
    written = []
    formats: dict[str, dict[str, Any]] = {"png": {"scale_factor": 2}, "svg": {}, "html": {"inline": True}}
    for ending, options in formats.items():
        final = path.with_name(f"{path.name}.{ending}")
        part = path.with_name(f"{path.name}.part")
        try:
            chart.save(part, format=ending, **options)
            part.replace(final)
        finally:
            part.unlink(missing_ok=True)
        written.append(final)
    return written


def _altair() -> Any:
    if find_spec("altair") is None:
        raise MissingDependencyError("altair", "Drawing", "report")
    import altair

    return altair
