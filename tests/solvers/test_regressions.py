"""Normal scores, curves and group coefficients, against loops, scikit-learn and textbook formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, norm, rankdata
from sklearn.linear_model import Ridge

from sufrep.solvers.regressions import (
    GroupCoefficients,
    _prior_mean,
    fit_curve,
    fit_normal_scores,
    hinge_basis,
    shrink_coefficients,
)

# Normal scores


values = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=60)


@given(values)
def test_scores_are_normal_quantiles_of_mid_ranks(rows: list[float]) -> None:
    column = np.array(rows)
    found = fit_normal_scores([column]).apply([column])[:, 0]
    expected = norm.ppf((rankdata(column) - 0.5) / len(column))
    np.testing.assert_allclose(found, expected if len(set(rows)) > 1 else 0.0, atol=1e-12)


def test_standard_scores_go_on_beyond_the_rows_they_were_fitted_to():
    column = np.random.default_rng(0).normal(5, 2, 50)
    new = np.array([-100.0, 5.0, 300.0])
    expected = (new - column.mean()) / column.std()
    for unit in (1.0, 1e-200, 1e200):  # whose squares are no doubles
        maps = fit_normal_scores([column * unit], ranks=False)
        np.testing.assert_allclose(maps.apply([new * unit]).ravel(), expected, rtol=1e-12)
    huge = fit_normal_scores([column * 1e-200], ranks=False).apply([np.array([-1e300, 1e300])])
    np.testing.assert_array_equal(huge.ravel(), [-1e140, 1e140])  # the largest scores
    ranks = fit_normal_scores([column])
    assert ranks.apply([new]).max() == ranks.apply([column]).max()


@given(values)
def test_only_the_order_of_the_values_matters(rows: list[float]) -> None:
    column = np.array(rows)
    first, second = (fit_normal_scores([part]).apply([part]) for part in (column, np.exp(column / 10)))
    np.testing.assert_allclose(first, second, atol=1e-9)


@given(values, st.data())
def test_a_row_of_weight_k_counts_as_k_rows(rows: list[float], data: st.DataObject) -> None:
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    column = np.array(rows)
    weighted = fit_normal_scores([column], np.array(times, dtype=float))
    repeated = fit_normal_scores([np.repeat(column, times)])
    np.testing.assert_allclose(weighted.apply([column]), repeated.apply([column]), atol=1e-12)


@pytest.mark.parametrize("shape", ["lognormal", "exponential", "uniform"])
def test_scores_of_a_large_sample_are_normal(shape: str) -> None:
    rng = np.random.default_rng(0)
    column = getattr(rng, shape)(size=20_000)
    maps = fit_normal_scores([column])
    assert len(maps.knots[0]) <= 1000
    assert kstest(maps.apply([column])[:, 0], "norm").statistic < 0.005
    assert kstest(maps.apply([getattr(rng, shape)(size=20_000)])[:, 0], "norm").statistic < 0.02


def test_scores_of_nulls_constants_and_values_beyond_the_ends() -> None:
    maps = fit_normal_scores([np.array([1.0, 2, 3, np.nan]), np.full(4, 5.0), np.full(4, np.nan)])
    found = maps.apply([np.array([np.nan, 99.0, -99.0]), np.array([5.0, 6.0, np.nan]), np.ones(3)])
    assert found[0].tolist() == [0, 0, 0]
    np.testing.assert_allclose(found[1:, 0], norm.ppf([5 / 6, 1 / 6]))
    assert not found[:, 1:].any()


@pytest.mark.parametrize("shape", ["normal", "skewed", "rounded", "two values", "with an outlier", "huge"])
def test_many_values_are_interpolated_as_by_numpy(shape: str) -> None:
    rng = np.random.default_rng(0)
    column = {
        "normal": rng.normal(size=30_000),
        "skewed": np.exp(rng.normal(size=30_000)),
        "rounded": rng.normal(size=30_000).round(1),
        "two values": rng.integers(0, 2, 30_000).astype(float),
        "with an outlier": np.append(rng.normal(size=29_999), 1e12),
        "huge": rng.uniform(-1e300, 1e300, 30_000),
    }[shape]
    maps = fit_normal_scores([column])
    values = np.concatenate([column, maps.knots[0], column.mean() + np.array([-1.0, 1.0]) * np.ptp(column)])
    expected = np.interp(values / 1e10, maps.knots[0] / 1e10, maps.scores[0])
    np.testing.assert_allclose(maps.apply([values])[:, 0], expected, rtol=1e-9, atol=1e-9)


def test_without_ranks_scores_are_standardised_values() -> None:
    column = np.random.default_rng(1).normal(3, 2, 500)
    found = fit_normal_scores([column], ranks=False).apply([column])[:, 0]
    np.testing.assert_allclose(found, (column - column.mean()) / column.std(), atol=1e-10)
    assert not fit_normal_scores([np.ones(3)], ranks=False).apply([np.ones(3)]).any()


# One curve for all rows


def test_the_basis_has_a_hinge_at_each_knot():
    found = hinge_basis(np.array([[-2.0, 0.5], [1.5, 3.0]]), (-1.0, 1.0))
    expected = [[1, -2, 0.5, 0, 1.5, 0, 0], [1, 1.5, 3, 2.5, 4, 0.5, 2]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [40, 70_000])
def test_a_curve_is_a_ridge_regression_on_the_basis(n, weighted):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(n, 2))
    y = 50 + scores[:, 0] + np.maximum(scores[:, 1], 0) + rng.normal(size=n)
    weights = rng.choice([1.0, 2.0], n) if weighted else None
    curve = fit_curve(scores, y, weights, knots=(-1.0, 0.0, 1.0))
    ridge = Ridge(1.0).fit(hinge_basis(scores, (-1.0, 0.0, 1.0))[:, 1:], y, sample_weight=weights)
    expected = ridge.predict(hinge_basis(scores, (-1.0, 0.0, 1.0))[:, 1:])
    np.testing.assert_allclose(curve.predict(scores), expected, rtol=1e-8)


def test_without_covariates_a_curve_is_the_mean():
    curve = fit_curve(np.empty((4, 0)), np.array([1.0, 2.0, 3.0, 6.0]))
    np.testing.assert_allclose(curve.predict(np.empty((2, 0))), 3.0)


# Coefficients that differ by group


def group_grams(columns: np.ndarray, codes: np.ndarray, n_groups: int) -> np.ndarray:
    """Sums of squares and products of the columns within each group."""
    return np.array([columns[codes == k].T @ columns[codes == k] for k in range(n_groups)])


def draw(
    spread: Any, *, n_groups: int = 40, n: int = 30, noise: Any = 1.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Grams of groups with coefficients from N((1, 2, …), diag spread), and these coefficients."""
    rng = np.random.default_rng(seed)
    q = len(spread)
    true = np.arange(1, q + 1) + np.sqrt(spread) * rng.normal(size=(n_groups, q))
    codes = np.repeat(np.arange(n_groups), n)
    Z = np.column_stack([np.ones(len(codes)), rng.normal(size=(len(codes), q - 1))])
    deviation = np.sqrt(np.broadcast_to(noise, n_groups))[codes]
    y = (Z * true[codes]).sum(axis=1) + deviation * rng.normal(size=len(codes))
    return group_grams(np.column_stack([Z, y]), codes, n_groups), true


