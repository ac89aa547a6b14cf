"""A linear mixed model: a regression of each level, whose coefficients vary around common ones.

y = zᵀb_g + e with z = (1, scores), b_g ~ N(m, diag τ) and e ~ N(0, σ²). `fit_mixed_model` estimates τ and σ²
by Fisher scoring, mostly on some of the levels, then m and b_g by one pass over all of them. `arrange_levels`
and `fit_arranged` are its two steps, for several targets on the same rows.

The rows of a level have the distribution N(Zm, σ²K) with K = I + Zρ Zᵀ and ρ = diag τ / σ². All that is
needed follows from the matrix P = ZᵀK⁻¹Z and the vector ZᵀK⁻¹(y − Zm). Levels with fewer rows than
coefficients are stacked by size, and K is inverted. For all others K⁻¹ = I − Z (G + ρ⁻¹)⁻¹ Zᵀ, which needs
the Gram matrix G = ZᵀZ only.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.optimize import nnls

from sufrep._arrays import blocks
from sufrep._threads import one_thread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sufrep._arrays import Codes, Floats

_MOST_LEVELS = 1000
_ROUNDS = 5
# Change of the variances, relative to the variance of y, below which the scoring has converged.
_TOLERANCE = 2e-3
# Smallest noise and largest spread, relative to the variance of y.
_LEAST_NOISE, _MOST_SPREAD = 1e-3, 1.0
# The prior of each τ: pseudo-levels whose coefficients, all together, have this share of the variance of y.
_PSEUDO_LEVELS, _PRIOR_SHARE = 2.0, 0.1
_PSEUDO_ROWS = 1.0  # with the variance of y, in the estimate of σ²
# Ridge penalty on m in units of rows. Covariates that hardly vary within the sample would else get any slope.
_RIDGE, _INTERCEPT_RIDGE = 1.0, 1e-9
# A spread that is this small compared with the size of the values is rounding error.
_ROUNDING = 1e-12
_BLOCK = 2**19  # numbers in the matrices of the levels that are worked on at a time


@dataclass(frozen=True, slots=True, eq=False)
class Variances:
    """τ and σ², which all levels share, as ratios and roots: squares of extreme targets would overflow.

    Attributes
    ----------
    ratio : ndarray, shape (q,)
        τ / σ², by how many rows' noise each coefficient varies; the intercept first.
    deviation : float
        σ, in units of the target.
    """

    ratio: Floats
    deviation: float

    @property
    def spread(self) -> Floats:
        """τ, the variances of the coefficients over the levels; (q,)."""
        return self.ratio * self.noise

    @property
    def noise(self) -> float:
        """σ²."""
        return self.deviation**2


@dataclass(frozen=True, slots=True, eq=False)
class MixedModel:
    """A fitted mixed model.

    Attributes
    ----------
    coefficients : ndarray, shape (n_levels, q)
        Best linear unbiased predictions of b_g, intercept first; m for a level without rows.
    center : ndarray, shape (q,)
        m, estimated by generalised least squares.
    variances : Variances
    """

    coefficients: Floats
    center: Floats
    variances: Variances


def fit_mixed_model(
    scores: Floats,
    codes: Codes,
    y: Floats,
    n_levels: int,
    weights: Floats | None = None,
    *,
    variances: Variances | None = None,
    max_levels: int = _MOST_LEVELS,
    seed: int = 0,
) -> MixedModel:
    """Fit a mixed model.

    Parameters
    ----------
    scores : ndarray, shape (n, p)
        Covariates on about the scale of normal scores; q = p + 1.
    codes : ndarray of int, shape (n,)
        The level of each row, from 0 to ``n_levels - 1``.
    y : ndarray, shape (n,)
    n_levels : int
        Number of levels, also of those without rows.
    weights : ndarray, shape (n,), optional
        Positive frequency weights.
    variances : Variances, optional
        If they are known, only the pass over all levels is done.
    max_levels : int, default=1000
        Levels that are sampled if there are more; the last round of scoring uses all.
    seed : int, default=0
        Seed of the sampling.
    """
    arranged = arrange_levels(scores, codes, n_levels, weights)
    return fit_arranged(arranged, y, variances=variances, max_levels=max_levels, seed=seed)


@dataclass(frozen=True, slots=True, eq=False)
class ArrangedLevels:
    """Rows sorted by the number of rows of their level, then by level; what does not depend on the target.

    Attributes
    ----------
    order : ndarray of int, shape (n,)
        Positions of the rows before.
    rows : ndarray, shape (n, q)
        z, times the root of the weight: a weight w divides the variance of the noise.
    root : ndarray, shape (n,), or None
        Roots of the weights.
    levels, starts, sizes : ndarray of int, shape (n_present,)
        The levels that have rows, the position of their first row and the number of rows.
    weight : ndarray, shape (n_present,)
        Sum of the weights.
    grams : ndarray, shape (n_large, q, q)
        ZᵀZ of those that have at least q rows, the last ones.
    n_levels : int
        Number of levels, also of those without rows.
    """

    order: Codes
    rows: Floats
    root: Floats | None
    levels: Codes
    starts: Codes
    sizes: Codes
    weight: Floats
    grams: Floats
    n_levels: int

    @property
    def n_small(self) -> int:
        """Number of levels with fewer rows than coefficients."""
        return len(self.levels) - len(self.grams)

    def sorted(self, y: Floats) -> Floats:
        """A column in the order of the rows, times the roots of the weights; (n,)."""
        return y[self.order] if self.root is None else y[self.order] * self.root

    def take(self, places: Codes) -> ArrangedLevels:
        """Some of the levels, by increasing position; positions of rows are those among all rows still."""
        sizes = self.sizes[places]
        starts = np.cumsum(sizes) - sizes
        rows = np.repeat(self.starts[places] - starts, sizes) + np.arange(sizes.sum())
        return ArrangedLevels(
            self.order[rows],
            self.rows[rows],
            None if self.root is None else self.root[rows],
            self.levels[places],
            starts,
            sizes,
            self.weight[places],
            self.grams[places[places >= self.n_small] - self.n_small],
            self.n_levels,
        )

    def parts(self, y: Floats | None = None) -> Iterator[_Part]:
        """Yield the levels in parts whose matrices do not take much memory; ``y`` is 0 if it is not given."""
        q = self.rows.shape[1]
        y = np.zeros(len(self.rows)) if y is None else self.sorted(y)
        most = max(1, _BLOCK // q**2)
        ends = self.starts + self.sizes
        # Levels of one size come one after the other, so that their rows are a stack without being copied.
        for first, end in pairwise(np.flatnonzero(np.diff(self.sizes[: self.n_small], prepend=0, append=q))):
            size = int(self.sizes[first])
            for part in blocks(int(end), most, int(first)):
                inside = slice(self.starts[part.start], ends[part.stop - 1])
                target = y[inside].reshape(-1, size)
                excess = float(self.weight[part].sum()) - target.size
                yield _SmallLevels(part, self.rows[inside].reshape(-1, size, q), target, excess)
        for part in blocks(len(self.levels), most, self.n_small):
            own = [slice(*edges) for edges in zip(self.starts[part], ends[part], strict=True)]
            cross = np.array([y[rows] @ self.rows[rows] for rows in own])
            square = np.array([y[rows] @ y[rows] for rows in own])
            grams = self.grams[part.start - self.n_small : part.stop - self.n_small]
            yield _LargeLevels(part, grams, cross, square, float(self.weight[part].sum()))


def arrange_levels(
    scores: Floats, codes: Codes, n_levels: int, weights: Floats | None = None
) -> ArrangedLevels:
    """Sort the rows by level and compute the Gram matrices; parameters as in `fit_mixed_model`."""
    count = np.bincount(codes, minlength=n_levels)
    levels = np.argsort(count, kind="stable")[n_levels - np.count_nonzero(count) :]
    place = np.empty(n_levels, dtype=np.min_scalar_type(n_levels))  # short integers are sorted in linear time
    place[levels] = np.arange(len(levels))
    order = np.argsort(place[codes], kind="stable")
    sizes = count[levels]
    starts = np.cumsum(sizes) - sizes
    root = None if weights is None else np.sqrt(weights[order])
    rows = np.empty((len(codes), scores.shape[1] + 1))
    rows[:, 0] = 1.0
    rows[:, 1:] = scores[order]
    if root is not None:
        rows *= root[:, None]
    large = np.flatnonzero(sizes >= rows.shape[1])
    grams = np.empty((len(large), rows.shape[1], rows.shape[1]))
    with one_thread(blas_only=True):
        for gram, start, size in zip(grams, starts[large].tolist(), sizes[large].tolist(), strict=True):
            own = rows[start : start + size]
            np.matmul(own.T, own, out=gram)
    weight = np.bincount(codes, weights, n_levels)[levels].astype(np.float64)
    return ArrangedLevels(order, rows, root, levels, starts, sizes, weight, grams, n_levels)


def fit_arranged(
    arranged: ArrangedLevels,
    y: Floats,
    *,
    variances: Variances | None = None,
    max_levels: int = _MOST_LEVELS,
    seed: int = 0,
) -> MixedModel:
    """Fit a mixed model to rows that have been arranged; ``y`` in the order that they had before."""
    # In units of a power of two, and from the mean: sums of squares of extreme numbers, or far from zero,
    # lose every digit (test_a_target_far_from_zero_keeps_its_digits).
    power = np.frexp(np.abs(y).max(initial=0.0))[1]
    y = np.ldexp(y, -power)
    weights = np.ones(len(y))
    if arranged.root is not None:
        weights[arranged.order] = arranged.root**2
    mean = float(np.average(y, weights=weights))
    y = y - mean
    # A constant target still needs a positive variance, because it is divided by it
    # (test_a_class_that_no_other_fold_has_is_predicted_nowhere).
    unit = max(float(np.sqrt(np.average(y**2, weights=weights))), abs(_ROUNDING * mean), 1e-100)
    y /= unit
    with one_thread(blas_only=True):
        if variances is None:
            ratio, noise = _estimate_variances(arranged, y, max_levels, seed)
            variances = Variances(ratio, float(np.ldexp(unit * np.sqrt(noise), power)))
        coefficients, center = _predict_coefficients(arranged, y, variances.ratio)
    origin = np.append(mean, np.zeros(len(center) - 1))
    return MixedModel(
        np.ldexp(unit * coefficients + origin, power), np.ldexp(unit * center + origin, power), variances
    )


def coefficient_errors(arranged: ArrangedLevels, variances: Variances) -> Floats:
    """Standard errors of the coefficients of every level, given the variances; (n_levels, q).

    The error of the prediction of b_g has the covariance S + (S/τ) Var(m̂) (S/τ)ᵀ with the covariance of b_g
    given m and y, S = τ − τPτ/σ² (Henderson 1975). The second part is all that is left where levels share a
    coefficient. A level without rows has S = τ.
    """
    ratio, n_levels = variances.ratio, arranged.n_levels
    with one_thread(blas_only=True):
        total = _ridge(ratio)
        for part in arranged.parts():
            total += part.total(ratio, part.inverse(ratio))[0]
        root = np.linalg.inv(np.linalg.cholesky(total)).T  # root rootᵀ is the inverse of the total
        variance = np.tile(ratio + (root**2).sum(axis=1), (n_levels, 1))
        for part in arranged.parts():
            own = part.precisions(ratio, part.inverse(ratio))
            towards = root - ratio[:, None] * (own.reshape(-1, len(root)) @ root).reshape(own.shape)
            known = ratio**2 * np.diagonal(own, axis1=1, axis2=2)
            variance[arranged.levels[part.place]] = ratio - known + (towards**2).sum(axis=2)
    return np.asarray(variances.deviation * np.sqrt(np.maximum(variance, 0.0)))


# One round of each step, in units in which y has variance 1


def _estimate_variances(
    arranged: ArrangedLevels, y: Floats, max_levels: int, seed: int
) -> tuple[Floats, float]:
    """τ / σ² and σ², by Fisher scoring for the likelihood; (q,) and a number.

    If there are many levels, all rounds but the last use some of them. One round from estimates that are
    about right is as precise as many (without it, the fit to 4,700 levels of wages was 0.6 % worse).
    """
    q = arranged.rows.shape[1]
    # A covariate that is constant must not change the prior of the others
    # (test_a_covariate_that_is_constant_or_null_everywhere_does_nothing).
    prior = _PRIOR_SHARE / np.count_nonzero(arranged.rows.any(axis=0))
    stages = [(arranged, _ROUNDS)]
    if len(arranged.levels) > max_levels:
        chosen = np.random.default_rng(seed).choice(len(arranged.levels), max_levels, replace=False)
        stages = [(arranged.take(np.sort(chosen)), _ROUNDS - 1), (arranged, 1)]
    spread, noise = np.zeros(q), 1.0
    for levels, n_rounds in stages:
        parts = list(levels.parts(y))
        for _ in range(n_rounds):
            before = np.append(spread, noise)
            spread, noise = _next_variances(parts, spread, noise, prior)
            if np.abs(before - np.append(spread, noise)).max() < _TOLERANCE:
                break
    return spread / noise, noise


def _next_variances(parts: list[_Part], spread: Floats, noise: float, prior: float) -> tuple[Floats, float]:
    """τ and σ² after one round; (q,) and a number."""
    q = len(spread)
    information, right = _scoring_equations(parts, spread, noise)
    certainty = np.append(_PSEUDO_LEVELS / np.maximum(spread, prior) ** 2, _PSEUDO_ROWS / noise**2)
    information[np.diag_indices(q + 1)] += certainty
    right += certainty * np.append(np.full(q, prior), 1.0)
    found = _solve_nonnegative(information, right)
    return np.minimum(found[:q], _MOST_SPREAD), max(float(found[q]), _LEAST_NOISE)


def _scoring_equations(parts: list[_Part], spread: Floats, noise: float) -> tuple[Floats, Floats]:
    """The linear equations of one step of scoring, whose solution θ are the next τ and σ².

    A level's covariance V = σ²K has the derivatives D_j = z_j z_jᵀ by τ_j and D_q = I by σ². The equations
    are Σ_k tr(V⁻¹D_j V⁻¹D_k) θ_k = rᵀV⁻¹D_j V⁻¹r, summed over the levels, with the residuals r = y − Zm. The
    matrix on the left, (q + 1, q + 1), is twice the expected information. At the present θ, the right side
    minus the left is twice the derivative of the log-likelihood.
    """
    q, ratio = len(spread), spread / noise
    information, right = np.zeros((q + 1, q + 1)), np.zeros(q + 1)
    total, cross = _ridge(ratio), np.zeros(q)
    inverses = []
    for part in parts:
        inverse = part.inverse(ratio)
        some = part.add_information(ratio, inverse, information)
        total += some[0]
        cross += some[1]
        inverses.append(inverse)
    center = np.asarray(np.linalg.solve(total, cross), dtype=np.float64)
    for part, inverse in zip(parts, inverses, strict=True):
        pulls, square = part.residuals(ratio, inverse, center)
        right[:q] += (pulls**2).sum(axis=0)
        right[q] += square
    information[q, :q] = information[:q, q]
    information[q, q] = max(information[q, q], 0.0)  # with weights below 1, fewer rows than coefficients
    return information / noise**2, right / noise**2


def _solve_nonnegative(matrix: Floats, right: Floats) -> Floats:
    """Minimise θᵀAθ/2 − bᵀθ over θ ≥ 0, for a positive definite A up to rounding."""
    scale = np.sqrt(np.diag(matrix))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    root = np.sqrt(np.maximum(values, 1e-8))
    found, _ = nnls(root[:, None] * vectors.T, (vectors.T @ (right / scale)) / root, maxiter=100 * len(right))
    return np.asarray(found / scale)


def _predict_coefficients(arranged: ArrangedLevels, y: Floats, ratio: Floats) -> tuple[Floats, Floats]:
    """Predictions of b_g and the estimate of m, given τ / σ²; (n_levels, q) and (q,)."""
    parts = list(arranged.parts(y))
    inverses = []
    total, cross = _ridge(ratio), np.zeros(len(ratio))
    for part in parts:
        inverse = part.inverse(ratio)
        some = part.total(ratio, inverse)
        total += some[0]
        cross += some[1]
        inverses.append(inverse)
    center = np.asarray(np.linalg.solve(total, cross), dtype=np.float64)
    coefficients = np.tile(center, (arranged.n_levels, 1))
    for part, inverse in zip(parts, inverses, strict=True):
        pulls, _ = part.residuals(ratio, inverse, center)
        coefficients[arranged.levels[part.place]] += ratio * pulls
    return coefficients, center


def _ridge(ratio: Floats) -> Floats:
    """The penalty on m: rows of new levels, one for each coefficient, in which the target is 0; (q, q)."""
    return np.diag(np.append(_INTERCEPT_RIDGE, np.full(len(ratio) - 1, _RIDGE)) / (1 + ratio))


# Some levels at a time


class _Part(Protocol):
    """Some levels, with Z and y in units of σ: V = K = I + Zρ Zᵀ."""

    @property
    def place(self) -> slice:
        """Positions of the levels in the arrangement."""

    def inverse(self, ratio: Floats, /) -> Floats:
        """What is inverted for every level, given τ / σ²; the other methods need it."""

    def precisions(self, ratio: Floats, inverse: Floats, /) -> Floats:
        """P = ZᵀK⁻¹Z of every level; (n_part, q, q)."""

    def total(self, ratio: Floats, inverse: Floats, /) -> tuple[Floats, Floats]:
        """Sums of P and ZᵀK⁻¹y over the levels; (q, q) and (q,)."""

    def add_information(
        self, ratio: Floats, inverse: Floats, information: Floats, /
    ) -> tuple[Floats, Floats]:
        """Add to the upper triangle of the left side of the scoring equations; returns `total`."""

    def residuals(self, ratio: Floats, inverse: Floats, center: Floats, /) -> tuple[Floats, float]:
        """ZᵀK⁻¹r of every level, (n_part, q), and the sum of rᵀK⁻²r, with r = y − Zm."""


@dataclass(frozen=True, slots=True, eq=False)
class _SmallLevels:
    """Levels of the same number of rows, fewer than coefficients; K⁻¹ is computed.

    Attributes
    ----------
    place : slice
    rows : ndarray, shape (n_part, size, q)
    y : ndarray, shape (n_part, size)
    excess : float
        By how much the sum of the weights exceeds the number of rows.
    """

    place: slice
    rows: Floats
    y: Floats
    excess: float

    def inverse(self, ratio: Floats, /) -> Floats:
        active = np.flatnonzero(ratio)
        own = self.rows if len(active) == len(ratio) else self.rows[:, :, active]
        covariance = (own * ratio[active]) @ own.transpose(0, 2, 1)
        covariance += np.eye(own.shape[1])
        return np.asarray(np.linalg.inv(covariance), dtype=np.float64) if len(active) else covariance

    def precisions(self, _ratio: Floats, inverse: Floats, /) -> Floats:
        return np.asarray(self.rows.transpose(0, 2, 1) @ (inverse @ self.rows))

    def total(self, _ratio: Floats, inverse: Floats, /) -> tuple[Floats, Floats]:
        flat = self.rows.reshape(-1, self.rows.shape[2])
        weighted = (inverse @ self.rows).reshape(flat.shape)
        return flat.T @ weighted, self.y.ravel() @ weighted

    def add_information(
        self, _ratio: Floats, inverse: Floats, information: Floats, /
    ) -> tuple[Floats, Floats]:
        weighted = inverse @ self.rows
        own = self.rows.transpose(0, 2, 1) @ weighted
        information[:-1, :-1] += np.einsum("gij,gij->ij", own, own)
        information[:-1, -1] += np.einsum("gni,gni->i", weighted, weighted)
        information[-1, -1] += np.vdot(inverse, inverse) + self.excess
        return own.sum(axis=0), self.y.ravel() @ weighted.reshape(-1, self.rows.shape[2])

    def residuals(self, _ratio: Floats, inverse: Floats, center: Floats, /) -> tuple[Floats, float]:
        residual = (inverse @ (self.y - self.rows @ center)[:, :, None])[:, :, 0]
        return (residual[:, None] @ self.rows)[:, 0], float(np.vdot(residual, residual))


@dataclass(frozen=True, slots=True, eq=False)
class _LargeLevels:
    """Levels with at least as many rows as coefficients, by sums over their rows; (G + ρ⁻¹)⁻¹ is computed.

    Where τ is zero, the inverse is zero too, and is left out.

    Attributes
    ----------
    place : slice
    grams, cross, square : ndarray, shapes (n_part, q, q), (n_part, q) and (n_part,)
        ZᵀZ, Zᵀy and yᵀy.
    weight : float
        Sum of the weights.
    """

    place: slice
    grams: Floats
    cross: Floats
    square: Floats
    weight: float

    def inverse(self, ratio: Floats, /) -> Floats:
        active = np.flatnonzero(ratio)
        own = self._towards(active)[:, :, active] if len(active) < len(ratio) else self.grams
        return np.asarray(np.linalg.inv(own + np.diag(1 / ratio[active])), dtype=np.float64)

    def precisions(self, ratio: Floats, inverse: Floats, /) -> Floats:
        some = self._towards(np.flatnonzero(ratio))
        return np.asarray(self.grams - some.transpose(0, 2, 1) @ (inverse @ some))

    def total(self, ratio: Floats, inverse: Floats, /) -> tuple[Floats, Floats]:
        active = np.flatnonzero(ratio)
        own = self.precisions(ratio, inverse)
        known = (inverse @ self.cross[:, active, None])[:, :, 0]
        return own.sum(axis=0), self.cross.sum(axis=0) - np.einsum("gai,ga->i", self._towards(active), known)

    def add_information(
        self, ratio: Floats, inverse: Floats, information: Floats, /
    ) -> tuple[Floats, Floats]:
        active = np.flatnonzero(ratio)
        some = self._towards(active)
        share = inverse @ some
        own = self.grams - some.transpose(0, 2, 1) @ share
        information[:-1, :-1] += np.einsum("gij,gij->ij", own, own)
        # ZᵀK⁻²Z = P − shareᵀP, and tr K⁻² follows from the part of the share that is square.
        information[:-1, -1] += np.einsum("gii->i", own)
        information[:-1, -1] -= np.einsum("gai,gai->i", share, own[:, active])
        square = share[:, :, active]
        information[-1, -1] += self.weight - 2 * np.einsum("gii->", square)
        information[-1, -1] += np.einsum("gij,gji->", square, square)
        right = self.cross.sum(axis=0) - np.einsum("gai,ga->i", share, self.cross[:, active])
        return own.sum(axis=0), right

    def residuals(self, ratio: Floats, inverse: Floats, center: Floats, /) -> tuple[Floats, float]:
        active = np.flatnonzero(ratio)
        cross = self.cross - self.grams @ center
        square = self.square.sum() - (self.cross + cross).sum(axis=0) @ center
        known = (inverse @ cross[:, active, None])[:, :, 0]
        square -= np.vdot(known, cross[:, active]) + (known**2 / ratio[active]).sum()
        pulls = cross - (known[:, None] @ self._towards(active))[:, 0]
        return pulls, max(float(square), 0.0)

    def _towards(self, active: Codes) -> Floats:
        """The rows of the Gram matrices that belong to τ > 0; (n_part, n_active, q)."""
        return self.grams if len(active) == self.grams.shape[1] else self.grams[:, active]
