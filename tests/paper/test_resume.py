"""A run that is killed with -9 several times, and then finished, is as good as one that never was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sufrep._paper.plan import Settings, SimulationPlan
from sufrep._paper.run import run_plan
from sufrep._paper.store import Store, trial_key

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