def shrink(grams: np.ndarray, n_rounds: int = 50, **options: Any) -> GroupCoefficients:
    """Shrink from the overall mean and variance of y."""
    total = grams.sum(axis=0)
    mean = total[0, -1] / total[0, 0]
    variance = float(total[-1, -1] / total[0, 0] - mean**2)
    start = {"center": np.append(mean, np.zeros(len(total) - 2)), "noise": np.full(len(grams), variance)}
    defaults = {"variance": variance, "noise_weight": 1.0, "n_rounds": n_rounds}
    return shrink_coefficients(grams, **{**start, **defaults, **options})


def least_squares(grams: np.ndarray) -> np.ndarray:
    """A separate regression for each group."""
    return np.array([np.linalg.solve(gram[:-1, :-1], gram[:-1, -1]) for gram in grams])


def test_one_round_of_em_follows_the_formulas():
    grams, _ = draw([1.0, 0.5], n_groups=6, n=8)
    found = shrink_coefficients(
        grams,
        center=np.zeros(2),
        noise=np.full(6, 2.0),
        variance=3.0,
        noise_weight=4.0,
        n_rounds=1,
    )
    parts = [(gram[:2, :2], gram[:2, 2], gram[2, 2]) for gram in grams]
    precision = [np.linalg.inv(2 * np.linalg.inv(G) + 3 * np.eye(2)) for G, _, _ in parts]
    own = least_squares(grams)
    right = sum(part @ b for part, b in zip(precision, own, strict=True))
    center = np.linalg.solve(sum(precision), right)
    np.testing.assert_allclose(found.center, center, rtol=1e-7)
    squares = []
    for k, (G, cross, square) in enumerate(parts):
        covariance = np.linalg.inv(G / 2 + np.eye(2) / 3)
        mean = covariance @ (cross / 2 + center / 3)
        np.testing.assert_allclose(found.means[k], mean, rtol=1e-7)
        squares.append((mean - center) ** 2 + np.diag(covariance))
        residual = square - 2 * mean @ cross + mean @ G @ mean + np.trace(G @ covariance)
        assert found.noise[k] == pytest.approx((residual + 4 * 3.0) / (G[0, 0] + 4), rel=1e-7)
    np.testing.assert_allclose(found.spread, np.mean(squares, axis=0), rtol=1e-7)


