"""Pooling means and taking them apart, against weighted averages of numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sufrep._accumulate import part_removed, pooled, ratio, sum_by

WEIGHTS = st.sampled_from([0.0, 0.1, 1 / 3, 1.0, 2.5])


@st.composite
def weighted_means(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An assignment of rows to three levels, and for every row weights and means, NaN at weight 0."""
    n, p = draw(st.integers(0, 8)), draw(st.integers(1, 3))
    weight = draw(hnp.arrays(float, (n, p), elements=WEIGHTS))
    mean = draw(hnp.arrays(float, (n, p), elements=st.floats(-100, 100)))
    return (
        draw(hnp.arrays(np.intp, n, elements=st.integers(0, 2))),
        weight,
        np.where(weight > 0, mean, np.nan),
    )


@pytest.mark.parametrize("shape", [(6,), (6, 2)])
@pytest.mark.parametrize("dtype", [int, float])
def test_sum_by_adds_the_rows_of_each_level_and_keeps_the_type(shape, dtype):
    table = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    assignment = np.array([3, 0, 3, 1, 0, 3])
    found = sum_by(assignment, table, 4)
    assert found.dtype == dtype
    for level in range(4):
        np.testing.assert_array_equal(found[level], table[assignment == level].sum(axis=0))


@given(weighted_means())
def test_pooled_means_are_weighted_averages(parts):
    assignment, weight, mean = parts
    found = pooled(assignment, 3, weight, mean)
    for level in range(3):
        for j in range(weight.shape[1]):
            mine = np.flatnonzero((assignment == level) & (weight[:, j] > 0))
            assert found.weight[level, j] == pytest.approx(weight[mine, j].sum())
            if len(mine):
                average = np.average(mean[mine, j], weights=weight[mine, j])
                assert found.mean[level, j] == pytest.approx(average, abs=1e-9)
                np.testing.assert_allclose(found.between[mine, j], mean[mine, j] - average, atol=1e-9)


@given(weighted_means())
def test_a_mean_without_weight_has_distance_zero(parts):
    assignment, weight, mean = parts
    found = pooled(assignment, 3, weight, mean)
    assert np.isfinite(found.mean).all()
    assert (found.between[weight == 0] == 0).all()


@given(weighted_means(), WEIGHTS.filter(bool), st.floats(-100, 100))
def test_removing_a_part_undoes_pooling_it(parts, part_weight, part_mean):
    _, weight, mean = parts
    part = np.full_like(weight, part_weight), np.full_like(mean, part_mean)
    n = len(weight)
    whole = pooled(np.tile(np.arange(n), 2), n, np.vstack([weight, part[0]]), np.vstack([mean, part[1]]))
    rest = part_removed(whole.weight, whole.mean, *part)
    np.testing.assert_allclose(rest.weight, weight, atol=1e-12)
    np.testing.assert_allclose(rest.mean, np.where(weight > 0, mean, 0.0), atol=1e-9)


@given(weighted_means(), WEIGHTS.filter(bool), st.floats(-100, 100))
def test_pooling_gains_the_squares_that_removing_loses(parts, part_weight, part_mean):
    _, weight, mean = parts
    part = np.full_like(weight, part_weight), np.full_like(mean, part_mean)
    n = len(weight)
    both = np.vstack([weight, part[0]])
    whole = pooled(np.tile(np.arange(n), 2), n, both, np.vstack([mean, part[1]]))
    gained = (both * whole.between**2).reshape(2, *weight.shape).sum(axis=0)
    rest = part_removed(whole.weight, whole.mean, *part)
    np.testing.assert_allclose(rest.factor * rest.between**2, gained, rtol=1e-9, atol=1e-7)


def test_what_is_left_of_weights_that_differ_by_rounding_is_nothing():
    whole, part = np.array([[0.1 + 0.2]]), np.array([[0.3]])
    assert whole[0, 0] > part[0, 0]
    rest = part_removed(whole, np.array([[5.0]]), part, np.array([[5.0]]))
    assert rest.weight.tolist() == rest.mean.tolist() == rest.factor.tolist() == [[0.0]]


def test_a_part_without_weight_changes_nothing():
    rest = part_removed(np.array([[2.0]]), np.array([[7.0]]), np.array([[0.0]]), np.array([[np.nan]]))
    assert (rest.weight.item(), rest.mean.item(), rest.between.item(), rest.factor.item()) == (2, 7, 0, 0)


def test_pooled_means_far_from_zero_keep_their_digits():
    rng = np.random.default_rng(0)
    mean, weight = 1e9 + rng.normal(size=(50_000, 2)), rng.random((50_000, 2))
    found = pooled(np.zeros(50_000, dtype=np.intp), 1, weight, mean)
    expected = ((mean - 1e9) * weight).sum(axis=0) / weight.sum(axis=0)
    np.testing.assert_allclose(found.mean[0] - 1e9, expected, atol=1e-6)
    np.testing.assert_allclose(found.between, mean - 1e9 - expected, atol=1e-6)


def test_a_ratio_to_nothing_is_zero():
    assert ratio(np.array([4.0, 4.0, 0.0]), np.array([2.0, 0.0, 0.0])).tolist() == [2.0, 0.0, 0.0]


def test_a_ratio_broadcasts_its_denominator():
    found = ratio(np.array([[2.0, 4.0], [6.0, 8.0]]), np.array([2.0, 0.0]))
    assert found.tolist() == [[1.0, 0.0], [3.0, 0.0]]
