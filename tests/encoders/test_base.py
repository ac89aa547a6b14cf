"""What all encoders share: outputs, names, chunks, rare levels and parameters."""

from __future__ import annotations

import datetime as dt
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils._param_validation import InvalidParameterError

import sufrep
from sufrep import ContrastEncoder, FisherEncoder, LowRankEncoder, MeansEncoder, MNLEncoder
from sufrep.encoders import METHODS, GroupEncoder
from sufrep.errors import (
    ChangedParametersError,
    ClashingNamesError,
    ColumnsMismatchError,
    InfiniteValueError,
    LengthMismatchError,
    MagnitudeError,
    MissingLevelError,
    SampleWeightError,
    SufrepError,
    TargetError,
    UnknownGroupError,
    UnseenLevelError,
)

# Every example fits several encoders.
few = settings(max_examples=settings.default.max_examples // 5)

every_method = pytest.mark.parametrize("method", METHODS)
# Reading and writing of tables is the same for all; fisher and one_hot have paths of their own.
some_methods = pytest.mark.parametrize("method", ["one_hot", "fisher", "means"])
# One method of every class; the others differ in parameters only.
CLASSES = [
    *("one_hot", "multi_permutation", "fisher", "random_intercept", "crossed_effects", "mixed_model"),
    *("local_effect", "means", "low_rank", "sparse_low_rank", "mnl", "latent_state"),
    *("shares", "cells", "sufficient"),
]
# Hidden states, regressions, a choice and the exact logit need the rows; its closed form does not.
NEEDS_ROWS = (
    *("mnl", "latent_state", "random_intercept", "crossed_effects", "mixed_model", "local_effect"),
    *("shares", "cells"),
    "sufficient",
)
CHUNKED = {**{method: {} for method in CLASSES if method not in NEEDS_ROWS}, "mnl": {"solver": "lda"}}
QUICK = {
    "sufficient": {
        "estimator": DecisionTreeRegressor(max_depth=2, random_state=0),
        "families": ("prediction",),
        "cv": 2,
    },
}
every_chunked_method = pytest.mark.parametrize("method", CHUNKED)

HOUSES = {
    "zipcode": ["b", "a", None, "b", "c", "a"],
    "sqft": [1.0, 2.0, 3.0, None, 5.0, 7.0],
    "floors": [1, 2, 2, 3, 1, 2],
}
PRICE = np.array([1.5, 0.5, 1.0, 2.5, 0.25, 0.75])
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
every_library = pytest.mark.parametrize("library", MAKERS)


def make_encoder(method: str, group: Any = None, **parameters: Any) -> GroupEncoder:
    return sufrep.make_encoder(method, group, **{**QUICK.get(method, {}), **parameters})


def houses(library="pandas", **changes):
    return MAKERS[library]({**HOUSES, **changes})


# Names of the output.

NAMES = {
    "one_hot": ["zipcode_b", "zipcode_c", "zipcode_missing"],
    "deviation": ["zipcode_deviation1", "zipcode_deviation2", "zipcode_deviation3"],
    "difference": ["zipcode_difference1", "zipcode_difference2", "zipcode_difference3"],
    "helmert": ["zipcode_helmert1", "zipcode_helmert2", "zipcode_helmert3"],
    "repeated_effect": ["zipcode_repeated_effect1", "zipcode_repeated_effect2", "zipcode_repeated_effect3"],
    "simple_effect": ["zipcode_simple_effect1", "zipcode_simple_effect2", "zipcode_simple_effect3"],
    "permutation": ["zipcode_permutation"],
    "multi_permutation": [f"zipcode_permutation{j}" for j in (1, 2, 3, 4)],
    "fisher": ["zipcode_fisher"],
    "random_intercept": ["zipcode_intercept"],
    "crossed_effects": ["zipcode_effect", "zipcode_total"],
    "mixed_model": ["zipcode_fit"],
    "local_effect": ["zipcode_local_effect"],
    "target_mean": ["zipcode_mean_target"],
    "means": ["zipcode_mean_sqft", "zipcode_mean_floors"],
    "low_rank": ["zipcode_u1"],
    "sparse_low_rank": ["zipcode_sparse1"],
    "mnl": ["zipcode_intercept", "zipcode_slope_sqft", "zipcode_slope_floors"],
    "latent_state": ["zipcode_state1", "zipcode_state2"],
    "shares": ["zipcode_share1", "zipcode_share2"],
    "cells": ["zipcode_log_count", "zipcode_target_mean"],
    "sufficient": [],  # dropped: six rows are too few for four levels
}


@every_method
def test_columns_are_named_after_group_and_meaning(method):
    encoder = make_encoder(method, "zipcode")
    if method in ("low_rank", "sparse_low_rank"):
        encoder.set_params(n_components=1)
    if method == "latent_state":
        encoder.set_params(n_states=2)
    encoder.fit(houses(), PRICE)
    names = ["sqft", "floors", *NAMES[method]]
    assert encoder.get_feature_names_out().tolist() == names
    assert encoder.get_feature_names_out(list(HOUSES)).tolist() == names
    assert encoder.transform(houses()).shape == (6, len(names))


def test_names_other_than_those_of_fit_are_refused():
    encoder = MeansEncoder("zipcode").fit(houses())
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        encoder.get_feature_names_out(["zip", "sqft", "floors"])


def test_columns_of_an_array_get_generated_names_unless_names_are_passed():
    encoder = MeansEncoder(0).fit(houses().to_numpy(dtype=object))
    assert encoder.get_feature_names_out().tolist() == ["x1", "x2", "x0_mean_x1", "x0_mean_x2"]
    better = encoder.get_feature_names_out(["zip", "area", "floors"]).tolist()
    assert better == ["area", "floors", "zip_mean_area", "zip_mean_floors"]
    with pytest.raises(ValueError, match=r"length equal to number of features \(3\), got 2"):
        encoder.get_feature_names_out(["zip", "area"])


def test_a_column_of_an_array_may_be_called_by_its_generated_name():
    rows = houses().to_numpy(dtype=object)
    np.testing.assert_array_equal(MeansEncoder("x0").fit_transform(rows), MeansEncoder(0).fit_transform(rows))


def test_dropping_the_remainder_drops_its_names():
    encoder = MeansEncoder("zipcode", remainder="drop").fit(houses())
    assert encoder.get_feature_names_out().tolist() == ["zipcode_mean_sqft", "zipcode_mean_floors"]


@every_library
def test_output_names_that_clash_are_refused(library):
    with pytest.raises(ClashingNamesError, match=r"two columns called 'zipcode_mean_sqft'.*\nHint: rename"):
        MeansEncoder("zipcode").fit(houses(library, zipcode_mean_sqft=["x"] * 6))
    alone = MeansEncoder("zipcode", remainder="drop").fit(houses(library, zipcode_mean_sqft=["x"] * 6))
    assert alone.get_feature_names_out().tolist() == NAMES["means"]


def test_names_of_two_groups_that_clash_are_refused():
    frame = pl.DataFrame({"a": ["a", "b_c"], "a_b": ["a", "c"]})
    with pytest.raises(ClashingNamesError, match="two columns called 'a_b_c'"):
        ContrastEncoder(["a", "a_b"]).fit(frame)


@every_library
@pytest.mark.parametrize("level", ["missing", "None", "nan"])
def test_a_level_called_missing_and_null_have_one_hot_columns_of_their_own(library, level):
    frame = MAKERS[library]({"zipcode": ["a", level, None]})
    result = make_encoder("one_hot", "zipcode").fit_transform(frame)
    assert sorted(result.sum(axis=1).tolist()) == [0, 1, 1]
    assert result.shape == (3, 2)


@every_library
def test_levels_called_missing_are_not_null(library):
    frame = MAKERS[library]({"zipcode": ["missing", None, "None", "nan"], "sqft": [1.0, 2.0, 3.0, 4.0]})
    assert MeansEncoder("zipcode").fit_transform(frame)[:, 1].tolist() == [1, 2, 3, 4]


# Before fit, and parameters.


@some_methods
@pytest.mark.parametrize(
    "use",
    [
        lambda encoder: encoder.transform(houses()),
        lambda encoder: encoder.get_feature_names_out(),
        lambda encoder: encoder.table(),
        lambda encoder: encoder.save("nowhere"),
    ],
    ids=["transform", "get_feature_names_out", "table", "save"],
)
def test_nothing_works_before_fit(method, use):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        use(make_encoder(method, "zipcode"))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("group", 1.5),
        ("group", {"zipcode"}),
        ("covariates", "sqft"),
        ("covariates", 1),
        ("categorical_covariates", "mean"),
        ("remainder", "keep"),
        ("unseen", "nan"),
        ("missing", "drop"),
        ("min_frequency", 0),
        ("min_frequency", -1),
        ("min_frequency", 0.0),
        ("min_frequency", 1.0),
        ("min_frequency", 2.5),
        ("min_frequency", "rare"),
    ],
)
def test_parameters_of_a_wrong_kind_are_refused_by_name(parameter, value):
    encoder = MeansEncoder("zipcode").set_params(**{parameter: value})
    for call in (encoder.fit, encoder.fit_transform, encoder.partial_fit):
        with pytest.raises(InvalidParameterError, match=f"The '{parameter}' parameter of MeansEncoder"):
            call(houses(), PRICE)


