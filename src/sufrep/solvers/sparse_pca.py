"""Sparse principal components: the elastic-net criterion of Zou, Hastie and Tibshirani (2006, eq. 3.12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sufrep.solvers.low_rank import column_signs

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Pulls the Procrustes solution towards the rotation before it, by as little as stands above rounding: where
# columns of zeros leave part of the rotation free, that part then stays instead of being whatever LAPACK
# returns. test_a_rotation_left_free_by_zero_loadings_stays_where_it_was guards this.
_ANCHOR = 1e-10
_MEMORY = 10
_LONGEST_STEP = 1e3


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
        Whether a step came to change no loading by more than the tolerance.
    """

    loadings: NDArray[np.float64]
    rotation: NDArray[np.float64]
    objective: NDArray[np.float64]
    n_iter: int
    converged: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """The Gram matrix scaled to a mean diagonal of 1, with the penalties in its units."""

    gram: NDArray[np.float64]
    ridge: float
    penalty: float


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

    which is the mean over levels of ‖ω_g - ABᵀω_g‖² with both penalties added. Each step is one round of
    coordinate descent for B and a Procrustes rotation for A; accelerated steps are taken only where they
    lower the criterion further. The criterion is not convex: what is found is a stationary point.

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
        Stop once a step changes no loading by more (loadings are of order 1).
    max_iter : int
        Iterations at most.

    Returns
    -------
    SparsePCA
        The largest loading of each column is positive; a column of zeros takes its sign from the rotation.
        Components stand in the order of the principal components they started from.
    """
    scale = float(np.trace(gram)) / len(gram) or 1.0
    # Coordinate descent depends on the order of the coordinates, and with it the stationary point found. By
    # decreasing size, the order of the caller's columns does not matter.
    # test_permuting_the_covariates_permutes_the_loadings guards this.
    order = np.argsort(-np.diagonal(gram), kind="stable")
    scaled = gram[np.ix_(order, order)] / scale
    problem = _Problem(scaled, ridge, alpha * largest_penalty(scaled))
    found, values, converged = _descend(problem, _principal_components(problem, n_components), tol, max_iter)
    back = np.argsort(order)
    loadings, rotation = found.loadings[back], found.rotation[back]
    signs = column_signs(np.where(loadings.any(axis=0), loadings, rotation))
    return SparsePCA(
        loadings=loadings * signs + 0.0,  # no zeros with a minus sign
        rotation=rotation * signs,
        objective=scale * np.array(values),
        n_iter=len(values) - 1,
        converged=converged,
    )


def _descend(problem: _Problem, start: _Point, tol: float, max_iter: int) -> tuple[_Point, list[float], bool]:
    """Lower the criterion from ``start`` on; the last point, the value at each, and whether it converged."""
    point, values, accelerator = start, [start.value], _Accelerator()
    for _ in range(max_iter):
        step = _alternate(problem, point.rotation, point.loadings)
        if np.abs(step.loadings - point.loadings).max() <= tol:
            return step, [*values, step.value], True
        guess = accelerator.guess(point, step)
        rotation, loadings = np.vsplit(guess, 2)
        trial = _alternate(problem, _nearest_rotation(rotation), loadings)
        # Whatever the guess, the plain step is there to fall back on: so the criterion never rises.
        better = trial.value < step.value
        accelerator.learn(better)
        point = trial if better else step
        values.append(point.value)
    return point, values, False


def _alternate(problem: _Problem, rotation: NDArray[np.float64], loadings: NDArray[np.float64]) -> _Point:
    """One round of coordinate descent for the loadings, then the best rotation for them."""
    loadings = _sweep(problem, rotation, loadings)
    fitted = problem.gram @ loadings
    return _point(problem, _nearest_rotation(fitted + _ANCHOR * rotation), loadings, fitted)


def _sweep(
    problem: _Problem, rotation: NDArray[np.float64], loadings: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Minimise over each row of the loadings in turn; the components share the Gram matrix and go together."""
    gram, threshold = problem.gram, problem.penalty / 2
    loadings, residual = loadings.copy(), gram @ (rotation - loadings)
    diagonal = np.diagonal(gram)
    # Rows of zeros that would stay zero are passed over: most of them, in a sparse solution. A covariate that
    # is zero in all levels has no curvature without a ridge, and its loadings stay zero.
    live = ((loadings != 0) | (np.abs(residual) > threshold)).any(axis=1) & (diagonal + problem.ridge > 0)
    for i in np.flatnonzero(live):
        row = residual[i] + diagonal[i] * loadings[i]
        shrunk = np.maximum(np.abs(row) - threshold, 0.0)
        change = np.copysign(shrunk, row) / (diagonal[i] + problem.ridge) - loadings[i]
        loadings[i] += change
        residual -= gram[:, i, np.newaxis] * change
    return loadings


class _Accelerator:
    """Guesses where the steps lead.

    While loadings still enter and leave, the last step is lengthened, by more after each success. Once the
    nonzero ones have settled, the steps are a smooth map of the point to the next, and Anderson's mixing of
    the last few solves for its fixed point. Plain steps alone need thousands where these need tens.
    """

    def __init__(self) -> None:
        self._ends: list[NDArray[np.float64]] = []
        self._moves: list[NDArray[np.float64]] = []
        self._length = 1.0

    def guess(self, before: _Point, after: _Point) -> NDArray[np.float64]:
        """Rotation over loadings, (2 * n_covariates, n_components), from the last plain step."""
        end = after.stacked()
        if self._ends and ((end != 0) != (self._ends[-1] != 0)).any():
            self._forget(0)
        self._ends.append(end)
        self._moves.append(end - before.stacked())
        self._forget(_MEMORY)
        return self._mixed() if self._settled() else end + self._length * self._moves[-1]

    def learn(self, accepted: bool) -> None:
        """Take note of whether the last guess lowered the criterion more than the plain step."""
        if not self._settled():
            self._length = min(2 * self._length, _LONGEST_STEP) if accepted else max(self._length / 4, 0.5)
        elif not accepted:
            self._forget(1)

    def _settled(self) -> bool:
        return len(self._moves) >= 3

    def _forget(self, kept: int) -> None:
        n_dropped = max(0, len(self._ends) - kept)
        del self._ends[:n_dropped], self._moves[:n_dropped]

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
