"""Kernels are recovered from data drawn with them; effects agree with scikit-learn's Gaussian process."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from sufrep.solvers import local_effects
from sufrep.solvers.local_effects import (
    LevelKernel,
    LocalEffects,
    find_level_kernel,
    fit_local_effects,
    winsorize,
)

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


def test_winsorizing_keeps_one_enormous_residual_from_deciding():
    truth = LevelKernel(0.0, np.array([0.4]), np.array([[0.0, 3.0, 0.0, 0.0]]), 0.6)
    scores, residuals, codes = sample(9, truth)
    residuals[0] = 1e3
    clipped = winsorize(residuals)
    assert np.flatnonzero(clipped != residuals).tolist() == [0]
    assert clipped[0] == pytest.approx(3 * np.sqrt(np.mean(residuals**2)))
    assert 1 in find_level_kernel(scores, clipped, codes).used


def test_the_number_of_pairs_is_limited(monkeypatch):
    # In the function's own namespace: pytest imports modules with doctests a second time.
    limits = find_level_kernel.__globals__
    monkeypatch.setitem(limits, "_MOST_PAIRS", 3000)
    monkeypatch.setitem(limits, "_START_PAIRS", 1000)
    rng = np.random.default_rng(10)
    scores, codes = rng.normal(size=(5000, 2)), rng.integers(0, 50, 5000)
    pairs = limits["_draw_pairs"](scores, rng.normal(size=5000), codes, None, np.random.default_rng(0))
    most = local_effects._MOST_ROWS * (local_effects._MOST_ROWS - 1) // 2
    assert 3000 < len(pairs.products) <= 3000 + most
    find_level_kernel(scores, rng.normal(size=5000), codes)


# The effects


def rows(seed: int = 0, n: int = 120, n_levels: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of 2 covariates, levels, and a target with a different curve in each level."""
    rng = np.random.default_rng(seed)
    scores, codes = rng.normal(size=(n, 2)), rng.integers(0, n_levels, n)
    phase = rng.uniform(0, 6, n_levels)[codes]
    return scores, codes, 3 + scores[:, 1] + np.sin(2 * scores[:, 0] + phase) + 0.3 * rng.normal(size=n)


@pytest.fixture
def _known_kernel(monkeypatch):
    """The kernel is given, so that only the estimation of the effects is tested."""
    known = LevelKernel(0.1, np.array([0.4]), np.array([[3.0, 0.5]]), 0.5)
    monkeypatch.setitem(fit_local_effects.__globals__, "find_level_kernel", lambda *_args, **_options: known)


@pytest.mark.usefixtures("_known_kernel")
@pytest.mark.parametrize("weighted", [False, True])
def test_effects_agree_with_a_gaussian_process(weighted):
    scores, codes, y = rows()
    weights = np.random.default_rng(1).choice([1.0, 2.0, 5.0], len(y)) if weighted else None
    found, means = fit_local_effects(scores, codes, y, 6, weights)
    residuals = winsorize(y - found.curve.predict(scores), weights)
    new = np.random.default_rng(2).normal(size=(30, 2))
    kernel = ConstantKernel(0.1) + 0.4 * RBF(np.sqrt([1 / 3.0, 1 / 0.5]))
    for level in range(6):
        inside = codes == level
        noise = 0.5 / (1.0 if weights is None else weights[inside])
        process = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None)
        process.fit(scores[inside], residuals[inside])
        np.testing.assert_allclose(
            found.effects(new, np.full(30, level)), process.predict(new), rtol=1e-8, atol=1e-10
        )
        count = None if weights is None else weights[inside]
        expected = np.average(process.predict(scores[inside]), weights=count)
        assert means[level] == pytest.approx(expected, rel=1e-8)


@pytest.mark.usefixtures("_known_kernel")
def test_rows_without_a_level_have_no_effect():
    scores, codes, y = rows()
    found, _ = fit_local_effects(scores, codes, y, 6)
    some = np.where(np.arange(len(codes)) % 2, codes, -1)
    effects = found.effects(scores, some)
    assert (effects[::2] == 0).all()
    np.testing.assert_allclose(effects[1::2], found.effects(scores, codes)[1::2], rtol=1e-12)


@pytest.mark.usefixtures("_known_kernel")
def test_a_level_without_rows_has_no_effect():
    scores, codes, y = rows()
    found, means = fit_local_effects(scores, codes + 1, y, 9)
    assert means[[0, 7, 8]].tolist() == [0, 0, 0]
    for level in (0, 7, 8):
        assert (found.effects(scores, np.full(len(codes), level)) == 0).all()
    whole, _ = fit_local_effects(scores, codes, y, 6)
    np.testing.assert_array_equal(found.effects(scores, codes + 1), whole.effects(scores, codes))


@pytest.mark.usefixtures("_known_kernel")
def test_large_levels_are_subsampled_reproducibly():
    scores, codes, y = rows(n=400)
    found, _ = fit_local_effects(scores, codes, y, 6, max_level_rows=20)
    assert len(found.coefficients) == 120
    assert found.ends.tolist() == [20, 40, 60, 80, 100, 120]
    again, _ = fit_local_effects(scores, codes, y, 6, max_level_rows=20)
    np.testing.assert_array_equal(again.scores, found.scores)
    other, _ = fit_local_effects(scores, codes, y, 6, max_level_rows=20, seed=1)
    assert not np.array_equal(other.scores, found.scores)


@pytest.mark.usefixtures("_known_kernel")
def test_the_block_size_does_not_change_the_effects(monkeypatch):
    scores, codes, y = rows()
    found, _ = fit_local_effects(scores, codes, y, 6)
    whole = found.effects(scores, codes)
    monkeypatch.setitem(LocalEffects.effects.__globals__, "_BLOCK", 7)
    np.testing.assert_allclose(found.effects(scores, codes), whole, rtol=1e-10, atol=1e-12)


def test_effects_recover_the_curves_of_the_levels():
    scores, codes, y = rows(seed=3, n=3000, n_levels=20)
    found, _ = fit_local_effects(scores, codes, y, 20)
    assert found.kernel.used.tolist() == [0]
    new_scores, _, _ = rows(seed=4, n=3000, n_levels=20)
    rng = np.random.default_rng(3)  # as in `rows`
    rng.normal(size=(3000, 2)), rng.integers(0, 20, 3000)
    truth = 3 + new_scores[:, 1] + np.sin(2 * new_scores[:, 0] + rng.uniform(0, 6, 20)[codes])
    curve = found.curve.predict(new_scores)
    error = np.mean((curve + found.effects(new_scores, codes) - truth) ** 2)
    assert error < 0.1 * np.mean((curve - truth) ** 2)
