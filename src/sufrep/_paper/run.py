"""Run trials in parallel; each result is stored as soon as its trial is finished."""

from __future__ import annotations

import math
import platform
from contextlib import contextmanager
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from signal import SIGINT, default_int_handler, getsignal, signal
from threading import current_thread, main_thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from sklearn.exceptions import ConvergenceWarning

from sufrep._grid import Failure, attempt, run_grid, single_threaded_without_warnings
from sufrep._paper.effects import estimate_effect
from sufrep._paper.methods import ModelSettings, TrialResult, evaluate
from sufrep._paper.plan import EffectTrial, SimulationTrial
from sufrep._paper.samples import real_data, simulated_data
from sufrep._paper.store import Store, trial_key
from sufrep.errors import MissingDependencyError, OverlapWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from sufrep._grid import Backend
    from sufrep._paper.plan import EffectSettings, Plan, PredictionTrial, Settings, Trial
    from sufrep._paper.samples import TrialData
    from sufrep._progress import Report

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


def run_trial(
    trial: Trial, settings: Settings | EffectSettings, keep_failures: bool = False
) -> dict[str, Any]:
    """Run one trial on one thread.

    Parameters
    ----------
    trial : SimulationTrial, EmpiricalTrial or EffectTrial
    settings : Settings or EffectSettings
    keep_failures : bool, default=False
        Whether an error of a method or a model becomes a record without a result and with the error as
        ``failure``. A missing package or file is always raised, because the user can add it.

    Returns
    -------
    dict of str to values
        The trial, its result, and the seconds that it took.
    """
    start = perf_counter()
    # Sparse low rank with the smallest alpha may stop early; samples of small groups overlap little.
    ignored = OverlapWarning if isinstance(trial, EffectTrial) else ConvergenceWarning
    with _delayed_interrupt(), single_threaded_without_warnings(ignored):
        if isinstance(trial, EffectTrial):
            result = asdict(estimate_effect(trial))
        else:
            result = _predicted(trial, cast("Settings", settings), keep_failures)
    return {**asdict(trial), **result, "seconds": round(perf_counter() - start, 3)}


def _predicted(trial: PredictionTrial, settings: Settings, keep_failures: bool) -> dict[str, Any]:
    if isinstance(trial, SimulationTrial):
        data = simulated_data(trial, settings)
    else:
        data = real_data(trial, settings)
    evaluated = _evaluated_or_failure if keep_failures else _evaluated
    return evaluated(trial, data, settings.n_trees)


def _evaluated(trial: PredictionTrial, data: TrialData, n_trees: int) -> dict[str, Any]:
    model = ModelSettings(trial.model, n_trees, trial.seed)
    return asdict(evaluate(data, trial.method, model, k_index_bug=trial.k_index_bug))


def _evaluated_or_failure(trial: PredictionTrial, data: TrialData, n_trees: int) -> dict[str, Any]:
    def finite() -> dict[str, Any]:
        result = _evaluated(trial, data, n_trees)
        if not math.isfinite(result["loss"]):
            raise ValueError(f"the loss is {result['loss']}")
        return result

    result = attempt(finite, fatal=(MissingDependencyError,))
    if isinstance(result, Failure):
        return {**dict.fromkeys(field.name for field in fields(TrialResult)), "failure": result.reason}
    return {**result, "failure": None}


def run_trials(
    plan: Plan,
    store: Store,
    *,
    n_jobs: int = 1,
    backend: Backend = "loky",
    scheduler: str | None = None,
    command: str = "",
    report: Report | None = None,
    on_start: Callable[[int, int], None] | None = None,
    on_finished: Callable[[dict[str, Any]], None] | None = None,
) -> int:
    """Run the trials that are not in the store yet.

    Parameters
    ----------
    plan : SimulationPlan, EmpiricalPlan, BenchmarkPlan or EffectPlan
    store : Store
        Store of the plan's experiment.
    n_jobs : int, default=1
        Number of parallel trials.
    backend : {"loky", "dask"}, default="loky"
        Processes on this machine, or the workers of a Dask cluster.
    scheduler : str or None
        Address of the cluster; None starts one on this machine.
    command : str
        Stored with the results, to document where they come from.
    report : callable or None
        Called with the number of trials done, their total number, and the name of the last one.
    on_start : callable or None
        Called with the number of trials to run, and the number already in the store.
    on_finished : callable or None
        Called with each record after it is on the disk.

    Returns
    -------
    int
        Number of trials run.
    """
    with store.writing(plan.settings.identity()) as writer:
        done = {trial_key(record) for record in store.records()}
        trials = list(dict.fromkeys(plan.trials()))  # a name may be given twice
        todo = [trial for trial in trials if trial_key(asdict(trial)) not in done]
        if on_start:
            on_start(len(todo), len(trials) - len(todo))
        if not todo:
            return 0
        keep_failures = plan.experiment == "benchmark"

        def on_result(record: dict[str, Any]) -> None:
            # Only now: a run that fails before its first result must not tie the store to its settings.
            if not writer.has_run:
                writer.append_run(command, versions())
            writer.append(record)
            if on_finished:
                on_finished(record)

        cells = ((trial, plan.settings, keep_failures) for trial in todo)
        run_grid(
            run_trial,
            cells,
            on_result,
            n_jobs=n_jobs,
            backend=backend,
            scheduler=scheduler,
            report=report,
            n_cells=len(todo),
            name=trial_name,
        )
    return len(todo)


def trial_name(record: dict[str, Any]) -> str:
    """Return data, model and method of a record, in words for the user."""
    data = record.get("setup") or record.get("arm") or record["dataset"]
    return f"{data} {record['model']} {record['method']}"


@contextmanager
def _delayed_interrupt() -> Iterator[None]:
    """Delay Ctrl-C until the end of a trial; a second Ctrl-C is not delayed.

    Inside a callback of xgboost it would crash the process
    (test_ctrl_c_in_a_real_run_keeps_the_finished_trials).
    """
    # Threads of a Dask worker cannot set handlers; a run in the background may ignore Ctrl-C.
    if current_thread() is not main_thread() or getsignal(SIGINT) is not default_int_handler:
        yield
        return
    received = []

    def wait(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        signal(SIGINT, default_int_handler)

    signal(SIGINT, wait)
    try:
        yield
    finally:
        signal(SIGINT, default_int_handler)
    if received:
        raise KeyboardInterrupt


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that results may depend on."""
    found = {"python": platform.python_version()}
    for package in _REPORTED_PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
