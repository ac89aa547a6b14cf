"""Which column contains which: from the rows to the parent of each level, and to the tree of all levels.

What rows say adds up, as moments do: `Links` are pairs of a level and its parent with the weight of the rows
that have both. Chunks add theirs, files keep them, and conflicts are found in the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._frames import Factor, LazyTable
from sufrep.errors import TwoParentsError
from sufrep.representation import as_levels, level_label, level_positions, sort_levels
from sufrep.solvers.nesting import Nesting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Codes, Floats, Levels
    from sufrep.encoders._inputs import Inputs


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Which parents the levels of a column have in another one.

    Attributes
    ----------
    column, above : str
        Names of the column and of the one that contains it.
    children : ndarray of object, shape (n_children,)
        The levels that have a parent.
    parents : ndarray of object, shape (n_parents,)
    child, parent : ndarray of int, shape (n_pairs,)
        Positions of the levels of each pair that occurs.
    weight : ndarray, shape (n_pairs,)
        Total weight of its rows.
    """

    column: str
    above: str
    children: Levels
    parents: Levels
    child: Codes
    parent: Codes
    weight: Floats

    def __add__(self, other: Links) -> Links:
        pairs: dict[tuple[Any, Any], float] = {}
        for links in (self, other):
            children, parents = links.children[links.child], links.parents[links.parent]
            for pair, weight in zip(zip(children, parents, strict=True), links.weight.tolist(), strict=True):
                pairs[pair] = pairs.get(pair, 0.0) + weight
        children = sort_levels({child for child, _ in pairs})
        parents = sort_levels({parent for _, parent in pairs})
        places = level_positions(children), level_positions(parents)
        child = np.array([places[0][child] for child, _ in pairs], dtype=np.intp)
        parent = np.array([places[1][parent] for _, parent in pairs], dtype=np.intp)
        weight = np.array(list(pairs.values()))
        order = np.lexsort([parent, child])
        return Links(self.column, self.above, children, parents, child[order], parent[order], weight[order])

    def chosen(self, on_conflict: str) -> dict[Any, Any]:
        """The parent of each level; that of most rows if there are several and that is allowed."""
        # Pairs are sorted, so that of equal weights the first parent is chosen, whatever the order of rows.
        order = np.lexsort([self.parent, -self.weight, self.child])
        child = self.child[order]
        first = np.flatnonzero(np.diff(child, prepend=-1))
        if on_conflict == "error" and len(first) < len(child):
            self._refuse(int(child[1:][np.diff(child) == 0][0]))
        chosen = order[first]
        return dict(zip(self.children[self.child[chosen]], self.parents[self.parent[chosen]], strict=True))

    def _refuse(self, child: int) -> None:
        """Raise an error that names a level and its parents, those of most rows first."""
        own = np.flatnonzero(self.child == child)
        own = own[np.argsort(-self.weight[own], kind="stable")]
        found = [
            f"{level_label(self.parents[self.parent[pair]])!r} ({self.weight[pair]:g} row(s))" for pair in own
        ]
        raise TwoParentsError(self.column, level_label(self.children[child]), self.above, found)

    def check(self) -> None:
        """Raise if the pairs are not what `link` makes; files may hold anything."""
        sizes = (self.child, len(self.children)), (self.parent, len(self.parents))
        if not all(((codes >= 0) & (codes < size)).all() for codes, size in sizes):
            raise ValueError("a parent or a child that is not there")
        pairs = self.child * len(self.parents) + self.parent
        if (np.diff(pairs) <= 0).any() or not ((self.weight > 0) & np.isfinite(self.weight)).all():
            raise ValueError("pairs of levels and parents that no rows have")


def link(below: Factor, above: Factor, names: tuple[str, str], weights: Floats | None = None) -> Links:
    """The pairs of levels and parents that rows have.

    Rows without a level have nothing in common, so null has no parent; where the parent is null, a row says
    nothing.
    """
    there = (below.codes >= 0) & (above.codes >= 0)
    if len(below.levels) and below.levels[-1] is None:  # null is the last level
        there &= below.codes < len(below.levels) - 1
    if weights is not None:
        there &= weights > 0
    pairs = below.codes[there].astype(np.int64) * max(len(above.levels), 1) + above.codes[there]
    unique, number = np.unique(pairs, return_inverse=True)
    weight = np.bincount(number, None if weights is None else weights[there], minlength=len(unique))
    child, parent = np.divmod(unique, max(len(above.levels), 1))
    children, child = np.unique(child, return_inverse=True)
    parents, parent = np.unique(parent, return_inverse=True)
    levels = below.levels[children], above.levels[parents]
    return Links(*names, *levels, child, parent, weight.astype(np.float64))


