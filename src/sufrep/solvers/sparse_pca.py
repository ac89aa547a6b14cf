"""Sparse principal components: the elastic-net criterion of Zou, Hastie and Tibshirani (2006, eq. 3.12)."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sufrep.solvers.low_rank import column_signs

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Pulls the Procrustes solution towards the rotation before it, by as little as stands above rounding: where
# columns of zeros leave part of the rotation free, that part then stays instead of being whatever LAPACK
# returns. test_permuting_the_covariates_permutes_the_loadings guards this.
_ANCHOR = 1e-10
_N_SHRINKS = 5
_MEMORY = 10
_SHORTEST_PAUSE, _LONGEST_PAUSE = 4, 64


@dataclass(frozen=True, slots=True, eq=False)
class SparsePCA:
    """A stationary point of the criterion.

    Attributes
    ----------
    loadings : ndarray of shape (n_covariates, n_components)
        The sparse B. Level means times B are the scores, the representation of the levels.
    rotation : ndarray of shape (n_covariates, n_components)
        The orthonormal A that predicts the means from their scores.
    objective : ndarray of shape (n_iter + 1,)
        The criterion at the start and after every iteration. It never rises.
    n_iter : int
        Iterations taken.
    converged : bool
        Whether the last step changed no loading by more than the tolerance.
    """

    loadings: NDArray[np.float64]
    rotation: NDArray[np.float64]
    objective: NDArray[np.float64]
    n_iter: int
    converged: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """The Gram matrix, the penalties in its units, and the largest eigenvalue of the two quadratic terms."""

    gram: NDArray[np.float64]
    ridge: float
    penalty: float
    curvature: float


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """One pair of rotation and loadings, (n_covariates, n_components) each, and the criterion there."""

    rotation: NDArray[np.float64]
    loadings: NDArray[np.float64]
    value: float

    def stacked(self) -> NDArray[np.float64]:
        return np.vstack([self.rotation, self.loadings])


def largest_penalty(gram: NDArray[np.float64]) -> float:
    """Smallest L1 penalty for which no loading but zero is optimal, whatever the rotation.

    At B = 0 the gradient of the smooth part is -2GA, and B = 0 is optimal when no entry of it exceeds the
    penalty; over unit vectors a, the largest |G_i a| is the norm of the row G_i.

    Parameters
    ----------
    gram : ndarray of shape (n_covariates, n_covariates)

    Returns
    -------
    float
    """
    # The last factor covers the rounding of G_i a, so that the bound zeroes all.
    # test_alpha_of_one_sets_every_loading_to_zero guards it.
    return float(2 * np.linalg.norm(gram, axis=1).max() * (1 + 1e-12))


def sparse_pca(
    gram: NDArray[np.float64],
    n_components: int,
    *,
    alpha: float,
    ridge: float = 1e-3,
    tol: float = 1e-6,
    max_iter: int = 2000,
) -> SparsePCA:
    """Sparse principal components of level means Ω (n_levels rows), from G = ΩᵀΩ / n_levels alone.

    Minimises over loadings B and orthonormal A, from the principal components on,

        tr G - 2 tr AᵀGB + tr Bᵀ(G + ridge·I)B + penalty·Σ|B|,

    which is the mean over levels of ‖ω_g - ABᵀω_g‖² with both penalties added. A step is a few proximal
    gradient steps for B and a Procrustes rotation for A. It starts from where the last ones seem to lead, or,
    if that lowers nothing, from the point reached. The criterion is not convex: the result is a stationary
    point, with PCA as its start.

    Parameters
    ----------
    gram : ndarray of shape (n_covariates, n_covariates)
        Positive semi-definite. It is not centred here.
    n_components : int
        At most n_covariates.
    alpha : float
        L1 penalty as a share of :func:`largest_penalty`, so free of units: 0 is PCA, 1 sets all to zero.
    ridge : float
        Ridge penalty as a share of the mean of the diagonal of ``gram``, so free of units too.
    tol : float
        Stop once a step changes no loading by more. Loadings are of order 1, and the slope of the criterion
        is then zero to within about ``tol`` times the largest penalty.
    max_iter : int
        Iterations at most.

    Returns
    -------
    SparsePCA
        The largest loading of each column is positive; a column of zeros takes its sign from the rotation.
        Components stand in the order of the principal components they started from.
    """
    scale = float(np.trace(gram)) / len(gram) or 1.0
    problem = _scaled_problem(gram / scale, alpha, ridge)
    found, values, converged = _descend(problem, _principal_components(problem, n_components), tol, max_iter)
    signs = column_signs(np.where(found.loadings.any(axis=0), found.loadings, found.rotation))
    return SparsePCA(
        loadings=found.loadings * signs + 0.0,  # no zeros with a minus sign
        rotation=found.rotation * signs,
        objective=scale * np.array(values),
        n_iter=len(values) - 1,
        converged=converged,
    )


def _scaled_problem(gram: NDArray[np.float64], alpha: float, ridge: float) -> _Problem:
    """Turn the shares ``alpha`` and ``ridge`` into penalties, for a Gram matrix with a mean diagonal of 1."""
    curvature = float(np.linalg.norm(gram, ord=2)) + ridge or 1.0
    return _Problem(gram, ridge, alpha * largest_penalty(gram), curvature)


def _descend(problem: _Problem, start: _Point, tol: float, max_iter: int) -> tuple[_Point, list[float], bool]:
    """Lower the criterion from ``start``; the last point, the value after each step, whether it converged."""
    point, values, guesses = start, [start.value], _Guesses(start)
    for _ in range(max_iter):
        rotation, loadings = guesses.take()
        step = _alternate(problem, rotation, loadings)
        # A guess that lowers nothing is dropped for a more careful one, so the criterion never rises. The
        # last of them is the point itself, from which a step can rise by rounding alone.
        if step.value < point.value or guesses.exhausted:
            guesses.renew(point, step)
            point = step
            if np.abs(step.loadings - loadings).max() <= tol:
                return point, [*values, point.value], True
        values.append(point.value)
    return point, values, False


def _alternate(problem: _Problem, rotation: NDArray[np.float64], loadings: NDArray[np.float64]) -> _Point:
    """A few proximal gradient steps for the loadings, then the best rotation for them.

    Coordinate descent would go further in each round, but takes it row by row: at 20 covariates the same
    time buys ten rounds of these, which moreover do not depend on the order of the covariates.
    """
    for _ in range(_N_SHRINKS):
        downhill = problem.gram @ (rotation - loadings) - problem.ridge * loadings
        loadings = _soft_threshold(
            loadings + downhill / problem.curvature, problem.penalty / (2 * problem.curvature)
        )
    fitted = problem.gram @ loadings
    return _point(problem, _nearest_rotation(fitted + _ANCHOR * rotation), loadings, fitted)


def _soft_threshold(matrix: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """Move every entry towards zero by ``threshold``, and no further."""
    return np.copysign(np.maximum(np.abs(matrix) - threshold, 0.0), matrix)


class _Guesses:
    """Where to step from next: the boldest guess first, the point itself last.

    Plain steps need thousands where these need tens or hundreds. Momentum (Nesterov's, started afresh when
    it fails) is best while loadings still enter and leave. Once the nonzero ones have settled, a step is a
    smooth map, and Anderson's mixing of the last few solves for its fixed point; when it fails it pauses,
    each time for longer. Arrays hold the rotation over the loadings, (2 * n_covariates, n_components).
    """

    def __init__(self, start: _Point) -> None:
        self._taken = start.stacked()
        self._plans = [self._taken]
        self._ends: deque[NDArray[np.float64]] = deque(maxlen=_MEMORY)
        self._moves: deque[NDArray[np.float64]] = deque(maxlen=_MEMORY)
        self._momentum = 1.0
        self._mixes = False
        self._wait = self._pause = _SHORTEST_PAUSE

    @property
    def exhausted(self) -> bool:
        """Whether the guess taken last was the point itself."""
        return not self._plans

    def take(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rotation and loadings of the boldest guess left."""
        self._taken = self._plans.pop()
        rotation, loadings = np.vsplit(self._taken, 2)
        return rotation if self.exhausted else _nearest_rotation(rotation), loadings

    def renew(self, before: _Point, after: _Point) -> None:
        """Make new guesses, once the step from the last one taken is accepted."""
        self._learn(mixing_failed=self._mixes and len(self._plans) < 2)
        end = after.stacked()
        self._remember(end)
        grown = (1 + math.sqrt(1 + 4 * self._momentum**2)) / 2
        ahead = end + (self._momentum - 1) / grown * (end - before.stacked())
        self._momentum = grown
        self._mixes = self._wait <= 0 and len(self._moves) >= 3
        self._plans = [end, ahead, self._mixed()] if self._mixes else [end, ahead]

    def _learn(self, *, mixing_failed: bool) -> None:
        if mixing_failed:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            self._wait = self._pause
        elif self._mixes:
            self._pause = _SHORTEST_PAUSE
        self._wait -= 1
        if self.exhausted or (self._mixes and not mixing_failed):
            self._momentum = 1.0

    def _remember(self, end: NDArray[np.float64]) -> None:
        if self._ends and not np.array_equal(end != 0, self._ends[-1] != 0):
            self._ends.clear()
            self._moves.clear()
        self._ends.append(end)
        self._moves.append(end - self._taken)

    def _mixed(self) -> NDArray[np.float64]:
        ends, moves = np.array(self._ends), np.array(self._moves)
        turns = np.diff(moves, axis=0).reshape(len(moves) - 1, -1)
        # Nearly parallel turns would be mixed with huge weights, hence the cut-off.
        weights: NDArray[np.float64] = np.linalg.lstsq(turns.T, moves[-1].ravel(), rcond=1e-5)[0]
        mixed: NDArray[np.float64] = ends[-1] - np.tensordot(weights, np.diff(ends, axis=0), axes=1)
        return mixed


