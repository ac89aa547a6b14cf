"""Runs: what is stored, what is left to do, and that processes and Dask give the same records."""

from __future__ import annotations

import gzip
import json
import math
import os
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from sklearn.exceptions import ConvergenceWarning

from sufrep._paper import run
from sufrep._paper.methods import TrialResult
from sufrep._paper.plan import (
    BenchmarkPlan,
    EffectPlan,
    EmpiricalPlan,
    EmpiricalTrial,
    Settings,
    SimulationPlan,
    SimulationTrial,
)
from sufrep._paper.run import _delayed_interrupt, run_trial, run_trials, versions
from sufrep._paper.store import Store, trial_key
from sufrep.cli import main
from sufrep.errors import DataNotFoundError, MissingDependencyError, StoreError

pytest.importorskip("xgboost", reason="the experiments need xgboost")

SMALL = Settings(n=200, p=6, n_trees=4)
TRIAL = SimulationTrial("latent_linear", 2, 5, "xgboost", "means", seed=0)


def plan(**changes: Any) -> SimulationPlan:
    cells: dict[str, Any] = {"setups": ("latent_linear",), "n_latent": (2,), "levels_per_latent": (5,)}
    rest: dict[str, Any] = {"methods": ("one_hot", "means", "bayes"), "seeds": range(2), "settings": SMALL}
    return SimulationPlan(**{**cells, **rest, **changes})


def store(folder: Path) -> Store:
    return Store(folder, "simulations")


def results(folder: Path) -> list[str]:
    """All records but for the time that they took, byte for byte."""
    return dumped(store(folder))


def dumped(store: Store) -> list[str]:
    return [json.dumps({**one, "seconds": None}) for one in store.records()]


# One trial


def test_a_record_is_the_trial_its_result_and_its_time():
    record = run_trial(TRIAL, SMALL)
    assert list(record) == [*asdict(TRIAL), "loss", "n_columns", "k", "alpha", "seconds"]
    assert {name: record[name] for name in asdict(TRIAL)} == asdict(TRIAL)
    assert record["seconds"] >= 0
    json.dumps(record)


def test_a_trial_run_again_has_the_same_result():
    first, second = (run_trial(replace(TRIAL, method="low_rank"), SMALL) for _ in range(2))
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_trials_do_not_warn_that_a_method_stopped_early(monkeypatch):
    def evaluate(*_: Any, **__: Any) -> Any:
        warnings.warn("stopped early", ConvergenceWarning, stacklevel=1)
        raise KeyError("reached")

    monkeypatch.setattr(run, "evaluate", evaluate)
    with pytest.raises(KeyError, match="reached"):
        run_trial(TRIAL, SMALL)


