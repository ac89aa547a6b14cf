"""Cost against gain: dots whose names stand beside them wherever there is room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._charts._channels import NEUTRAL, series_colour, ticks, tooltips
from sufrep._charts._labels import GAP, name_sides
from sufrep._charts._library import load_altair

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._arrays import Floats

_HEIGHT = 400
# Names are placed for the plane of a desktop and for that of a phone, in pixels.
_WIDE, _NARROW = 560, 190


def labelled_scatter(
    *,
    rows: Sequence[Mapping[str, Any]],
    series: Sequence[str],
    x_title: str,
    y_title: str,
    hover: Mapping[str, str],
    percent: bool = True,
) -> Any:
    """Dots at x (positive, on a logarithmic axis) and y, with a line at y = 0.

    The names of those that nothing beats in both (further left and higher) are placed first.

    Parameters
    ----------
    rows : sequence of mappings
        With the keys ``name``, ``series``, ``x``, ``y`` and whatever else shall be shown on hover.
    series : sequence of str
        Their order; each has its colour.
    x_title, y_title : str
    hover : mapping of str to str
        Fields to show on hover, and what to call them.
    percent : bool
        Whether y is a share.

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    wide, narrow = (_places(rows, width) for width in (_WIDE, _NARROW))
    placed = [{**row, "wide": w, "narrow": n} for row, w, n in zip(rows, wide, narrow, strict=True)]
    base = alt.Chart().encode(
        x=alt.X(
            "x:Q",
            title=x_title,
            scale=alt.Scale(type="log", nice=False, padding=24),
            axis=alt.Axis(format="~g", tickCount=5, grid=False),
        ),
        y=_gain_axis(alt, y_title, percent),
    )
    dots = base.mark_circle(size=80, opacity=0.9).encode(
        color=series_colour(alt, "series", series),
        tooltip=tooltips(alt, rows, hover, {"y"} if percent else ()),
    )
    side = f"(width > {(_WIDE + _NARROW) // 2} ? datum.wide : datum.narrow)"
    names = base.transform_filter(f"{side} != ''").mark_text(
        fontSize=11,
        baseline="middle",
        align=alt.expr(f"{side} == 'right' ? 'left' : {side} == 'left' ? 'right' : 'center'"),
        dx=alt.expr(f"{side} == 'right' ? {GAP} : {side} == 'left' ? -{GAP} : 0"),
        dy=alt.expr(f"{side} == 'top' ? -{1.5 * GAP} : 0"),
    )
    zero = alt.Chart(alt.Data(values=[{"y": 0}])).encode(y=_gain_axis(alt, y_title, percent))
    line = zero.mark_rule(color=NEUTRAL, strokeWidth=1.5, strokeDash=[4, 3])
    return alt.layer(line, dots, names.encode(text="name:N"), data=alt.Data(values=placed)).properties(
        width="container", height=_HEIGHT
    )


def _places(rows: Sequence[Mapping[str, Any]], width: float) -> list[str]:
    points = np.array([[np.log(row["x"]), row["y"]] for row in rows], dtype=float).reshape(-1, 2)
    return name_sides([row["name"] for row in rows], points, _by_worth(points), (width, _HEIGHT))


def _by_worth(points: Floats) -> list[int]:
    """Those that nothing beats in both first, each kind from the top."""
    x, y = points.T
    no_worse = (x <= x[:, None]) & (y >= y[:, None])
    better = (x < x[:, None]) | (y > y[:, None])
    beaten = (no_worse & better).any(axis=1)
    return [int(i) for i in np.lexsort((x, -y, beaten))]


def _gain_axis(alt: Any, title: str, percent: bool) -> Any:
    axis = alt.Axis(format=ticks(percent), tickCount=6, domain=False, ticks=False)
    return alt.Y("y:Q", title=title, scale=alt.Scale(zero=True, padding=20), axis=axis)
