"""Encoders inside what other libraries build of them."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from skrub import ApplyToCols, TableVectorizer

import sufrep
from sufrep import ContrastEncoder, FisherEncoder, LowRankEncoder, MeansEncoder, errors
from sufrep.encoders import GroupEncoder

# One method of every class; the other methods differ in parameters only.
CLASSES = [
    *("one_hot", "multi_permutation", "fisher", "random_intercept", "mixed_model", "local_effect"),
    "crossed_effects",
    *("means", "low_rank", "sparse_low_rank", "mnl", "latent_state", "shares", "cells", "sufficient"),
]
WITHOUT_COVARIATES = ["one_hot", "helmert", "permutation", "fisher"]
QUICK = {
    "sufficient": {
        "estimator": DecisionTreeRegressor(max_depth=2, random_state=0),
        "families": ("prediction",),
        "cv": KFold(2, shuffle=True, random_state=0),
    },
    "latent_state": {"n_states": 2, "n_starts": 1},
}
every_class = pytest.mark.parametrize("method", CLASSES)


def make_encoder(method: str, group: Any = None, **parameters: Any) -> GroupEncoder:
    return sufrep.make_encoder(method, group, **{**QUICK.get(method, {}), **parameters})


@pytest.fixture
def shops() -> pd.DataFrame:
    """Two hidden kinds of shop, which the covariates tell apart; the index is no range."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 20, 240)
    rows = pd.DataFrame({"shop": [f"shop {code:02}" for code in level]})
    rows["price"] = rng.normal(size=240) + 2 * (level % 2)
    rows["size"] = rng.normal(size=240) - (level % 2)
    return rows.set_index(pd.Index(np.arange(240) * 3 + 7, name="id"))


@pytest.fixture
def y(shops: pd.DataFrame) -> np.ndarray:
    kind = shops["shop"].str[-1].astype(int).to_numpy() % 2
    return 4.0 * kind + shops["price"].to_numpy() + np.random.default_rng(1).normal(size=240)


@every_class
def test_an_encoder_is_a_step_of_a_pipeline(method, shops, y):
    pipeline = make_pipeline(make_encoder(method, "shop"), StandardScaler(), Ridge()).fit(shops, y)
    assert pipeline.predict(shops[:3]).shape == (3,)
    names = pipeline[:-1].get_feature_names_out().tolist()
    assert names[:2] == ["price", "size"]
    assert all(name.startswith("shop_") for name in names[2:])


@every_class
def test_an_encoder_is_a_part_of_a_column_transformer(method, shops, y):
    encoder = make_encoder(method, "shop", remainder="drop")
    columns = ColumnTransformer(
        [("shop", encoder, ["shop", "price", "size"]), ("numbers", StandardScaler(), ["price", "size"])]
    )
    found = columns.fit(shops, y).transform(shops)
    alone = encoder.fit(shops, y).transform(shops)
    np.testing.assert_allclose(found[:, : alone.shape[1]], alone, rtol=1e-12, atol=1e-12)
    assert columns.get_feature_names_out()[0].startswith("shop__shop_")


def test_columns_may_be_given_by_position_in_a_column_transformer(shops):
    columns = ColumnTransformer(
        [("shop", MeansEncoder(0, remainder="drop"), [0, 1])], remainder="passthrough"
    )
    assert columns.fit_transform(shops).shape == (240, 2)


def test_encoders_are_combined_in_a_feature_union(shops, y):
    union = FeatureUnion(
        [
            (method, make_encoder(method, "shop", remainder="drop"))
            for method in ("means", "low_rank", "fisher")
        ]
    )
    found = union.fit(shops, y).transform(shops)
    names = union.get_feature_names_out().tolist()
    assert found.shape == (240, len(names))
    assert names[:2] == ["means__shop_mean_price", "means__shop_mean_size"]
    assert names[-1] == "fisher__shop_fisher"
    union.set_output(transform="pandas")
    assert union.fit_transform(shops, y).index.equals(shops.index)


