"""Means of the target in cells, the combinations of levels of several columns, and which cells are worth it.

A response r in the cells of a factor is r = center + u_cell + noise with u ~ N(0, τ²) and noise ~ N(0, σ²).
The mean of a cell with n rows is shrunk by n/(n + λ) with λ = σ²/τ², which maximises the marginal likelihood
(empirical Bayes).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sufrep._arrays import Codes, Floats

# The ratios λ that are compared: a cell of λ rows is shrunk by half.
_RATIOS = 2.0 ** np.arange(-2, 11)
# A combination is another column in disguise if it has hardly more cells than the column has levels, and says
# nothing about new rows if hardly any row has another one in its cell.
_LEAST_MORE_CELLS = 1.02
_LEAST_REPEATED = 0.2
# Sweeps over the columns of the additive model, and the relative change at which they end.
_MOST_SWEEPS = 40
_SMALL_CHANGE = 1e-4
# The gain of a combination is significant at this level, shared by all that are tried.
_LEVEL = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """Several columns of levels.

    Attributes
    ----------
    codes : list of ndarray of int, each of shape (n,)
        −1 for rows without a level, which have an effect of 0.
    n_levels : list of int
    """

    codes: list[Codes]
    n_levels: list[int]

    def take(self, rows: Codes) -> Factors:
        """The levels of some rows."""
        return Factors([codes[rows] for codes in self.codes], self.n_levels)


@dataclass(frozen=True, slots=True, eq=False)
class CellMeans:
    """Shrunken means of a response.

    Attributes
    ----------
    means : ndarray, shape (n_cells, q)
        The center for cells without rows.
    center : ndarray, shape (q,)
        The mean of all rows that have a cell.
    weight : ndarray, shape (n_cells,)
    ratio : float
        λ; infinite if cells do not differ by more than noise.
    """

    means: Floats
    center: Floats
    weight: Floats
    ratio: float


def cell_means(codes: Codes, n_cells: int, response: Floats, weights: Floats | None = None) -> CellMeans:
    """Shrink the means of a response in cells towards its overall mean.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        The cell of each row, none of them −1.
    n_cells : int
    response : ndarray, shape (n, q)
        Numbers, or indicators of classes, which share λ.
    weights : ndarray, shape (n,), optional
    """
    own = np.ones(len(codes)) if weights is None else weights
    center = own @ response / own.sum()
    # In units in which squares of the largest number exist.
    unit = np.exp2(np.frexp(np.abs(response - center).max(initial=0.0))[1].astype(float))
    effects = fit_effects(codes, n_cells, (response - center) / unit, own)
    weight = np.bincount(codes, own, n_cells).astype(np.float64)
    return CellMeans(center + unit * effects.values, center, weight, effects.ratio)


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """Shrunken means of residuals: ``values`` is (n_cells, q), ``gain`` how much likelier than none they are.

    The gain is a difference of log likelihoods, times two; 0 with an infinite ``ratio`` if none is likelier.
    """

    values: Floats
    ratio: float
    gain: float


def fit_effects(
    codes: Codes, n_cells: int, residuals: Floats, weights: Floats, ratio: float | None = None
) -> Effects:
    """Effects of cells on residuals (n, q), whose mean is about 0; of a given ratio, or the likeliest one."""
    sums = _sums(codes, n_cells, residuals * weights[:, None])
    counts = np.bincount(codes[codes >= 0], weights[codes >= 0], n_cells).astype(np.float64)
    gain = 0.0
    if ratio is None:
        ratio, gain = _likeliest_ratio(sums, counts, weights @ residuals**2, float(weights.sum()))
    if np.isinf(ratio):
        return Effects(np.zeros_like(sums), ratio, gain)
    return Effects(sums / (counts + ratio)[:, None], ratio, gain)


def _likeliest_ratio(sums: Floats, counts: Floats, squares: Floats, total: float) -> tuple[float, float]:
    """The λ with the largest marginal likelihood, and twice its logarithm relative to that of no effect.

    Parameters
    ----------
    sums : ndarray, shape (n_cells, q)
    counts : ndarray, shape (n_cells,)
    squares : ndarray, shape (q,)
        Sums of squares over all rows.
    total : float
        Weight of all rows.
    """
    varies = squares > 0
    if not varies.any():
        return np.inf, 0.0
    sizes, place = np.unique(counts[counts > 0], return_inverse=True)
    n_cells = np.bincount(place)
    squared = np.column_stack(
        [np.bincount(place, sums[counts > 0, j] ** 2, len(sizes)) for j in np.flatnonzero(varies)]
    )
    best, likeliest = 0.0, np.inf
    for ratio in _RATIOS:
        left = 1 - (squared / (sizes[:, None] + ratio)).sum(axis=0) / squares[varies]
        penalty = varies.sum() * (n_cells * np.log1p(sizes / ratio)).sum()
        gain = -total * np.log(np.maximum(left, 1e-12)).sum() - penalty
        if gain > best:
            best, likeliest = float(gain), float(ratio)
    return likeliest, best


@dataclass(frozen=True, slots=True, eq=False)
class Additive:
    """A response as the sum of a center, (q,), and an effect of each factor, (n_levels, q)."""

    center: Floats
    effects: list[Floats]
    ratios: list[float]

    def predict(self, factors: Factors) -> Floats:
        """The prediction for each row; (n, q)."""
        found = np.tile(self.center, (len(factors.codes[0]), 1))
        for codes, effects in zip(factors.codes, self.effects, strict=True):
            found += _look_up(effects, codes)
        return found


def fit_additive(
    factors: Factors, response: Floats, weights: Floats, ratios: Sequence[float] | None = None
) -> Additive:
    """Fit shrunken effects of all factors at the same time, in turn until they hardly change.

    Parameters
    ----------
    factors : Factors
    response : ndarray, shape (n, q)
    weights : ndarray, shape (n,)
    ratios : sequence of float, optional
        λ of each factor; by default the likeliest given the effects of the others.
    """
    center = weights @ response / weights.sum()
    rest = response - center
    spread = float(np.sqrt(weights @ (rest**2).sum(axis=1) / weights.sum()))
    found = [np.zeros((n_levels, response.shape[1])) for n_levels in factors.n_levels]
    used = [np.inf] * len(found) if ratios is None else list(ratios)
    for _ in range(_MOST_SWEEPS):
        change = 0.0
        for j, codes in enumerate(factors.codes):
            rest += _look_up(found[j], codes)
            given = None if ratios is None else ratios[j]
            fitted = fit_effects(codes, factors.n_levels[j], rest, weights, given)
            change = max(change, float(np.abs(_look_up(fitted.values - found[j], codes)).mean()))
            found[j], used[j] = fitted.values, fitted.ratio
            rest -= _look_up(found[j], codes)
        if change <= _SMALL_CHANGE * spread:
            break
    return Additive(center, found, used)


@dataclass(frozen=True, slots=True, eq=False)
class ChosenCells:
    """A combination of columns, and what its cells add to the sum of the effects of all columns.

    Attributes
    ----------
    columns : tuple of int
        Positions of the columns.
    gain : float
        Share of the squared error on held-out rows that the effects of the cells remove.
    z : float
        The gain divided by its standard error.
    """

    columns: tuple[int, ...]
    gain: float
    z: float


def choose_cells(
    factors: Factors,
    response: Floats,
    folds: Sequence[tuple[Codes, Codes]],
    weights: Floats | None = None,
    *,
    max_order: int = 3,
    max_cells: int = 12,
    unscreened: int = 0,
) -> list[ChosenCells]:
    """Choose the pairs and triples of columns whose cells predict what the columns alone do not.

    In each fold the effects of the columns are fitted to the other rows, and the effects of the cells of
    every combination to what is left there. A combination is chosen if these reduce the squared error on the
    rows of the fold significantly, the level being shared by all combinations of its order. Triples are
    tried where at least two of their pairs were chosen.

    If at most ``unscreened`` pairs can be tried, all of them are chosen. Their cells may serve trees also
    where they add little to a sum of effects.

    Returns
    -------
    list of ChosenCells
        By decreasing ``z``.
    """
    own = np.ones(len(response)) if weights is None else weights
    screen = _Screen.of(factors, response, folds, own)
    usable = _usable(factors, own, combinations(range(len(factors.codes)), 2))
    pairs = screen.gains(usable) if len(usable) <= unscreened else screen.significant(usable)
    found = list(pairs)
    if max_order > 2:
        known = {pair.columns for pair in pairs}
        triples = (
            triple
            for triple in combinations(range(len(factors.codes)), 3)
            if sum(pair in known for pair in combinations(triple, 2)) > 1
        )
        found += screen.significant(_usable(factors, own, triples))
    return sorted(found, key=lambda cells: -cells.z)[:max_cells]


def combine(factors: Factors, columns: Sequence[int]) -> tuple[Codes, int]:
    """The cell of each row, −1 where a level is unknown, and the number of cells."""
    codes, n_cells = factors.codes[columns[0]], factors.n_levels[columns[0]]
    for column in columns[1:]:
        both = (codes >= 0) & (factors.codes[column] >= 0)
        pairs = codes.astype(np.int64) * factors.n_levels[column] + factors.codes[column]
        # Distinct values after each column, so that the products cannot overflow.
        distinct, found = np.unique(pairs[both], return_inverse=True)
        codes = np.full(len(both), -1)
        codes[both], n_cells = found, len(distinct)
    return codes, n_cells


@dataclass(frozen=True, slots=True, eq=False)
class _Usable:
    """A combination that is no column in disguise, and whose cells have several rows."""

    columns: tuple[int, ...]
    codes: Codes
    n_cells: int


def _usable(factors: Factors, weights: Floats, candidates: Iterator[tuple[int, ...]]) -> list[_Usable]:
    """The candidates that may say something."""
    counted = weights > 0
    sizes = [len(np.unique(codes[counted & (codes >= 0)])) for codes in factors.codes]
    found = []
    for columns in candidates:
        codes, n_cells = combine(factors, columns)
        counts = np.bincount(codes[counted & (codes >= 0)], minlength=n_cells)
        parents = combinations(columns, len(columns) - 1)
        most = max(
            sizes[parent[0]] if len(parent) == 1 else combine(factors, parent)[1] for parent in parents
        )
        repeated = counts[counts > 1].sum() / max(counts.sum(), 1)
        if np.count_nonzero(counts) > _LEAST_MORE_CELLS * most and repeated > _LEAST_REPEATED:
            found.append(_Usable(columns, codes, n_cells))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _FoldResiduals:
    """What the columns leave of the response, in the rows outside a fold and in the fold."""

    train: Codes
    test: Codes
    inside: Floats
    outside: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Screen:
    """What all combinations are compared with."""

    folds: list[_FoldResiduals]
    weights: Floats

    @classmethod
    def of(
        cls,
        factors: Factors,
        response: Floats,
        folds: Sequence[tuple[Codes, Codes]],
        weights: Floats,
    ) -> _Screen:
        """Fit the effects of the columns in every fold, with the ratios of all rows to save time."""
        ratios = fit_additive(factors, response, weights).ratios
        found = []
        for train, test in folds:
            if not weights[train].sum() > 0:
                continue  # the first rows in time
            additive = fit_additive(factors.take(train), response[train], weights[train], ratios)
            left, right = (response[rows] - additive.predict(factors.take(rows)) for rows in (train, test))
            found.append(_FoldResiduals(train, test, left, right))
        return cls(found, weights)

    def significant(self, candidates: Sequence[_Usable]) -> list[ChosenCells]:
        """The combinations with a significant gain."""
        least = norm.isf(_LEVEL / max(len(candidates), 1))
        return [found for found in self.gains(candidates) if found.z > least]

    def gains(self, candidates: Sequence[_Usable]) -> list[ChosenCells]:
        """What all combinations add."""
        return [self._gain(candidate) for candidate in candidates] if self.folds else []

    def _gain(self, cells: _Usable) -> ChosenCells:
        gains, errors, weights = [], [], []
        for fold in self.folds:
            own = self.weights[fold.train]
            effects = fit_effects(cells.codes[fold.train], cells.n_cells, fold.inside, own)
            left = fold.outside - _look_up(effects.values, cells.codes[fold.test])
            errors.append((fold.outside**2).sum(axis=1))
            gains.append(errors[-1] - (left**2).sum(axis=1))
            weights.append(self.weights[fold.test])
        gain, error, weight = (np.concatenate(parts) for parts in (gains, errors, weights))
        mean = float(weight @ gain / weight.sum())
        deviation = float(np.sqrt(weight @ (gain - mean) ** 2 / weight.sum() / weight.sum()))
        whole = float(weight @ error / weight.sum())
        if not deviation > 0:
            return ChosenCells(cells.columns, 0.0, 0.0)
        return ChosenCells(cells.columns, mean / whole, mean / deviation)


def _sums(codes: Codes, n_cells: int, columns: Floats) -> Floats:
    known = codes >= 0
    if not known.all():
        codes, columns = codes[known], columns[known]
    return np.column_stack([np.bincount(codes, column, n_cells) for column in columns.T])


def _look_up(values: Floats, codes: Codes) -> Floats:
    """The values of each row's cell, 0 for rows without one; (n, q)."""
    return np.asarray(np.vstack([values, np.zeros(values.shape[1])])[codes])
