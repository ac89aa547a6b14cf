"""Treatment effects: time against the bare fits of the same learners."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from benchmarks.measure import Result, alternate, milliseconds
from sufrep import AIPW
from sufrep._simulate_effects import simulate_effects
from sufrep.causal._nuisances import default_models

ROWS, N_FOLDS = 10_000, 5


def results(repeats: int) -> list[Result]:
    sample = simulate_effects("main", n=ROWS, seed=0)
    rows = np.column_stack([sample.X, sample.group])
    model = AIPW(group=10, n_folds=N_FOLDS, n_jobs=1)
    features = model.fit(rows, treatment=sample.treatment, outcome=sample.outcome).features_
    kept = model.rows_
    seconds = alternate(
        {
            "ours": lambda: model.fit(rows, treatment=sample.treatment, outcome=sample.outcome),
            "bare": lambda: fit_learners(features, sample.treatment[kept], sample.outcome[kept]),
        },
        repeats,
    )
    return [
        Result(
            f"effect, {ROWS:,} rows, 10 covariates, 200 levels, {N_FOLDS} folds",
            milliseconds(seconds["ours"]),
            f"{3 * N_FOLDS} fits of the learners {milliseconds(seconds['bare'])}",
            seconds["ours"] / seconds["bare"],
            "at most 1.3 x",
            seconds["ours"] <= 1.3 * seconds["bare"],
        )
    ]


def fit_learners(features: np.ndarray, treatment: np.ndarray, outcome: np.ndarray) -> None:
    """Fit and predict as often as an effect does, on parts of the rows of the same size."""
    outcome_model, propensity_model = default_models(0)
    fold = np.arange(len(features)) % N_FOLDS
    for k in range(N_FOLDS):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        clone(propensity_model).fit(features[train], treatment[train]).predict_proba(features[test])
        for arm in (0, 1):
            rows = train[treatment[train] == arm]
            clone(outcome_model).fit(features[rows], outcome[rows]).predict(features[test])
