"""Representations that need no iteration: classical contrast codings, and the Gaussian multinomial logit.

A coding takes the number of levels, at least 1, and returns an (n_levels, n_levels - 1) matrix whose row g is
the vector of level g. The formulas reproduce the tables for five levels in the paper's appendix; R's
functions of the same name sometimes differ (``contr.helmert`` does).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve

if TYPE_CHECKING:
    from collections.abc import Callable

    from sufrep._arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Discriminant:
    """Coefficients of log P(G = g | x) up to a constant, centered to mean 0 over the levels.

    Attributes
    ----------
    intercepts : ndarray, shape (n_levels,)
    slopes : ndarray, shape (n_levels, n_covariates)
    """

    intercepts: Floats
    slopes: Floats


def linear_discriminant(
    mean: Floats, weight: Floats, scatter: Floats, freedom: float, *, penalty: float, scale: Floats
) -> Discriminant:
    """Multinomial logit implied by normal covariates with the same covariance W in all levels.

    By Bayes' theorem log P(g | x) = log π_g − ½ μ_gᵀW⁻¹μ_g + xᵀW⁻¹μ_g + const. W is the pooled covariance
    within levels plus a ridge: ``penalty`` pseudo-rows with standard deviations ``scale``, which make W
    invertible.

    Parameters
    ----------
    mean : ndarray, shape (n_levels, n_covariates)
    weight : ndarray, shape (n_levels,)
    scatter : ndarray, shape (n_covariates, n_covariates)
        Pooled scatter within levels.
    freedom : float
        Degrees of freedom of the scatter.
    penalty : float
    scale : ndarray, shape (n_covariates,)
    """
    # Centering and scaling keep the precision of values that are large or far from zero.
    center = weight @ mean / weight.sum()
    levels = (mean - center) / scale
    covariance = within_with_ridge(scatter, freedom, penalty=penalty, scale=scale)
    slopes = cho_solve(cho_factor(covariance), levels.T).T
    intercepts = np.log(weight / weight.sum()) - 0.5 * (levels * slopes).sum(axis=1)
    slopes -= slopes.mean(axis=0)
    slopes /= scale
    intercepts -= slopes @ center  # back to covariates that are not centered
    return Discriminant(intercepts - intercepts.mean(), slopes)


def within_with_ridge(scatter: Floats, freedom: float, *, penalty: float, scale: Floats) -> Floats:
    """W in units of ``scale``: the covariance within levels with ``penalty`` pseudo-rows; (p, p)."""
    within = scatter / np.outer(scale, scale)
    ridge = max(penalty, 1e-9 * max(freedom, 1.0))
    return np.asarray((within + ridge * np.eye(len(scale))) / (freedom + ridge))


def one_hot(n_levels: int) -> Floats:
    """Indicators of all levels except the first, which is the reference.

    Examples
    --------
    >>> one_hot(3)
    array([[0., 0.],
           [1., 0.],
           [0., 1.]])
    """
    return np.eye(n_levels)[:, 1:]


def deviation(n_levels: int) -> Floats:
    """Compare each level except the last with the mean over the levels: the identity above a row of -1."""
    coding = np.eye(n_levels)[:, :-1]
    coding[-1] = -1.0
    return coding


def difference(n_levels: int) -> Floats:
    """Compare each level with the mean of the levels before it.

    Column j, counted from 1, is -1/(j+1) in the first j rows and j/(j+1) in the next row.
    """
    before = np.arange(1, n_levels)
    coding = np.triu(np.broadcast_to(-1.0 / (before + 1.0), (n_levels, n_levels - 1)))
    coding[before, before - 1] = before / (before + 1.0)
    return coding


def helmert(n_levels: int) -> Floats:
    """Compare each level with the mean of the levels after it.

    Column j, followed by m levels, is m/(m+1) in row j and -1/(m+1) below it.
    """
    # With the order of the levels reversed, "after" becomes "before".
    return difference(n_levels)[::-1, ::-1]


def repeated_effect(n_levels: int) -> Floats:
    """Compare each level with the next.

    Column j, counted from 1, is 1 - j/n_levels in the first j rows and -j/n_levels below them.
    """
    up_to_diagonal = np.triu(np.ones((n_levels, n_levels - 1)))
    return up_to_diagonal - np.arange(1, n_levels) / n_levels


def simple_effect(n_levels: int) -> Floats:
    """Compare each level except the last with the last: indicators minus 1/n_levels, so columns sum to 0."""
    return np.eye(n_levels)[:, :-1] - 1.0 / n_levels


CODINGS: dict[str, Callable[[int], Floats]] = {
    "one_hot": one_hot,
    "deviation": deviation,
    "difference": difference,
    "helmert": helmert,
    "repeated_effect": repeated_effect,
    "simple_effect": simple_effect,
}
