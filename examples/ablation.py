"""What each part of `SufficientEncoder` is worth: its components, and its two decisions.

    python examples/ablation.py DATA [results.jsonl]

The data sets of the benchmark (DATA is the folder of ``sufrep.datasets``), five folds each with a seed of
their own, xgboost as judge and learner. Squared errors on the test rows in percent of dropping the column,
for the choice, for all components together, for all but one, for each family, and for the choice without one
of its decisions. Folds that the file already has are not run again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from xgboost import XGBRegressor

from sufrep import SufficientEncoder
from sufrep._splits import level_folds
from sufrep.datasets import load_dataset
from sufrep.encoders._judging import CANDIDATES, COMPONENTS, DROP

DATASETS = (*("pakistan", "ames", "ames_full", "king_county", "insteval", "county_murders", "orange_juice"),)
SEED = 8


def measure(X: Any, y: Any, codes: Any, test: Any) -> dict[str, float]:
    """Return the errors of all variants on the test rows."""
    table = np.column_stack([X, codes])
    learner = XGBRegressor(n_estimators=100, learning_rate=0.2, max_depth=4, n_jobs=1, random_state=SEED)
    encoder = SufficientEncoder(X.shape[1], estimator=learner, target_type="continuous")
    encoder.fit(table[~test], y[~test])
    report = encoder.report_["candidates"]
    smallest = report["candidate"][int(np.argmin(report["loss"]))]
    columns = {name: encode(name, table, y, test) for name in COMPONENTS}

    def error(parts: tuple[str, ...]) -> float:
        known = np.column_stack([X[~test], *(columns[part][0] for part in parts)])
        new = np.column_stack([X[test], *(columns[part][1] for part in parts)])
        return float(np.mean((learner.fit(known, y[~test]).predict(new) - y[test]) ** 2))

    everything = CANDIDATES["both"]
    kept = dict(zip(report["candidate"], report["gain"], strict=True))["both"]
    variants = {
        "the choice": encoder.chosen_,
        "without the decision to drop": CANDIDATES[smallest] or everything,
        "without the choice of a family": everything if _is_kept(report, kept) else (),
        "all components": everything,
        "descriptions": CANDIDATES["description"],
        "predictions": CANDIDATES["prediction"],
        **{f"all but {name}": tuple(part for part in everything if part != name) for name in COMPONENTS},
        DROP: (),
    }
    known: dict[tuple[str, ...], float] = {}
    for parts in variants.values():
        known.setdefault(tuple(parts), error(tuple(parts)))
    return {variant: known[tuple(parts)] for variant, parts in variants.items()}


def _is_kept(report: dict[str, Any], gain: float) -> bool:
    return bool(gain > report["standard_error"][report["candidate"].index("both")])


def encode(name: str, table: Any, y: Any, test: Any) -> tuple[Any, Any]:
    """Return the columns of a component, for training and for test rows."""
    kind, own = COMPONENTS[name]
    encoder = kind(table.shape[1] - 1, remainder="drop", **own)
    if "target_type" in encoder.get_params():
        encoder.set_params(target_type="continuous")
    return encoder.fit_transform(table[~test], y[~test]), encoder.transform(table[test])


def print_table(records: list[dict[str, Any]]) -> None:
    """Print the percents of all variants and data sets."""
    names = [name for name in DATASETS if any(item["dataset"] == name for item in records)]
    print("| | " + " | ".join(names) + " | geometric mean |\n" + "|---" * (2 + len(names)) + "|")
    for variant in records[0]["errors"]:
        percents = []
        for name in names:
            some = [item["errors"] for item in records if item["dataset"] == name]
            percents.append(100 * sum(item[variant] for item in some) / sum(item[DROP] for item in some))
        cells = " | ".join(f"{percent:.1f}" for percent in percents)
        print(f"| {variant} | {cells} | {np.exp(np.mean(np.log(percents))):.1f} |")


def main() -> None:
    """Run what is missing, and print the table."""
    folder, store = sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "ablation.jsonl")
    records = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    done = {(item["dataset"], item["fold"]) for item in records}
    with store.open("a") as file:
        for name in DATASETS:
            data = load_dataset(name, folder)
            X, y = np.asarray(data.X, dtype=float), np.asarray(data.y, dtype=float)
            codes = np.unique(data.labels.astype(str), return_inverse=True)[1]
            n_folds = min(5, int(np.bincount(codes).max()))
            folds = level_folds(codes, n_folds, SEED)
            for fold in range(n_folds):
                if (name, fold) not in done:
                    errors = measure(X, y, codes, folds == fold)
                    records.append({"dataset": name, "fold": fold, "errors": errors})
                    file.write(json.dumps(records[-1]) + "\n")
                    file.flush()
    print_table(records)


if __name__ == "__main__":
    main()
