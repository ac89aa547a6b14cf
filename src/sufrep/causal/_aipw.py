"""Doubly robust treatment effects with a high-cardinality confounder."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sufrep._names import EFFECT_WEIGHTS, ESTIMANDS, GROUP_STATISTICS, MAX_SEED
from sufrep._sklearn import HasMethods, Interval, StrOptions, fit_context
from sufrep.causal._data import EffectData, overlapping_groups, read_effect_data
from sufrep.causal._diagnostics import (
    Sensitivity,
    balance_table,
    ladder_steps,
    overlap_by_arm,
    overlap_by_group,
    projection,
    sensitivity_to_confounder,
    subgroup_effects,
)
from sufrep.causal._features import build_features, treatment_marks_rows
from sufrep.causal._fitted import FittedEffect
from sufrep.causal._nuisances import accepts_nulls, assign_folds, cross_fit, default_models
from sufrep.causal._plots import (
    balance_chart,
    effects_chart,
    final_step,
    frame_rows,
    group_chart,
    propensity_chart,
)
from sufrep.encoders._inputs import all_or_nothing
from sufrep.errors import InvalidParameterError, OverlapWarning, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep.causal._estimate import EffectEstimate
    from sufrep.encoders._inputs import Column, Group
    from sufrep.solvers.effects import Estimand

# Fewer clusters, more clipped rows and more dropped rows than these are reported.
_FEW_CLUSTERS = 20
_MANY_CLIPPED = 0.05
_MANY_DROPPED = 0.5
# Pixels, in a notebook.
_CHART_WIDTH = 520


@dataclass(eq=False, repr=False)
class AIPW(BaseEstimator):
    """Estimate the effect of a treatment, controlled for covariates and a group with many levels.

    Hospitals, schools or persons differ in ways that no column records, and that act on treatment and outcome
    alike. AIPW adjusts for the group by the means of the covariates and of the treatment within it, next to
    the row's own covariates, with any scikit-learn models of outcome and treatment. The estimate is right if
    either of the two models is (augmented inverse propensity weighting), and its errors are clustered.

    Assumption: given its covariates and an unobserved confounder that is the same for all rows of a group,
    a row's treatment does not depend on its potential outcomes; and covariates and treatment given the
    confounder are an exponential family whose sufficient statistics are averages of the chosen
    ``statistics`` (Arkhangelsky and Imbens). A confounder that differs within groups is not removed.

    Parameters
    ----------
    outcome_model : estimator, default=None
        Regressor, or for outcomes of 0 and 1 a classifier, whose probabilities are then used. It is fitted to
        treated and untreated rows separately. None is histogram gradient boosting.
    propensity_model : classifier, default=None
        None is histogram gradient boosting.
    group : str, int or tuple
        The column with many levels, or several columns that are crossed. A null is a level of its own.
    covariates : list of str or int, default=None
        The columns to control for; by default all that have no other role. Text of few levels becomes
        indicators.
    encoder : str or encoder, default="means"
        How the covariates of a group are described: the name of a method of `make_encoder`, or an encoder,
        that needs no target.
    statistics : tuple of {"X", "W", "WX"}, default=("X", "W")
        What is known about a group: the description of its covariates ("X"), the share of treated rows ("W"),
        and the means of treatment × covariate ("WX"), which matter if the group changes how treatment depends
        on a covariate. The last needs large groups.
    estimand : {"ATE", "ATT", "ATO"}, default="ATE"
        Average effect on all rows, on the treated rows, or weighted by overlap, as in a partially linear
        model.
    folds : {"group", "row"}, default="group"
        Whether the folds of cross-fitting keep clusters whole, or distribute rows by treatment.
    n_folds : int, default=5
    n_repeats : int, default=1
        Number of random assignments to folds; the result is their median.
    cluster : "auto", str, array or None, default="auto"
        Clusters of the standard error: the group, a column that contains whole groups, or None for
        independent rows. Where the levels are fixed, and not drawn from a population, clustered errors are
        too large.
    weights : {"row", "group"}, default="row"
        Whether rows or groups count the same.
    products : bool, default=False
        Add the products of covariates and statistics to the features, for models that cannot form them.
    clip : float, default=0.01
        Propensities are bounded to [clip, 1 − clip].
    trim : float or None, default=None
        Leave out rows whose propensity is outside [trim, 1 − trim].
    calibration : {"auto", "sigmoid", "isotonic"} or None, default="auto"
        Map of the predicted propensities to those that agree with the treatment; "auto" is "sigmoid" for the
        default propensity model, and none for another.
    n_jobs : int or None, default=None
    random_state : int, default=0

    Attributes
    ----------
    effect_ : EffectEstimate
    propensity_ : ndarray, shape (n_rows,)
        Median over repeats, before trimming and clipping.
    outcome_predictions_ : ndarray, shape (n_rows, 2)
        Expected outcomes without and with treatment, medians over repeats.
    scores_ : ndarray, shape (n_rows,)
        Scores of ``effect_``, whose weighted mean is the estimate; medians over repeats, NaN for trimmed
        rows.
    features_ : ndarray, shape (n_rows, n_features)
        What the models see: covariates and statistics of the group.
    feature_names_ : tuple of str
    rows_ : ndarray of int, shape (n_rows,)
        Positions in X of the rows that were kept.
    dropped_groups_ : tuple of str
        Groups whose rows were all treated or all untreated.
    fitted_ : FittedEffect
        All that was learned, from which the methods compute.
    whole_, data_ : EffectData
        The rows as they were read, and those that were kept.
    nuisances_ : tuple of Nuisances
        Predictions of each repeat.
    n_rows_given_ : int
        Number of rows of X.

    Examples
    --------
    A hospital's quality decides who is treated and how patients do; the treatment itself adds 1:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> from sufrep import AIPW
    >>> rng = np.random.default_rng(0)
    >>> hospital = np.arange(3000) % 100
    >>> quality = rng.normal(size=100)[hospital]
    >>> patients = pd.DataFrame({"hospital": hospital, "age": rng.normal(size=3000) + quality})
    >>> patients["treated"] = rng.random(3000) < 1 / (1 + np.exp(-quality))
    >>> patients["outcome"] = patients["treated"] + 2 * quality + rng.normal(size=3000)
    >>> model = AIPW(LinearRegression(), LogisticRegression(), group="hospital")
    >>> model.fit(patients, treatment="treated", outcome="outcome")
    AIPW(group='hospital', outcome_model=LinearRegression(),
         propensity_model=LogisticRegression())
    >>> raw = patients.groupby("treated")["outcome"].mean().diff().iloc[-1]
    >>> print(round(raw, 1), round(model.effect_.estimate, 1))
    2.5 1.0
    >>> low, high = model.effect_.interval
    >>> low < 1 < high
    True
    """

    outcome_model: Any = None
    propensity_model: Any = None
    _: KW_ONLY
    group: Group | None = None
    covariates: Sequence[Column] | None = None
    encoder: Any = "means"
    statistics: Sequence[str] = ("X", "W")
    estimand: Estimand = "ATE"
    folds: Literal["group", "row"] = "group"
    n_folds: int = 5
    n_repeats: int = 1
    cluster: Any = "auto"
    weights: Literal["row", "group"] = "row"
    products: bool = False
    clip: float = 0.01
    trim: float | None = None
    calibration: Literal["auto", "sigmoid", "isotonic"] | None = "auto"
    n_jobs: int | None = None
    random_state: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "outcome_model": [HasMethods(["fit", "predict"]), None],
        "propensity_model": [HasMethods(["fit", "predict_proba"]), None],
        "group": [str, Integral, tuple],
        "covariates": [list, tuple, np.ndarray, None],
        "encoder": [str, HasMethods(["fit_transform"])],
        "statistics": [tuple, list],
        "estimand": [StrOptions(set(ESTIMANDS))],
        "folds": [StrOptions({"group", "row"})],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "cluster": [str, "array-like", None],
        "weights": [StrOptions(set(EFFECT_WEIGHTS))],
        "products": ["boolean"],
        "clip": [Interval(Real, 0, 0.5, closed="left")],
        "trim": [Interval(Real, 0, 0.5, closed="left"), None],
        "calibration": [StrOptions({"auto", "sigmoid", "isotonic"}), None],
        "n_jobs": [Integral, None],
        "random_state": [Interval(Integral, 0, MAX_SEED, closed="both")],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        *,
        treatment: Any,
        outcome: Any,
        treated: Any = None,
        propensity: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Estimate the effect.

        Parameters
        ----------
        X : frame (pandas, polars, pyarrow) or array, shape (n_samples, n_columns)
        treatment, outcome : str or array, shape (n_samples,)
            A column of X, or values. The treatment has two values.
        treated : optional
            The value of the treatment that means treated; by default 1 of 0 and 1, or True.
        propensity : float, str or array, optional
            Known probabilities of treatment, as in an experiment. No model is fitted for them. The share of
            treated rows still adjusts the models of the outcome, but without the row's own treatment, and no
            group is dropped.
        sample_weight : str or array, optional
            Weights of the rows, in the models and in the effect. The means of a group do not use them.

        Returns
        -------
        self
        """
        self._check_statistics()
        with all_or_nothing(self):
            whole = read_effect_data(
                X,
                group=() if self.group is None else self.group,
                covariates=self.covariates,
                cluster=self.cluster,
                treatment=treatment,
                outcome=outcome,
                treated=treated,
                propensity=propensity,
                sample_weight=sample_weight,
            )
            self._store(self._fit_models(whole, tuple(self.statistics)))
        return self

    def _fit_models(self, whole: EffectData, statistics: tuple[str, ...]) -> FittedEffect:
        # Known propensities are between 0 and 1 in every group, whichever rows happened to be treated.
        needs_overlap = "W" in statistics and whole.propensity is None
        data, dropped = overlapping_groups(whole) if needs_overlap else (whole, ())
        outcome_model, propensity_model = self._models()
        used = [outcome_model] if data.propensity is not None else [outcome_model, propensity_model]
        features = build_features(
            data,
            encoder=self.encoder,
            statistics=statistics,
            products=self.products,
            without_nulls=not all(accepts_nulls(model) for model in used),
        )
        folds = [
            assign_folds(data, self.folds, self.n_folds, self.random_state + repeat)
            for repeat in range(self.n_repeats)
        ]
        nuisances = cross_fit(
            data,
            features.values,
            folds,
            outcome_model,
            propensity_model,
            calibration=self._calibration(),
            n_jobs=self.n_jobs,
        )
        return FittedEffect(
            whole, data, dropped, features, tuple(nuisances), self.weights, self.clip, self.trim
        )

    def _store(self, fitted: FittedEffect) -> None:
        self.fitted_, self.whole_, self.data_ = fitted, fitted.whole, fitted.data
        self.nuisances_, self.n_rows_given_ = fitted.nuisances, len(fitted.whole.rows)
        self.features_, self.feature_names_ = fitted.features.values, fitted.features.names
        self.rows_, self.dropped_groups_ = fitted.data.rows, fitted.dropped
        predicted = fitted.median()
        self.propensity_ = predicted.propensity
        self.outcome_predictions_ = np.column_stack([predicted.untreated, predicted.treated])
        self.effect_ = fitted.effect(self.estimand)
        self.scores_ = fitted.scores(self.estimand)
        self._warn_of_weak_overlap()

    def effect(self, estimand: Estimand) -> EffectEstimate:
        """Another estimand from the same models.

        Parameters
        ----------
        estimand : {"ATE", "ATT", "ATO"}
        """
        if estimand not in ESTIMANDS:
            raise InvalidParameterError("estimand", estimand, f"one of {', '.join(ESTIMANDS)}")
        return self._fitted().effect(estimand)

    def gate(self, by: Any, *, library: str | None = None) -> Any:
        """Effects in the subgroups that a column defines, with clustered errors.

        Parameters
        ----------
        by : str or array, shape (n_samples,)
            A column of X, or a value for each row of X. Nulls are a subgroup of their own.
        library : {"pandas", "polars", "pyarrow"}, optional
            Kind of the frame that is returned.

        Returns
        -------
        frame
            One row for each value: estimate, standard error, interval, p value, rows. NaN where a subgroup
            does not determine the effect, such as the ATT of rows that are all untreated.
        """
        return subgroup_effects(self._fitted(), self.estimand, by, library)

    def best_linear_projection(self, columns: Any, *, library: str | None = None) -> Any:
        """How the effect changes with columns: least squares of the scores on them, clustered.

        Parameters
        ----------
        columns : list of str, or array, shape (n_samples, k)
            Numeric columns of X, or values for each row of X.
        library : {"pandas", "polars", "pyarrow"}, optional

        Returns
        -------
        frame
            One row for the intercept and for each column.
        """
        fitted = self._fitted()
        if self.estimand != "ATE":
            raise InvalidParameterError("estimand", self.estimand, "'ATE', whose scores are effects of rows")
        return projection(fitted, columns, library)

    def ladder(self, *, library: str | None = None) -> Any:
        """What adjusting for more and more does to the estimate.

        The steps: the raw difference, covariates only, with the group's means of the covariates, with its
        share of treated rows, with the means of treatment × covariates (where groups are large enough), and
        the linear fixed effect.

        Returns
        -------
        frame
            One row for each step that can be estimated, all from the rows of ``effect_``. The linear fixed
            effect is that of all rows.
        """
        return ladder_steps(self._fitted(), self.estimand, self._refit, library)

    def balance(self, *, library: str | None = None) -> Any:
        """Standardised differences between treated and untreated rows, before and after weighting.

        Returns
        -------
        frame
            One row for each covariate and each statistic of the group: its difference in standard deviations.
        """
        return balance_table(self._fitted(), self.estimand, library)

    def overlap_report(self, *, by_group: bool = False, library: str | None = None) -> Any:
        """How well treated and untreated rows overlap, overall or in each group.

        Parameters
        ----------
        by_group : bool, default=False
        library : {"pandas", "polars", "pyarrow"}, optional

        Returns
        -------
        frame
            One row for each arm: rows, effective rows, quantiles of the propensities, rows outside bounds. Or
            one row for each group: rows, treated rows, the range of the propensities, whether it was dropped.
        """
        fitted = self._fitted()
        if by_group:
            return overlap_by_group(fitted, library)
        return overlap_by_arm(fitted, self.estimand, library)

    def plot_ladder(self) -> Any:
        """Draw the steps of `ladder` with their 95 % intervals, as an Altair chart."""
        steps = frame_rows(self.ladder())
        chart = effects_chart(
            steps, "step", value_title="estimated effect on the outcome", highlighted=final_step(self, steps)
        )
        return chart.properties(width=_CHART_WIDTH)

    def plot_overlap(self) -> Any:
        """Draw the propensities of both arms, and the share of treated rows of each group."""
        check_is_fitted(self, "nuisances_")
        charts = [propensity_chart(self), group_chart(self, "group")]
        first, second = (chart.properties(width=_CHART_WIDTH) for chart in charts)
        return (first & second).resolve_scale(color="independent")

    def plot_balance(self) -> Any:
        """Draw the differences of `balance` before and after weighting, a love plot."""
        return balance_chart(frame_rows(self.balance())).properties(width=_CHART_WIDTH)

    def sensitivity(
        self, cf_y: float = 0.03, cf_d: float = 0.03, rho: float = 1.0, *, null: float = 0.0
    ) -> Sensitivity:
        """How strong an unobserved confounder would have to be to change the conclusion.

        It cannot detect a violated assumption; it says what a violation of a given strength would do.

        Parameters
        ----------
        cf_y, cf_d : float, default=0.03
            Shares of what is left unexplained of the outcome, and of the variance of the weights, that the
            confounder would explain.
        rho : float, default=1.0
            Correlation of the two, 1 in the worst case.
        null : float, default=0.0
            The effect to compare with.
        """
        return sensitivity_to_confounder(
            self._fitted(), self.estimand, self._refit, cf_y=cf_y, cf_d=cf_d, rho=rho, null=null
        )

    def _fitted(self) -> FittedEffect:
        check_is_fitted(self, "fitted_")
        return self.fitted_

    def _refit(self, statistics: tuple[str, ...]) -> FittedEffect:
        """The same models, fitted to the same rows with other statistics."""
        if set(statistics) == set(self.statistics):
            return self.fitted_
        return self._fit_models(self.fitted_.data, statistics)

    def _models(self) -> tuple[Any, Any]:
        outcome, propensity = default_models(self.random_state)
        return (
            outcome if self.outcome_model is None else self.outcome_model,
            propensity if self.propensity_model is None else self.propensity_model,
        )

    def _calibration(self) -> Literal["sigmoid", "isotonic"] | None:
        if self.calibration != "auto":
            return self.calibration
        return "sigmoid" if self.propensity_model is None else None

    def _check_statistics(self) -> None:
        unknown = [name for name in self.statistics if name not in GROUP_STATISTICS]
        if unknown:
            expected = f"some of {', '.join(GROUP_STATISTICS)}"
            raise InvalidParameterError("statistics", self.statistics, expected)

    def _warn_of_weak_overlap(self) -> None:
        fitted, effect = self.fitted_, self.effect_
        n, kept = len(fitted.whole.rows), len(fitted.data.rows)
        if n - kept > _MANY_DROPPED * n:
            warn(
                f"{n - kept} of {n} rows ({1 - kept / n:.0%}) were dropped, because all rows of their group "
                f"are treated, or none ({len(fitted.dropped)} groups): the effect speaks of the others.\n"
                "Hint: a coarser group, or statistics=('X',), keeps them.",
                OverlapWarning,
            )
        if effect.n_clusters is not None and effect.n_clusters < _FEW_CLUSTERS:
            warn(
                f"There are {effect.n_clusters} clusters; standard errors need about {_FEW_CLUSTERS} to be "
                "trusted.\nHint: read the interval with caution, or cluster=None if rows are independent.",
                OverlapWarning,
            )
        reason = treatment_marks_rows(fitted.data) if "WX" in self.statistics else None
        if reason is not None:
            warn(
                f"The means of treatment times covariates may reveal a row's own treatment: {reason}.\n"
                "Hint: leave 'WX' out of statistics.",
                OverlapWarning,
            )
        if effect.n_clipped > _MANY_CLIPPED * effect.n_rows:
            warn(
                f"The propensities of {effect.n_clipped} of {effect.n_rows} rows "
                f"({effect.n_clipped / effect.n_rows:.0%}) are outside [{self.clip:g}, {1 - self.clip:g}] "
                "and were bounded: treated and untreated rows hardly overlap.\n"
                "Hint: look at overlap_report(), trim, or estimate the ATO, which needs less overlap.",
                OverlapWarning,
            )
