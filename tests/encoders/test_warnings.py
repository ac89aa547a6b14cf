"""Warnings about columns that were probably overlooked: the group alone, and text that passes through."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor
from skrub import TableVectorizer

from sufrep import (
    ColdStartEstimator,
    CrossedEffectsEncoder,
    MeansEncoder,
    MixedModelEncoder,
    RandomInterceptEncoder,
    SufficientEncoder,
    ToNumbers,
    compare,
    make_encoder,
    sufficiency_check,
)
from sufrep.encoders import METHODS, NoCovariateWarning, TextColumnWarning

OURS = (NoCovariateWarning, TextColumnWarning)
QUICK = {"sufficient": {"estimator": DecisionTreeRegressor(max_depth=2), "families": ("prediction",)}}
# They use covariates where there are any.
OPTIONAL = ["random_intercept", "crossed_effects", "mixed_model", "local_effect", "sufficient"]
UNUSED = ["one_hot", "permutation", "fisher", "target_mean"]


@pytest.fixture
def houses() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "zip": [f"z{number % 8}" for number in range(80)],
            "size": rng.normal(size=80),
            "view": rng.choice(["sea", "hill"], 80),
            "price": rng.normal(size=80),
        }
    )


def ours(call: Callable[[], Any]) -> list[str]:
    """The warnings of these two kinds that a call gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in caught if issubclass(warning.category, OURS)]


# The group alone


@pytest.mark.parametrize("call", ["fit", "fit_transform"])
@pytest.mark.parametrize("method", OPTIONAL)
def test_the_group_alone_is_reported_once_where_covariates_would_be_used(method, call, houses):
    encoder = make_encoder(method, "zip", **QUICK.get(method, {}))
    (text,) = ours(lambda: getattr(encoder, call)(houses[["zip"]], houses["price"]))
    assert text.splitlines() == [
        "Found X with 1 feature(s), none of which is a numeric covariate other than the group column(s) "
        f"'zip'. {type(encoder).__name__} works without covariates, but learns more with them.",
        "Hint: pass the whole frame and name the group, as in group='zipcode'; covariates=[] confirms that "
        "there are none.",
    ]


def test_all_optional_covariates_are_covered():
    optional = [name for name, (kind, fixed) in METHODS.items() if _needs(kind, fixed) == "optional"]
    assert sorted(optional) == sorted([*OPTIONAL, "target_mean"])


def _needs(kind: Any, fixed: dict[str, Any]) -> str:
    return str(kind("zip", **fixed)._needs.covariates)


@pytest.mark.parametrize("method", OPTIONAL)
def test_an_empty_list_of_covariates_confirms_that_there_are_none(method, houses):
    encoder = make_encoder(method, "zip", covariates=[], **QUICK.get(method, {}))
    assert not ours(lambda: encoder.fit(houses[["zip"]], houses["price"]))


@pytest.mark.parametrize("method", UNUSED)
def test_encoders_that_use_no_covariates_are_silent(method, houses):
    assert not ours(lambda: make_encoder(method, "zip").fit(houses[["zip"]], houses["price"]))


@pytest.mark.parametrize("X", [[["a"], ["b"]] * 4, np.array([["a"], ["b"]] * 4, dtype=object)])
def test_arrays_are_reported_too(X):
    with pytest.warns(NoCovariateWarning, match=r"X with 1 feature.*'x0'.*\nHint: pass the whole frame"):
        RandomInterceptEncoder(0).fit(X, np.arange(8) / 3)


def test_several_groups_alone_are_reported_but_not_next_to_any_other_column(houses):
    encoder = RandomInterceptEncoder(["zip", "view"])
    with pytest.warns(NoCovariateWarning, match=r"X with 2 feature.*'zip', 'view'"):
        encoder.fit(houses[["zip", "view"]], houses["price"])
    assert not ours(lambda: encoder.fit(houses.drop(columns="price"), houses["price"]))
    # Text describes no levels, but whoever hands it over does not hand over one column.
    (text,) = ours(lambda: RandomInterceptEncoder("zip").fit(houses[["zip", "view"]], houses["price"]))
    assert text.startswith("Text passes through")


@pytest.mark.parametrize("encoder", [CrossedEffectsEncoder, SufficientEncoder])
def test_groups_that_are_learnt_together_are_not_alone(houses, encoder):
    rows = pd.concat([houses] * 10)
    assert not ours(lambda: encoder(["zip", "view"]).fit(rows[["zip", "view"]], rows["price"]))
    assert ours(lambda: encoder("zip").fit(rows[["zip"]], rows["price"]))


def test_a_column_transformer_and_a_table_vectorizer_hand_over_the_group_alone(houses):
    X, y = houses.drop(columns="price"), houses["price"]
    columns = ColumnTransformer([("zip", MixedModelEncoder("zip"), ["zip"])])
    with pytest.warns(NoCovariateWarning, match="pass the whole frame and name the group"):
        columns.fit_transform(X, y)
    vectorizer = TableVectorizer(cardinality_threshold=5, high_cardinality=MixedModelEncoder())
    with pytest.warns(NoCovariateWarning, match="pass the whole frame and name the group"):
        vectorizer.fit_transform(X, y)


