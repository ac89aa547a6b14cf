"""What became of the levels since an encoder was fitted: `Drift`, and how it is made from moments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from html import escape
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from sufrep._charts import level_moves, level_sizes
from sufrep._frames import LazyTable, frame_from_columns
from sufrep._statistics import p_value_text
from sufrep.encoders._display import level_columns
from sufrep.encoders._inputs import (
    check_weights,
    collect_moments,
    read_factor,
    read_known_columns,
    read_weighted_rows,
)
from sufrep.encoders._lazy import read_lazy_weights
from sufrep.encoders._warnings import spellings_of, warn_of_unseen
from sufrep.errors import (
    InvalidParameterError,
    MagnitudeError,
    NoMomentsError,
    NoRowsError,
    UnknownGroupError,
)
from sufrep.representation import level_label, level_positions
from sufrep.solvers.drift import level_drift, sums_of_squares

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike
    from pathlib import Path

    from sufrep._arrays import Array, Codes, Floats, Levels, Mask
    from sufrep._frames import Factor, Table
    from sufrep.encoders._base import GroupEncoder
    from sufrep.moments import GroupMoments
    from sufrep.solvers.drift import LevelDrift

MOVED, NEW, VANISHED, STABLE, UNTESTED = "moved", "new", "vanished", "stable", "untested"
# In the order of tables, and of legends, where the first two have the same colours in all charts.
STATUSES = (MOVED, NEW, VANISHED, STABLE, UNTESTED)
_LEGEND = (STABLE, MOVED, NEW, VANISHED, UNTESTED)
_NUMBERS = ("rows_then", "rows_now", "statistic", "df1", "df2", "p_value", "q_value")
# Levels in the HTML of a notebook.
_SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class GroupDrift:
    """What became of the levels of one group.

    All arrays have shape (n_levels,) and one order: levels that moved (smallest p-value first), that are new,
    that vanished (most rows first), that are stable, and that could not be tested.

    Attributes
    ----------
    name : str
    columns : tuple of str
        The column of the group, or those that are crossed.
    covariates : tuple of str
    n_rows : float
        Number of new rows, or their total weight, also of rows without a level.
    levels : ndarray of object
    status : ndarray of str objects
        "moved", "new", "vanished", "stable" or "untested".
    rows_then, rows_now : ndarray
        Number of rows, or their total weight.
    statistic, df1, df2, p_value, q_value : ndarray
        Hotelling's T², the degrees of freedom of its F distribution, its p-value, and that adjusted for the
        number of levels; NaN where there is no test. See `sufrep.solvers.drift.level_drift`.
    covariate : ndarray of str objects or None
        The covariate that moved most.
    difference : ndarray
        By how many standard deviations within levels it moved; infinite if it never varied within a level.
    """

    name: str
    columns: tuple[str, ...]
    covariates: tuple[str, ...]
    n_rows: float
    levels: Levels
    status: Levels
    rows_then: Floats
    rows_now: Floats
    statistic: Floats
    df1: Floats
    df2: Floats
    p_value: Floats
    q_value: Floats
    covariate: Levels
    difference: Floats

    def having(self, *statuses: str) -> Mask:
        """Which levels have one of these statuses; (n_levels,)."""
        return np.isin(self.status.astype(str), statuses)

    def count(self, *statuses: str) -> int:
        """Number of levels that have one of these statuses."""
        return int(self.having(*statuses).sum())

    def share(self, *statuses: str) -> float:
        """Share of the new rows that are in a level with one of these statuses."""
        return float(self.rows_now[self.having(*statuses)].sum()) / self.n_rows

    @property
    def labels(self) -> list[str]:
        """The levels as text."""
        return [level_label(level) for level in self.levels]

    @property
    def summary(self) -> str:
        """One sentence."""
        n_moved, n_tested = self.count(MOVED), self.count(MOVED, STABLE)
        n_new, n_vanished = self.count(NEW), self.count(VANISHED)
        new = f"{n_new:,} {_are(n_new)} new ({_percent(self.share(NEW))}"
        vanished = f"{n_vanished:,} {_have(n_vanished)} vanished"
        if not n_tested:
            return f"{self.name}: {new} of the rows), {vanished}; no level could be tested."
        return (
            f"{self.name}: {n_moved:,} of {n_tested:,} tested levels {_have(n_moved)} moved "
            f"({_percent(self.share(MOVED))} of the rows), {new}), {vanished}."
        )

    def table_columns(self) -> dict[str, Any]:
        """Columns of the frame."""
        columns = level_columns(self.levels.tolist(), self.columns)
        further = {"status": self.status.tolist()} | {name: getattr(self, name) for name in _NUMBERS}
        further |= {"covariate": self.covariate.tolist(), "difference": self.difference}
        # A group may be called like one of these.
        return columns | {
            name if name not in columns else f"{name}_of_level": values for name, values in further.items()
        }

    def moves_chart(self) -> Any:
        """Draw how far the levels moved, against the number of their rows."""
        tested = np.flatnonzero(self.having(MOVED, STABLE)).tolist()
        labels = self.labels
        rows = [
            {
                "label": labels[i],
                "status": self.status[i],
                "rows_then": plain_count(self.rows_then[i]),
                "rows_now": plain_count(self.rows_now[i]),
                "difference": float(self.difference[i]),
                "covariate": self.covariate[i],
                "p": p_value_text(float(self.q_value[i])),
            }
            for i in tested
        ]
        return level_moves(rows=rows, statuses=_LEGEND[:2])

    def sizes_chart(self) -> Any:
        """Draw the number of old and of new rows of the levels."""
        return level_sizes(
            labels=self.labels,
            then=self.rows_then,
            now=self.rows_now,
            kinds=self.status.tolist(),
            statuses=_LEGEND,
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Drift:
    """What became of the levels of an encoder: new, vanished, moved or stable.

    Returned by ``encoder.drift(X)``. Where there are several groups, shares are those of the group with the
    largest, and numbers of levels are added up.

    Attributes
    ----------
    groups : dict of str to GroupDrift
        What was found in each group.
    rate : float
        The false-discovery rate of the levels that moved.
    share_unseen : float
        Share of the new rows whose level ``fit`` did not see.
    share_moved : float
        Share of the new rows whose level has moved.
    share_changed : float
        Share of the new rows to which either applies.
    n_moved, n_new, n_vanished : int
        Numbers of levels.

    Examples
    --------
    >>> import pandas as pd
    >>> from sufrep import MeansEncoder
    >>> sold = pd.DataFrame({"zip": ["a", "a", "b", "b", "c"], "sqft": [9.0, 11.0, 20.0, 21.0, 5.0]})
    >>> offered = pd.DataFrame({"zip": ["a", "a", "b", "d"], "sqft": [10.0, 11.0, 95.0, 3.0]})
    >>> drift = MeansEncoder("zip").fit(sold).drift(offered)
    >>> drift.table()[["zip", "status", "rows_then", "rows_now", "difference"]].round(1)
      zip    status  rows_then  rows_now  difference
    0   b     moved        2.0       1.0        74.5
    1   d       new        0.0       1.0         NaN
    2   c  vanished        1.0       0.0         NaN
    3   a    stable        2.0       2.0         0.5
    >>> drift.share_unseen, drift.share_changed
    (0.25, 0.5)
    """

    groups: dict[str, GroupDrift]
    rate: float
    _library: str | None = None

    @property
    def share_unseen(self) -> float:
        """Share of the new rows whose level ``fit`` did not see."""
        return self._largest_share(NEW)

    @property
    def share_moved(self) -> float:
        """Share of the new rows whose level has moved."""
        return self._largest_share(MOVED)

    @property
    def share_changed(self) -> float:
        """Share of the new rows whose level is new or has moved."""
        return self._largest_share(NEW, MOVED)

    @property
    def n_moved(self) -> int:
        """Number of levels that moved."""
        return sum(group.count(MOVED) for group in self.groups.values())

    @property
    def n_new(self) -> int:
        """Number of levels that ``fit`` did not see."""
        return sum(group.count(NEW) for group in self.groups.values())

    @property
    def n_vanished(self) -> int:
        """Number of levels without new rows."""
        return sum(group.count(VANISHED) for group in self.groups.values())

    def table(
        self, group: str | None = None, *, library: Literal["pandas", "polars", "pyarrow"] | None = None
    ) -> Any:
        """Return the levels of a group as a frame, the most important first; columns as in `GroupDrift`.

        Parameters
        ----------
        group : str, optional
            Name of the group; may be left out if there is only one.
        library : {"pandas", "polars", "pyarrow"}, optional
            Kind of the frame; by default that of the table that was fitted.
        """
        return frame_from_columns(self._one(group).table_columns(), library, preferred=self._library)

    def plot(self, group: str | None = None) -> Any:
        """Draw the levels of a group by how far they moved; an Altair chart.

        Where nothing could be tested, levels are drawn by the number of their old and new rows.
        """
        found = self._one(group)
        return found.moves_chart() if found.count(MOVED, STABLE) else found.sizes_chart()

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write a report, a single HTML page that needs no network."""
        # Rendering is loaded only for a page.
        from sufrep._report import write_page
        from sufrep.encoders._drift_page import drift_page

        return write_page(drift_page(self), path)

    def to_dict(self) -> dict[str, Any]:
        """All results as plain values for JSON; NaN and infinity become None."""
        shares = {name: getattr(self, name) for name in ("share_unseen", "share_moved", "share_changed")}
        return {
            "rate": self.rate,
            **shares,
            "groups": [
                {
                    "name": group.name,
                    "n_rows": plain_count(group.n_rows),
                    "covariates": list(group.covariates),
                    "n_levels": {status: group.count(status) for status in STATUSES},
                    "levels": _records(group),
                }
                for group in self.groups.values()
            ],
        }

    def _one(self, group: str | None) -> GroupDrift:
        known = list(self.groups)
        name = known[0] if group is None and len(known) == 1 else group
        if name not in self.groups:
            raise UnknownGroupError(name, known)
        return self.groups[name]

    def _largest_share(self, *statuses: str) -> float:
        return max((group.share(*statuses) for group in self.groups.values()), default=0.0)

    def _n_rows(self) -> float:
        return next((group.n_rows for group in self.groups.values()), 0.0)

    def __repr__(self) -> str:
        lines = [f"<Drift of {plain_count(self._n_rows()):,} rows>"]
        return "\n".join(lines + [group.summary for group in self.groups.values()])

    def _repr_html_(self) -> str:
        return "".join(_group_html(group) for group in self.groups.values())


