"""Cells: which are chosen, what they get, and that no row sees its own target."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sufrep
from sufrep import CellsEncoder
from sufrep.errors import InvalidParameterError, UnseenLevelError

few = settings(max_examples=settings.default.max_examples // 3)
seeds = st.integers(0, 2**32 - 1)
GROUPS = ["store", "brand", "day"]


def table(seed: int = 0, n: int = 2000) -> tuple[pd.DataFrame, np.ndarray]:
    """A price for each brand in each store, and a day that says nothing."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 15, (n, 3)).astype(str), columns=GROUPS)
    price = rng.normal(size=(15, 15))
    y = price[X["store"].astype(int), X["brand"].astype(int)] + rng.normal(size=n)
    return X, y.to_numpy() if hasattr(y, "to_numpy") else y


def test_the_pair_that_says_more_than_its_groups_is_a_group_of_its_own():
    X, y = table()
    encoder = CellsEncoder(GROUPS, unscreened=0).fit(X, y)
    assert encoder.cells_["groups"] == [("store", "brand")]
    assert list(encoder.representations_) == [*GROUPS, "store:brand"]
    names = [f"{group}_{end}" for group in [*GROUPS, "store:brand"] for end in ("log_count", "target_mean")]
    assert encoder.get_feature_names_out().tolist() == names
    same = CellsEncoder([*GROUPS, ("store", "brand")], max_cells=0).fit(X, y)
    np.testing.assert_array_equal(encoder.transform(X), same.transform(X))
    np.testing.assert_array_equal(encoder.fit_transform(X, y), same.fit_transform(X, y))


def test_few_pairs_are_all_chosen_whatever_the_target_is():
    X, y = table()
    for target in (y, np.random.default_rng(1).normal(size=len(y))):
        cells = CellsEncoder(GROUPS, max_order=2).fit(X, target).cells_["groups"]
        assert sorted(cells) == [("brand", "day"), ("store", "brand"), ("store", "day")]
    assert CellsEncoder(GROUPS, unscreened=2).fit(X, y).cells_["groups"] == [("store", "brand")]


def test_a_pair_that_is_a_group_already_is_not_added():
    X, y = table()
    encoder = CellsEncoder([*GROUPS, ("store", "brand")], unscreened=0).fit(X, y)
    assert encoder.cells_["groups"] == []


@few
@given(seeds, st.sampled_from(["continuous", "binary", "multiclass"]))
def test_the_target_of_a_row_moves_its_own_columns_by_exactly_nothing(seed, kind):
    """Given the choice, which is made on all rows."""
    X, y = table(seed, n=300)
    y = {"continuous": y, "binary": (y > 0) * 1, "multiclass": np.digitize(y, [-1, 0, 1])}[kind]
    options = {"target_type": kind, "max_cells": 0, "remainder": "drop"}
    group = [*GROUPS, ("store", "brand"), ("store", "brand", "day")]
    row = seed % 300
    moved = y.copy()
    moved[row] = y[row] + 100 if kind == "continuous" else (y[row] + 1) % (2 if kind == "binary" else 4)
    before, after = (CellsEncoder(group, **options).fit_transform(X, target) for target in (y, moved))
    np.testing.assert_array_equal(before[row], after[row])
    assert not np.array_equal(before, after)


def test_nor_does_it_where_the_choice_stays_the_same():
    X, y = table()
    moved = y.copy()
    moved[5] += 100
    first, second = CellsEncoder(GROUPS, unscreened=0), CellsEncoder(GROUPS, unscreened=0)
    before, after = first.fit_transform(X, y), second.fit_transform(X, moved)
    assert first.cells_["groups"] == second.cells_["groups"] == [("store", "brand")]
    np.testing.assert_array_equal(before[5], after[5])


def test_a_training_row_does_not_count_itself():
    X, y = table(n=300)
    encoder = CellsEncoder(GROUPS, max_cells=0, remainder="drop")
    train, new = encoder.fit_transform(X, y), encoder.transform(X)
    counts = X.groupby("store")["store"].transform("size")
    np.testing.assert_allclose(train[:, 0], np.log(counts))
    np.testing.assert_allclose(new[:, 0], np.log1p(counts))


def test_weights_count_rows():
    X, y = table(n=300)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.0], 300)
    encoder = CellsEncoder(GROUPS, max_cells=0, remainder="drop").fit(X, y, sample_weight=weights)
    repeated = CellsEncoder(GROUPS, max_cells=0, remainder="drop")
    repeated.fit(X.loc[np.repeat(X.index, weights.astype(int))], np.repeat(y, weights.astype(int)))
    np.testing.assert_allclose(encoder.transform(X), repeated.transform(X))


