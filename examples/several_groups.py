"""Tables of several text columns: our encoders next to CatBoost and to scikit-learn's TargetEncoder.

    python examples/several_groups.py DATA [results.jsonl] [--seeds 0 1 2] [--tables videogame_sales …]
        [--entries catboost cells+shares/xgboost …] [--rows 40000]

DATA is the folder of ``sufrep.datasets``. Rows, of large tables a sample, are shuffled into five folds by
the seed. The worlds (`additive`, `hidden`, `pair`, `triple`, `noise`) are simulated, and drawn anew for
each seed. A tenth of the training rows decides when CatBoost and xgboost stop and how deep they are
(CatBoost 4, 6 or 8, xgboost 3 or 6); the encoders learn from all training rows. Losses are mean squared
errors or, for classes, mean −log P. The table shows mean losses and, in percent of CatBoost's, the mean
difference over the folds of all seeds and its standard error. Folds that the file already has are not run
again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier, CatBoostRegressor
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from xgboost import XGBClassifier, XGBRegressor

from sufrep import CellsEncoder, SharesEncoder, SufficientEncoder
from sufrep.datasets import Dataset, load_dataset
from sufrep.encoders import GroupEncoder

TABLES = ("videogame_sales", "movielens", "open_payments_text", "midwest_survey_text")
WORLDS = ("additive", "hidden", "pair", "triple", "noise")
N_FOLDS = 5
# Learners stop when the loss on the rows for this has not fallen for so many rounds.
PATIENCE, MOST_ROUNDS = 50, 1000


def world(name: str, seed: int, n: int = 6000) -> Dataset:
    """Draw rows with three groups and two covariates, on which the target depends as the name says."""
    rng = np.random.default_rng([WORLDS.index(name), seed])
    n_levels = {"hidden": (400, 40, 20), "pair": (40, 30, 20), "triple": (9, 8, 7)}.get(name, (200, 60, 20))
    a, b, c = (rng.integers(0, size, n) for size in n_levels)
    x, signal = rng.normal(size=(n, 2)), np.zeros(n)
    if name == "additive":
        signal = sum(rng.normal(size=size)[codes] for size, codes in zip(n_levels, (a, b, c), strict=True))
    elif name == "hidden":  # the class of a level of the first group shows in the other two
        kind = rng.integers(0, 4, n_levels[0])[a]
        b = np.where(rng.random(n) < 0.6, rng.integers(0, 10, n) + 10 * kind, b)
        c = np.where(rng.random(n) < 0.6, rng.integers(0, 5, n) + 5 * kind, c)
        signal = np.array([-2.0, 0.0, 1.0, 3.0])[kind] + x[:, 0] * np.array([1.0, -1.0, 1.0, 0.0])[kind]
    elif name == "pair":
        signal = 1.5 * rng.normal(size=n_levels[:2])[a, b]
    elif name == "triple":
        signal = 1.5 * rng.normal(size=n_levels)[a, b, c]
    y = signal + x[:, 1] + rng.normal(size=n)
    labels = [np.array([f"{code}" for code in codes]) for codes in (a, b, c)]
    others = {"b": labels[1], "c": labels[2]}
    return Dataset(name, "a", "y", ("x1", "x2"), x, labels[0], y, other_labels=others)


class Split:
    """One fold of one table: training rows, of which some decide when to stop, and test rows."""

    def __init__(self, data: Dataset, fold: int, seed: int, most_rows: int) -> None:
        rows = np.random.default_rng(seed).permutation(len(data.y))[:most_rows]
        self.X, self.y = pd.DataFrame(data.columns()).iloc[rows].reset_index(drop=True), data.y[rows]
        self.groups, self.n_classes = list(data.groups), len(data.classes)
        folds = np.arange(len(rows)) % N_FOLDS
        self.train, self.test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        strata = self.y[self.train] if data.classes else None
        self.fit, self.stop = train_test_split(
            np.arange(len(self.train)), test_size=0.1, random_state=seed, stratify=strata
        )
        self.seed = seed

    @property
    def target_type(self) -> str:
        """The kind of target, as encoders take it."""
        return {0: "continuous", 2: "binary"}.get(self.n_classes, "multiclass")

    def loss(self, model: Any, new: Any) -> float:
        """The loss on the test rows."""
        if not self.n_classes:
            return float(mean_squared_error(self.y[self.test], model.predict(new)))
        probability = np.clip(model.predict_proba(new), 1e-15, 1)
        return float(log_loss(self.y[self.test], probability, labels=np.arange(self.n_classes)))


def catboost(split: Split) -> tuple[float, int]:
    """CatBoost, which reads text and combines categories itself."""
    kind = CatBoostClassifier if split.n_classes else CatBoostRegressor
    known, new = split.X.iloc[split.train], split.X.iloc[split.test]
    y, tried = split.y[split.train], []
    for depth in (4, 6, 8):
        model = kind(
            iterations=MOST_ROUNDS,
            depth=depth,
            cat_features=split.groups,
            early_stopping_rounds=PATIENCE,
            random_seed=split.seed,
            thread_count=1,
            silent=True,
            allow_writing_files=False,
            **({"loss_function": "MultiClass"} if split.n_classes > 2 else {}),
        )
        stop = known.iloc[split.stop], y[split.stop]
        model.fit(known.iloc[split.fit], y[split.fit], eval_set=stop)
        tried.append((min(model.get_best_score()["validation"].values()), depth, model))
    return split.loss(min(tried, key=lambda item: item[:2])[2], new), known.shape[1]


Columns = tuple[NDArray[Any], NDArray[Any]]


def target_means(split: Split) -> Columns:
    """scikit-learn's TargetEncoder."""
    encoder = TargetEncoder(target_type=split.target_type, random_state=split.seed)
    known, new = split.X.iloc[split.train], split.X.iloc[split.test]
    numbers = [column for column in split.X if column not in split.groups]
    inside = encoder.fit_transform(known[split.groups], split.y[split.train])
    outside = encoder.transform(new[split.groups])
    return np.column_stack([known[numbers], inside]), np.column_stack([new[numbers], outside])


