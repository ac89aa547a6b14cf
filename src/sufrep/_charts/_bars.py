"""Bars: of a spectrum, of level sizes, and of several series in panels."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._charts._altair import COUNT, SHARE, SHARE_TICKS, load_altair, reference_rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._arrays import Floats

_MAX_BARS = 30
_MAX_BINS = 16
# With fewer, doubling sizes makes too few bins to show anything.
_MIN_DOUBLINGS = 6
_HEIGHT = 260
_SHARE_TITLE = "share of the variance"
_SIZE_TITLE = "rows of the level"


def spectrum_bars(shares: Floats, *, noise: float | None = None) -> Any:
    """Bars of shares in the given order; those below the noise level are pale.

    Parameters
    ----------
    shares : ndarray, shape (k,)
        The first 30 are drawn.
    noise : float, optional
        The share that noise alone would reach, drawn as a line.

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    rows = [{"index": j + 1, "share": float(share)} for j, share in enumerate(shares[:_MAX_BARS])]
    y = alt.Y("share:Q", title=_SHARE_TITLE, axis=alt.Axis(format=SHARE_TICKS, tickCount=5, domain=False))
    bars = alt.Chart().mark_bar(cornerRadiusEnd=2)
    bars = bars.encode(
        x=alt.X(
            "index:O", title="component", axis=alt.Axis(labelAngle=0, ticks=False, labelOverlap="greedy")
        ),
        y=y,
        opacity=alt.condition(f"datum.share > {noise or 0.0}", alt.value(1), alt.value(0.4)),
        tooltip=[
            alt.Tooltip("index:O", title="component"),
            alt.Tooltip("share:Q", title=_SHARE_TITLE, format=SHARE),
        ],
    )
    layers = [bars]
    if noise is not None:
        label = "- - -  expected from noise alone"
        level = alt.Chart(alt.Data(values=[{"share": noise, "title": label}])).encode(y=y)
        # The bars of a spectrum decrease, so the upper right corner is free, even on a phone.
        text = level.mark_text(align="right", baseline="top", fontSize=11)
        text = text.encode(x=alt.value("width"), y=alt.value(2), text="title:N")
        layers += [reference_rule(level), text]
    return alt.layer(*layers, data=alt.Data(values=rows)).properties(width="container", height=_HEIGHT)


def size_bars(sizes: Floats) -> Any:
    """Histogram of sizes, with bins of equal width on its axis.

    The axis is logarithmic if sizes differ so much that doubling them makes several bins, else linear.

    Parameters
    ----------
    sizes : ndarray, shape (n,)
        Positive.

    Returns
    -------
    altair.Chart
    """
    alt = load_altair()
    rows, kind = _histogram(sizes)
    scale = alt.Scale(type=kind, domain=[rows[0]["from"], rows[-1]["to"]], nice=False)
    axis = alt.Axis(format="~s", tickCount=5, grid=False)
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_rect(xOffset=0.5, x2Offset=-0.5, cornerRadius=1)
        .encode(
            x=alt.X("from:Q", title=_SIZE_TITLE, scale=scale, axis=axis),
            x2="to:Q",
            y2=alt.datum(0),
            y=alt.Y("count:Q", title="levels", axis=alt.Axis(tickCount=5, tickMinStep=1, domain=False)),
            tooltip=[
                alt.Tooltip("sizes:N", title=_SIZE_TITLE),
                alt.Tooltip("count:Q", title="levels", format=COUNT),
                alt.Tooltip("share:Q", title="share of all rows", format=SHARE),
            ],
        )
        .properties(width="container", height=_HEIGHT)
    )


def grouped_bars(
    *,
    rows: Sequence[Mapping[str, Any]],
    panels: Sequence[str],
    categories: Sequence[str],
    series: Mapping[str, str],
    value_title: str,
    reference_title: str,
    title: str,
    subtitle: str = "",
) -> Any:
    """Panels of grouped bars with intervals, and a diamond at a reference value.

    Parameters
    ----------
    rows : sequence of mappings
        With the keys ``panel``, ``category``, ``series``, ``value`` (a share), ``low``, ``high`` and
        ``reference`` (the last three may be None). All other fields are shown in the tooltip.
    panels, categories : sequences of str
        In the order in which they are drawn; the bars of one category stand side by side.
    series : mapping of str to str
        The colour of each series, in the order of the bars.
    value_title, reference_title, title, subtitle : str
        Titles of the axis, of the diamonds in the legend, and of the chart.

    Returns
    -------
    altair.FacetChart
    """
    alt = load_altair()
    base = alt.Chart().encode(
        x=alt.X(
            "category:N",
            sort=list(categories),
            title=None,
            axis=alt.Axis(labelAngle=0, domain=False, ticks=False),
        ),
        xOffset=alt.XOffset("series:N", sort=list(series)),
        tooltip=_panel_tooltips(alt, rows),
    )
    layers = [_coloured_bars(alt, base, series, value_title)]
    layers += [base.mark_rule(color="#222").encode(y=alt.Y("low:Q", title=value_title), y2="high:Q")]
    # Without any diamond, the legend must not explain one.
    if any(row["reference"] is not None for row in rows):
        layers += [_reference_diamonds(alt, base, reference_title)]
    panel = alt.layer(*layers, data=alt.Data(values=list(rows))).properties(width=330, height=_HEIGHT)
    return panel.facet(
        column=alt.Column("panel:N", sort=list(panels), title=None, header=alt.Header(labelFontSize=13))
    ).properties(title=alt.Title(title, subtitle=subtitle))


