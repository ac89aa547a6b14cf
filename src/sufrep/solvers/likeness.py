"""Which rows of a level are alike: kernels, found from the products of residuals of pairs of rows.

If rows of a level have effects with covariance k(z, z'), the product of the residuals of two of them has
expectation k(z, z'): what a variogram shows. So a kernel is a regression of products on functions of the
distances of pairs, which takes no inverse of a matrix; kernels are added one by one, each chosen for how well
it explains what the ones before have left. Kernels are looked for in residuals from the mean of their level:
what all rows of a level share would make products alike that have a row in common, and kernels of nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls
from scipy.spatial.distance import cdist

from sufrep.solvers.coefficients import rows_by_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sufrep._arrays import Codes, Floats

    Singles = NDArray[np.float32]

_MOST_KERNELS = 3
# Pairs that kernels are found from, and numbers that their distances may take.
_MOST_PAIRS = 500_000
_MOST_DISTANCES = 20_000_000
# Pairs that the first search of a kernel is made on, and covariates of which two may start it together.
_FIRST_PAIRS = 150_000
_MOST_STARTS = 20
# Rows of a level that pairs are made of; with more, few levels would make all pairs.
_MOST_ROWS = 50
# Residuals beyond so many standard deviations count as these.
_FAR = 3.0
# How much more a kernel must explain to be found, or to see one more covariate, in squared t values: about
# twice the logarithm of the number of kernels that are looked at.
_LEAST = 16.0
# Weights that a covariate may have in a kernel, and those that a search begins with.
_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
_FIRST_WEIGHTS = (1.0, 30.0, 1000.0)
# Times that a weight of a kernel is changed.
_MOST_CHANGES = 8
# A kernel that differs less than this between pairs is a constant.
_LEAST_VARIANCE = 1e-3
# What scores may differ by with the order of the pairs, in sums of single precision, and for no other reason.
_ROUNDING = 1e-5
# Effects explain so much of a residual's variance at most.
_MOST_EXPLAINED = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Likeness:
    """Covariance of the effects of two rows of a level, in units of the variance of the residuals.

    k(z, z') = c₀ + Σ_m c_m exp(−½ Σ_j w_mj (z_j − z'_j)²): a part that all rows of the level share, and parts
    that only rows share which are near each other in some of the covariates.

    Attributes
    ----------
    constant : float
        c₀.
    variances : ndarray, shape (n_kernels,)
        c.
    weights : ndarray, shape (n_kernels, p)
        w; 0 where a covariate does not matter.
    noise : float
        What of the variance no other row can tell.
    """

    constant: float
    variances: Floats
    weights: Floats
    noise: float

    @property
    def used(self) -> Codes:
        """The covariates that matter in any kernel."""
        return np.flatnonzero(self.weights.any(axis=0))

    def between(self, first: Floats, second: Floats) -> Floats:
        """Return k of all rows of two tables, which hold the covariates that matter; (n, m)."""
        found = np.full((len(first), len(second)), self.constant)
        for variance, weights in zip(self.variances, self.weights[:, self.used], strict=True):
            scale = np.sqrt(weights)
            found += variance * np.exp(-0.5 * cdist(first * scale, second * scale, "sqeuclidean"))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Products of residuals, ½ (z_j − z'_j)² and weights of pairs; (n,), (p, n) and (n,).

    `within` are products of residuals from the mean of their level.
    """

    products: Floats
    within: Floats
    distances: Singles
    weights: Floats

    def first(self, n: int) -> _Pairs:
        return _Pairs(self.products[:n], self.within[:n], self.distances[:, :n], self.weights[:n])


def without_extremes(residuals: Floats, weights: Floats | None = None) -> Floats:
    """Residuals cut at three standard deviations: one shall neither outweigh the others nor reach them."""
    far = _FAR * float(np.sqrt(np.average(residuals**2, weights=weights)))
    return np.clip(residuals, -far, far)


