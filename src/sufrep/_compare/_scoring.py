"""How well predictions do, and how much better than those of another."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import get_scorer, get_scorer_names

from sufrep._learners import log_losses
from sufrep.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sufrep._arrays import Array, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Scoring:
    """A measure of predictions.

    Attributes
    ----------
    name : str
        What it is called in tables.
    measure : callable
        Of a fitted learner, columns and target.
    is_loss : bool
        Whether small is good. Improvements of losses are shares, those of scores are differences.
    """

    name: str
    measure: Callable[[Any, Any, Array], float]
    is_loss: bool

    def gains(self, baseline: Floats, ours: Floats) -> Floats:
        """How much better each score is than its baseline; positive is better."""
        return baseline - ours if self.is_loss else ours - baseline

    def unit(self, baseline: Floats) -> float:
        """What gains are divided by to be improvements."""
        return float(np.mean(baseline)) if self.is_loss else 1.0

    def better(self, one: float, other: float) -> bool:
        """Whether one score is better than the other."""
        return one < other if self.is_loss else one > other

    def improvement_text(self, value: float, *, sign: bool = True) -> str:
        """An improvement for people: percent of a loss, points of a score."""
        plus = "+" if sign else ""
        return f"{100 * value:{plus}.1f}\u00a0%" if self.is_loss else f"{value:{plus}.4f}"


def make_scoring(scoring: str | Callable[..., float] | None, task: str) -> Scoring:
    """The measure that the user names, or the usual one of the task."""
    if scoring is None:
        if task == "regression":
            return Scoring("mean squared error", _mean_squared_error, is_loss=True)
        return Scoring("log loss", _log_loss, is_loss=True)
    if callable(scoring):
        return Scoring(getattr(scoring, "__name__", "score"), scoring, is_loss=False)
    try:
        scorer = get_scorer(scoring)
    except ValueError as error:
        near = get_close_matches(str(scoring), get_scorer_names(), n=3)
        known = f"did you mean {' or '.join(map(repr, near))}?" if near else ", ".join(get_scorer_names())
        expected = f"None, a callable of (estimator, X, y), or a name of scikit-learn's ({known})"
        raise InvalidParameterError("scoring", scoring, expected) from error
    if scoring.startswith("neg_"):
        name = scoring.removeprefix("neg_").replace("_", " ")
        return Scoring(name, _negative(scorer), is_loss=True)
    return Scoring(scoring.replace("_", " "), scorer, is_loss=False)


def _mean_squared_error(learner: Any, columns: Any, y: Array) -> float:
    return float(np.mean((np.asarray(learner.predict(columns)).reshape(-1) - y) ** 2))


def _log_loss(learner: Any, columns: Any, y: Array) -> float:
    return float(log_losses(np.asarray(learner.predict_proba(columns)), learner.classes_, y).mean())


class _negative:  # noqa: N801
    """A scorer with its sign turned; a class, because workers get it by pickle."""

    def __init__(self, scorer: Any) -> None:
        self._scorer = scorer

    def __call__(self, learner: Any, columns: Any, y: Array) -> float:
        return -float(self._scorer(learner, columns, y))
