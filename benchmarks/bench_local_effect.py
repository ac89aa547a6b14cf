"""Local effects: the time of ``fit_transform``, which fits six times, against one fit of boosted trees."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.measure import Result, alternate, milliseconds
from sufrep import LocalEffectEncoder
from sufrep._threads import one_thread

ROWS, N_LEVELS, N_COVARIATES = (2_000, 10_000, 100_000), 500, 20
LIMIT = 3
WAGES = Path("sigrist2023", "wages.csv.gz")


def results(repeats: int) -> list[Result]:
    cells = {f"{n:,} rows, {N_LEVELS} levels, {N_COVARIATES} covariates": draw(n) for n in ROWS}
    file = Path(os.environ.get("SUFREP_DATA", Path(__file__).parents[2] / "shared" / "data")) / WAGES
    if file.exists():
        cells["wages, 28,013 rows, 4,711 people, 52 covariates"] = read_wages(file)
    return [measure(f"local effects, {case}", *cell, repeats) for case, cell in cells.items()]


def measure(case: str, X: np.ndarray, y: np.ndarray, repeats: int) -> Result:
    """CPU time, with one thread; the codes of the levels are the last column."""
    encoder = LocalEffectEncoder(X.shape[1] - 1, output="both", target_type="continuous")
    peer = HistGradientBoostingRegressor(early_stopping=False)
    calls = {"ours": lambda: encoder.fit_transform(X, y), "peer": lambda: peer.fit(X, y)}
    with one_thread():
        seconds = alternate(calls, repeats, cpu_time=True)
    return Result(
        f"{case}, 5 folds and all rows",
        milliseconds(seconds["ours"]),
        f"one fit of HistGradientBoostingRegressor {milliseconds(seconds['peer'])}",
        seconds["ours"] / seconds["peer"],
        f"at most {LIMIT} x, aim 1.5 x",
        seconds["ours"] <= LIMIT * seconds["peer"],
    )


def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Levels with a wave of their own in one covariate."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, N_LEVELS, n)
    X = rng.normal(size=(n, N_COVARIATES)) + 0.5 * rng.normal(size=(N_LEVELS, N_COVARIATES))[codes]
    wave = np.sin(2 * X[:, 2] + rng.uniform(0, 6, N_LEVELS)[codes])
    intercept = 0.5 * rng.normal(size=N_LEVELS)[codes]
    y = X[:, 0] + np.abs(X[:, 1]) + wave + intercept + rng.normal(size=n)
    return np.column_stack([X, codes]), y


def read_wages(file: Path) -> tuple[np.ndarray, np.ndarray]:
    table = pd.read_csv(file)
    codes = pd.factorize(table["idcode"])[0]
    covariates = table.drop(columns=["ln_wage", "t", "idcode"]).to_numpy(dtype=np.float64)
    return np.column_stack([covariates, codes]), table["ln_wage"].to_numpy(dtype=np.float64)
