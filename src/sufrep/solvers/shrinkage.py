"""Empirical Bayes estimates of the level means, and the scales of the covariates that they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sufrep._accumulate import ratio, refuse_small, unscaled
from sufrep._arrays import blocks

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from sufrep._arrays import Floats, Mask
    from sufrep.moments import GroupMoments

    Shrink: TypeAlias = Callable[[GroupMoments], tuple[Floats, Floats]]

# Added to the within-level variances, relative to the overall ones, so that whitening works with covariates
# that are constant or collinear within levels.
_RIDGE = 1e-9
# Relative size below which a spread is rounding error.
_ROUNDING = 1e-12
# The same for a spread within levels relative to the overall one: level means carry more rounding than
# values.
_ROUNDING_WITHIN = 1e-6
_BLOCK = 4096  # levels with nulls that are solved at a time


@dataclass(frozen=True, slots=True, eq=False)
class MeansPrior:
    """Prior of the true level means, and the noise of the sample means: x̄_g ~ N(ω_g, W/n_g), ω_g ~ N(m, T).

    Attributes
    ----------
    center : ndarray, shape (p,)
        m, the overall mean; the posterior mean of a level without rows.
    scale : ndarray, shape (p,)
        Overall standard deviations. All fields below are in these units.
    within : ndarray, shape (p, p)
        W, the covariance of rows within a level.
    signal : ndarray, shape (p,)
        Variances of the true means along the axes on which W is the identity and T is diagonal, ascending.
    forward, back : ndarray, shape (p, p)
        Change of basis to these axes (multiplied from the right), and its inverse.
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

    def posterior(self, mean: Floats, weight: Floats, center: Floats | None = None) -> Floats:
        """Return m + T(T + W/n)⁻¹(x̄ − m): each axis is shrunk by its share of signal, τ/(τ + 1/n).

        Parameters
        ----------
        mean : ndarray, shape (k, p)
            Sample means; NaN is replaced by the center.
        weight : ndarray, shape (k,)
            Number of rows behind each mean.
        center : ndarray, shape (k, p), optional
            What they are shrunk towards; by default m.
        """
        center = self.center if center is None else center
        deviation = np.nan_to_num((mean - center) / self.scale)
        strength = weight[:, None] * self.signal
        return np.asarray(
            center + (((deviation @ self.forward) * (strength / (strength + 1))) @ self.back) * self.scale
        )

    def posterior_with_nulls(self, mean: Floats, observed: Floats, center: Floats) -> Floats:
        """Posterior means where the number of rows differs by covariate and may be zero.

        V_jk = W_jk / max(n_j, n_k) replaces W/n. Missing means are predicted from the observed ones through
        T.

        Parameters
        ----------
        mean, observed : ndarray, shape (k, p)
        center : ndarray, shape (k, p)
        """
        values, between = np.empty_like(mean), self.between
        for part in blocks(len(mean), _BLOCK):
            present = observed[part] > 0
            deviation = np.where(present, (mean[part] - center[part]) / self.scale, 0.0)
            solved = np.linalg.solve(self.covariance(observed[part]), deviation[:, :, None])[:, :, 0]
            values[part] = center[part] + self.scale * (solved @ between)
        return values

    def noise(self, observed: Floats) -> Floats:
        """Covariances V of the sample means, V_jk = W_jk / max(n_j, n_k), in units of `scale`; (k, p, p).

        Parameters
        ----------
        observed : ndarray, shape (k, p)
            Number of rows that have each covariate; where none has, V means nothing.
        """
        most = np.maximum(observed[:, :, None], observed[:, None, :])
        return np.asarray(self.within / np.maximum(most, 1e-300))

    def posterior_covariance(self, observed: Floats, weight: Floats, errors: PriorErrors) -> Floats:
        """Covariances of the errors of posterior means, in units of `scale`; (k, p, p).

        The posterior covariance T − T(T + V)⁻¹T, and what it lacks because the prior is estimated: the errors
        of m̂ and T̂, for as far as means are shrunk.

        Parameters
        ----------
        observed : ndarray, shape (k, p)
        weight : ndarray, shape (k,)
        errors : PriorErrors
        """
        found = np.empty((*observed.shape, observed.shape[1]))
        center, partial = np.broadcast_to(errors.center, found.shape), has_nulls(observed, weight)
        # On the axes of `signal`, all is diagonal except the error of m̂.
        left = 1 / (weight[~partial, None] * self.signal + 1)
        inner = left[:, :, None] * (self.forward.T @ center[~partial] @ self.forward) * left[:, None, :]
        inner[:, np.arange(len(self.signal)), np.arange(len(self.signal))] += left * self.signal
        found[~partial] = self.back.T @ inner @ self.back
        count = observed[partial]
        present = count > 0
        gain = np.linalg.inv(self.covariance(count)) * (present[:, :, None] & present[:, None, :])
        left = np.eye(len(self.signal)) - self.between @ gain
        found[partial] = left @ self.between + left @ center[partial] @ left.transpose(0, 2, 1)
        return found + self.covariance_from_signal(observed, errors)

    def covariance_from_signal(self, observed: Floats, errors: PriorErrors) -> Floats:
        """What the error of T̂ adds to `posterior_covariance`; (k, p, p)."""
        left = 1 / (observed.mean(axis=1)[:, None] * self.signal + 1)
        return np.asarray(self.back.T @ ((left**2 * errors.signal)[:, :, None] * self.back))

    def covariance(self, observed: Floats) -> Floats:
        """T + V of sample means, in units of `scale`; (k, p, p).

        A missing mean gets the variance 1 and no covariance, which decouples it from the others.
        """
        present, identity = observed > 0, np.eye(observed.shape[1])
        both = present[:, :, None] & present[:, None, :]
        covariance = np.where(both, self.between + self.noise(observed), (~present)[:, :, None] * identity)
        # Next to large variances, of levels of little weight, a constant ridge would be lost to rounding
        # (test_levels_of_little_weight_with_nulls_have_finite_means).
        largest = np.diagonal(covariance, axis1=1, axis2=2).max(axis=1, initial=0.0)
        return np.asarray(covariance + np.maximum(_RIDGE, _ROUNDING * largest)[:, None, None] * identity)

    def with_between(self, between: Floats) -> MeansPrior:
        """The same with another T, in units of `scale`, whose negative eigenvalues are dropped."""
        whitening = whiten(self.within)
        signal, axes = np.linalg.eigh(whitening.T @ between @ whitening)
        forward = whitening @ axes
        return MeansPrior(
            self.center,
            self.scale,
            self.within,
            np.maximum(signal, 0.0),
            forward,
            np.linalg.inv(forward),
        )


