"""Kernels are recovered from data drawn with them; the fast ranking of candidates agrees with a loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep.solvers.level_kernels import LevelKernel, LevelRows, draw_level_pairs, find_level_kernel
from sufrep.solvers.local_effects import winsorize

# The kernel


def naive_covariances(truth: LevelKernel, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The formula in loops, for tables of all covariates."""
    found = np.zeros((len(first), len(second)))
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            found[i, j] = truth.constant
            for variance, weights in zip(truth.variances, truth.weights, strict=True):
                found[i, j] += variance * np.exp(-0.5 * np.sum(weights * (one - other) ** 2))
    return found


def test_covariances_follow_the_formula():
    rng = np.random.default_rng(0)
    weights = np.array([[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 30.0]])
    truth = LevelKernel(0.2, np.array([0.3, 0.1]), weights, 0.4)
    assert truth.used.tolist() == [1, 3]
    first, second = rng.normal(size=(5, 4)), rng.normal(size=(3, 4))
    found = truth.covariances(first[:, truth.used], second[:, truth.used])
    np.testing.assert_allclose(found, naive_covariances(truth, first, second), rtol=1e-12)


def sample(seed: int, truth: LevelKernel, n: int = 4000, n_levels: int = 80) -> tuple[np.ndarray, ...]:
    """Scores of 4 covariates, residuals drawn from Gaussian processes with the true kernel, and levels."""
    rng = np.random.default_rng(seed)
    scores, codes = rng.normal(size=(n, 4)), rng.integers(0, n_levels, n)
    residuals = np.sqrt(truth.noise) * rng.normal(size=n)
    for level in np.unique(codes):
        inside = np.flatnonzero(codes == level)
        used = scores[inside][:, truth.used]
        root = np.linalg.cholesky(truth.covariances(used, used) + 1e-9 * np.eye(len(inside)))
        residuals[inside] += root @ rng.normal(size=len(inside))
    return scores, residuals, codes


ONE_COVARIATE = LevelKernel(0.1, np.array([0.4]), np.array([[3.0, 0.0, 0.0, 0.0]]), 0.5)


def test_the_kernel_of_one_covariate_is_recovered():
    truth = LevelKernel(0.1, np.array([0.3]), np.array([[0.0, 0.0, 10.0, 0.0]]), 0.6)
    found = [find_level_kernel(*sample(seed, truth)) for seed in range(8)]
    for kernel in found:
        assert kernel.used.tolist() == [2]
        assert len(kernel.variances) == 1
        assert kernel.weights[0, 2] in (3.0, 10.0, 30.0)
    # Three standard errors of the mean over the seeds.
    assert np.mean([kernel.constant for kernel in found]) == pytest.approx(0.1, abs=0.03)
    assert np.mean([kernel.variances[0] for kernel in found]) == pytest.approx(0.3, abs=0.045)
    assert np.mean([kernel.noise for kernel in found]) == pytest.approx(0.6, abs=0.05)


@pytest.mark.parametrize("seed", [1, 4])
def test_two_covariates_that_matter_only_together_are_found(seed):
    # Such as month and day: few pairs are close in both, and each alone explains too little to start from.
    truth = LevelKernel(0.0, np.array([0.7]), np.array([[300.0, 300.0, 0.0, 0.0]]), 0.3)
    found = find_level_kernel(*sample(seed, truth, n=8000, n_levels=160))
    assert found.used.tolist() == [0, 1]


def test_a_sum_of_two_components_is_found():
    truth = LevelKernel(0.0, np.array([0.3, 0.3]), np.array([[3.0, 0, 0, 0], [0, 0, 0, 100.0]]), 0.4)
    found = find_level_kernel(*sample(4, truth, n=8000))
    assert [np.flatnonzero(weights).tolist() for weights in found.weights] in ([[0], [3]], [[3], [0]])
    assert found.variances.sum() == pytest.approx(0.6, abs=0.15)


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_no_kernel(seed):
    rng = np.random.default_rng(seed)
    found = find_level_kernel(rng.normal(size=(2000, 6)), rng.normal(size=2000), rng.integers(0, 40, 2000))
    assert not len(found.variances)
    assert found.constant < 0.02
    assert found.noise > 0.98


