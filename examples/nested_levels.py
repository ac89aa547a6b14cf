"""Levels inside others: what `parent` gains, and that it costs nothing where the parent says nothing.

    python examples/nested_levels.py DATA_FOLDER

prints the table of docs/results/new-levels.md: squared errors of xgboost with shrunken means and the target,
in percent of those without the column that contains the levels. "parent" shrinks levels towards it; "two
groups" encodes it as another group; the last way does both. A fifth of the levels is held out whole ("new
levels"), and half of the rows of the others ("new rows"). Means over five draws, seeds 300 to 304, and their
standard errors. DATA_FOLDER is that of `sufrep.datasets`.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from xgboost import XGBRegressor

from sufrep import MeansEncoder, datasets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SEEDS = range(300, 305)
XGBOOST = {"n_estimators": 100, "learning_rate": 0.2, "max_depth": 4, "n_jobs": 1}
WAYS: dict[str, dict[str, Any]] = {
    "alone": {"group": "group"},
    "parent": {"group": "group", "parent": {"group": "parent"}},
    "two groups": {"group": ["group", "parent"]},
    "two groups, parent": {"group": ["group", "parent"], "parent": {"group": "parent"}},
}


def simulated(seed: int, *, n_levels: int = 400, n_parents: int = 40, nested: bool) -> pd.DataFrame:
    """About six rows per level; the mean of a level differs from that of its parent, if it is nested."""
    rng = np.random.default_rng(seed)
    parent = rng.integers(0, n_parents, n_levels)
    loadings = rng.normal(size=(3, 6))
    above = rng.normal(size=(n_parents, 3))[parent] if nested else 0.0
    hidden = above + 0.5 * rng.normal(size=(n_levels, 3))
    level = np.repeat(np.arange(n_levels), 1 + rng.geometric(1 / 5, n_levels))
    X = pd.DataFrame(hidden[level] @ loadings / 2 + 2 * rng.normal(size=(len(level), 6))).add_prefix("x")
    y = hidden[level].sum(axis=1) + 0.5 * X["x0"] + rng.normal(size=len(level))
    return X.assign(group=level.astype(str), parent=parent[level].astype(str), y=y)


def murders(folder: Path, *, most_rows: int = 37_349, seed: int = 0) -> pd.DataFrame:
    """Murder rates by county and year; a county is in a state. With fewer rows, some of each county."""
    data = datasets.load_dataset("county_murders", folder)
    X = pd.DataFrame(np.asarray(data.X), columns=list(data.covariates)).drop(columns="statefips")
    county = np.asarray(data.labels).astype(int)
    X = X.assign(group=county.astype(str), parent=(county // 1000).astype(str), y=np.asarray(data.y, float))
    return X.sample(min(most_rows, len(X)), random_state=seed).reset_index(drop=True)


def tables(folder: Path, seed: int) -> Iterator[tuple[str, pd.DataFrame]]:
    """Name, and a table with the columns "group", "parent" and "y"."""
    rng = np.random.default_rng(seed)
    nested = simulated(seed, nested=True)
    yield "simulated, nested", nested
    yield "simulated, the parent says nothing", simulated(seed, nested=False)
    few = murders(folder, most_rows=8_000, seed=seed)
    yield "county in state, 8,000 rows", few
    codes, counties = pd.factorize(few["group"])
    yield "county in random states, 8,000 rows", few.assign(parent=rng.integers(0, 50, len(counties))[codes])
    yield "county in state, all rows", murders(folder)


def ratios(table: pd.DataFrame, seed: int) -> dict[str, float]:
    """Errors of each way to use the parent, in percent of those without it."""
    rng = np.random.default_rng(seed)
    codes, levels = pd.factorize(table["group"])
    test = np.isin(codes, rng.permutation(len(levels))[: len(levels) // 5]) | (rng.random(len(table)) < 0.5)
    # A level may also be new because none of its rows is a training row.
    is_new = ~np.isin(codes[test], codes[~test])
    y, X = table["y"].to_numpy(), table.drop(columns="y")
    covariates = [str(name) for name in X if name not in ("group", "parent")]
    found: dict[str, NDArray[Any]] = {}
    for name, options in WAYS.items():
        encoder = MeansEncoder(**options, covariates=covariates, shrinkage="auto", use_target=True, cv=5)
        train = encoder.fit_transform(X[~test], y[~test])
        # The parent itself, where it passes through, is no covariate of the model.
        kept = [place for place, name in enumerate(encoder.get_feature_names_out()) if name != "parent"]
        model = XGBRegressor(**XGBOOST, random_state=seed)
        model.fit(np.asarray(train[:, kept], dtype=float), y[~test])
        new = np.asarray(encoder.transform(X[test])[:, kept], dtype=float)
        found[name] = (model.predict(new) - y[test]) ** 2
    alone = found.pop("alone")
    return {
        f"{where}: {name}": 100 * squares[rows].mean() / alone[rows].mean()
        for where, rows in (("new rows", ~is_new), ("new levels", is_new))
        for name, squares in found.items()
    }


def main() -> None:
    """Print a table, one row for each data set."""
    warnings.simplefilter("ignore")
    found: dict[str, list[dict[str, float]]] = {}
    for seed in SEEDS:
        for name, table in tables(Path(sys.argv[1]), seed):
            found.setdefault(name, []).append(ratios(table, seed))
            shown = {key: round(float(value), 1) for key, value in found[name][-1].items()}
            print(seed, name, shown, file=sys.stderr)
    columns = list(next(iter(found.values()))[0])
    print("| | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, draws in found.items():
        values = pd.DataFrame(draws)
        cells = [f"{mean:.1f} ± {error:.1f}" for mean, error in zip(values.mean(), values.sem(), strict=True)]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
