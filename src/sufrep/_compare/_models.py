"""The learners that encodings are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sufrep.errors import InvalidParameterError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sufrep._arrays import Array, Floats

# Rounds, depth and learning rate of the boosted trees: what most people would try first.
XGBOOST = {"n_estimators": 200, "max_depth": 5, "learning_rate": 0.1}
N_TREES = 100


class LabelledClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that wants the classes 0, 1, …, for classes of any kind.

    Parameters
    ----------
    estimator : classifier

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    estimator_ : classifier
        Fitted to the positions of the classes.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows X (n, p) and classes y (n,)."""
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.estimator_ = clone(self.estimator).fit(X, codes)
        return self

    def predict(self, X: Any) -> Array:
        """The most probable class of each row; (n,)."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes; (n, n_classes)."""
        return np.asarray(self.estimator_.predict_proba(X))


def _forest(classes: bool, seed: int) -> Any:
    """Breiman's forest, a third (of classifiers: the root) of the columns at a split."""
    options = {"n_jobs": 1, "random_state": seed}
    if classes:
        return RandomForestClassifier(N_TREES, min_samples_leaf=3, **options)
    return RandomForestRegressor(N_TREES, max_features=1 / 3, min_samples_leaf=5, **options)


def _xgboost(classes: bool, seed: int) -> Any:
    if find_spec("xgboost") is None:
        raise MissingDependencyError("xgboost", "The model 'xgboost'", "boost")
    import xgboost

    options = {**XGBOOST, "n_jobs": 1, "random_state": seed}
    return (
        LabelledClassifier(xgboost.XGBClassifier(**options)) if classes else xgboost.XGBRegressor(**options)
    )


def _boosting(classes: bool, seed: int) -> Any:
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return kind(early_stopping=False, random_state=seed)


def _linear(classes: bool, seed: int) -> Any:  # noqa: ARG001
    learner = LogisticRegression(max_iter=1000) if classes else Ridge()
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), learner)


MODELS: dict[str, Callable[[bool, int], Any]] = {
    "forest": _forest,
    "xgboost": _xgboost,
    "boosting": _boosting,
    "linear": _linear,
}


def make_models(
    models: str | Any | Sequence[Any] | Mapping[str, Any], *, classes: bool, seed: int
) -> tuple[dict[str, Any], list[str]]:
    """Learners by name, not yet fitted, and notes on those that are not installed.

    Parameters
    ----------
    models : str, estimator, sequence of these, or mapping of str to estimator
    classes : bool
        Whether classifiers are wanted.
    seed : int
    """
    if isinstance(models, Mapping):
        named: list[tuple[str | None, Any]] = list(models.items())
    else:
        several = isinstance(models, (list, tuple))
        named = [(None, model) for model in (models if several else [models])]
    found: dict[str, Any] = {}
    notes: list[str] = []
    missing: list[MissingDependencyError] = []
    for name, model in named:
        try:
            label, learner = _make_model(name, model, classes=classes, seed=seed)
        except MissingDependencyError as error:
            missing.append(error)
            notes.append(f"{model} is left out. {' '.join(str(error).split())}")
            continue
        if label in found:
            raise InvalidParameterError("models", models, f"a model each time, but there are two {label!r}")
        found[label] = learner
    if missing and not found:
        raise missing[0]
    if not found:
        raise InvalidParameterError("models", models, f"at least one of {', '.join(MODELS)}, or an estimator")
    return found, notes


def _make_model(name: str | None, model: Any, *, classes: bool, seed: int) -> tuple[str, Any]:
    if isinstance(model, str):
        if model not in MODELS:
            near = get_close_matches(model, MODELS, n=1)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            raise InvalidParameterError(
                "models", model, f"one of {', '.join(MODELS)}, or an estimator{meant}"
            )
        return name or model, MODELS[model](classes, seed)
    if not (hasattr(model, "fit") and hasattr(model, "predict")) or isinstance(model, type):
        expected = f"one of {', '.join(MODELS)}, or an estimator that is not yet fitted"
        raise InvalidParameterError("models", model, expected)
    wrong = is_regressor(model) if classes else is_classifier(model)
    if wrong:
        raise InvalidParameterError(
            "models", model, "a classifier for classes, or task='regression'" if classes else "a regressor"
        )
    return name or type(model).__name__, clone(model)
