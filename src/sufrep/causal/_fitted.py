"""What a fit leaves behind: rows, features and predictions, and the effects that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from sufrep.causal._estimate import EffectEstimate
from sufrep.errors import EffectDataError
from sufrep.solvers.effects import (
    Nuisances,
    balancing_weights,
    combine_repeats,
    effect_scores,
    effective_size,
    solve_scores,
)

if TYPE_CHECKING:
    from sufrep._arrays import Codes, Floats, Mask
    from sufrep.causal._data import EffectData
    from sufrep.causal._features import Features
    from sufrep.solvers.effects import Estimand, Estimate

_MOST_NAMES = 5


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRows:
    """The rows that enter an effect after trimming, with predictions after clipping.

    Attributes
    ----------
    keep : ndarray of bool, shape (n,)
        Which rows were not trimmed; the n_kept rows below are these.
    treatment, outcome : ndarray, shape (n_kept,)
    nuisances : Nuisances
    groups : ndarray of int, shape (n_kept,)
    clusters : ndarray of int, shape (n_kept,), or None
    weights : ndarray, shape (n_kept,)
        ω, the weight of each row in the effect.
    n_clipped : int
    """

    keep: Mask
    treatment: Floats
    outcome: Floats
    nuisances: Nuisances
    groups: Codes
    clusters: Codes | None
    weights: Floats
    n_clipped: int

    def solve(self, estimand: Estimand, inside: Mask | None = None) -> Estimate:
        """The effect on all of these rows, or on those inside, (n,)."""
        chosen = slice(None) if inside is None else inside[self.keep]
        scores = effect_scores(
            estimand, self.treatment[chosen], self.outcome[chosen], self.nuisances.take(chosen)
        )
        clusters = None if self.clusters is None else self.clusters[chosen]
        return solve_scores(scores, self.weights[chosen], clusters)

    def balancing(self, estimand: Estimand) -> Floats:
        """Weights with which the outcomes enter the effect; (n_kept,)."""
        return self.weights * balancing_weights(estimand, self.treatment, self.nuisances.propensity)

    def effective_sizes(self, estimand: Estimand) -> list[float]:
        """Of untreated and treated rows, the number of equally weighted rows with the same precision."""
        v = self.balancing(estimand)
        return [effective_size(v[self.treatment == arm]) for arm in (0.0, 1.0)]


@dataclass(frozen=True, slots=True, eq=False)
class FittedEffect:
    """All that was learned, from which effects and diagnostics are computed.

    Attributes
    ----------
    whole : EffectData
        All rows.
    data : EffectData
        The n rows that were kept.
    dropped : tuple of str
        Groups whose rows are all treated or all untreated.
    features : Features
    nuisances : tuple of Nuisances
        Predictions of each repeat, after calibration, before trimming and clipping.
    weighting : {"row", "group"}
        Whether rows or groups count the same.
    clip : float
    trim : float or None
    """

    whole: EffectData
    data: EffectData
    dropped: tuple[str, ...]
    features: Features
    nuisances: tuple[Nuisances, ...]
    weighting: Literal["row", "group"]
    clip: float
    trim: float | None
    repeats: tuple[ScoredRows, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "repeats", tuple(self._scored(each) for each in self.nuisances))

    def median(self) -> Nuisances:
        """Predictions of each row, medians over repeats; before trimming and clipping."""
        return Nuisances(
            np.median([each.propensity for each in self.nuisances], axis=0),
            np.median([each.untreated for each in self.nuisances], axis=0),
            np.median([each.treated for each in self.nuisances], axis=0),
        )

    def median_rows(self) -> ScoredRows:
        """The rows with the medians of their predictions."""
        return self._scored(self.median())

    def _scored(self, nuisances: Nuisances) -> ScoredRows:
        data, e = self.data, nuisances.propensity
        keep = np.ones(len(e), dtype=bool)
        if self.trim is not None:
            keep = (e >= self.trim) & (e <= 1 - self.trim)
        w = data.treatment[keep]
        if len(np.unique(w)) < 2:
            raise EffectDataError(
                f"trim={self.trim} leaves {int((w == 1).sum())} treated and {int((w == 0).sum())} untreated "
                "row(s).",
                "trim less.",
            )
        bounded = np.clip(e[keep], self.clip, 1 - self.clip)
        return ScoredRows(
            keep,
            w,
            data.outcome[keep],
            Nuisances(bounded, nuisances.untreated[keep], nuisances.treated[keep]),
            data.groups[keep],
            None if data.clusters is None else data.clusters[keep],
            row_weights(data.groups[keep], data.weights[keep], self.weighting),
            int((bounded != e[keep]).sum()),
        )

    def effect(self, estimand: Estimand) -> EffectEstimate:
        """The effect, medians over repeats."""
        for rows in self.repeats:
            _check_propensities(rows.nuisances.propensity, estimand)
        result = combine_repeats([rows.solve(estimand) for rows in self.repeats])
        untreated, treated = np.median([rows.effective_sizes(estimand) for rows in self.repeats], axis=0)
        n_trimmed = int(np.median([(~rows.keep).sum() for rows in self.repeats]))
        clusters = self.data.clusters
        return EffectEstimate(
            estimate=result.value,
            std_error=result.std_error,
            dof=result.dof,
            estimand=estimand,
            n_rows=len(self.data.rows) - n_trimmed,
            n_groups=int(np.median([len(np.unique(rows.groups)) for rows in self.repeats])),
            n_clusters=None if clusters is None else int(result.dof) + 1,
            n_effective={"untreated": float(untreated), "treated": float(treated)},
            dropped_groups=self.dropped,
            n_clipped=int(np.median([rows.n_clipped for rows in self.repeats])),
            n_trimmed=n_trimmed,
            notes=tuple(self._notes(estimand, n_trimmed)),
        )

    def scores(self, estimand: Estimand) -> Floats:
        """ψ_b / mean of ψ_a, whose weighted mean is the effect; medians over repeats; (n,)."""
        found = np.full((len(self.repeats), len(self.data.rows)), np.nan)
        for values, rows in zip(found, self.repeats, strict=True):
            scores = effect_scores(estimand, rows.treatment, rows.outcome, rows.nuisances)
            values[rows.keep] = scores.constant / np.average(scores.slope, weights=rows.weights)
        return np.asarray(np.median(found, axis=0))

    def _notes(self, estimand: Estimand, n_trimmed: int) -> list[str]:
        notes = []
        if self.dropped:
            notes.append(self._note_on_dropped_groups(estimand))
        if n_trimmed and self.trim is not None:
            notes.append(
                f"{n_trimmed} row(s) with propensities outside [{self.trim:g}, {1 - self.trim:g}] were left "
                "out; the effect speaks of the others."
            )
        if self.features.filled:
            filled = ", ".join(self.features.filled)
            notes.append(f"Nulls of {filled} were replaced by the median, with an indicator.")
        return notes

    def _note_on_dropped_groups(self, estimand: Estimand) -> str:
        share = self.whole.group_means(self.whole.treatment[:, None])[:, 0]
        n, n_treated = len(self.dropped), int((share == 1).sum())
        names = ", ".join(self.dropped[:_MOST_NAMES]) + (", …" if n > _MOST_NAMES else "")
        n_rows = len(self.whole.rows) - len(self.data.rows)
        found = (
            f"{n} group(s) ({names}) with {n_rows} row(s) were dropped: all rows are treated in {n_treated} "
            f"of them, and none in {n - n_treated}."
        )
        if estimand == "ATO":
            return f"{found} The ATO is unchanged, because they have no weight in it."
        if estimand == "ATT" and not n_treated:
            return f"{found} The ATT is unchanged, because none of their rows is treated."
        return f"{found} The effect speaks of the other groups."


def _check_propensities(propensity: Floats, estimand: Estimand) -> None:
    sure = int(((propensity <= 0) | (propensity >= 1)).sum())
    if sure and estimand != "ATO":
        raise EffectDataError(
            f"The propensities of {sure} row(s) are 0 or 1, and the {estimand} divides by them.",
            "bound them with clip, leave these rows out with trim, or estimate the ATO.",
        )


def row_weights(groups: Codes, weights: Floats, weighting: Literal["row", "group"]) -> Floats:
    """ω: the sample weights, or such that the rows of each group sum to 1; (n,)."""
    if weighting == "row":
        return weights
    total = np.bincount(groups, weights)[groups]
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))
