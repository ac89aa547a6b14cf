"""Mixed models: dense matrices of all rows give the same, laws hold, known variances are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from sufrep.solvers import mixed_model
from sufrep.solvers.mixed_model import (
    ArrangedLevels,
    MixedModel,
    Variances,
    arrange_levels,
    coefficient_errors,
    fit_arranged,
    fit_mixed_model,
)

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=max(settings.default.max_examples // 2, 1))


def draw(
    seed: int, n: int = 120, p: int = 2, n_levels: int = 25
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scores, codes, target and weights; many levels have fewer rows than coefficients, the last one none."""
    rng = np.random.default_rng(seed)
    size = rng.exponential(size=n_levels - 1)
    codes = rng.choice(n_levels - 1, n, p=size / size.sum())
    scores = rng.normal(size=(n, p))
    own = rng.normal(size=(n_levels, p + 1)) * np.append(1.0, np.linspace(1, 0, p))
    y = 7 + own[codes, 0] + (scores * (0.5 + own[codes, 1:])).sum(axis=1) + rng.normal(size=n)
    return scores, codes, y, rng.integers(1, 4, n).astype(float)


def with_ones(scores: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(scores)), scores])


def dense_covariance(Z: np.ndarray, codes: np.ndarray, weights: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The covariance of all rows given (τ, σ²)."""
    return (Z * theta[:-1]) @ Z.T * (codes[:, None] == codes) + np.diag(theta[-1] / weights)


def dense_center(Z: np.ndarray, V: np.ndarray, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Generalised least squares of the centred target, with the penalty."""
    inverse = np.linalg.inv(V)
    ridge = np.diag([1e-9, *[1.0] * (Z.shape[1] - 1)] / (theta[-1] + theta[:-1]))
    return np.linalg.solve(Z.T @ inverse @ Z + ridge, Z.T @ inverse @ y)


def naive_fit(
    Z: np.ndarray, codes: np.ndarray, y: np.ndarray, weights: np.ndarray, theta: np.ndarray, n_levels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Best linear unbiased predictions of the coefficients, and m, from the covariance of all rows."""
    mean = np.average(y, weights=weights)
    V = dense_covariance(Z, codes, weights, theta)
    center = dense_center(Z, V, y - mean, theta)
    weighted = np.linalg.solve(V, y - mean - Z @ center)
    own = [center + theta[:-1] * (Z[codes == g].T @ weighted[codes == g]) for g in range(n_levels)]
    origin = np.append(mean, np.zeros(Z.shape[1] - 1))
    return np.array(own) + origin, center + origin


def naive_equations(
    Z: np.ndarray, codes: np.ndarray, y: np.ndarray, theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """tr(V⁻¹D_j V⁻¹D_k) and rᵀV⁻¹D_j V⁻¹r of each pair of variances, with matrices of all rows."""
    V = dense_covariance(Z, codes, np.ones(len(y)), theta)
    inverse = np.linalg.inv(V)
    residual = inverse @ (y - Z @ dense_center(Z, V, y, theta))
    same = codes[:, None] == codes
    parts = [np.outer(z, z) * same for z in Z.T] + [np.eye(len(y))]
    left = [[np.trace(inverse @ one @ inverse @ other) for other in parts] for one in parts]
    return np.array(left), np.array([residual @ part @ residual for part in parts])


def naive_variances(Z: np.ndarray, codes: np.ndarray, y: np.ndarray, n_rounds: int) -> np.ndarray:
    """Rounds of scoring with the priors, for a target with mean 0 and variance 1."""
    q = Z.shape[1]
    prior, theta = 0.1 / q, np.append(np.zeros(q), 1.0)
    for _ in range(n_rounds):
        left, right = naive_equations(Z, codes, y, theta)
        precision = np.append(2 / np.maximum(theta[:-1], prior) ** 2, 1 / theta[-1] ** 2)
        left += np.diag(precision)
        right += precision * np.append(np.full(q, prior), 1.0)
        root = np.linalg.cholesky(left)
        found, _ = nnls(root.T, np.linalg.solve(root, right))
        before, theta = theta, np.append(np.minimum(found[:-1], 1.0), max(found[-1], 1e-3))
        if np.abs(theta - before).max() < 2e-3:
            break
    return theta


def theta_of(variances: Variances) -> np.ndarray:
    return np.append(variances.spread, variances.noise)


def assert_same(one: MixedModel, other: MixedModel, *, rtol: float = 1e-8, atol: float = 1e-8) -> None:
    np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=rtol, atol=atol)
    np.testing.assert_allclose(one.center, other.center, rtol=rtol, atol=atol)
    np.testing.assert_allclose(one.variances.ratio, other.variances.ratio, rtol=rtol, atol=atol)
    assert one.variances.deviation == pytest.approx(other.variances.deviation, rel=rtol)


# Against dense matrices


@few
@given(seed=seeds, p=st.integers(0, 4), weighted=st.booleans())
def test_coefficients_are_the_best_predictions_given_the_variances(seed, p, weighted):
    scores, codes, y, weights = draw(seed, p=p)
    spread, noise = np.random.default_rng(seed).choice([0.0, 0.1, 2.0], p + 1), 0.7
    given = Variances(spread / noise, np.sqrt(noise))
    found = fit_mixed_model(scores, codes, y, 25, weights if weighted else None, variances=given)
    own = weights if weighted else np.ones(len(y))
    theta = np.append(spread, noise)
    expected, center = naive_fit(with_ones(scores), codes, y, own, theta, 25)
    np.testing.assert_allclose(found.coefficients, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.center, center, rtol=1e-8, atol=1e-8)
    assert found.variances is given


@few
@given(seed=seeds, p=st.integers(0, 3), zeros=st.booleans())
def test_the_scoring_equations_are_those_of_dense_matrices(seed, p, zeros):
    scores, codes, y, _ = draw(seed, n=50, p=p)
    y = (y - y.mean()) / y.std()
    theta = np.append(np.random.default_rng(seed).uniform(0.05, 1, p + 1), 0.4)
    if zeros:
        theta[:-1:2] = 0.0
    arranged = arrange_levels(scores, codes, 25)
    parts = list(arranged.parts(y))
    left, right = mixed_model._scoring_equations(parts, theta[:-1], theta[-1])
    expected_left, expected_right = naive_equations(with_ones(scores), codes, y, theta)
    np.testing.assert_allclose(left, expected_left, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(right, expected_right, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_the_scoring_equations_give_the_derivative_of_the_likelihood(seed):
    scores, codes, y, _ = draw(seed, n=60)
    y, Z = (y - y.mean()) / y.std(), with_ones(scores)
    theta = np.array([0.3, 0.2, 0.1, 0.5])
    center = dense_center(Z, dense_covariance(Z, codes, np.ones(60), theta), y, theta)

    def log_likelihood(theta: np.ndarray) -> float:
        V, residual = dense_covariance(Z, codes, np.ones(60), theta), y - Z @ center
        return float(-(np.linalg.slogdet(V)[1] + residual @ np.linalg.solve(V, residual)) / 2)

    steps = 1e-5 * np.eye(4)
    derivative = [(log_likelihood(theta + s) - log_likelihood(theta - s)) / 2e-5 for s in steps]
    arranged = arrange_levels(scores, codes, 25)
    parts = list(arranged.parts(y))
    left, right = mixed_model._scoring_equations(parts, theta[:-1], theta[-1])
    np.testing.assert_allclose((right - left @ theta) / 2, derivative, rtol=1e-5, atol=1e-5)


@few
@given(seed=seeds, p=st.integers(0, 3), weighted=st.booleans())
def test_variances_are_those_of_naive_scoring(seed, p, weighted):
    scores, codes, y, weights = draw(seed, n=60, p=p)
    found = fit_mixed_model(scores, codes, y, 25, weights if weighted else None)
    place = np.repeat(np.arange(60), weights.astype(int)) if weighted else np.arange(60)
    unit = y[place].std()
    expected = naive_variances(with_ones(scores[place]), codes[place], (y[place] - y[place].mean()) / unit, 5)
    np.testing.assert_allclose(theta_of(found.variances) / unit**2, expected, rtol=1e-5, atol=1e-6)


@few
@given(seed=seeds, p=st.integers(0, 3), weighted=st.booleans())
def test_errors_are_those_of_hendersons_equations(seed, p, weighted):
    scores, codes, _, weights = draw(seed, n=60, p=p)
    spread, noise = np.random.default_rng(seed).choice([1e-6, 0.1, 2.0], p + 1), 0.7
    arranged = arrange_levels(scores, codes, 25, weights if weighted else None)
    found = coefficient_errors(arranged, Variances(spread / noise, np.sqrt(noise)))
    Z, q = with_ones(scores), p + 1
    # Common coefficients first, then the deviations of all levels.
    design = np.hstack([Z, *(Z * (codes == g)[:, None] for g in range(25))])
    ridge = np.array([1e-9, *[1.0] * p]) / (noise + spread)
    own = design * (weights if weighted else np.ones(60))[:, None]
    inverse = np.linalg.inv(own.T @ design / noise + np.diag([*ridge, *np.tile(1 / spread, 25)]))
    for g in range(25):
        pick = np.zeros((q, 26 * q))
        pick[:, :q] = pick[:, q * (g + 1) : q * (g + 2)] = np.eye(q)
        np.testing.assert_allclose(found[g], np.sqrt(np.diag(pick @ inverse @ pick.T)), rtol=1e-6)


def test_without_priors_the_variances_are_those_of_statsmodels(monkeypatch):
    from statsmodels.regression.mixed_linear_model import MixedLM

    off = {"_PSEUDO_LEVELS": 0.0, "_PSEUDO_ROWS": 0.0, "_ROUNDS": 100, "_TOLERANCE": 1e-12}
    for name, value in off.items():
        monkeypatch.setattr(mixed_model, name, value)
    _, codes, y, _ = draw(0, n=400, p=0)
    expected = MixedLM(y, np.ones((400, 1)), groups=codes).fit(reml=False, gtol=1e-10)
    found = fit_mixed_model(np.empty((400, 0)), codes, y, 25)
    assert found.variances.noise == pytest.approx(expected.scale, rel=1e-4)
    assert found.variances.spread[0] == pytest.approx(float(np.asarray(expected.cov_re)[0, 0]), rel=1e-4)
    assert found.center[0] == pytest.approx(float(expected.fe_params[0]), rel=1e-6)


# Laws


@few
@given(seed=seeds, p=st.integers(0, 3))
def test_a_weight_is_the_number_of_times_that_a_row_came(seed, p):
    scores, codes, y, weights = draw(seed, p=p)
    place = np.repeat(np.arange(len(y)), weights.astype(int))
    weighted = fit_mixed_model(scores, codes, y, 25, weights)
    assert_same(weighted, fit_mixed_model(scores[place], codes[place], y[place], 25))
    errors = [
        coefficient_errors(arranged, weighted.variances)
        for arranged in (
            arrange_levels(scores, codes, 25, weights),
            arrange_levels(scores[place], codes[place], 25),
        )
    ]
    np.testing.assert_allclose(*errors, rtol=1e-8)


@few
@given(seed=seeds, max_levels=st.sampled_from([5, 1000]))
def test_the_order_of_the_rows_does_not_matter(seed, max_levels):
    scores, codes, y, weights = draw(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    one = fit_mixed_model(scores, codes, y, 25, weights, max_levels=max_levels)
    other = fit_mixed_model(scores[order], codes[order], y[order], 25, weights[order], max_levels=max_levels)
    assert_same(one, other)


@few
@given(seed=seeds)
def test_the_names_of_the_levels_do_not_matter(seed):
    scores, codes, y, _ = draw(seed)
    other = np.random.default_rng(seed).permutation(25)
    one, moved = fit_mixed_model(scores, codes, y, 25), fit_mixed_model(scores, other[codes], y, 25)
    np.testing.assert_allclose(moved.coefficients[other], one.coefficients, rtol=1e-8, atol=1e-8)


@few
@given(seed=seeds, unit=st.sampled_from([1e-100, 1e-3, 7.0, 1e100]), sign=st.sampled_from([-1.0, 1.0]))
def test_the_unit_of_the_target_carries_over(seed, unit, sign):
    scores, codes, y, _ = draw(seed)
    one, other = (fit_mixed_model(scores, codes, some, 25) for some in (y, sign * unit * y))
    np.testing.assert_allclose(other.coefficients / (sign * unit), one.coefficients, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(other.variances.ratio, one.variances.ratio, rtol=1e-8, atol=1e-8)
    assert other.variances.deviation == pytest.approx(unit * one.variances.deviation, rel=1e-8)


@few
@given(seed=seeds, max_levels=st.sampled_from([5, 1000]))
def test_levels_without_rows_get_the_center_and_change_nothing(seed, max_levels):
    scores, codes, y, weights = draw(seed)
    one = fit_mixed_model(scores, codes, y, 25, weights, max_levels=max_levels)
    np.testing.assert_array_equal(one.coefficients[24], one.center)
    # Every second level is new, so that the old ones keep their order.
    more = fit_mixed_model(scores, 2 * codes + 1, y, 60, weights, max_levels=max_levels)
    np.testing.assert_allclose(more.coefficients[1:50:2], one.coefficients, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(more.coefficients[0:60:2], np.tile(more.center, (30, 1)))
    variances = more.variances
    errors = coefficient_errors(arrange_levels(scores, 2 * codes + 1, 60, weights), variances)
    assert (errors[0] >= np.sqrt(variances.spread)).all()


@pytest.mark.parametrize("block", [1, 20])
def test_levels_may_be_worked_on_in_small_parts(block, monkeypatch):
    scores, codes, y, weights = draw(3)
    whole = arrange_levels(scores, codes, 25, weights)
    model = fit_arranged(whole, y)
    errors = coefficient_errors(whole, model.variances)
    assert 0 < whole.n_small < len(whole.levels)
    n_parts = len(list(whole.parts()))
    assert n_parts == len(set(whole.sizes[: whole.n_small])) + 1
    monkeypatch.setattr(mixed_model, "_BLOCK", block)
    assert len(list(whole.parts())) > n_parts
    assert_same(fit_arranged(whole, y), model)
    np.testing.assert_allclose(coefficient_errors(whole, model.variances), errors, rtol=1e-10)


# Some of the levels


def test_the_last_round_makes_up_for_the_levels_that_were_left_out():
    rng = np.random.default_rng(12)
    codes, x = np.arange(8000) % 2000, rng.normal(size=(8000, 1))
    y = rng.normal(size=2000)[codes] + rng.normal(size=2000)[codes] * x[:, 0] + rng.normal(size=8000)
    every = theta_of(fit_mixed_model(x, codes, y, 2000, max_levels=2000).variances)
    found = np.array(
        [theta_of(fit_mixed_model(x, codes, y, 2000, max_levels=200, seed=s).variances) for s in range(5)]
    )
    assert np.abs(found - every).max() < 0.02
    some = np.flatnonzero(codes < 200)
    alone = theta_of(fit_mixed_model(x[some], codes[some], y[some], 200).variances)
    assert np.abs(alone - every).max() > 0.05


def test_the_seed_samples_levels_and_changes_little():
    scores, codes, y, weights = draw(4, n=400, n_levels=60)
    options: dict[str, Any] = {"max_levels": 20}
    one = fit_mixed_model(scores, codes, y, 60, weights, seed=1, **options)
    assert_same(fit_mixed_model(scores, codes, y, 60, weights, seed=1, **options), one, rtol=0, atol=0)
    other = fit_mixed_model(scores, codes, y, 60, weights, seed=2, **options)
    assert np.abs(other.variances.ratio - one.variances.ratio).max() > 1e-3
    again = fit_mixed_model(scores, codes, y, 60, weights, variances=one.variances)
    assert_same(again, one, rtol=0, atol=0)
    every = [fit_mixed_model(scores, codes, y, 60, weights, seed=seed) for seed in (1, 2)]
    assert_same(*every, rtol=0, atol=0)


def test_known_variances_are_used_as_they_are(monkeypatch):
    def refuse(*_: Any) -> None:
        raise AssertionError

    scores, codes, y, _ = draw(5)
    variances = fit_mixed_model(scores, codes, y, 25).variances
    monkeypatch.setattr(mixed_model, "_estimate_variances", refuse)
    half = np.arange(60)
    found = fit_mixed_model(scores[half], codes[half], y[half], 25, variances=variances)
    expected, _ = naive_fit(
        with_ones(scores[half]), codes[half], y[half], np.ones(60), theta_of(variances), 25
    )
    np.testing.assert_allclose(found.coefficients, expected, rtol=1e-8, atol=1e-8)


def test_some_levels_are_the_levels_of_an_arrangement_of_their_own():
    scores, codes, y, weights = draw(6)
    whole = arrange_levels(scores, codes, 25, weights)
    places = np.array([0, 3, 4, whole.n_small - 1, whole.n_small, len(whole.levels) - 1])
    some = whole.take(places)
    inside = np.isin(codes, whole.levels[places])
    alone = arrange_levels(scores[inside], codes[inside], 25, weights[inside])
    for name in ("rows", "root", "levels", "starts", "sizes", "weight", "grams"):
        np.testing.assert_allclose(getattr(some, name), getattr(alone, name), rtol=1e-12)
    np.testing.assert_array_equal(some.sorted(y), alone.sorted(y[inside]))


# What is found


@pytest.mark.parametrize("size", [3, 8, 40])
@pytest.mark.parametrize("max_levels", [1000, 400])
def test_known_variances_are_found(size, max_levels):
    rng = np.random.default_rng(size)
    spread, noise, center = np.array([2.0, 0.0, 0.5, 0.1]), 1.5, np.array([3.0, -1.0, 0.0, 2.0])
    codes = np.repeat(np.arange(800), size)
    Z = with_ones(rng.normal(size=(len(codes), 3)))
    true = center + np.sqrt(spread) * rng.normal(size=(800, 4))
    y = (Z * true[codes]).sum(axis=1) + np.sqrt(noise) * rng.normal(size=len(codes))
    found = fit_mixed_model(Z[:, 1:], codes, y, 800, max_levels=max_levels)
    few_rows = size == 3
    np.testing.assert_allclose(found.variances.spread, spread, rtol=0.2, atol=0.3 if few_rows else 0.06)
    assert found.variances.noise == pytest.approx(noise, rel=0.25 if few_rows else 0.08)
    np.testing.assert_allclose(found.center, center, atol=0.15)
    errors = coefficient_errors(arrange_levels(Z[:, 1:], codes, 800), found.variances)
    missed = ((found.coefficients - true) ** 2).mean(axis=0) / (errors**2).mean(axis=0)
    np.testing.assert_allclose(missed[[0, 2]], 1.0, rtol=0.2)


def levels_of(codes: np.ndarray) -> int:
    return int(codes.max()) + 1


@pytest.mark.parametrize(
    "case",
    [
        *("constant", "zero", "one level", "a row each", "one row", "no covariates", "collinear", "repeated"),
        *("constant covariate", "more covariates than rows", "exact", "tiny weights", "extreme weights"),
        "outlier",
    ],
)
@pytest.mark.parametrize("unit", [1e-100, 1.0, 1e100])
def test_extreme_samples_have_finite_results(case, unit):
    scores, codes, y, _ = draw(7)
    weights, n = None, len(y)
    rng = np.random.default_rng(7)
    if case in {"constant", "zero"}:
        y = np.full(n, 5.0 if case == "constant" else 0.0)
    elif case == "one level":
        codes = np.zeros(n, dtype=int)
    elif case == "a row each":
        codes = np.arange(n)
    elif case == "one row":
        scores, codes, y = scores[:1], codes[:1], y[:1]
    elif case == "no covariates":
        scores = scores[:, :0]
    elif case == "collinear":
        scores = np.column_stack([scores, scores @ [1.0, -1.0], scores[:, 0] + 1e-9 * scores[:, 1]])
    elif case == "repeated":
        scores = np.column_stack([scores] * 3)
    elif case == "constant covariate":
        scores = np.column_stack([scores, np.zeros(n), np.full(n, 3.0)])
    elif case == "more covariates than rows":
        scores = rng.normal(size=(n, 2 * n))
    elif case == "exact":
        y = scores @ [1.0, 2.0] + codes
    elif case == "tiny weights":
        weights = np.full(n, 1e-8)
    elif case == "extreme weights":
        weights = 10 ** rng.uniform(-8, 8, n)
    elif case == "outlier":
        y[0] = 1e12
    arranged = arrange_levels(scores, codes, levels_of(codes), weights)
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        found = fit_arranged(arranged, unit * y)
        errors = coefficient_errors(arranged, found.variances)
    for some in (found.coefficients, found.center, found.variances.ratio, errors):
        assert np.isfinite(some).all()
    assert (found.variances.ratio >= 0).all()
    assert np.isfinite(found.variances.deviation)
    assert found.variances.deviation > 0
    fit = (with_ones(scores) * found.coefficients[codes]).sum(axis=1) / unit
    if case in {"constant", "zero", "exact"}:
        np.testing.assert_allclose(fit, y, atol=0.02 * y.std() + 1e-9)


def test_an_unused_covariate_changes_nothing():
    scores, codes, y, _ = draw(8)
    one = fit_mixed_model(scores, codes, y, 25)
    more = fit_mixed_model(np.column_stack([scores, np.zeros(len(y))]), codes, y, 25)
    np.testing.assert_allclose(more.coefficients[:, :3], one.coefficients, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(more.coefficients[:, 3], 0.0)


def test_coefficients_in_which_levels_differ_much_keep_their_center():
    # A penalty of one row within levels would be strong where a level's own coefficient says little about m.
    rng = np.random.default_rng(9)
    codes = np.arange(6000) % 30
    true = 2 + 3 * rng.normal(size=30)
    x = rng.normal(size=6000)
    found = fit_mixed_model(x[:, None], codes, true[codes] * x + 0.1 * rng.normal(size=6000), 30)
    assert found.center[1] == pytest.approx(true.mean(), rel=0.05)
    np.testing.assert_allclose(found.coefficients[:, 1], true, atol=0.05)


def test_an_arrangement_serves_several_targets():
    scores, codes, y, weights = draw(10)
    arranged = arrange_levels(scores, codes, 25, weights)
    assert isinstance(arranged, ArrangedLevels)
    for target in (y, y**2, (y > 7).astype(float)):
        assert_same(
            fit_arranged(arranged, target),
            fit_mixed_model(scores, codes, target, 25, weights),
            rtol=0,
            atol=0,
        )
