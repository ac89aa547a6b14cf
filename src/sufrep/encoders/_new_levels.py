"""Levels that ``fit`` did not see: their vectors for one table, or for good.

The rules by which a vector follows from the rows of a level are data (`sufrep.solvers.new_levels`), which
``fit`` makes and files keep.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np

from sufrep._accumulate import ratio
from sufrep._frames import Factor, LazyTable
from sufrep.encoders._inputs import collect_moments, read_known_columns
from sufrep.encoders._nesting import add_lazy_links, add_links, new_lazy_paths, new_paths
from sufrep.errors import RowsNeededError, TargetError
from sufrep.representation import Representation, dense_values, level_positions
from sufrep.solvers.mixture import Mixture
from sufrep.solvers.new_levels import NewLevels
from sufrep.solvers.shrinkage import within_freedom

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sufrep._arrays import Array, Codes, Floats, Levels
    from sufrep.encoders._base import GroupEncoder, Vectors
    from sufrep.encoders._inputs import Covariate, Inputs
    from sufrep.encoders._nesting import Links
    from sufrep.moments import GroupMoments
    from sufrep.solvers.new_levels import LevelRule

    Encoder = TypeVar("Encoder", bound=GroupEncoder)


# What encoders keep by level, next to the vectors.
_BY_LEVEL = {"mixtures_", "standard_errors_", "cell_numbers_"}


def add_new_levels(
    encoder: GroupEncoder, inputs: Inputs, number: int, whole: Vectors, places: Codes
) -> tuple[Vectors, Codes]:
    """Vectors that new levels have too, and the position of each level of a group among them.

    A level that ``fit`` did not see gets the vector that its own rows say, with everything that levels share
    as it was learnt, or with ``unseen="prior"`` that of its nearest known ancestor. Where the encoder has no
    rule for that, or the level no ancestor, it gets the prior.

    Parameters
    ----------
    encoder : GroupEncoder
    inputs : Inputs
    number : int
        Position of the group.
    whole : Vectors
        Of the known levels.
    places : ndarray of int, shape (n_levels,)
        Position of each level of the group in ``whole``, −1 for new levels.
    """
    factor = inputs.factors[number]
    unknown = _new_codes(factor, places)
    if whole.details.get("new_levels_") is None or not len(unknown):
        return whole, places
    nested = bool(inputs.parents) and bool(inputs.parents[number])
    if encoder.unseen != "estimate" and not nested:
        return whole, places
    new = _NewRows.of(encoder, inputs, number, unknown)
    if encoder.unseen == "estimate":
        values = _estimate(inputs, *known_columns(encoder, inputs), new, whole)
    else:
        values, known = whole.details["new_levels_"].starts(new.paths)
        unknown, values = unknown[known], values[known]
    places = places.copy()
    places[unknown] = whole.n_levels + np.arange(len(unknown))
    return replace(whole, added=values), places


def learn_levels(encoder: Encoder, inputs: Inputs) -> Encoder:
    """A copy of an encoder that knows the new levels of some rows too.

    A group for which the encoder has no rule stays as it is.
    """
    learnt = copy(encoder)
    learnt.representations_, learnt.moments_ = dict(encoder.representations_), dict(encoder.moments_)
    learnt.pooled_positions_ = dict(encoder.pooled_positions_)
    for name in _BY_LEVEL & set(encoder.details_):
        setattr(learnt, name, dict(getattr(encoder, name)))
    covariates, columns = _with_target(encoder, inputs, *known_columns(encoder, inputs))
    if hasattr(encoder, "parents_"):
        learnt.parents_ = dict(encoder.parents_)
    learn = _learn_lazily if isinstance(inputs.table, LazyTable) else _learn_in_memory
    for number, group in enumerate(encoder.representations_):
        table, place = encoder.representations_[group], encoder.pooled_positions_[group]
        whole, _ = encoder._pooled_vectors(group)
        found = None
        if whole.details.get("new_levels_") is not None:
            found = learn(encoder, inputs, number, covariates, columns, whole)
        if found is None:
            continue
        more, values = found.moments, found.values
        moments = _joined(encoder.moments_[group], more)
        position = {level: number for number, level in enumerate(moments.levels.tolist())}
        old = np.array([position[level] for level in table.levels.tolist()])
        new = np.array([position[level] for level in more.levels.tolist()])
        vectors = np.empty((moments.n_levels, values.shape[1]))
        vectors[old], vectors[new] = dense_values(table.values), values
        learnt.representations_[group] = Representation.from_values(
            moments.levels,
            vectors,
            table.columns,
            weight=moments.weight,
            prior=table.prior,
            group=table.group,
        )
        learnt.moments_[group] = moments
        learnt.pooled_positions_[group] = extended = _extended_places(place, old, new)
        for name in _BY_LEVEL & set(encoder.details_):
            detail = _extended_detail(whole.details[name], place, extended[old], values, extended[new])
            getattr(learnt, name)[group] = detail
        if found.links:
            learnt.parents_[group] = found.links
    return learnt


class _Learnt(NamedTuple):
    """What rows say about new levels: moments, vectors (n_levels, n_columns), and links to parents."""

    moments: GroupMoments
    values: Floats
    links: tuple[Links, ...]


def _learn_in_memory(
    encoder: GroupEncoder,
    inputs: Inputs,
    number: int,
    covariates: list[Covariate],
    columns: list[Array],
    whole: Vectors,
) -> _Learnt | None:
    """Learn the new levels of a group from rows in memory; None without any."""
    group, factor = list(encoder.representations_)[number], inputs.factors[number]
    unknown = _new_codes(factor, encoder.representations_[group].positions(factor.levels.tolist()))
    if not len(unknown):
        return None
    rows = _NewRows.of(encoder, inputs, number, unknown)
    values = _estimate(inputs, covariates, columns, rows, whole)
    own = [np.asarray(column)[rows.rows] for column in columns]
    names = [covariate.name(inputs.layout.names) for covariate in covariates]
    moments = collect_moments(inputs.table, rows.levels, own, names=names, weights=None)
    if not rows.paths:
        return _Learnt(moments, values, ())
    links, on_conflict = encoder.parents_[group], vars(encoder)["on_conflict"]
    return _Learnt(moments, values, add_links(links, inputs, number, rows.levels, rows.rows, on_conflict))


def _learn_lazily(
    encoder: GroupEncoder,
    inputs: Inputs,
    number: int,
    covariates: list[Covariate],
    columns: list[Array],
    whole: Vectors,
) -> _Learnt | None:
    """Learn the new levels of a group from the rows of a lazy frame; None without any."""
    if whole.details["new_levels_"].needs_rows:
        raise rows_needed(encoder, "{collect} first; the rows of the new levels are enough.")
    group = list(encoder.representations_)[number]
    known, order = encoder.representations_[group].levels, encoder.moments_[group].order
    found = estimate_lazily(encoder, inputs, number, covariates, columns, whole.details, order=order)
    if found is None:
        return None
    if not (inputs.parents and inputs.parents[number]):
        return _Learnt(*found, ())
    links, on_conflict = encoder.parents_[group], vars(encoder)["on_conflict"]
    return _Learnt(*found, add_lazy_links(links, inputs, number, known, on_conflict))


def rows_needed(encoder: GroupEncoder, hint: str) -> RowsNeededError:
    """The error for a rule that needs rows, and a lazy frame."""
    kind = type(encoder).__name__
    return RowsNeededError(f"{kind} estimates new levels from their rows, and {{frame}}.", hint)


def estimate_lazily(
    encoder: GroupEncoder,
    inputs: Inputs,
    number: int,
    covariates: list[Covariate],
    columns: list[Any],
    details: Mapping[str, Any],
    *,
    order: Literal[1, 2] = 1,
) -> tuple[GroupMoments, Floats] | None:
    """Moments and vectors of the levels of a lazy table that an encoder does not know; None without any."""
    rule: LevelRule = details["new_levels_"]
    table: Any = inputs.table
    known = list(encoder.representations_.values())[number].levels
    names = [covariate.name(inputs.layout.names) for covariate in covariates]
    moments = table.moments(
        inputs.factors[number], columns, names=names, weights=None, order=order, other_than=known
    )
    if not moments.n_levels:
        return None
    paths: tuple[Levels, ...] = ()
    if inputs.parents and inputs.parents[number]:
        levels, tiers = new_lazy_paths(inputs, number, known, vars(encoder)["on_conflict"])
        place = level_positions(levels)  # a level whose rows have no parent is not among the pairs
        rows = [place.get(level, -1) for level in moments.levels.tolist()]
        paths = tuple(np.append(tier, [None])[rows] for tier in tiers)
    own = columns[: sum(covariate.position is not None for covariate in covariates)]
    no_codes = np.empty(0, dtype=np.intp)
    new = NewLevels(lambda: moments, moments.n_levels, no_codes, own, details, paths)
    return moments, rule.vectors(new)


def add_moments(encoder: GroupEncoder, inputs: Inputs) -> dict[str, GroupMoments]:
    """The moments of each group, with those of the new levels of some rows."""
    covariates, columns = known_columns(encoder, inputs)
    names, moments = [covariate.name(inputs.layout.names) for covariate in covariates], {}
    for (group, known), factor in zip(encoder.moments_.items(), inputs.factors, strict=True):
        unknown = _new_codes(factor, encoder.representations_[group].positions(factor.levels.tolist()))
        codes = np.where(np.isin(factor.codes, unknown), factor.codes, -1)
        new = Factor(codes, factor.levels)
        more = collect_moments(inputs.table, new, columns, names=names, weights=None)
        moments[group] = _joined(known, more) if len(unknown) else known
    return moments


def _joined(known: GroupMoments, more: GroupMoments) -> GroupMoments:
    """The moments of known and of new levels; the covariance within levels, which they share, stays."""
    order = min(known.order, more.order)
    if order == 2:
        old, new = known.require_order_two(), more.require_order_two()
        freedom = [np.maximum(moments.observed - 1, 0.0).sum(axis=0) for moments in (known, more)]
        squares = np.where(freedom[0] > 0, old.squares * ratio(freedom[1], freedom[0]), new.squares)
        rows = within_freedom(known)
        scatter = old.scatter * (within_freedom(more) / rows) if rows > 0 else new.scatter
        more = replace(more, squares=squares, scatter=scatter)
    return known.of_order(order) + more.of_order(order)


def _new_codes(factor: Factor, places: Codes) -> Codes:
    """Codes of the levels that are not known.

    Rows without a level have nothing in common, so a null that ``fit`` did not see is not a level.
    """
    new = [code for code in np.flatnonzero(places < 0) if factor.levels[code] is not None]
    return np.array(new, dtype=np.intp)


def known_columns(encoder: GroupEncoder, inputs: Inputs) -> tuple[list[Covariate], list[Array]]:
    """The covariates that ``fit`` saw, without the target, and their values in some rows."""
    covariates = [covariate for covariate in encoder.covariates_ if covariate.position is not None]
    if inputs.columns or not covariates:
        return covariates, list(inputs.columns)
    return covariates, list(read_known_columns(inputs.table, inputs.layout, covariates))


def _with_target(
    encoder: GroupEncoder, inputs: Inputs, covariates: list[Covariate], columns: list[Array]
) -> tuple[list[Covariate], list[Array]]:
    """Add the columns of the target that ``fit`` saw; they are null if there is no target."""
    known = [covariate for covariate in encoder.covariates_ if covariate.position is None]
    absent: Any = inputs.table.constant(None)
    found: dict[Covariate, Any] = {}
    if inputs.target is not None and known:
        absent = inputs.table.constant(0.0)  # a class that these rows lack
        found = dict(zip(inputs.target.covariates, inputs.target.columns, strict=True))
    if found.keys() - set(known):
        classes = ", ".join(sorted(str(one.level) for one in found.keys() - set(known)))
        raise TargetError(f"y holds classes that fit did not see: {classes}.", "call fit with all rows.")
    return [*covariates, *known], [*columns, *(found.get(one, absent) for one in known)]


@dataclass(frozen=True, slots=True, eq=False)
class _NewRows:
    """The rows of some levels of a group, all of which have rows.

    Attributes
    ----------
    rows : ndarray of int
        Their positions.
    levels : Factor
        The levels, and the code of each of the rows.
    paths : tuple of ndarray of object, each of shape (n_levels,)
        What the levels are part of, by tier.
    """

    rows: Codes
    levels: Factor
    paths: tuple[Levels, ...] = ()

    @classmethod
    def of(cls, encoder: GroupEncoder, inputs: Inputs, group: int, unknown: Codes) -> _NewRows:
        """The rows of the levels of a group whose codes are given."""
        factor = inputs.factors[group]
        number = np.full(len(factor.levels) + 1, -1)
        number[unknown] = np.arange(len(unknown))
        codes = number[factor.codes]
        rows = np.flatnonzero(codes >= 0)
        levels = Factor(codes[rows], factor.levels[unknown])
        if not (inputs.parents and inputs.parents[group]):
            return cls(rows, levels)
        return cls(rows, levels, new_paths(inputs, group, levels, rows, vars(encoder)["on_conflict"]))


def _estimate(
    inputs: Inputs,
    covariates: list[Covariate],
    columns: list[Array],
    new: _NewRows,
    whole: Vectors,
) -> Floats:
    """Vectors of new levels; (n_levels, n_columns)."""
    own = [np.asarray(column)[new.rows] for column in columns]
    names = [covariate.name(inputs.layout.names) for covariate in covariates]
    collect = partial(inputs.table.moments, new.levels, own, names=names, weights=None, order=1)
    n_covariates = sum(covariate.position is not None for covariate in covariates)
    rule: LevelRule = whole.details["new_levels_"]
    codes, n_levels = new.levels.codes, len(new.levels.levels)
    return rule.vectors(NewLevels(collect, n_levels, codes, own[:n_covariates], whole.details, new.paths))


def _extended_detail(detail: Any, place: Codes, old: Codes, values: Floats, new: Codes) -> Any:
    """What is known by level, where ``old`` and ``new`` are the positions that the levels have now."""
    by_level = detail.shares if isinstance(detail, Mixture) else detail
    extended = np.empty((max(old.max(), new.max()) + 1, by_level.shape[1]))
    extended[old] = by_level[place]
    if isinstance(detail, Mixture):
        extended[new] = values
        return replace(detail, shares=extended)
    extended[new] = np.nan  # the errors of an estimate without any target are not known; nor has it cells
    return extended


def _extended_places(place: Codes, old: Codes, new: Codes) -> Codes:
    """Position of each level after pooling, when levels were added, which are not pooled."""
    rare, last = np.zeros(len(old) + len(new), dtype=bool), place == place.max()
    rare[old[last]] = np.count_nonzero(last) > 1
    return np.where(rare, (~rare).sum(), np.cumsum(~rare) - 1)
