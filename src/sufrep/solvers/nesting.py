"""Level means that are shrunk towards the means of what contains them: zip codes in cities in states.

Tier 0 holds the levels, tier 1 their parents, and so on; above the last tier is the overall mean m. The true
mean of a unit of tier k is normal around that of its parent,

    μ_u ~ N(μ_parent(u), T_k),    x̄_g ~ N(μ_g, W/n_g) for levels,

so that T_0 says how much levels differ within a parent, T_1 how much parents differ within a grandparent, and
so on. W and all T_k are estimated from the moments; the means then follow exactly, in one pass up the tree
and one down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._accumulate import ratio
from sufrep._arrays import blocks
from sufrep.representation import level_positions
from sufrep.solvers.low_rank import noise_edge
from sufrep.solvers.shrinkage import (
    MeansPrior,
    estimate_means_prior,
    has_nulls,
    posterior_means,
    prior_errors,
    whiten,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Codes, Floats, Levels
    from sufrep.moments import GroupMoments
    from sufrep.solvers.shrinkage import PriorErrors

_BLOCK = 4096  # levels with nulls whose matrices are inverted at a time
_ROUNDING = 1e-14


@dataclass(frozen=True, slots=True, eq=False)
class Nesting:
    """What each level of a group is part of.

    Attributes
    ----------
    parents : tuple of ndarray of int, each of shape (n_units of its tier,)
        The position of each unit's parent in the next tier: of the levels, of their parents, and so on, but
        not of the last tier.
    names : tuple of ndarray of object, each of shape (n_units of the next tier,)
        What the units of each tier above the levels are called. A unit without a known parent has a parent
        of its own, called None: what it differs in from the units of the next tier but one is then T_0 + T_1.
    """

    parents: tuple[Codes, ...]
    names: tuple[Levels, ...]

    def take(self, levels: Codes) -> Nesting:
        """Return the nesting of some levels, without what contains none of them."""
        parents, names = [], []
        chosen = levels
        for parent, name in zip(self.parents, self.names, strict=True):
            used, own = np.unique(parent[chosen], return_inverse=True)
            parents.append(own)
            names.append(name[used])
            chosen = used
        return Nesting(tuple(parents), tuple(names))

    def skip_to(self, tiers: Sequence[int]) -> Nesting:
        """Return the nesting with only some of the tiers above the levels, the nearest being 0."""
        parents, chosen = [], None
        for tier, parent in enumerate(self.parents):
            chosen = parent if chosen is None else parent[chosen]
            if tier in tiers:
                parents.append(chosen)
                chosen = None
        return Nesting(tuple(parents), tuple(self.names[tier] for tier in tiers))

    def paths(self, levels: Codes) -> tuple[Levels, ...]:
        """What some levels are part of, by tier, from the nearest to the farthest."""
        found, chosen = [], levels
        for parent, name in zip(self.parents, self.names, strict=True):
            chosen = parent[chosen]
            found.append(name[chosen])
        return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Tier:
    """The units of one tier above the levels that have a name, for levels that are new.

    Attributes
    ----------
    names : ndarray of object, shape (n_units,)
    means : ndarray, shape (n_units, p)
        Their posterior means.
    prior : MeansPrior
        Of levels whose nearest known ancestor is in this tier. Its T is the sum of those of the tiers below;
        the mean of the ancestor takes the place of its center.
    """

    names: Levels
    means: Floats
    prior: MeansPrior


@dataclass(frozen=True, slots=True, eq=False)
class StatesTier:
    """The same for hidden states.

    Attributes
    ----------
    names : ndarray of object, shape (n_units,)
    shares : ndarray, shape (n_units, n_states)
        Probabilities of the states in each unit, which new levels start from.
    """

    names: Levels
    shares: Floats


@dataclass(frozen=True, slots=True, eq=False)
class NestedMeans:
    """Shrunken means of nested levels.

    Attributes
    ----------
    values : ndarray, shape (n_levels, p)
        Posterior means of the levels.
    centers : ndarray, shape (n_levels, p)
        Those of their parents.
    own : MeansPrior
        Of a level around its parent.
    prior : MeansPrior
        Of a level around the overall mean.
    tiers : tuple of Tier
    """

    values: Floats
    centers: Floats
    own: MeansPrior
    prior: MeansPrior
    tiers: tuple[Tier, ...] = ()


def shrink_nested(moments: GroupMoments, nesting: Nesting | None) -> NestedMeans:
    """Posterior means of levels; without a nesting, all of them have the overall mean as their parent.

    Parameters
    ----------
    moments : GroupMoments
        Of order 2.
    nesting : Nesting or None
        Of these levels.
    """
    prior = estimate_means_prior(moments)
    if nesting is None:
        values = posterior_means(prior, moments.mean, moments.observed, moments.weight)
        return NestedMeans(values, np.broadcast_to(prior.center, values.shape), prior, prior)
    between = _estimate_tiers(moments, nesting, prior)
    around = [prior.with_between(total) for total in np.cumsum(between, axis=0)]
    means = _ancestor_means(moments, nesting, around[0], between[1:])
    centers = means[0][nesting.parents[0]]
    values = posterior_means(around[0], moments.mean, moments.observed, moments.weight, centers)
    named = [[name is not None for name in names] for names in nesting.names]
    tiers = tuple(
        Tier(names[known], mean[known], own)
        for names, mean, own, known in zip(nesting.names, means, around, named, strict=False)
    )
    return NestedMeans(values, centers, around[0], around[-1], tiers)


def nested_errors(moments: GroupMoments, nesting: Nesting) -> tuple[MeansPrior, PriorErrors]:
    """The prior of levels around their parents, and its errors.

    The center of the errors has a covariance for each parent: that of the error of its mean, (n_parents, p,
    p).

    Parameters
    ----------
    moments : GroupMoments
        Of order 2.
    nesting : Nesting
        Of these levels.
    """
    prior = estimate_means_prior(moments)
    between = _estimate_tiers(moments, nesting, prior)
    own, center = prior.with_between(between[0]), _error_of_center(moments, nesting, prior, between)
    parents = _parent_errors(moments, nesting, own, between[1:], center)
    return own, replace(prior_errors(moments, own), center=parents)


def shrink_towards_parents(moments: GroupMoments, nesting: Nesting | None) -> tuple[Floats, Floats]:
    """Posterior means of levels, and the overall mean, which a level without rows and ancestors has."""
    found = shrink_nested(moments, nesting)
    return found.values, found.prior.center


def nearest_known(
    paths: Sequence[Levels], tiers: Sequence[Tier | StatesTier], n_levels: int
) -> tuple[Codes, Codes]:
    """The nearest ancestor of each new level that is known: its tier, −1 for none, and its place there.

    Parameters
    ----------
    paths : sequence of ndarray of object, each of shape (n_levels,)
        What the levels are part of, by tier, None where that is unknown; empty if nothing is known.
    tiers : sequence of Tier or of StatesTier
    n_levels : int
    """
    tier, place = np.full((2, n_levels), -1)
    for number, (names, known) in enumerate(zip(paths, tiers, strict=False)):
        position = level_positions(known.names)
        found = np.array([position.get(name, -1) for name in names.tolist()], dtype=np.intp)
        new = (tier < 0) & (found >= 0)
        tier[new], place[new] = number, found[new]
    return tier, place


# How much units differ from their parents


@dataclass(frozen=True, slots=True, eq=False)
class _Units:
    """The units of one tier: sample means, weights, and the weights of what they consist of.

    Attributes
    ----------
    observed, mean : ndarray, shape (n_units, p)
        Weights, and means in units of the prior's scale from its center, 0 where there is none.
    squares : list of ndarray, each of shape (n_units, p)
        For each tier below, Σ n_v² over its units v in each unit.
    """

    observed: Floats
    mean: Floats
    squares: list[Floats]

    def pool(self, parent: Codes, n_parents: int) -> _Units:
        """The units of the next tier."""
        total = _sum_by(parent, self.observed, n_parents)
        mean = ratio(_sum_by(parent, self.observed * self.mean, n_parents), total)
        squares = [_sum_by(parent, part, n_parents) for part in (*self.squares, self.observed**2)]
        return _Units(total, mean, squares)

    def n_present(self) -> float:
        """Number of units that have rows, in the covariate that most have."""
        return float((self.observed > 0).sum(axis=0).max(initial=0))


def _estimate_tiers(moments: GroupMoments, nesting: Nesting, prior: MeansPrior) -> list[Floats]:
    """T_0, T_1, … in units of the prior's scale, each (p, p).

    A tier above the levels whose units differ by no more than noise is left out, and the others are estimated
    without it: a parent that says nothing then changes nothing
    (test_a_parent_that_says_nothing_changes_nothing).
    """
    tiers = list(range(len(nesting.parents)))  # of the parents that are not left out
    nothing = np.zeros_like(prior.within)
    while True:
        found = _tier_covariances(moments, nesting.skip_to(tiers), prior)
        idle = next((number for number, between in enumerate(found) if number and between is None), None)
        if idle is None:
            break
        del tiers[idle - 1]
    every = [found[0], *([nothing] * len(nesting.parents))]
    for number, tier in enumerate(tiers):
        every[tier + 1] = found[number + 1]
    return [nothing if between is None else between for between in every]


def _tier_covariances(moments: GroupMoments, nesting: Nesting, prior: MeansPrior) -> list[Floats | None]:
    """T_0, T_1, … by the method of moments; None for a tier whose units differ by no more than noise.

    With N the total weight of a parent P, and V_u the noise that the sample mean of u has from below,

        E Σ_u n_u (x̄_u − x̄_P)(x̄_u − x̄_P)ᵀ = Σ_u n_u (1 − n_u/N_P) V_u + Σ_P (N_P − Σ_{u in P} n_u²/N_P) T_k,
        V_u = W/n_u + Σ_{j<k} T_j Σ_{v of tier j in u} n_v²/n_u².

    With nulls, n_u is √(n_ui n_uj), as in `estimate_means_prior`.
    """
    deviation = np.where(moments.observed > 0, moments.mean - prior.center, 0.0) / prior.scale
    units = _Units(moments.observed, deviation, [])
    found: list[Floats | None] = []
    freedom = np.inf
    for parent, n_parents in zip(*_up_to_the_root(nesting, moments.n_levels), strict=True):
        above = units.pool(parent, n_parents)
        # The lower bound keeps the product of two totals from underflowing
        # (test_a_covariate_that_is_always_null_does_not_affect_the_others).
        share = units.observed / np.maximum(above.observed, 1e-100)[parent]
        size = _gram(units.observed) - _gram(units.observed * share)
        count = np.maximum(_gram((units.observed > 0) * 1.0) - _gram((above.observed > 0) * 1.0), 0.0)
        noise = count * prior.within
        for squares, between in zip(units.squares, found, strict=True):
            part = ratio(squares, units.observed)
            noise = noise + (_gram(part) - _gram(part * share)) * (0.0 if between is None else between)
        apart = np.sqrt(units.observed) * (units.mean - above.mean[parent])
        spread, below = apart.T @ apart, freedom
        freedom = units.n_present() - above.n_present()
        if found and not _exceeds_noise(spread, noise, freedom, below):
            found.append(None)
        else:
            excess = np.divide(spread - noise, size, out=np.zeros_like(size), where=size > 1e-9)
            found.append(prior.with_between(excess).between)
        units = above
    return found


def _exceeds_noise(spread: Floats, noise: Floats, freedom: float, below: float) -> bool:
    """Whether the spread of units has a direction that is significantly above the noise from below (5 %).

    Parameters
    ----------
    spread, noise : ndarray, shape (p, p)
        Sum of squares between the units of a tier, and its expectation if their true means did not differ.
    freedom, below : float
        Degrees of freedom of the tier, and of the one below, from which the noise is estimated.
    """
    if freedom < 1:
        return False
    whitening = whiten(noise / freedom)
    largest = np.linalg.eigvalsh(whitening.T @ spread @ whitening)[-1]
    return bool(largest > noise_edge(int(freedom), len(noise), below))


def _up_to_the_root(nesting: Nesting, n_levels: int) -> tuple[list[Codes], list[int]]:
    """The parents of the units of each tier, those of the last one included, and their numbers."""
    numbers = [*map(len, nesting.names), 1]
    last = np.zeros([n_levels, *numbers][-2], dtype=np.intp)
    return [*nesting.parents, last], numbers


def _gram(squares: Any) -> Floats:
    """Σ_u √(a_ui a_uj) of an array a, (n_units, p), of numbers that are not negative; (p, p)."""
    root = np.sqrt(squares)
    return np.asarray(root.T @ root)


# Means, given the variances


def _ancestor_means(
    moments: GroupMoments, nesting: Nesting, own: MeansPrior, between: Sequence[Floats]
) -> list[Floats]:
    """Posterior means of the units of each tier above the levels, each (n_units, p).

    Going up, the precision Λ and the information η = Λ·(estimate of the mean) of a unit are the sums of what
    its children say about it: (I + ΛT)⁻¹Λ and (I + ΛT)⁻¹η, which needs no inverse of T or Λ. Going down,
    μ_u = μ_P + T(I + ΛT)⁻¹(η − Λμ_P). All on the axes on which W is the identity and T_0 is diagonal.
    """
    spreads, known = _messages_up(moments, nesting, own, between)
    means: list[Floats] = []
    above = np.zeros((1, len(own.center)))
    for number in reversed(range(len(spreads))):
        precision, information, factor = known[number]
        parent = _parents_of(nesting, number, len(information))
        surprise = information - np.einsum("uij,uj->ui", precision, above[parent])
        above = above[parent] + _solve(factor, surprise) @ spreads[number]
        means.append(own.center + (above @ own.back) * own.scale)
    return means[::-1]


def _parent_errors(
    moments: GroupMoments, nesting: Nesting, own: MeansPrior, between: Sequence[Floats], center: Floats
) -> Floats:
    """Covariances of the errors of the means of the parents of the levels; (n_parents, p, p).

    What is not known of a unit given its parent is C = T(I + ΛT)⁻¹, and I − CΛ of the error of the parent's
    mean is passed on to it. The overall mean has the error ``center``. All in units of the prior's scale.
    """
    spreads, known = _messages_up(moments, nesting, own, between)
    above, identity = (own.forward.T @ center @ own.forward)[None], np.eye(len(center))
    for number in reversed(range(len(spreads))):
        precision, _, factor = known[number]
        given = spreads[number] @ np.linalg.inv(factor)
        passed = identity - given @ precision
        above = above[_parents_of(nesting, number, len(precision))]
        above = given + passed @ above @ passed.transpose(0, 2, 1)
    return np.asarray(own.back.T @ above @ own.back)


def _error_of_center(
    moments: GroupMoments, nesting: Nesting, prior: MeansPrior, between: Sequence[Floats]
) -> Floats:
    """Covariance of the overall mean, Σ_k T_k Σ_u (n_u/N)² + W/N, in units of the prior's scale; (p, p)."""
    observed, total = moments.observed, moments.observed.sum(axis=0)
    found = prior.noise(total[None])[0] * (total > 0)
    for parent, n_parents, spread in zip(*_up_to_the_root(nesting, moments.n_levels), between, strict=True):
        share = ratio(observed, np.broadcast_to(total, observed.shape))
        found = found + share.T @ share * spread
        observed = _sum_by(parent, observed, n_parents)
    return np.asarray(found)