def test_other_warnings_of_a_trial_are_not_hidden(monkeypatch):
    def evaluate(*_: Any, **__: Any) -> Any:
        warnings.warn("look here", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr(run, "evaluate", evaluate)
    with pytest.raises(RuntimeWarning, match="look here"):
        run_trial(TRIAL, SMALL)


def test_a_trial_on_a_real_data_set_has_the_fold_in_its_record(tmp_path):
    header = "Id,LotArea,Alley,Neighborhood,GarageYrBlt,GarageQual,PoolQC,SalePrice"
    rows = [f"{i},{i % 7},NA,{'abc'[i % 3]},2000,TA,NA,{1000 + i}" for i in range(60)]
    (tmp_path / "ames_kaggle.csv").write_text("\n".join([header, *rows]) + "\n")
    settings = Settings(data_dir=str(tmp_path), n_folds=3)
    record = run_trial(EmpiricalTrial("ames", "xgboost", "fisher", 0, 2), settings)
    assert (record["dataset"], record["fold"], record["n_columns"]) == ("ames", 2, 1)

    of_ames = EmpiricalPlan(("ames",), ("xgboost",), ("one_hot", "fisher"), settings=settings)
    into = Store(tmp_path / "store", "empirical")
    assert run_trials(of_ames, into) == 6
    assert {**into.records()[2], "seconds": 0} == {**record, "seconds": 0}
    # Where the data lie is no part of the results.
    assert run_trials(replace(of_ames, settings=replace(settings, data_dir="/elsewhere")), into) == 0


# Plans


def test_each_trial_of_a_plan_is_run_once(tmp_path):
    assert run_trials(plan(), store(tmp_path), command="sufrep paper") == 6
    keys = [trial_key(record) for record in store(tmp_path).records()]
    assert sorted(keys) == sorted(trial_key(asdict(trial)) for trial in plan().trials())
    (about,) = store(tmp_path).runs()
    assert about == {"command": "sufrep paper", "versions": versions(), "settings": SMALL.identity()}


def test_a_finished_plan_runs_nothing_and_does_not_change_the_file(tmp_path):
    run_trials(plan(), store(tmp_path))
    before = store(tmp_path).path.read_bytes()
    assert run_trials(plan(), store(tmp_path)) == 0
    assert store(tmp_path).path.read_bytes() == before


def test_a_longer_plan_runs_only_what_is_new(tmp_path):
    run_trials(plan(), store(tmp_path))
    started: list[tuple[int, int]] = []
    longer = plan(seeds=range(3), methods=("one_hot", "means", "bayes", "drop"))
    n_run = run_trials(longer, store(tmp_path), on_start=lambda todo, done: started.append((todo, done)))
    assert (n_run, started) == (6, [(6, 6)])
    run_trials(longer, store(tmp_path / "at once"))
    assert results(tmp_path) == results(tmp_path / "at once")


def test_a_method_named_twice_is_run_once(tmp_path):
    assert run_trials(plan(methods=("means", "bayes", "means")), store(tmp_path)) == 4
    assert len(store(tmp_path).records()) == 4


def test_records_are_reported_after_they_are_stored(tmp_path):
    finished: list[dict[str, Any]] = []

    def on_finished(record: dict[str, Any]) -> None:
        finished.append(record)
        assert record in store(tmp_path).records()

    reported: list[tuple[int, int, str]] = []
    run_trials(plan(), store(tmp_path), on_finished=on_finished, report=lambda *news: reported.append(news))
    assert len(finished) == 6
    assert [(done, total) for done, total, _ in reported] == [(i, 6) for i in range(7)]
    assert reported[1][2].split() == [finished[0][key] for key in ("setup", "model", "method")]


def test_an_interrupted_run_keeps_finished_trials_and_can_be_resumed(tmp_path):
    finished: list[dict[str, Any]] = []

    def on_finished(record: dict[str, Any]) -> None:
        finished.append(record)
        if len(finished) == 3:
            raise KeyboardInterrupt("stop")

    with pytest.raises(KeyboardInterrupt, match="stop"):
        run_trials(plan(), store(tmp_path), on_finished=on_finished)
    assert len(store(tmp_path).records()) == 3
    assert run_trials(plan(), store(tmp_path)) == 3
    run_trials(plan(), store(tmp_path / "at once"))
    assert results(tmp_path) == results(tmp_path / "at once")


def test_different_settings_are_refused_before_anything_is_run(tmp_path):
    run_trials(plan(), store(tmp_path))
    with pytest.raises(StoreError, match=r"holds results with different settings \(n\)"):
        run_trials(plan(settings=replace(SMALL, n=300)), store(tmp_path))
    assert len(store(tmp_path).records()) == 6


def test_a_run_that_fails_before_its_first_result_does_not_tie_the_store_to_its_settings(
    tmp_path, monkeypatch
):
    def fails(*_: Any) -> Any:
        raise KeyError("no result")

    with monkeypatch.context() as patched:
        patched.setattr(run, "run_trial", fails)
        with pytest.raises(KeyError, match="no result"):
            run_trials(plan(), store(tmp_path))
    other = plan(settings=replace(SMALL, n=220), methods=("one_hot",))
    assert run_trials(other, store(tmp_path)) == 2
    assert [one["settings"]["n"] for one in store(tmp_path).runs()] == [220]


def test_two_runs_with_the_same_seeds_give_the_same_store(tmp_path):
    for name in ("a", "b"):
        run_trials(plan(), store(tmp_path / name))
    assert results(tmp_path / "a") == results(tmp_path / "b")


def test_versions_name_python_and_only_what_is_installed(monkeypatch):
    assert {"python", "sufrep", "numpy", "scipy", "scikit-learn"} <= set(versions())
    monkeypatch.setattr(run, "_REPORTED_PACKAGES", ("numpy", "no-such-package"))
    assert set(versions()) == {"python", "numpy"}


# Benchmarks


def ames(folder: Path, *, constant: bool = False) -> Settings:
    """Settings for 60 made houses of three neighbourhoods."""
    header = "Id,LotArea,Alley,Neighborhood,GarageYrBlt,GarageQual,PoolQC,SalePrice"
    rows = [
        f"{i},{i % 7},NA,{'abc'[i % 3]},2000,TA,NA,{1000 if constant else 1000 + i % 11}" for i in range(60)
    ]
    (folder / "ames_kaggle.csv").write_text("\n".join([header, *rows]) + "\n")
    return Settings(data_dir=str(folder), n_folds=2)


def small(settings: Settings, **changes: Any) -> BenchmarkPlan:
    names: dict[str, Any] = {"models": ("xgboost", "catboost_native"), "methods": ("one_hot", "james_stein")}
    return BenchmarkPlan(("ames",), settings=settings, **{**names, **changes})


def test_a_peer_that_fails_is_recorded_and_does_not_stop_the_others(tmp_path):
    pytest.importorskip("catboost", reason="the peers are in the extra 'peers'")
    store = Store(tmp_path / "store", "benchmark")
    assert run_trials(small(ames(tmp_path, constant=True)), store) == 6
    failed = [record for record in store.records() if record["failure"]]
    assert [(record["model"], record["fold"]) for record in failed] == [
        ("catboost_native", 0),
        ("catboost_native", 1),
    ]
    assert failed[0]["failure"].startswith("CatBoostError: ")
    assert failed[0]["failure"].endswith("All train targets are equal")
    assert (failed[0]["loss"], failed[0]["n_columns"]) == (None, None)
    others = [record for record in store.records() if not record["failure"]]
    assert [record["loss"] for record in others] == pytest.approx([0.0] * 4, abs=1e-6)
    assert all(list(record) == list(failed[0]) for record in others)
    # A failure is a result: it is not run again.
    assert run_trials(small(ames(tmp_path, constant=True)), store) == 0


def test_an_interrupted_benchmark_can_be_resumed(tmp_path):
    pytest.importorskip("catboost", reason="the peers are in the extra 'peers'")
    plan = small(ames(tmp_path))
    first, whole = Store(tmp_path / "a", "benchmark"), Store(tmp_path / "b", "benchmark")
    finished: list[dict[str, Any]] = []

    def on_finished(record: dict[str, Any]) -> None:
        finished.append(record)
        if len(finished) == 3:
            raise KeyboardInterrupt("stop")

    with pytest.raises(KeyboardInterrupt, match="stop"):
        run_trials(plan, first, on_finished=on_finished)
    assert run_trials(plan, first) == 3
    assert run_trials(plan, whole) == 6
    assert dumped(first) == dumped(whole)
    assert {record["failure"] for record in whole.records()} == {None}


def test_a_missing_package_ends_the_benchmark_and_is_not_recorded(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "category_encoders", None)
    store = Store(tmp_path / "store", "benchmark")
    with pytest.raises(MissingDependencyError, match=r"sufrep\[peers\]"):
        run_trials(small(ames(tmp_path)), store)
    assert [record["method"] for record in store.records()] == ["one_hot"]


def test_missing_data_end_the_benchmark(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"ames_kaggle\.csv"):
        run_trials(small(Settings(data_dir=str(tmp_path), n_folds=2)), Store(tmp_path / "store", "benchmark"))


AMES_TRIAL = EmpiricalTrial("ames", "xgboost", "one_hot", 0, 0)


@pytest.mark.parametrize(
    ("failure", "recorded"),
    [
        (ValueError("of several\n  lines"), "ValueError: of several lines"),
        (MemoryError("8 GB"), "MemoryError: 8 GB"),
        (RuntimeError("ten chars " * 99), "RuntimeError: " + "ten chars " * 28 + "ten …"),
    ],
)
def test_a_failure_is_recorded_on_one_line_of_limited_length(tmp_path, monkeypatch, failure, recorded):
    def evaluate(*_: Any, **__: Any) -> Any:
        raise failure

    monkeypatch.setattr(run, "evaluate", evaluate)
    settings = ames(tmp_path)
    record = run_trial(AMES_TRIAL, settings, keep_failures=True)
    assert record["failure"] == recorded
    with pytest.raises(type(failure), match=str(failure)):
        run_trial(AMES_TRIAL, settings)


def test_predictions_of_nan_are_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "evaluate", lambda *_, **__: TrialResult(math.nan))
    record = run_trial(AMES_TRIAL, ames(tmp_path), keep_failures=True)
    assert (record["loss"], record["failure"]) == (None, "ValueError: the loss is nan")


