"""Models by name or the user's own, the model that judges columns, and the log loss."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sufrep._models import (
    MIN_PROBABILITY,
    MODELS,
    LabelledClassifier,
    is_default_boosting,
    log_losses,
    make_learner,
    make_models,
)
from sufrep.errors import InvalidParameterError, MissingDependencyError

# Models by name


@pytest.fixture
def without_xgboost(monkeypatch):
    """As if xgboost were not installed."""
    monkeypatch.setitem(sys.modules, "xgboost", None)


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_learns_classes_and_numbers(name, classes):
    models, notes = make_models(name, classes=classes, seed=0)
    assert (list(models), notes) == ([name], [])
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "yes", "no") if classes else X[:, 0]
    model = models[name].fit(X, y)
    assert is_classifier(model) is classes
    assert len(model.predict(X)) == 60
    if classes:
        assert model.classes_.tolist() == ["no", "yes"]
        assert np.mean(model.predict(X) == y) > 0.9
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("name", ["forest", "xgboost", "boosting"])
def test_a_seed_makes_a_model_repeatable(name):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    (one, again) = (make_models(name, classes=False, seed=3)[0][name].fit(X, y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(one, again)


def test_the_linear_model_takes_a_column_without_any_value():
    X = np.column_stack([np.arange(9.0), np.full(9, np.nan)])
    assert make_models("linear", classes=False, seed=0)[0]["linear"].fit(X, np.arange(9.0)).predict(
        X
    ).shape == (9,)


def test_models_are_names_estimators_or_both():
    ridge = Ridge(alpha=3.0)
    models, _ = make_models(("linear", ridge), classes=False, seed=0)
    assert list(models) == ["linear", "Ridge"]
    assert models["Ridge"] is not ridge
    assert models["Ridge"].alpha == 3.0
    assert list(make_models(ridge, classes=False, seed=0)[0]) == ["Ridge"]


def test_a_mapping_sets_the_labels():
    given = {"weak": Ridge(1.0), "strong": Ridge(99.0), "trees": "forest"}
    assert list(make_models(given, classes=False, seed=0)[0]) == ["weak", "strong", "trees"]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("forst", r"models is 'forst'.\n.*one of boosting, xgboost, forest, linear.*did you mean 'forest'\?"),
        ("zzz", r"or an estimator\.$"),
        (3, "an unfitted estimator"),
        (Ridge, "an unfitted estimator"),
        ([], "at least one of boosting"),
        ({}, "at least one of boosting"),
        ([Ridge(), Ridge()], "'Ridge' occurs twice"),
        (LogisticRegression(), "a regressor"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "a regressor"),
    ],
)
def test_anything_but_a_model_raises(models, message):
    with pytest.raises(InvalidParameterError, match=message):
        make_models(models, classes=False, seed=0)


def test_a_regressor_does_not_learn_classes():
    with pytest.raises(InvalidParameterError, match="a classifier for classes, or task='regression'"):
        make_models(DummyRegressor(), classes=True, seed=0)
    assert make_models(DummyClassifier(), classes=True, seed=0)[0]


@pytest.mark.usefixtures("without_xgboost")
def test_a_model_that_is_not_installed_is_left_out_with_a_note():
    models, notes = make_models(("linear", "xgboost"), classes=False, seed=0)
    assert list(models) == ["linear"]
    assert notes == [
        "xgboost was left out. The model 'xgboost' needs the package 'xgboost', which is not installed. "
        'Hint: pip install "sufrep[boost]"'
    ]


@pytest.mark.usefixtures("without_xgboost")
def test_if_no_model_is_installed_it_raises():
    with pytest.raises(MissingDependencyError, match=r"not installed.\nHint: pip install .sufrep\[boost\]"):
        make_models(["xgboost"], classes=True, seed=0)


def test_a_labelled_classifier_passes_on_positions_of_classes():
    class Codes(DummyClassifier):
        def fit(self, X, y):
            assert sorted(set(y)) == [0, 1, 2]
            return super().fit(X, y)

    y = np.array(["b", "a", "c", "b"])
    model = clone(LabelledClassifier(Codes(strategy="prior"))).fit(np.zeros((4, 1)), y)
    assert model.predict(np.zeros((2, 1))).tolist() == ["b", "b"]
    assert model.classes_.tolist() == ["a", "b", "c"]


# Judging columns


TWO, ONE = np.array([0, 1]), np.array([1, 1])


@pytest.mark.parametrize(
    ("classes", "n_columns", "y", "kind"),
    [
        (True, 3, TWO, HistGradientBoostingClassifier),
        (False, 3, TWO, HistGradientBoostingRegressor),
        (False, 3, ONE, HistGradientBoostingRegressor),
        (True, 3, ONE, DummyClassifier),
        (True, 0, TWO, DummyClassifier),
        (False, 0, TWO, DummyRegressor),
    ],
)
def test_without_columns_or_classes_the_prediction_is_constant(classes, n_columns, y, kind):
    learner = make_learner(None, classes=classes, n_columns=n_columns, y=y, random_state=0)
    assert type(learner) is kind


def test_the_user_s_estimator_is_cloned_and_options_reach_the_default():
    ridge = Ridge(alpha=3.0)
    learner = make_learner(ridge, classes=False, n_columns=1, y=TWO, random_state=0)
    assert learner is not ridge
    assert learner.alpha == 3.0
    ours = make_learner(None, classes=False, n_columns=1, y=TWO, random_state=7, max_iter=5)
    assert (ours.max_iter, ours.random_state, ours.early_stopping) == (5, 7, False)


rows = st.lists(st.tuples(st.lists(st.integers(1, 9), min_size=3, max_size=3), st.integers(0, 2)), min_size=1)


@given(rows)
def test_the_mean_loss_is_scikit_learn_s(rows):
    weights = np.array([weight for weight, _ in rows], dtype=float)
    shares = weights / weights.sum(axis=1, keepdims=True)
    y = np.array(["a", "b", "c"])[[place for _, place in rows]]
    losses = log_losses(shares, np.array(["a", "b", "c"]), y)
    assert losses.mean() == pytest.approx(log_loss(y, shares, labels=["a", "b", "c"]))


@pytest.mark.parametrize("label", ["impossible", "never seen"])
def test_the_loss_of_an_impossible_class_is_bounded(label):
    losses = log_losses(np.array([[1.0, 0.0]]), np.array(["sure", "impossible"]), np.array([label]))
    assert losses.tolist() == [-np.log(MIN_PROBABILITY)]


@pytest.mark.parametrize("classes", [False, True])
def test_the_default_boosting_stops_early_where_there_is_nothing_to_learn(classes):
    # Without it, 100 trees fit the noise, and columns that say nothing look as if they helped a little.
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(1000, 5)), rng.normal(size=1000)
    y = noise > 0 if classes else noise
    (model,) = make_models("boosting", classes=classes, seed=0)[0].values()
    assert model.fit(X, y).n_iter_ < 30
    assert model.fit(X, X[:, 0] > 0 if classes else X[:, 0]).n_iter_ > 50


@pytest.mark.parametrize("classes", [False, True])
def test_the_default_boosting_is_recognised_with_any_seed(classes):
    (model,) = make_models("boosting", classes=classes, seed=7)[0].values()
    assert is_default_boosting(model)
    assert not is_default_boosting(clone(model).set_params(max_iter=101))
    assert not any(
        is_default_boosting(make(classes, 0)) for name, make in MODELS.items() if name != "boosting"
    )
