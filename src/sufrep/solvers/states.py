"""Where the mixture of hidden states begins, and how many states it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from sufrep._levels import as_levels
from sufrep.moments import GroupMoments
from sufrep.solvers.mixture import Mixture, fit_mixture
from sufrep.solvers.shrinkage import estimate_means_prior, shrink_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Codes, Floats

# Candidates for the number of states; the neighbours of the best are tried as well.
LADDER = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30)
# The search ends after so many candidates in a row that are worse than the best.
_PATIENCE = 2
# Share of a row's start that stays with the states other than its level's.
_DOUBT = 0.3
# Runs of k-means for each start. With one, it often misses a cluster, and the number of states is misjudged.
_CLUSTERINGS = 4
_MOST_START_ROWS = 20_000
# Variance within levels that directions are given at least, where rows have about unit variance.
_LEAST_VARIANCE = 1e-6
# Digits in which points must differ to be two: sums depend on the order of rows in the last ones.
_DIGITS = 7


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Rows on comparable scales, with the positions of their levels and their frequencies.

    Attributes
    ----------
    rows : ndarray, shape (n, p)
    codes : ndarray of int, shape (n,)
    n_levels : int
    weights : ndarray, shape (n,), or None
    """

    rows: Floats
    codes: Codes
    n_levels: int
    weights: Floats | None = None

    def take(self, chosen: Codes) -> Sample:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[chosen]
        return Sample(self.rows[chosen], self.codes[chosen], self.n_levels, weights)

    def canonical(self) -> Sample:
        """The same sample, sorted: equal rows of a level made one, levels numbered by their rows.

        Whatever is drawn from it depends on neither the order of the rows nor the names of the levels, and a
        row that came twice is a row of weight two.
        """
        distinct, place = np.unique(self.rows, axis=0, return_inverse=True)
        pairs = np.column_stack([self.codes, place.reshape(-1)])
        (codes, places), index = (found.T for found in np.unique(pairs, axis=0, return_inverse=True))
        weights = np.bincount(index.reshape(-1), self.weights).astype(np.float64)
        cuts = np.flatnonzero(np.diff(codes)) + 1
        rows_of = [part.tolist() for part in np.split(places, cuts)]
        weights_of = [part.tolist() for part in np.split(weights, cuts)]
        by_rows = sorted(range(len(rows_of)), key=lambda level: (rows_of[level], weights_of[level]))
        number = np.repeat(np.argsort(by_rows), [len(part) for part in rows_of])
        order = np.lexsort((number, places))
        return Sample(distinct[places[order]], number[order], len(rows_of), weights[order])


def start_mixture(sample: Sample, n_states: int, seed: int) -> Mixture:
    """A first guess: levels whose shrunken means are near each other share a state.

    The means are compared in the metric of the spread within levels. Where there are too few levels for that,
    rows are compared instead. Neither names of levels nor the order of rows make a difference.
    """
    p = sample.rows.shape[1]
    moments = GroupMoments.from_columns(
        sample.codes,
        sample.rows.T,
        as_levels(range(sample.n_levels)),
        covariates=[f"x{j}" for j in range(p)],
        weights=sample.weights,
    )
    prior = estimate_means_prior(moments)
    values = shrink_means(moments, prior)
    within = prior.within * np.outer(prior.scale, prior.scale)
    whiten = _whitening(within)
    points, weights = values, moments.weight
    if moments.n_levels < 2 * n_states:
        points, weights = _distinct_rows(sample, seed)
    centers = _cluster_centers(points @ whiten, weights, n_states, seed)
    nearest = np.zeros(sample.n_levels, dtype=np.int64)
    distances = ((values @ whiten)[:, None, :] - centers) ** 2
    nearest[moments.levels.astype(np.int64)] = distances.sum(axis=2).argmin(axis=1)
    shares = np.full((sample.n_levels, n_states), _DOUBT / n_states)
    shares[np.arange(sample.n_levels), nearest] += 1 - _DOUBT
    means = np.zeros((n_states, p))
    means[: len(centers)] = centers @ np.linalg.pinv(whiten) - prior.center
    covariance = within + 1e-3 * np.eye(p)
    equal = np.full(n_states, 1 / n_states)
    return Mixture(prior.center, means, covariance, shares, equal, None, np.empty(0), converged=False)


