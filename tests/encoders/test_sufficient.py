"""What is chosen, by which numbers, and that no row's columns know its own target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeRegressor

from sufrep import MeansEncoder, MixedModelEncoder, SufficientEncoder, simulate
from sufrep.encoders._candidates import PIECES, SAFE
from sufrep.encoders._whole_levels import whole_levels

# Boosting would take minutes; it is the default, which test_the_learner_is_boosting_by_default covers.
TREE = DecisionTreeRegressor(max_depth=4, random_state=0)
USES_TARGET = {"target", "mixed_model", "local_effect", "local_fit", "intercept", "joint_means"}
REPORT = ["candidate", "loss", "gain", "standard_error", "n_columns", "chosen"]


def drawn(
    seed: int = 0, *, level: float = 0.0, slope: float = 0.0, n: int = 240, n_levels: int = 12
) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows whose target is noise, plus an intercept and a slope of the level with the given spreads."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_levels, n)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    X["shop"] = [f"shop {code:03}" for code in codes]
    y = level * rng.normal(size=n_levels)[codes] + slope * rng.normal(size=n_levels)[codes] * X["a"]
    return X, y.to_numpy() + rng.normal(size=n)


def folds_of(n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Three folds, and ten of fewer than 2,000 rows."""
    return [*KFold(10 if n < 2000 else 3, shuffle=True, random_state=0).split(range(n))]


def losses_of(encoder: Any, X: pd.DataFrame, y: np.ndarray, learner: Any = TREE) -> np.ndarray:
    """Squared errors out of fold, of covariates and columns of an encoder, by hand."""
    total = np.zeros(len(X))
    for train, test in folds_of(len(X)):
        known, new = X[["a", "b"]].to_numpy()[train], X[["a", "b"]].to_numpy()[test]
        if encoder is not None:
            known = np.hstack([known, encoder.fit_transform(X.iloc[train], y[train])])
            new = np.hstack([new, encoder.transform(X.iloc[test])])
        total[test] = (learner.fit(known, y[train]).predict(new) - y[test]) ** 2
    return total


# The choice.


def test_a_column_that_tells_nothing_is_dropped_in_most_samples():
    # One encoding in six gains more than a standard error by chance, and of several one does more often.
    n_dropped = 0
    for seed in range(20):
        X, noise = drawn(seed, n=120)
        encoder = SufficientEncoder("shop", estimator=Ridge(), max_candidates=2)
        found = encoder.fit_transform(X, noise)
        if encoder.chosen_ == ():
            n_dropped += 1
            np.testing.assert_array_equal(found, X[["a", "b"]])
            np.testing.assert_array_equal(encoder.transform(X.assign(shop="new")), X[["a", "b"]])
            assert encoder.encoders_ == {}
            assert encoder.representations_["shop"].values.shape == (X["shop"].nunique(), 0)
    assert n_dropped >= 14


@pytest.mark.parametrize(("seed", "most"), [(0, None), (1, 5), (2, 5)])
def test_where_only_the_level_matters_it_is_described_by_the_target(seed, most):
    encoder = SufficientEncoder("shop", estimator=Ridge(), max_candidates=most).fit(*drawn(seed, level=1.5))
    assert set(encoder.chosen_) & USES_TARGET
    assert max(encoder.report_["gain"]) > 5 * max(encoder.report_["standard_error"]) > 0


@pytest.mark.parametrize(("seed", "most"), [(0, None), (1, 5), (2, 5)])
def test_where_slopes_differ_by_level_levels_have_regressions_of_their_own(seed, most):
    encoder = SufficientEncoder("shop", estimator=TREE, max_candidates=most).fit(*drawn(seed, slope=1.5))
    assert "mixed_model" in encoder.chosen_


def test_the_learner_is_boosting_by_default():
    assert SufficientEncoder("shop", max_candidates=2).fit(*drawn(level=3.0)).chosen_ == ("target",)


