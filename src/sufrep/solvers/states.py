"""Initial values of the mixture of hidden states, and the choice of the number of states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._threads import one_thread
from sufrep.moments import GroupMoments
from sufrep.representation import as_levels
from sufrep.solvers.experts import first_class_experts, first_linear_experts
from sufrep.solvers.low_rank import n_components_above_noise
from sufrep.solvers.mixture import Mixture, fit_mixture, fit_with_target, level_shares
from sufrep.solvers.nesting import StatesTier
from sufrep.solvers.shrinkage import (
    estimate_means_prior,
    shrink_means,
    within_covariance,
    within_freedom,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Floats, Mask
    from sufrep.solvers.experts import ClassExperts, LinearExperts
    from sufrep.solvers.nesting import Nesting

# Candidates for the number of states; the neighbours of the best one are tried as well.
LADDER = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30)
# The search stops after this many candidates in a row that are worse than the best.
_PATIENCE = 2
# There are at least this many rows for each state.
_ROWS_OF_STATE = 20
# Levels are thinned out to the rows that this many of them can have together.
_LEAST_LEVELS = 200
# Part of a level's initial shares that is spread evenly over all states.
_SMOOTHING = 0.3
# Runs of k-means for each start. A single run often misses a cluster, which biases the number of states.
_N_INIT = 4
_MOST_START_ROWS = 20_000
# Least variance of a direction within levels, where rows have about unit variance.
_LEAST_VARIANCE = 1e-6
# Values that agree to this many decimals are treated as equal: the last digits of sums depend on the row
# order.
_DIGITS = 7


@dataclass(frozen=True, slots=True, eq=False)
class MixtureRows:
    """The rows that a mixture is fitted to.

    Attributes
    ----------
    rows : ndarray, shape (n, p)
        Covariates on comparable scales.
    codes : ndarray of int, shape (n,)
        The level of each row.
    n_levels : int
    weights : ndarray, shape (n,), or None
        Frequency weights.
    target : ndarray, shape (n,), or None
        The target, where the mixture has experts: numbers, or codes of classes.
    n_classes : int
        Number of classes; 0 if the target is numbers.
    """

    rows: Floats
    codes: Codes
    n_levels: int
    weights: Floats | None = None
    target: Array | None = None
    n_classes: int = 0

    def take(self, chosen: Codes) -> MixtureRows:
        """A subset of the rows, by position."""
        return replace(
            self,
            rows=self.rows[chosen],
            codes=self.codes[chosen],
            weights=None if self.weights is None else self.weights[chosen],
            target=None if self.target is None else self.target[chosen],
        )

    def without_target(self) -> MixtureRows:
        """The same rows, as if there were no target."""
        return replace(self, target=None, n_classes=0)

    def with_target(self) -> Floats:
        """The covariates and, if there is a target, its columns, each scaled like the covariates."""
        if self.target is None:
            return self.rows
        if self.n_classes:
            # One indicator less than there are classes: all of them would add up to 1.
            return np.column_stack([self.rows, *(self.target == c for c in range(1, self.n_classes))])
        deviation = self.target - np.average(self.target, weights=self.weights)
        spread = np.sqrt(np.average(np.square(deviation), weights=self.weights))
        return np.column_stack([self.rows, deviation / spread if spread > 0 else deviation])

    def first_experts(self, center: Floats, n_states: int) -> LinearExperts | ClassExperts | None:
        """Initial experts, the same for all states; None without a target."""
        if self.target is None:
            return None
        if self.n_classes:
            return first_class_experts(self.target, self.n_classes, n_states, self.weights)
        return first_linear_experts(self.rows - center, self.target, n_states, self.weights)

    def canonical(self) -> MixtureRows:
        """The same rows in a canonical order, equal rows of a level merged, levels numbered by their rows.

        Random draws from the result depend on neither the order of the rows nor the names of the levels, and
        a row of weight 2 counts as two rows.
        """
        whole = self.rows if self.target is None else np.column_stack([self.rows, self.target])
        distinct, place = np.unique(whole, axis=0, return_inverse=True)
        pairs = np.column_stack([self.codes, place.reshape(-1)])
        (codes, places), index = (found.T for found in np.unique(pairs, axis=0, return_inverse=True))
        weights = np.bincount(index.reshape(-1), self.weights).astype(np.float64)
        cuts = np.flatnonzero(np.diff(codes)) + 1
        rows_of = [part.tolist() for part in np.split(places, cuts)]
        weights_of = [part.tolist() for part in np.split(weights, cuts)]
        by_rows = sorted(range(len(rows_of)), key=lambda level: (rows_of[level], weights_of[level]))
        number = np.repeat(np.argsort(by_rows), [len(part) for part in rows_of])
        order = np.lexsort((number, places))
        ordered = distinct[places[order]]
        target = None if self.target is None else ordered[:, -1].astype(self.target.dtype)
        return MixtureRows(
            ordered[:, : self.rows.shape[1]],
            number[order],
            len(rows_of),
            weights[order],
            target,
            self.n_classes,
        )


def level_moments(sample: MixtureRows) -> GroupMoments:
    """Moments of the covariates and, if there is one, of the target."""
    rows = sample.with_target()
    return GroupMoments.from_columns(
        sample.codes,
        rows.T,
        as_levels(range(sample.n_levels)),
        covariates=[f"x{j}" for j in range(rows.shape[1])],
        weights=sample.weights,
    )


def count_states(sample: MixtureRows, max_states: int) -> int:
    """Number of states that the means of the levels show: one more than their dimensions above the noise.

    The true means of levels that mix k states lie in a space of k − 1 dimensions, if the means of the states
    are affinely independent; otherwise, k is larger. There is one state where the means of the levels differ
    no more than by chance, or where rows within levels are too few to tell the noise.
    """
    moments = level_moments(sample)
    most = min(moments.n_levels, int(moments.total_weight) // _ROWS_OF_STATE, max_states)
    if within_freedom(moments) <= len(moments.covariates) or most < 2:
        return 1
    mean = moments.filled_mean()
    mean = (mean - moments.weight @ mean / moments.total_weight).round(_DIGITS)
    rank = n_components_above_noise(mean, moments.weight, within_covariance(moments), centered=True)
    return min(1 + rank, most)


def start_mixture(sample: MixtureRows, n_states: int, seed: int) -> Mixture:
    """Initial mixture from k-means on the shrunken level means, whitened by the covariance within levels.

    The target is one of the columns if there is one: states that differ in the target only would be missed
    otherwise. With fewer than two levels per state, the rows are clustered instead. The result depends on
    neither the names of the levels nor the order of the rows.
    """
    p, rows = sample.rows.shape[1], sample.with_target()
    moments = level_moments(sample)
    prior = estimate_means_prior(moments)
    values = shrink_means(moments, prior)
    within = prior.within * np.outer(prior.scale, prior.scale)
    whiten = _inverse_root(within)
    points, weights = values, moments.weight
    if moments.n_levels < 2 * n_states:
        points, weights = _distinct_rows(rows, sample.weights, seed)
    centers = _cluster_centers(points @ whiten, weights, n_states, seed)
    nearest = np.zeros(sample.n_levels, dtype=np.int64)
    distances = ((values @ whiten)[:, None, :] - centers) ** 2
    nearest[moments.levels.astype(np.int64)] = distances.sum(axis=2).argmin(axis=1)
    shares = np.full((sample.n_levels, n_states), _SMOOTHING / n_states)
    shares[np.arange(sample.n_levels), nearest] += 1 - _SMOOTHING
    means, center = np.zeros((n_states, p)), prior.center[:p]
    means[: len(centers)] = (centers @ np.linalg.pinv(whiten))[:, :p] - center
    covariance = within[:p, :p] + 1e-3 * np.eye(p)
    equal = np.full(n_states, 1 / n_states)
    experts: Any = sample.first_experts(center, n_states)
    return Mixture(center, means, covariance, shares, equal, experts, np.empty(0), converged=False)


def _cluster_centers(points: Floats, weights: Floats, n_states: int, seed: int) -> Floats:
    """Centers of at most `n_states` clusters; (n_clusters, p)."""
    # A fit that needs no states need not load this (test_lazy_frames_load_no_learner).
    from sklearn.cluster import KMeans

    # k-means draws its initial centers by position, so the order of the points must not depend on the names
    # of levels. Rounding breaks ties between points at equal distances, such as the whitened rows of a small
    # sample, the same way in any order of the rows.
    points = points.round(_DIGITS)
    order = np.lexsort(points.T[::-1])
    n_clusters = min(n_states, len(np.unique(points, axis=0)))
    with one_thread():
        found = KMeans(n_clusters, n_init=_N_INIT, random_state=seed).fit(
            points[order], sample_weight=weights[order]
        )
    return np.asarray(found.cluster_centers_)


def _distinct_rows(rows: Floats, weights: Floats | None, seed: int) -> tuple[Floats, Floats]:
    """Distinct rows and their weights, or a random subset if there are many."""
    distinct, index = np.unique(rows, axis=0, return_inverse=True)
    total = np.bincount(index.reshape(-1), weights).astype(np.float64)
    if len(distinct) <= _MOST_START_ROWS:
        return distinct, total
    chosen = np.sort(np.random.default_rng(seed).choice(len(distinct), _MOST_START_ROWS, replace=False))
    return distinct[chosen], total[chosen]


def fit_states(
    sample: MixtureRows, n_states: int, *, max_rows: int, concentration: float, seed: int, **options: Any
) -> Mixture:
    """Fit the states to the rows of some levels, and the shares of all levels given the states.

    Parameters
    ----------
    sample : MixtureRows
        Without a target.
    n_states : int
    max_rows : int
        Number of rows that the states are fitted to, if there are more; the rest of the time is linear in the
        rows, and short.
    concentration, seed, **options
        Of `best_of_starts`.
    """
    with one_thread(blas_only=True):
        part = _some_levels(sample, max_rows, seed)
        found = best_of_starts(part, n_states, concentration=concentration, seed=seed, **options)
        if part is sample:
            return found
        rows, codes, weights = sample.rows, sample.codes, sample.weights
        shares = level_shares(
            found, rows, codes, sample.n_levels, weights=weights, concentration=concentration
        )
    return replace(found, shares=shares)


def nest_states(
    mixture: Mixture, sample: MixtureRows, nesting: Nesting | None, concentration: float
) -> tuple[Mixture, tuple[StatesTier, ...]]:
    """Shrink the shares of levels towards those of their parents, these towards theirs, and so on.

    The states stay as they are. From the last tier to the levels, the shares of a unit are those that the
    rows of all its levels say, with the shares of what contains it as their prior. Units above the levels are
    shrunk further towards what contains them, by the part of their differences that is chance: their levels
    are few, however many rows they have (test_a_parent_that_says_nothing_is_hardly_used). A unit without a
    name has the shares of what contains it.

    Returns
    -------
    mixture : Mixture
        With the shares of the nested levels; as it was if no tier says anything.
    tiers : tuple of StatesTier
        From the parents of the levels to the last tier.
    """
    if nesting is None:
        return mixture, ()
    # The unit of each tier that each level is in, the levels first.
    units: list[Codes] = [np.arange(sample.n_levels)]
    for parent in nesting.parents:
        units.append(parent[units[-1]])
    present = np.unique(sample.codes)
    reliable = _reliability(mixture.shares[present], [unit[present] for unit in units])
    above, tiers = mixture.prior[None, :], []
    containers = (*nesting.parents[1:], np.zeros(len(nesting.names[-1]), dtype=np.intp))
    for tier in range(len(nesting.names), 0, -1):
        names, prior = nesting.names[tier - 1], above[containers[tier - 1]]
        known, above = np.array([name is not None for name in names], dtype=bool), prior
        if reliable[tier - 1] > 0:
            shares = _shares_of(mixture, sample, units[tier][sample.codes], known, prior, concentration)
            above = prior + reliable[tier - 1] * (shares - prior)
        tiers.append(StatesTier(names[known], above[known]))
    if max(reliable) > 0:
        everywhere, prior = np.ones(sample.n_levels, dtype=bool), above[nesting.parents[0]]
        shares = _shares_of(mixture, sample, sample.codes, everywhere, prior, concentration)
        mixture = replace(mixture, shares=shares)
    return mixture, tuple(reversed(tiers))


def _reliability(shares: Floats, units: Sequence[Codes]) -> list[float]:
    """For each tier above the levels, the part of the differences of its units that is not chance.

    Those of units within what contains them are compared with those within units, as in a nested analysis of
    variance: 1 − MS_within / MS_between, or 0 if that is negative or undefined.

    Parameters
    ----------
    shares : ndarray, shape (n_levels, n_states)
    units : sequence of ndarray of int, each of shape (n_levels,)
        The unit of each tier that each level is in, the levels first.
    """
    squares, below, n_below = [], shares, len(shares)
    for unit in (*units[1:], np.zeros(len(shares), dtype=np.intp)):
        _, own, count = np.unique(unit, return_inverse=True, return_counts=True)
        mean = np.stack([np.bincount(own, column) for column in shares.T], axis=1) / count[:, None]
        freedom = n_below - len(count)
        squares.append(((below - mean[own]) ** 2).sum() / freedom if freedom else 0.0)
        below, n_below = mean[own], len(count)
    # Where units do not differ within what contains them, rounding must not decide.
    return [
        max(0.0, 1 - within / between) if within > 0 and between > _LEAST_VARIANCE**2 else 0.0
        for within, between in pairwise(squares)
    ]


def _shares_of(
    mixture: Mixture, sample: MixtureRows, codes: Codes, known: Mask, prior: Floats, concentration: float
) -> Floats:
    """Shares of the units of a tier, with the given priors; those that are not ``known`` keep theirs."""
    chosen = known[codes]
    part = sample.take(np.flatnonzero(chosen))
    return level_shares(
        mixture,
        part.rows,
        codes[chosen],
        len(known),
        concentration=concentration,
        weights=part.weights,
        target=part.target,
        prior=prior,
    )


def _some_levels(sample: MixtureRows, max_rows: int, seed: int) -> MixtureRows:
    """About `max_rows` rows of some levels, or all rows if there are no more.

    Levels with many rows are thinned out; others are kept or left out as a whole, because a part says less
    about them. Which rows are kept depends on their values only: neither on their order nor on the names of
    levels, and a row of weight 2 is kept like two rows.
    """
    if len(sample.rows) <= max_rows:
        return sample
    rng, n_levels = np.random.default_rng(seed), sample.n_levels
    # A number for each row, by which equal rows are recognised, and its last digits, by which rows are drawn.
    place = (sample.rows @ rng.normal(size=sample.rows.shape[1])).round(_DIGITS)
    draw = place * 1e4 % 1
    order = np.lexsort((place, draw, sample.codes))
    place, codes = place[order], sample.codes[order]
    is_first = np.append(True, (np.diff(place) != 0) | (np.diff(codes) != 0))
    begins = np.minimum(np.searchsorted(codes, np.arange(n_levels)), len(codes) - 1)
    number = np.cumsum(is_first)
    drawn = number - number[begins][codes] < max(1, max_rows // min(n_levels, _LEAST_LEVELS))
    count = np.bincount(codes, drawn & is_first, minlength=n_levels)
    weight = np.bincount(sample.codes, sample.weights, minlength=n_levels)
    by_rows = np.lexsort((weight, count, place[begins]))
    shuffled = by_rows[rng.permutation(n_levels)]
    keep = np.zeros(n_levels, dtype=bool)
    keep[shuffled[: max(1, np.searchsorted(np.cumsum(count[shuffled]), max_rows, side="right"))]] = True
    part = sample.take(order[drawn & keep[codes]])
    return replace(part, codes=(np.cumsum(keep) - 1)[part.codes], n_levels=int(keep.sum()))


def best_of_starts(
    sample: MixtureRows,
    n_states: int,
    *,
    n_starts: int,
    seed: int,
    concentration: float,
    max_iter: int,
    tol: float,
) -> Mixture:
    """Run ten EM iterations from each start and the best start to convergence; most common state first."""
    starts = [start_mixture(sample, n_states, seed + number) for number in range(n_starts)]
    options: dict[str, Any] = {
        "weights": sample.weights,
        "target": sample.target,
        "concentration": concentration,
    }
    if len(starts) > 1:
        short = [
            fit_mixture(sample.rows, sample.codes, start, **options, max_iter=10, tol=0.0) for start in starts
        ]
        # Starts that differ only by rounding tie, and the first of them is used.
        starts = [max(short, key=lambda mixture: round(mixture.objective[-1], _DIGITS))]
    fit = fit_mixture if sample.target is None else fit_with_target
    found = fit(sample.rows, sample.codes, starts[0], **options, max_iter=max_iter, tol=tol)
    return found.reordered(_most_common_first(found))


def _most_common_first(mixture: Mixture) -> Codes:
    """Order of the states by decreasing prior probability, ties by their means."""
    means, prior = mixture.means.round(_DIGITS), mixture.prior.round(_DIGITS)
    return np.asarray(np.lexsort((*means.T[::-1], -prior)))


def choose_n_states(
    sample: MixtureRows,
    folds: Sequence[tuple[Codes, Codes]],
    *,
    seed: int,
    concentration: float,
    max_states: int = LADDER[-1],
) -> tuple[int, dict[int, float]]:
    """Number of states, at most `max_states`, with the highest held-out log-likelihood given the levels.

    It is the likelihood of the covariates and, if there is one, of the target. Ties go to the larger number,
    because too few states cost much and too many cost little. A candidate ties with the best if it is worse
    by less than one standard error of the paired differences.

    Returns
    -------
    chosen : int
    scores : dict of int to float
        Mean log-density of held-out rows for every candidate tried.
    """
    most = max(1, min(sample.n_levels, len(sample.rows) // _ROWS_OF_STATE, max_states))
    densities: dict[int, Floats] = {}
    tested = np.concatenate([test for _, test in folds])
    weights = np.ones(len(tested)) if sample.weights is None else sample.weights[tested]

    def score(candidate: int) -> float:
        if candidate not in densities:
            densities[candidate] = _held_out_log_density(sample, folds, candidate, seed, concentration)
        return float(np.average(densities[candidate], weights=weights))

    best, worse = 1, 0
    for candidate in LADDER:
        if candidate > most or worse >= _PATIENCE:
            break
        worse = 0 if candidate == 1 or score(candidate) > score(best) else worse + 1
        best = max(best, candidate, key=score)
    for step in (-1, 1):
        while 1 <= best + step <= most and score(best + step) > score(best):
            best += step
    for candidate in sorted(densities):
        mean, error = _paired_difference(densities[best] - densities[candidate], weights)
        if candidate > best and mean < error:
            best = candidate
    return best, {candidate: score(candidate) for candidate in sorted(densities)}


def _held_out_log_density(
    sample: MixtureRows,
    folds: Sequence[tuple[Codes, Codes]],
    n_states: int,
    seed: int,
    concentration: float,
) -> Floats:
    """Log-densities of all held-out rows given their levels, concatenated over the folds."""
    found = []
    for train, test in folds:
        mixture = best_of_starts(
            sample.take(train),
            n_states,
            n_starts=1,
            seed=seed,
            concentration=concentration,
            max_iter=100,
            tol=1e-4,
        )
        held_out = sample.take(test)
        shares = mixture.shares[held_out.codes]
        found.append(mixture.log_density(held_out.rows, shares, held_out.target))
    return np.concatenate(found)


def _paired_difference(differences: Floats, weights: Floats) -> tuple[float, float]:
    """Mean of paired differences and its standard error."""
    mean = np.average(differences, weights=weights)
    variance = np.average((differences - mean) ** 2, weights=weights)
    return float(mean), float(np.sqrt(variance / weights.sum()))


def _inverse_root(within: Floats) -> Floats:
    """The symmetric square root of W⁻¹, which does not depend on the signs of the eigenvectors."""
    values, vectors = np.linalg.eigh(within)
    # The lower bound matters where rows do not vary within levels
    # (test_levels_without_variance_have_a_finite_start).
    return np.asarray(vectors / np.sqrt(np.maximum(values, _LEAST_VARIANCE)) @ vectors.T)