@some_methods
def test_fit_changes_no_parameter(method):
    encoder = make_encoder(method, "zipcode", covariates=["sqft"], min_frequency=0.1)
    before = encoder.get_params()
    encoder.fit(houses(), PRICE)
    assert encoder.get_params() == before


# Rows and columns that are kept.

INDEXES = {
    "unsorted": pd.Index([9, 3, 5, 1, 0, 2]),
    "duplicated": pd.Index([1, 1, 0, 0, 1, 0]),
    "text": pd.Index(list("fbadce")),
    "dates": pd.date_range("2020-01-01", periods=6, freq="D")[::-1],
    "of two levels": pd.MultiIndex.from_product([["b", "a"], [3, 1, 2]], names=["s", "t"]),
}


@some_methods
@pytest.mark.parametrize("remainder", ["passthrough", "drop"])
@pytest.mark.parametrize("index", INDEXES)
def test_order_of_rows_and_index_are_kept(method, remainder, index):
    frame = houses().set_axis(INDEXES[index])
    encoder = make_encoder(method, "zipcode", remainder=remainder)
    expected = encoder.fit(frame, PRICE).transform(frame)
    encoder.set_output(transform="pandas")
    found = encoder.transform(frame)
    pd.testing.assert_index_equal(found.index, INDEXES[index])
    np.testing.assert_array_equal(found.to_numpy(), expected)
    pd.testing.assert_index_equal(encoder.fit_transform(frame, PRICE).index, INDEXES[index])


