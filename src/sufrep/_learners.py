"""Learners that judge columns, and the losses of those that know probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

if TYPE_CHECKING:
    from sufrep._arrays import Array, Floats

# What a class costs at most that was thought impossible.
LEAST_PROBABILITY = 1e-7


def make_learner(
    estimator: Any, *, classes: bool, n_columns: int, y: Array, random_state: int, **options: Any
) -> Any:
    """A learner that is not yet fitted; one class needs none, and few classifiers take it.

    Parameters
    ----------
    estimator : estimator or None
        What is cloned; None is scikit-learn's histogram gradient boosting.
    classes : bool
        Whether the target is classes.
    n_columns : int
        Columns that the learner will see.
    y : ndarray, shape (n,)
        The target that it will see.
    random_state : int
    **options
        Of the gradient boosting.
    """
    if not n_columns or (classes and len(np.unique(y)) == 1):
        return DummyClassifier() if classes else DummyRegressor()
    if estimator is not None:
        return clone(estimator)
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return kind(early_stopping=False, random_state=random_state, **options)


def log_losses(probabilities: Floats, classes: Array, y: Array) -> Floats:
    """−log of the probability that each row's class was given, which for an unknown class is very small.

    Parameters
    ----------
    probabilities : ndarray, shape (n, n_classes)
    classes : ndarray, shape (n_classes,)
        The classes of the columns.
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
    position = {label: place for place, label in enumerate(classes.tolist())}
    places = np.array([position.get(label, -1) for label in y.tolist()], dtype=np.intp)
    shares = np.column_stack([probabilities, np.zeros(len(y))])
    return np.asarray(-np.log(np.maximum(shares[np.arange(len(y)), places], LEAST_PROBABILITY)))
