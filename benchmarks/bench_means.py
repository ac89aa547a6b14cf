"""Covariate means: a million rows, 10,000 levels, 20 covariates.

Peers do the same work: polars' ``group_by().mean()`` and a left join on the same frame, skrub's
``AggJoiner`` with the mean of all covariates on the same pandas frame.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
from skrub import AggJoiner

from benchmarks.measure import Result, alternate, extra_memory, memory_of_fit, milliseconds
from sufrep import MeansEncoder

ROWS, LEVELS, COVARIATES = 1_000_000, 10_000, 20
KINDS = ("polars", "pandas", "numpy")


def draw() -> tuple[np.ndarray, np.ndarray]:
    """Level of each row (n,) and covariates (n, p), from a fixed seed."""
    rng = np.random.default_rng(0)
    return rng.integers(0, LEVELS, ROWS), rng.normal(size=(ROWS, COVARIATES))


def polars_frame() -> pl.DataFrame:
    levels, covariates = draw()
    names = np.array([f"z{level:05d}" for level in range(LEVELS)])
    columns = {f"x{j}": np.ascontiguousarray(covariates[:, j]) for j in range(COVARIATES)}
    return pl.DataFrame({"zip": names[levels], **columns})


def results(repeats: int) -> list[Result]:
    frame = polars_frame()
    levels, covariates = draw()
    array = np.column_stack([levels.astype(np.float64), covariates])
    pandas_frame = frame.to_pandas()
    to_polars = MeansEncoder("zip").set_output(transform="polars")
    to_pandas = MeansEncoder("zip").set_output(transform="pandas")
    to_numpy = MeansEncoder(0)
    names = [f"x{j}" for j in range(COVARIATES)]

    def by_polars() -> pl.DataFrame:
        means = frame.group_by("zip").mean().rename({name: f"zip_mean_{name}" for name in names})
        return frame.join(means, on="zip", how="left", maintain_order="left")

    def by_skrub() -> pd.DataFrame:
        joiner = AggJoiner(aux_table="X", key="zip", cols=names, operations="mean")
        return joiner.fit_transform(pandas_frame)

    seconds = alternate(
        {
            "polars": by_polars,
            "ours in polars": lambda: to_polars.fit(frame).transform(frame),
            "ours in numpy": lambda: to_numpy.fit(array).transform(array),
            "skrub": by_skrub,
            "ours in pandas": lambda: to_pandas.fit(pandas_frame).transform(pandas_frame),
        },
        repeats,
    )
    goals = [
        ("polars frame in and out", "ours in polars", "polars", 1.3, "at most 1.3 x"),
        ("numpy in and out", "ours in numpy", "polars", 3.0, "at most 3 x, aim 2 x"),
        ("pandas frame in and out", "ours in pandas", "skrub", 1.0, "below 1 x"),
    ]
    timed = [
        Result(
            f"means, {case}",
            milliseconds(seconds[ours]),
            f"{peer} {milliseconds(seconds[peer])}",
            seconds[ours] / seconds[peer],
            goal,
            seconds[ours] / seconds[peer] <= limit,
        )
        for case, ours, peer, limit, goal in goals
    ]
    size = ROWS * COVARIATES * 8
    memory = [memory_of_fit("means", "benchmarks.bench_means", kind, size) for kind in KINDS]
    return timed + memory


def measure_memory(kind: str) -> int:
    """Return the extra bytes of one fit; called in its own process."""
    if kind == "numpy":
        levels, covariates = draw()
        X, encoder = np.column_stack([levels.astype(np.float64), covariates]), MeansEncoder(0)
        del levels, covariates
    else:
        X, encoder = polars_frame(), MeansEncoder("zip")
        X = X.to_pandas() if kind == "pandas" else X
    return extra_memory(lambda: encoder.fit(X))
