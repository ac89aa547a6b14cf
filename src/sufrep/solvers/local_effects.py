"""Level effects that vary with the covariates: a Gaussian process for each level, with a kernel they share.

The kernel is estimated from products of residuals. If the effects of two rows of a level have covariance
k(z, z'), the product of their residuals has expectation k(z, z'), as in a variogram. Estimating a kernel is
therefore a regression of the products on functions of the distances, and needs no matrix inverse. Components
of the kernel are added one at a time, each chosen for how well it explains what the previous ones left over.
The search uses residuals from their level means: an effect shared by all rows of a level would correlate all
products that have a row in common, and the search would find kernels in noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import nnls
from scipy.spatial.distance import cdist

from sufrep._arrays import blocks
from sufrep.solvers.regressions import Curve, fit_curve, rows_by_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sufrep._arrays import Codes, Floats

    Singles = NDArray[np.float32]

# Knots of the curve, on the scale of normal scores.
_KNOTS = (-1.0, 0.0, 1.0)
_BLOCK = 4096  # rows that are predicted at a time
# Residuals are winsorized at this many standard deviations.
_CUTOFF = 3.0
# Effects explain at most this share of the residual variance.
_MOST_EXPLAINED = 0.95

# Limits of the search for a kernel: components, pairs of rows, and distances held for them.
_MOST_COMPONENTS = 3
_MOST_PAIRS = 500_000
_MOST_DISTANCES = 20_000_000
# Most rows of a level that form pairs. With more, a few large levels would make up all pairs.
_MOST_ROWS = 50
# Pairs used to choose the initial covariates of a component, and covariates considered for an initial two.
_START_PAIRS = 150_000
_MOST_STARTS = 20
# Inverse squared length scales of a covariate in a component: the grid, and the values a search starts from.
_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
_START_WEIGHTS = (1.0, 30.0, 1000.0)
# Most steps of the search for the weights of a component.
_MOST_STEPS = 8
# Gain in squared t value that a new component, or one more covariate in it, must bring: about twice the
# logarithm of the number of candidates.
_LEAST_GAIN = 16.0
# A component whose variance over the pairs is smaller than this is a constant.
_LEAST_VARIANCE = 1e-3
# Relative rounding error of scores, which are sums in single precision and depend on the order of the pairs.
_ROUNDING = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class LevelKernel:
    """Covariance of the effects of two rows of a level, in units of the residual variance.

    k(z, z') = c₀ + Σ_m c_m exp(−½ Σ_j w_mj (z_j − z'_j)²): an effect common to all rows of the level, and
    effects shared only by rows that are close in some of the covariates.

    Attributes
    ----------
    constant : float
        c₀.
    variances : ndarray, shape (n_components,)
        c.
    weights : ndarray, shape (n_components, p)
        w, the inverse squared length scales; 0 for a covariate that is not in the component.
    noise : float
        Share of the residual variance that other rows of the level do not explain.
    """

    constant: float
    variances: Floats
    weights: Floats
    noise: float

    @property
    def used(self) -> Codes:
        """Positions of the covariates that are in any component."""
        return np.flatnonzero(self.weights.any(axis=0))

    def covariances(self, first: Floats, second: Floats) -> Floats:
        """Return k for all pairs of rows of two tables of the used covariates; (n, m)."""
        found = np.full((len(first), len(second)), self.constant)
        for variance, weights in zip(self.variances, self.weights[:, self.used], strict=True):
            scale = np.sqrt(weights)
            found += variance * np.exp(-0.5 * cdist(first * scale, second * scale, "sqeuclidean"))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class LocalEffects:
    """Y = f(z) + e_g(z) + noise, with a curve f for all rows and e_g ~ GP(0, k) for each level.

    Attributes
    ----------
    curve : Curve
        f.
    kernel : LevelKernel
        k.
    ends : ndarray of int, shape (n_levels,)
        Position in `scores` where the rows of each level end.
    scores : ndarray, shape (n_rows, n_used)
        Covariates used by the kernel, of the rows that the effects are estimated from, sorted by level.
    coefficients : ndarray, shape (n_rows,)
        (K + noise)⁻¹ r with the winsorized residuals r. The effect at z is Σ k(z, z_i) times these, over the
        rows i of the level.
    """

    curve: Curve
    kernel: LevelKernel
    ends: Codes
    scores: Floats
    coefficients: Floats

    def effects(self, scores: Floats, codes: Codes) -> Floats:
        """Effect of each row's level at the row's covariates, 0 where the code is −1; (n,)."""
        found = np.zeros(len(codes))
        inside = np.flatnonzero(codes >= 0)
        used = scores[:, self.kernel.used]
        for level, places in rows_by_level(codes[inside]):
            rows, own = inside[places], self._rows_of(level)
            for block in blocks(len(rows), _BLOCK):
                part = rows[block]
                found[part] = self.kernel.covariances(used[part], self.scores[own]) @ self.coefficients[own]
        return found

    def nothing(self) -> LocalEffects:
        """The same with a curve and effects of 0 everywhere."""
        curve = replace(self.curve, origin=0.0, coefficients=np.zeros_like(self.curve.coefficients))
        return replace(self, curve=curve, coefficients=np.zeros_like(self.coefficients))

    def _rows_of(self, level: int) -> slice:
        return slice(int(self.ends[level - 1]) if level else 0, int(self.ends[level]))


def fit_local_effects(
    scores: Floats,
    codes: Codes,
    y: Floats,
    n_levels: int,
    weights: Floats | None = None,
    *,
    max_level_rows: int = 1000,
    seed: int = 0,
) -> tuple[LocalEffects, Floats]:
    """Fit the curve, estimate the kernel, and solve for the effects of each level.

    Parameters
    ----------
    scores : ndarray, shape (n, p)
        Covariates on the scale of normal scores.
    codes : ndarray of int, shape (n,)
        The level of each row, from 0 to ``n_levels − 1``.
    y : ndarray, shape (n,)
    n_levels : int
    weights : ndarray, shape (n,), optional
        Frequency weights, all above 0.
    max_level_rows : int, default=1000
        Most rows of a level that its effects are estimated from. Larger levels are subsampled.
    seed : int, default=0
        Seed of all subsamples.

    Returns
    -------
    LocalEffects
    ndarray, shape (n_levels,)
        Mean effect of each level over these rows.
    """
    curve = fit_curve(scores, y, weights, knots=_KNOTS)
    residuals = winsorize(y - curve.predict(scores), weights)
    kernel = find_level_kernel(scores, residuals, codes, weights, seed=seed)
    used = scores[:, kernel.used]
    rng = np.random.default_rng(seed)
    kept, coefficients = [], []
    sizes, means = np.zeros(n_levels, dtype=np.int64), np.zeros(n_levels)
    for level, places in rows_by_level(codes):
        rows = places
        if len(rows) > max_level_rows:
            rows = np.sort(rng.choice(rows, max_level_rows, replace=False))
        noise = kernel.noise / (np.ones(len(rows)) if weights is None else weights[rows])
        covariances = kernel.covariances(used[rows], used[rows])
        covariances[np.diag_indices_from(covariances)] += noise
        solved = cho_solve(cho_factor(covariances, lower=True, check_finite=False), residuals[rows])
        # The effects at these rows: K (K + noise)⁻¹ r = r − noise (K + noise)⁻¹ r.
        means[level] = np.average(residuals[rows] - noise * solved, weights=1 / noise)
        kept.append(rows)
        coefficients.append(solved)
        sizes[level] = len(rows)
    rows = np.concatenate(kept)
    return LocalEffects(curve, kernel, np.cumsum(sizes), used[rows], np.concatenate(coefficients)), means


def winsorize(residuals: Floats, weights: Floats | None = None) -> Floats:
    """Clip residuals at three standard deviations, so that no row dominates its level or the kernel."""
    limit = _CUTOFF * float(np.sqrt(np.average(residuals**2, weights=weights)))
    return np.clip(residuals, -limit, limit)


def find_level_kernel(
    scores: Floats, residuals: Floats, codes: Codes, weights: Floats | None = None, *, seed: int = 0
) -> LevelKernel:
    """Estimate the kernel from the residuals of rows.

    Parameters
    ----------
    scores : ndarray, shape (n, p)
        Covariates on the scale of normal scores.
    residuals : ndarray, shape (n,)
    codes : ndarray of int, shape (n,)
        The level of each row.
    weights : ndarray, shape (n,), optional
        Frequency weights.
    seed : int, default=0
        Seed of the subsamples: 50 rows of each larger level, and of the levels where there are more than
        500,000 pairs.
    """
    nothing = LevelKernel(0.0, np.empty(0), np.empty((0, scores.shape[1])), 1.0)
    variance = float(np.average(residuals**2, weights=weights))
    if not variance:
        return nothing
    pairs = _draw_pairs(scores, residuals / np.sqrt(variance), codes, weights, np.random.default_rng(seed))
    if not len(pairs.products):
        return nothing
    found: list[Singles] = []
    columns = [np.ones(len(pairs.products), dtype=np.float32)]
    shares = _shares(columns, pairs)
    for _ in range(_MOST_COMPONENTS if scores.shape[1] else 0):
        component = _next_component(replace(pairs, within=_unexplained(columns, pairs)))
        more = [*columns, _component(component, pairs.distances)]
        if not (component.any() and _shares(more, pairs)[-1] > 0):
            break
        found.append(component)
        columns, shares = more, _shares(more, pairs)
    shares *= min(1.0, _MOST_EXPLAINED / max(shares.sum(), _MOST_EXPLAINED))
    table = np.array(found, dtype=np.float64).reshape(len(found), scores.shape[1])
    positive = shares[1:] > 0  # a later component may explain all that an earlier one did
    return LevelKernel(float(shares[0]), shares[1:][positive], table[positive], float(1 - shares.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Pairs of rows of the same level.

    Attributes
    ----------
    products : ndarray, shape (n,)
        Products of the residuals.
    within : ndarray, shape (n,)
        Products of the residuals from their level means.
    distances : ndarray, shape (p, n)
        ½ (z_j − z'_j)² for each covariate.
    weights : ndarray, shape (n,)
    """

    products: Floats
    within: Floats
    distances: Singles
    weights: Floats

    def first(self, n: int) -> _Pairs:
        return _Pairs(self.products[:n], self.within[:n], self.distances[:, :n], self.weights[:n])


