"""Runs of `engine_tasks` in fresh processes, kept as lines of ``results/engines/*.jsonl``.

The first line of a file describes the machine. Every other line is one run.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

PACKAGES = (
    "sufrep",
    "numpy",
    "scikit-learn",
    "narwhals",
    "polars",
    "duckdb",
    "pyspark",
    "dask",
    "pandas",
    "pyarrow",
    "skrub",
    "category-encoders",
)
STORE = Path(__file__).parents[1] / "results" / "engines"


def describe_machine() -> dict[str, Any]:
    """Cores, memory and versions."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return {
        "cores": os.cpu_count(),
        "processor": model,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in PACKAGES},
    }


def append(name: str, records: Iterable[dict[str, Any]]) -> None:
    """Add lines to a file of results, which starts with the machine."""
    path = STORE / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [] if path.exists() else [{"machine": describe_machine()}]
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in [*lines, *records])


def read(name: str) -> list[dict[str, Any]]:
    """The runs in a file of results."""
    lines = (STORE / f"{name}.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if "machine" not in record]


def run_alternately(
    engine: str,
    tasks: Sequence[str],
    data: str,
    scratch: Path,
    repeats: int,
    python: str = sys.executable,
    **labels: Any,
) -> list[dict[str, Any]]:
    """Run each task so many times, one after another, each in a fresh process.

    Parameters
    ----------
    engine : str
    tasks : sequence of str
    data : str
        Pattern of the Parquet files.
    scratch : Path
        Folder for what is written; "join" and "transform" expect what `prepare` wrote there.
    repeats : int
    python : str
        Interpreter of the environment in which the tasks run.
    **labels
        Fields that are added to each record, such as ``rows``.
    """
    records = []
    for run in range(repeats):
        for task in tasks:
            found = json.loads(run_task(engine, task, data, scratch, python).splitlines()[-1])
            records.append({**labels, "engine": engine, "task": task, "run": run, **found})
    return records


def run_task(engine: str, task: str, data: str, scratch: Path, python: str = sys.executable) -> str:
    """Return what a task prints."""
    command = [python, "-m", "benchmarks.engine_tasks", engine, task, "--data", data]
    done = subprocess.run([*command, "--scratch", str(scratch)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{engine} {task} failed:\n{done.stderr[-4000:]}")
    return done.stdout


def medians(records: Iterable[dict[str, Any]], field: str) -> dict[str, float]:
    """Median of a field by task."""
    found: dict[str, list[float]] = {}
    for record in records:
        found.setdefault(record["task"], []).append(record[field])
    return {task: median(values) for task, values in found.items()}
