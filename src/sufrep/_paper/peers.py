"""What others do with a column of many levels: their encodings, and models that read it by themselves.

The models have comparable settings, which means as many rounds, the same learning rate and the same depth as
the xgboost that judges the encodings; all else is left as their authors set it.
"""

from __future__ import annotations

import warnings
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sufrep._arrays import Codes, Floats

# Of every boosting here, that of the encodings included.
ROUNDS, LEARNING_RATE, DEPTH = 100, 0.2, 4


def _target_encoder(seed: int) -> Any:
    """Means of the target, in training those of the other folds (scikit-learn)."""
    from sklearn.preprocessing import TargetEncoder

    return TargetEncoder(target_type="continuous", random_state=seed)


def _category_encoder(name: str, seed: int, **options: Any) -> Any:
    """An encoder of category_encoders by the name of its class."""
    package = _required("category_encoders", f"The encoder {name!r}")
    return getattr(package, name)(cols=[0], return_df=False, random_state=seed, **options)


ENCODINGS: dict[str, Callable[[int], Any]] = {
    "target_encoder": _target_encoder,
    "james_stein": partial(_category_encoder, "JamesSteinEncoder"),
    "catboost_encoder": partial(_category_encoder, "CatBoostEncoder"),
    "glmm": partial(_category_encoder, "GLMMEncoder", binomial_target=False),
}


def peer_columns(method: str, codes: Codes, y: Floats, new: Codes, seed: int) -> tuple[Floats, Floats]:
    """The one column of a peer's encoding.

    Parameters
    ----------
    method : str
        One of `ENCODINGS`.
    codes : ndarray of int, shape (n,)
        Levels of the training rows.
    y : ndarray, shape (n,)
    new : ndarray of int, shape (m,)
        Levels of other rows.
    seed : int

    Returns
    -------
    ndarray, shape (n, 1), and ndarray, shape (m, 1)
        What ``fit_transform`` gives for the training rows, and ``transform`` for the others.
    """
    encoder = ENCODINGS[method](seed)
    order = np.arange(len(codes))
    if method == "catboost_encoder":
        # It goes from row to row, and its authors ask for a shuffle where the order may tell something.
        order = np.random.default_rng(seed).permutation(order)
    train = np.empty((len(codes), 1))
    with warnings.catch_warnings():
        # The peers call what newer versions of scikit-learn and pandas deprecate.
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        train[order] = encoder.fit_transform(codes[order, None], y[order])
        return train, np.asarray(encoder.transform(new[:, None]), dtype=float)


class LightGBM:
    """LightGBM; it splits the levels, sorted by their gradients, into two sets."""

    def __init__(self, n_columns: int, n_trees: int, seed: int) -> None:  # noqa: ARG002
        self._group = n_columns
        self._model = _required("lightgbm", "The model 'lightgbm_native'").LGBMRegressor(
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
        """Fit to covariates and, as last column, codes of levels."""
        self._model.fit(table, y, categorical_feature=[self._group])
        return self

    def predict(self, table: Floats) -> Floats:
        """Predict for rows of the same columns."""
        return np.asarray(self._model.predict(table))


class CatBoost:
    """CatBoost; it replaces levels by means of the target over the rows before, in several random orders."""

    def __init__(self, n_columns: int, n_trees: int, seed: int) -> None:  # noqa: ARG002
        self._group = n_columns
        self._model = _required("catboost", "The model 'catboost_native'").CatBoostRegressor(
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
        """Fit to covariates and, as last column, codes of levels."""
        self._model.fit(self._frame(table), y)
        return self

    def predict(self, table: Floats) -> Floats:
        """Predict for rows of the same columns."""
        return np.asarray(self._model.predict(self._frame(table)))

    def _frame(self, table: Floats) -> Any:
        """As it takes no floats for levels."""
        return import_module("pandas").DataFrame(table).astype({self._group: int})


class GPBoost:
    """GPBoost: trees for the covariates and, fitted together with them, a random effect for each level."""

    def __init__(self, n_columns: int, n_trees: int, seed: int) -> None:  # noqa: ARG002
        self._gpboost = _required("gpboost", "The model 'gpboost'")
        self._group, self._seed = n_columns, seed

    def fit(self, table: Floats, y: Floats) -> GPBoost:
        """Fit to covariates and, as last column, codes of levels."""
        X, codes = self._parts(table)
        self._booster = self._gpboost.train(
            params={
                # Else a step is the gradient itself, which has the unit of 1 / y: it would learn nothing from
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
        """Predict for rows of the same columns; the effect of a level never seen is zero."""
        X, codes = self._parts(table)
        return np.asarray(self._booster.predict(data=X, group_data_pred=codes)["response_mean"])

    def _parts(self, table: Floats) -> tuple[Floats, Codes]:
        return table[:, : self._group], table[:, self._group].astype(int)


PEER_MODELS: dict[str, Callable[[int, int, int], Any]] = {
    "lightgbm_native": LightGBM,
    "catboost_native": CatBoost,
    "gpboost": GPBoost,
}


def _required(package: str, purpose: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingDependencyError(package, purpose, "peers") from error
