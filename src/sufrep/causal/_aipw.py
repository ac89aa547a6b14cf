"""Doubly robust treatment effects with a high-cardinality confounder."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from sufrep._frames import frame_from_columns
from sufrep._sklearn import HasMethods, Interval, StrOptions, fit_context
from sufrep.causal._data import EffectData, overlapping_groups, read_effect_data
from sufrep.causal._estimate import EffectEstimate
from sufrep.causal._features import Features, build_features, treatment_marks_rows
from sufrep.causal._nuisances import accepts_nulls, assign_folds, cross_fit, default_models
from sufrep.causal._plots import (
    balance_chart,
    effects_chart,
    final_step,
    frame_rows,
    group_chart,
    propensity_chart,
)
from sufrep.encoders._inputs import all_or_nothing, position_of
from sufrep.errors import EffectDataError, InvalidParameterError, OverlapWarning, warn
from sufrep.solvers.effects import (
    Estimate,
    Nuisances,
    SensitivityElements,
    balancing_weights,
    combine_repeats,
    effect_scores,
    effective_size,
    linear_fixed_effect,
    project,
    sensitivity_elements,
    solve_scores,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats, Mask
    from sufrep.encoders._inputs import Column, Group
    from sufrep.solvers.effects import Estimand

_STATISTICS = ("X", "W", "WX")
_ESTIMANDS = ("ATE", "ATT", "ATO")
# Fewer clusters, more clipped rows and more dropped rows than these are reported.
_FEW_CLUSTERS = 20
_MANY_CLIPPED = 0.05
_MANY_DROPPED = 0.5
# Pixels, in a notebook.
_CHART_WIDTH = 520


@dataclass(eq=False, repr=False)
class AIPW(BaseEstimator):
    """Effect of a treatment, controlled for covariates and a group with many levels.

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
    >>> low, high = model.effect_.interval
    >>> bool(low < 1 < high), round(high - low, 1)
    (True, 0.2)
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
        "estimand": [StrOptions(set(_ESTIMANDS))],
        "folds": [StrOptions({"group", "row"})],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "cluster": [str, "array-like", None],
        "weights": [StrOptions({"row", "group"})],
        "products": ["boolean"],
        "clip": [Interval(Real, 0, 0.5, closed="left")],
        "trim": [Interval(Real, 0, 0.5, closed="left"), None],
        "calibration": [StrOptions({"auto", "sigmoid", "isotonic"}), None],
        "n_jobs": [Integral, None],
        "random_state": [Interval(Integral, 0, None, closed="left")],
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
            Known probabilities of treatment, as in an experiment. No model is fitted for them, and the share
            of treated rows still adjusts the models of the outcome.
        sample_weight : str or array, optional
            Weights of the rows, in the models and in the effect.

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
            self._learn(whole)
        return self

    def _learn(self, whole: EffectData) -> None:
        data, dropped = overlapping_groups(whole) if "W" in self.statistics else (whole, ())
        self._warn_of(whole, data, dropped)
        outcome_model, propensity_model = self._models()
        fill = not (accepts_nulls(outcome_model) and accepts_nulls(propensity_model))
        features = build_features(
            data,
            encoder=self.encoder,
            statistics=self.statistics,
            products=self.products,
            fill_nulls=fill,
        )
        folds = [
            assign_folds(data, self.folds, self.n_folds, self.random_state + repeat)
            for repeat in range(self.n_repeats)
        ]
        found = cross_fit(
            data,
            features.values,
            folds,
            outcome_model,
            propensity_model,
            calibration=self._calibration(),
            n_jobs=self.n_jobs,
        )
        self._store(whole, data, features, found, dropped)
        share = self.effect_.n_clipped / self.effect_.n_rows
        if share > _MANY_CLIPPED:
            warn(
                f"The propensities of {share:.0%} of the rows are outside [{self.clip:g}, {1 - self.clip:g}] "
                "and were bounded: treated and untreated rows hardly overlap.\n"
                "Hint: look at overlap_report(), trim, or estimate the ATO, which needs less overlap.",
                OverlapWarning,
            )

    def _store(
        self,
        whole: EffectData,
        data: EffectData,
        features: Features,
        found: list[Nuisances],
        dropped: tuple[str, ...],
    ) -> None:
        self.whole_, self.data_, self.nuisances_ = whole, data, found
        self.n_rows_given_ = len(whole.rows)
        self.features_, self.feature_names_ = features.values, features.names
        self.n_covariates_, self.filled_ = features.n_covariates, features.filled
        self.rows_, self.dropped_groups_ = data.rows, dropped
        self.propensity_ = np.median([each.propensity for each in found], axis=0)
        self.outcome_predictions_ = np.column_stack(
            [
                np.median([each.untreated for each in found], axis=0),
                np.median([each.treated for each in found], axis=0),
            ]
        )
        self.effect_ = self.effect(self.estimand)
        self.scores_ = self._scores(self.estimand)

    def effect(self, estimand: Estimand) -> EffectEstimate:
        """Another estimand from the same models.

        Parameters
        ----------
        estimand : {"ATE", "ATT", "ATO"}
        """
        check_is_fitted(self, "nuisances_")
        if estimand not in _ESTIMANDS:
            raise InvalidParameterError("estimand", estimand, f"one of {', '.join(_ESTIMANDS)}")
        data = self.data_
        solved, clipped, trimmed, sizes = [], [], [], []
        for nuisances in self.nuisances_:
            keep, bounded = self._bounded(nuisances)
            omega = self._omega()[keep]
            w, y, used = data.treatment[keep], data.outcome[keep], bounded.take(keep)
            scores = effect_scores(estimand, w, y, used)
            clusters = None if data.clusters is None else data.clusters[keep]
            solved.append(solve_scores(scores, omega, clusters))
            v = omega * balancing_weights(estimand, w, used.propensity)
            sizes.append([effective_size(v[w == arm]) for arm in (0.0, 1.0)])
            clipped.append(int((bounded.propensity != nuisances.propensity)[keep].sum()))
            trimmed.append(int((~keep).sum()))
        result, n_trimmed = combine_repeats(solved), int(np.median(trimmed))
        untreated, treated = np.median(sizes, axis=0)
        return EffectEstimate(
            result.value,
            result.std_error,
            result.dof,
            estimand,
            len(data.rows) - n_trimmed,
            data.n_groups,
            None if data.clusters is None else len(np.unique(data.clusters)),
            {"untreated": float(untreated), "treated": float(treated)},
            self.dropped_groups_,
            int(np.median(clipped)),
            n_trimmed,
            tuple(self._notes(estimand, n_trimmed)),
        )

    def _bounded(self, nuisances: Nuisances) -> tuple[Mask, Nuisances]:
        """The rows that are not trimmed, and all predictions with bounded propensities."""
        e = nuisances.propensity
        keep = np.ones(len(e), dtype=bool)
        if self.trim is not None:
            keep = (e >= self.trim) & (e <= 1 - self.trim)
            arms = self.data_.treatment[keep]
            if not ((arms == 0).any() and (arms == 1).any()):
                raise EffectDataError(
                    f"trim={self.trim:g} leaves {len(arms)} row(s), not of both arms.", "trim less."
                )
        bounds = np.clip(e, self.clip, 1 - self.clip)
        return keep, Nuisances(bounds, nuisances.untreated, nuisances.treated)

    def _omega(self) -> Floats:
        """Weights of the rows in the effect; (n,)."""
        data = self.data_
        if self.weights == "row":
            return data.weights
        return np.asarray(data.weights / np.bincount(data.groups, data.weights)[data.groups])

    def _scores(self, estimand: Estimand) -> Floats:
        """ψ_b / mean of ψ_a, whose weighted mean over the rows is the effect; (n,)."""
        found = []
        for nuisances in self.nuisances_:
            keep, bounded = self._bounded(nuisances)
            scores = effect_scores(estimand, self.data_.treatment, self.data_.outcome, bounded)
            slope = np.average(scores.slope[keep], weights=self._omega()[keep])
            found.append(np.where(keep, scores.constant / slope, np.nan))
        return np.asarray(np.median(found, axis=0))

    def gate(self, by: Any, *, library: str | None = None) -> Any:
        """Effects in the subgroups that a column defines, with clustered errors.

        Parameters
        ----------
        by : str or array, shape (n_samples,)
            A column of X, or a value for each row of X.
        library : {"pandas", "polars", "pyarrow"}, optional
            Kind of the frame that is returned.

        Returns
        -------
        frame
            One row for each value: estimate, standard error, interval, p value, rows.
        """
        values = self._column(by)
        rows = []
        for value in sorted(set(values.tolist()), key=lambda found: (str(type(found)), found)):
            inside = np.array([found == value for found in values.tolist()])
            rows.append((value, self._effect_of(inside), int(inside.sum())))
        return _effects_frame(
            "level", [(value, found) for value, found, _ in rows], library, [n for *_, n in rows]
        )

    def _effect_of(self, inside: Mask) -> Estimate:
        data, solved = self.data_, []
        for nuisances in self.nuisances_:
            keep, bounded = self._bounded(nuisances)
            keep = keep & inside
            scores = effect_scores(
                self.estimand, data.treatment[keep], data.outcome[keep], bounded.take(keep)
            )
            clusters = None if data.clusters is None else data.clusters[keep]
            solved.append(solve_scores(scores, self._omega()[keep], clusters))
        return combine_repeats(solved)

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
        check_is_fitted(self, "nuisances_")
        if self.estimand != "ATE":
            raise InvalidParameterError("estimand", self.estimand, "'ATE', whose scores are effects of rows")
        if isinstance(columns, (list, tuple)) and all(isinstance(column, str) for column in columns):
            names = list(columns)
            matrix = np.column_stack([self._column(column).astype(np.float64) for column in columns])
        else:
            matrix = np.asarray(columns, dtype=np.float64).reshape(self.n_rows_given_, -1)[self.rows_]
            names = [f"x{j}" for j in range(matrix.shape[1])]
        if not np.isfinite(matrix).all():
            raise EffectDataError("The columns hold nulls or infinite values.", "fill or drop them.")
        data, found = self.data_, []
        for nuisances in self.nuisances_:
            keep, bounded = self._bounded(nuisances)
            scores = effect_scores("ATE", data.treatment, data.outcome, bounded).constant[keep]
            design = np.column_stack([np.ones(keep.sum()), matrix[keep]])
            clusters = None if data.clusters is None else data.clusters[keep]
            found.append(project(scores, design, self._omega()[keep], clusters))
        combined = [combine_repeats(parts) for parts in zip(*found, strict=True)]
        return _effects_frame("column", list(zip(["intercept", *names], combined, strict=True)), library)

    def ladder(self, *, library: str | None = None) -> Any:
        """What adjusting for more and more does to the estimate.

        The steps: the raw difference, covariates only, with the group's means of the covariates, with its
        share of treated rows, with the means of treatment × covariates (where groups are large enough), and
        the linear fixed effect.

        Returns
        -------
        frame
            One row for each step. Steps with the share of treated rows speak of the groups that have both
            treated and untreated rows.
        """
        check_is_fitted(self, "nuisances_")
        data, whole = self.data_, self.whole_
        raw = project(
            whole.outcome,
            np.column_stack([whole.treatment, np.ones(len(whole.rows))]),
            whole.weights,
            whole.clusters,
        )[0]
        steps: list[tuple[str, Any]] = [("raw difference", raw)]
        named = [
            ("covariates", ()),
            ("+ group means of covariates", ("X",)),
            ("+ share of treated rows", ("X", "W")),
        ]
        if data.names and treatment_marks_rows(data) is None:
            named.append(("+ means of treatment times covariates", ("X", "W", "WX")))
        shares = whole.group_means(whole.treatment[:, None])
        varies = bool(((shares > 0) & (shares < 1)).any())
        for name, statistics in named:
            # Without covariates the first steps adjust for nothing; a treatment that is the same for all
            # rows of a group leaves nothing to compare in the last ones.
            if not (varies if "W" in statistics else data.names):
                continue
            other = self if tuple(self.statistics) == statistics else clone(self)
            if other is not self:
                other.set_params(statistics=statistics)._learn(whole)
            effect = other.effect_
            steps.append((name, _as_estimate(effect)))
        if varies:
            filled = np.where(np.isnan(whole.covariates), 0.0, whole.covariates)
            fixed = linear_fixed_effect(
                whole.treatment, whole.outcome, filled, whole.groups, whole.weights, whole.clusters
            )
            steps.append(("linear fixed effect", fixed))
        return _effects_frame("step", steps, library)

    def balance(self, *, library: str | None = None) -> Any:
        """Standardised differences between treated and untreated rows, before and after weighting.

        Returns
        -------
        frame
            One row for each covariate and each statistic of the group: its difference in standard deviations.
        """
        check_is_fitted(self, "nuisances_")
        keep, bounded = self._bounded(self._median())
        w, omega = self.data_.treatment[keep], self._omega()[keep]
        weights = omega * balancing_weights(self.estimand, w, bounded.propensity[keep])
        values = self.features_[keep]
        columns: dict[str, Any] = {"column": list(self.feature_names_)}
        columns["kind"] = [
            "covariate" if j < self.n_covariates_ else "group" for j in range(len(self.feature_names_))
        ]
        columns["before"] = standardised_differences(values, w, omega).tolist()
        columns["after"] = standardised_differences(values, w, weights).tolist()
        return frame_from_columns(columns, library)

    def overlap_report(self, *, library: str | None = None) -> Any:
        """How well treated and untreated rows overlap, overall and in the groups.

        Returns
        -------
        frame
            One row for each arm: rows, effective rows, quantiles of the propensities, rows outside bounds.
        """
        check_is_fitted(self, "nuisances_")
        e, w = self.propensity_, self.data_.treatment
        quantiles = (0.0, 0.05, 0.5, 0.95, 1.0)
        arms = {"untreated": w == 0, "treated": w == 1}
        columns: dict[str, Any] = {"arm": list(arms)}
        columns["rows"] = [int(inside.sum()) for inside in arms.values()]
        columns["effective rows"] = [self.effect_.n_effective[arm] for arm in arms]
        for quantile in quantiles:
            columns[f"propensity, {quantile:.0%} quantile"] = [
                float(np.quantile(e[inside], quantile)) for inside in arms.values()
            ]
        outside = (e < self.clip) | (e > 1 - self.clip)
        columns["outside bounds"] = [int((outside & inside).sum()) for inside in arms.values()]
        return frame_from_columns(columns, library)

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
        check_is_fitted(self, "nuisances_")
        if self.estimand == "ATO":
            raise InvalidParameterError("estimand", self.estimand, "'ATE' or 'ATT'")
        for name, value in {"cf_y": cf_y, "cf_d": cf_d}.items():
            if not 0 <= value < 1:
                raise InvalidParameterError(name, value, "a share of at least 0 and less than 1")
        elements = self._sensitivity_elements()
        effect = self.effect_
        low, high = effect.interval
        bias = elements.bound(cf_y, cf_d, rho)
        nearest = low if effect.estimate > null else high
        crossed = (low - null) * (high - null) <= 0
        return Sensitivity(
            bias=bias,
            bounds=(effect.estimate - bias, effect.estimate + bias),
            robustness=elements.robustness(effect.estimate - null, rho),
            robustness_interval=0.0 if crossed else elements.robustness(nearest - null, rho),
            benchmark=self._without_group(elements),
        )

    def _sensitivity_elements(self) -> SensitivityElements:
        keep, bounded = self._bounded(self._median())
        data = self.data_
        return sensitivity_elements(
            self.estimand, data.treatment[keep], data.outcome[keep], bounded.take(keep), self._omega()[keep]
        )

    def _without_group(self, long: SensitivityElements) -> dict[str, float]:
        """The strength that a confounder as important as the group would have."""
        short = clone(self).set_params(statistics=())
        short._learn(self.data_)
        other = short._sensitivity_elements()
        total = float(np.average((self.data_.outcome - np.average(self.data_.outcome)) ** 2))
        explained, less = (1 - found.outcome_variance / total for found in (long, other))
        ratio = other.weight_variance / long.weight_variance
        return {
            "cf_y": max((explained - less) / (1 - explained), 0.0),
            "cf_d": max((1 - ratio) / ratio, 0.0),
        }

    def _median(self) -> Nuisances:
        """Predictions of each row, medians over repeats."""
        return Nuisances(self.propensity_, *self.outcome_predictions_.T)

    def _column(self, given: Any) -> Any:
        """A column of X, or a value for each of its rows, of the rows that were kept."""
        check_is_fitted(self, "nuisances_")
        table = self.data_.table
        if isinstance(given, str):
            position = position_of(table.names, given, "by")
            if table.kind(position) == "numeric":
                return np.asarray(table.numbers(position))[self.rows_]
            factor = table.factorize(position)
            return np.append(factor.levels, [None])[factor.codes][self.rows_]
        values = np.asarray(given)
        if values.shape != (self.n_rows_given_,):
            raise EffectDataError(
                f"The values have the shape {values.shape}, and X has {self.n_rows_given_} row(s).",
                "give one value for each row of X, or the name of a column.",
            )
        return values[self.rows_]

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
        unknown = [name for name in self.statistics if name not in _STATISTICS]
        if unknown:
            raise InvalidParameterError("statistics", self.statistics, f"some of {', '.join(_STATISTICS)}")

    def _warn_of(self, whole: EffectData, data: EffectData, dropped: tuple[str, ...]) -> None:
        lost = 1 - len(data.rows) / len(whole.rows)
        if lost > _MANY_DROPPED:
            warn(
                f"{lost:.0%} of the rows were dropped, because all rows of their group are treated, or none "
                f"({len(dropped)} groups): the effect speaks of the others only.\n"
                "Hint: a coarser group, or statistics=('X',), keeps them.",
                OverlapWarning,
            )
        clusters = None if data.clusters is None else len(np.unique(data.clusters))
        if clusters is not None and clusters < _FEW_CLUSTERS:
            warn(
                f"There are {clusters} clusters; standard errors need about {_FEW_CLUSTERS} to be trusted.\n"
                "Hint: read the interval with caution, or cluster=None if rows are independent.",
                OverlapWarning,
            )
        reason = treatment_marks_rows(data) if "WX" in self.statistics else None
        if reason is not None:
            warn(
                f"The means of treatment times covariates may reveal a row's own treatment: {reason}.\n"
                "Hint: leave 'WX' out of statistics.",
                OverlapWarning,
            )

    def _notes(self, estimand: Estimand, n_trimmed: int) -> list[str]:
        notes = []
        if self.dropped_groups_:
            n = len(self.dropped_groups_)
            unchanged = " (the ATO is the same with them)" if estimand == "ATO" else ""
            notes.append(
                f"{n} group(s) without treated or without untreated rows were dropped; the effect speaks of "
                f"the other groups{unchanged}."
            )
        if n_trimmed:
            notes.append(
                f"{n_trimmed} row(s) with propensities outside [{self.trim:g}, {1 - (self.trim or 0):g}] "
                "were left out; the effect speaks of the others."
            )
        if self.filled_:
            notes.append(
                f"Nulls of {', '.join(self.filled_)} were replaced by the median, with an indicator."
            )
        return notes


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What an unobserved confounder could do to an effect.

    Attributes
    ----------
    bias : float
        The largest bias of a confounder of the given strength.
    bounds : tuple of float
        The estimate less and plus the bias.
    robustness : float
        The share cf_y = cf_d at which the bias reaches the null.
    robustness_interval : float
        The same for the nearer end of the 95 % interval; 0 if the interval contains the null.
    benchmark : dict of str to float
        cf_y and cf_d of a confounder that is as important as the group.
    """

    bias: float
    bounds: tuple[float, float]
    robustness: float
    robustness_interval: float
    benchmark: dict[str, float]


def standardised_differences(values: Floats, treatment: Floats, weights: Floats) -> Floats:
    """Difference of the weighted means of the two arms, in pooled standard deviations of the arms; (k,)."""
    found = np.zeros(values.shape[1])
    for j, column in enumerate(values.T):
        known = ~np.isnan(column)
        means, variances = [], []
        for arm in (0.0, 1.0):
            inside = known & (treatment == arm)
            means.append(np.average(column[inside], weights=weights[inside]) if inside.any() else np.nan)
            variances.append(column[inside].var() if inside.any() else np.nan)
        spread = np.sqrt(np.mean(variances))
        found[j] = (means[1] - means[0]) / spread if spread > 0 else 0.0
    return found


def _as_estimate(effect: EffectEstimate) -> Estimate:
    return Estimate(effect.estimate, effect.std_error, effect.dof)


def _effects_frame(
    title: str, found: Sequence[tuple[Any, Estimate]], library: str | None, n_rows: Sequence[int] = ()
) -> Any:
    """A frame of estimates with their errors."""
    columns: dict[str, Any] = {title: [name for name, _ in found]}
    columns["estimate"] = [each.value for _, each in found]
    columns["std_error"] = [each.std_error for _, each in found]
    columns["lower"] = [each.interval()[0] for _, each in found]
    columns["upper"] = [each.interval()[1] for _, each in found]
    columns["p_value"] = [each.p_value for _, each in found]
    if n_rows:
        columns["n_rows"] = list(n_rows)
    return frame_from_columns(columns, library)
