"""Multinomial logit with a ridge penalty, by L-BFGS from a good guess of the curvature."""

from __future__ import annotations

import math
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
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
_MEASURE_AT = 10


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

    Returns
    -------
    MultinomialFit
    """
    single = len(rows) * n_levels > _LARGE if single_precision is None else single_precision
    weights = np.ones(len(rows)) if weights is None else weights
    size = math.sqrt(weights.sum())
    limit = size * (tol or (_LOOSE if single else _TIGHT))
    with _one_thread_for_each_product() as n_threads:
        frame = _find_frame(rows, codes, weights, n_levels, penalty, scale)
        search = _Search(frame, penalty, start)
        if single:
            search.descend(_Loss.rotated(rows, frame, weights, penalty, n_threads), max(limit, size * _LOOSE), max_iter)
        loss = _Loss(rows, frame.centre, frame.lift, weights, frame.observed, penalty, n_threads)
        converged = search.descend(loss, limit, max_iter)
    slopes = search.point[:, :-1] @ frame.lift.T
    intercepts = search.point[:, -1] - slopes @ frame.centre
    return MultinomialFit(intercepts - intercepts.mean(), slopes, search.value, search.n_iter, converged)


@contextmanager
def _one_thread_for_each_product() -> Iterator[int]:
    """Keep BLAS to one thread, and tell how many it had, which now may work on a block each.

    A product of one block is too small to share: with two threads it takes up to a hundred times as long,
    when the second core is busy elsewhere.
    """
    blas = ThreadpoolController().select(user_api="blas")
    with blas.limit(limits=1):
        yield max([1, *(library["num_threads"] for library in blas.info())])


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """Coordinates in which covariates are uncorrelated, and the penalty is still a plain sum of squares.

    Parameters of a level are its slopes along the principal axes of all rows in units of ``scale``, and
    last its intercept at ``centre``; together (n_levels, n_axes + 1).
    """

    centre: Floats  # (n_covariates,)
    scale: Floats  # (n_covariates,)
    lift: Floats  # (n_covariates, n_axes): slopes along the axes times its transpose are those of covariates
    variance: Floats  # (n_axes,)
    observed: Floats  # (n_levels, n_axes + 1): sums over the rows of each level, and last its weight


def _find_frame(
    rows: Floats, codes: Codes, weights: Floats, n_levels: int, penalty: float, scale: Floats | None
) -> _Frame:
    centre = weights @ rows / weights.sum()
    if penalty == 0:
        # Units are free then: test_units_do_not_matter_without_a_penalty.
        scale = _spread(rows, centre, weights)
    elif scale is None:
        scale = np.ones(rows.shape[1])
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
    return _Frame(centre, scale, lift, variance, observed)


def _spread(rows: Floats, centre: Floats, weights: Floats) -> Floats:
    """Standard deviation of each covariate, and 1 for constants; (n_covariates,)."""
    columns = zip(rows.T, centre, strict=True)
    spread = np.sqrt([weights @ (column - middle) ** 2 / weights.sum() for column, middle in columns])
    return np.where(spread > 1e-14 * np.abs(centre), spread, 1.0)


def _principal_axes(rows: Floats, centre: Floats, scale: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Variances (n_axes,) of the rows in units of ``scale``, along orthonormal axes (n_covariates, n_axes)."""
    n, p = rows.shape
    if p > n:
        root = np.sqrt(weights / weights.sum())[:, None]
        _, lengths, axes = np.linalg.svd(root * (rows - centre) / scale, full_matrices=False)
        return lengths**2, axes.T
    scatter = np.zeros((p, p))
    for part in _slices(0, n, _BLOCK // (p or 1)):
        block = (rows[part] - centre) / scale
        scatter += block.T @ (block * weights[part, None])
    variance, axes = np.linalg.eigh(scatter / weights.sum())
    return np.maximum(variance, 0.0), axes


def _slices(begin: int, end: int, size: int) -> Iterator[slice]:
    return (slice(low, min(low + size, end)) for low in range(begin, end, size))


@dataclass(frozen=True, slots=True, eq=False)
class _Curvature:
    """Second derivatives of the criterion, were levels independent and axes too.

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

    def __init__(
        self,
        source: Array,  # (n, n_columns): the rows; their precision is that of all large arrays
        centre: Floats,  # (n_columns,)
        lift: Floats,  # (n_columns, n_axes)
        weights: Floats,  # (n,)
        observed: Floats,
        penalty: float,
        n_threads: int,
    ) -> None:
        self.source, self.centre, self.lift, self.weights = source, centre, lift, weights
        self.observed, self.penalty, self.n_threads = observed, penalty, n_threads
        self.before = np.zeros(len(source))
        # By how much rounding can raise the criterion where it is level.
        self.noise = 16 * float(np.finfo(source.dtype).eps)

    @classmethod
    def rotated(cls, rows: Floats, frame: _Frame, weights: Floats, penalty: float, n_threads: int) -> _Loss:
        """In single precision, which needs covariates that are centred and uncorrelated beforehand."""
        n_axes = frame.lift.shape[1]
        source = np.empty((len(rows), n_axes), np.float32)
        for part in _slices(0, len(rows), _BLOCK // (n_axes or 1)):
            source[part] = (rows[part] - frame.centre) @ frame.lift
        return cls(source, np.zeros(n_axes), np.eye(n_axes), weights, frame.observed, penalty, n_threads)

    def __call__(self, point: Floats) -> tuple[float, Floats]:
        """Criterion and its gradient (n_levels, n_axes + 1)."""

        def expect(part: slice, left: Array, powers: Array, sums: Array) -> Array:
            left *= (self.weights[part] / sums)[:, None]
            return left[:, :-1].T @ powers

        slopes, totals = point[:, :-1], self._sum(expect, point)
        value = self.weights @ self.before - np.vdot(self.observed, point)
        gradient = np.column_stack([totals[:-1].T @ self.lift, totals[-1]]) - self.observed
        gradient[:, :-1] += self.penalty * slopes
        return float(value + self.penalty / 2 * np.vdot(slopes, slopes)), gradient

    def curvature(self, point: Floats) -> _Curvature:
        """The curvature at a point, whose probabilities are known; a quarter more work than a gradient."""

        def spread(part: slice, left: Array, powers: Array, sums: Array) -> Array:
            powers /= sums[:, None]
            powers *= 1 - powers
            along = left[:, :-2] @ self.lift
            columns = np.column_stack([along**2, along, np.ones(len(along))]) * self.weights[part, None]
            return columns.T.astype(powers.dtype) @ powers

        moments, weight = self._sum(spread, point), self.observed[:, -1]
        (squares, sums), intercepts = np.split(moments[:-1], 2), np.maximum(moments[-1], 1e-6 * weight)
        centre = sums / intercepts
        least = 1e-6 * squares.max(axis=1, initial=0.0)[:, None]
        return _Curvature(centre.T, np.maximum(squares - sums * centre, least).T + self.penalty, intercepts)

    def _sum(self, task: Callable[[slice, Array, Array, Array], Array], point: Floats) -> Floats:
        """Sum of a task over blocks of rows, in double precision."""
        n, block = len(self.source), max(64, _BLOCK // len(point))
        right = np.vstack([self.lift @ point[:, :-1].T, point[:, -1], np.ones(len(point))])

        def work(begin: int, end: int) -> Floats:
            return sum(task(*found) for found in self._blocks(right.astype(self.source.dtype), begin, end, block))
