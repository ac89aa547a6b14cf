"""Shrunken means: the model's own answer, and what it is good for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep import GroupMoments
from sufrep.solvers.shrinkage import estimate_means_prior, shrink_each, shrink_means


def draw(
    n_levels: int, seed: int, p: int = 4, between: float = 1.0, most: int = 12
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, rows and the true means of levels with 1 to `most` rows."""
    rng = np.random.default_rng(seed)
    true = between * rng.normal(size=(n_levels, p)) @ rng.normal(size=(p, p)) / 2 + 3.0
    codes = np.repeat(np.arange(n_levels), rng.integers(1, most + 1, n_levels))
    mixing = rng.normal(size=(p, p))
    return codes, true[codes] + rng.normal(size=(len(codes), p)) @ mixing, true


def moments_of(codes: np.ndarray, rows: np.ndarray, **options: object) -> GroupMoments:
    return GroupMoments.from_rows(codes.tolist(), rows, **options)


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
def test_posterior_means_are_those_of_the_formula(seed: int) -> None:
    moments = moments_of(*draw(60, seed)[:2])
    shrunk = shrink_means(moments, estimate_means_prior(moments))
    np.testing.assert_allclose(shrunk, naive_posterior(moments), rtol=1e-5, atol=1e-6)


def test_between_and_within_are_estimated_without_bias() -> None:
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


def test_shrunken_means_are_nearer_to_the_truth() -> None:
    codes, rows, true = draw(300, seed=1, between=0.6, most=6)
    moments = moments_of(codes, rows)
    shrunk = shrink_means(moments, estimate_means_prior(moments))
    assert ((shrunk - true) ** 2).mean() < 0.6 * ((moments.mean - true) ** 2).mean()


def test_levels_that_do_not_differ_all_get_nearly_the_overall_mean() -> None:
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(400), 5)
    moments = moments_of(codes, rng.normal(size=(2000, 3)))
    shrunk = shrink_means(moments, estimate_means_prior(moments))
    assert np.abs(shrunk - moments.overall_mean()).max() < 0.35 * np.abs(moments.mean).max()


def test_large_levels_keep_their_means() -> None:
    codes = np.repeat(np.arange(20), 5000)
    rng = np.random.default_rng(4)
    moments = moments_of(codes, rng.normal(size=(100_000, 2)) + codes[:, None])
    shrunk = shrink_means(moments, estimate_means_prior(moments))
    np.testing.assert_allclose(shrunk, moments.mean, atol=0.04)


def test_constant_duplicated_and_level_constant_covariates_do_no_harm() -> None:
    codes, rows, _ = draw(50, seed=5, p=2)
    awkward = np.column_stack([rows, rows[:, 0], np.full(len(rows), 7.0), codes * 2.0])
    moments = moments_of(codes, awkward)
    shrunk = shrink_means(moments, estimate_means_prior(moments))
    assert np.isfinite(shrunk).all()
    np.testing.assert_allclose(shrunk[:, 0], shrunk[:, 2], atol=1e-4)
    np.testing.assert_allclose(shrunk[:, 3], 7.0)
    np.testing.assert_allclose(shrunk[:, 4], moments.mean[:, 4], atol=1e-4)  # known without noise


def test_a_covariate_that_a_level_never_has_is_predicted_from_its_others() -> None:
    rng = np.random.default_rng(6)
    codes = np.repeat(np.arange(200), 20)
    true = rng.normal(size=200)
    rows = np.column_stack([true[codes], 2 * true[codes]]) + 0.3 * rng.normal(size=(4000, 2))
    rows[codes == 17, 1] = np.nan
    moments = moments_of(codes, rows)
    shrunk = shrink_means(moments, estimate_means_prior(moments))
    assert abs(shrunk[17, 1] - 2 * true[17]) < 0.4
    assert np.isfinite(shrunk).all()


@pytest.mark.parametrize("holes", [False, True])
def test_covariates_that_are_shrunk_each_know_nothing_of_the_others(holes: bool) -> None:
    codes, rows, _ = draw(40, seed=8)
    if holes:
        rows[::7, 1] = np.nan
    values, center = shrink_each(moments_of(codes, rows))
    assert values.shape == (40, 4)
    for j in range(4):
        alone = moments_of(codes, rows[:, [j]])
        prior = estimate_means_prior(alone)
        np.testing.assert_allclose(values[:, [j]], shrink_means(alone, prior), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(center[j], prior.center[0])
    together = shrink_means(moments_of(codes, rows), estimate_means_prior(moments_of(codes, rows)))
    assert np.abs(together - values).max() > 0.05


def test_a_covariate_that_is_null_everywhere_does_no_harm() -> None:
    codes, rows, _ = draw(30, seed=9, p=2)
    moments = moments_of(codes, np.column_stack([rows, np.full(len(rows), np.nan)]))
    shrunk = shrink_means(moments, estimate_means_prior(moments))
    assert np.isfinite(shrunk).all()
    np.testing.assert_array_equal(shrunk[:, 2], 0.0)
    each, _ = shrink_each(moments)
    np.testing.assert_allclose(each[:, :2], shrink_each(moments_of(codes, rows))[0], rtol=1e-9)


def test_nulls_that_are_few_change_little() -> None:
    codes, rows, _ = draw(100, seed=7)
    whole = moments_of(codes, rows)
    holes = rows.copy()
    holes[::97, 2] = np.nan
    partial = moments_of(codes, holes)
    before, after = (shrink_means(part, estimate_means_prior(part)) for part in (whole, partial))
    assert np.corrcoef(before.ravel(), after.ravel())[0, 1] > 0.99


@given(st.integers(0, 10_000), st.floats(0.01, 100), st.floats(-50, 50))
@settings(max_examples=25, deadline=None)
def test_units_and_origin_do_not_matter(seed: int, unit: float, origin: float) -> None:
    codes, rows, _ = draw(15, seed, p=3)
    here, there = (moments_of(codes, part) for part in (rows, rows * unit + origin))
    first, second = (shrink_means(part, estimate_means_prior(part)) for part in (here, there))
    np.testing.assert_allclose(second, first * unit + origin, rtol=1e-4, atol=1e-4 * unit)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_a_weight_of_two_is_a_row_that_came_twice(seed: int) -> None:
    codes, rows, _ = draw(10, seed, p=2)
    times = np.random.default_rng(seed).integers(1, 3, len(codes))
    weighted = moments_of(codes, rows, weights=times)
    repeated = moments_of(np.repeat(codes, times), np.repeat(rows, times, axis=0))
    first, second = (shrink_means(part, estimate_means_prior(part)) for part in (weighted, repeated))
    np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("codes", [[0], [0, 1], [0, 0, 0]])
def test_a_single_row_or_level_is_no_problem(codes: list[int]) -> None:
    rows = np.arange(2.0 * len(codes)).reshape(-1, 2)
    moments = moments_of(np.array(codes), rows)
    assert np.isfinite(shrink_means(moments, estimate_means_prior(moments))).all()
