"""Groups, covariates, nulls and weights of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

from sufrep import SufficientEncoder, errors
from sufrep.encoders._candidates import PIECES


def drawn(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Six shops that differ much in their targets, and three towns that do not."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 6
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    X["shop"] = np.array(["ann", "bob", "cid", "dan", "eve", "fay"], dtype=object)[codes]
    X["town"] = rng.choice(np.array(["x", "y", "z"], dtype=object), n)
    return X, 2.0 * codes + X["a"].to_numpy() + rng.normal(size=n)


def quick(group: Any = "shop", **parameters: Any) -> SufficientEncoder:
    """Between dropping the column and the mean target, which wins here."""
    return SufficientEncoder(group, **{"estimator": Ridge(), "max_candidates": 2, **parameters})


@pytest.fixture
def pair(choose: Callable[..., None]) -> tuple[str, str]:
    """A pair of pieces that is chosen untried."""
    pieces = ("mixed_model", "intercept")
    choose(*pieces)
    return pieces


# Groups and covariates.


@pytest.mark.parametrize("group", ["shop", ["shop", "town"], [("shop", "town")], ["town", ("shop", "town")]])
def test_columns_are_those_that_pass_through_and_then_those_of_each_piece(group, pair):
    X, y = drawn()
    encoder = SufficientEncoder(group).set_output(transform="pandas").fit(X, y)
    found = encoder.transform(X)
    assert list(encoder.encoders_) == list(encoder.chosen_) == list(pair)
    parts = [piece.set_output(transform="pandas").transform(X) for piece in encoder.encoders_.values()]
    used = {column for part in encoder.layout_.groups for column in part}
    kept = X[[name for position, name in enumerate(X.columns) if position not in used]]
    pd.testing.assert_frame_equal(found, pd.concat([kept, *parts], axis=1))
    assert found.columns.tolist() == encoder.get_feature_names_out().tolist()
    names = list(encoder.representations_)
    assert [part.columns.tolist() for part in parts] == [
        [f"{name}_{end}" for name in names] for end in ("fit", "intercept")
    ]


def test_the_level_table_has_the_vectors_of_all_pieces_under_names_of_their_own(pair):
    X, y = drawn()
    encoder = SufficientEncoder("shop", covariates=["a"]).fit(X, y)
    table = encoder.table(library="pandas").set_index("shop")
    names = ["shop_intercept (mixed_model)", "shop_slope_a", "shop_intercept (intercept)"]
    assert table.columns.tolist() == ["weight", *names]
    for piece, columns in zip(pair, (names[:2], names[2:]), strict=True):
        own = encoder.encoders_[piece].table(library="pandas").set_index("shop")
        np.testing.assert_array_equal(table[columns], own.drop(columns="weight"))
    assert len(encoder.plot().to_dict()["data"]["values"]) == 6


def test_a_dropped_column_still_has_a_table_of_levels():
    encoder = quick(max_candidates=1).fit(*drawn())
    assert encoder.table(library="pandas").columns.tolist() == ["shop", "weight"]
    assert encoder.plot().to_dict()["data"]["values"]


def test_covariates_may_be_named_and_text_may_join_them(choose):
    choose("means")
    X, y = drawn()
    named = SufficientEncoder("shop", covariates=["b"]).fit(X, y)
    assert named.get_feature_names_out().tolist() == ["a", "b", "town", "shop_mean_b"]
    shared = SufficientEncoder("shop", categorical_covariates="share", remainder="drop").fit(X, y)
    columns = ["a", "b", "town=x", "town=y", "town=z"]
    assert shared.get_feature_names_out().tolist() == [f"shop_mean_{column}" for column in columns]


def test_the_learner_sees_all_numbers_and_the_categories_that_join():
    X, y = drawn()
    X["c"], X["d"] = np.arange(len(X)), pd.Timestamp("2024-01-01")
    widths: list[int] = []

    class Watching(Ridge):
        def fit(self, columns: Any, y: Any, sample_weight: Any = None) -> Any:
            widths.append(columns.shape[1])
            return super().fit(columns, y, sample_weight)

    quick(estimator=Watching(), covariates=["a"]).fit(X, y)
    assert set(widths) == {3, 3 + 1}
    widths.clear()
    quick(estimator=Watching(), categorical_covariates="share").fit(X, y)
    assert set(widths) == {3 + 3, 3 + 3 + 1}


def test_text_and_times_that_pass_through_stay_what_they_are():
    X, y = drawn()
    X["day"] = pd.Timestamp("2024-01-01")
    found = quick().set_output(transform="pandas").fit_transform(X, y)
    pd.testing.assert_frame_equal(found[["a", "b", "town", "day"]], X[["a", "b", "town", "day"]])


def test_there_may_be_no_covariates():
    X, y = drawn()
    encoder = SufficientEncoder("shop", estimator=Ridge(), max_candidates=7).fit(X[["shop"]], y)
    assert encoder.report_["candidate"] == [
        *("drop", "target", "mixed_model", "local_effect", "local_fit", "intercept", "one_hot"),
    ]
    assert encoder.chosen_
    assert np.corrcoef(encoder.transform(X[["shop"]])[:, 0], y)[0, 1] > 0.9


def test_there_may_be_no_group():
    rows = drawn()[0][["a", "b"]].to_numpy()
    encoder = SufficientEncoder(estimator=Ridge()).fit(rows, rows[:, 0])
    assert encoder.report_["candidate"] == ["drop"]
    np.testing.assert_array_equal(encoder.transform(rows), rows)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_are_few_folds(n):
    X, y = drawn()
    found = SufficientEncoder("shop", max_candidates=6).fit_transform(X[["a", "b", "shop"]][:n], y[:n])
    assert found.shape[0] == n
    assert np.isfinite(found.astype(float)).all()


def test_one_level_tells_nothing():
    X, y = drawn()
    encoder = SufficientEncoder("shop", estimator=Ridge(), max_candidates=9).fit(X.assign(shop="one"), y)
    assert encoder.chosen_ == ()
    assert encoder.representations_["shop"].weight.tolist() == [120]


def test_covariates_of_nulls_do_no_harm():
    X, y = drawn()
    encoder = SufficientEncoder("shop", max_candidates=2).fit(X.assign(a=np.nan), y)
    assert encoder.chosen_ == ("target",)


def test_rare_levels_share_a_vector():
    X, y = drawn()
    X.loc[[0, 1], "shop"] = ["rare 1", "rare 2"]
    table = quick(min_frequency=5).fit(X, y).table(library="pandas").set_index("shop")["shop_mean_target"]
    assert table["rare 1"] == table["rare 2"]
    assert table.nunique() == 7


# Nulls and levels never seen.


def test_nulls_are_a_level_the_prior_or_an_error():
    X, y = drawn()
    X["shop"] = X["shop"].where(X["shop"] != "ann", None)
    as_level, as_prior = (quick(missing=missing).fit(X, y) for missing in ("level", "prior"))
    assert as_level.representations_["shop"].levels.tolist()[-1] is None
    known = as_prior.representations_["shop"]
    assert None not in known.levels.tolist()
    np.testing.assert_array_equal(as_prior.transform(X)[0, -1:].astype(float), known.prior)
    assert as_level.transform(X)[0, -1] < known.prior[0]  # the shop's own mean, the least of all
    with pytest.raises(errors.MissingLevelError, match="'shop'"):
        quick(missing="error").fit(X, y)


def test_a_group_that_is_null_everywhere_has_no_level():
    X, y = drawn()
    with pytest.raises(errors.NoLevelError, match="'shop' has no level"):
        quick(missing="prior").fit(X.assign(shop=None), y)
    with pytest.raises(errors.NoLevelError, match="'shop' has no level"):
        quick(missing="prior").fit(X[:2].assign(shop=["a", None]), y[:2], sample_weight=[0.0, 1.0])


@pytest.mark.parametrize("max_rows", [2, 20_000])
def test_a_fold_may_have_no_level_at_all(max_rows):
    X, y = drawn()
    X["shop"] = ["ann", *[None] * 119]
    encoder = SufficientEncoder("shop", missing="prior", estimator=Ridge(), max_rows=max_rows).fit(X, y)
    assert len(encoder.report_["candidate"]) > 1 + len(PIECES)


@pytest.mark.parametrize("most", [1, 2], ids=["dropped", "encoded"])
def test_a_level_never_seen_gets_the_prior_or_is_refused(most):
    X, y = drawn()
    new = X[:3].assign(shop="new")
    encoder = quick(max_candidates=most).fit(X, y)
    np.testing.assert_array_equal(
        encoder.transform(new)[:, 3:].astype(float), np.tile(encoder.representations_["shop"].prior, (3, 1))
    )
    strict = quick(max_candidates=most, unseen="error").fit(X, y)
    assert strict.transform(X).shape == (120, 2 + most)
    with pytest.raises(errors.UnseenLevelError, match="1 unseen level"):
        strict.transform(new)


# Weights.


def test_rows_of_weight_zero_are_absent():
    X, y = drawn()
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    counts = weights > 0
    X.loc[~counts, ["a", "shop"]] = [np.inf, "never counted"]
    weighted = quick(max_candidates=3).fit(X, y, weights)
    expected = quick(max_candidates=3).fit(X[counts], y[counts], weights[counts])
    assert weighted.report_ == expected.report_
    one, other = weighted.representations_["shop"], expected.representations_["shop"]
    assert one.levels.tolist() == other.levels.tolist()
    np.testing.assert_array_equal(one.weight, other.weight)
    np.testing.assert_allclose(one.values, other.values, atol=1e-12)


def test_folds_that_are_given_may_hold_rows_of_weight_zero():
    X, y = drawn()
    weights = np.where(np.arange(120) % 3 == 0, 0.0, 2.0)
    kept = np.flatnonzero(weights)
    folds = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    left = [tuple(np.flatnonzero(np.isin(kept, part)) for part in fold) for fold in folds]
    found = quick(cv=folds).fit(X.assign(a=X["a"].where(weights > 0, np.inf)), y, weights).report_
    expected = quick(cv=left).fit(X.iloc[kept], y[kept], weights[kept]).report_
    np.testing.assert_allclose(found["loss"], expected["loss"], rtol=1e-12)
    np.testing.assert_allclose(found["standard_error"], expected["standard_error"], rtol=1e-12)
