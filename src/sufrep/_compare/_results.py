"""From the scores of all splits to improvements, intervals and tests, and to a verdict in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sufrep._compare._run import CODINGS, scores_by_method
from sufrep._names import DROP, ONE_HOT, TARGET_ENCODER
from sufrep._statistics import (
    EQUAL_GAINS,
    corrected_interval,
    holm,
    p_value_statement,
    paired_p_values,
    rounding_error,
    why_no_test,
)
from sufrep.encoders import METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats
    from sufrep._compare._run import FoldScore, Scoring

# Smaller p-values count as evidence.
SIGNIFICANCE = 0.05
_MAX_NAMED = 6
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
        Paired t-test over the splits, which treats them as independent; no verdict rests on it.
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
    values = {key: _values(items) for key, items in scores_by_method(scores)}
    found: list[Summary] = []
    for model in dict.fromkeys(item.model for item in scores):
        of_baseline = values.get((model, baseline), np.empty(0))
        of_model = [
            _summary(
                items, values[key], of_baseline, scoring, effective_n_folds, is_baseline=key[1] == baseline
            )
            for key, items in scores_by_method(scores)
            if key[0] == model
        ]
        adjusted = holm([item.p_corrected for item in of_model])
        found += [replace(item, p_adjusted=p) for item, p in zip(of_model, adjusted, strict=True)]
    sign = 1 if scoring.is_loss else -1
    return sorted(found, key=lambda item: (item.failed, 0.0 if item.failed else sign * item.score))


def fold_improvements(
    scores: Sequence[FoldScore], scoring: Scoring, baseline: str, model: str
) -> dict[str, Floats]:
    """Return the improvement of each method over the baseline in each split, unless a split failed."""
    values = {key[1]: _values(items) for key, items in scores_by_method(scores) if key[0] == model}
    of_baseline = values.get(baseline, np.empty(0))
    unit = of_baseline if scoring.is_loss else np.ones(len(of_baseline))
    return {
        method: scoring.gains(of_baseline, of_method) / unit
        for method, of_method in values.items()
        if len(of_method) and len(of_method) == len(of_baseline)
    }


def find_ties(
    scores: Sequence[FoldScore], scoring: Scoring, best: tuple[str, str], effective_n_folds: float
) -> list[str]:
    """Return the methods that cannot be distinguished from the best (model, method) with the same model.

    The corrected test must not be significant, or there is no test. With few splits that also holds for
    methods far behind, so the best must also not be ahead in at least one split.
    """
    values = {key: _values(items) for key, items in scores_by_method(scores)}
    found = []
    for (model, method), of_method in values.items():
        if model != best[0] or method == best[1] or not len(of_method):
            continue
        gains, rounding = scoring.gains(of_method, values[best]), rounding_error(of_method, values[best])
        significant = paired_p_values(gains, effective_n_folds, rounding)[1] < SIGNIFICANCE
        if not significant and gains.min() <= rounding:
            found.append(method)
    return found


def _values(items: Sequence[FoldScore]) -> Floats:
    """Return the scores of all splits; none if any of them failed."""
    if any(item.failure for item in items):
        return np.empty(0)
    return np.array([item.score for item in items])


def _summary(
    items: Sequence[FoldScore],
    values: Floats,
    of_baseline: Floats,
    scoring: Scoring,
    effective_n_folds: float,
    *,
    is_baseline: bool,
) -> Summary:
    unknown = (math.nan, math.nan, math.nan, math.nan, math.nan)
    compared, no_test = unknown, None
    if is_baseline and len(values):
        compared = (0.0, *unknown[1:])
    elif len(values) and len(values) == len(of_baseline):
        gains, unit = scoring.gains(of_baseline, values), scoring.unit(of_baseline)
        # Nothing can be relative to a baseline without any loss.
        unit = unit or math.nan
        rounding = rounding_error(of_baseline, values)
        no_test = why_no_test(gains, rounding)
        low, high = corrected_interval(gains, effective_n_folds, rounding)
        compared = (
            float(gains.mean()) / unit,
            low / unit,
            high / unit,
            *paired_p_values(gains, effective_n_folds, rounding),
        )
    done = [item for item in items if not item.failure]
    return Summary(
        items[0].model,
        items[0].method,
        float(values.mean()) if len(values) else math.nan,
        *compared,
        math.nan,
        float(np.median([item.fit_seconds for item in done])) if done else math.nan,
        float(np.median([item.predict_seconds for item in done])) if done else math.nan,
        max((item.n_columns for item in done), default=0),
        len(done),
        _failure(items),
        no_test,
    )


def _failure(items: Sequence[FoldScore]) -> str | None:
    reasons = [item.failure for item in items if item.failure]
    if not reasons or len(reasons) == len(items):
        return reasons[0] if reasons else None
    return f"in {len(reasons)} of {len(items)} splits: {reasons[0]}"


# The verdict


def make_verdict(
    summaries: Sequence[Summary],
    scoring: Scoring,
    *,
    baseline: str,
    group: str,
    target: str,
    tied: Sequence[str],
) -> tuple[str, ...]:
    """Say in words what was found.

    Parameters
    ----------
    summaries : sequence of Summary
        The best first.
    scoring : Scoring
    baseline : str
    group, target : str
        Names of the columns.
    tied : sequence of str
        Methods that the splits cannot distinguish from the best, with the same model.

    Returns
    -------
    tuple of str
        Paragraphs; the first is the headline.
    """
    best = summaries[0]
    if best.failed:
        return ("Every method failed on these data.", f"First reason: {best.failure}")
    same = [item for item in summaries if (item.model, item.method) == (best.model, baseline)]
    base = next((item for item in same if not item.failed), None)
    paragraphs = [_headline(best, group, target)]
    if base is not None:
        paragraphs.append(_improvement(best, base, scoring))
        if best.method != baseline:
            paragraphs.append(_evidence(best, summaries))
    paragraphs.append(_ties(best, summaries, scoring, tied))
    return tuple(text for text in paragraphs if text)


def _headline(best: Summary, group: str, target: str) -> str:
    if best.method == DROP:
        return f"Drop {group}: {best.model} predicts {target} best without it."
    encoder = "TargetEncoder" if best.method == TARGET_ENCODER else METHODS[best.method][0].__name__
    return f"Encode {group} with {encoder} ({best.method}): with {best.model}, it predicts {target} best."


def _improvement(best: Summary, base: Summary, scoring: Scoring) -> str:
    score = f"{'The' if best.method == DROP else 'Its'} {scoring.name} is {best.score:.4g}"
    if best.method == base.method:
        return f"{score}; no other method beats {base.method}."
    text = f"{score}, compared with {base.score:.4g} for {base.method}"
    if not math.isfinite(best.improvement):
        return f"{text}."
    text += f": {scoring.improvement_text(best.improvement, sign=False)} better"
    if math.isfinite(best.low):
        low, high = (scoring.improvement_text(value) for value in (best.low, best.high))
        text += f" (95\u00a0% interval {low} to {high})"
    return f"{text}."


def _evidence(best: Summary, summaries: Sequence[Summary]) -> str:
    if best.no_test:
        hint = "more repetitions or more rows" if best.no_test == EQUAL_GAINS else "three folds or more"
        return f"No test: {best.no_test}. Whether this is chance cannot be said; use {hint}."
    n_compared = sum(item.model == best.model and not math.isnan(item.p_corrected) for item in summaries)
    methods = "method" if n_compared == 1 else "methods"
    p = p_value_statement(best.p_adjusted)
    p = f"{p}, corrected for overlapping folds and for {n_compared} {methods} compared"
    if best.p_adjusted < SIGNIFICANCE:
        return f"The difference is unlikely to be chance ({p})."
    return f"The difference may be chance ({p}); more repetitions or more rows would help to decide."


def _ties(best: Summary, summaries: Sequence[Summary], scoring: Scoring, tied: Sequence[str]) -> str:
    """Name the methods that do about as well, and the one of them with fewest columns."""
    order = [item for item in summaries if item.model == best.model and item.method in tied]
    if not order:
        return ""
    shown = ", ".join(item.method for item in order[:_MAX_NAMED])
    more = f" and {len(order) - _MAX_NAMED} more" if len(order) > _MAX_NAMED else ""
    text = f"The folds cannot distinguish it from {shown}{more}."
    if DROP in tied:
        return f"{text} That includes dropping the column, so it may add nothing to the other columns."
    usual = [item for item in order if item.method not in _NEVER_SUGGESTED]
    smallest = min([best, *usual], key=lambda item: item.n_columns)
    if smallest is best:
        return text
    columns = "column" if smallest.n_columns == 1 else "columns"
    # Few folds distinguish little; the score lets readers judge for themselves.
    size = f"{smallest.n_columns} {columns}; {scoring.name} {smallest.score:.4g}"
    return f"{text} Of these, {smallest.method} adds the fewest columns ({size})."
