"""The report of drift: its parts in reading order, each chart with the text that explains it."""

from __future__ import annotations

import math
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._charts import MAX_LEVELS
from sufrep._report import ChartPart, Page, TablePart
from sufrep._statistics import p_value_text
from sufrep.encoders._drift import MOVED, NEW, STABLE, STATUSES, UNTESTED, VANISHED, plain_count
from sufrep.representation import level_label

if TYPE_CHECKING:
    from sufrep._report._parts import CellValue
    from sufrep.encoders._drift import Drift, GroupDrift

_MAX_LISTED = 500
_ASSUMPTIONS = (
    "The test takes rows as independent, the means of levels as about normal, and the spread of a level as "
    "what it was. A level with a few extreme rows may seem to have moved.",
    "In large tables, differences are found that are too small to matter: look at their size too.",
)


def drift_page(drift: Drift) -> Page:
    """Return the whole report."""
    parts: list[Any] = []
    for group in drift.groups.values():
        parts += [*_moves_parts(group, drift.rate), _sizes_part(group), *_list_parts(group)]
    names = ", ".join(drift.groups)
    return Page(
        title=f"{names}: what has changed?" if names else "Nothing to compare",
        subtitle="New rows compared with those that the encoder was fitted to, by sufrep.",
        # A line must not end between a number and its percent sign.
        verdict=tuple(group.summary.replace(" %", "\u00a0%") for group in drift.groups.values()),
        facts=_facts(drift),
        parts=tuple(parts),
        notes=_ASSUMPTIONS if any(group.count(MOVED, STABLE) for group in drift.groups.values()) else (),
        footer=f"Made by sufrep {version('sufrep')}.",
    )


def _facts(drift: Drift) -> tuple[tuple[str, str], ...]:
    facts = [("false-discovery rate", f"{drift.rate:g}")]
    for group in drift.groups.values():
        then, now = (int((rows > 0).sum()) for rows in (group.rows_then, group.rows_now))
        facts += [
            ("new rows", f"{plain_count(group.n_rows):,}"),
            (f"levels of {group.name}", f"{then:,} then, {now:,} now"),
            ("rows in new or moved levels", f"{100 * group.share(NEW, MOVED):.1f} %"),
        ]
    # The number of rows is the same in all groups.
    return tuple(dict.fromkeys(facts))


def _moves_parts(group: GroupDrift, rate: float) -> list[ChartPart]:
    tested = np.flatnonzero(group.having(MOVED, STABLE))
    if not len(tested):
        return []
    n_untested = group.count(UNTESTED)
    untested = (
        f" {n_untested:,} known level(s) could not be tested: they have no values of a covariate in common."
        if n_untested
        else ""
    )
    limited = f" Only the first {MAX_LEVELS:,} are drawn." if len(tested) > MAX_LEVELS else ""
    return [
        ChartPart(
            title=f"{group.name}: levels that moved",
            text=(
                "Dots are levels with old and new rows. Their height is the largest difference between the "
                "new and the old mean of a covariate, in standard deviations within levels; means of a few "
                f"rows differ by chance. Of the levels that are called moved, at most {100 * rate:g} % have "
                f"not, on average.{untested}{limited}"
            ),
            chart=group.moves_chart(),
            description=f"Number of rows, and largest difference of means, of {len(tested)} levels.",
            table=TablePart(
                f"Show the first {min(len(tested), _MAX_LISTED):,} levels as a table",
                (
                    *("level", "status", "rows then", "rows now", "moved most", "by (sd)"),
                    *("T²", "df", "p", "p, adjusted"),
                ),
                [_test_cells(group, i) for i in tested[:_MAX_LISTED].tolist()],
            ),
        )
    ]


def _test_cells(group: GroupDrift, i: int) -> tuple[CellValue, ...]:
    return (
        level_label(group.levels[i]),
        group.status[i],
        plain_count(group.rows_then[i]),
        plain_count(group.rows_now[i]),
        group.covariate[i],
        difference_text(float(group.difference[i])),
        float(group.statistic[i]) if math.isfinite(group.statistic[i]) else "∞",
        f"{group.df1[i]:.4g}, {group.df2[i]:,.0f}",
        p_value_text(float(group.p_value[i])),
        p_value_text(float(group.q_value[i])),
    )


def difference_text(difference: float) -> str:
    """A difference with its sign; of a covariate that never varied, only the sign."""
    if math.isfinite(difference):
        return f"{difference:+.2f}"
    return "" if math.isnan(difference) else f"{'+' if difference > 0 else '-'}∞"


def _sizes_part(group: GroupDrift) -> ChartPart:
    rows = [
        (status, group.count(status), *_size_cells(group, status))
        for status in STATUSES
        if group.count(status)
    ]
    return ChartPart(
        title=f"{group.name}: rows then and now",
        text=(
            "Dots are levels; a larger dot is several with the same numbers. Levels on the line have the "
            "same share of the old and of the new rows. New levels are on the left, those that vanished at "
            f"the bottom.{_limited(len(group.levels))}"
        ),
        chart=group.sizes_chart(),
        description=f"Number of old and of new rows of {len(group.levels)} levels.",
        table=TablePart(
            "Show the totals as a table",
            ("status", "levels", "rows then", "rows now", "share of the new rows"),
            rows,
        ),
    )


def _size_cells(group: GroupDrift, status: str) -> tuple[CellValue, ...]:
    chosen = group.having(status)
    totals = (plain_count(float(rows[chosen].sum())) for rows in (group.rows_then, group.rows_now))
    return (*totals, f"{100 * group.share(status):.1f} %")


def _list_parts(group: GroupDrift) -> list[TablePart]:
    """The levels that are new, and those that vanished."""
    parts = []
    for status, rows, title in ((NEW, group.rows_now, "new levels"), (VANISHED, group.rows_then, "vanished")):
        chosen = np.flatnonzero(group.having(status)).tolist()
        if chosen:
            shown = chosen[:_MAX_LISTED]
            more = f" The {_MAX_LISTED:,} largest are listed." if len(chosen) > _MAX_LISTED else ""
            column = "rows now" if status == NEW else "rows then"
            parts.append(
                TablePart(
                    title=f"{group.name}: {title}",
                    columns=("level", column),
                    rows=[(level_label(group.levels[i]), plain_count(rows[i])) for i in shown],
                    text=f"{len(chosen):,} level(s).{more}",
                )
            )
    return parts


def _limited(n_levels: int) -> str:
    return f" Only the {MAX_LEVELS:,} largest are drawn." if n_levels > MAX_LEVELS else ""
