"""Kriging: the same as scikit-learn's Gaussian process for every level, and as the formula in loops."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from sufrep.solvers.likeness import Likeness, without_extremes
from sufrep.solvers.local_effects import LocalEffects, fit_local_effects


def rows(seed: int = 0, n: int = 120, n_levels: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of 2 covariates, levels, a target with a curve for each level."""
    rng = np.random.default_rng(seed)
    scores, codes = rng.normal(size=(n, 2)), rng.integers(0, n_levels, n)
    own = rng.uniform(0, 6, n_levels)[codes]
    return scores, codes, 3 + scores[:, 1] + np.sin(2 * scores[:, 0] + own) + 0.3 * rng.normal(size=n)


KNOWN = Likeness(0.1, np.array([0.4]), np.array([[3.0, 0.5]]), 0.5)


@pytest.fixture
def _known(monkeypatch):
    """The kernel is given, so that only the kriging is tested."""
    # By the function's own names: pytest imports modules with doctests a second time.
    monkeypatch.setitem(fit_local_effects.__globals__, "find_likeness", lambda *_args, **_options: KNOWN)


@pytest.mark.usefixtures("_known")
@pytest.mark.parametrize("weighted", [False, True])
def test_effects_are_those_of_a_gaussian_process(weighted):
    scores, codes, y = rows()
    weights = np.random.default_rng(1).choice([1.0, 2.0, 5.0], len(y)) if weighted else None
    found, means = fit_local_effects(scores, codes, y, 6, weights)
    residuals = without_extremes(y - found.curve.predict(scores), weights)
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
        own = process.predict(scores[inside])
        count = None if weights is None else weights[inside]
        assert means[level] == pytest.approx(np.average(own, weights=count), rel=1e-8)


@pytest.mark.usefixtures("_known")
def test_rows_without_a_level_have_no_effect():
    scores, codes, y = rows()
    found, _ = fit_local_effects(scores, codes, y, 6)
    asked = np.where(np.arange(len(codes)) % 2, codes, -1)
    effects = found.effects(scores, asked)
    assert (effects[::2] == 0).all()
    np.testing.assert_allclose(effects[1::2], found.effects(scores, codes)[1::2], rtol=1e-12)


@pytest.mark.usefixtures("_known")
def test_a_level_without_rows_has_no_effect():
    scores, codes, y = rows()
    found, means = fit_local_effects(scores, codes + 1, y, 9)
    assert means[[0, 7, 8]].tolist() == [0, 0, 0]
    for level in (0, 7, 8):
        assert (found.effects(scores, np.full(len(codes), level)) == 0).all()
    whole, _ = fit_local_effects(scores, codes, y, 6)
    np.testing.assert_array_equal(found.effects(scores, codes + 1), whole.effects(scores, codes))


@pytest.mark.usefixtures("_known")
def test_large_levels_are_known_by_some_of_their_rows():
    scores, codes, y = rows(n=400)
    found, _ = fit_local_effects(scores, codes, y, 6, max_level_rows=20)
    assert len(found.coefficients) == 120
    assert found.ends.tolist() == [20, 40, 60, 80, 100, 120]
    again, _ = fit_local_effects(scores, codes, y, 6, max_level_rows=20)
    np.testing.assert_array_equal(again.scores, found.scores)
    other, _ = fit_local_effects(scores, codes, y, 6, max_level_rows=20, seed=1)
    assert not np.array_equal(other.scores, found.scores)


@pytest.mark.usefixtures("_known")
def test_many_rows_are_predicted_in_blocks(monkeypatch):
    scores, codes, y = rows()
    found, _ = fit_local_effects(scores, codes, y, 6)
    whole = found.effects(scores, codes)
    monkeypatch.setitem(LocalEffects.effects.__globals__, "_BLOCK", 7)
    np.testing.assert_allclose(found.effects(scores, codes), whole, rtol=1e-10, atol=1e-12)


def test_curves_of_levels_are_found_among_rows():
    scores, codes, y = rows(seed=3, n=3000, n_levels=20)
    found, _ = fit_local_effects(scores, codes, y, 20)
    assert found.likeness.used.tolist() == [0]
    fresh_scores, _, _ = rows(seed=4, n=3000, n_levels=20)
    own = np.random.default_rng(3)
    own.normal(size=(3000, 2)), own.integers(0, 20, 3000)
    truth = 3 + fresh_scores[:, 1] + np.sin(2 * fresh_scores[:, 0] + own.uniform(0, 6, 20)[codes])
    fit = found.curve.predict(fresh_scores) + found.effects(fresh_scores, codes)
    assert np.mean((fit - truth) ** 2) < 0.1 * np.mean((found.curve.predict(fresh_scores) - truth) ** 2)
