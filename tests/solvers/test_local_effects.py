"""Effects agree with scikit-learn's Gaussian process, whatever the size of the levels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from sufrep.solvers.level_kernels import LevelKernel
from sufrep.solvers.local_effects import (
    LocalEffects,
    fit_local_effects,
    fit_several_local_effects,
    winsorize,
)


def rows(seed: int = 0, n: int = 120, n_levels: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of 2 covariates, levels, and a target with a different curve in each level."""
    rng = np.random.default_rng(seed)
    scores, codes = rng.normal(size=(n, 2)), rng.integers(0, n_levels, n)
    phase = rng.uniform(0, 6, n_levels)[codes]
    return scores, codes, 3 + scores[:, 1] + np.sin(2 * scores[:, 0] + phase) + 0.3 * rng.normal(size=n)


# The kernel is given, so that only the estimation of the effects is tested.
KNOWN = LevelKernel(0.1, np.array([0.4]), np.array([[3.0, 0.5]]), 0.5)


@pytest.mark.parametrize("n", [120, 500], ids=["small levels", "large levels"])
@pytest.mark.parametrize("weighted", [False, True])
def test_effects_agree_with_a_gaussian_process(weighted, n):
    scores, codes, y = rows(n=n)
    weights = np.random.default_rng(1).choice([1.0, 2.0, 5.0], len(y)) if weighted else None
    found, means = fit_local_effects(scores, codes, y, 6, weights, kernel=KNOWN)
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


def test_rows_without_a_level_have_no_effect():
    scores, codes, y = rows()
    found, _ = fit_local_effects(scores, codes, y, 6, kernel=KNOWN)
    some = np.where(np.arange(len(codes)) % 2, codes, -1)
    effects = found.effects(scores, some)
    assert (effects[::2] == 0).all()
    np.testing.assert_allclose(effects[1::2], found.effects(scores, codes)[1::2], rtol=1e-12)


def test_a_level_without_rows_has_no_effect():
    scores, codes, y = rows()
    found, means = fit_local_effects(scores, codes + 1, y, 9, kernel=KNOWN)
    assert means[[0, 7, 8]].tolist() == [0, 0, 0]
    for level in (0, 7, 8):
        assert (found.effects(scores, np.full(len(codes), level)) == 0).all()
    whole, _ = fit_local_effects(scores, codes, y, 6, kernel=KNOWN)
    np.testing.assert_array_equal(found.effects(scores, codes + 1), whole.effects(scores, codes))


def test_large_levels_are_subsampled_reproducibly():
    scores, codes, y = rows(n=400)
    found, _ = fit_local_effects(scores, codes, y, 6, max_level_rows=20, kernel=KNOWN)
    assert len(found.coefficients) == 120
    assert found.ends.tolist() == [20, 40, 60, 80, 100, 120]
    again, _ = fit_local_effects(scores, codes, y, 6, max_level_rows=20, kernel=KNOWN)
    np.testing.assert_array_equal(again.scores, found.scores)
    other, _ = fit_local_effects(scores, codes, y, 6, max_level_rows=20, seed=1, kernel=KNOWN)
    assert not np.array_equal(other.scores, found.scores)


def test_the_block_size_does_not_change_the_effects(monkeypatch):
    scores, codes, y = rows()
    found, _ = fit_local_effects(scores, codes, y, 6, kernel=KNOWN)
    whole = found.effects(scores, codes)
    monkeypatch.setitem(LocalEffects.effects.__globals__, "_BLOCK", 7)
    monkeypatch.setitem(LocalEffects.effects.__globals__, "_PIECE", 3)
    again, _ = fit_local_effects(scores, codes, y, 6, kernel=KNOWN)
    np.testing.assert_allclose(again.coefficients, found.coefficients, rtol=1e-12)
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


@pytest.mark.parametrize("weighted", [False, True])
def test_without_components_effects_are_shrunken_means(weighted):
    scores, codes, y = rows()
    weights = np.random.default_rng(1).choice([1.0, 2.0, 5.0], len(y)) if weighted else None
    constant = LevelKernel(0.3, np.empty(0), np.empty((0, 2)), 0.7)
    # The same kernel with a component of next to nothing, which needs matrices.
    general = LevelKernel(0.3, np.array([1e-300]), np.array([[1.0, 1.0]]), 0.7)
    found, means = fit_local_effects(scores, codes + 1, y, 8, weights, kernel=constant)
    expected, expected_means = fit_local_effects(scores, codes + 1, y, 8, weights, kernel=general)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, rtol=1e-10)
    np.testing.assert_allclose(means, expected_means, rtol=1e-10)
    np.testing.assert_allclose(
        found.effects(scores, codes), expected.effects(scores, codes), rtol=1e-10, atol=1e-14
    )


def test_a_given_kernel_is_not_searched_for(monkeypatch):
    def search(*_args, **_options):
        raise AssertionError("searched for a kernel")

    scores, codes, y = rows(seed=3, n=600)
    found, means = fit_local_effects(scores, codes, y, 6)
    monkeypatch.setitem(fit_local_effects.__globals__, "kernel_of_pairs", search)
    again, same = fit_local_effects(scores, codes, y, 6, kernel=found.kernel)
    assert again.kernel is found.kernel
    np.testing.assert_array_equal(again.coefficients, found.coefficients)
    np.testing.assert_array_equal(same, means)
    with pytest.raises(AssertionError, match="searched"):
        fit_local_effects(scores, codes, y, 6)


@pytest.mark.parametrize("given", [False, True])
def test_several_targets_are_fitted_as_if_each_were_alone(given):
    scores, codes, y = rows(seed=5, n=900)
    weights = np.random.default_rng(5).choice([1.0, 2.0], len(y))
    targets = [y, (y > 3).astype(float), np.zeros(len(y))]
    kernels = [KNOWN, LevelKernel(0.2, np.empty(0), np.empty((0, 2)), 0.8), KNOWN] if given else None
    together = fit_several_local_effects(scores, codes, targets, 6, weights, seed=2, kernels=kernels)
    for number, (found, means) in enumerate(together):
        kernel = None if kernels is None else kernels[number]
        alone, expected = fit_local_effects(scores, codes, targets[number], 6, weights, seed=2, kernel=kernel)
        np.testing.assert_array_equal(found.kernel.weights, alone.kernel.weights)
        np.testing.assert_allclose(found.coefficients, alone.coefficients, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(means, expected, rtol=1e-9, atol=1e-12)


def test_a_row_of_an_enormous_weight_has_no_noise():
    scores, codes, y = rows()
    scores[1], codes[:2], y[:2] = scores[0], [0, 1], [2.0, 4.0]  # what no curve fits
    weights = np.ones(len(y))
    weights[:2] = 1e14
    found, _ = fit_local_effects(scores, codes, y, 6, weights, kernel=KNOWN)
    assert np.isfinite(found.coefficients).all()
    residuals = winsorize(y - found.curve.predict(scores), weights)
    np.testing.assert_allclose(found.effects(scores, codes)[:2], residuals[:2], rtol=1e-6)
