"""EM for the mixture of hidden states against naive formulas, and the laws of its criterion."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from sufrep import simulate
from sufrep.solvers import mixture as module
from sufrep.solvers.experts import ClassExperts, LinearExperts, first_class_experts, first_linear_experts
from sufrep.solvers.mixture import Mixture, fit_mixture, fit_with_target, level_shares, posteriors
from sufrep.solvers.states import MixtureRows, start_mixture


def draw(n: int = 300, seed: int = 0, n_latent: int = 3, p: int = 4) -> tuple[MixtureRows, Any]:
    drawn = simulate("latent_linear", n=n, p=p, n_latent=n_latent, levels_per_latent=4, seed=seed)
    return MixtureRows(drawn.X, drawn.codes, len(drawn.levels)), drawn


def linear_experts(sample: MixtureRows, y: np.ndarray, n_states: int, seed: int = 0) -> LinearExperts:
    rng = np.random.default_rng(seed)
    p = sample.rows.shape[1]
    pooled = np.append(y.mean(), np.zeros(2 * p))
    coefficients = pooled + 0.3 * rng.normal(size=(n_states, 2 * p + 1))
    return LinearExperts(coefficients, np.full(n_states, y.var()), pooled, y.var(), np.ones(len(pooled)))


def naive_log_joint(mixture: Mixture, sample: MixtureRows) -> np.ndarray:
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


def test_posteriors_and_densities_follow_the_formula() -> None:
    sample, _ = draw(60)
    mixture = start_mixture(sample, 3, seed=0)
    joint = naive_log_joint(mixture, sample)
    density = np.log(np.exp(joint).sum(axis=1))
    shares = mixture.shares[sample.codes]
    np.testing.assert_allclose(mixture.log_density(sample.rows, shares), density, rtol=1e-9)
    np.testing.assert_allclose(
        posteriors(mixture, sample.rows, shares), np.exp(joint - density[:, None]), atol=1e-12
    )


def test_one_iteration_is_the_m_step_of_naive_responsibilities() -> None:
    sample, _ = draw(80)
    start = start_mixture(sample, 3, seed=0)
    joint = naive_log_joint(start, sample)
    posterior = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)
    found = fit_mixture(sample.rows, sample.codes, start, concentration=2.0, max_iter=1)
    centered = sample.rows - start.center
    for state in range(3):
        weight = posterior[:, state]
        np.testing.assert_allclose(found.means[state], weight @ centered / (weight.sum() + 0.1), rtol=1e-9)
    for level in range(sample.n_levels):
        inside = sample.codes == level
        expected = (posterior[inside].sum(axis=0) + 2.0 * start.prior) / (inside.sum() + 2.0)
        np.testing.assert_allclose(found.shares[level], expected, rtol=1e-9)
    within = 3.0 * np.eye(4) + 0.1 * found.means.T @ found.means
    for state in range(3):
        residual = centered - found.means[state]
        within += (residual * posterior[:, [state]]).T @ residual
    np.testing.assert_allclose(found.covariance, within / (80 + 3 + 3.0), rtol=1e-9)


@given(st.integers(0, 1000), st.integers(1, 5), st.floats(0.1, 5))
@settings(max_examples=12, deadline=None)
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
    start = replace(start_mixture(sample, 3, seed=0), experts=experts)
    found = fit_mixture(sample.rows, sample.codes, start, target=y, max_iter=60, tol=0.0)
    assert (np.diff(found.objective) > -1e-8 * np.abs(found.objective[0])).all()
    assert found.objective[-1] > found.objective[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_criterion_never_falls_with_calibrated_experts(seed: int, weighted: bool) -> None:
    sample, drawn = draw(300, seed=seed)
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], 300) if weighted else None
    start = start_mixture(sample, 3, seed=0)
    experts = first_linear_experts(sample.rows - start.center, drawn.y, 3, weights)
    start = replace(start, experts=experts)
    found = fit_with_target(sample.rows, sample.codes, start, drawn.y, weights=weights, tol=1e-5)
    assert found.converged
    assert len(found.objective) > 2
    assert (np.diff(found.objective) > -1e-8 * np.abs(found.objective[0])).all()
    assert isinstance(found.experts, LinearExperts)
    assert np.ptp(found.experts.penalty) > 1  # estimated for each coefficient
    short = fit_with_target(sample.rows, sample.codes, start, drawn.y, weights=weights, max_iter=2, tol=0.0)
    assert not short.converged
    assert len(short.objective) == 2


def test_class_experts_need_no_second_fit() -> None:
    sample, drawn = draw(300)
    y = np.digitize(drawn.y, [-0.5, 0.5])
    start = replace(start_mixture(sample, 3, seed=0), experts=first_class_experts(y, 3, 3))
    once, found = (
        fit(sample.rows, sample.codes, start, target=y, tol=1e-5) for fit in (fit_mixture, fit_with_target)
    )
    np.testing.assert_array_equal(found.objective, once.objective)
    np.testing.assert_array_equal(found.shares, once.shares)
    assert found.converged


def test_the_block_size_does_not_change_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    sample, drawn = draw(300)
    start = replace(start_mixture(sample, 3, seed=0), experts=linear_experts(sample, drawn.y, 3))
    whole = fit_mixture(sample.rows, sample.codes, start, target=drawn.y, max_iter=15, tol=0.0)
    monkeypatch.setattr(module, "_BLOCK", 37)
    parts = fit_mixture(sample.rows, sample.codes, start, target=drawn.y, max_iter=15, tol=0.0)
    np.testing.assert_allclose(parts.shares, whole.shares, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(parts.objective, whole.objective, rtol=1e-10)


def test_reordering_the_states_does_not_change_the_densities() -> None:
    sample, drawn = draw(100)
    start = replace(start_mixture(sample, 3, seed=0), experts=linear_experts(sample, drawn.y, 3))
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


def test_aligning_undoes_a_reordering() -> None:
    mixture = start_mixture(draw(100)[0], 3, seed=0)
    aligned = mixture.reordered(np.array([2, 0, 1])).aligned(mixture.shares)
    np.testing.assert_array_equal(aligned.means, mixture.means)
    np.testing.assert_array_equal(aligned.shares, mixture.shares)


def naive_shares(density: np.ndarray, weights: np.ndarray, pseudo_rows: np.ndarray) -> np.ndarray:
    """The mode of the posterior of one level's shares, by rounds of plain EM until they change nothing."""
    shares = pseudo_rows / pseudo_rows.sum()
    for _ in range(20_000):
        joint = density * shares
        counts = weights @ (joint / joint.sum(axis=1, keepdims=True)) + pseudo_rows
        before, shares = shares, counts / counts.sum()
        if np.abs(shares - before).max() < 1e-14:
            break
    return shares


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
def test_shares_given_the_states_are_where_plain_em_ends(weighted: bool, spread: float) -> None:
    # States that are near each other are where plain EM is slow.
    sample, _ = draw(300)
    mixture = start_mixture(sample, 3, seed=0)
    mixture = replace(mixture, means=spread * mixture.means, prior=np.array([0.6, 0.3, 0.1]))
    weights = np.random.default_rng(0).choice([0.5, 1.0, 4.0], 300) if weighted else np.ones(300)
    found = level_shares(
        mixture,
        sample.rows,
        sample.codes,
        sample.n_levels + 1,
        concentration=2.0,
        weights=weights if weighted else None,
    )
    density = np.exp(naive_log_joint(replace(mixture, shares=np.ones_like(mixture.shares)), sample))
    for level in range(sample.n_levels):
        own = sample.codes == level
        expected = naive_shares(density[own], weights[own], 2.0 * mixture.prior)
        np.testing.assert_allclose(found[level], expected, atol=1e-6)
    np.testing.assert_allclose(found[-1], mixture.prior)  # a level without rows


