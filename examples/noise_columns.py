"""What `SufficientEncoder` costs where a column says nothing, and what it gains where it says little.

    python examples/noise_columns.py DATA [results.jsonl]

Rows of four real tables (DATA is the folder of ``sufrep.datasets``) get a group column of random levels, half
of the samples with about 20 rows a level and half with about 5. In "noise" it says nothing; in "weak" each
level adds an effect to the target, with a tenth of its standard deviation. xgboost is the judge, and predicts
new rows afterwards. The table of docs/results/promises.md: how often the column is dropped, and the squared
error in percent of dropping it always. Samples that the file already has are not run again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from xgboost import XGBRegressor

from sufrep import SufficientEncoder
from sufrep.datasets import load_dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

TABLES = ("king_county", "ames_full", "orange_juice", "county_murders")
EFFECTS = {"noise": 0.0, "weak": 0.1}
SIZES = (400, 2_000, 10_000)
SEEDS = range(5_000, 5_028)
MOST_NEW_ROWS = 5_000


def tables(folder: str) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Return numeric columns and target of each table, without its own group column."""
    found = {}
    for name in TABLES:
        table = load_dataset(name, folder)
        found[name] = np.asarray(table.X, dtype=float), np.asarray(table.y, dtype=float)
    return found


def measure(X: NDArray[Any], y: NDArray[Any], n: int, effect: float, seed: int) -> dict[str, Any]:
    """Return errors on new rows with the column and without it, and what was chosen."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[: n + MOST_NEW_ROWS]
    n_levels = n // (20 if seed % 8 < 4 else 5)
    level = rng.integers(0, n_levels, len(rows))
    target = y[rows] + effect * y.std() * rng.normal(size=n_levels)[level]
    table = np.column_stack([X[rows], level])
    learner = XGBRegressor(n_estimators=100, learning_rate=0.2, max_depth=4, n_jobs=1, random_state=0)
    found: dict[str, Any] = {}
    for name, families in {"chosen": ("description", "prediction"), "dropped": ()}.items():
        encoder = SufficientEncoder(
            X.shape[1], estimator=learner, families=families, target_type="continuous"
        )
        known = encoder.fit_transform(table[:n], target[:n])
        predicted = learner.fit(known, target[:n]).predict(encoder.transform(table[n:]))
        found[name] = float(np.mean((predicted - target[n:]) ** 2))
        found["components"] = found.get("components", list(encoder.chosen_))
    return found


def print_table(records: list[dict[str, Any]]) -> None:
    """Print a row for each size and a column for each kind of effect."""
    print("| rows | " + " | ".join(EFFECTS) + " |\n" + "|---" * (1 + len(EFFECTS)) + "|")
    for n in SIZES:
        cells = []
        for kind in EFFECTS:
            some = [item for item in records if item["n"] == n and item["kind"] == kind]
            percent = np.array([100 * item["chosen"] / item["dropped"] for item in some])
            dropped = sum(not item["components"] for item in some)
            error = percent.std(ddof=1) / np.sqrt(len(some)) if len(some) > 1 else np.nan
            cells.append(f"dropped {dropped} of {len(some)}, error {percent.mean():.1f} ± {error:.1f} %")
        print(f"| {n:,} | " + " | ".join(cells) + " |")


def main() -> None:
    """Run what is missing, and print the table."""
    folder, store = sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "noise_columns.jsonl")
    records = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    done = {(item["n"], item["kind"], item["seed"]) for item in records}
    data = tables(folder)
    with store.open("a") as file:
        for n in SIZES:
            for seed in SEEDS:
                name = TABLES[seed % len(TABLES)]
                for kind, effect in EFFECTS.items():
                    if (n, kind, seed) in done or len(data[name][1]) < n + 200:
                        continue
                    cell = {"n": n, "kind": kind, "seed": seed, "table": name}
                    records.append({**cell, **measure(*data[name], n, effect, seed)})
                    file.write(json.dumps(records[-1]) + "\n")
                    file.flush()
    print_table(records)


if __name__ == "__main__":
    main()