def test_what_fits_an_encoder_many_times_warns_once(houses):
    rows, y = pd.concat([houses] * 4)[["zip"]], np.tile(houses["price"], 4)
    cold = ColdStartEstimator(RandomInterceptEncoder("zip"), LinearRegression())
    assert len(ours(lambda: cold.fit(rows, y))) == 1
    tree = DecisionTreeRegressor(max_depth=2)
    check = ours(lambda: sufficiency_check(RandomInterceptEncoder("zip"), rows, y, estimator=tree))
    assert len(check) == 1


@pytest.mark.parametrize("columns", [["zip"], ["zip", "view"], ["zip", "view", "size"]])
def test_a_comparison_and_its_best_pipeline_do_not_warn(houses, columns):
    rows, y = pd.concat([houses] * 4)[columns], np.tile(houses["price"], 4)

    def call() -> None:
        methods = ["random_intercept", "mixed_model"]
        found = compare(rows, y, group="zip", methods=methods, models="linear", cv=3, n_jobs=1)
        for method in methods:
            found.fitted_encoder(method, "linear")

    assert not ours(call)


# Text that passes through


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("call", ["fit", "fit_transform", "partial_fit"])
def test_text_next_to_the_group_is_reported(houses, library, call):
    X = library(houses.drop(columns="price").to_dict("list"))
    (text,) = ours(lambda: getattr(MeansEncoder("zip"), call)(X))
    assert text.splitlines() == [
        "Text passes through MeansEncoder as it is: 'view'. Most scikit-learn learners take numbers only.",
        "Hint: put ToNumbers(keep='zip') before the encoder, name the columns as groups, or set "
        "remainder='drop'.",
    ]


@pytest.mark.parametrize("method", [method for method in METHODS if method != "sufficient"])
def test_every_encoder_reports_text_once(method, houses):
    encoder = make_encoder(method, "zip")
    found = ours(lambda: encoder.fit_transform(houses.drop(columns="price"), houses["price"]))
    assert len(found) == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_components_do_not_report_text_again(houses, choose, n_jobs):
    choose("means", "mixed_model")
    encoder = make_encoder("sufficient", "zip", n_jobs=n_jobs)
    found = ours(lambda: encoder.fit_transform(houses.drop(columns="price"), houses["price"]))
    assert len(found) == 1


def test_five_columns_are_named(houses):
    many = houses.assign(**{f"text{number}": "a" for number in range(7)})
    found = ours(lambda: MeansEncoder(["zip", ("zip", "view")]).fit(many))
    assert len(found) == 1
    assert "'text0', 'text1', 'text2', 'text3', 'text4' and 2 more." in found[0]
    assert "ToNumbers(keep=['zip', 'view'])" in found[0]


def test_the_hint_can_be_followed(houses):
    X, y = houses.drop(columns="price"), houses["price"]
    for steps in (
        make_pipeline(ToNumbers(keep="zip"), MeansEncoder("zip")),
        MeansEncoder(["zip", "view"]),
        MeansEncoder("zip", remainder="drop"),
    ):
        assert not ours(lambda steps=steps: make_pipeline(steps, LinearRegression()).fit(X, y))


def test_text_with_a_role_is_not_reported(houses):
    assert not ours(lambda: MeansEncoder("zip", categorical_covariates="share").fit(houses))
    nested = houses.drop(columns="view").assign(area=houses["zip"].str[:1])
    assert not ours(lambda: MeansEncoder("zip", shrinkage="auto", parent={"zip": "area"}).fit(nested))
    classes = houses.drop(columns="view").assign(price=np.where(houses["price"] > 0, "high", "low"))
    assert not ours(lambda: make_encoder("target_mean", "zip").fit(classes, "price"))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_are_reported_only_where_the_output_is_an_array(houses, library):
    X = houses.drop(columns="price").astype({"view": "category"})
    X = X if library == "pandas" else pl.from_pandas(X)
    assert len(ours(lambda: MeansEncoder("zip").fit(X))) == 1
    assert not ours(lambda: MeansEncoder("zip").set_output(transform=library).fit(X))
    text = X.astype({"view": str}) if library == "pandas" else X.with_columns(pl.col("view").cast(pl.String))
    assert len(ours(lambda: MeansEncoder("zip").set_output(transform=library).fit(text))) == 1


def test_text_in_an_array_is_reported(houses):
    X = houses[["zip", "size", "view"]].to_numpy(dtype=object)
    with pytest.warns(TextColumnWarning, match=r"as it is: 'x2'\..*\n.*keep='x0'"):
        MeansEncoder(0).fit(X)


def test_only_the_first_chunk_is_reported(houses):
    encoder = MeansEncoder("zip")
    assert len(ours(lambda: encoder.partial_fit(houses))) == 1
    assert not ours(lambda: encoder.partial_fit(houses))


def test_a_fit_that_fails_does_not_warn(houses):
    def call() -> None:
        with pytest.raises(ValueError, match="Hint: add numeric columns"):
            MeansEncoder("zip").fit(houses[["zip", "view"]])

    assert not ours(call)


def test_a_learner_for_new_levels_reports_text(houses):
    X = houses.drop(columns="price").assign(view=houses["view"].astype("category"))
    encoder = MeansEncoder("zip").set_output(transform="pandas")
    learner = make_pipeline(TableVectorizer(), LinearRegression())
    y = houses["price"]
    assert not ours(lambda: ColdStartEstimator(encoder, learner).fit(X, y))
    X["view"] = X["view"].astype(str)
    assert len(ours(lambda: ColdStartEstimator(encoder, learner).fit(X, y))) == 1
