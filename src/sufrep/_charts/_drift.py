"""Charts of drift: how far the levels moved, and how many rows they had and have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._charts._altair import (
    COUNT,
    NEUTRAL,
    NUMBER_TICKS,
    load_altair,
    series_colour,
    tooltips,
)
from sufrep._charts._label_placement import label_sides
from sufrep._charts._points import MAX_LEVELS
from sufrep.errors import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._arrays import Floats

_HEIGHT = 320
# Labels are placed for the width of a phone, in pixels; on a desktop there is more room.
_WIDTH = 300
_MOST_LABELS = 12
_LETTERS = 22
# Where differences without a limit are drawn, as a multiple of the largest other one.
_ABOVE = 1.15
# Levels with the same numbers in a tooltip, and how many of them are not yet a large dot.
_NAMED = 5
_FEW = 10
_N_STEPS = 40


def level_moves(*, rows: Sequence[Mapping[str, Any]], statuses: Sequence[str]) -> Any:
    """Levels by the number of their new rows and by how far they moved.

    Parameters
    ----------
    rows : sequence of mappings
        The most important first; of these, the first ``MAX_LEVELS`` are drawn, and labelled as far as there
        is room if they have the last of the statuses. With the keys ``label``, ``status``, ``rows_then``,
        ``rows_now`` (positive), ``difference`` (in standard deviations; infinite ones are drawn above all
        others), ``covariate`` and ``p``.
    statuses : sequence of str
        In the order of the legend.

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    drawn = _placed(rows[:MAX_LEVELS], statuses[-1])
    present = [status for status in statuses if any(row["status"] == status for row in drawn)]
    hover = {
        "label": "level",
        "status": "status",
        "rows_then": "rows then",
        "rows_now": "rows now",
        "covariate": "moved most",
        "moved": "by (standard deviations)",
        "p": "p, adjusted",
    }
    x = [row["rows_now"] for row in drawn] or [1.0]
    base = alt.Chart().encode(
        x=alt.X(
            "rows_now:Q",
            title="new rows of the level",
            scale=alt.Scale(type="log", domain=[min(x) / 1.15, max(x) * 1.15], nice=False),
            axis=alt.Axis(format="~s", tickCount=5, grid=False),
        ),
        y=alt.Y(
            "height:Q",
            title="largest difference, in standard deviations",
            scale=alt.Scale(zero=True, padding=14),
            axis=alt.Axis(format=NUMBER_TICKS, tickCount=6, domain=False),
        ),
        tooltip=tooltips(alt, drawn, hover),
    )
    dots = base.mark_circle(size=60, opacity=0.8).encode(color=series_colour(alt, "status", present))
    labelled = base.transform_filter("datum.named").mark_text(dy=-10, fontSize=11, limit=140)
    return alt.layer(
        dots, labelled.encode(text="label:N"), data=alt.Data(values=[*reversed(drawn)])
    ).properties(width="container", height=_HEIGHT)


def level_sizes(
    *, labels: Sequence[str], then: Floats, now: Floats, kinds: Sequence[str], statuses: Sequence[str]
) -> Any:
    """Levels by the number of their old and of their new rows, with a line at equal shares of both.

    Levels with the same numbers are one larger dot.

    Parameters
    ----------
    labels : sequence of str, length n
    then, now : ndarray, shape (n,)
        Number of rows; 0 for levels that are new, or have vanished.
    kinds : sequence of str, length n
        The status of each level.
    statuses : sequence of str
        In the order of the legend.

    Returns
    -------
    altair.LayerChart
    """
    alt = load_altair()
    # The last are drawn above the others.
    rows = sorted(_size_rows(labels, then, now, kinds), key=lambda row: row["status"] != statuses[0])
    present = [status for status in statuses if any(row["status"] == status for row in rows)]
    most = max([_FEW, *(row["count"] for row in rows)])
    x, y = (_size_axis(alt, field, values) for field, values in (("then", then), ("now", now)))
    dots = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, opacity=0.75)
        .encode(
            x=x,
            y=y,
            color=series_colour(alt, "status", present),
            size=alt.Size("count:Q", scale=alt.Scale(domain=[1, most], range=[46, 420]), legend=None),
            tooltip=[
                alt.Tooltip("label:N", title="level"),
                alt.Tooltip("status:N", title="status"),
                alt.Tooltip("then:Q", title="rows then", format=COUNT),
                alt.Tooltip("now:Q", title="rows now", format=COUNT),
            ],
        )
    )
    line = alt.Chart(alt.Data(values=_equal_shares(then, now))).encode(x=x, y=y, order="then:Q")
    line = line.mark_line(color=NEUTRAL, strokeWidth=1.5, strokeDash=[4, 3])
    return alt.layer(line, dots).properties(width="container", height=_HEIGHT)


