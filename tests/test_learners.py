"""Learners that judge columns, and what wrong probabilities cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss

from sufrep._learners import LEAST_PROBABILITY, log_losses, make_learner

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
def test_what_cannot_be_learnt_from_is_left_to_a_guess(classes, n_columns, y, kind):
    learner = make_learner(None, classes=classes, n_columns=n_columns, y=y, random_state=0)
    assert type(learner) is kind


def test_the_user_s_learner_is_cloned_and_options_reach_ours():
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
def test_what_was_thought_impossible_costs_much_but_not_everything(label):
    losses = log_losses(np.array([[1.0, 0.0]]), np.array(["sure", "impossible"]), np.array([label]))
    assert losses.tolist() == [-np.log(LEAST_PROBABILITY)]
