"""Multinomial logit with a ridge penalty, by L-BFGS from a good guess of the curvature."""

from __future__ import annotations

import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sufrep._arrays import Array, Codes, Floats

_BLOCK = 2**18  # rows times levels of a block: one or two megabytes, which stay in the cache of a core
_LARGE = 4_000_000  # rows times levels from which single precision pays
_TIGHT, _LOOSE = 1e-10, 1e-5
_MEMORY = 10
# Small levels end up far apart, where curvature is not what it was at the start. Measuring it once, here,
# halves the steps then; earlier or more often gains less.
_MEASURED_AT = 10


@dataclass(frozen=True, slots=True, eq=False)
class MultinomialFit:
    """Coefficients of log P(G = g | x), up to a constant; both have mean 0 over the levels.

    Attributes
    ----------
    intercepts : ndarray of shape (n_levels,)
    slopes : ndarray of shape (n_levels, n_covariates)
        In the units of the rows given.
    objective : float
        The criterion at these coefficients.
    n_iter : int
        Iterations taken.
    converged : bool
        Whether the gradient became as small as asked, or as small as rounding lets it.
    """

    intercepts: Floats
    slopes: Floats
    objective: float
    n_iter: int
    converged: bool


def fit_multinomial(
    rows: Floats,
    codes: Codes,
    n_levels: int,
    *,
    penalty: float = 1.0,
    scale: Floats | None = None,
    weights: Floats | None = None,
    start: MultinomialFit | None = None,
    tol: float | None = None,
    max_iter: int = 1000,
    single_precision: bool | None = None,
) -> MultinomialFit:
    """Minimise Σ_i w_i·(−log softmax_{g_i}(a + B x_i)) + penalty/2 · Σ_{g,j} (B_gj · scale_j)².

    Parameters
    ----------
    rows : ndarray of shape (n, n_covariates)
        Finite covariates.
    codes : ndarray of shape (n,)
        Level of each row, in [0, n_levels). Every level has a row.
    n_levels : int
    penalty : float
        Not negative. Intercepts are free of it. At 0, levels that covariates set apart have no solution.
    scale : ndarray of shape (n_covariates,), optional
        Positive. The slopes penalised are those of covariates divided by ``scale``.
    weights : ndarray of shape (n,), optional
        Positive.
    start : MultinomialFit, optional
        Where to start, such as the fit for a penalty nearby.
    tol : float, optional
        Stop at a gradient g with gᵀH⁻¹g, about twice what the criterion can still fall, of at most tol²·Σw;
        H is the curvature by and large. By default 1e-10, which leaves some 1e-8 of error in coefficients;
        in single precision 1e-5, which leaves some 1e-8 of the criterion.
    max_iter : int
    single_precision : bool, optional
        Do most iterations on a copy of the rows in single precision. The last ones use the rows given, and
        ``tol`` is met in double precision. By default so when rows times levels are many.
    """
    single = len(rows) * n_levels > _LARGE if single_precision is None else single_precision
    weights = np.ones(len(rows)) if weights is None else weights
    limit = (_LOOSE if single else _TIGHT) if tol is None else tol
    with _one_thread_for_each_product() as n_threads:
        frame = _find_frame(rows, codes, weights, n_levels, penalty, scale)
        search = _Search(frame, penalty, start)
        if single:
            loss = _Loss(*_rotate(rows, frame), weights, penalty, n_threads)
            search.descend(loss, max(limit, _LOOSE), max_iter)
        converged = search.descend(_Loss(rows, frame, weights, penalty, n_threads), limit, max_iter)
    slopes = search.point[:, :-1] @ frame.lift.T
    intercepts = search.point[:, -1] - slopes @ frame.centre
    return MultinomialFit(intercepts - intercepts.mean(), slopes, search.value, search.n_iter, converged)


