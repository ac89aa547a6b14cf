"""Vectors of levels that were not there when an encoder was fitted, from their own rows.

Everything that levels share is as it was learnt: directions, states, the covariance within levels, the prior.
Only what belongs to the level itself is estimated, so its vector depends on no other row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from sufrep.solvers.closed_forms import within_with_ridge
from sufrep.solvers.mixture import level_shares
from sufrep.solvers.nesting import StatesTier, Tier, nearest_known
from sufrep.solvers.shrinkage import add_one_row, posterior_means, within_freedom

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sufrep._arrays import Array, Codes, Floats, Levels, Mask
    from sufrep.moments import GroupMoments
    from sufrep.solvers.shrinkage import MeansPrior


@dataclass(frozen=True, slots=True, eq=False)
class NewLevels:
    """The rows of levels that are new.

    Attributes
    ----------
    collect_moments : callable
        Returns the moments of the covariates, and of the target where it is known. Not every rule needs them.
    n_levels : int
        Number of levels; each has a row.
    codes : ndarray of int, shape (n,)
        The level of each row.
    columns : sequence of ndarray, each of shape (n,)
        The covariates; NaN is a null.
    details : mapping of str to object
        What else was learnt about the group, by the name of the fitted attribute.
    paths : tuple of ndarray of object, each of shape (n_levels,)
        What each level is part of, from the nearest tier to the farthest, None where that is unknown.
    """

    collect_moments: Callable[[], GroupMoments]
    n_levels: int
    codes: Codes
    columns: Sequence[Array]
    details: Mapping[str, Any]
    paths: tuple[Levels, ...] = ()


class LevelRule(Protocol):
    """How the vector of a new level follows from its rows."""

    needs_rows: ClassVar[bool]

    def vectors(self, new: NewLevels) -> Floats:
        """The vectors of new levels; (n_levels, n_columns)."""

    def fits(self, n_covariates: int) -> bool:
        """Whether the rule is one for levels with so many covariates, the target included."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearRule:
    """A vector that is a linear function of the level's means.

    Attributes
    ----------
    fill : ndarray, shape (p + q,)
        Overall means of p covariates and of q columns of the target. A level without any value of a covariate
        counts as average in it.
    outputs : ndarray of int, shape (m,)
        Positions of the means that are used.
    matrix : ndarray, shape (m, n_columns), or None
        What they are multiplied by; None if they are the vector.
    offset : ndarray, shape (n_columns,), or None
        What is added.
    one_more_row : bool
        Whether every level has one more row, at the overall mean.
    shrink : bool
        Whether the means are replaced by their posterior means under ``prior``.
    prior : MeansPrior or None
        Of covariates and target together. Where the target of a new level is unknown, its mean is replaced by
        its conditional expectation given the means of the covariates, T_yx (T_xx + W_xx/n)⁻¹ (x̄ − m).
    tiers : tuple of Tier
        What levels are nested in. The means of a level are shrunk towards those of its nearest known
        ancestor, and only without one towards m.
    """

    needs_rows: ClassVar[bool] = False

    fill: Floats
    outputs: Codes
    matrix: Floats | None = None
    offset: Floats | None = None
    one_more_row: bool = False
    shrink: bool = False
    prior: MeansPrior | None = None
    tiers: tuple[Tier, ...] = ()

    def vectors(self, new: NewLevels) -> Floats:
        """The vectors of new levels; (n_levels, n_columns)."""
        moments, p = new.collect_moments(), len(new.columns)
        n, known = moments.mean.shape  # the target, which comes after the covariates, may be unknown
        values = np.tile(self.fill, (n, 1))
        values[:, :known] = np.where(moments.observed > 0, moments.mean, self.fill[:known])
        if self.one_more_row:
            values[:, :p] = add_one_row(moments.mean[:, :p], moments.observed[:, :p], self.fill[:p])
        if self.prior is not None:
            mean, observed = np.full_like(values, np.nan), np.zeros_like(values)
            mean[:, :known], observed[:, :known] = moments.mean, moments.observed
            first = 0 if self.shrink else p
            values[:, first:] = self._posterior(mean, observed, moments.weight, new.paths)[:, first:]
        return self._combine(values)

    def starts(self, paths: Sequence[Levels]) -> tuple[Floats, Mask]:
        """The vectors of levels of which only their ancestors are known, and whether any of these is.

        Parameters
        ----------
        paths : sequence of ndarray of object, each of shape (n_levels,)
        """
        empty = np.zeros((len(paths[0]), len(self.fill)))
        known = nearest_known(paths, self.tiers, len(empty))[0] >= 0
        return self._combine(self._posterior(empty, empty, empty[:, 0], paths)), known

    def _posterior(self, mean: Floats, observed: Floats, weight: Floats, paths: Sequence[Levels]) -> Floats:
        """Posterior means given the nearest known ancestors; (n_levels, p + q)."""
        if self.prior is None:
            raise TypeError("a rule without a prior does not shrink")
        values = posterior_means(self.prior, mean, observed, weight)
        tier, place = nearest_known(paths, self.tiers, len(mean))
        for number, known in enumerate(self.tiers):
            own = tier == number
            centers = known.means[place[own]]
            values[own] = posterior_means(known.prior, mean[own], observed[own], weight[own], centers)
        return values

    def _combine(self, values: Floats) -> Floats:
        """The vectors, given all means."""
        values = values[:, self.outputs]
        if self.matrix is not None:
            values = values @ self.matrix
        return values if self.offset is None else np.asarray(values + self.offset)

    def fits(self, n_covariates: int) -> bool:
        """Whether the rule is one for levels with so many covariates."""
        known = len(self.fill)
        inside = (self.outputs >= 0) & (self.outputs < known)
        if self.prior is None:
            return known == n_covariates and bool(inside.all()) and not self.tiers
        sizes = [size for tier in self.tiers for size in (tier.means.shape[1], len(tier.prior.center))]
        # A prior may hold residuals of the target, which are not among the covariates.
        return (
            known == len(self.prior.center) >= n_covariates and bool(inside.all()) and set(sizes) <= {known}
        )


