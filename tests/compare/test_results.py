"""From fold scores to improvements, intervals, p-values and the verdict, against formulas written out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sufrep._compare._results import (
    Summary,
    choose_baseline,
    find_ties,
    fold_improvements,
    make_verdict,
    summarise,
)
from sufrep._compare._run import FoldScore, make_scoring

# Summaries


LOSS, SCORE = make_scoring(None, "regression"), make_scoring("r2", "regression")
law = settings()
scores = st.lists(st.integers(1, 800).map(lambda value: value / 8), min_size=4, max_size=4)


def scored(model: str = "m", **losses: list[float | None]) -> list[FoldScore]:
    """Scores of methods in the folds of one repetition; None is a failure."""
    return [
        FoldScore(method, model, 0, fold, failure=f"no {fold}")
        if score is None
        else FoldScore(method, model, 0, fold, score, 1.0 + fold, 0.5, 3 + fold)
        for method, values in losses.items()
        for fold, score in enumerate(values)
    ]


def of(summaries, method, model="m"):
    return next(item for item in summaries if (item.method, item.model) == (method, model))


@law
@given(scores, scores)
def test_an_improvement_is_the_mean_gain_as_a_share_of_the_baseline_s_mean_loss(ours, theirs):
    found = of(summarise(scored(one_hot=theirs, means=ours), LOSS, "one_hot", 4), "means")
    gains = np.subtract(theirs, ours)
    base = np.mean(theirs)
    assert found.score == pytest.approx(np.mean(ours))
    assert found.improvement == pytest.approx(1 - np.mean(ours) / base)
    error = math.sqrt((1 / 4 + 1 / 3) * gains.var(ddof=1))
    half = stats.t.ppf(0.975, 3) * error
    assert (found.no_test is None) == (error > 0)
    if error > 0:
        assert (found.low, found.high) == pytest.approx(
            ((gains.mean() - half) / base, (gains.mean() + half) / base)
        )
        assert found.p_plain == pytest.approx(stats.ttest_rel(theirs, ours).pvalue)
        assert found.p_corrected == pytest.approx(2 * stats.t.sf(abs(gains.mean()) / error, 3))


@law
@given(scores, scores)
def test_an_improvement_of_a_score_is_the_mean_difference(ours, theirs):
    found = of(summarise(scored(one_hot=theirs, means=ours), SCORE, "one_hot", 4), "means")
    assert found.improvement == pytest.approx(np.mean(ours) - np.mean(theirs))


def test_p_values_are_adjusted_within_a_model():
    rng = np.random.default_rng(0)
    items = [
        item
        for model in ("m", "n")
        for item in scored(model, **{name: list(rng.uniform(1, 2, 4)) for name in ("one_hot", "a", "b", "c")})
    ]
    summaries = summarise(items, LOSS, "one_hot", 4)
    for model in ("m", "n"):
        ours = [item for item in summaries if item.model == model and item.method != "one_hot"]
        smallest = min(ours, key=lambda item: item.p_corrected)
        assert smallest.p_adjusted == pytest.approx(min(1, 3 * smallest.p_corrected))
        assert all(item.p_adjusted >= item.p_corrected for item in ours)


@pytest.mark.parametrize(
    ("ours", "reason"),
    [
        ([0.8], "one fold"),
        ([0.8, 0.9], "two folds"),
        ([0.8, 0.9, 0.7], "the gains are equal in all folds"),  # 0.1 each, but for rounding
        ([0.7, 0.8, 0.6], "the gains are equal in all folds"),
    ],
)
def test_where_no_honest_test_exists_there_is_a_reason_and_no_p_value(ours, reason):
    theirs = [0.7, 0.8, 0.6][: len(ours)]
    summaries = summarise(scored(one_hot=theirs, a=ours), SCORE, "one_hot", 3)
    found = of(summaries, "a")
    assert found.no_test == reason
    assert np.isnan([found.low, found.high, found.p_plain, found.p_corrected, found.p_adjusted]).all()
    assert found.improvement == pytest.approx(np.mean(ours) - np.mean(theirs))
    assert of(summaries, "one_hot").no_test is None


def test_what_was_not_tested_does_not_count_as_a_test_in_the_adjustment():
    items = scored(one_hot=[3.0, 3.0, 3.0, 3.0], equal=[3.0, 3.0, 3.0, 3.0], a=[2.0, 1.0, 2.5, 2.2])
    found = of(summarise(items, LOSS, "one_hot", 4), "a")
    assert found.p_adjusted == found.p_corrected < 1


def test_the_best_comes_first_and_failures_last():
    items = scored(one_hot=[3, 3], a=[None, None], b=[1, 2], c=[2, None])
    assert [item.method for item in summarise(items, LOSS, "one_hot", 2)] == ["b", "one_hot", "a", "c"]
    assert [item.method for item in summarise(items, SCORE, "one_hot", 2)] == ["one_hot", "b", "a", "c"]


def test_the_baseline_is_not_compared_with_itself():
    found = of(summarise(scored(one_hot=[3, 4]), LOSS, "one_hot", 2), "one_hot")
    assert found.improvement == 0
    assert np.isnan([found.low, found.high, found.p_plain, found.p_corrected, found.p_adjusted]).all()


def test_a_failure_has_its_reason_and_the_number_of_splits():
    summaries = summarise(scored(one_hot=[3, 3, 3], a=[1, None, None], b=[None] * 3), LOSS, "one_hot", 3)
    some, all_ = of(summaries, "a"), of(summaries, "b")
    assert (some.failure, some.n_splits, some.failed) == ("in 2 of 3 splits: no 1", 1, True)
    assert (all_.failure, all_.n_splits, all_.n_columns) == ("no 0", 0, 0)
    assert np.isnan([some.score, some.improvement, all_.fit_seconds]).all()


def test_times_are_medians_and_columns_the_most():
    found = of(summarise(scored(one_hot=[3, 3, 3]), LOSS, "one_hot", 3), "one_hot")
    assert (found.fit_seconds, found.predict_seconds, found.n_columns) == (2.0, 0.5, 5)


def test_a_baseline_without_loss_cannot_be_improved_on():
    found = of(summarise(scored(one_hot=[0, 0], a=[1, 2]), LOSS, "one_hot", 2), "a")
    assert np.isnan([found.improvement, found.low, found.high]).all()
    assert found.score == 1.5


@pytest.mark.parametrize(
    ("items", "baseline"),
    [
        (scored(one_hot=[1, 1], drop=[1, 1]), "one_hot"),
        (scored(one_hot=[1, None], means=[1, 1], drop=[1, 1]), "drop"),
        (scored(one_hot=[None, 1], means=[1, 1]), "means"),
        (scored(one_hot=[None], means=[None]), "one_hot"),
        ([*scored(one_hot=[1], drop=[1]), *scored("n", one_hot=[None], drop=[1])], "drop"),
    ],
)
def test_the_baseline_is_one_hot_or_else_drop_or_else_the_first_that_works(items, baseline):
    assert choose_baseline(items) == baseline


def test_where_the_baseline_fails_with_a_model_nothing_is_compared():
    items = [*scored(one_hot=[2, 2], a=[1, 1]), *scored("n", one_hot=[None, 1], a=[1, 2])]
    assert math.isnan(of(summarise(items, LOSS, "one_hot", 2), "a", "n").improvement)
    assert fold_improvements(items, LOSS, "one_hot", "n") == {}


def test_improvements_fold_by_fold_are_shares_of_each_fold_s_baseline():
    items = scored(one_hot=[2.0, 4.0], a=[1.0, 3.0], b=[1.0, None])
    found = fold_improvements(items, LOSS, "one_hot", "m")
    assert {method: values.tolist() for method, values in found.items()} == {
        "one_hot": [0, 0],
        "a": [0.5, 0.25],
    }
    assert fold_improvements(items, SCORE, "one_hot", "m")["a"].tolist() == [-1, -1]
    assert fold_improvements(items, LOSS, "nothing", "m") == {}


def test_ties_are_not_significantly_worse_and_ahead_in_some_fold():
    items = scored(
        best=[1.0, 1.0, 1.0, 1.0],
        near=[1.2, 0.9, 1.1, 1.0],
        worse=[2.0, 2.1, 2.0, 1.9],
        far_in_one=[1.1, 1.1, 1.1, 90.0],  # p is large, but it is behind in every fold
        failed=[0.5, None, 1.0, 1.0],
    )
    items += scored("other", near=[1.0, 1.0, 1.0, 1.0])
    assert find_ties(items, LOSS, ("m", "best"), 4) == ["near"]


def test_without_a_test_only_methods_that_are_ahead_or_equal_in_some_fold_are_ties():
    one = scored(best=[1.0], same=[1.0], near=[1.001])
    assert find_ties(one, LOSS, ("m", "best"), 1) == ["same"]
    two = scored(best=[1.0, 1.0], near=[0.9, 1.2], behind=[1.1, 1.2])
    assert find_ties(two, LOSS, ("m", "best"), 2) == ["near"]


def test_equal_scores_are_ties_also_if_rounding_keeps_them_apart():
    best, same = [1.0, 2.0, 3.0, 4.0], [1 + 1e-15, 2 + 1e-15, 3 + 1e-15, 4 + 1e-15]
    assert find_ties(scored(best=best, same=same), LOSS, ("m", "best"), 4) == ["same"]


# The verdict


LOSS, SCORE = make_scoring(None, "regression"), make_scoring("r2", "regression")
nan = math.nan


def summary(method: str, score: float, **changes: Any) -> Summary:
    values = {
        **{"model": "forest", "method": method, "score": score, "improvement": nan, "low": nan, "high": nan},
        **{"p_plain": nan, "p_corrected": nan, "p_adjusted": nan, "fit_seconds": 1.0, "predict_seconds": 1.0},
        **{"n_columns": 3, "n_splits": 4, "failure": None},
    }
    return Summary(**{**values, **changes})


def better(method: str, score: float, p: float, **changes: Any) -> Summary:
    compared = {"improvement": 0.25, "low": 0.1, "high": 0.4, "p_corrected": p, "p_adjusted": p}
    return summary(method, score, **{**compared, **changes})


ONE_HOT = summary("one_hot", 2.0, improvement=0.0, n_columns=9)


def verdict(*summaries: Summary, scoring: Any = LOSS, baseline: str = "one_hot", tied: Any = ()) -> list[str]:
    found = make_verdict(summaries, scoring, baseline=baseline, group="zipcode", target="price", tied=tied)
    return [text.replace("\u00a0", " ") for text in found]


def test_a_winner_by_a_significant_difference():
    assert verdict(better("means", 1.5, 0.012), ONE_HOT, better("fisher", 3.0, 0.5)) == [
        "Encode zipcode with MeansEncoder (means): with forest, it predicts price best.",
        "Its mean squared error is 1.5, compared with 2 for one_hot: 25.0 % better (95 % interval "
        "+10.0 % to +40.0 %).",
        "The difference is unlikely to be chance (p = 0.012, corrected for overlapping folds and for 2 "
        "methods compared).",
    ]


def test_a_tiny_p_value_is_given_as_a_bound():
    assert "(p < 0.001, corrected" in verdict(better("means", 1.5, 1e-9), ONE_HOT)[2]


def test_a_winner_that_may_be_chance():
    assert verdict(better("means", 1.5, 0.4), ONE_HOT)[2] == (
        "The difference may be chance (p = 0.400, corrected for overlapping folds and for 1 method "
        "compared); more repetitions or more rows would help to decide."
    )


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("one fold", "three folds or more"),
        ("two folds", "three folds or more"),
        ("the gains are equal in all folds", "more repetitions or more rows"),
    ],
)
def test_without_a_test_the_verdict_says_why_and_claims_nothing(reason, hint):
    assert verdict(summary("means", 1.5, improvement=0.25, no_test=reason), ONE_HOT)[1:] == [
        "Its mean squared error is 1.5, compared with 2 for one_hot: 25.0 % better.",
        f"No test: {reason}. Whether this is chance cannot be said; use {hint}.",
    ]


def test_nothing_beats_the_baseline():
    assert verdict(ONE_HOT, better("means", 3.0, 0.01)) == [
        "Encode zipcode with ContrastEncoder (one_hot): with forest, it predicts price best.",
        "Its mean squared error is 2; no other method beats one_hot.",
    ]


def test_dropping_the_column_may_be_best():
    headline, improvement, *_ = verdict(better("drop", 1.5, 0.01), ONE_HOT)
    assert headline == "Drop zipcode: forest predicts price best without it."
    assert improvement.startswith("The mean squared error is 1.5, compared with 2 for one_hot: ")


def test_dropping_is_the_baseline_where_one_hot_failed():
    drop = summary("drop", 2.0, improvement=0.0, n_columns=0)
    failed = summary("one_hot", nan, failure="MemoryError: too large")
    assert (
        "compared with 2 for drop: 25.0 % better"
        in verdict(better("means", 1.5, 0.01), drop, failed, baseline="drop")[1]
    )


def test_improvements_of_scores_are_differences():
    best = better("means", 0.8, 0.01, improvement=0.0612, low=0.01, high=0.11)
    assert verdict(best, summary("one_hot", 0.7388), scoring=SCORE)[1] == (
        "Its r2 is 0.8, compared with 0.7388 for one_hot: 0.0612 better (95 % interval +0.0100 to +0.1100)."
    )


def test_nothing_is_relative_to_a_baseline_without_loss():
    text = verdict(summary("means", 0.0, p_adjusted=1.0), summary("one_hot", 0.0))[1]
    assert text == "Its mean squared error is 0, compared with 0 for one_hot."


def test_ties_are_listed_with_the_one_that_adds_fewest_columns():
    few = better("fisher", 1.6, 0.02, n_columns=1)
    assert verdict(better("means", 1.5, 0.01), few, ONE_HOT, tied=["fisher"])[-1] == (
        "The folds cannot distinguish it from fisher. Of these, fisher adds the fewest columns (1 column; "
        "mean squared error 1.6)."
    )
    two = better("fisher", 1.6, 0.02, n_columns=2)
    assert "(2 columns; " in verdict(better("means", 1.5, 0.01), two, ONE_HOT, tied=["fisher"])[-1]


def test_of_equally_small_ties_the_better_is_named_and_never_a_coding():
    small = [better(name, 1.6, 0.02, n_columns=1) for name in ("permutation", "fisher", "target_encoder")]
    tied = ["target_encoder", "fisher", "permutation"]
    assert "Of these, fisher adds" in verdict(better("means", 1.5, 0.01), *small, ONE_HOT, tied=tied)[-1]
    text = verdict(better("means", 1.5, 0.01), small[0], ONE_HOT, tied=["permutation"])[-1]
    assert text == "The folds cannot distinguish it from permutation."


def test_a_tie_with_dropping_means_that_the_column_may_add_nothing():
    drop = better("drop", 1.6, 0.02, n_columns=0)
    assert verdict(better("means", 1.5, 0.01), drop, ONE_HOT, tied=["drop"])[-1] == (
        "The folds cannot distinguish it from drop. That includes dropping the column, so it may add "
        "nothing to the other columns."
    )


def test_many_ties_are_counted_and_those_of_other_models_are_left_out():
    names = [f"method_{j}" for j in range(8)]
    others = [better(name, 2.0, 0.5) for name in names]
    elsewhere = better("method_0", 1.9, 0.5, model="xgboost")
    assert verdict(better("means", 1.5, 0.01), elsewhere, *others, ONE_HOT, tied=names)[-1] == (
        "The folds cannot distinguish it from method_0, method_1, method_2, method_3, method_4, method_5 and "
        "2 more."
    )


def test_a_baseline_that_failed_with_this_model_is_not_mentioned():
    failed = summary("one_hot", nan, failure="no")
    assert verdict(better("means", 1.5, nan), failed) == [
        "Encode zipcode with MeansEncoder (means): with forest, it predicts price best."
    ]


def test_if_everything_failed_the_first_reason_is_reported():
    assert verdict(
        summary("means", nan, failure="ValueError: no"), summary("drop", nan, failure="other")
    ) == [
        "Every method failed on these data.",
        "First reason: ValueError: no",
    ]
