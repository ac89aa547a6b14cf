"""Levels as points in a plane, for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._charts._library import load_altair

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    alt = load_altair()
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
