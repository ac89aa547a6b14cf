"""Multinomial logit coefficients in closed form, where covariates are normal within levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve

if TYPE_CHECKING:
    from sufrep._arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Discriminant:
    """Coefficients of log P(G = g | x) up to a constant; both centred to mean 0 over the levels.

    Parameters
    ----------
    intercepts : ndarray, shape (n_levels,)
    slopes : ndarray, shape (n_levels, n_covariates)
    """

    intercepts: Floats
    slopes: Floats


def linear_discriminant(
    mean: Floats, weight: Floats, scatter: Floats, freedom: float, *, penalty: float, scale: Floats
) -> Discriminant:
    """Solve for the logit that normal covariates with one covariance W in all levels imply.

    By Bayes' theorem log P(g | x) = log π_g − ½ μ_gᵀW⁻¹μ_g + xᵀW⁻¹μ_g + const. W is the pooled
    covariance within levels, to which ``penalty`` made-up rows of spread ``scale`` are added, so
    that it can always be inverted.

    Parameters
    ----------
    mean : ndarray, shape (n_levels, n_covariates)
    weight : ndarray, shape (n_levels,)
    scatter : ndarray, shape (n_covariates, n_covariates)
        Pooled scatter within levels.
    freedom : float
        Its degrees of freedom.
    penalty : float
    scale : ndarray, shape (n_covariates,)
    """
    # In units of `scale` and about the centre nothing is lost to large or far-away values.
    centre = weight @ mean / weight.sum()
    levels = (mean - centre) / scale
    within = scatter / np.outer(scale, scale)
    ridge = max(penalty, 1e-9 * max(freedom, 1.0))
    covariance = (within + ridge * np.eye(len(scale))) / (freedom + ridge)
    slopes = cho_solve(cho_factor(covariance), levels.T).T
    intercepts = np.log(weight / weight.sum()) - 0.5 * (levels * slopes).sum(axis=1)
    slopes -= slopes.mean(axis=0)
    slopes /= scale
    # Back to covariates that were not centred.
    intercepts -= slopes @ centre
    return Discriminant(intercepts - intercepts.mean(), slopes)