def test_classes_of_a_benchmark_have_a_log_loss(tmp_path):
    names = ["Dispute_Status_for_Publication", "Name_of_Associated_Covered_Device_or_Medical_Supply1"]
    names += ["Name_of_Associated_Covered_Drug_or_Biological1", "Physician_Specialty", "status"]
    lines = [",".join(["Applicable_Manufacturer_or_Applicable_GPO_Making_Payment_Name", *names])]
    lines += [f"company {i % 3},No,,,,{'dis' * (i % 2)}allowed" for i in range(60)]
    (tmp_path / "text_tables").mkdir()
    path = tmp_path / "text_tables" / "open_payments_unique.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    trial = EmpiricalTrial("open_payments", "xgboost", "drop", 0, 0)
    record = run_trial(trial, Settings(data_dir=str(tmp_path), n_folds=2), keep_failures=True)
    # The covariates are all the same, and half of the rows of each company are allowed.
    assert record["loss"] == pytest.approx(math.log(2), rel=0.02)
    assert record["failure"] is None


def test_the_records_of_other_experiments_have_no_failure(tmp_path):
    record = run_trial(replace(AMES_TRIAL, method="drop"), ames(tmp_path))
    assert list(record)[-5:] == ["loss", "n_columns", "k", "alpha", "seconds"]