# With fewer than 2,000 rows what is safe is preferred, which has a price: a single tree uses few columns.
@pytest.mark.parametrize(("n", "price"), [(1200, 1.15), (2400, 1.05)])
def test_hidden_states_are_encoded_about_as_well_as_by_the_best_piece(n, price):
    sample = simulate("latent_linear", n=n + 1200, p=5, n_latent=3, levels_per_latent=10, seed=2)
    X, learner = pd.DataFrame(sample.columns()), DecisionTreeRegressor(max_depth=6, random_state=0)
    train, test = np.arange(n), np.arange(n, n + 1200)

    def error(encoder: Any) -> float:
        known = encoder.fit_transform(X.iloc[train], sample.y[train])
        predicted = learner.fit(known, sample.y[train]).predict(encoder.transform(X.iloc[test]))
        return float(np.mean((predicted - sample.y[test]) ** 2))

    single = {name: error(kind("group", **own)) for name, (kind, own) in PIECES.items() if name != "states"}
    single["states"] = error(PIECES["states"][0]("group", output="both", n_states=3))
    dropped = error(SufficientEncoder("group", max_candidates=1))
    chosen = error(SufficientEncoder("group", estimator=learner))
    assert chosen < price * min(single.values()) < 0.9 * dropped
    assert chosen < 0.9 * dropped


# The report.


def test_the_report_lists_what_was_tried_in_order_and_marks_one():
    encoder = SufficientEncoder("shop", estimator=TREE).fit(*drawn(level=2.0))
    report = pd.DataFrame(encoder.report_)
    assert report.columns.tolist() == REPORT
    assert report["candidate"].tolist()[: 1 + len(PIECES)] == ["drop", *PIECES]
    assert report["candidate"][1 + len(PIECES)] == " + ".join(SAFE)
    joined = [candidate.split(" + ") for candidate in report["candidate"].tolist()[2 + len(PIECES) :]]
    assert [len(pieces) for pieces in joined] == sorted(len(pieces) for pieces in joined)
    assert {len(pieces) for pieces in joined} == {2, 3}
    best = report[1 : 1 + len(PIECES)].sort_values("loss", kind="stable")["candidate"].tolist()[:4]
    assert all(set(pieces) <= set(best) for pieces in joined)
    assert report.loc[report["chosen"], "candidate"].tolist() == [" + ".join(encoder.chosen_)]
    smallest = report.loc[report["loss"].idxmin()]
    behind = report.loc[report["chosen"], "loss"].item() - smallest["loss"]
    assert behind < 2 * max(smallest["standard_error"], report.loc[report["chosen"], "standard_error"].item())
    assert report.loc[0, ["gain", "standard_error", "n_columns"]].tolist() == [0, 0, 0]
    new = [name for name in encoder.get_feature_names_out() if name.startswith("shop")]
    assert report.loc[report["chosen"], "n_columns"].item() == len(new) > 0


@pytest.mark.parametrize("n", [240, 1400, 2100])
def test_losses_and_gains_are_those_of_a_cross_validation_by_hand(n):
    X, y = drawn(level=1.0, slope=1.0, n=n)
    encoder = SufficientEncoder("shop", estimator=TREE, max_candidates=3).fit(X, y)
    pieces = [
        None,
        MeansEncoder("shop", covariates=[], use_target=True, remainder="drop"),
        MixedModelEncoder("shop", remainder="drop"),
    ]
    losses = [losses_of(piece, X, y) for piece in pieces]
    gains = [losses[0] - loss for loss in losses]
    report = encoder.report_
    np.testing.assert_allclose(report["loss"], [loss.mean() for loss in losses], rtol=1e-10)
    np.testing.assert_allclose(report["gain"], [gain.mean() for gain in gains], rtol=1e-10)
    errors = [np.sqrt(np.mean((gain - gain.mean()) ** 2) / n) for gain in gains]
    np.testing.assert_allclose(report["standard_error"], errors, rtol=1e-10)
    assert report["n_columns"] == [0, 1, 1]