def _messages_up(
    moments: GroupMoments, nesting: Nesting, own: MeansPrior, between: Sequence[Floats]
) -> tuple[list[Floats], list[tuple[Floats, Floats, Floats]]]:
    """T of each tier above the levels, and Λ, η and I + ΛT of its units."""
    spreads = [own.forward.T @ between_units @ own.forward for between_units in between]
    precision, information = _messages_of_levels(moments, nesting.parents[0], own, len(nesting.names[0]))
    known = []
    for spread, parent in zip(spreads, (*nesting.parents[1:], None), strict=True):
        # Next to units of enormous weight, the identity is lost to rounding, and the matrix may be singular
        # (test_enormous_weights_have_finite_means).
        largest = np.einsum("uij,ji->ui", np.abs(precision), np.abs(spread)).max(axis=1, initial=0.0)
        rounding = _ROUNDING * largest
        identity = np.where(rounding > 0.1, 1 + rounding, 1.0)
        factor = identity[:, None, None] * np.eye(len(spread)) + precision @ spread
        known.append((precision, information, factor))
        if parent is not None:
            n_parents = int(parent.max()) + 1
            precision = _sum_by(parent, np.linalg.solve(factor, precision), n_parents)
            information = _sum_by(parent, _solve(factor, information), n_parents)
    return spreads, known


