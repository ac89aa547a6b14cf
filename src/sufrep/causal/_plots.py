"""Charts of a fitted AIPW, from its tables: the ladder of adjustments, overlap and balance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from sufrep._charts import group_shares, interval_dots, love_plot, propensity_bars

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._arrays import Floats
    from sufrep.causal._aipw import AIPW

# Rows of each section of the love plot.
MOST_BALANCE_ROWS = 20
_SECTIONS = {"covariate": "Covariates", "group": "Group statistics"}
_HOVER = {"value": "estimate", "low": "95 % from", "high": "to"}


def frame_rows(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame of any library."""
    return list(nw.from_native(frame, eager_only=True).iter_rows(named=True))


def effects_chart(
    rows: Sequence[Mapping[str, Any]], title: str, *, value_title: str, highlighted: str | None
) -> Any:
    """Estimates with their 95 % intervals, one below the other, and a line at zero.

    Parameters
    ----------
    rows : sequence of mappings
        With the keys ``estimate``, ``lower``, ``upper`` and `title`, the name of the row.
    title : str
    value_title : str
        Title of the axis.
    highlighted : str or None
        Name of the row that matters most.
    """
    drawn = [
        {
            "name": row[title],
            "series": "",
            "value": row["estimate"],
            "low": _finite(row["lower"]),
            "high": _finite(row["upper"]),
        }
        for row in rows
    ]
    return interval_dots(
        rows=drawn,
        names=[row[title] for row in rows],
        series=[""],
        value_title=value_title,
        hover={"name": title, **_HOVER},
        percent=False,
        reference_title="no effect",
        highlighted=highlighted,
    )


def final_step(model: AIPW, ladder: Sequence[Mapping[str, Any]]) -> str | None:
    """The step of the ladder that is the effect of the model itself, if its statistics are a step."""
    return next((row["step"] for row in ladder if row["estimate"] == model.effect_.estimate), None)


def propensity_chart(model: AIPW) -> Any:
    """Histograms of the propensities of both arms."""
    return propensity_bars(model.propensity_, model.data_.treatment == 1)


def group_chart(model: AIPW, group_title: str) -> Any:
    """The share of treated rows of every group, those that were dropped included."""
    sizes, shares = group_overlap(model)
    dropped = set(model.dropped_groups_)
    return group_shares(
        labels=model.whole_.labels,
        sizes=sizes,
        shares=shares,
        dropped=np.array([label in dropped for label in model.whole_.labels]),
        group_title=group_title,
    )


def group_overlap(model: AIPW) -> tuple[Floats, Floats]:
    """Rows, and share of treated rows, of every group; two arrays of shape (n_groups,)."""
    whole = model.whole_
    shares = whole.group_means(whole.treatment[:, None])[:, 0]
    return np.bincount(whole.groups, minlength=whole.n_groups).astype(np.float64), shares


def balance_chart(balance: Sequence[Mapping[str, Any]]) -> Any:
    """The love plot of the rows of ``balance()``; of each kind, the largest differences are drawn."""
    sections = {
        title: _largest([row for row in balance if row["kind"] == kind]) for kind, title in _SECTIONS.items()
    }
    return love_plot(sections)


def _largest(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, float, float]]:
    """The rows with the largest differences, in the order in which they came."""
    known = [row for row in rows if math.isfinite(row["before"]) and math.isfinite(row["after"])]
    by_size = sorted(known, key=lambda row: -max(abs(row["before"]), abs(row["after"])))
    chosen = {id(row) for row in by_size[:MOST_BALANCE_ROWS]}
    return [(row["column"], row["before"], row["after"]) for row in known if id(row) in chosen]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