@some_methods
@few
@given(order=st.permutations(range(6)))
def test_rows_in_another_order_are_transformed_in_that_order(method, order):
    encoder = make_encoder(method, "zipcode").fit(houses(), PRICE)
    frame = houses("polars")
    np.testing.assert_array_equal(
        encoder.transform(frame[list(order)]), encoder.transform(frame)[list(order)]
    )


OTHERS = {
    "note": ["x", None, "", "y", "z", "😀"],
    "seen": [dt.date(2020, 1, day) for day in range(1, 7)],
    "at": [dt.datetime(2020, 1, day, 12) for day in range(1, 7)],
    "sold": [True, False, True, True, False, True],
    "maybe": [True, None, True, None, False, True],
    "count": [1, None, 3, 4, 5, 6],
}


def pandas_with_everything():
    typed = {
        "note": pd.Series(OTHERS["note"]),
        "kind": pd.Categorical(["u", "v", "u", None, "v", "u"], categories=["w", "v", "u"], ordered=True),
        "nullable": pd.array(OTHERS["note"], dtype="string"),
        "object": pd.Series([1, "x", None, (1, 2), {"a": 1}, [3]], dtype=object),
        "at": pd.to_datetime(OTHERS["at"]).tz_localize("Europe/Oslo"),
        "sold": OTHERS["sold"],
        "maybe": pd.array(OTHERS["maybe"], dtype="boolean"),
        "count": pd.array(OTHERS["count"], dtype="Int16"),
        "small": np.arange(6, dtype="float32"),
        "arrow": pd.array(OTHERS["note"], dtype=pd.ArrowDtype(pa.large_string())),
        "day": pd.array(OTHERS["seen"], dtype=pd.ArrowDtype(pa.date32())),
        "nothing": pd.Series([None] * 6, dtype=object),
    }
    return pd.DataFrame({**HOUSES, **typed})


def polars_with_everything():
    typed = {
        **OTHERS,
        "kind": pl.Series(["u", "v", "u", None, "v", "u"], dtype=pl.Enum(["w", "v", "u"])),
        "colour": pl.Series(["u", "v", "u", None, "v", "u"], dtype=pl.Categorical),
        "tags": [[1], [2, 3], None, [], [4], [5]],
        "point": [{"a": 1, "b": "x"}] * 6,
        "small": pl.Series(range(6), dtype=pl.UInt8),
        "nothing": pl.Series([None] * 6, dtype=pl.Null),
    }
    return pl.DataFrame({**HOUSES, **typed})


@some_methods
def test_other_columns_pass_through_pandas_with_values_and_types(method):
    frame = pandas_with_everything()
    encoder = make_encoder(method, "zipcode", covariates=["sqft", "floors"]).set_output(transform="pandas")
    result = encoder.fit_transform(frame, PRICE)
    others = frame.drop(columns="zipcode")
    pd.testing.assert_frame_equal(result[list(others.columns)], others)
    assert (result.drop(columns=list(others.columns)).dtypes == np.float64).all()


