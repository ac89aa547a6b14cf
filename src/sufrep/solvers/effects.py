"""Doubly robust scores of a treatment effect, and what is computed from them.

An effect solves Σ ω_i (ψ_b,i − θ ψ_a,i) = 0. Its error comes from the same terms, summed within clusters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Codes, Floats, Mask

Estimand: TypeAlias = Literal["ATE", "ATT", "ATO"]


@dataclass(frozen=True, slots=True, eq=False)
class Nuisances:
    """What is known about each row without its own outcome: predictions of models fitted to other rows.

    Attributes
    ----------
    propensity : ndarray, shape (n,)
        ê, the probability of treatment.
    untreated, treated : ndarray, shape (n,)
        μ̂₀ and μ̂₁, the expected outcomes without and with treatment.
    """

    propensity: Floats
    untreated: Floats
    treated: Floats

    def take(self, rows: Codes | Mask | slice) -> Nuisances:
        """Those of some rows."""
        return Nuisances(self.propensity[rows], self.untreated[rows], self.treated[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The two parts of the score of each row, ψ_a and ψ_b; (n,) each."""

    slope: Floats
    constant: Floats


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate, its standard error and its degrees of freedom (infinite for the normal distribution)."""

    value: float
    std_error: float
    dof: float = math.inf

    @property
    def p_value(self) -> float:
        """Of the two-sided test that the true value is 0; NaN without a standard error."""
        if not self.std_error > 0:
            return math.nan
        return float(2 * stats.t.sf(abs(self.value) / self.std_error, self.dof))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval."""
        half = float(stats.t.ppf((1 + level) / 2, self.dof)) * self.std_error
        return self.value - half, self.value + half


def effect_scores(estimand: Estimand, treatment: Floats, outcome: Floats, nuisances: Nuisances) -> Scores:
    """Scores of the average effect on all rows (ATE), on the treated (ATT), or weighted by overlap (ATO).

    Parameters
    ----------
    estimand : {"ATE", "ATT", "ATO"}
        The score of the ATO is that of the partially linear model.
    treatment : ndarray, shape (n,)
        1 for treated rows, 0 for the others.
    outcome : ndarray, shape (n,)
    nuisances : Nuisances
        Propensities strictly between 0 and 1.
    """
    w, y, e = treatment, outcome, nuisances.propensity
    m0, m1 = nuisances.untreated, nuisances.treated
    if estimand == "ATE":
        constant = m1 - m0 + w * (y - m1) / e - (1 - w) * (y - m0) / (1 - e)
        return Scores(np.ones_like(w), constant)
    if estimand == "ATT":
        return Scores(w, w * (y - m0) - (1 - w) * e / (1 - e) * (y - m0))
    residual = w - e
    return Scores(residual**2, residual * (y - e * m1 - (1 - e) * m0))


def balancing_weights(estimand: Estimand, treatment: Floats, propensity: Floats) -> Floats:
    """Weights of the rows that make treated and untreated comparable for an estimand; (n,)."""
    w, e = treatment, propensity
    if estimand == "ATE":
        return np.asarray(w / e + (1 - w) / (1 - e))
    if estimand == "ATT":
        return np.asarray(w + (1 - w) * e / (1 - e))
    return np.asarray(w * (1 - e) + (1 - w) * e)


def effective_size(weights: Floats) -> float:
    """Number of equally weighted rows with the same precision, (Σv)² / Σv²."""
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def solve_scores(scores: Scores, weights: Floats, clusters: Codes | None) -> Estimate:
    """The effect that the scores give, with its standard error.

    Parameters
    ----------
    scores : Scores
    weights : ndarray, shape (n,)
        ω, which multiplies both parts.
    clusters : ndarray of int, shape (n,), or None
        Rows of a cluster are dependent; None for independent rows.

    Returns
    -------
    Estimate
        θ = Σωψ_b / Σωψ_a. With u = ω(ψ_b − θψ_a) and G clusters, the variance is
        G/(G − 1) Σ_g (Σ_{i∈g} u_i)² / (Σωψ_a)², with G − 1 degrees of freedom; rows without clusters are
        their own clusters, and the normal distribution applies. NaN if Σωψ_a is 0.
    """
    total = float((weights * scores.slope).sum())
    n_clusters = len(weights) if clusters is None else len(np.unique(clusters))
    dof = math.inf if clusters is None else n_clusters - 1
    if total == 0:
        return Estimate(math.nan, math.nan, dof)
    value = float((weights * scores.constant).sum()) / total
    sums = _cluster_sums((weights * (scores.constant - value * scores.slope))[:, None], clusters)[:, 0]
    error = math.sqrt(_small_sample(n_clusters) * float((sums**2).sum())) / abs(total)
    return Estimate(value, error, dof)


