"""The closed-form logit, against scikit-learn's discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from sufrep.moments import GroupMoments
from sufrep.solvers.discriminant import Discriminant, linear_discriminant
from sufrep.solvers.scales import overall_scale, within_freedom

# A slow machine breaks no law.
law = settings(deadline=None, max_examples=50)


@dataclass
class Data:
    """Rows whose levels differ in mean and in frequency."""

    codes: np.ndarray
    rows: np.ndarray


def normal_rows(seed: int, n: int = 400, p: int = 3, n_levels: int = 4) -> Data:
    rng = np.random.default_rng(seed)
    share = np.arange(1, n_levels + 1) / sum(range(1, n_levels + 1))
    codes = np.concatenate([np.tile(np.arange(n_levels), 2), rng.choice(n_levels, n - 2 * n_levels, p=share)])
    mixing = rng.normal(size=(p, p)) + 2 * np.eye(p)
    return Data(codes, rng.normal(size=(n_levels, p))[codes] + rng.normal(size=(n, p)) @ mixing)


def discriminant(codes: np.ndarray, rows: np.ndarray, weights: Any = None, **changes: Any) -> Discriminant:
    moments = GroupMoments.from_rows(codes.tolist(), rows, weights=weights)
    given = {
        "freedom": within_freedom(moments),
        "penalty": 0.0,
        "scale": overall_scale(moments),
        **changes,
    }
    return linear_discriminant(moments.mean, moments.weight, moments.scatter, **given)


def log_probabilities(fit: Discriminant, rows: np.ndarray) -> np.ndarray:
    return log_softmax(fit.intercepts + rows @ fit.slopes.T, axis=1)


@pytest.mark.parametrize("solver", ["lsqr", "eigen"])
@pytest.mark.parametrize("n_levels", [3, 20])
def test_contrasts_between_levels_agree_with_scikit_learn(solver, n_levels):
    data = normal_rows(1, n_levels=n_levels)
    theirs = LinearDiscriminantAnalysis(solver=solver).fit(data.rows, data.codes)
    # scikit-learn divides the scatter by the number of rows.
    ours = discriminant(data.codes, data.rows, freedom=len(data.codes))
    np.testing.assert_allclose(ours.slopes, theirs.coef_ - theirs.coef_.mean(axis=0), rtol=1e-6, atol=1e-8)
    expected = theirs.intercept_ - theirs.intercept_.mean()
    np.testing.assert_allclose(ours.intercepts, expected, rtol=1e-6, atol=1e-8)


def test_probabilities_agree_with_scikit_learn():
    data = normal_rows(2)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(data.rows, data.codes)
    ours = discriminant(data.codes, data.rows, freedom=len(data.codes))
    found, expected = log_probabilities(ours, data.rows), theirs.predict_log_proba(data.rows)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_coefficients_follow_the_formula_written_as_a_loop():
    data = normal_rows(3)
    moments = GroupMoments.from_rows(data.codes.tolist(), data.rows)
    inverse = np.linalg.inv(moments.scatter / within_freedom(moments))
    slopes, intercepts = [], []
    for mean, weight in zip(moments.mean, moments.weight, strict=True):
        slopes.append(inverse @ mean)
        intercepts.append(np.log(weight / moments.total_weight) - 0.5 * mean @ inverse @ mean)
    found = discriminant(data.codes, data.rows)
    np.testing.assert_allclose(found.slopes, slopes - np.mean(slopes, axis=0), atol=1e-7)
    np.testing.assert_allclose(found.intercepts, intercepts - np.mean(intercepts), atol=1e-7)


@law
@given(st.integers(0, 50), st.sampled_from([0.0, 1.0, 30.0]))
def test_coefficients_have_mean_zero(seed, penalty):
    data = normal_rows(seed, n=60)
    found = discriminant(data.codes, data.rows, penalty=penalty)
    np.testing.assert_allclose(found.slopes.mean(axis=0), 0, atol=1e-9)
    assert found.intercepts.mean() == pytest.approx(0, abs=1e-9)


@law
@given(st.integers(0, 1000))
def test_an_affine_change_of_the_covariates_changes_no_probability(seed):
    data, rng = normal_rows(4), np.random.default_rng(seed)
    matrix = np.linalg.qr(rng.normal(size=(3, 3)))[0] * rng.uniform(0.1, 10, size=3)
    origin = rng.normal(size=3) * 10
    moved = data.rows @ matrix + origin
    before, after = discriminant(data.codes, data.rows), discriminant(data.codes, moved)
    expected = log_probabilities(before, data.rows)
    np.testing.assert_allclose(log_probabilities(after, moved), expected, atol=1e-5)
    np.testing.assert_allclose(after.slopes @ matrix.T, before.slopes, atol=1e-5)


@law
@given(st.sampled_from([0.0, 1.0, 100.0]), st.lists(st.floats(1e-4, 1e4), min_size=3, max_size=3))
def test_units_change_the_slopes_alone_whatever_the_penalty(penalty, units):
    data = normal_rows(5)
    before = discriminant(data.codes, data.rows, penalty=penalty)
    after = discriminant(data.codes, data.rows * units, penalty=penalty)
    np.testing.assert_allclose(after.slopes * units, before.slopes, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(after.intercepts, before.intercepts, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 5.0])
def test_slopes_and_probabilities_far_from_zero(penalty):
    data = normal_rows(6)
    far = data.rows + 1e9
    before = discriminant(data.codes, far - 1e9, penalty=penalty)
    after = discriminant(data.codes, far, penalty=penalty)
    np.testing.assert_allclose(after.slopes, before.slopes, rtol=1e-5, atol=1e-6)
    # The products with 1e9 leave nine digits less of the sixteen.
    found = log_probabilities(after, far)
    np.testing.assert_allclose(found, log_probabilities(before, far - 1e9), atol=1e-4)


def test_a_penalty_shrinks_the_slopes_towards_zero():
    data = normal_rows(7)
    sizes = [
        np.linalg.norm(discriminant(data.codes, data.rows, penalty=penalty).slopes)
        for penalty in (0, 1e2, 1e4)
    ]
    assert sizes[0] > sizes[1] > sizes[2] > 0


def test_a_penalty_is_made_up_rows_of_the_given_spread():
    data = normal_rows(8)
    moments = GroupMoments.from_rows(data.codes.tolist(), data.rows)
    scale, freedom = np.array([1.0, 2.0, 3.0]), within_freedom(moments)
    ridge = moments.scatter + 7.0 * np.diag(scale**2)
    expected = linear_discriminant(
        moments.mean, moments.weight, ridge, freedom + 7.0, penalty=0.0, scale=scale
    )
    found = discriminant(data.codes, data.rows, penalty=7.0, scale=scale)
    np.testing.assert_allclose(found.slopes, expected.slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("weight", [1.0, 1e3, 1e6, 1e9])
def test_collinear_covariates_change_no_probability_however_many_the_rows(weight):
    """Shares that sum to one are collinear, and rounding in a scatter grows with its rows."""
    data = normal_rows(9)
    wide = np.column_stack([data.rows, data.rows @ [1.0, 1.0, -0.3], 0.1 * data.rows[:, 0]])
    weights = np.full(len(data.codes), weight)
    found = discriminant(data.codes, wide, weights)
    expected = discriminant(data.codes, data.rows, weights)
    assert np.isfinite(found.slopes).all()
    np.testing.assert_allclose(
        log_probabilities(found, wide), log_probabilities(expected, data.rows), atol=1e-3
    )


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_levels_of_one_row_each_have_finite_coefficients(penalty):
    rows = np.array([[0.0, 1.0], [2.0, 3.0], [5.0, -1.0]])
    found = discriminant(np.arange(3), rows, penalty=penalty)
    assert np.isfinite(found.slopes).all()
    assert np.isfinite(found.intercepts).all()


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_one_level_has_coefficients_of_zero(penalty):
    data = normal_rows(10)
    found = discriminant(np.zeros_like(data.codes), data.rows, penalty=penalty)
    np.testing.assert_allclose(found.slopes, np.zeros((1, 3)), atol=1e-12)
    np.testing.assert_allclose(found.intercepts, [0.0], atol=1e-12)


def test_a_constant_covariate_has_no_slope():
    data = normal_rows(11)
    found = discriminant(data.codes, np.column_stack([data.rows, np.full(len(data.rows), 3.3)]))
    expected = discriminant(data.codes, data.rows)
    np.testing.assert_allclose(found.slopes[:, 3], 0, atol=1e-6)
    np.testing.assert_allclose(found.slopes[:, :3], expected.slopes, atol=1e-6)