class NewMoments(NamedTuple):
    """The moments of new rows by level, and the total weight of all rows, also of those without a level."""

    moments: GroupMoments
    n_rows: float

    def add(self, other: NewMoments) -> NewMoments:
        """Add those of other rows."""
        order = min(self.moments.order, other.moments.order)
        moments = self.moments.of_order(order) + other.moments.of_order(order)
        return NewMoments(moments, self.n_rows + other.n_rows)


@dataclass(frozen=True, slots=True, eq=False)
class NewRows:
    """Rows to compare with those of the fit; all of them, or a batch.

    Parameters
    ----------
    table : Table
    factors : dict of str to Factor
        Levels and codes of each group.
    names : tuple of str
        Names of the covariates that the encoder knows.
    columns : tuple of ndarray, each of shape (n,)
        Their values.
    weights : ndarray, shape (n,), or None
    n_rows : float
        Total weight of the rows, or their number.
    """

    table: Table
    factors: dict[str, Factor]
    names: tuple[str, ...]
    columns: tuple[Array, ...]
    weights: Floats | None
    n_rows: float

    @classmethod
    def read(cls, encoder: GroupEncoder, X: Any, sample_weight: Any = None) -> Self:
        """Read and check rows."""
        table, weights = read_weighted_rows(encoder, X, sample_weight)
        if isinstance(table, LazyTable):
            weights = read_lazy_weights(table, weights)
            n_rows = table.total_weight(weights)
            if weights is None and not n_rows:
                raise NoRowsError(len(table.names))
        else:
            weights = check_weights(weights, table.n_rows)
            n_rows = float(table.n_rows if weights is None else weights.sum())
        layout = encoder.layout_
        known = [encoder.covariates_[j] for j in _covariates(encoder)]
        factors = {
            name: read_factor(table, group, encoder.missing)
            for name, group in zip(layout.group_names(layout.names), layout.groups, strict=True)
        }
        columns = read_known_columns(table, layout, known) if known else ()
        names = tuple(covariate.name(layout.names) for covariate in known)
        return cls(table, factors, names, columns, weights, n_rows)

    def moments(self) -> dict[str, NewMoments]:
        """The moments in every group."""
        return {name: NewMoments(self._moments(factor), self.n_rows) for name, factor in self.factors.items()}

    def _moments(self, factor: Factor) -> GroupMoments:
        """The moments in a group: of order 2, unless there are no squares or they are out of range."""
        collect = partial(
            collect_moments, self.table, factor, self.columns, names=self.names, weights=self.weights
        )
        try:
            return collect(order=2 if self.columns else 1)
        except MagnitudeError:
            return collect(order=1)

    def squares_along(self, group: str, moments: GroupMoments, directions: Floats) -> Floats:
        """Sums of squares by level of ``moments`` along a direction for each, from its mean; (n_levels,)."""
        factor = self.factors[group]
        if isinstance(self.table, LazyTable):
            return self.table.squares_along(factor, self.columns, moments, directions, weights=self.weights)
        places = level_positions(moments.levels)
        place = np.array([*(places.get(level, -1) for level in factor.levels.tolist()), -1])
        return sums_of_squares(place[factor.codes], self.columns, self.weights, moments.mean, directions)


