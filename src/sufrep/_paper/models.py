"""The learners of the experiments, with their fixed settings.

Each takes one thread: trials run side by side, and threads that wait for each other make trees much slower.
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sufrep._paper.peers import DEPTH, LEARNING_RATE, PEER_MODELS, ROUNDS
from sufrep.encoders import LatentStateRegressor
from sufrep.errors import InvalidParameterError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable

# Trees of a forest. grf's default is 2,000; more trees change the error little and the time in proportion.
N_TREES = 100

# Chosen by hand for speed among neighbours that were tried; docs/paper.md says how.
XGBOOST = {"n_estimators": ROUNDS, "learning_rate": LEARNING_RATE, "max_depth": DEPTH, "n_jobs": 1}


def grf_features(n_columns: int) -> int:
    """Columns that grf tries at a split: min(⌈√p + 20⌉, p)."""
    return min(math.ceil(math.sqrt(n_columns) + 20), n_columns)


def honest_forest(n_columns: int, n_trees: int, seed: int) -> Any:
    """Honest regression forest with grf's defaults (econml).

    Trees see half of the rows, and half of these choose splits while the other half give the leaves' values;
    each side of a split keeps at least 5 % of its node and 5 rows.
    """
    _require("econml", "The model 'forest'", "paper")
    from econml.grf import RegressionForest

    return RegressionForest(
        n_estimators=n_trees,
        max_features=grf_features(n_columns),
        max_samples=0.5,
        min_samples_leaf=5,
        min_balancedness_tol=0.45,
        honest=True,
        inference=False,
        n_jobs=1,
        random_state=seed,
    )


def breiman_forest(n_columns: int, n_trees: int, seed: int) -> Any:
    """Breiman's forest (scikit-learn), with as many candidate columns as grf."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(
        n_trees, max_features=grf_features(n_columns), min_samples_leaf=5, n_jobs=1, random_state=seed
    )


def boosted_trees(n_columns: int, n_trees: int, seed: int) -> Any:  # noqa: ARG001
    """Boosted trees (xgboost) with the settings of ``XGBOOST``."""
    _require("xgboost", "The model 'xgboost'", "boost")
    from xgboost import XGBRegressor

    return XGBRegressor(**XGBOOST, random_state=seed)


def boosted_trees_native(n_columns: int, n_trees: int, seed: int) -> Any:  # noqa: ARG001
    """The same boosted trees, which here split the levels, sorted by their gradients, into two sets."""
    _require("xgboost", "The model 'xgboost_native'", "boost")
    from xgboost import XGBRegressor

    kinds = ["q"] * n_columns + ["c"]
    return XGBRegressor(**XGBOOST, enable_categorical=True, feature_types=kinds, random_state=seed)


def lemma_one(n_columns: int, n_trees: int, seed: int) -> Any:  # noqa: ARG001
    """The formula of lemma 1 as predictor, with its defaults; the seed of the data moves nothing in it."""
    return LatentStateRegressor(group=n_columns)


# The method of models that need no encoding: they read the group column, the last one, by themselves.
NATIVE = "native"
NATIVE_MODELS: dict[str, Callable[[int, int, int], Any]] = {
    "latent_state_regressor": lemma_one,
    "xgboost_native": boosted_trees_native,
    **PEER_MODELS,
}
MODELS: dict[str, Callable[[int, int, int], Any]] = {
    "forest": honest_forest,
    "sklearn_forest": breiman_forest,
    "xgboost": boosted_trees,
    **NATIVE_MODELS,
}
# These take a sparse matrix; one-hot columns are handed to them as such.
TAKES_SPARSE = frozenset({"sklearn_forest", "xgboost"})


def make_model(name: str, *, n_columns: int, n_trees: int, seed: int) -> Any:
    """A learner that is not yet fitted, for a table of `n_columns` columns beside the group column."""
    if name not in MODELS:
        raise InvalidParameterError("model", name, f"one of {', '.join(MODELS)}")
    return MODELS[name](n_columns, n_trees, seed)


def _require(package: str, purpose: str, extra: str) -> None:
    if find_spec(package) is None:
        raise MissingDependencyError(package, purpose, extra)
