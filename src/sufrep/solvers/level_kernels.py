"""The kernel of level effects that vary with the covariates, estimated from products of residuals.

If the effects of two rows of a level have covariance k(z, z'), the product of their residuals has expectation
k(z, z'), as in a variogram. Estimating a kernel is therefore a regression of the products on functions of the
distances, and needs no matrix inverse. Components of the kernel are added one at a time, each chosen for how
well it explains what the previous ones left over. The search uses residuals from their level means: an effect
shared by all rows of a level would correlate all products that have a row in common, and the search would
find kernels in noise.

A step of the search compares hundreds of candidates. All are ranked by a few matrix products over some of the
pairs, and only the best are scored on all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls

from sufrep._arrays import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from sufrep._arrays import Codes, Floats

    Singles = NDArray[np.float32]

# Effects explain at most this share of the residual variance.
_MOST_EXPLAINED = 0.95

# Limits of the search for a kernel: components, pairs of rows, and distances held for them.
_MOST_COMPONENTS = 3
_MOST_PAIRS = 100_000
_MOST_DISTANCES = 20_000_000
# Most rows of a level that form pairs. With more, a few large levels would make up all pairs. Where this
# gives too many pairs, levels have fewer rows each, down to the second number, and then some have none.
_MOST_ROWS, _LEAST_ROWS = 50, 10
# Pairs that candidates are ranked on, and numbers held for them.
_RANKING_PAIRS = 25_000
_MOST_RANKING = 10_000_000
# Candidates that are scored on all pairs: so many, or more if they have few pairs, up to this many numbers.
_FINALISTS, _MOST_SCORED = 4, 200_000
# Pairs that are taken at a time where many candidates are held, few enough for the cache.
_BLOCK = 2048
# Covariates considered for an initial two.
_MOST_STARTS = 20
# Inverse squared length scales of a covariate in a component: the grid, and the values a search starts from.
_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
_START_WEIGHTS = (1.0, 30.0, 1000.0)
_N_STARTS = len(_START_WEIGHTS)
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
        return self.products(self.factors(first)[0], self.factors(second)[1])

    def factors(self, scores: Floats) -> tuple[list[Floats], list[Floats]]:
        """Tables whose products are the exponents of the components, from the used covariates of rows.

        −½ |a − b|² + log c = a·b − ½ |a|² + (log c − ½ |b|²) is the product of a row of the first table, that
        of a, with a row of the second one. Both have as many rows as the given table.
        """
        first, second = [], []
        ones = np.ones((len(scores), 1))
        for variance, weights in zip(self.variances, self.weights[:, self.used], strict=True):
            on = np.flatnonzero(weights)
            scaled = scores[:, on] * np.sqrt(weights[on])
            half = 0.5 * (scaled**2).sum(axis=1, keepdims=True)
            first.append(np.hstack([scaled, -half, ones]))
            second.append(np.hstack([scaled, ones, np.log(variance) - half]))
        return first, second

    def products(self, first: Sequence[Floats], second: Sequence[Floats]) -> Floats:
        """Return k from some rows of the first `factors` and some of the second, or stacks; (..., n, m)."""
        found = None
        for one, other in zip(first, second, strict=True):
            part = one @ other.swapaxes(-1, -2)
            np.exp(part, out=part)
            found = part if found is None else np.add(found, part, out=found)
        if found is None:
            raise TypeError("a kernel without components has no factors")
        found += self.constant
        return found


@dataclass(frozen=True, slots=True, eq=False)
class LevelRows:
    """Rows sorted by level.

    Attributes
    ----------
    order : ndarray of int, shape (n,)
        Positions of the rows, those of one level after those of the other.
    sizes : ndarray of int, shape (n_levels,)
        Number of rows of each level.
    """

    order: Codes
    sizes: Codes

    @classmethod
    def of(cls, codes: Codes, n_levels: int) -> LevelRows:
        """Sort rows by their level; rows of a level keep their order."""
        # numpy sorts short integers by counting, five times as fast.
        kind = np.uint16 if n_levels <= 2**16 else np.int64
        order = np.argsort(codes.astype(kind), kind="stable")
        return cls(order, np.bincount(codes, minlength=n_levels))

    @property
    def starts(self) -> Codes:
        """Where the rows of each level start in `order`."""
        return np.cumsum(self.sizes) - self.sizes

    def thinned(self, most: int, rng: np.random.Generator) -> LevelRows:
        """Keep at most so many rows of each level, drawn at random."""
        if not len(self.sizes) or self.sizes.max() <= most:
            return self
        levels = np.repeat(np.arange(len(self.sizes)), self.sizes)
        shuffled = rng.permutation(len(levels))
        mixed = LevelRows.of(levels[shuffled], len(self.sizes))
        number = np.arange(len(levels)) - np.repeat(self.starts, self.sizes)
        kept = np.sort(shuffled[mixed.order[number < most]])
        return LevelRows(self.order[kept], np.minimum(self.sizes, most))

    def stacks(self, most: int) -> Iterator[tuple[Codes, Codes]]:
        """Yield levels with the same number of rows, (k,), and where their rows are in `order`, (k, size).

        k size² is at most ``most``, unless k is 1.
        """
        starts = self.starts
        for size in np.unique(self.sizes[self.sizes > 0]).tolist():
            levels = np.flatnonzero(self.sizes == size)
            step = max(1, most // size**2)
            for first in range(0, len(levels), step):
                part = levels[first : first + step]
                yield part, starts[part][:, None] + np.arange(size)


@dataclass(frozen=True, slots=True, eq=False)
class LevelPairs:
    """Pairs of rows of the same level, in random order, and functions of their distances: no target.

    Attributes
    ----------
    first, second : ndarray of int, shape (n,)
        Positions of the rows.
    counts : ndarray, shape (n,)
        Frequency weights.
    distances : ndarray, shape (p, n)
        ½ (z_j − z'_j)² for each covariate.
    starts, squares : ndarray, shape (3 p, n_ranking)
        Components of one covariate, for each of three weights, at the pairs that candidates are ranked on,
        and their squares.
    """

    first: Codes
    second: Codes
    counts: Floats
    distances: Singles
    starts: Singles
    squares: Singles


def draw_level_pairs(
    scores: Floats, rows: LevelRows, weights: Floats | None = None, *, seed: int = 0
) -> LevelPairs:
    """All pairs of rows within levels, or some if there are more than about 100,000.

    Parameters
    ----------
    scores : ndarray, shape (n, p)
        Covariates on the scale of normal scores.
    rows : LevelRows
    weights : ndarray, shape (n,), optional
        Frequency weights. A row of weight 2 or more forms a pair with itself.
    seed : int, default=0
        Seed of the subsamples, and of the order.
    """
    rng, p = np.random.default_rng(seed), scores.shape[1]
    first, second = _draw(rows, weights is not None, min(_MOST_PAIRS, _MOST_DISTANCES // max(p, 1)), rng)
    counts = np.ones(len(first))
    if weights is not None:
        own = np.maximum(weights[first] - 1, 0) / 2
        counts = np.where(first == second, own, weights[second]) * weights[first]
        first, second, counts = first[counts > 0], second[counts > 0], counts[counts > 0]
    distances = np.empty((p, len(first)), dtype=np.float32)
    for j in range(p):
        column = scores[:, j].astype(np.float32)
        np.subtract(column[first], column[second], out=distances[j])
    distances *= distances
    distances *= np.float32(0.5)
    some = distances[:, : min(_RANKING_PAIRS, _MOST_RANKING // max(_N_STARTS * p, 1))]
    starts = np.repeat(some, _N_STARTS, axis=0)
    starts *= -np.tile(np.array(_START_WEIGHTS, dtype=np.float32), p)[:, None]
    np.exp(starts, out=starts)
    return LevelPairs(first, second, counts, distances, starts, starts * starts)


def _draw(rows: LevelRows, own: bool, most: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Positions of the rows of pairs; ``own`` if a row forms a pair with itself."""

    def n_pairs(sizes: Codes) -> Codes:
        return sizes * (sizes + 1 if own else sizes - 1) // 2

    limit = _MOST_ROWS
    while limit > _LEAST_ROWS and n_pairs(np.minimum(rows.sizes, limit)).sum() > most:
        limit -= 1
    rows = rows.thinned(limit, rng)
    levels = rng.permutation(len(rows.sizes))
    chosen = np.zeros(len(levels), dtype=bool)
    # At least one level, however large.
    chosen[levels[: 1 + np.searchsorted(np.cumsum(n_pairs(rows.sizes[levels])), most)]] = True
    first, second = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)]
    for stack, places in rows.stacks(_MOST_SCORED):
        one, other = np.triu_indices(places.shape[1], 0 if own else 1)
        members = rows.order[places[chosen[stack]]]
        first.append(members[:, one].ravel())
        second.append(members[:, other].ravel())
    shuffled = rng.permutation(sum(map(len, first)))
    return np.concatenate(first)[shuffled], np.concatenate(second)[shuffled]


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
        Seed of the subsample of pairs.
    """
    rows = LevelRows.of(codes, int(codes.max(initial=-1)) + 1)
    return kernel_of_pairs(draw_level_pairs(scores, rows, weights, seed=seed), residuals, codes, weights)


def kernel_of_pairs(
    pairs: LevelPairs, residuals: Floats, codes: Codes, weights: Floats | None = None
) -> LevelKernel:
    """Estimate the kernel from the residuals of the rows of given pairs.

    Parameters
    ----------
    pairs : LevelPairs
    residuals : ndarray, shape (n,)
    codes : ndarray of int, shape (n,)
        The level of each row.
    weights : ndarray, shape (n,), optional
        Frequency weights.
    """
    p = len(pairs.distances)
    variance = float(np.average(residuals**2, weights=weights))
    if not variance or not len(pairs.first):
        return LevelKernel(0.0, np.empty(0), np.empty((0, p)), 1.0)
    scaled = residuals / np.sqrt(variance)
    products = scaled[pairs.first] * scaled[pairs.second]
    apart = scaled - _level_means(scaled, codes, weights)
    within = apart[pairs.first] * apart[pairs.second]
    found: list[Singles] = []
    columns = [np.ones(len(products), dtype=np.float32)]
    shares = _shares(columns, products, pairs.counts)
    for _ in range(_MOST_COMPONENTS if p else 0):
        component = _next_component(_KernelScore(pairs, _unexplained(columns, within, pairs.counts)))
        if not component.any():
            break
        more = [*columns, _component(component, pairs.distances)]
        new = _shares(more, products, pairs.counts)
        if new[-1] <= 0:
            break
        found.append(component)
        columns, shares = more, new
    shares *= min(1.0, _MOST_EXPLAINED / max(shares.sum(), _MOST_EXPLAINED))
    table = np.array(found, dtype=np.float64).reshape(len(found), p)
    positive = shares[1:] > 0  # a later component may explain all that an earlier one did
    return LevelKernel(float(shares[0]), shares[1:][positive], table[positive], float(1 - shares.sum()))


def _level_means(values: Floats, codes: Codes, weights: Floats | None) -> Floats:
    """The mean of each row's level; (n,)."""
    total = np.bincount(codes, values if weights is None else values * weights)
    count = np.bincount(codes, weights)
    return np.asarray(np.divide(total, count, out=np.zeros(len(total)), where=count > 0)[codes])


