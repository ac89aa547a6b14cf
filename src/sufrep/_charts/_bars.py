"""Bars: of a spectrum, and of sizes that differ by orders of magnitude."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._charts._channels import COUNT, NEUTRAL, SHARE, SHARE_TICKS
from sufrep._charts._library import load_altair

if TYPE_CHECKING:
    from sufrep._arrays import Floats

_MOST_BARS = 30
_MOST_BINS = 16
_HEIGHT = 260


def spectrum_bars(
    shares: Floats,
    *,
    index_title: str = "component",
    value_title: str = "share of the variance",
    noise: float | None = None,
    noise_title: str = "what noise alone would give",
) -> Any:
    """Bars of shares in their given order; those below the level of noise are pale.

    Parameters
    ----------
    shares : ndarray, shape (k,)
        The first 30 are drawn.
    index_title, value_title : str
        Of the axes.
    noise : float, optional
        A share, drawn as a line.
    noise_title : str
        Stands at that line.

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    rows = [{"index": j + 1, "share": float(share)} for j, share in enumerate(shares[:_MOST_BARS])]
    y = alt.Y("share:Q", title=value_title, axis=alt.Axis(format=SHARE_TICKS, tickCount=5, domain=False))
    bars = alt.Chart().mark_bar(cornerRadiusEnd=2)
    bars = bars.encode(
        x=alt.X("index:O", title=index_title, axis=alt.Axis(labelAngle=0, ticks=False)),
        y=y,
        opacity=alt.condition(f"datum.share > {noise or 0.0}", alt.value(1), alt.value(0.4)),
        tooltip=[
            alt.Tooltip("index:O", title=index_title),
            alt.Tooltip("share:Q", title=value_title, format=SHARE),
        ],
    )
    layers = [bars]
    if noise is not None:
        level = alt.Chart(alt.Data(values=[{"share": noise, "title": f"- - -  {noise_title}"}])).encode(y=y)
        # In the upper right corner, which falling bars leave free on a phone too.
        text = level.mark_text(align="right", baseline="top", fontSize=11)
        text = text.encode(x=alt.value("width"), y=alt.value(2), text="title:N")
        layers += [level.mark_rule(color=NEUTRAL, strokeWidth=1.5, strokeDash=[4, 3]), text]
    return alt.layer(*layers, data=alt.Data(values=rows)).properties(width="container", height=_HEIGHT)


def size_bars(sizes: Floats, *, size_title: str = "rows of the level", count_title: str = "levels") -> Any:
    """How many are of which size, in bins of one width on a logarithmic axis.

    Parameters
    ----------
    sizes : ndarray, shape (n,)
        Positive.
    size_title, count_title : str
        Of the axes.

    Returns
    -------
    altair.Chart
    """
    alt = load_altair()
    # A weight below 1 is drawn in the first bin, because a logarithm knows no zero.
    sizes = np.maximum(sizes, 1.0)
    edges = log_edges(sizes)
    counts, _ = np.histogram(sizes, edges)
    totals, _ = np.histogram(sizes, edges, weights=sizes)
    rows = [
        {
            "from": float(edges[j]),
            "to": float(edges[j + 1]),
            "count": int(counts[j]),
            "share": float(totals[j] / sizes.sum()),
            "sizes": _range_text(edges[j], edges[j + 1]),
        }
        for j in range(len(counts))
    ]
    scale = alt.Scale(type="log", domain=[float(edges[0]), float(edges[-1])], nice=False)
    axis = alt.Axis(format="~s", tickCount=5, grid=False)
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_rect(xOffset=0.5, x2Offset=-0.5, cornerRadius=1)
        .encode(
            x=alt.X("from:Q", title=size_title, scale=scale, axis=axis),
            x2="to:Q",
            y2=alt.datum(0),
            y=alt.Y("count:Q", title=count_title, axis=alt.Axis(tickCount=5, tickMinStep=1, domain=False)),
            tooltip=[
                alt.Tooltip("sizes:N", title=size_title),
                alt.Tooltip("count:Q", title=count_title, format=COUNT),
                alt.Tooltip("share:Q", title="share of all rows", format=SHARE),
            ],
        )
        .properties(width="container", height=_HEIGHT)
    )


def log_edges(sizes: Floats) -> Floats:
    """Edges of bins, whole numbers in nearly constant ratio, the last beyond the largest size.

    >>> log_edges(np.array([1.0, 3.0, 40.0])).tolist()
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    """
    low, high = max(np.floor(sizes.min()), 1.0), np.floor(sizes.max()) + 1.0
    # Doubling is the ratio that is easiest to read; sizes that are all alike need a finer one.
    for ratio in (2.0, 2**0.5, 2**0.25, 2**0.125):
        n_bins = int(np.ceil(np.log(high / low) / np.log(ratio) - 1e-9))
        if n_bins >= 6:
            break
    while n_bins > _MOST_BINS:
        ratio, n_bins = ratio**2, -(-n_bins // 2)
    return np.unique(np.round(low * ratio ** np.arange(n_bins + 1)))


def _range_text(start: float, stop: float) -> str:
    last = stop - 1
    return f"{start:,.0f}" if last == start else f"{start:,.0f} to {last:,.0f}"
