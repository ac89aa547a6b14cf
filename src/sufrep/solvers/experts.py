"""How the target depends on the covariates within each hidden state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sufrep.solvers.coefficients import shrink_coefficients
from sufrep.solvers.curves import bent

if TYPE_CHECKING:
    from sufrep._arrays import Array, Codes, Floats

_VARIANCE_WEIGHT = 2.0  # rows that draw a state's noise to the overall one
_CLASS_WEIGHT = 1.0  # rows that draw a state's class shares to the overall ones
_PENALTY = 1.0  # rows that draw a state's coefficients to the common ones, before these rows are estimated
_CALIBRATION_ROUNDS = 50


class ExpertSums(Protocol):
    """What a pass over the rows leaves for the experts."""

    def add(self, apart: Floats, posterior: Floats, target: Array) -> None:
        """Add a block of rows, weighted by their posteriors."""


class Experts(Protocol):
    """One model of the target for each state."""

    def log_density(self, apart: Floats, target: Array) -> Floats:
        """Log P(y | x, l) of each row and state; (n, n_states)."""

    def predict(self, apart: Floats) -> Floats:
        """E[Y | x, l] of each row and state, with a last axis for classes where there are such."""

    def log_prior(self) -> float:
        """The part of the criterion that draws the experts together."""

    def no_sums(self) -> ExpertSums:
        """Sums of no rows."""

    def updated(self, sums: ExpertSums) -> Experts:
        """The best experts, given the sums."""

    def calibrated(self, sums: ExpertSums) -> Experts:
        """Experts drawn together as strongly as the sums say that they are alike."""

    def reordered(self, order: Codes) -> Experts:
        """The same experts in another order of the states."""


class _GramSums:
    """Weighted sums of squares and products of the basis and y, for every state."""

    def __init__(self, n_states: int, n_basis: int, origin: float) -> None:
        self.gram = np.zeros((n_states, n_basis + 1, n_basis + 1))
        self.origin = origin

    def add(self, apart: Floats, posterior: Floats, target: Array) -> None:
        columns = np.column_stack([bent(apart), target - self.origin])
        for state, weight in enumerate(posterior.T):
            self.gram[state] += (columns * weight[:, None]).T @ columns


@dataclass(frozen=True, slots=True, eq=False)
class LinearExperts:
    """Y | x, l ~ N(y₀ + b(x)ᵀβ_l, σ_l²), b as in `bent`; β_l is drawn to a common β, σ_l² to that of all.

    Attributes
    ----------
    coefficients : ndarray, shape (n_states, 2p + 1)
        Intercept first; covariates count from the centre of the mixture.
    variances : ndarray, shape (n_states,)
    pooled : ndarray, shape (2p + 1,)
        The common coefficients: of one regression for all rows at first, then the centre of those of the
        states.
    pooled_variance : float
        Residual variance of that regression.
    penalty : ndarray, shape (2p + 1,)
        Rows, so to speak, that draw each coefficient of a state to the common one.
    origin : float
        y₀, from which the target counts: sums of squares far from zero would lose every digit
        (test_a_target_far_from_zero_keeps_its_digits).
    """

    coefficients: Floats
    variances: Floats
    pooled: Floats
    pooled_variance: float
    penalty: Floats
    origin: float = 0.0

    def log_density(self, apart: Floats, target: Array) -> Floats:
        """Log N(y; y₀ + b(x)ᵀβ_l, σ_l²); (n, n_states)."""
        residual = target[:, None] - self.predict(apart)
        return np.asarray(-(residual**2) / (2 * self.variances) - np.log(2 * np.pi * self.variances) / 2)

    def predict(self, apart: Floats) -> Floats:
        """y₀ + b(x)ᵀβ_l; (n, n_states)."""
        return np.asarray(bent(apart) @ self.coefficients.T + self.origin)

    def log_prior(self) -> float:
        """Normal for the coefficients given the noise, inverse gamma for the noise."""
        return float(
            -(self._drawn() / (2 * self.variances)).sum()
            - ((len(self.pooled) + _VARIANCE_WEIGHT) / 2 * np.log(self.variances)).sum()
        )

    def no_sums(self) -> _GramSums:
        """Sums of no rows."""
        n_states, n_basis = self.coefficients.shape
        return _GramSums(n_states, n_basis, self.origin)

    def updated(self, sums: _GramSums) -> LinearExperts:
        """Ridge regressions towards the common one, each with the posteriors of its state as weights."""
        gram, cross, square = sums.gram[:, :-1, :-1], sums.gram[:, :-1, -1], sums.gram[:, -1, -1]
        ridge = np.diag(self.penalty)
        coefficients = np.linalg.solve(gram + ridge, (cross + self.penalty * self.pooled)[:, :, None])[
            :, :, 0
        ]
        residual = square - 2 * (coefficients * cross).sum(axis=1)
        residual += np.einsum("ki,kij,kj->k", coefficients, gram, coefficients)
        found = replace(self, coefficients=np.asarray(coefficients, dtype=np.float64))
        total = np.maximum(residual, 0.0) + found._drawn()
        size = gram[:, 0, 0] + len(self.pooled) + _VARIANCE_WEIGHT
        return replace(found, variances=total / size)

    def calibrated(self, sums: _GramSums) -> LinearExperts:
        """Estimate common coefficients and penalties by empirical Bayes, from one pass over the rows."""
        found = shrink_coefficients(
            sums.gram,
            center=self.pooled,
            noise=self.variances,
            variance=self.pooled_variance,
            noise_weight=_VARIANCE_WEIGHT,
            common_noise=False,
            n_rounds=_CALIBRATION_ROUNDS,
        )
        penalty = found.noise.mean() / found.spread
        return replace(
            self, coefficients=found.means, variances=found.noise, pooled=found.center, penalty=penalty
        )

    def reordered(self, order: Codes) -> LinearExperts:
        """The same experts in another order of the states."""
        return replace(self, coefficients=self.coefficients[order], variances=self.variances[order])

    def _drawn(self) -> Floats:
        apart = (self.penalty * (self.coefficients - self.pooled) ** 2).sum(axis=1)
        return np.asarray(apart + _VARIANCE_WEIGHT * self.pooled_variance)


class _ClassSums:
    """Weighted counts of the classes in every state."""

    def __init__(self, n_states: int, n_classes: int) -> None:
        self.counts = np.zeros((n_states, n_classes))

    def add(self, apart: Floats, posterior: Floats, target: Array) -> None:  # noqa: ARG002
        for label in range(self.counts.shape[1]):
            self.counts[:, label] += posterior[target == label].sum(axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class ClassExperts:
    """P(Y=c | l): class probabilities of each state, drawn to the overall ones.

    Attributes
    ----------
    probabilities : ndarray, shape (n_states, n_classes)
    pooled : ndarray, shape (n_classes,)
    """

    probabilities: Floats
    pooled: Floats

    def log_density(self, apart: Floats, target: Array) -> Floats:  # noqa: ARG002
        """Log P(Y=y | l); (n, n_states)."""
        return np.asarray(np.log(self.probabilities.T[target]))

    def predict(self, apart: Floats) -> Floats:
        """P(Y=c | l); (n, n_states, n_classes)."""
        return np.broadcast_to(self.probabilities, (len(apart), *self.probabilities.shape))

    def log_prior(self) -> float:
        """Dirichlet around the overall probabilities."""
        return float(_CLASS_WEIGHT * (np.log(self.probabilities) @ self.pooled).sum())

    def no_sums(self) -> _ClassSums:
        """Sums of no rows."""
        return _ClassSums(*self.probabilities.shape)

    def updated(self, sums: _ClassSums) -> ClassExperts:
        """Shares of the classes, with made-up rows of the overall shares."""
        counts = sums.counts + _CLASS_WEIGHT * self.pooled
        return replace(self, probabilities=counts / counts.sum(axis=1, keepdims=True))

    def calibrated(self, sums: _ClassSums) -> ClassExperts:  # noqa: ARG002
        """The same: how strongly classes are drawn together is fixed."""
        return self

    def reordered(self, order: Codes) -> ClassExperts:
        """The same experts in another order of the states."""
        return replace(self, probabilities=self.probabilities[order])


def first_linear_experts(
    apart: Floats, target: Array, n_states: int, weights: Floats | None = None
) -> LinearExperts:
    """The same expert for all states: one regression for all rows, with a slight ridge."""
    basis = bent(apart)
    weighted = basis if weights is None else basis * weights[:, None]
    ridge = _PENALTY * np.eye(basis.shape[1])
    ridge[0, 0] = 1e-9 * _PENALTY
    origin = float(np.average(target, weights=weights))
    rest = target - origin
    pooled: Floats = np.linalg.solve(weighted.T @ basis + ridge, weighted.T @ rest).astype(np.float64)
    variance = float(np.average((rest - basis @ pooled) ** 2, weights=weights))
    # A target without noise still needs a variance, one that sums of rows may be divided by
    # (test_a_target_of_zeros_needs_no_noise).
    spread = float(np.average(np.square(rest), weights=weights))
    variance = max(variance, 1e-12 * spread, (1e-12 * origin) ** 2, 1e-200)
    penalty = np.full(len(pooled), _PENALTY)
    coefficients, variances = np.tile(pooled, (n_states, 1)), np.full(n_states, variance)
    return LinearExperts(coefficients, variances, pooled, variance, penalty, origin)


def first_class_experts(
    target: Array, n_classes: int, n_states: int, weights: Floats | None = None
) -> ClassExperts:
    """The overall shares of the classes for all states; no class has none."""
    counts = np.bincount(target, weights, minlength=n_classes) + 1.0 / n_classes
    pooled = counts / counts.sum()
    return ClassExperts(np.tile(pooled, (n_states, 1)), pooled)