@given(seed=st.integers(0, 2**32 - 1), q=st.integers(1, 4))
def test_the_prior_mean_is_the_generalised_least_squares_estimate(seed, q):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(7, q + 5, q))
    gram = np.einsum("kni,knj->kij", rows, rows)
    own, spread = rng.normal(size=(7, q)), rng.uniform(0.1, 3, q)
    cross = np.einsum("kij,kj->ki", gram, own)
    # β̂_k ~ N(m, G_k⁻¹ + diag τ)
    precision = [np.linalg.inv(np.linalg.inv(G) + np.diag(spread)) for G in gram]
    right = sum(part @ b for part, b in zip(precision, own, strict=True))
    expected = np.linalg.solve(sum(precision), right)
    covariance = np.linalg.inv(gram + np.diag(1 / spread))
    np.testing.assert_allclose(
        _prior_mean(gram, cross, covariance, np.zeros(q)), expected, rtol=1e-6, atol=1e-6
    )


def test_a_coefficient_without_information_keeps_its_prior_mean():
    gram = np.zeros((3, 2, 2))
    gram[:, 0, 0] = [1.0, 2.0, 3.0]
    cross = np.array([[2.0, 0.0], [4.0, 0.0], [6.0, 0.0]])
    covariance = np.linalg.inv(gram + np.eye(2))
    np.testing.assert_allclose(
        _prior_mean(gram, cross, covariance, np.array([0.0, 7.0])), [2.0, 7.0], rtol=1e-6
    )


def test_groups_share_a_coefficient_in_which_they_do_not_differ():
    grams, _ = draw([4.0, 0.0], n_groups=60)
    few, many = shrink(grams, 3), shrink(grams, 200)
    assert many.spread[1] < few.spread[1]
    assert many.spread[1] < 0.02
    assert many.means[:, 1].std() < 0.25 * least_squares(grams)[:, 1].std()
    assert many.center[1] == pytest.approx(2.0, abs=0.05)
    assert many.spread[0] > 2.0


def test_groups_that_differ_much_keep_their_own_coefficients():
    grams, true = draw([100.0, 400.0], n=50)
    found = shrink(grams, noise_weight=0.01)
    np.testing.assert_allclose(found.means, least_squares(grams), atol=0.02)
    np.testing.assert_allclose(found.means, true, atol=0.7)