def estimate_means_prior(moments: GroupMoments) -> MeansPrior:
    """Estimate m, T and W of x̄_g ~ N(ω_g, W/n_g), ω_g ~ N(m, T).

    T is estimated by the method of moments, as the covariance of the sample means in excess of their noise,
    projected onto the positive semi-definite matrices in the metric of W. Where covariates have nulls, each
    mean counts with its own number of rows.

    Parameters
    ----------
    moments : GroupMoments
        Of order 2.
    """
    scale, center = overall_scale(moments), moments.overall_mean()
    deviation = np.where(moments.observed > 0, moments.mean - center, 0.0) / scale
    within = _scaled_within_covariance(moments, scale)
    whitening = whiten(within)
    excess = _excess_covariance(deviation, moments.observed, within)
    signal, axes = np.linalg.eigh(whitening.T @ excess @ whitening)
    forward = whitening @ axes
    return MeansPrior(center, scale, within, np.maximum(signal, 0.0), forward, np.linalg.inv(forward))


def shrink_means(moments: GroupMoments, prior: MeansPrior) -> Floats:
    """Posterior means E[ω_g | data] of the levels; (n_levels, p).

    The shrinkage is strong in small levels and in directions with little signal.
    """
    return posterior_means(prior, moments.mean, moments.observed, moments.weight)


def shrink_to_center(moments: GroupMoments) -> tuple[Floats, Floats]:
    """Posterior means of the levels, and the overall mean that they are shrunk towards."""
    prior = estimate_means_prior(moments)
    return shrink_means(moments, prior), prior.center


def shrink_each(moments: GroupMoments, shrink: Shrink = shrink_to_center) -> tuple[Floats, Floats]:
    """Posterior means with a separate prior for each covariate, and their center; (n_levels, p) and (p,)."""
    found = [shrink(moments.select([j])) for j in range(len(moments.covariates))]
    return np.hstack([values for values, _ in found]), np.concatenate([center for _, center in found])