@contextmanager
def _one_thread_for_each_product() -> Iterator[int]:
    """Keep BLAS to one thread, and tell how many it had, which may work on a block each instead.

    A product of one block is too small to share: with two threads it takes up to a hundred times as long
    when the second core is busy elsewhere.
    """
    blas = ThreadpoolController().select(user_api="blas")
    n_threads = max([1, *(library["num_threads"] for library in blas.info())])
    with blas.limit(limits=1):
        yield n_threads


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """Coordinates in which covariates are uncorrelated, and the penalty is still a plain sum of squares.

    Parameters of a level are its slopes along the principal axes of all rows in units of ``scale``, and
    last its intercept at ``centre``; together (n_levels, n_axes + 1).
    """

    centre: Floats  # (n_covariates,)
    lift: Floats  # (n_covariates, n_axes): covariates less the centre, times this, are those along the axes
    variance: Floats  # (n_axes,)
    observed: Floats  # (n_levels, n_axes + 1): sums over the rows of each level, and last its weight


def _find_frame(
    rows: Floats, codes: Codes, weights: Floats, n_levels: int, penalty: float, scale: Floats | None
) -> _Frame:
    centre = weights @ rows / weights.sum()
    if penalty == 0:
        # Units are free then: test_units_do_not_matter_without_a_penalty.
        columns = zip(rows.T, centre, strict=True)
        spread = np.sqrt([weights @ (column - middle) ** 2 / weights.sum() for column, middle in columns])
        scale = np.where(spread > 1e-14 * np.abs(centre), spread, 1.0)
    scale = np.ones(rows.shape[1]) if scale is None else scale
    variance, axes = _principal_axes(rows, centre, scale, weights)
    if penalty == 0:
        # Nothing would hold slopes along which no row varies: test_collinear_covariates_without_a_penalty.
        kept = variance > 1e-12 * variance.max(initial=0.0)
        variance, axes = variance[kept], axes[:, kept]
    sums = np.empty((n_levels, rows.shape[1]))
    for j, middle in enumerate(centre):
        sums[:, j] = np.bincount(codes, weights * (rows[:, j] - middle), n_levels)
    lift = axes / scale[:, None]
    observed = np.column_stack([sums @ lift, np.bincount(codes, weights, n_levels)])
    return _Frame(centre, lift, variance, observed)