def check_rate(rate: Any) -> None:
    """Raise if a number is not a rate."""
    if not (isinstance(rate, Real) and 0 < float(rate) < 1):
        raise InvalidParameterError("rate", rate, "a number between 0 and 1")


def make_drift(
    encoder: GroupEncoder,
    new: Mapping[str, NewMoments],
    squares_along: Callable[[str, GroupMoments, Floats], Floats],
    rate: float,
) -> Drift:
    """Compare the moments of new rows with those that the encoder keeps.

    Parameters
    ----------
    encoder : GroupEncoder
    new : mapping of str to NewMoments
        By group.
    squares_along : callable
        `NewRows.squares_along` of all rows that the moments are from.
    rate : float
    """
    groups = {}
    layout = encoder.layout_
    stored = stored_moments(encoder)
    for columns, (name, (now, n_rows)) in zip(layout.groups, new.items(), strict=True):
        then = stored[name].select(_covariates(encoder))
        found = level_drift(then, now, partial(squares_along, name, now))
        is_new = found.rows_then == 0
        if is_new.sum() == now.n_levels:
            warn_of_unseen(name, now.levels.tolist(), spellings_of(then.levels.tolist()))
        labels = tuple(layout.names[column] for column in columns)
        groups[name] = _group_drift(name, labels, then.covariates, n_rows, found, rate)
    return Drift(groups, rate, vars(encoder).get("frame_library_"))


