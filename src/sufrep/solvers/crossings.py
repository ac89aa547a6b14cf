"""Effects of groups and of their crossings, all net of each other and of the covariates.

The steps of `learn_effects`: a first joint fit, to which the strongest covariates belong; a regression of
what the groups leave on the covariates; a fit of the groups to its residuals, in which groups that say
nothing leave; a screen of the crossings group × covariate and group × group; and the fit of groups and
crossings.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from sufrep._threads import one_thread
from sufrep.solvers.crossed import CrossedDesign, CrossedFit, effect_errors, fit_crossed
from sufrep.solvers.regressions import fit_curve, fit_normal_scores
from sufrep.solvers.screening import Screened, ScreenedRows, crossing_screen, group_z

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Floats

# A covariate has a bin for each of its values up to so many, else so many bins of about the same size.
_MOST_BINS = 8
# Covariates in the first fit.
_MOST_FIRST = 12
# Crossings of one group whose common cells are tried.
_MOST_COMMON = 4
# Most cells of a crossing, as a share of the rows; fewest rows of an average cell of several covariates.
_MOST_CELLS, _LEAST_ROWS = 0.7, 3.0
# From so many rows on, trees predict from the covariates; with fewer, a curve does.
_TREES_FROM = 2_000
# Trees fit part of the noise of fewer rows than this, so that each half is predicted by those of the other
# (test_the_noise_is_that_of_the_sample).
_HALVES_BELOW = 20_000
_TREES = {"max_iter": 40, "learning_rate": 0.2, "max_leaf_nodes": 15, "early_stopping": False}
# Probabilities are kept this far from 0 and 1, so that working residuals stay finite.
_LEAST_PROBABILITY = 0.02
# Smallest starting variance of a factor, relative to the noise.
_LEAST_START = 1e-3


@dataclass(frozen=True, slots=True, order=True)
class Crossing:
    """Positions of the groups and of the binned covariates whose common cells have effects."""

    groups: tuple[int, ...]
    covariates: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CellEffects:
    """The effects of the cells of one crossing.

    Attributes
    ----------
    groups, covariates : tuple of int
        Positions of what is crossed.
    sizes : tuple of int
        Number of levels of each group, and of bins of each covariate.
    keys : ndarray of int, shape (n_cells,)
        Ascending; levels and bins are the digits of a key, of which ``sizes`` are the bases.
    effects : ndarray, shape (n_cells,)
    """

    groups: tuple[int, ...]
    covariates: tuple[int, ...]
    sizes: tuple[int, ...]
    keys: Codes
    effects: Floats

    def lookup(self, groups: Sequence[Codes], bins: Sequence[Codes]) -> Floats:
        """The effect of each row's cell, 0 in cells that are not known; (n,)."""
        digits = [*(groups[g] for g in self.groups), *(bins[c] for c in self.covariates)]
        keys = _keys(digits, self.sizes)
        if not len(self.keys):
            return np.zeros(len(keys))
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.effects[place], 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class CrossedRows:
    """Rows with their levels and covariates.

    Attributes
    ----------
    groups : sequence of ndarray of int, each of shape (n,)
        The level of each row; −1 for none.
    n_levels : sequence of int
    columns : sequence of ndarray, each of shape (n,)
        The covariates; NaN is a null.
    bins : sequence of ndarray of int, each of shape (n,)
        The bin of each covariate.
    n_bins : sequence of int
    weights : ndarray, shape (n,), or None
        Frequencies.
    """

    groups: Sequence[Codes]
    n_levels: Sequence[int]
    columns: Sequence[Array] = ()
    bins: Sequence[Codes] = ()
    n_bins: Sequence[int] = ()
    weights: Floats | None = None

    @property
    def n_rows(self) -> float:
        """Number of rows, or their weight."""
        return float(len(self.groups[0]) if self.weights is None else self.weights.sum())

    def take(self, rows: Codes) -> CrossedRows:
        """Some of the rows."""
        groups, columns, bins = (
            [np.asarray(column)[rows] for column in part] for part in (self.groups, self.columns, self.bins)
        )
        weights = None if self.weights is None else self.weights[rows]
        return CrossedRows(groups, self.n_levels, columns, bins, self.n_bins, weights)

    def cells(self, crossing: Crossing) -> _Cells | None:
        """The cells of a crossing; None if there are too many to be numbered."""
        digits = [*(self.groups[g] for g in crossing.groups), *(self.bins[c] for c in crossing.covariates)]
        sizes = (*(self.n_levels[g] for g in crossing.groups), *(self.n_bins[c] for c in crossing.covariates))
        space = math.prod(sizes)
        return _Cells.of(_keys(digits, sizes), space, sizes) if space < 2**62 else None


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The cells that some rows have: the cell of each row, −1 for none, and the keys of the cells."""

    codes: Codes
    keys: Codes
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, keys: Codes, space: int, sizes: tuple[int, ...]) -> _Cells:
        if space > 4 * len(keys) + 1024:
            found, codes = np.unique(keys, return_inverse=True)
            unknown = int(len(found) > 0 and found[0] < 0)
            return cls(codes - unknown, found[unknown:], sizes)
        found = np.flatnonzero(np.bincount(keys + 1, minlength=space + 1)[1:])
        number = np.full(space + 1, -1)
        number[found] = np.arange(len(found))
        return cls(number[keys], found, sizes)


@dataclass(frozen=True, slots=True, eq=False)
class ScreenedCrossing:
    """What the screen said about a crossing, and its variance if it was kept, else 0."""

    crossing: Crossing
    n_cells: int
    z: float
    variance: float = 0.0
    kept: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class JointEffects:
    """Effects of groups and crossings.

    Attributes
    ----------
    effects : tuple of ndarray, each of shape (n_levels,)
        Of each group; 0 for groups that say nothing.
    cells : tuple of CellEffects
        Of the crossings that were kept.
    variances : ndarray, shape (n_groups,)
        Variance of the effects of each group.
    noise : float
        Variance of what remains; of classes, relative to that of a binomial.
    group_z : ndarray, shape (n_groups,)
        z of each group, net of the others.
    screened : tuple of ScreenedCrossing
        The strongest first.
    residuals : ndarray, shape (n,)
        What remains in each row.
    errors : tuple of ndarray, each of shape (n_levels,)
        Standard errors of the effects, if they were asked for; NaN for groups that say nothing.
    """

    effects: tuple[Floats, ...]
    cells: tuple[CellEffects, ...] = ()
    variances: Floats = field(default_factory=lambda: np.empty(0))
    noise: float = 0.0
    group_z: Floats = field(default_factory=lambda: np.empty(0))
    screened: tuple[ScreenedCrossing, ...] = ()
    residuals: Floats = field(default_factory=lambda: np.empty(0))
    errors: tuple[Floats, ...] = ()

    @classmethod
    def nothing(cls, rows: CrossedRows) -> JointEffects:
        """What is known before any target."""
        zeros = tuple(np.zeros(n) for n in rows.n_levels)
        unknown = tuple(np.full(n, np.nan) for n in rows.n_levels)
        none = np.zeros(len(zeros))
        return cls(zeros, (), none, 0.0, none, (), np.zeros(len(rows.groups[0])), unknown)

    def scaled(self, power: int) -> JointEffects:
        """The same in units of 2^−power."""
        return replace(
            self,
            effects=tuple(np.ldexp(part, power) for part in self.effects),
            cells=tuple(replace(part, effects=np.ldexp(part.effects, power)) for part in self.cells),
            variances=np.ldexp(self.variances, 2 * power),
            noise=math.ldexp(self.noise, 2 * power),
            screened=tuple(
                replace(part, variance=math.ldexp(part.variance, 2 * power)) for part in self.screened
            ),
            residuals=np.ldexp(self.residuals, power),
            errors=tuple(np.ldexp(part, power) for part in self.errors),
        )


def find_cuts(column: Array, weights: Floats | None = None) -> Floats:
    """Where a covariate is cut into bins: between its values, or at quantiles if it has many."""
    known = ~np.isnan(column)
    values, place = np.unique(np.asarray(column, dtype=np.float64)[known], return_inverse=True)
    if len(values) <= _MOST_BINS:
        middle = values[:-1] / 2 + values[1:] / 2
        return np.where(middle > values[:-1], middle, values[1:])
    total = np.cumsum(np.bincount(place, None if weights is None else weights[known]))
    quantiles = np.arange(1, _MOST_BINS) / _MOST_BINS * total[-1]
    return np.unique(values[np.minimum(np.searchsorted(total, quantiles, side="right"), len(values) - 1)])


def cut_into_bins(column: Array, cuts: Floats) -> Codes:
    """The bin of each row, the last one for nulls; there are two more bins than cuts."""
    values = np.asarray(column, dtype=np.float64)
    bins = np.searchsorted(cuts, values, side="right").astype(np.int8)
    bins[np.isnan(values)] = len(cuts) + 1
    return bins


def learn_effects(
    rows: CrossedRows,
    y: Floats,
    *,
    is_class: bool = False,
    least_z: float = 3.0,
    most_crossings: int = 12,
    with_errors: bool = False,
    seed: int = 0,
) -> JointEffects:
    """Learn the effects of groups and crossings on a target.

    Parameters
    ----------
    rows : CrossedRows
    y : ndarray, shape (n,)
    is_class : bool, default=False
        Whether y is the indicator of a class. Its effects are then log-odds, by one step of iteratively
        weighted least squares from what the covariates predict.
    least_z : float, default=3.0
        Groups and crossings with a smaller z statistic have no effects.
    most_crossings : int, default=12
        The strongest are kept.
    with_errors : bool, default=False
    seed : int, default=0
    """
    n = len(y)
    counts = np.ones(n) if rows.weights is None else rows.weights
    center = float(counts @ y / counts.sum()) if n else 0.0
    largest = float(np.abs(y - center).max(initial=0.0))
    if not largest > 1e-12 * abs(center):
        return JointEffects.nothing(rows)
    # A power of two, so that units change no digit; trees sum in single precision.
    power = 0 if is_class else int(np.frexp(largest)[1])
    target = np.ldexp(y - (0.0 if is_class else center), -power)
    response = _Response.of(rows, target, _first_part(rows, target, seed), is_class=is_class, seed=seed)
    live, main, z = _fit_groups(response, least_z)
    screened, kept = _screen(response, main, least_z, most_crossings)
    found = _fit_all(response, main, live, screened, kept, with_errors=with_errors)
    return replace(found, group_z=z).scaled(power)


@dataclass(frozen=True, slots=True, eq=False)
class _Response:
    """What the covariates leave of the target, and how much each row counts."""

    rows: CrossedRows
    values: Floats
    precisions: Floats | None
    seed: int

    @classmethod
    def of(
        cls, rows: CrossedRows, target: Floats, predicted: Floats, *, is_class: bool, seed: int
    ) -> _Response:
        if not is_class:
            return cls(rows, target - predicted, None, seed)
        chance = np.clip(predicted, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
        precisions = chance * (1 - chance)
        return cls(rows, (target - chance) / precisions, precisions, seed)

    @property
    def weights(self) -> Floats | None:
        """Precisions times frequencies."""
        if self.precisions is None:
            return self.rows.weights
        return self.precisions if self.rows.weights is None else self.precisions * self.rows.weights

    def fit(
        self, codes: Sequence[Codes], n_levels: Sequence[int], start: tuple[Floats, float] | None = None
    ) -> tuple[CrossedDesign, CrossedFit]:
        """Fit the effects of some factors."""
        design = CrossedDesign.of(codes, n_levels, self.weights)
        found = fit_crossed(design, self.values, n_rows=self.rows.n_rows, start=start, seed=self.seed)
        return design, found

    def screened(self, residuals: Floats) -> ScreenedRows:
        """Residuals to be screened."""
        scores = residuals if self.precisions is None else self.precisions * residuals
        return ScreenedRows(scores, self.precisions, self.rows.weights)


@dataclass(frozen=True, slots=True, eq=False)
class _Main:
    """The effects of the groups alone: variances and residuals."""

    variances: Floats
    noise: float
    residuals: Floats


def _first_part(rows: CrossedRows, target: Floats, seed: int) -> Floats:
    """What the covariates predict of the target net of the groups; (n,)."""
    offset = np.zeros(len(target))
    if not rows.columns:
        return offset + np.average(target, weights=rows.weights)
    chosen = _strongest_covariates(rows, target)
    design = CrossedDesign.of(
        [*rows.groups, *(rows.bins[j] for j in chosen)],
        [*rows.n_levels, *(rows.n_bins[j] for j in chosen)],
        rows.weights,
    )
    first = fit_crossed(design, target, seed=seed)
    for codes, effects in zip(rows.groups, first.effects, strict=False):
        offset += np.append(effects, 0.0)[codes]
    if rows.n_rows < _TREES_FROM:
        scores = fit_normal_scores(rows.columns, rows.weights).apply(rows.columns)
        return np.asarray(fit_curve(scores, target - offset, rows.weights).predict(scores))
    X = np.column_stack([np.asarray(column, dtype=np.float64) for column in rows.columns])
    return _predicted_by_trees(X, target - offset, rows.weights, seed)


def _predicted_by_trees(X: Floats, y: Floats, weights: Floats | None, seed: int) -> Floats:
    """Predictions of boosted trees for the rows that they are fitted to, or for the other half of them."""
    n, found = len(y), np.empty(len(y))
    parts = [(np.arange(n), np.arange(n))]
    if n < _HALVES_BELOW:
        one, other = np.array_split(np.random.default_rng(seed).permutation(n), 2)
        parts = [(one, other), (other, one)]
    for fitted, predicted in parts:
        own = None if weights is None else weights[fitted]
        # Files of encoders that need no trees know of these effects, too (test_lazy_frames_load_no_learner).
        from sklearn.ensemble import HistGradientBoostingRegressor

        trees = HistGradientBoostingRegressor(**_TREES, random_state=seed)
        with one_thread() if n < _HALVES_BELOW else nullcontext():
            found[predicted] = trees.fit(X[fitted], y[fitted], sample_weight=own).predict(X[predicted])
    return found


def _strongest_covariates(rows: CrossedRows, target: Floats) -> list[int]:
    """The covariates between whose bins the target differs the most."""
    if len(rows.bins) <= _MOST_FIRST:
        return list(range(len(rows.bins)))
    counts = np.ones(len(target)) if rows.weights is None else rows.weights
    weighted, squares = counts * (target - np.average(target, weights=counts)), []
    for codes, n in zip(rows.bins, rows.n_bins, strict=True):
        total, size = np.bincount(codes, weighted, n), np.bincount(codes, counts, n)
        squares.append(float(np.divide(total**2, size, out=np.zeros(n), where=size > 0).sum()))
    order: list[int] = np.argsort(-np.array(squares), kind="stable").tolist()
    return order[:_MOST_FIRST]


def _fit_groups(response: _Response, least_z: float) -> tuple[list[int], _Main, Floats]:
    """Fit the groups, and once more without those that say nothing; which are left, and the z of each."""
    rows = response.rows
    _, fit = response.fit(rows.groups, rows.n_levels)
    z = np.zeros(len(rows.groups))
    for j, (codes, n) in enumerate(zip(rows.groups, rows.n_levels, strict=True)):
        own = fit.residuals + np.append(fit.effects[j], 0.0)[codes]
        weights = response.weights
        own = own - np.average(own, weights=weights)
        z[j] = group_z(response.screened(own), codes, n)
    live = [j for j in range(len(z)) if z[j] >= least_z]
    variances = np.zeros(len(z))
    if not live:
        centered = response.values - np.average(response.values, weights=response.weights)
        noise = response.screened(centered).noise()
        return live, _Main(variances, noise, centered), z
    if len(live) < len(z):
        _, fit = response.fit([rows.groups[j] for j in live], [rows.n_levels[j] for j in live])
    variances[live] = fit.variances
    return live, _Main(variances, fit.noise, fit.residuals), z


def _screen(
    response: _Response, main: _Main, least_z: float, most: int
) -> tuple[list[ScreenedCrossing], list[tuple[ScreenedCrossing, _Cells]]]:
    """Screen all crossings; return what was found, and those to be kept with their cells."""
    rows, screened = response.rows, response.screened(main.residuals)
    if not most:
        return [], []
    screen = _Screen(rows, screened)
    n_groups = len(rows.groups)
    candidates = [
        *(Crossing((g,), (c,)) for g in range(n_groups) for c in range(len(rows.bins))),
        *(Crossing(pair) for pair in combinations(range(n_groups), 2)),
    ]
    found = [item for item in map(screen, candidates) if item is not None]
    found.sort(key=lambda item: (-item.z, item.crossing))
    good = [item for item in found if item.z >= least_z][:most]
    for group in range(n_groups):
        common = screen.common(group, good)
        if common is not None:
            found.append(common)
            if common.z >= least_z:
                good.append(common)
    found.sort(key=lambda item: (-item.z, item.crossing))
    kept = [(item, cells) for item in good if (cells := rows.cells(item.crossing)) is not None]
    return found, kept


class _Screen:
    """Screens crossings on the same residuals."""

    def __init__(self, rows: CrossedRows, screened: ScreenedRows) -> None:
        self._rows, self._screened, self._noise = rows, screened, screened.noise()
        groups = list(zip(rows.groups, rows.n_levels, strict=True))
        self._levels = [screened.pairs(codes, n) for codes, n in groups]
        self._n_present = [len(np.unique(codes[codes >= 0])) for codes, _ in groups]

    def __call__(self, crossing: Crossing) -> ScreenedCrossing | None:
        """Screen one; None if it has too many cells, or splits nothing."""
        cells = self._rows.cells(crossing)
        if cells is None:
            return None
        n_cells = len(cells.keys)
        if n_cells > _MOST_CELLS * self._rows.n_rows:
            return None
        finest = max(crossing.groups, key=lambda g: self._n_present[g])
        if n_cells <= self._n_present[finest]:
            return None
        pairs = self._screened.pairs(cells.codes, n_cells)
        found: Screened = crossing_screen(pairs, self._levels[finest], self._noise)
        return ScreenedCrossing(crossing, n_cells, found.z, found.variance)

    def common(self, group: int, good: Sequence[ScreenedCrossing]) -> ScreenedCrossing | None:
        """The crossing with all covariates that its crossings were found for, while cells have rows."""
        own = [item.crossing.covariates[0] for item in good if item.crossing.groups == (group,)]
        deepest: Crossing | None = None
        for size in range(2, min(len(own), _MOST_COMMON) + 1):
            crossing = Crossing((group,), tuple(sorted(own[:size])))
            cells = self._rows.cells(crossing)
            if cells is None or len(cells.keys) * _LEAST_ROWS > self._rows.n_rows:
                break
            deepest = crossing
        return None if deepest is None else self(deepest)


def _fit_all(
    response: _Response,
    main: _Main,
    live: list[int],
    screened: list[ScreenedCrossing],
    kept: list[tuple[ScreenedCrossing, _Cells]],
    *,
    with_errors: bool,
) -> JointEffects:
    """Fit the groups and crossings that are kept."""
    rows = response.rows
    n_groups = len(rows.groups)
    effects = [np.zeros(n) for n in rows.n_levels]
    errors = [np.full(n, np.nan) for n in rows.n_levels]
    variances = np.zeros(n_groups)
    if not (live or kept):
        nothing = JointEffects.nothing(rows)
        chosen = tuple(replace(item, variance=0.0) for item in screened)
        return replace(nothing, noise=main.noise, screened=chosen, residuals=main.residuals)
    codes = [*(rows.groups[j] for j in live), *(cells.codes for _, cells in kept)]
    n_levels = [*(rows.n_levels[j] for j in live), *(len(cells.keys) for _, cells in kept)]
    first = np.array([*main.variances[live], *(item.variance / 2 for item, _ in kept)])
    design, fit = response.fit(codes, n_levels, (np.maximum(first, _LEAST_START * main.noise), main.noise))
    found = effect_errors(design, fit, seed=response.seed) if with_errors else fit.effects
    for number, group in enumerate(live):
        effects[group], errors[group] = fit.effects[number], found[number]
        variances[group] = fit.variances[number]
    cell_effects, by_crossing = [], {}
    for number, (item, cells) in enumerate(kept, start=len(live)):
        crossing = item.crossing
        by_crossing[crossing] = float(fit.variances[number])
        own = fit.effects[number]
        cell_effects.append(CellEffects(crossing.groups, crossing.covariates, cells.sizes, cells.keys, own))
    reported = tuple(
        replace(item, variance=by_crossing.get(item.crossing, 0.0), kept=item.crossing in by_crossing)
        for item in screened
    )
    return JointEffects(
        tuple(effects),
        tuple(cell_effects),
        variances,
        fit.noise,
        np.zeros(n_groups),
        reported,
        fit.residuals,
        tuple(errors) if with_errors else (),
    )


def _keys(digits: Sequence[Codes], sizes: Sequence[int]) -> Codes:
    """One number for each row, −1 if a digit is; (n,)."""
    keys = digits[0].astype(np.int64)
    unknown = keys < 0
    for digit, size in zip(digits[1:], sizes[1:], strict=True):
        keys = keys * size + digit
        unknown |= digit < 0
    return np.where(unknown, -1, keys)
