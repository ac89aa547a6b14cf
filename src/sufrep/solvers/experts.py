"""Experts: models of the target given the covariates, one for each hidden state of a mixture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sufrep.solvers.regressions import hinge_basis, shrink_coefficients

if TYPE_CHECKING:
    from sufrep._arrays import Array, Codes, Floats

_VARIANCE_WEIGHT = 2.0  # pseudo-rows with the pooled residual variance, for each state
_CLASS_WEIGHT = 1.0  # pseudo-rows with the overall class shares, for each state
_PENALTY = 1.0  # ridge penalty towards the common coefficients, until it is estimated
_CALIBRATION_ROUNDS = 50


class ExpertSums(Protocol):
    """Expected sufficient statistics of the experts."""

    def add(self, centered: Floats, responsibilities: Floats, target: Array, /) -> None:
        """Add a block of rows, weighted by their responsibilities."""


class Experts(Protocol):
    """One model of the target for each state. Rows are relative to the center of the mixture."""

    def log_density(self, centered: Floats, target: Array, /) -> Floats:
        """Log P(y | x, l) of each row and state; (n, n_states)."""

    def predict(self, centered: Floats, /) -> Floats:
        """E[Y | x, l] of each row and state, with a last axis for the classes if there are any."""

    def sample(self, centered: Floats, state: Codes, rng: np.random.Generator, /) -> Array:
        """Draw the target of rows in given states; (n,)."""

    def log_prior(self) -> float:
        """Log-prior of the parameters."""

    def empty_sums(self) -> ExpertSums:
        """Sums over no rows."""

    def updated(self, sums: ExpertSums, /) -> Experts:
        """The M-step: experts that maximise the expected criterion given the sums."""

    def calibrated(self, sums: ExpertSums, /) -> Experts:
        """Experts whose prior is estimated from the sums by empirical Bayes."""

    def reordered(self, order: Codes, /) -> Experts:
        """The same experts in another order of the states."""


class _GramSums:
    """Weighted sums of squares and products of the basis and y, for each state."""

    def __init__(self, n_states: int, n_basis: int, origin: float) -> None:
        self.gram = np.zeros((n_states, n_basis + 1, n_basis + 1))
        self.origin = origin

    def add(self, centered: Floats, responsibilities: Floats, target: Array, /) -> None:
        columns = np.column_stack([hinge_basis(centered), target - self.origin])
        for state, weight in enumerate(responsibilities.T):
            self.gram[state] += (columns * weight[:, None]).T @ columns


@dataclass(frozen=True, slots=True, eq=False)
class LinearExperts:
    """Y | x, l ~ N(y₀ + b(x)ᵀβ_l, σ_l²) with the basis b of `hinge_basis`.

    β_l is shrunk towards common coefficients, and σ_l² towards the pooled residual variance.

    Attributes
    ----------
    coefficients : ndarray, shape (n_states, 2p + 1)
        Intercept first.
    variances : ndarray, shape (n_states,)
    pooled : ndarray, shape (2p + 1,)
        The common coefficients: those of one regression for all rows, or the estimated prior mean once
        calibrated.
    pooled_variance : float
        Residual variance of the one regression.
    penalty : ndarray, shape (2p + 1,)
        Ridge penalty on the difference of each coefficient from the common one.
    origin : float
        y₀, which is subtracted from the target: sums of squares far from zero would lose their precision
        (test_a_target_far_from_zero_keeps_its_precision).
    """

    coefficients: Floats
    variances: Floats
    pooled: Floats
    pooled_variance: float
    penalty: Floats
    origin: float = 0.0

    def log_density(self, centered: Floats, target: Array, /) -> Floats:
        """Log N(y; y₀ + b(x)ᵀβ_l, σ_l²); (n, n_states)."""
        residual = target[:, None] - self.predict(centered)
        return np.asarray(-(residual**2) / (2 * self.variances) - np.log(2 * np.pi * self.variances) / 2)

    def predict(self, centered: Floats, /) -> Floats:
        """Return y₀ + b(x)ᵀβ_l; (n, n_states)."""
        return np.asarray(hinge_basis(centered) @ self.coefficients.T + self.origin)

    def sample(self, centered: Floats, state: Codes, rng: np.random.Generator, /) -> Array:
        """Draw the target of rows in given states; (n,)."""
        mean = self.predict(centered)[np.arange(len(state)), state]
        return np.asarray(rng.normal(mean, np.sqrt(self.variances[state])))

    def log_prior(self) -> float:
        """Log-prior: normal for the coefficients given the noise, inverse gamma for the noise."""
        return float(
            -(self._prior_squares() / (2 * self.variances)).sum()
            - ((len(self.pooled) + _VARIANCE_WEIGHT) / 2 * np.log(self.variances)).sum()
        )

    def empty_sums(self) -> _GramSums:
        """Sums over no rows."""
        n_states, n_basis = self.coefficients.shape
        return _GramSums(n_states, n_basis, self.origin)

    def updated(self, sums: _GramSums, /) -> LinearExperts:
        """Ridge regressions towards the common one, weighted by the responsibilities of each state."""
        gram, cross, square = sums.gram[:, :-1, :-1], sums.gram[:, :-1, -1], sums.gram[:, -1, -1]
        ridge = np.diag(self.penalty)
        coefficients = np.linalg.solve(gram + ridge, (cross + self.penalty * self.pooled)[:, :, None])[
            :, :, 0
        ]
        residual = square - 2 * (coefficients * cross).sum(axis=1)
        residual += np.einsum("ki,kij,kj->k", coefficients, gram, coefficients)
        found = replace(self, coefficients=np.asarray(coefficients, dtype=np.float64))
        total = np.maximum(residual, 0.0) + found._prior_squares()
        size = gram[:, 0, 0] + len(self.pooled) + _VARIANCE_WEIGHT
        return replace(found, variances=total / size)

    def calibrated(self, sums: _GramSums, /) -> LinearExperts:
        """Estimate the common coefficients and the penalties by empirical Bayes."""
        found = shrink_coefficients(
            sums.gram,
            center=self.pooled,
            noise=self.variances,
            variance=self.pooled_variance,
            noise_weight=_VARIANCE_WEIGHT,
            n_rounds=_CALIBRATION_ROUNDS,
        )
        penalty = found.noise.mean() / found.spread
        return replace(
            self, coefficients=found.means, variances=found.noise, pooled=found.center, penalty=penalty
        )

    def reordered(self, order: Codes, /) -> LinearExperts:
        """The same experts in another order of the states."""
        return replace(self, coefficients=self.coefficients[order], variances=self.variances[order])

    def _prior_squares(self) -> Floats:
        """Contribution of the priors to the sum of squared residuals of each state; (n_states,)."""
        penalty = (self.penalty * (self.coefficients - self.pooled) ** 2).sum(axis=1)
        return np.asarray(penalty + _VARIANCE_WEIGHT * self.pooled_variance)


class _ClassSums:
    """Weighted counts of the classes in each state."""

    def __init__(self, n_states: int, n_classes: int) -> None:
        self.counts = np.zeros((n_states, n_classes))

    def add(self, _centered: Floats, responsibilities: Floats, target: Array, /) -> None:
        for label in range(self.counts.shape[1]):
            self.counts[:, label] += responsibilities[target == label].sum(axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class ClassExperts:
    """P(Y=c | l): class probabilities of each state, shrunk towards the overall ones.

    Attributes
    ----------
    probabilities : ndarray, shape (n_states, n_classes)
    pooled : ndarray, shape (n_classes,)
    """

    probabilities: Floats
    pooled: Floats

    def log_density(self, _centered: Floats, target: Array, /) -> Floats:
        """Log P(Y=y | l); (n, n_states)."""
        return np.asarray(np.log(self.probabilities.T[target]))

    def predict(self, centered: Floats, /) -> Floats:
        """P(Y=c | l); (n, n_states, n_classes)."""
        return np.broadcast_to(self.probabilities, (len(centered), *self.probabilities.shape))

    def sample(self, _centered: Floats, state: Codes, rng: np.random.Generator, /) -> Array:
        """Draw the class of rows in given states; (n,)."""
        below = rng.random(len(state))[:, None] > np.cumsum(self.probabilities[state], axis=1)[:, :-1]
        return np.asarray(below.sum(axis=1))

    def log_prior(self) -> float:
        """Log-density of the prior, a Dirichlet distribution around the overall probabilities."""
        return float(_CLASS_WEIGHT * (np.log(self.probabilities) @ self.pooled).sum())

    def empty_sums(self) -> _ClassSums:
        """Sums over no rows."""
        return _ClassSums(*self.probabilities.shape)

    def updated(self, sums: _ClassSums, /) -> ClassExperts:
        """Shares of the classes, with a pseudo-row of the overall shares."""
        counts = sums.counts + _CLASS_WEIGHT * self.pooled
        return replace(self, probabilities=counts / counts.sum(axis=1, keepdims=True))

    def calibrated(self, _sums: _ClassSums, /) -> ClassExperts:
        """The same experts: the prior of class probabilities is fixed."""
        return self

    def reordered(self, order: Codes, /) -> ClassExperts:
        """The same experts in another order of the states."""
        return replace(self, probabilities=self.probabilities[order])


def first_linear_experts(
    centered: Floats, target: Array, n_states: int, weights: Floats | None = None
) -> LinearExperts:
    """Initial experts, the same for all states: one regression for all rows, with a small ridge penalty."""
    basis = hinge_basis(centered)
    weighted = basis if weights is None else basis * weights[:, None]
    ridge = _PENALTY * np.eye(basis.shape[1])
    ridge[0, 0] = 1e-9 * _PENALTY
    origin = float(np.average(target, weights=weights))
    y = target - origin
    pooled: Floats = np.linalg.solve(weighted.T @ basis + ridge, weighted.T @ y).astype(np.float64)
    variance = float(np.average((y - basis @ pooled) ** 2, weights=weights))
    # Densities divide by the variance, so a target without noise needs a positive one
    # (test_a_constant_target_gives_finite_densities).
    total = float(np.average(np.square(y), weights=weights))
    variance = max(variance, 1e-12 * total, (1e-12 * origin) ** 2) or 1.0
    penalty = np.full(len(pooled), _PENALTY)
    coefficients, variances = np.tile(pooled, (n_states, 1)), np.full(n_states, variance)
    return LinearExperts(coefficients, variances, pooled, variance, penalty, origin)


def first_class_experts(
    target: Array, n_classes: int, n_states: int, weights: Floats | None = None
) -> ClassExperts:
    """Initial experts: the overall class shares for all states, smoothed so that none is zero."""
    counts = np.bincount(target, weights, minlength=n_classes) + 1.0 / n_classes
    pooled = counts / counts.sum()
    return ClassExperts(np.tile(pooled, (n_states, 1)), pooled)