def test_parameters_are_searched(shops, y):
    pipeline = make_pipeline(LowRankEncoder("shop"), DecisionTreeRegressor(max_depth=4, random_state=0))
    grid = {"lowrankencoder__n_components": [1, 2], "lowrankencoder__standardize": [True, False]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(shops, y)
    assert search.best_score_ > 0.3
    assert search.best_estimator_[0].representations_["shop"].n_levels == 20


def test_methods_are_searched(shops, y):
    pipeline = make_pipeline(MeansEncoder("shop"), Ridge())
    grid = {"meansencoder": [make_encoder(method, "shop") for method in CLASSES]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(shops, y)
    assert len(search.cv_results_["mean_test_score"]) == len(CLASSES)


@every_class
def test_scores_are_cross_validated_on_levels_that_a_fold_may_miss(method, shops, y):
    rare = shops.assign(shop=shops["shop"].where(np.arange(240) > 2, "once " + shops["price"].astype(str)))
    pipeline = make_pipeline(make_encoder(method, "shop"), Ridge())
    scores = cross_val_score(pipeline, rare, y, cv=3, error_score="raise")
    assert np.isfinite(scores).all()


def test_the_encoding_helps_where_covariates_identify_the_hidden_state(shops, y):
    def score(*steps: Any) -> float:
        model = DecisionTreeRegressor(min_samples_leaf=10, random_state=0)
        return cross_val_score(make_pipeline(*steps, model), shops, y, cv=4, error_score="raise").mean()

    without = score(ColumnTransformer([("numbers", "passthrough", ["price", "size"])]))
    assert score(MeansEncoder("shop")) > without + 0.1


def test_fisher_is_cross_fitted_inside_a_pipeline():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"shop": [f"shop {i % 150}" for i in range(600)]})
    y = rng.normal(size=600)
    pipeline = make_pipeline(FisherEncoder("shop"), LinearRegression()).fit(rows, y)
    leaky = LinearRegression().fit(pipeline[:-1].transform(rows), y)
    # Ranks that were fitted to the noise of their own rows would seem to explain it.
    assert abs(pipeline[-1].coef_[0]) < 0.3 * abs(leaky.coef_[0])


def test_classes_are_predicted_by_name(shops, y):
    labels = np.where(y > 2, "dear", "cheap")
    pipeline = make_pipeline(FisherEncoder("shop"), LogisticRegression())
    predicted = cross_val_predict(pipeline, shops, labels, cv=3)
    assert (predicted == labels).mean() > 0.8


@every_class
def test_a_clone_has_the_parameters_and_nothing_learnt(method, shops, y):
    encoder = make_encoder(method, ["shop"], covariates=["price"], min_frequency=2).fit(shops, y)
    copy = clone(encoder)
    assert repr(copy.get_params()) == repr(encoder.get_params())  # learners do not compare equal
    with pytest.raises(NotFittedError, match="not fitted yet"):
        copy.transform(shops)


@every_class
def test_a_pickled_encoder_gives_the_same(method, shops, y):
    encoder = make_encoder(method, "shop").set_output(transform="pandas").fit(shops, y)
    copy = pickle.loads(pickle.dumps(encoder))
    pd.testing.assert_frame_equal(copy.transform(shops), encoder.transform(shops))


def weighted_fit(encoder: Any, rows: Any, y: Any, weights: Any) -> Any:
    """Fit the encoder as a step of a pipeline that routes the weights to it."""
    with sklearn.config_context(enable_metadata_routing=True):
        steps = encoder.set_fit_request(sample_weight=True), Ridge().set_fit_request(sample_weight=True)
        return make_pipeline(*steps).fit(rows, y, sample_weight=weights)[0]


@every_class
def test_weights_are_routed_through_a_pipeline(method, shops, y):
    weights = np.random.default_rng(2).integers(0, 4, 240).astype(float)
    routed = weighted_fit(make_encoder(method, "shop"), shops, y, weights)
    direct = make_encoder(method, "shop").fit(shops, y, sample_weight=weights)
    np.testing.assert_array_equal(routed.transform(shops), direct.transform(shops))
    np.testing.assert_array_equal(
        routed.representations_["shop"].weight, direct.representations_["shop"].weight
    )


def test_weights_that_were_not_requested_are_refused(shops, y):
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(MeansEncoder("shop"), Ridge().set_fit_request(sample_weight=True))
        with pytest.raises(UnsetMetadataPassedError, match="MeansEncoder"):
            pipeline.fit(shops, y, sample_weight=np.ones(240))
        pipeline[0].set_fit_request(sample_weight=False)
        plain = pipeline.fit(shops, y, sample_weight=np.arange(240.0))[0]
    np.testing.assert_array_equal(plain.transform(shops), MeansEncoder("shop").fit_transform(shops))


@every_class
def test_output_may_be_pandas(method, shops, y):
    encoder = make_encoder(method, "shop").set_output(transform="pandas")
    found = encoder.fit_transform(shops, y)
    assert isinstance(found, pd.DataFrame)
    assert found.index.equals(shops.index)
    assert found.columns.tolist() == encoder.get_feature_names_out().tolist()
    pd.testing.assert_series_equal(found["price"], shops["price"])
    plain = clone(encoder).set_output(transform="default").fit_transform(shops, y)
    np.testing.assert_array_equal(found.to_numpy(), plain)


