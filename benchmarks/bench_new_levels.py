"""New levels: time of `transform` with ``unseen="estimate"``, and cost of `ColdStartEstimator`."""

from __future__ import annotations

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline

from benchmarks.measure import Result, alternate, milliseconds
from sufrep import ColdStartEstimator, LatentStateEncoder, LowRankEncoder, MeansEncoder, simulate

ROWS, LEVELS, COVARIATES = 1_000_000, 10_000, 10
ENCODERS = {
    "means": lambda unseen: MeansEncoder("group", unseen=unseen),
    "shrunken means": lambda unseen: MeansEncoder("group", unseen=unseen, shrinkage="auto"),
    "low rank": lambda unseen: LowRankEncoder("group", unseen=unseen, n_components=5),
    "hidden states": lambda unseen: LatentStateEncoder("group", unseen=unseen, n_states=5, n_starts=1),
}


def results(repeats: int) -> list[Result]:
    return [*transform_results(repeats), cold_start_result(repeats)]


def table(seed: int, *, share_new: float) -> pl.DataFrame:
    """Rows of known levels and, as many levels to a row as of these, of new ones."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, LEVELS, ROWS)
    level[rng.random(ROWS) < share_new] += LEVELS
    columns = {f"x{j}": rng.normal(size=ROWS) + level % (j + 2) for j in range(COVARIATES)}
    return pl.DataFrame({**columns, "group": level.astype(str)})


def transform_results(repeats: int) -> list[Result]:
    """Time with the estimate against that with the prior, with and without new levels."""
    known, some_new, found = table(0, share_new=0.0), table(1, share_new=0.1), []
    for name, make in ENCODERS.items():
        fit_rows = known.head(100_000) if name == "hidden states" else known
        estimate, prior = make("estimate").fit(fit_rows), make("prior").fit(fit_rows)
        for rows, share, goal in ((some_new, "10 %", 1.5), (known, "none", 1.05)):
            seconds = alternate(
                {
                    "ours": lambda e=estimate, r=rows: e.transform(r),
                    "prior": lambda e=prior, r=rows: e.transform(r),
                },
                repeats,
            )
            ratio = seconds["ours"] / seconds["prior"]
            found.append(
                Result(
                    f"transform, {name}, {ROWS:,} rows, {share} of new levels",
                    milliseconds(seconds["ours"]),
                    f"with the prior {milliseconds(seconds['prior'])}",
                    ratio,
                    f"at most {goal:g} x",
                    ratio <= goal,
                )
            )
    return found


def cold_start_result(repeats: int) -> Result:
    """Time to fit against that of a pipeline of encoder and learner."""
    sample = simulate("latent_linear", n=10_000, n_latent=5, seed=0)
    X = pl.DataFrame(sample.columns())
    learner = HistGradientBoostingRegressor(random_state=0)
    encoder = MeansEncoder("group", shrinkage="auto")
    seconds = alternate(
        {
            "ours": lambda: ColdStartEstimator(encoder, learner).fit(X, sample.y),
            "pipeline": lambda: make_pipeline(encoder, learner).fit(X, sample.y),
        },
        repeats,
    )
    ratio = seconds["ours"] / seconds["pipeline"]
    return Result(
        "cold start, 10,000 rows, 20 covariates, 500 levels",
        milliseconds(seconds["ours"]),
        f"pipeline {milliseconds(seconds['pipeline'])}",
        ratio,
        "at most 8 x",
        ratio <= 8,
    )
