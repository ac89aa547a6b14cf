"""The mixed model: CPU time of `fit_transform`, next to one fit of a learner on the same columns.

The table of wages is measured if it is there: in the folder that ``SUFREP_DATA`` names, or in
``../shared/data``.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.measure import Result, alternate, milliseconds
from sufrep import MixedModelEncoder
from sufrep._threads import one_thread

SIZES = (2_000, 10_000, 100_000)
N_COVARIATES, N_LEVELS = 20, 500
WAGES = Path("sigrist2023") / "wages.csv.gz"


def results(repeats: int) -> list[Result]:
    """Both run in one thread, so that CPU time is the time that they take."""
    cases = [
        compare(f"{n_rows:,} rows, {N_COVARIATES} covariates, {N_LEVELS} levels", *draw(n_rows), repeats)
        for n_rows in SIZES
    ]
    path = Path(os.environ.get("SUFREP_DATA", "../shared/data")) / WAGES
    if path.exists():
        frame, y = read_wages(path)
        size = f"{len(frame):,} rows, {frame.shape[1] - 1} covariates, {frame['group'].nunique():,} levels"
        cases.append(compare(f"wages, {size}", frame, y, repeats))
    return cases


def compare(case: str, frame: pd.DataFrame, y: np.ndarray, repeats: int) -> Result:
    encoder = MixedModelEncoder("group", target_type="continuous")
    codes = frame.assign(group=pd.factorize(frame["group"])[0]).to_numpy(dtype=float)
    peer = HistGradientBoostingRegressor(early_stopping=False)
    with one_thread():
        seconds = alternate(
            {"ours": lambda: encoder.fit_transform(frame, y), "peer": lambda: peer.fit(codes, y)},
            repeats,
            cpu_time=True,
        )
    return Result(
        f"mixed model, fit_transform, {case}, CPU time",
        milliseconds(seconds["ours"]),
        f"one fit of HistGradientBoosting {milliseconds(seconds['peer'])}",
        seconds["ours"] / seconds["peer"],
        "at most 1 x",
        seconds["ours"] <= seconds["peer"],
    )


def draw(n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Levels differ in their intercepts and in three of their slopes."""
    rng = np.random.default_rng(0)
    codes, X = rng.integers(0, N_LEVELS, n_rows), rng.normal(size=(n_rows, N_COVARIATES))
    slopes = np.tile(0.3 * rng.normal(size=N_COVARIATES), (N_LEVELS, 1))
    slopes[:, :3] += 0.5 * rng.normal(size=(N_LEVELS, 3))
    y = rng.normal(size=N_LEVELS)[codes] + (X * slopes[codes]).sum(axis=1) + rng.normal(size=n_rows)
    return pd.DataFrame(X).add_prefix("x").assign(group=codes.astype(str)), y


def read_wages(path: Path) -> tuple[pd.DataFrame, np.ndarray]:
    frame = pd.read_csv(path)
    y = frame.pop("ln_wage").to_numpy(dtype=float)
    return frame.drop(columns=["t", "idcode"]).assign(group=frame["idcode"].astype(str)), y
