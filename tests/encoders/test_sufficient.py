"""What is chosen and by which numbers; that no row's columns know its own target; inputs and errors."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

from sufrep import MeansEncoder, SufficientEncoder, errors, simulate
from sufrep.encoders import _judging
from sufrep.encoders._judging import whole_levels

# Boosting would take longer. It is the default, as test_the_learner_is_boosting_by_default checks.
TREE = DecisionTreeRegressor(max_depth=4, random_state=0)
CANDIDATES = ["drop", "description", "prediction", "both"]


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


def shops(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Six shops that differ much in their targets, and three towns that do not."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 6
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    X["shop"] = np.array(["ann", "bob", "cid", "dan", "eve", "fay"], dtype=object)[codes]
    X["town"] = rng.choice(np.array(["x", "y", "z"], dtype=object), n)
    return X, 2.0 * codes + X["a"].to_numpy() + rng.normal(size=n)


def quick(group: Any = "shop", **parameters: Any) -> SufficientEncoder:
    """Between dropping the column and predictions, which win here."""
    return SufficientEncoder(
        group, **{"estimator": Ridge(), "families": ("prediction",), "cv": 3, **parameters}
    )


# The components of a single group.
DESCRIPTION, PREDICTION = ("means", "states"), ("target_mean", "mixed_model", "local_effect")
COMPONENTS = {name: _judging.COMPONENTS[name] for name in DESCRIPTION + PREDICTION}


# The choice.


def test_a_column_that_says_nothing_is_dropped_nearly_always():
    dropped = []
    for seed in range(8):
        X, y = drawn(seed, n=120)
        encoder = SufficientEncoder("shop", estimator=Ridge())
        found = encoder.fit_transform(X, y + X["a"].to_numpy())
        dropped.append(encoder.chosen_ == ())
        if dropped[-1]:
            np.testing.assert_array_equal(found, X[["a", "b"]])
            np.testing.assert_array_equal(encoder.transform(X.assign(shop="new")), X[["a", "b"]])
            assert encoder.encoders_ == {}
            assert encoder.representations_["shop"].values.shape == (X["shop"].nunique(), 0)
    assert sum(dropped) >= 6  # chance may gain one standard error


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("spread", [{"level": 1.5}, {"slope": 1.5}], ids=["level", "slope"])
def test_where_covariates_do_not_tell_levels_apart_they_are_described_by_the_target(seed, spread):
    encoder = SufficientEncoder("shop", estimator=TREE).fit(*drawn(seed, **spread))
    assert set(PREDICTION) <= set(encoder.chosen_)
    report = encoder.report_["candidates"]
    assert max(report["gain"]) > 2 * max(report["standard_error"]) > 0


def test_the_learner_is_boosting_by_default():
    encoder = SufficientEncoder("shop", families=("prediction",)).fit(*drawn(level=3.0))
    assert encoder.chosen_ == PREDICTION


def test_hidden_states_are_encoded_about_as_well_as_by_the_best_component():
    sample = simulate("latent_linear", n=3200, p=5, n_latent=3, levels_per_latent=10, seed=2)
    X, learner = pd.DataFrame(sample.columns()), DecisionTreeRegressor(max_depth=6, random_state=0)
    train, test = np.arange(2000), np.arange(2000, 3200)

    def error(encoder: Any) -> float:
        known = encoder.fit_transform(X.iloc[train], sample.y[train])
        predicted = learner.fit(known, sample.y[train]).predict(encoder.transform(X.iloc[test]))
        return float(np.mean((predicted - sample.y[test]) ** 2))

    single = {name: error(kind("group", **own)) for name, (kind, own) in COMPONENTS.items()}
    dropped = error(SufficientEncoder("group", families=()))
    chosen = error(SufficientEncoder("group", estimator=learner))
    assert chosen < 1.05 * min(single.values()) < 0.9 * dropped
    assert chosen < 0.9 * dropped


@pytest.mark.parametrize("families", [(), ("description",), ["prediction"], ("prediction", "description")])
def test_only_families_that_are_allowed_are_compared(families):
    encoder = quick(families=families).fit(*drawn(level=2.0))
    compared = encoder.report_["candidates"]["candidate"]
    assert compared == [
        name for name in CANDIDATES if name in families or name == "drop" or len(families) > 1
    ]
    if "prediction" not in families:
        assert not set(encoder.chosen_) & set(PREDICTION)


def test_other_families_are_refused():
    with pytest.raises(errors.InvalidParameterError, match="families"):
        quick(families=("states",)).fit(*drawn())


# The report.


def test_the_report_lists_what_was_compared_and_marks_one():
    X, y = drawn(level=2.0)
    encoder = SufficientEncoder("shop", estimator=TREE).fit(X, y)
    report = pd.DataFrame(encoder.report_["candidates"])
    assert report.columns.tolist() == [
        "candidate",
        "loss",
        "gain",
        "standard_error",
        "relative_gain",
        "relative_error",
        "n_rows",
        "n_columns",
        "chosen",
    ]
    assert report["candidate"].tolist() == CANDIDATES
    assert report["chosen"].sum() == 1
    everywhere = report[report["n_rows"] == report["n_rows"].max()]  # the others have left before
    assert everywhere["loss"].idxmin() == report["chosen"].idxmax()
    assert report.loc[0, ["gain", "standard_error", "n_columns"]].tolist() == [0, 0, 0]
    as_long = report[report["n_rows"] == report["n_rows"][0]]
    np.testing.assert_allclose(as_long["gain"], report["loss"][0] - as_long["loss"])
    new = [name for name in encoder.get_feature_names_out() if name.startswith("shop")]
    assert report.loc[report["chosen"], "n_columns"].item() == len(new) > 0
    components = pd.DataFrame(encoder.report_["components"])
    assert components["component"].tolist() == list(encoder.chosen_)
    np.testing.assert_allclose(
        components["loss"] - components["contribution"], report.loc[report["chosen"], "loss"].item()
    )
    assert (components["contribution"] > components["standard_error"]).any()


def test_the_choice_is_explained_in_words():
    X, y = drawn(level=3.0)
    kept = quick().fit(X, y).report_
    found = re.fullmatch(
        r"The column is encoded by a prediction by level: the loss on rows held out is smaller by "
        r"([\d.]+) % \(standard error ([\d.]+) %\)\.",
        kept["summary"],
    )
    assert found is not None
    gain, error = (kept["candidates"][key][1] for key in ("gain", "standard_error"))
    assert float(found[2]) / float(found[1]) == pytest.approx(error / gain, rel=0.01)
    # Relative to losses of which single ones are limited, so it is a little more than of the whole loss.
    assert 1 <= float(found[1]) / (100 * gain / kept["candidates"]["loss"][0]) < 1.3
    assert "no encoding lowers the loss" in quick().fit(*drawn(2)).report_["summary"]
    rare = [quick().fit(*drawn(seed)).report_["summary"] for seed in range(12)]
    assert any("which is not more than one standard error" in text for text in rare)
    assert "nothing to judge" in quick(families=()).fit(X, y).report_["summary"]
    assert "nothing to judge" in quick().fit(X[:1], y[:1]).report_["summary"]


def test_losses_are_weighted_means_of_learners_with_weights():
    X, y = drawn(level=1.0)
    weights = np.random.default_rng(5).choice([0.5, 1.0, 3.0], len(X))
    folds = [*KFold(4, shuffle=True, random_state=0).split(X)]
    encoder = SufficientEncoder("shop", estimator=DummyRegressor(), families=("prediction",), cv=folds)
    report = encoder.fit(X, y, weights).report_
    total = np.zeros(len(X))
    for train, test in folds:
        total[test] = (y[test] - np.average(y[train], weights=weights[train])) ** 2
    expected = np.average(total, weights=weights)
    np.testing.assert_allclose(report["candidates"]["loss"], [expected, expected], rtol=1e-12)


@pytest.mark.parametrize("n_folds", [2, 5])
def test_folds_have_equal_parts_of_each_level(n_folds):
    X, y = drawn(n=230)
    encoder = SufficientEncoder("shop", cv=n_folds)
    folds = encoder._folds(encoder._read(X, y, None))
    assert len(folds) == n_folds
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(230))
    counts = np.array(
        [X["shop"].iloc[test].value_counts().reindex(X["shop"].unique(), fill_value=0) for _, test in folds]
    )
    assert (np.ptp(counts, axis=0) <= 1).all()


def test_folds_may_be_given():
    X, y = drawn(level=1.0)
    folds = [(np.arange(80, 240), np.arange(80)), (np.arange(80), np.arange(80, 240))]
    encoder = SufficientEncoder("shop", estimator=TREE, families=("prediction",), cv=folds)
    found = encoder.fit_transform(X, y)
    rows = X[["a", "b"]].to_numpy()
    losses = np.concatenate(
        [(TREE.fit(rows[train], y[train]).predict(rows[test]) - y[test]) ** 2 for train, test in folds]
    )
    report = encoder.report_["candidates"]
    np.testing.assert_allclose(report["loss"][0], losses[: report["n_rows"][0]].mean(), rtol=1e-12)
    alone = MeansEncoder("shop", covariates=[], use_target=True, remainder="drop", cv=folds)
    np.testing.assert_allclose(found[:, 2], alone.fit_transform(X, y)[:, 0])


def test_many_rows_choose_by_whole_levels_and_fit_all():
    X, y = drawn(level=2.0, n=900, n_levels=90)
    encoder = SufficientEncoder("shop", estimator=TREE, families=("prediction",), max_rows=600).fit(X, y)
    rows = whole_levels(pd.factorize(X["shop"], sort=True)[0], 600, seed=0)
    assert 50 <= X["shop"].iloc[rows].nunique() < 90
    covariates = X[["a", "b"]].to_numpy()
    train, test = encoder._folds(encoder._read(X, y, None))[0]  # after which dropping leaves the race
    inside, outside = np.intersect1d(train, rows), np.intersect1d(test, rows)
    predicted = TREE.fit(covariates[inside], y[inside]).predict(covariates[outside])
    expected = np.mean((predicted - y[outside]) ** 2)
    np.testing.assert_allclose(encoder.report_["candidates"]["loss"][0], expected, rtol=1e-10)
    assert encoder.report_["candidates"]["n_rows"][0] == len(outside)
    several = SufficientEncoder(["town", "shop"], estimator=TREE, families=(), max_rows=600)
    several.fit(X.assign(town=np.where(X["a"] > 0, "u", "v")), y)  # there are more shops than towns
    assert several.report_["candidates"]["loss"] == encoder.report_["candidates"]["loss"][:1]
    assert encoder.chosen_ == PREDICTION
    table = encoder.table(library="pandas").set_index("shop")
    pd.testing.assert_series_equal(
        table["weight"], X["shop"].value_counts().sort_index(), check_names=False, check_dtype=False
    )
    alone = MeansEncoder("shop", covariates=[], use_target=True, remainder="drop").fit(X, y)
    np.testing.assert_array_equal(encoder.transform(X)[:, 2:3], alone.transform(X))


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_the_number_of_processes_changes_nothing(n_jobs):
    X, y = drawn(level=2.0, n=120)
    one, other = (
        SufficientEncoder("shop", estimator=TREE),
        SufficientEncoder("shop", estimator=TREE, n_jobs=n_jobs),
    )
    np.testing.assert_array_equal(one.fit_transform(X, y), other.fit_transform(X, y))
    assert one.report_ == other.report_
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


def test_two_fits_are_the_same_to_the_bit():
    X, y = drawn(level=1.0, n=120)
    one, other = (SufficientEncoder("shop", estimator=TREE) for _ in range(2))
    np.testing.assert_array_equal(one.fit_transform(X, y), other.fit_transform(X, y))
    assert one.report_ == other.report_
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


def test_what_new_rows_get_does_not_depend_on_how_it_was_fitted(choose):
    choose("target_mean", "mixed_model")
    X, y = drawn(level=1.0)
    one, other = SufficientEncoder("shop").fit(X, y), SufficientEncoder("shop")
    crossed = other.fit_transform(X, y)
    np.testing.assert_array_equal(one.transform(X), other.transform(X))
    assert np.abs(crossed - one.transform(X)).max() > 0.01


# Kinds of targets.


def losses_without_the_column(X: pd.DataFrame, y: np.ndarray, learner: Any, loss: Any) -> np.ndarray:
    """The losses out of fold of a learner that sees the covariates only, fold by fold."""
    encoder, rows = SufficientEncoder("shop"), X[["a", "b"]].to_numpy()
    return np.concatenate(
        [
            loss(clone(learner).fit(rows[train], y[train]), rows[test], y[test])
            for train, test in encoder._folds(encoder._read(X, y, None))
        ]
    )


def test_a_regressor_asks_for_a_quantity():
    X, y = drawn()
    whole = np.round(y)
    asked = SufficientEncoder("shop", estimator=TREE, families=("prediction",)).fit(X, whole)
    assert asked.target_type_ == "continuous"
    expected = losses_without_the_column(
        X, whole, TREE, lambda model, rows, y: (model.predict(rows) - y) ** 2
    )
    n_rows = asked.report_["candidates"]["n_rows"][0]
    np.testing.assert_allclose(asked.report_["candidates"]["loss"][0], expected[:n_rows].mean(), rtol=1e-10)
    guessed = SufficientEncoder("shop", estimator=DummyClassifier(), families=()).fit(X, whole)
    assert guessed.target_type_ == "multiclass"


@pytest.mark.parametrize("estimator", [LogisticRegression(), RidgeClassifier()], ids=["log P", "errors"])
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_classes_are_judged_by_probability_or_else_by_error(estimator, kind):
    X, y = drawn(level=2.0)
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [0.0, 1.0] if kind == "multiclass" else [0.0])]
    encoder = SufficientEncoder("shop", estimator=estimator).fit(X, labels)
    assert encoder.target_type_ == kind
    assert set(PREDICTION) <= set(encoder.chosen_)

    def loss(model: Any, rows: Any, labels: Any) -> Any:
        if not hasattr(model, "predict_proba"):
            return model.predict(rows) != labels
        place = np.searchsorted(model.classes_, labels)
        return -np.log(model.predict_proba(rows)[np.arange(len(rows)), place])

    expected = losses_without_the_column(X, labels, estimator, loss)
    n_rows = encoder.report_["candidates"]["n_rows"][0]
    np.testing.assert_allclose(encoder.report_["candidates"]["loss"][0], expected[:n_rows].mean(), rtol=1e-8)


def test_where_there_are_no_columns_the_commonest_class_is_judged_like_the_classifier():
    X, y = drawn()
    labels = np.where(y > 1, "high", "low")
    report = quick(estimator=RidgeClassifier()).fit(X[["shop"]], labels).report_["candidates"]
    np.testing.assert_allclose(report["loss"][0], np.mean(labels == "high"))
    assert max(report["loss"]) < 0.5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_are_judged_by_boosting_that_stops_early(n_classes):
    X, y = drawn(level=3.0, n=300)
    labels = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))]
    encoder = SufficientEncoder("shop", cv=3).fit(X, labels)
    assert set(PREDICTION) <= set(encoder.chosen_)
    assert min(encoder.report_["candidates"]["loss"]) < 0.8 * np.log(n_classes)


@pytest.mark.parametrize("n_rare", [0, 1])
def test_a_class_that_a_fold_lacks_does_no_harm(n_rare):
    X, _ = drawn()
    y = (np.arange(len(X)) < n_rare).astype(int)
    encoder = SufficientEncoder("shop", estimator=LogisticRegression())
    assert np.isfinite(encoder.fit_transform(X, y)).all()
    assert encoder.target_type_ == "binary"
    assert np.isfinite(encoder.report_["candidates"]["loss"]).all()
    assert n_rare or encoder.chosen_ == ()


# Training rows.


@pytest.mark.parametrize(
    "components",
    [*((name,) for name in COMPONENTS), ("target_mean", "states"), (*DESCRIPTION, *PREDICTION)],
    ids=" + ".join,
)
def test_a_row_does_not_see_its_own_target(components, choose):
    choose(*components)
    X, y = drawn(level=2.0, n=60, n_levels=5)
    changed = y.copy()
    changed[7] = 50.0
    before, after = (SufficientEncoder("shop").fit_transform(X, target) for target in (y, changed))
    np.testing.assert_allclose(after[7], before[7], atol=1e-9)
    if set(components) & set(PREDICTION):
        assert np.abs(after - before).max() > 0.01  # but other rows do


def test_a_row_does_not_see_its_own_target_where_nothing_is_forced():
    X, y = drawn(level=3.0)
    encoder = quick(estimator=TREE)
    before = encoder.fit_transform(X, y)
    for i in (0, 100):
        changed = y.copy()
        changed[i] += 3.0
        after = encoder.fit_transform(X, changed)
        assert set(PREDICTION) <= set(encoder.chosen_)
        np.testing.assert_allclose(after[i], before[i], atol=1e-9)
        assert np.abs(after - before).max() > 1e-3


# Frames, pipelines.


@pytest.mark.parametrize(
    ("library", "output"),
    [("pandas", "polars"), ("polars", "pandas"), ("pyarrow", "pandas"), ("numpy", "polars")],
)
def test_every_library_gives_the_same(library, output):
    X, y = shops()
    columns = {name: X[name].tolist() for name in X.columns}
    make = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "pyarrow": pa.table,
        "numpy": lambda _: X.to_numpy(),
    }
    encoder = quick(2).set_output(transform=output)
    found = encoder.fit_transform(make[library](columns), y)
    assert type(found).__module__.partition(".")[0] == output
    assert list(found.columns) == encoder.get_feature_names_out().tolist()
    expected = quick().fit_transform(X, y)
    np.testing.assert_allclose(
        np.asarray(found)[:, -1].astype(float), expected[:, -1].astype(float), rtol=1e-12
    )


def test_it_is_a_step_that_is_searched_and_cross_validated():
    X, y = shops()
    X = X.drop(columns="town")
    pipeline = make_pipeline(quick(), Ridge())
    assert cross_val_score(pipeline, X, y, cv=3, error_score="raise").min() > 0.8
    search = GridSearchCV(pipeline, {"sufficientencoder__families": [(), ("prediction",)]}, cv=2)
    assert search.fit(X, y).best_params_ == {"sufficientencoder__families": ("prediction",)}


def test_a_clone_has_the_parameters_and_nothing_learnt():
    encoder = quick(max_rows=50, cv=4, verbose=0, random_state=3).fit(*shops())
    copy = clone(encoder)
    assert repr(copy) == repr(encoder)
    assert [name for name in vars(copy) if name.endswith("_")] == []


# Mistakes.


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (None, "y to be passed"),
        (np.where(np.arange(120) == 3, np.nan, 1.5), "contains NaN or infinity in 1 row"),
        (np.arange(7.0), "X has 120 row"),
        (["text"] * 120, "target_type is 'continuous'"),
    ],
    ids=["none", "nan", "length", "text"],
)
def test_a_target_that_makes_no_sense_leaves_the_encoder_as_it_was(y, text):
    X, price = shops()
    encoder = quick().fit(X, price)
    before, fitted = encoder.transform(X), dict(vars(encoder))
    for method in (encoder.fit, encoder.fit_transform):
        with pytest.raises(errors.SufrepError, match=text):
            method(X, y)
    assert vars(encoder) == fitted
    np.testing.assert_array_equal(encoder.transform(X), before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("estimator", 3), ("families", "prediction"), ("n_jobs", 1.5), ("max_rows", 1)),
        *(("target_type", "ordinal"), ("cv", 1), ("verbose", "yes"), ("random_state", -1)),
        *(("missing", "ignore"), ("unseen", "level")),
    ],
)
def test_parameters_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of SufficientEncoder must be"):
        SufficientEncoder("shop", **{name: value}).fit(*shops())


def test_folds_must_hold_every_row_once():
    with pytest.raises(errors.SplitError, match="120"):
        quick(cv=[(range(60), range(60, 120))]).fit(*shops())


@pytest.mark.parametrize(
    ("estimator", "target_type", "wanted"),
    [(LogisticRegression(), "continuous", "a regressor"), (Ridge(), "binary", "a classifier")],
)
def test_a_learner_for_another_kind_of_target_is_refused(estimator, target_type, wanted):
    X, y = shops()
    with pytest.raises(errors.InvalidParameterError, match=wanted):
        SufficientEncoder("shop", estimator=estimator, target_type=target_type).fit(X, (y > 3).astype(int))


def test_a_generator_of_folds_is_refused_before_the_work():
    X, y = shops()
    with pytest.raises(errors.InvalidParameterError, match="works only once"):
        quick(cv=KFold(3).split(X)).fit(X, y)


def test_several_processes_give_no_warning(recwarn):
    X, y = drawn(level=3.0)
    quick(n_jobs=2).fit(X, y)
    assert [str(item.message) for item in recwarn if issubclass(item.category, UserWarning)] == []


# Progress.


@pytest.mark.parametrize("verbose", [0, 1])
def test_progress_has_a_line_for_each_fold(verbose, capsys):
    quick(verbose=verbose).fit(*shops())
    printed = capsys.readouterr()
    assert printed.out == ""
    expected = [f"[SufficientEncoder] fold {fold} of 3 judged" for fold in (1, 2, 3)] if verbose else []
    assert [line.rpartition(" (")[0] for line in printed.err.splitlines()] == expected


def test_a_terminal_shows_progress_in_a_single_line(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    quick(verbose=1).fit(shops()[0][["shop"]], shops()[1])
    printed = capsys.readouterr().err
    assert printed.count("\r") == 3
    assert printed.endswith("\n")
    assert printed.count("\n") == 1


@pytest.fixture
def pair(choose: Callable[..., None]) -> tuple[str, str]:
    """A pair of components that is chosen without a search."""
    components = ("mixed_model", "target_mean")
    choose(*components)
    return components


# Groups and covariates.


@pytest.mark.parametrize("group", ["shop", [("shop", "town")]])
def test_columns_that_pass_through_are_followed_by_those_of_each_component(group, pair):
    parts = parts_of_the_output(group, pair)
    (name,) = SufficientEncoder(group).fit(*shops()).representations_
    assert [part.columns.tolist() for part in parts] == [[f"{name}_{end}"] for end in ("fit", "mean_target")]


@pytest.mark.parametrize("group", [["shop", "town"], ["town", ("shop", "town")]])
def test_those_of_several_groups_are_named_after_them(group, choose):
    choose("indicators", "effects", "mixed_model")
    _, effects, fits = parts_of_the_output(group, ("indicators", "effects", "mixed_model"))
    names = list(SufficientEncoder(group).fit(*shops()).representations_)
    assert effects.columns[:2].tolist() == [f"{name}_effect" for name in names]
    assert effects.columns[2].endswith("_total")
    assert fits.columns.tolist() == [f"{name}_fit" for name in names]


def parts_of_the_output(group: Any, components: Sequence[str]) -> list[pd.DataFrame]:
    """The columns of each component, which stand next to each other in the output."""
    X, y = shops()
    encoder = SufficientEncoder(group).set_output(transform="pandas").fit(X, y)
    found = encoder.transform(X)
    assert list(encoder.encoders_) == list(encoder.chosen_) == list(components)
    parts = [
        component.set_output(transform="pandas").transform(X) for component in encoder.encoders_.values()
    ]
    used = {column for part in encoder.layout_.groups for column in part}
    kept = X[[name for position, name in enumerate(X.columns) if position not in used]]
    pd.testing.assert_frame_equal(found, pd.concat([kept, *parts], axis=1))
    assert found.columns.tolist() == encoder.get_feature_names_out().tolist()
    return parts


def test_the_level_table_has_the_vectors_of_all_components_under_distinct_names(pair):
    X, y = shops()
    encoder = SufficientEncoder("shop", covariates=["a"]).fit(X, y)
    table = encoder.table(library="pandas").set_index("shop")
    names = ["shop_intercept", "shop_slope_a", "shop_mean_target"]
    assert table.columns.tolist() == ["weight", *names]
    for component, columns in zip(pair, (names[:2], names[2:]), strict=True):
        own = encoder.encoders_[component].table(library="pandas").set_index("shop")
        np.testing.assert_array_equal(table[columns], own.drop(columns="weight"))
    assert len(encoder.plot().to_dict()["data"]["values"]) == 6


def test_a_column_that_is_encoded_and_a_table_without_a_group_give_no_warning_of_dropping():
    X, y = shops()
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.UninformativeGroupWarning)
        quick().fit(X, y)
        with pytest.warns(errors.NoGroupWarning, match="X has none"):
            quick(None).fit(X[["a", "b"]], y)


def test_a_dropped_column_still_has_a_table_of_levels():
    encoder = quick(families=()).fit(*shops())
    assert encoder.table(library="pandas").columns.tolist() == ["shop", "weight"]
    assert encoder.plot().to_dict()["data"]["values"]


def test_covariates_may_be_named_and_text_may_join_them(choose):
    choose("means")
    X, y = shops()
    named = SufficientEncoder("shop", covariates=["b"]).fit(X, y)
    assert named.get_feature_names_out().tolist() == ["a", "b", "town", "shop_mean_b"]
    shared = SufficientEncoder("shop", categorical_covariates="share", remainder="drop").fit(X, y)
    columns = ["a", "b", "town=x", "town=y", "town=z"]
    assert shared.get_feature_names_out().tolist() == [f"shop_mean_{column}" for column in columns]


def test_the_learner_sees_all_numbers_and_the_categories_that_join():
    X, y = shops()
    X["c"], X["d"] = np.arange(len(X)), pd.Timestamp("2024-01-01")
    widths: list[int] = []

    class Watching(Ridge):
        def fit(self, columns: Any, y: Any, sample_weight: Any = None) -> Any:
            widths.append(columns.shape[1])
            return super().fit(columns, y, sample_weight)

    quick(estimator=Watching(), covariates=["a"]).fit(X, y)
    assert set(widths) == {3, 3 + 4}
    widths.clear()
    quick(estimator=Watching(), categorical_covariates="share").fit(X, y)
    assert set(widths) == {3 + 3, 3 + 3 + 4}


def test_text_and_times_pass_through_unchanged():
    X, y = shops()
    X["day"] = pd.Timestamp("2024-01-01")
    found = quick().set_output(transform="pandas").fit_transform(X, y)
    pd.testing.assert_frame_equal(found[["a", "b", "town", "day"]], X[["a", "b", "town", "day"]])


def test_there_may_be_no_covariates():
    X, y = shops()
    encoder = SufficientEncoder("shop").fit(X[["shop"]], y)
    assert encoder.report_["candidates"]["candidate"] == ["drop", "prediction"]
    assert encoder.chosen_ == PREDICTION
    assert np.corrcoef(encoder.transform(X[["shop"]])[:, 0], y)[0, 1] > 0.9


def test_there_may_be_no_group():
    rows = shops()[0][["a", "b"]].to_numpy()
    encoder = SufficientEncoder(estimator=Ridge()).fit(rows, rows[:, 0])
    assert encoder.report_["candidates"]["candidate"] == ["drop"]
    np.testing.assert_array_equal(encoder.transform(rows), rows)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_one_to_three_rows_are_enough(n):
    X, y = shops()
    found = SufficientEncoder("shop").fit_transform(X[["a", "b", "shop"]][:n], y[:n])
    assert found.shape[0] == n
    assert np.isfinite(found.astype(float)).all()


def test_a_single_level_is_dropped_with_a_warning():
    X, y = shops()
    X = X.drop(columns="town")
    with pytest.warns(
        errors.UninformativeGroupWarning, match=r"No column is made of 'shop'. .*\nHint"
    ) as all_:
        encoder = SufficientEncoder("shop").fit(X.assign(shop="one"), y)
    assert [str(item.message).splitlines()[0] for item in all_] == [
        f"No column is made of 'shop'. {encoder.report_['summary']}"
    ]
    assert all_[0].filename == __file__
    assert encoder.chosen_ == ()
    assert encoder.representations_["shop"].weight.tolist() == [120]


def test_covariates_of_nulls_do_no_harm():
    X, y = shops()
    encoder = SufficientEncoder("shop").fit(X.assign(a=np.nan), y)
    assert set(PREDICTION) <= set(encoder.chosen_)


def test_rare_levels_share_a_vector():
    X, y = shops()
    X.loc[[0, 1], "shop"] = ["rare 1", "rare 2"]
    table = quick(min_frequency=5).fit(X, y).table(library="pandas").set_index("shop")["shop_mean_target"]
    assert table["rare 1"] == table["rare 2"]
    assert table.nunique() == 7


# Nulls and levels never seen.


def encoder_columns(encoder: SufficientEncoder) -> list[str]:
    return encoder.get_feature_names_out().tolist()


def test_nulls_are_a_level_the_prior_or_an_error():
    X, y = shops()
    X["shop"] = X["shop"].where(X["shop"] != "ann", None)
    as_level, as_prior = (quick(missing=missing).fit(X, y) for missing in ("level", "prior"))
    assert as_level.representations_["shop"].levels.tolist()[-1] is None
    known = as_prior.representations_["shop"]
    assert None not in known.levels.tolist()
    target = encoder_columns(as_prior).index("shop_mean_target")
    assert as_prior.transform(X)[0, target] == known.prior[0]
    assert as_level.transform(X)[0, target] < known.prior[0]  # the shop's own mean, the least of all
    with pytest.raises(errors.MissingLevelError, match="'shop'"):
        quick(missing="error").fit(X, y)


def test_a_group_that_is_null_everywhere_has_no_level():
    X, y = shops()
    with pytest.raises(errors.NoLevelError, match="'shop' has no level"):
        quick(missing="prior").fit(X.assign(shop=None), y)
    with pytest.raises(errors.NoLevelError, match="'shop' has no level"):
        quick(missing="prior").fit(X[:2].assign(shop=["a", None]), y[:2], sample_weight=[0.0, 1.0])


@pytest.mark.parametrize("max_rows", [2, 20_000])
def test_a_fold_may_have_no_level_at_all(max_rows):
    X, y = shops()
    X["shop"] = ["ann", *[None] * 119]
    encoder = SufficientEncoder("shop", missing="prior", max_rows=max_rows, cv=2).fit(X, y)
    assert encoder.report_["candidates"]["candidate"] == CANDIDATES


@pytest.mark.parametrize("families", [(), ("prediction",)], ids=["dropped", "encoded"])
def test_a_level_never_seen_is_estimated_gets_the_prior_or_is_refused(families):
    X, y = shops()
    new = X[:3].assign(shop="new")
    for unseen in ("estimate", "prior"):
        encoder = quick(families=families, unseen=unseen).fit(X, y)
        parts = [part.transform(new) for part in encoder.encoders_.values()]
        np.testing.assert_array_equal(encoder.transform(new)[:, 3:], np.hstack([np.empty((3, 0)), *parts]))
        later = quick(families=families).fit(X, y).set_params(unseen=unseen)
        np.testing.assert_array_equal(later.transform(new), encoder.transform(new))
    strict = quick(families=families, unseen="error").fit(X, y)
    assert strict.transform(X).shape == (120, 3 + 4 * len(families))
    with pytest.raises(errors.UnseenLevelError, match="1 unseen level"):
        strict.transform(new)


# Weights.


def test_rows_of_weight_zero_are_absent():
    X, y = shops()
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    counts = weights > 0
    X.loc[~counts, ["a", "shop"]] = [np.inf, "never counted"]
    weighted = quick().fit(X, y, weights)
    expected = quick().fit(X[counts], y[counts], weights[counts])
    assert weighted.report_ == expected.report_
    one, other = weighted.representations_["shop"], expected.representations_["shop"]
    assert one.levels.tolist() == other.levels.tolist()
    np.testing.assert_array_equal(one.weight, other.weight)
    np.testing.assert_allclose(one.values, other.values, atol=1e-12)


def test_folds_that_are_given_may_hold_rows_of_weight_zero():
    X, y = shops()
    weights = np.where(np.arange(120) % 3 == 0, 0.0, 2.0)
    kept = np.flatnonzero(weights)
    folds = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    left = [tuple(np.flatnonzero(np.isin(kept, part)) for part in fold) for fold in folds]
    found = quick(cv=folds).fit(X.assign(a=X["a"].where(weights > 0, np.inf)), y, weights).report_
    expected = quick(cv=left).fit(X.iloc[kept], y[kept], weights[kept]).report_
    np.testing.assert_allclose(found["candidates"]["loss"], expected["candidates"]["loss"], rtol=1e-12)
    np.testing.assert_allclose(
        found["candidates"]["standard_error"], expected["candidates"]["standard_error"], rtol=1e-12
    )
