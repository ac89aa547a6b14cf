"""The report of a comparison: its parts in reading order, each chart with the text that explains it."""

from __future__ import annotations

import math
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sufrep._charts import (
    MAX_LEVELS,
    ZOOM_HINT,
    interval_dots,
    labelled_scatter,
    level_map,
    paired_dots,
    size_bars,
    spectrum_bars,
)
from sufrep._compare._levels import level_plane, means_spectrum, target_means
from sufrep._compare._results import fold_improvements
from sufrep._compare._run import CODINGS
from sufrep._compare._snippet import pipeline_code
from sufrep._report import ChartPart, CodePart, Page, SearchBox, TablePart, origin_text
from sufrep._statistics import p_value_text
from sufrep.encoders import METHODS, PermutationEncoder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from sufrep._arrays import Floats
    from sufrep._compare._comparison import Comparison
    from sufrep._compare._data import ComparisonData
    from sufrep._compare._levels import LevelPlane
    from sufrep._compare._results import Summary

# Methods that give similar levels similar vectors, so that a map of the levels makes sense.
MAPPABLE = frozenset(
    name for name, (kind, _) in METHODS.items() if name not in CODINGS and kind is not PermutationEncoder
)
_MAX_FOLD_METHODS = 10
_MAX_LISTED_LEVELS = 500
_HOVER = {
    "name": "method",
    "series": "model",
    "value": "improvement",
    "low": "from",
    "high": "to",
    "score": "score",
    "p": "p, adjusted",
    "columns": "columns added",
}


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
        parts += [*fold_parts(comparison, done), *choice_parts(comparison)]
        parts += [*map_parts(comparison, done), *spectrum_parts(comparison)]
    parts.append(size_part(comparison))
    if done:
        parts.append(time_part(comparison, done))
    return Page(
        title=f"{data.group_name}: which encoding predicts {data.target_name} best?",
        subtitle="Encodings of one column, compared by cross-validation.",
        verdict=comparison.verdict,
        origin=origin_text(source, day),
        facts=_facts(comparison),
        parts=tuple(parts),
        notes=comparison.notes,
        footer=f"Made by sufrep {version('sufrep')} with random_state={comparison.plan.seed}.",
    )


def ranking_chart(comparison: Comparison) -> Any:
    """Draw improvements with their intervals, best first."""
    done = [item for item in comparison.summaries if not item.failed]
    rows = [
        {
            "name": item.method,
            "series": item.model,
            "value": number_or_none(item.improvement),
            "low": number_or_none(item.low),
            "high": number_or_none(item.high),
            "score": item.score,
            "p": f"no test: {item.no_test}" if item.no_test else p_value_text(item.p_adjusted) or None,
            "columns": item.n_columns,
        }
        for item in done
        if math.isfinite(item.improvement)
    ]
    return interval_dots(
        rows=rows,
        names=list(dict.fromkeys(item.method for item in done)),
        series=list(comparison.plan.models),
        value_title=_improvement_title(comparison),
        hover=_HOVER,
        percent=comparison.plan.scoring.is_loss,
        baseline=comparison.baseline,
        reference_title=comparison.baseline,
    )


# Facts, code and table


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
        ("task", data.task),
        ("scoring", plan.scoring.name),
        ("folds", f"{comparison.n_folds}{repeated}"),
        ("models", ", ".join(plan.models)),
    )


def code_part(comparison: Comparison, loading: str | None) -> CodePart:
    return CodePart(
        title="Use the best pipeline",
        text="A scikit-learn pipeline. In Python, comparison.fit_best() returns the same pipeline, fitted.",
        code=pipeline_code(comparison.pipeline(*comparison.best), loading),
    )