def shrink_with_target(
    moments: GroupMoments, n_covariates: int, *, jointly: bool, shrink: Shrink = shrink_to_center
) -> tuple[Floats, Floats]:
    """Means of the covariates and of the target, whose means are always shrunk.

    Parameters
    ----------
    moments : GroupMoments
        Of order 2.
    n_covariates : int
        Number of columns before those of the target.
    jointly : bool
        Shrink all columns together; otherwise each column of the target by itself, and no covariate.
    shrink : callable
        How means are shrunk: from moments to posterior means and their center.

    Returns
    -------
    values : ndarray, shape (n_levels, p)
    center : ndarray, shape (p,)
        The vector of a level without rows.
    """
    if jointly:
        return _shrink_jointly(moments, n_covariates, shrink)
    values, center = moments.filled_mean(), moments.overall_mean()
    target = moments.select(range(n_covariates, len(moments.covariates)))
    if target.covariates:
        values[:, n_covariates:], center[n_covariates:] = shrink_each(target, shrink)
    return values, center


def _shrink_jointly(moments: GroupMoments, n_covariates: int, shrink: Shrink) -> tuple[Floats, Floats]:
    """Posterior means of all columns together, and their center.

    A class that does not occur has the mean 0. It is left out, or its column would amplify rounding errors:
    rows before the first one of a class must not learn that it exists (test_a_later_target_changes_nothing).
    """
    n_columns = len(moments.covariates)
    occurs = [j for j in range(n_columns) if j < n_covariates or moments.mean[:, j].any()]
    own = moments if len(occurs) == n_columns else moments.select(occurs)
    values, center = np.zeros((moments.n_levels, n_columns)), np.zeros(n_columns)
    values[:, occurs], center[occurs] = shrink(own)
    return values, center


def posterior_means(
    prior: MeansPrior, mean: Floats, observed: Floats, weight: Floats, center: Floats | None = None
) -> Floats:
    """Posterior means of levels, with or without nulls; (k, p).

    Parameters
    ----------
    prior : MeansPrior
    mean : ndarray, shape (k, p)
        Sample means; NaN where no row has the covariate.
    observed : ndarray, shape (k, p)
        Number of rows that have the covariate.
    weight : ndarray, shape (k,)
        Number of all rows.
    center : ndarray, shape (k, p), or None
        What the means are shrunk towards; None for the center of the prior.
    """
    centers = np.broadcast_to(prior.center if center is None else center, mean.shape)
    values = prior.posterior(mean, weight, centers)
    some = has_nulls(observed, weight)
    values[some] = prior.posterior_with_nulls(mean[some], observed[some], centers[some])
    return values


def has_nulls(observed: Floats, weight: Floats) -> Mask:
    """Whether a level, of which (k, p) values and (k,) rows are known, has a null in some covariate; (k,)."""
    return np.asarray((observed < weight[:, None] * (1 - 1e-12)).any(axis=1))


def add_one_row(mean: Floats, observed: Floats, center: Floats) -> Floats:
    """Means as if every level had one more row, at the center; (k, p)."""
    share = observed / (observed + 1)
    own = np.where(observed > 0, np.nan_to_num(mean) / 4, 0.0)
    return unscaled(share * own + center / 4 / (observed + 1), 2)  # quarters cannot overflow


def overall_scale(moments: GroupMoments) -> Floats:
    """Standard deviation of each covariate over all rows, 1 for a constant; (p,)."""
    squares = moments.require_order_two().squares
    center = moments.overall_mean()
    deviation = np.where(moments.observed > 0, moments.mean - center, 0.0)
    total = squares + (moments.observed * deviation**2).sum(axis=0)
    scale = np.sqrt(ratio(total, moments.observed.sum(axis=0)))
    size = np.abs(center)
    # The squares may be zero where the deviations are not.
    spread = np.maximum(scale, np.abs(deviation).max(axis=0, initial=0.0))
    varies = spread > _ROUNDING * size
    for name, found in zip(moments.covariates, np.where(varies, spread, 0.0), strict=True):
        refuse_small(name, float(found))
    return np.where(scale > _ROUNDING * size, scale, 1.0)


def within_scale(moments: GroupMoments, overall: Floats | None = None) -> Floats:
    """Pooled standard deviation within levels, or the overall one of a covariate constant in them; (p,)."""
    squares = moments.require_order_two().squares
    freedom = np.maximum(moments.observed - 1, 0.0).sum(axis=0)
    scale = np.sqrt(ratio(squares, freedom))
    overall = overall_scale(moments) if overall is None else overall
    return np.where(scale > _ROUNDING_WITHIN * overall, scale, overall)


@dataclass(frozen=True, slots=True, eq=False)
class PriorErrors:
    """Sampling errors of the estimates of a prior.

    Attributes
    ----------
    center : ndarray, shape (p, p) or (k, p, p)
        Covariance of m̂, or of the mean that each level is shrunk towards, in units of the prior's scale.
    signal : ndarray, shape (p,)
        How much larger than T̂ the variance of the true means has to be taken, along its axes.
    """

    center: Floats
    signal: Floats


