"""Hidden states: time against boosting and a Gaussian mixture, growth with the rows, and memory."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks.measure import Result, alternate, extra_memory, memory_of_fit, milliseconds
from sufrep import LatentStateEncoder, simulate

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, FEWER_ROWS = 1_000_000, 100_000
N_STATES, N_COVARIATES = 10, 20
BOOSTED_ROWS = (2_000, 10_000, 100_000)
# Wages of the National Longitudinal Survey (Sigrist 2023), where the data folder has them.
WAGES = Path(os.environ.get("SUFREP_DATA", "data")) / "sigrist2023" / "wages.csv.gz"


def results(repeats: int) -> list[Result]:
    return [*boosting_results(repeats), *mixture_results()]


def boosting_results(repeats: int) -> list[Result]:
    """CPU time of the encoder as it is by default against one fit of boosting, each with one thread."""
    found = []
    for n_rows in BOOSTED_ROWS:
        sample = simulate(
            "latent_linear", n=n_rows, p=N_COVARIATES, n_latent=10, levels_per_latent=50, seed=0
        )
        found.append(_against_boosting(f"{n_rows:,} rows", pd.DataFrame(sample.columns()), sample.y, repeats))
    if WAGES.exists():
        wages = pd.read_csv(WAGES).drop(columns="t").rename(columns={"idcode": "group"})
        y = wages.pop("ln_wage").to_numpy()
        found.append(_against_boosting("wages", wages.astype({"group": str}), y, repeats))
    return found


def _against_boosting(case: str, X: pd.DataFrame, y: np.ndarray, repeats: int) -> Result:
    codes = X.assign(group=pd.factorize(X["group"])[0]).to_numpy(dtype=float)
    encoder = LatentStateEncoder("group", output="both")
    with threadpool_limits(1):
        ours = _cpu_seconds(lambda: encoder.fit_transform(X), repeats)
        peer = _cpu_seconds(
            lambda: HistGradientBoostingRegressor(early_stopping=False).fit(codes, y), repeats
        )
    return Result(
        f"latent states, fit_transform, {case}, {X['group'].nunique():,} levels, CPU",
        milliseconds(ours),
        f"one fit of boosting {milliseconds(peer)}",
        ours / peer,
        "at most 1 x",
        ours <= peer,
    )


def _cpu_seconds(call: Callable[[], Any], repeats: int) -> float:
    """Median CPU time of a call, after a first one."""
    seconds = []
    for _ in range(repeats + 1):
        start = process_time()
        call()
        seconds.append(process_time() - start)
    return median(seconds[1:])


def mixture_results() -> list[Result]:
    """The largest sample is fitted once."""
    large, small = draw(ROWS), draw(FEWER_ROWS)
    encoder = LatentStateEncoder(N_COVARIATES, n_states=N_STATES)
    peer = GaussianMixture(N_STATES, covariance_type="tied", max_iter=500, tol=1e-6, random_state=0)
    seconds = alternate(
        {
            "large": lambda: encoder.fit(large),
            "small": lambda: encoder.fit(small),
            "peer": lambda: peer.fit(large[:, :N_COVARIATES]),
        },
        1,
        warm_up=False,
    )
    case = f"latent states, {ROWS:,} rows, {N_COVARIATES} covariates, {N_STATES} states"
    size = ROWS * N_COVARIATES * 8
    return [
        Result(
            case,
            milliseconds(seconds["large"]),
            f"GaussianMixture {milliseconds(seconds['peer'])}",
            seconds["large"] / seconds["peer"],
            "at most 10 minutes",
            seconds["large"] <= 600,
        ),
        Result(
            f"{case}, compared with {FEWER_ROWS:,} rows",
            milliseconds(seconds["large"]),
            milliseconds(seconds["small"]),
            seconds["large"] / seconds["small"],
            "at most 20 x (10 is linear)",
            seconds["large"] <= 20 * seconds["small"],
        ),
        memory_of_fit("latent states", "benchmarks.bench_latent_state", "numpy", size),
    ]


def draw(n_rows: int) -> np.ndarray:
    sample = simulate("latent_linear", n=n_rows, p=N_COVARIATES, n_latent=N_STATES, seed=0)
    return np.column_stack([sample.X, sample.codes])


def measure_memory(_kind: str) -> int:
    """Return the extra bytes of one fit; called in its own process."""
    rows = draw(ROWS)
    encoder = LatentStateEncoder(N_COVARIATES, n_states=N_STATES, max_iter=5)
    return extra_memory(lambda: encoder.fit(rows))