def read_links(inputs: Inputs, number: int) -> tuple[Links, ...]:
    """The links of the levels of a group to their parents, of these to theirs, and so on."""
    factors = [inputs.factors[number], *inputs.parents[number]]
    steps = zip(pairwise(factors), pairwise(_names(inputs, number)), strict=True)
    if isinstance(inputs.table, LazyTable):
        found = ((inputs.table.pairs(*both, inputs.weights), names) for both, names in steps)
        return tuple(link(below, above, names, weights) for (below, above, weights), names in found)
    return tuple(link(below, above, names, inputs.weights) for (below, above), names in steps)


def add_links(
    known: Sequence[Links], inputs: Inputs, number: int, levels: Factor, rows: Codes, on_conflict: str
) -> tuple[Links, ...]:
    """The links of a group together with those of new levels; parameters as of `new_paths`."""
    above = [Factor(column.codes[rows], column.levels) for column in inputs.parents[number]]
    steps = zip(known, pairwise([levels, *above]), strict=True)
    found = tuple(old + link(below, own, (old.column, old.above)) for old, (below, own) in steps)
    for links in found:
        links.chosen(on_conflict)
    return found


def add_lazy_links(
    links: Sequence[Links], inputs: Inputs, number: int, known: Levels, on_conflict: str
) -> tuple[Links, ...]:
    """The same for a lazy table: the links together with those of the levels that are not known."""
    group = inputs.factors[number]
    table: Any = inputs.table
    found = []
    for old, (below, above) in zip(links, pairwise([group, *inputs.parents[number]]), strict=True):
        child, parent, weights = table.pairs(below, above, None, group=group, other_than=known)
        found.append(old + link(child, parent, (old.column, old.above), weights))
    for step in found:
        step.chosen(on_conflict)
    return tuple(found)


def new_paths(
    inputs: Inputs, number: int, levels: Factor, rows: Codes, on_conflict: str
) -> tuple[Levels, ...]:
    """What new levels are part of, by tier, as their own rows say; each (n_levels,).

    Parameters
    ----------
    inputs : Inputs
    number : int
        Position of the group.
    levels : Factor
        New levels, and the codes of ``rows``.
    rows : ndarray of int
        Positions of the rows of these levels.
    on_conflict : {"error", "majority"}
    """
    names, found = _names(inputs, number), []
    for above, name in zip(inputs.parents[number], names[1:], strict=True):
        own = Factor(above.codes[rows], above.levels)
        chosen = link(levels, own, (names[0], name)).chosen(on_conflict)
        found.append(as_levels([chosen.get(level) for level in levels.levels.tolist()]))
    return tuple(found)


def new_lazy_paths(
    inputs: Inputs, number: int, known: Levels, on_conflict: str
) -> tuple[Levels, tuple[Levels, ...]]:
    """The levels of a group of a lazy table that are not known, and what they are part of, by tier."""
    names, group = _names(inputs, number), inputs.factors[number]
    table: Any = inputs.table
    chosen, levels = [], {}
    for above, name in zip(inputs.parents[number], names[1:], strict=True):
        below, own, weights = table.pairs(group, above, None, group=group, other_than=known)
        levels.update(dict.fromkeys(below.levels.tolist()))
        chosen.append(link(below, own, (names[0], name), weights).chosen(on_conflict))
    new = sort_levels(levels)
    return new, tuple(as_levels([tier.get(level) for level in new.tolist()]) for tier in chosen)


def nesting_of(links: Sequence[Links], levels: Levels, place: Codes, on_conflict: str) -> Nesting:
    """The tree of the levels of a group, rare levels pooled; these have no parent together.

    Parameters
    ----------
    links : sequence of Links
        From the levels to their parents, from these to theirs, and so on.
    levels : ndarray of object, shape (n_levels,)
    place : ndarray of int, shape (n_levels,)
        Position of each level after pooling.
    on_conflict : {"error", "majority"}
    """
    units: list[Any] = [None] * (int(place.max(initial=-1)) + 1)
    alone = np.bincount(place)[place] == 1
    for level, position, kept in zip(levels.tolist(), place.tolist(), alone.tolist(), strict=True):
        units[position] = level if kept else None
    parents, names = [], []
    for step in links:
        chosen = step.chosen(on_conflict)
        above = [None if unit is None else chosen.get(unit) for unit in units]
        known = sort_levels({name for name in above if name is not None})
        position, unknown = level_positions(known), np.array([name is None for name in above], dtype=bool)
        codes = len(known) - 1 + np.cumsum(unknown)
        codes[~unknown] = [position[name] for name in above if name is not None]
        units = [*known.tolist(), *([None] * int(unknown.sum()))]
        parents.append(codes)
        names.append(as_levels(units))
    return Nesting(tuple(parents), tuple(names))


def _names(inputs: Inputs, number: int) -> list[str]:
    """Names of a group and of the columns that contain it."""
    layout = inputs.layout
    return [layout.group_names(layout.names)[number], *(layout.names[c] for c in layout.parents[number])]
