"""Learners that predict for levels without a target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor

from sufrep import ColdStartEstimator, ContrastEncoder, LatentStateEncoder, MeansEncoder
from sufrep._sklearn import InvalidParameterError as ScikitLearnError
from sufrep.encoders._cold_start import _random_parts
from sufrep.errors import InvalidParameterError, TargetError

TREE = DecisionTreeRegressor(max_depth=5, min_samples_leaf=5, random_state=0)


def shops(seed: int = 0, n: int = 400, n_levels: int = 20) -> tuple[pd.DataFrame, np.ndarray]:
    """Shops of two kinds, which the covariates distinguish, with different targets."""
    rng = np.random.default_rng(seed)
    shop = np.append(np.arange(n_levels), rng.integers(0, n_levels, n - n_levels))
    X = pd.DataFrame(rng.normal(size=(n, 3)) + 1.0 * (shop % 2)[:, None], columns=["a", "b", "c"])
    y = X["a"].to_numpy() + 3.0 * (shop % 2) + rng.normal(size=n)
    return X.assign(shop=[f"shop {number}" for number in shop]), y


def new_rows(n: int = 10, seed: int = 1) -> pd.DataFrame:
    return shops(seed)[0][:n].assign(shop="never seen")


def means() -> MeansEncoder:
    return MeansEncoder("shop", shrinkage="auto")


@pytest.mark.parametrize("learner", [Ridge(), TREE])
def test_known_levels_are_predicted_exactly_as_by_a_pipeline(learner):
    X, y = shops()
    known, pipeline = shops(1)[0], make_pipeline(means(), clone(learner)).fit(X, y)
    model = ColdStartEstimator(means(), learner).fit(X, y)
    np.testing.assert_array_equal(model.predict(known), pipeline.predict(known))
    mixed = pd.concat([known[:5], new_rows(3)])
    np.testing.assert_array_equal(model.predict(mixed)[:5], pipeline.predict(known[:5]))


def test_a_new_level_depends_on_no_row_but_its_own():
    X, y = shops()
    model = ColdStartEstimator(means(), Ridge()).fit(X, y)
    new = new_rows(6)
    others = pd.concat([new, X[:50], new_rows(7, seed=2).assign(shop="another")])
    order = np.random.default_rng(0).permutation(len(others))
    expected = model.predict(new)
    found = np.empty(len(others))
    found[order] = model.predict(others.iloc[order])
    np.testing.assert_allclose(found[:6], expected, rtol=1e-12)
    assert not np.allclose(model.predict(new[:1]), expected[:1])  # one row says less than six


def test_predictions_are_those_of_the_two_learners_mixed():
    X, y = shops()
    model = ColdStartEstimator(means(), Ridge()).fit(X, y)
    new = new_rows(4)
    plain = Ridge().fit(X[["a", "b", "c"]], y).predict(new[["a", "b", "c"]])
    encoded = means().fit(X).transform(new)
    weight = np.clip(model.blend_[0] + model.blend_[1] / 4, 0, 1)
    expected = (1 - weight) * plain + weight * model.new_level_estimator_.predict(encoded)
    assert 0 < weight <= 1
    np.testing.assert_allclose(model.predict(new), expected)


def test_the_weights_are_those_of_least_squares_on_held_out_levels():
    """With learners that are known beforehand, all predictions of held-out levels can be made by hand."""
    X, y = shops()
    rows: dict[str, list[Any]] = {"with": [], "without": []}

    class Fixed(LinearRegression):
        """Predicts the sum of its columns, and remembers what it was asked for."""

        def predict(self, X):
            found = np.asarray(X).sum(axis=1)
            rows["with" if np.shape(X)[1] > 3 else "without"].append(np.asarray(X))
            return found

    model = ColdStartEstimator(means(), Fixed(), n_folds=4).fit(X, y)
    with_vector, without = (np.vstack(rows[name]) for name in ("with", "without"))
    np.testing.assert_array_equal(with_vector[:, :3], without)
    assert len(without) == len(X)
    target = pd.Series(y, index=X["a"])[without[:, 0]].to_numpy()
    parts = pd.DataFrame(with_vector[:, 3:]).groupby([0, 1, 2])[0].transform("size").to_numpy()
    difference = with_vector[:, 3:].sum(axis=1)
    columns = np.column_stack([difference, difference / parts])
    expected = np.linalg.lstsq(columns, target - without.sum(axis=1), rcond=None)[0]
    np.testing.assert_allclose(model.blend_, expected, rtol=1e-6)


def test_levels_are_split_into_parts_of_1_to_64_rows():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, 20_000)
    parts = _random_parts(codes, rng)
    table = pd.DataFrame({"level": codes, "part": parts}).groupby("part")["level"].agg(["nunique", "size"])
    assert (table["nunique"] == 1).all()
    assert table["size"].between(1, 64).all()
    assert sorted(set(parts)) == list(range(len(table)))
    # The logarithm is uniform: a sixth of the parts is below the sixth root of 64, and so on.
    share = [(table["size"] <= 2**power).mean() for power in (1.5, 3, 4.5)]
    np.testing.assert_allclose(share, [0.25, 0.5, 0.75], atol=0.06)


@pytest.mark.parametrize(("effect", "most"), [("of the kind", 0.8), ("of the level", 1.05)])
def test_new_levels_gain_where_covariates_know_the_level_and_lose_nothing_elsewhere(effect, most):
    X, y = shops(n=3000, n_levels=60)
    if effect == "of the level":
        y = X["a"].to_numpy() + np.random.default_rng(0).normal(size=60)[pd.factorize(X["shop"])[0]]
    new, numbers = X["shop"].isin(X["shop"].unique()[::4]), X[["a", "b", "c"]]
    model = ColdStartEstimator(MeansEncoder("shop"), TREE).fit(X[~new], y[~new])
    dropped = clone(TREE).fit(numbers[~new], y[~new]).predict(numbers[new])
    assert ((model.predict(X[new]) - y[new]) ** 2).mean() < most * ((dropped - y[new]) ** 2).mean()


@pytest.mark.parametrize("library", [pl.DataFrame, pa.table])
def test_every_library_gives_the_same(library):
    X, y = shops()
    new = pd.concat([X[:3], new_rows(3)])
    expected = ColdStartEstimator(means(), Ridge()).fit(X, y).predict(new)
    frames = [library(frame.to_dict("list")) for frame in (X, new)]
    np.testing.assert_allclose(
        ColdStartEstimator(means(), Ridge()).fit(frames[0], y).predict(frames[1]), expected
    )


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_the_target_may_be_the_name_of_a_column(library):
    X, y = shops(n=100)
    columns = X.to_dict("list")
    whole, without = library({"sales": y, **columns}), library(columns)
    named, given = (ColdStartEstimator(MeansEncoder("shop"), Ridge()) for _ in range(2))
    named.fit(whole, "sales")
    expected = given.fit(without, y).predict(without)
    assert named.feature_names_in_.tolist() == list(X.columns)
    np.testing.assert_array_equal(named.predict(whole), expected)
    np.testing.assert_array_equal(named.predict(without), expected)
    assert named.score(whole, "sales") == given.score(without, y)


def test_columns_that_only_frames_can_hold_reach_the_learner():
    X, y = shops()
    X["view"] = pd.Categorical(["sea", "city"] * 200)
    learner = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=5)
    model = ColdStartEstimator(means().set_output(transform="pandas"), learner).fit(X, y)
    assert np.isfinite(model.predict(X.assign(shop="new"))).all()


def test_classes_have_probabilities_that_add_up():
    X, y = shops()
    kinds = np.array(["low", "middle", "high"])[np.digitize(y, [0.5, 2.0])]
    model = ColdStartEstimator(means(), LogisticRegression()).fit(X, kinds)
    new = pd.concat([X[:3], new_rows(5)])
    found = model.predict_proba(new)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(new))
    pipeline = make_pipeline(means(), LogisticRegression()).fit(X, kinds)
    np.testing.assert_array_equal(found[:3], pipeline.predict_proba(X[:3]))
    assert model.score(X, kinds) == pipeline.score(X, kinds) > 0.6
    assert not hasattr(ColdStartEstimator(means(), Ridge()).fit(X, y), "predict_proba")


def test_a_class_that_a_fold_lacks_does_no_harm():
    X, y = shops()
    kinds = np.where(X["shop"] == "shop 3", "rare", np.where(y > 1, "high", "low"))
    model = ColdStartEstimator(means(), LogisticRegression(), n_folds=10).fit(X, kinds)
    assert model.predict_proba(new_rows()).shape == (10, 3)


def test_a_level_of_one_of_several_groups_may_be_new():
    X, y = shops()
    X["city"] = np.random.default_rng(3).choice(list("uvwxyz"), len(X))
    model = ColdStartEstimator(MeansEncoder(["shop", "city"]), Ridge()).fit(X, y)
    rows = X[:4].assign(shop=["shop 1", "new", "shop 1", "new"], city=["u", "u", "new", "new"])
    pipeline = make_pipeline(MeansEncoder(["shop", "city"]), Ridge()).fit(X, y)
    same = np.isclose(model.predict(rows), pipeline.predict(rows), rtol=1e-12)
    assert same.tolist() == [True, False, False, False]


def test_rows_of_weight_zero_change_no_known_level_and_weights_reach_the_learner():
    X, y = shops()
    weights = np.ones(len(X))
    weights[::3] = 0
    found = ColdStartEstimator(means(), Ridge()).fit(X, y, sample_weight=weights)
    expected = make_pipeline(means(), Ridge()).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_allclose(found.predict(X), expected.predict(X))
    assert np.isfinite(found.predict(new_rows())).all()


@pytest.mark.parametrize("encoder", [ContrastEncoder("shop"), MeansEncoder("shop", unseen="prior")])
def test_where_a_new_level_has_no_vector_of_its_own_its_rows_are_still_predicted(encoder):
    X, y = shops()
    model = ColdStartEstimator(encoder, TREE).fit(X, y)
    dropped = clone(TREE).fit(X[["a", "b", "c"]], y).predict(new_rows()[["a", "b", "c"]])
    assert np.abs(model.predict(new_rows()) - dropped).max() < 1e-9


@pytest.mark.parametrize("shop", [["only"] * 400, [None] * 400], ids=["one level", "nulls"])
def test_one_level_says_nothing_about_others(shop):
    X, y = shops()
    model = ColdStartEstimator(MeansEncoder("shop"), Ridge()).fit(X.assign(shop=shop), y)
    assert model.blend_.tolist() == [0.0, 0.0]
    dropped = Ridge().fit(X[["a", "b", "c"]], y)
    new = new_rows()
    np.testing.assert_allclose(model.predict(new), dropped.predict(new[["a", "b", "c"]]))


def test_a_null_that_training_did_not_see_counts_as_new():
    X, y = shops()
    model = ColdStartEstimator(means(), Ridge()).fit(X, y)
    assert np.isfinite(model.predict(X[:2].assign(shop=[None, None]))).all()


def test_it_is_searched_and_cross_validated_like_any_learner():
    X, y = shops()
    model = ColdStartEstimator(LatentStateEncoder("shop", n_states=2, n_starts=1), Ridge(), n_folds=2)
    assert cross_val_score(model, X, y, cv=2).mean() > 0.4
    assert {"encoder__n_states", "estimator__alpha", "n_folds"} <= set(model.get_params())
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), model.fit(X, y).predict(X))


@pytest.mark.parametrize(
    ("model", "kind", "message"),
    [
        (
            ColdStartEstimator(MeansEncoder("shop", remainder="drop"), Ridge()),
            InvalidParameterError,
            "remainder",
        ),
        (ColdStartEstimator(MeansEncoder("shop", unseen="error"), Ridge()), InvalidParameterError, "unseen"),
        (ColdStartEstimator(means(), LinearSVC()), InvalidParameterError, "a classifier with predict_proba"),
        (ColdStartEstimator(Ridge(), Ridge()), ScikitLearnError, "must be an instance of .*GroupEncoder"),
        (ColdStartEstimator(means(), Ridge(), n_folds=1), ScikitLearnError, "'n_folds' .* in the range"),
    ],
)
def test_what_makes_no_sense_is_refused(model, kind, message):
    X, y = shops()
    with pytest.raises(kind, match=message):
        model.fit(X, y)


def test_a_target_is_needed():
    with pytest.raises(TargetError, match="requires y to be passed"):
        ColdStartEstimator(means(), Ridge()).fit(shops()[0], None)


def test_a_class_that_only_one_level_has_does_no_harm():
    X = pd.DataFrame({"shop": list("aaabbbccc"), "size": np.arange(9.0)})
    for learner in (LogisticRegression(), HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=1)):
        model = ColdStartEstimator(MeansEncoder("shop"), learner).fit(X, [1, 1, 1, 0, 0, 0, 0, 0, 0])
        assert model.predict_proba(X.assign(shop="new")).shape == (9, 2)


def test_rows_without_a_level_have_nothing_in_common():
    X, y = shops()
    model = ColdStartEstimator(means(), Ridge()).fit(X, y)
    nulls = X[:20].assign(shop=None)
    np.testing.assert_allclose(model.predict(nulls)[:1], model.predict(nulls[:1]))


def test_rows_without_a_level_are_known_if_training_had_some():
    X, y = shops()
    X.loc[::7, "shop"] = None
    encoder = MeansEncoder("shop", missing="prior")
    model, pipeline = ColdStartEstimator(encoder, TREE).fit(X, y), make_pipeline(encoder, TREE).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), pipeline.predict(X))


def test_a_column_that_changes_no_prediction_has_no_weight():
    X, y = shops()
    assert ColdStartEstimator(ContrastEncoder("shop"), Ridge()).fit(X, y).blend_.tolist() == [0.0, 0.0]
