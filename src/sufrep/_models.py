"""Models by name, the model that encoders judge columns by, and the log loss."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
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

from sufrep.errors import InvalidParameterError, MissingDependencyError, check_name, import_package

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sufrep._arrays import Array, Floats

# Boosted trees of `compare`: what most people would try first.
COMPARISON_XGBOOST = {"n_estimators": 200, "max_depth": 5, "learning_rate": 0.1}
# Boosted trees of the paper's experiments: chosen by hand for speed; see docs/results/paper.md.
PAPER_XGBOOST = {"n_estimators": 100, "learning_rate": 0.2, "max_depth": 4, "n_jobs": 1}
# Trees of a forest. grf's default is 2,000; more trees change the error little and the time in proportion.
COMPARISON_TREES = 100
PAPER_TREES = 100
# The smallest probability that the log loss counts with.
MIN_PROBABILITY = 1e-7


# Models by name


def check_models(models: str | Any | Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Label models without building them, and check what can be checked before the target is known.

    Parameters
    ----------
    models : str, estimator, sequence of these, or mapping of str to any of these

    Returns
    -------
    dict of str to str or estimator
        Names of `MODELS`, or the estimators of the user.
    """
    if isinstance(models, Mapping):
        labelled = list(models.items())
    else:
        listed = models if isinstance(models, (list, tuple)) else [models]
        labelled = [(_label(model), model) for model in listed]
    for _, model in labelled:
        _check_model(model)
    if not labelled:
        raise InvalidParameterError("models", models, f"at least one of {', '.join(MODELS)}, or an estimator")
    found = dict(labelled)
    if len(found) < len(labelled):
        twice = next(label for i, (label, _) in enumerate(labelled) if label in dict(labelled[:i]))
        raise InvalidParameterError("models", models, f"a list without duplicates; {twice!r} occurs twice")
    missing = [model for model in found.values() if not _is_installed(model)]
    if len(missing) == len(found):
        raise _missing(missing[0])
    return found


def make_models(
    models: str | Any | Sequence[Any] | Mapping[str, Any], *, classes: bool, seed: int
) -> tuple[dict[str, Any], list[str]]:
    """Build the models, unfitted.

    Parameters
    ----------
    models : str, estimator, sequence of these, or mapping of str to any of these
    classes : bool
        Whether classifiers are needed.
    seed : int

    Returns
    -------
    dict of str to estimator, and list of str
        The models by label, and notes on those that are not installed.
    """
    found: dict[str, Any] = {}
    notes: list[str] = []
    for label, model in check_models(models).items():
        if _is_installed(model):
            found[label] = _make_model(model, classes=classes, seed=seed)
        else:
            notes.append(f"{model} was left out. {' '.join(str(_missing(model)).split())}")
    return found, notes


class LabelledClassifier(ClassifierMixin, BaseEstimator):
    """Makes a classifier that expects the classes 0, 1, … accept classes of any type.

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
        """Return the most probable class of each row; (n,)."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes; (n, n_classes)."""
        return np.asarray(self.estimator_.predict_proba(X))


def regression_forest(n_trees: int, max_features: float, seed: int) -> RandomForestRegressor:
    """Make Breiman's forest; `max_features` is the number, or the share, of columns to try at a split."""
    return RandomForestRegressor(
        n_trees, max_features=max_features, min_samples_leaf=5, n_jobs=1, random_state=seed
    )


def boosted_trees(name: str, settings: Mapping[str, Any], *, classes: bool = False, seed: int) -> Any:
    """Make boosted trees of xgboost; an error that it is missing speaks of the model `name`."""
    xgboost = import_package(*_needed_by(name))
    options = {**settings, "n_jobs": 1, "random_state": seed}
    if classes:
        return LabelledClassifier(xgboost.XGBClassifier(**options))
    return xgboost.XGBRegressor(**options)


def _needed_by(name: str) -> tuple[str, str, str]:
    """The package of boosted trees, what it is needed for, and its extra."""
    return "xgboost", f"The model {name!r}", "boost"


def _forest(classes: bool, seed: int) -> Any:
    """Breiman's forest; a third of the columns (for classes: the square root) is tried at a split."""
    if classes:
        return RandomForestClassifier(COMPARISON_TREES, min_samples_leaf=3, n_jobs=1, random_state=seed)
    return regression_forest(COMPARISON_TREES, 1 / 3, seed)


