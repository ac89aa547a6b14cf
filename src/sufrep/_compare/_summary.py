"""From outcomes to improvements over one-hot, with intervals and tests."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sufrep._compare._methods import DROP, ONE_HOT
from sufrep._compare._run import outcomes_of
from sufrep._statistics import corrected_interval, holm, paired_p_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats
    from sufrep._compare._run import Outcome
    from sufrep._compare._scoring import Scoring

# What is called unlikely to be chance.
DOUBT = 0.05


@dataclass(frozen=True, slots=True)
class Summary:
    """One method with one model over all splits; numbers are NaN where it failed.

    Attributes
    ----------
    model, method : str
    score : float
        Mean over the splits.
    improvement, low, high : float
        Over the baseline with the same model, and the 95 % interval that belongs to `p_corrected`. A share of
        the baseline's loss, or a difference of scores.
    p_plain : float
        Paired t-test over the splits, which takes them for independent.
    p_corrected : float
        The same with the variance of Nadeau and Bengio, which allows for training rows that splits share.
    p_adjusted : float
        The latter after Holm's correction for all methods of the same model.
    fit_seconds, predict_seconds : float
        Medians over the splits.
    n_columns : int
        Columns that the method adds, at most.
    n_splits : int
        Splits with a score.
    failure : str or None
        The first reason, where any split failed.
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

    @property
    def failed(self) -> bool:
        """Whether there is no score of all splits."""
        return self.failure is not None


def choose_baseline(outcomes: Sequence[Outcome]) -> str:
    """What all are held against: one-hot columns, or else no column, or else the first that works."""
    works: dict[str, bool] = {}
    for (_, method), items in outcomes_of(outcomes):
        works[method] = works.get(method, True) and not any(item.failure for item in items)
    order = [ONE_HOT, DROP, *works]
    return next((method for method in order if works.get(method)), ONE_HOT)


def summarise(outcomes: Sequence[Outcome], scoring: Scoring, baseline: str, n_folds: float) -> list[Summary]:
    """Every method with every model, the best first, those that failed last."""
    scores = {key: _scores(items) for key, items in outcomes_of(outcomes)}
    found: list[Summary] = []
    for model in dict.fromkeys(item.model for item in outcomes):
        theirs = scores.get((model, baseline), np.empty(0))
        of_model = [
            _summary(items, scores[key], theirs, scoring, n_folds, is_baseline=key[1] == baseline)
            for key, items in outcomes_of(outcomes)
            if key[0] == model
        ]
        adjusted = holm([item.p_corrected for item in of_model])
        found += [replace(item, p_adjusted=p) for item, p in zip(of_model, adjusted, strict=True)]
    sign = 1 if scoring.is_loss else -1
    return sorted(found, key=lambda item: (item.failed, 0.0 if item.failed else sign * item.score))


def fold_improvements(
    outcomes: Sequence[Outcome], scoring: Scoring, baseline: str, model: str
) -> dict[str, Floats]:
    """Improvement of each method over the baseline in each split, of those that never failed."""
    scores = {key[1]: _scores(items) for key, items in outcomes_of(outcomes) if key[0] == model}
    theirs = scores.get(baseline, np.empty(0))
    unit = theirs if scoring.is_loss else np.ones(len(theirs))
    return {
        method: scoring.gains(theirs, ours) / unit
        for method, ours in scores.items()
        if len(ours) and len(ours) == len(theirs)
    }


def rivals(outcomes: Sequence[Outcome], scoring: Scoring, best: tuple[str, str], n_folds: float) -> list[str]:
    """Methods that the splits do not tell from the best, a model and a method, with the same model.

    The corrected test must leave doubt, which few splits do even of what lies far behind; so the best must
    also be behind in at least one of them.
    """
    scores = {key: _scores(items) for key, items in outcomes_of(outcomes)}
    found = []
    for (model, method), theirs in scores.items():
        if model != best[0] or method == best[1] or not len(theirs):
            continue
        gains = scoring.gains(theirs, scores[best])
        if paired_p_values(gains, n_folds)[1] >= DOUBT and gains.min() <= 0:
            found.append(method)
    return found


def _scores(items: Sequence[Outcome]) -> Floats:
    """Scores of all splits; none where any of them failed."""
    if any(item.failure for item in items):
        return np.empty(0)
    return np.array([item.score for item in items])


def _summary(
    items: Sequence[Outcome],
    ours: Floats,
    theirs: Floats,
    scoring: Scoring,
    n_folds: float,
    *,
    is_baseline: bool,
) -> Summary:
    nothing = (math.nan, math.nan, math.nan, math.nan, math.nan)
    compared = nothing
    if is_baseline and len(ours):
        compared = (0.0, *nothing[1:])
    elif len(ours) and len(ours) == len(theirs):
        gains, unit = scoring.gains(theirs, ours), scoring.unit(theirs)
        # A baseline without any loss cannot be improved on; shares of it mean nothing.
        unit = unit or math.nan
        low, high = corrected_interval(gains, n_folds)
        compared = (float(gains.mean()) / unit, low / unit, high / unit, *paired_p_values(gains, n_folds))
    failure = next((item.failure for item in items if item.failure), None)
    n_failed = sum(item.failure is not None for item in items)
    if failure and n_failed < len(items):
        failure = f"in {n_failed} of {len(items)} splits: {failure}"
    done = [item for item in items if not item.failure]
    return Summary(
        items[0].model,
        items[0].method,
        float(ours.mean()) if len(ours) else math.nan,
        *compared,
        math.nan,
        float(np.median([item.fit_seconds for item in done])) if done else math.nan,
        float(np.median([item.predict_seconds for item in done])) if done else math.nan,
        max((item.n_columns for item in done), default=0),
        len(done),
        failure,
    )
