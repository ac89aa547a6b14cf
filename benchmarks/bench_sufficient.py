"""`SufficientEncoder`: CPU time of `fit_transform`, next to one fit of a learner on the same columns.

How long the choice takes depends on how hard it is: candidates that are clearly behind leave early. So three
kinds of samples are measured, and the median and the largest ratio are shown.
"""

from __future__ import annotations

from time import process_time

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.measure import Result, milliseconds
from sufrep import SufficientEncoder, simulate
from sufrep._threads import one_thread

GOALS = {2_000: 15, 10_000: 10, 100_000: 10}
LARGEST = 1_000_000
N_COVARIATES, N_LEVELS = 20, 500
KINDS = ("hidden states", "intercepts and slopes", "noise")
STEEPEST = 1.1


def results(repeats: int) -> list[Result]:
    """Both run in one thread, so that CPU time is the time that they take."""
    found, ours = [], {}
    for n_rows, goal in GOALS.items():
        seconds = [measure(n_rows, kind, seed) for kind in KINDS for seed in range(max(repeats // 2, 1))]
        ratios = [encoder / learner for encoder, learner in seconds]
        ours[n_rows] = float(np.median([encoder for encoder, _ in seconds]))
        learner = float(np.median([learner for _, learner in seconds]))
        ratio = float(np.median(ratios))
        found.append(
            Result(
                f"SufficientEncoder, fit_transform, {n_rows:,} rows, {N_COVARIATES} covariates, "
                f"{N_LEVELS} levels, CPU time, median of {len(ratios)} samples (largest ratio "
                f"{max(ratios):.1f})",
                milliseconds(ours[n_rows]),
                f"one fit of HistGradientBoosting {milliseconds(learner)}",
                ratio,
                f"at most {goal} x",
                ratio <= goal,
            )
        )
    return [*found, growth(ours)]


def growth(ours: dict[int, float]) -> Result:
    """The slope of the logarithm of CPU time in that of the number of rows."""
    ours = {**ours, LARGEST: measure(LARGEST, KINDS[0], 0)[0]}
    sizes = np.log(list(ours))
    slope = float(np.polyfit(sizes, np.log(list(ours.values())), 1)[0])
    times = ", ".join(f"{n_rows:,}: {milliseconds(seconds)}" for n_rows, seconds in ours.items())
    return Result(
        f"SufficientEncoder, growth of CPU time with the number of rows ({times})",
        f"rows to the power of {slope:.2f}",
        f"power of {STEEPEST}",
        slope / STEEPEST,
        f"at most rows to the power of {STEEPEST}",
        slope <= STEEPEST,
    )


def measure(n_rows: int, kind: str, seed: int) -> tuple[float, float]:
    """Return the seconds of our encoder and of the learner."""
    X, codes, y = draw(n_rows, kind, seed)
    table = np.column_stack([X, codes])
    seconds = []
    with one_thread():
        for fit in (
            lambda: SufficientEncoder(N_COVARIATES, target_type="continuous").fit_transform(table, y),
            lambda: HistGradientBoostingRegressor(early_stopping=False).fit(table, y),
        ):
            start = process_time()
            fit()
            seconds.append(process_time() - start)
    return seconds[0], seconds[1]


def draw(n_rows: int, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return covariates, levels and target."""
    if kind == "hidden states":
        sample = simulate("latent_linear", n=n_rows, n_latent=10, levels_per_latent=50, seed=seed)
        return sample.X, np.unique(sample.group, return_inverse=True)[1], sample.y
    rng = np.random.default_rng(seed)
    codes, X = rng.integers(0, N_LEVELS, n_rows), rng.normal(size=(n_rows, N_COVARIATES))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n_rows)
    if kind != "noise":
        y += rng.normal(size=N_LEVELS)[codes] + 0.5 * rng.normal(size=N_LEVELS)[codes] * X[:, 3]
    return X, codes, y
