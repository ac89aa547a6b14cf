"""What the comparison says, in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sufrep._compare._methods import CODINGS, DROP
from sufrep._compare._summary import DOUBT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._compare._scoring import Scoring
    from sufrep._compare._summary import Summary

_MOST_NAMED = 6
# Nobody would choose these for being small.
_ODD = frozenset({*CODINGS, "permutation", "multi_permutation"})
_NAMES = {"one_hot": "one-hot columns", "drop": "leaving the column out"}


def make_verdict(
    summaries: Sequence[Summary],
    scoring: Scoring,
    *,
    baseline: str,
    group: str,
    target: str,
    tied: Sequence[str],
) -> tuple[str, ...]:
    """Paragraphs, the first of which is the headline.

    Parameters
    ----------
    summaries : sequence of Summary
        The best first.
    scoring : Scoring
    baseline : str
    group, target : str
        Names of the columns.
    tied : sequence of str
        Methods that the splits do not tell from the best, with the same model.
    """
    best = summaries[0]
    if best.failed:
        return ("No method worked on these data.", f"The first reason: {best.failure}")
    same = [item for item in summaries if (item.model, item.method) == (best.model, baseline)]
    base = next((item for item in same if not item.failed), None)
    paragraphs = [_headline(best, group, target)]
    if base is not None:
        paragraphs.append(_size(best, base, scoring))
        if best.method != baseline:
            paragraphs.append(_doubt(best, summaries))
    paragraphs.append(_ties(best, summaries, scoring, tied))
    return tuple(text for text in paragraphs if text)


def name_of(method: str) -> str:
    """A method for people."""
    return _NAMES.get(method, method)


def _headline(best: Summary, group: str, target: str) -> str:
    if best.method == DROP:
        return f"Leave {group} out: {target} is predicted best without it, by {best.model}."
    return f"Represent {group} by {best.method}: with {best.model} it predicts {target} best."


def _size(best: Summary, base: Summary, scoring: Scoring) -> str:
    score = f"Its {scoring.name} is {best.score:.4g}"
    if best.method == base.method:
        return f"{score}; nothing that was tried beats {name_of(base.method)}."
    text = f"{score}, that of {name_of(base.method)} {base.score:.4g}"
    if not math.isfinite(best.improvement):
        return f"{text}."
    text += f": {scoring.improvement_text(best.improvement, sign=False)} better"
    if math.isfinite(best.low):
        low, high = (scoring.improvement_text(value) for value in (best.low, best.high))
        text += f" (95\u00a0% interval {low} to {high})"
    return f"{text}."


def _doubt(best: Summary, summaries: Sequence[Summary]) -> str:
    if math.isnan(best.p_adjusted):
        return "One split says nothing about chance; take more folds."
    n_compared = sum(item.model == best.model and not math.isnan(item.p_corrected) for item in summaries)
    methods = "method" if n_compared == 1 else "methods"
    p = f"p = {best.p_adjusted:.2g}" if best.p_adjusted >= 0.001 else "p < 0.001"
    allowed = f"{p}, allowing for folds that share rows and for {n_compared} {methods} compared"
    if best.p_adjusted < DOUBT:
        return f"That is unlikely to be chance ({allowed})."
    return f"That may be chance ({allowed}); more repetitions, or more rows, would tell."


def _ties(best: Summary, summaries: Sequence[Summary], scoring: Scoring, tied: Sequence[str]) -> str:
    """What does about as well, and the cheapest of it."""
    order = [item for item in summaries if item.model == best.model and item.method in tied]
    if not order:
        return ""
    shown = ", ".join(item.method for item in order[:_MOST_NAMED])
    more = f" and {len(order) - _MOST_NAMED} more" if len(order) > _MOST_NAMED else ""
    text = f"The folds do not tell it from {shown}{more}."
    if DROP in tied:
        return f"{text} Leaving the column out is among them, so it may say nothing beside the other columns."
    usual = [item for item in order if item.method not in _ODD]
    cheapest = min([best, *usual], key=lambda item: item.n_columns)
    if cheapest is best:
        return text
    columns = "column" if cheapest.n_columns == 1 else "columns"
    # Few folds tell little apart; the score lets the reader judge.
    what = f"{cheapest.n_columns} {columns}; {scoring.name} {cheapest.score:.4g}"
    return f"{text} Of these, {cheapest.method} adds fewest columns ({what})."
