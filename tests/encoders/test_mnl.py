"""Multinomial logit: glmnet's numbers, scikit-learn's, and the closed form next to the exact one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from sufrep import MNLEncoder
from sufrep.encoders._mnl import StackedColumns
from sufrep.solvers.multinomial import fit_multinomial

# Every example fits several encoders.
few = settings(max_examples=settings.default.max_examples // 5)


def shops(seed: int, n: int = 150, n_levels: int = 4, units: Any = (1.0, 10.0, 0.1)) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    level = np.append(np.arange(n_levels), rng.integers(0, n_levels, n - n_levels))
    centre = rng.normal(size=(n_levels, 3)) + 2.0
    rows = (rng.normal(size=(n, 3)) + centre[level]) * units
    return pd.DataFrame(rows, columns=["a", "b", "c"]).assign(shop=[f"shop {code}" for code in level])


def coefficients(encoder: MNLEncoder) -> np.ndarray:
    """Intercept and slopes of each level; (n_levels, 1 + p)."""
    return encoder.representations_["shop"].values


def logistic_regression(
    rows: pd.DataFrame, *, penalty: float, scale: Any = 1.0, weights: Any = None
) -> np.ndarray:
    """The same by scikit-learn, intercepts centred, slopes in the units of the rows."""
    model = LogisticRegression(C=1 / penalty, tol=1e-9, max_iter=100_000, solver="newton-cg")
    model.fit(rows.drop(columns="shop") / scale, rows["shop"], sample_weight=weights)
    return np.column_stack([model.intercept_ - model.intercept_.mean(), model.coef_ / scale])


def test_coefficients_are_those_of_glmnet(r_fixtures):
    rows = pd.read_csv(r_fixtures / "input.csv").drop(columns="y")
    expected = pd.read_csv(r_fixtures / "mnl_ridge_lambda0.01.csv", index_col="level")
    table = MNLEncoder("g", penalty=3, standardize=False).fit(rows).representations_["g"]
    assert table.levels.tolist() == expected.index.tolist()
    assert list(table.columns) == ["g_intercept", *(f"g_slope_x{j}" for j in range(1, 6))]
    centred = expected["intercept"] - expected["intercept"].mean()
    np.testing.assert_allclose(table.values[:, 0], centred, rtol=0, atol=1e-4)
    np.testing.assert_allclose(table.values[:, 1:], expected.iloc[:, 1:], rtol=0, atol=1e-4)


@few
@given(seed=st.integers(0, 2**32 - 1), penalty=st.sampled_from([0.1, 1.0, 20.0]), weighted=st.booleans())
def test_raw_slopes_are_those_of_scikit_learn(seed, penalty, weighted):
    rows = shops(seed, units=(1.0, 2.0, 0.5))
    weights = np.random.default_rng(seed).integers(1, 4, len(rows)) if weighted else None
    encoder = MNLEncoder("shop", penalty=penalty, standardize=False).fit(rows, sample_weight=weights)
    expected = logistic_regression(rows, penalty=penalty, weights=weights)
    np.testing.assert_allclose(coefficients(encoder), expected, rtol=1e-4, atol=1e-4)


@few
@given(seed=st.integers(0, 2**32 - 1), penalty=st.sampled_from([0.1, 1.0, 20.0]))
def test_standardised_slopes_are_those_of_scikit_learn_back_in_the_units_given(seed, penalty):
    rows = shops(seed, units=(1.0, 1000.0, 0.001))
    scale = rows.drop(columns="shop").std(ddof=0).to_numpy()
    encoder = MNLEncoder("shop", penalty=penalty).fit(rows)
    expected = logistic_regression(rows, penalty=penalty, scale=scale)
    close = 1e-4 * np.append(1.0, 1 / scale)
    assert (np.abs(coefficients(encoder) - expected) <= close * (1 + np.abs(expected[:, :1]))).all()


@pytest.mark.parametrize("solver", ["lbfgs", "lda"])
@few
@given(seed=st.integers(0, 2**32 - 1), units=st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3))
def test_units_change_the_slopes_by_their_inverse_and_nothing_else(solver, seed, units):
    one = coefficients(MNLEncoder("shop", solver=solver).fit(shops(seed, units=(1.0, 1.0, 1.0))))
    other = coefficients(MNLEncoder("shop", solver=solver).fit(shops(seed, units=units)))
    np.testing.assert_allclose(other * np.append(1.0, units), one, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("solver", ["lbfgs", "lda"])
def test_a_shift_of_the_covariates_moves_intercepts_only(solver):
    rows = shops(0)
    moved = rows.assign(a=rows["a"] + 1000.0)
    one, other = (coefficients(MNLEncoder("shop", solver=solver).fit(frame)) for frame in (rows, moved))
    np.testing.assert_allclose(other[:, 1:], one[:, 1:], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(other[:, 0], one[:, 0] - 1000.0 * one[:, 1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("solver", ["lbfgs", "lda"])
def test_intercepts_and_slopes_have_mean_zero_over_the_levels(solver):
    found = coefficients(MNLEncoder("shop", solver=solver).fit(shops(1)))
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-6)


def test_the_closed_form_is_near_the_exact_solution_where_covariates_are_normal():
    rows = shops(2, n=20_000, units=(1.0, 3.0, 0.5))
    exact = coefficients(MNLEncoder("shop", penalty=1e-3).fit(rows))
    closed = coefficients(MNLEncoder("shop", penalty=1e-3, solver="lda").fit(rows))
    assert np.abs(exact - closed).max() < 0.1 * np.abs(exact).max()
    for j in range(exact.shape[1]):
        assert np.corrcoef(exact[:, j], closed[:, j])[0, 1] > 0.99


def test_the_closed_form_is_that_of_the_textbook():
    rows = shops(3, n=400)
    covariates = rows.drop(columns="shop")
    means = covariates.groupby(rows["shop"]).mean()
    within = covariates - covariates.groupby(rows["shop"]).transform("mean")
    inverse = np.linalg.inv((within.T @ within / (len(rows) - 4)).to_numpy())
    slopes = means.to_numpy() @ inverse
    shares = rows["shop"].value_counts(normalize=True).sort_index().to_numpy()
    intercepts = np.log(shares) - 0.5 * (slopes * means.to_numpy()).sum(axis=1)
    expected = np.column_stack([intercepts, slopes])
    found = coefficients(MNLEncoder("shop", penalty=0, solver="lda").fit(rows))
    np.testing.assert_allclose(found, expected - expected.mean(axis=0), rtol=1e-6, atol=1e-6)


def test_too_few_iterations_are_told():
    with pytest.warns(
        ConvergenceWarning, match=r"not converge in max_iter=1 iterations.*\nHint: raise max_iter"
    ):
        MNLEncoder("shop", max_iter=1, penalty=0.001).fit(shops(4))


def test_nulls_count_as_the_mean():
    rows = shops(5)
    rows.loc[::7, "a"] = np.nan
    weights = np.arange(len(rows)) % 3 + 1.0
    known = rows["a"].notna()
    filled = rows.fillna({"a": np.average(rows["a"][known], weights=weights[known])})
    one, other = (
        coefficients(MNLEncoder("shop", standardize=False).fit(frame, sample_weight=weights))
        for frame in (rows, filled)
    )
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("solver", ["lbfgs", "lda"])
def test_rows_and_levels_of_weight_zero_are_absent(solver):
    rows = shops(6)
    weights = np.where(rows["shop"] == "shop 2", 0.0, np.arange(len(rows)) % 3)
    encoder = MNLEncoder("shop", solver=solver).fit(rows, sample_weight=weights)
    assert encoder.representations_["shop"].levels.tolist() == ["shop 0", "shop 1", "shop 3"]
    rest = MNLEncoder("shop", solver=solver).fit(rows[weights > 0], sample_weight=weights[weights > 0])
    np.testing.assert_allclose(coefficients(encoder), coefficients(rest), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("solver", ["lbfgs", "lda"])
def test_rows_without_a_level_are_left_out_if_they_get_the_prior(solver):
    rows = shops(7)
    holes = rows.assign(shop=rows["shop"].where(np.arange(len(rows)) % 5 > 0))
    # Neither their covariates nor the nulls in them may be used.
    holes.loc[holes["shop"].isna(), "a"] = 1e6
    holes.loc[10::20, "b"] = np.nan
    encoder = MNLEncoder("shop", solver=solver, missing="prior")
    one = coefficients(encoder.fit(holes))
    other = coefficients(encoder.fit(holes[holes["shop"].notna()]))
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_rare_levels_share_their_coefficients():
    rows = shops(8).assign(
        shop=lambda frame: frame["shop"].where(frame.index > 2, "rare " + frame["a"].astype(str))
    )
    table = MNLEncoder("shop", min_frequency=5).fit(rows).representations_["shop"]
    rare = [str(level).startswith("rare") for level in table.levels]
    assert sum(rare) == 3
    assert len(np.unique(table.values[rare], axis=0)) == 1
    pooled = rows.assign(shop=rows["shop"].where(~rows["shop"].str.startswith("rare"), "zzz"))
    expected = MNLEncoder("shop").fit(pooled).representations_["shop"]
    np.testing.assert_allclose(
        table.values[np.argmax(rare)], expected.lookup(["zzz"])[0], rtol=1e-6, atol=1e-6
    )


def test_iterations_are_counted():
    rows = shops(9).assign(half=lambda frame: np.where(frame["a"] > 2, "up", "down"))
    encoder = MNLEncoder(["shop", "half"]).fit(rows)
    assert set(encoder.iterations_) == {"shop", "half"}
    assert encoder.n_iter_ == max(encoder.iterations_.values()) >= 1
    assert MNLEncoder("shop", solver="lda").fit(rows).n_iter_ == 1


def test_only_the_closed_form_learns_in_chunks():
    assert hasattr(MNLEncoder(solver="lda"), "partial_fit")
    assert not hasattr(MNLEncoder(solver="lbfgs"), "partial_fit")
    with pytest.raises(AttributeError, match="'MNLEncoder' has no attribute 'partial_fit'"):
        MNLEncoder("shop").partial_fit(shops(0))


def test_another_fit_forgets_what_the_first_has_left():
    encoder = MNLEncoder("shop", solver="lda").fit(shops(0)).set_params(solver="lbfgs").fit(shops(1))
    assert encoder.n_iter_ > 1
    assert encoder.set_params(solver="lda").fit(shops(0)).n_iter_ == 1


@pytest.mark.parametrize("solver", ["lbfgs", "lda"])
def test_one_level_has_coefficients_of_zero(solver):
    rows = shops(0).assign(shop="only")
    np.testing.assert_allclose(coefficients(MNLEncoder("shop", solver=solver).fit(rows)), 0.0, atol=1e-12)


@pytest.mark.parametrize("solver", ["lbfgs", "lda"])
def test_constant_and_collinear_covariates_do_no_harm(solver):
    rows = shops(10).assign(constant=3.0, twice=lambda frame: 2 * frame["a"])
    assert np.isfinite(coefficients(MNLEncoder("shop", solver=solver).fit(rows))).all()


def test_levels_that_a_line_separates_stay_finite_under_the_penalty():
    rows = pd.DataFrame({"shop": ["l"] * 20 + ["r"] * 20, "x": np.repeat([-5.0, 5.0], 20)})
    found = coefficients(MNLEncoder("shop").fit(rows))
    assert 0 < found[1, 1] < 10
    np.testing.assert_allclose(found[0], -found[1], atol=1e-5)


def test_columns_are_stacked_block_by_block_with_nulls_filled():
    columns = [np.array([1.0, np.nan, 3.0]), np.array([True, False, True])]
    rows = StackedColumns(columns, fill=np.array([9.0, 9.0]))
    assert rows.shape == (3, 2)
    np.testing.assert_array_equal(rows[1:3], [[9.0, 0.0], [3.0, 1.0]])
    np.testing.assert_array_equal(rows[:], [[1.0, 1.0], [9.0, 0.0], [3.0, 1.0]])


def test_the_solver_takes_blocks_of_rows_as_it_takes_an_array(monkeypatch):
    rng = np.random.default_rng(0)
    rows, codes = rng.normal(size=(200, 3)), np.arange(200) % 5
    stacked = StackedColumns(list(rows.T), fill=np.zeros(3))
    for most_in_double in (0, np.inf):
        monkeypatch.setitem(fit_multinomial.__globals__, "_LARGE", most_in_double)
        expected, found = (fit_multinomial(some, codes, 5) for some in (rows, stacked))
        np.testing.assert_allclose(found.slopes, expected.slopes, atol=1e-12)
