"""Level effects that vary with the covariates: a Gaussian process for each level, with a kernel they share.

`fit_local_effects` fits a curve for all rows, estimates the kernel from its residuals (`level_kernels`), and
solves for the effects of each level. Levels with the same number of rows are solved together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dposv

from sufrep._threads import one_thread
from sufrep.solvers.level_kernels import LevelKernel, LevelRows, draw_level_pairs, kernel_of_pairs
from sufrep.solvers.regressions import Curve, fit_curves

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sufrep._arrays import Codes, Floats

# Knots of the curve, on the scale of normal scores.
_KNOTS = (-1.0, 0.0, 1.0)
# Covariances that are held at a time, and rows of a level that are predicted at a time.
_BLOCK, _PIECE = 2**18, 1024
# Residuals are winsorized at this many standard deviations.
_CUTOFF = 3.0
# Least rows of a level that is solved on its own, by a Cholesky factor; a stack of smaller ones is faster.
_LARGE = 32
# Least variance of a row's noise, in units of the residual variance: a row of an enormous weight has none.
_LEAST_NOISE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class LocalEffects:
    """Y = f(z) + e_g(z) + noise, with a curve f for all rows and e_g ~ GP(0, k) for each level.

    Attributes
    ----------
    curve : Curve
        f.
    kernel : LevelKernel
        k.
    ends : ndarray of int, shape (n_levels,)
        Position in `scores` where the rows of each level end.
    scores : ndarray, shape (n_rows, n_used)
        Covariates used by the kernel, of the rows that the effects are estimated from, sorted by level.
    coefficients : ndarray, shape (n_rows,)
        (K + noise)⁻¹ r with the winsorized residuals r. The effect at z is Σ k(z, z_i) times these, over the
        rows i of the level.
    """

    curve: Curve
    kernel: LevelKernel
    ends: Codes
    scores: Floats
    coefficients: Floats

    def effects(self, scores: Floats, codes: Codes) -> Floats:
        """Effect of each row's level at the row's covariates, 0 where the code is −1; (n,)."""
        found = np.zeros(len(codes))
        starts = np.concatenate([[0], self.ends[:-1]])
        sizes = self.ends - starts
        inside = np.flatnonzero(codes >= 0)
        if not len(self.kernel.variances):
            owner = np.repeat(np.arange(len(sizes)), sizes)
            total = np.bincount(owner, self.coefficients, minlength=len(sizes))
            found[inside] = self.kernel.constant * total[codes[inside]]
            return found
        rows = LevelRows.of(codes[inside], len(sizes))
        order = inside[rows.order]
        new_factors, _ = self.kernel.factors(scores[:, self.kernel.used])
        _, own_factors = self.kernel.factors(self.scores)
        with one_thread(blas_only=True):
            for level, first, length in _pieces(rows, sizes):
                new = order[first[:, None] + np.arange(length)]
                own = starts[level][:, None] + np.arange(sizes[level[0]])
                covariances = self.kernel.products(_taken(new_factors, new), _taken(own_factors, own))
                found[new] = (covariances @ self.coefficients[own][:, :, None])[:, :, 0]
        return found

    def nothing(self) -> LocalEffects:
        """The same with a curve and effects of 0 everywhere."""
        curve = replace(self.curve, origin=0.0, coefficients=np.zeros_like(self.curve.coefficients))
        return replace(self, curve=curve, coefficients=np.zeros_like(self.coefficients))


def fit_local_effects(
    scores: Floats,
    codes: Codes,
    y: Floats,
    n_levels: int,
    weights: Floats | None = None,
    *,
    max_level_rows: int = 300,
    seed: int = 0,
    kernel: LevelKernel | None = None,
) -> tuple[LocalEffects, Floats]:
    """Fit the curve, estimate the kernel, and solve for the effects of each level.

    Parameters
    ----------
    scores : ndarray, shape (n, p)
        Covariates on the scale of normal scores.
    codes : ndarray of int, shape (n,)
        The level of each row, from 0 to ``n_levels − 1``.
    y : ndarray, shape (n,)
    n_levels : int
    weights : ndarray, shape (n,), optional
        Frequency weights, all above 0.
    max_level_rows : int, default=300
        Most rows of a level that its effects are estimated from. Larger levels are subsampled.
    seed : int, default=0
        Seed of all subsamples.
    kernel : LevelKernel, optional
        The kernel, if it is known; otherwise it is estimated.

    Returns
    -------
    LocalEffects
    ndarray, shape (n_levels,)
        Mean effect of each level over these rows.
    """
    kernels = None if kernel is None else [kernel]
    return fit_several_local_effects(
        scores, codes, [y], n_levels, weights, max_level_rows=max_level_rows, seed=seed, kernels=kernels
    )[0]


def fit_several_local_effects(
    scores: Floats,
    codes: Codes,
    targets: Sequence[Floats],
    n_levels: int,
    weights: Floats | None = None,
    *,
    max_level_rows: int = 300,
    seed: int = 0,
    kernels: Sequence[LevelKernel] | None = None,
) -> list[tuple[LocalEffects, Floats]]:
    """`fit_local_effects` for several targets of the same rows, which share all that needs no target.

    Parameters
    ----------
    scores, codes, n_levels, weights, max_level_rows, seed
        As in `fit_local_effects`.
    targets : sequence of ndarray, each of shape (n,)
    kernels : sequence of LevelKernel, optional
        The kernel of each target, if they are known.
    """
    with one_thread(blas_only=True):
        rows = LevelRows.of(codes, n_levels)
        residuals, curves = [], fit_curves(scores, targets, weights, knots=_KNOTS)
        for curve, y in zip(curves, targets, strict=True):
            residuals.append(winsorize(y - curve.predict(scores), weights))
        if kernels is None:
            pairs = draw_level_pairs(scores, rows, weights, seed=seed)
            kernels = [kernel_of_pairs(pairs, some, codes, weights) for some in residuals]
        rows = rows.thinned(max_level_rows, np.random.default_rng(seed))
        own = None if weights is None else weights[rows.order]
        found = []
        for curve, kernel, some in zip(curves, kernels, residuals, strict=True):
            used = scores[np.ix_(rows.order, kernel.used)]
            solved, means = _solve(kernel, used, some[rows.order], rows, own)
            found.append((LocalEffects(curve, kernel, np.cumsum(rows.sizes), used, solved), means))
        return found


def winsorize(residuals: Floats, weights: Floats | None = None) -> Floats:
    """Clip residuals at three standard deviations, so that no row dominates its level or the kernel."""
    limit = _CUTOFF * float(np.sqrt(np.average(residuals**2, weights=weights)))
    return np.clip(residuals, -limit, limit)


def _solve(
    kernel: LevelKernel, scores: Floats, residuals: Floats, rows: LevelRows, weights: Floats | None
) -> tuple[Floats, Floats]:
    """(K + noise)⁻¹ r of each row, and the mean effect of each level, for rows sorted by level."""
    count = np.ones(len(residuals)) if weights is None else weights
    noise = np.maximum(kernel.noise / count, _LEAST_NOISE)
    levels = np.repeat(np.arange(len(rows.sizes)), rows.sizes)

    def sums(values: Floats) -> Floats:
        return np.asarray(np.bincount(levels, values, minlength=len(rows.sizes)), dtype=np.float64)

    if len(kernel.variances):
        solved = np.empty(len(residuals))
        one, other = kernel.factors(scores)
        for _, places in rows.stacks(_BLOCK):
            covariances = kernel.products(_taken(one, places), _taken(other, places))
            diagonal = np.arange(places.shape[1])
            covariances[:, diagonal, diagonal] += noise[places]
            solved[places] = _solve_stack(covariances, residuals[places])
    else:
        # The matrix is c₀ 11ᵀ plus a diagonal one: r − e over the noise, with the shrunken mean e.
        mean = kernel.constant * sums(residuals / noise) / (1 + kernel.constant * sums(1 / noise))
        solved = (residuals - mean[levels]) / noise
    # The effects at these rows: K (K + noise)⁻¹ r = r − noise (K + noise)⁻¹ r.
    total, size = sums(count * (residuals - noise * solved)), sums(count)
    return solved, np.divide(total, size, out=np.zeros(len(total)), where=size > 0)


def _taken(tables: Sequence[Floats], places: Codes) -> list[Floats]:
    """Stacks of rows of each table."""
    return [table[places] for table in tables]


def _solve_stack(matrices: Floats, right: Floats) -> Floats:
    """Solve positive definite systems of equations, (k, n, n) and (k, n); changes the matrices."""
    if right.shape[1] < _LARGE:
        return np.asarray(np.linalg.solve(matrices, right[:, :, None])[:, :, 0])
    # Of a symmetric matrix, LAPACK may have the transpose, which it need not copy.
    return np.stack(
        [dposv(one.T, r, lower=True, overwrite_a=True)[1] for one, r in zip(matrices, right, strict=True)]
    )


def _pieces(rows: LevelRows, sizes: Codes) -> Iterator[tuple[Codes, Codes, int]]:
    """Yield pieces of levels with the same length, whose levels have the same of the given sizes.

    Yields levels (k,), the positions of the first rows of the pieces (k,), and the length. Levels without
    rows among those given have none.
    """
    n_pieces = np.where(sizes > 0, -(-rows.sizes // _PIECE), 0)
    levels = np.repeat(np.arange(len(sizes)), n_pieces)
    offsets = _PIECE * (np.arange(len(levels)) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces))
    lengths = np.minimum(rows.sizes[levels] - offsets, _PIECE)
    firsts = rows.starts[levels] + offsets
    keys, groups = np.unique(sizes[levels] * (_PIECE + 1) + lengths, return_inverse=True)
    order = np.argsort(groups, kind="stable")
    for part in np.split(order, np.searchsorted(groups[order], np.arange(1, len(keys)))):
        if not len(part):
            continue
        length = int(lengths[part[0]])
        step = max(1, _BLOCK // (length * int(sizes[levels[part[0]]])))
        for start in range(0, len(part), step):
            some = part[start : start + step]
            yield levels[some], firsts[some], length
