"""Propensities and expected outcomes of each row, from models that were fitted to other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from sufrep.errors import EffectDataError
from sufrep.solvers.effects import Nuisances

if TYPE_CHECKING:
    from sufrep._arrays import Codes, Floats
    from sufrep.causal._data import EffectData

# Boosting with few, small steps: propensities should be smooth.
_BOOSTING = {"max_iter": 100, "learning_rate": 0.05, "max_leaf_nodes": 15, "early_stopping": False}
# Bounds of propensities before their logarithm is taken.
_SMALLEST = 1e-6


def default_models(random_state: int) -> tuple[Any, Any]:
    """The models of outcome and propensity that are used if none is given."""
    return (
        HistGradientBoostingRegressor(**_BOOSTING, random_state=random_state),
        HistGradientBoostingClassifier(**_BOOSTING, random_state=random_state),
    )


def accepts_nulls(model: Any) -> bool:
    """Whether a model takes NaN in its features; a pipeline, if all of its steps do."""
    if isinstance(model, Pipeline):
        return all(accepts_nulls(step) for _, step in model.steps if step not in (None, "passthrough"))
    return bool(get_tags(model).input_tags.allow_nan)


def assign_folds(data: EffectData, kind: Literal["group", "row"], n_folds: int, seed: int) -> Codes:
    """The fold of each row; (n,).

    Clusters (without any, groups) are kept whole and shuffled over the folds, or the shuffled rows of each
    arm are distributed in turn. Both depend on the order in which levels appear, not on their names.
    """
    rng = np.random.default_rng(seed)
    if kind == "row":
        folds = np.empty(len(data.rows), dtype=np.intp)
        for arm in (0.0, 1.0):
            rows = rng.permutation(np.flatnonzero(data.treatment == arm))
            folds[rows] = np.arange(len(rows)) % n_folds
        return folds
    whole = data.groups if data.clusters is None else data.clusters
    n_clusters = int(whole.max()) + 1
    if n_clusters < n_folds:
        raise EffectDataError(
            f"There are {n_clusters} clusters for {n_folds} folds that keep them whole.",
            f"use n_folds={max(2, n_clusters)}, or folds='row'.",
        )
    fold = np.empty(n_clusters, dtype=np.intp)
    fold[rng.permutation(n_clusters)] = np.arange(n_clusters) % n_folds
    return fold[whole]


def cross_fit(
    data: EffectData,
    features: Floats,
    folds: list[Codes],
    outcome_model: Any,
    propensity_model: Any,
    *,
    calibration: Literal["sigmoid", "isotonic"] | None,
    n_jobs: int | None,
) -> list[Nuisances]:
    """Predictions for every row by models fitted outside its fold, for each assignment of folds.

    Parameters
    ----------
    data : EffectData
    features : ndarray, shape (n, k)
    folds : list of ndarray of int, each of shape (n,)
        One for each repeat.
    outcome_model, propensity_model : estimator
        A classifier as outcome model predicts the probability of an outcome of 1.
    calibration : {"sigmoid", "isotonic"} or None
        One map for all rows, fitted to the predicted propensities.
    n_jobs : int or None
    """
    if is_classifier(outcome_model) and not np.isin(data.outcome, (0, 1)).all():
        raise EffectDataError(
            f"The outcome model {type(outcome_model).__name__} is a classifier, and the outcome has values "
            "other than 0 and 1.",
            "choose a regressor.",
        )
    weights = None if (data.weights == 1).all() else data.weights
    if not features.shape[1]:
        # Models refuse a table without columns; of a constant they learn the mean.
        features = np.zeros((len(data.rows), 1))
    tasks = [(repeat, fold) for repeat, assigned in enumerate(folds) for fold in np.unique(assigned)]
    for repeat, fold in tasks:
        _check_arms(data.treatment[(folds[repeat] != fold) & (data.weights > 0)])
    known = data.propensity
    found = Parallel(n_jobs=n_jobs)(
        delayed(_predict_fold)(
            features,
            data.treatment,
            data.outcome,
            weights,
            np.flatnonzero(folds[repeat] != fold),
            np.flatnonzero(folds[repeat] == fold),
            outcome_model,
            None if known is not None else propensity_model,
        )
        for repeat, fold in tasks
    )
    nuisances = []
    for repeat, assigned in enumerate(folds):
        table = np.empty((3, len(assigned)))
        for (own, fold), part in zip(tasks, found, strict=True):
            if own == repeat:
                table[:, assigned == fold] = part
        propensity, untreated, treated = table
        if known is not None:
            propensity = known
        elif calibration is not None:
            propensity = _calibrated(propensity, data.treatment, data.weights, calibration)
        nuisances.append(Nuisances(propensity, untreated, treated))
    return nuisances


def _check_arms(treatment: Floats) -> None:
    for arm, name in ((0.0, "untreated"), (1.0, "treated")):
        if not (treatment == arm).any():
            raise EffectDataError(
                f"The rows that the models of a fold are fitted to have no {name} row.",
                "use fewer folds or folds='row', or check how rare the treatment is.",
            )


def _predict_fold(
    features: Floats,
    treatment: Floats,
    outcome: Floats,
    weights: Floats | None,
    train: Codes,
    test: Codes,
    outcome_model: Any,
    propensity_model: Any,
) -> Floats:
    """Propensity, and outcomes without and with treatment, of the test rows; (3, n_test)."""
    found = np.full((3, len(test)), np.nan)
    if propensity_model is not None:
        model = _fit(propensity_model, features, treatment.astype(np.intp), weights, train)
        found[0] = _probability(model, features[test])
    for arm in (0, 1):
        rows = train[treatment[train] == arm]
        by_class = is_classifier(outcome_model)
        target = outcome.astype(np.intp) if by_class else outcome
        if by_class and (target[rows] == target[rows[0]]).all():
            # Many classifiers refuse rows of one class (test_a_classifier_predicts_the_only_class_of_an_arm).
            found[1 + arm] = target[rows[0]]
            continue
        model = _fit(outcome_model, features, target, weights, rows)
        found[1 + arm] = _probability(model, features[test]) if by_class else model.predict(features[test])
    return found


def _fit(model: Any, features: Floats, target: Any, weights: Floats | None, rows: Codes) -> Any:
    fitted = clone(model)
    if weights is None:
        return fitted.fit(features[rows], target[rows])
    # A pipeline hands weights to its last step.
    last = fitted.steps[-1] if isinstance(fitted, Pipeline) else ("", fitted)
    if not has_fit_parameter(last[1], "sample_weight"):
        raise EffectDataError(
            f"{type(last[1]).__name__} takes no sample_weight.",
            "choose a model that does, or give no weights.",
        )
    name = f"{last[0]}__sample_weight" if last[0] else "sample_weight"
    return fitted.fit(features[rows], target[rows], **{name: weights[rows]})


def _probability(model: Any, features: Floats) -> Floats:
    """Probability of class 1, the second of 0 and 1."""
    return np.asarray(model.predict_proba(features)[:, 1])


def _calibrated(propensity: Floats, treatment: Floats, weights: Floats, kind: str) -> Floats:
    """Propensities that agree with how often rows are treated."""
    if kind == "isotonic":
        model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        return np.asarray(model.fit_transform(propensity, treatment, sample_weight=weights))
    bounded = np.clip(propensity, _SMALLEST, 1 - _SMALLEST)
    logit = np.log(bounded / (1 - bounded))[:, None]
    sigmoid = LogisticRegression(C=np.inf, max_iter=1000).fit(logit, treatment, sample_weight=weights)
    return np.asarray(sigmoid.predict_proba(logit)[:, 1])