def encoded(split: Split, *makers: Callable[[Split], GroupEncoder]) -> Columns:
    """The columns of several encoders, and the numeric ones."""
    known, new = split.X.iloc[split.train], split.X.iloc[split.test]
    numbers = [column for column in split.X if column not in split.groups]
    parts = [(known[numbers].to_numpy(), new[numbers].to_numpy())]
    for maker in makers:
        encoder = maker(split)
        parts.append((encoder.fit_transform(known, split.y[split.train]), encoder.transform(new)))
    inside, outside = zip(*parts, strict=True)
    return np.hstack(inside), np.hstack(outside)


def shares(split: Split) -> GroupEncoder:
    """The levels by their shares over the other columns."""
    return SharesEncoder(split.groups, remainder="drop", unseen="prior")


def cells(split: Split, **options: Any) -> GroupEncoder:
    """Sizes and mean targets of levels and of combinations."""
    common = {"remainder": "drop", "target_type": split.target_type, "random_state": split.seed}
    return CellsEncoder(split.groups, **common, **options)


def sufficient(split: Split) -> GroupEncoder:
    """What `SufficientEncoder` chooses, by its default learner."""
    return SufficientEncoder(
        split.groups, remainder="drop", target_type=split.target_type, random_state=split.seed
    )


ENCODINGS: dict[str, Callable[[Split], Columns]] = {
    "drop": encoded,
    "target_encoder": target_means,
    "levels": lambda split: encoded(split, partial(cells, max_cells=0)),
    "levels+shares": lambda split: encoded(split, partial(cells, max_cells=0), shares),
    "cells": lambda split: encoded(split, cells),
    "cells+shares": lambda split: encoded(split, cells, shares),
    "sufficient": lambda split: encoded(split, sufficient),
}


def boosted(split: Split, inside: NDArray[Any], outside: NDArray[Any]) -> float:
    """Return the loss of xgboost."""
    kind, y, tried = XGBClassifier if split.n_classes else XGBRegressor, split.y[split.train], []
    for depth in (3, 6):
        model = kind(
            n_estimators=MOST_ROUNDS,
            learning_rate=0.05,
            max_depth=depth,
            subsample=0.8,
            early_stopping_rounds=PATIENCE,
            random_state=split.seed,
            n_jobs=1,
        )
        stop = [(inside[split.stop], y[split.stop])]
        model.fit(inside[split.fit], y[split.fit], eval_set=stop, verbose=False)
        tried.append((model.best_score, depth, model))
    return split.loss(min(tried, key=lambda item: item[:2])[2], outside)