def test_losses_are_weighted_means_of_learners_with_weights():
    X, y = drawn(level=1.0)
    weights = np.random.default_rng(5).choice([0.5, 1.0, 3.0], len(X))
    report = (
        SufficientEncoder("shop", estimator=DummyRegressor(), max_candidates=1).fit(X, y, weights).report_
    )
    total = np.zeros(len(X))
    for train, test in folds_of(len(X)):
        total[test] = (y[test] - np.average(y[train], weights=weights[train])) ** 2
    np.testing.assert_allclose(report["loss"], [np.average(total, weights=weights)], rtol=1e-12)


@pytest.mark.parametrize(("n", "times"), [(240, 3), (1400, 2), (2100, 1)])
def test_folds_of_few_rows_are_dealt_anew_where_their_number_is_given(n, times):
    X, y = drawn(n=n)
    report = SufficientEncoder("shop", estimator=TREE, max_candidates=1, cv=3).fit(X, y).report_
    rows, total = X[["a", "b"]].to_numpy(), np.zeros(n)
    for seed in range(times):
        for train, test in KFold(3, shuffle=True, random_state=seed).split(rows):
            total[test] += (TREE.fit(rows[train], y[train]).predict(rows[test]) - y[test]) ** 2 / times
    np.testing.assert_allclose(report["loss"], [total.mean()], rtol=1e-12)


def test_folds_may_be_given():
    X, y = drawn(level=1.0)
    folds = [(np.arange(80, 240), np.arange(80)), (np.arange(80), np.arange(80, 240))]
    report = SufficientEncoder("shop", estimator=TREE, max_candidates=1, cv=folds).fit(X, y).report_
    rows, total = X[["a", "b"]].to_numpy(), np.zeros(240)
    for train, test in folds:
        total[test] = (TREE.fit(rows[train], y[train]).predict(rows[test]) - y[test]) ** 2
    np.testing.assert_allclose(report["loss"], [total.mean()], rtol=1e-12)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_no_more_candidates_are_tried_than_allowed(most):
    encoder = SufficientEncoder("shop", estimator=TREE, max_candidates=most).fit(*drawn())
    assert encoder.report_["candidate"] == ["drop", *PIECES][:most]


def test_many_rows_choose_by_whole_levels_and_fit_all():
    X, y = drawn(level=2.0, n=900, n_levels=90)
    encoder = SufficientEncoder("shop", estimator=TREE, max_candidates=2, max_rows=600).fit(X, y)
    rows = whole_levels(pd.factorize(X["shop"], sort=True)[0], 600, seed=0)
    assert 50 <= X["shop"].iloc[rows].nunique() < 90
    expected = losses_of(None, X.iloc[rows], y[rows]).mean()
    np.testing.assert_allclose(encoder.report_["loss"][0], expected, rtol=1e-10)
    several = SufficientEncoder(["town", "shop"], estimator=TREE, max_candidates=1, max_rows=600)
    several.fit(X.assign(town=np.where(X["a"] > 0, "u", "v")), y)  # the shops are more than the towns
    assert several.report_["loss"] == encoder.report_["loss"][:1]
    assert encoder.chosen_ == ("target",)
    table = encoder.table(library="pandas").set_index("shop")
    pd.testing.assert_series_equal(
        table["weight"], X["shop"].value_counts().sort_index(), check_names=False, check_dtype=False
    )
    alone = MeansEncoder("shop", covariates=[], use_target=True, remainder="drop").fit(X, y)
    np.testing.assert_array_equal(encoder.transform(X)[:, 2:], alone.transform(X))


def test_two_fits_are_the_same_to_the_bit():
    X, y = drawn(level=1.0, n=120)
    one, other = (SufficientEncoder("shop", estimator=TREE) for _ in range(2))
    np.testing.assert_array_equal(one.fit_transform(X, y), other.fit_transform(X, y))
    assert one.report_ == other.report_
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


def test_what_new_rows_get_does_not_depend_on_how_it_was_fitted(choose):
    choose("joint_means", "mixed_model")
    X, y = drawn(level=1.0)
    one, other = SufficientEncoder("shop").fit(X, y), SufficientEncoder("shop")
    crossed = other.fit_transform(X, y)
    np.testing.assert_array_equal(one.transform(X), other.transform(X))
    assert np.abs(crossed - one.transform(X)).max() > 0.01


