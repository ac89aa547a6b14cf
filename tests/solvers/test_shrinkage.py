"""Scales against loops over the rows; shrunken means against the formula, and the laws they obey."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sufrep.errors import MomentsMismatchError
from sufrep.moments import GroupMoments
from sufrep.solvers.shrinkage import (
    estimate_means_prior,
    overall_scale,
    shrink_each,
    shrink_means,
    within_covariance,
    within_freedom,
    within_scale,
)

law = settings()


def moments_of(codes: np.ndarray, rows: np.ndarray, **options: object) -> GroupMoments:
    return GroupMoments.from_rows(codes.tolist(), rows, **options)


# Scales


@st.composite
def rows_with_levels(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Codes (n,) and rows (n, p) of values that are either equal or far apart; some are null."""
    n, p = draw(st.integers(1, 20)), draw(st.integers(1, 3))
    values = st.sampled_from([-3.0, 0.0, 0.5, 2.0, 11.0]) | st.just(np.nan)
    codes = draw(hnp.arrays(np.intp, n, elements=st.integers(0, 3)))
    return codes, draw(hnp.arrays(float, (n, p), elements=values))


def naive_overall_scale(column: np.ndarray) -> float:
    observed = column[~np.isnan(column)]
    return float(np.std(observed)) or 1.0 if len(observed) else 1.0


def naive_within_scale(codes: np.ndarray, column: np.ndarray) -> float:
    squares = freedom = 0.0
    for level in np.unique(codes):
        values = column[(codes == level) & ~np.isnan(column)]
        if len(values):
            squares += sum((value - values.mean()) ** 2 for value in values)
            freedom += len(values) - 1
    return np.sqrt(squares / freedom) if squares > 1e-12 else naive_overall_scale(column)


@law
@given(rows_with_levels())
def test_scales_equal_those_of_loops_over_the_rows(table):
    codes, rows = table
    moments = moments_of(codes, rows)
    overall = [naive_overall_scale(column) for column in rows.T]
    within = [naive_within_scale(codes, column) for column in rows.T]
    np.testing.assert_allclose(overall_scale(moments), overall, rtol=1e-9)
    np.testing.assert_allclose(within_scale(moments), within, rtol=1e-9)


@law
@given(rows_with_levels())
def test_the_within_covariance_is_pooled_over_complete_rows(table):
    codes, rows = table
    complete = ~np.isnan(rows).any(axis=1)
    p, scatter, freedom = rows.shape[1], 0.0, 0
    for level in np.unique(codes[complete]):
        deviation = rows[complete & (codes == level)]
        deviation = deviation - deviation.mean(axis=0)
        scatter, freedom = scatter + deviation.T @ deviation, freedom + len(deviation) - 1
    moments = moments_of(codes, rows)
    assert within_freedom(moments) == freedom
    expected = scatter / freedom if freedom else np.zeros((p, p))
    np.testing.assert_allclose(within_covariance(moments), expected, atol=1e-9)


@law
@given(rows_with_levels(), st.floats(0.01, 100), st.floats(-100, 100))
def test_scales_follow_the_unit_and_not_the_origin(table, unit, origin):
    codes, rows = table
    varies = np.array([naive_overall_scale(column) != 1.0 for column in rows.T])
    before, after = moments_of(codes, rows), moments_of(codes, rows * unit + origin)
    for scale in (overall_scale, within_scale):
        np.testing.assert_allclose(scale(after)[varies], scale(before)[varies] * unit, rtol=1e-6)


@law
@given(rows_with_levels())
def test_a_weight_of_two_counts_as_two_rows_in_every_scale(table):
    codes, rows = table
    twice = moments_of(np.repeat(codes, 2), np.repeat(rows, 2, axis=0))
    weighted = moments_of(codes, rows, weights=np.full(len(codes), 2.0))
    for scale in (overall_scale, within_scale, within_covariance, within_freedom):
        np.testing.assert_allclose(scale(weighted), scale(twice), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 + 0.1, 1e-9, np.nan])
@pytest.mark.parametrize("scale", [overall_scale, within_scale])
def test_a_covariate_that_is_constant_or_always_null_has_the_scale_one(scale, value):
    codes = np.random.default_rng(0).integers(0, 7, size=1000)
    weights = np.random.default_rng(1).random(1000)
    assert scale(moments_of(codes, np.full((1000, 1), value), weights=weights)).tolist() == [1.0]


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_covariate_constant_within_levels_gets_the_overall_scale(offset):
    codes = np.repeat([0, 1, 2], 50)
    column = offset + np.array([0.1, 0.7, 2.3])[codes]
    moments = moments_of(codes, column[:, None])
    np.testing.assert_allclose(within_scale(moments), np.std(column), rtol=1e-6)