def combine_repeats(estimates: Sequence[Estimate]) -> Estimate:
    """The median over repeated splits; its variance is the median of σ_s² + (θ_s − θ̃)²."""
    values = np.array([found.value for found in estimates])
    errors = np.array([found.std_error for found in estimates])
    median = float(np.median(values))
    variance = float(np.median(errors**2 + (values - median) ** 2))
    return Estimate(median, math.sqrt(variance), min(found.dof for found in estimates))


def project(values: Floats, columns: Floats, weights: Floats, clusters: Codes | None) -> list[Estimate]:
    """Least squares of values (n,) on columns (n, k), with clustered errors; an estimate for each column.

    Directions that the columns do not span have a coefficient of least norm.
    """
    root = np.sqrt(weights)
    weighted = columns * root[:, None]
    # Columns of the same length: the units of a covariate then do not decide what counts as spanned
    # (test_units_of_a_column_do_not_change_a_projection).
    length = np.linalg.norm(weighted, axis=0)
    length[length == 0] = 1.0
    inverse = np.linalg.pinv(weighted / length) / length[:, None]
    coefficients = inverse @ (values * root)
    residual = values - columns @ coefficients
    sums = _cluster_sums(inverse.T * (root * residual)[:, None], clusters)
    variance = _small_sample(len(sums)) * (sums.T @ sums)
    dof = math.inf if clusters is None else len(sums) - 1
    return [
        Estimate(float(value), math.sqrt(max(float(square), 0.0)), dof)
        for value, square in zip(coefficients, np.diag(variance), strict=True)
    ]


def linear_fixed_effect(
    treatment: Floats,
    outcome: Floats,
    covariates: Floats,
    groups: Codes,
    weights: Floats,
    clusters: Codes | None,
) -> Estimate:
    """Coefficient of the treatment in a linear regression with an intercept for each group.

    It estimates an average effect in which groups count by how much treatment varies in them.
    """
    whole = np.column_stack([outcome, treatment, covariates])
    total = np.bincount(groups, weights)
    means = np.column_stack([np.bincount(groups, weights * column) / total for column in whole.T])
    within = whole - means[groups]
    # What is left of a column that is constant within groups is rounding errors
    # (test_a_covariate_that_is_constant_within_groups_changes_no_fixed_effect).
    left = np.abs(within).max(axis=0) > 1e-12 * np.abs(whole).max(axis=0)
    within[:, ~left] = 0.0
    if not left[1]:
        return Estimate(math.nan, math.nan)
    return project(within[:, 0], within[:, 1:], weights, clusters)[0]


@dataclass(frozen=True, slots=True)
class SensitivityElements:
    """What bounds the bias from an unobserved confounder.

    Attributes
    ----------
    outcome_variance : float
        σ², the mean squared residual of the outcome.
    weight_variance : float
        ν², the mean square of the weights with which outcomes enter the effect.
    """

    outcome_variance: float
    weight_variance: float

    @property
    def scale(self) -> float:
        """√(σ²ν²)."""
        return math.sqrt(max(self.outcome_variance * self.weight_variance, 0.0))

    def bound(self, cf_y: float, cf_d: float, rho: float) -> float:
        """The largest bias of a confounder that explains these shares of what is left unexplained."""
        return abs(rho) * math.sqrt(cf_y * cf_d / (1 - cf_d)) * self.scale

    def robustness(self, distance: float, rho: float = 1.0) -> float:
        """The share cf_y = cf_d at which the bias reaches a distance."""
        if not self.scale > 0 or not rho:
            return math.nan
        f = abs(distance) / (abs(rho) * self.scale)
        # √(f⁴ + 4f²) − f², without the difference of two large numbers.
        return 2 * f**2 / (math.sqrt(f**4 + 4 * f**2) + f**2) if f > 0 else 0.0


def sensitivity_elements(
    estimand: Estimand, treatment: Floats, outcome: Floats, nuisances: Nuisances, weights: Floats
) -> SensitivityElements:
    """σ² and ν² of the ATE or the ATT (Chernozhukov, Cinelli, Newey, Sharma and Syrgkanis 2022)."""
    w, e = treatment, nuisances.propensity
    residual = outcome - np.where(w > 0, nuisances.treated, nuisances.untreated)
    if estimand == "ATE":
        alpha = w / e - (1 - w) / (1 - e)
        square = 2 * (1 / e + 1 / (1 - e)) - alpha**2
    else:
        share = float(np.average(w, weights=weights))
        alpha = w / share - (1 - w) * e / (share * (1 - e))
        square = 2 * w / (share**2 * (1 - e)) - alpha**2
    return SensitivityElements(
        float(np.average(residual**2, weights=weights)), float(np.average(square, weights=weights))
    )


def _cluster_sums(terms: Floats, clusters: Codes | None) -> Floats:
    """Sums of the rows of each cluster that occurs; (n_clusters, k)."""
    if clusters is None:
        return terms
    _, codes = np.unique(clusters, return_inverse=True)
    return np.column_stack([np.bincount(codes, column) for column in terms.T])


def _small_sample(n_clusters: int) -> float:
    return n_clusters / (n_clusters - 1) if n_clusters > 1 else math.nan