def test_prior_variances_and_noise_are_recovered():
    spread = np.array([4.0, 1.0, 0.25])
    grams, true = draw(spread, n_groups=400, n=20, noise=2.0)
    found = shrink(grams, noise_weight=0.01)
    np.testing.assert_allclose(found.spread, spread, rtol=0.25)
    np.testing.assert_allclose(found.noise.mean(), 2.0, rtol=0.05)
    np.testing.assert_allclose(found.center, true.mean(axis=0), atol=0.05)
    errors = [((some - true) ** 2).mean() for some in (found.means, least_squares(grams))]
    assert errors[0] < 0.9 * errors[1]


def test_the_noise_may_differ_by_group():
    noise = np.array([0.1, 9.0] * 10)
    grams, _ = draw([1.0, 1.0], n_groups=20, n=200, noise=noise)
    found = shrink(grams, noise_weight=0.01)
    np.testing.assert_allclose(found.noise, noise, rtol=0.35)
    heavy = shrink(grams, noise_weight=1e6, variance=5.0)
    np.testing.assert_allclose(heavy.noise, 5.0, rtol=0.01)


def test_small_groups_are_shrunk_more():
    rng = np.random.default_rng(1)
    size = np.array([2, 200] * 15)
    codes = np.repeat(np.arange(30), size)
    y = 2 * rng.normal(size=30)[codes] + 3 * rng.normal(size=len(codes))
    grams = group_grams(np.column_stack([np.ones(len(codes)), y]), codes, 30)
    found = shrink(grams)
    kept = (found.means - found.center).ravel() / (least_squares(grams) - found.center).ravel()
    expected = found.spread / (found.spread + found.noise / size)
    np.testing.assert_allclose(kept, expected, rtol=0.05)
    assert kept[size == 2].max() < kept[size == 200].min()


def test_a_group_without_rows_gets_the_prior_mean():
    grams, _ = draw([1.0, 1.0])
    grams[[3, 7]] = 0.0
    found = shrink(grams)
    np.testing.assert_allclose(found.means[[3, 7]], np.tile(found.center, (2, 1)), rtol=1e-9)
    assert np.isfinite(found.means).all()
    assert np.abs(found.means[0] - found.center).max() > 0.1


def test_without_any_rows_the_initial_values_are_kept():
    first = np.array([5.0, -1.0])
    found = shrink_coefficients(
        np.zeros((3, 3, 3)),
        center=first,
        noise=np.ones(3),
        variance=1.0,
        noise_weight=1.0,
        n_rounds=10,
    )
    np.testing.assert_allclose(found.means, np.tile(first, (3, 1)))
    np.testing.assert_allclose(found.noise, 1.0)


def test_a_duplicated_column_shares_its_coefficient():
    grams, _ = draw([1.0, 1.0], seed=2)
    twice = [0, 1, 1, 2]
    found, once = shrink(grams[:, twice][:, :, twice]), shrink(grams)
    assert np.isfinite(found.means).all()
    np.testing.assert_allclose(found.means[:, 1], found.means[:, 2], atol=1e-6)
    np.testing.assert_allclose(found.means[:, 1] + found.means[:, 2], once.means[:, 1], atol=0.15)


def test_groups_of_one_row_each_have_finite_coefficients():
    grams, true = draw([4.0, 1.0], n_groups=300, n=1)
    found = shrink(grams)
    assert np.isfinite(found.means).all()
    assert ((found.means - true) ** 2).mean() < true.var(axis=0).mean()


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), unit=st.floats(0.01, 100), origin=st.floats(-10, 10))
def test_coefficients_follow_unit_and_origin(seed, unit, origin):
    grams, _ = draw([1.0, 0.3], n_groups=10, seed=seed)
    change = np.diag([1.0, 1.0, unit])
    change[0, 2] = origin  # y becomes unit·y + origin
    one, other = (shrink(some) for some in (grams, np.transpose(change) @ grams @ change))
    np.testing.assert_allclose(other.means, unit * one.means + [origin, 0.0], rtol=1e-5, atol=1e-5 * unit)
    np.testing.assert_allclose(other.spread, unit**2 * one.spread, rtol=1e-4)
    np.testing.assert_allclose(other.noise, unit**2 * one.noise, rtol=1e-4)
