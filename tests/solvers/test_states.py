"""Starts of the mixture do not depend on names, order or rounding; the true states are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep import Simulation, simulate
from sufrep.representation import as_levels
from sufrep.solvers.mixture import level_shares
from sufrep.solvers.nesting import Nesting
from sufrep.solvers.states import (
    MixtureRows,
    best_of_starts,
    choose_n_states,
    count_states,
    nest_states,
    start_mixture,
)


def simulated(**sizes: Any) -> tuple[MixtureRows, Simulation]:
    drawn = simulate("latent_linear", **sizes)
    return MixtureRows(drawn.X, drawn.codes, len(drawn.levels)), drawn


@st.composite
def samples(draw: st.DrawFn) -> MixtureRows:
    """Few distinct rows, so that rows and whole levels are often equal."""
    n, n_levels = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    codes = np.append(np.arange(n_levels), rng.integers(0, n_levels, n))
    rows = rng.integers(0, 2, (len(codes), 2)).astype(float)
    weights = rng.choice([0.5, 1.0, 2.0], len(codes)) if draw(st.booleans()) else None
    return MixtureRows(rows, codes, n_levels, weights)


@given(samples(), st.integers(0, 10_000))
def test_canonical_rows_depend_on_neither_order_nor_names(sample: MixtureRows, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names, order = rng.permutation(sample.n_levels), rng.permutation(len(sample.codes))
    other = MixtureRows(sample.rows, names[sample.codes], sample.n_levels, sample.weights).take(order)
    first, second = sample.canonical(), other.canonical()
    np.testing.assert_array_equal(first.rows, second.rows)
    np.testing.assert_array_equal(first.codes, second.codes)
    np.testing.assert_allclose(first.weights, second.weights)


@given(samples())
def test_canonical_rows_are_the_same_rows(sample: MixtureRows) -> None:
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


def test_the_start_does_not_depend_on_rounding() -> None:
    # The four whitened points of one level are the corners of a simplex, so all pairs of centers tie.
    rows = np.random.default_rng(0).normal(size=(4, 3))
    starts = [
        start_mixture(MixtureRows(rows[order], np.zeros(4, dtype=int), 1), 2, seed=0)
        for order in ([0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0], [1, 3, 0, 2])
    ]
    for start in starts[1:]:
        np.testing.assert_allclose(start.means, starts[0].means, atol=1e-6)


def test_levels_without_variance_have_a_finite_start() -> None:
    sample = MixtureRows(np.repeat(np.eye(30)[:15], 2, axis=0), np.repeat(np.arange(15), 2), 15)
    found = best_of_starts(sample, 2, n_starts=2, seed=0, concentration=1.0, max_iter=50, tol=1e-6)
    assert np.isfinite(found.shares).all()


def test_equally_common_states_are_ordered_by_their_means() -> None:
    rows = np.array([[-1.0], [-1.1], [1.0], [1.1]])
    for codes in ([0, 0, 1, 1], [1, 1, 0, 0]):
        sample = MixtureRows(rows, np.array(codes), 2)
        found = best_of_starts(sample, 2, n_starts=3, seed=0, concentration=1.0, max_iter=200, tol=1e-9)
        np.testing.assert_allclose(found.prior, 0.5, atol=1e-6)
        assert found.means[0, 0] < found.means[1, 0]


def test_a_weight_of_two_counts_as_two_rows() -> None:
    sample = simulated(n=200, p=4, n_latent=3, levels_per_latent=4)[0]
    times = np.random.default_rng(0).integers(1, 3, 200)
    weighted = MixtureRows(sample.rows, sample.codes, sample.n_levels, times.astype(float))
    repeated = sample.take(np.repeat(np.arange(200), times))
    first, second = (
        best_of_starts(part, 3, n_starts=2, seed=0, concentration=1.0, max_iter=200, tol=1e-9)
        for part in (weighted, repeated)
    )
    np.testing.assert_allclose(first.shares, second.shares, atol=1e-5)


@pytest.mark.parametrize("n_latent", [2, 4])
def test_the_true_states_are_found(n_latent: int) -> None:
    sample, drawn = simulated(n=4000, n_latent=n_latent, levels_per_latent=10, seed=2)
    found = best_of_starts(sample, n_latent, n_starts=3, seed=0, concentration=1.0, max_iter=300, tol=1e-6)
    assert found.converged
    agreement = np.corrcoef(found.shares.T, drawn.state_probabilities.T)[:n_latent, n_latent:]
    assert agreement.max(axis=1).min() > 0.97


def test_the_true_number_of_states_is_chosen() -> None:
    sample, _ = simulated(n=3000, n_latent=3, levels_per_latent=15, seed=1)
    halves = np.arange(3000) % 2
    folds = [(np.flatnonzero(halves != part), np.flatnonzero(halves == part)) for part in (0, 1)]
    chosen, scores = choose_n_states(sample, folds, seed=0, concentration=1.0)
    assert chosen == 3
    assert max(scores, key=lambda number: scores[number]) == 3


@pytest.mark.parametrize("n_latent", [2, 3, 6])
def test_the_means_of_levels_show_the_number_of_states(n_latent: int) -> None:
    samples = [simulated(n=4000, n_latent=n_latent, levels_per_latent=15, seed=s)[0] for s in range(3)]
    found = [count_states(sample, max_states=30) for sample in samples]
    # Each dimension that is noise is counted in 5 % of samples.
    assert sorted(found)[:2] == [n_latent, n_latent]
    assert max(found) <= n_latent + 1
    assert count_states(samples[0], max_states=2) == 2


@pytest.mark.parametrize("seed", range(5))
def test_one_state_is_counted_where_levels_do_not_differ(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sample = MixtureRows(rng.normal(size=(600, 4)), rng.integers(0, 40, 600), 40)
    assert count_states(sample, max_states=30) == 1


@pytest.mark.parametrize(("n", "n_levels"), [(100, 100), (110, 100), (30, 4)])
def test_one_state_is_counted_where_rows_are_too_few(n: int, n_levels: int) -> None:
    # With one row in most levels, or few in all, no noise within levels is seen in most directions.
    rng = np.random.default_rng(0)
    sample = MixtureRows(rng.normal(size=(n, 20)), np.arange(n) % n_levels, n_levels)
    assert count_states(sample, max_states=30) == 1


def test_covariates_without_noise_show_states_too() -> None:
    codes = np.arange(400) % 20
    rows = np.column_stack([codes % 2, np.random.default_rng(0).normal(size=400)]).astype(float)
    assert count_states(MixtureRows(rows, codes, 20), max_states=30) == 2


def test_more_states_than_levels_and_collinear_covariates_have_finite_shares() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    rows = np.column_stack([rows, rows[:, 0], np.zeros(60), rows.sum(axis=1)])
    sample = MixtureRows(rows, np.arange(60) % 2, 2)
    found = best_of_starts(sample, 6, n_starts=2, seed=0, concentration=1.0, max_iter=50, tol=1e-6)
    assert np.isfinite(found.shares).all()
    np.testing.assert_allclose(found.shares.sum(axis=1), 1.0)
    assert (np.diff(found.objective) > -1e-6).all()


def test_nested_shares_are_those_of_one_level_after_the_other() -> None:
    """From the states down to the levels: each unit alone, with what contains it as its prior."""
    sample, _ = simulated(n=300, p=4, n_latent=3, levels_per_latent=4)
    mixture = start_mixture(sample, 3, seed=0)
    area, state = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4]), np.array([0, 0, 1, 1, 2])
    names = as_levels(["a", "b", "c", "d", None]), as_levels(["s", "t", None])
    found, tiers = nest_states(mixture, sample, Nesting((area, state), names), 2.0)
    # A nested analysis of variance, level by level.
    means = [mixture.shares, *(np.empty((12, 3)) for _ in range(3))]
    for tier, unit in enumerate((area, state[area], np.zeros(12, dtype=int)), 1):
        for level in range(12):
            means[tier][level] = mixture.shares[unit == unit[level]].mean(axis=0)
    low, middle, high = (
        ((means[tier] - means[tier + 1]) ** 2).sum() / freedom
        for tier, freedom in enumerate((12 - 5, 5 - 3, 3 - 1))
    )
    of_areas, of_states = max(0, 1 - low / middle), max(0, 1 - middle / high)
    assert max(of_areas, of_states) > 0

    def shares_of(rows: np.ndarray, prior: np.ndarray) -> np.ndarray:
        codes = np.zeros(rows.sum(), dtype=int)
        return level_shares(mixture, sample.rows[rows], codes, 1, concentration=2.0, prior=prior[None])[0]

    in_area, in_state = area[sample.codes], state[area[sample.codes]]
    states, areas = [mixture.prior] * 3, []
    for s in range(2):
        states[s] = of_states * shares_of(in_state == s, mixture.prior) + (1 - of_states) * mixture.prior
    for a in range(4):
        prior = states[state[a]]
        areas.append(of_areas * shares_of(in_area == a, prior) + (1 - of_areas) * prior)
    areas.append(states[2])
    for level in range(12):
        np.testing.assert_allclose(found.shares[level], shares_of(sample.codes == level, areas[area[level]]))
    np.testing.assert_allclose(tiers[0].shares, areas[:4])
    np.testing.assert_allclose(tiers[1].shares, states[:2])
    assert [tier.names.tolist() for tier in tiers] == [["a", "b", "c", "d"], ["s", "t"]]


def test_shares_in_one_parent_or_none_stay_as_they_are() -> None:
    sample, _ = simulated(n=300, p=4, n_latent=3, levels_per_latent=4)
    mixture = start_mixture(sample, 3, seed=0)
    one = Nesting((np.zeros(12, dtype=int),), (as_levels(["all"]),))
    assert nest_states(mixture, sample, None, 1.0) == (mixture, ())
    each = Nesting((np.arange(12),), (as_levels([f"p{level:02}" for level in range(12)]),))
    for nesting in (one, each):  # neither tells differences between parents from those within them
        found, (tier,) = nest_states(mixture, sample, nesting, 1.0)
        assert found is mixture
        np.testing.assert_array_equal(tier.shares, np.tile(mixture.prior, (len(tier.names), 1)))


@pytest.mark.parametrize("informative", [False, True])
def test_a_parent_that_says_nothing_is_hardly_used(informative: bool) -> None:
    sample, drawn = simulated(n=4000, p=8, n_latent=2, levels_per_latent=100, seed=1)
    mixture = best_of_starts(sample, 2, n_starts=1, seed=0, concentration=1.0, max_iter=100, tol=1e-4)
    order = np.argsort(np.argsort(drawn.state_probabilities[:, 0], kind="stable"), kind="stable")
    parent = (order if informative else np.random.default_rng(0).permutation(200)) // 10
    nesting = Nesting((parent,), (as_levels([f"p{number:02}" for number in range(20)]),))
    _, (tier,) = nest_states(mixture, sample, nesting, 1.0)
    moved = np.abs(tier.shares - mixture.prior).max()
    assert moved > 0.3 if informative else moved < 0.1
