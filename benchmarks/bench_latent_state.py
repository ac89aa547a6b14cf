"""Hidden states: time against scikit-learn's Gaussian mixture, growth with the rows, and memory."""

from __future__ import annotations

import numpy as np
from sklearn.mixture import GaussianMixture

from benchmarks.measure import Result, alternate, extra_memory, memory_of_fit, milliseconds
from sufrep import LatentStateEncoder, simulate

ROWS, FEWER_ROWS = 1_000_000, 100_000
N_STATES, N_COVARIATES = 10, 20


def results(repeats: int) -> list[Result]:
    """The largest sample takes minutes, so it is fitted once whatever `repeats` is."""
    del repeats
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
