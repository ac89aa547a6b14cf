"""Treatment effects on simulated samples: what each method makes of a group that confounds.

Methods differ in how they describe the group. All else is the same: doubly robust scores, cross-fitting in
folds of whole groups, and errors clustered by group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import KFold
from sklearn.preprocessing import TargetEncoder

from sufrep._simulate_effects import EffectSample, rows_of, simulate_effects
from sufrep.causal import AIPW
from sufrep.solvers.effects import linear_fixed_effect

if TYPE_CHECKING:
    from collections.abc import Callable

    from sufrep._arrays import Floats, Mask
    from sufrep._paper.plan import EffectTrial
    from sufrep._simulate_effects import Arm

N_FOLDS = 5
# Methods that have their own model.
LINEAR_METHODS = ("fixed_effects",)
# The average effect in the population of every arm.
_POPULATION_EFFECT = 1.0
# Options of the estimator.
_OPTIONS: dict[str, dict[str, Any]] = {
    "nothing": {"statistics": ()},
    "means": {"statistics": ("X",)},
    "means_w": {"statistics": ("X", "W")},
    "w": {"statistics": ("W",)},
    "low_rank": {"statistics": ("X",), "encoder": "low_rank"},
    "low_rank_w": {"statistics": ("X", "W"), "encoder": "low_rank"},
    "latent_state": {"statistics": ("X",), "encoder": "latent_state"},
    "latent_state_w": {"statistics": ("X", "W"), "encoder": "latent_state"},
    "means_wx": {"statistics": ("X", "W", "WX"), "products": True},
    "row_folds": {"statistics": ("X", "W"), "folds": "row"},
}


@dataclass(frozen=True, slots=True)
class EffectResult:
    """An estimate, and the truth.

    Attributes
    ----------
    estimate, std_error, lower, upper : float
        With the 95 % interval.
    truth : float
        The average effect in the population; where groups are dropped, that of the rows that are kept.
    dropped : float
        Share of the rows that are dropped.
    """

    estimate: float
    std_error: float
    lower: float
    upper: float
    truth: float
    dropped: float


def sample_size(arm: str, n: int | None = None) -> int:
    """The number of rows of a sample."""
    return rows_of(_words(arm), n)


def estimate_effect(trial: EffectTrial) -> EffectResult:
    """Draw the sample of a trial, and estimate its effect."""
    sample = simulate_effects(_words(trial.arm), n=trial.n, seed=trial.seed)
    if trial.method == "fixed_effects":
        return _fixed_effects(sample)
    if trial.method in _OPTIONS:
        return _adjusted(sample, trial, sample.X, **_OPTIONS[trial.method])
    return _DESCRIPTIONS[trial.method](sample, trial)


def _adjusted(
    sample: EffectSample, trial: EffectTrial, covariates: Floats, keep: Mask | None = None, **options: Any
) -> EffectResult:
    """The estimator on some rows of a sample, with these covariates."""
    rows = np.arange(len(sample.group)) if keep is None else np.flatnonzero(keep)
    outcome_model, propensity_model = options.pop("models", None) or _models(trial.model)
    estimator = AIPW(
        outcome_model,
        propensity_model,
        group=covariates.shape[1],
        n_folds=N_FOLDS,
        random_state=trial.seed,
        **options,
    )
    estimator.fit(
        np.column_stack([covariates, sample.group])[rows],
        treatment=sample.treatment[rows],
        outcome=sample.outcome[rows],
        propensity=sample.propensity[rows] if trial.arm == "experiment" else None,
    )
    found = estimator.effect_
    kept = rows[estimator.rows_]
    complete = len(kept) == len(sample.group)
    truth = _POPULATION_EFFECT if complete else float(sample.effect[kept].mean())
    dropped = 1 - len(kept) / len(sample.group)
    return EffectResult(found.estimate, found.std_error, *found.interval, truth, dropped)


def _models(name: str) -> tuple[Any, Any]:
    """Models of outcome and treatment; None is the estimator's own, boosting."""
    if name == "boosting":
        return None, None
    if name == "penalised":
        return LinearRegression(), LogisticRegression()
    # Hardly any penalty, but enough for probabilities that sum to one.
    return LinearRegression(), LogisticRegression(C=1e4, solver="newton-cholesky")


