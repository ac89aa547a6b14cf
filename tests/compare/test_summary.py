"""From outcomes to improvements, intervals and p-values, against formulas written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sufrep._compare import make_scoring
from sufrep._compare._run import Outcome
from sufrep._compare._summary import choose_baseline, fold_improvements, rivals, summarise

LOSS, SCORE = make_scoring(None, "regression"), make_scoring("r2", "regression")
law = settings(deadline=None, max_examples=50)
scores = st.lists(st.integers(1, 800).map(lambda value: value / 8), min_size=4, max_size=4)


def outcomes(model: str = "m", **losses: list[float | None]) -> list[Outcome]:
    """Scores of methods in the folds of one repetition; None is a failure."""
    return [
        Outcome(method, model, 0, fold, failure=f"no {fold}")
        if score is None
        else Outcome(method, model, 0, fold, score, 1.0 + fold, 0.5, 3 + fold)
        for method, values in losses.items()
        for fold, score in enumerate(values)
    ]


def of(summaries, method, model="m"):
    return next(item for item in summaries if (item.method, item.model) == (method, model))


@law
@given(scores, scores)
def test_an_improvement_is_the_mean_gain_as_a_share_of_the_baseline_s_mean_loss(ours, theirs):
    found = of(summarise(outcomes(one_hot=theirs, means=ours), LOSS, "one_hot", 4), "means")
    gains = np.subtract(theirs, ours)
    base = np.mean(theirs)
    assert found.score == pytest.approx(np.mean(ours))
    assert found.improvement == pytest.approx(1 - np.mean(ours) / base)
    error = math.sqrt((1 / 4 + 1 / 3) * gains.var(ddof=1))
    half = stats.t.ppf(0.975, 3) * error
    assert (found.low, found.high) == pytest.approx(
        ((gains.mean() - half) / base, (gains.mean() + half) / base)
    )
    if error > 0:
        assert found.p_plain == pytest.approx(stats.ttest_rel(theirs, ours).pvalue)
        assert found.p_corrected == pytest.approx(2 * stats.t.sf(abs(gains.mean()) / error, 3))


@law
@given(scores, scores)
def test_an_improvement_of_a_score_is_the_mean_difference(ours, theirs):
    found = of(summarise(outcomes(one_hot=theirs, means=ours), SCORE, "one_hot", 4), "means")
    assert found.improvement == pytest.approx(np.mean(ours) - np.mean(theirs))


def test_p_values_are_adjusted_within_a_model():
    rng = np.random.default_rng(0)
    items = [
        item
        for model in ("m", "n")
        for item in outcomes(
            model, **{name: list(rng.uniform(1, 2, 4)) for name in ("one_hot", "a", "b", "c")}
        )
    ]
    summaries = summarise(items, LOSS, "one_hot", 4)
    for model in ("m", "n"):
        ours = [item for item in summaries if item.model == model and item.method != "one_hot"]
        smallest = min(ours, key=lambda item: item.p_corrected)
        assert smallest.p_adjusted == pytest.approx(min(1, 3 * smallest.p_corrected))
        assert all(item.p_adjusted >= item.p_corrected for item in ours)


def test_the_best_comes_first_and_failures_last():
    items = outcomes(one_hot=[3, 3], a=[None, None], b=[1, 2], c=[2, None])
    assert [item.method for item in summarise(items, LOSS, "one_hot", 2)] == ["b", "one_hot", "a", "c"]
    assert [item.method for item in summarise(items, SCORE, "one_hot", 2)] == ["one_hot", "b", "a", "c"]


def test_the_baseline_is_not_compared_with_itself():
    found = of(summarise(outcomes(one_hot=[3, 4]), LOSS, "one_hot", 2), "one_hot")
    assert found.improvement == 0
    assert np.isnan([found.low, found.high, found.p_plain, found.p_corrected, found.p_adjusted]).all()


def test_a_failure_tells_its_reason_and_in_how_many_splits():
    summaries = summarise(outcomes(one_hot=[3, 3, 3], a=[1, None, None], b=[None] * 3), LOSS, "one_hot", 3)
    some, all_ = of(summaries, "a"), of(summaries, "b")
    assert (some.failure, some.n_splits, some.failed) == ("in 2 of 3 splits: no 1", 1, True)
    assert (all_.failure, all_.n_splits, all_.n_columns) == ("no 0", 0, 0)
    assert np.isnan([some.score, some.improvement, all_.fit_seconds]).all()


def test_times_are_medians_and_columns_the_most():
    found = of(summarise(outcomes(one_hot=[3, 3, 3]), LOSS, "one_hot", 3), "one_hot")
    assert (found.fit_seconds, found.predict_seconds, found.n_columns) == (2.0, 0.5, 5)


def test_a_baseline_without_loss_cannot_be_improved_on():
    found = of(summarise(outcomes(one_hot=[0, 0], a=[1, 2]), LOSS, "one_hot", 2), "a")
    assert np.isnan([found.improvement, found.low, found.high]).all()
    assert found.score == 1.5


@pytest.mark.parametrize(
    ("items", "baseline"),
    [
        (outcomes(one_hot=[1, 1], drop=[1, 1]), "one_hot"),
        (outcomes(one_hot=[1, None], means=[1, 1], drop=[1, 1]), "drop"),
        (outcomes(one_hot=[None, 1], means=[1, 1]), "means"),
        (outcomes(one_hot=[None], means=[None]), "one_hot"),
        ([*outcomes(one_hot=[1], drop=[1]), *outcomes("n", one_hot=[None], drop=[1])], "drop"),
    ],
)
def test_the_baseline_is_one_hot_or_else_dropping_or_else_what_works(items, baseline):
    assert choose_baseline(items) == baseline


def test_where_the_baseline_fails_with_a_model_nothing_is_compared():
    items = [*outcomes(one_hot=[2, 2], a=[1, 1]), *outcomes("n", one_hot=[None, 1], a=[1, 2])]
    assert math.isnan(of(summarise(items, LOSS, "one_hot", 2), "a", "n").improvement)
    assert fold_improvements(items, LOSS, "one_hot", "n") == {}


def test_improvements_fold_by_fold_are_shares_of_each_fold_s_baseline():
    items = outcomes(one_hot=[2.0, 4.0], a=[1.0, 3.0], b=[1.0, None])
    found = fold_improvements(items, LOSS, "one_hot", "m")
    assert {method: values.tolist() for method, values in found.items()} == {
        "one_hot": [0, 0],
        "a": [0.5, 0.25],
    }
    assert fold_improvements(items, SCORE, "one_hot", "m")["a"].tolist() == [-1, -1]
    assert fold_improvements(items, LOSS, "nothing", "m") == {}


def test_rivals_are_what_the_test_leaves_in_doubt_and_what_was_ahead_in_some_fold():
    items = outcomes(
        best=[1.0, 1.0, 1.0, 1.0],
        near=[1.2, 0.9, 1.1, 1.0],
        worse=[2.0, 2.1, 2.0, 1.9],
        far_in_one=[1.1, 1.1, 1.1, 90.0],  # p is large, but it is behind in every fold
        failed=[0.5, None, 1.0, 1.0],
    )
    items += outcomes("other", near=[1.0, 1.0, 1.0, 1.0])
    assert rivals(items, LOSS, ("m", "best"), 4) == ["near"]


def test_one_split_has_no_rivals():
    assert rivals(outcomes(best=[1.0], near=[1.0]), LOSS, ("m", "best"), 1) == []
