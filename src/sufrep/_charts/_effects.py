"""Charts of treatment effects: overlap of the arms, overall and by group, and balance of the covariates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._charts._altair import (
    COUNT,
    NEUTRAL,
    NUMBER_TICKS,
    SHARE,
    load_altair,
    reference_rule,
    series_colour,
    tooltips,
)
from sufrep._charts._points import MAX_LEVELS
from sufrep.errors import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._arrays import Floats, Mask

_HEIGHT = 260
_ROW_HEIGHT = 22
_N_BINS = 25
# Groups in a tooltip.
_NAMED = 5
_FEW = 10
# Differences of less than a tenth of a standard deviation are usually called balanced.
_BALANCED = 0.1
_KEPT, _DROPPED = "kept", "dropped"
_BEFORE, _AFTER = "before", "after"


def propensity_bars(propensity: Floats, treated: Mask) -> Any:
    """Histograms of the propensities: treated rows upwards, untreated rows downwards.

    Parameters
    ----------
    propensity : ndarray, shape (n,)
        Between 0 and 1.
    treated : ndarray of bool, shape (n,)

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    edges = np.linspace(0.0, 1.0, _N_BINS + 1)
    rows = []
    for arm, inside, sign in (("treated", treated, 1), ("untreated", ~treated, -1)):
        counts, _ = np.histogram(propensity[inside], edges)
        for j, count in enumerate(counts.tolist()):
            share = count / max(int(inside.sum()), 1)
            bounds = {"from": float(edges[j]), "to": float(edges[j + 1])}
            rows.append({"arm": arm, **bounds, "count": count, "share": share, "height": sign * share})
    axis = alt.Axis(labelExpr="format(abs(datum.value), '.2~%')", tickCount=6, domain=False)
    bars = alt.Chart().mark_rect(xOffset=0.5, x2Offset=-0.5, cornerRadius=1)
    bars = bars.encode(
        x=alt.X(
            "from:Q",
            title="estimated probability of treatment",
            scale=alt.Scale(domain=[0, 1], nice=False),
            axis=alt.Axis(format=".2~%", tickCount=5, grid=False),
        ),
        x2="to:Q",
        y=alt.Y("height:Q", title="share of the rows of the arm", axis=axis),
        y2=alt.datum(0),
        color=series_colour(alt, "arm", ["treated", "untreated"]),
        tooltip=[
            alt.Tooltip("arm:N", title="rows"),
            alt.Tooltip("from:Q", title="probability from", format=SHARE),
            alt.Tooltip("to:Q", title="to", format=SHARE),
            alt.Tooltip("count:Q", title="number of rows", format=COUNT),
            alt.Tooltip("share:Q", title="share of the arm", format=SHARE),
        ],
    )
    zero = reference_rule(alt.Chart(alt.Data(values=[{"height": 0}])).encode(y="height:Q"))
    return alt.layer(bars, zero, data=alt.Data(values=rows)).properties(width="container", height=_HEIGHT)


def group_shares(
    *, labels: Sequence[str], sizes: Floats, shares: Floats, dropped: Mask, group_title: str
) -> Any:
    """Groups by their size and their share of treated rows; those that were dropped are marked.

    Groups with the same numbers are one larger dot.

    Parameters
    ----------
    labels : sequence of str, length n
    sizes : ndarray, shape (n,)
        Number of rows, positive. Only the largest groups are drawn, at most ``MAX_LEVELS``.
    shares : ndarray, shape (n,)
        Share of treated rows.
    dropped : ndarray of bool, shape (n,)
    group_title : str
        What a group is called, in the singular.

    Returns
    -------
    altair.Chart
    """
    alt = load_altair()
    rows = _group_rows(labels, sizes, shares, dropped)
    kinds = [_KEPT, *([_DROPPED] if any(row["kind"] == _DROPPED for row in rows) else [])]
    # A few groups with the same numbers are not yet a large dot.
    most = max([_FEW, *(row["count"] for row in rows)])
    # Where all groups have one size, a logarithmic axis around it needs a width of its own.
    low, high = float(np.min(sizes, initial=np.inf)), float(np.max(sizes, initial=1.0))
    domain = [min(low, high) / 1.15, high * 1.15]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, opacity=0.75)
        .encode(
            x=alt.X(
                "size:Q",
                title=f"rows per {group_title}",
                scale=alt.Scale(type="log", domain=domain, nice=False),
                axis=alt.Axis(format="~s", tickCount=5, grid=False),
            ),
            y=alt.Y(
                "share:Q",
                title="share of treated rows",
                scale=alt.Scale(domain=[0, 1], padding=8),
                axis=alt.Axis(format=".2~%", tickCount=5, domain=False),
            ),
            color=series_colour(alt, "kind", kinds),
            shape=alt.condition(
                f"datum.kind === {json.dumps(_DROPPED)}", alt.value("cross"), alt.value("circle")
            ),
            size=alt.Size("count:Q", scale=alt.Scale(domain=[1, most], range=[46, 420]), legend=None),
            tooltip=[
                alt.Tooltip("label:N", title=group_title),
                alt.Tooltip("size:Q", title=f"rows per {group_title}", format=COUNT),
                alt.Tooltip("share:Q", title="treated", format=SHARE),
            ],
        )
        .properties(width="container", height=_HEIGHT)
    )


