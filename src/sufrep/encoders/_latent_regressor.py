"""Lemma 1 as a predictor."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context, clone
from sklearn.utils import check_array, column_or_1d
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from sufrep._frames import Factorized, cross
from sufrep.encoders._latent_state import LatentStateEncoder
from sufrep.encoders._layout import known_columns, read_covariates, resolve_layout
from sufrep.encoders._reading import all_or_nothing, check_length, check_weights, read_group, read_table
from sufrep.errors import ExpertError, NoCovariateError, TargetError, UnseenLevelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats
    from sufrep._frames import Table
    from sufrep.encoders._layout import Column, Group
    from sufrep.solvers.mixture import Mixture
    from sufrep.solvers.regressions import NormalScores

# Rounds in which experts of another kind and the posteriors that weight them take turns.
_EXPERT_ROUNDS = 3


class LatentStateRegressor(RegressorMixin, BaseEstimator):
    """Predict with the formula of lemma 1: Σ_l P(L = l | x, g) · E[Y | x, l].

    Assumption (figure 1 of the paper): the level acts on covariates and target only through a hidden state
    L. `LatentStateEncoder` fits the mixture, with the target in it; the posterior of the row's state then
    weighs what each state's expert predicts. Where the assumption holds, this is what the best prediction
    looks like; a learner that is given the encoding has to find the product of the two for itself.

    Parameters
    ----------
    group, covariates, categorical_covariates, unseen, missing
        As in `LatentStateEncoder`. Several groups are crossed. Without any, all rows are of one level, and
        this is a mixture of regressions.
    n_states, concentration, n_starts, max_iter, tol, random_state
        As in `LatentStateEncoder`.
    cv : int, default=3
        Number of folds for ``n_states="auto"``; anything else that `LatentStateEncoder` takes stands for 3.
    expert : regressor or None, default=None
        Predicts the target within a state; any of scikit-learn that takes ``sample_weight``. It is fitted
        for each state with the posteriors of the rows as weights, and posteriors and experts take turns a
        few times. None is a ridge regression, drawn to that of all rows, whose slopes may bend in the middle
        of each covariate; it takes part in every round of EM.

    Attributes
    ----------
    encoder_ : LatentStateEncoder
        The fitted mixture and its maps.
    levels_ : ndarray of object, shape (n_levels,)
    states_ : dict of str to ndarray
        What was learnt of each state: its ``share`` of the rows, their mean ``target``, the ``noise``
        (standard deviation) of its expert, each of shape (n_states,), and the mean ``covariates``,
        (n_states, n_covariates).
    covariate_means_ : ndarray, shape (n_covariates,)
        What an ``expert`` gets in place of nulls.
    experts_ : list of regressors or None
        The experts, where ``expert`` was given.
    n_iter_ : int
        Rounds of EM.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import pandas as pd
    >>> from sufrep import LatentStateRegressor, simulate
    >>> sample = simulate("latent_linear", n=3000, n_latent=3, levels_per_latent=20)
    >>> X = pd.DataFrame(sample.columns())
    >>> model = LatentStateRegressor("group").fit(X[:2500], sample.y[:2500])
    >>> model.states_["share"].round(2)
    array([0.34, 0.33, 0.32])
    >>> bayes = ((sample.y - sample.conditional_mean)[2500:] ** 2).mean()
    >>> bool(((sample.y[2500:] - model.predict(X[2500:])) ** 2).mean() < 1.15 * bayes)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "group": [str, Integral, tuple, list, None],
        "covariates": [list, tuple, np.ndarray, None],
        "categorical_covariates": [StrOptions({"ignore", "share"})],
        "unseen": [StrOptions({"prior", "error"})],
        "missing": [StrOptions({"level", "prior", "error"})],
        "n_states": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "expert": [HasMethods(["fit", "predict"]), None],
        "concentration": [Interval(Real, 0, None, closed="neither")],
        "cv": ["cv_object"],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        group: Group | list[Group] | None = None,
        *,
        covariates: Sequence[Column] | None = None,
        categorical_covariates: Literal["ignore", "share"] = "ignore",
        unseen: Literal["prior", "error"] = "prior",
        missing: Literal["level", "prior", "error"] = "level",
        n_states: int | Literal["auto"] = "auto",
        expert: Any = None,
        concentration: float = 1.0,
        cv: Any = 3,
        n_starts: int = 3,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: int = 0,
    ) -> None:
        self.group = group
        self.covariates = covariates
        self.categorical_covariates = categorical_covariates
        self.unseen = unseen
        self.missing = missing
        self.n_states = n_states
        self.expert = expert
        self.concentration = concentration
        self.cv = cv
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the mixture with the target in it.

        Parameters
        ----------
        X : frame (pandas, polars, pyarrow) or array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
        sample_weight : array-like, shape (n_samples,), optional
            Frequencies.

        Returns
        -------
        self
        """
        if self.expert is not None and not has_fit_parameter(self.expert, "sample_weight"):
            raise ExpertError(self.expert)
        with all_or_nothing(self):
            self._learn(X, y, sample_weight)
        return self

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        table = read_table(self, X, reset=True)
        target = _check_target(y)
        check_length(target, table.n_rows)
        weights = check_weights(sample_weight, table.n_rows)
        self.layout_ = resolve_layout(
            table,
            group=self.group,
            covariates=self.covariates,
            share_text=self.categorical_covariates == "share",
            keep=False,
        )
        self.covariates_, columns = read_covariates(table, self.layout_)
        if not self.covariates_:
            raise NoCovariateError(len(table.names), self.layout_.group_names(table.names))
        factor = self._read_levels(table)
        self.levels_ = factor.levels
        rows = np.column_stack([*columns, np.where(factor.codes < 0, np.nan, factor.codes)])
        self.encoder_ = LatentStateEncoder(
            len(columns),
            missing="prior",
            remainder="drop",
            output="posterior",
            use_target=True,
            target_type="continuous",
            **{name: getattr(self, name) for name in _SHARED},
        ).fit(rows, target, weights)
        own = np.ones(len(rows)) if weights is None else weights
        counts = own > 0
        self._describe_states(rows[counts], target[counts], own[counts])

    @property
    def n_iter_(self) -> int:
        """Rounds of EM."""
        check_is_fitted(self)
        return int(self.encoder_.n_iter_)

    def predict(self, X: Any) -> Floats:
        """Σ_l P(L = l | x, g) · E[Y | x, l] of each row; (n_samples,)."""
        rows = self._rows(X)
        return np.asarray((self.encoder_.transform(rows) * self._expert_predictions(rows)).sum(axis=1))

    def predict_by_state(self, X: Any) -> Floats:
        """What the expert of each state predicts; (n_samples, n_states)."""
        return self._expert_predictions(self._rows(X))

    def predict_states(self, X: Any) -> Floats:
        """P(L = l | x, g) of each row; (n_samples, n_states)."""
        rows = self._rows(X)
        return np.asarray(self.encoder_.transform(rows))

    def _read_levels(self, table: Table) -> Factorized:
        """One level for each row; groups are crossed, and without any, all rows are of one level."""
        factors = [read_group(table, columns, self.missing) for columns in self.layout_.groups]
        if not factors:
            return Factorized.from_distinct(np.zeros(table.n_rows, dtype=np.intp), ["all"])
        return factors[0] if len(factors) == 1 else cross(factors, keep_null=self.missing == "level")

    def _rows(self, X: Any) -> Floats:
        """Covariates, and the position of the level that ``fit`` gave it, NaN for none."""
        check_is_fitted(self)
        table = read_table(self, X, reset=False)
        factor = self._read_levels(table)
        position = {level: place for place, level in enumerate(self.levels_.tolist())}
        places = np.array([*(position.get(level, -1) for level in factor.levels.tolist()), -1])
        new = [str(level) for level in factor.levels if level not in position]
        if new and self.unseen == "error":
            raise UnseenLevelError(", ".join(self.layout_.group_names(table.names)), new, len(position))
        codes = places[factor.codes].astype(np.float64)
        codes[codes < 0] = np.nan
        return np.column_stack([*known_columns(table, self.layout_, self.covariates_), codes])

    @property
    def _mixture(self) -> Mixture:
        mixture: Mixture
        (mixture,) = self.encoder_.mixtures_.values()
        return mixture

    def _scores(self, rows: Floats) -> Floats:
        """Covariates on the scale of the mixture; (n, p)."""
        maps: NormalScores
        (maps,) = self.encoder_.normal_scores_.values()
        return maps.apply(list(rows[:, :-1].T))

    def _expert_predictions(self, rows: Floats) -> Floats:
        if self.experts_ is not None:
            filled = self._filled(rows)
            return np.column_stack([expert.predict(filled) for expert in self.experts_])
        assert self._mixture.experts is not None
        return self._mixture.experts.predict(self._scores(rows) - self._mixture.center)

    def _filled(self, rows: Floats) -> Floats:
        """Covariates with their means in place of nulls; (n, p)."""
        return np.where(np.isnan(rows[:, :-1]), self.covariate_means_, rows[:, :-1])

    def _describe_states(self, rows: Floats, target: Floats, own: Floats) -> None:
        """Set what is known of the states, and fit the experts where another kind is asked for."""
        present = ~np.isnan(rows[:, :-1]) * own[:, None]
        self.covariate_means_ = _average(np.nan_to_num(rows[:, :-1]), present)
        filled = self._filled(rows)
        (table,) = self.encoder_.representations_.values()
        shares = table.lookup(rows[:, -1].tolist())
        joint = self._mixture.log_joint(self._scores(rows), shares)
        experts = self._mixture.experts
        assert experts is not None
        density = experts.log_density(self._scores(rows) - self._mixture.center, target)
        posterior = _normalised(joint + density)
        self.experts_: list[Any] | None = None
        for _ in range(_EXPERT_ROUNDS if self.expert is not None else 0):
            self.experts_ = [
                clone(self.expert).fit(filled, target, sample_weight=own * weight) for weight in posterior.T
            ]
            residual = target[:, None] - self._expert_predictions(rows)
            variance = _average(residual**2, own[:, None] * posterior) + 1e-12
            posterior = _normalised(joint - residual**2 / (2 * variance) - np.log(variance) / 2)
        residual = target[:, None] - self._expert_predictions(rows)
        weighted = own[:, None] * posterior
        self.states_ = {
            "share": weighted.sum(axis=0) / own.sum(),
            "target": _average(np.broadcast_to(target[:, None], weighted.shape), weighted),
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


_SHARED = ("n_states", "concentration", "cv", "n_starts", "max_iter", "tol", "random_state")


def _check_target(y: Any) -> Floats:
    if y is None:
        raise TargetError(
            "This regressor requires y to be passed, but the target y is None.",
            "call fit(X, y) with a target.",
        )
    try:
        values = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    except (TypeError, ValueError) as error:
        raise TargetError(f"y is no column of numbers: {error}", "give one number for each row.") from error
    if values.ndim != 1 and values.shape[1] != 1:
        raise TargetError(f"y has the shape {values.shape}.", "give one number for each row.")
    return np.asarray(column_or_1d(values, warn=True))


def _normalised(log: Floats) -> Floats:
    return np.asarray(np.exp(log - logsumexp(log, axis=1, keepdims=True)))


def _average(values: Floats, weights: Floats) -> Floats:
    """Weighted mean of each column; (n_columns,)."""
    return np.asarray((values * weights).sum(axis=0) / np.maximum(weights.sum(axis=0), 1e-300))
