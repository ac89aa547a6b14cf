"""From the scores of all splits to improvements, intervals and tests, and to a verdict in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._compare._data import LEVEL_KINDS, RARE
from sufrep._compare._run import CODINGS, PERCENT, scores_by_method
from sufrep._names import DROP, ONE_HOT, TARGET_ENCODER
from sufrep._statistics import (
    EQUAL_GAINS,
    Spread,
    corrected_error,
    corrected_interval,
    holm,
    p_value_statement,
    paired_p_values,
    rounding_error,
    why_no_test,
)
from sufrep.encoders import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._arrays import Floats
    from sufrep._compare._run import FoldScore, Scoring

# Smaller p-values count as evidence.
SIGNIFICANCE = 0.05
# Scores that differ by a smaller share are as good as each other.
MARGIN = 0.01
_MARGIN_TEXT = f"{100 * MARGIN:g}\u00a0%"
_MAX_NAMED = 6
# A score of fewer rows is that of a few of them: it is not shown, and nothing is concluded from it.
MIN_ROWS = 30
# Nobody would choose these for having few columns.
_NEVER_SUGGESTED = frozenset({*CODINGS, "permutation", "multi_permutation"})


@dataclass(frozen=True, slots=True)
class Summary:
    """One method with one model over all splits; numbers are NaN if it failed.

    Attributes
    ----------
    model, method : str
    score : float
        Mean over the splits.
    improvement, low, high : float
        Improvement over the baseline with the same model, and the 95 % interval that belongs to
        `p_corrected`. Relative to the baseline's loss, or a difference of scores.
    p_plain : float
        t-test of the differences to the baseline, in all test rows or, where a score is no mean over rows
        or rows are tested in groups, in the splits. It treats splits as independent; no verdict rests on it.
    p_corrected : float
        The same with the variance of Nadeau and Bengio, which accounts for overlapping training rows. NaN
        if there is no test.
    p_adjusted : float
        `p_corrected` after Holm's correction for all methods with the same model.
    fit_seconds, predict_seconds : float
        Medians over the splits.
    n_columns : int
        Largest number of columns that the method adds.
    n_splits : int
        Number of splits with a score.
    failure : str or None
        The first reason, if any split failed.
    no_test : str or None
        Why the improvement was not tested: there are fewer than three splits, or the gains are equal in all
        of them.
    also : float
        Mean of the second measure of the scoring, if it has one.
    common, rare, new : float
        Score of the test rows whose level has many, few or no training rows; NaN without such rows.
    n_common, n_rare, n_new : int
        Number of such rows in all splits.
    over_drop, low_over_drop, high_over_drop, p_over_drop : float
        Improvement over leaving the column out, with its interval and its p-value, corrected and adjusted
        like the others.
    """

    model: str
    method: str
    score: float
    improvement: float
    low: float
    high: float
    p_plain: float
    p_corrected: float
    p_adjusted: float
    fit_seconds: float
    predict_seconds: float
    n_columns: int
    n_splits: int
    failure: str | None
    no_test: str | None = None
    also: float = math.nan
    common: float = math.nan
    rare: float = math.nan
    new: float = math.nan
    n_common: int = 0
    n_rare: int = 0
    n_new: int = 0
    over_drop: float = math.nan
    low_over_drop: float = math.nan
    high_over_drop: float = math.nan
    p_over_drop: float = math.nan

    @property
    def failed(self) -> bool:
        """Whether any split has no score."""
        return self.failure is not None


def choose_baseline(scores: Sequence[FoldScore]) -> str:
    """Return the method that all others are compared with: one-hot, else drop, else the first that works."""
    works: dict[str, bool] = {}
    for (_, method), items in scores_by_method(scores):
        works[method] = works.get(method, True) and not any(item.failure for item in items)
    order = [ONE_HOT, DROP, *works]
    return next((method for method in order if works.get(method)), ONE_HOT)


def summarise(
    scores: Sequence[FoldScore], scoring: Scoring, baseline: str, effective_n_folds: float
) -> list[Summary]:
    """Summarise every method with every model, best first, failures last."""
    by_method = dict(scores_by_method(scores))
    found: list[Summary] = []
    for model in dict.fromkeys(item.model for item in scores):
        of_baseline, without = (by_method.get((model, method), []) for method in (baseline, DROP))
        of_model = [
            _summary(items, of_baseline, scoring, effective_n_folds, is_baseline=key[1] == baseline)
            for key, items in by_method.items()
            if key[0] == model
        ]
        over_drop = [
            _gain(without, by_method[model, item.method], scoring, effective_n_folds)
            if item.method != DROP
            else _NO_GAIN
            for item in of_model
        ]
        adjusted = holm([item.p_corrected for item in of_model])
        adjusted_over_drop = holm([gain.p_corrected for gain in over_drop])
        found += [
            replace(
                item,
                p_adjusted=p,
                over_drop=gain.improvement,
                low_over_drop=gain.low,
                high_over_drop=gain.high,
                p_over_drop=p_over_drop,
            )
            for item, p, gain, p_over_drop in zip(
                of_model, adjusted, over_drop, adjusted_over_drop, strict=True
            )
        ]
    sign = 1 if scoring.is_loss else -1
    return sorted(found, key=lambda item: (item.failed, 0.0 if item.failed else sign * item.score))


def fold_improvements(
    scores: Sequence[FoldScore], scoring: Scoring, baseline: str, model: str
) -> dict[str, Floats]:
    """Return the improvement of each method over the baseline in each split, unless a split failed.

    All are relative to the mean score of the baseline, so that their mean is the improvement of the summary.
    """
    values = {key[1]: _values(items) for key, items in scores_by_method(scores) if key[0] == model}
    of_baseline = values.get(baseline, np.empty(0))
    unit = scoring.unit(of_baseline) if len(of_baseline) else math.nan
    return {
        method: scoring.gains(of_baseline, of_method) / unit
        for method, of_method in values.items()
        if len(of_method) and len(of_method) == len(of_baseline)
    }


def _values(items: Sequence[FoldScore]) -> Floats:
    """Return the scores of all splits; none if any of them failed."""
    if any(item.failure for item in items):
        return np.empty(0)
    return np.array([item.score for item in items])


@dataclass(frozen=True, slots=True)
class Gain:
    """By how much one method is better than another, over the splits.

    Attributes
    ----------
    improvement, low, high : float
        As in `Summary`.
    p_plain, p_corrected : float
    no_test : str or None
    """

    improvement: float
    low: float
    high: float
    p_plain: float
    p_corrected: float
    no_test: str | None


_NO_GAIN = Gain(math.nan, math.nan, math.nan, math.nan, math.nan, None)


def _gain(
    of_reference: Sequence[FoldScore],
    of_method: Sequence[FoldScore],
    scoring: Scoring,
    effective_n_folds: float,
) -> Gain:
    reference, values = _values(of_reference), _values(of_method)
    if not len(values) or len(values) != len(reference):
        return _NO_GAIN
    # Nothing can be relative to a reference without any loss.
    gains, unit = scoring.gains(reference, values), scoring.unit(reference) or math.nan
    rounding, spread = rounding_error(reference, values), _spread_of_rows(of_reference, of_method)
    low, high = corrected_interval(gains, effective_n_folds, rounding, spread=spread)
    p_plain, p_corrected = paired_p_values(gains, effective_n_folds, rounding, spread)
    improvement = float(gains.mean()) / unit
    return Gain(improvement, low / unit, high / unit, p_plain, p_corrected, why_no_test(gains, rounding))


def _spread_of_rows(one: Sequence[FoldScore], other: Sequence[FoldScore]) -> Spread | None:
    """Return how much a difference of two methods varies by split, if the rows of every split tell."""
    differences = [
        first.rows - second.rows
        for first, second in zip(one, other, strict=True)
        if first.rows is not None and second.rows is not None and len(first.rows) > 1
    ]
    return Spread.of_rows(differences) if len(differences) == len(one) else None


def _summary(
    items: Sequence[FoldScore],
    of_baseline: Sequence[FoldScore],
    scoring: Scoring,
    effective_n_folds: float,
    *,
    is_baseline: bool,
) -> Summary:
    gain, values = _NO_GAIN, _values(items)
    if not is_baseline:
        gain = _gain(of_baseline, items, scoring, effective_n_folds)
    elif len(values):
        gain = replace(_NO_GAIN, improvement=0.0)
    done = [item for item in items if not item.failure]
    parts: dict[str, Any] = {f"n_{kind}": sum(getattr(i, f"n_{kind}") for i in done) for kind in LEVEL_KINDS}
    parts |= {kind: _score_of_part(done, kind, scoring) for kind in LEVEL_KINDS}
    return Summary(
        model=items[0].model,
        method=items[0].method,
        score=float(values.mean()) if len(values) else math.nan,
        improvement=gain.improvement,
        low=gain.low,
        high=gain.high,
        p_plain=gain.p_plain,
        p_corrected=gain.p_corrected,
        p_adjusted=math.nan,
        fit_seconds=float(np.median([item.fit_seconds for item in done])) if done else math.nan,
        predict_seconds=float(np.median([item.predict_seconds for item in done])) if done else math.nan,
        n_columns=max((item.n_columns for item in done), default=0),
        n_splits=len(done),
        failure=_failure(items),
        no_test=gain.no_test,
        also=float(np.mean([item.also for item in done])) if done else math.nan,
        **parts,
    )


def _score_of_part(done: Sequence[FoldScore], kind: str, scoring: Scoring) -> float:
    """Return the score of the rows of some levels in all splits, which are weighted by their number."""
    known = [item for item in done if math.isfinite(getattr(item, kind))]
    weights = [getattr(item, f"n_{kind}") for item in known]
    if not known:
        return math.nan
    return scoring.pooled(np.array([getattr(item, kind) for item in known]), np.array(weights))


def _failure(items: Sequence[FoldScore]) -> str | None:
    reasons = [item.failure for item in items if item.failure]
    if not reasons or len(reasons) == len(items):
        return reasons[0] if reasons else None
    return f"in {len(reasons)} of {len(items)} splits: {reasons[0]}"


# The choice


@dataclass(frozen=True, slots=True)
class Choice:
    """What is recommended, and what it was chosen among.

    Attributes
    ----------
    best : Summary
        The recommended method with its model.
    top : Summary
        The one with the best mean score.
    as_good : list of Summary
        Those that predict as well as the top with the same model, itself included, the best first.
    helps : bool
        Whether some encoding is better than leaving the column out.
    over_others : dict of str to Gain
        By how much the recommended method is better than each other one with the same model, the best first.
    """

    best: Summary
    top: Summary
    as_good: list[Summary]
    helps: bool
    over_others: dict[str, Gain] = field(default_factory=dict)


def choose(
    summaries: Sequence[Summary],
    scores: Sequence[FoldScore],
    scoring: Scoring,
    effective_n_folds: float,
    *,
    is_identifier: bool = False,
) -> Choice | None:
    """Recommend a method: of those that predict as well as the top, the one with the fewest columns.

    A method is as good if its mean score is within `MARGIN` of the top's, or within one standard error of
    the difference, corrected like the tests. The column is left out unless some encoding is better than
    that: significantly, or by more than the margin where there is no test. If every row has a level of its
    own (``is_identifier``), none can be.

    Returns
    -------
    Choice or None
        None if every method failed.
    """
    done = [item for item in summaries if not item.failed]
    if not done:
        return None
    top, by_method = done[0], dict(scores_by_method(scores))
    of_top, as_good = by_method[top.model, top.method], []
    for item in done:
        if item.model != top.model:
            continue
        of_item = by_method[item.model, item.method]
        gaps, error = scoring.gains(_values(of_item), _values(of_top)), 0.0
        if why_no_test(gaps) is None:
            error = corrected_error(gaps, effective_n_folds, _spread_of_rows(of_item, of_top))
        if gaps.mean() <= max(MARGIN * abs(top.score), error):
            as_good.append(item)
    without = next((item for item in done if (item.model, item.method) == (top.model, DROP)), None)
    helps = not is_identifier and any(
        item.p_over_drop < SIGNIFICANCE and item.over_drop > 0
        if math.isfinite(item.p_over_drop)
        else item.over_drop > (MARGIN if scoring.is_loss else MARGIN * abs(top.score))
        for item in done
        if item.model == top.model
    )
    if without is not None and not helps:
        best = without
    else:
        usual = [item for item in as_good if item.method not in _NEVER_SUGGESTED] or as_good
        best = min(usual, key=lambda item: item.n_columns)
    of_best = by_method[best.model, best.method]
    over_others = {
        item.method: _gain(by_method[item.model, item.method], of_best, scoring, effective_n_folds)
        for item in done
        if item.model == best.model and item is not best
    }
    return Choice(best, top, as_good, helps, over_others)


# The verdict


def make_verdict(
    summaries: Sequence[Summary],
    choice: Choice | None,
    scoring: Scoring,
    *,
    baseline: str,
    group: str,
    target: str,
    is_identifier: bool = False,
    n_repeats: int = 1,
) -> tuple[str, ...]:
    """Say in words what was found.

    Parameters
    ----------
    summaries : sequence of Summary
        The best first.
    choice : Choice or None
        As `choose` returns it.
    scoring : Scoring
    baseline : str
    group, target : str
        Names of the columns.
    is_identifier : bool, default=False
        Whether every row has a level of its own.
    n_repeats : int, default=1
        How often every row was tested.

    Returns
    -------
    tuple of str
        Paragraphs; the first is the headline.
    """
    if choice is None:
        return ("Every method failed on these data.", f"First reason: {summaries[0].failure}")
    best = choice.best
    of_model = {item.method: item for item in summaries if item.model == best.model and not item.failed}
    # What the best is compared with: the baseline, or dropping the column if it is the baseline itself.
    reference = of_model.get(baseline if best.method != baseline else DROP)
    gain = _reported_gain(best, reference, of_drop=best.method == baseline)
    if best.method == DROP:
        paragraphs = _leave_out(choice, of_model, scoring, group, target, is_identifier=is_identifier)
    else:
        headline = f"Encode {group} with {described(best.method)}"
        found = _scores(best, reference, gain, scoring)
        paragraphs = [f"{headline}: {found}." if reference else f"{headline}. It has {found}."]
        without = of_model.get(DROP)
        if reference is not None:
            n_compared = sum(item.model == best.model and not item.failed for item in summaries) - 1
            paragraphs.append(_evidence(gain, n_compared))
        if without is not None and reference is not None and reference.method != DROP:
            value = score_text(without.score, scoring)
            paragraphs.append(f"Without {group}, the {scoring.spoken} is {value}.")
        several = len({item.model for item in summaries}) > 1
        paragraphs.append(_next_best(choice, of_model, reference, scoring, several_models=several))
        paragraphs.append(_ties(choice, scoring))
        paragraphs.append(_by_level_kind(best, without, scoring, group, n_repeats))
    return tuple(text for text in paragraphs if text)


def described(method: str) -> str:
    """Return what a method is called in a sentence."""
    if method == ONE_HOT:
        return "one-hot columns"
    if method == DROP:
        return "the column left out"
    if method == TARGET_ENCODER:
        return "scikit-learn's TargetEncoder"
    name = METHODS[method][0].__name__
    return name if method == "sufficient" else f"{method} ({name})"


def score_text(value: float, scoring: Scoring) -> str:
    """Format a score; large numbers in the units of the target have no decimals.

    Examples
    --------
    >>> from sufrep._compare._run import make_scoring
    >>> score_text(61_283.4, make_scoring(None, "regression"))
    '61,300'
    >>> score_text(0.51234, make_scoring("r2", "regression"))
    '0.5123'
    """
    if not scoring.in_units or abs(value) < 1000:
        return f"{value:.4g}"
    rounded = round(value, 2 - math.floor(math.log10(abs(value))))
    return f"{rounded:,.0f}"


def _reported_gain(best: Summary, reference: Summary | None, *, of_drop: bool) -> Gain:
    """Return the improvement that the verdict speaks of, with the adjusted p-value."""
    if of_drop:
        numbers = (best.over_drop, best.low_over_drop, best.high_over_drop, math.nan, best.p_over_drop)
        # The two differ by as much the other way round, so that there is a test in both or in neither.
        return Gain(*numbers, None if reference is None else reference.no_test)
    numbers = (best.improvement, best.low, best.high, best.p_plain, best.p_adjusted)
    return Gain(*numbers, best.no_test)


def _scores(best: Summary, reference: Summary | None, gain: Gain, scoring: Scoring) -> str:
    """Say what the best achieves, and what the reference does."""
    text = f"{scoring.spoken} {score_text(best.score, scoring)}"
    if reference is None:
        return text
    instead = "without it" if reference.method == DROP else f"with {described(reference.method)}"
    text += f" instead of {score_text(reference.score, scoring)} {instead}"
    if math.isfinite(gain.improvement):
        text += f", {_change(gain.improvement, scoring)}"
    if math.isfinite(gain.low):
        ends = (gain.low, gain.high) if gain.improvement >= 0 else (-gain.high, -gain.low)
        low, high = (scoring.improvement_text(value, sign=False) for value in ends)
        text += f" (95\u00a0% interval {low.removesuffix(PERCENT)} to {high})"
    if scoring.also is not None and math.isfinite(best.also):
        text += f"; {scoring.also[0]} {best.also:.3f} instead of {reference.also:.3f}"
    return text


def _change(improvement: float, scoring: Scoring) -> str:
    word = "less" if scoring.is_loss == (improvement >= 0) else "more"
    return f"{scoring.improvement_text(abs(improvement), sign=False)} {word}"


def _leave_out(
    choice: Choice,
    of_model: Mapping[str, Summary],
    scoring: Scoring,
    group: str,
    target: str,
    *,
    is_identifier: bool,
) -> list[str]:
    """Say why the column is to be left out."""
    if is_identifier:
        return [
            f"Leave {group} out: every row has a level of its own, so no encoding of it can help to predict "
            "new rows."
        ]
    if choice.helps:
        found = (
            f"Without {group}, {target} is predicted as well as with the best encoding, within "
            f"{_MARGIN_TEXT} or one standard error: leave the column out."
        )
    else:
        found = f"No encoding of {group} was shown to predict {target} better: leave the column out."
    paragraphs = [found]
    others = [item for item in of_model.values() if item.method != DROP]
    if others:
        text = f"Without it, the {scoring.spoken} is {score_text(choice.best.score, scoring)}"
        first = others[0]
        text += f"; with the best encoding, {described(first.method)}, {score_text(first.score, scoring)}"
        if math.isfinite(first.low_over_drop):
            text += f": {_range_text(first.low_over_drop, first.high_over_drop, scoring)}"
        elif first.no_test:
            text += f" (not tested: {first.no_test})"
        paragraphs.append(f"{text}.")
        if not choice.helps and first.high_over_drop > MARGIN:
            paragraphs.append("That does not rule out a gain: more rows or more repetitions may show one.")
    return paragraphs


def _range_text(low: float, high: float, scoring: Scoring) -> str:
    """Say between which ends a difference lies, an interval that may be on both sides of zero."""
    sides = ["better" if end >= 0 else "worse" for end in (low, high)]
    ends = [scoring.improvement_text(abs(end), sign=False) for end in (low, high)]
    if sides[0] == sides[1]:
        first, last = ends if high >= 0 else ends[::-1]
        return f"between {first} and {last} {sides[0]} (95\u00a0% interval)"
    return f"between {ends[0]} {sides[0]} and {ends[1]} {sides[1]} (95\u00a0% interval)"


def _evidence(gain: Gain, n_compared: int) -> str:
    if gain.no_test:
        hint = "more repetitions or more rows" if gain.no_test == EQUAL_GAINS else "three folds or more"
        return f"No test: {gain.no_test}. Whether this is chance cannot be said; use {hint}."
    if math.isnan(gain.p_corrected):
        return ""
    methods = "method" if n_compared == 1 else "methods"
    p = p_value_statement(gain.p_corrected)
    p = f"{p}, corrected for overlapping folds and for {n_compared} {methods} compared"
    if gain.p_corrected < SIGNIFICANCE:
        return f"This difference is unlikely to be chance ({p})."
    return f"This difference may be chance ({p}); more repetitions or more rows would help to decide."


def _ties(choice: Choice, scoring: Scoring) -> str:
    """Name the methods that predict as well, and why the best was chosen among them."""
    others = [item for item in choice.as_good if item is not choice.best]
    if not others:
        return ""
    shown = ", ".join(item.method for item in others[:_MAX_NAMED])
    more = f" and {len(others) - _MAX_NAMED} more" if len(others) > _MAX_NAMED else ""
    text = (
        f"As good, within {_MARGIN_TEXT} of the {scoring.spoken} or one standard error of the difference: "
        f"{shown}{more}."
    )
    best, top = choice.best, choice.top
    if best is top:
        return text
    return f"{text} Of these, {best.method} adds the fewest columns ({best.n_columns})."


def _next_best(
    choice: Choice,
    of_model: Mapping[str, Summary],
    reference: Summary | None,
    scoring: Scoring,
    *,
    several_models: bool,
) -> str:
    """Say what the best of the other methods achieves, and how sure the difference is.

    If the headline has this comparison, nothing is said.
    """
    best, over = choice.best, choice.over_others
    method = next(iter(over), None)
    if method is None or (reference is not None and method == reference.method):
        return ""
    other, gain = of_model[method], over[method]
    columns = "1 column" if other.n_columns == 1 else f"{other.n_columns} columns"
    text, score = f"{described(method)} with {columns}", score_text(other.score, scoring)
    if best is choice.top:
        same = f" with {best.model}" if several_models else ""
        text = f"The best of the others{same} is {text}, {scoring.spoken} {score}"
    else:
        extreme = "smallest" if scoring.is_loss else "largest"
        text = f"The {extreme} {scoring.spoken} is that of {text}, {score}"
    if math.isfinite(gain.low):
        chance = ", so which of the two is better is not certain" if gain.low <= 0 <= gain.high else ""
        return f"{text}: {best.method} is {_range_text(gain.low, gain.high, scoring)}{chance}."
    return f"{text}. The difference was not tested: {gain.no_test}." if gain.no_test else f"{text}."


def _by_level_kind(
    best: Summary, without: Summary | None, scoring: Scoring, group: str, n_repeats: int
) -> str:
    """Say how well rows of common, rare and new levels are predicted, and without the column.

    Kinds of levels with few rows are left out.
    """
    counts = {kind: getattr(best, f"n_{kind}") for kind in LEVEL_KINDS}
    n_rows = sum(counts.values())
    if not counts["rare"] + counts["new"]:
        return ""
    parts, no_help = [], []
    for kind, count in counts.items():
        score, other = getattr(best, kind), math.nan if without is None else getattr(without, kind)
        if count < MIN_ROWS * n_repeats or not math.isfinite(score):
            continue
        part = f"{score_text(score, scoring)} in rows of {kind} levels ({100 * count / n_rows:.2g}{PERCENT})"
        parts.append(f"{part}, {score_text(other, scoring)} without it" if math.isfinite(other) else part)
        if math.isfinite(other) and scoring.gains(np.array([other]), np.array([score]))[0] <= 0:
            no_help.append(kind)
    if len(parts) < 2:  # the headline says as much as one part
        return ""
    text = f"The {scoring.spoken} is {'; '.join(parts)}."
    if no_help:
        text += f" It does not help rows of {' and '.join(no_help)} levels."
    return f"{text} {kinds_text(group)}"


def kinds_text(group: str) -> str:
    """Say what levels are, and which of them are common, rare and new."""
    return (
        f"A level is a value of {group}: common with {RARE} training rows or more, rare with 1 to "
        f"{RARE - 1}, new with none."
    )
