"""Experts of hidden states: initial values, M-step, and empirical Bayes calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from sufrep.solvers.experts import (
    ClassExperts,
    LinearExperts,
    first_class_experts,
    first_linear_experts,
)
from sufrep.solvers.regressions import hinge_basis


def two_states(
    slopes: tuple[float, float], n: int = 2000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of two states with intercepts −2 and 2 and the given slopes: covariates, states, target."""
    rng = np.random.default_rng(seed)
    rows, state = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    y = np.where(state == 0, -2.0, 2.0) + np.array(slopes)[state] * rows[:, 0] + rng.normal(size=n)
    return rows, state, y


def sums_of(experts: Any, rows: np.ndarray, posterior: np.ndarray, y: np.ndarray) -> Any:
    sums = experts.empty_sums()
    sums.add(rows, posterior, y)
    return sums


def calibrated(slopes: tuple[float, float]) -> tuple[LinearExperts, LinearExperts]:
    """Experts fitted with the true states of the rows, before and after calibration."""
    rows, state, y = two_states(slopes)
    first = first_linear_experts(rows, y, 2)
    sums = sums_of(first, rows, np.eye(2)[state], y)
    fitted = first.updated(sums)
    return fitted, fitted.calibrated(sums)


def test_linear_experts_are_weighted_ridge_regressions():
    rows, _, y = two_states((1.0, 2.0), n=120)
    first = first_linear_experts(rows, y, 2)
    posterior = np.random.default_rng(1).dirichlet([1, 1], 120)
    sums = first.empty_sums()
    sums.add(rows[:50], posterior[:50], y[:50])
    sums.add(rows[50:], posterior[50:], y[50:])
    found = first.updated(sums)
    basis = hinge_basis(rows)
    for state, weight in enumerate(posterior.T):
        gram = (basis * weight[:, None]).T @ basis + np.eye(5)
        expected = np.linalg.solve(gram, basis.T @ (weight * (y - first.origin)) + first.pooled)
        np.testing.assert_allclose(found.coefficients[state], expected, rtol=1e-8)
        residual = y - first.origin - basis @ expected
        prior = ((expected - first.pooled) ** 2).sum() + 2.0 * first.pooled_variance
        variance = (weight @ residual**2 + prior) / (weight.sum() + 5 + 2.0)
        np.testing.assert_allclose(found.variances[state], variance, rtol=1e-8)
    density = norm(found.predict(rows), np.sqrt(found.variances)).logpdf(y[:, None])
    np.testing.assert_allclose(found.log_density(rows, y), density, rtol=1e-9)


def test_calibrated_experts_share_slopes_that_do_not_differ():
    fitted, found = calibrated((1.5, 1.5))
    before, after = (np.abs(np.diff(some.coefficients, axis=0)[0]) for some in (fitted, found))
    assert after[1:].max() < 0.5 * before[1:].max()
    np.testing.assert_allclose(found.predict(np.zeros((1, 2))), [[-2.0, 2.0]], atol=0.15)
    np.testing.assert_allclose(found.pooled[1:] @ [1.0, 0.0, 0.5, 0.0], 1.5, atol=0.1)
    assert found.penalty[1:].min() > 100 * found.penalty[0]


def test_calibrated_experts_keep_slopes_that_differ():
    fitted, found = calibrated((-3.0, 3.0))
    np.testing.assert_allclose(found.coefficients, fitted.coefficients, atol=0.1)
    assert found.penalty[1] < 1
    assert found.penalty[2] > 10  # the covariate has no effect


def test_the_noise_differs_by_state():
    rng = np.random.default_rng(1)
    rows, state, y = two_states((1.0, 1.0), seed=1)
    y = np.where(state == 0, y, y + 3 * rng.normal(size=len(y)))
    first = first_linear_experts(rows, y, 2)
    found = first.calibrated(sums_of(first, rows, np.eye(2)[state], y))
    np.testing.assert_allclose(found.variances, [1.0, 10.0], rtol=0.15)
    assert found.pooled_variance == first.pooled_variance


def test_the_m_step_uses_the_calibrated_prior():
    rows, _, y = two_states((1.0, 2.0), n=200)
    first = first_linear_experts(rows, y, 2)
    posterior = np.random.default_rng(2).dirichlet([1, 1], 200)
    sums = sums_of(first, rows, posterior, y)
    experts = first.calibrated(sums)
    found = experts.updated(sums)
    basis = hinge_basis(rows)
    for k in range(2):
        gram = (basis * posterior[:, [k]]).T @ basis + np.diag(experts.penalty)
        right = basis.T @ (posterior[:, k] * (y - y.mean())) + experts.penalty * experts.pooled
        np.testing.assert_allclose(found.coefficients[k], np.linalg.solve(gram, right), rtol=1e-8)
    np.testing.assert_array_equal(found.penalty, experts.penalty)
    np.testing.assert_array_equal(found.pooled, experts.pooled)


