"""Serving: one vector, one look-up, one row; and moments of a million levels that are added up.

What one row costs must not depend on the number of levels: 50,000 are compared with 1,000.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
import polars as pl

from benchmarks.measure import Result, alternate, milliseconds
from sufrep import GroupMoments, LowRankEncoder, MeansEncoder
from sufrep.representation import as_levels

FEW, MANY, COVARIATES = 1_000, 50_000, 10
# Calls that are timed together, because the clock is coarser than one of them.
BATCH = 100
MILLION = 1_000_000
ENCODERS = {
    "means": lambda: MeansEncoder("zip"),
    "rare levels pooled": lambda: MeansEncoder("zip", min_frequency=2),
    "low rank": lambda: LowRankEncoder("zip", n_components=3),
}


def results(repeats: int) -> list[Result]:
    return [*look_ups(repeats), *one_row(repeats), *million_levels(max(1, repeats // 2))]


def rows_of(n_levels: int) -> pl.DataFrame:
    """Each level once, and as many rows again, of half of the levels."""
    rng = np.random.default_rng(0)
    codes = np.append(np.arange(n_levels), rng.integers(0, n_levels // 2, n_levels))
    columns = {f"x{j}": rng.normal(size=len(codes)) for j in range(COVARIATES)}
    return pl.DataFrame({"zip": [f"z{code:05}" for code in codes], **columns})


def microseconds(call: Callable[[], Any], repeats: int) -> float:
    """Median time of a call that takes microseconds."""
    times = []
    for _ in range(10 * repeats):
        start = perf_counter()
        for _ in range(BATCH):
            call()
        times.append((perf_counter() - start) / BATCH)
    return 1e6 * median(times)


def look_ups(repeats: int) -> list[Result]:
    """One vector, and one level looked up, of few levels and of many."""
    found = []
    for n_levels in (FEW, MANY):
        table = MeansEncoder("zip").fit(rows_of(n_levels)).representations_["zip"]
        calls: list[tuple[str, Callable[[], Any], float]] = [
            ("representation[level]", lambda t=table: t["z00007"], 5.0),
            ("representation[level], unseen", lambda t=table: t["never"], 5.0),
            ("lookup([level])", lambda t=table: t.lookup(["z00007"]), 20.0),
        ]
        for name, call, limit in calls:
            taken = microseconds(call, repeats)
            case = f"serving, {name}, {n_levels:,} levels"
            goal = f"below {limit:g} µs"
            found.append(
                Result(case, f"{taken:.1f} µs", f"limit {limit:g} µs", taken / limit, goal, taken < limit)
            )
    return found


def one_row(repeats: int) -> list[Result]:
    """`transform` of one row with many levels, against few; CPU time, because the machine has other work."""
    found = []
    for name, make in ENCODERS.items():
        tables = {n_levels: rows_of(n_levels) for n_levels in (FEW, MANY)}
        for kind, convert in CONTAINERS.items():
            calls = {}
            for n_levels, rows in tables.items():
                encoder, row = _fitted(make, convert(rows)), convert(rows[:1])
                calls[str(n_levels)] = _repeated(encoder.transform, row)
            seconds = _interleaved(calls, 20 * repeats)
            few, many = seconds[str(FEW)] / BATCH, seconds[str(MANY)] / BATCH
            found.append(
                Result(
                    f"serving, one row of {kind}, {name}, {MANY:,} levels",
                    f"{1e6 * many:,.0f} µs",
                    f"{FEW:,} levels {1e6 * few:,.0f} µs",
                    many / few,
                    "at most 1.2 x",
                    many <= 1.2 * few,
                )
            )
    return found


CONTAINERS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda rows: rows,
    "pandas": lambda rows: rows.to_pandas(),
    "numpy": lambda rows: rows.to_pandas().to_numpy(),
}


def _fitted(make: Callable[[], Any], X: Any) -> Any:
    encoder = make()
    return encoder.set_params(group=0).fit(X) if isinstance(X, np.ndarray) else encoder.fit(X)


def _repeated(call: Callable[[Any], Any], row: Any) -> Callable[[], None]:
    def run() -> None:
        for _ in range(BATCH // 10):
            call(row)

    return run


def _interleaved(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            start = process_time()
            call()
            times[name].append(10 * (process_time() - start))
    return {name: median(seconds) for name, seconds in times.items()}


def million_levels(repeats: int) -> list[Result]:
    """Moments of order 2 of a million levels each, added up and subtracted; CPU time, on one core."""
    found = []
    for case, shift in {"the same levels": 0, "half of them shared": MILLION // 2}.items():
        left, right = _moments(range(MILLION)), _moments(range(shift, MILLION + shift))
        whole = left + right
        calls = {"+": lambda a=left, b=right: a + b, "-": lambda w=whole, a=left: w - a}
        seconds = alternate(calls, repeats, warm_up=False, cpu_time=True)
        found += [
            Result(
                f"moments of {MILLION:,} levels, order 2, a {sign} b, {case}",
                milliseconds(taken),
                "limit 5 s",
                taken / 5,
                "below 5 s",
                taken < 5,
            )
            for sign, taken in seconds.items()
        ]
    return found


def _moments(codes: Sequence[int]) -> GroupMoments:
    rng = np.random.default_rng(codes[0])
    levels = as_levels([f"customer {code:08}" for code in codes])
    rows = np.append(np.arange(len(codes)), rng.integers(0, len(codes), len(codes)))
    columns = [rng.normal(size=len(rows)) for _ in range(COVARIATES)]
    names = [f"x{j}" for j in range(COVARIATES)]
    return GroupMoments.from_columns(rows, columns, levels, covariates=names)


if __name__ == "__main__":
    for result in results(3):
        print(f"{result.case}: {result.ours} ({result.peer}), ratio {result.ratio:.3g}, {result.goal}")
