"""Lazy frames against queries by hand in the same engine, and frames in memory against other libraries.

`results` makes five million rows on the way. `large_results` needs the files of `make_large` and takes hours:

    python -m benchmarks.make_large --rows 100_000_000 --out FOLDER
    python -m benchmarks --only engines --large FOLDER [--python PYTHON]

Each run of an engine is a fresh process (`engine_tasks`). Times are CPU times, of all threads and of the
processes that Spark and Dask start. The peak memory includes all that was imported: for a query by hand the
engine, for ours scikit-learn too, and all that scikit-learn imports because it is installed: pandas alone is
45 MB. PYTHON is the interpreter of an environment that holds what users of an engine have, the core and the
extras "duckdb" and "cli", for DuckDB and polars.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import category_encoders
import numpy as np
from sklearn.preprocessing import TargetEncoder
from skrub import AggJoiner

from benchmarks.engine_growth import frame_of, measure
from benchmarks.engine_runs import append, medians, run_alternately, run_task
from benchmarks.make_large import write
from benchmarks.measure import Result, alternate, milliseconds
from sufrep import MeansEncoder

ROWS, ROWS_OF_PEERS = 5_000_000, 1_000_000
# Of `results`: more would take minutes, and CPU times hardly depend on what else the machine does.
MOST_REPEATS = 3
MORE_MEMORY = 200
# Ours, by hand, and how many times as long ours may take.
FITS = (("fit_1", "bare", 1.5), ("fit_2", "bare", 5.0))
ENCODING = (("transform", "join", 1.2),)
NAMES = {"fit_1": "fit of order 1", "fit_2": "fit of order 2", "transform": "transform and write"}
IN_MEMORY = ((50_000, 1.3), (1_000_000, 2.5))


def results(repeats: int) -> list[Result]:
    """Five million rows in DuckDB, polars and memory; a million against other encoders."""
    repeats = min(repeats, MOST_REPEATS)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), ROWS)
        engines = [
            row
            for engine in ("duckdb", "polars")
            for row in engine_results(engine, (*FITS, *ENCODING), Path(folder), "*.parquet", ROWS, repeats)
        ]
    return [*engines, *memory_results(ROWS, repeats), *peer_results(repeats)]


def large_results(folder: Path, repeats: int, python: str = sys.executable) -> list[Result]:
    """A hundred million rows in DuckDB and polars, twenty in Spark and Dask, ten in memory; runs are kept."""
    rows, kept = 100_000_000, {"store": "large", "python": python}
    found = [
        row
        for goals in (FITS, ENCODING)
        for engine in ("duckdb", "polars")
        for row in engine_results(engine, goals, folder, "*.parquet", rows, repeats, **kept)
    ]
    two_files = ((("fit_1", "bare", 2.0),), folder, "part-00[01].parquet", 20_000_000, repeats)
    for engine in ("spark", "dask"):
        found += engine_results(engine, *two_files, store="large")
    return [*found, *memory_results(10_000_000, repeats)]


def engine_results(
    engine: str,
    goals: Sequence[tuple[str, str, float]],
    folder: Path,
    files: str,
    rows: int,
    repeats: int,
    store: str | None = None,
    python: str = sys.executable,
) -> list[Result]:
    """CPU time and peak memory of our tasks next to those of queries by hand.

    Parameters
    ----------
    engine : str
    goals : sequence of (ours, by hand, largest ratio of CPU times)
    folder : Path
        Where the data are, and where output is written.
    files : str
        Pattern of the Parquet files in it.
    rows : int
    repeats : int
    store : str or None
        File of ``results/engines`` that the runs are added to.
    python : str
        Interpreter of the environment in which the tasks run.
    """
    scratch, data = folder / f"scratch_{engine}", str(folder / files)
    if any(ours == "transform" for ours, _, _ in goals):
        run_task(engine, "prepare", data, scratch, python)
    tasks = tuple(dict.fromkeys(task for ours, hand, _ in goals for task in (hand, ours)))
    runs = run_alternately(engine, tasks, data, scratch, repeats, python, rows=rows)
    if store is not None:
        append(store, runs)
    one_process = engine in ("duckdb", "polars")
    return [
        row
        for goal in goals
        for row in (_time_of(engine, rows, goal, runs), _memory_of(engine, rows, goal, runs))
        if one_process or "memory" not in row.case
    ]


def _time_of(engine: str, rows: int, goal: tuple[str, str, float], runs: list[dict[str, Any]]) -> Result:
    ours, hand, most = goal
    seconds = medians(runs, "cpu_s")
    return _times(f"{engine}, {rows:,} rows, {NAMES[ours]}", seconds[ours], seconds[hand], "by hand", most)


def _memory_of(engine: str, rows: int, goal: tuple[str, str, float], runs: list[dict[str, Any]]) -> Result:
    ours, hand, _ = goal
    peak = medians(runs, "peak_mb")
    return Result(
        f"{engine}, {rows:,} rows, {NAMES[ours]}, peak memory",
        f"{peak[ours]:,.0f} MB",
        f"by hand {peak[hand]:,.0f} MB",
        peak[ours] / peak[hand],
        f"at most {MORE_MEMORY} MB more",
        peak[ours] <= peak[hand] + MORE_MEMORY,
    )


def _times(case: str, ours: float, peer: float, name: str, most: float) -> Result:
    goal = f"at most {most:g} x"
    return Result(
        case, milliseconds(ours), f"{name} {milliseconds(peer)}", ours / peer, goal, ours <= most * peer
    )


def memory_results(rows: int, repeats: int) -> list[Result]:
    """Fits of frames in memory against polars by hand, which keeps no more than the means."""
    found = []
    for levels, most in IN_MEMORY:
        seconds = medians(measure(rows, levels, repeats), "cpu_s")
        case = f"in memory, {rows:,} rows, {levels:,} levels, fit"
        found.append(_times(case, seconds["fit"], seconds["by_hand"], "polars", most))
    return found


def peer_results(repeats: int) -> list[Result]:
    """``fit_transform`` of a million rows in pandas against encoders of other libraries.

    Ours and scikit-learn's cross-fit the target; that of category_encoders does not.
    """
    frame = frame_of(ROWS_OF_PEERS, 50_000).to_pandas()
    names = [name for name in frame.columns if name != "zip"]
    target = frame["x0"].to_numpy() + np.random.default_rng(0).normal(size=len(frame))
    group = frame[["zip"]]
    joiner = AggJoiner(aux_table="X", key="zip", cols=names, operations="mean")
    means = MeansEncoder("zip").set_output(transform="pandas")
    of_target = MeansEncoder("zip", covariates=[], use_target=True)
    by_sklearn = TargetEncoder(target_type="continuous")
    by_category_encoders = category_encoders.TargetEncoder(cols=["zip"])
    seconds = alternate(
        {
            "means": lambda: means.fit_transform(frame),
            "skrub AggJoiner": lambda: joiner.fit_transform(frame),
            "target": lambda: of_target.fit_transform(group, target),
            "scikit-learn TargetEncoder": lambda: by_sklearn.fit_transform(group, target),
            "category_encoders TargetEncoder": lambda: by_category_encoders.fit_transform(group, target),
        },
        repeats,
        cpu_time=True,
    )
    peers = (
        ("means", "skrub AggJoiner"),
        ("target", "scikit-learn TargetEncoder"),
        ("target", "category_encoders TargetEncoder"),
    )
    size = f"{ROWS_OF_PEERS:,} rows, 50,000 levels, fit_transform"
    return [_times(f"{ours}, {size}", seconds[ours], seconds[peer], peer, 1.0) for ours, peer in peers]
