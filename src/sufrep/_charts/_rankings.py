"""Rankings: one row per name, with an interval for each series or a dot for each fold."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sufrep._charts._altair import (
    NEUTRAL,
    NUMBER,
    SHARE,
    load_altair,
    reference_rule,
    series_colour,
    tick_format,
    tooltips,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Height of a row, and what each further series adds to it, in pixels.
_ROW_HEIGHT = 26
_SERIES_HEIGHT = 10
# Panels that stand side by side.
_PANEL_WIDTH = 88
_PANEL_ROW_HEIGHT = 15
_PANEL_COLOUR = "#5f6b7a"
_HIGHLIGHT_COLOUR = "#d1495b"
# With more folds than this, colours would be hard to distinguish; all dots then have the same colour.
_MAX_COLOURS = 8
# Between the ends of an axis and its outermost dots, as a share of its length.
_MARGIN = 0.02


def axis_limits(
    values: Sequence[float], always: Sequence[float] = (), *, drawn: Sequence[float] = ()
) -> tuple[float, float]:
    """Ends of an axis on which the better half of the values can be distinguished, however bad the rest.

    Zero, the better half (at least so much of it that it is not a single value) and what must always be seen
    get at least a third of the axis.

    Parameters
    ----------
    values : sequence of float
        The larger, the better.
    always : sequence of float
        What must be seen in any case, such as the ends of the best interval.
    drawn : sequence of float
        What is drawn in addition; the axis is no longer than this and the values need.

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> axis_limits([0.1, 0.05, 0.0, -0.1])
    (-0.1, 0.1)
    >>> axis_limits([0.1, 0.05, 0.0, -25.0])
    (-0.1, 0.1)
    """
    ranked = sorted(values, reverse=True)
    seen = [0.0, *always, *ranked[: (len(ranked) + 1) // 2]]
    low, high = min(seen), max(seen)
    if low == high:
        low = next((value for value in ranked if value < low), low)
    everything, length = [low, high, *values, *drawn], high - low
    return max(min(everything), low - length), min(max(everything), high + length)


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
    highlighted: str | None = None,
    highlighted_series: str | None = None,
    limits: tuple[float, float] | None = None,
) -> Any:
    """A ranking with one row per name, one dot with its interval per series, and a line at zero.

    Parameters
    ----------
    rows : sequence of mappings
        With the keys ``name``, ``series``, ``value``, ``low``, ``high`` (the last two may be None) and the
        other fields of `hover`.
    names, series : sequences of str
        In the order in which they are shown, from the top.
    value_title : str
        Title of the axis.
    hover : mapping of str to str
        Fields to show in the tooltip, and their titles.
    percent : bool
        Whether values are shares.
    baseline : str, optional
        The name that the others are compared with; it is set in italics, and called the baseline.
    reference_title : str
        Label of the line at zero.
    highlighted : str, optional
        The name that matters most: it is set in bold, and the others are paler.
    highlighted_series : str, optional
        The only series of this name that is not paler; by default all of them.
    limits : pair of float, optional
        Ends of the axis; see `axis_limits`. Values beyond them are arrows at its ends, with their number
        (of folds, with that of their mean).

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    base = alt.Chart().encode(
        y=_name_axis(alt, names, baseline, highlighted),
        yOffset=alt.YOffset("series:N", sort=list(series)),
        color=series_colour(alt, "series", series),
        tooltip=tooltips(alt, rows, hover, {"value", "low", "high"} if percent else ()),
    )
    x = _value_axis(alt, value_title, percent, limits)
    inside = _inside(base, "value", limits)
    intervals = inside.transform_filter("datum.low !== null && datum.high !== null")
    intervals = intervals.mark_rule(strokeWidth=2, opacity=0.55).encode(x=x("low"), x2="high:Q")
    dots = inside.mark_circle(size=80, opacity=1).encode(x=x("value"))
    if highlighted is not None:
        is_highlighted = f"datum.name === {json.dumps(highlighted)}"
        if highlighted_series is not None:
            is_highlighted += f" && datum.series === {json.dumps(highlighted_series)}"
        intervals = intervals.encode(opacity=alt.condition(is_highlighted, alt.value(0.9), alt.value(0.35)))
        dots = dots.encode(opacity=alt.condition(is_highlighted, alt.value(1), alt.value(0.5)))
    height = len(names) * (_ROW_HEIGHT + _SERIES_HEIGHT * (len(series) - 1))
    return alt.layer(
        *_zero_line(alt, x, reference_title),
        intervals,
        dots,
        *_arrows(base, x, "value", limits),
        *_numbers(alt, base, x, "value", limits, percent),
        data=alt.Data(values=list(rows)),
    ).properties(width="container", height=height)


