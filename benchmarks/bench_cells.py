"""Shares and cells of a table of text columns, next to one fit of scikit-learn's boosted trees."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.measure import Result, alternate, extra_memory, milliseconds
from sufrep import CellsEncoder, SharesEncoder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sufrep.encoders import GroupEncoder

ROWS, LEVELS = 100_000, (20_000, 20_000, 10_000, 5_000, 1_000, 200, 50, 10)
MOST_COLUMNS, MOST_MEMORY = 60, 300 * 2**20
ENCODERS = {"shares": SharesEncoder, "cells": CellsEncoder}


def results(repeats: int) -> list[Result]:
    X, y = table()
    codes = np.column_stack([X[name].cast(pl.Int64) for name in X.columns]).astype(float)
    learner = HistGradientBoostingRegressor(random_state=0)
    found = []
    for name, kind in ENCODERS.items():
        encoder = kind(X.columns, remainder="drop")
        seconds = alternate(
            {
                "ours": lambda e=encoder: e.fit_transform(X, y),
                "boosting": lambda: learner.fit(codes, y),
            },
            repeats,
            cpu_time=True,
        )
        ratio = seconds["ours"] / seconds["boosting"]
        case = f"{name}, {ROWS:,} rows, {len(LEVELS)} text columns of up to {max(LEVELS):,} levels"
        peer = f"boosting {milliseconds(seconds['boosting'])}"
        cost = Result(case, milliseconds(seconds["ours"]), peer, ratio, "at most 8 x", ratio <= 8)
        n_columns = len(encoder.get_feature_names_out())
        columns = Result(
            f"{case}, new columns",
            str(n_columns),
            f"limit {MOST_COLUMNS}",
            n_columns / MOST_COLUMNS,
            "at most 1 x",
            n_columns <= MOST_COLUMNS,
        )
        found += [cost, columns, _memory(case, name)]
    return found


def table() -> tuple[pl.DataFrame, NDArray[np.float64]]:
    """Levels of all columns depend on a hidden state of the first; pairs and single columns act on y."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, LEVELS[0], ROWS)
    codes = [first]
    for size in LEVELS[1:]:
        own = (first % 10) * (size // 10) + rng.integers(0, max(size // 10, 1), ROWS)
        codes.append(np.where(rng.random(ROWS) < 0.5, own, rng.integers(0, size, ROWS)) % size)
    y = rng.normal(size=ROWS) + rng.normal(size=LEVELS[4])[codes[4]] + rng.normal(size=LEVELS[2])[codes[2]]
    for left, right in ((4, 6), (5, 6), (5, 7)):
        y += rng.normal(size=(LEVELS[left], LEVELS[right]))[codes[left], codes[right]]
    return pl.DataFrame({f"text{j}": column.astype(str) for j, column in enumerate(codes)}), y


def measure_memory(name: str) -> int:
    """Return the bytes that ``fit_transform`` needs, in a process that has done it on a few rows before."""
    X, y = table()
    encoder: GroupEncoder = ENCODERS[name](X.columns, remainder="drop")
    encoder.fit_transform(X[:1000], y[:1000])
    return extra_memory(lambda: encoder.fit_transform(X, y))


def _memory(case: str, name: str) -> Result:
    code = f"from benchmarks.bench_cells import measure_memory; print(measure_memory({name!r}))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    extra = int(printed)
    return Result(
        f"{case}, extra memory",
        f"{extra / 2**20:,.0f} MiB",
        f"limit {MOST_MEMORY / 2**20:,.0f} MiB",
        extra / MOST_MEMORY,
        "at most 1 x",
        extra <= MOST_MEMORY,
    )