def _xgboost(classes: bool, seed: int) -> Any:
    return boosted_trees("xgboost", COMPARISON_XGBOOST, classes=classes, seed=seed)


def _boosting(classes: bool, seed: int, **options: Any) -> Any:
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return kind(**{"early_stopping": False, "random_state": seed, **options})


def _stopping_boosting(classes: bool, seed: int) -> Any:
    """Boosting that stops when a tenth of its training rows, which it sets aside, gains no more.

    Without it, columns that say nothing look as if they helped a little: the model overfits to the others.
    """
    return _boosting(classes, seed, early_stopping=True)


def is_default_boosting(model: Any) -> bool:
    """Return whether a model is what the name "boosting" stands for, whatever its seed."""
    if not isinstance(model, (HistGradientBoostingRegressor, HistGradientBoostingClassifier)):
        return False
    own = _stopping_boosting(is_classifier(model), model.random_state)
    return bool(model.get_params() == own.get_params())


def _linear(classes: bool, _seed: int) -> Any:
    model = LogisticRegression(max_iter=1000) if classes else Ridge()
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), model)


# The models of comparisons, for numbers and classes, with settings that most people would try first. Those of
# the paper are another list (`_paper.models`): regressions only, some of which read the group column, with
# settings that results were published with. "forest" and "xgboost" are other models there.
MODELS: dict[str, Callable[[bool, int], Any]] = {
    "boosting": _stopping_boosting,
    "xgboost": _xgboost,
    "forest": _forest,
    "linear": _linear,
}
# Package, purpose and extra of the models that need more than scikit-learn.
_REQUIRED = {"xgboost": _needed_by("xgboost")}


def _label(model: Any) -> str:
    return model if isinstance(model, str) else type(model).__name__


def _check_model(model: Any) -> None:
    if isinstance(model, str):
        check_name("models", model, MODELS, ", or an estimator")
    elif not (hasattr(model, "fit") and hasattr(model, "predict")) or isinstance(model, type):
        expected = f"one of {', '.join(MODELS)}, or an unfitted estimator"
        raise InvalidParameterError("models", model, expected)


def _make_model(model: Any, *, classes: bool, seed: int) -> Any:
    if isinstance(model, str):
        return MODELS[model](classes, seed)
    if is_regressor(model) if classes else is_classifier(model):
        expected = "a classifier for classes, or task='regression'" if classes else "a regressor"
        raise InvalidParameterError("models", model, expected)
    return clone(model)


def _is_installed(model: Any) -> bool:
    return not isinstance(model, str) or model not in _REQUIRED or find_spec(_REQUIRED[model][0]) is not None


def _missing(model: str) -> MissingDependencyError:
    return MissingDependencyError(*_REQUIRED[model])


# Judging columns


def make_learner(
    estimator: Any, *, classes: bool, n_columns: int, y: Array, random_state: int, **options: Any
) -> Any:
    """Return the unfitted model that judges columns.

    Without columns, or with a single class, which few classifiers accept, it is a constant prediction.

    Parameters
    ----------
    estimator : estimator or None
        It is cloned; None is scikit-learn's histogram gradient boosting.
    classes : bool
        Whether the target is classes.
    n_columns : int
        Number of columns that the model will be fitted to.
    y : ndarray, shape (n,)
        Target that it will be fitted to.
    random_state : int
    **options
        Parameters of the gradient boosting.
    """
    if not n_columns or (classes and len(np.unique(y)) == 1):
        return DummyClassifier() if classes else DummyRegressor()
    if estimator is not None:
        return clone(estimator)
    return _boosting(classes, random_state, **options)


def log_losses(probabilities: Floats, classes: Array, y: Array) -> Floats:
    """Return −log of the predicted probability of each row's class.

    The probability of a class that is not among `classes` is `MIN_PROBABILITY`.

    Parameters
    ----------
    probabilities : ndarray, shape (n, n_classes)
    classes : ndarray, shape (n_classes,)
        The class of each column.
    y : ndarray, shape (n,)

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> log_losses(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array(["a", "b"]), np.array(["b", "never seen"]))
    array([ 0.69314718, 16.11809565])
    """
    position = {label: column for column, label in enumerate(classes.tolist())}
    columns = np.array([position.get(label, -1) for label in y.tolist()], dtype=np.intp)
    shares = np.column_stack([probabilities, np.zeros(len(y))])
    return np.asarray(-np.log(np.maximum(shares[np.arange(len(y)), columns], MIN_PROBABILITY)))
