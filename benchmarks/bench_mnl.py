"""The encoder by multinomial logit: closed form against exact, its defaults, and its memory."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks import bench_multinomial
from benchmarks.measure import Result, alternate, extra_memory, memory_of_fit, milliseconds
from sufrep import MNLEncoder

MEMORY_ROWS, MEMORY_LEVELS = 500_000, 50


def results(repeats: int) -> list[Result]:
    case = bench_multinomial.CASES[0]
    rows, codes = bench_multinomial.draw(case)
    X = frame(rows, codes)
    exact, closed = MNLEncoder("level"), MNLEncoder("level", solver="lda")
    seconds = alternate({"lbfgs": lambda: exact.fit(X), "lda": lambda: closed.fit(X)}, repeats)
    ratio = seconds["lda"] / seconds["lbfgs"]
    timed = Result(
        f"MNLEncoder by lda, {case.name}",
        milliseconds(seconds["lda"]),
        f"by lbfgs {milliseconds(seconds['lbfgs'])}",
        ratio,
        "at most 1/100 x",
        ratio <= 0.01,
    )
    size = MEMORY_ROWS * rows.shape[1] * 8
    return [timed, memory_of_fit("exact MNL", "benchmarks.bench_mnl", "pandas", size)]


def frame(rows: np.ndarray, codes: np.ndarray) -> pd.DataFrame:
    columns = {f"x{j}": np.ascontiguousarray(rows[:, j]) for j in range(rows.shape[1])}
    return pd.DataFrame(columns).assign(level=codes.astype(str))


def measure_memory(_kind: str) -> int:
    """Return the extra bytes of one fit; called in its own process."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, MEMORY_LEVELS, MEMORY_ROWS)
    means = rng.normal(size=(MEMORY_LEVELS, bench_multinomial.COVARIATES))
    rows = rng.normal(size=(MEMORY_ROWS, bench_multinomial.COVARIATES)) + means[codes]
    X = frame(rows, codes)
    del rows, codes
    encoder = MNLEncoder("level")
    return extra_memory(lambda: encoder.fit(X))
