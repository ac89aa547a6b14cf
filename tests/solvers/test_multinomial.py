"""The multinomial logit against loops, scikit-learn and glmnet, and the laws of its minimum."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from sufrep.solvers.multinomial import MultinomialFit, _build_loss, fit_multinomial

law = settings(deadline=None, max_examples=15)


@dataclass
class Data:
    """Rows whose levels differ in mean and frequency."""

    rows: np.ndarray
    codes: np.ndarray
    n_levels: int


def draw(seed: int, n: int = 200, p: int = 3, n_levels: int = 4, distance: float = 1.0) -> Data:
    rng = np.random.default_rng(seed)
    share = np.arange(1, n_levels + 1) / sum(range(1, n_levels + 1))
    codes = np.concatenate([np.arange(n_levels), rng.choice(n_levels, n - n_levels, p=share)])
    mixing = rng.normal(size=(p, p)) / np.sqrt(p) + np.eye(p)
    means = distance * rng.normal(size=(n_levels, p))
    return Data(means[codes] + rng.normal(size=(n, p)) @ mixing, codes, n_levels)


def fit(data: Data, *, single_precision: bool | None = None, **options: Any) -> MultinomialFit:
    """The solution; the size of the data decides about the precision, unless it is given."""
    with pytest.MonkeyPatch.context() as patch:
        if single_precision is not None:
            # In the function's own namespace: pytest imports modules with doctests a second time.
            patch.setitem(fit_multinomial.__globals__, "_LARGE", 0 if single_precision else np.inf)
        return fit_multinomial(data.rows, data.codes, data.n_levels, **options)


def criterion_by_loops(
    data: Data,
    intercepts: np.ndarray,
    slopes: np.ndarray,
    penalty: float,
    scale: Any = None,
    weights: Any = None,
) -> float:
    total = 0.0
    for i, (row, level) in enumerate(zip(data.rows, data.codes, strict=True)):
        scores = [
            a + sum(b * x for b, x in zip(bs, row, strict=True))
            for a, bs in zip(intercepts, slopes, strict=True)
        ]
        highest = max(scores)
        total_power = sum(np.exp(score - highest) for score in scores)
        weight = 1.0 if weights is None else weights[i]
        total += weight * (highest + np.log(total_power) - scores[level])
    for g in range(data.n_levels):
        for j in range(data.rows.shape[1]):
            total += penalty / 2 * (slopes[g, j] * (1.0 if scale is None else scale[j])) ** 2
    return total


def gradient_of(
    data: Data, found: MultinomialFit, penalty: float, scale: Any = 1.0, weights: Any = 1.0
) -> np.ndarray:
    """Derivatives with respect to intercepts and slopes, (n_levels, 1 + p), by the usual formula."""
    scores = found.intercepts + data.rows @ found.slopes.T
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    residual = powers / powers.sum(axis=1, keepdims=True) - np.eye(data.n_levels)[data.codes]
    residual *= np.broadcast_to(weights, len(data.codes))[:, None]
    slopes = residual.T @ (data.rows - data.rows.mean(axis=0)) + penalty * found.slopes * np.square(scale)
    return np.column_stack([residual.sum(axis=0), slopes])


def assert_same(one: MultinomialFit, other: MultinomialFit, *, atol: float = 1e-7) -> None:
    np.testing.assert_allclose(one.slopes, other.slopes, rtol=0, atol=atol)
    np.testing.assert_allclose(one.intercepts, other.intercepts, rtol=0, atol=atol)


def probabilities(data: Data, found: MultinomialFit) -> np.ndarray:
    scores = found.intercepts + data.rows @ found.slopes.T
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [None, np.array([2.0, 0.5])])
def test_it_finds_the_minimum_of_the_criterion_written_as_loops(scale, weighted):
    data = draw(0, n=25, p=2, n_levels=3)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 25) if weighted else None
    found = fit(data, penalty=0.7, scale=scale, weights=weights)

    def criterion(flat: np.ndarray) -> float:
        table = flat.reshape(3, 3)
        return criterion_by_loops(data, table[:, 0], table[:, 1:], 0.7, scale, weights)

    expected = minimize(criterion, np.zeros(9), method="BFGS", options={"gtol": 1e-6})
    table = expected.x.reshape(3, 3)
    assert found.converged
    assert found.objective == pytest.approx(expected.fun, rel=1e-10)
    assert criterion(np.column_stack([found.intercepts, found.slopes]).ravel()) == pytest.approx(
        found.objective
    )
    np.testing.assert_allclose(found.slopes, table[:, 1:], atol=1e-5)
    np.testing.assert_allclose(found.intercepts, table[:, 0] - table[:, 0].mean(), atol=1e-5)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("n_levels", [2, 3, 12])
def test_it_agrees_with_scikit_learn(penalty, n_levels):
    data = draw(2, n_levels=n_levels)
    # With two levels, scikit-learn fits and penalises one slope instead of two of opposite sign.
    C = (2.0 if n_levels == 2 else 1.0) / penalty
    model = LogisticRegression(C=C, tol=1e-10, max_iter=10_000, solver="newton-cg").fit(data.rows, data.codes)
    slopes = model.coef_ if n_levels > 2 else np.vstack([-model.coef_, model.coef_]) / 2
    intercepts = model.intercept_ if n_levels > 2 else np.append(-model.intercept_, model.intercept_) / 2
    found = fit(data, penalty=penalty)
    np.testing.assert_allclose(found.slopes, slopes, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.intercepts, intercepts - intercepts.mean(), rtol=1e-5, atol=1e-6)


def test_it_agrees_with_glmnet(r_fixtures):
    with (r_fixtures / "input.csv").open() as file:
        lines = list(csv.DictReader(file))
    with (r_fixtures / "mnl_ridge_lambda0.01.csv").open() as file:
        table = list(csv.DictReader(file))
    names = [f"x{j}" for j in range(1, 6)]
    levels, codes = np.unique([line["g"] for line in lines], return_inverse=True)
    assert levels.tolist() == [line["level"] for line in table]
    rows = np.array([[float(line[name]) for name in names] for line in lines])
    found = fit(Data(rows, codes, len(levels)), penalty=3.0)
    intercepts = np.array([float(line["intercept"]) for line in table])
    slopes = [[float(line[name]) for name in names] for line in table]
    np.testing.assert_allclose(found.slopes, slopes, rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.intercepts, intercepts - intercepts.mean(), rtol=0, atol=1e-4)


@law
@given(st.integers(0, 1000), st.sampled_from([0.01, 1.0, 20.0]), st.integers(1, 8), st.integers(1, 6))
def test_the_gradient_is_zero_at_the_solution(seed, penalty, n_levels, p):
    data = draw(seed, n=60, p=p, n_levels=n_levels)
    rng = np.random.default_rng(seed)
    weights, scale = rng.uniform(0.1, 3.0, 60), rng.uniform(0.3, 3.0, p)
    found = fit(data, penalty=penalty, weights=weights, scale=scale)
    assert found.converged
    np.testing.assert_allclose(gradient_of(data, found, penalty, scale, weights), 0, atol=1e-7)


@law
@given(st.integers(0, 1000), st.sampled_from([0.001, 1.0, 100.0]))
def test_intercepts_and_slopes_sum_to_zero_over_the_levels(seed, penalty):
    found = fit(draw(seed), penalty=penalty)
    np.testing.assert_allclose(found.slopes.sum(axis=0), 0, atol=1e-9)
    assert found.intercepts.sum() == pytest.approx(0, abs=1e-9)


@law
@given(st.integers(0, 1000), st.sampled_from([0.01, 1.0]))
def test_a_row_of_weight_k_counts_as_k_rows(seed, penalty):
    data = draw(seed, n=80)
    times = np.random.default_rng(seed).integers(1, 4, 80)
    repeated = Data(np.repeat(data.rows, times, axis=0), np.repeat(data.codes, times), data.n_levels)
    one, other = fit(data, penalty=penalty, weights=times.astype(float)), fit(repeated, penalty=penalty)
    np.testing.assert_allclose(one.slopes, other.slopes, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(one.intercepts, other.intercepts, rtol=1e-7, atol=1e-8)


@law
@given(st.integers(0, 1000))
def test_the_fit_depends_on_neither_the_order_of_rows_nor_the_names_of_levels(seed):
    data, rng = draw(seed), np.random.default_rng(seed)
    order, names = rng.permutation(len(data.codes)), rng.permutation(data.n_levels)
    one, other = fit(data), fit(Data(data.rows[order], names[data.codes[order]], data.n_levels))
    np.testing.assert_allclose(other.slopes[names], one.slopes, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(other.intercepts[names], one.intercepts, rtol=1e-7, atol=1e-8)


def test_the_memory_order_does_not_matter():
    data = draw(3)
    assert_same(fit(data), fit(Data(np.asfortranarray(data.rows), data.codes, data.n_levels)), atol=1e-9)


@law
@given(st.lists(st.floats(1e-4, 1e4), min_size=3, max_size=3), st.floats(-1e3, 1e3))
def test_units_with_a_matching_scale_change_only_the_slopes(units, origin):
    data = draw(4)
    moved = Data(data.rows * units + origin * np.array(units), data.codes, data.n_levels)
    one, other = fit(data, scale=np.ones(3)), fit(moved, scale=np.array(units))
    np.testing.assert_allclose(other.slopes * units, one.slopes, rtol=1e-6, atol=1e-7)
    shifted = one.intercepts - origin * one.slopes.sum(axis=1)
    np.testing.assert_allclose(other.intercepts, shifted - shifted.mean(), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("single_precision", [False, True])
def test_covariates_far_from_zero_lose_no_precision_and_need_no_more_steps(single_precision):
    data = draw(5, n=500)
    far = Data(data.rows + 1e9, data.codes, data.n_levels)
    near = Data(far.rows - 1e9, data.codes, data.n_levels)
    one, other = (fit(data, tol=1e-9, single_precision=single_precision) for data in (near, far))
    assert other.converged
    assert other.n_iter <= one.n_iter + 3
    np.testing.assert_allclose(other.slopes, one.slopes, rtol=0, atol=1e-6)
    # Products with 1e9 lose nine of the sixteen digits.
    np.testing.assert_allclose(probabilities(far, other), probabilities(near, one), atol=1e-4)


@pytest.mark.parametrize("penalty", [0.0, 1e-3, 1.0])
def test_ill_scaled_correlated_covariates_take_few_steps(penalty):
    # Plain L-BFGS needs thousands, and hundreds if the sum of the slopes over the levels is free.
    rng = np.random.default_rng(6)
    codes = np.concatenate([np.arange(30), rng.integers(0, 30, 2970)])
    common = rng.normal(size=(3000, 1))
    rows = (rng.normal(size=(30, 6))[codes] + 5 * common + rng.normal(size=(3000, 6))) * np.logspace(-2, 2, 6)
    data = Data(rows, codes, 30)
    found = fit(data, penalty=penalty)
    assert found.converged
    assert found.n_iter < 100
    assert np.abs(gradient_of(data, found, penalty) / rows.std(axis=0).max()).max() < 1e-5


def test_single_precision_gives_the_same_solution_as_double_precision():
    data = draw(7, n=3000, p=6, n_levels=40)
    weights = np.random.default_rng(7).uniform(0.5, 2.0, 3000)
    double = fit(data, weights=weights, single_precision=False)
    single = fit(data, weights=weights, single_precision=True, tol=1e-10)
    assert single.converged
    assert single.objective == pytest.approx(double.objective, rel=1e-13)
    assert_same(single, double)
    default = fit(data, weights=weights, single_precision=True)
    assert default.converged
    assert default.objective == pytest.approx(double.objective, rel=1e-8)
    assert_same(default, double, atol=1e-3)


def test_large_inputs_are_fitted_in_blocks_and_single_precision(monkeypatch):
    # In the function's own namespace: pytest imports modules with doctests a second time.
    monkeypatch.setitem(fit_multinomial.__globals__, "_LARGE", 100_000)
    monkeypatch.setitem(fit_multinomial.__globals__, "_BLOCK", 2**14)
    data = draw(8, n=2000, p=3, n_levels=60)
    found, double = fit(data), fit(data, single_precision=False)
    assert found.converged
    assert found.objective == pytest.approx(double.objective, rel=1e-8)
    assert np.abs(gradient_of(data, double, 1.0)).max() < 1e-5


@pytest.mark.parametrize("n_levels", [5, 60])
def test_levels_of_one_row_each_converge(n_levels):
    rows = np.random.default_rng(9).normal(size=(n_levels, 3))
    data = Data(rows, np.arange(n_levels), n_levels)
    found = fit(data)
    assert found.converged
    np.testing.assert_allclose(gradient_of(data, found, 1.0), 0, atol=1e-7)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_single_level_has_zero_coefficients(penalty):
    data = draw(10)
    found = fit(Data(data.rows, np.zeros_like(data.codes), 1), penalty=penalty)
    assert (found.converged, found.n_iter, found.objective) == (True, 0, pytest.approx(0.0, abs=1e-9))
    np.testing.assert_array_equal(found.slopes, np.zeros((1, 3)))
    np.testing.assert_array_equal(found.intercepts, [0.0])


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("constant", [0.0, 3.3, 1e9])
def test_a_constant_covariate_has_no_slope(constant, penalty):
    data = draw(11, distance=0.3)
    wide = np.column_stack([data.rows, np.full(len(data.rows), constant)])
    found, expected = fit(Data(wide, data.codes, 4), penalty=penalty), fit(data, penalty=penalty)
    assert found.converged
    np.testing.assert_allclose(found.slopes[:, 3], 0, atol=1e-9)
    np.testing.assert_allclose(found.slopes[:, :3], expected.slopes, atol=1e-7)


def test_without_varying_covariates_intercepts_are_log_frequencies():
    data = draw(12)
    expected = np.log(np.bincount(data.codes))
    for rows in (np.zeros((200, 0)), np.full((200, 2), 7.0)):
        found = fit(Data(rows, data.codes, 4))
        assert found.converged
        np.testing.assert_allclose(found.intercepts, expected - expected.mean(), atol=1e-9)


def test_a_duplicated_covariate_shares_its_slope():
    data = draw(13)
    twice = Data(np.column_stack([data.rows, data.rows[:, 0]]), data.codes, 4)
    found = fit(twice)
    assert found.converged
    np.testing.assert_allclose(found.slopes[:, 0], found.slopes[:, 3], atol=1e-8)
    # The squares of two halves of a slope sum to half of its square.
    halved = fit(data, scale=np.array([np.sqrt(0.5), 1.0, 1.0]))
    np.testing.assert_allclose(found.slopes[:, 0] + found.slopes[:, 3], halved.slopes[:, 0], atol=1e-7)
    assert found.objective == pytest.approx(halved.objective, rel=1e-12)


@pytest.mark.parametrize("single_precision", [False, True])
def test_collinear_covariates_without_a_penalty(single_precision):
    data = draw(14)
    wide = Data(np.column_stack([data.rows, data.rows @ [1.0, 1.0, -0.3], data.rows[:, 0]]), data.codes, 4)
    options = {"penalty": 0.0, "tol": 1e-9, "single_precision": single_precision}
    found, expected = fit(wide, **options), fit(data, **options)
    assert found.converged
    assert found.objective == pytest.approx(expected.objective, rel=1e-12)
    np.testing.assert_allclose(probabilities(wide, found), probabilities(data, expected), atol=1e-7)
    assert np.abs(found.slopes).max() <= np.abs(expected.slopes).max() + 1e-6


def test_more_covariates_than_rows_converge():
    data = draw(15, n=40, p=400)
    found = fit(data, scale=np.random.default_rng(15).uniform(0.5, 2.0, 400))
    scale = np.random.default_rng(15).uniform(0.5, 2.0, 400)
    assert found.converged
    np.testing.assert_allclose(gradient_of(data, found, 1.0, scale), 0, atol=1e-6)


@pytest.mark.parametrize(("single_precision", "rtol"), [(False, 1e-12), (True, 1e-5)])
def test_a_point_far_away_does_not_overflow(single_precision, rtol):
    data = draw(17)
    loss = _build_loss(data.rows, data.codes, data.n_levels, np.ones(200), np.ones(3), 1.0, n_threads=1)
    evaluate = loss.in_single_precision() if single_precision else loss
    near = np.random.default_rng(17).normal(size=(data.n_levels, 4))
    for point in (near, 300.0 * near, near - 500.0, near):
        slopes = point[:, :-1] @ loss.lift.T
        value, gradient = evaluate(point)
        expected = criterion_by_loops(data, point[:, -1] - slopes @ loss.center, slopes, penalty=1.0)
        assert value == pytest.approx(expected, rel=rtol)
        assert np.isfinite(gradient).all()


def test_too_few_iterations_are_not_convergence():
    found = fit(draw(18), max_iter=2)
    assert (found.n_iter, found.converged) == (2, False)


def test_separated_levels_without_a_penalty_stay_finite():
    data = Data(np.repeat([[0.0], [1.0], [5.0]], 10, axis=0), np.repeat([0, 1, 2], 10), 3)
    found = fit(data, penalty=0.0, max_iter=200)
    assert found.objective < 1e-3
    assert np.isfinite(found.slopes).all()


def test_the_number_of_threads_of_blas_is_restored():
    from threadpoolctl import threadpool_info, threadpool_limits

    with threadpool_limits(2, user_api="blas"):
        before = [library["num_threads"] for library in threadpool_info()]
        fit(draw(19))
        assert [library["num_threads"] for library in threadpool_info()] == before