def _normal_equations(
    columns: Sequence[Singles], products: Floats, counts: Floats
) -> tuple[Floats, Floats, Floats]:
    """The columns (m, n), and the two sides of their regression: (m, m) and (m,)."""
    table = np.stack(columns).astype(np.float64)
    weighted = table * counts
    return table, weighted @ table.T, weighted @ products


def _shares(columns: Sequence[Singles], products: Floats, counts: Floats) -> Floats:
    """Non-negative least squares of the products on the components: their shares of the variance."""
    _, gram, cross = _normal_equations(columns, products, counts)
    # With G = VΛVᵀ, |Ax − b|² up to a constant for A = Λ^½ Vᵀ and b = Λ^−½ Vᵀ c.
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-10 * values[-1]
    root = np.sqrt(values[kept])
    return np.asarray(nnls(root[:, None] * vectors[:, kept].T, (vectors[:, kept].T @ cross) / root)[0])


def _unexplained(columns: Sequence[Singles], within: Floats, counts: Floats) -> Floats:
    """Residuals of the regression of the products within levels on the components."""
    table, gram, cross = _normal_equations(columns, within, counts)
    return np.asarray(within - (np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ cross) @ table)


class _KernelScore:
    """How well kernel components explain the products of pairs: the squared t values of their slopes.

    A score is 0 if the slope is not positive or the component is constant.
    """

    def __init__(self, pairs: LevelPairs, products: Floats) -> None:
        self.pairs = pairs
        self._all = _standardize(products, pairs.counts)
        n_ranking = pairs.starts.shape[1]
        self._ranking = _standardize(products[:n_ranking], pairs.counts[:n_ranking])

    def exact(self, columns: Singles) -> Floats:
        """Scores of the components in the rows of a table, from all pairs; (m,)."""
        products, counts, total = self._all
        centered = columns - (columns @ counts / total)[:, None]
        slopes = centered @ products
        centered *= centered
        return _score(slopes, centered @ counts / total, total)

    def additions(self, column: Singles) -> Floats:
        """Scores of a component times each of the `starts`, from the pairs for ranking; (3 p,)."""
        products, counts, total = self._ranking
        starts, squares = self.pairs.starts, self.pairs.squares
        column = column[: len(products)]
        weighted = counts * column
        means = starts @ weighted / total
        return _score(starts @ (products * column), squares @ (weighted * column) / total - means**2, total)

    def twos(self, chosen: Codes) -> Floats:
        """Scores of the products of any two of the chosen `starts`, from the pairs for ranking; (m, m)."""
        products, counts, total = self._ranking
        roots = np.sqrt(counts)
        slopes, means, squares = np.zeros((3, len(chosen), len(chosen)), dtype=np.float32)
        for part in blocks(len(products), _BLOCK):
            one, root = self.pairs.starts[chosen, part], roots[part]
            slopes += (one * products[part]) @ one.T
            # The product of a table with its own transpose takes half the time.
            weighted = one * root
            means += weighted @ weighted.T
            weighted *= one
            squares += weighted @ weighted.T
        means /= total
        return _score(slopes, squares / total - means**2, total)