def _coloured_bars(alt: Any, base: Any, series: Mapping[str, str], title: str) -> Any:
    # A dark line at zero separates gains from losses.
    grid = alt.condition("datum.value === 0", alt.value("#222"), alt.value("#ddd"))
    colour = alt.Color(
        "series:N",
        sort=list(series),
        scale=alt.Scale(domain=list(series), range=list(series.values())),
        title=None,
        legend=alt.Legend(orient="top"),
    )
    y = alt.Y("value:Q", title=title, axis=alt.Axis(format="%", gridColor=grid))
    return base.mark_bar().encode(y=y, color=colour)


def _reference_diamonds(alt: Any, base: Any, title: str) -> Any:
    diamonds = base.transform_filter("datum.reference !== null").mark_point(
        shape="diamond", size=34, filled=True, opacity=1, stroke="white", strokeWidth=0.7
    )
    fill = alt.Fill(
        "mark:N",
        scale=alt.Scale(domain=[title], range=["#111"]),
        legend=alt.Legend(title=None, orient="top"),
    )
    return diamonds.encode(y="reference:Q", fill=fill).transform_calculate(mark=repr(title))


def _panel_tooltips(alt: Any, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """All fields but the panel's; numbers that are not whole are shares."""
    fields = [field for field in rows[0] if field != "panel"] if rows else []
    shares = {field for field in fields if any(isinstance(row[field], float) for row in rows)}
    return [
        alt.Tooltip(f"{field}:Q", format=".1%") if field in shares else alt.Tooltip(f"{field}:N")
        for field in fields
    ]


def _histogram(sizes: Floats) -> tuple[list[dict[str, Any]], str]:
    """One row per bin, and the kind of the axis on which they have the same width."""
    # A logarithmic axis has no zero: weights below 1 are counted in the first bin.
    sizes = np.maximum(sizes, 1.0)
    edges, kind = size_edges(sizes)
    counts, _ = np.histogram(sizes, edges)
    totals, _ = np.histogram(sizes, edges, weights=sizes)
    rows = [
        {
            "from": float(edges[j]),
            "to": float(edges[j + 1]),
            "count": int(counts[j]),
            "share": float(totals[j] / sizes.sum()),
            "sizes": _range_text(max(edges[j], 1.0), edges[j + 1]),
        }
        for j in range(len(counts))
    ]
    return rows, kind


def size_edges(sizes: Floats) -> tuple[Floats, str]:
    """Edges of bins, whole numbers with the last above the largest size, and the kind of their axis.

    On a logarithmic axis, edges have a constant ratio, a power of 2; on a linear one, a constant difference,
    1, 2 or 5 times a power of 10.

    >>> size_edges(np.array([1.0, 3.0, 40.0]))
    (array([ 1.,  2.,  4.,  8., 16., 32., 64.]), 'log')
    >>> size_edges(np.array([70.0, 90.0, 125.0]))
    (array([ 70.,  75.,  80.,  85.,  90.,  95., 100., 105., 110., 115., 120.,
           125., 130.]), 'linear')
    """
    low, high = max(np.floor(sizes.min()), 1.0), np.floor(sizes.max()) + 1.0
    n_doublings = int(np.ceil(np.log2(high / low) - 1e-9))
    if n_doublings >= _MIN_DOUBLINGS:
        power = -(-n_doublings // _MAX_BINS)
        return low * 2.0 ** (power * np.arange(-(-n_doublings // power) + 1)), "log"
    step = next(
        step
        for step in (unit * 10**digits for digits in count() for unit in (1, 2, 5))
        if np.ceil(high / step) - low // step <= _MAX_BINS
    )
    return step * np.arange(low // step, np.ceil(high / step) + 1), "linear"


def _range_text(start: float, stop: float) -> str:
    last = stop - 1
    return f"{start:,.0f}" if last == start else f"{start:,.0f} to {last:,.0f}"
