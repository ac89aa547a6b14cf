"""Levels that have no target yet: a fifth of the levels is held out whole.

    python examples/new_levels.py DATA_FOLDER [--first-seed 100] [METHOD ...]

prints a table of docs/results/new-levels.md: squared errors of xgboost on the rows of levels that training
did not see, in percent of dropping the column (means over five draws of the levels, and their standard
errors). "prior" gives new levels the vector of an average level, "estimate" the vector that their own rows
say, and "cold start" is `sufrep.ColdStartEstimator`. Tables with more than 20,000 rows are cut to whole
levels with about as many. DATA_FOLDER is that of `sufrep.datasets`, with wages.csv.gz in its folder
sigrist2023.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.preprocessing import TargetEncoder
from xgboost import XGBRegressor

from sufrep import (
    ColdStartEstimator,
    LatentStateEncoder,
    LowRankEncoder,
    MeansEncoder,
    SufficientEncoder,
    datasets,
    simulate,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

N_DRAWS = 5
MOST_ROWS = 20_000
XGBOOST = {"n_estimators": 100, "learning_rate": 0.2, "max_depth": 4, "n_jobs": 1}
ENCODERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "means": (MeansEncoder, {}),
    "shrunken means": (MeansEncoder, {"shrinkage": "auto"}),
    "low rank": (LowRankEncoder, {}),
    "hidden states": (LatentStateEncoder, {}),
    "shrunken means, target": (MeansEncoder, {"shrinkage": "auto", "use_target": True}),
    "sufficient": (SufficientEncoder, {"estimator": XGBRegressor(**XGBOOST)}),
}


def tables(folder: Path, seed: int) -> Iterator[tuple[str, pd.DataFrame, NDArray[Any]]]:
    """Name, covariates with the column "group", and target."""
    for setup, n_latent in (("latent_linear", 5), ("global_linear", 10)):
        sample = simulate(setup, n_latent=n_latent, levels_per_latent=100, seed=seed)
        yield setup, pd.DataFrame(sample.columns()), sample.y
    for name in ("king_county", "orange_juice", "insteval", "county_murders"):
        data = datasets.load_dataset(name, folder)
        X = pd.DataFrame(np.asarray(data.X), columns=list(data.covariates))
        X = X.assign(group=np.asarray(data.labels).astype(str))
        yield name, X, np.asarray(data.y, dtype=float)
        if name == "king_county":
            yield (
                "king_county without coordinates",
                X.drop(columns=["lat", "long"]),
                np.asarray(data.y, float),
            )
    wages = pd.read_csv(folder / "sigrist2023" / "wages.csv.gz").rename(columns={"idcode": "group"})
    y = wages.pop("ln_wage").to_numpy(dtype=float)
    yield "wages", wages.drop(columns="t").astype({"group": str}), y


def errors(X: pd.DataFrame, y: NDArray[Any], seed: int, methods: Sequence[str]) -> dict[str, float]:
    """Errors on new levels, in percent of dropping the column."""
    rng = np.random.default_rng(seed)
    codes = pd.factorize(X["group"])[0]
    order = rng.permutation(codes.max() + 1)
    counts = np.bincount(codes)[order]
    chosen = order[: max(10, int(np.searchsorted(np.cumsum(counts), MOST_ROWS)))]
    rows = np.isin(codes, chosen)
    X, y, codes = X[rows].reset_index(drop=True), y[rows], codes[rows]
    new = np.isin(codes, chosen[: max(1, len(chosen) // 5)])
    numbers = X.drop(columns="group")

    def error(train: Any, test: Any) -> float:
        model = XGBRegressor(**XGBOOST, random_state=seed).fit(np.asarray(train, float), y[~new])
        return float(np.mean((model.predict(np.asarray(test, float)) - y[new]) ** 2))

    dropped = error(numbers[~new], numbers[new])
    target = TargetEncoder(target_type="continuous", random_state=seed)
    inside = target.fit_transform(X.loc[~new, ["group"]], y[~new])
    outside = target.transform(X.loc[new, ["group"]])
    columns = ([numbers[~new], inside], [numbers[new], outside])
    found = {"TargetEncoder": error(*map(np.column_stack, columns))}
    learner = XGBRegressor(**XGBOOST, random_state=seed)
    for name in methods:
        kind, options = ENCODERS[name]
        encoder = kind("group", **options, **({"cv": 5} if "target" in name else {}))
        expecting = ColdStartEstimator(clone(encoder), learner, random_state=seed).fit(X[~new], y[~new])
        found[f"{name}, cold start"] = float(np.mean((expecting.predict(X[new]) - y[new]) ** 2))
        inside = encoder.fit_transform(X[~new], y[~new])
        for unseen in ("prior", "estimate"):
            found[f"{name}, {unseen}"] = error(inside, encoder.set_params(unseen=unseen).transform(X[new]))
    return {name: 100 * value / dropped for name, value in found.items()}


def main() -> None:
    """Print a table, one row for each data set."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("methods", nargs="*", help=", ".join(ENCODERS))
    parser.add_argument("--first-seed", type=int, default=100)
    options = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    found: dict[str, list[dict[str, float]]] = {}
    for seed in range(options.first_seed, options.first_seed + N_DRAWS):
        for name, X, y in tables(options.folder, seed):
            found.setdefault(name, []).append(errors(X, y, seed, options.methods or list(ENCODERS)))
            print(seed, name, {key: round(value) for key, value in found[name][-1].items()}, file=sys.stderr)
    methods = list(found["latent_linear"][0])
    print("| | " + " | ".join(methods) + " |\n|" + "---|" * (len(methods) + 1))
    for name, draws in found.items():
        values = pd.DataFrame(draws)[methods]
        cells = [f"{mean:.0f} ± {error:.0f}" for mean, error in zip(values.mean(), values.sem(), strict=True)]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
