"""One task in one engine, in a process of its own; prints CPU time, wall time and peak memory as JSON.

    python -m benchmarks.engine_tasks duckdb fit_1 --data 'FOLDER/*.parquet' --scratch FOLDER

A task is the query that one would write by hand (``bare``, ``join``) or ours (``fit_1``, ``fit_2``,
``transform``). What both share (the session, the table of means, the fitted encoder) is made before the clock
starts. A process that runs a query by hand imports no more than its engine.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

COVARIATES = [f"x{j}" for j in range(10)]
TASKS = ("bare", "fit_1", "fit_2", "join", "transform")
ENGINES = ("duckdb", "polars", "spark", "dask")


class DuckDB:
    """Queries by hand in DuckDB."""

    def __init__(self, data: str) -> None:
        import duckdb

        self.connection = duckdb.connect()
        self.frame = self.connection.read_parquet(_files(data))

    def bare(self) -> Any:
        """Means of the covariates by level."""
        means = ", ".join(f"avg({name}) AS {name}" for name in COVARIATES)
        return self.frame.query("rows", f"SELECT zip, {means} FROM rows GROUP BY zip").to_arrow_table()

    def join(self, means: Path) -> Any:
        """Rows with the means of their level."""
        kept = ", ".join(f"rows.{name}" for name in COVARIATES)
        new = ", ".join(f"coalesce(means.{name}, 0.0) AS zip_mean_{name}" for name in COVARIATES)
        self.connection.execute(f"CREATE TABLE means AS FROM '{means}'")
        return self.frame.query("rows", f"SELECT {kept}, {new} FROM rows LEFT JOIN means USING (zip)")

    def write(self, encoded: Any, path: Path) -> None:
        """Write rows as one Parquet file."""
        encoded.write_parquet(str(path))


class Polars:
    """Queries by hand in polars, by its streaming engine."""

    def __init__(self, data: str) -> None:
        import polars as pl

        self.pl = pl
        self.frame = pl.scan_parquet(_files(data))

    def bare(self) -> Any:
        """Means of the covariates by level."""
        means = self.frame.group_by("zip").agg(self.pl.col(COVARIATES).mean())
        return means.collect(engine="streaming")

    def join(self, means: Path) -> Any:
        """Rows with the means of their level."""
        pl = self.pl
        table = pl.read_parquet(means).rename({name: f"zip_mean_{name}" for name in COVARIATES})
        joined = self.frame.join(table.lazy(), on="zip", how="left")
        new = [pl.col(f"zip_mean_{name}").fill_null(0.0) for name in COVARIATES]
        return joined.select(*COVARIATES, *new)

    def write(self, encoded: Any, path: Path) -> None:
        """Write rows as one Parquet file."""
        encoded.sink_parquet(path, engine="streaming")


class Spark:
    """Queries by hand in Spark, in a local session with two threads."""

    def __init__(self, data: str) -> None:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        self.session = builder.config("spark.driver.memory", "4g").getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        self.frame = self.session.read.parquet(*_files(data))
        self.frame.limit(1_000).groupBy("zip").count().toArrow()  # starts the engine

    def bare(self) -> Any:
        """Means of the covariates by level."""
        from pyspark.sql import functions

        return (
            self.frame.groupBy("zip").agg(*(functions.avg(name).alias(name) for name in COVARIATES)).toArrow()
        )


class Dask:
    """Queries by hand in Dask, on a local cluster of two processes."""

    def __init__(self, data: str) -> None:
        import dask.dataframe as dd
        from dask.distributed import Client, LocalCluster

        self.cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        self.client = Client(self.cluster)
        self.frame = dd.read_parquet(_files(data))
        self.frame.head(10)

    def bare(self) -> Any:
        """Means of the covariates by level."""
        return self.frame.groupby("zip")[COVARIATES].mean().compute()


OF_ENGINE = {"duckdb": DuckDB, "polars": Polars, "spark": Spark, "dask": Dask}


def ready(session: Any, task: str, scratch: Path) -> Callable[[], Any]:
    """Return the call that is measured; it only has to run."""
    output = scratch / "out.parquet"
    if task == "bare":
        return session.bare
    if task == "join":
        return lambda: session.write(session.join(scratch / "means.parquet"), output)
    from sufrep import MeansEncoder, load

    if task in ("fit_1", "fit_2"):
        encoder = MeansEncoder("zip", shrinkage="auto" if task == "fit_2" else None)
        return lambda: encoder.fit(session.frame)
    fitted = load(scratch / "encoder.sufrep")
    return lambda: session.write(fitted.transform(session.frame), output)


def prepare(session: Any, scratch: Path) -> None:
    """Write what the tasks that encode rows start from: the table of means, and the fitted encoder."""
    from sufrep import MeansEncoder

    scratch.mkdir(parents=True, exist_ok=True)
    encoder = MeansEncoder("zip", unseen="prior").fit(session.frame)
    encoder.save(scratch / "encoder.sufrep")
    import polars as pl

    moments = encoder.moments_["zip"]
    columns = dict(zip(COVARIATES, moments.mean.T, strict=True))
    pl.DataFrame({"zip": moments.levels.tolist(), **columns}).write_parquet(scratch / "means.parquet")


def measure(call: Callable[[], Any]) -> dict[str, float]:
    """CPU seconds of this process and those below it, wall seconds, and resident memory: before, and peak."""
    before, cpu, start = _status_mb("VmRSS"), _cpu_seconds(), perf_counter()
    kept = call()
    seconds = {"cpu_s": _cpu_seconds() - cpu, "wall_s": perf_counter() - start}
    found = {**seconds, "before_mb": before, "peak_mb": _status_mb("VmHWM")}
    del kept
    return {name: round(value, 3) for name, value in found.items()}


def _cpu_seconds() -> float:
    """Of all living processes from this one downwards, and of those that they have waited for."""
    parents, seconds = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            seconds[int(entry.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    family = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(seconds[process] for process in family)


def _status_mb(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {field} in /proc/self/status: memory is measured on Linux only")


def _files(data: str) -> list[str]:
    return sorted(glob.glob(data))


def main() -> None:
    """Run one task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("task", choices=(*TASKS, "prepare"))
    parser.add_argument("--data", required=True, help="Parquet files, as a pattern")
    parser.add_argument("--scratch", type=Path, required=True, help="folder for what is written on the way")
    options = parser.parse_args()
    session = OF_ENGINE[options.engine](options.data)
    if options.task == "prepare":
        prepare(session, options.scratch)
        return
    print(json.dumps(measure(ready(session, options.task, options.scratch))), flush=True)
    output = options.scratch / "out.parquet"
    if output.is_dir():
        shutil.rmtree(output)
    output.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