def _standardize(products: Floats, counts: Floats) -> tuple[Singles, Singles, float]:
    """Weighted products with mean 0 and variance 1, the weights, and their sum."""
    total = float(counts.sum())
    centered = products - products @ counts / total
    deviation = float(np.sqrt(centered**2 @ counts / total))
    if deviation < _ROUNDING:  # the previous components explain everything
        centered, deviation = np.zeros_like(centered), 1.0
    return (counts * centered / deviation).astype(np.float32), counts.astype(np.float32), total


def _score(slopes: Singles, variances: Singles, total: float) -> Floats:
    """Squared t values."""
    counts = (slopes > 0) & (variances > _LEAST_VARIANCE)
    found = np.zeros(slopes.shape)
    found[counts] = slopes[counts].astype(np.float64) ** 2 / (variances[counts] * total)
    return found


def _next_component(score: _KernelScore) -> Singles:
    """The weights (p,) of the component that explains most, found by coordinate search; 0 if none does."""
    weights, distances = _start_weights(score), score.pairs.distances
    column = _component(weights, distances)
    best = float(score.exact(column[None])[0])
    for _ in range(_MOST_STEPS):
        moves, columns = _moves(score, weights, column)
        scores = score.exact(columns)
        # An added covariate must raise the score by `_LEAST_GAIN`.
        costs = [_LEAST_GAIN * ((new > 0) - float(weights[j] > 0)) for j, new in moves]
        place = _argmax(scores - costs)
        if scores[place] - costs[place] <= best * (1 + _ROUNDING):
            break
        j, new = moves[place]
        best, weights[j] = float(scores[place]), new
        column = _component(weights, distances)
    return weights if best > _LEAST_GAIN * (1 + _ROUNDING) else np.zeros_like(weights)


