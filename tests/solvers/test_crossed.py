"""Crossed random effects: dense matrices of all rows and statsmodels give the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from sufrep.solvers.crossed import QUICK, CrossedDesign, CrossedFit, effect_errors, fit_crossed

CONVERGED = replace(
    QUICK, rounds=500, settle=1e-9, final_tolerance=1e-13, most_iterations=2000, least_share=0.0
)
# Without matrices, however few levels there are; traces are means over many random vectors.
BY_GRADIENTS = replace(
    CONVERGED, most_exact=0, rounds=20, tolerance=1e-3, n_probes=200, settle=1e-3, most_iterations=500
)


def crossed(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    return [rng.integers(0, 30, n), rng.integers(0, 12, n)]


def nested(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    school = rng.integers(0, 40, n)
    return [school, school // 4]


def unbalanced(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    """Level sizes from one row to a third of them, and rows without a level."""
    first = np.minimum(rng.geometric(0.3, n), 20) - 1
    second = np.minimum(rng.pareto(0.7, n).astype(int), 29)
    return [np.where(rng.random(n) < 0.1, -1, first), second]


def three(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    return [*crossed(rng, n), rng.integers(0, 15, n)]


DESIGNS: dict[str, Any] = {"crossed": crossed, "nested": nested, "unbalanced": unbalanced, "three": three}
every_design = pytest.mark.parametrize("kind", DESIGNS)
both_ways = pytest.mark.parametrize("settings", [CONVERGED, BY_GRADIENTS], ids=["exact", "gradients"])


def draw(kind: str, seed: int = 0, n: int = 400) -> tuple[list[np.ndarray], list[int], np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = DESIGNS[kind](rng, n)
    sizes = [int(code.max()) + 1 for code in codes]
    effects = [np.append(sd * rng.normal(size=q), 0.0) for sd, q in zip((1.0, 0.7, 0.5), sizes, strict=False)]
    y = 5.0 + sum(effect[code] for effect, code in zip(effects, codes, strict=True)) + rng.normal(size=n)
    return codes, sizes, y


def indicators(codes: list[np.ndarray], sizes: list[int]) -> list[np.ndarray]:
    return [np.eye(q + 1)[code][:, :q] for code, q in zip(codes, sizes, strict=True)]


def covariance(Z: list[np.ndarray], variances: Any, noise: float, weights: Any = 1.0) -> np.ndarray:
    rows = np.diag(noise / (np.ones(len(Z[0])) * weights))
    return rows + sum(tau * part @ part.T for tau, part in zip(variances, Z, strict=True))


def dense_reml(Z: list[np.ndarray], y: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Variances that minimise the restricted likelihood of all rows at once."""

    def loss(logs: np.ndarray) -> float:
        V = covariance(Z, np.exp(logs[:-1]), float(np.exp(logs[-1])))
        inverse = np.linalg.inv(V)
        ones = inverse.sum(axis=0)
        rest = y - ones @ y / ones.sum()
        return float(np.linalg.slogdet(V)[1] + np.log(ones.sum()) + rest @ inverse @ rest) / 2

    found = minimize(loss, np.log(start), method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-8})
    return np.exp(found.x)


def dense_predictions(
    Z: list[np.ndarray], y: np.ndarray, variances: Any, noise: float, weights: Any = 1.0
) -> list[np.ndarray]:
    """û = τZ'V⁻¹(y − m), with m by generalised least squares."""
    inverse = np.linalg.inv(covariance(Z, variances, noise, weights))
    ones = inverse.sum(axis=0)
    rest = inverse @ (y - ones @ y / ones.sum())
    return [tau * part.T @ rest for tau, part in zip(variances, Z, strict=True)]


def dense_errors(Z: list[np.ndarray], variances: Any, noise: float, weights: Any = 1.0) -> list[np.ndarray]:
    """Roots of the variances of û − u, the intercept unknown."""
    V = covariance(Z, variances, noise, weights)
    inverse = np.linalg.inv(V)
    ones = inverse.sum(axis=0)
    projected = inverse - np.outer(ones, ones) / ones.sum()
    return [
        np.sqrt(tau - tau**2 * np.diag(part.T @ projected @ part))
        for tau, part in zip(variances, Z, strict=True)
    ]


@both_ways
@every_design
def test_variances_are_those_of_dense_reml(kind, settings):
    codes, sizes, y = draw(kind)
    fit = fit_crossed(CrossedDesign.of(codes, sizes), y, settings=settings)
    expected = dense_reml(indicators(codes, sizes), y, np.append(fit.variances, fit.noise))
    close = 1e-3 if settings is CONVERGED else 0.05
    np.testing.assert_allclose(np.append(fit.variances, fit.noise), expected, rtol=close)


@both_ways
@every_design
def test_predictions_are_those_of_dense_matrices_with_the_same_variances(kind, settings):
    codes, sizes, y = draw(kind, seed=1)
    weights = np.random.default_rng(2).choice([0.5, 1.0, 3.0], len(y))
    variances = np.array([1.2, 0.5, 0.3])[: len(codes)]
    fixed = replace(settings, rounds=0)
    fit = fit_crossed(CrossedDesign.of(codes, sizes, weights), y, start=(variances, 0.8), settings=fixed)
    expected = dense_predictions(indicators(codes, sizes), y, variances, 0.8, weights)
    for found, theirs in zip(fit.effects, expected, strict=True):
        np.testing.assert_allclose(found, theirs, rtol=0, atol=1e-8)