def _cluster_centers(points: Floats, weights: Floats, n_states: int, seed: int) -> Floats:
    """Centres of at most `n_states` clusters; (n_clusters, p)."""
    # k-means draws its first centres by position, so positions must not depend on names; and where points
    # are equally far apart, as the whitened rows of a small sample are, rounding errors would decide.
    points = points.round(_DIGITS)
    order = np.lexsort(points.T[::-1])
    n_clusters = min(n_states, len(np.unique(points, axis=0)))
    with threadpool_limits(1):
        found = KMeans(n_clusters, n_init=_CLUSTERINGS, random_state=seed).fit(
            points[order], sample_weight=weights[order]
        )
    return np.asarray(found.cluster_centers_)


def _distinct_rows(sample: Sample, seed: int) -> tuple[Floats, Floats]:
    """Distinct rows and their weights, a draw of them where they are many."""
    rows, index = np.unique(sample.rows, axis=0, return_inverse=True)
    weights = np.bincount(index.reshape(-1), sample.weights).astype(np.float64)
    if len(rows) <= _MOST_START_ROWS:
        return rows, weights
    chosen = np.sort(np.random.default_rng(seed).choice(len(rows), _MOST_START_ROWS, replace=False))
    return rows[chosen], weights[chosen]


def best_of_starts(
    sample: Sample,
    n_states: int,
    *,
    n_starts: int,
    seed: int,
    concentration: float,
    max_iter: int,
    tol: float,
) -> Mixture:
    """Run a few rounds from several starts, and the most promising one to the end; commonest state first."""
    starts = [start_mixture(sample, n_states, seed + number) for number in range(n_starts)]
    options: dict[str, Any] = {"weights": sample.weights, "concentration": concentration}
    if len(starts) > 1:
        short = [
            fit_mixture(sample.rows, sample.codes, each, **options, max_iter=10, tol=0.0) for each in starts
        ]
        # Starts that differ by rounding only tie, and the first of them is taken.
        starts = [max(short, key=lambda mixture: round(mixture.objective[-1], _DIGITS))]
    found = fit_mixture(sample.rows, sample.codes, starts[0], **options, max_iter=max_iter, tol=tol)
    return found.reordered(_commonest_first(found))


def _commonest_first(mixture: Mixture) -> Codes:
    """Order of the states by their shares; those equally common by their means."""
    means, prior = mixture.means.round(_DIGITS), mixture.prior.round(_DIGITS)
    return np.asarray(np.lexsort((*means.T[::-1], -prior)))


def choose_n_states(
    sample: Sample,
    folds: Sequence[tuple[Codes, Codes]],
    *,
    seed: int,
    concentration: float,
    max_states: int = LADDER[-1],
) -> tuple[int, dict[int, float]]:
    """The number of states, `max_states` at most, that predicts held-out rows best, given their levels.

    Ties go to the larger number: a candidate ties with the best if it is less than a standard error (of the
    paired differences) worse. Too few states lose much, too many little.

    Returns
    -------
    chosen : int
    scores : dict of int to float
        Mean log-density of held-out rows for every candidate tried.
    """
    most = max(1, min(sample.n_levels, len(sample.rows) // 20, max_states))
    densities: dict[int, Floats] = {}
    tested = np.concatenate([test for _, test in folds])
    weights = np.ones(len(tested)) if sample.weights is None else sample.weights[tested]

    def score(candidate: int) -> float:
        if candidate not in densities:
            densities[candidate] = _held_out(sample, folds, candidate, seed, concentration)
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
        mean, error = _paired(densities[best] - densities[candidate], weights)
        if candidate > best and mean < error:
            best = candidate
    return best, {candidate: score(candidate) for candidate in sorted(densities)}


def _held_out(
    sample: Sample, folds: Sequence[tuple[Codes, Codes]], n_states: int, seed: int, concentration: float
) -> Floats:
    """Log-densities of all held-out rows given their levels, fold after fold."""
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
        found.append(mixture.log_density(sample.rows[test], mixture.shares[sample.codes[test]]))
    return np.concatenate(found)


def _paired(differences: Floats, weights: Floats) -> tuple[float, float]:
    """Mean of paired differences and its standard error."""
    mean = np.average(differences, weights=weights)
    spread = np.average((differences - mean) ** 2, weights=weights)
    return float(mean), float(np.sqrt(spread / weights.sum()))


def _whitening(within: Floats) -> Floats:
    """The symmetric square root of W⁻¹; unlike others it does not depend on the signs of eigenvectors."""
    values, vectors = np.linalg.eigh(within)
    # Rows have about unit variance; within levels there may be none at all
    # (test_levels_whose_rows_are_all_the_same).
    return np.asarray(vectors / np.sqrt(np.maximum(values, _LEAST_VARIANCE)) @ vectors.T)
