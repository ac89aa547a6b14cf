"""The charts of a report, each with the words that explain it."""

from __future__ import annotations

import math
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
from sufrep._compare._levels import MAPPABLE, level_plane, means_spectrum, target_means
from sufrep._compare._summary import fold_improvements
from sufrep._report import ChartPart, SearchBox, TablePart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._compare._comparison import Comparison
    from sufrep._compare._summary import Summary

_MOST_FOLD_METHODS = 10
_MOST_LISTED = 500
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


def ranking_chart(comparison: Comparison) -> Any:
    """Improvements with their intervals, the best first."""
    done = [item for item in comparison.summaries if not item.failed]
    rows = [
        {
            "name": item.method,
            "series": item.model,
            "value": number_or_none(item.improvement),
            "low": number_or_none(item.low),
            "high": number_or_none(item.high),
            "score": item.score,
            "p": number_or_none(item.p_adjusted),
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


def ranking_part(comparison: Comparison, done: Sequence[Summary]) -> ChartPart:
    best = done[0]
    return ChartPart(
        title="Ranking",
        text=(
            f"How far the {comparison.plan.scoring.name} lies "
            f"{'below' if comparison.plan.scoring.is_loss else 'above'} that of {comparison.baseline} with "
            "the same model, mean over the folds; to the right is better. Lines are 95 % intervals that "
            "allow for training rows which folds share: where they hold zero, it may be chance."
        ),
        chart=ranking_chart(comparison),
        description=f"Ranking of {len(done)} methods and models by improvement; the best is {best.method} "
        f"with {best.model}.",
    )


def fold_parts(comparison: Comparison, done: Sequence[Summary]) -> list[ChartPart]:
    model = done[0].model
    found = fold_improvements(comparison.outcomes, comparison.plan.scoring, comparison.baseline, model)
    shown = [item.method for item in done if item.model == model and item.method in found]
    shown = [method for method in shown if method != comparison.baseline][:_MOST_FOLD_METHODS]
    splits = comparison.plan.splits
    several = len({split.repeat for split in splits}) > 1
    names = [f"{split.repeat + 1}.{split.fold + 1}" if several else str(split.fold + 1) for split in splits]
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
                f"The same differences in each fold, with {model}: a method that is ahead in every fold is "
                "ahead by more than luck of the draw. Point at a dot to follow its fold."
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


def map_parts(comparison: Comparison, done: Sequence[Summary]) -> list[ChartPart]:
    problem = comparison.plan.problem
    means, means_title = target_means(problem)
    for item in done:
        if item.method not in MAPPABLE:
            continue
        encoder = comparison.fitted_encoder(item.method, item.model)
        representation = list(encoder.representations_.values())[problem.place]
        plane = level_plane(problem, representation, means)
        if plane is None:
            continue
        labels, counts = problem.level_names(), problem.counts
        largest = (-counts).argsort(kind="stable")[:_MOST_LISTED]
        fewer = f" The {MAX_LEVELS:,} largest are drawn." if len(labels) > MAX_LEVELS else ""
        text = (
            f"Levels that {item.method} takes for alike lie near each other; colour is the {means_title}, "
            f"size the number of rows.{fewer} {ZOOM_HINT}"
        )
        return [
            ChartPart(
                title=f"Map of the levels of {problem.group_name}",
                text=text,
                chart=level_map(
                    labels=labels,
                    points=plane.points,
                    sizes=counts.astype(float),
                    values=means,
                    titles=plane.titles,
                    value_title=means_title,
                ),
                description=f"{len(labels)} levels in the plane of their vectors by {item.method}.",
                table=TablePart(
                    f"Show the {len(largest):,} largest levels as a table",
                    ("level", "rows", means_title),
                    [(labels[i], int(counts[i]), float(means[i])) for i in largest.tolist()],
                ),
                search=SearchBox("search", "Find a level", "label"),
            )
        ]
    return []


def spectrum_parts(comparison: Comparison) -> list[ChartPart]:
    spectrum = means_spectrum(comparison.plan.problem, comparison.plan.seed)
    if spectrum is None or len(spectrum.shares) < 2:
        return []
    n_above = int((spectrum.shares > spectrum.noise).sum())
    return [
        ChartPart(
            title="In how many ways the levels differ",
            text=(
                "Spectrum of the table of covariate means: each bar is a direction, its height the share of "
                "the variance between levels. The line is what the same rows give if levels are dealt at "
                "random; "
                f"{n_above} of {len(spectrum.shares)} directions lie above it."
            ),
            chart=spectrum_bars(spectrum.shares, noise=spectrum.noise),
            description=f"Spectrum of the means matrix; directions above noise: {n_above}.",
        )
    ]


def size_part(comparison: Comparison) -> ChartPart:
    counts = comparison.plan.problem.counts
    small = int((counts < comparison.n_folds).sum())
    return ChartPart(
        title="How large the levels are",
        text=(
            f"{len(counts):,} levels of {counts.min():,} to {counts.max():,} rows; {small:,} have fewer rows "
            "than there are folds. The smaller a level, the more its vector has to borrow from others."
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
        text="Seconds to fit encoder and model in one fold (median), and what they bring; up and left is "
        "better.",
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
    # Short, because a phone is narrow; the text above the chart says what it means.
    return f"improvement over {comparison.baseline}"


def improvement_text(comparison: Comparison, value: float) -> str | None:
    return comparison.plan.scoring.improvement_text(value) if math.isfinite(value) else None


def number_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
