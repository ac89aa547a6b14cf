"""How often ``drift`` reports levels that have not moved, and how often it finds those that have.

    python examples/drift_size.py --data DATA_FOLDER

prints three tables of markdown; docs/results/promises.md quotes them. Tables have 200 levels with normal
means and 5 covariates. Old and new rows are drawn independently, so that levels have about the given numbers
of rows. In the first table nothing has moved: "any" is the share of simulations that report at least one
level, which is the false-discovery rate here. In the second table one level in ten has moved, in one of its
covariates. The third table has real data, from the folder of `sufrep.datasets`: a random 30 % of the rows are
called new, so that nothing has moved. Without a folder it is left out.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sufrep import MeansEncoder
from sufrep.datasets import load_dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Draw = Callable[[np.random.Generator, NDArray[Any]], NDArray[Any]]

N_LEVELS, N_COVARIATES, RATE = 200, 5, 0.05
# Rows of a level, then and now.
SIZES = ((20, 2), (20, 20), (200, 50))
SHIFTS = (0.25, 0.5, 1.0, 2.0)
SHARE_MOVED = 0.1
REAL = ("king_county", "ames", "pakistan", "orange_juice", "insteval", "county_murders")


def correlated(rng: np.random.Generator, level: NDArray[Any]) -> NDArray[Any]:
    """Normal covariates with correlations of one half."""
    n = len(level)
    return (rng.normal(size=(n, N_COVARIATES)) + rng.normal(size=(n, 1))) / math.sqrt(2)


def with_nulls(rng: np.random.Generator, level: NDArray[Any]) -> NDArray[Any]:
    """The same with a tenth of the values missing."""
    x = correlated(rng, level)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


def heavy_tails(rng: np.random.Generator, level: NDArray[Any]) -> NDArray[Any]:
    """Student's t with 5 degrees of freedom."""
    return rng.standard_t(5, size=(len(level), N_COVARIATES)) / math.sqrt(5 / 3)


def skewed(rng: np.random.Generator, level: NDArray[Any]) -> NDArray[Any]:
    """Exponential covariates."""
    return rng.exponential(size=(len(level), N_COVARIATES)) - 1


def binary(rng: np.random.Generator, level: NDArray[Any]) -> NDArray[Any]:
    """Indicators with a share of a tenth."""
    return (rng.random((len(level), N_COVARIATES)) < 0.1) / 0.3


def unequal_spread(rng: np.random.Generator, level: NDArray[Any]) -> NDArray[Any]:
    """Normal covariates; the standard deviations of levels are lognormal, with a spread of 0.2."""
    spread = np.exp(0.2 * np.random.default_rng(0).normal(size=N_LEVELS))
    return spread[level][:, None] * rng.normal(size=(len(level), N_COVARIATES))


KINDS: dict[str, Draw] = {
    "normal": correlated,
    "normal, 10 % nulls": with_nulls,
    "t with 5 degrees of freedom": heavy_tails,
    "binary, shares of 10 %": binary,
    "exponential": skewed,
    "normal, unequal spread": unequal_spread,
}


def simulate(
    draw: Draw, sizes: tuple[int, int], shift: float, seed: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """P-values and q-values of the levels, those that moved first."""
    rng = np.random.default_rng([21, seed])
    means = rng.normal(size=(N_LEVELS, N_COVARIATES))
    moved = means.copy()
    first = np.arange(round(N_LEVELS * SHARE_MOVED))
    moved[first, rng.integers(0, N_COVARIATES, len(first))] += shift
    tables = []
    for center, size in zip((means, moved), sizes, strict=True):
        level = rng.integers(0, N_LEVELS, size * N_LEVELS)
        tables.append(np.column_stack([level, center[level] + draw(rng, level)]))
    found = MeansEncoder(0).fit(tables[0]).drift(tables[1], rate=RATE).groups["x0"]
    order = np.argsort(found.levels.astype(int))
    return found.p_value[order], found.q_value[order]


def cell(values: Sequence[float]) -> str:
    """A mean with its standard error."""
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    return f"{np.mean(values):.3f} ± {error:.3f}"


def print_size(seeds: Sequence[int]) -> None:
    """Print what is found if nothing has moved."""
    print("| covariates | rows then, now | p ≤ 0.05 | any | levels reported, of 200 |")
    print("|---" * 5 + "|")
    for kind, draw in KINDS.items():
        for sizes in SIZES:
            found = [simulate(draw, sizes, 0.0, seed) for seed in seeds]
            rejected = [float(np.mean(p[~np.isnan(p)] <= 0.05)) for p, _ in found]
            reported = [int(np.sum(q <= RATE)) for _, q in found]
            shown = (cell(rejected), cell([float(n > 0) for n in reported]), cell(reported))
            print(f"| {kind} | {sizes[0]}, {sizes[1]} | {' | '.join(shown)} |", flush=True)


def print_power(seeds: Sequence[int]) -> None:
    """Print what is found if levels have moved."""
    print("| moved by (sd) | rows then, now | found | reported though it has not moved |")
    print("|---" * 4 + "|")
    n_moved = round(N_LEVELS * SHARE_MOVED)
    for shift in SHIFTS:
        for sizes in SIZES:
            power, false = [], []
            for seed in seeds:
                reported = simulate(correlated, sizes, shift, seed)[1] <= RATE
                power.append(float(reported[:n_moved].mean()))
                false.append(float(reported[n_moved:].sum() / max(reported.sum(), 1)))
            print(f"| {shift:g} | {sizes[0]}, {sizes[1]} | {cell(power)} | {cell(false)} |", flush=True)


def print_real(folder: Path, n_splits: int) -> None:
    """Print what is found if a part of real rows is called new."""
    print("| data | levels | p ≤ 0.05 | any | share of the levels reported |")
    print("|---" * 5 + "|")
    for name in REAL:
        data = load_dataset(name, folder)
        frame = pl.DataFrame(data.columns())
        rejected, reported = [], []
        for seed in range(n_splits):
            new = pl.Series(np.random.default_rng([24, seed]).random(len(frame)) < 0.3)
            drift = MeansEncoder(data.group).fit(frame.filter(~new)).drift(frame.filter(new), rate=RATE)
            p_value = drift.groups[data.group].p_value
            tested = ~np.isnan(p_value)
            rejected.append(float(np.mean(p_value[tested] <= 0.05)))
            reported.append(drift.n_moved / tested.sum())
        shown = (cell(rejected), cell([float(share > 0) for share in reported]), cell(reported))
        print(f"| {name} | {data.n_levels:,} | {' | '.join(shown)} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=500)
    parser.add_argument("--first-seed", type=int, default=20_000)
    parser.add_argument("--data", type=Path, help="folder of the real data")
    parser.add_argument("--splits", type=int, default=40, help="random splits of the real data")
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.simulations)
    print(f"Seeds {seeds[0]} to {seeds[-1]}, ± the standard error.\n")
    print_size(seeds)
    print()
    print_power(seeds)
    if given.data is not None:
        print()
        print_real(given.data, given.splits)


if __name__ == "__main__":
    main()
