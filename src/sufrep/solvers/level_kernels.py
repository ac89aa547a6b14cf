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

from dataclasses import dataclass, field
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

# Limits of the search for a kernel: components, and pairs of rows. More pairs find weaker components, but
# take time in proportion to the covariates: so many pairs if that gives at most so many distances.
_MOST_COMPONENTS = 3
_MOST_PAIRS, _MOST_DISTANCES = 250_000, 6_000_000
# This many pairs even if that gives more distances, which are then limited by memory.
_ENOUGH_PAIRS, _MOST_MEMORY = 100_000, 20_000_000
# Most rows of a level that form pairs. With more, a few large levels would make up all pairs. Where this
# gives too many pairs, levels have fewer rows each, down to the second number, and then some have none.
_MOST_ROWS, _LEAST_ROWS = 100, 10
# Pairs that candidates are ranked on: the numbers held for them, but at least so many.
_MOST_RANKING, _RANKING_PAIRS = 2_500_000, 20_000
# Pairs that products of any two covariates are ranked on, of which there are many.
_TWOS_PAIRS = 20_000
# Candidates that are scored on all pairs: so many, or more if they have few pairs, up to this many numbers.
_FINALISTS, _MOST_SCORED = 3, 100_000
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
        if not len(self.variances):
            return np.full((len(first), len(second)), self.constant)
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
        """Return k from some rows of the first `factors` and some of the second, or stacks; (..., n, m).

        There has to be a component.
        """
        parts = (one @ other.swapaxes(-1, -2) for one, other in zip(first, second, strict=True))
        found = next(parts)
        np.exp(found, out=found)
        for part in parts:
            found += np.exp(part, out=part)
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
    scores : ndarray, shape (p, n_rows)
        Covariates of the rows, in single precision.
    starts, squares : ndarray, shape (3 p, n_ranking)
        Components of one covariate, for each of three weights, at the pairs that candidates are ranked on,
        which come first, and their squares.
    """

    first: Codes
    second: Codes
    counts: Floats
    scores: Singles
    starts: Singles
    squares: Singles
    _distances: dict[int, Singles] = field(default_factory=dict)

    def distances(self, j: int) -> Singles:
        """½ (z_j − z'_j)² of all pairs; (n,)."""
        if j not in self._distances:
            self._distances[j] = _distances(self.scores[j], self.first, self.second)
        return self._distances[j]

    def components(self, weights: Singles, n: int | None = None) -> Singles:
        """Return exp(−½ Σ_j w_j (z_j − z'_j)²) for rows of weights (m, p) and the first n pairs; (m, n)."""
        used = np.flatnonzero(weights.any(axis=0))
        found = np.zeros((len(weights), len(self.first[:n])), dtype=np.float32)
        if len(used):
            np.matmul(-weights[:, used], np.stack([self.distances(j)[:n] for j in used.tolist()]), out=found)
        return np.exp(found, out=found)


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
    most = min(_MOST_PAIRS, _MOST_DISTANCES // max(p, 1))
    most = max(most, min(_ENOUGH_PAIRS, _MOST_MEMORY // max(p, 1)))
    first, second = _draw(rows, weights is not None, most, rng)
    counts = np.ones(len(first))
    if weights is not None:
        own = np.maximum(weights[first] - 1, 0) / 2
        counts = np.where(first == second, own, weights[second]) * weights[first]
        first, second, counts = first[counts > 0], second[counts > 0], counts[counts > 0]
    columns = np.ascontiguousarray(scores.T, dtype=np.float32)
    n_starts = _N_STARTS * p
    n_ranking = min(len(first), max(_MOST_RANKING // max(n_starts, 1), _RANKING_PAIRS))
    starts = np.empty((p, _N_STARTS, n_ranking), dtype=np.float32)
    for j, column in enumerate(columns):
        distances = _distances(column, first[:n_ranking], second[:n_ranking])
        for number, weight in enumerate(_START_WEIGHTS):
            np.multiply(distances, np.float32(-weight), out=starts[j, number])
    starts = np.exp(starts, out=starts).reshape(n_starts, n_ranking)
    return LevelPairs(first, second, counts, columns, starts, starts * starts)


def _distances(column: Singles, first: Codes, second: Codes) -> Singles:
    found = column[first]
    found -= column[second]
    found *= found
    found *= np.float32(0.5)
    return found


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
    first: list[Codes] = [np.empty(0, dtype=np.intp)]
    second: list[Codes] = [np.empty(0, dtype=np.intp)]
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
    p = len(pairs.scores)
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
        more = [*columns, pairs.components(component[None])[0]]
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
        self.n_ranking = pairs.starts.shape[1]
        self._ranking = _standardize(products[: self.n_ranking], pairs.counts[: self.n_ranking])
        n_twos = min(self.n_ranking, _TWOS_PAIRS)
        self._few = _standardize(products[:n_twos], pairs.counts[:n_twos])
        # Scores grow in proportion to the pairs.
        self.growth = self._all[2] / self._ranking[2]

    def exact(self, columns: Singles) -> Floats:
        """Scores of the components in the rows of a table, from all pairs; (m,)."""
        return self._one_by_one(columns, *self._all)

    def ranks(self, columns: Singles) -> Floats:
        """Scores of the components in the rows of a table, from the pairs for ranking; (m,)."""
        return self._one_by_one(columns, *self._ranking)

    @staticmethod
    def _one_by_one(columns: Singles, products: Singles, counts: Singles, total: float) -> Floats:
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
        """Scores of the products of any two of the chosen `starts`, from the pairs for this; (m, m)."""
        products, counts, total = self._few
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


def _score(slopes: Singles, variances: Floats | Singles, total: float) -> Floats:
    """Squared t values."""
    counts = (slopes > 0) & (variances > _LEAST_VARIANCE)
    found = np.zeros(slopes.shape)
    found[counts] = slopes[counts].astype(np.float64) ** 2 / (variances[counts] * total)
    return found


def _next_component(score: _KernelScore) -> Singles:
    """The weights (p,) of the component that explains most, found by coordinate search; 0 if none does."""
    weights, pairs = _start_weights(score), score.pairs
    column = pairs.components(weights[None])
    best = float(score.exact(column)[0])
    for _ in range(_MOST_STEPS):
        moves = _best_moves(score, weights, column[0])
        columns = pairs.components(np.stack([_moved(weights, *move) for move in moves]))
        scores = score.exact(columns)
        costs = np.array([_cost(weights, *move) for move in moves])
        place = _argmax(scores - costs)
        if scores[place] - costs[place] <= best * (1 + _ROUNDING):
            break
        weights = _moved(weights, *moves[place])
        best, column = float(scores[place]), columns[[place]]
    return weights if best > _LEAST_GAIN * (1 + _ROUNDING) else np.zeros_like(weights)


def _best_moves(score: _KernelScore, weights: Singles, column: Singles) -> list[tuple[int, float]]:
    """Changes of one weight, as (covariate, new weight), that look best on the pairs for ranking."""
    free = np.flatnonzero(np.repeat(weights == 0, _N_STARTS))
    moves, ranks = [_start(i) for i in free.tolist()], [score.additions(column)[free]]
    for j in np.flatnonzero(weights).tolist():
        changes = [(j, new) for new in _neighbours(float(weights[j]))]
        changed = np.stack([_moved(weights, *change) for change in changes])
        ranks.append(score.ranks(score.pairs.components(changed, score.n_ranking)))
        moves += changes
    # In the order of the covariates, which decides between equal scores.
    order = np.argsort([j for j, _ in moves], kind="stable")
    moves = [moves[i] for i in order]
    penalized = score.growth * np.concatenate(ranks)[order] - [_cost(weights, *move) for move in moves]
    return [moves[i] for i in _finalists(penalized, len(column))]


def _moved(weights: Singles, j: int, new: float) -> Singles:
    changed = weights.copy()
    changed[j] = new
    return changed


def _cost(weights: Singles, j: int, new: float) -> float:
    """An added covariate must raise the score by `_LEAST_GAIN`; one that is left out may lower it by that."""
    return _LEAST_GAIN * (float(new > 0) - float(weights[j] > 0))


def _start_weights(score: _KernelScore) -> Singles:
    """Best start with one covariate or with two: rows of a day may be alike where rows of a month are not."""
    pairs = score.pairs
    n, p = len(pairs.first), len(pairs.scores)
    ranks = score.additions(np.ones(n, dtype=np.float32))
    ones = _finalists(ranks, n)
    singles = np.stack([_with_starts(p, i) for i in ones.tolist()])
    scores = score.exact(pairs.components(singles))
    best = _argmax(scores)
    # Two of the covariates that explain most alone.
    order = np.argsort(-ranks.reshape(p, _N_STARTS).max(axis=1), kind="stable")
    starts = np.flatnonzero(np.isin(np.arange(len(ranks)) // _N_STARTS, order[:_MOST_STARTS]))
    one, other = np.triu_indices(len(starts), 1)
    apart = starts[one] // _N_STARTS != starts[other] // _N_STARTS
    one, other = one[apart], other[apart]
    if not len(one):
        return np.asarray(singles[best])
    kept = _finalists(score.twos(starts)[one, other], n)
    places = zip(starts[one[kept]].tolist(), starts[other[kept]].tolist(), strict=True)
    twos = np.stack([_with_starts(p, *two) for two in places])
    together = score.exact(pairs.components(twos))
    best_two = _argmax(together)
    return np.asarray(twos[best_two] if together[best_two] > scores[best] + _LEAST_GAIN else singles[best])


def _with_starts(p: int, *places: int) -> Singles:
    """Weights of a component that is the product of some `starts`; (p,)."""
    found = np.zeros(p, dtype=np.float32)
    for place in places:
        j, weight = _start(place)
        found[j] = weight
    return found


def _start(place: int) -> tuple[int, float]:
    """Covariate and weight of one of the `starts`."""
    return place // _N_STARTS, _START_WEIGHTS[place % _N_STARTS]


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
