"""Effects of levels that differ from row to row: a Gaussian process for each level (kriging)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sufrep.solvers.coefficients import rows_by_level
from sufrep.solvers.curves import Curve, fit_curve
from sufrep.solvers.likeness import Likeness, find_likeness, without_extremes

if TYPE_CHECKING:
    from sufrep._arrays import Codes, Floats

# Normal scores at which the curve bends: a standard deviation below the middle, the middle, and one above.
_BENDS = (-1.0, 0.0, 1.0)
# Rows that are predicted at once.
_BLOCK = 4096


@dataclass(frozen=True, slots=True, eq=False)
class LocalEffects:
    """Y = f(z) + e_g(z) + noise, f a curve for all, e_g ~ GP(0, k) for each level.

    Attributes
    ----------
    curve : Curve
        f.
    likeness : Likeness
        k.
    ends : ndarray of int, shape (n_levels,)
        Where the rows of each level end.
    scores : ndarray, shape (n_rows, n_used)
        The covariates that k sees, of the rows that effects are made of, level by level.
    coefficients : ndarray, shape (n_rows,)
        (K + noise)⁻¹ r, r the residuals without extremes: the effect at z is Σ k(z, z_i) times these, over
        the rows i of the level.
    """

    curve: Curve
    likeness: Likeness
    ends: Codes
    scores: Floats
    coefficients: Floats

    def effects(self, scores: Floats, codes: Codes) -> Floats:
        """Effects of levels at rows, 0 where the code is −1; (n,)."""
        found = np.zeros(len(codes))
        inside = np.flatnonzero(codes >= 0)
        used = scores[:, self.likeness.used]
        for level, places in rows_by_level(codes[inside]):
            rows, known = inside[places], self._rows_of(level)
            for start in range(0, len(rows), _BLOCK):
                part = rows[start : start + _BLOCK]
                covariances = self.likeness.between(used[part], self.scores[known])
                found[part] = covariances @ self.coefficients[known]
        return found

    def _rows_of(self, level: int) -> slice:
        return slice(int(self.ends[level - 1]) if level else 0, int(self.ends[level]))


def fit_local_effects(
    scores: Floats,
    codes: Codes,
    y: Floats,
    n_levels: int,
    weights: Floats | None = None,
    *,
    max_level_rows: int = 1000,
    seed: int = 0,
) -> tuple[LocalEffects, Floats]:
    """Fit the curve, find the kernels, and krige every level.

    Parameters
    ----------
    scores : ndarray, shape (n, p)
        Covariates on the scale of normal scores.
    codes : ndarray of int, shape (n,)
        The level of each row, from 0 to ``n_levels − 1``.
    y : ndarray, shape (n,)
    n_levels : int
    weights : ndarray, shape (n,), optional
        Frequencies, all above 0.
    max_level_rows : int, default=1000
        Rows of a level that its effects are made of; of more, so many are drawn.
    seed : int, default=0
        Of all draws.

    Returns
    -------
    LocalEffects
    ndarray, shape (n_levels,)
        Mean effect of each level over these rows.
    """
    curve = fit_curve(scores, y, weights, bends=_BENDS)
    residuals = without_extremes(y - curve.predict(scores), weights)
    likeness = find_likeness(scores, residuals, codes, weights, seed=seed)
    used = scores[:, likeness.used]
    rng = np.random.default_rng(seed)
    kept, coefficients = [], []
    ends, means = np.zeros(n_levels, dtype=np.int64), np.zeros(n_levels)
    for level, places in rows_by_level(codes):
        rows = places
        if len(rows) > max_level_rows:
            rows = np.sort(rng.choice(rows, max_level_rows, replace=False))
        noise = likeness.noise / (np.ones(len(rows)) if weights is None else weights[rows])
        covariances = likeness.between(used[rows], used[rows])
        covariances[np.diag_indices_from(covariances)] += noise
        found = cho_solve(cho_factor(covariances, lower=True, check_finite=False), residuals[rows])
        # K (K + noise)⁻¹ r is what noise leaves of r.
        means[level] = np.average(residuals[rows] - noise * found, weights=1 / noise)
        kept.append(rows)
        coefficients.append(found)
        ends[level] = len(rows)
    rows = np.concatenate(kept)
    return LocalEffects(curve, likeness, np.cumsum(ends), used[rows], np.concatenate(coefficients)), means
