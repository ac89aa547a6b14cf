"""Levels that have no target yet, by how many rows they have.

    python examples/cold_start.py DATA_FOLDER STORE [FIRST_SEED]

A fifth of the levels is held out whole, and a quarter of the rows of the others. The held-out levels are
encoded in parts of 1, 2, 5, 10 and 50 rows, and the squared error on them, and on the new rows of known
levels, is stored as a percentage of the error without the column (five draws of the levels; seeds 200 to 204
unless FIRST_SEED is given). "prior" gives new levels the vector of an average level, "estimate" the vector
that their own rows say, and "cold start" is `sufrep.ColdStartEstimator`. LightGBM and CatBoost treat the
column as categorical. Finished draws are kept in STORE, a file of JSON lines, and are not computed again; the
table of all of them is printed at the end. Data as in examples/new_levels.py.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder
from xgboost import XGBRegressor

from new_levels import MOST_ROWS, XGBOOST, tables
from sufrep import (
    ColdStartEstimator,
    LatentStateEncoder,
    LowRankEncoder,
    MeansEncoder,
    RandomInterceptEncoder,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

SIZES = (1, 2, 5, 10, 50)
ENCODERS: dict[str, Any] = {
    "means": MeansEncoder("group"),
    "shrunken means": MeansEncoder("group", shrinkage="auto"),
    "low rank": LowRankEncoder("group", shrinkage="auto"),
    "hidden states": LatentStateEncoder("group"),
    "shrunken means, target": MeansEncoder("group", shrinkage="auto", use_target=True),
    "random intercept": RandomInterceptEncoder("group"),
}


def draw(X: pd.DataFrame, y: NDArray[Any], seed: int) -> dict[str, dict[str, float]]:
    """Errors of every method, in percent of dropping the column, by the rows of the new level."""
    rng = np.random.default_rng(seed)
    codes = pd.factorize(X["group"])[0]
    order = rng.permutation(codes.max() + 1)
    counts = np.bincount(codes)[order]
    chosen = order[: max(10, int(np.searchsorted(np.cumsum(counts), MOST_ROWS)))]
    rows = np.isin(codes, chosen)
    X, y, codes = X[rows].reset_index(drop=True), y[rows], codes[rows]
    new = np.isin(codes, chosen[: max(1, len(chosen) // 5)])
    known = ~new & (rng.random(len(y)) < 0.25)
    train = ~new & ~known
    tests = {"known": X[known], **{str(size): parts(X, codes, new, size, rng) for size in SIZES}}
    tests = {name: test for name, test in tests.items() if len(test)}
    dropped = XGBRegressor(**XGBOOST, random_state=seed).fit(X[train].drop(columns="group"), y[train])
    without = {name: error(dropped, test.drop(columns="group"), y) for name, test in tests.items()}
    return {
        method: {name: 100 * error(model, test, y) / without[name] for name, test in tests.items()}
        for method, model in models(X[train], y[train], seed)
    }


def parts(
    X: pd.DataFrame, codes: NDArray[Any], new: NDArray[Any], size: int, rng: np.random.Generator
) -> pd.DataFrame:
    """The rows of the new levels, in parts of so many rows, each of which is a level."""
    found = []
    for level in np.unique(codes[new]):
        rows = rng.permutation(np.flatnonzero(codes == level))
        rows = rows[: len(rows) // size * size]
        found.append(X.iloc[rows].assign(group=[f"{level} part {i // size}" for i in range(len(rows))]))
    return pd.concat(found)


def error(model: Any, test: pd.DataFrame, y: NDArray[Any]) -> float:
    """Mean squared error on some rows."""
    return float(np.mean((model.predict(test) - y[test.index]) ** 2))


def models(X: pd.DataFrame, y: NDArray[Any], seed: int) -> Iterator[tuple[str, Any]]:
    """Name and fitted model of every method."""
    learner = XGBRegressor(**XGBOOST, random_state=seed)
    yield "TargetEncoder", TargetEncoded(learner, seed).fit(X, y)
    yield "LightGBM", Native("lightgbm", seed).fit(X, y)
    yield "CatBoost", Native("catboost", seed).fit(X, y)
    for name, encoder in ENCODERS.items():
        pipeline = make_pipeline(clone(encoder), learner).fit(X, y)
        pipeline[0].set_params(unseen="prior")
        yield f"{name}, prior", pipeline
        pipeline[0].set_params(unseen="estimate")
        yield f"{name}, estimate", pipeline
        yield f"{name}, cold start", ColdStartEstimator(clone(encoder), learner, random_state=seed).fit(X, y)


class TargetEncoded:
    """scikit-learn's TargetEncoder and a learner."""

    def __init__(self, learner: Any, seed: int) -> None:
        self.encoder = TargetEncoder(target_type="continuous", random_state=seed)
        self.learner = clone(learner)

    def fit(self, X: pd.DataFrame, y: NDArray[Any]) -> TargetEncoded:
        """Fit both to training rows."""
        encoded = self.encoder.fit_transform(X[["group"]], y)
        self.learner.fit(np.column_stack([X.drop(columns="group"), encoded]), y)
        return self

    def predict(self, X: pd.DataFrame) -> NDArray[Any]:
        """Predict new rows."""
        columns = [X.drop(columns="group"), self.encoder.transform(X[["group"]])]
        return np.asarray(self.learner.predict(np.column_stack(columns)))