def prior_errors(moments: GroupMoments, prior: MeansPrior) -> PriorErrors:
    """Errors of what `estimate_means_prior` found in these moments.

    The overall means vary because levels were drawn, Σ_g (n_g/N)² T, and because rows were, W/N.

    T̂ is a weighted sum of squares of deviations, which are normal with the variances n_g τ + 1. An error dT
    moves posterior means by (1 − B) dT (T + V)⁻¹ (x̄ − m) with B = T(T + V)⁻¹, which has the variances
    (1 − B_i)² Σ_j Var(dT_ij) / (τ_j + 1/n) along the axes. It counts twice, because the posterior covariance
    at T̂ is too small by as much again (Prasad and Rao 1990). Here n is that of an average level: with that of
    each level, errors would grow with the number of rows where T̂ is near 0
    (test_errors_fall_with_the_number_of_rows_where_levels_do_not_differ).
    """
    total = moments.observed.sum(axis=0)
    share = ratio(moments.observed, np.broadcast_to(total, moments.observed.shape))
    center = share.T @ share * prior.between + prior.noise(total[None])[0] * (total > 0)
    rows = moments.observed.mean(axis=1)
    variance = rows[:, None] * prior.signal + 1
    size = rows.sum() - rows @ rows / max(float(rows.sum()), 1e-300)
    change = variance.T @ variance * (1 + np.eye(len(prior.signal)))
    signal = 2 * change @ (rows.mean() / (rows.mean() * prior.signal + 1))
    return PriorErrors(np.asarray(center), signal / size**2 if size > 1e-9 else np.zeros_like(signal))


def within_freedom(moments: GroupMoments) -> float:
    """Degrees of freedom of the scatter: weight of the complete rows minus the number of levels with any."""
    weight = moments.require_order_two().complete_weight
    return max(float(weight.sum() - np.count_nonzero(weight)), 0.0)


def within_covariance(moments: GroupMoments) -> Floats:
    """Pooled covariance within levels (p, p), zero where no level has two complete rows."""
    scatter = moments.require_order_two().scatter
    freedom = within_freedom(moments)
    return scatter / freedom if freedom > 0 else np.zeros_like(scatter)


def _scaled_within_covariance(moments: GroupMoments, scale: Floats) -> Floats:
    """W in units of `scale`: standard deviations from all values, correlations from the complete rows."""
    spread = within_scale(moments, scale) / scale
    covariance = within_covariance(moments)
    deviation = np.sqrt(np.diag(covariance))
    if within_freedom(moments) <= 0:
        return np.diag(spread**2)
    divisor = np.where(deviation > 0, deviation, 1.0)
    correlation = covariance / np.outer(divisor, divisor)
    np.fill_diagonal(correlation, 1.0)
    # Squares of equal values may differ from zero by rounding.
    squares = moments.require_order_two().squares
    total = moments.observed.sum(axis=0) * scale**2
    spread = np.where(squares <= _ROUNDING * total, 0.0, spread)
    return np.asarray(correlation * np.outer(spread, spread))


def whiten(within: Floats) -> Floats:
    """C with Cᵀ(W + ridge)C = I."""
    values, vectors = np.linalg.eigh(within)
    return np.asarray(vectors / np.sqrt(np.maximum(values, 0.0) + _RIDGE))


def _excess_covariance(deviation: Floats, observed: Floats, within: Floats) -> Floats:
    """T by the method of moments, before its negative eigenvalues are dropped.

    Without nulls: E Σ_g n_g (x̄_g − x̄)(x̄_g − x̄)ᵀ = (M − 1) W + (N − Σ n_g²/N) T. With nulls, n_g is
    √(n_gj n_gk), and M the number of levels that have both covariates.
    """
    root = np.sqrt(observed)
    present = (observed > 0).astype(np.float64)
    spread = (root * deviation).T @ (root * deviation)
    # The lower bound keeps the product of two totals from underflowing
    # (test_a_covariate_that_is_always_null_does_not_affect_the_others).
    total = np.maximum(observed.sum(axis=0), 1e-100)
    size = root.T @ root - observed.T @ observed / np.sqrt(np.outer(total, total))
    noise = np.maximum(present.T @ present - 1, 0.0) * within
    return np.divide(spread - noise, size, out=np.zeros_like(spread), where=size > 1e-9)