def _parents_of(nesting: Nesting, tier: int, n_units: int) -> Codes:
    """The parents of the units of a tier above the levels, the nearest being 0; the overall mean is 0."""
    top = tier == len(nesting.parents) - 1
    return np.zeros(n_units, dtype=np.intp) if top else nesting.parents[tier + 1]


def _messages_of_levels(
    moments: GroupMoments, parent: Codes, own: MeansPrior, n_parents: int
) -> tuple[Floats, Floats]:
    """Precision and information about their parents that levels give; (n_parents, p, p), (n_parents, p)."""
    p = len(own.center)
    deviation = np.where(moments.observed > 0, moments.mean - own.center, 0.0) / own.scale
    some = has_nulls(moments.observed, moments.weight)
    weight = np.where(some, 0.0, moments.weight)[:, None]
    alone = weight / (1 + weight * own.signal)
    information = _sum_by(parent, alone * (deviation @ own.forward), n_parents)
    precision = _sum_by(parent, alone, n_parents)[:, :, None] * np.eye(p)
    rows = np.flatnonzero(some)
    for part in blocks(len(rows), _BLOCK):
        chosen = rows[part]
        present = moments.observed[chosen] > 0
        inverse = np.linalg.inv(own.covariance(moments.observed[chosen]))
        inverse *= present[:, :, None] & present[:, None, :]
        inverse = own.back @ inverse @ own.back.T
        np.add.at(precision, parent[chosen], inverse)
        moved = deviation[chosen] @ own.forward
        np.add.at(information, parent[chosen], np.einsum("uij,uj->ui", inverse, moved))
    return precision, information


def _solve(matrices: Floats, vectors: Floats) -> Floats:
    return np.asarray(np.linalg.solve(matrices, vectors[:, :, None])[:, :, 0])


def _sum_by(parent: Codes, table: Any, n_parents: int) -> Any:
    """Sum the rows of ``table`` by parent."""
    total = np.zeros((n_parents, *table.shape[1:]))
    np.add.at(total, parent, table)
    return total
