"""Hidden states: a Gaussian mixture whose shares differ by level, fitted by EM in blocks of rows.

    X | L=l ~ N(μ_l, Σ),   L | G=g ~ ψ_g,   and, with a target,   Y | X=x, L=l ~ expert l

The criterion is the log-likelihood of the rows given their levels plus log-priors, which keep every step well
defined. In terms of pseudo-rows, ψ_g is shrunk towards the common shares π by `concentration` rows per level,
μ_l towards the overall mean by a tenth of a row, and Σ towards the identity by three rows. An iteration of EM
takes a few matrix products and never lowers the criterion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linear_sum_assignment

from sufrep._arrays import blocks
from sufrep._threads import in_threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Floats, Mask
    from sufrep.solvers.experts import Experts, ExpertSums
    from sufrep.solvers.multinomial import RowBlocks

_BLOCK = 8_192  # rows whose responsibilities are held at a time; they fit into the cache
_SHARES_BLOCK = 32_768  # rows whose levels are solved at a time, by a thread
_LEAST_SHARE = 1e-300  # whose logarithm is finite
_LEAST_START = 1e-200  # what a row may be divided by
# Change of the shares of a level in a round at which they have converged, most rounds, and the longest step
# in units of such a change.
_SHARE_TOLERANCE = 1e-8
_MOST_CYCLES = 200
_LONGEST_STEP = 1e6
_MEAN_WEIGHT = 0.1  # pseudo-rows at the overall mean, for each state
_COVARIANCE_WEIGHT = 3.0  # pseudo-rows with identity covariance


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """A fitted mixture of hidden states.

    Attributes
    ----------
    center : ndarray, shape (p,)
        Overall mean of the rows.
    means : ndarray, shape (n_states, p)
        μ_l, relative to `center`.
    covariance : ndarray, shape (p, p)
        Σ, the same in all states.
    shares : ndarray, shape (n_levels, n_states)
        ψ, the probabilities of the states in each level.
    prior : ndarray, shape (n_states,)
        π, the probabilities of the states in a level without rows.
    experts : Experts or None
        How the target depends on the row in each state.
    objective : ndarray, shape (n_iter,)
        The criterion after each iteration; it never falls.
    converged : bool
    """

    center: Floats
    means: Floats
    covariance: Floats
    shares: Floats
    prior: Floats
    experts: Experts | None
    objective: Floats
    converged: bool

    @property
    def n_states(self) -> int:
        """Number of hidden states."""
        return len(self.prior)

    def log_joint(self, rows: Floats, shares: Floats) -> Floats:
        """Return log ψ_l + log P(x|l) up to a term that is the same for all states; (n, n_states)."""
        weights, offset = self.discriminant()
        return np.asarray(rows @ weights - offset + np.log(np.maximum(shares, _LEAST_SHARE)))

    def discriminant(self) -> tuple[Floats, Floats]:
        """Return A and b of log P(x|l) = x A_l − b_l, up to a term that is the same for all states."""
        weights = cho_solve(cho_factor(self.covariance), self.means.T)
        return weights, self.center @ weights + (self.means.T * weights).sum(axis=0) / 2

    def posterior(self, rows: Floats, shares: Floats) -> Floats:
        """P(L=l | X=x, G=g) of rows whose levels have the given `shares`; (n, n_states)."""
        weights, offset = self.discriminant()
        joint, _ = _relative(rows @ weights - offset)
        joint *= np.maximum(shares, _LEAST_SHARE)
        joint /= joint.sum(axis=1, keepdims=True)
        return joint

    def log_density(self, rows: Floats, shares: Floats, target: Array | None = None) -> Floats:
        """Log P(X=x | G=g), or log P(X=x, Y=y | G=g) if there is a target, of each row; (n,)."""
        factor = cho_factor(self.covariance, lower=True)
        centered = rows - self.center
        common = (centered * cho_solve(factor, centered.T).T).sum(axis=1) + rows.shape[1] * np.log(2 * np.pi)
        common += 2 * np.log(np.diag(factor[0])).sum()
        joint = self.log_joint(rows, shares)
        if target is not None and self.experts is not None:
            joint = joint + self.experts.log_density(centered, target)
        return np.asarray(log_sum_exp(joint) - common / 2)

    def reordered(self, order: Codes) -> Mixture:
        """The same mixture with its states in another order."""
        experts = None if self.experts is None else self.experts.reordered(order)
        return replace(
            self,
            means=self.means[order],
            shares=self.shares[:, order],
            prior=self.prior[order],
            experts=experts,
        )

    def aligned(self, reference: Floats) -> Mixture:
        """The same mixture, its states matched to those of which the shares in the same levels are given.

        The states are those whose shares in all levels are nearest in squares (Hungarian algorithm). Means
        of covariates would not do: states may differ in the target only
        (test_states_that_hide_from_the_covariates_keep_their_order).
        """
        agreement = self.shares.T @ reference
        size = (self.shares**2).sum(axis=0)[:, None] + (reference**2).sum(axis=0)
        return self.reordered(linear_sum_assignment((size - 2 * agreement).T)[1])


def fit_mixture(
    rows: RowBlocks | Floats,
    codes: Codes,
    start: Mixture,
    *,
    weights: Floats | None = None,
    target: Array | None = None,
    concentration: float = 1.0,
    max_iter: int = 500,
    tol: float = 1e-6,
) -> Mixture:
    """Fit by EM from initial parameters.

    Parameters
    ----------
    rows : array or blocks, shape (n, p)
        Covariates of comparable scales, without nulls.
    codes : ndarray of int, shape (n,)
        Position of each row's level in the shares of `start`.
    start : Mixture
        Initial parameters, with experts if and only if there is a target.
    weights : ndarray, shape (n,), optional
        Frequency weights.
    target : ndarray, shape (n,), optional
    concentration : float, default=1.0
        Pseudo-rows of each level, distributed over the states as the prior.
    max_iter : int, default=500
    tol : float, default=1e-6
        Converged when an iteration raises the criterion by less than this per row.

    Returns
    -------
    Mixture
    """
    scatter, total = _scatter(rows, weights, start.center)
    level_weight = np.bincount(codes, weights, minlength=len(start.shares)).astype(np.float64)
    mixture, history, converged = start, [], False
    indicators = _level_indicators(codes, len(start.shares))
    for _ in range(max_iter):
        sums = _e_step(rows, codes, mixture, weights, target, indicators)
        history.append(_criterion(mixture, sums, scatter, total, concentration))
        if len(history) > 1 and history[-1] - history[-2] < tol * total:
            converged = True
            break
        mixture = _m_step(mixture, sums, scatter, total, level_weight, concentration)
    return replace(mixture, objective=np.array(history), converged=converged)


def fit_with_target(
    rows: RowBlocks | Floats,
    codes: Codes,
    start: Mixture,
    target: Array,
    *,
    weights: Floats | None = None,
    **options: Any,
) -> Mixture:
    """Run EM with experts twice: the first fit estimates their prior (empirical Bayes), the second uses it.

    Parameters are those of `fit_mixture`, and `start` has experts. The criterion and convergence are those of
    the second fit.
    """
    first = fit_mixture(rows, codes, start, weights=weights, target=target, **options)
    indicators = _level_indicators(codes, len(start.shares))
    sums = _e_step(rows, codes, first, weights, target, indicators)
    assert first.experts is not None
    assert sums.experts is not None
    experts = first.experts.calibrated(sums.experts)
    if experts is first.experts:
        return first
    second = replace(first, experts=experts)
    return fit_mixture(rows, codes, second, weights=weights, target=target, **options)


def normalised(log: Floats) -> Floats:
    """Probabilities that are proportional to exp(log) in each row; (n, n_states)."""
    return np.asarray(np.exp(log - log_sum_exp(log)[:, None]))


def log_sum_exp(log: Floats) -> Floats:
    """Log Σ_k exp(log_ik) of finite numbers; (n,). SciPy's takes several times as long on small arrays."""
    largest = log.max(axis=1)
    return np.asarray(largest + np.log(np.exp(log - largest[:, None]).sum(axis=1)))


