"""From fold scores to improvements, intervals, p-values and the verdict, against formulas written out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sufrep._compare._results import (
    Choice,
    Gain,
    Summary,
    choose,
    choose_baseline,
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


def test_improvements_fold_by_fold_average_to_that_of_the_summary():
    items = scored(one_hot=[2.0, 4.0], a=[1.0, 3.4], b=[1.0, None])
    found = fold_improvements(items, LOSS, "one_hot", "m")
    assert {method: values.tolist() for method, values in found.items()} == {
        "one_hot": [0, 0],
        "a": pytest.approx([1 / 3, 0.2]),
    }
    assert found["a"].mean() == pytest.approx(of(summarise(items, LOSS, "one_hot", 2), "a", "m").improvement)
    assert fold_improvements(items, SCORE, "one_hot", "m")["a"].tolist() == pytest.approx([-1, -0.6])
    assert fold_improvements(items, LOSS, "nothing", "m") == {}


# The choice


def chosen(items: list[FoldScore], scoring: Any = LOSS, **options: Any) -> Choice:
    """The choice among fold scores, whose methods add 1, 2, … columns in their order; dropping adds none."""
    methods = [method for method in dict.fromkeys(item.method for item in items) if method != "drop"]
    columns = {"drop": 0, **{method: 1 + place for place, method in enumerate(methods)}}
    items = [replace(item, n_columns=columns[item.method]) for item in items]
    found = choose(summarise(items, scoring, "drop", 4), items, scoring, 4, **options)
    assert found is not None
    return found


FAR = [9.0, 9.1, 9.2, 9.1]


def test_the_best_mean_is_chosen_if_no_other_is_as_good():
    found = chosen(scored(drop=FAR, small=[2.0, 2.1, 2.0, 1.9], best=[1.0, 1.1, 1.0, 0.9]))
    assert (found.best.method, found.top.method, found.helps) == ("best", "best", True)
    assert [item.method for item in found.as_good] == ["best"]


def test_within_one_percent_the_fewest_columns_win():
    items = scored(drop=FAR, small=[1.005, 1.105, 1.005, 0.905], best=[1.0, 1.1, 1.0, 0.9])
    assert chosen(items).best.method == "small"
    items = scored(drop=FAR, small=[1.02, 1.12, 1.02, 0.92], best=[1.0, 1.1, 1.0, 0.9])
    assert chosen(items).best.method == "best"


def test_within_one_standard_error_the_fewest_columns_win():
    found = chosen(scored(drop=FAR, small=[1.3, 0.8, 1.2, 0.9], best=[1.0, 1.0, 1.0, 1.0]))
    assert (found.best.method, found.top.method) == ("small", "best")


def test_the_column_is_left_out_unless_an_encoding_is_significantly_better():
    found = chosen(scored(drop=[1.0, 1.1, 1.0, 0.9], a=[0.7, 1.15, 0.8, 0.9]))
    assert (found.best.method, found.top.method, found.helps) == ("drop", "a", False)


def test_dropping_wins_within_the_margin_however_certain_the_difference_is():
    found = chosen(scored(drop=[1.0, 1.1, 1.2, 1.1], a=[0.9951, 1.095, 1.195, 1.0949]))
    assert (found.best.method, found.helps) == ("drop", True)


def test_without_a_test_the_margin_decides_on_dropping():
    assert chosen(scored(drop=[1.0, 1.1], a=[0.9, 1.0])).best.method == "a"
    assert chosen(scored(drop=[1.0, 1.1], a=[0.995, 1.095])).best.method == "drop"
    assert chosen(scored(drop=[1.0, 1.1, 1.2], a=[1.0, 1.1, 1.2])).best.method == "drop"


def test_an_identifier_is_never_encoded():
    items = scored(drop=FAR, a=[1.0, 1.1, 1.0, 0.9])
    assert chosen(items, is_identifier=True).best.method == "drop"


def test_codings_and_permutations_are_not_chosen_for_having_few_columns():
    best = [1.0, 1.1, 1.0, 0.9]
    assert chosen(scored(drop=FAR, permutation=best, a=best)).best.method == "a"
    assert chosen(scored(drop=FAR, permutation=best)).best.method == "permutation"


def test_larger_scores_are_better_where_they_are_no_losses():
    items = scored(drop=[0.5, 0.52, 0.51, 0.5], small=[0.7, 0.72, 0.7, 0.71], big=[0.9, 0.91, 0.92, 0.9])
    assert chosen(items, SCORE).best.method == "big"


def test_other_models_do_not_matter_to_the_choice_and_failures_are_left_out():
    items = scored(drop=FAR, bad=[1.0, None, 1.0, 1.0], best=[1.0, 1.1, 1.0, 0.9])
    items += scored("other", drop=FAR, bad=[1.0, 1.1, 1.1, 1.0], best=[2.0, 2.1, 2.0, 1.9])
    found = chosen(items)
    assert (found.best.method, found.best.model) == ("best", "m")


def test_if_everything_failed_nothing_is_chosen():
    items = scored(drop=[None, None], a=[None, None])
    assert choose(summarise(items, LOSS, "drop", 2), items, LOSS, 2) is None


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


LEVELS = (
    "A level is a value of zipcode: common with 10 training rows or more, rare with 1 to 9, new with none."
)


def verdict(
    best: Summary,
    *others: Summary,
    scoring: Any = LOSS,
    baseline: str = "one_hot",
    as_good: Any = (),
    top: Summary | None = None,
    **options: Any,
) -> list[str]:
    helps = options.pop("helps", True)
    choice = Choice(best, top or best, [best, *as_good], helps)
    found = make_verdict(
        (best, *others), choice, scoring, baseline=baseline, group="zipcode", target="price", **options
    )
    return [text.replace("\u00a0", " ") for text in found]


def test_a_winner_by_a_significant_difference():
    drop = summary("drop", 3.0, n_columns=0)
    best = better("means", 61_283.0, 0.012)
    assert verdict(best, replace(ONE_HOT, score=70_911.0), replace(drop, score=95_020.0)) == [
        "Encode zipcode with means (MeansEncoder): typical error 61,300 instead of 70,900 "
        "with one-hot columns, 25.0 % less (95 % interval 10.0 to 40.0 %).",
        "This difference is unlikely to be chance (p = 0.012, corrected for overlapping folds and for 2 "
        "methods compared).",
        "Without zipcode, the typical error is 95,000.",
    ]


def test_a_method_that_is_worse_has_an_interval_of_the_same_sign():
    best = better("means", 2.04, 0.5, improvement=-0.02, low=-0.09, high=0.05)
    assert verdict(best, ONE_HOT)[0].endswith(", 2.0 % more (95 % interval -5.0 to 9.0 %).")


def test_without_a_test_over_dropping_the_verdict_says_why():
    drop = summary("drop", 2.5, n_columns=0, improvement=-0.25, no_test="two folds")
    assert verdict(replace(ONE_HOT, over_drop=0.2), drop)[1].startswith("No test: two folds.")


def test_a_tiny_p_value_is_given_as_a_bound():
    assert "(p < 0.001, corrected" in verdict(better("means", 1.5, 1e-9), ONE_HOT)[1]


def test_a_winner_that_may_be_chance():
    assert verdict(better("means", 1.5, 0.4), ONE_HOT)[1] == (
        "This difference may be chance (p = 0.400, corrected for overlapping folds and for 1 method "
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
    assert verdict(summary("means", 1.5, improvement=0.25, no_test=reason), ONE_HOT) == [
        "Encode zipcode with means (MeansEncoder): typical error 1.5 instead of 2 with "
        "one-hot columns, 25.0 % less.",
        f"No test: {reason}. Whether this is chance cannot be said; use {hint}.",
    ]


def test_if_the_baseline_is_best_it_is_compared_with_dropping():
    best = replace(ONE_HOT, over_drop=0.2, low_over_drop=0.1, high_over_drop=0.3, p_over_drop=0.01)
    assert verdict(best, summary("drop", 2.5, n_columns=0)) == [
        "Encode zipcode with one-hot columns: typical error 2 instead of 2.5 without it, "
        "20.0 % less (95 % interval 10.0 to 30.0 %).",
        "This difference is unlikely to be chance (p = 0.010, corrected for overlapping folds and for 1 "
        "method compared).",
    ]


def test_dropping_is_the_baseline_where_one_hot_failed():
    drop = summary("drop", 2.0, improvement=0.0, n_columns=0)
    failed = summary("one_hot", nan, failure="MemoryError: too large")
    headline = verdict(better("means", 1.5, 0.01), drop, failed, baseline="drop")[0]
    assert "1.5 instead of 2 without it, 25.0 % less (95 % interval" in headline


def test_a_column_that_does_not_help_is_left_out():
    drop = summary("drop", 2.0, improvement=0.0, n_columns=0)
    means = summary(
        "means", 1.99, over_drop=0.005, p_over_drop=0.31, low_over_drop=-0.012, high_over_drop=0.021
    )
    assert verdict(drop, means, baseline="drop", helps=False) == [
        "No encoding of zipcode was shown to predict price better: leave the column out.",
        "Without it, the typical error is 2; with the best encoding, means (MeansEncoder), 1.99: between "
        "1.2 % worse and 2.1 % better (95 % interval).",
        "That does not rule out a gain: more rows or more repetitions may show one.",
    ]
    assert verdict(drop, means, baseline="drop") == [
        "Without zipcode, price is predicted as well as with the best encoding, within 1 % or one standard "
        "error: leave the column out.",
        "Without it, the typical error is 2; with the best encoding, means (MeansEncoder), 1.99: between "
        "1.2 % worse and 2.1 % better (95 % interval).",
    ]
    untested = summary("means", 1.99, no_test="two folds")
    assert verdict(drop, untested, baseline="drop", helps=False)[1:] == [
        "Without it, the typical error is 2; with the best encoding, means (MeansEncoder), 1.99 (not tested: "
        "two folds)."
    ]
    sure = replace(means, high_over_drop=0.004)
    assert len(verdict(drop, sure, baseline="drop", helps=False)) == 2


def test_an_identifier_is_left_out_whatever_the_scores_say():
    drop = summary("drop", 2.0, improvement=0.0, n_columns=0)
    assert verdict(drop, baseline="drop", helps=False, is_identifier=True) == [
        "Leave zipcode out: every row has a level of its own, so no encoding of it can help to predict new "
        "rows."
    ]


def test_improvements_of_scores_are_differences():
    best = better("means", 0.8, 0.01, improvement=0.0612, low=0.01, high=0.11)
    assert verdict(best, summary("one_hot", 0.7388), scoring=SCORE)[0] == (
        "Encode zipcode with means (MeansEncoder): r2 0.8 instead of 0.7388 with one-hot columns, 0.0612 "
        "more (95 % interval 0.0100 to 0.1100)."
    )


def test_log_loss_comes_with_a_score_that_readers_know():
    scoring = make_scoring(None, "binary")
    best, base = better("means", 0.51, 0.01, also=0.812), replace(ONE_HOT, also=0.79)
    assert verdict(best, base, scoring=scoring)[0] == (
        "Encode zipcode with means (MeansEncoder): log loss 0.51 instead of 2 with one-hot columns, 25.0 % "
        "less (95 % interval 10.0 to 40.0 %); AUC 0.812 instead of 0.790."
    )


def test_nothing_is_relative_to_a_baseline_without_loss():
    text = verdict(summary("means", 0.0, p_adjusted=1.0), summary("one_hot", 0.0))[0]
    assert text.endswith("typical error 0 instead of 0 with one-hot columns.")


def test_methods_that_are_as_good_are_named_and_why_the_simplest_was_chosen():
    best, top = better("fisher", 1.51, 0.02, n_columns=1), better("means", 1.5, 0.01)
    as_good = "As good, within 1 % of the typical error or one standard error of the difference"
    assert verdict(best, top, ONE_HOT, as_good=[top], top=top)[-1] == (
        f"{as_good}: means. Of these, fisher adds the fewest columns (1)."
    )
    assert verdict(top, best, ONE_HOT, as_good=[best])[-1] == f"{as_good}: fisher."


def test_many_that_are_as_good_are_counted():
    others = [better(f"method_{j}", 2.0, 0.5) for j in range(8)]
    assert verdict(better("means", 1.5, 0.01), *others, ONE_HOT, as_good=others)[-1].endswith(
        "method_0, method_1, method_2, method_3, method_4, method_5 and 2 more."
    )


def test_a_baseline_that_failed_with_this_model_is_not_mentioned():
    failed = summary("one_hot", nan, failure="no")
    assert verdict(better("means", 1.5, nan), failed) == [
        "Encode zipcode with means (MeansEncoder). It has typical error 1.5."
    ]


def test_rare_and_new_levels_are_reported_apart_and_next_to_the_column_left_out():
    kinds = {"n_common": 4_500, "n_rare": 400, "n_new": 100}
    best = better("means", 1.5, 0.01, common=1.4, rare=2.0, new=3.0, **kinds)
    assert verdict(best, ONE_HOT)[-1] == (
        "The typical error is 1.4 in rows of common levels (90 %); 2 in rows of rare levels (8 %); 3 in rows "
        f"of new levels (2 %). {LEVELS}"
    )
    drop = summary("drop", 2.0, n_columns=0, common=2.5, rare=1.9, new=3.0, **kinds)
    assert verdict(best, ONE_HOT, drop)[-1] == (
        "The typical error is 1.4 in rows of common levels (90 %), 2.5 without it; 2 in rows of rare levels "
        "(8 %), 1.9 without it; 3 in rows of new levels (2 %), 3 without it. It does not help rows of rare "
        f"and new levels. {LEVELS}"
    )


@pytest.mark.parametrize(("n_new", "n_repeats", "is_judged"), [(29, 1, False), (30, 1, True), (30, 2, False)])
def test_nothing_is_concluded_from_a_few_rows_of_new_levels(n_new, n_repeats, is_judged):
    best = better("means", 1.5, 0.01, common=1.4, new=3.0, n_common=900, n_new=n_new)
    drop = summary("drop", 2.0, n_columns=0, common=2.5, new=2.9)
    said = " ".join(verdict(best, ONE_HOT, drop, n_repeats=n_repeats))
    assert ("It does not help rows of new levels." in said) == is_judged
    assert ("in rows of common levels" in said) == is_judged


def over(low: float, high: float, no_test: str | None = None) -> Gain:
    return Gain((low + high) / 2, low, high, nan, nan, no_test)


def test_the_best_of_the_others_is_compared_with_the_recommended_method():
    best, means = better("sufficient", 1.5, 0.01), better("means", 1.6, 0.02, n_columns=5)
    choice = Choice(best, best, [best], True, {"means": over(0.02, 0.09), "one_hot": over(0.1, 0.4)})
    options: Any = {"baseline": "one_hot", "group": "zipcode", "target": "price"}

    def said(choice: Choice) -> str:
        return make_verdict((best, means, ONE_HOT), choice, LOSS, **options)[2].replace("\u00a0", " ")

    text = "The best of the others is means (MeansEncoder) with 5 columns, typical error 1.6"
    assert said(choice) == (f"{text}: sufficient is between 2.0 % and 9.0 % better (95 % interval).")
    untested = {"means": over(nan, nan, "two folds"), "one_hot": over(0.1, 0.4)}
    assert said(replace(choice, over_others=untested)) == (
        f"{text}. The difference was not tested: two folds."
    )


def test_of_several_models_the_others_are_those_with_the_same_one():
    best, means = better("sufficient", 1.5, 0.01), better("means", 1.6, 0.02, n_columns=5)
    choice = Choice(best, best, [best], True, {"means": over(0.02, 0.09)})
    between = better("means", 1.55, 0.02, model="boosting")
    found = make_verdict(
        (best, between, means, ONE_HOT), choice, LOSS, baseline="one_hot", group="zipcode", target="price"
    )
    assert found[2].startswith("The best of the others with forest is means (MeansEncoder) with 5 columns")


def test_if_a_simpler_method_is_chosen_the_one_with_the_smallest_error_is_compared_with_it():
    best, top = better("fisher", 1.51, 0.02, n_columns=1), better("means", 1.5, 0.01)
    choice = Choice(best, top, [top, best], True, {"means": over(-0.012, 0.002), "one_hot": over(0.1, 0.4)})
    found = make_verdict(
        (top, best, ONE_HOT), choice, LOSS, baseline="one_hot", group="zipcode", target="price"
    )
    assert found[2].replace("\u00a0", " ") == (
        "The smallest typical error is that of means (MeansEncoder) with 3 columns, 1.5: fisher is between "
        "1.2 % worse and 0.2 % better (95 % interval), so which of the two is better is not certain."
    )


def test_the_comparison_of_the_headline_is_not_repeated():
    best = better("means", 1.5, 0.01)
    choice = Choice(best, best, [best], True, {"one_hot": over(0.1, 0.4)})
    found = make_verdict((best, ONE_HOT), choice, LOSS, baseline="one_hot", group="zipcode", target="price")
    assert len(found) == 2


def test_if_everything_failed_the_first_reason_is_reported():
    failed = [summary("means", nan, failure="ValueError: no"), summary("drop", nan, failure="other")]
    found = make_verdict(failed, None, LOSS, baseline="one_hot", group="zipcode", target="price")
    assert found == ("Every method failed on these data.", "First reason: ValueError: no")


def test_the_error_of_a_kind_of_levels_is_that_of_all_their_rows_together():
    """One new row in every fold: the mean of the roots would be their mean absolute error."""
    new, rows = np.array([3.0, 4.0, 0.0, 5.0]), np.array([1, 1, 1, 1])
    items = [
        FoldScore("means", "m", 0, fold, score=1.0, new=value, n_new=1)
        for fold, value in enumerate(new.tolist())
    ]
    (found,) = summarise(items, LOSS, "means", 4)
    assert found.new == pytest.approx(math.sqrt(np.mean(new**2)))
    assert LOSS.pooled(new, rows * 3) == pytest.approx(found.new)
    assert SCORE.pooled(new, np.array([1, 1, 2, 4])) == pytest.approx(27 / 8)
