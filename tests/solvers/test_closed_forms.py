"""Contrast codings against the paper's tables and R; the closed-form logit against scikit-learn."""

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
from sufrep.solvers.closed_forms import CODINGS, Discriminant, linear_discriminant
from sufrep.solvers.shrinkage import overall_scale, within_freedom

law = settings()

# Contrast codings


# The tables of the paper's appendix, with the digits it prints.
PAPER_TABLES = {
    "one_hot": (
        0,
        [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
    ),
    "deviation": (
        0,
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [-1, -1, -1, -1]],
    ),
    "difference": (
        3,
        [
            [-0.5, -0.333, -0.25, -0.2],
            [0.5, -0.333, -0.25, -0.2],
            [0.0, 0.667, -0.25, -0.2],
            [0.0, 0.000, 0.75, -0.2],
            [0.0, 0.000, 0.00, 0.8],
        ],
    ),
    "helmert": (
        2,
        [
            [0.80, 0.00, 0.00, 0.00],
            [-0.20, 0.75, 0.00, 0.00],
            [-0.20, -0.25, 0.67, 0.00],
            [-0.20, -0.25, -0.33, 0.50],
            [-0.20, -0.25, -0.33, -0.50],
        ],
    ),
    "repeated_effect": (
        1,
        [
            [0.8, 0.6, 0.4, 0.2],
            [-0.2, 0.6, 0.4, 0.2],
            [-0.2, -0.4, 0.4, 0.2],
            [-0.2, -0.4, -0.6, 0.2],
            [-0.2, -0.4, -0.6, -0.8],
        ],
    ),
}


def read_level_table(path):
    return np.genfromtxt(path, delimiter=",", skip_header=1)[:, 1:]


@pytest.mark.parametrize("name", PAPER_TABLES)
def test_the_coding_of_five_levels_is_the_table_in_the_paper(name):
    digits, table = PAPER_TABLES[name]
    np.testing.assert_array_equal(np.round(CODINGS[name](5), digits), np.array(table, dtype=float))


@pytest.mark.parametrize("name", ["deviation", "difference", "repeated_effect", "simple_effect"])
def test_the_coding_of_seven_levels_agrees_with_r(name, r_fixtures):
    np.testing.assert_allclose(CODINGS[name](7), read_level_table(r_fixtures / f"{name}.csv"), atol=1e-12)


def test_one_hot_has_the_first_level_as_reference_where_r_has_the_last(r_fixtures):
    theirs = read_level_table(r_fixtures / "one_hot.csv")
    np.testing.assert_array_equal(np.roll(theirs, 1, axis=0), CODINGS["one_hot"](7))


@pytest.mark.parametrize("name", CODINGS)
@pytest.mark.parametrize("n_levels", [1, 2, 3, 8, 30])
def test_with_a_constant_a_coding_spans_all_functions_of_the_level(name, n_levels):
    coding = CODINGS[name](n_levels)
    assert coding.shape == (n_levels, n_levels - 1)
    assert np.linalg.matrix_rank(np.column_stack([np.ones(n_levels), coding])) == n_levels
    if name != "one_hot":
        np.testing.assert_allclose(coding.sum(axis=0), 0.0, atol=1e-13)


@pytest.mark.parametrize("name", CODINGS)
def test_zeros_have_no_minus_sign(name):
    coding = CODINGS[name](6)
    assert not np.signbit(coding[coding == 0]).any()


# The closed-form logit


@dataclass
class Data:
    """Rows whose levels differ in mean and frequency."""

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
def test_coefficients_agree_with_scikit_learn(solver, n_levels):
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


def test_coefficients_follow_the_formula():
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
def test_units_change_only_the_slopes_at_any_penalty(penalty, units):
    data = normal_rows(5)
    before = discriminant(data.codes, data.rows, penalty=penalty)
    after = discriminant(data.codes, data.rows * units, penalty=penalty)
    np.testing.assert_allclose(after.slopes * units, before.slopes, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(after.intercepts, before.intercepts, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 5.0])
def test_values_far_from_zero_give_the_same_slopes_and_probabilities(penalty):
    data = normal_rows(6)
    far = data.rows + 1e9
    before = discriminant(data.codes, far - 1e9, penalty=penalty)
    after = discriminant(data.codes, far, penalty=penalty)
    np.testing.assert_allclose(after.slopes, before.slopes, rtol=1e-5, atol=1e-6)
    # Products with 1e9 lose nine of the sixteen digits.
    found = log_probabilities(after, far)
    np.testing.assert_allclose(found, log_probabilities(before, far - 1e9), atol=1e-4)


def test_a_penalty_shrinks_the_slopes_towards_zero():
    data = normal_rows(7)
    sizes = [
        np.linalg.norm(discriminant(data.codes, data.rows, penalty=penalty).slopes)
        for penalty in (0, 1e2, 1e4)
    ]
    assert sizes[0] > sizes[1] > sizes[2] > 0


def test_a_penalty_acts_as_pseudo_rows_with_the_given_standard_deviations():
    data = normal_rows(8)
    moments = GroupMoments.from_rows(data.codes.tolist(), data.rows)
    scale, freedom = np.array([1.0, 2.0, 3.0]), within_freedom(moments)
    ridge = moments.scatter + 7.0 * np.diag(scale**2)
    expected = linear_discriminant(
        moments.mean, moments.weight, ridge, freedom + 7.0, penalty=0.0, scale=scale
    )
    found = discriminant(data.codes, data.rows, penalty=7.0, scale=scale)
    np.testing.assert_allclose(found.slopes, expected.slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("weight", [1.0, 1e9])
def test_collinear_covariates_change_no_probability_with_any_number_of_rows(weight):
    # Shares that sum to one are collinear, and rounding in a scatter grows with the number of rows.
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
def test_a_single_level_has_zero_coefficients(penalty):
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