def posteriors(mixture: Mixture, rows: RowBlocks | Floats, shares: Floats) -> Floats:
    """P(L | x, g) of rows whose levels have the given shares, computed in blocks; (n, n_states)."""
    result = np.empty_like(shares)
    for part in blocks(len(shares), _BLOCK):
        result[part] = mixture.posterior(rows[part], shares[part])
    return result


def level_shares(
    mixture: Mixture,
    rows: Floats,
    codes: Codes,
    n_levels: int,
    *,
    concentration: float,
    weights: Floats | None = None,
    target: Array | None = None,
    prior: Floats | None = None,
) -> Floats:
    """Probabilities of the states in levels, given their rows and the states; (n_levels, n_states).

    The mode of their posterior, in which the prior weighs as much as ``concentration`` rows, by EM that is
    accelerated for each level (SQUAREM of Varadhan and Roland 2008, Scandinavian Journal of Statistics 35).
    It depends on no row of another level.

    Parameters
    ----------
    mixture : Mixture
        Its own shares are not used.
    rows : ndarray, shape (n, p)
    codes : ndarray of int, shape (n,)
        The level of each row.
    n_levels : int
    concentration : float
    weights : ndarray, shape (n,), optional
        Frequency weights.
    target : ndarray, shape (n,), optional
        If it is given, rows include it, and the mixture has experts.
    prior : ndarray, shape (n_levels, n_states), optional
        The probabilities that each level has before its rows are seen; by default those of the mixture.
    """
    # Small integers are sorted several times as fast.
    order = np.argsort(codes.astype(np.uint16) if n_levels < 2**16 else codes, kind="stable")
    count = np.bincount(codes, minlength=n_levels)
    if prior is None:
        prior = np.tile(mixture.prior, (n_levels, 1))
    prior = np.maximum(prior, _LEAST_START)
    shares, (slopes, offset) = prior.copy(), mixture.discriminant()
    present = np.flatnonzero(count)  # a level without rows has the prior
    ends = np.cumsum(count[present])

    def solve(part: Codes) -> None:
        some = order[ends[part[0]] - count[present[part[0]]] : ends[part[-1]]] if len(part) else order[:0]
        chosen, levels = rows.take(some, axis=0), present[part]
        # The part of the joint density that does not depend on the shares is computed once.
        density = slopes.T @ chosen.T - offset[:, None]
        if target is not None and mixture.experts is not None:
            density += mixture.experts.log_density(chosen - mixture.center, target[some]).T
        density -= density.max(axis=0)
        np.exp(density, out=density)
        own = np.ones(len(some)) if weights is None else weights[some]
        start = np.ascontiguousarray(prior[levels].T)
        sorted_rows = _LevelRows(density, own, count[levels], concentration * start)
        shares[levels] = _accelerated(sorted_rows, start).T

    cuts = np.flatnonzero(np.diff((ends - 1) // _SHARES_BLOCK)) + 1
    in_threads(solve, np.split(np.arange(len(present)), cuts))
    return shares


@dataclass(frozen=True, slots=True, eq=False)
class _LevelRows:
    """Rows sorted by level, each of which has a row. States come first: sums over few of them are then fast.

    Attributes
    ----------
    density : ndarray, shape (n_states, n)
        Of each row in each state, up to a factor of the row.
    weights : ndarray, shape (n,)
    count : ndarray of int, shape (n_levels,)
        Number of rows of each level.
    pseudo_rows : ndarray, shape (n_states, n_levels)
        The priors, as rows of each level.
    """

    density: Floats
    weights: Floats
    count: Codes
    pseudo_rows: Floats

    def update(self, shares: Floats) -> Floats:
        """One round of EM; (n_states, n_levels)."""
        likelihood = np.zeros_like(self.weights)
        for density, share in zip(self.density, shares, strict=True):
            likelihood += density * share.repeat(self.count)
        per_row = self.weights / likelihood
        first_rows = np.cumsum(self.count) - self.count
        found = np.array([np.add.reduceat(density * per_row, first_rows) for density in self.density])
        found *= shares
        found += self.pseudo_rows
        found /= found.sum(axis=0)
        return found

    def take(self, chosen: Mask) -> _LevelRows:
        """Some of the levels."""
        rows = np.flatnonzero(chosen.repeat(self.count))
        density, weights = self.density.take(rows, axis=1), self.weights.take(rows)
        return _LevelRows(density, weights, self.count[chosen], self.pseudo_rows[:, chosen])


def _accelerated(levels: _LevelRows, shares: Floats) -> Floats:
    """The shares where EM stays, from given ones; each level stops for itself; (n_states, n_levels)."""
    result, active = shares.copy(), np.arange(shares.shape[1])
    safe, before = shares, np.full(shares.shape[1], np.inf)
    for _ in range(_MOST_CYCLES):
        first = levels.update(shares)
        second = levels.update(first)
        result[:, active] = second
        step = first - shares
        turn = second - first - step
        size = np.sqrt((step**2).sum(axis=0))
        length = size / np.maximum(np.sqrt((turn**2).sum(axis=0)), 1e-100)
        length = np.clip(length, 1.0, _LONGEST_STEP)
        ahead = shares + 2 * length * step + length**2 * turn
        ahead = np.where((ahead > 0).all(axis=0), ahead, second)
        # A step that led farther away is undone. EM itself never goes wrong, so there is always progress.
        worse = size > before
        shares, before = np.where(worse, safe, ahead), np.where(worse, np.inf, size)
        moving, safe = size > _SHARE_TOLERANCE, second
        if not moving.any():
            break
        if not moving.all():
            levels, active = levels.take(moving), active[moving]
            shares, safe, before = shares[:, moving], safe[:, moving], before[moving]
    return result


@dataclass(frozen=True, slots=True, eq=False)
class _ExpectedSums:
    """Expected sufficient statistics from an E-step.

    Attributes
    ----------
    state_weight : ndarray, shape (n_states,)
        Sums of the responsibilities.
    state_total : ndarray, shape (n_states, p)
        Sums of the centered rows, weighted by the responsibilities.
    level_state : ndarray, shape (n_levels, n_states)
        Sums of the responsibilities by level.
    log_likelihood : float
        Of the rows given their levels, up to a term that depends on Σ only.
    experts : ExpertSums or None
    """

    state_weight: Floats
    state_total: Floats
    level_state: Floats
    log_likelihood: float
    experts: ExpertSums | None


def _e_step(
    rows: RowBlocks | Floats,
    codes: Codes,
    mixture: Mixture,
    weights: Floats | None,
    target: Array | None,
    indicators: Sequence[sparse.csr_array],
) -> _ExpectedSums:
    """Expected sufficient statistics, summed over blocks of rows."""
    n_levels, n_states = mixture.shares.shape
    weight, total = np.zeros(n_states), np.zeros_like(mixture.means)
    level_state, log_likelihood = np.zeros((n_levels, n_states)), 0.0
    experts = None if mixture.experts is None else mixture.experts.empty_sums()
    (slopes, offset), shares = mixture.discriminant(), np.maximum(mixture.shares, _LEAST_SHARE)
    for part, indicator in zip(blocks(len(codes), _BLOCK), indicators, strict=True):
        block = rows[part]
        density = block @ slopes
        density -= offset
        if experts is not None and mixture.experts is not None and target is not None:
            density += mixture.experts.log_density(block - mixture.center, target[part])
        # The shares are multiplied by rather than their logarithms added, of which there would be one a row.
        responsibilities, largest = _relative(density)
        responsibilities *= shares[codes[part]]
        likelihood = responsibilities.sum(axis=1)
        responsibilities /= likelihood[:, None]
        log_density = largest + np.log(likelihood)
        if weights is not None:
            responsibilities *= weights[part, None]
            log_density *= weights[part]
        log_likelihood += float(log_density.sum())
        weight += responsibilities.sum(axis=0)
        total += responsibilities.T @ block
        level_state += indicator @ responsibilities
        if experts is not None and target is not None:
            experts.add(block - mixture.center, responsibilities, target[part])
    return _ExpectedSums(
        weight, total - weight[:, None] * mixture.center, level_state, log_likelihood, experts
    )


def _relative(log: Floats) -> tuple[Floats, Floats]:
    """Return exp(log − largest), in place of the argument, and the largest of each row; (n, k) and (n,)."""
    largest = log.max(axis=1)
    log -= largest[:, None]
    return np.exp(log, out=log), largest


def _level_indicators(codes: Codes, n_levels: int) -> list[sparse.csr_array]:
    """For each block of rows, the matrix, (n_levels, n_rows), that adds up rows by level."""
    found = []
    for part in blocks(len(codes), _BLOCK):
        own = codes[part]
        index = (own, np.arange(len(own)))
        found.append(sparse.csr_array((np.ones(len(own)), index), shape=(n_levels, len(own))))
    return found


def _m_step(
    mixture: Mixture,
    sums: _ExpectedSums,
    scatter: Floats,
    total: float,
    level_weight: Floats,
    concentration: float,
) -> Mixture:
    """Parameters that maximise the expected criterion given the responsibilities (π given the new ψ)."""
    n_states, p = mixture.means.shape
    size = sums.state_weight + _MEAN_WEIGHT
    means = sums.state_total / size[:, None]
    within = scatter - (means * size[:, None]).T @ means + _COVARIANCE_WEIGHT * np.eye(p)
    shares = sums.level_state + concentration * mixture.prior
    shares /= (level_weight + concentration)[:, None]
    # The π that maximises −Σ_g KL(π ‖ ψ_g) is the normalised geometric mean of the shares.
    logs = np.log(np.maximum(shares, _LEAST_SHARE)).mean(axis=0)
    prior = normalised(logs[None, :])[0]
    experts = mixture.experts
    if experts is not None and sums.experts is not None:
        experts = experts.updated(sums.experts)
    return replace(
        mixture,
        means=means,
        covariance=within / (total + n_states + _COVARIANCE_WEIGHT),
        shares=shares,
        prior=prior,
        experts=experts,
    )


def _criterion(
    mixture: Mixture, sums: _ExpectedSums, scatter: Floats, total: float, concentration: float
) -> float:
    """Log-likelihood plus log-priors, at the parameters that the sums were computed with."""
    factor = cho_factor(mixture.covariance, lower=True)
    log_determinant = 2 * np.log(np.diag(factor[0])).sum()
    prior = _MEAN_WEIGHT * mixture.means.T @ mixture.means + _COVARIANCE_WEIGHT * np.eye(len(scatter))
    quadratic = np.trace(cho_solve(factor, scatter + prior))
    size = total + mixture.n_states + _COVARIANCE_WEIGHT
    log_ratio = np.log(np.maximum(mixture.shares, _LEAST_SHARE)) - np.log(mixture.prior)
    shares = concentration * (log_ratio @ mixture.prior).sum()
    experts = 0.0 if mixture.experts is None else mixture.experts.log_prior()
    return float(sums.log_likelihood - (quadratic + size * log_determinant) / 2 + shares + experts)


def _scatter(rows: RowBlocks | Floats, weights: Floats | None, center: Floats) -> tuple[Floats, float]:
    """Σ w (x − center)(x − center)ᵀ over all rows, and the total weight."""
    scatter, total = np.zeros((rows.shape[1], rows.shape[1])), 0.0
    for part in blocks(len(rows), _BLOCK):
        centered = rows[part] - center
        weighted = centered if weights is None else centered * weights[part, None]
        scatter += weighted.T @ centered
        total += len(centered) if weights is None else float(weights[part].sum())
    return scatter, total
