"""What is said of a comparison: all that may come out, word by word."""

from __future__ import annotations

import math
from typing import Any

from sufrep._compare import make_scoring
from sufrep._compare._summary import Summary
from sufrep._compare._verdict import make_verdict

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


def said(*summaries: Summary, scoring: Any = LOSS, baseline: str = "one_hot", tied: Any = ()) -> list[str]:
    found = make_verdict(summaries, scoring, baseline=baseline, group="zipcode", target="price", tied=tied)
    return [text.replace("\u00a0", " ") for text in found]


def test_a_winner_that_is_no_chance():
    assert said(better("means", 1.5, 0.012), ONE_HOT, better("fisher", 3.0, 0.5)) == [
        "Represent zipcode by means: with forest it predicts price best.",
        "Its mean squared error is 1.5, that of one-hot columns 2: 25.0 % better (95 % interval +10.0 % to "
        "+40.0 %).",
        "That is unlikely to be chance (p = 0.012, allowing for folds that share rows and for 2 methods "
        "compared).",
    ]


def test_a_tiny_p_value_is_not_spelt_out():
    assert "(p < 0.001, allowing" in said(better("means", 1.5, 1e-9), ONE_HOT)[2]


def test_a_winner_that_may_be_chance():
    assert said(better("means", 1.5, 0.4), ONE_HOT)[2] == (
        "That may be chance (p = 0.4, allowing for folds that share rows and for 1 method compared); "
        "more repetitions, or more rows, would tell."
    )


def test_one_split_says_nothing_about_chance():
    assert said(summary("means", 1.5, improvement=0.25), ONE_HOT)[1:] == [
        "Its mean squared error is 1.5, that of one-hot columns 2: 25.0 % better.",
        "One split says nothing about chance; take more folds.",
    ]


def test_nothing_beats_the_baseline():
    assert said(ONE_HOT, better("means", 3.0, 0.01)) == [
        "Represent zipcode by one_hot: with forest it predicts price best.",
        "Its mean squared error is 2; nothing that was tried beats one-hot columns.",
    ]


def test_the_column_is_best_left_out():
    assert said(better("drop", 1.5, 0.01), ONE_HOT)[0] == (
        "Leave zipcode out: price is predicted best without it, by forest."
    )


def test_dropping_is_the_baseline_where_one_hot_failed():
    drop = summary("drop", 2.0, improvement=0.0, n_columns=0)
    failed = summary("one_hot", nan, failure="MemoryError: too large")
    assert (
        "that of leaving the column out 2: 25.0 % better"
        in said(better("means", 1.5, 0.01), drop, failed, baseline="drop")[1]
    )


def test_larger_scores_are_better_by_points():
    best = better("means", 0.8, 0.01, improvement=0.0612, low=0.01, high=0.11)
    assert said(best, summary("one_hot", 0.7388), scoring=SCORE)[1] == (
        "Its r2 is 0.8, that of one-hot columns 0.7388: 0.0612 better (95 % interval +0.0100 to +0.1100)."
    )


def test_a_baseline_without_loss_gives_no_share():
    text = said(summary("means", 0.0, p_adjusted=1.0), summary("one_hot", 0.0))[1]
    assert text == "Its mean squared error is 0, that of one-hot columns 0."


def test_what_the_folds_do_not_tell_apart_is_listed_with_the_smallest():
    few = better("fisher", 1.6, 0.02, n_columns=1)
    assert said(better("means", 1.5, 0.01), few, ONE_HOT, tied=["fisher"])[-1] == (
        "The folds do not tell it from fisher. Of these, fisher adds fewest columns (1 column; mean squared "
        "error 1.6)."
    )
    two = better("fisher", 1.6, 0.02, n_columns=2)
    assert "(2 columns; " in said(better("means", 1.5, 0.01), two, ONE_HOT, tied=["fisher"])[-1]


def test_of_the_smallest_the_better_is_named_and_codings_never_are():
    small = [better(name, 1.6, 0.02, n_columns=1) for name in ("permutation", "fisher", "target_encoder")]
    tied = ["target_encoder", "fisher", "permutation"]
    assert "Of these, fisher adds" in said(better("means", 1.5, 0.01), *small, ONE_HOT, tied=tied)[-1]
    text = said(better("means", 1.5, 0.01), small[0], ONE_HOT, tied=["permutation"])[-1]
    assert text == "The folds do not tell it from permutation."


def test_dropping_among_the_ties_means_that_the_column_may_say_nothing():
    drop = better("drop", 1.6, 0.02, n_columns=0)
    assert said(better("means", 1.5, 0.01), drop, ONE_HOT, tied=["drop"])[-1] == (
        "The folds do not tell it from drop. Leaving the column out is among them, so it may say nothing "
        "beside the other columns."
    )


def test_many_ties_are_counted_and_those_of_other_models_left_out():
    names = [f"method_{j}" for j in range(8)]
    others = [better(name, 2.0, 0.5) for name in names]
    elsewhere = better("method_0", 1.9, 0.5, model="xgboost")
    assert said(better("means", 1.5, 0.01), elsewhere, *others, ONE_HOT, tied=names)[-1] == (
        "The folds do not tell it from method_0, method_1, method_2, method_3, method_4, method_5 and 2 more."
    )


def test_a_baseline_that_failed_with_this_model_is_not_spoken_of():
    failed = summary("one_hot", nan, failure="no")
    assert said(better("means", 1.5, nan), failed) == [
        "Represent zipcode by means: with forest it predicts price best."
    ]


def test_if_everything_failed_the_first_reason_is_told():
    assert said(summary("means", nan, failure="ValueError: no"), summary("drop", nan, failure="other")) == [
        "No method worked on these data.",
        "The first reason: ValueError: no",
    ]
