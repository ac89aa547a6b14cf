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

if TYPE_CHECKING:
    from sufrep._arrays import Array, Codes, Floats
    from sufrep.solvers.experts import Experts, ExpertSums
    from sufrep.solvers.multinomial import RowBlocks

_BLOCK = 32_768  # rows whose responsibilities are held at a time
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
        weights = cho_solve(cho_factor(self.covariance), self.means.T)
        offset = (self.means.T * weights).sum(axis=0) / 2
        return np.asarray((rows - self.center) @ weights - offset + np.log(np.maximum(shares, 1e-300)))

    def posterior(self, rows: Floats, shares: Floats) -> Floats:
        """P(L=l | X=x, G=g) of rows whose levels have the given `shares`; (n, n_states)."""
        return normalised(self.log_joint(rows, shares))

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

    def aligned(self, reference: Mixture) -> Mixture:
        """The same mixture, its states matched to those of a reference with the same levels.

        The states are those whose shares in all levels are nearest in squares (Hungarian algorithm). Means
        of covariates would not do: states may differ in the target only
        (test_states_that_hide_from_the_covariates_keep_their_order).
        """
        agreement = self.shares.T @ reference.shares
        size = (self.shares**2).sum(axis=0)[:, None] + (reference.shares**2).sum(axis=0)
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
    for _ in range(max_iter):
        sums = _e_step(rows, codes, mixture, weights, target)
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
    sums = _e_step(rows, codes, first, weights, target)
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
    rows: RowBlocks | Floats, codes: Codes, mixture: Mixture, weights: Floats | None, target: Array | None
) -> _ExpectedSums:
    """Expected sufficient statistics, summed over blocks of rows."""
    n_levels, n_states = mixture.shares.shape
    weight, total = np.zeros(n_states), np.zeros_like(mixture.means)
    level_state, log_likelihood = np.zeros((n_levels, n_states)), 0.0
    experts = None if mixture.experts is None else mixture.experts.empty_sums()
    for part in blocks(len(codes), _BLOCK):
        block = rows[part]
        centered = block - mixture.center
        joint = mixture.log_joint(block, mixture.shares[codes[part]])
        if experts is not None and mixture.experts is not None and target is not None:
            joint += mixture.experts.log_density(centered, target[part])
        log_density = log_sum_exp(joint)
        responsibilities = np.exp(joint - log_density[:, None])
        if weights is not None:
            responsibilities *= weights[part, None]
            log_density = log_density * weights[part]
        log_likelihood += float(log_density.sum())
        weight += responsibilities.sum(axis=0)
        total += responsibilities.T @ centered
        ones = np.ones(len(block))
        index = (codes[part], np.arange(len(block)))
        level_state += sparse.csr_array((ones, index), shape=(n_levels, len(block))) @ responsibilities
        if experts is not None and target is not None:
            experts.add(centered, responsibilities, target[part])
    return _ExpectedSums(weight, total, level_state, log_likelihood, experts)


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
    logs = np.log(np.maximum(shares, 1e-300)).mean(axis=0)
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
    log_ratio = np.log(np.maximum(mixture.shares, 1e-300)) - np.log(mixture.prior)
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