@pytest.mark.parametrize("seed", range(3))
def test_a_random_intercept_is_the_constant_of_the_kernel(seed):
    truth = LevelKernel(0.4, np.empty(0), np.empty((0, 4)), 0.6)
    found = find_level_kernel(*sample(seed, truth, n=2000))
    assert not len(found.variances)
    assert found.constant == pytest.approx(0.4, abs=0.12)


@pytest.mark.parametrize(
    ("scores", "residuals", "codes"),
    [
        pytest.param(np.zeros((3, 1)), np.array([1.0, -1.0, 2.0]), np.array([0, 1, 2]), id="no pairs"),
        pytest.param(np.zeros((4, 2)), np.zeros(4), np.array([0, 0, 1, 1]), id="no variance"),
    ],
)
def test_without_pairs_or_variance_everything_is_noise(scores, residuals, codes):
    found = find_level_kernel(scores, residuals, codes)
    assert (found.constant, found.variances.tolist(), found.noise) == (0.0, [], 1.0)


def test_without_covariates_the_constant_is_the_mean_product():
    rng = np.random.default_rng(5)
    codes = np.arange(60) % 12
    residuals = rng.uniform(-1, 1, 12)[codes] + rng.uniform(-1, 1, 60)
    found = find_level_kernel(np.empty((60, 0)), residuals, codes)
    products = [residuals[i] * residuals[j] for i in range(60) for j in range(i) if codes[i] == codes[j]]
    assert found.constant == pytest.approx(np.mean(products) / np.mean(residuals**2), rel=1e-6)


def test_residuals_that_are_equal_within_levels_leave_some_noise():
    codes = np.arange(200) % 20
    residuals = np.random.default_rng(6).normal(size=20)[codes]
    found = find_level_kernel(np.empty((200, 0)), residuals, codes)
    assert found.noise == pytest.approx(0.05)
    assert found.constant == pytest.approx(0.95)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), unit=st.floats(1e-6, 1e6))
def test_the_kernel_depends_on_neither_the_unit_nor_the_order_of_the_rows(seed, unit):
    scores, residuals, codes = sample(seed % 7, ONE_COVARIATE, n=600, n_levels=20)
    order = np.random.default_rng(seed).permutation(600)
    one = find_level_kernel(scores, residuals, codes)
    other = find_level_kernel(scores[order], unit * residuals[order], codes[order])
    np.testing.assert_array_equal(other.weights, one.weights)
    np.testing.assert_allclose(other.variances, one.variances, rtol=1e-4)
    assert other.constant == pytest.approx(one.constant, rel=1e-4, abs=1e-6)


def test_a_row_of_weight_k_counts_as_k_rows():
    scores, residuals, codes = sample(8, ONE_COVARIATE, n=500, n_levels=40)
    times = np.random.default_rng(8).integers(1, 4, 500)
    place = np.repeat(np.arange(500), times)
    weighted = find_level_kernel(scores, residuals, codes, times.astype(float))
    repeated = find_level_kernel(scores[place], residuals[place], codes[place])
    np.testing.assert_array_equal(weighted.weights, repeated.weights)
    np.testing.assert_allclose(weighted.variances, repeated.variances, rtol=1e-4)
    assert weighted.noise == pytest.approx(repeated.noise, rel=1e-4)


