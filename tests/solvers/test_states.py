"""Starts of the mixture that depend on neither names, order nor rounding."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep.solvers.states import Sample, best_of_starts, start_mixture


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Few distinct rows, so that rows and whole levels tie."""
    n, n_levels = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    codes = np.append(np.arange(n_levels), rng.integers(0, n_levels, n))
    rows = rng.integers(0, 2, (len(codes), 2)).astype(float)
    weights = rng.choice([0.5, 1.0, 2.0], len(codes)) if draw(st.booleans()) else None
    return Sample(rows, codes, n_levels, weights)


@given(samples(), st.integers(0, 10_000))
@settings(max_examples=80, deadline=None)
def test_a_sorted_sample_depends_on_neither_order_nor_names(sample: Sample, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names, order = rng.permutation(sample.n_levels), rng.permutation(len(sample.codes))
    other = Sample(sample.rows, names[sample.codes], sample.n_levels, sample.weights).take(order)
    first, second = sample.canonical(), other.canonical()
    np.testing.assert_array_equal(first.rows, second.rows)
    np.testing.assert_array_equal(first.codes, second.codes)
    np.testing.assert_allclose(first.weights, second.weights)


@given(samples())
@settings(max_examples=40, deadline=None)
def test_a_sorted_sample_holds_the_same_rows(sample: Sample) -> None:
    found = sample.canonical()
    weights = np.ones(len(sample.codes)) if sample.weights is None else sample.weights
    assert found.weights is not None
    for level in range(found.n_levels):
        mine = found.codes == level
        moments = (found.weights[mine].sum(), *(found.weights[mine] @ found.rows[mine]))
        theirs = [
            (weights[own].sum(), *(weights[own] @ sample.rows[own]))
            for own in (sample.codes == each for each in range(sample.n_levels))
        ]
        assert any(np.allclose(moments, each) for each in theirs)


def test_rounding_does_not_choose_the_start() -> None:
    # Four whitened points of one level are the corners of a simplex: any two centres are as good.
    rows = np.random.default_rng(0).normal(size=(4, 3))
    starts = [
        start_mixture(Sample(rows[order], np.zeros(4, dtype=int), 1), 2, seed=0)
        for order in ([0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0], [1, 3, 0, 2])
    ]
    for start in starts[1:]:
        np.testing.assert_allclose(start.means, starts[0].means, atol=1e-6)


def test_levels_without_spread_have_a_start() -> None:
    sample = Sample(np.repeat(np.eye(30)[:15], 2, axis=0), np.repeat(np.arange(15), 2), 15)
    found = best_of_starts(sample, 2, n_starts=2, seed=0, concentration=1.0, max_iter=50, tol=1e-6)
    assert np.isfinite(found.shares).all()


def test_states_that_are_equally_common_are_ordered_by_their_means() -> None:
    rows = np.array([[-1.0], [-1.1], [1.0], [1.1]])
    for codes in ([0, 0, 1, 1], [1, 1, 0, 0]):
        sample = Sample(rows, np.array(codes), 2)
        found = best_of_starts(sample, 2, n_starts=3, seed=0, concentration=1.0, max_iter=200, tol=1e-9)
        np.testing.assert_allclose(found.prior, 0.5, atol=1e-6)
        assert found.means[0, 0] < found.means[1, 0]
