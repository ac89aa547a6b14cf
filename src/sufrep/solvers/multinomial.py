"""Multinomial logit with a ridge penalty, by L-BFGS with an approximate Hessian."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sufrep._arrays import blocks
from sufrep._threads import n_blas_threads, one_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sufrep._arrays import Array, Codes, Floats

_BLOCK = 2**18  # rows times levels of a block: one or two megabytes, which fit the cache of a core
_LARGE = 4_000_000  # rows times levels above which single precision is faster
# Iteration at which the curvature is recomputed. This saves up to two thirds of the iterations; at an earlier
# point the curvature is misleading.
_CURVATURE_AT = 20


@dataclass(frozen=True, slots=True, eq=False)
class MultinomialFit:
    """Coefficients of log P(G = g | x) up to a constant; all have mean 0 over the levels.

    Attributes
    ----------
    intercepts : ndarray of shape (n_levels,)
    slopes : ndarray of shape (n_levels, n_covariates)
        In the units of the rows given.
    objective : float
    n_iter : int
    converged : bool
        Whether the gradient met the tolerance, or came close to it before rounding stopped the descent.
    """

    intercepts: Floats
    slopes: Floats
    objective: float
    n_iter: int
    converged: bool


class RowBlocks(Protocol):
    """Rows (n, n_covariates) in double precision that need not be in memory: a slice of them is an array."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of covariates."""

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Double precision."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Floats: ...


def fit_multinomial(
    rows: Floats | RowBlocks,
    codes: Codes,
    n_levels: int,
    *,
    penalty: float = 1.0,
    scale: Floats | None = None,
    weights: Floats | None = None,
    tol: float | None = None,
    max_iter: int = 1000,
) -> MultinomialFit:
    """Minimise Σ_i w_i·(−log softmax_{g_i}(a + B x_i)) + penalty/2 · Σ_{g,j} (B_gj · scale_j)².

    If rows times levels exceed four million, most iterations are done on a copy of the rows in single
    precision. The last ones use the original rows and meet ``tol`` in double precision.

    Parameters
    ----------
    rows : ndarray or RowBlocks of shape (n, n_covariates)
    codes : ndarray of shape (n,)
        Level of each row, in [0, n_levels). Every level has at least one row.
    n_levels : int
    penalty : float
        Not negative. Intercepts are not penalised. At 0 there is no solution if the covariates separate the
        levels.
    scale : ndarray of shape (n_covariates,), optional
        Positive. The slopes penalised are those of covariates divided by ``scale``.
    weights : ndarray of shape (n,), optional
    tol : float, optional
        Stop when gᵀH⁻¹g, about twice the distance of the criterion from its minimum, is at most tol²·Σw.
        The default is 1e-10; after single precision 1e-5, which usually leaves less than 1e-8 of the
        criterion.
    max_iter : int
    """
    single = len(rows) * n_levels > _LARGE
    limit = (1e-5 if single else 1e-10) if tol is None else tol
    # Each product gets one thread, and the blocks of rows are shared among threads.
    n_threads = n_blas_threads()
    with one_thread(blas_only=True):
        weights = np.ones(len(rows)) if weights is None else weights
        scale = np.ones(rows.shape[1]) if scale is None else scale
        if not single:
            rows = rows[:]
        loss = _build_loss(rows, codes, n_levels, weights, scale, penalty, n_threads)
        descent = _LBFGS(loss)
        if single:
            descent.run(loss.in_single_precision(), max(limit, 1e-5), max_iter)
        converged = descent.run(loss, limit, max_iter)
    slopes = descent.point[:, :-1] @ loss.lift.T
    intercepts = descent.point[:, -1] - slopes @ loss.center
    return MultinomialFit(intercepts - intercepts.mean(), slopes, descent.value, descent.n_iter, converged)


def _build_loss(
    rows: Floats | RowBlocks,
    codes: Codes,
    n_levels: int,
    weights: Floats,
    scale: Floats,
    penalty: float,
    n_threads: int,
) -> _Loss:
    n, p = rows.shape
    center = np.sum([weights[part] @ rows[part] for part in _blocks(0, n, p)], axis=0) / weights.sum()
    variance, axes = _principal_axes(rows, center, scale, weights)
    if penalty == 0:
        # Slopes along axes without variance are not identified (test_collinear_covariates_without_a_penalty).
        kept = variance > 1e-13 * variance.max(initial=0.0)
        variance, axes = variance[kept], axes[:, kept]
    lift, sums = axes / scale[:, None], np.zeros((n_levels, p))
    for part in _blocks(0, n, p):
        weighted = (rows[part] - center) * weights[part, None]
        for j, values in enumerate(weighted.T):
            sums[:, j] += np.bincount(codes[part], values, n_levels)
    observed = np.column_stack([sums @ lift, np.bincount(codes, weights, n_levels)])
    return _Loss(rows, weights, center, lift, variance, observed, np.zeros(len(rows)), penalty, n_threads)