@some_methods
def test_other_columns_pass_through_polars_with_values_and_types(method):
    frame = polars_with_everything()
    encoder = make_encoder(method, "zipcode", covariates=["sqft", "floors"]).set_output(transform="polars")
    result = encoder.fit_transform(frame, PRICE)
    others = frame.drop("zipcode")
    assert_frame_equal(result.select(others.columns), others)
    assert set(result.drop(others.columns).schema.values()) == {pl.Float64()}


def test_columns_of_pyarrow_pass_through_with_their_values():
    table = houses("pyarrow", **OTHERS)
    encoder = MeansEncoder("zipcode").set_output(transform="polars")
    assert_frame_equal(
        encoder.fit_transform(table).select(list(OTHERS)), pl.from_arrow(table.select(list(OTHERS)))
    )


@every_library
@some_methods
def test_the_default_output_holds_objects_when_text_passes_through(library, method):
    result = make_encoder(method, "zipcode").fit_transform(houses(library, note=list("uvwxyz")), PRICE)
    assert result.dtype == object
    assert result[:, 2].tolist() == list("uvwxyz")
    assert {type(value) for value in result[0, 3:]} == {float}


@every_library
@some_methods
def test_the_default_output_holds_numbers_when_only_numbers_pass_through(library, method):
    assert make_encoder(method, "zipcode").fit_transform(houses(library), PRICE).dtype == np.float64


@every_library
def test_dates_pass_through_the_default_output(library):
    result = MeansEncoder("zipcode").fit_transform(houses(library, seen=OTHERS["seen"]))
    assert result[:, 2].tolist() == OTHERS["seen"]


@every_library
@some_methods
def test_the_input_is_not_changed(library, method):
    frame, same = houses(library), houses(library)
    make_encoder(method, "zipcode").fit_transform(frame, PRICE)
    assert frame.equals(same)


@every_library
@pytest.mark.parametrize("container", ["pandas", "polars"])
@some_methods
def test_dropping_the_remainder_works_in_every_library_and_container(library, container, method):
    encoder = make_encoder(method, "zipcode", remainder="drop")
    expected = encoder.fit_transform(houses(library), PRICE)
    found = encoder.set_output(transform=container).fit_transform(houses(library), PRICE)
    np.testing.assert_array_equal(found.to_numpy(), expected)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_a_frame_of_the_group_alone_works_in_every_container(container):
    frame = pl.DataFrame({"zipcode": ["a", "b", "a"]})
    result = make_encoder("one_hot", "zipcode").set_output(transform=container).fit_transform(frame)
    assert result["zipcode_b"].to_list() == [0, 1, 0]


# Degenerate data.


def polars_of(**columns):
    return pl.DataFrame({"zipcode": ["a", "b", "a", "b", "c"], "sqft": [1.0, 2, 3, 5, 4], **columns})


LITTLE = {
    "one row": pl.DataFrame({"zipcode": ["a"], "sqft": [1.0]}),
    "one row without a level": pl.DataFrame({"zipcode": [None], "sqft": [1.0]}),
    "one row without a covariate": pl.DataFrame(
        {"zipcode": ["a"], "sqft": [None]}, schema_overrides={"sqft": float}
    ),
    "one level": polars_of(zipcode=["a"] * 5),
    "levels of one row": polars_of(zipcode=list("abcde")),
    "levels of one row and many covariates": pl.DataFrame(
        {"zipcode": ["a", "b", "c"], **{f"x{j}": [float(j), j**2 / 7, -1.0] for j in range(6)}}
    ),
    "a constant covariate": polars_of(floors=[2] * 5),
    "only a constant covariate": polars_of(sqft=[2.0] * 5),
    "only a covariate of zeros": polars_of(sqft=[0.0] * 5),
    "a covariate that is constant within levels": polars_of(floors=[1, 2, 1, 2, 3]),
    "two equal covariates": polars_of(again=[1.0, 2, 3, 5, 4]),
    "a covariate of nulls": polars_of(floors=pl.Series([None] * 5, dtype=pl.Float64)),
    "a covariate of NaN": polars_of(floors=[float("nan")] * 5),
    "only a covariate of nulls": polars_of(sqft=pl.Series([None] * 5, dtype=pl.Float64)),
    "a covariate that one level lacks": polars_of(floors=[1.0, None, 2.0, None, 3.0]),
    "covariates never seen together": polars_of(
        sqft=[1.0, None, 2.0, None, 3.0], floors=[None, 1, None, 2, None]
    ),
    "a boolean covariate": polars_of(sqft=[True, False, True, None, None]),
    "a column without type": polars_of(nothing=pl.Series([None] * 5, dtype=pl.Null)),
    "large and small covariates": polars_of(
        sqft=[1e12, 1e12 + 1, 1e12, 1e12 + 3, 1e12], tiny=[1e-12, 0, 0, 0, 2e-12]
    ),
}


