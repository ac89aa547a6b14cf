"""Runs: what is stored, what is left to do, and that processes and Dask give the same records."""

from __future__ import annotations
import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
import pytest
from sklearn.exceptions import ConvergenceWarning
from sufrep._paper import run
from sufrep._paper.plan import EmpiricalPlan, EmpiricalTrial, Settings, SimulationPlan, SimulationTrial
from sufrep._paper.run import run_plan, run_trial, versions
from sufrep._paper.store import Store, trial_key
from sufrep.errors import InvalidParameterError, MissingDependencyError, StoreError
import signal
from threading import Thread
from sufrep._paper.run import _undisturbed
import os
import subprocess
import time
from collections import Counter
from contextlib import contextmanager
from sufrep._paper.plan import Settings, SimulationPlan
from sufrep._paper.run import run_plan


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
    return [json.dumps({**one, "seconds": None}) for one in store(folder).records()]


# One trial


def test_a_record_is_the_trial_its_result_and_its_time():
    record = run_trial(TRIAL, SMALL)
    assert list(record) == [*asdict(TRIAL), "mse", "n_columns", "k", "alpha", "seconds"]
    assert {name: record[name] for name in asdict(TRIAL)} == asdict(TRIAL)
    assert record["seconds"] >= 0
    json.dumps(record)


def test_a_trial_run_again_has_the_same_result():
    first, second = (run_trial(replace(TRIAL, method="low_rank"), SMALL) for _ in range(2))
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_trials_do_not_say_that_a_method_stopped_early(monkeypatch):
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
    assert run_plan(of_ames, into) == 6
    assert {**into.records()[2], "seconds": 0} == {**record, "seconds": 0}
    # Where the data lie is no part of the results.
    assert run_plan(replace(of_ames, settings=replace(settings, data_dir="/elsewhere")), into) == 0


# Plans


def test_a_plan_is_run_whole_and_each_trial_once(tmp_path):
    assert run_plan(plan(), store(tmp_path), command="sufrep paper") == 6
    keys = [trial_key(record) for record in store(tmp_path).records()]
    assert sorted(keys) == sorted(trial_key(asdict(trial)) for trial in plan().trials())
    (about,) = store(tmp_path).runs()
    assert about == {"command": "sufrep paper", "versions": versions(), "settings": SMALL.identity()}


def test_a_finished_plan_runs_nothing_and_leaves_the_file_alone(tmp_path):
    run_plan(plan(), store(tmp_path))
    before = store(tmp_path).path.read_bytes()
    assert run_plan(plan(), store(tmp_path)) == 0
    assert store(tmp_path).path.read_bytes() == before


def test_a_longer_plan_runs_only_what_is_new(tmp_path):
    run_plan(plan(), store(tmp_path))
    started: list[tuple[int, int]] = []
    longer = plan(seeds=range(3), methods=("one_hot", "means", "bayes", "drop"))
    n_run = run_plan(longer, store(tmp_path), on_start=lambda todo, done: started.append((todo, done)))
    assert (n_run, started) == (6, [(6, 6)])
    run_plan(longer, store(tmp_path / "at once"))
    assert results(tmp_path) == results(tmp_path / "at once")


def test_a_method_named_twice_is_run_once(tmp_path):
    assert run_plan(plan(methods=("means", "bayes", "means")), store(tmp_path)) == 4
    assert len(store(tmp_path).records()) == 4


def test_records_are_told_after_they_are_safe(tmp_path):
    told: list[dict[str, Any]] = []

    def on_finished(record: dict[str, Any]) -> None:
        told.append(record)
        assert record in store(tmp_path).records()

    run_plan(plan(), store(tmp_path), on_finished=on_finished)
    assert len(told) == 6


def test_a_run_that_is_interrupted_keeps_what_was_finished_and_goes_on_from_there(tmp_path):
    told: list[dict[str, Any]] = []

    def on_finished(record: dict[str, Any]) -> None:
        told.append(record)
        if len(told) == 3:
            raise KeyboardInterrupt("stop")

    with pytest.raises(KeyboardInterrupt, match="stop"):
        run_plan(plan(), store(tmp_path), on_finished=on_finished)
    assert len(store(tmp_path).records()) == 3
    assert run_plan(plan(), store(tmp_path)) == 3
    run_plan(plan(), store(tmp_path / "at once"))
    assert results(tmp_path) == results(tmp_path / "at once")