def test_one_group_is_predicted_like_by_statsmodels():
    from statsmodels.regression.mixed_linear_model import MixedLM

    codes, sizes, y = draw("unbalanced", seed=3)
    codes, sizes = [codes[1]], [sizes[1]]
    fit = fit_crossed(CrossedDesign.of(codes, sizes), y, settings=CONVERGED)
    theirs = MixedLM(y, np.ones((len(y), 1)), groups=codes[0]).fit(reml=True, gtol=1e-10)
    np.testing.assert_allclose(fit.intercept, theirs.fe_params[0], atol=1e-4)
    for level, effect in theirs.random_effects.items():
        assert fit.effects[0][level] == pytest.approx(effect.iloc[0], abs=1e-4)


@every_design
def test_a_quick_fit_predicts_almost_as_a_converged_one(kind):
    codes, sizes, y = draw(kind, seed=4, n=2000)
    design = CrossedDesign.of(codes, sizes)
    quick = fit_crossed(design, y, settings=replace(QUICK, most_exact=0))
    slow = fit_crossed(design, y, settings=CONVERGED)
    gap = design.fitted(np.concatenate(quick.effects)) - design.fitted(np.concatenate(slow.effects))
    assert np.sqrt(np.mean(gap**2)) < 0.05


@pytest.mark.parametrize("settings", [QUICK, replace(QUICK, most_exact=0)], ids=["exact", "gradients"])
def test_a_group_that_says_nothing_gets_next_to_nothing(settings):
    codes, sizes, y = draw("crossed", seed=5, n=3000)
    codes, sizes = [*codes, np.random.default_rng(6).integers(0, 200, 3000)], [*sizes, 200]
    fit = fit_crossed(CrossedDesign.of(codes, sizes), y, settings=settings)
    assert fit.variances[2] < 0.02 * fit.variances[0]
    assert np.abs(fit.effects[2]).max() < 0.1


@every_design
def test_errors_are_those_of_dense_matrices(kind):
    codes, sizes, y = draw(kind, seed=7)
    design = CrossedDesign.of(codes, sizes)
    fit = fit_crossed(design, y, settings=CONVERGED)
    expected = dense_errors(indicators(codes, sizes), fit.variances, fit.noise)
    for found, close, theirs in zip(
        effect_errors(design, fit), effect_errors(design, fit, most_exact=0), expected, strict=True
    ):
        np.testing.assert_allclose(found, theirs, rtol=1e-6)
        # Up to 32 levels have exact errors, to the tolerance of the solution.
        np.testing.assert_allclose(close, theirs, rtol=0.02 if len(theirs) <= 32 else 0.1)


def test_errors_of_many_levels_are_within_a_tenth():
    rng = np.random.default_rng(8)
    codes, sizes = [rng.integers(0, 150, 900), rng.integers(0, 100, 900)], [150, 100]
    design = CrossedDesign.of(codes, sizes)
    fit = CrossedFit((np.zeros(150), np.zeros(100)), 0.0, np.array([1.0, 0.5]), 1.0, np.zeros(900))
    expected = dense_errors(indicators(codes, sizes), fit.variances, fit.noise)
    for found, theirs in zip(effect_errors(design, fit, most_exact=0), expected, strict=True):
        np.testing.assert_allclose(found, theirs, rtol=0.1)
        assert np.mean(found / theirs) == pytest.approx(1.0, abs=0.03)


def test_levels_without_rows_have_no_effect_and_the_error_of_the_prior():
    codes, sizes, y = draw("crossed", seed=9)
    design = CrossedDesign.of(codes, [sizes[0] + 5, sizes[1]])
    fit = fit_crossed(design, y)
    np.testing.assert_array_equal(fit.effects[0][-5:], 0.0)
    np.testing.assert_allclose(effect_errors(design, fit)[0][-5:] ** 2, fit.variances[0])


@given(seed=st.integers(0, 2**32 - 1))
def test_a_weight_counts_how_often_a_row_came(seed):
    codes, sizes, y = draw("unbalanced", seed=seed, n=60)
    times = np.random.default_rng(seed).integers(0, 4, len(y))
    weighted = fit_crossed(CrossedDesign.of(codes, sizes, times.astype(float)), y)
    rows = np.repeat(np.arange(len(y)), times)
    repeated = fit_crossed(CrossedDesign.of([code[rows] for code in codes], sizes), y[rows])
    np.testing.assert_allclose(weighted.variances, repeated.variances, rtol=1e-6, atol=1e-9)
    for one, other in zip(weighted.effects, repeated.effects, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("y", [np.full(6, 3.0), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0])])
def test_a_constant_target_has_no_effects(y):
    design = CrossedDesign.of([np.array([0, 0, 1, 1, 2, 2])], [3])
    fit = fit_crossed(design, y)
    np.testing.assert_array_equal(fit.effects[0], 0.0)
    assert fit.intercept == y[0]
    np.testing.assert_array_equal(effect_errors(design, fit)[0], 0.0)


def test_as_many_levels_as_rows_are_no_error():
    y = np.random.default_rng(0).normal(size=40)
    fit = fit_crossed(CrossedDesign.of([np.arange(40)], [40]), y)
    assert np.isfinite(fit.effects[0]).all()
    assert fit.noise > 0


def test_factors_that_explain_nothing_leave_and_the_others_stay_where_they_were():
    codes, sizes, y = draw("crossed", seed=10, n=4000)
    constant = np.zeros(4000, dtype=np.intp)
    settings = replace(QUICK, most_exact=0, settle=1e-3)
    alone = fit_crossed(CrossedDesign.of(codes, sizes), y, settings=settings)
    both = fit_crossed(CrossedDesign.of([constant, *codes], [1, *sizes]), y, settings=settings)
    assert both.variances[0] == 0.0
    np.testing.assert_array_equal(both.effects[0], 0.0)
    for one, other in zip(alone.effects, both.effects[1:], strict=True):
        np.testing.assert_allclose(one, other, atol=0.02)
