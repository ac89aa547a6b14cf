"""Correspondence analysis: agreement with a dense decomposition, and what it must not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep.solvers import correspondence
from sufrep.solvers.correspondence import (
    Category,
    bin_codes,
    bin_edges,
    score_categories,
    sum_of_scores,
)

law = settings()
seeds = st.integers(0, 2**32 - 1)


def draw(seed, n=200, sizes=(7, 5, 9), n_states=3, nulls=0.1):
    """A group and two other categories that depend on the same hidden state."""
    rng = np.random.default_rng(seed)
    state = rng.integers(0, n_states, n)
    found = []
    for size in sizes:
        shares = rng.dirichlet(np.full(size, 0.3), n_states)
        codes = (shares.cumsum(axis=1)[state] < rng.random((n, 1))).sum(axis=1).clip(0, size - 1)
        found.append(Category(np.where(rng.random(n) < nulls, -1, codes), size))
    return found[0], found[1:], rng.choice([0.5, 1.0, 3.0], n)


def by_hand(group, others, weights, k):
    """The scores of the rows by the formula of the docstring, dense, up to signs."""
    indicators = [np.eye(one.n_levels + 1)[one.codes][:, : one.n_levels] for one in (group, *others)]
    counts = (indicators[0] * weights[:, None]).T @ np.hstack(indicators[1:])
    r, c, total = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    scale = np.sqrt(np.outer(r + r[r > 0].mean(), c + c[c > 0].mean()))
    _, values, right = np.linalg.svd((counts - np.outer(r, c) / total) / scale)
    scores = right[:k].T / np.sqrt(c + c[c > 0].mean())[:, None]
    rows, start = 0.0, 0
    for other, own in zip(others, indicators[1:], strict=True):
        part = scores[start : start + other.n_levels]
        mean = c[start : start + other.n_levels] @ part / c[start : start + other.n_levels].sum()
        rows = rows + own @ part - own.sum(axis=1, keepdims=True) * mean
        start += other.n_levels
    counted = weights * (group.codes >= 0)
    center = counted @ rows / counted.sum()
    return rows / np.sqrt(counted @ (rows - center) ** 2 / counted.sum()), values[:k]


def assert_same_up_to_signs(ours, theirs, atol=1e-8):
    signs = np.sign((ours * theirs).sum(axis=0))
    np.testing.assert_allclose(ours, theirs * signs, atol=atol)


@law
@given(seeds)
def test_scores_are_those_of_a_dense_decomposition(seed):
    group, others, weights = draw(seed)
    found = score_categories(group, others, weights, n_scores=2)
    rows, values = by_hand(group, others, weights, 2)
    np.testing.assert_allclose(found.singular_values, values, atol=1e-10)
    if values[0] - values[1] > 1e-3:
        counted = group.codes >= 0
        ours = sum_of_scores(others, found.scores)
        assert_same_up_to_signs(ours[counted, :1], rows[counted, :1], atol=1e-6)


def test_large_tables_are_decomposed_without_becoming_dense(monkeypatch):
    group, others, weights = draw(0, n=4000, sizes=(60, 50, 70))
    dense = score_categories(group, others, weights, n_scores=3)
    monkeypatch.setattr(correspondence, "_MOST_DENSE", 10)
    monkeypatch.setattr(correspondence._ScaledCounts, "dense", None)
    sparse = score_categories(group, others, weights, n_scores=3)
    np.testing.assert_allclose(sparse.singular_values, dense.singular_values, rtol=1e-8)
    for left, right in zip(sparse.scores, dense.scores, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-6)
    again = score_categories(group, others, weights, n_scores=3)
    for left, right in zip(sparse.scores, again.scores, strict=True):
        np.testing.assert_array_equal(left, right)


@law
@given(seeds)
def test_scores_have_mean_zero_in_every_category_and_unit_spread(seed):
    group, others, weights = draw(seed)
    found = score_categories(group, others, weights, n_scores=3)
    counted = weights * (group.codes >= 0)
    for other, scores in zip(others, found.scores, strict=True):
        np.testing.assert_allclose(counted @ other.look_up(scores), 0.0, atol=1e-8)
    rows = sum_of_scores(others, found.scores)
    center = counted @ rows / counted.sum()
    np.testing.assert_allclose(counted @ (rows - center) ** 2 / counted.sum(), 1.0)


@law
@given(seeds)
def test_a_weight_counts_how_often_a_row_came(seed):
    group, others, _ = draw(seed, n=60)
    times = np.random.default_rng(seed).integers(1, 4, 60)
    weighted = score_categories(group, others, times.astype(float), n_scores=2)
    repeated = [Category(np.repeat(one.codes, times), one.n_levels) for one in (group, *others)]
    expected = score_categories(repeated[0], repeated[1:], n_scores=2)
    for ours, theirs in zip(weighted.scores, expected.scores, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


@law
@given(seeds)
def test_the_order_of_the_levels_of_the_group_does_not_matter(seed):
    """Also where singular values are equal, as they often are in tables of a few rows."""
    group, others, _ = draw(seed, n=12, nulls=0.0)
    order = np.random.default_rng(seed).permutation(group.n_levels)
    moved = Category(order[group.codes], group.n_levels)
    ours, theirs = (score_categories(one, others, n_scores=9) for one in (group, moved))
    assert len(ours.singular_values) == len(theirs.singular_values)
    for left, right in zip(ours.scores, theirs.scores, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-6)


def test_categories_that_do_not_depend_on_the_group_have_no_score():
    group = Category(np.repeat(np.arange(4), 6), 4)
    other = Category(np.tile(np.arange(3), 8), 3)
    found = score_categories(group, [other], n_scores=2)
    assert found.scores[0].shape == (3, 0)
    assert found.singular_values.shape == (0,)


def test_a_level_without_rows_scores_zero():
    group, other = Category(np.array([0, 0, 1, 1]), 2), Category(np.array([0, 0, 2, 2]), 4)
    scores = score_categories(group, [other], n_scores=1).scores[0]
    np.testing.assert_allclose(np.abs(scores[:, 0]), [1, 0, 1, 0])


class TestBins:
    def test_few_values_are_bins_of_their_own(self):
        edges = bin_edges(np.array([3.0, 1.0, np.nan, 2.0, 3.0]))
        assert bin_codes(np.array([1.0, 2.0, 3.0, 9.0, np.nan]), edges).codes.tolist() == [0, 1, 2, 2, 3]

    def test_many_values_are_cut_at_quantiles(self):
        edges = bin_edges(np.arange(80.0), n_bins=8)
        assert np.bincount(bin_codes(np.arange(80.0), edges).codes).tolist() == [10] * 8

    @law
    @given(seeds)
    def test_a_weight_counts_how_often_a_value_came(self, seed):
        rng = np.random.default_rng(seed)
        values, times = rng.integers(0, 25, 60).astype(float), rng.integers(0, 4, 60)
        weighted = bin_edges(values, times.astype(float))
        np.testing.assert_array_equal(weighted, bin_edges(np.repeat(values, times)))

    @pytest.mark.parametrize("values", [[], [np.nan, np.nan], [5.0, 5.0]])
    def test_a_constant_is_one_bin(self, values):
        assert bin_edges(np.array(values)).tolist() == []
        assert bin_codes(np.array([5.0, np.nan]), np.empty(0)).codes.tolist() == [0, 1]
