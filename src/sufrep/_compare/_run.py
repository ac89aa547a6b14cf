"""Every method in every split, with every model; what fails is told, and the rest goes on."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sufrep._sklearn import take_rows
from threadpoolctl import threadpool_limits

from sufrep._compare._methods import MOST_CELLS, make_steps, n_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sufrep._compare._folds import Split
    from sufrep._compare._problem import Problem
    from sufrep._compare._scoring import Scoring

_LONGEST_FAILURE = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """One method with one model in one split.

    Attributes
    ----------
    method, model : str
    repeat, fold : int
    score : float
        NaN where it failed.
    fit_seconds, predict_seconds : float
        Of encoder and model together.
    n_columns : int
        Columns that the method adds to those beside the group.
    failure : str or None
        Why there is no score.
    """

    method: str
    model: str
    repeat: int
    fold: int
    score: float = math.nan
    fit_seconds: float = math.nan
    predict_seconds: float = math.nan
    n_columns: int = 0
    failure: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What is run.

    Attributes
    ----------
    problem : Problem
    methods : sequence of str
    models : mapping of str to estimator
        Not fitted.
    splits : sequence of Split
    scoring : Scoring
    seed : int
    """

    problem: Problem
    methods: Sequence[str]
    models: Mapping[str, Any]
    splits: Sequence[Split]
    scoring: Scoring
    seed: int


def run_plan(plan: Plan, n_jobs: int | None, tell: Callable[[int, int, str], None] | None) -> list[Outcome]:
    """Run all, side by side; ``tell`` hears how many are done, of how many, and what was last."""
    # The slowest encoders are the last of the registry; what is slow should start first.
    pairs = [(method, split) for method in reversed(plan.methods) for split in plan.splits]
    if tell:
        tell(0, len(pairs), "")
    found: list[Outcome] = []
    with parallel_config(backend="loky", n_jobs=n_jobs, inner_max_num_threads=1):
        calls = (delayed(run_split)(plan, method, split) for method, split in pairs)
        for done, outcomes in enumerate(Parallel(return_as="generator_unordered", batch_size=1)(calls), 1):
            found += outcomes
            if tell:
                tell(done, len(pairs), outcomes[0].method)
    place = {method: rank for rank, method in enumerate(plan.methods)}
    models = list(plan.models)
    order = {item: (models.index(item.model), place[item.method], item.repeat, item.fold) for item in found}
    return sorted(found, key=order.__getitem__)


def run_split(plan: Plan, method: str, split: Split) -> list[Outcome]:
    """Encode once, and let every model learn from the columns."""
    outcomes = []
    with threadpool_limits(1), warnings.catch_warnings():
        # EM that ends early, levels that are new in a fold, what packages are about to deprecate: hundreds of
        # fits must not say so each time.
        warnings.simplefilter("ignore")
        try:
            encoded = _Encoded.make(plan, method, split)
        except Exception as error:
            return [_failed(method, model, split, error) for model in plan.models]
        for model, learner in plan.models.items():
            try:
                outcomes.append(_judge(plan, encoded, split, method, model, clone(learner)))
            except Exception as error:
                outcomes.append(_failed(method, model, split, error))
    return outcomes


@dataclass(frozen=True, slots=True, eq=False)
class _Encoded:
    """Columns of the rows to learn from and to test on, and how long they took."""

    train: Any
    test: Any
    n_columns: int
    fit_seconds: float
    transform_seconds: float

    @classmethod
    def make(cls, plan: Plan, method: str, split: Split) -> _Encoded:
        cells = n_cells(plan.problem, method)
        if cells > MOST_CELLS:
            raise MemoryError(
                f"{cells / 1e9 * 8:.1f} GB would be needed for a column for each of "
                f"{len(plan.problem.levels):,} levels; take fewer rows, or pool rare levels"
            )
        steps = Pipeline(make_steps(plan.problem, method, plan.seed))
        X, y = plan.problem.X, plan.problem.y
        known, new = (take_rows(X, rows) for rows in (split.train, split.test))
        start = perf_counter()
        train = steps.fit_transform(known, y[split.train])
        middle = perf_counter()
        test = steps.transform(new)
        n_beside = _n_columns(steps[0].transform(new[:1])) if len(steps) > 1 else _n_columns(X)
        n_added = _n_columns(train) - (n_beside - len(plan.problem.columns))
        return cls(train, test, n_added, middle - start, perf_counter() - middle)


def take_rows(X: Any, rows: Any) -> Any:
    """Some rows of a frame or an array."""
    return X.take(rows) if hasattr(X, "combine_chunks") else take_rows(X, rows)


def _judge(plan: Plan, encoded: _Encoded, split: Split, method: str, model: str, learner: Any) -> Outcome:
    y = plan.problem.y
    start = perf_counter()
    learner.fit(encoded.train, y[split.train])
    middle = perf_counter()
    score = float(plan.scoring.measure(learner, encoded.test, y[split.test]))
    end = perf_counter()
    if not math.isfinite(score):
        raise ValueError(f"the {plan.scoring.name} is {score}")
    return Outcome(
        method,
        model,
        split.repeat,
        split.fold,
        score,
        encoded.fit_seconds + middle - start,
        encoded.transform_seconds + end - middle,
        encoded.n_columns,
    )


def _failed(method: str, model: str, split: Split, error: Exception) -> Outcome:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return Outcome(method, model, split.repeat, split.fold, failure=text[:_LONGEST_FAILURE])


def _n_columns(X: Any) -> int:
    return int(np.shape(X)[1])


def outcomes_of(outcomes: Sequence[Outcome]) -> Iterator[tuple[tuple[str, str], list[Outcome]]]:
    """Outcomes by model and method, in their order."""
    found: dict[tuple[str, str], list[Outcome]] = {}
    for item in outcomes:
        found.setdefault((item.model, item.method), []).append(item)
    yield from found.items()