@pytest.mark.parametrize("little", LITTLE)
def test_degenerate_data_are_encoded_by_finite_numbers(little):
    frame = LITTLE[little]
    y = np.linspace(-1.0, 1.0, len(frame)) + 0.5
    for method in CLASSES:
        encoder = make_encoder(method, "zipcode", remainder="drop", **QUICK.get(method, {}))
        assert np.isfinite(encoder.fit_transform(frame, y)).all(), method
        assert np.isfinite(encoder.representations_["zipcode"].prior).all(), method


@some_methods
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
def test_columns_of_nothing_but_nulls_pass_through(library, method):
    rows = {**HOUSES, "nothing": [None] * 6}
    frame = {
        "pandas": lambda: pd.DataFrame({**rows, "nothing": pd.Series([None] * 6, dtype=object)}),
        "polars": lambda: pl.DataFrame(rows),
        "pyarrow": lambda: pa.table({**rows, "nothing": pa.nulls(6)}),
        "numpy": lambda: np.array(list(zip(*rows.values(), strict=True)), dtype=object),
    }[library]()
    result = make_encoder(method, 0).fit_transform(frame, PRICE)
    assert pd.isna(result[:, 2]).all()
    assert np.isfinite(result[:, 3:].astype(float)).all()


# Rare levels. In a fold, other levels are rare than in all rows, so that another component may be chosen.

every_fixed_class = pytest.mark.parametrize("method", [name for name in CLASSES if name != "sufficient"])
labels = st.lists(st.sampled_from("aabbbcccdefgh"), min_size=2, max_size=20)


def pooled_by_hand(group, least, weights=None):
    """The group with all levels rarer than ``least`` called ~, which sorts last."""
    weights = np.ones(len(group)) if weights is None else weights
    total = {level: weights[[g == level for g in group]].sum() for level in group}
    rare = {level for level, weight in total.items() if weight < least}
    return [g if g not in rare or len(rare) < 2 else "~" for g in group]


def rows_of(group, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-8, 8, size=(len(group), 2)) / 4
    return pl.DataFrame({"g": group, "u": rows[:, 0], "v": rows[:, 1]}), rng.normal(size=len(group))


def vectors(encoder):
    """The vector of every level."""
    table = encoder.representations_["g"]
    return dict(zip(table.levels.tolist(), table.values.tolist(), strict=True))


def assert_pooled(encoder, by_hand, group, pooled):
    found, expected = vectors(encoder), vectors(by_hand)
    assert set(found) == set(group)
    for level, new in zip(group, pooled, strict=True):
        np.testing.assert_allclose(found[level], expected[new], rtol=1e-6, atol=1e-9)


@every_fixed_class
@few
@given(group=labels, least=st.integers(1, 5) | st.floats(0.01, 0.9))
def test_rare_levels_are_encoded_as_if_they_were_one(method, group, least):
    frame, y = rows_of(group)
    pooled = pooled_by_hand(group, least if isinstance(least, int) else least * len(group))
    encoder = make_encoder(method, "g", min_frequency=least).fit(frame, y)
    by_hand = make_encoder(method, "g").fit(frame.with_columns(g=pl.Series(pooled)), y)
    assert_pooled(encoder, by_hand, group, pooled)


@every_chunked_method
@pytest.mark.parametrize("least", [3, 0.2])
def test_levels_that_are_rare_in_every_chunk_need_not_be_rare_in_all(method, least):
    group = list("abcdaabcfaabcgh")
    frame, y = rows_of(group)
    pooled = pooled_by_hand(group, 3)
    encoder = make_encoder(method, "g", min_frequency=least, **CHUNKED[method])
    for start in range(0, 15, 5):
        encoder.partial_fit(frame[start : start + 5], y[start : start + 5])
    by_hand = make_encoder(method, "g", **CHUNKED[method]).fit(frame.with_columns(g=pl.Series(pooled)), y)
    assert pooled.count("~") == 4
    assert_pooled(encoder, by_hand, group, pooled)


def test_weights_count_for_rarity():
    group, weights = list("aabbcd"), np.array([1.0, 1.0, 1.0, 0.5, 2.0, 1.5])
    frame, _ = rows_of(group)
    pooled = pooled_by_hand(group, 2, weights)
    assert pooled == ["a", "a", "~", "~", "c", "~"]
    encoder = MeansEncoder("g", min_frequency=2).fit(frame, sample_weight=weights)
    by_hand = MeansEncoder("g").fit(frame.with_columns(g=pl.Series(pooled)), sample_weight=weights)
    assert_pooled(encoder, by_hand, group, pooled)