@pytest.mark.parametrize("seed", [430, 531, 545, 1124, 1202, 1876])
def test_ties_between_kernels_do_not_depend_on_weights_or_the_order_of_rows(seed):
    # Duplicated rows have distance 0 in every covariate, so scores differ by rounding only.
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 12))
    n_levels = max(1, n // 3)
    scores = rng.normal(size=(n, 3))
    scores[rng.random((n, 3)) < 0.3] = 0
    residuals, codes, times = rng.normal(size=n), rng.integers(0, n_levels, n), rng.integers(1, 4, n)
    rows = rng.permutation(np.repeat(np.arange(n), times))
    weighted = find_level_kernel(scores, residuals, codes, times.astype(float))
    repeated = find_level_kernel(scores[rows], residuals[rows], codes[rows])
    np.testing.assert_array_equal(weighted.weights, repeated.weights)
    np.testing.assert_allclose(weighted.variances, repeated.variances, rtol=1e-4)


@pytest.mark.parametrize("own", [False, True])
def test_all_pairs_of_rows_of_a_level_are_drawn_if_they_are_few(own):
    rng = np.random.default_rng(10)
    codes = rng.integers(0, 9, 40)
    pairs = draw_level_pairs(
        rng.normal(size=(40, 2)), LevelRows.of(codes, 12), np.full(40, 2.0) if own else None
    )
    found = sorted(tuple(sorted(pair)) for pair in zip(pairs.first, pairs.second, strict=True))
    expected = [(i, j) for i in range(40) for j in range(i if own else i + 1, 40) if codes[i] == codes[j]]
    assert found == expected
    # Of two rows with the same values, one pair; of two and two, four.
    assert sorted(set(pairs.counts)) == ([1.0, 4.0] if own else [1.0])


@pytest.mark.parametrize(
    ("most", "n_rows", "n_levels"), [(3000, 12, 45), (1000, 10, 23), (45, 10, 1), (1, 10, 1)]
)
def test_the_number_of_pairs_is_limited_by_rows_of_each_level_and_then_by_levels(
    monkeypatch, most, n_rows, n_levels
):
    # In the function's own namespace: pytest imports modules with doctests a second time.
    limits = find_level_kernel.__globals__
    monkeypatch.setitem(limits, "_MOST_PAIRS", most)
    monkeypatch.setitem(limits, "_ENOUGH_PAIRS", most)
    rng = np.random.default_rng(10)
    scores, codes = rng.normal(size=(4500, 2)), np.repeat(np.arange(45), 100)
    pairs = draw_level_pairs(scores, LevelRows.of(codes, 45))
    assert (codes[pairs.first] == codes[pairs.second]).all()
    rows = np.unique(np.concatenate([pairs.first, pairs.second]))
    sizes = np.bincount(codes[rows], minlength=45)
    assert set(sizes[sizes > 0]) == {n_rows}
    assert (sizes > 0).sum() == n_levels
    assert len(pairs.first) == n_levels * n_rows * (n_rows - 1) // 2
    find_level_kernel(scores, rng.normal(size=4500), codes)


def test_large_levels_are_thinned_at_random():
    rows = LevelRows.of(np.repeat([1, 3, 4], [50, 4, 20]), 6)
    thinned = rows.thinned(10, np.random.default_rng(0))
    assert thinned.sizes.tolist() == [0, 10, 0, 4, 10, 0]
    assert (np.diff(thinned.order) > 0).all()  # each once, in order
    assert thinned.order[10:14].tolist() == [50, 51, 52, 53]
    counts = np.bincount(
        np.concatenate([rows.thinned(10, np.random.default_rng(seed)).order for seed in range(500)]),
        minlength=74,
    )
    # Five standard errors of 500 draws with probability 1/5, and with 1/2.
    np.testing.assert_allclose(counts[:50], 100, atol=45)
    np.testing.assert_allclose(counts[54:], 250, atol=56)


def test_stacks_hold_the_rows_of_each_level_once():
    codes = np.random.default_rng(0).integers(0, 30, 200)
    rows = LevelRows.of(codes, 33)
    seen = {}
    for levels, places in rows.stacks(150):
        assert len(levels) * places.shape[1] ** 2 <= 150
        seen |= {level: rows.order[own].tolist() for level, own in zip(levels.tolist(), places, strict=True)}
    assert seen == {level: np.flatnonzero(codes == level).tolist() for level in np.unique(codes)}


def test_winsorizing_keeps_one_enormous_residual_from_deciding():
    truth = LevelKernel(0.0, np.array([0.4]), np.array([[0.0, 3.0, 0.0, 0.0]]), 0.6)
    scores, residuals, codes = sample(9, truth)
    residuals[0] = 1e3
    clipped = winsorize(residuals)
    assert np.flatnonzero(clipped != residuals).tolist() == [0]
    assert clipped[0] == pytest.approx(3 * np.sqrt(np.mean(residuals**2)))
    assert 1 in find_level_kernel(scores, clipped, codes).used


# The ranking of candidates


def naive_score(column: np.ndarray, products: np.ndarray, counts: np.ndarray) -> float:
    """The squared t value of the slope of the products on one component, with their variance as the noise."""
    total = counts.sum()
    x, y = column - counts @ column / total, products - counts @ products / total
    slope, variance = counts @ (x * y) / np.sqrt(counts @ y**2 / total), counts @ x**2
    return slope**2 / variance if slope > 0 and variance > 1e-3 * total else 0.0


@pytest.fixture(params=[False, True], ids=["plain", "weighted"])
def scored(request, monkeypatch):
    """A score of candidates whose pairs for ranking are a quarter of all, and what a loop needs."""
    monkeypatch.setitem(find_level_kernel.__globals__, "_RANKING_PAIRS", 1000)
    monkeypatch.setitem(find_level_kernel.__globals__, "_MOST_RANKING", 1000)
    rng = np.random.default_rng(3)
    n, p = 900, 5
    scores, codes = rng.normal(size=(n, p)), rng.integers(0, 90, n)
    weights = rng.choice([1.0, 2.0, 3.5], n) if request.param else None
    pairs = draw_level_pairs(scores, LevelRows.of(codes, 90), weights)
    assert pairs.starts.shape == (3 * p, 1000)
    products = rng.normal(size=len(pairs.first)) + pairs.components(np.float32([[1, 0, 30, 0, 0]]))[0]
    halves = 0.5 * (scores[pairs.first] - scores[pairs.second]).T ** 2
    starts = np.array([np.exp(-weight * half) for half in halves for weight in (1, 30, 1000)])
    return find_level_kernel.__globals__["_KernelScore"](pairs, products), products, halves, starts


def test_matrix_products_rank_the_additions_like_a_loop(scored):
    score, products, halves, starts = scored
    some, counts = slice(1000), score.pairs.counts
    column = np.exp(-3 * halves[1] - 0.3 * halves[4])
    naive = [naive_score((column * start)[some], products[some], counts[some]) for start in starts]
    assert sum(value > 0 for value in naive) > 5
    np.testing.assert_allclose(score.additions(np.float32(column)), naive, rtol=1e-3, atol=1e-3)


def test_matrix_products_rank_all_twos_like_a_loop(scored):
    score, products, _, starts = scored
    some, counts = slice(1000), score.pairs.counts
    chosen = np.array([0, 1, 4, 6, 8, 9, 14])
    naive = [
        [naive_score((starts[i] * starts[j])[some], products[some], counts[some]) for j in chosen]
        for i in chosen
    ]
    np.testing.assert_allclose(score.twos(chosen), naive, rtol=1e-3, atol=1e-3)


def test_finalists_are_scored_on_all_pairs_like_in_a_loop(scored):
    score, products, halves, _ = scored
    weights = np.float32([[0, 3, 0, 0, 0.3], [1, 0, 30, 0, 0], [0, 0, 0, 0, 0]])
    columns = np.exp(-weights @ halves)
    np.testing.assert_allclose(score.pairs.components(weights), columns, rtol=1e-4, atol=1e-6)
    naive = [naive_score(column, products, score.pairs.counts) for column in columns]
    assert naive[1] > 50
    assert naive[2] == 0
    np.testing.assert_allclose(score.exact(np.float32(columns)), naive, rtol=1e-4)


def test_a_ranking_on_some_of_the_pairs_finds_the_same_kernel(monkeypatch):
    truth = LevelKernel(0.1, np.array([0.4]), np.array([[10.0, 0.0, 0.0, 3.0]]), 0.5)
    rows = sample(3, truth, n=4000, n_levels=200)
    found = []
    for n_pairs, most in [(10**6, 10**9), (5000, 0)]:
        monkeypatch.setitem(find_level_kernel.__globals__, "_RANKING_PAIRS", n_pairs)
        monkeypatch.setitem(find_level_kernel.__globals__, "_MOST_RANKING", most)
        monkeypatch.setitem(find_level_kernel.__globals__, "_MOST_SCORED", most)
        found.append(find_level_kernel(*rows))
    assert found[0].used.tolist() == [0, 3]
    np.testing.assert_array_equal(found[0].weights, found[1].weights)
