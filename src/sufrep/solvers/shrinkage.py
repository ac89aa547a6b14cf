"""Multivariate empirical Bayes: the means of the levels, shrunk as far as they are noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sufrep.solvers.scales import overall_scale, within_covariance, within_freedom, within_scale

if TYPE_CHECKING:
    from sufrep._arrays import Floats
    from sufrep.moments import GroupMoments

# Added to the within-level variances, relative to the overall ones: covariates that are constant or collinear
# within levels must not stop the whitening.
_RIDGE = 1e-9
_ROUNDING = 1e-12
_BLOCK = 4096  # levels with nulls that are solved for at a time


@dataclass(frozen=True, slots=True, eq=False)
class MeansPrior:
    """How the true means of the levels are spread, and how noisy the means of their rows are.

    Attributes
    ----------
    center : ndarray, shape (p,)
        m, the overall mean; what a level without rows gets.
    scale : ndarray, shape (p,)
        Overall standard deviations; all that follows is in these units.
    within : ndarray, shape (p, p)
        W, the covariance of rows within a level.
    signal : ndarray, shape (p,)
        Variances of the true means along the axes on which W is the identity and T is diagonal, ascending.
    forward, back : ndarray, shape (p, p)
        To these axes (as a right factor), and back.
    """

    center: Floats
    scale: Floats
    within: Floats
    signal: Floats
    forward: Floats
    back: Floats

    @property
    def between(self) -> Floats:
        """T, the covariance of the true means, in units of `scale`; (p, p)."""
        return np.asarray(self.back.T @ (self.signal[:, None] * self.back))

    def posterior(self, mean: Floats, weight: Floats) -> Floats:
        """M + T(T + W/n)⁻¹(x̄ − m): each axis is shrunk by its share of signal, τ/(τ + 1/n).

        Parameters
        ----------
        mean : ndarray, shape (k, p)
            Sample means; NaN counts as the centre.
        weight : ndarray, shape (k,)
            Rows behind each.
        """
        apart = np.nan_to_num((mean - self.center) / self.scale)
        strength = weight[:, None] * self.signal
        return np.asarray(
            self.center + (((apart @ self.forward) * (strength / (strength + 1))) @ self.back) * self.scale
        )

    def posterior_with_nulls(self, mean: Floats, observed: Floats) -> Floats:
        """The same where covariates differ in their number of rows, zero for some.

        V_jk = W_jk / max(n_j, n_k) takes the place of W/n, and T predicts the means that are not there from
        those that are.

        Parameters
        ----------
        mean, observed : ndarray, shape (k, p)
        """
        values = np.empty_like(mean)
        between, identity = self.between, np.eye(mean.shape[1])
        for start in range(0, len(mean), _BLOCK):
            part = slice(start, start + _BLOCK)
            count = observed[part]
            here = count > 0
            both = here[:, :, None] & here[:, None, :]
            noise = self.within / np.maximum(np.maximum(count[:, :, None], count[:, None, :]), 1e-300)
            # Means that are not there get an equation of their own, without a right side.
            covariance = np.where(both, between + noise, (~here)[:, :, None] * identity) + _RIDGE * identity
            apart = np.where(here, (mean[part] - self.center) / self.scale, 0.0)
            solved = np.linalg.solve(covariance, apart[:, :, None])[:, :, 0]
            values[part] = self.center + self.scale * (solved @ between)
        return values


def estimate_means_prior(moments: GroupMoments) -> MeansPrior:
    """Estimate m, T and W of x̄_g ~ N(ω_g, W/n_g), ω_g ~ N(m, T).

    T is found by moments: what the spread of the sample means exceeds its noise by, without its negative part
    (in the metric of W). Where covariates have nulls, each mean counts with the rows that it is made of.

    Parameters
    ----------
    moments : GroupMoments
        Of order 2.
    """
    scale, center = overall_scale(moments), moments.overall_mean()
    apart = np.where(moments.observed > 0, moments.mean - center, 0.0) / scale
    within = _within(moments, scale)
    to_white = _whitening(within)
    signal, axes = np.linalg.eigh(to_white.T @ _excess(apart, moments.observed, within) @ to_white)
    forward = to_white @ axes
    return MeansPrior(center, scale, within, np.maximum(signal, 0.0), forward, np.linalg.inv(forward))


def shrink_means(moments: GroupMoments, prior: MeansPrior) -> Floats:
    """Posterior means E[ω_g | data] of the levels; (n_levels, p).

    Small levels and directions of little signal are shrunk at once.
    """
    return posterior_means(prior, moments.mean, moments.observed, moments.weight)


def shrink_each(moments: GroupMoments) -> tuple[Floats, Floats]:
    """Posterior means with every covariate shrunk by itself, and their centre; (n_levels, p) and (p,)."""
    parts = [moments.select([j]) for j in range(len(moments.covariates))]
    priors = [estimate_means_prior(part) for part in parts]
    values = [shrink_means(part, prior) for part, prior in zip(parts, priors, strict=True)]
    return np.hstack(values), np.concatenate([prior.center for prior in priors])


def posterior_means(prior: MeansPrior, mean: Floats, observed: Floats, weight: Floats) -> Floats:
    """Posterior means of levels, with nulls or without; (k, p).

    Parameters
    ----------
    prior : MeansPrior
    mean : ndarray, shape (k, p)
        Sample means; NaN where no row has the covariate.
    observed : ndarray, shape (k, p)
        Rows that have it.
    weight : ndarray, shape (k,)
        All rows.
    """
    values = prior.posterior(mean, weight)
    partial = (observed < weight[:, None] * (1 - 1e-12)).any(axis=1)
    values[partial] = prior.posterior_with_nulls(mean[partial], observed[partial])
    return values


def _within(moments: GroupMoments, scale: Floats) -> Floats:
    """Covariance within levels, in units of `scale`; spreads from all values, the rest from complete rows."""
    spread = within_scale(moments) / scale
    covariance = within_covariance(moments)
    deviation = np.sqrt(np.diag(covariance))
    if within_freedom(moments) <= 0:
        return np.diag(spread**2)
    safe = np.where(deviation > 0, deviation, 1.0)
    correlation = covariance / np.outer(safe, safe)
    np.fill_diagonal(correlation, 1.0)
    # Rows that came twice may differ by rounding, which is no spread either.
    total = moments.observed.sum(axis=0) * scale**2
    no_spread = moments.require_order_two().squares.sum(axis=0) <= _ROUNDING * total
    spread = np.where(no_spread, 0.0, spread)
    return np.asarray(correlation * np.outer(spread, spread))


def _whitening(within: Floats) -> Floats:
    """C with Cᵀ(W + ridge)C = I."""
    values, vectors = np.linalg.eigh(within)
    return np.asarray(vectors / np.sqrt(np.maximum(values, 0.0) + _RIDGE))


def _excess(apart: Floats, observed: Floats, within: Floats) -> Floats:
    """T by moments, before its negative part is dropped.

    Without nulls: E Σ_g n_g (x̄_g − x̄)(x̄_g − x̄)ᵀ = (M − 1) W + (N − Σ n_g²/N) T. With them, n_g is
    √(n_gj n_gk), and M the number of levels that have both covariates.
    """
    root = np.sqrt(observed)
    present = (observed > 0).astype(np.float64)
    spread = (root * apart).T @ (root * apart)
    # Its square must not underflow (test_a_covariate_that_is_null_everywhere_does_no_harm).
    total = np.maximum(observed.sum(axis=0), 1e-100)
    size = root.T @ root - observed.T @ observed / np.sqrt(np.outer(total, total))
    noise = np.maximum(present.T @ present - 1, 0.0) * within
    return np.divide(spread - noise, size, out=np.zeros_like(spread), where=size > 1e-9)
