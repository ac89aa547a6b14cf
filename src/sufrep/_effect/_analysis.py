"""The effect of a treatment with everything that a reader needs to judge it."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sufrep._effect._subgroups import subgroup_effects
from sufrep.causal._plots import final_step, frame_rows
from sufrep.errors import OverlapWarning

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from datetime import date
    from pathlib import Path

    import polars as pl

    from sufrep._effect._subgroups import Subgroups
    from sufrep._progress import Report
    from sufrep.causal import AIPW, Sensitivity

# If nobody names columns, this many covariates define subgroups.
_MOST_COLUMNS = 3
_PLAIN_LABELS = ("1", "1.0", "True", "true")
ASSUMPTION = (
    "This is the effect of the treatment if treated and untreated rows {whose} differ in nothing else that "
    "matters for the outcome. The data cannot show whether they do."
)
CANNOT_DETECT = "It cannot detect a violated assumption: it says how strong a violation would have to be."


@dataclass(frozen=True, slots=True, eq=False)
class EffectAnalysis:
    """A fitted model with its tables.

    Attributes
    ----------
    model : AIPW
    treatment, outcome, group : str
        Names of the columns.
    fit_arguments : dict
        Arguments of `AIPW.fit` apart from the table.
    ladder, overlap, balance : tuple of dict
        Rows of the tables of the same name.
    subgroups : tuple of Subgroups
    sensitivity : Sensitivity or None
        None for the ATO, for which it is not defined.
    notes : tuple of str
    """

    model: AIPW
    treatment: str
    outcome: str
    group: str
    fit_arguments: dict[str, Any]
    ladder: tuple[dict[str, Any], ...]
    overlap: tuple[dict[str, Any], ...]
    balance: tuple[dict[str, Any], ...]
    subgroups: tuple[Subgroups, ...]
    sensitivity: Sensitivity | None
    notes: tuple[str, ...]

    @property
    def treatment_text(self) -> str:
        """What is done to treated rows: the column, with its value unless that is 1 or true."""
        label = self.model.data_.treated_label
        return self.treatment if label in _PLAIN_LABELS else f"{self.treatment} = {label}"

    @property
    def verdict(self) -> tuple[str, ...]:
        """Paragraphs; the first is the result in one sentence."""
        whose = "of the same group with the same covariates"
        if not self.controls_group:
            whose = "with the same covariates, in groups with the same means of covariates,"
        return (self._headline(), *self._role_of_the_group(), ASSUMPTION.format(whose=whose))

    @property
    def controls_group(self) -> bool:
        """Whether rows are compared within groups, which takes the share of treated rows."""
        return "W" in self.model.statistics

    @property
    def adjusted_for(self) -> str:
        """What stands for the group in the estimate."""
        return self.group if self.controls_group else f"their means by {self.group}"

    def _headline(self) -> str:
        effect = self.model.effect_
        sign = -1 if effect.interval[1] < 0 else 1
        low, high = sorted(sign * bound for bound in effect.interval)
        size, low_text, high_text = (
            number_text(value, effect.std_error) for value in (sign * effect.estimate, low, high)
        )
        interval = f"(95 % interval {low_text} to {high_text}), {self._population()}."
        # An interval that is unknown, from a single cluster, is no evidence of an effect either.
        if not low > 0:
            return (
                f"No clear effect of {self.treatment_text} on {self.outcome}: the estimate is {size} "
                f"{interval}"
            )
        verb = "raises" if sign > 0 else "lowers"
        return f"{self.treatment_text} {verb} {self.outcome} by {size} {interval}"

    def _population(self) -> str:
        """The rows that the effect is an average over."""
        effect = self.model.effect_
        where = f"in {effect.n_groups:,} groups ({self.group})"
        if effect.dropped_groups:
            where = f"in the {effect.n_groups:,} groups ({self.group}) with treated and untreated rows"
        if effect.estimand == "ATT":
            treated = int(self.model.data_.treatment.sum())
            return f"on average over {treated:,} treated rows; estimated from {effect.n_rows:,} rows {where}"
        weighted = ", weighted by how well treated and untreated rows overlap" * (effect.estimand == "ATO")
        return f"on average over {effect.n_rows:,} rows {where}{weighted}"

    def _role_of_the_group(self) -> list[str]:
        """What adjusting for the group does to the estimate."""
        steps = {
            row["step"]: number_text(row["estimate"], row["std_error"])
            for row in self.ladder
            if row["step"] in ("raw difference", "covariates")
        }
        if final_step(self.model, self.ladder) in (None, *steps):
            return []
        effect = self.model.effect_
        final = number_text(effect.estimate, effect.std_error)
        text = f"The raw difference is {steps['raw difference']}. Adjusted for "
        if "covariates" not in steps:
            return [f"{text}{self.group} it is {final}."]
        return [
            f"{text}the covariates it is {steps['covariates']}, and for {self.adjusted_for} as well {final}."
        ]

    @property
    def sensitivity_text(self) -> str:
        """What an unobserved confounder would have to be like."""
        found = self.sensitivity
        if found is None:
            return f"Sensitivity is not defined for the ATO; it is for ATE and ATT. {CANNOT_DETECT}"
        low, high = self.model.effect_.interval
        whole, interval = _percent(found.robustness), _percent(found.robustness_interval)
        of_outcome, of_treatment = (_percent(found.benchmark[key]) for key in ("cf_y", "cf_d"))
        text = (
            f"An unobserved confounder could explain the whole estimate if it explained {whole} of what is "
            "left unexplained of the outcome, and as much of the treatment. "
        )
        text += (
            "The interval contains zero already."
            if low <= 0 <= high
            else f"For an interval that contains zero, {interval} is enough."
        )
        text += (
            f" For comparison: what {self.group} explains is {of_outcome} of what is left unexplained of the "
            f"outcome, and {of_treatment} of that of the treatment."
        )
        return f"{text} {CANNOT_DETECT}"

    def to_dict(self) -> dict[str, Any]:
        """All results as plain values for JSON; NaN and infinity become None."""
        effect = self.model.effect_
        low, high = effect.interval
        result = {
            "treatment": self.treatment,
            "treated": self.model.data_.treated_label,
            "outcome": self.outcome,
            "group": self.group,
            "verdict": list(self.verdict),
            "effect": {**asdict(effect), "lower": low, "upper": high, "p_value": effect.p_value},
            "ladder": list(self.ladder),
            "overlap": list(self.overlap),
            "balance": list(self.balance),
            "subgroups": [asdict(found) for found in self.subgroups],
            "sensitivity": None if self.sensitivity is None else asdict(self.sensitivity),
            "notes": list(self.notes),
        }
        return {key: _plain(value) for key, value in result.items()}

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        loading: str | None = None,
        source: str | None = None,
        day: date | None = None,
    ) -> Path:
        """Write the report, a single HTML page that needs no network.

        Parameters
        ----------
        path : str or path
        loading : str or None
            Python code that defines `table`, shown in the report before the code of the estimate.
        source : str or None
            Where the rows come from, for the header: the name of a file, or "simulated data".
        day : datetime.date or None
            The date in the header; None is today.
        """
        # Drawing is loaded only for a page.
        from sufrep._effect._page import effect_page
        from sufrep._report import write_page

        return write_page(effect_page(self, loading, source, day), path)


def analyse(
    model: AIPW,
    table: pl.DataFrame,
    *,
    treatment: str,
    outcome: str,
    treated: Any = None,
    propensity: float | str | None = None,
    sample_weight: str | None = None,
    by: Sequence[str] = (),
    progress: Report,
) -> EffectAnalysis:
    """Fit a model and compute everything that a report shows.

    Parameters
    ----------
    model : AIPW
    table : polars.DataFrame
    treatment, outcome : str
    treated, propensity, sample_weight : optional
        As in `AIPW.fit`.
    by : sequence of str
        Columns that define subgroups; without any, the first covariates do.
    progress : Report
    """
    optional = {"treated": treated, "propensity": propensity, "sample_weight": sample_weight}
    given: dict[str, Any] = {"treatment": treatment, "outcome": outcome}
    given |= {name: value for name, value in optional.items() if value is not None}
    progress(0, 4, "")
    model.fit(table, **given)
    progress(1, 4, "effect estimated")
    with warnings.catch_warnings():
        # The fit has reported what concerns the effect; the other models are for comparison.
        warnings.simplefilter("ignore", OverlapWarning)
        ladder = tuple(frame_rows(model.ladder()))
        progress(2, 4, "compared with other adjustments")
        sensitivity = None if model.estimand == "ATO" else model.sensitivity()
        progress(3, 4, "sensitivity")
    subgroups, notes = _subgroups(
        model, table, by or _first_covariates(model, table, given), is_asked=bool(by)
    )
    progress(4, 4, "subgroups")
    return EffectAnalysis(
        model,
        treatment,
        outcome,
        " and ".join(map(str, _columns_of(model))),
        given,
        ladder,
        tuple(frame_rows(model.overlap_report())),
        tuple(frame_rows(model.balance())),
        tuple(subgroups),
        sensitivity,
        (*model.effect_.notes, *notes),
    )


def _first_covariates(model: AIPW, table: pl.DataFrame, given: dict[str, Any]) -> list[str]:
    """The first columns that are controlled for."""
    if model.covariates is not None:
        return [str(column) for column in model.covariates[:_MOST_COLUMNS]]
    taken = {*_columns_of(model), *given.values(), model.cluster}
    return [column for column in table.columns if column not in taken][:_MOST_COLUMNS]


def _columns_of(model: AIPW) -> tuple[Any, ...]:
    return model.group if isinstance(model.group, tuple) else (model.group,)


def _subgroups(
    model: AIPW, table: pl.DataFrame, columns: Sequence[str], *, is_asked: bool
) -> tuple[list[Subgroups], list[str]]:
    """The effects by each column, and a note on columns that were asked for and cannot be used."""
    effects = {column: subgroup_effects(model, table[column]) for column in dict.fromkeys(columns)}
    missing = [column for column, found in effects.items() if found is None] if is_asked else []
    notes = [
        f"No effects by {column}: it has no two subgroups with treated and untreated rows and two clusters."
        for column in missing
    ]
    return [found for found in effects.values() if found is not None], notes


def number_text(value: float, std_error: float) -> str:
    """A number with as many digits as its standard error allows: two of the error's.

    >>> number_text(0.08213, 0.0231), number_text(-1234.5, 99.0), number_text(0.5, 0.0)
    ('0.082', '-1,234', '0.5')
    """
    if not math.isfinite(value):
        return "unknown"
    if not (math.isfinite(std_error) and std_error > 0):
        return f"{value:.4g}"
    digits = min(max(1 - math.floor(math.log10(std_error)), 0), 12)
    return f"{value:,.{digits}f}"


def _percent(share: float) -> str:
    return "an unknown share" if not math.isfinite(share) else f"{100 * share:.1f} %"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
