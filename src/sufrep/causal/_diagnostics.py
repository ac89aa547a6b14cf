"""What to look at next to an effect: subgroups, balance, overlap, sensitivity, and what each adjustment does.

All of it is computed from the record of a fit. Models are fitted again only to leave the group out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sufrep._frames import frame_from_columns
from sufrep.causal._features import fill_nulls, treatment_marks_rows
from sufrep.causal._fitted import row_weights
from sufrep.encoders._inputs import position_of
from sufrep.errors import EffectDataError, InvalidParameterError
from sufrep.representation import is_null
from sufrep.solvers.effects import (
    Estimate,
    combine_repeats,
    effect_scores,
    linear_fixed_effect,
    project,
    sensitivity_elements,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sufrep._arrays import Array, Floats
    from sufrep.causal._fitted import FittedEffect, ScoredRows
    from sufrep.solvers.effects import Estimand, SensitivityElements

    # Fits the models again, to the same rows with other statistics of the group.
    Refit: TypeAlias = Callable[[tuple[str, ...]], FittedEffect]

_QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)


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
        cf_y and cf_d of a confounder that is as important as the group; 0 where leaving the group out
        explains no less.
    """

    bias: float
    bounds: tuple[float, float]
    robustness: float
    robustness_interval: float
    benchmark: dict[str, float]


def subgroup_effects(fitted: FittedEffect, estimand: Estimand, by: Any, library: str | None) -> Any:
    """A frame with the effect for each value of a column; nulls come last."""
    values = column_values(fitted, by).tolist()
    known = [None if is_null(value) else value for value in values]
    levels = sorted({value for value in known if value is not None}, key=lambda v: (str(type(v)), v))
    if None in known:
        levels.append(None)
    found, sizes = [], []
    for level in levels:
        inside = np.array([value is None if level is None else value == level for value in known])
        found.append((level, combine_repeats([rows.solve(estimand, inside) for rows in fitted.repeats])))
        sizes.append(int(np.median([(rows.keep & inside).sum() for rows in fitted.repeats])))
    return _effects_frame("level", found, library, sizes)


def projection(fitted: FittedEffect, columns: Any, library: str | None) -> Any:
    """A frame with the coefficients of the scores of the ATE on columns."""
    if isinstance(columns, (list, tuple)) and all(isinstance(column, str) for column in columns):
        names = list(columns)
        values = [_numeric(column_values(fitted, column), column) for column in columns]
    else:
        n = fitted.whole.table.n_rows
        matrix = np.asarray(columns, dtype=np.float64)
        if matrix.shape[:1] != (n,) or matrix.ndim > 2:
            raise EffectDataError(
                f"The columns have the shape {matrix.shape}, and X has {n} row(s).",
                "give one row of values for each row of X, or a list of names of columns.",
            )
        kept = matrix.reshape(n, -1)[fitted.data.rows]
        names = [f"x{j}" for j in range(kept.shape[1])]
        values = [_numeric(column, name) for name, column in zip(names, kept.T, strict=True)]
    design = np.column_stack([np.ones(len(fitted.data.rows)), *values])
    found = []
    for rows in fitted.repeats:
        scores = effect_scores("ATE", rows.treatment, rows.outcome, rows.nuisances).constant
        found.append(project(scores, design[rows.keep], rows.weights, rows.clusters))
    combined = [combine_repeats(parts) for parts in zip(*found, strict=True)]
    return _effects_frame("column", list(zip(["intercept", *names], combined, strict=True)), library)


def _numeric(values: Array, name: str) -> Floats:
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise EffectDataError(f"Column {name!r} does not hold numbers.", "use gate() for text.") from error
    if bad := int((~np.isfinite(numbers)).sum()):
        raise EffectDataError(f"Column {name!r} is null or infinite in {bad} row(s).", "fill or drop them.")
    return np.asarray(numbers)