def results_part(comparison: Comparison) -> TablePart:
    summaries, scoring = comparison.summaries, comparison.plan.scoring
    columns = ["method", "model", scoring.name, "improvement", "95 % from", "to", "p", "p, corrected"]
    columns += ["p, adjusted", "seconds to fit", "seconds to predict", "columns added"]
    # Columns of reasons are shown only if there are any.
    reasons = {
        title: [getattr(item, name) or "" for item in summaries]
        for name, title in (("no_test", "no test"), ("failure", "failure"))
        if any(getattr(item, name) for item in summaries)
    }
    rows = [
        (
            item.method,
            item.model,
            number_or_none(item.score),
            *(improvement_text(comparison, value) for value in (item.improvement, item.low, item.high)),
            *(p_value_text(p) or None for p in (item.p_plain, item.p_corrected, item.p_adjusted)),
            number_or_none(item.fit_seconds),
            number_or_none(item.predict_seconds),
            item.n_columns if not item.failed else None,
            *(texts[i] for texts in reasons.values()),
        )
        for i, item in enumerate(summaries)
    ]
    return TablePart(
        title="All results",
        columns=[*columns, *reasons],
        rows=rows,
        text=(
            "p: paired t-test over the folds. Corrected: accounts for training rows shared by folds (Nadeau "
            "and Bengio). Adjusted: corrected for the number of methods as well (Holm). There is no test "
            "with fewer than three folds, or if the gains are equal in all folds. Seconds: medians over the "
            "folds, encoder and model together."
        ),
        highlighted=0 if not summaries[0].failed else None,
    )


# Charts


def ranking_part(comparison: Comparison, done: Sequence[Summary]) -> ChartPart:
    best, scoring = done[0], comparison.plan.scoring
    return ChartPart(
        title="Ranking",
        text=(
            f"By how much the {scoring.name} is {'lower' if scoring.is_loss else 'higher'} than with "
            f"{comparison.baseline} and the same model, averaged over the folds; further right is better."
            f"{_intervals_text(done)}"
        ),
        chart=ranking_chart(comparison),
        description=f"Ranking of {len(done)} methods and models by improvement; the best is {best.method} "
        f"with {best.model}.",
    )


def _intervals_text(done: Sequence[Summary]) -> str:
    if not any(math.isfinite(item.low) for item in done):
        reason = next((item.no_test for item in done if item.no_test), None)
        return f" No test and no intervals: {reason}." if reason else ""
    return (
        " Lines are 95 % intervals that account for training rows shared by folds. Where a line includes "
        "zero, the difference may be chance."
    )


def fold_parts(comparison: Comparison, done: Sequence[Summary]) -> list[ChartPart]:
    model = done[0].model
    found = fold_improvements(comparison.fold_scores, comparison.plan.scoring, comparison.baseline, model)
    shown = [item.method for item in done if item.model == model and item.method in found]
    shown = [method for method in shown if method != comparison.baseline][:_MAX_FOLD_METHODS]
    names = _fold_names(comparison)
    rows = [
        {"name": method, "fold": name, "value": float(value)}
        for method in shown
        for name, value in zip(names, found[method], strict=True)
    ]
    if not rows:
        return []
    return [
        ChartPart(
            title="Fold by fold",
            text=(
                f"The same differences in each fold, with {model}. If they change their sign from fold to "
                "fold, they may be chance. Point at a dot to follow its fold."
            ),
            chart=paired_dots(
                rows=rows,
                names=shown,
                value_title=_improvement_title(comparison),
                hover={"name": "method", "fold": "fold", "value": "improvement"},
                percent=comparison.plan.scoring.is_loss,
                reference_title=comparison.baseline,
            ),
            description=f"Improvement of {len(shown)} methods over {comparison.baseline} in each fold.",
            table=TablePart(
                "Show as a table",
                ("method", *(f"fold {name}" for name in names)),
                [
                    (method, *(improvement_text(comparison, value) for value in found[method].tolist()))
                    for method in shown
                ],
            ),
        )
    ]


def choice_parts(comparison: Comparison) -> list[TablePart]:
    """Return what encoders that choose have chosen, in words."""
    splits = zip(comparison.plan.splits, _fold_names(comparison), strict=True)
    fold_name = {(split.repeat, split.fold): name for split, name in splits}
    rows = [
        (item.method, item.model, fold_name[item.repeat, item.fold], item.choice)
        for item in comparison.fold_scores
        if item.choice is not None
    ]
    if not rows:
        return []
    return [
        TablePart(
            title="What was chosen",
            columns=["method", "model", "fold", "choice"],
            rows=rows,
            text=(
                "Inside the training rows of each fold, the model itself judged whether the column helps and "
                "which kind of encoding helps most. A choice that differs between folds was a close one."
            ),
        )
    ]


