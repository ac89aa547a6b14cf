"""Names below each other with what was measured of each: with intervals, or fold by fold."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sufrep._charts._channels import NEUTRAL, series_colour, ticks, tooltips
from sufrep._charts._library import load_altair

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ROW = 26
_SERIES = 10
# More folds than there are colours that can be told apart share one.
_MOST_COLOURS = 8


def interval_dots(
    *,
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    series: Sequence[str],
    value_title: str,
    hover: Mapping[str, str],
    percent: bool = True,
    baseline: str | None = None,
    reference_title: str = "",
) -> Any:
    """A ranking: one row a name, one dot and its interval a series, and a line at zero.

    Parameters
    ----------
    rows : sequence of mappings
        With the keys ``name``, ``series``, ``value``, ``low``, ``high`` (these two may be None) and whatever
        else shall be shown on hover.
    names, series : sequences of str
        Their order, from the top.
    value_title : str
        Of the axis.
    hover : mapping of str to str
        Fields to show on hover, and what to call them.
    percent : bool
        Whether values are shares.
    baseline : str, optional
        The name that is marked as what the others are compared with.
    reference_title : str
        Stands at the line at zero.

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    base = alt.Chart().encode(
        y=_name_axis(alt, names, baseline),
        yOffset=alt.YOffset("series:N", sort=list(series)),
        color=series_colour(alt, "series", series),
        tooltip=tooltips(alt, rows, hover, {"value", "low", "high"} if percent else ()),
    )
    x = _value_axis(alt, value_title, percent)
    whiskers = base.transform_filter("datum.low !== null && datum.high !== null")
    whiskers = whiskers.mark_rule(strokeWidth=2, opacity=0.55).encode(x=x("low"), x2="high:Q")
    dots = base.mark_circle(size=80, opacity=1).encode(x=x("value"))
    height = len(names) * (_ROW + _SERIES * (len(series) - 1))
    return alt.layer(
        *_zero_line(alt, x, reference_title), whiskers, dots, data=alt.Data(values=list(rows))
    ).properties(width="container", height=height)


def paired_dots(
    *,
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    value_title: str,
    hover: Mapping[str, str],
    percent: bool = True,
    reference_title: str = "",
) -> Any:
    """The same folds for every name: a dot a fold, a line from the least to the most, a tick at the mean.

    Pointing at a dot brings out its fold in every row.

    Parameters
    ----------
    rows : sequence of mappings
        With the keys ``name``, ``fold`` (text), ``value`` and whatever else shall be shown on hover.
    names : sequence of str
        Their order, from the top.
    value_title, hover, percent, reference_title
        As for :func:`interval_dots`.

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    x = _value_axis(alt, value_title, percent)
    y = _name_axis(alt, names, None)
    spans = alt.Chart(alt.Data(values=_spans(rows))).encode(y=y)
    lines = spans.mark_rule(color=NEUTRAL, strokeWidth=1.5).encode(x=x("low"), x2="high:Q")
    means = spans.mark_tick(color=NEUTRAL, thickness=3, size=18, opacity=1).encode(x=x("mean"))
    folds = list(dict.fromkeys(row["fold"] for row in rows))
    pointed = alt.selection_point(name="pointed", fields=["fold"], on="pointerover", clear="pointerout")
    dots = alt.Chart().mark_circle(size=64).add_params(pointed)
    dots = dots.encode(
        y=y,
        x=x("value"),
        opacity=alt.condition(pointed, alt.value(0.85), alt.value(0.12)),
        tooltip=tooltips(alt, rows, hover, {"value"} if percent else ()),
        **(
            {"color": series_colour(alt, "fold", folds, "fold", columns=_MOST_COLOURS)}
            if len(folds) <= _MOST_COLOURS
            else {}
        ),
    )
    return alt.layer(
        *_zero_line(alt, x, reference_title), lines, means, dots, data=alt.Data(values=list(rows))
    ).properties(width="container", height=len(names) * _ROW)


def _name_axis(alt: Any, names: Sequence[str], baseline: str | None) -> Any:
    marked = f"datum.value === {json.dumps(baseline)}"
    axis = alt.Axis(
        domain=False,
        ticks=False,
        grid=True,
        # Lines between the names hold the dots of one name together.
        tickBand="extent",
        labelPadding=10,
        labelFontWeight=alt.condition(marked, alt.value("bold"), alt.value("normal")),
        labelExpr=f"{marked} ? datum.label + ' (baseline)' : datum.label",
    )
    return alt.Y("name:N", sort=list(names), scale=alt.Scale(domain=list(names)), title=None, axis=axis)


def _value_axis(alt: Any, title: str, percent: bool) -> Any:
    """A function from a field to its place on the one axis that all layers share."""

    def place(field: str) -> Any:
        axis = alt.Axis(format=ticks(percent), tickCount=6, domain=False)
        return alt.X(f"{field}:Q", title=title, scale=alt.Scale(zero=True, padding=12), axis=axis)

    return place


def _zero_line(alt: Any, x: Any, title: str) -> list[Any]:
    zero = alt.Chart(alt.Data(values=[{"zero": 0, "title": title}])).encode(x=x("zero"))
    line = zero.mark_rule(color=NEUTRAL, strokeWidth=1.5, strokeDash=[4, 3])
    text = zero.mark_text(align="left", dx=5, dy=-7, fontSize=11).encode(y=alt.value(0), text="title:N")
    return [line, text] if title else [line]


def _spans(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    by_name = groupby(sorted(rows, key=lambda row: row["name"]), key=lambda row: row["name"])
    found = {name: [row["value"] for row in group if row["value"] is not None] for name, group in by_name}
    return [
        {"name": name, "low": min(values), "high": max(values), "mean": sum(values) / len(values)}
        for name, values in found.items()
        if values
    ]
