"""Running a comparison: the fast methods first, with the results so far, until all is done or time is up."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from joblib import effective_n_jobs

from sufrep._compare._run import (
    FoldScore,
    StoredRows,
    make_feasible_method,
    read_split,
    score_split,
    scores_by_method,
    usual_cost,
)
from sufrep._grid import Failure, attempt, run_grid
from sufrep._progress import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sufrep._compare._run import ComparisonPlan, SplitRows
    from sufrep._progress import Report


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a comparison is.

    Attributes
    ----------
    n_done, n_all : int
        Number of splits, counted for every method.
    method : str
        The last that was done in some split.
    seconds_left : float
    ranking : list of (method, model, score)
        What is done in all splits, the best first.
    """

    n_done: int
    n_all: int
    method: str
    seconds_left: float
    ranking: list[tuple[str, str, float]]


@runtime_checkable
class Watcher(Protocol):
    """Sees how far a comparison is, and may stop it."""

    def see(self, standing: Standing) -> None:
        """Take note of the results so far; called before the first split and after each."""

    def stops(self) -> bool:
        """Return whether no other split should be started."""


class Listener:
    """Reports how far a comparison is to a callable, or in lines on standard error.

    Parameters
    ----------
    progress : bool or callable
        See `compare`.
    """

    def __init__(self, progress: bool | Report) -> None:
        self._left = 0.0
        self._report: Report | None = None
        if callable(progress):
            self._report = progress
        elif progress:
            self._report = Lines("compare", left=lambda: self._left)

    def see(self, standing: Standing) -> None:
        """Report the number of splits done."""
        self._left = standing.seconds_left
        if self._report is not None:
            self._report(standing.n_done, standing.n_all, standing.method)

    def stops(self) -> bool:
        """Return False: whoever only listens does not stop a comparison."""
        return False


class Deadline:
    """Says when the time for starting something is over.

    Parameters
    ----------
    seconds : float or None
        None never ends.
    clock : callable
        Returns seconds.
    """

    def __init__(self, seconds: float | None, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._end = clock, None if seconds is None else clock() + seconds

    def is_over(self) -> bool:
        """Return whether the time has passed."""
        return self._end is not None and self._clock() >= self._end


class TimeLeft:
    """Estimates the seconds until the end from what each method has taken so far.

    A method that has not been measured is expected to take its usual multiple of what others took.

    Parameters
    ----------
    n_splits : mapping of str to int
        How many splits each method has to do.
    n_jobs : int
    """

    def __init__(self, n_splits: Mapping[str, int], n_jobs: int) -> None:
        self._n_left, self._n_jobs = Counter(n_splits), n_jobs
        self._seconds: dict[str, list[float]] = {}

    def add(self, method: str, seconds: float) -> None:
        """Take note that a method took so long in one split."""
        self._n_left[method] -= 1
        self._seconds.setdefault(method, []).append(seconds)

    def seconds(self) -> float:
        """Return the estimate; 0 before anything was measured."""
        spent = sum(map(sum, self._seconds.values()))
        usual = sum(len(taken) * usual_cost(method) for method, taken in self._seconds.items())
        if not usual:
            return 0.0
        left = 0.0
        for method, n_left in self._n_left.items():
            taken = self._seconds.get(method)
            left += n_left * (float(np.mean(taken)) if taken else usual_cost(method) * spent / usual)
        return left / self._n_jobs


def run_comparison(
    plan: ComparisonPlan, n_jobs: int | None, watcher: Watcher, deadline: Deadline
) -> list[FoldScore]:
    """Score methods in parallel, the fast ones first, until all is done or no more is to be started.

    Returns
    -------
    list of FoldScore
        Sorted by model, method and split. Methods that were not finished have fewer than others, or none.
    """
    found: list[FoldScore] = []
    n_workers = effective_n_jobs(n_jobs)
    left = TimeLeft(dict.fromkeys(plan.methods, len(plan.splits)), n_workers)
    n_all, n_done = len(plan.methods) * len(plan.splits), 0
    watcher.see(Standing(0, n_all, "", 0.0, []))

    def take(result: tuple[list[FoldScore], float]) -> None:
        nonlocal n_done
        scores, seconds = result
        found.extend(scores)
        n_done += 1
        left.add(scores[0].method, seconds)
        ranking = rank(found, len(plan.splits), is_loss=plan.scoring.is_loss)
        watcher.see(Standing(n_done, n_all, scores[0].method, left.seconds(), ranking))

    with ExitStack() as stack:
        folder = (
            Path(stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True)))
            if n_workers > 1
            else None
        )
        run_grid(
            score_split,
            _cells(plan, folder),
            take,
            n_jobs=n_jobs,
            stop=lambda: deadline.is_over() or watcher.stops(),
        )
    methods, models = list(plan.methods), list(plan.models)
    return sorted(
        found,
        key=lambda item: (models.index(item.model), methods.index(item.method), item.repeat, item.fold),
    )


def rank(scores: Sequence[FoldScore], n_splits: int, *, is_loss: bool) -> list[tuple[str, str, float]]:
    """Return (method, model, mean score) of what is done in all splits and did not fail, the best first."""
    done = [
        (method, model, float(np.mean([item.score for item in items])))
        for (model, method), items in scores_by_method(scores)
        if len(items) == n_splits and not any(item.failure for item in items)
    ]
    return sorted(done, key=lambda item: item[2] if is_loss else -item[2])


def _cells(plan: ComparisonPlan, folder: Path | None) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of `score_split`, method by method; the rows of a split are read once for all.

    With workers, they are written to a file of the folder, from which each worker reads them once.
    """
    read: dict[int, SplitRows | StoredRows | Failure] = {}
    for method in plan.methods:
        encoder = attempt(partial(make_feasible_method, plan, method))
        for number, split in enumerate(plan.splits):
            if number not in read:
                rows = attempt(partial(read_split, plan.data, split))
                if folder is not None and not isinstance(rows, Failure):
                    read[number] = StoredRows.save(rows, str(folder / f"split_{number}"))
                else:
                    read[number] = rows
            yield (method, split.repeat, split.fold), encoder, read[number], plan.models, plan.scoring