def ladder_steps(fitted: FittedEffect, estimand: Estimand, refit: Refit, library: str | None) -> Any:
    """A frame with an estimate for each step; steps that cannot be estimated are left out.

    All steps use the rows of the effect, so that only the adjustment differs; the linear fixed effect, which
    needs no overlap, uses all rows.
    """
    data, whole = fitted.data, fitted.whole
    omega = row_weights(data.groups, data.weights, fitted.weighting)
    design = np.column_stack([data.treatment, np.ones(len(data.rows))])
    steps = [("raw difference", project(data.outcome, design, omega, data.clusters)[0])]
    share = data.group_means(data.treatment[:, None])[:, 0]
    overlap = bool(((share > 0) & (share < 1)).any())
    named: list[tuple[str, tuple[str, ...]]] = []
    if data.names:  # else there is nothing but the group to adjust for
        named += [("covariates", ()), ("+ group means of covariates", ("X",))]
    if overlap:
        named.append(("+ share of treated rows", ("X", "W")))
        if data.names and treatment_marks_rows(data) is None:
            named.append(("+ means of treatment times covariates", ("X", "W", "WX")))
    for name, statistics in named:
        effect = refit(statistics).effect(estimand)
        steps.append((name, Estimate(effect.estimate, effect.std_error, effect.dof)))
    if overlap:
        fixed = linear_fixed_effect(
            whole.treatment,
            whole.outcome,
            fill_nulls(whole.covariates, whole.names)[0],
            whole.groups,
            row_weights(whole.groups, whole.weights, fitted.weighting),
            whole.clusters,
        )
        steps.append(("linear fixed effect", fixed))
    return _effects_frame("step", steps, library)


def balance_table(fitted: FittedEffect, estimand: Estimand, library: str | None) -> Any:
    """A frame with the standardised difference of each feature before and after weighting."""
    rows, features = fitted.median_rows(), fitted.features
    values = features.values[rows.keep]
    n = len(features.names)
    columns: dict[str, Any] = {"column": list(features.names)}
    columns["kind"] = ["covariate" if j < features.n_covariates else "group" for j in range(n)]
    columns["before"] = standardised_differences(values, rows.treatment, rows.weights).tolist()
    columns["after"] = standardised_differences(values, rows.treatment, rows.balancing(estimand)).tolist()
    return frame_from_columns(columns, library)


def standardised_differences(values: Floats, treatment: Floats, weights: Floats) -> Floats:
    """Difference of the weighted means of the two arms, in pooled standard deviations of the arms; (k,)."""
    found = np.zeros(values.shape[1])
    for j, column in enumerate(values.T):
        known = ~np.isnan(column)
        arms = [known & (treatment == arm) & (weights > 0) for arm in (0.0, 1.0)]
        if not all(inside.any() for inside in arms):
            found[j] = np.nan
            continue
        means = [np.average(column[inside], weights=weights[inside]) for inside in arms]
        spread = np.sqrt(np.mean([column[inside].var() for inside in arms]))
        found[j] = (means[1] - means[0]) / spread if spread > 0 else 0.0
    return found


def overlap_by_arm(fitted: FittedEffect, estimand: Estimand, library: str | None) -> Any:
    """A frame with the propensities of untreated and treated rows."""
    e, w = fitted.median().propensity, fitted.data.treatment
    sizes = np.median([rows.effective_sizes(estimand) for rows in fitted.repeats], axis=0)
    arms = {"untreated": w == 0, "treated": w == 1}
    columns: dict[str, Any] = {"arm": list(arms)}
    columns["rows"] = [int(inside.sum()) for inside in arms.values()]
    columns["effective rows"] = sizes.tolist()
    for quantile in _QUANTILES:
        columns[f"propensity, {quantile:.0%} quantile"] = [
            float(np.quantile(e[inside], quantile)) for inside in arms.values()
        ]
    outside = (e < fitted.clip) | (e > 1 - fitted.clip)
    columns["outside bounds"] = [int((outside & inside).sum()) for inside in arms.values()]
    return frame_from_columns(columns, library)