def _principal_axes(
    rows: Floats | RowBlocks, center: Floats, scale: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    """Variances (n_axes,) and axes (n_covariates, n_axes) of the principal components of the scaled rows."""
    n, p = rows.shape
    if p > n:
        root = np.sqrt(weights / weights.sum())[:, None]
        _, lengths, axes = np.linalg.svd(root * (rows[:] - center) / scale, full_matrices=False)
        return lengths**2, axes.T
    scatter = np.zeros((p, p))
    for part in _blocks(0, n, p):
        block = (rows[part] - center) / scale
        scatter += block.T @ (block * weights[part, None])
    variance, axes = np.linalg.eigh(scatter / weights.sum())
    return np.maximum(variance, 0.0), axes


def _blocks(begin: int, end: int, width: int) -> Iterator[slice]:
    return blocks(end, max(64, _BLOCK // max(width, 1)), begin)


@dataclass(frozen=True, slots=True, eq=False)
class _Loss:
    """The criterion in coordinates where covariates are uncorrelated and the penalty is a sum of squares.

    A point (n_levels, n_axes + 1) holds the slopes along the principal axes of the scaled rows and, in the
    last column, the intercepts at their center. The scores s = a + Bx of a row give the probabilities exp(s −
    L), L = log Σ exp(s). The L of the previous evaluation is subtracted from the scores before exp: it is
    part of the matrix product, prevents overflow as the usual maximum does, and saves two passes over rows
    times levels.
    """

    rows: Array | RowBlocks  # (n, n_columns); all large arrays have its precision
    weights: Floats  # (n,)
    center: Floats  # (n_columns,)
    lift: Floats  # (n_columns, n_axes): multiplied with centered rows, gives their coordinates on the axes
    variance: Floats  # (n_axes,)
    observed: Floats  # (n_levels, n_axes + 1): sums over the rows of a level and, last, its weight
    previous: Floats  # (n,): L of the previous evaluation
    penalty: float
    n_threads: int

    def in_single_precision(self) -> _Loss:
        """The same loss on a copy of the rows in single precision.

        The copy holds coordinates on the axes: columns that are far from zero or correlated would lose too
        many digits.
        """
        rows = np.empty((len(self.rows), len(self.variance)), np.float32)
        for part in _blocks(0, len(rows), rows.shape[1]):
            rows[part] = (self.rows[part] - self.center) @ self.lift
        return replace(self, rows=rows, center=np.zeros(rows.shape[1]), lift=np.eye(rows.shape[1]))

    def __call__(self, point: Floats) -> tuple[float, Floats]:
        """The criterion and its gradient (n_levels, n_axes + 1)."""

        def expected(part: slice, left: Array, powers: Array, sums: Array) -> Array:
            left *= (self.weights[part] / sums)[:, None]
            return left[:, :-1].T @ powers

        slopes, totals = point[:, :-1], self._sum(expected, point)
        value = self.weights @ self.previous - np.vdot(self.observed, point)
        gradient = np.column_stack([totals[:-1].T @ self.lift, totals[-1]]) - self.observed
        gradient[:, :-1] += self.penalty * slopes
        return float(value + self.penalty / 2 * np.vdot(slopes, slopes)), gradient

    def curvature(self, point: Floats) -> tuple[Floats, Floats, Floats]:
        """Curvature in the form of `_LBFGS`; the centers are means of the rows weighted by w p(1 − p)."""

        def moments(part: slice, left: Array, powers: Array, sums: Array) -> Array:
            powers /= sums[:, None]
            powers -= powers**2
            along = left[:, :-2] @ self.lift
            columns = np.column_stack([along**2, along, left[:, -2]]) * self.weights[part, None]
            return columns.T.astype(powers.dtype) @ powers

        totals, weight = self._sum(moments, point), self.observed[:, -1]
        squares, sums = np.split(totals[:-1], 2)
        intercepts = np.maximum(totals[-1], 0.01 * weight)
        slopes = np.maximum(squares - sums**2 / intercepts, 0.01 * np.outer(self.variance, weight))
        return (sums / intercepts).T, slopes.T + self.penalty, intercepts

    def _sum(self, task: Callable[..., Array], point: Floats) -> Floats:
        """Sum of a function over blocks of rows, in double precision; the blocks are shared among threads."""
        right = [self.lift @ point[:, :-1].T, point[:, -1:].T, np.ones((1, len(point)))]
        cast = np.vstack(right, dtype=self.rows.dtype, casting="same_kind")

        def work(begin: int, end: int) -> Floats:
            with np.errstate(all="ignore"):
                blocks = (self._block(part, cast) for part in _blocks(begin, end, max(cast.shape)))
                return sum((task(*block) for block in blocks), start=np.zeros(()))

        n_threads = min(self.n_threads, 1 + len(self.rows) * len(point) // (4 * _BLOCK))
        ends = [part * len(self.rows) // n_threads for part in range(n_threads + 1)]
        with ThreadPoolExecutor(n_threads) as pool:
            run = pool.map if n_threads > 1 else map
            return sum(run(work, ends[:-1], ends[1:]), start=np.zeros(()))

    def _block(self, part: slice, right: Array) -> tuple[slice, Array, Array, Array]:
        """Rows with columns 1 and −L appended; exp of the scores minus L; its sum over the levels."""
        left = np.empty((part.stop - part.start, len(right)), right.dtype)
        left[:, :-2], left[:, -2], left[:, -1] = self.rows[part] - self.center, 1.0, -self.previous[part]
        for _ in range(2):
            powers = left @ right
            sums = np.exp(powers, out=powers) @ right[-1]
            if sums.min() > 1e-15 and sums.max() < 1e15:
                break
            # The point is far from the previous one (test_a_point_far_away_does_not_overflow).
            left[:, -1] = -(left[:, :-1] @ right[:-1]).max(axis=1)
        self.previous[part] = np.log(sums) - left[:, -1]
        return part, left, powers, sums


class _LBFGS:
    """L-BFGS, started at zero slopes, which keeps its state when the precision changes.

    The initial Hessian treats levels and axes as independent. It consists of centers (n_levels, n_axes),
    second derivatives in the slopes (n_levels, n_axes), and in the intercepts at the centers (n_levels,). The
    center of a level is the mean of the rows weighted by their probability of the level; the overall mean
    instead would take twice as many steps.
    """

    def __init__(self, loss: _Loss) -> None:
        self.pairs: list[tuple[Floats, Floats]] = []
        self.n_iter, weight = 0, loss.observed[:, -1:]
        means = loss.observed[:, :-1] / weight
        self.curvature = means, weight * loss.variance + loss.penalty, weight[:, 0]
        self.point = np.column_stack([np.zeros(means.shape), np.log(weight / weight.sum())])

    def run(self, loss: _Loss, tol: float, max_iter: int) -> bool:
        """Iterate until the gradient meets the tolerance; return whether it does."""
        self.value, self.gradient = loss(self.point)
        limit = tol**2 * loss.weights.sum()
        while (left := np.vdot(self.gradient, self._solve(self.gradient))) > limit and self.n_iter < max_iter:
            if self.n_iter == _CURVATURE_AT:
                self.curvature = loss.curvature(self.point)
            if not self._step(loss, self._direction()):
                if not self.pairs:
                    return bool(left <= 1e6 * limit)
                self.pairs = []
        return bool(left <= limit)

    def _step(self, loss: _Loss, direction: Floats) -> bool:
        """Line search for a lower and flatter point; return whether one was found."""
        rounding = 8 * np.finfo(loss.rows.dtype).eps * np.vdot(np.abs(loss.observed), 1 + np.abs(self.point))
        slope = low_slope = float(np.vdot(self.gradient, direction))
        step, low, high, high_slope = 1.0, 0.0, np.inf, np.nan
        for _ in range(25):
            value, gradient = loss(self.point + step * direction)
            new_slope = float(np.vdot(gradient, direction)) if value <= self.value + rounding else np.nan
            if abs(new_slope) <= 0.9 * abs(slope):
                self.pairs = [*self.pairs[-9:], (step * direction, gradient - self.gradient)]
                self.point, self.value, self.gradient = self.point + step * direction, value, gradient
                self.n_iter += 1
                return True
            if new_slope < 0:
                low, low_slope = step, new_slope
            else:
                high, high_slope = step, new_slope
            # The zero of the slope by linear interpolation; max(0.1, nan) is 0.1.
            share = min(max(0.1, low_slope / (low_slope - high_slope)), 0.9)
            step = 3 * step if high == np.inf else low + (high - low) * share
        return False

    def _direction(self) -> Floats:
        """Descent direction of L-BFGS (two-loop recursion)."""
        direction, shares = -self.gradient, []
        for step, change in reversed(self.pairs):
            shares.append(np.vdot(step, direction) / np.vdot(step, change))
            direction -= shares[-1] * change
        direction = self._solve(direction)
        if self.pairs:
            step, change = self.pairs[-1]
            direction *= np.vdot(step, change) / np.vdot(change, self._solve(change))
        for (step, change), share in zip(self.pairs, reversed(shares), strict=True):
            direction += (share - np.vdot(change, direction) / np.vdot(step, change)) * step
        return direction

    def _solve(self, gradient: Floats) -> Floats:
        """Multiply by the inverse of the initial Hessian, on slopes that sum to zero over the levels."""
        # A change of the slopes that is the same in all levels changes no probability. If their sum could
        # leave zero, most steps would go into bringing it back
        # (test_ill_scaled_correlated_covariates_take_few_steps).
        center, curved, intercept_curved = self.curvature
        slopes = gradient[:, :-1] - gradient[:, -1:] * center
        slopes = (slopes - slopes.mean(axis=0)) / curved
        slopes -= slopes.mean(axis=0)
        intercepts = gradient[:, -1] / intercept_curved - (slopes * center).sum(axis=1)
        return np.column_stack([slopes, intercepts - intercepts.mean()])