def _principal_components(problem: _Problem, n_components: int) -> _Point:
    """The solution without L1 penalty: eigenvectors, and as loadings eigenvectors shrunk by the ridge."""
    variance, vectors = np.linalg.eigh(problem.gram)
    variance, rotation = variance[: -n_components - 1 : -1], vectors[:, : -n_components - 1 : -1]
    rounding = len(problem.gram) * np.finfo(np.float64).eps * variance[0]
    kept = variance > rounding
    shrinkage = np.where(kept, variance, 0.0) / np.where(kept, variance + problem.ridge, 1.0)
    loadings = rotation * shrinkage
    loadings[np.diagonal(problem.gram) == 0] = 0.0
    return _point(problem, rotation, loadings, problem.gram @ loadings)


def _point(
    problem: _Problem,
    rotation: NDArray[np.float64],
    loadings: NDArray[np.float64],
    fitted: NDArray[np.float64],
) -> _Point:
    """Evaluate the criterion; ``fitted`` is the Gram matrix times the loadings."""
    value = (
        np.trace(problem.gram)
        + ((loadings - 2 * rotation) * fitted).sum()
        + problem.ridge * (loadings**2).sum()
        + problem.penalty * np.abs(loadings).sum()
    )
    return _Point(rotation, loadings, float(value))


def _nearest_rotation(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Orthonormal A that maximises tr AᵀM (orthogonal Procrustes)."""
    left, _, right_t = np.linalg.svd(matrix, full_matrices=False)
    nearest: NDArray[np.float64] = left @ right_t
    return nearest