# Kinds of targets.


def test_a_regressor_asks_for_a_quantity():
    X, y = drawn(level=2.0)
    whole = np.round(y)
    asked = SufficientEncoder("shop", estimator=TREE, max_candidates=2).fit(X, whole)
    assert (asked.target_type_, asked.chosen_) == ("continuous", ("target",))
    np.testing.assert_allclose(asked.report_["loss"][0], losses_of(None, X, whole).mean(), rtol=1e-10)
    guessed = SufficientEncoder("shop", estimator=DummyClassifier(), max_candidates=1).fit(X, whole)
    assert guessed.target_type_ == "multiclass"


@pytest.mark.parametrize("estimator", [LogisticRegression(), RidgeClassifier()], ids=["log P", "errors"])
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_classes_are_judged_by_probability_or_else_by_error(estimator, kind):
    X, y = drawn(level=2.0)
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [0.0, 1.0] if kind == "multiclass" else [0.0])]
    encoder = SufficientEncoder("shop", estimator=estimator, max_candidates=2).fit(X, labels)
    assert (encoder.target_type_, encoder.chosen_) == (kind, ("target",))
    rows, total = X[["a", "b"]].to_numpy(), np.zeros(len(X))
    for train, test in folds_of(len(X)):
        fitted = estimator.fit(rows[train], labels[train])
        if hasattr(estimator, "predict_proba"):
            place = np.searchsorted(fitted.classes_, labels[test])
            total[test] = -np.log(fitted.predict_proba(rows[test])[np.arange(len(test)), place])
        else:
            total[test] = fitted.predict(rows[test]) != labels[test]
    np.testing.assert_allclose(encoder.report_["loss"][0], total.mean(), rtol=1e-8)


def test_where_there_are_no_columns_the_commonest_class_is_judged_like_the_classifier():
    X, y = drawn()
    labels = np.where(y > 1, "high", "low")
    report = SufficientEncoder("shop", estimator=RidgeClassifier()).fit(X[["shop"]], labels).report_
    np.testing.assert_allclose(report["loss"][0], np.mean(labels == "high"))
    assert max(report["loss"]) < 0.5


@pytest.mark.parametrize("n_rare", [0, 1])
def test_a_class_that_a_fold_lacks_does_no_harm(n_rare):
    X, _ = drawn()
    y = (np.arange(len(X)) < n_rare).astype(int)
    encoder = SufficientEncoder("shop", estimator=LogisticRegression(), max_candidates=3).fit(X, y)
    assert (encoder.target_type_, encoder.chosen_) == ("binary", ())


# Training rows.


@pytest.mark.parametrize(
    "pieces",
    [*((name,) for name in PIECES), ("mixed_model", "intercept"), ("target", "states")],
    ids=" + ".join,
)
def test_a_row_does_not_see_its_own_target(pieces, choose):
    choose(*pieces)
    X, y = drawn(level=2.0, n=60, n_levels=5)
    changed = y.copy()
    changed[7] = 50.0
    before, after = (SufficientEncoder("shop").fit_transform(X, target) for target in (y, changed))
    np.testing.assert_allclose(after[7], before[7], atol=1e-9)
    if set(pieces) & USES_TARGET:
        assert np.abs(after - before).max() > 0.01  # but the others do


def test_a_row_does_not_see_its_own_target_where_nothing_is_forced():
    X, y = drawn(level=3.0)
    encoder = SufficientEncoder("shop", estimator=TREE, max_candidates=2)
    before = encoder.fit_transform(X, y)
    for i in (0, 100):
        changed = y.copy()
        changed[i] += 3.0
        after = encoder.fit_transform(X, changed)
        assert encoder.chosen_ == ("target",)
        np.testing.assert_allclose(after[i], before[i], atol=1e-9)
        assert np.abs(after - before).max() > 1e-3
