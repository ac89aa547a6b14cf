"""Trials in parallel; each that is finished goes to the store at once."""

from __future__ import annotations

import math
import platform
import warnings
from contextlib import contextmanager
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from signal import SIGINT, default_int_handler, getsignal, signal
from threading import current_thread, main_thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from sufrep._paper.methods import Learner, Result, evaluate
from sufrep._paper.plan import SimulationTrial
from sufrep._paper.samples import real_sample, simulated_sample
from sufrep._paper.store import Store, trial_key
from sufrep.errors import InvalidParameterError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from sufrep._paper.plan import Plan, Settings, Trial
    from sufrep._paper.samples import Sample

_REPORTED_PACKAGES = (
    "sufrep",
    "numpy",
    "scipy",
    "scikit-learn",
    "xgboost",
    "econml",
    "lightgbm",
    "catboost",
    "gpboost",
    "category_encoders",
)
_LONGEST_FAILURE = 200


def run_trial(trial: Trial, settings: Settings, *, keep_failures: bool = False) -> dict[str, Any]:
    """Run one trial on one thread; the record is the trial, its result and its time.

    With `keep_failures` an error of a method or a model becomes a record too: without a result, and with the
    error as ``failure``. A package or a file that is not there stays an error: it can be brought.
    """
    start = perf_counter()
    with _undisturbed(), threadpool_limits(1), warnings.catch_warnings():
        # Sparse low rank at the smallest alpha may stop early; thousands of trials must not say so each time.
        warnings.simplefilter("ignore", ConvergenceWarning)
        sample = (
            simulated_sample(trial, settings)
            if isinstance(trial, SimulationTrial)
            else real_sample(trial, settings)
        )
        evaluated = _evaluated_or_failure if keep_failures else _evaluated
        result = evaluated(trial, sample, settings.n_trees)
    return {**asdict(trial), **result, "seconds": round(perf_counter() - start, 3)}


def _evaluated(trial: Trial, sample: Sample, n_trees: int) -> dict[str, Any]:
    learner = Learner(trial.model, n_trees, trial.seed)
    return asdict(evaluate(sample, trial.method, learner, k_index_bug=trial.k_index_bug))


def _evaluated_or_failure(trial: Trial, sample: Sample, n_trees: int) -> dict[str, Any]:
    try:
        result = _evaluated(trial, sample, n_trees)
        if not math.isfinite(result["mse"]):
            raise ValueError(f"the error is {result['mse']}")
    except MissingDependencyError:
        raise
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return {**dict.fromkeys(field.name for field in fields(Result)), "failure": text[:_LONGEST_FAILURE]}
    return {**result, "failure": None}


def run_plan(
    plan: Plan,
    store: Store,
    *,
    n_jobs: int = 1,
    backend: Literal["loky", "dask"] = "loky",
    scheduler: str | None = None,
    command: str = "",
    on_start: Callable[[int, int], None] | None = None,
    on_finished: Callable[[dict[str, Any]], None] | None = None,
) -> int:
    """Run what the store does not hold yet.

    Parameters
    ----------
    plan : SimulationPlan, EmpiricalPlan or BenchmarkPlan
    store : Store
        Of the plan's experiment.
    n_jobs : int, default=1
        Trials that run side by side.
    backend : {"loky", "dask"}, default="loky"
        Processes of this machine, or the workers of a Dask cluster.
    scheduler : str or None
        Address of the cluster; None starts one of processes on this machine.
    command : str
        Kept in the store, for those who ask where the numbers come from.
    on_start : callable or None
        Called with the number of trials to do, and of those found done.
    on_finished : callable or None
        Called with each record, after it is safely stored.

    Returns
    -------
    int
        Number of trials that were run.
    """
    with store.writing(plan.settings.identity()) as writer:
        done = {trial_key(record) for record in store.records()}
        trials = list(dict.fromkeys(plan.trials()))  # a name that was given twice counts once
        todo = [trial for trial in trials if trial_key(asdict(trial)) not in done]
        if on_start:
            on_start(len(todo), len(trials) - len(todo))
        if not todo:
            return 0
        writer.append_run(command, versions())
        with _workers(n_jobs, backend, scheduler):
            keep_failures = plan.experiment == "benchmark"
            calls = (delayed(run_trial)(trial, plan.settings, keep_failures=keep_failures) for trial in todo)
            for record in Parallel(return_as="generator_unordered", batch_size=1)(calls):
                writer.append(record)
                if on_finished:
                    on_finished(record)
    return len(todo)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let Ctrl-C wait for the end of a trial; pressed a second time, it does not wait.

    Inside a callback of xgboost it would not stop the trial but crash the process
    (test_ctrl_c_in_a_real_run_keeps_the_trials_that_are_done).
    """
    # A thread of a Dask worker cannot choose; a run in the background may ignore Ctrl-C altogether.
    if current_thread() is not main_thread() or getsignal(SIGINT) is not default_int_handler:
        yield
        return
    heard = []

    def wait(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        heard.append(number)
        signal(SIGINT, default_int_handler)

    signal(SIGINT, wait)
    try:
        yield
    finally:
        signal(SIGINT, default_int_handler)
    if heard:
        raise KeyboardInterrupt


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results may depend on, where they are installed."""
    found = {"python": platform.python_version()}
    for package in _REPORTED_PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@contextmanager
def _workers(n_jobs: int, backend: str, scheduler: str | None) -> Iterator[None]:
    """Where joblib sends the trials."""
    if backend == "loky":
        with parallel_config(backend="loky", n_jobs=n_jobs, inner_max_num_threads=1):
            yield
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingDependencyError("distributed", "The backend 'dask'", "dask") from error
    # joblib's meaning of -1; Dask would start no worker.
    here = {"n_workers": effective_n_jobs(n_jobs), "threads_per_worker": 1}
    options = {"address": scheduler} if scheduler else here
    try:
        client = Client(**options)
    except (OSError, ValueError) as error:
        if not scheduler:
            raise
        expected = "the address of a running Dask cluster, as in tcp://127.0.0.1:8786"
        raise InvalidParameterError("scheduler", scheduler, expected) from error
    with client, parallel_config(backend="dask"):
        yield