def find_likeness(
    scores: Floats, residuals: Floats, codes: Codes, weights: Floats | None = None, *, seed: int = 0
) -> Likeness:
    """Find kernels from the residuals of rows.

    Parameters
    ----------
    scores : ndarray, shape (n, p)
        Covariates on the scale of normal scores.
    residuals : ndarray, shape (n,)
    codes : ndarray of int, shape (n,)
        The level of each row.
    weights : ndarray, shape (n,), optional
        Frequencies.
    seed : int, default=0
        Of the draws: of 50 rows from levels with more, and of levels where there are more than 500,000 pairs.
    """
    none = Likeness(0.0, np.empty(0), np.empty((0, scores.shape[1])), 1.0)
    if not len(residuals):
        return none
    variance = float(np.average(residuals**2, weights=weights))
    if not variance:
        return none
    pairs = _draw_pairs(scores, residuals / np.sqrt(variance), codes, weights, np.random.default_rng(seed))
    if not len(pairs.products):
        return none
    found: list[Singles] = []
    kernels = [np.ones(len(pairs.products), dtype=np.float32)]
    shares = _shares(kernels, pairs)
    for _ in range(_MOST_KERNELS if scores.shape[1] else 0):
        kernel = _one_kernel(replace(pairs, within=_left(kernels, pairs)))
        more = [*kernels, _kernel(kernel, pairs.distances)]
        if not (kernel.any() and _shares(more, pairs)[-1] > 0):
            break
        found.append(kernel)
        kernels, shares = more, _shares(more, pairs)
    shares *= min(1.0, _MOST_EXPLAINED / max(shares.sum(), _MOST_EXPLAINED))
    table = np.array(found, dtype=np.float64).reshape(len(found), scores.shape[1])
    counts = shares[1:] > 0  # a later kernel may have taken all from an earlier one
    return Likeness(float(shares[0]), shares[1:][counts], table[counts], float(1 - shares.sum()))