@dataclass(frozen=True, slots=True, eq=False)
class DiscriminantRule:
    """Coefficients of a multinomial logit by the closed form for normal covariates.

    Attributes
    ----------
    center, scale : ndarray, shape (p,)
        Overall means and standard deviations of the covariates.
    precision : ndarray, shape (p, p)
        W⁻¹, the inverse of the covariance within levels, in units of ``scale``.
    total : float
        Weight of all training rows, which log P(g) is relative to.
    shift, factor : ndarray, shape (p + 1,)
        What is added to each coefficient of the closed form after multiplication: the least-squares fit to
        the coefficients of the known levels. Exact coefficients are penalised, and known up to a constant.
    """

    needs_rows: ClassVar[bool] = False

    center: Floats
    scale: Floats
    precision: Floats
    total: float
    shift: Floats
    factor: Floats

    def vectors(self, new: NewLevels) -> Floats:
        """The vectors of new levels; (n_levels, p + 1)."""
        return np.asarray(self.closed_form(new.collect_moments()) * self.factor + self.shift)

    def fits(self, n_covariates: int) -> bool:
        """Whether the rule is one for levels with so many covariates."""
        return len(self.center) == n_covariates == len(self.shift) - 1

    def closed_form(self, moments: GroupMoments) -> Floats:
        """Intercept and slopes by Bayes' theorem, up to a constant; (n_levels, p + 1)."""
        levels = (np.where(moments.observed > 0, moments.mean, self.center) - self.center) / self.scale
        slopes = levels @ self.precision
        intercepts = np.log(moments.weight / self.total) - 0.5 * (levels * slopes).sum(axis=1)
        slopes /= self.scale
        return np.column_stack([intercepts - slopes @ self.center, slopes])


def discriminant_rule(
    moments: GroupMoments, coefficients: Floats, *, penalty: float, scale: Floats
) -> DiscriminantRule:
    """The rule that agrees best with the coefficients, (n_levels, p + 1), of the levels of these moments."""
    scatter = moments.require_order_two().scatter
    covariance = within_with_ridge(scatter, within_freedom(moments), penalty=penalty, scale=scale)
    mean, zero = moments.filled_mean(), np.zeros(coefficients.shape[1])
    center = moments.weight @ mean / moments.total_weight
    precision = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
    plain = DiscriminantRule(center, scale, precision, moments.total_weight, zero, zero + 1.0)
    closed = plain.closed_form(moments)
    spread = closed - closed.mean(axis=0)
    square = (spread**2).sum(axis=0)
    factor = np.divide((spread * coefficients).sum(axis=0), square, out=zero + 1.0, where=square > 0)
    shift = coefficients.mean(axis=0) - factor * closed.mean(axis=0)
    return replace(plain, shift=shift, factor=factor)


@dataclass(frozen=True, slots=True, eq=False)
class StatesRule:
    """Probabilities of hidden states, given the rows of the level.

    Attributes
    ----------
    concentration : float
        Number of rows that the prior weighs as much as.
    tiers : tuple of StatesTier
        What levels are nested in. The prior of a level is what its nearest known ancestor has, and only
        without one that of the mixture.
    """

    needs_rows: ClassVar[bool] = True

    concentration: float
    tiers: tuple[StatesTier, ...] = ()

    def vectors(self, new: NewLevels) -> Floats:
        """The shares of the states in new levels; (n_levels, n_states)."""
        scores = new.details["normal_scores_"].apply(new.columns)
        mixture = new.details["mixtures_"]
        prior = self._priors(new.paths, np.tile(mixture.prior, (new.n_levels, 1)))[0] if self.tiers else None
        return level_shares(
            mixture, scores, new.codes, new.n_levels, concentration=self.concentration, prior=prior
        )

    def starts(self, paths: Sequence[Levels]) -> tuple[Floats, Mask]:
        """The vectors of levels of which only their ancestors are known, and whether any of these is."""
        n_states = self.tiers[0].shares.shape[1]
        return self._priors(paths, np.full((len(paths[0]), n_states), np.nan))

    def _priors(self, paths: Sequence[Levels], values: Floats) -> tuple[Floats, Mask]:
        """Put the shares of the nearest known ancestors into ``values``; and whether there is any."""
        tier, place = nearest_known(paths, self.tiers, len(values))
        for number, known in enumerate(self.tiers):
            values[tier == number] = known.shares[place[tier == number]]
        return values, tier >= 0

    def fits(self, n_covariates: int) -> bool:
        """Whether the prior counts, which is all that this rule knows."""
        return n_covariates > 0 and 0 < self.concentration < np.inf
