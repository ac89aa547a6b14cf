"""Spreads from moments, against loops over the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sufrep.errors import MomentsMismatchError
from sufrep.moments import GroupMoments
from sufrep.solvers.scales import overall_scale, within_covariance, within_freedom, within_scale

# A slow machine breaks no law.
law = settings(deadline=None, max_examples=100)


@st.composite
def rows_by_level(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Codes (n,) and rows (n, p), of values that are either equal or well apart; some are null."""
    n, p = draw(st.integers(1, 20)), draw(st.integers(1, 3))
    values = st.sampled_from([-3.0, 0.0, 0.5, 2.0, 11.0]) | st.just(np.nan)
    codes = draw(hnp.arrays(np.intp, n, elements=st.integers(0, 3)))
    return codes, draw(hnp.arrays(float, (n, p), elements=values))


def moments_of(codes: np.ndarray, rows: np.ndarray, **given: object) -> GroupMoments:
    return GroupMoments.from_rows(codes.tolist(), rows, **given)


def known_values(codes: np.ndarray, column: np.ndarray) -> list[np.ndarray]:
    return [column[(codes == level) & ~np.isnan(column)] for level in np.unique(codes)]


def naive_overall_scale(column: np.ndarray) -> float:
    known = column[~np.isnan(column)]
    return float(np.std(known)) or 1.0 if len(known) else 1.0


def naive_within_scale(codes: np.ndarray, column: np.ndarray) -> float:
    squares = freedom = 0.0
    for values in known_values(codes, column):
        if len(values):
            squares += sum((value - values.mean()) ** 2 for value in values)
            freedom += len(values) - 1
    return np.sqrt(squares / freedom) if squares > 1e-12 else naive_overall_scale(column)


@law
@given(rows_by_level())
def test_the_overall_scale_is_the_standard_deviation_of_all_rows(table):
    codes, rows = table
    expected = [naive_overall_scale(column) for column in rows.T]
    np.testing.assert_allclose(overall_scale(moments_of(codes, rows)), expected, rtol=1e-9)


@law
@given(rows_by_level())
def test_the_within_scale_is_the_pooled_deviation_from_the_means_of_levels(table):
    codes, rows = table
    expected = [naive_within_scale(codes, column) for column in rows.T]
    np.testing.assert_allclose(within_scale(moments_of(codes, rows)), expected, rtol=1e-9)


@law
@given(rows_by_level())
def test_the_within_covariance_is_pooled_over_complete_rows(table):
    codes, rows = table
    complete = ~np.isnan(rows).any(axis=1)
    p, scatter, freedom = rows.shape[1], 0.0, 0
    for level in np.unique(codes[complete]):
        apart = rows[complete & (codes == level)]
        apart = apart - apart.mean(axis=0)
        scatter, freedom = scatter + apart.T @ apart, freedom + len(apart) - 1
    moments = moments_of(codes, rows)
    assert within_freedom(moments) == freedom
    expected = scatter / freedom if freedom else np.zeros((p, p))
    np.testing.assert_allclose(within_covariance(moments), expected, atol=1e-9)


@law
@given(rows_by_level(), st.floats(0.01, 100), st.floats(-100, 100))
def test_scales_follow_units_and_not_the_origin(table, unit, origin):
    codes, rows = table
    before, after = moments_of(codes, rows), moments_of(codes, rows * unit + origin)
    for scale in (overall_scale, within_scale):
        constant = np.array([naive_overall_scale(column) for column in rows.T]) == 1.0
        assume(not constant.any())
        np.testing.assert_allclose(scale(after), scale(before) * unit, rtol=1e-6)


@law
@given(rows_by_level())
def test_weights_are_frequencies_in_every_scale(table):
    codes, rows = table
    twice = moments_of(np.repeat(codes, 2), np.repeat(rows, 2, axis=0))
    weighted = moments_of(codes, rows, weights=np.full(len(codes), 2.0))
    for scale in (overall_scale, within_scale, within_covariance, within_freedom):
        np.testing.assert_allclose(scale(weighted), scale(twice), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e9 + 0.1, 1e-9])
@pytest.mark.parametrize("scale", [overall_scale, within_scale])
def test_a_constant_has_the_scale_one(scale, value):
    codes = np.random.default_rng(0).integers(0, 7, size=1000)
    weights = np.random.default_rng(1).random(1000)
    assert scale(moments_of(codes, np.full((1000, 1), value), weights=weights)).tolist() == [1.0]


@pytest.mark.parametrize("scale", [overall_scale, within_scale])
def test_a_covariate_that_is_null_everywhere_has_the_scale_one(scale):
    assert scale(moments_of(np.array([0, 0, 1]), np.full((3, 1), np.nan))).tolist() == [1.0]


@pytest.mark.parametrize("away", [0.0, 1e6])
def test_what_is_constant_within_levels_falls_back_to_the_overall_scale(away):
    codes = np.repeat([0, 1, 2], 50)
    column = away + np.array([0.1, 0.7, 2.3])[codes]
    moments = moments_of(codes, column[:, None])
    np.testing.assert_allclose(within_scale(moments), np.std(column), rtol=1e-6)


def test_levels_of_one_row_each_fall_back_to_the_overall_scale():
    moments = moments_of(np.arange(4), np.array([[0.0], [1.0], [2.0], [3.0]]))
    np.testing.assert_allclose(within_scale(moments), np.std([0, 1, 2, 3]))
    assert within_freedom(moments) == 0
    assert within_covariance(moments).tolist() == [[0.0]]


def test_levels_far_apart_keep_their_own_scale():
    codes = np.repeat([0, 1, 2], 200)
    noise = np.random.default_rng(2).normal(size=600)
    found = within_scale(moments_of(codes, (codes * 1e5 + noise)[:, None]))
    np.testing.assert_allclose(found, naive_within_scale(codes, noise), rtol=1e-6)


def test_scales_far_from_zero_keep_six_digits():
    codes = np.repeat([0, 1, 2], 200)
    near = np.random.default_rng(3).normal(size=(600, 2)) + codes[:, None]
    far = near + 1e9
    for scale in (overall_scale, within_scale, within_covariance):
        found, expected = scale(moments_of(codes, far)), scale(moments_of(codes, far - 1e9))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scale", [overall_scale, within_scale, within_freedom, within_covariance])
def test_scales_need_second_moments(scale):
    with pytest.raises(MomentsMismatchError, match="order=2"):
        scale(moments_of(np.array([0, 1]), np.array([[1.0], [2.0]]), order=1))
