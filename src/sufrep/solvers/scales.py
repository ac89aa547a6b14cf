"""Spread of the covariates, as group moments tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sufrep._combine import ratio

if TYPE_CHECKING:
    from sufrep._arrays import Floats
    from sufrep.moments import GroupMoments

# A spread that is this small beside the size of the values is rounding, not spread.
_ROUNDING = 1e-12
# So is one within levels beside the overall one; means of levels carry more rounding than values.
_ROUNDING_WITHIN = 1e-6


def overall_scale(moments: GroupMoments) -> Floats:
    """Standard deviation of each covariate over all rows, 1 for a constant; (n_covariates,)."""
    squares = moments.require_order_two().squares
    apart = np.where(moments.observed > 0, moments.mean - moments.overall_mean(), 0.0)
    total = (squares + moments.observed * apart**2).sum(axis=0)
    deviation = np.sqrt(ratio(total, moments.observed.sum(axis=0)))
    size = np.abs(moments.overall_mean())
    return np.where(deviation > _ROUNDING * size, deviation, 1.0)


def within_scale(moments: GroupMoments) -> Floats:
    """Pooled standard deviation within levels, the overall one for what is constant there; (p,)."""
    second = moments.require_order_two()
    freedom = np.maximum(moments.observed - 1, 0.0).sum(axis=0)
    deviation = np.sqrt(ratio(second.squares.sum(axis=0), freedom))
    overall = overall_scale(moments)
    return np.where(deviation > _ROUNDING_WITHIN * overall, deviation, overall)


def within_freedom(moments: GroupMoments) -> float:
    """Degrees of freedom of the scatter: weight of the complete rows minus the levels that have any."""
    weight = moments.require_order_two().complete_weight
    return max(float(weight.sum() - np.count_nonzero(weight)), 0.0)


def within_covariance(moments: GroupMoments) -> Floats:
    """Pooled covariance within levels (p, p), zero where no level has two complete rows."""
    scatter = moments.require_order_two().scatter
    freedom = within_freedom(moments)
    return scatter / freedom if freedom > 0 else np.zeros_like(scatter)
