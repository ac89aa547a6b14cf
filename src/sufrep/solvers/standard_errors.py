"""How far the vectors of levels may be from those that endless rows would give.

Everything that levels share (directions, states, the covariance within levels) is taken as given. For each
family of vectors there is a record with one method, ``covariances``, which gives the covariance of the error
for some of the levels at a time: for many levels and columns, all of them would not fit into memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sufrep._arrays import blocks
from sufrep.solvers.nesting import nested_errors
from sufrep.solvers.new_levels import LinearRule
from sufrep.solvers.shrinkage import estimate_means_prior, prior_errors

if TYPE_CHECKING:
    from sufrep._arrays import Codes, Floats, Mask
    from sufrep.moments import GroupMoments
    from sufrep.solvers.mixture import Mixture
    from sufrep.solvers.nesting import Nesting
    from sufrep.solvers.new_levels import DiscriminantRule
    from sufrep.solvers.shrinkage import MeansPrior, PriorErrors

# Numbers in the covariances that are held at a time.
_MOST_NUMBERS = 1 << 21
# Simulated rows of each state, from which the information about the shares is computed.
_ROWS_OF_STATE = 400


class LevelErrors(Protocol):
    """Errors of the vectors of levels."""

    def covariances(self, chosen: Codes) -> Floats:
        """Covariance of the error of each chosen level; (n_chosen, n_columns, n_columns).

        NaN where it is not known.
        """


def standard_errors(errors: LevelErrors, n_levels: int, n_columns: int) -> Floats:
    """Standard errors of all entries; (n_levels, n_columns)."""
    found = np.empty((n_levels, n_columns))
    for part in _level_blocks(n_levels, n_columns):
        variance = np.diagonal(errors.covariances(part), axis1=1, axis2=2)
        found[part] = np.sqrt(np.maximum(variance, 0.0))  # NaN stays
    return found


def _level_blocks(n_levels: int, n_columns: int) -> list[Codes]:
    size = max(1, _MOST_NUMBERS // max(n_columns, 1) ** 2)
    return [np.arange(part.start, part.stop) for part in blocks(n_levels, size)]


@dataclass(frozen=True, slots=True, eq=False)
class IndependentErrors:
    """Standard errors that were computed with the vectors, without their correlations.

    Attributes
    ----------
    errors : ndarray, shape (n_levels, n_columns)
    """

    errors: Floats

    def covariances(self, chosen: Codes) -> Floats:
        """Diagonal covariances; (n_chosen, n_columns, n_columns)."""
        return np.asarray(self.errors[chosen, :, None] ** 2 * np.eye(self.errors.shape[1]))


def separate_errors(
    moments: GroupMoments, codes: Codes, n_levels: int, nesting: Nesting | None = None
) -> Floats:
    """Standard errors of means that are shrunk as in `shrink_each`; (n_levels, p).

    With a nesting, they are not known for levels without rows.

    Parameters
    ----------
    moments : GroupMoments
        Of order 2, without nulls.
    codes : ndarray of int
        Position of each of its levels among all levels; the others have no rows.
    n_levels : int
    nesting : Nesting, optional
        Of the levels of ``moments``.
    """
    weight, found = np.zeros(n_levels), np.full((n_levels, len(moments.covariates)), np.nan)
    weight[codes] = moments.weight
    rows = slice(None) if nesting is None else codes
    for j in range(len(moments.covariates)):
        prior, errors = _prior_of(moments.select([j]), nesting)
        if nesting is not None:
            errors = replace(errors, center=errors.center[nesting.parents[0]])
        variance = prior.posterior_covariance(weight[rows, None], weight[rows], errors)[:, 0, 0]
        found[rows, j] = prior.scale * np.sqrt(variance)
    known = np.maximum(moments.observed - 1, 0.0).sum(axis=0) > 0
    return np.where(known, found, np.nan)


def _prior_of(moments: GroupMoments, nesting: Nesting | None) -> tuple[MeansPrior, PriorErrors]:
    """What levels are shrunk towards, with its errors: the overall mean, or the means of parents."""
    if nesting is not None:
        return nested_errors(moments, nesting)
    prior = estimate_means_prior(moments)
    return prior, prior_errors(moments, prior)


# Means, and linear functions of them


@dataclass(frozen=True, slots=True, eq=False)
class MeansErrors:
    """Errors of linear functions of level means, shrunk or not.

    A mean that is not shrunk together with the others is v = m̂ + b (x̄ − m̂), where b is 1 for a sample mean,
    0 for a mean that no row is known of, and n/(n + 1) if every level has one more row at the overall mean.
    Its error has the covariance b V b + (1 − b) (T + Var m̂) (1 − b): sampling error, and what is not known of
    the level for as far as its mean is replaced by the overall one. For the b of empirical Bayes, that is the
    posterior variance.

    Attributes
    ----------
    prior : MeansPrior
    between : ndarray, shape (p, p)
        T, in the prior's units.
    errors : PriorErrors
        Of m̂ and T̂.
    kind : ndarray of int, shape (n_levels,)
        Levels with the same numbers of rows, and with the same parent, have the same errors, and are of one
        kind.
    observed : ndarray, shape (n_kinds, p)
        Number of rows that have each covariate.
    weight : ndarray, shape (n_kinds,)
        Number of rows.
    keep : ndarray, shape (n_kinds, p), or None
        b; None if all means are shrunk together.
    more : ndarray, shape (n_kinds, p)
        Variances that the errors of separate priors add, in the prior's units.
    outputs : ndarray of int, shape (m,)
        Positions of the means that are used.
    matrix : ndarray, shape (m, n_columns), or None
        What they are multiplied by; None if they are the vector.
    unknown : ndarray of bool, shape (p,)
        Covariates of which no level has two values: nothing is known about their spread within levels.
    parent : ndarray of int, shape (n_kinds,), or None
        The parent whose mean has the error, if levels have parents and are shrunk towards them.
    """

    prior: MeansPrior
    between: Floats
    errors: PriorErrors
    kind: Codes
    observed: Floats
    weight: Floats
    keep: Floats | None
    more: Floats
    outputs: Codes
    matrix: Floats | None
    unknown: Mask
    parent: Codes | None = None

    def covariances(self, chosen: Codes) -> Floats:
        """Covariances of the errors; (n_chosen, n_columns, n_columns)."""
        kinds, place = np.unique(self.kind[chosen], return_inverse=True)
        size = max(1, _MOST_NUMBERS // self.observed.shape[1] ** 2)
        found = [self._of_kinds(kinds[part]) for part in blocks(len(kinds), size)]
        return np.concatenate(found)[place] if found else self._of_kinds(kinds)

    def _of_kinds(self, chosen: Codes) -> Floats:
        """Covariances of the errors of levels of some kinds; (n_chosen, n_columns, n_columns)."""
        observed = self.observed[chosen]
        if self.keep is None:
            errors = self.errors
            if self.parent is not None:
                errors = replace(errors, center=errors.center[self.parent[chosen]])
            found = self.prior.posterior_covariance(observed, self.weight[chosen], errors)
        else:
            keep = self.keep[chosen]
            found = keep[:, :, None] * self.prior.noise(observed) * keep[:, None, :]
            found += (1 - keep)[:, :, None] * (self.between + self.errors.center) * (1 - keep)[:, None, :]
            found += self.more[chosen, :, None] * np.eye(keep.shape[1])
        found = found[:, self.outputs[:, None], self.outputs]
        scale, unknown = self.prior.scale[self.outputs], self.unknown[self.outputs]
        if self.matrix is None:
            found = scale[:, None] * found * scale
        else:
            into = scale[:, None] * self.matrix
            found = into.T @ found @ into
            unknown = (self.matrix[unknown] != 0).any(axis=0)
        return np.asarray(np.where(unknown[:, None] | unknown, np.nan, found))


def means_errors(
    rule: LinearRule, moments: GroupMoments, n_targets: int, nesting: Nesting | None = None
) -> MeansErrors:
    """Errors of the vectors that follow by a rule from the means of levels.

    Parameters
    ----------
    rule : LinearRule
    moments : GroupMoments
        Of order 2, of covariates and target.
    n_targets : int
        Number of columns of the target, which are the last ones.
    nesting : Nesting, optional
        Of these levels.
    """
    parent = None if nesting is None else nesting.parents[0]
    first, kind = _kinds(moments, parent)
    observed = moments.observed[first]
    prior, errors = _prior_of(moments, nesting if rule.shrink else None)
    between, keep, more = prior.between, None, np.zeros_like(observed)
    if not rule.shrink:
        keep = observed / (observed + 1) if rule.one_more_row else (observed > 0).astype(np.float64)
        variances = np.diag(between).copy()
        for j in range(observed.shape[1] - n_targets, observed.shape[1]):
            # The columns of the target are shrunk one by one (`shrink_with_target`).
            alone, own = _prior_of(moments.select([j]), nesting)
            variances[j], strength = alone.between[0, 0], observed[:, j] * alone.signal[0]
            keep[:, j] = strength / (strength + 1)
            more[:, j] = alone.covariance_from_signal(observed[:, [j]], own)[:, 0, 0]
            if parent is not None:
                center = own.center[parent[first], 0, 0] - errors.center[j, j]
                more[:, j] += (1 - keep[:, j]) ** 2 * center
        between = _with_variances(between, variances)
    return MeansErrors(
        prior,
        between,
        errors,
        kind,
        observed,
        moments.weight[first],
        keep,
        more,
        rule.outputs,
        rule.matrix,
        np.maximum(observed - 1, 0.0).sum(axis=0) <= 0,
        parent[first] if parent is not None and rule.shrink else None,
    )


def _kinds(moments: GroupMoments, parent: Codes | None) -> tuple[Codes, Codes]:
    """A level of each kind, and the kind of every level; see `MeansErrors`."""
    some_null = (moments.observed != moments.weight[:, None]).any(axis=0)
    rows = np.column_stack([moments.weight, moments.observed[:, some_null]])
    if parent is not None:
        rows = np.column_stack([rows, parent])
    distinct = rows[:, 0] if rows.shape[1] == 1 else rows
    _, first, kind = np.unique(distinct, axis=0, return_index=True, return_inverse=True)
    return first, kind.reshape(-1)


def _with_variances(covariance: Floats, variances: Floats) -> Floats:
    """The same correlations with other variances, (p,); (p, p)."""
    old = np.diag(covariance)
    change = np.sqrt(np.divide(variances, old, out=np.ones_like(old), where=old > 0))
    return np.asarray(covariance * np.outer(change, change))


# Coefficients of a multinomial logit


@dataclass(frozen=True, slots=True, eq=False)
class DiscriminantErrors:
    """Errors of the coefficients of a multinomial logit, by the delta method for its closed form.

    Attributes
    ----------
    means : MeansErrors
        Of the sample means.
    rule : DiscriminantRule
    levels : ndarray, shape (n_levels, p)
        Means of the levels, from the center.
    average : ndarray, shape (p + 1, p + 1)
        Average of the covariances over the levels: coefficients are centered to mean 0.
    """

    means: MeansErrors
    rule: DiscriminantRule
    levels: Floats
    average: Floats

    def covariances(self, chosen: Codes) -> Floats:
        """Covariances of the errors; (n_chosen, p + 1, p + 1)."""
        n_levels = len(self.levels)
        return np.asarray((1 - 2 / n_levels) * self._not_centered(chosen) + self.average / n_levels)

    def _not_centered(self, chosen: Codes) -> Floats:
        rule, weight = self.rule, self.means.weight[self.means.kind[chosen]]
        precision = rule.precision / np.outer(rule.scale, rule.scale)
        # Derivatives of the intercept and of the slopes by the means.
        change = np.empty((len(chosen), len(precision), len(precision) + 1))
        change[:, :, 0] = -(self.levels[chosen] + rule.center) @ precision
        change[:, :, 1:] = precision
        found = change.transpose(0, 2, 1) @ self.means.covariances(chosen) @ change
        # The intercept contains log n_g, and its quadratic form has errors of second order.
        p = len(precision)
        found[:, 0, 0] += np.maximum(1 / weight - 1 / rule.total, 0.0) + (p / 2 + p**2 / 4) / weight**2
        return np.asarray(found * np.outer(rule.factor, rule.factor))


def discriminant_errors(rule: DiscriminantRule, moments: GroupMoments) -> DiscriminantErrors:
    """Errors of the coefficients that follow by a rule from the means."""
    means = means_errors(LinearRule(moments.overall_mean(), np.arange(len(rule.center))), moments, 0)
    levels = np.where(moments.observed > 0, moments.mean, rule.center) - rule.center
    n_levels, k = len(levels), len(rule.factor)
    found = DiscriminantErrors(means, rule, levels, np.zeros((k, k)))
    total = sum(found._not_centered(part).sum(axis=0) for part in _level_blocks(n_levels, k))
    return replace(found, average=np.asarray(total / n_levels))


# Shares of hidden states


@dataclass(frozen=True, slots=True, eq=False)
class SharesErrors:
    """Errors of the shares of hidden states.

    The shares ψ are the mode of their posterior, under a Dirichlet prior with parameters cπ + 1. If the
    states of the n rows were known, the posterior would be a Dirichlet distribution with the mean
    m = ((n + c) ψ + 1) / (n + c + k) and the precision (n + c + k + 1) diag(1/m), and the mean square around
    the mode would be its covariance plus (m − ψ)(m − ψ)ᵀ. Because states are hidden, a row has less
    information than diag(1/m): ∫ f_i f_j / Σ_l m_l f_l, with the density f_l of state l. It is computed from
    simulated rows of every state, the same for all levels.

    Attributes
    ----------
    shares : ndarray, shape (n_levels, n_states)
    weight : ndarray, shape (n_levels,)
        Number of rows.
    concentration : float
        c, the number of rows that the prior weighs as much as.
    density : ndarray, shape (n, n_states)
        Density of simulated rows in each state, relative to the average over the states.
    """

    shares: Floats
    weight: Floats
    concentration: float
    density: Floats

    def covariances(self, chosen: Codes) -> Floats:
        """Covariances of the errors; (n_chosen, n_states, n_states)."""
        weight, k = self.weight[chosen], self.shares.shape[1]
        rows = (weight + self.concentration)[:, None]
        mean = (rows * self.shares[chosen] + 1) / (rows + k)
        information = weight[:, None, None] * self._information(mean)
        information += (self.concentration + k + 1) / mean[:, :, None] * np.eye(k)
        # Shares add up to 1, so their errors add up to 0. Relative to √m, no entry of the matrix is huge.
        root = np.sqrt(mean)
        scaled = root[:, :, None] * information * root[:, None, :]
        away = np.eye(k) - root[:, :, None] * root[:, None, :]
        inverse = np.linalg.pinv(away @ scaled @ away, rcond=1e-12, hermitian=True)
        apart = mean - self.shares[chosen]
        return np.asarray(
            root[:, :, None] * inverse * root[:, None, :] + apart[:, :, None] * apart[:, None, :]
        )

    def _information(self, shares: Floats) -> Floats:
        """Information of one row of levels with the given shares, (n, k); (n, k, k)."""
        n, k = self.density.shape
        pairs = (self.density[:, :, None] * self.density[:, None, :]).reshape(n, -1) / n
        found = np.empty((len(shares), k * k))
        for part in blocks(len(shares), max(1, _MOST_NUMBERS // n)):
            found[part] = (1 / (shares[part] @ self.density.T)) @ pairs
        return found.reshape(-1, k, k)


def shares_errors(mixture: Mixture, weight: Floats, concentration: float) -> SharesErrors:
    """Errors of the shares of the levels of a mixture, which have the given numbers of rows (n_levels,)."""
    rng, k = np.random.default_rng(0), mixture.n_states
    state = np.repeat(np.arange(k), _ROWS_OF_STATE)
    noise = rng.multivariate_normal(
        np.zeros(len(mixture.center)), mixture.covariance, len(state), method="eigh"
    )
    rows = mixture.center + mixture.means[state] + noise
    log = mixture.log_joint(rows, np.ones((len(rows), k)))
    if mixture.experts is not None:
        centered = rows - mixture.center
        log = log + mixture.experts.log_density(centered, mixture.experts.sample(centered, state, rng))
    density = np.exp(log - log.max(axis=1, keepdims=True))
    density /= density.mean(axis=1, keepdims=True)
    return SharesErrors(mixture.shares, weight, concentration, density)