def _placed(rows: Sequence[Mapping[str, Any]], labelled: str) -> list[dict[str, Any]]:
    """The rows with the height at which they are drawn, and those that get a label marked."""
    finite = [abs(row["difference"]) for row in rows if math.isfinite(row["difference"])]
    top = _ABOVE * max(finite, default=1.0) or 1.0
    heights = [min(abs(row["difference"]), top) for row in rows]
    points = np.array(
        [[math.log(row["rows_now"]), height] for row, height in zip(rows, heights, strict=True)]
    )
    sides = label_sides(
        [row["label"][:_LETTERS] for row in rows],
        points.reshape(-1, 2),
        [i for i, row in enumerate(rows) if row["status"] == labelled],
        (_WIDTH, _HEIGHT),
        sides=["top"],
        over_dots=True,
        max_labels=_MOST_LABELS,
    )
    return [
        {
            **{key: value for key, value in row.items() if key != "difference"},
            "height": float(f"{height:.5g}"),
            "moved": f"{row['difference']:+.3g}" if math.isfinite(row["difference"]) else "it never varied",
            "named": bool(side),
        }
        for row, height, side in zip(rows, heights, sides, strict=True)
    ]


def _size_rows(
    labels: Sequence[str], then: Floats, now: Floats, kinds: Sequence[str]
) -> list[dict[str, Any]]:
    """One row for the levels that have the same numbers and the same status."""
    found: dict[tuple[float, float, str], list[str]] = {}
    for i in np.argsort(-np.maximum(then, now), kind="stable")[:MAX_LEVELS].tolist():
        found.setdefault((float(then[i]), float(now[i]), kinds[i]), []).append(labels[i])
    return [
        {
            "label": listed(same, _NAMED, quote=False),
            "count": len(same),
            "then": before,
            "now": after,
            "status": kind,
        }
        for (before, after, kind), same in found.items()
    ]


def _size_axis(alt: Any, field: str, values: Floats) -> Any:
    most = float(values.max(initial=1.0))
    # A logarithmic axis has no place for 0; the ticks of this one have to be given.
    ticks = [0, *(10**power for power in range(max(math.ceil(math.log10(most)), 0) + 1))]
    axis = alt.Axis(values=[tick for tick in ticks if tick <= 1.3 * most], format="~s", domain=False)
    scale = alt.Scale(type="symlog", domain=[0, 1.3 * most], nice=False)
    return {"then": alt.X, "now": alt.Y}[field](f"{field}:Q", title=f"rows {field}", scale=scale, axis=axis)


def _equal_shares(then: Floats, now: Floats) -> list[dict[str, float]]:
    """Points of the line on which levels have the same share of the old and of the new rows."""
    most, total = float(then.max(initial=0.0)), float(then.sum())
    if not (total and now.sum()):
        return []
    steps = np.expm1(np.linspace(0.0, math.log1p(most), _N_STEPS))
    slope = float(now.sum()) / total
    largest = 1.3 * float(now.max(initial=1.0))
    return [{"then": float(x), "now": float(x * slope)} for x in steps if x * slope <= largest]
