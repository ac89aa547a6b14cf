"""Sparse principal components by the elastic-net criterion of Zou, Hastie and Tibshirani (2006, eq. 3.12)."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sufrep.solvers.low_rank import column_signs

if TYPE_CHECKING:
    from sufrep._arrays import Floats

# Pulls the Procrustes solution towards the previous rotation, by just more than rounding error. Where columns
# of zeros leave part of the rotation undetermined, that part then stays as it is instead of being whatever
# LAPACK returns (test_permuting_the_covariates_permutes_the_loadings).
_ANCHOR = 1e-10
_N_PROXIMAL_STEPS = 5
_MEMORY = 10  # iterates that Anderson acceleration combines
_SHORTEST_PAUSE, _LONGEST_PAUSE = 4, 64  # iterations without it after a failure


@dataclass(frozen=True, slots=True, eq=False)
class SparsePCA:
    """A stationary point of the criterion.

    Attributes
    ----------
    loadings : ndarray of shape (n_covariates, n_components)
        The sparse B. The level means times B are the scores that represent the levels.
    rotation : ndarray of shape (n_covariates, n_components)
        The orthonormal A that predicts the level means from their scores.
    objective : ndarray of shape (n_iter + 1,)
        The criterion at the start and after each iteration. It never rises.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the last step changed no loading by more than the tolerance.
    """

    loadings: Floats
    rotation: Floats
    objective: Floats
    n_iter: int
    converged: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Criterion:
    """The Gram matrix, the penalties in its units, and the largest eigenvalue of the quadratic terms."""

    gram: Floats
    ridge: float
    penalty: float
    curvature: float


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """A rotation and loadings, (n_covariates, n_components) each, and the value of the criterion there."""

    rotation: Floats
    loadings: Floats
    value: float

    def stacked(self) -> Floats:
        return np.vstack([self.rotation, self.loadings])


def largest_penalty(gram: Floats) -> float:
    """Smallest L1 penalty for which zero loadings are optimal with any rotation.

    At B = 0 the gradient of the smooth part is -2GA, and B = 0 is optimal if no entry of it exceeds the
    penalty. Over unit vectors a, the largest |G_i a| is the norm of the row G_i.

    Parameters
    ----------
    gram : ndarray of shape (n_covariates, n_covariates)

    Returns
    -------
    float
    """
    # The last factor allows for rounding in G_i a (test_alpha_of_one_sets_every_loading_to_zero).
    return float(2 * np.linalg.norm(gram, axis=1).max() * (1 + 1e-12))


def sparse_pca(
    gram: Floats,
    n_components: int,
    *,
    alpha: float,
    ridge: float = 1e-3,
    tol: float = 1e-6,
    max_iter: int = 2000,
) -> SparsePCA:
    """Sparse principal components of the level means Ω (n_levels rows), from G = ΩᵀΩ / n_levels alone.

    Minimises over loadings B and orthonormal A

        tr G - 2 tr AᵀGB + tr Bᵀ(G + ridge·I)B + penalty·Σ|B|,

    which is the mean over levels of ‖ω_g - ABᵀω_g‖² plus both penalties. An iteration is a few proximal
    gradient steps for B and a Procrustes rotation for A, from a point extrapolated from the previous
    iterations or, if that does not lower the criterion, from the current point. The criterion is not convex:
    the result is the stationary point reached from the principal components.

    Parameters
    ----------
    gram : ndarray of shape (n_covariates, n_covariates)
        Positive semi-definite. It is not centered here.
    n_components : int
        At most n_covariates.
    alpha : float
        L1 penalty relative to :func:`largest_penalty`: 0 is PCA, 1 sets all loadings to zero.
    ridge : float
        Ridge penalty relative to the mean of the diagonal of ``gram``.
    tol : float
        Stop once a step changes no loading, which are of order 1, by more than this. The gradient of the
        criterion is then zero to within about ``tol`` times the largest penalty.
    max_iter : int
        Most iterations.

    Returns
    -------
    SparsePCA
        The largest loading of each column is positive; a column of zeros takes its sign from the rotation.
        Components are in the order of the principal components that they started from.
    """
    scale = float(np.trace(gram)) / len(gram) or 1.0
    criterion = _scaled_criterion(gram / scale, alpha, ridge)
    start = _principal_components(criterion, n_components)
    found, values, converged = _minimise(criterion, start, tol, max_iter)
    signs = column_signs(np.where(found.loadings.any(axis=0), found.loadings, found.rotation))
    return SparsePCA(
        loadings=found.loadings * signs + 0.0,  # turns -0.0 into 0.0
        rotation=found.rotation * signs,
        objective=scale * np.array(values),
        n_iter=len(values) - 1,
        converged=converged,
    )


def _scaled_criterion(gram: Floats, alpha: float, ridge: float) -> _Criterion:
    """The criterion with absolute penalties, for a Gram matrix with a mean diagonal of 1."""
    curvature = float(np.linalg.norm(gram, ord=2)) + ridge or 1.0
    return _Criterion(gram, ridge, alpha * largest_penalty(gram), curvature)


def _minimise(
    criterion: _Criterion, start: _Point, tol: float, max_iter: int
) -> tuple[_Point, list[float], bool]:
    """Return the last point, the value after each iteration, and whether it converged."""
    point, values, proposals = start, [start.value], _Proposals(start)
    for _ in range(max_iter):
        rotation, loadings = proposals.take()
        step = _alternate(criterion, rotation, loadings)
        # A proposal that does not lower the criterion is replaced by a more cautious one, so the criterion
        # never rises. The last proposal is the current point, from which a step can rise only by rounding.
        if step.value < point.value or proposals.exhausted:
            proposals.renew(point, step)
            point = step
            if np.abs(step.loadings - loadings).max() <= tol:
                return point, [*values, point.value], True
        values.append(point.value)
    return point, values, False


def _alternate(criterion: _Criterion, rotation: Floats, loadings: Floats) -> _Point:
    """A few proximal gradient steps for the loadings, then the best rotation for them.

    A round of coordinate descent would get further but goes row by row: with 20 covariates it takes as long
    as ten rounds of these steps, which moreover do not depend on the order of the covariates.
    """
    for _ in range(_N_PROXIMAL_STEPS):
        descent = criterion.gram @ (rotation - loadings) - criterion.ridge * loadings
        loadings = _soft_threshold(
            loadings + descent / criterion.curvature, criterion.penalty / (2 * criterion.curvature)
        )
    fitted = criterion.gram @ loadings
    return _point(criterion, _nearest_rotation(fitted + _ANCHOR * rotation), loadings, fitted)


def _soft_threshold(matrix: Floats, threshold: float) -> Floats:
    """Shrink each entry towards zero by ``threshold``, and set it to zero if it is smaller."""
    return np.copysign(np.maximum(np.abs(matrix) - threshold, 0.0), matrix)


class _Proposals:
    """Points to step from next: the boldest extrapolation first, the current point last.

    Plain steps would need thousands of iterations instead of tens or hundreds. Nesterov momentum, restarted
    when it fails, is best while the set of nonzero loadings still changes. Once it is fixed, a step is a
    smooth map, and Anderson acceleration finds its fixed point from the last few iterates. Each time it
    fails, it pauses for longer. Arrays hold the rotation above the loadings, (2 * n_covariates,
    n_components).
    """

    def __init__(self, start: _Point) -> None:
        self._taken = start.stacked()
        self._remaining = [self._taken]
        self._ends: deque[Floats] = deque(maxlen=_MEMORY)
        self._moves: deque[Floats] = deque(maxlen=_MEMORY)
        self._momentum = 1.0
        self._accelerates = False
        self._wait = self._pause = _SHORTEST_PAUSE

    @property
    def exhausted(self) -> bool:
        """Whether the last proposal taken was the current point."""
        return not self._remaining

    def take(self) -> tuple[Floats, Floats]:
        """Rotation and loadings of the boldest remaining proposal."""
        self._taken = self._remaining.pop()
        rotation, loadings = np.vsplit(self._taken, 2)
        return rotation if self.exhausted else _nearest_rotation(rotation), loadings

    def renew(self, before: _Point, after: _Point) -> None:
        """Make new proposals after the step from the last one taken was accepted."""
        self._adapt(acceleration_failed=self._accelerates and len(self._remaining) < 2)
        end = after.stacked()
        self._remember(end)
        grown = (1 + math.sqrt(1 + 4 * self._momentum**2)) / 2
        ahead = end + (self._momentum - 1) / grown * (end - before.stacked())
        self._momentum = grown
        self._accelerates = self._wait <= 0 and len(self._moves) >= 3
        self._remaining = [end, ahead, self._anderson()] if self._accelerates else [end, ahead]

    def _adapt(self, *, acceleration_failed: bool) -> None:
        if acceleration_failed:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            self._wait = self._pause
        elif self._accelerates:
            self._pause = _SHORTEST_PAUSE
        self._wait -= 1
        if self.exhausted or (self._accelerates and not acceleration_failed):
            self._momentum = 1.0

    def _remember(self, end: Floats) -> None:
        if self._ends and not np.array_equal(end != 0, self._ends[-1] != 0):
            self._ends.clear()
            self._moves.clear()
        self._ends.append(end)
        self._moves.append(end - self._taken)

    def _anderson(self) -> Floats:
        ends, moves = np.array(self._ends), np.array(self._moves)
        changes = np.diff(moves, axis=0).reshape(len(moves) - 1, -1)
        # Without the cut-off, nearly parallel changes would get huge weights.
        weights: Floats = np.linalg.lstsq(changes.T, moves[-1].ravel(), rcond=1e-5)[0]
        fixed_point: Floats = ends[-1] - np.tensordot(weights, np.diff(ends, axis=0), axes=1)
        return fixed_point


def _principal_components(criterion: _Criterion, n_components: int) -> _Point:
    """The solution without L1 penalty: eigenvectors as the rotation, shrunk by the ridge as the loadings."""
    variance, vectors = np.linalg.eigh(criterion.gram)
    variance, rotation = variance[: -n_components - 1 : -1], vectors[:, : -n_components - 1 : -1]
    rounding = len(criterion.gram) * np.finfo(np.float64).eps * variance[0]
    kept = variance > rounding
    shrinkage = np.where(kept, variance, 0.0) / np.where(kept, variance + criterion.ridge, 1.0)
    loadings = rotation * shrinkage
    loadings[np.diagonal(criterion.gram) == 0] = 0.0
    return _point(criterion, rotation, loadings, criterion.gram @ loadings)


def _point(
    criterion: _Criterion,
    rotation: Floats,
    loadings: Floats,
    fitted: Floats,
) -> _Point:
    """Evaluate the criterion; ``fitted`` is the Gram matrix times the loadings."""
    value = (
        np.trace(criterion.gram)
        + ((loadings - 2 * rotation) * fitted).sum()
        + criterion.ridge * (loadings**2).sum()
        + criterion.penalty * np.abs(loadings).sum()
    )
    return _Point(rotation, loadings, float(value))


def _nearest_rotation(matrix: Floats) -> Floats:
    """Orthonormal A that maximises tr AᵀM for a matrix M of the same shape (orthogonal Procrustes)."""
    left, _, right_t = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left @ right_t)