def test_rare_nulls_are_pooled_as_levels_are():
    frame = pl.DataFrame({"g": ["a", "a", "b", None], "x": [1.0, 3.0, 5.0, 9.0]})
    assert MeansEncoder("g", min_frequency=2).fit_transform(frame)[:, 1].tolist() == [2, 2, 7, 7]


def test_one_rare_level_alone_keeps_its_vector():
    frame = pl.DataFrame({"g": ["a", "a", "b"], "x": [1.0, 3.0, 5.0]})
    assert MeansEncoder("g", min_frequency=2).fit_transform(frame)[:, 1].tolist() == [2, 2, 5]


@pytest.mark.parametrize("method", CLASSES)
def test_all_levels_may_be_rare(method):
    frame, y = rows_of(list("abcd"))
    encoder = make_encoder(method, "g", min_frequency=5).fit(frame, y)
    table = encoder.representations_["g"]
    assert table.n_levels == 4
    assert (table.values == table.values[0]).all()


def test_a_level_called_infrequent_is_not_pooled_with_rare_levels():
    frame = pl.DataFrame({"g": ["a", "b", "infrequent", "infrequent", "c", "c"]})
    result = ContrastEncoder("g", min_frequency=2).fit_transform(frame)
    assert result.shape == (6, 2)
    assert result[0].tolist() == result[1].tolist() != result[2].tolist()


@pytest.mark.parametrize(
    "encoder",
    [
        FisherEncoder("g", min_frequency=4),
        MeansEncoder("g", use_target=True, min_frequency=4),
        LowRankEncoder("g", use_target=True, n_components=1, min_frequency=4),
    ],
    ids=lambda encoder: type(encoder).__name__,
)
def test_what_a_level_is_called_does_not_matter_even_if_rare_ones_are_pooled(encoder):
    rng = np.random.default_rng(0)
    level = np.array([*range(10), *rng.integers(0, 4, 50)])
    x, y = rng.normal(size=60) + level, rng.normal(size=60) + level
    found = []
    for name in ("zzz", "infrequent"):
        shop = [name if code == 3 else f"s{code}" for code in level]
        found.append(clone(encoder).fit_transform(pl.DataFrame({"g": shop, "x": x}), y))
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_min_frequency_is_that_of_the_fit():
    frame = pl.DataFrame({"g": list("aabbcd"), "x": [1.0, 2, 3, 4, 5, 6]})
    encoder = MeansEncoder("g", min_frequency=2).fit(frame)
    before = encoder.transform(frame)
    np.testing.assert_array_equal(encoder.set_params(min_frequency=100).transform(frame), before)


def test_a_fit_forgets_the_target_of_an_earlier_one():
    frame, y = pl.DataFrame({"g": list("aabb"), "x": [1.0, 2, 3, 4]}), [1.0, 2.5, 3, 4]
    encoder = MeansEncoder("g", use_target=True).fit(frame, y)
    encoder.set_params(use_target=False).fit(frame)
    assert not hasattr(encoder, "target_type_")
    assert not hasattr(encoder, "n_targets_")


def test_training_rows_whose_level_has_no_weight_are_no_error():
    frame = pl.DataFrame({"g": list("aab"), "x": [1.0, 3, 9]})
    encoder = MeansEncoder("g", unseen="error", remainder="drop")
    assert encoder.fit_transform(frame, sample_weight=[1, 1, 0]).ravel().tolist() == [2, 2, 2]
    with pytest.raises(UnseenLevelError, match="unseen level"):
        encoder.transform(frame)


def test_a_column_of_arrays_passes_through():
    frame = pd.DataFrame({"g": list("aab"), "x": [1.0, 3, 9]})
    frame["picture"] = [np.zeros(2), None, np.ones(2)]
    result = MeansEncoder("g").set_output(transform="pandas").fit_transform(frame)
    assert result.columns.tolist() == ["x", "picture", "g_mean_x"]


# Chunks.


@pytest.mark.parametrize(
    ("first", "then"),
    [({"use_target": True}, {"use_target": False}), ({}, {"use_target": True})],
    ids=["without the target", "with the target"],
)
def test_parameters_must_not_change_between_chunks(first, then):
    frame, y = pl.DataFrame({"g": list("aabb"), "x": [1.0, 2, 3, 4]}), [1.0, 2.5, 3, 4]
    encoder = MeansEncoder("g", **first).partial_fit(frame, y)
    with pytest.raises(ChangedParametersError, match=r"since the first chunk(.|\n)*Hint: call fit"):
        encoder.set_params(**then).partial_fit(frame, y)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_that_does_without_rows_learns_in_chunks(method):
    assert hasattr(make_encoder(method, "zipcode"), "partial_fit") == (method not in NEEDS_ROWS)
    assert hasattr(MNLEncoder(solver="lda"), "partial_fit")


