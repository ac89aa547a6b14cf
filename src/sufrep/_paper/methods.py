"""One method with one model on one data: choose k, encode, fit, and measure the loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._models import log_losses
from sufrep._paper.models import TAKES_SPARSE, make_model, peer_columns
from sufrep._paper.names import NATIVE, PEER_ENCODINGS, VARIANTS
from sufrep.encoders import METHODS, make_encoder

if TYPE_CHECKING:
    from sufrep._arrays import Floats
    from sufrep._paper.samples import TrialData

# Candidates for 3-fold cross-validation on the training rows, as in the paper; first k, then alpha given k.
COMPONENTS = (5, 10, 15)
ALPHAS = (0.001, 0.01, 0.1)
CHOICE_FOLDS = 3
# While choosing, a forest has this many times fewer trees.
CHOICE_TREES = 8

# One-hot columns with more cells than this stay sparse.
MAX_DENSE_CELLS = 2e7

# Where our default differs from the paper, or does not suit trees.
_PAPER_PARAMETERS: dict[str, dict[str, Any]] = {
    "sparse_low_rank": {"center": False},
    "latent_state": {"output": "both"},
}


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The name of a model, its number of trees and its seed."""

    name: str
    n_trees: int
    seed: int


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The loss on the test rows, and what was fitted.

    Attributes
    ----------
    loss : float
        Mean squared error, or for classes the mean of −log of the predicted probability.
    n_columns : int
        Number of columns that the method adds to the covariates.
    k : int or None
        Number of components, if the method chooses it.
    alpha : float or None
        Sparsity, if the method chooses it.
    """

    loss: float
    n_columns: int = 0
    k: int | None = None
    alpha: float | None = None


def chooses_components(method: str) -> bool:
    """Return whether the number of components of a method is chosen by cross-validation."""
    return method in METHODS and "n_components" in METHODS[method][0]().get_params()


def evaluate(
    data: TrialData, method: str, settings: ModelSettings, *, k_index_bug: bool = False
) -> TrialResult:
    """Encode, fit on the training rows, and measure the loss on the test rows."""
    if method == "bayes":
        return TrialResult(_squared_error(data, _truth(data).conditional_mean[data.test]))
    if method == NATIVE:
        return TrialResult(_native(data, settings))
    parameters = _choose(data, method, settings)
    if k_index_bug and parameters.get("n_components") in COMPONENTS:
        parameters["n_components"] = 1 + COMPONENTS.index(parameters["n_components"])
    result = _fit(data, method, settings, parameters)
    return replace(result, k=parameters.get("n_components"), alpha=parameters.get("alpha"))


def _choose(data: TrialData, method: str, settings: ModelSettings) -> dict[str, Any]:
    """Choose the number of components, and the sparsity, by cross-validation within the training rows."""
    if not chooses_components(method):
        return {}
    chosen: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {"n_components": [k for k in COMPONENTS if k <= data.X.shape[1]] or [1]}
    if "alpha" in METHODS[method][0]().get_params():
        grid["alpha"] = list(ALPHAS)
    fewer_trees = replace(settings, n_trees=max(4, settings.n_trees // CHOICE_TREES // 4 * 4))
    inner = data.inner(CHOICE_FOLDS, settings.seed)
    for name, values in grid.items():
        losses = [
            np.mean([_fit(part, method, fewer_trees, {**chosen, name: value}).loss for part in inner])
            for value in values
        ]
        chosen[name] = values[int(np.argmin(losses))]
    return chosen


def _fit(data: TrialData, method: str, settings: ModelSettings, parameters: dict[str, Any]) -> TrialResult:
    # xgboost treats the zeros of a sparse matrix as missing, so covariates must not contain any.
    # test_zeros_among_the_covariates_mean_zero_to_xgboost_too fails without this.
    sparse = method == "one_hot" and settings.name in TAKES_SPARSE
    if sparse and _dense_cells(data) > MAX_DENSE_CELLS:
        data = replace(data, X=without_zeros(data.X))
    train, test = _encode(data, method, settings, parameters, sparse=sparse and bool(data.X.all()))
    loss = _test_loss(data, settings, train, test, n_columns=train.shape[1])
    return TrialResult(loss, n_columns=train.shape[1] - data.X.shape[1])


def _test_loss(data: TrialData, settings: ModelSettings, train: Any, test: Any, *, n_columns: int) -> float:
    """Fit the model to training rows as it sees them, and return its mean loss on the test rows."""
    model = make_model(
        settings.name,
        n_columns=n_columns,
        n_trees=settings.n_trees,
        seed=settings.seed,
        classes=data.has_classes,
        n_groups=len(data.all_codes),
    )
    model.fit(train, data.y[~data.test])
    if data.has_classes:
        probabilities = np.asarray(model.predict_proba(test), dtype=float)
        return float(log_losses(probabilities, np.asarray(model.classes_), data.y[data.test]).mean())
    return _squared_error(data, np.asarray(model.predict(test)).reshape(-1))


def _dense_cells(data: TrialData) -> int:
    n, p = data.X.shape
    return int(n * (p + sum(len(np.unique(codes)) for codes in data.all_codes)))


def without_zeros(X: Floats) -> Floats:
    """Shift columns that contain a zero so that their minimum is 1; trees split them as before.

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
    data: TrialData, method: str, settings: ModelSettings, parameters: dict[str, Any], *, sparse: bool
) -> tuple[Any, Any]:
    """Return training and test rows as the model sees them; the encoder is fitted to the training rows."""
    train, test = ~data.test, data.test
    if method in ("drop", "oracle"):
        columns = [data.X] if method == "drop" else [data.X, _truth(data).state_probabilities]
        rows = np.column_stack(columns)
        return rows[train], rows[test]
    if method in PEER_ENCODINGS:
        y, kind = data.y[train], data.target_type
        parts = [
            (data.X[train], data.X[test]),
            *(
                peer_columns(method, codes[train], y, codes[test], settings.seed, kind)
                for codes in data.all_codes
            ),
        ]
        return np.hstack([seen for seen, _ in parts]), np.hstack([new for _, new in parts])
    name, own = VARIANTS.get(method, (method, _PAPER_PARAMETERS.get(method, {})))
    if sparse:
        own = {"sparse_output": True}
    if method == "sufficient":
        own = {"target_type": data.target_type, "estimator": _judge(settings, classes=data.has_classes)}
    elif "target_type" in METHODS[name][0]().get_params():
        own = {**own, "target_type": data.target_type}
    encoder = make_encoder(name, group=data.group, **own, **parameters)
    table = data.table
    return encoder.fit_transform(table[train], data.y[train]), encoder.transform(table[test])


def _judge(settings: ModelSettings, *, classes: bool) -> Any:
    """Return what `SufficientEncoder` judges by: the next model, or None (its own) if that is slow.

    Instead of tuned trees, which are slow too, it is xgboost with the settings of the paper.
    """
    if settings.name not in ("xgboost", "xgboost_tuned"):
        return None
    return make_model("xgboost", n_columns=0, n_trees=settings.n_trees, seed=settings.seed, classes=classes)


def _native(data: TrialData, settings: ModelSettings) -> float:
    """Return the loss of a model that reads the group column without an encoding."""
    train, test = data.table[~data.test], data.table[data.test]
    return _test_loss(data, settings, train, test, n_columns=data.X.shape[1])


def _truth(data: TrialData) -> Any:
    assert data.truth is not None, "plans allow oracle and bayes only for simulated samples"
    return data.truth


def _squared_error(data: TrialData, predicted: Any) -> float:
    return float(np.mean((predicted - data.y[data.test]) ** 2))
