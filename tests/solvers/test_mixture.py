"""EM of the hidden states against a naive one, and the laws of its criterion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from sufrep import simulate
from sufrep.solvers import mixture as module
from sufrep.solvers.experts import ClassExperts, LinearExperts, first_class_experts, first_linear_experts
from sufrep.solvers.mixture import Mixture, fit_mixture, fit_with_target, posteriors
from sufrep.solvers.states import Sample, best_of_starts, choose_n_states, start_mixture


def draw(n: int = 300, seed: int = 0, n_latent: int = 3, p: int = 4) -> tuple[Sample, Any]:
    drawn = simulate("latent_linear", n=n, p=p, n_latent=n_latent, levels_per_latent=4, seed=seed)
    return Sample(drawn.X, drawn.codes, len(drawn.levels)), drawn


def linear_experts(sample: Sample, y: np.ndarray, n_states: int, seed: int = 0) -> LinearExperts:
    rng = np.random.default_rng(seed)
    p = sample.rows.shape[1]
    pooled = np.append(y.mean(), np.zeros(2 * p))
    coefficients = pooled + 0.3 * rng.normal(size=(n_states, 2 * p + 1))
    return LinearExperts(coefficients, np.full(n_states, y.var()), pooled, y.var(), np.ones(len(pooled)))


def with_experts(start: Mixture, experts: Any) -> Mixture:
    from dataclasses import replace

    return replace(start, experts=experts)


def naive_log_joint(mixture: Mixture, sample: Sample) -> np.ndarray:
    """log ψ + log N(x; center + μ_l, Σ), row by row and state by state."""
    return np.array(
        [
            [
                np.log(mixture.shares[code, state])
                + multivariate_normal(mixture.center + mixture.means[state], mixture.covariance).logpdf(row)
                for state in range(mixture.n_states)
            ]
            for row, code in zip(sample.rows, sample.codes, strict=True)
        ]
    )


def test_posteriors_and_densities_are_those_of_the_formula() -> None:
    sample, _ = draw(60)
    mixture = start_mixture(sample, 3, seed=0)
    joint = naive_log_joint(mixture, sample)
    density = np.log(np.exp(joint).sum(axis=1))
    shares = mixture.shares[sample.codes]
    np.testing.assert_allclose(mixture.log_density(sample.rows, shares), density, rtol=1e-9)
    np.testing.assert_allclose(
        posteriors(mixture, sample.rows, shares), np.exp(joint - density[:, None]), atol=1e-12
    )


def test_one_round_is_the_m_step_of_naive_posteriors() -> None:
    sample, _ = draw(80)
    start = start_mixture(sample, 3, seed=0)
    joint = naive_log_joint(start, sample)
    posterior = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)
    found = fit_mixture(sample.rows, sample.codes, start, concentration=2.0, max_iter=1)
    apart = sample.rows - start.center
    for state in range(3):
        weight = posterior[:, state]
        np.testing.assert_allclose(found.means[state], weight @ apart / (weight.sum() + 0.1), rtol=1e-9)
    for level in range(sample.n_levels):
        inside = sample.codes == level
        expected = (posterior[inside].sum(axis=0) + 2.0 * start.prior) / (inside.sum() + 2.0)
        np.testing.assert_allclose(found.shares[level], expected, rtol=1e-9)
    within = 3.0 * np.eye(4) + 0.1 * found.means.T @ found.means
    for state in range(3):
        residual = apart - found.means[state]
        within += (residual * posterior[:, [state]]).T @ residual
    np.testing.assert_allclose(found.covariance, within / (80 + 3 + 3.0), rtol=1e-9)


@given(st.integers(0, 1000), st.integers(1, 5), st.floats(0.1, 5))
@settings(max_examples=20, deadline=None)
def test_the_criterion_never_falls(seed: int, n_states: int, concentration: float) -> None:
    sample, _ = draw(150, seed=seed)
    start = start_mixture(sample, n_states, seed=seed)
    found = fit_mixture(sample.rows, sample.codes, start, concentration=concentration, max_iter=40, tol=0.0)
    assert (np.diff(found.objective) > -1e-8 * np.abs(found.objective[0])).all()


@pytest.mark.parametrize("kind", ["linear", "classes"])
@pytest.mark.parametrize("seed", range(3))
def test_the_criterion_never_falls_with_a_target(kind: str, seed: int) -> None:
    sample, drawn = draw(200, seed=seed)
    y: np.ndarray = drawn.y
    experts: Any = linear_experts(sample, y, 3, seed)
    if kind == "classes":
        y = np.digitize(y, [-0.5, 0.5])
        pooled = np.bincount(y) / len(y)
        rough = np.random.default_rng(seed).dirichlet(20 * pooled, 3)
        experts = ClassExperts(rough, pooled)
    start = with_experts(start_mixture(sample, 3, seed=0), experts)
    found = fit_mixture(sample.rows, sample.codes, start, target=y, max_iter=60, tol=0.0)
    assert (np.diff(found.objective) > -1e-8 * np.abs(found.objective[0])).all()
    assert found.objective[-1] > found.objective[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_criterion_never_falls_once_experts_are_calibrated(seed: int, weighted: bool) -> None:
    sample, drawn = draw(300, seed=seed)
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], 300) if weighted else None
    start = start_mixture(sample, 3, seed=0)
    experts = first_linear_experts(sample.rows - start.center, drawn.y, 3, weights)
    start = with_experts(start, experts)
    found = fit_with_target(sample.rows, sample.codes, start, drawn.y, weights=weights, tol=1e-5)
    assert found.converged
    assert len(found.objective) > 2
    assert (np.diff(found.objective) > -1e-8 * np.abs(found.objective[0])).all()
    assert isinstance(found.experts, LinearExperts)
    assert np.ptp(found.experts.penalty) > 1  # no longer one for all
    short = fit_with_target(sample.rows, sample.codes, start, drawn.y, weights=weights, max_iter=2, tol=0.0)
    assert not short.converged
    assert len(short.objective) == 2


def test_classes_are_fitted_once() -> None:
    sample, drawn = draw(300)
    y = np.digitize(drawn.y, [-0.5, 0.5])
    start = with_experts(start_mixture(sample, 3, seed=0), first_class_experts(y, 3, 3))
    once, found = (
        fit(sample.rows, sample.codes, start, target=y, tol=1e-5) for fit in (fit_mixture, fit_with_target)
    )
    np.testing.assert_array_equal(found.objective, once.objective)
    np.testing.assert_array_equal(found.shares, once.shares)
    assert found.converged


def test_linear_experts_are_weighted_ridge_regressions() -> None:
    sample, drawn = draw(120)
    experts = linear_experts(sample, drawn.y, 2)
    posterior = np.random.default_rng(1).dirichlet([1, 1], 120)
    sums = experts.no_sums()
    sums.add(sample.rows[:50], posterior[:50], drawn.y[:50])
    sums.add(sample.rows[50:], posterior[50:], drawn.y[50:])
    found = experts.updated(sums)
    design = np.column_stack([np.ones(120), sample.rows, np.where(sample.rows > 0, sample.rows, 0)])
    for state in range(2):
        weight = posterior[:, state]
        gram = (design * weight[:, None]).T @ design + np.eye(9)
        expected = np.linalg.solve(gram, design.T @ (weight * drawn.y) + experts.pooled)
        np.testing.assert_allclose(found.coefficients[state], expected, rtol=1e-8)
        residual = drawn.y - design @ expected
        drawn_in = ((expected - experts.pooled) ** 2).sum() + 2.0 * experts.pooled_variance
        variance = (weight @ residual**2 + drawn_in) / (weight.sum() + 9 + 2.0)
        np.testing.assert_allclose(found.variances[state], variance, rtol=1e-8)
    density = norm(found.predict(sample.rows), np.sqrt(found.variances)).logpdf(drawn.y[:, None])
    np.testing.assert_allclose(found.log_density(sample.rows, drawn.y), density, rtol=1e-9)


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    sample, drawn = draw(300)
    start = with_experts(start_mixture(sample, 3, seed=0), linear_experts(sample, drawn.y, 3))
    whole = fit_mixture(sample.rows, sample.codes, start, target=drawn.y, max_iter=15, tol=0.0)
    monkeypatch.setattr(module, "_BLOCK", 37)
    parts = fit_mixture(sample.rows, sample.codes, start, target=drawn.y, max_iter=15, tol=0.0)
    np.testing.assert_allclose(parts.shares, whole.shares, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(parts.objective, whole.objective, rtol=1e-10)


def test_a_weight_of_two_is_a_row_that_came_twice() -> None:
    sample, _ = draw(200)
    times = np.random.default_rng(0).integers(1, 3, 200)
    weighted = Sample(sample.rows, sample.codes, sample.n_levels, times.astype(float))
    repeated = Sample(np.repeat(sample.rows, times, axis=0), np.repeat(sample.codes, times), sample.n_levels)
    first, second = (
        best_of_starts(part, 3, n_starts=2, seed=0, concentration=1.0, max_iter=200, tol=1e-9)
        for part in (weighted, repeated)
    )
    np.testing.assert_allclose(first.shares, second.shares, atol=1e-5)


def test_states_in_another_order_are_the_same_mixture() -> None:
    sample, drawn = draw(100)
    start = with_experts(start_mixture(sample, 3, seed=0), linear_experts(sample, drawn.y, 3))
    other = start.reordered(np.array([2, 0, 1]))
    shares = start.shares[sample.codes]
    np.testing.assert_allclose(
        other.log_density(sample.rows, other.shares[sample.codes]), start.log_density(sample.rows, shares)
    )
    assert other.experts is not None
    assert start.experts is not None
    np.testing.assert_array_equal(
        other.experts.predict(sample.rows)[:, 0], start.experts.predict(sample.rows)[:, 2]
    )


@pytest.mark.parametrize("n_latent", [2, 4])
def test_the_true_states_are_found(n_latent: int) -> None:
    drawn = simulate("latent_linear", n=4000, n_latent=n_latent, levels_per_latent=10, seed=2)
    sample = Sample(drawn.X, drawn.codes, len(drawn.levels))
    found = best_of_starts(sample, n_latent, n_starts=3, seed=0, concentration=1.0, max_iter=300, tol=1e-6)
    assert found.converged
    agreement = np.corrcoef(found.shares.T, drawn.state_probabilities.T)[:n_latent, n_latent:]
    assert agreement.max(axis=1).min() > 0.97


def test_the_true_number_of_states_is_chosen() -> None:
    drawn = simulate("latent_linear", n=3000, n_latent=3, levels_per_latent=15, seed=1)
    sample = Sample(drawn.X, drawn.codes, len(drawn.levels))
    halves = np.arange(3000) % 2
    folds = [(np.flatnonzero(halves != part), np.flatnonzero(halves == part)) for part in (0, 1)]
    chosen, scores = choose_n_states(sample, folds, seed=0, concentration=1.0)
    assert chosen == 3
    assert max(scores, key=lambda number: scores[number]) == 3


def test_more_states_than_levels_and_awkward_covariates_do_not_fail() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    awkward = np.column_stack([rows, rows[:, 0], np.zeros(60), rows.sum(axis=1)])
    sample = Sample(awkward, np.arange(60) % 2, 2)
    found = best_of_starts(sample, 6, n_starts=2, seed=0, concentration=1.0, max_iter=50, tol=1e-6)
    assert np.isfinite(found.shares).all()
    np.testing.assert_allclose(found.shares.sum(axis=1), 1.0)
    assert (np.diff(found.objective) > -1e-6).all()
