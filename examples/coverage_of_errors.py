"""How often 95 % intervals around the vectors of levels contain the true vector.

    python examples/coverage_of_errors.py [N_SEEDS]

prints the table of docs/results/promises.md: coverage of vector ± 1.96 standard errors
(``table(errors=True)``), over all entries and levels, and over the levels with fewer than ten rows; means
over samples (seeds 0, 1, …; 20 by default) and their standard errors. A sample has 200 levels (in the last
column 50) with 2 to about 100 rows, drawn so that the true vectors are known: those that endless rows of
every level would give, with directions, scales and states as they were learnt.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.special import expit

from sufrep import (
    LatentStateEncoder,
    LowRankEncoder,
    MeansEncoder,
    MixedModelEncoder,
    MNLEncoder,
    RandomInterceptEncoder,
    SparseLowRankEncoder,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MANY, SOME = 200, 50  # levels
N_COVARIATES, FEW = 4, 10
N_STATES = 3


@dataclass(frozen=True)
class Sample:
    """Rows, their target, and the truth about their levels."""

    X: pd.DataFrame
    y: NDArray[Any]
    truth: NDArray[Any]  # true means of covariates and target, or whatever the vectors estimate


def level_of_rows(rng: np.random.Generator, n_levels: int) -> NDArray[Any]:
    """The level of each row: from 2 to about 100 rows in each."""
    return np.repeat(np.arange(n_levels), 2 + rng.exponential(20, n_levels).astype(int))


def frame(g: NDArray[Any], x: NDArray[Any]) -> pd.DataFrame:
    """Rows as a frame; levels are sorted as they are numbered."""
    columns = {f"x{j}": x[:, j] for j in range(x.shape[1])}
    return pd.DataFrame({"g": [f"{level:03d}" for level in g], **columns})


def covariance(rng: np.random.Generator, p: int) -> NDArray[Any]:
    """A random covariance matrix of variances about 1."""
    root = rng.normal(size=(p, 2 * p)) / np.sqrt(2 * p)
    return np.asarray(root @ root.T)


def means_sample(
    rng: np.random.Generator,
    n_levels: int,
    *,
    nulls: float = 0.0,
    skewed: bool = False,
    classes: bool = False,
) -> Sample:
    """Level means with a normal distribution over the levels, half as large as the spread within them."""
    g, p = level_of_rows(rng, n_levels), N_COVARIATES + 1
    center = rng.normal(size=p)
    omega = center + rng.multivariate_normal(np.zeros(p), 0.25 * covariance(rng, p), n_levels)
    noise = rng.exponential(size=(len(g), p)) - 1 if skewed else rng.normal(size=(len(g), p))
    rows = omega[g] + noise @ np.linalg.cholesky(covariance(rng, p)).T
    x, y, truth = rows[:, :-1], rows[:, -1], omega
    if classes:
        share = expit(omega[:, -1])
        y, truth = (rng.random(len(g)) < share[g]).astype(int), np.column_stack([omega[:, :-1], share])
    x[rng.random(x.shape) < nulls] = np.nan
    return Sample(frame(g, x), y, truth)


def nested_sample(rng: np.random.Generator, n_levels: int) -> Sample:
    """Level means that are normal around those of ten parents."""
    g, p, n_parents = level_of_rows(rng, n_levels), N_COVARIATES + 1, 10
    parent = rng.integers(0, n_parents, n_levels)
    centers = rng.multivariate_normal(np.zeros(p), 0.5 * covariance(rng, p), n_parents)
    omega = centers[parent] + rng.multivariate_normal(np.zeros(p), 0.1 * covariance(rng, p), n_levels)
    rows = omega[g] + rng.normal(size=(len(g), p)) @ np.linalg.cholesky(covariance(rng, p)).T
    X = frame(g, rows[:, :-1]).assign(parent=[f"p{number}" for number in parent[g]])
    return Sample(X, rows[:, -1], omega)


def intercepts_sample(rng: np.random.Generator, n_levels: int) -> Sample:
    """A random intercept next to a curve in the covariates."""
    g = level_of_rows(rng, n_levels)
    z, u = rng.normal(size=(len(g), 2)), 0.5 * rng.normal(size=n_levels)
    y = u[g] + np.abs(z[:, 0]) - z[:, 1] + rng.normal(size=len(g))
    return Sample(frame(g, z), y, u[:, None] - u[g].mean())  # relative to the average row, as residuals are


def slopes_sample(rng: np.random.Generator, n_levels: int) -> Sample:
    """A regression in every level: intercepts and first slopes differ, second slopes do not."""
    g = level_of_rows(rng, n_levels)
    z = rng.normal(size=(len(g), 2))
    z = (z - z.mean(axis=0)) / z.std(axis=0)  # the slopes that are estimated are those of the sample's scores
    beta = np.array([3.0, 1.0, -1.0]) + rng.normal(size=(n_levels, 3)) * [0.5, 0.3, 0.0]
    y = beta[g, 0] + (z * beta[g, 1:]).sum(axis=1) + rng.normal(size=len(g))
    return Sample(frame(g, z), y, beta)


def logit_sample(rng: np.random.Generator, n_levels: int) -> Sample:
    """Normal covariates with the same covariance in all levels, whose sizes are random."""
    p = N_COVARIATES
    size = 20 + rng.exponential(60, n_levels)
    g = np.sort(rng.choice(n_levels, int(size.sum()), p=size / size.sum()))
    omega, within = 0.5 * rng.normal(size=(n_levels, p)), covariance(rng, p) + 0.3 * np.eye(p)
    x = omega[g] + rng.multivariate_normal(np.zeros(p), within, len(g))
    slopes = omega @ np.linalg.inv(within)
    intercepts = np.log(size) - (omega * slopes).sum(axis=1) / 2
    truth = np.column_stack([intercepts, slopes])
    return Sample(frame(g, x), np.zeros(len(g)), truth - truth.mean(axis=0))


def states_sample(rng: np.random.Generator, n_levels: int, *, alpha: float = 1.5) -> Sample:
    """Hidden states that overlap, with shares from a Dirichlet distribution."""
    g, center = level_of_rows(rng, n_levels), 2.5 * np.eye(N_STATES, N_COVARIATES)
    shares = rng.dirichlet(np.full(N_STATES, alpha), n_levels)
    state = (rng.random(len(g))[:, None] > np.cumsum(shares, axis=1)[g]).sum(axis=1).clip(0, N_STATES - 1)
    x = center[state] + rng.normal(size=(len(g), N_COVARIATES))
    return Sample(frame(g, x), state + 0.5 * rng.normal(size=len(g)), shares)


def same(_encoder: Any, truth: NDArray[Any]) -> NDArray[Any]:
    """The truth is what the vectors estimate."""
    return truth


def without_target(_encoder: Any, truth: NDArray[Any]) -> NDArray[Any]:
    """The true means of the covariates."""
    return truth[:, :-1]


def projected(encoder: Any, truth: NDArray[Any]) -> NDArray[Any]:
    """The true means on the directions that were learnt."""
    rule = encoder.new_levels_["g"]
    offset = 0.0 if rule.offset is None else rule.offset
    return np.asarray(truth[:, rule.outputs] @ rule.matrix + offset)


def matched(encoder: Any, truth: NDArray[Any]) -> NDArray[Any]:
    """The true shares, in the order of the states that were found."""
    found = encoder.representations_["g"].values
    return truth[:, linear_sum_assignment(-found.T @ truth)[1]]


CASES: dict[str, tuple[Any, Callable[[np.random.Generator, int], Sample], Callable[..., Any]]] = {
    "means": (MeansEncoder("g"), means_sample, without_target),
    "means, skewed covariates": (
        MeansEncoder("g"),
        lambda rng, n: means_sample(rng, n, skewed=True),
        without_target,
    ),
    "means, 30 % nulls": (MeansEncoder("g"), lambda rng, n: means_sample(rng, n, nulls=0.3), without_target),
    "means, `leave_one_out`": (MeansEncoder("g", leave_one_out=True), means_sample, without_target),
    "shrunken means": (MeansEncoder("g", shrinkage="auto"), means_sample, without_target),
    "shrunken means, 30 % nulls": (
        MeansEncoder("g", shrinkage="auto"),
        lambda rng, n: means_sample(rng, n, nulls=0.3),
        without_target,
    ),
    "means, target": (MeansEncoder("g", use_target=True), means_sample, same),
    "means, target of two classes": (
        MeansEncoder("g", use_target=True),
        lambda rng, n: means_sample(rng, n, classes=True),
        same,
    ),
    "shrunken means, target": (MeansEncoder("g", use_target=True, shrinkage="auto"), means_sample, same),
    "shrunken means, parents": (
        MeansEncoder("g", shrinkage="auto", parent={"g": "parent"}),
        nested_sample,
        without_target,
    ),
    "target, parents": (
        MeansEncoder("g", covariates=[], use_target=True, parent={"g": "parent"}),
        nested_sample,
        lambda _, truth: truth[:, -1:],
    ),
    "low rank": (LowRankEncoder("g", n_components=2), means_sample, projected),
    "low rank, shrunken": (LowRankEncoder("g", n_components=2, shrinkage="auto"), means_sample, projected),
    "low rank, target": (LowRankEncoder("g", n_components=2, use_target=True), means_sample, projected),
    "sparse low rank": (SparseLowRankEncoder("g", n_components=2), means_sample, projected),
    "multinomial logit, closed form": (MNLEncoder("g", solver="lda"), logit_sample, same),
    "multinomial logit": (MNLEncoder("g"), logit_sample, same),
    "hidden states": (LatentStateEncoder("g", n_states=N_STATES), states_sample, matched),
    "hidden states, nearly pure levels": (
        LatentStateEncoder("g", n_states=N_STATES),
        lambda rng, n: states_sample(rng, n, alpha=0.3),
        matched,
    ),
    "hidden states, target": (
        LatentStateEncoder("g", n_states=N_STATES, use_target=True),
        states_sample,
        matched,
    ),
    "random intercept": (RandomInterceptEncoder("g"), intercepts_sample, same),
    "mixed model": (MixedModelEncoder("g"), slopes_sample, same),
}


def coverage(case: str, n_levels: int, seed: int) -> tuple[float, float]:
    """Share of the intervals that contain the truth: of all levels, and of those with few rows."""
    encoder, draw, truth_of = CASES[case]
    sample = draw(np.random.default_rng(seed), n_levels)
    table = encoder.fit(sample.X, sample.y).table(library="pandas", errors=True)
    values = encoder.representations_["g"].values
    errors = table.iloc[:, -values.shape[1] :].to_numpy()
    levels = table["g"].astype(int).to_numpy()
    inside = np.abs(values - truth_of(encoder, sample.truth)[levels]) <= 1.96 * errors
    few = table["weight"].to_numpy() < FEW
    return float(inside.mean()), float(inside[few].mean()) if few.any() else np.nan


def main() -> None:
    """Print a table, one row for each encoder."""
    warnings.simplefilter("ignore")
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    chosen = sys.argv[2:] or list(CASES)
    print(f"| vectors | coverage, % | levels with fewer than {FEW} rows | {SOME} levels |\n|---|---|---|---|")
    for case in chosen:
        found = 100 * np.array([coverage(case, MANY, seed) for seed in range(n_seeds)])
        some = 100 * np.array([coverage(case, SOME, seed)[:1] for seed in range(n_seeds)])
        found = np.hstack([found, some])
        mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(n_seeds)
        cells = [f"{m:.1f} ± {e:.1f}" if np.isfinite(m) else "none" for m, e in zip(mean, error, strict=True)]
        print(f"| {case} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
