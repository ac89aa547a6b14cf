"""The report of a treatment effect: its parts in reading order, each chart with the text that explains it."""

from __future__ import annotations

import math
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sufrep._charts import MAX_LEVELS
from sufrep._compare._snippet import arguments_of, changed_parameters, import_lines, imports_of
from sufrep._report import ChartPart, CodePart, Page, TablePart, origin_text
from sufrep._statistics import p_value_text
from sufrep.causal._plots import (
    MOST_BALANCE_ROWS,
    balance_chart,
    effects_chart,
    final_step,
    group_chart,
    group_overlap,
    propensity_chart,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from sufrep._effect._analysis import EffectAnalysis
    from sufrep._report._parts import CellValue
    from sufrep.causal import AIPW

_MAX_LISTED_GROUPS = 500
_EFFECT_COLUMNS = ("estimate", "standard error", "95 % from", "to", "p")
_LOADED = "# table is the table that the effect was estimated from"
_ESTIMANDS = {"ATE": "all rows (ATE)", "ATT": "treated rows (ATT)", "ATO": "weighted by overlap (ATO)"}


def effect_page(
    analysis: EffectAnalysis,
    loading: str | None = None,
    source: str | None = None,
    day: date | None = None,
) -> Page:
    """Return the whole report; the parameters are those of `EffectAnalysis.to_html`."""
    parts: list[Any] = [ladder_part(analysis), *subgroup_parts(analysis)]
    parts += [overlap_part(analysis), groups_part(analysis), balance_part(analysis)]
    parts += [sensitivity_part(analysis), code_part(analysis, loading)]
    return Page(
        title=f"What does {analysis.treatment_text} do to {analysis.outcome}?",
        subtitle=f"A treatment effect by sufrep, adjusted for covariates and for {analysis.adjusted_for}.",
        # A line must not end between a number and its percent sign.
        verdict=tuple(paragraph.replace(" %", "\u00a0%") for paragraph in analysis.verdict),
        origin=origin_text(source, day),
        facts=_facts(analysis),
        parts=tuple(parts),
        notes=analysis.notes,
        footer=f"Made by sufrep {version('sufrep')} with random_state={analysis.model.random_state}.",
    )


def _facts(analysis: EffectAnalysis) -> tuple[tuple[str, str], ...]:
    model, effect = analysis.model, analysis.model.effect_
    sizes = ", ".join(f"{size:,.0f} {arm}" for arm, size in effect.n_effective.items())
    repeated = f", repeated {model.n_repeats} times" if model.n_repeats > 1 else ""
    clusters = "none: rows are independent" if effect.n_clusters is None else f"{effect.n_clusters:,}"
    return (
        ("effect on", _ESTIMANDS[effect.estimand]),
        ("rows", f"{effect.n_rows:,} of {model.n_rows_given_:,}"),
        ("groups", f"{effect.n_groups:,} of {effect.n_groups + len(effect.dropped_groups):,}"),
        ("clusters of the errors", clusters),
        ("effective rows", sizes),
        ("folds", f"{model.n_folds}{repeated}"),
    )


def ladder_part(analysis: EffectAnalysis) -> ChartPart:
    final = final_step(analysis.model, analysis.ladder)
    shown = f" The estimate of the verdict is in bold: {final}." if final else ""
    return ChartPart(
        title="What the adjustments do",
        text=(
            f"The estimate with more and more adjusted for, each with its 95 % interval.{shown} If it "
            f"changes where {analysis.group} comes in, {analysis.group} matters for treatment and outcome in "
            "ways that the covariates do not record. The linear fixed effect is weighted by overlap: it "
            "answers another question where effects differ between rows."
        ),
        chart=effects_chart(analysis.ladder, "step", value_title=_value_title(analysis), highlighted=final),
        description=f"Estimates of {len(analysis.ladder)} kinds of adjustment with their intervals.",
        table=TablePart(
            "Show as a table",
            ("adjusted for", *_EFFECT_COLUMNS),
            [(row["step"], *_effect_cells(row)) for row in analysis.ladder],
            highlighted=next((i for i, row in enumerate(analysis.ladder) if row["step"] == final), None),
        ),
    )


def subgroup_parts(analysis: EffectAnalysis) -> list[ChartPart]:
    if not analysis.subgroups:
        return []
    effect = analysis.model.effect_
    low, high = effect.interval
    whole = {
        "subgroup": "all rows",
        "estimate": effect.estimate,
        "std_error": effect.std_error,
        "lower": low,
        "upper": high,
        "p_value": effect.p_value,
        "n_rows": effect.n_rows,
    }
    rows = [whole, *(row for found in analysis.subgroups for row in found.rows)]
    small = [f"{found.n_left_out:,} by {found.column}" for found in analysis.subgroups if found.n_left_out]
    left_out = f" Rows of subgroups that are too small are left out: {', '.join(small)}." if small else ""
    return [
        ChartPart(
            title="Effects by subgroup",
            text=(
                "The same effect among some of the rows. Subgroups whose intervals overlap may not differ, "
                f"and of many subgroups some seem to differ by chance.{left_out}"
            ),
            chart=effects_chart(rows, "subgroup", value_title=_value_title(analysis), highlighted="all rows"),
            description=f"Estimates in {len(rows) - 1} subgroups with their intervals.",
            table=TablePart(
                "Show as a table",
                ("subgroup", "rows", *_EFFECT_COLUMNS),
                [(row["subgroup"], row["n_rows"], *_effect_cells(row)) for row in rows],
                highlighted=0,
            ),
        )
    ]


def overlap_part(analysis: EffectAnalysis) -> ChartPart:
    effect, clip = analysis.model.effect_, analysis.model.clip
    columns = list(analysis.overlap[0])
    trimmed = f" {effect.n_trimmed:,} rows were left out." if effect.n_trimmed else ""
    return ChartPart(
        title="Overlap of treated and untreated rows",
        text=(
            "How probable treatment was for the rows that were treated (upwards) and those that were not "
            "(downwards). Rows can be compared where both have bars. Where only one has, the effect rests on "
            f"the models. {effect.n_clipped:,} of {effect.n_rows:,} rows had a probability below "
            f"{clip:g} or above {1 - clip:g}, which was set to the bound.{trimmed}"
        ),
        chart=propensity_chart(analysis.model),
        description="Histograms of the estimated probability of treatment of treated and untreated rows.",
        table=TablePart(
            "Show as a table", columns, [tuple(row[column] for column in columns) for row in analysis.overlap]
        ),
    )


def groups_part(analysis: EffectAnalysis) -> ChartPart:
    model, group = analysis.model, analysis.group
    sizes, shares = group_overlap(model)
    labels, dropped = model.whole_.labels, set(model.dropped_groups_)
    largest = (-sizes).argsort(kind="stable")[:_MAX_LISTED_GROUPS].tolist()
    limited = f" Only the {MAX_LEVELS:,} largest are drawn." if len(labels) > MAX_LEVELS else ""
    text = f"Dots are levels of {group}; a larger dot is several with the same numbers."
    if analysis.controls_group:
        text += " Within a level, treated rows are compared with untreated ones."
    if dropped:
        lost = model.n_rows_given_ - len(model.rows_)
        text += (
            f" {len(dropped):,} of {len(labels):,} levels, with {lost:,} rows, have only one of the two; "
            "they were dropped, and the effect says nothing about them."
        )
    return ChartPart(
        title=f"Overlap by {group}",
        text=text + limited,
        chart=group_chart(model, group),
        description=f"Share of treated rows and number of rows of {len(labels)} groups.",
        table=TablePart(
            f"Show the {len(largest):,} largest groups as a table",
            (group, "rows", "share of treated rows", "dropped"),
            [
                (
                    labels[i],
                    int(sizes[i]),
                    f"{100 * shares[i]:.1f} %",
                    "yes" if labels[i] in dropped else "no",
                )
                for i in largest
            ],
        ),
    )


def balance_part(analysis: EffectAnalysis) -> ChartPart:
    rows = analysis.balance
    known = [row for row in rows if math.isfinite(row["after"])]
    worst: dict[str, Any] = max(
        known, key=lambda row: abs(row["after"]), default={"column": "none", "after": 0.0}
    )
    kinds = [row["kind"] for row in rows]
    hidden = any(kinds.count(kind) > MOST_BALANCE_ROWS for kind in set(kinds))
    limited = f" Of each kind, the {MOST_BALANCE_ROWS} largest differences are drawn." if hidden else ""
    return ChartPart(
        title="Balance",
        text=(
            "Differences between treated and untreated rows, in standard deviations, before and after "
            "weighting by the probability of treatment. Columns between the dashed lines (0.1) are usually "
            f"called balanced. The largest difference after weighting is {abs(worst['after']):.2f} "
            f"({worst['column']}). What weighting leaves, the models of the outcome adjust for.{limited}"
        ),
        chart=balance_chart(rows),
        description=f"Differences of {len(rows)} columns before and after weighting.",
        table=TablePart(
            "Show as a table",
            ("column", "kind", "before weighting", "after weighting"),
            [(row["column"], row["kind"], row["before"], row["after"]) for row in rows],
        ),
    )


def sensitivity_part(analysis: EffectAnalysis) -> TablePart:
    found = analysis.sensitivity
    rows: list[tuple[CellValue, ...]] = []
    if found is not None:
        rows = [
            ("share of both that explains the whole estimate", _share(found.robustness)),
            ("share of both that makes the interval contain zero", _share(found.robustness_interval)),
            (
                f"for comparison, what {analysis.group} explains of the outcome",
                _share(found.benchmark["cf_y"]),
            ),
            ("for comparison, what it explains of the treatment", _share(found.benchmark["cf_d"])),
            ("largest bias of a confounder with 3 % of both", found.bias),
        ]
    return TablePart(
        title="If something is not observed",
        columns=("unobserved confounder", "value"),
        rows=rows,
        text=analysis.sensitivity_text,
    )


def code_part(analysis: EffectAnalysis, loading: str | None) -> CodePart:
    return CodePart(
        title="Do it in Python",
        text="The same estimate. model.ladder(), model.gate() and others return the tables of this page.",
        code=effect_code(analysis.model, analysis.fit_arguments, loading),
    )


def effect_code(model: AIPW, fit_arguments: Mapping[str, Any], loading: str | None = None) -> str:
    """Return code that builds and fits a model like the given one.

    Parameters
    ----------
    model : AIPW
    fit_arguments : mapping
        Arguments of ``fit`` apart from the table.
    loading : str or None
        Code that defines ``table``.
    """
    code = (loading or _LOADED).splitlines()
    plain = [line for line in code if line.startswith("import ")]
    return "\n".join(
        [
            *plain,
            *import_lines(set(imports_of(model))),
            "",
            *(line for line in code if line and line not in plain),
            "model = AIPW(",
            *(f"    {argument}," for argument in arguments_of(changed_parameters(model))),
            ")",
            f"model.fit(table, {', '.join(arguments_of(dict(fit_arguments)))})",
            "print(model.effect_.summary())",
        ]
    )


def _value_title(analysis: EffectAnalysis) -> str:
    return f"effect on {analysis.outcome}, in its units"


def _effect_cells(row: Mapping[str, Any]) -> Sequence[CellValue]:
    values = (row["estimate"], row["std_error"], row["lower"], row["upper"])
    return (*(_number(value) for value in values), p_value_text(row["p_value"]) or None)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _share(value: float) -> str | None:
    return f"{100 * value:.1f} %" if math.isfinite(value) else None