@every_class
def test_output_may_be_polars(method, shops, y):
    rows = pl.from_pandas(shops)
    encoder = make_encoder(method, "shop").set_output(transform="polars")
    found = encoder.fit_transform(rows, y)
    assert isinstance(found, pl.DataFrame)
    assert found.columns == encoder.get_feature_names_out().tolist()
    assert found["price"].equals(rows["price"])
    plain = clone(encoder).set_output(transform="default").fit_transform(shops, y)
    np.testing.assert_allclose(found.to_numpy(), plain, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_output_may_be_of_another_library_than_the_input(output, shops):
    kind = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[output]
    for rows in (shops, pl.from_pandas(shops), pl.from_pandas(shops).to_arrow(), shops.to_numpy()):
        found = MeansEncoder(0).set_output(transform=output).fit_transform(rows)
        assert isinstance(found, kind)
        assert found.shape == (240, 4)


def test_text_and_dates_pass_through_unchanged(shops):
    rows = shops.assign(note="text", day=pd.Timestamp("2024-01-01"), flag=True)
    found = MeansEncoder("shop").set_output(transform="pandas").fit_transform(rows)
    assert found[["note", "day", "flag"]].dtypes.equals(rows[["note", "day", "flag"]].dtypes)


def test_sparse_one_hot_feeds_a_model_that_takes_it(shops, y):
    thin = make_pipeline(
        ContrastEncoder("shop", sparse_output=True), Ridge(solver="sparse_cg", tol=1e-10)
    ).fit(shops, y)
    thick = make_pipeline(ContrastEncoder("shop"), Ridge()).fit(shops, y)
    assert sparse.issparse(thin[:-1].transform(shops))
    new = shops[:5].assign(shop=["shop 00", "never seen", "shop 03", "shop 19", "shop 01"])
    np.testing.assert_allclose(thin.predict(new), thick.predict(new), atol=1e-4)


def test_sparse_one_hot_stays_sparse_in_a_column_transformer(shops):
    columns = ColumnTransformer(
        [("shop", ContrastEncoder("shop", sparse_output=True), ["shop"])],
        remainder="passthrough",
        sparse_threshold=1.0,
    )
    found = columns.fit_transform(shops)
    assert sparse.issparse(found)
    assert found.shape == (240, 21)


@pytest.mark.parametrize("method", WITHOUT_COVARIATES)
def test_encoders_without_covariates_work_in_a_table_vectorizer_of_skrub(method, shops, y):
    rows = shops.assign(town=shops["shop"].str[-1])
    vectorizer = TableVectorizer(cardinality_threshold=15, high_cardinality=make_encoder(method))
    found = vectorizer.fit(rows, y).transform(rows)
    expected = make_encoder(method, "shop", remainder="drop").fit(rows[["shop"]], y)
    names = expected.get_feature_names_out().tolist()
    np.testing.assert_allclose(found[names], expected.transform(rows[["shop"]]), atol=1e-12)
    assert {"price", "size"} <= set(found.columns)


def test_a_table_vectorizer_of_skrub_is_refused_where_covariates_are_needed(shops):
    vectorizer = TableVectorizer(cardinality_threshold=15, high_cardinality=MeansEncoder())
    with pytest.raises(errors.NoCovariateError, match="Hint: pass the whole frame and name the group"):
        vectorizer.fit(shops)


@pytest.mark.parametrize("method", ["means", "low_rank", "sparse_low_rank", "mnl", "latent_state"])
def test_one_column_in_a_column_transformer_is_refused_where_covariates_are_needed(method, shops):
    columns = ColumnTransformer([("shop", make_encoder(method, "shop"), ["shop"])], remainder="passthrough")
    with pytest.raises(errors.NoCovariateError, match="Hint: pass the whole frame and name the group"):
        columns.fit(shops)


@pytest.mark.filterwarnings("error::sufrep.errors.TextColumnWarning")
@pytest.mark.filterwarnings("error::sufrep.errors.NoCovariateWarning")
def test_the_recipes_of_the_guide_run():
    guide = (Path(sufrep.__file__).parents[2] / "docs" / "how-to" / "pipelines.md").read_text()
    names: dict[str, Any] = {}
    columns = []
    for recipe in re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL):
        exec(recipe, names)
        if "model" in names:
            model = names.pop("model")
            assert np.isfinite(model.predict(names["X"])).all()
            columns.append(set(model[:-1].get_feature_names_out()))
    assert len(columns) == 3
    for made in columns:
        assert {"zipcode_mean_sqft", "zipcode_mean_floors"} <= {
            name.removeprefix("zipcode__") for name in made
        }
    encoder, houses, X = names["encoder"], names["houses"], names["X"]
    np.testing.assert_array_equal(encoder.transform(houses), encoder.transform(X))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("method", ["one_hot", "means", "mixed_model"])
def test_skrub_applies_an_encoder_to_a_frame(method, library, shops, y):
    rows = shops if library == "pandas" else pl.from_pandas(shops)
    found = ApplyToCols(make_encoder(method, "shop")).fit(rows, y).transform(rows)
    assert type(found) is type(rows)
    expected = make_encoder(method, "shop").fit(rows, y)
    assert list(found.columns) == expected.get_feature_names_out().tolist()
    np.testing.assert_allclose(found.to_numpy(), expected.transform(rows), atol=1e-12)


@pytest.mark.parametrize("method", WITHOUT_COVARIATES)
def test_skrub_applies_encoders_without_covariates_to_one_column(method, shops, y):
    found = ApplyToCols(make_encoder(method), cols="shop").fit(shops, y).transform(shops)
    assert {"price", "size"} < set(found.columns)
    assert "shop" not in found.columns
