"""The result of an estimation, as users see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sufrep._frames import frame_from_columns
from sufrep._statistics import p_value_text
from sufrep.solvers.effects import Estimate

if TYPE_CHECKING:
    from sufrep.solvers.effects import Estimand

_TARGETS = {
    "ATE": "average effect on all rows",
    "ATT": "average effect on the treated rows",
    "ATO": "average effect weighted by overlap",
}


@dataclass(frozen=True, slots=True)
class EffectEstimate:
    """A treatment effect with its uncertainty, and which rows it speaks of.

    Attributes
    ----------
    estimate, std_error : float
    dof : float
        Degrees of freedom: one less than the clusters, or infinite for independent rows.
    interval : tuple of float
        95 % confidence interval.
    p_value : float
        Of the two-sided test that there is no effect.
    estimand : {"ATE", "ATT", "ATO"}
    n_rows, n_groups : int
        Rows and groups that the effect was estimated from.
    n_clusters : int or None
        Number of clusters of the standard error; None for independent rows.
    n_effective : dict of str to float
        For untreated and treated rows, the number of equally weighted rows with the same precision.
    dropped_groups : tuple of str
        Groups whose rows were all treated or all untreated. The effect says nothing about them.
    n_clipped, n_trimmed : int
        Rows whose propensity was bounded, and rows that were left out because of theirs (medians over
        repeats).
    notes : tuple of str
        What else a reader has to know, such as a changed estimand.
    """

    estimate: float
    std_error: float
    dof: float
    estimand: Estimand
    n_rows: int
    n_groups: int
    n_clusters: int | None
    n_effective: dict[str, float]
    dropped_groups: tuple[str, ...] = ()
    n_clipped: int = 0
    n_trimmed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval."""
        return self.confint(0.95)

    @property
    def p_value(self) -> float:
        """Of the two-sided test that there is no effect."""
        return Estimate(self.estimate, self.std_error, self.dof).p_value

    def confint(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of a level between 0 and 1."""
        return Estimate(self.estimate, self.std_error, self.dof).interval(level)

    def tidy(self, library: str | None = None) -> Any:
        """A frame of one row with the column names of pyfixest's ``tidy()``."""
        low, high = self.interval
        columns = {
            "Coefficient": [self.estimand],
            "Estimate": [self.estimate],
            "Std. Error": [self.std_error],
            "t value": [self.estimate / self.std_error if self.std_error else float("nan")],
            "Pr(>|t|)": [self.p_value],
            "2.5%": [low],
            "97.5%": [high],
        }
        return frame_from_columns(columns, library)

    def summary(self) -> str:
        """The result in words."""
        low, high = self.interval
        clusters = "independent rows" if self.n_clusters is None else f"{self.n_clusters:,} clusters"
        lines = [
            f"{self.estimand}, {_TARGETS[self.estimand]}: {self.estimate:.4g} "
            f"(standard error {self.std_error:.2g}, {clusters})",
            f"95 % interval {low:.4g} to {high:.4g}, p {p_value_text(self.p_value)}",
            f"{self.n_rows:,} rows in {self.n_groups:,} groups; effective rows "
            + ", ".join(f"{size:,.0f} {arm}" for arm, size in self.n_effective.items()),
        ]
        return "\n".join([*lines, *self.notes])