# Dask


@pytest.fixture
def cluster() -> Iterator[str]:
    """The address of a cluster of one process."""
    distributed = pytest.importorskip("distributed", reason="the backend 'dask' needs distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
    ) as running:
        yield running.scheduler_address


def test_a_dask_cluster_gives_the_same_records_as_processes(tmp_path, cluster):
    run_trials(plan(), store(tmp_path / "here"))
    n_run = run_trials(plan(), store(tmp_path / "cluster"), backend="dask", scheduler=cluster)
    assert n_run == 6
    assert results(tmp_path / "cluster") == results(tmp_path / "here")
    assert run_trials(plan(), store(tmp_path / "cluster"), backend="dask", scheduler=cluster) == 0


@pytest.mark.filterwarnings("ignore:Port 8787 is already in use")
def test_without_an_address_dask_starts_processes_of_its_own_and_ends_them(tmp_path):
    distributed = pytest.importorskip("distributed", reason="the backend 'dask' needs distributed")
    before = current_client(distributed)
    run_trials(plan(), store(tmp_path / "here"))
    assert run_trials(plan(), store(tmp_path / "own"), backend="dask", n_jobs=1) == 6
    assert results(tmp_path / "own") == results(tmp_path / "here")
    after = current_client(distributed)
    # A client may still be found for a moment after it was closed.
    assert after is before or after.status in ("closing", "closed")


def current_client(distributed: Any) -> Any:
    try:
        return distributed.get_client()
    except ValueError:  # there is none
        return None


# Ctrl-C


@pytest.fixture(autouse=True)
def _usual_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def trial(steps: list[str], n_presses: int) -> None:
    with _delayed_interrupt():
        for i in range(n_presses):
            steps.append(f"press {i}")
            signal.raise_signal(signal.SIGINT)
        steps.append("end")