def map_parts(comparison: Comparison, done: Sequence[Summary]) -> list[ChartPart]:
    """Return the map of the best method that has one."""
    data = comparison.plan.data
    means, means_title = target_means(data)
    for item in done:
        if item.method not in MAPPABLE:
            continue
        encoder = comparison.fitted_encoder(item.method, item.model)
        representation = list(encoder.representations_.values())[data.group_position]
        plane = level_plane(data, representation, means)
        if plane is not None:
            return [_plane_part(data, item.method, plane, means, means_title)]
    return []


def _plane_part(
    data: ComparisonData, method: str, plane: LevelPlane, means: Floats, means_title: str
) -> ChartPart:
    labels, counts = data.level_names(), data.counts
    largest = (-counts).argsort(kind="stable")[:_MAX_LISTED_LEVELS]
    limited = f" Only the {MAX_LEVELS:,} largest levels are drawn." if len(labels) > MAX_LEVELS else ""
    return ChartPart(
        title=f"Map of the levels of {data.group_name}",
        text=(
            f"Levels that are similar according to {method} are close to each other. Colour: {means_title}. "
            f"Size: number of rows.{limited} {ZOOM_HINT}"
        ),
        chart=level_map(
            labels=labels,
            points=plane.points,
            sizes=counts.astype(float),
            values=means,
            titles=plane.titles,
            value_title=means_title,
        ),
        description=f"{len(labels)} levels in the plane of their vectors by {method}.",
        table=TablePart(
            f"Show the {len(largest):,} largest levels as a table",
            ("level", "rows", means_title),
            [(labels[i], int(counts[i]), float(means[i])) for i in largest.tolist()],
        ),
        search=SearchBox("search", "Find a level", "label"),
    )


def spectrum_parts(comparison: Comparison) -> list[ChartPart]:
    spectrum = means_spectrum(comparison.plan.data, comparison.plan.seed)
    if spectrum is None or len(spectrum.shares) < 2:
        return []
    n_above = int((spectrum.shares > spectrum.noise).sum())
    return [
        ChartPart(
            title="In how many directions the levels differ",
            text=(
                "Spectrum of the matrix of covariate means: each bar is a direction, and its height is the "
                "share of the variance between levels. The line shows what the same rows give if levels are "
                f"assigned at random; {n_above} of {len(spectrum.shares)} directions are above it."
            ),
            chart=spectrum_bars(spectrum.shares, noise=spectrum.noise),
            description=f"Spectrum of the means matrix; directions above noise: {n_above}.",
        )
    ]


def size_part(comparison: Comparison) -> ChartPart:
    counts = comparison.plan.data.counts
    small = int((counts < comparison.n_folds).sum())
    return ChartPart(
        title="How large the levels are",
        text=(
            f"{len(counts):,} levels with {counts.min():,} to {counts.max():,} rows; {small:,} have fewer "
            "rows than there are folds. The smaller a level, the more its vector has to borrow from others."
        ),
        chart=size_bars(counts.astype(float)),
        description="Histogram of the number of rows of each level.",
    )


def time_part(comparison: Comparison, done: Sequence[Summary]) -> ChartPart:
    rows = [
        {
            "name": item.method,
            "series": item.model,
            "x": max(item.fit_seconds, 1e-4),
            "y": item.improvement,
            "columns": item.n_columns,
        }
        for item in done
        if math.isfinite(item.improvement)
    ]
    return ChartPart(
        title="Time against accuracy",
        text="Seconds to fit encoder and model in one fold (median), and the improvement; further up and "
        "left is better.",
        chart=labelled_scatter(
            rows=rows,
            series=list(comparison.plan.models),
            x_title="seconds to fit",
            y_title=_improvement_title(comparison),
            hover={"name": "method", "series": "model", "x": "seconds", "y": "improvement"},
            percent=comparison.plan.scoring.is_loss,
        ),
        description="Improvement of each method against the time to fit it.",
    )


def _improvement_title(comparison: Comparison) -> str:
    # Short, because a phone is narrow; the text above the chart explains it.
    return f"improvement over {comparison.baseline}"


def _fold_names(comparison: Comparison) -> list[str]:
    splits = comparison.plan.splits
    repeated = len({split.repeat for split in splits}) > 1
    return [f"{split.repeat + 1}.{split.fold + 1}" if repeated else str(split.fold + 1) for split in splits]


def improvement_text(comparison: Comparison, value: float) -> str | None:
    return comparison.plan.scoring.improvement_text(value) if math.isfinite(value) else None


def number_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
