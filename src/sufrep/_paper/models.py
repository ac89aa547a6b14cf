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
from sufrep._paper.names import CLASS_MODELS, NATIVE_MODELS, PAPER_MODELS
from sufrep.encoders import LatentStateRegressor
from sufrep.errors import check_name, import_package

if TYPE_CHECKING:
    from collections.abc import Callable

    from sufrep._arrays import Array, Codes, Floats
    from sufrep._paper.protocols import TargetType

# Boosted trees whose depth and number of rounds are chosen on a fifth of the rows, as in the comparison that
# was published on wages.
TUNED_XGBOOST: dict[str, Any] = {
    "learning_rate": 0.06,
    "max_depth": [3, 6, 9],
    "max_rounds": 5000,
    "early_stopping_rounds": 20,
    "validation_share": 0.2,
}
# The boosted trees of peers are as many, as deep and learn as fast as those of xgboost.
ROUNDS, LEARNING_RATE, DEPTH = (
    PAPER_XGBOOST[name] for name in ("n_estimators", "learning_rate", "max_depth")
)


def make_model(
    name: str, *, n_columns: int, n_trees: int, seed: int, classes: bool = False, n_groups: int = 1
) -> Any:
    """Return an unfitted model for `n_columns` columns, and group columns after them if the model reads some.

    For classes it has ``predict_proba`` and, fitted, ``classes_``.
    """
    check_name("model", name, CLASS_MODELS if classes else PAPER_MODELS)
    build = (CLASSIFIER_BUILDERS if classes else MODEL_BUILDERS)[name]
    reading = {"n_groups": n_groups} if name in NATIVE_MODELS else {}
    return build(n_columns, n_trees, seed, **reading)


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


def xgboost(_n_columns: int, _n_trees: int, seed: int, *, classes: bool = False) -> Any:
    """Boosted trees (xgboost) with the settings of ``PAPER_XGBOOST``."""
    return boosted_trees("xgboost", PAPER_XGBOOST, classes=classes, seed=seed)


class TunedXGBoost:
    """Boosted trees (xgboost) whose depth and number of rounds are chosen on rows held out at random.

    For each depth, rounds are added until the error on the held-out rows has not fallen for some rounds. The
    depth with the smallest error is fitted again to all rows, with its best number of rounds.
    """

    def __init__(self, _n_columns: int, _n_trees: int, seed: int) -> None:
        self._seed = seed
        self._trees()  # a missing package is an error at once, as for the other models

    def fit(self, X: Any, y: Floats) -> TunedXGBoost:
        """Fit to rows (n, p), dense or sparse, and their target (n,)."""
        order = np.random.default_rng(self._seed).permutation(len(y))
        held_out, rest = np.split(order, [math.ceil(TUNED_XGBOOST["validation_share"] * len(y))])
        tried = []
        for depth in TUNED_XGBOOST["max_depth"]:
            trees = self._trees(
                max_depth=depth,
                n_estimators=TUNED_XGBOOST["max_rounds"],
                early_stopping_rounds=TUNED_XGBOOST["early_stopping_rounds"],
            )
            trees.fit(X[rest], y[rest], eval_set=[(X[held_out], y[held_out])], verbose=False)
            tried.append((trees.best_score, depth, trees.best_iteration + 1))
        _, self.depth_, self.n_rounds_ = min(tried)
        self._fitted = self._trees(max_depth=self.depth_, n_estimators=self.n_rounds_).fit(X, y)
        return self

    def predict(self, X: Any) -> Floats:
        """Predict for rows with the same columns."""
        return np.asarray(self._fitted.predict(X))

    def _trees(self, **options: Any) -> Any:
        settings = {"learning_rate": TUNED_XGBOOST["learning_rate"], **options}
        return boosted_trees("xgboost_tuned", settings, seed=self._seed)


# Models that read the group columns, the last ones, without an encoding


def xgboost_native(
    n_columns: int, _n_trees: int, seed: int, *, classes: bool = False, n_groups: int = 1
) -> Any:
    """The same boosted trees, which sort the levels by their gradients and split them into two sets."""
    reading = {"enable_categorical": True, "feature_types": ["q"] * n_columns + ["c"] * n_groups}
    return boosted_trees("xgboost_native", {**PAPER_XGBOOST, **reading}, classes=classes, seed=seed)