def overlap_by_group(fitted: FittedEffect, library: str | None) -> Any:
    """A frame with the rows, the treated rows and the propensities of each group, dropped ones included."""
    whole = fitted.whole
    e = np.full(len(whole.rows), np.nan)
    e[fitted.data.rows] = fitted.median().propensity
    n_rows = np.bincount(whole.groups)
    n_treated = np.bincount(whole.groups, whole.treatment).astype(np.intp)
    order = np.argsort(whole.groups, kind="stable")
    starts = np.r_[0, np.cumsum(n_rows)[:-1]]
    dropped = set(fitted.dropped)
    return frame_from_columns(
        {
            "group": list(whole.labels),
            "rows": n_rows.tolist(),
            "treated rows": n_treated.tolist(),
            "share treated": (n_treated / n_rows).tolist(),
            "smallest propensity": np.minimum.reduceat(e[order], starts).tolist(),
            "largest propensity": np.maximum.reduceat(e[order], starts).tolist(),
            "dropped": [label in dropped for label in whole.labels],
        },
        library,
    )


def sensitivity_to_confounder(
    fitted: FittedEffect,
    estimand: Estimand,
    refit: Refit,
    *,
    cf_y: float,
    cf_d: float,
    rho: float,
    null: float,
) -> Sensitivity:
    """Bounds of an effect, and the strength of a confounder that would explain it."""
    if estimand == "ATO":
        raise InvalidParameterError("estimand", estimand, "'ATE' or 'ATT'")
    for name, value in {"cf_y": cf_y, "cf_d": cf_d}.items():
        if not 0 <= value < 1:
            raise InvalidParameterError(name, value, "a share of at least 0 and less than 1")
    if not -1 <= rho <= 1:
        raise InvalidParameterError("rho", rho, "a correlation between -1 and 1")
    rows = fitted.median_rows()
    elements = _elements(rows, estimand)
    effect = fitted.effect(estimand)
    low, high = effect.interval
    bias = elements.bound(cf_y, cf_d, rho)
    nearest = low if effect.estimate > null else high
    crossed = low <= null <= high
    return Sensitivity(
        bias=bias,
        bounds=(effect.estimate - bias, effect.estimate + bias),
        robustness=elements.robustness(effect.estimate - null, rho),
        robustness_interval=0.0 if crossed else elements.robustness(nearest - null, rho),
        benchmark=_without_group(rows, refit(()).median_rows(), estimand),
    )


def _elements(rows: ScoredRows, estimand: Estimand) -> SensitivityElements:
    return sensitivity_elements(estimand, rows.treatment, rows.outcome, rows.nuisances, rows.weights)


def _without_group(rows: ScoredRows, short: ScoredRows, estimand: Estimand) -> dict[str, float]:
    """The strength of a confounder that is as important as the group; NaN if nothing is left unexplained."""
    own, other = _elements(rows, estimand), _elements(short, estimand)
    if not own.scale > 0:
        return {"cf_y": math.nan, "cf_d": math.nan}
    explained = 1 - own.outcome_variance / _variance(rows.outcome, rows.weights)
    less = 1 - other.outcome_variance / _variance(short.outcome, short.weights)
    ratio = other.weight_variance / own.weight_variance
    return {
        "cf_y": max((explained - less) / (1 - explained), 0.0),
        "cf_d": max((1 - ratio) / ratio, 0.0),
    }


def _variance(values: Floats, weights: Floats) -> float:
    return float(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights))


def column_values(fitted: FittedEffect, given: Any) -> Array:
    """A column of X, or a value for each of its rows, of the rows that were kept; (n,)."""
    table, rows = fitted.whole.table, fitted.data.rows
    if isinstance(given, str):
        position = position_of(table.names, given, "by")
        if table.kind(position) == "numeric":
            return np.asarray(table.numbers(position))[rows]
        factor = table.factorize(position)
        return np.append(factor.levels, [None])[factor.codes][rows]
    values = np.asarray(given)
    if values.shape != (table.n_rows,):
        raise EffectDataError(
            f"The values have the shape {values.shape}, and X has {table.n_rows} row(s).",
            "give one value for each row of X, or the name of a column.",
        )
    return values[rows]


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
