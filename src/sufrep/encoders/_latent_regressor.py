"""Lemma 1 as a predictor."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from sufrep._names import MAX_SEED
from sufrep._sklearn import HasMethods, Interval, StrOptions, fit_context
from sufrep.encoders._inputs import (
    all_or_nothing,
    copy_input_names,
    cross_groups,
    read_table,
    read_table_and_target,
)
from sufrep.encoders._latent_state import LatentStateEncoder
from sufrep.errors import ExpertError, TargetError
from sufrep.solvers.mixture import normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats
    from sufrep._frames import Table
    from sufrep.encoders._inputs import Column, Group, Inputs
    from sufrep.solvers.mixture import Mixture

# Number of times that experts of another kind and the posteriors that weight them are updated in turn.
_EXPERT_ROUNDS = 3
# Parameters of the encoder.
_SHARED = (
    "group",
    "covariates",
    "categorical_covariates",
    "n_states",
    "concentration",
    "cv",
    "n_starts",
    "max_iter",
    "tol",
    "random_state",
    "unseen",
    "missing",
)


@dataclass(eq=False, repr=False)
class LatentStateRegressor(RegressorMixin, BaseEstimator):
    """Predict the target by the hidden state that a row is probably in.

    Use it instead of an encoder and a learner if levels are mixtures of a few kinds, each with its own
    way in which the target depends on the covariates. Each state has a model, and a prediction weights
    the models by the probability of the state given the row: Σ_l P(L = l | x, g) · E[Y | x, l], the
    formula of lemma 1.

    Assumption (figure 1 of the paper): the level acts on covariates and target only through a hidden state
    L. `LatentStateEncoder` fits the mixture, with the target in it; the posterior of the row's state then
    weights the predictions of the states' experts. If the assumption holds, this is the form of the best
    prediction; a learner that is given the encoding has to find the product of the two for itself.

    Parameters
    ----------
    group, covariates, categorical_covariates, unseen, missing
        As in `LatentStateEncoder`. Several groups are crossed. Without any, all rows have the same level, and
        this is a mixture of regressions.
    n_states, concentration, n_starts, max_iter, tol, random_state
        As in `LatentStateEncoder`.
    cv : int, default=3
        Number of folds for ``n_states="auto"``; anything else that `LatentStateEncoder` accepts means 3.
    expert : regressor or None, default=None
        Predicts the target within a state; any regressor that accepts ``sample_weight``. It is fitted for
        each state with the posteriors of the rows as weights, and posteriors and experts are updated in turn
        a few times. None is a ridge regression, shrunk towards that of all rows, whose slopes may change at
        the median of each covariate; it takes part in every round of EM.

    Attributes
    ----------
    encoder_ : LatentStateEncoder
        The fitted mixture and its transformations of the covariates.
    levels_ : ndarray of object, shape (n_levels,)
    states_ : dict of str to ndarray
        What was learnt about each state: its ``share`` of the rows, their mean ``target``, the ``noise``
        (standard deviation) of its expert, each of shape (n_states,), and the mean ``covariates``,
        (n_states, n_covariates).
    covariate_means_ : ndarray, shape (n_covariates,)
        The values that replace nulls for an ``expert``.
    experts_ : list of regressors or None
        The experts, if ``expert`` was given.
    n_iter_ : int
        Number of rounds of EM.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import pandas as pd
    >>> from sufrep import LatentStateRegressor, simulate
    >>> sample = simulate("latent_linear", n=3000, n_latent=3, levels_per_latent=20)
    >>> X = pd.DataFrame(sample.columns())
    >>> model = LatentStateRegressor("group", n_states=3).fit(X[:2500], sample.y[:2500])
    >>> model.states_["share"].round(2)
    array([0.34, 0.33, 0.32])
    >>> bayes = ((sample.y - sample.conditional_mean)[2500:] ** 2).mean()
    >>> bool(((sample.y[2500:] - model.predict(X[2500:])) ** 2).mean() < 1.15 * bayes)
    True
    """

    group: Group | list[Group] | None = None
    _: KW_ONLY
    covariates: Sequence[Column] | None = None
    categorical_covariates: Literal["ignore", "share"] = "ignore"
    unseen: Literal["estimate", "prior", "error"] = "estimate"
    missing: Literal["level", "prior", "error"] = "level"
    n_states: int | Literal["auto"] = "auto"
    expert: Any = None
    concentration: float = 1.0
    cv: Any = 3
    n_starts: int = 3
    max_iter: int = 500
    tol: float = 1e-6
    random_state: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "group": [str, Integral, tuple, list, None],
        "covariates": [list, tuple, np.ndarray, None],
        "categorical_covariates": [StrOptions({"ignore", "share"})],
        "unseen": [StrOptions({"estimate", "prior", "error"})],
        "missing": [StrOptions({"level", "prior", "error"})],
        "n_states": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "expert": [HasMethods(["fit", "predict"]), None],
        "concentration": [Interval(Real, 0, None, closed="neither")],
        "cv": ["cv_object"],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": [Interval(Integral, 0, MAX_SEED, closed="both")],
    }

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the mixture with the target in it.

        Parameters
        ----------
        X : frame (pandas, polars, pyarrow) or array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,), or str
            The target, or the name of its column in the frame X, which is then no covariate.
        sample_weight : array-like, shape (n_samples,), optional
            Frequencies: a row with weight 2 counts as two rows.

        Returns
        -------
        self
        """
        if self.expert is not None and not has_fit_parameter(self.expert, "sample_weight"):
            raise ExpertError(self.expert)
        with all_or_nothing(self):
            table, y = read_table_and_target(self, X, y)
            self._learn(table, _check_target(y), sample_weight)
        return self

    def _learn(self, table: Table, y: Floats, sample_weight: Any) -> None:
        self.encoder_ = LatentStateEncoder(
            remainder="drop",
            output="posterior",
            use_target=True,
            target_type="continuous",
            # Folds in time would also decide how the states are counted and ordered.
            **{name: getattr(self, name) for name in _SHARED}
            | ({} if isinstance(self.cv, Integral) else {"cv": 3}),
        )
        # Read as the encoder does, with all groups crossed into one.
        layout = cross_groups(self.encoder_._layout_of(table))
        inputs = self.encoder_._read_rows(table, layout, y, sample_weight)
        copy_input_names(self, self.encoder_)
        self.encoder_._learn(inputs)
        self.levels_ = inputs.factors[0].levels
        weights = np.ones(len(y)) if inputs.weights is None else inputs.weights
        counts = weights > 0
        matrix, y, weights = _matrix(inputs)[counts], y[counts], weights[counts]
        self.covariate_means_ = _average(np.nan_to_num(matrix), ~np.isnan(matrix) * weights[:, None])
        (representation,), (factor,) = self.encoder_.representations_.values(), inputs.factors
        positions = np.append(representation.positions(factor.levels.tolist()), -1)[factor.codes[counts]]
        joint = self._mixture.log_joint(self._scores(matrix), representation.with_prior()[positions])
        self._describe_states(matrix, y, weights, self._fit_experts(matrix, y, weights, joint))

    @property
    def n_iter_(self) -> int:
        """Number of rounds of EM."""
        check_is_fitted(self)
        return int(self.encoder_.n_iter_)

    def predict(self, X: Any) -> Floats:
        """Σ_l P(L = l | x, g) · E[Y | x, l] of each row; (n_samples,)."""
        inputs = self._read_new(X)
        return np.asarray((self._posterior(inputs) * self._expert_predictions(_matrix(inputs))).sum(axis=1))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions; ``y`` as in ``fit``."""
        check_is_fitted(self)
        _, y = read_table_and_target(self, X, y, reset=False)
        return float(super().score(X, y, sample_weight))

    def predict_by_state(self, X: Any) -> Floats:
        """Predictions of the expert of each state; (n_samples, n_states)."""
        return self._expert_predictions(_matrix(self._read_new(X)))

    def predict_states(self, X: Any) -> Floats:
        """P(L = l | x, g) of each row; (n_samples, n_states)."""
        return self._posterior(self._read_new(X))

    def _read_new(self, X: Any) -> Inputs:
        check_is_fitted(self)
        return self.encoder_._read_new_rows(read_table(self, X, reset=False))

    def _posterior(self, inputs: Inputs) -> Floats:
        (lookup,) = self.encoder_._lookups(inputs, training=False)
        return np.asarray(lookup.values)

    @property
    def _mixture(self) -> Mixture:
        mixture: Mixture
        (mixture,) = self.encoder_.mixtures_.values()
        return mixture

    def _scores(self, matrix: Floats) -> Floats:
        """Covariates on the scale of the mixture; (n, p)."""
        (maps,) = self.encoder_.normal_scores_.values()
        return np.asarray(maps.apply(list(matrix.T)))

    def _expert_predictions(self, matrix: Floats) -> Floats:
        if self.experts_ is not None:
            filled = self._filled(matrix)
            return np.column_stack([expert.predict(filled) for expert in self.experts_])
        return np.asarray(self._joint_experts().predict(self._scores(matrix) - self._mixture.center))

    def _joint_experts(self) -> Any:
        """The experts that were fitted jointly with the mixture."""
        return self._mixture.experts

    def _filled(self, matrix: Floats) -> Floats:
        """Covariates with their means in place of nulls; (n, p)."""
        return np.where(np.isnan(matrix), self.covariate_means_, matrix)

    def _fit_experts(self, matrix: Floats, y: Floats, weights: Floats, joint: Floats) -> Floats:
        """Set the experts, and return P(L = l | x, y, g) of each row; (n, n_states).

        ``joint`` is log P(L = l, x | g), up to a term that is the same for all states; (n, n_states).
        """
        density = self._joint_experts().log_density(self._scores(matrix) - self._mixture.center, y)
        posterior, filled = normalised(joint + density), self._filled(matrix)
        self.experts_: list[Any] | None = None
        for _ in range(_EXPERT_ROUNDS if self.expert is not None else 0):
            self.experts_ = [
                clone(self.expert).fit(filled, y, sample_weight=weights * share) for share in posterior.T
            ]
            residual = y[:, None] - self._expert_predictions(matrix)
            variance = _average(residual**2, weights[:, None] * posterior) + 1e-12
            posterior = normalised(joint - residual**2 / (2 * variance) - np.log(variance) / 2)
        return posterior

    def _describe_states(self, matrix: Floats, y: Floats, weights: Floats, posterior: Floats) -> None:
        """Set what is known about the states; ``posterior`` is P(L = l | x, y, g), (n, n_states)."""
        filled, weighted = self._filled(matrix), weights[:, None] * posterior
        residual = y[:, None] - self._expert_predictions(matrix)
        self.states_ = {
            "share": weighted.sum(axis=0) / weights.sum(),
            "target": _average(np.broadcast_to(y[:, None], weighted.shape), weighted),
            "noise": np.sqrt(_average(residual**2, weighted)),
            "covariates": np.column_stack(
                [_average(np.broadcast_to(column[:, None], weighted.shape), weighted) for column in filled.T]
            ),
        }

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "states_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = self.group is not None
        return tags


def _matrix(inputs: Inputs) -> Floats:
    """The covariates as one array; (n, p)."""
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in inputs.columns])


def _check_target(y: Any) -> Floats:
    if y is None:
        raise TargetError(
            "This regressor requires y to be passed, but the target y is None.",
            "call fit(X, y) with a target.",
        )
    try:
        values = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    except (TypeError, ValueError) as error:
        raise TargetError(
            f"y is not a column of numbers: {error}", "give one number for each row."
        ) from error
    if values.ndim != 1 and values.shape[1] != 1:
        raise TargetError(f"y has the shape {values.shape}.", "give one number for each row.")
    return np.asarray(column_or_1d(values, warn=True))


def _average(values: Floats, weights: Floats) -> Floats:
    """Weighted mean of each column; (n_columns,)."""
    return np.asarray((values * weights).sum(axis=0) / np.maximum(weights.sum(axis=0), 1e-300))
