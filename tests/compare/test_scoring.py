"""Losses and scores: the usual ones, those of scikit-learn, and the user's own."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import log_loss, mean_absolute_error, mean_squared_error, r2_score

from sufrep._compare import make_scoring
from sufrep.errors import InvalidParameterError

X = np.zeros((6, 1))
y = np.array([1.0, 2, 3, 4, 5, 9])
classes = np.array(["a", "b", "b", "c", "b", "a"])
regressor = DummyRegressor().fit(X, y)
classifier = DummyClassifier().fit(X, classes)
shares = st.floats(-0.9, 0.9)


def test_without_a_name_it_is_the_mean_squared_error_or_the_log_loss():
    scoring = make_scoring(None, "regression")
    assert (scoring.name, scoring.is_loss) == ("mean squared error", True)
    assert scoring.measure(regressor, X, y) == pytest.approx(mean_squared_error(y, regressor.predict(X)))
    for task in ("binary", "multiclass"):
        scoring = make_scoring(None, task)
        assert (scoring.name, scoring.is_loss) == ("log loss", True)
        expected = log_loss(classes, classifier.predict_proba(X))
        assert scoring.measure(classifier, X, classes) == pytest.approx(expected)


def test_a_negative_loss_of_scikit_learn_s_is_a_loss_and_can_be_sent_to_workers():
    scoring = make_scoring("neg_mean_absolute_error", "regression")
    assert (scoring.name, scoring.is_loss) == ("mean absolute error", True)
    measure = pickle.loads(pickle.dumps(scoring.measure))
    assert measure(regressor, X, y) == pytest.approx(mean_absolute_error(y, regressor.predict(X)))


def test_other_names_are_scores():
    scoring = make_scoring("r2", "regression")
    assert (scoring.name, scoring.is_loss) == ("r2", False)
    assert scoring.measure(regressor, X, y) == pytest.approx(r2_score(y, regressor.predict(X)))
    assert make_scoring("balanced_accuracy", "binary").name == "balanced accuracy"


def test_a_callable_is_a_score_by_its_name():
    def closeness(model, X, y):
        return -float(np.abs(model.predict(X) - y).max())

    scoring = make_scoring(closeness, "regression")
    assert (scoring.name, scoring.is_loss, scoring.measure(regressor, X, y)) == ("closeness", False, -5.0)
    assert make_scoring(pickle.loads, "regression").name == "loads"


@pytest.mark.parametrize(
    ("name", "message"),
    [("rocauc", r"\(did you mean 'roc_auc' or"), ("zzzzzz", r"scikit-learn's \(accuracy, ")],
)
def test_an_unknown_name_is_told_with_the_known_ones(name, message):
    with pytest.raises(InvalidParameterError, match=message):
        make_scoring(name, "regression")


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1, max_size=5), st.booleans())
def test_gains_are_positive_where_it_is_better(pairs, is_loss):
    scoring = make_scoring(None if is_loss else "r2", "regression")
    theirs, ours = np.array(pairs).T
    gains = scoring.gains(theirs, ours)
    for gain, one, other in zip(gains, ours, theirs, strict=True):
        assert (gain > 0) == scoring.better(one, other)
    assert scoring.unit(theirs) == (theirs.mean() if is_loss else 1.0)


@given(shares)
def test_improvements_of_losses_are_percent_and_those_of_scores_are_points(share):
    loss, score = make_scoring(None, "regression"), make_scoring("r2", "regression")
    assert loss.improvement_text(share) == f"{100 * share:+.1f}\u00a0%"
    assert score.improvement_text(share) == f"{share:+.4f}"
    assert loss.improvement_text(abs(share), sign=False)[0] != "+"