@every_chunked_method
def test_the_first_chunk_is_a_fit(method):
    encoder = make_encoder(method, "zipcode", **CHUNKED[method])
    expected = encoder.fit(houses(), PRICE).transform(houses())
    again = make_encoder(method, "zipcode", **CHUNKED[method]).partial_fit(houses(), PRICE)
    np.testing.assert_array_equal(again.transform(houses()), expected)


NULLS = {
    "pandas objects": pd.DataFrame({**HOUSES, "sqft": pd.Series([None] * 6, dtype=object)}),
    "pandas floats": pd.DataFrame({**HOUSES, "sqft": [np.nan] * 6}),
    "polars Null": pl.DataFrame({**HOUSES, "sqft": pl.Series([None] * 6, dtype=pl.Null)}),
    "pyarrow null": pa.table({**HOUSES, "sqft": pa.nulls(6)}),
}


@pytest.mark.parametrize("chunk", NULLS)
def test_a_chunk_of_null_covariates_adds_nothing_to_the_means(chunk):
    # Read in chunks, a column without a single value has no numeric type.
    expected = MeansEncoder("zipcode").fit(houses()).transform(houses())[:, 2]
    encoder = MeansEncoder("zipcode").partial_fit(houses()).partial_fit(NULLS[chunk])
    np.testing.assert_allclose(encoder.transform(houses())[:, 2], expected)


def state(encoder):
    """Everything that the encoder holds, down to the bits of its arrays."""
    held = dict(vars(encoder))
    held["representations_"] = {
        name: (table.levels.tolist(), table.values.tobytes(), table.columns, table.prior.tobytes())
        for name, table in held["representations_"].items()
    }
    held["moments_"] = {
        name: (moments.levels.tolist(), moments.covariates, moments.weight.tobytes(), moments.mean.tobytes())
        for name, moments in held["moments_"].items()
    }
    return {name: repr(value) for name, value in held.items()}


BAD_CHUNKS = {
    "infinite covariate": ({"sqft": [np.inf] * 6}, {}, InfiniteValueError, "contains infinity"),
    "weights": ({}, {"sample_weight": [-1.0] * 6}, SampleWeightError, "is negative"),
    "length of y": ({}, {"y": PRICE[:2]}, LengthMismatchError, "y has 2"),
    "nulls in the group": ({"zipcode": [None] * 6}, {}, MissingLevelError, "holds 6 null"),
    "unhashable group": ({"zipcode": [[1]] * 6}, {}, TypeError, "Column 'zipcode' holds a list"),
    "text for numbers": ({"sqft": list("uvwxyz")}, {}, SufrepError, "sqft"),
}


@pytest.mark.parametrize("method", ["one_hot", "fisher", "means"])
@pytest.mark.parametrize("bad", BAD_CHUNKS)
def test_a_chunk_that_is_refused_leaves_the_encoder_as_it_was(bad, method):
    changes, arguments, error, message = BAD_CHUNKS[bad]
    needs_numbers = make_encoder(method)._needs.covariates != "unused"
    if "sqft" in changes and not needs_numbers:
        changes, error, message = {"floors": None}, ColumnsMismatchError, "- floors"
    encoder = make_encoder(method, "zipcode", missing="error", **CHUNKED[method])
    encoder.partial_fit(houses(zipcode=list("abcabc")), PRICE)
    before = state(encoder)
    chunk = {**HOUSES, "zipcode": list("abdabd"), **changes}
    frame = pd.DataFrame({name: values for name, values in chunk.items() if values is not None})
    with pytest.raises(error, match=message):
        encoder.partial_fit(frame, **{"y": PRICE, **arguments})
    assert state(encoder) == before


def test_a_third_class_that_is_refused_leaves_the_encoder_as_it_was():
    encoder = make_encoder("fisher", "zipcode").partial_fit(houses(), [0, 1, 0, 1, 0, 1])
    before = state(encoder)
    with pytest.raises(TargetError, match="y has 3 classes"):
        encoder.partial_fit(houses(), [0, 1, 2, 1, 0, 1])
    assert state(encoder) == before


@some_methods
def test_an_encoder_whose_first_chunk_was_refused_is_not_fitted(method):
    encoder = make_encoder(method, "zipcode")
    with pytest.raises(SampleWeightError, match="is zero in every row"):
        encoder.partial_fit(houses(), PRICE, sample_weight=np.zeros(6))
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        encoder.transform(houses())
    encoder.partial_fit(houses(), PRICE)
    assert len(encoder.transform(houses())) == 6