def lemma_one(n_columns: int, _n_trees: int, _seed: int, *, n_groups: int = 1) -> Any:
    """The formula of lemma 1 as a predictor, with its defaults; nothing in it depends on the seed."""
    groups: Any = [n_columns + j for j in range(n_groups)]
    return LatentStateRegressor(group=groups if n_groups > 1 else n_columns)


class LightGBM:
    """LightGBM, which sorts the levels by their gradients and splits them into two sets."""

    def __init__(
        self, n_columns: int, _n_trees: int, seed: int, *, classes: bool = False, n_groups: int = 1
    ) -> None:
        self._groups = [n_columns + j for j in range(n_groups)]
        package = _import_peer("lightgbm", "The model 'lightgbm_native'")
        self._model = (package.LGBMClassifier if classes else package.LGBMRegressor)(
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
        """Fit to covariates and, in the last columns, codes of levels."""
        self._model.fit(table, y, categorical_feature=self._groups)
        return self

    def predict(self, table: Floats) -> Floats:
        """Predict for rows with the same columns."""
        return np.asarray(self._model.predict(table))

    def predict_proba(self, table: Floats) -> Floats:
        """Return the probabilities of the classes; (n, n_classes)."""
        return np.asarray(self._model.predict_proba(table))

    @property
    def classes_(self) -> Array:
        """The classes; (n_classes,)."""
        return np.asarray(self._model.classes_)


class CatBoost:
    """CatBoost, which replaces levels by means of the target over preceding rows, in random orders."""

    def __init__(
        self, n_columns: int, _n_trees: int, seed: int, *, classes: bool = False, n_groups: int = 1
    ) -> None:
        self._groups = [n_columns + j for j in range(n_groups)]
        package = _import_peer("catboost", "The model 'catboost_native'")
        self._model = (package.CatBoostClassifier if classes else package.CatBoostRegressor)(
            iterations=ROUNDS,
            learning_rate=LEARNING_RATE,
            depth=DEPTH,
            cat_features=self._groups,
            thread_count=1,
            random_seed=seed,
            silent=True,
            allow_writing_files=False,
        )

    def fit(self, table: Floats, y: Floats) -> CatBoost:
        """Fit to covariates and, in the last columns, codes of levels."""
        self._model.fit(self._frame(table), y)
        return self

    def predict(self, table: Floats) -> Floats:
        """Predict for rows with the same columns."""
        return np.asarray(self._model.predict(self._frame(table)))

    def predict_proba(self, table: Floats) -> Floats:
        """Return the probabilities of the classes; (n, n_classes)."""
        return np.asarray(self._model.predict_proba(self._frame(table)))

    @property
    def classes_(self) -> Array:
        """The classes; (n_classes,)."""
        return np.asarray(self._model.classes_)

    def _frame(self, table: Floats) -> Any:
        """Return a frame with integer levels, because CatBoost refuses floats."""
        pandas = _import_peer("pandas", "The model 'catboost_native'")
        return pandas.DataFrame(table).astype(dict.fromkeys(self._groups, int))


class GPBoost:
    """GPBoost: trees for the covariates and, fitted together with them, a random effect for each level.

    Of classes there may be two, 0 and 1; trees and effects then add up to the log odds.
    """

    classes_ = np.array([0.0, 1.0])

    def __init__(
        self, n_columns: int, _n_trees: int, seed: int, *, classes: bool = False, n_groups: int = 1
    ) -> None:
        self._gpboost = _import_peer("gpboost", "The model 'gpboost'")
        self._groups = n_columns if n_groups == 1 else slice(n_columns, None)
        self._n_columns, self._seed = n_columns, seed
        self._likelihood = "bernoulli_logit" if classes else "gaussian"

    def fit(self, table: Floats, y: Floats) -> GPBoost:
        """Fit to covariates and, in the last column, codes of levels."""
        X, codes = self._parts(table)
        self._booster = self._gpboost.train(
            params={
                # Without it a step is the gradient itself, whose unit is 1 / y: it would learn nothing from
                # prices and overshoot on small numbers (test_gpboost_does_not_depend_on_the_unit_of_y).
                # Log odds have no unit.
                "line_search_step_length": self._likelihood == "gaussian",
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
                group_data=codes, likelihood=self._likelihood, num_parallel_threads=1, seed=self._seed
            ),
            num_boost_round=ROUNDS,
        )
        return self

    def predict(self, table: Floats) -> Floats:
        """Predict for rows with the same columns; the effect of an unseen level is zero."""
        X, codes = self._parts(table)
        return np.asarray(self._booster.predict(data=X, group_data_pred=codes)["response_mean"])

    def predict_proba(self, table: Floats) -> Floats:
        """Return the probabilities of the classes 0 and 1; (n, 2)."""
        ones = self.predict(table)
        return np.column_stack([1 - ones, ones])

    def _parts(self, table: Floats) -> tuple[Floats, Codes]:
        return table[:, : self._n_columns], table[:, self._groups].astype(int)


# The models of PAPER_MODELS; each takes the number of columns, the number of trees and the seed, and those
# that read groups the number of these.
MODEL_BUILDERS: dict[str, Callable[..., Any]] = {
    "forest": honest_forest,
    "sklearn_forest": breiman_forest,
    "xgboost": xgboost,
    "xgboost_tuned": TunedXGBoost,
    "latent_state_regressor": lemma_one,
    "xgboost_native": xgboost_native,
    "lightgbm_native": LightGBM,
    "catboost_native": CatBoost,
    "gpboost": GPBoost,
}
# Those of CLASS_MODELS, for classes.
CLASSIFIER_BUILDERS: dict[str, Callable[..., Any]] = {
    "xgboost": partial(xgboost, classes=True),
    "xgboost_native": partial(xgboost_native, classes=True),
    "lightgbm_native": partial(LightGBM, classes=True),
    "catboost_native": partial(CatBoost, classes=True),
    "gpboost": partial(GPBoost, classes=True),
}
# These accept a sparse matrix, so one-hot columns are passed to them as one.
TAKES_SPARSE = frozenset({"sklearn_forest", "xgboost", "xgboost_tuned"})


# Encodings of peers


def _target_encoder(seed: int, target_type: TargetType) -> Any:
    """Means of the target; for training rows, means over the other folds (scikit-learn)."""
    from sklearn.preprocessing import TargetEncoder

    return TargetEncoder(target_type=target_type, random_state=seed)


def _category_encoder(name: str, seed: int, _target_type: TargetType, **options: Any) -> Any:
    """An encoder of category_encoders by the name of its class."""
    package = _import_peer("category_encoders", f"The encoder {name!r}")
    return getattr(package, name)(cols=[0], return_df=False, random_state=seed, **options)


def _glmm(seed: int, target_type: TargetType) -> Any:
    """Effects of a mixed model, linear or logistic (category_encoders)."""
    return _category_encoder("GLMMEncoder", seed, target_type, binomial_target=target_type == "binary")


# The encodings of PEER_ENCODINGS; each takes the seed and the kind of the target.
ENCODING_BUILDERS: dict[str, Callable[[int, TargetType], Any]] = {
    "target_encoder": _target_encoder,
    "james_stein": partial(_category_encoder, "JamesSteinEncoder"),
    "catboost_encoder": partial(_category_encoder, "CatBoostEncoder"),
    "glmm": _glmm,
}


def peer_columns(
    method: str, codes: Codes, y: Floats, new: Codes, seed: int, target_type: TargetType = "continuous"
) -> tuple[Floats, Floats]:
    """Return the columns of a peer's encoding: one, or for more than two classes one for each.

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
    target_type : {"continuous", "binary", "multiclass"}
        Only "target_encoder" has "multiclass".

    Returns
    -------
    ndarray, shape (n, k), and ndarray, shape (m, k)
        Output of ``fit_transform`` for the training rows, and of ``transform`` for the others.
    """
    encoder = ENCODING_BUILDERS[method](seed, target_type)
    order = np.arange(len(codes))
    if method == "catboost_encoder":
        # It depends on the order of the rows; its authors recommend to shuffle them.
        order = np.random.default_rng(seed).permutation(order)
    with warnings.catch_warnings():
        # The peers call functions that newer versions of scikit-learn and pandas deprecate.
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        shuffled = np.asarray(encoder.fit_transform(codes[order, None], y[order]), dtype=float)
        train = np.empty_like(shuffled)
        train[order] = shuffled
        return train, np.asarray(encoder.transform(new[:, None]), dtype=float)


def _import_peer(package: str, purpose: str) -> Any:
    return import_package(package, purpose, "peers")