def test_a_cell_that_fit_did_not_see_has_no_row_and_the_overall_mean():
    X, y = table()
    encoder = CellsEncoder(GROUPS, unscreened=0, remainder="drop").fit(X, y)
    found = encoder.transform(pd.DataFrame({"store": ["0"], "brand": ["new"], "day": ["new"]}))
    known = encoder.representations_["store"].lookup(["0"])[0]
    np.testing.assert_allclose(found[0], [*known, *[0.0, y.mean()] * 3])
    with pytest.raises(UnseenLevelError, match="'brand' holds 1 unseen"):
        encoder.set_params(unseen="error").transform(X[:1].assign(brand="new"))


def test_a_group_alone_gets_its_size_and_mean():
    X, y = table()
    encoder = CellsEncoder("store", remainder="drop").fit(X, y)
    assert encoder.get_feature_names_out().tolist() == ["store_log_count", "store_target_mean"]
    assert encoder.cells_ == {"groups": [], "gain": [], "z": []}


def test_the_number_of_columns_is_limited():
    X, y = table()
    for most, expected in ((60, 8), (8, 8), (7, 6), (1, 6)):
        assert (
            len(CellsEncoder(GROUPS, unscreened=0, max_columns=most).fit(X, y).get_feature_names_out())
            == expected
        )
    classes = np.digitize(y, [-1, 0, 1])
    few_columns = CellsEncoder(GROUPS, unscreened=0, max_columns=19, target_type="multiclass").fit(X, classes)
    assert len(few_columns.get_feature_names_out()) == 15


def test_classes_are_predicted_by_their_shares():
    X, y = table()
    labels = np.where(y > 0, "high", "low")
    encoder = CellsEncoder("store", remainder="drop").fit(X, labels)
    # Of two classes, the second.
    assert encoder.representations_["store"].prior[1] == pytest.approx((labels == "low").mean())
    three = CellsEncoder("store", remainder="drop").fit(X, np.array(["a", "b", "c"])[np.digitize(y, [-1, 1])])
    names = ["store_log_count", *(f"store_target_mean_{label}" for label in "abc")]
    assert three.get_feature_names_out().tolist() == names
    np.testing.assert_allclose(three.transform(X)[:, 1:].sum(axis=1), 1.0)


def test_nulls_are_levels_of_cells_too():
    X, y = table()
    X.loc[X["brand"] == "3", "brand"] = None
    with_null = CellsEncoder(GROUPS, unscreened=0, remainder="drop").fit(X, y)
    assert ("1", None) in with_null.representations_["store:brand"]
    without = CellsEncoder(GROUPS, unscreened=0, remainder="drop", missing="prior").fit(X, y)
    assert all(None not in level for level in without.representations_["store:brand"].levels.tolist())
    row = without.transform(X[X["brand"].isna()])[0]
    np.testing.assert_allclose(row[-2:], [0.0, y[X["brand"].notna()].mean()], atol=0.1)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_chosen_cells_are_saved(library, tmp_path):
    X, y = table()
    X = library(X.to_dict("list"))
    encoder = CellsEncoder(GROUPS, unscreened=0).fit(X, y)
    encoder.save(tmp_path / "cells.sufrep")
    loaded = sufrep.load(tmp_path / "cells.sufrep")
    assert loaded.cells_ == encoder.cells_
    np.testing.assert_array_equal(loaded.transform(X), encoder.transform(X))


def test_lazy_frames_are_encoded_by_joins():
    X, y = table()
    lazy = pl.from_pandas(X.assign(y=y, row=np.arange(len(y)))).lazy()
    encoder = CellsEncoder(GROUPS, unscreened=0, sample_rows=10_000).fit(lazy, "y")
    assert encoder.cells_["groups"] == [("store", "brand")]
    found = encoder.transform(lazy.drop("y")).collect().sort("row").drop("row").to_numpy()
    expected = CellsEncoder(GROUPS, unscreened=0).fit(X, y).transform(X)
    np.testing.assert_allclose(found, expected)


def test_earlier_rows_know_no_later_target():
    X, y = table()
    X = X.assign(day=np.arange(len(y)) // 20)
    options = {"cv": "ordered", "time": "day", "max_cells": 0, "remainder": "drop"}
    group = ["store", "brand", ("store", "brand")]
    later = np.where(np.arange(len(y)) < 1000, y, y + 50)
    before, after = (CellsEncoder(group, **options).fit_transform(X, target) for target in (y, later))
    np.testing.assert_array_equal(before[:1000, 1::2], after[:1000, 1::2])
    chosen = CellsEncoder(["store", "brand"], cv="ordered", time="day").fit(X, y)
    assert chosen.cells_["groups"] == [("store", "brand")]


def test_folds_that_can_be_used_only_once_are_refused():
    X, y = table()
    folds = iter([(np.arange(1000), np.arange(1000, 2000)), (np.arange(1000, 2000), np.arange(1000))])
    with pytest.raises(InvalidParameterError, match="a list of folds, because a generator works only once"):
        CellsEncoder(GROUPS, unscreened=0, cv=folds).fit(X, y)