def _draw_pairs(
    scores: Floats, residuals: Floats, codes: Codes, weights: Floats | None, rng: np.random.Generator
) -> _Pairs:
    """Pairs of rows of a level, for levels in random order; a row that counts twice is a pair with itself."""
    levels = [rows for _, rows in rows_by_level(codes)]
    most = min(_MOST_PAIRS, _MOST_DISTANCES // max(scores.shape[1], 1))
    first, second, n_found = [], [], 0
    # Levels of one row have no pairs, unless it counts twice.
    several = [rows for rows in levels if weights is not None or len(rows) > 1]
    for level in rng.permutation(len(several)):
        rows = several[level]
        if len(rows) > _MOST_ROWS:
            rows = rng.choice(rows, _MOST_ROWS, replace=False)
        one, other = np.triu_indices(len(rows), 1 if weights is None else 0)
        first.append(rows[one])
        second.append(rows[other])
        n_found += len(one)
        if n_found > most:
            break
    if not n_found:
        nothing = np.empty(0)
        return _Pairs(nothing, nothing, np.empty((scores.shape[1], 0), dtype=np.float32), nothing)
    shuffled = rng.permutation(n_found)
    a, b = np.concatenate(first)[shuffled], np.concatenate(second)[shuffled]
    counts = np.ones(len(a))
    if weights is not None:
        counts = np.where(a == b, np.maximum(weights[a] - 1, 0) / 2, weights[b]) * weights[a]
        a, b, counts = a[counts > 0], b[counts > 0], counts[counts > 0]
    distances = np.empty((scores.shape[1], len(a)), dtype=np.float32)
    for j, column in enumerate(scores.T):
        distances[j] = 0.5 * (column[a] - column[b]) ** 2
    apart = residuals - _level_means(residuals, codes, weights)
    return _Pairs(residuals[a] * residuals[b], apart[a] * apart[b], distances, counts)


def _level_means(values: Floats, codes: Codes, weights: Floats | None) -> Floats:
    """The mean of each row's level; (n,)."""
    _, codes = np.unique(codes, return_inverse=True)
    total = np.bincount(codes, values if weights is None else values * weights)
    return np.asarray((total / np.bincount(codes, weights))[codes])


def _left(kernels: Sequence[Singles], pairs: _Pairs) -> Floats:
    """What kernels leave of the products within levels."""
    root = np.sqrt(pairs.weights)
    table = np.column_stack(kernels).astype(np.float64)
    shares = np.linalg.lstsq(table * root[:, None], pairs.within * root)[0]
    return np.asarray(pairs.within - table @ shares)


def _shares(kernels: Sequence[Singles], pairs: _Pairs) -> Floats:
    """Least squares of the products on the kernels, none of them negative."""
    root = np.sqrt(pairs.weights)
    table = np.column_stack(kernels).astype(np.float64)
    return np.asarray(nnls(table * root[:, None], pairs.products * root)[0])


class _Search:
    """How well kernels explain the products of pairs, as squared t values."""

    def __init__(self, pairs: _Pairs) -> None:
        weights, products = pairs.weights, pairs.within
        self._total = float(weights.sum())
        apart = products - np.average(products, weights=weights)
        spread = float(np.sqrt(np.average(apart**2, weights=weights)))
        if spread < _ROUNDING:  # the kernels before have left nothing
            apart, spread = np.zeros_like(apart), 1.0
        self._weights = weights.astype(np.float32)
        self._apart = (weights * apart / spread).astype(np.float32)

    def score(self, kernel: Singles) -> float:
        """0 for a kernel by which the products do not rise, or that is a constant."""
        apart = kernel - np.float32(self._weights @ kernel / self._total)
        slope = float(self._apart @ apart)
        variance = float((self._weights * apart) @ apart)
        if slope <= 0 or variance <= _LEAST_VARIANCE * self._total:
            return 0.0
        return slope**2 / variance


def _one_kernel(pairs: _Pairs) -> Singles:
    """The weights of the kernel that explains most, all 0 if none explains enough; (p,)."""
    weights = _first_weights(pairs.first(_FIRST_PAIRS))
    search, distances = _Search(pairs), pairs.distances
    kernel = _kernel(weights, distances)
    best = search.score(kernel)
    for _ in range(_MOST_CHANGES):
        changes = []
        for j, old in enumerate(weights.tolist()):
            others = np.where(np.arange(len(weights)) == j, 0, weights)
            without = _kernel(others, distances) if old else kernel
            for new in _next_weights(old):
                changed = without * np.exp(np.float32(-new) * distances[j]) if new else without
                score = search.score(changed)
                # One more covariate must explain more by some.
                changes.append((score - _LEAST * ((new > 0) - (old > 0)), score, j, new))
        worth, score, j, new = changes[_first_of_the_largest([change[0] for change in changes])]
        if worth <= best * (1 + _ROUNDING):
            break
        best, weights[j] = score, new
        kernel = _kernel(weights, distances)
    return weights if best > _LEAST * (1 + _ROUNDING) else np.zeros_like(weights)


def _first_of_the_largest(values: Sequence[float]) -> int:
    """Where the largest value stands, or the first that only rounding sets apart from it."""
    table = np.asarray(values)
    largest = table.max()
    return int(np.argmax(table >= largest - _ROUNDING * abs(largest)))


def _next_weights(old: float) -> tuple[float, ...]:
    """What a weight may change to: from 0 to any of a few, else a step up or down, or to 0."""
    if not old:
        return _FIRST_WEIGHTS
    place = int(np.argmin(np.abs(np.log(_WEIGHTS) - np.log(old))))
    return (0.0, *_WEIGHTS[max(place - 1, 0) : place], *_WEIGHTS[place + 1 : place + 2])


def _first_weights(pairs: _Pairs) -> Singles:
    """One or two covariates to begin with: rows of a day may be alike where those of a month are not."""
    search, distances = _Search(pairs), pairs.distances
    found = np.zeros(len(distances), dtype=np.float32)
    parts = {
        (j, weight): np.exp(np.float32(-weight) * distances[j])
        for j in range(len(distances))
        for weight in _FIRST_WEIGHTS
    }
    singles = list(parts)
    scores = {start: search.score(part) for start, part in parts.items()}
    best = singles[_first_of_the_largest(list(scores.values()))]
    chosen: tuple[tuple[int, float], ...] = (best,)
    likely = sorted(range(len(distances)), key=lambda j: -max(scores[j, weight] for weight in _FIRST_WEIGHTS))
    starts = [start for start in singles if start[0] in likely[:_MOST_STARTS]]
    twos = [(one, other) for one, other in combinations(starts, 2) if one[0] != other[0]]
    if twos:
        together = [search.score(parts[one] * parts[other]) for one, other in twos]
        place = _first_of_the_largest(together)
        if together[place] > scores[best] + _LEAST:
            chosen = twos[place]
    for j, weight in chosen:
        found[j] = weight
    return found


def _kernel(weights: Floats | Singles, distances: Singles) -> Singles:
    used = np.flatnonzero(weights)
    return np.asarray(
        np.exp(-(np.asarray(weights, dtype=np.float32)[used] @ distances[used])), dtype=np.float32
    )