def test_a_fit_that_is_refused_leaves_an_encoder_that_still_transforms():
    encoder = MeansEncoder("zipcode").fit(houses())
    expected = encoder.transform(houses())
    with pytest.raises(InfiniteValueError, match="contains infinity"):
        encoder.fit(pd.DataFrame({"zipcode": ["a"], "other": [np.inf]}))
    np.testing.assert_array_equal(encoder.transform(houses()), expected)


def test_moments_of_another_solver_are_not_left_behind():
    encoder = MNLEncoder("zipcode", solver="lda").fit(houses())
    encoder.set_params(solver="lbfgs").fit(houses(zipcode=list("uvwuvw")))
    assert encoder.moments_["zipcode"].levels.tolist() == list("uvw")


def test_numbers_without_squares_have_means_but_no_second_moments():
    frame, huge = (pl.DataFrame({"g": list("aabb"), "x": [1.0, 2, 3, 4]}).with_columns(x=pl.col("x") * size)
                   for size in (1.0, 1e200))  # fmt: skip
    encoder = MeansEncoder("g").partial_fit(frame)
    assert encoder.moments_["g"].order == 2
    encoder.partial_fit(huge)
    assert encoder.moments_["g"].order == 1
    assert encoder.representations_["g"].values.ravel() == pytest.approx([0.75e200, 1.75e200])
    with pytest.raises(MagnitudeError, match="as large as 4e\\+200"):
        MeansEncoder("g", shrinkage="auto").fit(huge)


# Looking at the fitted encoder.


def test_the_group_need_be_named_only_if_there_are_several():
    one = MeansEncoder("zipcode").fit(houses())
    assert one.table().equals(one.table("zipcode"))
    two = MeansEncoder(["zipcode", "kind"]).fit(houses(kind=list("uvuvuv")))
    assert two.table("kind")["kind"].tolist() == ["u", "v"]
    with pytest.raises(UnknownGroupError, match="there are 2: zipcode, kind"):
        two.table()
    with pytest.raises(UnknownGroupError, match="No group called 'sort' was encoded"):
        two.table("sort")


def test_sums_of_one_pass_do_not_depend_on_weights_of_zero():
    weights = np.array([1.0, 2.0, 0.0, 1.0, 0.0, 3.0])
    counts = weights > 0
    encoder = LowRankEncoder("zipcode", n_components=1).fit(houses(), sample_weight=weights)
    without = LowRankEncoder("zipcode", n_components=1).fit(houses()[counts], sample_weight=weights[counts])
    np.testing.assert_allclose(encoder.transform(houses()), without.transform(houses()))


@pytest.mark.parametrize("level", ["z00007", "never"])
@pytest.mark.parametrize("parameters", [{}, {"min_frequency": 2}, {"shrinkage": "auto"}], ids=str)
def test_one_row_does_not_look_at_all_levels(parameters: dict[str, Any], level: str) -> None:
    """Serving: a table of 20,000 levels and 5 columns has 800 kB, of which one row needs nothing else."""
    rng = np.random.default_rng(0)
    codes = np.append(np.arange(20_000), rng.integers(0, 10_000, 20_000))
    columns = {f"x{j}": rng.normal(size=len(codes)) for j in range(5)}
    frame = pl.DataFrame({"zip": [f"z{code:05}" for code in codes], **columns})
    encoder = MeansEncoder("zip", **parameters).set_output(transform="polars").fit(frame)
    row = frame[:1].with_columns(zip=pl.lit(level))
    encoder.transform(row)  # what is found out once, for all later rows
    tracemalloc.start()
    encoder.transform(row)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200_000


@pytest.mark.parametrize("method", ["means", "one_hot", "low_rank", "latent_state", "mixed_model"])
def test_rows_have_the_same_vectors_alone_and_together(method: str) -> None:
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {"g": rng.integers(0, 9, n).astype(str), "a": rng.normal(size=n), "b": rng.normal(size=n)}
    )
    y = rng.normal(size=n)
    parameters = {"latent_state": {"n_states": 2, "output": "both"}}.get(method, {})
    encoder = sufrep.make_encoder(method, "g", min_frequency=5, **parameters).fit(frame, y)
    rows = frame[:30].assign(g=[*frame["g"][:24], None, *["x"] * 2, *"yzy"])
    together = encoder.set_params(unseen="prior").transform(rows)
    for number in range(len(rows)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            alone = encoder.transform(rows[number : number + 1])
        np.testing.assert_allclose(alone[0], together[number], rtol=1e-12)