def test_a_trial_ends_before_ctrl_c_takes_effect():
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        trial(steps, n_presses=1)
    assert steps == ["press 0", "end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_takes_effect_immediately():
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        trial(steps, n_presses=2)
    assert steps == ["press 0", "press 1"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_trial_without_ctrl_c_restores_the_handler():
    trial([], n_presses=0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_run_that_ignores_ctrl_c_keeps_ignoring_it():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    steps: list[str] = []
    trial(steps, n_presses=1)
    assert steps == ["press 0", "end"]
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_trial_runs_in_a_thread_that_cannot_set_handlers():
    steps: list[str] = []
    thread = Thread(target=trial, args=(steps, 0))
    thread.start()
    thread.join()
    assert steps == ["end"]


# Killed runs


METHODS = ("one_hot", "means", "drop", "oracle", "bayes")
SEEDS = range(3)
N_TRIALS = len(SEEDS) * len(METHODS)
# Jobs of a run, and after how many new lines of the file it is killed: before any trial, then during trials.
KILLS = ((1, 1), (2, 3))
PATIENCE = 60.0


def arguments(folder: Path, jobs: int) -> list[str]:
    cell = ["--setups", "latent_linear", "--latent", "2", "--levels", "5", "--n", "200"]
    rest = ["--methods", *METHODS, "--seeds", str(len(SEEDS)), "--jobs", str(jobs), "--store", str(folder)]
    return ["paper", "simulations", *cell, *rest]


@contextmanager
def started(folder: Path, jobs: int, scratch: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run in a process group of its own, which is killed at the end whatever happens."""
    environment = {**os.environ, "JOBLIB_TEMP_FOLDER": str(scratch)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", "sufrep.cli", *arguments(folder, jobs)]
    process = subprocess.Popen(command, start_new_session=True, env=environment, **quiet)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # What the killed workers could not give back.
        for semaphore in Path("/dev/shm").glob(f"sem.loky-{process.pid}-*"):
            semaphore.unlink()


def n_lines(folder: Path) -> int:
    path = Store(folder, "simulations").path
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_after(folder: Path, jobs: int, n_new: int, scratch: Path) -> None:
    """Start, wait until the file has so many more lines, kill -9 parent and workers."""
    wanted = n_lines(folder) + n_new
    with started(folder, jobs, scratch) as process:
        give_up = time.monotonic() + PATIENCE
        while n_lines(folder) < wanted:
            assert process.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < give_up, "the run stores nothing"
            time.sleep(0.005)


@pytest.mark.skipif(os.name != "posix", reason="kills process groups, as POSIX knows them")
def test_a_run_killed_at_several_moments_ends_with_the_records_of_one_that_was_not(
    tmp_path, monkeypatch, capsys
):
    pytest.importorskip("typer", reason="the command line needs typer")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for jobs, n_new in KILLS:
        kill_after(killed, jobs, n_new, tmp_path)
        assert 0 <= len(results(killed)) < N_TRIALS
    n_before = len(results(killed))
    assert n_before > 0

    monkeypatch.setattr(sys, "argv", ["sufrep", *arguments(killed, jobs=1)])
    with pytest.raises(SystemExit, match=r"^0$"):
        main()
    printed = capsys.readouterr().out
    assert f"{n_before} of {N_TRIALS} trials are already in" in printed
    assert f"\n{N_TRIALS - n_before} trial(s) run" in printed
    assert 1 < len(Store(killed, "simulations").runs()) <= len(KILLS) + 1

    plan = SimulationPlan(
        ("latent_linear",), (2,), (5,), methods=METHODS, seeds=SEEDS, settings=Settings(n=200)
    )
    assert run_trials(plan, Store(whole, "simulations")) == N_TRIALS
    assert results(killed) == results(whole)
    keys = Counter(trial_key(one) for one in Store(killed, "simulations").records())
    assert len(keys) == N_TRIALS
    assert set(keys.values()) == {1}


# Treatment effects


def test_effects_resume_where_a_run_stopped(tmp_path):
    whole = EffectPlan(("small_5",), methods=("nothing", "means_w", "fixed_effects"), seeds=range(3), n=1000)
    part, complete = Store(tmp_path / "a", "causal"), Store(tmp_path / "b", "causal")
    assert run_trials(replace(whole, methods=("means_w",), seeds=range(2)), part) == 2
    assert run_trials(whole, part) == 7
    assert run_trials(whole, part) == 0
    assert run_trials(whole, complete) == 9
    assert dumped(part) == dumped(complete)
    assert [trial_key(record) for record in part.records()] == sorted(
        trial_key(asdict(trial)) for trial in whole.trials()
    )


def test_little_overlap_is_no_warning_of_a_trial():
    (trial,) = EffectPlan(("main",), methods=("means_w",), seeds=[0], n=220).trials()
    record = run_trial(trial, EffectPlan().settings)
    assert record["dropped"] > 0.5