def test_levels_of_one_row_each_get_the_overall_scale():
    moments = moments_of(np.arange(4), np.array([[0.0], [1.0], [2.0], [3.0]]))
    np.testing.assert_allclose(within_scale(moments), np.std([0, 1, 2, 3]))
    assert within_freedom(moments) == 0
    assert within_covariance(moments).tolist() == [[0.0]]


def test_distances_between_levels_do_not_affect_the_scale_within_them():
    codes = np.repeat([0, 1, 2], 200)
    noise = np.random.default_rng(2).normal(size=600)
    found = within_scale(moments_of(codes, (codes * 1e5 + noise)[:, None]))
    np.testing.assert_allclose(found, naive_within_scale(codes, noise), rtol=1e-6)


def test_scales_of_values_far_from_zero_keep_six_digits():
    codes = np.repeat([0, 1, 2], 200)
    far = np.random.default_rng(3).normal(size=(600, 2)) + codes[:, None] + 1e9
    for scale in (overall_scale, within_scale, within_covariance):
        found, expected = scale(moments_of(codes, far)), scale(moments_of(codes, far - 1e9))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scale", [overall_scale, within_scale, within_freedom, within_covariance])
def test_scales_need_second_moments(scale):
    with pytest.raises(MomentsMismatchError, match="order=2"):
        scale(moments_of(np.array([0, 1]), np.array([[1.0], [2.0]]), order=1))


# Shrunken means


