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
_MOST_START_ROWS = 20_000


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


def start_mixture(sample: Sample, n_states: int, seed: int) -> Mixture:
    """A first guess: levels whose shrunken means are near each other share a state.

    The means are compared in the metric of the spread within levels. Where there are too few levels for that,
    rows are compared instead.
    """
    p = sample.rows.shape[1]
    moments = GroupMoments.from_columns(
        sample.codes,
        sample.rows.T,
        as_levels(range(sample.n_levels)),
        covariates=[f"x{j}" for j in range(p)],
        weights=sample.weights,
    )
    levels = moments.levels.astype(np.int64)
    prior_of_means = estimate_means_prior(moments)
    values, center = shrink_means(moments, prior_of_means), prior_of_means.center
    within = prior_of_means.within * np.outer(prior_of_means.scale, prior_of_means.scale)
    whiten = _whitening(within)
    few = len(levels) < 2 * n_states
    points = _some_rows(sample.rows, seed) if few else values
    with threadpool_limits(1):
        clusters = KMeans(min(n_states, len(np.unique(points, axis=0))), n_init=1, random_state=seed).fit(
            points @ whiten, sample_weight=None if few else moments.weight
        )
    nearest = np.zeros(sample.n_levels, dtype=np.int64)
    nearest[levels] = clusters.predict(values @ whiten) if few else clusters.labels_
    shares = np.full((sample.n_levels, n_states), _DOUBT / n_states)
    shares[np.arange(sample.n_levels), nearest] += 1 - _DOUBT
    means = np.zeros((n_states, p))
    centers = clusters.cluster_centers_ @ np.linalg.pinv(whiten) - center
    means[: len(centers)] = centers
    prior = np.full(n_states, 1 / n_states)
    if len(centers) < n_states:
        prior = np.where(np.arange(n_states) < len(centers), prior, 1e-3)
        prior /= prior.sum()
    covariance = within + 1e-3 * np.eye(p)
    return Mixture(center, means, covariance, shares, prior, None, np.empty(0), converged=False)


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
    """Run a few rounds from several starts, and the most promising one to the end."""
    starts = [start_mixture(sample, n_states, seed + number) for number in range(n_starts)]
    options: dict[str, Any] = {"weights": sample.weights, "concentration": concentration}
    if len(starts) > 1:
        short = [
            fit_mixture(sample.rows, sample.codes, each, **options, max_iter=10, tol=0.0) for each in starts
        ]
        starts = [max(short, key=lambda mixture: mixture.objective[-1])]
    return fit_mixture(sample.rows, sample.codes, starts[0], **options, max_iter=max_iter, tol=tol)


def choose_n_states(
    sample: Sample, folds: Sequence[tuple[Codes, Codes]], *, seed: int, concentration: float
) -> tuple[int, dict[int, float]]:
    """The number of states whose fit predicts the covariates of held-out rows best, given their levels.

    Ties go to the larger number: a candidate ties with the best if it is less than a standard error (of the
    paired differences) worse. Too few states lose much, too many little.

    Returns
    -------
    chosen : int
    scores : dict of int to float
        Mean log-density of held-out rows for every candidate tried.
    """
    most = max(1, min(sample.n_levels, len(sample.rows) // 20, LADDER[-1]))
    densities: dict[int, Floats] = {}

    def score(candidate: int) -> float:
        if candidate not in densities:
            densities[candidate] = _held_out(sample, folds, candidate, seed, concentration)
        return float(densities[candidate].mean())

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
        difference = densities[best] - densities[candidate]
        error = difference.std() / np.sqrt(len(difference))
        if candidate > best and difference.mean() < error:
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


def _whitening(within: Floats) -> Floats:
    values, vectors = np.linalg.eigh(within)
    return np.asarray(vectors / np.sqrt(np.maximum(values, 1e-6 * max(values[-1], 1e-300))))


def _some_rows(rows: Floats, seed: int) -> Floats:
    if len(rows) <= _MOST_START_ROWS:
        return rows
    chosen = np.random.default_rng(seed).choice(len(rows), _MOST_START_ROWS, replace=False)
    return np.asarray(rows[np.sort(chosen)])
