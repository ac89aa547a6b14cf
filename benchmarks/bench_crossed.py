"""Crossed effects: CPU time and memory, next to one fit of a learner on the same columns."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.measure import Result, alternate, extra_memory, milliseconds
from sufrep import CrossedEffectsEncoder
from sufrep._threads import one_thread
from sufrep.solvers.crossed import CrossedDesign, fit_crossed

# Rows, levels of each group, and covariates.
CASES = [(10_000, (500, 200), 6), (100_000, (5_000, 1_000, 100), 10)]
N_SOLVED, N_LEVELS, N_OTHERS = 1_000_000, 100_000, 10
MOST_MEMORY = 300


def results(repeats: int) -> list[Result]:
    """All run in one thread, so that CPU time is the time that they take."""
    with one_thread():
        encoders = [encoder_result(n_rows, n_levels, p, repeats) for n_rows, n_levels, p in CASES]
        return [*encoders, solver_result(repeats), memory_result()]


def encoder_result(n_rows: int, n_levels: tuple[int, ...], p: int, repeats: int) -> Result:
    codes, X, y = draw(n_rows, n_levels, p)
    groups = [f"g{number}" for number in range(len(codes))]
    frame = (
        pd.DataFrame(X)
        .add_prefix("x")
        .assign(**{name: code.astype(str) for name, code in zip(groups, codes, strict=True)})
    )
    encoder = CrossedEffectsEncoder(groups, target_type="continuous")
    seconds = alternate(
        {"ours": lambda: encoder.fit_transform(frame, y), "peer": lambda: peer(codes, X, y)},
        repeats,
        cpu_time=True,
    )
    sizes = ", ".join(f"{n:,}" for n in n_levels)
    return Result(
        f"crossed effects, fit_transform, {n_rows:,} rows, levels {sizes}, {p} covariates, CPU time",
        milliseconds(seconds["ours"]),
        f"one fit of HistGradientBoosting {milliseconds(seconds['peer'])}",
        seconds["ours"] / seconds["peer"],
        "at most 10 x",
        seconds["ours"] <= 10 * seconds["peer"],
    )


def solver_result(repeats: int) -> Result:
    codes, X, y = draw(N_SOLVED, (N_LEVELS, N_LEVELS), N_OTHERS)
    seconds = alternate(
        {"ours": lambda: solve(codes, y), "peer": lambda: peer(codes, X, y)}, repeats, cpu_time=True
    )
    return Result(
        f"crossed effects, one solve, {N_SOLVED:,} rows, two groups of {N_LEVELS:,} levels, CPU time",
        milliseconds(seconds["ours"]),
        f"one fit of HistGradientBoosting, with {N_OTHERS} covariates {milliseconds(seconds['peer'])}",
        seconds["ours"] / seconds["peer"],
        "at most 0.3 x",
        seconds["ours"] <= 0.3 * seconds["peer"],
    )


def memory_result() -> Result:
    code = "from benchmarks.bench_crossed import measure_memory; print(measure_memory())"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    extra = int(printed) / 1e6
    return Result(
        f"crossed effects, one solve, {N_SOLVED:,} rows, two groups of {N_LEVELS:,} levels, extra memory",
        f"{extra:,.0f} MB",
        f"limit {MOST_MEMORY} MB",
        extra / MOST_MEMORY,
        "at most 1 x",
        extra <= MOST_MEMORY,
    )


def measure_memory() -> int:
    """Return the extra bytes of one solve; called in its own process."""
    codes, _, y = draw(N_SOLVED, (N_LEVELS, N_LEVELS), 0)
    return extra_memory(lambda: solve(codes, y))


def solve(codes: list[np.ndarray], y: np.ndarray) -> object:
    return fit_crossed(CrossedDesign.of(codes, [N_LEVELS, N_LEVELS]), y)


def peer(codes: list[np.ndarray], X: np.ndarray, y: np.ndarray) -> object:
    rows = np.column_stack([X, *codes]).astype(float)
    return HistGradientBoostingRegressor(early_stopping=False).fit(rows, y)


def draw(n_rows: int, n_levels: tuple[int, ...], p: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Every group has an effect, and the first one a slope of its own in the first covariate."""
    rng = np.random.default_rng(0)
    codes, X = [rng.integers(0, n, n_rows) for n in n_levels], rng.normal(size=(n_rows, p))
    y = sum((rng.normal(size=n)[code] for n, code in zip(n_levels, codes, strict=True)), np.zeros(n_rows))
    if p:
        y += X[:, 0] * 0.5 * rng.normal(size=n_levels[0])[codes[0]] + np.sin(X[:, -1])
    return codes, X, y + rng.normal(size=n_rows)
