"""Bars in panels, for a paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sufrep._charts._library import load_altair

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
    alt = load_altair()
    shown = [name for name in rows[0] if name != "panel"] if rows else []
    base = alt.Chart().encode(
        x=alt.X(
            "place:N", sort=list(places), title=None, axis=alt.Axis(labelAngle=0, domain=False, ticks=False)
        ),
        xOffset=alt.XOffset("series:N", sort=list(series)),
        tooltip=[_shown_on_hover(alt, name, rows) for name in shown],
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


def _shown_on_hover(alt: Any, name: str, rows: Sequence[Mapping[str, Any]]) -> Any:
    numeric = any(isinstance(row[name], float) for row in rows)
    return alt.Tooltip(f"{name}:Q", format=".1%") if numeric else alt.Tooltip(f"{name}:N")
