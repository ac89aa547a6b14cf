"""Runs: what is stored, what is left to do, and that processes, threads and Dask give the same records."""

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