def stored_moments(encoder: GroupEncoder) -> dict[str, GroupMoments]:
    """The moments that new rows are compared with."""
    if not hasattr(encoder, "moments_"):
        raise NoMomentsError(type(encoder).__name__)
    return encoder.moments_


def _covariates(encoder: GroupEncoder) -> list[int]:
    """Positions of the covariates; the target, too, may describe the levels, and has no column in X."""
    return [j for j, covariate in enumerate(encoder.covariates_) if covariate.position is not None]


def _group_drift(
    name: str,
    columns: tuple[str, ...],
    covariates: tuple[str, ...],
    n_rows: float,
    found: LevelDrift,
    rate: float,
) -> GroupDrift:
    conditions = [
        found.q_value <= rate,
        found.rows_then == 0,
        found.rows_now == 0,
        found.q_value > rate,
    ]
    code = np.select(conditions, range(len(conditions)), len(conditions))
    order = _order(found, code)
    names = np.array([*covariates, None], dtype=object)
    arrays: dict[str, Array] = {name: getattr(found, name)[order] for name in ("levels", *_NUMBERS)}
    return GroupDrift(
        name,
        columns,
        covariates,
        n_rows,
        status=np.array(STATUSES, dtype=object)[code[order]],
        covariate=names[found.covariate[order]],
        difference=found.difference[order],
        **arrays,
    )


def _order(found: LevelDrift, code: Codes) -> Codes:
    """The most important levels first."""
    p_value = np.nan_to_num(found.p_value, nan=1.0)
    # Many p-values are 0 where tables are large.
    size = np.nan_to_num(np.abs(found.difference), nan=0.0, posinf=math.inf)
    return np.lexsort((-(found.rows_then + found.rows_now), -size, p_value, code))


def plain_count(rows: float) -> int | float:
    """A number of rows as an integer, unless weights make it a fraction."""
    return int(rows) if float(rows).is_integer() else float(rows)


def _records(group: GroupDrift) -> list[dict[str, Any]]:
    columns = {"level": group.labels, "status": group.status.tolist()}
    columns |= {name: getattr(group, name).tolist() for name in (*_NUMBERS, "difference")}
    columns["covariate"] = group.covariate.tolist()
    records = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    return [{key: _plain(value) for key, value in record.items()} for record in records]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _group_html(group: GroupDrift) -> str:
    titles = ("level", "status", "rows then", "rows now", "moved most", "p, adjusted")
    head = "".join(f"<th>{title}</th>" for title in titles)
    labels = group.labels
    rows = "".join(
        f"<tr><th>{escape(labels[i])}</th><td>{group.status[i]}</td><td>{plain_count(group.rows_then[i]):,}"
        f"</td><td>{plain_count(group.rows_now[i]):,}</td><td>{escape(group.covariate[i] or '')}</td>"
        f"<td>{escape(p_value_text(float(group.q_value[i])))}</td></tr>"
        for i in range(min(_SHOWN, len(labels)))
    )
    return (
        f"<details><summary>{escape(group.summary)}</summary><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></details>"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"