def paired_dots(
    *,
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    value_title: str,
    hover: Mapping[str, str],
    percent: bool = True,
    reference_title: str = "",
    highlighted: str | None = None,
    limits: tuple[float, float] | None = None,
) -> Any:
    """The same folds for every name: one dot per fold, a line over their range, a tick at their mean.

    Pointing at a dot highlights its fold in every row.

    Parameters
    ----------
    rows : sequence of mappings
        With the keys ``name``, ``fold`` (text), ``value`` and the other fields of `hover`.
    names : sequence of str
        In the order in which they are shown, from the top.
    value_title, hover, percent, reference_title, limits
        As for :func:`interval_dots`.
    highlighted : str, optional
        The name that is set in bold.

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    x = _value_axis(alt, value_title, percent, limits)
    y = _name_axis(alt, names, None, highlighted)
    ranges = alt.Chart(alt.Data(values=_fold_ranges(rows))).encode(y=y)
    lines = ranges.mark_rule(color=NEUTRAL, strokeWidth=1.5).encode(x=x("low"), x2="high:Q")
    means = (
        _inside(ranges, "mean", limits)
        .mark_tick(color=NEUTRAL, thickness=3, size=18, opacity=1)
        .encode(x=x("mean"))
    )
    pointed = alt.selection_point(name="pointed", fields=["fold"], on="pointerover", clear="pointerout")
    base = alt.Chart().encode(y=y, tooltip=tooltips(alt, rows, hover, {"value"} if percent else ()))
    folds = list(dict.fromkeys(row["fold"] for row in rows))
    if len(folds) <= _MAX_COLOURS:
        base = base.encode(color=series_colour(alt, "fold", folds, "fold", columns=_MAX_COLOURS))
    dots = _inside(base, "value", limits).mark_circle(size=64).add_params(pointed)
    dots = dots.encode(x=x("value"), opacity=alt.condition(pointed, alt.value(0.85), alt.value(0.12)))
    return alt.layer(
        *_zero_line(alt, x, reference_title),
        lines,
        means,
        dots,
        *_arrows(base, x, "value", limits),
        *_numbers(alt, ranges, x, "mean", limits, percent),
        data=alt.Data(values=list(rows)),
    ).properties(width="container", height=len(names) * _ROW_HEIGHT)


def dot_panels(
    *,
    rows: Sequence[Mapping[str, Any]],
    panels: Sequence[str],
    names: Sequence[str],
    measures: Mapping[str, float],
    highlighted: str,
    title: str,
    subtitle: str = "",
) -> Any:
    """Panels of dots with intervals: a line of panels for each measure, a row for each name.

    Parameters
    ----------
    rows : sequence of mappings
        With the keys ``measure``, ``panel``, ``name``, ``value``, ``low`` and ``high`` (the last two may be
        None).
    panels, names : sequences of str
        In the order in which they are shown.
    measures : mapping of str to float
        What is measured, and its value in the best case, which a line marks.
    highlighted : str
        The name whose dots have their own colour.
    title, subtitle : str

    Returns
    -------
    altair.VConcatChart
    """
    alt = load_altair()
    lines = [
        _panel_line(alt, [row for row in rows if row["measure"] == measure], panels, names, best, highlighted)
        for measure, best in measures.items()
    ]
    return alt.vconcat(*lines).properties(title=alt.Title(title, subtitle=subtitle))


def _panel_line(
    alt: Any,
    rows: Sequence[Mapping[str, Any]],
    panels: Sequence[str],
    names: Sequence[str],
    best: float,
    highlighted: str,
) -> Any:
    measure = rows[0]["measure"] if rows else ""
    scale = alt.Scale(zero=False)
    base = alt.Chart().encode(
        y=alt.Y("name:N", sort=list(names), title=None, axis=alt.Axis(grid=True, labelLimit=160)),
        color=alt.condition(
            alt.datum.name == highlighted, alt.value(_HIGHLIGHT_COLOUR), alt.value(_PANEL_COLOUR)
        ),
        tooltip=tooltips(
            alt, rows, {"name": "method", "panel": "arm", "value": measure, "low": "low", "high": "high"}
        ),
    )
    axis = alt.Axis(tickCount=3)
    intervals = base.transform_filter("datum.low !== null && datum.high !== null")
    intervals = intervals.mark_rule(strokeWidth=2, opacity=0.55)
    intervals = intervals.encode(x=alt.X("low:Q", title=measure, scale=scale, axis=axis), x2="high:Q")
    dots = base.mark_circle(size=45, opacity=1).encode(
        x=alt.X("value:Q", title=measure, scale=scale, axis=axis)
    )
    line = reference_rule(alt.Chart()).encode(x=alt.datum(best))
    layers = alt.layer(line, intervals, dots, data=alt.Data(values=list(rows)))
    panel = layers.properties(width=_PANEL_WIDTH, height=len(names) * _PANEL_ROW_HEIGHT)
    column = alt.Column("panel:N", sort=list(panels), title=None, header=alt.Header(labelFontSize=12))
    return panel.facet(column=column, spacing=8)


def _name_axis(alt: Any, names: Sequence[str], baseline: str | None, highlighted: str | None = None) -> Any:
    is_baseline, is_bold = (f"datum.value === {json.dumps(name)}" for name in (baseline, highlighted))
    axis = alt.Axis(
        domain=False,
        ticks=False,
        grid=True,
        # Grid lines between the names, not through them, keep the dots of one name together.
        tickBand="extent",
        labelPadding=10,
        labelFontWeight=alt.condition(is_bold, alt.value("bold"), alt.value("normal")),
        labelFontStyle=alt.condition(is_baseline, alt.value("italic"), alt.value("normal")),
        labelExpr=f"{is_baseline} ? datum.label + ' (baseline)' : datum.label",
    )
    return alt.Y("name:N", sort=list(names), scale=alt.Scale(domain=list(names)), title=None, axis=axis)


def _value_axis(alt: Any, title: str, percent: bool, limits: tuple[float, float] | None) -> Any:
    """A function from a field to its encoding on the axis that all layers share."""
    scale = alt.Scale(zero=True, padding=12)
    if limits is not None:
        margin = _MARGIN * (limits[1] - limits[0]) or 1.0
        domain = [limits[0] - margin, limits[1] + margin]
        scale = alt.Scale(domain=domain, clamp=True, nice=False)

    def encode(field: str) -> Any:
        # On a phone, the plot is about 200 pixels wide.
        count = alt.ExprRef("width < 320 ? 3 : 6")
        axis = alt.Axis(format=tick_format(percent), tickCount=count, domain=False)
        return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)

    return encode


def _inside(chart: Any, field: str, limits: tuple[float, float] | None) -> Any:
    """The rows whose value is on the axis."""
    if limits is None:
        return chart
    return chart.transform_filter(f"datum.{field} >= {limits[0]} && datum.{field} <= {limits[1]}")


def _beyond(chart: Any, field: str, limits: tuple[float, float] | None) -> dict[str, Any]:
    """The rows whose value is beyond an end of the axis, by the end; the scale puts them there."""
    if limits is None:
        return {}
    return {
        "left": chart.transform_filter(f"datum.{field} !== null && datum.{field} < {limits[0]}"),
        "right": chart.transform_filter(f"datum.{field} > {limits[1]}"),
    }


def _arrows(chart: Any, x: Any, field: str, limits: tuple[float, float] | None) -> list[Any]:
    return [
        rows.mark_point(shape=f"triangle-{end}", filled=True, size=80, opacity=1).encode(x=x(field))
        for end, rows in _beyond(chart, field, limits).items()
    ]


def _numbers(
    alt: Any, chart: Any, x: Any, field: str, limits: tuple[float, float] | None, percent: bool
) -> list[Any]:
    """The numbers of arrows, next to them."""
    text = alt.Text(f"{field}:Q", format=SHARE if percent else NUMBER)
    return [
        rows.mark_text(align=end, dx=9 if end == "left" else -9, fontSize=11).encode(x=x(field), text=text)
        for end, rows in _beyond(chart, field, limits).items()
    ]


def _zero_line(alt: Any, x: Any, title: str) -> list[Any]:
    zero = alt.Chart(alt.Data(values=[{"zero": 0, "title": title}])).encode(x=x("zero"))
    line = reference_rule(zero)
    text = zero.mark_text(align="left", dx=5, dy=-7, fontSize=11).encode(y=alt.value(0), text="title:N")
    return [line, text] if title else [line]


def _fold_ranges(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    by_name = groupby(sorted(rows, key=lambda row: row["name"]), key=lambda row: row["name"])
    known = {name: [row["value"] for row in group if row["value"] is not None] for name, group in by_name}
    return [
        {"name": name, "low": min(values), "high": max(values), "mean": sum(values) / len(values)}
        for name, values in known.items()
        if values
    ]