def test_other_settings_are_refused_before_anything_is_run(tmp_path):
    run_plan(plan(), store(tmp_path))
    with pytest.raises(StoreError, match=r"holds results with other settings \(n\)"):
        run_plan(plan(settings=replace(SMALL, n=300)), store(tmp_path))
    assert len(store(tmp_path).records()) == 6


def test_two_runs_with_the_same_seeds_give_the_same_store(tmp_path):
    for name in ("a", "b"):
        run_plan(plan(), store(tmp_path / name))
    assert results(tmp_path / "a") == results(tmp_path / "b")


def test_versions_name_python_and_only_what_is_installed(monkeypatch):
    assert {"python", "sufrep", "numpy", "scipy", "scikit-learn"} <= set(versions())
    monkeypatch.setattr(run, "_REPORTED_PACKAGES", ("numpy", "no-such-package"))
    assert set(versions()) == {"python", "numpy"}


# Dask


@pytest.fixture
def cluster() -> Iterator[str]:
    """The address of a cluster of two processes."""
    distributed = pytest.importorskip("distributed", reason="the backend 'dask' needs distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as running:
        yield running.scheduler_address


def test_a_dask_cluster_gives_the_same_records_as_processes(tmp_path, cluster):
    run_plan(plan(), store(tmp_path / "here"))
    n_run = run_plan(plan(), store(tmp_path / "cluster"), backend="dask", scheduler=cluster)
    assert n_run == 6
    assert results(tmp_path / "cluster") == results(tmp_path / "here")
    assert run_plan(plan(), store(tmp_path / "cluster"), backend="dask", scheduler=cluster) == 0


@pytest.mark.filterwarnings("ignore:Port 8787 is already in use")
def test_without_an_address_dask_starts_processes_of_its_own_and_ends_them(tmp_path):
    distributed = pytest.importorskip("distributed", reason="the backend 'dask' needs distributed")
    run_plan(plan(), store(tmp_path / "here"))
    assert run_plan(plan(), store(tmp_path / "own"), backend="dask", n_jobs=1) == 6
    assert results(tmp_path / "own") == results(tmp_path / "here")
    with pytest.raises(ValueError, match="No global client found"):
        distributed.get_client()


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_dask_starts_as_many_processes_as_joblib_would(tmp_path, monkeypatch, n_jobs):
    distributed = pytest.importorskip("distributed", reason="the backend 'dask' needs distributed")
    asked: list[dict[str, Any]] = []

    def client(**options: Any) -> Any:
        asked.append(options)
        raise ValueError("enough")

    monkeypatch.setattr(distributed, "Client", client)
    monkeypatch.setattr(run, "effective_n_jobs", {2: 2, -1: 7}.__getitem__)
    with pytest.raises(ValueError, match="enough"):
        run_plan(plan(), store(tmp_path), backend="dask", n_jobs=n_jobs)
    assert asked == [{"n_workers": {2: 2, -1: 7}[n_jobs], "threads_per_worker": 1}]


@pytest.mark.parametrize("failure", [OSError("Timed out"), ValueError("missing port number")])
def test_a_cluster_that_does_not_answer_is_a_clear_error(tmp_path, monkeypatch, failure):
    # A real address that nobody answers takes 30 s to fail, and two such clients keep Python from ending.
    distributed = pytest.importorskip("distributed", reason="the backend 'dask' needs distributed")

    def client(**options: Any) -> Any:
        assert options == {"address": "tcp://nobody"}
        raise failure

    monkeypatch.setattr(distributed, "Client", client)
    expected = r"scheduler is 'tcp://nobody'\.\nHint: scheduler is the address of a running Dask cluster"
    with pytest.raises(InvalidParameterError, match=expected):
        run_plan(plan(), store(tmp_path), backend="dask", scheduler="tcp://nobody")
    assert store(tmp_path).records() == []


def test_dask_that_is_not_installed_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    expected = r"The backend 'dask' needs the package 'distributed'.*\n.*sufrep\[dask\]"
    with pytest.raises(MissingDependencyError, match=expected):
        run_plan(plan(), store(tmp_path), backend="dask")


# Ctrl-C


@pytest.fixture(autouse=True)
def _usual_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def trial(steps: list[str], n_presses: int) -> None:
    with _undisturbed():
        for i in range(n_presses):
            steps.append(f"press {i}")
            signal.raise_signal(signal.SIGINT)
        steps.append("end")


def test_a_trial_ends_before_ctrl_c_is_heard():
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        trial(steps, n_presses=1)
    assert steps == ["press 0", "end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_pressed_twice_it_is_heard_at_once():
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        trial(steps, n_presses=2)
    assert steps == ["press 0", "press 1"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_undisturbed_trial_leaves_the_handler_as_it_was():
    trial([], n_presses=0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_run_that_ignores_ctrl_c_goes_on_ignoring_it():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    steps: list[str] = []
    trial(steps, n_presses=1)
    assert steps == ["press 0", "end"]
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_thread_which_cannot_choose_runs_as_well():
    steps: list[str] = []
    thread = Thread(target=trial, args=(steps, 0))
    thread.start()
    thread.join()
    assert steps == ["end"]


# Killed runs


pytest.importorskip("xgboost", reason="the experiments need xgboost")
pytest.importorskip("typer", reason="the command line needs typer")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills process groups, as POSIX knows them")

METHODS = ("one_hot", "means", "low_rank", "mnl", "oracle", "bayes")
SEEDS = range(3)
N_TRIALS = len(SEEDS) * len(METHODS)
# Jobs of a run, and after how many more lines of the file it is killed: before any trial, then among them.
KILLS = ((2, 1), (1, 4), (2, 5))
PATIENCE = 60.0


def command(folder: Path, jobs: int) -> list[str]:
    cell = ["--setups", "latent_linear", "--latent", "2", "--levels", "5", "--n", "200"]
    rest = ["--methods", *METHODS, "--seeds", str(len(SEEDS)), "--jobs", str(jobs), "--store", str(folder)]
    return [sys.executable, "-m", "sufrep.cli", "paper", "simulations", *cell, *rest]


def finish(folder: Path, jobs: int) -> str:
    """Run to the end; what was printed."""
    done = subprocess.run(
        command(folder, jobs), capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def started(folder: Path, jobs: int, scratch: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run in a process group of its own, which is killed at the end whatever happens."""
    environment = {**os.environ, "JOBLIB_TEMP_FOLDER": str(scratch)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command(folder, jobs), start_new_session=True, env=environment, **quiet)
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


def results(folder: Path) -> list[str]:
    """All records but for the time that they took, byte for byte."""
    return [json.dumps({**one, "seconds": None}) for one in Store(folder, "simulations").records()]


def test_a_run_killed_at_several_moments_ends_with_the_records_of_one_that_was_not(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for jobs, n_new in KILLS:
        kill_after(killed, jobs, n_new, tmp_path)
        assert 0 <= len(results(killed)) < N_TRIALS
    n_before = len(results(killed))
    assert n_before > 0

    said = finish(killed, jobs=1)
    assert f"{n_before} of {N_TRIALS} trials are already in" in said
    assert f"\n{N_TRIALS - n_before} trial(s) run" in said
    assert len(Store(killed, "simulations").runs()) == len(KILLS) + 1

    plan = SimulationPlan(
        ("latent_linear",), (2,), (5,), methods=METHODS, seeds=SEEDS, settings=Settings(n=200)
    )
    assert run_plan(plan, Store(whole, "simulations")) == N_TRIALS
    assert results(killed) == results(whole)
    keys = Counter(trial_key(one) for one in Store(killed, "simulations").records())
    assert len(keys) == N_TRIALS
    assert set(keys.values()) == {1}

    before = Store(killed, "simulations").path.read_bytes()
    assert "\n0 trial(s) run" in finish(killed, jobs=2)
    assert Store(killed, "simulations").path.read_bytes() == before
