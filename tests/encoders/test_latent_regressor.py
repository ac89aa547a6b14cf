"""The predictor of lemma 1: near the best prediction where its assumption holds, else like any regressor."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from sufrep import ContrastEncoder, LatentStateRegressor, errors, simulate


def drawn(n: int = 500, **parameters: Any) -> tuple[pd.DataFrame, np.ndarray]:
    sample = simulate("latent_linear", n=n, p=4, n_latent=2, levels_per_latent=6, seed=1, **parameters)
    return pd.DataFrame(sample.columns()), sample.y


def regressor(group: Any = "group", **parameters: Any) -> LatentStateRegressor:
    """Two states, found from one start."""
    return LatentStateRegressor(group, **{"n_states": 2, "n_starts": 1, "tol": 1e-4, **parameters})


@pytest.fixture(scope="module")
def fitted() -> tuple[LatentStateRegressor, pd.DataFrame, np.ndarray]:
    X, y = drawn()
    return regressor().fit(X, y), X, y


@pytest.mark.parametrize("setup", ["latent_linear", "piecewise_linear"])
def test_the_excess_error_is_far_below_that_of_one_hot_columns(setup):
    sample = simulate(setup, n=3000, p=8, n_latent=3, levels_per_latent=30, seed=2)
    X = pd.DataFrame(sample.columns())
    train, test = slice(0, 2000), slice(2000, None)

    def excess(prediction: np.ndarray) -> float:
        """Error above that of the best prediction."""
        return float(((prediction - sample.conditional_mean[test]) ** 2).mean())

    model = LatentStateRegressor("group").fit(X[train], sample.y[train])
    one_hot = make_pipeline(ContrastEncoder("group"), Ridge()).fit(X[train], sample.y[train])
    trees = make_pipeline(
        ContrastEncoder("group"), HistGradientBoostingRegressor(max_iter=50, random_state=0)
    )
    with threadpool_limits(1):  # threads that wait for each other on a busy machine take minutes
        trees.fit(X[train], sample.y[train])
    best = min(excess(one_hot.predict(X[test])), excess(trees.predict(X[test])))
    assert model.encoder_.n_states_[next(iter(model.encoder_.n_states_))] == 3
    assert excess(model.predict(X[test])) < 0.35 * best


def test_the_prediction_is_the_formula_of_lemma_1(fitted):
    model, X, _ = fitted
    posterior, by_state = model.predict_states(X), model.predict_by_state(X)
    assert posterior.shape == by_state.shape == (len(X), 2)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict(X), (posterior * by_state).sum(axis=1))


@pytest.mark.parametrize("expert", [None, Ridge()])
def test_a_prediction_does_not_depend_on_the_other_rows(expert):
    X, y = drawn(200)
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    model = regressor(expert=expert).fit(X, y)
    together = model.predict(X)
    np.testing.assert_allclose([model.predict(X[i : i + 1])[0] for i in range(20)], together[:20])


BOOSTING = HistGradientBoostingRegressor(max_iter=20, max_leaf_nodes=8, random_state=0)


@pytest.mark.parametrize("expert", [Ridge(), BOOSTING])
def test_any_regressor_that_takes_weights_may_be_the_expert(expert):
    X, y = drawn(1200)
    with threadpool_limits(1):
        model = regressor(expert=expert).fit(X[:1000], y[:1000])
    assert [type(each) for each in model.experts_] == [type(expert)] * 2
    assert not hasattr(expert, "n_features_in_")  # clones are fitted
    by_state = np.column_stack(
        [each.predict(X[1000:].drop(columns="group").to_numpy()) for each in model.experts_]
    )
    np.testing.assert_allclose(model.predict_by_state(X[1000:]), by_state)
    default = regressor().fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.8 * default.score(X[1000:], y[1000:])


def test_an_expert_of_ridge_regressions_is_about_as_good_as_the_default():
    X, y = drawn(1200)
    scores = [
        regressor(expert=expert).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
        for expert in (None, Ridge())
    ]
    assert abs(scores[0] - scores[1]) < 0.05


def test_an_expert_must_take_weights():
    X, y = drawn(50)
    with pytest.raises(
        errors.ExpertError, match=r"KNeighborsRegressor\(\), whose fit takes no sample_weight"
    ):
        LatentStateRegressor("group", expert=KNeighborsRegressor()).fit(X, y)


def test_states_are_described(fitted):
    model, X, y = fitted
    states = model.states_
    assert {name: values.shape for name, values in states.items()} == {
        "share": (2,),
        "target": (2,),
        "noise": (2,),
        "covariates": (2, 4),
    }
    np.testing.assert_allclose(states["share"].sum(), 1.0)
    np.testing.assert_allclose(states["share"] @ states["target"], y.mean())
    np.testing.assert_allclose(
        states["share"] @ states["covariates"], X.drop(columns="group").mean(), atol=1e-12
    )
    np.testing.assert_allclose(states["noise"], 1.0, atol=0.3)  # the truth
    assert model.n_iter_ >= 1


def test_an_unseen_level_is_predicted_by_the_prior_or_refused(fitted):
    _, X, y = fitted
    model = regressor(unseen="prior").fit(X, y)
    new = X[:10].assign(group="never seen")
    assert np.isfinite(model.predict(new)).all()
    (mixture,) = model.encoder_.mixtures_.values()
    (maps,) = model.encoder_.normal_scores_.values()
    rows = maps.apply(list(new.drop(columns="group").to_numpy().T))
    np.testing.assert_allclose(
        model.predict_states(new), mixture.posterior(rows, np.tile(mixture.prior, (10, 1)))
    )
    strict = regressor(unseen="error").fit(X, y)
    strict.predict(X)
    with pytest.raises(errors.UnseenLevelError, match=r"'group' holds 1 unseen level\(s\): never seen"):
        strict.predict(new)


def test_nulls_in_the_group_are_a_level_or_unknown_or_refused():
    X, y = drawn(300)
    X.loc[:20, "group"] = None
    found = {missing: regressor(missing=missing).fit(X, y) for missing in ("level", "prior")}
    assert len(found["level"].levels_) == len(found["prior"].levels_) + 1
    assert all(np.isfinite(model.predict(X)).all() for model in found.values())
    with pytest.raises(errors.MissingLevelError, match="'group' holds 21 null"):
        LatentStateRegressor("group", missing="error").fit(X, y)


def test_without_a_group_it_is_a_mixture_of_regressions():
    rng = np.random.default_rng(0)
    state = rng.integers(0, 2, 600)
    x = rng.normal(size=(600, 1)) + 6.0 * state[:, None]
    y = np.where(state == 1, 3.0, -3.0) * (x[:, 0] - 6 * state) + 0.1 * rng.normal(size=600)
    model = LatentStateRegressor(n_states=2).fit(x, y)
    assert model.levels_.tolist() == ["all"]
    assert model.score(x, y) > 0.85
    assert Ridge().fit(x, y).score(x, y) < 0.3


def test_several_groups_are_crossed():
    X, y = drawn(400)
    X["town"] = np.where(np.arange(400) % 2, "u", "v")
    both = regressor(["group", "town"]).fit(X, y)
    crossed = regressor([("group", "town")]).fit(X, y)
    assert len(both.levels_) == len(X[["group", "town"]].drop_duplicates())
    np.testing.assert_allclose(both.predict(X), crossed.predict(X))
    new = X[:3].assign(town="w")
    np.testing.assert_allclose(both.predict(new), crossed.predict(new))


def test_no_part_of_the_group_is_a_covariate():
    X = pd.DataFrame({"zip": [1, 2, 1, 2], "shop": list("aabb"), "x": [1.0, 2.0, 3.0, 5.0]})
    for group in ("zip", ["zip", "shop"]):
        with pytest.raises(errors.GroupAsCovariateError, match="names 'zip', which is part of every group"):
            LatentStateRegressor(group, covariates=["x", "zip"]).fit(X, [1.0, 2.0, 3.0, 4.0])


def test_text_columns_join_by_indicators_and_new_ones_do_no_harm():
    X, y = drawn(300)
    X["colour"] = np.where(X["x1"] > 0, "red", "blue")
    model = regressor(categorical_covariates="share").fit(X, y)
    assert model.states_["covariates"].shape == (2, 6)
    assert np.isfinite(model.predict(X.assign(colour="green"))).all()


def test_every_library_gives_the_same_predictions(fitted):
    model, X, y = fitted
    other = regressor().fit(pl.from_pandas(X), pl.Series(y))
    np.testing.assert_allclose(other.predict(pl.from_pandas(X)), model.predict(X))


@pytest.mark.parametrize("expert", [None, Ridge()])
def test_weights_count_rows(expert):
    X, y = drawn(150)
    times = np.random.default_rng(0).integers(0, 3, 150)
    place = np.repeat(np.arange(150), times)
    X.loc[np.flatnonzero(times == 0)[0], "x1"] = np.inf  # a row of weight 0 may hold anything
    model = regressor(expert=expert)
    weighted = clone(model).fit(X, y, sample_weight=times)
    repeated = clone(model).fit(X.iloc[place], y[place])
    np.testing.assert_allclose(weighted.predict(X[-30:]), repeated.predict(X[-30:]), atol=1e-5)
    for name, values in repeated.states_.items():
        np.testing.assert_allclose(weighted.states_[name], values, atol=1e-5)


@pytest.mark.parametrize("expert", [None, Ridge()])
def test_a_model_is_pickled_and_cloned(expert):
    X, y = drawn(100)
    model = regressor(expert=expert).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    copy = clone(model)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        copy.predict(X)
    np.testing.assert_array_equal(copy.fit(X, y).predict(X), model.predict(X))


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y = drawn(100)
    model = regressor().fit(X, y)
    before = model.predict(X)
    with pytest.raises(errors.NoCovariateError, match="none of which is a numeric covariate"):
        model.fit(X[["group"]], y)
    np.testing.assert_array_equal(model.predict(X), before)


def test_the_target_may_be_the_name_of_a_column(fitted):
    model, X, y = fitted
    whole = pl.DataFrame({"sales": y, **X.to_dict("list")})
    named = regressor().fit(whole, "sales")
    assert named.feature_names_in_.tolist() == list(X.columns)
    np.testing.assert_array_equal(named.predict(whole), model.predict(X))
    assert named.score(whole, "sales") == model.score(X, y)


def test_it_is_scored_like_any_regressor():
    X, y = drawn(300)
    assert cross_val_score(regressor(), X, y, cv=3).mean() > 0.4


@pytest.mark.parametrize(
    ("y", "what"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (["a", "b", "c", "d"], "y is not a column of numbers: could not convert string to float"),
        ([1.0, np.nan, 2.0, 3.0], "Input y contains NaN"),
        ([1.0, np.inf, 2.0, 3.0], "Input y contains infinity"),
        (np.ones((4, 2)), r"y has the shape \(4, 2\)"),
        (np.ones((4, 1, 1)), "y is not a column of numbers: Found array with dim 3"),
    ],
)
def test_a_target_that_is_no_column_of_numbers_is_refused(y, what):
    X = pd.DataFrame({"group": list("aabb"), "x": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(errors.TargetError, match=f"{what}(.|\n)*Hint: "):
        LatentStateRegressor("group").fit(X, y)


def test_a_target_of_another_length_is_refused():
    X, y = drawn(50)
    with pytest.raises(errors.LengthMismatchError, match="X has 50 row"):
        LatentStateRegressor("group").fit(X, y[:49])


def test_a_column_vector_as_target_is_accepted_with_a_warning():
    X, y = drawn(100)
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        model = regressor().fit(X, y[:, None])
    np.testing.assert_array_equal(model.predict(X), regressor().fit(X, y).predict(X))


def test_a_target_may_be_constant_or_without_noise():
    X, _ = drawn(200)
    np.testing.assert_allclose(regressor().fit(X, np.full(200, 5.0)).predict(X), 5.0)
    exact = X["x1"].to_numpy() * 3
    model = regressor().fit(X, exact)
    assert model.score(X, exact) > 0.99


def test_covariates_that_are_null_everywhere_do_no_harm():
    X, y = drawn(200)
    X["x1"] = np.nan
    for expert in (None, Ridge()):
        model = regressor(expert=expert).fit(X, y)
        assert np.isfinite(model.predict(X)).all()


def test_new_levels_are_predicted_with_the_states_that_their_rows_suggest():
    sample = simulate("latent_linear", n=2000, n_latent=2, levels_per_latent=10, seed=0)
    X = pd.DataFrame(sample.columns())
    new = X["group"].isin(X["group"].unique()[::5])
    model = LatentStateRegressor("group", n_states=2, n_starts=1).fit(X[~new], sample.y[~new])
    rows, y = X[new], sample.y[new]
    error = ((model.predict(rows) - y) ** 2).mean()
    # Only the rows of the level itself count.
    alone = rows[rows["group"] == rows["group"].iloc[0]]
    np.testing.assert_allclose(
        model.predict(rows)[(rows["group"] == alone["group"].iloc[0])], model.predict(alone)
    )
    model.encoder_.set_params(unseen="prior")
    assert error < 0.95 * ((model.predict(rows) - y) ** 2).mean()
