"""Encodings by name, and their choice of k: one method on one sample gives one error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._paper.models import NATIVE, TAKES_SPARSE, make_model
from sufrep.encoders import METHODS, make_encoder

if TYPE_CHECKING:
    from sufrep._arrays import Floats
    from sufrep._paper.samples import Sample

# Encoders of the registry with parameters that make another method of them.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "shrunken_means": ("means", {"shrinkage": "auto"}),
    "latent_state_target": ("latent_state", {"use_target": True, "output": "posterior"}),
}
# Beside the encoders: the covariates alone.
KNOWN_METHODS = (*METHODS, *VARIANTS, "drop")

# Chosen among by 3-fold cross-validation on the training rows, as in the paper; k first, then alpha for it.
COMPONENTS = (5, 10, 15)
ALPHAS = (0.001, 0.01, 0.1)
CHOICE_FOLDS = 3
# Trees of a forest while choosing: these many times fewer than of the forest that is then judged.
CHOICE_TREES = 8

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
    sparse = learner.model in TAKES_SPARSE and bool(sample.X.all())
    train, test = _encode(sample, method, parameters, sparse=sparse)
    model = make_model(learner.model, n_columns=train.shape[1], n_trees=learner.n_trees, seed=learner.seed)
    model.fit(train, sample.y[~sample.test])
    error = _error(sample, np.asarray(model.predict(test)).reshape(-1))
    return Result(error, n_columns=train.shape[1] - sample.X.shape[1])


def _encode(sample: Sample, method: str, parameters: dict[str, Any], *, sparse: bool) -> tuple[Any, Any]:
    """Training and test rows as the model shall see them; the encoder sees the training rows only."""
    if method in ("drop", "oracle"):
        columns = [sample.X] if method == "drop" else [sample.X, _truth(sample).state_probabilities]
        rows = np.column_stack(columns)
        return rows[~sample.test], rows[sample.test]
    name, own = VARIANTS.get(method, (method, _PAPERS_OWN.get(method, {})))
    if method == "one_hot" and sparse:
        own = {"sparse_output": True}
    encoder = make_encoder(name, group=sample.X.shape[1], **own, **parameters)
    table = sample.table
    train = encoder.fit_transform(table[~sample.test], sample.y[~sample.test])
    return train, encoder.transform(table[sample.test])


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