def test_a_state_without_rows_gets_the_common_coefficients():
    rows, state, y = two_states((1.0, 1.0), n=300)
    first = first_linear_experts(rows, y, 3)
    found = first.calibrated(sums_of(first, rows, np.eye(3)[state], y))
    np.testing.assert_allclose(found.coefficients[2], found.pooled, rtol=1e-8)
    assert np.isfinite(found.log_prior())


def test_a_constant_target_gives_finite_densities():
    rows, state, _ = two_states((1.0, 1.0), n=20_000)
    zeros = np.zeros(20_000)
    first = first_linear_experts(rows, zeros, 2)
    sums = sums_of(first, rows, np.eye(2)[state], zeros)
    found = first.updated(sums).calibrated(sums).updated(sums)
    np.testing.assert_array_equal(found.coefficients, 0.0)
    assert (found.variances > 0).all()
    assert np.isfinite(found.log_density(rows, zeros)).all()


def test_a_target_far_from_zero_keeps_its_precision():
    rows, state, y = two_states((1.0, 2.0), n=300)
    found = []
    for origin in (0.0, 1e9):
        first = first_linear_experts(rows, y + origin, 2)
        sums = sums_of(first, rows, np.eye(2)[state], y + origin)
        experts = first.updated(sums).calibrated(sums).updated(sums)
        found.append([experts.predict(rows) - origin, experts.log_density(rows, y + origin)])
    np.testing.assert_allclose(found[1], found[0], atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_initial_linear_experts_are_one_ridge_regression(weighted):
    rows, _, y = two_states((1.0, 1.0), n=50)
    times = np.random.default_rng(3).integers(1, 4, 50) if weighted else np.ones(50, dtype=int)
    place = np.repeat(np.arange(50), times)
    found = first_linear_experts(rows, y, 3, times.astype(float) if weighted else None)
    assert found.origin == pytest.approx(y[place].mean())
    gram, right = np.diag([1e-9, 1.0, 1.0, 1.0, 1.0]), np.zeros(5)
    for i in place:
        row = np.array([1.0, *rows[i], *(max(value, 0.0) for value in rows[i])])
        gram += np.outer(row, row)
        right += (y[i] - found.origin) * row
    expected = np.linalg.solve(gram, right)
    np.testing.assert_allclose(found.coefficients, np.tile(expected, (3, 1)), rtol=1e-9)
    np.testing.assert_allclose(found.pooled, expected, rtol=1e-9)
    residual = [y[i] - found.origin - hinge_basis(rows[[i]])[0] @ expected for i in place]
    np.testing.assert_allclose(found.variances, np.mean(np.square(residual)), rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_initial_class_experts_have_the_overall_shares(weighted):
    y = np.array([0, 0, 1, 0, 1])
    weights = np.array([2.0, 1.0, 1.0, 1.0, 4.0]) if weighted else None
    found = first_class_experts(y, 3, 2, weights)
    counts = np.array([4.0, 5.0, 0.0] if weighted else [3.0, 2.0, 0.0]) + 1 / 3
    np.testing.assert_allclose(found.probabilities, np.tile(counts / counts.sum(), (2, 1)))
    assert (found.probabilities > 0).all()


def test_class_experts_are_shares_with_one_pseudo_row():
    posterior = np.random.default_rng(4).dirichlet([1, 1], 30)
    y = np.arange(30) % 3
    first = first_class_experts(y, 3, 2)
    found = first.updated(sums_of(first, np.zeros((30, 1)), posterior, y))
    for k in range(2):
        counts = [posterior[y == label, k].sum() + first.pooled[label] for label in range(3)]
        np.testing.assert_allclose(found.probabilities[k], counts / np.sum(counts), rtol=1e-12)


def test_class_experts_need_no_calibration():
    experts = ClassExperts(np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([0.4, 0.6]))
    posterior = np.full((4, 2), 0.5)
    assert (
        experts.calibrated(sums_of(experts, np.zeros((4, 1)), posterior, np.array([0, 1, 1, 1]))) is experts
    )


def test_reordering_the_states_reorders_the_predictions():
    _, found = calibrated((-3.0, 3.0))
    rows, _, y = two_states((-3.0, 3.0), n=10)
    other = found.reordered(np.array([1, 0]))
    np.testing.assert_array_equal(other.predict(rows), found.predict(rows)[:, ::-1])
    np.testing.assert_array_equal(other.log_density(rows, y), found.log_density(rows, y)[:, ::-1])
    assert other.log_prior() == pytest.approx(found.log_prior())