def _draw_pairs(
    scores: Floats, residuals: Floats, codes: Codes, weights: Floats | None, rng: np.random.Generator
) -> _Pairs:
    """Pairs of rows from levels in random order; a row of weight 2 or more forms a pair with itself."""
    levels = [rows for _, rows in rows_by_level(codes)]
    most = min(_MOST_PAIRS, _MOST_DISTANCES // max(scores.shape[1], 1))
    first, second, n_found = [], [], 0
    # A level of one row has no pairs, unless the row has a weight of 2 or more.
    eligible = [rows for rows in levels if weights is not None or len(rows) > 1]
    for level in rng.permutation(len(eligible)):
        rows = eligible[level]
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
    centered = residuals - _level_means(residuals, codes, weights)
    return _Pairs(residuals[a] * residuals[b], centered[a] * centered[b], distances, counts)


def _level_means(values: Floats, codes: Codes, weights: Floats | None) -> Floats:
    """The mean of each row's level; (n,)."""
    _, codes = np.unique(codes, return_inverse=True)
    total = np.bincount(codes, values if weights is None else values * weights)
    return np.asarray((total / np.bincount(codes, weights))[codes])


def _shares(columns: Sequence[Singles], pairs: _Pairs) -> Floats:
    """Non-negative least squares of the products on the components: their shares of the variance."""
    root = np.sqrt(pairs.weights)
    table = np.column_stack(columns).astype(np.float64)
    return np.asarray(nnls(table * root[:, None], pairs.products * root)[0])


def _unexplained(columns: Sequence[Singles], pairs: _Pairs) -> Floats:
    """Residuals of the regression of the products within levels on the components."""
    root = np.sqrt(pairs.weights)
    table = np.column_stack(columns).astype(np.float64)
    shares = np.linalg.lstsq(table * root[:, None], pairs.within * root)[0]
    return np.asarray(pairs.within - table @ shares)


class _KernelScore:
    """How well a kernel component explains the products of pairs: the squared t value of its slope."""

    def __init__(self, pairs: _Pairs) -> None:
        weights, products = pairs.weights, pairs.within
        self._total = float(weights.sum())
        centered = products - np.average(products, weights=weights)
        deviation = float(np.sqrt(np.average(centered**2, weights=weights)))
        if deviation < _ROUNDING:  # the previous components explain everything
            centered, deviation = np.zeros_like(centered), 1.0
        self._weights = weights.astype(np.float32)
        self._products = (weights * centered / deviation).astype(np.float32)

    def __call__(self, column: Singles) -> float:
        """Score of a component; 0 if its slope is not positive or it is constant."""
        centered = column - np.float32(self._weights @ column / self._total)
        slope = float(self._products @ centered)
        variance = float((self._weights * centered) @ centered)
        if slope <= 0 or variance <= _LEAST_VARIANCE * self._total:
            return 0.0
        return slope**2 / variance


def _next_component(pairs: _Pairs) -> Singles:
    """The weights (p,) of the component that explains most, found by coordinate search; 0 if none does."""
    weights = _start_weights(pairs.first(_START_PAIRS))
    score_of, distances = _KernelScore(pairs), pairs.distances
    column = _component(weights, distances)
    best = score_of(column)
    for _ in range(_MOST_STEPS):
        candidates = []
        for j, old in enumerate(weights.tolist()):
            others = np.where(np.arange(len(weights)) == j, 0, weights)
            without = _component(others, distances) if old else column
            for new in _neighbours(old):
                changed = without * np.exp(np.float32(-new) * distances[j]) if new else without
                score = score_of(changed)
                # An added covariate must raise the score by `_LEAST_GAIN`.
                candidates.append((score - _LEAST_GAIN * ((new > 0) - (old > 0)), score, j, new))
        penalized, score, j, new = candidates[_argmax([candidate[0] for candidate in candidates])]
        if penalized <= best * (1 + _ROUNDING):
            break
        best, weights[j] = score, new
        column = _component(weights, distances)
    return weights if best > _LEAST_GAIN * (1 + _ROUNDING) else np.zeros_like(weights)


def _start_weights(pairs: _Pairs) -> Singles:
    """Best start with one covariate or with two: rows of a day may be alike where rows of a month are not."""
    score_of, distances = _KernelScore(pairs), pairs.distances
    found = np.zeros(len(distances), dtype=np.float32)
    columns = {
        (j, weight): np.exp(np.float32(-weight) * distances[j])
        for j in range(len(distances))
        for weight in _START_WEIGHTS
    }
    singles = list(columns)
    scores = {start: score_of(column) for start, column in columns.items()}
    best = singles[_argmax(list(scores.values()))]
    chosen: tuple[tuple[int, float], ...] = (best,)
    ranking = sorted(
        range(len(distances)), key=lambda j: -max(scores[j, weight] for weight in _START_WEIGHTS)
    )
    starts = [start for start in singles if start[0] in ranking[:_MOST_STARTS]]
    twos = [(one, other) for one, other in combinations(starts, 2) if one[0] != other[0]]
    if twos:
        together = [score_of(columns[one] * columns[other]) for one, other in twos]
        place = _argmax(together)
        if together[place] > scores[best] + _LEAST_GAIN:
            chosen = twos[place]
    for j, weight in chosen:
        found[j] = weight
    return found


def _neighbours(old: float) -> tuple[float, ...]:
    """Weights to try next: any start value from 0, else one grid step up or down, or 0."""
    if not old:
        return _START_WEIGHTS
    place = int(np.argmin(np.abs(np.log(_WEIGHTS) - np.log(old))))
    return (0.0, *_WEIGHTS[max(place - 1, 0) : place], *_WEIGHTS[place + 1 : place + 2])


def _argmax(values: Sequence[float]) -> int:
    """Position of the first value that equals the largest up to rounding."""
    table = np.asarray(values)
    largest = table.max()
    return int(np.argmax(table >= largest - _ROUNDING * abs(largest)))


def _component(weights: Floats | Singles, distances: Singles) -> Singles:
    """Return exp(−½ Σ_j w_j (z_j − z'_j)²) for every pair; (n,)."""
    used = np.flatnonzero(weights)
    return np.asarray(
        np.exp(-(np.asarray(weights, dtype=np.float32)[used] @ distances[used])), dtype=np.float32
    )
