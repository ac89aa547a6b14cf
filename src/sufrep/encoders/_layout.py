"""Which columns of a table are groups, which are covariates and which pass through."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sufrep._levels import level_label
from sufrep.errors import (
    ClashingNamesError,
    EmptyGroupError,
    NoGroupWarning,
    NotNumericError,
    TooManySharesError,
    UnknownColumnError,
    warn,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Columns
    from sufrep._frames import Table

Column: TypeAlias = str | int
Group: TypeAlias = Column | tuple[Column, ...]

# A text column with more levels than this passes through instead of joining as shares.
MOST_SHARES = 30


@dataclass(frozen=True, slots=True)
class Layout:
    """Roles of the columns of X, by position.

    Parameters
    ----------
    names : tuple of str
        Names of all columns.
    groups : tuple of tuple of int
        The column of each group, or the columns that are crossed to make it.
    covariates : tuple of int
        Numeric columns that describe the levels.
    shares : tuple of int
        Text columns whose levels join as covariates, one indicator each.
    kept : tuple of int
        Columns that pass through.
    """

    names: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    covariates: tuple[int, ...]
    shares: tuple[int, ...]
    kept: tuple[int, ...]

    def group_names(self, names: Sequence[str]) -> list[str]:
        """Names of the groups, crossed columns joined by a colon."""
        return [":".join(names[position] for position in group) for group in self.groups]


@dataclass(frozen=True, slots=True)
class Covariate:
    """A covariate: a column of X (or the target), or the indicator of one of its levels or of null."""

    position: int | None
    level: str | None = None
    null: bool = False

    def name(self, names: Sequence[str]) -> str:
        """Name it, given the names of the columns of X."""
        name = "target" if self.position is None else names[self.position]
        if self.null:
            return f"{name} is null"  # a level may well be called "missing"
        return name if self.level is None else f"{name}={self.level}"

    @property
    def is_indicator(self) -> bool:
        """Whether it stands for one level, not for a column."""
        return self.null or self.level is not None


def resolve_layout(
    table: Table,
    *,
    group: Group | Sequence[Group] | None,
    covariates: Sequence[Column] | None,
    share_text: bool,
    keep: bool,
) -> Layout:
    """Give every column its roles, or say which name is unknown."""
    names, everything = table.names, range(len(table.names))
    groups = _text_groups(table) if group is None else _named_groups(names, group)
    named = Counter(":".join(names[position] for position in columns) for columns in groups)
    if any(times > 1 for times in named.values()):
        raise ClashingNamesError([name for name, times in named.items() if times > 1])
    used = {position for columns in groups for position in columns}
    free = [position for position in everything if position not in used]
    chosen = free
    if covariates is not None:
        chosen = list(dict.fromkeys(position_of(names, column, "covariates") for column in covariates))
    text = [position for position in chosen if share_text and table.kind(position) == "text"]
    shares = [position for position in text if len(table.factorize(position).levels) <= MOST_SHARES]
    numeric = [position for position in chosen if table.kind(position) == "numeric"]
    for position in chosen if covariates is not None else ():
        if position not in (*numeric, *shares):
            raise NotNumericError(names[position], table.dtype(position))
    return Layout(names, groups, tuple(numeric), tuple(shares), tuple(free) if keep else ())


def read_covariates(table: Table, layout: Layout) -> tuple[list[Covariate], Columns]:
    """Return the covariates and their columns; null is a level of a text column like any other."""
    found = [Covariate(position) for position in layout.covariates]
    columns = [table.numbers(position) for position in layout.covariates]
    for position in layout.shares:
        factor = table.factorize(position).with_missing_level()
        indicators = [
            Covariate(position, null=True) if level is None else Covariate(position, level_label(level))
            for level in factor.levels
        ]
        if len(set(indicators)) < len(indicators):
            raise ClashingNamesError([indicator.name(layout.names) for indicator in indicators])
        for code in sorted(range(len(indicators)), key=lambda code: indicator_order(indicators[code])):
            found.append(indicators[code])
            columns.append(factor.codes == code)
    return found, columns


def known_columns(table: Table, layout: Layout, covariates: Sequence[Covariate]) -> list[Array]:
    """The columns of covariates that ``fit`` saw; an indicator whose level is not here is 0 everywhere."""
    known = dict(zip(*read_covariates(table, layout), strict=True))
    nothing = np.zeros(table.n_rows)
    return [known.get(covariate, nothing) for covariate in covariates]


def merge_covariates(
    old: Sequence[Covariate], new: Sequence[Covariate], names: Sequence[str]
) -> list[Covariate]:
    """Unite the covariates of two chunks: columns, indicators by their levels, and the target last."""
    columns = [covariate for covariate in old if not covariate.is_indicator]
    indicators = {covariate for covariate in (*old, *new) if covariate.is_indicator}
    most = Counter(covariate.position for covariate in indicators).most_common(1)
    # One more than the limit: null is a level too.
    if most and most[0][0] is not None and most[0][1] > MOST_SHARES + 1:
        raise TooManySharesError(names[most[0][0]], most[0][1], MOST_SHARES)
    united = columns + sorted(indicators, key=indicator_order)
    return sorted(united, key=lambda covariate: covariate.position is None)


def indicator_order(covariate: Covariate) -> tuple[int, bool, float, str]:
    """Levels that are numbers go by size before the others, null comes last."""
    level = covariate.level or ""
    try:
        size = float(level)
    except ValueError:
        size = math.inf
    return covariate.position or 0, covariate.null, math.inf if math.isnan(size) else size, level


def _text_groups(table: Table) -> tuple[tuple[int, ...], ...]:
    found = [position for position in range(len(table.names)) if table.kind(position) == "text"]
    if not found and hasattr(table, "frame"):
        warn(
            "group=None takes the text columns, but X has none: nothing is encoded.\n"
            "Hint: name the column, for instance group='zipcode', if its levels are stored as numbers.",
            NoGroupWarning,
        )
    return tuple((position,) for position in found)


def _named_groups(names: Sequence[str], group: Group | Sequence[Group]) -> tuple[tuple[int, ...], ...]:
    listed: Sequence[Any] = group if isinstance(group, list) else [group]
    if not listed or any(isinstance(entry, tuple) and not entry for entry in listed):
        raise EmptyGroupError(group)
    found = []
    for entry in listed:
        columns = entry if isinstance(entry, tuple) else (entry,)
        found.append(tuple(position_of(names, column, "group") for column in columns))
    return tuple(dict.fromkeys(found))


def position_of(names: Sequence[str], column: Column, parameter: str) -> int:
    """The position of a column that a parameter names, or says the place of."""
    if isinstance(column, np.integer):
        column = int(column)
    if isinstance(column, int) and not isinstance(column, bool):
        if -len(names) <= column < len(names):
            return column % len(names)
    elif column in names:
        return names.index(str(column))
    raise UnknownColumnError(parameter, column, names)