def _group_rows(labels: Sequence[str], sizes: Floats, shares: Floats, dropped: Mask) -> list[dict[str, Any]]:
    """One row for the groups that have the same numbers."""
    found: dict[tuple[int, float, str], list[str]] = {}
    for i in np.argsort(-sizes, kind="stable")[:MAX_LEVELS].tolist():
        key = (int(sizes[i]), float(shares[i]), _DROPPED if dropped[i] else _KEPT)
        found.setdefault(key, []).append(labels[i])
    return [
        {
            "label": listed(same, _NAMED, quote=False),
            "count": len(same),
            "size": size,
            "share": share,
            "kind": kind,
        }
        for (size, share, kind), same in found.items()
    ]


def love_plot(sections: Mapping[str, Sequence[tuple[str, float, float]]]) -> Any:
    """Standardised differences before and after weighting, with lines at a tenth of a standard deviation.

    Parameters
    ----------
    sections : mapping of str to sequences of (name, before, after)
        The title of each section stands above its rows.

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    labels: list[str] = []
    headings: list[int] = []
    rows: list[dict[str, Any]] = []
    for title, found in sections.items():
        if not found:
            continue
        headings.append(len(labels))
        labels.append(title)
        for name, before, after in found:
            # Names of columns need not be distinct from titles, so rows are numbered.
            for series, value in ((_BEFORE, before), (_AFTER, after)):
                row = {"row": len(labels), "name": name, "series": series, "value": value}
                rows.append({**row, "before": before, "after": after})
            labels.append(name)
    axis = alt.Axis(
        domain=False,
        ticks=False,
        grid=False,
        labelPadding=10,
        labelOverlap=False,
        labelExpr=f"{json.dumps(labels)}[datum.value]",
        labelFontWeight=alt.condition(
            f"indexof({json.dumps(headings)}, datum.value) >= 0", alt.value("bold"), alt.value("normal")
        ),
    )
    y = alt.Y("row:O", scale=alt.Scale(domain=list(range(len(labels)))), title=None, axis=axis)

    def x(field: str) -> Any:
        return alt.X(
            f"{field}:Q",
            title="treated less untreated rows, in standard deviations",
            scale=alt.Scale(zero=True, padding=12),
            axis=alt.Axis(format=NUMBER_TICKS, tickCount=6, domain=False),
        )

    hover = {"name": "column", "before": "before weighting", "after": "after weighting"}
    base = alt.Chart().encode(y=y, tooltip=tooltips(alt, rows, hover))
    changes = base.transform_filter(f"datum.series === {json.dumps(_AFTER)}")
    changes = changes.mark_rule(color=NEUTRAL, strokeWidth=1.5, opacity=0.6).encode(
        x=x("before"), x2="after:Q"
    )
    dots = base.mark_point(filled=True, size=64, opacity=0.95).encode(
        x=x("value"), color=series_colour(alt, "series", [_BEFORE, _AFTER])
    )
    limits = alt.Chart(alt.Data(values=[{"value": -_BALANCED}, {"value": _BALANCED}])).encode(x=x("value"))
    zero = alt.Chart(alt.Data(values=[{"value": 0}])).mark_rule(color=NEUTRAL).encode(x=x("value"))
    return alt.layer(zero, reference_rule(limits), changes, dots, data=alt.Data(values=rows)).properties(
        width="container", height=max(len(labels), 1) * _ROW_HEIGHT
    )
