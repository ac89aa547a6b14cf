"""The report of a comparison: its parts in reading order, and what it says in tables and sentences."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sufrep._compare._data import LEVEL_KINDS
from sufrep._compare._page_charts import (
    chooses,
    fold_names,
    fold_parts,
    improvement_text,
    in_words,
    map_parts,
    number_or_none,
    ranking_part,
    share_text,
    size_part,
    spectrum_parts,
    time_part,
)
from sufrep._compare._results import MIN_ROWS, kinds_text
from sufrep._compare._snippet import pipeline_code
from sufrep._names import METHOD_TEXTS
from sufrep._report import CodePart, Page, TablePart, markdown_table, markdown_text, origin_text
from sufrep._statistics import p_value_text
from sufrep.encoders._judging import COMPONENTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from sufrep._compare._comparison import Comparison
    from sufrep._compare._results import Summary


_LOSS_TEXT = " Its loss is of squared errors, so its percentages are larger than those of the typical error."


_RMSE_TEXT = (
    " The typical error is the root of the mean squared error: large misses count more, so most misses are "
    "smaller."
)


def comparison_page(
    comparison: Comparison,
    loading: str | None = None,
    source: str | None = None,
    day: date | None = None,
) -> Page:
    """Return the whole report; the parameters are those of `Comparison.to_html`."""
    data, summaries = comparison.plan.data, comparison.summaries
    done = [item for item in summaries if not item.failed]
    parts: list[Any] = [results_part(comparison)]
    if done:
        parts = [ranking_part(comparison, done), code_part(comparison, loading), *parts]
        parts += [*level_kinds_parts(comparison, done), *fold_parts(comparison, done)]
        parts += choice_parts(comparison, done)
        parts += [*map_parts(comparison, done), *spectrum_parts(comparison)]
    parts.append(size_part(comparison))
    if done:
        parts.append(time_part(comparison, done))
    parts.append(glossary_part(comparison))
    return Page(
        title=f"{data.groups_in_words}: which encoding predicts {data.target_name} best?",
        subtitle="Encodings of one column, compared by cross-validation.",
        verdict=comparison.verdict,
        origin=origin_text(source, day),
        facts=_facts(comparison),
        parts=tuple(parts),
        notes=comparison.notes,
        footer=f"Made by sufrep {version('sufrep')} with random_state={comparison.plan.seed}.",
    )


def comparison_markdown(comparison: Comparison) -> str:
    """Return verdict, results and notes as Markdown."""
    headline, *paragraphs = map(markdown_text, comparison.verdict)
    results = results_part(comparison)
    blocks = [f"## {headline}", *paragraphs, markdown_table(results), markdown_text(results.text)]
    blocks += map(markdown_table, _failure_tables(comparison.summaries))
    if comparison.notes:
        blocks.append("\n".join(f"- {markdown_text(note)}" for note in comparison.notes))
    return "\n\n".join(blocks) + "\n"


def _facts(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    plan, data = comparison.plan, comparison.plan.data
    counts = data.counts
    n_repeats = len({split.repeat for split in plan.splits})
    repeated = f", repeated {n_repeats} times" if n_repeats > 1 else ""
    if data.time is not None:
        repeated = f", each later than its training rows by {data.time.name}"
    return (
        ("rows", f"{len(data.y):,}"),
        ("levels", f"{len(data.levels):,}"),
        ("rows per level", f"{counts.min():,} to {counts.max():,}"),
        ("task", data.task if data.task != "multiclass" else f"{len(set(data.y.tolist()))} classes"),
        ("scoring", plan.scoring.name),
        ("folds", f"{comparison.n_folds}{repeated}"),
        ("models", ", ".join(plan.models)),
    )


def code_part(comparison: Comparison, loading: str | None) -> CodePart:
    return CodePart(
        title="Use the recommended pipeline",
        text="A scikit-learn pipeline. In Python, comparison.fit_best() returns the same pipeline, fitted.",
        code=pipeline_code(comparison.pipeline(*comparison.best), loading),
    )


def results_part(comparison: Comparison) -> TablePart:
    """Return the table of all results; what the verdict quotes comes first, so that it is seen first."""
    summaries, scoring = comparison.summaries, comparison.plan.scoring
    also = [] if scoring.also is None else [scoring.also[0]]
    columns = ["method", "model", scoring.name, "improvement", "95 % from", "to", "p", *also]
    columns += ["columns added", "seconds to fit"]
    rows = [
        (
            item.method,
            item.model,
            number_or_none(item.score),
            *(improvement_text(comparison, value) for value in (item.improvement, item.low, item.high)),
            p_value_text(item.p_adjusted) or None,
            *(number_or_none(item.also) for _ in also),
            item.n_columns if not item.failed else None,
            _seconds(item.fit_seconds),
        )
        for item in summaries
    ]
    return TablePart(
        title="All results",
        columns=columns,
        rows=rows,
        text=(
            f"Improvement: over {in_words(comparison.baseline)} with the same model, and its 95 % "
            "interval. p: how likely a difference as large is by chance alone, accounting for training rows "
            "shared by folds and for the number of methods; a dash if there is no test. Seconds: medians "
            "over the folds, encoder and model together."
            f"{_RMSE_TEXT if 'RMSE' in comparison.plan.scoring.name else ''}"
        ),
        highlighted=None if summaries[0].failed else place_of(comparison.best, summaries),
        explained=METHOD_TEXTS,
        tables=(*_failure_tables(summaries), *_over_others_tables(comparison), _tests_table(summaries)),
    )


def place_of(best: tuple[str, str], summaries: Sequence[Summary]) -> int | None:
    """Return the row of the recommended method."""
    return next((i for i, item in enumerate(summaries) if (item.method, item.model) == best), None)


def _over_others_tables(comparison: Comparison) -> list[TablePart]:
    """Return by how much the recommended method is better than each other one, if there are any."""
    over = comparison.over_others
    if not over:
        return []
    method, model = comparison.best
    rows = [
        (
            name,
            *(improvement_text(comparison, value) for value in (gain.improvement, gain.low, gain.high)),
            gain.no_test or "",
        )
        for name, gain in over.items()
    ]
    reasons = ["not tested"] if any(gain.no_test for gain in over.values()) else []
    return [
        TablePart(
            title=f"Compare {method} with each other method",
            columns=["compared with", "improvement", "95 % from", "to", *reasons],
            rows=[row if reasons else row[:-1] for row in rows],
            text=(
                f"By how much {in_words(method)} is better than each other method with {model}; below "
                "zero, it is worse. An interval is for its pair alone; where it includes zero, the "
                "difference may be chance."
            ),
            explained=METHOD_TEXTS,
        )
    ]


def _failure_tables(summaries: Sequence[Summary]) -> list[TablePart]:
    rows = [(item.method, item.model, item.failure) for item in summaries if item.failed]
    table = TablePart(
        "What failed", ("method", "model", "reason"), rows, explained=METHOD_TEXTS, unfolded=True
    )
    return [table] if rows else []


def _tests_table(summaries: Sequence[Summary]) -> TablePart:
    # The column of reasons is shown only if there are any.
    reasons = ["no test"] if any(item.no_test for item in summaries) else []
    return TablePart(
        title="Show all tests and times",
        columns=[
            *("method", "model", "plain p", "corrected p", "adjusted p", "seconds to fit", "to predict"),
            *reasons,
        ],
        rows=[
            (
                item.method,
                item.model,
                *(p_value_text(p) or None for p in (item.p_plain, item.p_corrected, item.p_adjusted)),
                *(_seconds(value) for value in (item.fit_seconds, item.predict_seconds)),
                *(item.no_test or "" for _ in reasons),
            )
            for item in summaries
        ],
        text=(
            "Plain: t-test of the differences between two methods over all test rows, or over the folds "
            "where a score is no mean over rows. Corrected: accounts for training rows shared by folds "
            "(Nadeau and Bengio). Adjusted: corrected for the number of methods as well (Holm). There is no "
            "test with fewer than three folds, or if the gains are equal in all folds."
        ),
    )


def _seconds(value: float) -> float | None:
    """Return two digits: a measured time has no more."""
    return float(f"{value:.2g}") if math.isfinite(value) else None


def level_kinds_parts(comparison: Comparison, done: Sequence[Summary]) -> list[TablePart]:
    """Return the scores of rows of common, rare and new levels, if there are any but common ones."""
    n_rows = {kind: getattr(done[0], f"n_{kind}") for kind in LEVEL_KINDS}
    if not n_rows["rare"] + n_rows["new"]:
        return []
    kinds = [kind for kind, count in n_rows.items() if count]
    enough = MIN_ROWS * comparison.plan.n_repeats
    group = comparison.plan.data.group_name
    too_few = any(n_rows[kind] < enough for kind in kinds)
    return [
        TablePart(
            title="Common, rare and new levels",
            columns=["method", "model", *(f"{kind} levels, rows: {n_rows[kind]:,}" for kind in kinds)],
            rows=[
                (
                    item.method,
                    item.model,
                    *(
                        number_or_none(getattr(item, kind)) if n_rows[kind] >= enough else None
                        for kind in kinds
                    ),
                )
                for item in done
            ],
            text=(
                f"How well rows are predicted whose {group} occurs often, rarely or never in the training "
                f"rows: their {comparison.plan.scoring.name}. {kinds_text(group)} Where a method is no "
                "better than drop (the column left out) in the same column of the table, it does not help "
                "such rows."
                f"{f' A dash: fewer than {MIN_ROWS} rows, too few for a score.' if too_few else ''}"
            ),
            highlighted=place_of(comparison.best, done),
            explained=METHOD_TEXTS,
        )
    ]


def choice_parts(comparison: Comparison, done: Sequence[Summary]) -> list[TablePart]:
    """Return what the encoder that chooses has kept, and what each component contributes.

    That of all rows is known if it is the recommended one, which is fitted to them; else only that of folds.
    """
    best = next((item for item in done if chooses(item.method)), None)
    if best is None:
        return []
    if (best.method, best.model) != comparison.best:
        return [replace(_folds_table(comparison), title="What SufficientEncoder kept in each fold")]
    report = comparison.fitted_encoder(best.method, best.model).report_
    found, group = report["candidates"], comparison.plan.data.groups_in_words
    unit = found["loss"][0]  # of dropping the column
    return [
        TablePart(
            title="What SufficientEncoder kept",
            columns=["candidate", "gain over dropping", "standard error", "columns"],
            rows=[
                (name, share_text(gain, 1.0), share_text(error, 1.0), n_columns)
                for name, gain, error, n_columns in zip(
                    *(found[key] for key in ("candidate", "relative_gain", "relative_error", "n_columns")),
                    strict=True,
                )
            ],
            # A line must not end between a number and its percent sign.
            text=(
                report["summary"].replace(" %", "\u00a0%")
                + f" Judged by {best.model} on rows held out of the whole table. Candidates that fall "
                "clearly behind leave after some of the folds; gains are those on the folds that a candidate "
                "and dropping both took part in, and may be in another order than the choice."
                + (_LOSS_TEXT if comparison.plan.data.task == "regression" else "")
            ),
            highlighted=found["chosen"].index(True),
            tables=(
                *_contribution_tables(report, unit, group),
                _folds_table(comparison),
            ),
        )
    ]


def _contribution_tables(report: dict[str, Any], unit: float, group: str) -> list[TablePart]:
    """Return what each component that was kept contributes, and each of several groups."""
    words = {
        "component": (
            "By how much the loss grows if the columns of a component are shuffled among the rows, in "
            f"percent of the loss without {group}: how much the model leans on them, not what they gain. "
            "Components that carry the same information each look less important than they are."
        ),
        "group": (
            "By how much the loss grows if the levels of a group are shuffled among the rows, in percent of "
            f"the loss without {group}. Groups that say the same each look less important than they are."
        ),
    }
    tables = []
    for kind, text in words.items():
        found = report[f"{kind}s"]
        columns = zip(found[kind], found["contribution"], found["standard_error"], strict=True)
        rows = [(name, share_text(value, unit), share_text(error, unit)) for name, value, error in columns]
        if rows:
            tables.append(
                TablePart(
                    title=f"What each {kind} contributes",
                    columns=[kind, "contribution", "standard error"],
                    rows=rows,
                    text=text,
                    explained=METHOD_TEXTS,
                    unfolded=True,
                )
            )
    return tables


def _folds_table(comparison: Comparison) -> TablePart:
    """Return what was chosen in each fold, in words."""
    splits = zip(comparison.plan.splits, fold_names(comparison), strict=True)
    fold_name = {(split.repeat, split.fold): name for split, name in splits}
    return TablePart(
        title="Show the choice in each fold",
        columns=["fold", "model", "choice"],
        rows=[
            (fold_name[item.repeat, item.fold], item.model, item.choice)
            for item in comparison.fold_scores
            if item.choice is not None
        ],
        text=(
            "Inside the training rows of each fold, the model itself judged whether the column helps and "
            "which kind of encoding helps most. The gains it names are of its own loss (squared errors, in "
            "which single rows are limited, or the log loss) and of the best of several candidates; they are "
            "not to be compared with the improvements measured on the test rows. A choice that differs "
            "between folds was a close one."
        ),
    )


def glossary_part(comparison: Comparison) -> TablePart:
    """Return one line about each method that occurs, and about each component if one of them chooses."""
    methods = [item.method for item in comparison.summaries]
    components = COMPONENTS if any(chooses(method) for method in methods) else ()
    return TablePart(
        title="The methods in one line each",
        columns=["method", "what a level becomes"],
        rows=[(name, METHOD_TEXTS[name]) for name in dict.fromkeys((*methods, *components))],
    )
