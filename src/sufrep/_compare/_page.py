"""The report of a comparison: what to read, in which order."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sufrep._compare._page_charts import (
    fold_parts,
    improvement_text,
    map_parts,
    number_or_none,
    ranking_part,
    size_part,
    spectrum_parts,
    time_part,
)
from sufrep._compare._snippet import pipeline_code
from sufrep._report import CodePart, Page, TablePart

if TYPE_CHECKING:
    from sufrep._compare._comparison import Comparison


def comparison_page(comparison: Comparison, loading: str | None = None) -> Page:
    """All parts of the report."""
    problem, summaries = comparison.plan.problem, comparison.summaries
    done = [item for item in summaries if not item.failed]
    parts: list[Any] = [_results(comparison)]
    if done:
        parts.insert(0, _code(comparison, loading))
        parts.insert(0, ranking_part(comparison, done))
        parts += [*fold_parts(comparison, done), *map_parts(comparison, done), *spectrum_parts(comparison)]
    parts.append(size_part(comparison))
    if done:
        parts.append(time_part(comparison, done))
    return Page(
        title=f"{problem.group_name}: which representation predicts {problem.target_name}?",
        subtitle="A comparison by sufrep, cross-validated on your own rows.",
        verdict=comparison.verdict,
        facts=_facts(comparison),
        parts=tuple(parts),
        notes=comparison.notes,
        footer=f"Made by sufrep {version('sufrep')} with random_state={comparison.plan.seed}.",
    )


def _facts(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    plan, problem = comparison.plan, comparison.plan.problem
    counts = problem.counts
    n_repeats = len({split.repeat for split in plan.splits})
    repeated = f", {n_repeats} times" if n_repeats > 1 else ""
    return (
        ("rows", f"{len(problem.y):,}"),
        ("levels", f"{len(problem.levels):,}"),
        ("rows a level", f"{counts.min():,} to {counts.max():,}"),
        ("task", problem.task),
        ("measure", plan.scoring.name),
        ("folds", f"{comparison.n_folds}{repeated}"),
        ("models", ", ".join(plan.models)),
    )


def _code(comparison: Comparison, loading: str | None) -> CodePart:
    return CodePart(
        title="Use the winner",
        text="A scikit-learn pipeline. In Python, comparison.fit_best() gives the same, already fitted.",
        code=pipeline_code(comparison.pipeline(*comparison.best), loading),
    )


def _results(comparison: Comparison) -> TablePart:
    summaries, scoring = comparison.summaries, comparison.plan.scoring
    columns = ["method", "model", scoring.name, "improvement", "95 % from", "to", "p", "p, corrected"]
    columns += ["p, adjusted", "seconds to fit", "seconds to predict", "columns added"]
    any_failed = any(item.failed for item in summaries)
    rows = [
        (
            item.method,
            item.model,
            number_or_none(item.score),
            *(improvement_text(comparison, value) for value in (item.improvement, item.low, item.high)),
            *(number_or_none(round(p, 4)) for p in (item.p_plain, item.p_corrected, item.p_adjusted)),
            number_or_none(item.fit_seconds),
            number_or_none(item.predict_seconds),
            item.n_columns if not item.failed else None,
            *([item.failure or ""] if any_failed else []),
        )
        for item in summaries
    ]
    return TablePart(
        title="All results",
        columns=[*columns, *(["failed because"] if any_failed else [])],
        rows=rows,
        text=(
            "p is that of the paired t-test over the folds; corrected allows for training rows that folds "
            "share (Nadeau and Bengio), adjusted also for the number of methods (Holm). Seconds are medians "
            "over the folds, of encoder and model together."
        ),
        highlight=0 if not summaries[0].failed else None,
    )
