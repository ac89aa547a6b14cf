"""Encodings by name, and their choice of k: one method on one sample gives one error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._paper.models import NATIVE, TAKES_SPARSE, make_model
from sufrep._paper.peers import ENCODINGS, peer_columns
from sufrep.encoders import METHODS, make_encoder

if TYPE_CHECKING:
    from sufrep._arrays import Floats
    from sufrep._paper.samples import Sample

# Encoders of the registry with parameters that make another method of them.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "shrunken_means": ("means", {"shrinkage": "auto"}),
    "latent_state_target": ("latent_state", {"use_target": True, "output": "posterior"}),
}
# Beside our encoders: those of others, and the covariates alone.
KNOWN_METHODS = (*METHODS, *VARIANTS, *ENCODINGS, "drop")

# Chosen among by 3-fold cross-validation on the training rows, as in the paper; k first, then alpha for it.
COMPONENTS = (5, 10, 15)
ALPHAS = (0.001, 0.01, 0.1)
CHOICE_FOLDS = 3
# Trees of a forest while choosing: these many times fewer than of the forest that is then judged.
CHOICE_TREES = 8

# One-hot columns of more cells than this are never made dense.
MOST_DENSE_CELLS = 2e7

# As the paper has it, or as it suits trees, where our default is another.
_PAPERS_OWN: dict[str, dict[str, Any]] = {
    "sparse_low_rank": {"center": False},
    "latent_state": {"output": "both"},
}


@dataclass(frozen=True, slots=True)
class Learner:
    """A model by name, with its number of trees and its seed."""

    model: str
    n_trees: int
    seed: int


@dataclass(frozen=True, slots=True)
class Result:
    """The error on the test rows, and what was fitted.

    Attributes
    ----------
    mse : float
    n_columns : int
        Columns that the method added to the covariates.
    k : int or None
        Components, where the method chooses their number.
    alpha : float or None
        Sparsity, likewise.
    """

    mse: float
    n_columns: int = 0
    k: int | None = None
    alpha: float | None = None


def choose_components(method: str) -> bool:
    """Whether the number of components of a method is chosen by cross-validation."""
    return method in METHODS and "n_components" in METHODS[method][0]().get_params()


def evaluate(sample: Sample, method: str, learner: Learner, *, k_index_bug: bool = False) -> Result:
    """Encode, fit on the training rows, and measure the error on the test rows."""
    if method == "bayes":
        return Result(_error(sample, _truth(sample).conditional_mean[sample.test]))
    if method == NATIVE:
        return Result(_error(sample, _native(sample, learner)))
    parameters = _choose(sample, method, learner)
    if k_index_bug and parameters.get("n_components") in COMPONENTS:
        parameters["n_components"] = 1 + COMPONENTS.index(parameters["n_components"])
    result = _fit(sample, method, learner, parameters)
    return replace(result, k=parameters.get("n_components"), alpha=parameters.get("alpha"))


def _choose(sample: Sample, method: str, learner: Learner) -> dict[str, Any]:
    """Number of components, and sparsity where there is one, by cross-validation inside the training rows."""
    if not choose_components(method):
        return {}
    chosen: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {"n_components": [k for k in COMPONENTS if k <= sample.X.shape[1]] or [1]}
    if "alpha" in METHODS[method][0]().get_params():
        grid["alpha"] = list(ALPHAS)
    fewer_trees = replace(learner, n_trees=max(4, learner.n_trees // CHOICE_TREES // 4 * 4))
    inner = sample.inner(CHOICE_FOLDS, learner.seed)
    for name, values in grid.items():
        errors = [
            np.mean([_fit(part, method, fewer_trees, {**chosen, name: value}).mse for part in inner])
            for value in values
        ]
        chosen[name] = values[int(np.argmin(errors))]
    return chosen


def _fit(sample: Sample, method: str, learner: Learner, parameters: dict[str, Any]) -> Result:
    # What a sparse matrix leaves out is zero to us and missing to xgboost, so covariates must hold no zero.
    # test_zeros_among_the_covariates_mean_zero_to_xgboost_too fails without.
    sparse = method == "one_hot" and learner.model in TAKES_SPARSE
    if sparse and _dense_cells(sample) > MOST_DENSE_CELLS:
        sample = replace(sample, X=without_zeros(sample.X))
    train, test = _encode(sample, method, learner, parameters, sparse=sparse and bool(sample.X.all()))
    model = make_model(learner.model, n_columns=train.shape[1], n_trees=learner.n_trees, seed=learner.seed)
    model.fit(train, sample.y[~sample.test])
    error = _error(sample, np.asarray(model.predict(test)).reshape(-1))
    return Result(error, n_columns=train.shape[1] - sample.X.shape[1])


def _dense_cells(sample: Sample) -> int:
    n, p = sample.X.shape
    return int(n * (p + len(np.unique(sample.codes))))


def without_zeros(X: Floats) -> Floats:
    """Columns that hold a zero, shifted so that their minimum is 1; trees split them as before.

    Examples
    --------
    >>> import numpy as np
    >>> without_zeros(np.array([[0.0, 5.0], [-2.0, -1.0], [np.nan, 3.0]]))
    array([[ 3.,  5.],
           [ 1., -1.],
           [nan,  3.]])
    """
    holds_zero = (X == 0).any(axis=0)
    shift = np.zeros(X.shape[1])
    shift[holds_zero] = 1 - np.nanmin(X[:, holds_zero], axis=0)
    return X + shift


def _encode(
    sample: Sample, method: str, learner: Learner, parameters: dict[str, Any], *, sparse: bool
) -> tuple[Any, Any]:
    """Training and test rows as the model shall see them; the encoder sees the training rows only."""
    train, test = ~sample.test, sample.test
    if method in ("drop", "oracle"):
        columns = [sample.X] if method == "drop" else [sample.X, _truth(sample).state_probabilities]
        rows = np.column_stack(columns)
        return rows[train], rows[test]
    if method in ENCODINGS:
        seen, new = peer_columns(
            method, sample.codes[train], sample.y[train], sample.codes[test], learner.seed
        )
        return np.hstack([sample.X[train], seen]), np.hstack([sample.X[test], new])
    name, own = VARIANTS.get(method, (method, _PAPERS_OWN.get(method, {})))
    if sparse:
        own = {"sparse_output": True}
    if method == "sufficient":
        own = {"target_type": "continuous", "estimator": _judge(learner)}
    encoder = make_encoder(name, group=sample.X.shape[1], **own, **parameters)
    table = sample.table
    return encoder.fit_transform(table[train], sample.y[train]), encoder.transform(table[test])


def _judge(learner: Learner) -> Any:
    """What `SufficientEncoder` judges by: the model to come, or its own where that one is slow."""
    if learner.model != "xgboost":
        return None
    return make_model(learner.model, n_columns=0, n_trees=learner.n_trees, seed=learner.seed)


def _native(sample: Sample, learner: Learner) -> Floats:
    """Predictions of a model that reads the group column by itself."""
    n_columns = sample.X.shape[1]
    model = make_model(learner.model, n_columns=n_columns, n_trees=learner.n_trees, seed=learner.seed)
    model.fit(sample.table[~sample.test], sample.y[~sample.test])
    return np.asarray(model.predict(sample.table[sample.test])).reshape(-1)


def _truth(sample: Sample) -> Any:
    assert sample.truth is not None, "plans allow oracle and bayes for simulated samples only"
    return sample.truth


def _error(sample: Sample, predicted: Any) -> float:
    return float(np.mean((predicted - sample.y[sample.test]) ** 2))