def _principal_axes(rows: Floats, centre: Floats, scale: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Variances (n_axes,) of the rows in units of ``scale``, along orthonormal axes (n_covariates, n_axes)."""
    n, p = rows.shape
    if p > n:
        root = np.sqrt(weights / weights.sum())[:, None]
        _, lengths, axes = np.linalg.svd(root * (rows - centre) / scale, full_matrices=False)
        return lengths**2, axes.T
    scatter = np.zeros((p, p))
    for part in _slices(0, n, p):
        block = (rows[part] - centre) / scale
        scatter += block.T @ (block * weights[part, None])
    variance, axes = np.linalg.eigh(scatter / weights.sum())
    return np.maximum(variance, 0.0), axes


def _rotate(rows: Floats, frame: _Frame) -> tuple[Array, _Frame]:
    """Covariates along the axes (n, n_axes): single precision bears neither far nor correlated ones."""
    n_axes = len(frame.variance)
    rotated = np.empty((len(rows), n_axes), np.float32)
    for part in _slices(0, len(rows), n_axes):
        rotated[part] = (rows[part] - frame.centre) @ frame.lift
    return rotated, replace(frame, centre=np.zeros(n_axes), lift=np.eye(n_axes))


def _slices(begin: int, end: int, width: int) -> Iterator[slice]:
    """Blocks of rows that have ``width`` entries each."""
    size = max(64, _BLOCK // max(width, 1))
    return (slice(low, min(low + size, end)) for low in range(begin, end, size))


@dataclass(frozen=True, slots=True, eq=False)
class _Curvature:
    """Second derivatives of the criterion, as if levels were independent and axes too.

    Rows weighted by their probability of a level have a mean of their own. Only about it are intercept
    and slopes of the level independent; about the mean of all rows, the search takes twice as many steps.
    """

    centre: Floats  # (n_levels, n_axes)
    slopes: Floats  # (n_levels, n_axes)
    intercepts: Floats  # (n_levels,)

    def solve(self, gradient: Floats) -> Floats:
        """Divide by the curvature, among slopes that sum to zero over the levels; (n_levels, n_axes + 1).

        Slopes that change alike in all levels change no probability, and only the penalty holds them, at
        zero. Were they free to move, bringing them back would take most of the steps.
        """
        slopes = gradient[:, :-1] - gradient[:, -1:] * self.centre
        slopes = (slopes - slopes.mean(axis=0)) / self.slopes
        slopes -= slopes.mean(axis=0)
        intercepts = gradient[:, -1] / self.intercepts - (slopes * self.centre).sum(axis=1)
        return np.column_stack([slopes, intercepts])


class _Loss:
    """The criterion as a function of parameters (n_levels, n_axes + 1).

    Row i has scores s = a + Bx and probabilities exp(s − L_i), L_i = log Σ exp(s). Scores are computed less
    the L_i of the evaluation before, which comes free with the product. That keeps exp from overflow as the
    usual maximum does, and saves two passes over rows times levels.
    """

    def __init__(self, rows: Array, frame: _Frame, weights: Floats, penalty: float, n_threads: int) -> None:
        self.rows, self.frame, self.weights, self.penalty = rows, frame, weights, penalty
        self.n_threads, self.before = n_threads, np.zeros(len(rows))
        self.rounding = 16 * float(np.finfo(rows.dtype).eps)

    def __call__(self, point: Floats) -> tuple[float, Floats]:
        """Criterion and its gradient (n_levels, n_axes + 1)."""

        def expected(part: slice, left: Array, powers: Array, sums: Array) -> Array:
            left *= (self.weights[part] / sums)[:, None]
            return left[:, :-1].T @ powers

        slopes, totals, observed = point[:, :-1], self._sum(expected, point), self.frame.observed
        value = self.weights @ self.before - np.vdot(observed, point)
        gradient = np.column_stack([totals[:-1].T @ self.frame.lift, totals[-1]]) - observed
        gradient[:, :-1] += self.penalty * slopes
        return float(value + self.penalty / 2 * np.vdot(slopes, slopes)), gradient

    def curvature(self, point: Floats) -> _Curvature:
        """Σ w p(1 − p) (x − centre)² of each level; it costs little more than a gradient."""

        def moments(part: slice, left: Array, powers: Array, sums: Array) -> Array:
            powers /= sums[:, None]
            powers *= 1 - powers
            along = left[:, :-2] @ self.frame.lift
            columns = np.column_stack([along**2, along, np.ones(len(along))]) * self.weights[part, None]
            return columns.T.astype(powers.dtype) @ powers

        totals, weight = self._sum(moments, point), self.frame.observed[:, -1]
        squares, sums = np.split(totals[:-1], 2)
        intercepts = np.maximum(totals[-1], 1e-6 * weight)
        slopes = np.maximum(squares - sums**2 / intercepts, 1e-6 * np.outer(self.frame.variance, weight))
        return _Curvature((sums / intercepts).T, slopes.T + self.penalty, intercepts)

    def _sum(self, task: Callable[..., Array], point: Floats) -> Floats:
        """Sum of a task over all blocks, in double precision; threads share the rows."""
        right = np.vstack([self.frame.lift @ point[:, :-1].T, point[:, -1], np.ones(len(point))])

        def work(begin: int, end: int) -> Floats:
            with np.errstate(all="ignore"):
                blocks = self._blocks(right.astype(self.rows.dtype), begin, end)
                return sum((task(*block) for block in blocks), start=np.zeros(()))

        n_threads = min(self.n_threads, 1 + self.rows.shape[0] * len(point) // (2 * _BLOCK))
        ends = [part * len(self.rows) // n_threads for part in range(n_threads + 1)]
        with ThreadPoolExecutor(n_threads) as pool:
            return sum(pool.map(work, ends[:-1], ends[1:]), start=np.zeros(()))

    def _blocks(self, right: Array, begin: int, end: int) -> Iterator[tuple[slice, Array, Array, Array]]:
        """Rows, their covariates beside ones and −L before, exp of scores less that, and its sums."""
        parts, ones = list(_slices(begin, end, right.shape[1])), right[-1]
        lefts = np.ones((parts[0].stop - begin, len(right)), right.dtype)
        buffer = np.empty((len(lefts), right.shape[1]), right.dtype)
        for part in parts:
            left, powers = lefts[: part.stop - part.start], buffer[: part.stop - part.start]
            left[:, :-2] = self.rows[part] - self.frame.centre
            left[:, -2], left[:, -1] = 1.0, -self.before[part]
            sums = np.exp(np.matmul(left, right, out=powers), out=powers) @ ones
            if not (sums.min() > 1e-15 and sums.max() < 1e15):
                # The point is far from the last one: test_a_start_far_away_overflows_nothing.
                left[:, -1] = -np.matmul(left[:, :-1], right[:-1], out=powers).max(axis=1)
                sums = np.exp(np.matmul(left, right, out=powers), out=powers) @ ones
            self.before[part] = np.log(sums) - left[:, -1]
            yield part, left, powers, sums


class _Search:
    """L-BFGS, which starts without slopes and keeps what it learnt when the precision changes."""

    def __init__(self, frame: _Frame, penalty: float, start: MultinomialFit | None) -> None:
        weight = frame.observed[:, -1:]
        means = frame.observed[:, :-1] / weight
        self.curvature = _Curvature(means, weight * frame.variance + penalty, weight[:, 0])
        self.point = np.column_stack([np.zeros(means.shape), np.log(weight / weight.sum())])
        if start is not None:
            slopes = start.slopes - start.slopes.mean(axis=0)
            intercepts = start.intercepts + slopes @ frame.centre
            self.point = np.column_stack([slopes @ np.linalg.pinv(frame.lift).T, intercepts])
        self.value, self.n_iter = math.inf, 0
        self.pairs: deque[tuple[Floats, Floats]] = deque(maxlen=_MEMORY)

    def descend(self, loss: _Loss, tol: float, max_iter: int) -> bool:
        """Go where the gradient is small; whether it became so."""
        self.value, gradient = loss(self.point)
        while True:
            distance = math.sqrt(np.vdot(gradient, self.curvature.solve(gradient)) / loss.weights.sum())
            if distance <= tol or self.n_iter >= max_iter:
                return bool(distance <= tol)
            if self.n_iter == _MEASURED_AT:
                self.curvature = loss.curvature(self.point)
            direction = self._direction(gradient)
            found = _line_search(loss, self.point, direction, self.value, gradient)
            if found is None:
                return bool(distance <= 1e3 * tol)
            step, self.value, ahead = found
            self.pairs.append((step * direction, ahead - gradient))
            self.point, gradient = self.point + step * direction, ahead
            self.n_iter += 1

    def _direction(self, gradient: Floats) -> Floats:
        """Minus the gradient times the inverse Hessian that the last steps suggest."""
        direction, shares = -gradient, []
        for step, change in reversed(self.pairs):
            shares.append(np.vdot(step, direction) / np.vdot(step, change))
            direction -= shares[-1] * change
        direction = self.curvature.solve(direction)
        if self.pairs:
            step, change = self.pairs[-1]
            direction *= np.vdot(step, change) / np.vdot(change, self.curvature.solve(change))
        for (step, change), share in zip(self.pairs, reversed(shares), strict=True):
            direction += (share - np.vdot(change, direction) / np.vdot(step, change)) * step
        return direction


def _line_search(
    loss: _Loss, point: Floats, direction: Floats, value: float, gradient: Floats
) -> tuple[float, float, Floats] | None:
    """Step, criterion and gradient where the criterion is no higher and less steep, if rounding lets it."""
    slope = low_slope = np.vdot(gradient, direction)
    highest = value + loss.rounding * (abs(value) + loss.weights.sum())
    step, low, high = 1.0, 0.0, math.inf
    for _ in range(25):
        there, ahead = loss(point + step * direction)
        new_slope = np.vdot(ahead, direction)
        if there <= highest and abs(new_slope) <= 0.9 * abs(slope):
            return step, there, ahead
        if there <= highest and new_slope < 0:
            low, low_slope = step, new_slope
        else:
            high, high_slope = step, new_slope
        if math.isinf(high):
            step *= 3
        else:
            # Where the slope would be zero if it were linear. Values that are no numbers give the 0.1.
            share = low_slope / (low_slope - high_slope)
            step = low + (high - low) * min(max(0.1, share), 0.9)
    return None