def _fixed_effects(sample: EffectSample) -> EffectResult:
    ones = np.ones(len(sample.group))
    found = linear_fixed_effect(sample.treatment, sample.outcome, sample.X, sample.group, ones, sample.group)
    return EffectResult(found.value, found.std_error, *found.interval(), _POPULATION_EFFECT, 0.0)


# Descriptions of the group that are columns of the experiment's own


def _true_psi(sample: EffectSample, trial: EffectTrial) -> EffectResult:
    """The true state probabilities of the group, on the rows that the share of treated rows keeps.

    They sum to one, so the last is left out. Where the group changes slopes, their products with the
    covariates are part of the truth.
    """
    psi = sample.state_probabilities[sample.group][:, :-1]
    columns = [sample.X, psi]
    if trial.arm == "slope":
        columns += [sample.X * column[:, None] for column in psi.T]
    return _adjusted(sample, trial, np.column_stack(columns), _overlapping(sample), statistics=())


def _one_hot(sample: EffectSample, trial: EffectTrial) -> EffectResult:
    """An indicator of each level; linear models have a penalty, chosen by cross-validation.

    A level has to be among the rows that a model is fitted to, so folds are of rows.
    """
    indicators = np.eye(len(sample.state_probabilities))[sample.group]
    indicators = indicators[:, indicators.any(axis=0)]
    tuned = (
        RidgeCV(np.logspace(-2, 4, 13)),
        LogisticRegressionCV(
            Cs=np.logspace(-2, 1, 4),
            cv=3,
            solver="newton-cholesky",
            scoring="neg_log_loss",
            l1_ratios=(0.0,),
            use_legacy_attributes=False,
        ),
    )
    return _adjusted(
        sample,
        trial,
        np.column_stack([sample.X, indicators]),
        models=tuned if trial.model == "linear" else None,
        statistics=(),
        folds="row",
    )


def _target_encoder(sample: EffectSample, trial: EffectTrial) -> EffectResult:
    """scikit-learn's target encoder, of the outcome and of the treatment."""
    group = sample.group[:, None]
    folds = KFold(N_FOLDS, shuffle=True, random_state=trial.seed)
    outcome = TargetEncoder(target_type="continuous", cv=folds)
    treatment = TargetEncoder(target_type="binary", cv=folds)
    columns = [
        sample.X,
        outcome.fit_transform(group, sample.outcome),
        treatment.fit_transform(group, sample.treatment),
    ]
    return _adjusted(sample, trial, np.column_stack(columns), statistics=())


def _leave_one_out(sample: EffectSample, trial: EffectTrial) -> EffectResult:
    """Means of the covariates, and the share of treated rows among the other rows of the group."""
    keep = _overlapping(sample)
    count = np.bincount(sample.group)[sample.group]
    total = np.bincount(sample.group, sample.treatment)[sample.group]
    others = (total - sample.treatment) / np.maximum(count - 1, 1)
    means = np.column_stack(
        [(np.bincount(sample.group, column))[sample.group] / count for column in sample.X.T]
    )
    return _adjusted(sample, trial, np.column_stack([sample.X, means, others]), keep, statistics=())


def _overlapping(sample: EffectSample) -> Mask:
    """Whether the group of a row has treated and untreated rows; (n,)."""
    total = np.bincount(sample.group, sample.treatment)[sample.group]
    count = np.bincount(sample.group)[sample.group]
    return np.asarray((total > 0) & (total < count))


_DESCRIPTIONS: dict[str, Callable[[EffectSample, EffectTrial], EffectResult]] = {
    "true_psi": _true_psi,
    "one_hot": _one_hot,
    "target_encoder": _target_encoder,
    "loo_w": _leave_one_out,
}


def _words(arm: str) -> Arm:
    return cast("Arm", arm.replace("_", " "))
