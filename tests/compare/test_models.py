"""Learners by name, or the user's own; what is not installed is told."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sufrep._compare import make_models
from sufrep._compare._models import MODELS, LabelledClassifier
from sufrep.errors import InvalidParameterError, MissingDependencyError


@pytest.fixture
def without_xgboost(monkeypatch):
    """As if xgboost were not installed; the module may have been imported twice, so not by its path."""
    monkeypatch.setitem(MODELS["xgboost"].__globals__, "find_spec", lambda _: None)


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


def test_models_may_be_names_estimators_or_both():
    ridge = Ridge(alpha=3.0)
    models, _ = make_models(("linear", ridge), classes=False, seed=0)
    assert list(models) == ["linear", "Ridge"]
    assert models["Ridge"] is not ridge
    assert models["Ridge"].alpha == 3.0
    assert list(make_models(ridge, classes=False, seed=0)[0]) == ["Ridge"]


def test_a_mapping_gives_them_names_of_the_user_s():
    given = {"weak": Ridge(1.0), "strong": Ridge(99.0), "trees": "forest"}
    assert list(make_models(given, classes=False, seed=0)[0]) == ["weak", "strong", "trees"]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("forst", r"models is 'forst'.\n.*one of forest, xgboost, boosting, linear.*did you mean 'forest'\?"),
        ("zzz", r"or an estimator\.$"),
        (3, "an estimator that is not yet fitted"),
        (Ridge, "an estimator that is not yet fitted"),
        ([], "at least one of forest"),
        ({}, "at least one of forest"),
        ([Ridge(), Ridge()], "there are two 'Ridge'"),
        (LogisticRegression(), "a regressor"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "a regressor"),
    ],
)
def test_what_is_no_model_is_told(models, message):
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
        "xgboost is left out. The model 'xgboost' needs the package 'xgboost', which is not installed. "
        'Hint: pip install "sufrep[boost]"'
    ]


@pytest.mark.usefixtures("without_xgboost")
def test_if_no_model_is_installed_it_is_an_error():
    with pytest.raises(MissingDependencyError, match=r"not installed.\nHint: pip install .sufrep\[boost\]"):
        make_models(["xgboost"], classes=True, seed=0)


def test_classes_of_any_kind_reach_a_classifier_as_positions():
    class Codes(DummyClassifier):
        def fit(self, X, y):
            assert sorted(set(y)) == [0, 1, 2]
            return super().fit(X, y)

    y = np.array(["b", "a", "c", "b"])
    model = clone(LabelledClassifier(Codes(strategy="prior"))).fit(np.zeros((4, 1)), y)
    assert model.predict(np.zeros((2, 1))).tolist() == ["b", "b"]
    assert model.classes_.tolist() == ["a", "b", "c"]