def _moves(
    score: _KernelScore, weights: Singles, column: Singles
) -> tuple[list[tuple[int, float]], Singles]:
    """Changes of one weight, as (covariate, new weight), and the components after them; (m, n).

    Of the covariates that are not in the component, the best ones.
    """
    distances = score.pairs.distances
    free = np.flatnonzero(np.repeat(weights == 0, _N_STARTS))
    added = free[_finalists(score.additions(column)[free], len(column))]
    moves = [_start(i) for i in added.tolist()]
    columns = [_times_starts(column, added, distances)]
    for j in np.flatnonzero(weights).tolist():
        others = np.where(np.arange(len(weights)) == j, 0, weights)
        without = _component(others, distances)
        for new in _neighbours(float(weights[j])):
            moves.append((j, new))
            columns.append((without * np.exp(np.float32(-new) * distances[j]) if new else without)[None])
    # In the order of the covariates, which decides between equal scores.
    order = np.argsort([j for j, _ in moves], kind="stable")
    return [moves[i] for i in order], np.concatenate(columns)[order]


def _start_weights(score: _KernelScore) -> Singles:
    """Best start with one covariate or with two: rows of a day may be alike where rows of a month are not."""
    distances = score.pairs.distances
    constant = np.ones(distances.shape[1], dtype=np.float32)
    ranks = score.additions(constant)
    ones = _finalists(ranks, len(constant))
    scores = score.exact(_times_starts(constant, ones, distances))
    place = _argmax(scores)
    chosen = [int(ones[place])]
    # Two of the covariates that explain most alone.
    best = np.argsort(-ranks.reshape(-1, _N_STARTS).max(axis=1), kind="stable")[:_MOST_STARTS]
    starts = np.flatnonzero(np.isin(np.arange(len(ranks)) // _N_STARTS, best))
    one, other = np.triu_indices(len(starts), 1)
    apart = starts[one] // _N_STARTS != starts[other] // _N_STARTS
    one, other = one[apart], other[apart]
    if len(one):
        kept = _finalists(score.twos(starts)[one, other], len(constant))
        one, other = starts[one[kept]], starts[other[kept]]
        together = score.exact(
            _times_starts(constant, one, distances) * _times_starts(constant, other, distances)
        )
        two = _argmax(together)
        if together[two] > scores[place] + _LEAST_GAIN:
            chosen = [int(one[two]), int(other[two])]
    found = np.zeros(len(distances), dtype=np.float32)
    for j, weight in map(_start, chosen):
        found[j] = weight
    return found


def _start(place: int) -> tuple[int, float]:
    """Covariate and weight of one of the `starts`."""
    return place // _N_STARTS, _START_WEIGHTS[place % _N_STARTS]


def _times_starts(column: Singles, places: Codes, distances: Singles) -> Singles:
    """A component times some of the `starts`, for all pairs; (m, n)."""
    weights = np.array(_START_WEIGHTS, dtype=np.float32)[places % _N_STARTS]
    found = distances[places // _N_STARTS]
    found *= -weights[:, None]
    np.exp(found, out=found)
    found *= column
    return found


def _finalists(scores: Floats, n_pairs: int) -> Codes:
    """Positions of the best candidates, in order."""
    most = max(_FINALISTS, _MOST_SCORED // n_pairs)
    return np.sort(np.argsort(-scores, kind="stable")[:most])


def _neighbours(old: float) -> tuple[float, ...]:
    """Weights to try next: 0, or one step of the grid up or down."""
    place = int(np.argmin(np.abs(np.log(_WEIGHTS) - np.log(old))))
    return (0.0, *_WEIGHTS[max(place - 1, 0) : place], *_WEIGHTS[place + 1 : place + 2])


def _argmax(values: Floats) -> int:
    """Position of the first value that equals the largest up to rounding."""
    largest = values.max()
    return int(np.argmax(values >= largest - _ROUNDING * abs(largest)))


def _component(weights: Floats | Singles, distances: Singles) -> Singles:
    """Return exp(−½ Σ_j w_j (z_j − z'_j)²) for every pair; (n,)."""
    used = np.flatnonzero(weights)
    return np.asarray(
        np.exp(-(np.asarray(weights, dtype=np.float32)[used] @ distances[used])), dtype=np.float32
    )