def test_shares_given_the_states_depend_on_no_other_level(monkeypatch: pytest.MonkeyPatch) -> None:
    sample, _ = draw(300)
    mixture = start_mixture(sample, 3, seed=0)
    together = level_shares(mixture, sample.rows, sample.codes, sample.n_levels, concentration=1.0)
    monkeypatch.setattr(module, "_SHARES_BLOCK", 37)
    parts = level_shares(mixture, sample.rows, sample.codes, sample.n_levels, concentration=1.0)
    np.testing.assert_allclose(parts, together, rtol=1e-12)
    for level in range(sample.n_levels):
        rows = sample.rows[sample.codes == level]
        alone = level_shares(mixture, rows, np.zeros(len(rows), dtype=int), 1, concentration=1.0)
        np.testing.assert_allclose(alone[0], together[level], rtol=1e-12)


def test_a_row_that_only_an_unlikely_state_explains_has_finite_shares() -> None:
    sample, _ = draw(300)
    mixture = start_mixture(sample, 3, seed=0)
    mixture = replace(mixture, prior=np.array([1.0, 0.0, 0.0]), covariance=1e-4 * mixture.covariance)
    rows = mixture.center + mixture.means[[1, 1, 2]]
    found = level_shares(mixture, rows, np.array([0, 0, 1]), 2, concentration=1.0)
    np.testing.assert_allclose(found, [[1 / 3, 2 / 3, 0], [1 / 2, 0, 1 / 2]], atol=1e-6)