def histogram(split: Split, inside: NDArray[Any], outside: NDArray[Any]) -> float:
    """Return the loss of scikit-learn's histogram gradient boosting."""
    kind = HistGradientBoostingClassifier if split.n_classes else HistGradientBoostingRegressor
    model = kind(max_iter=1000, learning_rate=0.05, early_stopping=True, random_state=split.seed)
    return split.loss(model.fit(inside, split.y[split.train]), outside)


def linear(split: Split, inside: NDArray[Any], outside: NDArray[Any]) -> float:
    """Return the loss of a penalised regression, linear or logistic."""
    last = LogisticRegression(max_iter=1000) if split.n_classes else RidgeCV(np.logspace(-3, 3, 13))
    filled = [np.where(np.isnan(part), np.nanmean(inside, axis=0), part) for part in (inside, outside)]
    return split.loss(make_pipeline(StandardScaler(), last).fit(filled[0], split.y[split.train]), filled[1])


LEARNERS = {"xgboost": boosted, "histogram": histogram, "linear": linear}
REFERENCE = "catboost"
ENTRIES = (REFERENCE, *(f"{encoding}/{learner}" for encoding in ENCODINGS for learner in LEARNERS))


def measure(split: Split, entry: str, known: dict[str, tuple[Columns, float]]) -> dict[str, float]:
    """Return the loss of an entry, the number of columns, and the seconds of encoding and of learning."""
    start = process_time()
    if entry == REFERENCE:
        loss, n_columns = catboost(split)
        return {"loss": loss, "n_columns": n_columns, "encoding": 0.0, "learning": process_time() - start}
    encoding, learner = entry.split("/")
    if encoding not in known:
        columns = ENCODINGS[encoding](split)
        known[encoding] = columns, process_time() - start
    (inside, outside), seconds = known[encoding]
    start = process_time()
    loss = LEARNERS[learner](split, inside, outside)
    return {
        "loss": loss,
        "n_columns": inside.shape[1],
        "encoding": seconds,
        "learning": process_time() - start,
    }


def print_table(records: list[dict[str, Any]], table: str) -> None:
    """Print the mean loss of every entry, and its difference to CatBoost on the same folds."""
    found = pd.DataFrame([record for record in records if record["table"] == table])
    if found.empty:
        return
    losses = found.pivot_table(index=["seed", "fold"], columns="entry", values="loss")
    print(f"\n{table}: {len(losses)} folds\n\n| entry | loss | to CatBoost | columns | encoding, s |")
    print("|---|---|---|---|---|")
    for entry in (name for name in ENTRIES if name in losses):
        own = found[found["entry"] == entry]
        difference = ""
        if REFERENCE in losses:
            percent = (100 * (losses[entry] / losses[REFERENCE] - 1)).dropna()
            error = percent.std() / np.sqrt(len(percent))
            difference = f"{percent.mean():+.2f} ± {error:.2f} %"
        columns, seconds = own["n_columns"].mean(), own["encoding"].mean()
        print(f"| {entry} | {losses[entry].mean():.4f} | {difference} | {columns:.0f} | {seconds:.1f} |")


def main() -> None:
    """Run what is missing, and print a table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("store", nargs="?", default="several_groups.jsonl", type=Path)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--tables", nargs="*", choices=(*TABLES, *WORLDS), default=TABLES)
    parser.add_argument("--entries", nargs="*", choices=ENTRIES, default=ENTRIES)
    parser.add_argument("--rows", type=int, default=40_000)
    given = parser.parse_args()
    lines = given.store.read_text().splitlines() if given.store.exists() else []
    records = [json.loads(line) for line in lines]
    keys = ("table", "rows", "seed", "fold", "entry")
    done = {tuple(record[key] for key in keys) for record in records}
    warnings.filterwarnings("ignore", module="sklearn")
    with given.store.open("a") as file:
        for table in given.tables:
            for seed in given.seeds:
                data = world(table, seed) if table in WORLDS else load_dataset(table, given.data)
                for fold in range(N_FOLDS):
                    split, known = Split(data, fold, seed, given.rows), {}
                    for entry in given.entries:
                        key = (table, given.rows, seed, fold, entry)
                        if key in done:
                            continue
                        record = dict(zip(keys, key, strict=True)) | measure(split, entry, known)
                        records.append(record)
                        file.write(json.dumps(record) + "\n")
                        file.flush()
    for table in given.tables:
        print_table([item for item in records if item["rows"] == given.rows], table)


if __name__ == "__main__":
    main()