class Native:
    """LightGBM or CatBoost with the column as a categorical one, with as many trees as xgboost."""

    def __init__(self, library: str, seed: int) -> None:
        if library == "lightgbm":
            from lightgbm import LGBMRegressor

            self.model: Any = LGBMRegressor(
                n_estimators=100, learning_rate=0.2, max_depth=4, n_jobs=1, random_state=seed, verbose=-1
            )
        else:
            from catboost import CatBoostRegressor

            self.model = CatBoostRegressor(
                iterations=100,
                learning_rate=0.2,
                depth=4,
                thread_count=1,
                random_seed=seed,
                verbose=False,
                cat_features=["group"],
                allow_writing_files=False,
            )
        self.library = library

    def fit(self, X: pd.DataFrame, y: NDArray[Any]) -> Native:
        """Fit to training rows."""
        self.levels = X["group"].unique()
        self.model.fit(self._typed(X), y)
        return self

    def predict(self, X: pd.DataFrame) -> NDArray[Any]:
        """Predict new rows."""
        return np.asarray(self.model.predict(self._typed(X)))

    def _typed(self, X: pd.DataFrame) -> pd.DataFrame:
        if self.library == "lightgbm":
            return X.assign(group=pd.Categorical(X["group"], categories=self.levels))
        return X.assign(group=X["group"].astype(str))


def main() -> None:
    """Compute the draws that are not in the store yet, and print the table."""
    warnings.simplefilter("ignore")
    folder, store = Path(sys.argv[1]), Path(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    found = read(store)
    for seed in range(first, first + 5):
        for name, X, y in tables(folder, seed):
            if not any(one["data"] == name and one["seed"] == seed for one in found):
                record = {"data": name, "seed": seed, "errors": draw(X, y, seed)}
                found.append(record)
                with store.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    print(table([one for one in found if first <= one["seed"] < first + 5]))


def read(store: Path) -> list[dict[str, Any]]:
    """The finished draws."""
    return [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []


def long_table(records: list[dict[str, Any]]) -> pd.DataFrame:
    """One row for each data set, method, number of rows and draw."""
    return pd.DataFrame(
        [
            {"data": one["data"], "seed": one["seed"], "method": method, "rows": rows, "error": value}
            for one in records
            for method, by_rows in one["errors"].items()
            for rows, value in by_rows.items()
        ]
    )


def table(records: list[dict[str, Any]]) -> str:
    """A markdown table of means over the draws and their standard errors."""
    found = long_table(records).groupby(["data", "method", "rows"], sort=False)["error"].agg(["mean", "sem"])
    columns = ["known", *map(str, SIZES)]
    lines = ["| data | method | " + " | ".join(columns) + " |", "|" + "---|" * (len(columns) + 2)]
    for (data, method), part in found.groupby(level=[0, 1], sort=False):
        cells = part.droplevel([0, 1])
        values = [
            f"{cells.loc[name, 'mean']:.0f} ± {cells.loc[name, 'sem']:.0f}" if name in cells.index else ""
            for name in columns
        ]
        lines.append(f"| {data} | {method} | " + " | ".join(values) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
