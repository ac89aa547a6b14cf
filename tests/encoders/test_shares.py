"""Shares over other categories: the vector of a level, what a training row gets, and what new levels get."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sufrep
from sufrep import MeansEncoder, SharesEncoder
from sufrep.errors import (
    ClashingNamesError,
    NoCovariateError,
    NoLevelError,
    RowsNeededError,
    UnseenLevelError,
)
from sufrep.solvers.correspondence import BinScores, bin_codes

few = settings(max_examples=settings.default.max_examples // 3)
seeds = st.integers(0, 2**32 - 1)


def table(seed: int = 0, n: int = 400, *, number: bool = True) -> pd.DataFrame:
    """Text columns and a number that depend on the same hidden state of the shop."""
    rng = np.random.default_rng(seed)
    shop = rng.integers(0, 30, n)
    state = shop % 3
    brand = np.where(rng.random(n) < 0.7, state * 10 + rng.integers(0, 10, n), rng.integers(0, 30, n))
    town = np.where(rng.random(n) < 0.8, shop // 2, rng.integers(0, 15, n))
    found = pd.DataFrame(
        {
            "shop": [f"shop {one}" for one in shop],
            "brand": [f"brand {one}" for one in brand],
            "town": [f"town {one}" for one in town],
        }
    )
    return found.assign(size=rng.normal(size=n) + state) if number else found


GROUPS = ["shop", "brand", "town"]


def scores_by_hand(encoder: SharesEncoder, X: pd.DataFrame, group: str) -> np.ndarray:
    """The scores of each row of frame X, from the tables of the encoder."""
    found: np.ndarray = np.zeros(1)
    others = [name for name in GROUPS if name != group]
    for name, scores in zip([*others, "size"], encoder.scores_[group], strict=True):
        if isinstance(scores, BinScores):
            found = found + scores.scores[bin_codes(X[name], scores.edges).codes]
        else:
            found = found + scores.lookup(X[name].tolist())
    return found


def test_a_level_is_the_shrunken_mean_of_the_scores_of_its_rows():
    X = table()
    encoder = SharesEncoder(GROUPS, covariates=["size"]).fit(X)
    for group in GROUPS:
        scores = scores_by_hand(encoder, X, group)
        names = [f"score{j}" for j in range(scores.shape[1])]
        plain = pd.DataFrame(scores, columns=names).assign(**{group: X[group]})
        expected = MeansEncoder(group, shrinkage="auto").fit(plain).representations_[group]
        found = encoder.representations_[group]
        assert found.levels.tolist() == expected.levels.tolist()
        np.testing.assert_allclose(found.values, expected.values, atol=1e-10)
        np.testing.assert_allclose(found.prior, expected.prior, atol=1e-10)


def test_a_training_row_gets_the_mean_without_itself():
    X = table()
    encoder = SharesEncoder("shop", covariates=["size"], remainder="drop")
    train = encoder.fit_transform(X)
    scores = encoder.scores_["shop"][0].scores[bin_codes(X["size"], encoder.scores_["shop"][0].edges).codes]
    plain = pd.DataFrame(scores).rename(columns="s{}".format).assign(shop=X["shop"])
    expected = MeansEncoder("shop", shrinkage="auto", leave_one_out=True, remainder="drop")
    np.testing.assert_allclose(train, expected.fit_transform(plain), atol=1e-10)
    assert not np.allclose(train, encoder.transform(X))


def test_a_level_with_one_row_gets_the_prior_in_training():
    X = table()
    X.loc[7, "shop"] = "alone"
    encoder = SharesEncoder(GROUPS, remainder="drop")
    train = encoder.fit_transform(X)
    prior = encoder.representations_["shop"].prior
    np.testing.assert_allclose(train[7, : len(prior)], prior, atol=1e-12)


def test_hidden_states_that_only_the_other_categories_show_are_told_apart():
    X = table(n=3000, number=False)
    values = SharesEncoder(["shop", "brand"]).fit(X[["shop", "brand"]]).representations_["shop"]
    state = np.array([int(level.split()[1]) % 3 for level in values.levels.tolist()])
    centers = np.array([values.values[state == one].mean(axis=0) for one in range(3)])
    distance = ((values.values[:, None] - centers) ** 2).sum(axis=2)
    assert (distance.argmin(axis=1) == state).mean() > 0.9


@few
@given(seeds)
def test_the_target_plays_no_part(seed):
    X = table(seed, n=80)
    y = np.random.default_rng(seed).normal(size=80)
    found = [SharesEncoder(GROUPS).fit_transform(X, target) for target in (None, y)]
    np.testing.assert_array_equal(*found)


@few
@given(seeds)
def test_the_order_of_the_rows_does_not_matter(seed):
    X = table(seed, n=80)
    order = np.random.default_rng(seed).permutation(80)
    ours = SharesEncoder(GROUPS).fit_transform(X)[order]
    np.testing.assert_allclose(SharesEncoder(GROUPS).fit_transform(X.iloc[order]), ours, atol=1e-6)


@few
@given(seeds)
def test_a_weight_counts_how_often_a_row_came(seed):
    X = table(seed, n=80)
    times = np.random.default_rng(seed).integers(1, 4, 80)
    weighted = SharesEncoder(GROUPS).fit(X, sample_weight=times)
    repeated = SharesEncoder(GROUPS).fit(X.loc[np.repeat(X.index, times)])
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-6)


def test_rows_of_weight_zero_are_ignored():
    X = table()
    weights = np.where(np.arange(400) < 300, 1.0, 0.0)
    whole = SharesEncoder(GROUPS, unseen="prior").fit(X, sample_weight=weights)
    kept = SharesEncoder(GROUPS, unseen="prior").fit(X[:300])
    np.testing.assert_allclose(whole.transform(X[:300]), kept.transform(X[:300]), atol=1e-8)


def test_nulls_are_a_category_of_their_own():
    X = table()
    X.loc[X.index % 5 == 0, "size"] = np.nan
    X.loc[X.index % 7 == 0, "brand"] = None
    encoder = SharesEncoder(GROUPS, remainder="drop").fit(X)
    assert encoder.scores_["shop"][0].levels.tolist()[-1] is None
    assert np.isfinite(encoder.transform(X)).all()
    missing = SharesEncoder(GROUPS, missing="prior", remainder="drop").fit(X)
    assert None not in missing.scores_["shop"][0].levels.tolist()
    assert np.isfinite(missing.fit_transform(X)).all()


class TestNewLevels:
    def test_their_own_rows_say_their_vector(self):
        X = table(n=3000)[["shop", "brand"]]
        new = X[X["shop"] == "shop 4"]
        encoder = SharesEncoder(["shop", "brand"], remainder="drop").fit(X[X["shop"] != "shop 4"])
        vectors = encoder.representations_["shop"]
        found = encoder.transform(new)[:, : len(vectors.columns)]
        np.testing.assert_array_equal(found, np.tile(found[0], (len(new), 1)))
        alike = np.array([int(level.split()[1]) % 3 == 1 for level in vectors.levels.tolist()])
        distance = ((vectors.values - found[0]) ** 2).sum(axis=1)
        assert np.median(distance[alike]) < 0.5 * np.median(distance[~alike])

    def test_a_new_level_of_another_category_says_nothing(self):
        X = table()
        encoder = SharesEncoder(["shop", "brand"], covariates=[], remainder="drop").fit(X)
        new = pd.DataFrame({"shop": ["new"] * 3, "brand": ["new"] * 3, "town": "x", "size": 0.0})
        table_of_shops = encoder.representations_["shop"]
        found = encoder.transform(new)[:, : len(table_of_shops.columns)]
        np.testing.assert_allclose(found, np.tile(table_of_shops.prior, (3, 1)), atol=0.2)

    def test_they_can_be_learnt(self):
        X = table()
        new = X[X["shop"] == "shop 4"].assign(shop="newcomer")
        encoder = SharesEncoder(GROUPS, remainder="drop").fit(X)
        learnt = encoder.learn_levels(new)
        np.testing.assert_allclose(learnt.transform(new[:1]), encoder.transform(new)[:1], atol=1e-12)
        np.testing.assert_array_equal(learnt.transform(X), encoder.transform(X))
        assert "newcomer" not in encoder.representations_["shop"]
        assert learnt.moments_["shop"].n_levels == 31

    def test_they_may_get_the_prior_or_be_forbidden(self):
        X = table()
        encoder = SharesEncoder(GROUPS, remainder="drop").fit(X)
        new = X[:2].assign(shop=["never", "shop 1"])
        prior = encoder.representations_["shop"].prior
        found = encoder.set_params(unseen="prior").transform(new)
        np.testing.assert_array_equal(found[0, : len(prior)], prior)
        with pytest.raises(UnseenLevelError, match="Column 'shop' holds 1 unseen level"):
            encoder.set_params(unseen="error").transform(new)

    def test_of_a_lazy_frame_they_cannot_be_estimated(self):
        X = table()
        encoder = SharesEncoder(GROUPS, remainder="drop").fit(X)
        lazy = pl.from_pandas(X).lazy()
        with pytest.raises(RowsNeededError, match="SharesEncoder estimates new levels from their rows"):
            encoder.transform(lazy)
        found = encoder.set_params(unseen="prior").transform(lazy).collect()
        np.testing.assert_allclose(np.sort(found, axis=0), np.sort(encoder.transform(X), axis=0))


class TestWhatDescribesALevel:
    def test_a_crossed_group_is_not_described_by_its_own_columns(self):
        X = table()
        encoder = SharesEncoder(["shop", "brand", ("shop", "town")], covariates=[]).fit(X)
        known = {group: len(scores) for group, scores in encoder.scores_.items()}
        assert known == {"shop": 1, "brand": 2, "shop:town": 1}

    def test_a_group_that_no_other_describes_gets_no_column(self):
        X = table()
        encoder = SharesEncoder(["shop", "brand", ("shop", "brand")], covariates=[], remainder="drop").fit(X)
        assert not any(name.startswith("shop:brand") for name in encoder.get_feature_names_out())
        assert encoder.transform(X).shape == encoder.fit_transform(X).shape
        assert encoder.representations_["shop:brand"].values.shape[1] == 0
        with pytest.raises(UnseenLevelError, match="Column 'shop' holds 1 unseen"):
            encoder.set_params(unseen="error").transform(X.assign(shop="new"))

    def test_a_group_alone_is_refused(self):
        with pytest.raises(NoCovariateError, match="at least one is needed"):
            SharesEncoder("shop").fit(table()[["shop"]])

    def test_a_group_without_levels_is_refused(self):
        X = table().assign(brand=None)
        with pytest.raises(NoLevelError, match="'brand' has no level"):
            SharesEncoder(GROUPS, missing="prior").fit(X)

    def test_no_more_components_than_asked_for(self):
        encoder = SharesEncoder(GROUPS, n_scores=2, remainder="drop").fit(table())
        assert encoder.get_feature_names_out().tolist() == [
            f"{group}_share{j}" for group in GROUPS for j in (1, 2)
        ]

    def test_all_groups_share_the_number_of_columns(self):
        encoder = SharesEncoder(GROUPS, max_columns=7, remainder="drop").fit(table())
        assert len(encoder.get_feature_names_out()) == 6
        least = SharesEncoder(GROUPS, max_columns=1, remainder="drop").fit(table())
        assert least.get_feature_names_out().tolist() == [f"{group}_share1" for group in GROUPS]

    def test_a_group_of_few_levels_describes_larger_ones_and_gets_no_column(self):
        X = table().assign(season=["spring", "autumn"] * 200)
        encoder = SharesEncoder([*GROUPS[:2], "season"], remainder="drop").fit(X)
        assert [len(scores) for scores in encoder.scores_.values()] == [2, 2, 0]
        assert encoder.representations_["season"].columns == ()
        small = X[["town", "season"]].assign(town=X["town"].str[-1])
        names = SharesEncoder(["town", "season"]).fit(small).get_feature_names_out().tolist()
        assert names == ["town_share1", "season_share1"]

    def test_numbers_join_only_where_they_are_asked_for_or_nothing_else_is_there(self):
        X = table()
        assert len(SharesEncoder("shop").fit(X[["shop", "size"]]).scores_["shop"]) == 1
        assert len(SharesEncoder(["shop", "brand"]).fit(X).scores_["shop"]) == 1
        assert len(SharesEncoder(["shop", "brand"], covariates=["size"]).fit(X).scores_["shop"]) == 2
        shared = SharesEncoder("shop", categorical_covariates="share").fit(X)
        assert len(shared.scores_["shop"]) == X["brand"].nunique() + X["town"].nunique()

    def test_names_that_clash_are_refused(self):
        with pytest.raises(ClashingNamesError, match="shop_share1"):
            SharesEncoder(GROUPS).fit(table().assign(shop_share1=1.0))


def test_it_is_saved_with_its_scores(tmp_path):
    X = table()
    encoder = SharesEncoder(GROUPS).fit(X)
    encoder.save(tmp_path / "shares.sufrep")
    loaded = sufrep.load(tmp_path / "shares.sufrep")
    new = X.assign(shop=X["shop"].replace("shop 4", "new"))
    np.testing.assert_array_equal(loaded.transform(new), encoder.transform(new))


def test_errors_are_those_of_the_means_of_scores():
    encoder = SharesEncoder(GROUPS).fit(table())
    found = encoder.table("shop", errors=True)
    own = encoder.encoders_["shop"].table(errors=True)
    np.testing.assert_array_equal(found.filter(like="_error"), own.filter(like="_error"))


def test_new_rows_are_compared_with_the_covariates_of_the_old_ones():
    X = table(n=3000)
    encoder = SharesEncoder(GROUPS).fit(X)
    moved = X.assign(size=X["size"] + 3 * (X["shop"] == "shop 4"))
    report = encoder.drift(moved)
    assert report is not None
    assert encoder.drift(X) is not None
