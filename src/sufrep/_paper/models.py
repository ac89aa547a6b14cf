"""The models of the experiments and the encodings of peers, with fixed settings.

Each takes one thread: trials run in parallel, and threads that compete for cores make trees much slower.

Peers are what others have published for a column of many levels: encodings, and models that read the column
without an encoding. Their models have comparable settings: as many rounds, the same learning rate and the
same depth as the xgboost that judges the encodings. Everything else is left at the defaults of their authors.
"""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._models import PAPER_XGBOOST, boosted_trees, regression_forest
from sufrep._paper.names import PAPER_MODELS
from sufrep.encoders import LatentStateRegressor
from sufrep.errors import check_name, import_package

if TYPE_CHECKING:
    from collections.abc import Callable

    from sufrep._arrays import Codes, Floats

# The boosted trees of peers are as many, as deep and learn as fast as those of xgboost.
ROUNDS, LEARNING_RATE, DEPTH = (
    PAPER_XGBOOST[name] for name in ("n_estimators", "learning_rate", "max_depth")
)


def make_model(name: str, *, n_columns: int, n_trees: int, seed: int) -> Any:
    """Return an unfitted model for `n_columns` columns, and a group column if the model reads one."""
    check_name("model", name, PAPER_MODELS)
    return MODEL_BUILDERS[name](n_columns, n_trees, seed)


# Models that need an encoding


def grf_features(n_columns: int) -> int:
    """Return the number of columns that grf tries at a split: min(⌈√p + 20⌉, p)."""
    return min(math.ceil(math.sqrt(n_columns) + 20), n_columns)