def draw(
    n_levels: int, seed: int, p: int = 4, between: float = 1.0, most: int = 12
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, rows and the true means of levels with 1 to `most` rows."""
    rng = np.random.default_rng(seed)
    true = between * rng.normal(size=(n_levels, p)) @ rng.normal(size=(p, p)) / 2 + 3.0
    codes = np.repeat(np.arange(n_levels), rng.integers(1, most + 1, n_levels))
    mixing = rng.normal(size=(p, p))
    return codes, true[codes] + rng.normal(size=(len(codes), p)) @ mixing, true


def shrunken(moments: GroupMoments) -> np.ndarray:
    return shrink_means(moments, estimate_means_prior(moments))


def naive_posterior(moments: GroupMoments) -> np.ndarray:
    """m + T(T + W/n)⁻¹(x̄ − m), level by level, with the estimates of T and W."""
    prior = estimate_means_prior(moments)
    outer = np.outer(prior.scale, prior.scale)
    between, within = prior.between * outer, prior.within * outer
    return np.array(
        [
            prior.center + between @ np.linalg.solve(between + within / n, mean - prior.center)
            for mean, n in zip(moments.mean, moments.weight, strict=True)
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_posterior_means_follow_the_formula(seed):
    moments = moments_of(*draw(60, seed)[:2])
    np.testing.assert_allclose(shrunken(moments), naive_posterior(moments), rtol=1e-5, atol=1e-6)


def test_between_and_within_covariances_are_estimated_without_bias():
    rng = np.random.default_rng(0)
    between, within = np.array([[1.0, 0.6], [0.6, 0.5]]), np.array([[2.0, -0.7], [-0.7, 1.0]])
    found = []
    for _ in range(40):
        codes = np.repeat(np.arange(200), rng.integers(2, 9, 200))
        true = rng.multivariate_normal([5, -5], between, 200)
        moments = moments_of(codes, true[codes] + rng.multivariate_normal([0, 0], within, len(codes)))
        prior = estimate_means_prior(moments)
        outer = np.outer(prior.scale, prior.scale)
        found.append([prior.between * outer, prior.within * outer])
    means, errors = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(means - [between, within]) < 4.5 * errors).all()


def test_shrunken_means_are_closer_to_the_truth():
    codes, rows, true = draw(300, seed=1, between=0.6, most=6)
    moments = moments_of(codes, rows)
    assert ((shrunken(moments) - true) ** 2).mean() < 0.6 * ((moments.mean - true) ** 2).mean()


def test_levels_that_do_not_differ_are_shrunk_to_nearly_the_overall_mean():
    codes = np.repeat(np.arange(400), 5)
    moments = moments_of(codes, np.random.default_rng(3).normal(size=(2000, 3)))
    deviation = shrunken(moments) - moments.overall_mean()
    assert np.abs(deviation).max() < 0.35 * np.abs(moments.mean).max()


def test_large_levels_keep_their_means():
    codes = np.repeat(np.arange(20), 2000)
    rows = np.random.default_rng(4).normal(size=(40_000, 2)) + codes[:, None]
    moments = moments_of(codes, rows)
    np.testing.assert_allclose(shrunken(moments), moments.mean, atol=0.04)


def test_constant_and_duplicated_covariates_do_not_affect_the_others():
    codes, rows, _ = draw(50, seed=5, p=2)
    awkward = np.column_stack([rows, rows[:, 0], np.full(len(rows), 7.0), codes * 2.0])
    moments = moments_of(codes, awkward)
    found = shrunken(moments)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:, 0], found[:, 2], atol=1e-4)
    np.testing.assert_allclose(found[:, 3], 7.0)
    np.testing.assert_allclose(found[:, 4], moments.mean[:, 4], atol=1e-4)  # constant in levels: no noise


def test_a_missing_mean_is_predicted_from_the_other_covariates_of_the_level():
    rng = np.random.default_rng(6)
    codes = np.repeat(np.arange(200), 20)
    true = rng.normal(size=200)
    rows = np.column_stack([true[codes], 2 * true[codes]]) + 0.3 * rng.normal(size=(4000, 2))
    rows[codes == 17, 1] = np.nan
    found = shrunken(moments_of(codes, rows))
    assert abs(found[17, 1] - 2 * true[17]) < 0.4
    assert np.isfinite(found).all()


@pytest.mark.parametrize("nulls", [False, True])
def test_shrink_each_uses_no_information_from_the_other_covariates(nulls):
    codes, rows, _ = draw(40, seed=8)
    if nulls:
        rows[::7, 1] = np.nan
    values, center = shrink_each(moments_of(codes, rows))
    assert values.shape == (40, 4)
    for j in range(4):
        alone = moments_of(codes, rows[:, [j]])
        np.testing.assert_allclose(values[:, [j]], shrunken(alone), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(center[j], estimate_means_prior(alone).center[0])
    assert np.abs(shrunken(moments_of(codes, rows)) - values).max() > 0.05


def test_a_covariate_that_is_always_null_does_not_affect_the_others():
    codes, rows, _ = draw(30, seed=9, p=2)
    moments = moments_of(codes, np.column_stack([rows, np.full(len(rows), np.nan)]))
    found = shrunken(moments)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[:, 2], 0.0)
    each, _ = shrink_each(moments)
    np.testing.assert_allclose(each[:, :2], shrink_each(moments_of(codes, rows))[0], rtol=1e-9)


def test_a_few_nulls_change_little():
    codes, rows, _ = draw(100, seed=7)
    before = shrunken(moments_of(codes, rows))
    rows[::97, 2] = np.nan
    after = shrunken(moments_of(codes, rows))
    assert np.corrcoef(before.ravel(), after.ravel())[0, 1] > 0.99


@given(st.integers(0, 10_000), st.floats(0.01, 100), st.floats(-50, 50))
def test_shrunken_means_follow_unit_and_origin(seed, unit, origin):
    codes, rows, _ = draw(15, seed, p=3)
    before, after = (shrunken(moments_of(codes, part)) for part in (rows, rows * unit + origin))
    np.testing.assert_allclose(after, before * unit + origin, rtol=1e-4, atol=1e-4 * unit)


@given(st.integers(0, 10_000))
def test_a_weight_of_two_counts_as_two_rows(seed):
    codes, rows, _ = draw(10, seed, p=2)
    times = np.random.default_rng(seed).integers(1, 3, len(codes))
    weighted = moments_of(codes, rows, weights=times)
    repeated = moments_of(np.repeat(codes, times), np.repeat(rows, times, axis=0))
    np.testing.assert_allclose(shrunken(weighted), shrunken(repeated), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("codes", [[0], [0, 1], [0, 0, 0]])
def test_a_single_row_or_level_has_finite_means(codes):
    rows = np.arange(2.0 * len(codes)).reshape(-1, 2)
    assert np.isfinite(shrunken(moments_of(np.array(codes), rows))).all()


def test_levels_of_little_weight_with_nulls_have_finite_means():
    """Covariates that say the same, one of them null: their covariance is singular but for the ridge."""
    moments = GroupMoments.from_rows(
        ["a", "b"], [[0.0, 0.0, 0.0], [1.0, np.nan, 1.0]], weights=np.array([2.0, 1e-8])
    )
    found = shrink_means(moments, estimate_means_prior(moments))
    assert np.isfinite(found).all()
    assert ((found >= 0) & (found <= 1)).all()
