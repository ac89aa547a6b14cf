"""Drift of a million rows against a fit to as many: 10,000 levels, 20 covariates, with and without nulls."""

from __future__ import annotations

import numpy as np
import polars as pl

from benchmarks.bench_means import COVARIATES, LEVELS, ROWS
from benchmarks.measure import Result, alternate, milliseconds
from sufrep import MeansEncoder

NULLS = 0.05


def frame(seed: int, *, nulls: bool) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    names = np.array([f"z{level:05d}" for level in range(LEVELS)])
    columns = {f"x{j}": rng.normal(size=ROWS) for j in range(COVARIATES)}
    if nulls:
        for values in columns.values():
            values[rng.random(ROWS) < NULLS] = np.nan
    return pl.DataFrame({"zip": names[rng.integers(0, LEVELS, ROWS)], **columns})


def results(repeats: int) -> list[Result]:
    found = []
    for nulls in (False, True):
        old, new = frame(0, nulls=nulls), frame(1, nulls=nulls)
        encoder = MeansEncoder("zip").fit(old)
        calls = {"drift": lambda: encoder.drift(new), "fit": lambda: MeansEncoder("zip").fit(new)}  # noqa: B023
        seconds = alternate(calls, repeats)
        found.append(
            Result(
                f"drift, polars frame{f', {NULLS:.0%} nulls' if nulls else ''}",
                milliseconds(seconds["drift"]),
                f"fit {milliseconds(seconds['fit'])}",
                seconds["drift"] / seconds["fit"],
                "at most 2 x",
                seconds["drift"] <= 2 * seconds["fit"],
            )
        )
    return found
