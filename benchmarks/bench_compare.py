"""`compare`: CPU time next to one fit of a learner, memory of all workers, and the start of commands."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.measure import Result, alternate, milliseconds
from sufrep import Simulation, compare, simulate
from sufrep._threads import one_thread

ROWS, N_COVARIATES, N_LEVELS, N_CLASSES = 10_000, 20, 500, 12
LARGE = 1_000_000
STARTS = {
    "--help": (["--help"], 0.3),
    "--version": (["--version"], 0.3),
    "an unknown option": (["compare", "--grup", "zip"], 0.3),
    "a missing argument": (["compare"], 0.3),
    "describe": (["describe"], 0.6),
}


def results(repeats: int) -> list[Result]:
    few = max(repeats // 2, 1)
    return [
        cpu_result(few),
        classes_result(),
        demo_result(),
        *memory_results(),
        *start_results(repeats),
    ]


def cpu_result(repeats: int) -> Result:
    """All default methods, in one process and one thread, so that CPU time is all that is spent."""
    sample = _sample()
    X = pl.DataFrame(sample.columns())
    learner = HistGradientBoostingRegressor(early_stopping=False, random_state=0)
    with one_thread():
        seconds = alternate(
            {
                "ours": lambda: compare(X, sample.y, group="group", n_jobs=1),
                "learner": lambda: learner.fit(sample.X, sample.y),
            },
            repeats,
            cpu_time=True,
        )
    ratio = seconds["ours"] / seconds["learner"]
    return Result(
        f"compare, default, {ROWS:,} rows, {N_COVARIATES} covariates, {N_LEVELS} levels, CPU time",
        milliseconds(seconds["ours"]),
        f"one fit of HistGradientBoosting {milliseconds(seconds['learner'])}",
        ratio,
        "at most 120 x",
        ratio <= 120,
    )


def _sample() -> Simulation:
    return simulate(
        "latent_linear", n=ROWS, n_latent=5, p=N_COVARIATES, levels_per_latent=N_LEVELS // 5, seed=0
    )


def classes_result() -> Result:
    """The slowest of the default methods where trees are grown for every class."""
    sample = _sample()
    edges = np.quantile(sample.y, np.arange(1, N_CLASSES) / N_CLASSES)
    X, y = pl.DataFrame(sample.columns()), np.char.add("class ", np.searchsorted(edges, sample.y).astype(str))

    def run(*methods: str) -> object:
        return compare(X, y, group="group", methods=methods, n_jobs=1)

    calls = {"drop": lambda: run("drop"), "both": lambda: run("drop", "sufficient")}
    with one_thread():
        seconds = alternate(calls, 1, warm_up=False, cpu_time=True)
    extra = seconds["both"] - seconds["drop"]
    ratio = extra / seconds["drop"]
    return Result(
        f"sufficient in compare, {N_CLASSES} classes, {ROWS:,} rows, {N_LEVELS} levels, CPU time",
        milliseconds(extra),
        f"dropping the column {milliseconds(seconds['drop'])}",
        ratio,
        "at most 25 x",
        ratio <= 25,
    )


def demo_result() -> Result:
    """The whole demonstration, start and report included."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        command = [sys.executable, "-m", "sufrep.cli", "demo", "--html", f"{folder}/demo.html"]
        subprocess.run(command, check=True, capture_output=True)
        seconds = time.perf_counter() - start
    return Result(
        "sufrep demo, two jobs", f"{seconds:.0f} s", "20 s", seconds / 20, "about 20 s", seconds <= 25
    )


def memory_results() -> list[Result]:
    """The peak of what workers hold, above that of a comparison of few rows, and with the parent."""
    with tempfile.TemporaryDirectory() as folder:
        small, size = _peaks(folder, ROWS)
        large, size = _peaks(folder, LARGE)
    return [
        Result(
            f"compare, default, {LARGE:,} rows, memory of {who} above that for {ROWS:,} rows",
            f"{extra / 2**20:,.0f} MiB",
            f"the table {size / 2**20:,.0f} MiB",
            extra / size,
            "at most 3 x",
            extra <= 3 * size,
        )
        for who, extra in (
            ("two workers", large[0] - small[0]),
            ("two workers and their parent, which has read the table", large[1] - small[1]),
        )
    ]


def _peaks(folder: str, n_rows: int) -> tuple[tuple[int, int], int]:
    """Return peaks of the memory of two workers, and with their parent; and the size of the table."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, n_rows // 20, n_rows)
    columns: dict[str, Any] = {
        f"x{j}": rng.normal(size=n_rows) + level % (j + 2) for j in range(N_COVARIATES)
    }
    table = pl.DataFrame({"zip": level.astype(str), **columns, "y": rng.normal(size=n_rows) + level % 3})
    path = Path(folder) / f"table_{n_rows}.parquet"
    table.write_parquet(path)
    command = [sys.executable, "-m", "sufrep.cli", "compare", str(path), "--target", "y", "--group", "zip"]
    process = subprocess.Popen(
        [*command, "--jobs", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    workers = everything = 0
    while process.poll() is None:
        parent, *others = map(_private, _family(process.pid))
        workers, everything = max(workers, sum(others)), max(everything, parent + sum(others))
        time.sleep(0.05)
    return (workers, everything), int(table.estimated_size())


def _family(pid: int) -> list[int]:
    """A process and all processes below it."""
    children: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children += map(int, path.read_text().split())
        except OSError:
            continue
    return [pid, *(one for child in children for one in _family(child))]


def _private(pid: int) -> int:
    """The share of memory that a process has, pages that several share divided among them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def start_results(repeats: int) -> list[Result]:
    """CPU time of commands that compute nothing."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "zip.sufrep"
        from sufrep import MeansEncoder

        sample = simulate("latent_linear", n=2_000, n_latent=5, seed=0)
        MeansEncoder("group").fit(pl.DataFrame(sample.columns())).save(saved)
        for name, (arguments, goal) in STARTS.items():
            given = [*arguments, str(saved)] if name == "describe" else arguments
            seconds = median(_child_cpu([sys.executable, "-m", "sufrep.cli", *given]) for _ in range(repeats))
            found.append(
                Result(
                    f"sufrep {name}, CPU time",
                    milliseconds(seconds),
                    milliseconds(goal),
                    seconds / goal,
                    f"at most {goal} s",
                    seconds <= goal,
                )
            )
    return found


def _child_cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=False, env={**os.environ, "COLUMNS": "100"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