def honest_forest(n_columns: int, n_trees: int, seed: int) -> Any:
    """Honest regression forest with grf's defaults (econml).

    Each tree is fitted to half of the rows; half of these choose the splits, the other half set the values of
    the leaves. Each side of a split keeps at least 5 % of its node and 5 rows.
    """
    return import_package("econml.grf", "The model 'forest'", "paper").RegressionForest(
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
    return regression_forest(n_trees, grf_features(n_columns), seed)


def xgboost(_n_columns: int, _n_trees: int, seed: int) -> Any:
    """Boosted trees (xgboost) with the settings of ``PAPER_XGBOOST``."""
    return boosted_trees("xgboost", PAPER_XGBOOST, seed=seed)


# Models that read the group column, the last one, without an encoding


def xgboost_native(n_columns: int, _n_trees: int, seed: int) -> Any:
    """The same boosted trees, which sort the levels by their gradients and split them into two sets."""
    reading = {"enable_categorical": True, "feature_types": ["q"] * n_columns + ["c"]}
    return boosted_trees("xgboost_native", {**PAPER_XGBOOST, **reading}, seed=seed)


def lemma_one(n_columns: int, _n_trees: int, _seed: int) -> Any:
    """The formula of lemma 1 as a predictor, with its defaults; nothing in it depends on the seed."""
    return LatentStateRegressor(group=n_columns)


class LightGBM:
    """LightGBM, which sorts the levels by their gradients and splits them into two sets."""

    def __init__(self, n_columns: int, _n_trees: int, seed: int) -> None:
        self._group = n_columns
        self._model = _import_peer("lightgbm", "The model 'lightgbm_native'").LGBMRegressor(
            n_estimators=ROUNDS,
            learning_rate=LEARNING_RATE,
            max_depth=DEPTH,
            num_leaves=2**DEPTH,
            n_jobs=1,
            random_state=seed,
            deterministic=True,
            force_row_wise=True,
            verbose=-1,
        )

    def fit(self, table: Floats, y: Floats) -> LightGBM:
        """Fit to covariates and, in the last column, codes of levels."""
        self._model.fit(table, y, categorical_feature=[self._group])
        return self

    def predict(self, table: Floats) -> Floats:
        """Predict for rows with the same columns."""
        return np.asarray(self._model.predict(table))


class CatBoost:
    """CatBoost, which replaces levels by means of the target over preceding rows, in random orders."""

    def __init__(self, n_columns: int, _n_trees: int, seed: int) -> None:
        self._group = n_columns
        self._model = _import_peer("catboost", "The model 'catboost_native'").CatBoostRegressor(
            iterations=ROUNDS,
            learning_rate=LEARNING_RATE,
            depth=DEPTH,
            cat_features=[n_columns],
            thread_count=1,
            random_seed=seed,
            silent=True,
            allow_writing_files=False,
        )

    def fit(self, table: Floats, y: Floats) -> CatBoost:
        """Fit to covariates and, in the last column, codes of levels."""
        self._model.fit(self._frame(table), y)
        return self

    def predict(self, table: Floats) -> Floats:
        """Predict for rows with the same columns."""
        return np.asarray(self._model.predict(self._frame(table)))

    def _frame(self, table: Floats) -> Any:
        """Return a frame with integer levels, because CatBoost refuses floats."""
        pandas = _import_peer("pandas", "The model 'catboost_native'")
        return pandas.DataFrame(table).astype({self._group: int})


class GPBoost:
    """GPBoost: trees for the covariates and, fitted together with them, a random effect for each level."""

    def __init__(self, n_columns: int, _n_trees: int, seed: int) -> None:
        self._gpboost = _import_peer("gpboost", "The model 'gpboost'")
        self._group, self._seed = n_columns, seed

    def fit(self, table: Floats, y: Floats) -> GPBoost:
        """Fit to covariates and, in the last column, codes of levels."""
        X, codes = self._parts(table)
        self._booster = self._gpboost.train(
            params={
                # Without it a step is the gradient itself, whose unit is 1 / y: it would learn nothing from
                # prices and overshoot on small numbers (test_gpboost_does_not_depend_on_the_unit_of_y).
                "line_search_step_length": True,
                "learning_rate": LEARNING_RATE,
                "max_depth": DEPTH,
                "num_leaves": 2**DEPTH,
                "num_threads": 1,
                "seed": self._seed,
                "deterministic": True,
                "force_row_wise": True,
                "verbose": -1,
            },
            train_set=self._gpboost.Dataset(X, y),
            gp_model=self._gpboost.GPModel(
                group_data=codes, likelihood="gaussian", num_parallel_threads=1, seed=self._seed
            ),
            num_boost_round=ROUNDS,
        )
        return self

    def predict(self, table: Floats) -> Floats:
        """Predict for rows with the same columns; the effect of an unseen level is zero."""
        X, codes = self._parts(table)
        return np.asarray(self._booster.predict(data=X, group_data_pred=codes)["response_mean"])

    def _parts(self, table: Floats) -> tuple[Floats, Codes]:
        return table[:, : self._group], table[:, self._group].astype(int)


# The models of PAPER_MODELS; each takes the number of columns, the number of trees and the seed.
MODEL_BUILDERS: dict[str, Callable[[int, int, int], Any]] = {
    "forest": honest_forest,
    "sklearn_forest": breiman_forest,
    "xgboost": xgboost,
    "latent_state_regressor": lemma_one,
    "xgboost_native": xgboost_native,
    "lightgbm_native": LightGBM,
    "catboost_native": CatBoost,
    "gpboost": GPBoost,
}
# These accept a sparse matrix, so one-hot columns are passed to them as one.
TAKES_SPARSE = frozenset({"sklearn_forest", "xgboost"})


# Encodings of peers


def _target_encoder(seed: int) -> Any:
    """Means of the target; for training rows, means over the other folds (scikit-learn)."""
    from sklearn.preprocessing import TargetEncoder

    return TargetEncoder(target_type="continuous", random_state=seed)


def _category_encoder(name: str, seed: int, **options: Any) -> Any:
    """An encoder of category_encoders by the name of its class."""
    package = _import_peer("category_encoders", f"The encoder {name!r}")
    return getattr(package, name)(cols=[0], return_df=False, random_state=seed, **options)


# The encodings of PEER_ENCODINGS; each takes the seed.
ENCODING_BUILDERS: dict[str, Callable[[int], Any]] = {
    "target_encoder": _target_encoder,
    "james_stein": partial(_category_encoder, "JamesSteinEncoder"),
    "catboost_encoder": partial(_category_encoder, "CatBoostEncoder"),
    "glmm": partial(_category_encoder, "GLMMEncoder", binomial_target=False),
}


def peer_columns(method: str, codes: Codes, y: Floats, new: Codes, seed: int) -> tuple[Floats, Floats]:
    """Return the one column of a peer's encoding.

    Parameters
    ----------
    method : str
        One of `PEER_ENCODINGS`.
    codes : ndarray of int, shape (n,)
        Levels of the training rows.
    y : ndarray, shape (n,)
    new : ndarray of int, shape (m,)
        Levels of other rows.
    seed : int

    Returns
    -------
    ndarray, shape (n, 1), and ndarray, shape (m, 1)
        Output of ``fit_transform`` for the training rows, and of ``transform`` for the others.
    """
    encoder = ENCODING_BUILDERS[method](seed)
    order = np.arange(len(codes))
    if method == "catboost_encoder":
        # It depends on the order of the rows; its authors recommend to shuffle them.
        order = np.random.default_rng(seed).permutation(order)
    train = np.empty((len(codes), 1))
    with warnings.catch_warnings():
        # The peers call functions that newer versions of scikit-learn and pandas deprecate.
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        train[order] = encoder.fit_transform(codes[order, None], y[order])
        return train, np.asarray(encoder.transform(new[:, None]), dtype=float)


def _import_peer(package: str, purpose: str) -> Any:
    return import_package(package, purpose, "peers")
