"""The charts of the report of a comparison, each with the text that explains it."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, Any

from sufrep._charts import (
    MAX_LEVELS,
    ZOOM_HINT,
    axis_limits,
    interval_dots,
    labelled_scatter,
    level_map,
    paired_dots,
    size_bars,
    spectrum_bars,
)
from sufrep._compare._levels import level_plane, means_spectrum, size_groups, target_means
from sufrep._compare._results import described, fold_improvements
from sufrep._compare._run import CODINGS
from sufrep._names import METHOD_TEXTS
from sufrep._report import ChartPart, SearchBox, TablePart
from sufrep._statistics import p_value_text
from sufrep.encoders import METHODS, PermutationEncoder, SufficientEncoder
from sufrep.errors import ComparisonError, InvalidParameterError, check_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    "text": "what it is",
}


def comparison_chart(comparison: Comparison, name: str) -> Any:
    """Return a chart of the report by its name: a key of `CHARTS`."""
    check_name("chart", name, CHARTS)
    done = [item for item in comparison.summaries if not item.failed]
    if not done:
        raise ComparisonError(str(comparison.summaries[0].failure))
    for part in CHARTS[name](comparison, done):
        return part.chart
    raise InvalidParameterError("chart", name, "a chart that these methods and data have")


def ranking_part(comparison: Comparison, done: Sequence[Summary]) -> ChartPart:
    best, scoring = comparison.best, comparison.plan.scoring
    return ChartPart(
        title="Ranking",
        text=(
            f"By how much the {scoring.name} is {'lower' if scoring.is_loss else 'higher'} than with "
            f"{_common_baseline(comparison)}, averaged over the folds; further right is better. Bold is the "
            f"recommended method: {in_words(best.method)}."
            f"{_intervals_text(comparison, done)}{_arrows_text(comparison, done)}"
        ),
        chart=ranking_chart(comparison),
        description=f"Ranking of {len(done)} methods and models by improvement; the recommended one is "
        f"{best.method} with {best.model}.",
    )


def ranking_chart(comparison: Comparison) -> Any:
    """Draw improvements with their intervals, best first."""
    done = [item for item in comparison.summaries if not item.failed]
    rows = _common_rows(comparison, done)
    return interval_dots(
        rows=rows,
        names=list(dict.fromkeys(item.method for item in done)),
        series=list(comparison.plan.models),
        value_title=_improvement_title(comparison),
        hover=_HOVER,
        percent=comparison.plan.scoring.is_loss,
        baseline=comparison.baseline,
        reference_title=comparison.baseline,
        highlighted=comparison.best.method,
        highlighted_series=comparison.best.model,
        limits=_ranking_limits(rows),
    )


def _ranking_limits(rows: Sequence[dict[str, Any]]) -> tuple[float, float]:
    ends = [[row[end] for end in ("low", "high") if row[end] is not None] for row in rows]
    # The best may be the baseline, which has no interval.
    shown = next(filter(None, ends), [])
    return axis_limits([row["value"] for row in rows], shown, drawn=[*chain.from_iterable(ends)])


def _common_rows(comparison: Comparison, done: Sequence[Summary]) -> list[dict[str, Any]]:
    """Every method with every model on one scale: by how much it is better than one common baseline.

    The common baseline is the one with the model of the best. What a summary says about its own model's
    baseline, ends of intervals included, is only moved to this scale, on which scores can be compared.
    """
    is_loss = comparison.plan.scoring.is_loss
    of_baseline = {item.model: item.score for item in done if item.method == comparison.baseline}
    common = of_baseline.get(comparison.summaries[0].model, math.nan)

    def moved(item: Summary, value: float) -> float:
        own = of_baseline.get(item.model, math.nan)
        if own == common:
            return value
        return 1 - own * (1 - value) / common if is_loss and common else own - common + value

    return [
        {
            "name": item.method,
            "series": item.model,
            "value": moved(item, item.improvement),
            "low": number_or_none(moved(item, item.low)),
            "high": number_or_none(moved(item, item.high)),
            "score": item.score,
            "p": f"no test: {item.no_test}" if item.no_test else p_value_text(item.p_adjusted) or None,
            "columns": item.n_columns,
            "seconds": item.fit_seconds,
            "text": METHOD_TEXTS[item.method],
        }
        for item in done
        if math.isfinite(moved(item, item.improvement))
    ]


def _intervals_text(comparison: Comparison, done: Sequence[Summary]) -> str:
    if not any(math.isfinite(item.low) for item in done):
        reason = next((item.no_test for item in done if item.no_test), None)
        return f" No test and no intervals: {reason}." if reason else ""
    includes = "zero" if len(comparison.plan.models) == 1 else f"{comparison.baseline} with the same model"
    return (
        " Lines are 95\u00a0% intervals that account for training rows shared by folds. Where a line "
        f"includes {includes}, the difference may be chance. A line is for its method alone; p, in the "
        "table, also accounts for the number of methods compared, and decides where the two disagree."
    )


def _arrows_text(comparison: Comparison, done: Sequence[Summary]) -> str:
    rows = _common_rows(comparison, done)
    lowest = _ranking_limits(rows)[0]
    beyond = any(row["value"] < lowest for row in rows)
    return " Arrows are methods further to the left, with their value." if beyond else ""


def fold_parts(comparison: Comparison, done: Sequence[Summary]) -> list[ChartPart]:
    model = done[0].model
    found = fold_improvements(comparison.fold_scores, comparison.plan.scoring, comparison.baseline, model)
    shown = [item.method for item in done if item.model == model and item.method in found]
    shown = [method for method in shown if method != comparison.baseline][:_MAX_FOLD_METHODS]
    names = fold_names(comparison)
    rows: list[dict[str, Any]] = [
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
                "fold, they may be chance. Grey ticks are their means, as in the ranking. Point at a dot to "
                "follow its fold."
            ),
            chart=paired_dots(
                rows=rows,
                names=shown,
                value_title=_improvement_title(comparison),
                hover={"name": "method", "fold": "fold", "value": "improvement"},
                percent=comparison.plan.scoring.is_loss,
                reference_title=comparison.baseline,
                highlighted=comparison.best.method,
                limits=axis_limits([row["value"] for row in rows]),
            ),
            description=f"Improvement of {len(shown)} methods over {comparison.baseline} in each fold.",
            table=TablePart(
                "Show as a table",
                ("method", *(f"fold {name}" for name in names)),
                [
                    (method, *(improvement_text(comparison, value) for value in found[method].tolist()))
                    for method in shown
                ],
                explained=METHOD_TEXTS,
                highlighted=next(
                    (i for i, method in enumerate(shown) if (method, model) == comparison.best), None
                ),
            ),
        )
    ]


def map_parts(comparison: Comparison, done: Sequence[Summary]) -> list[ChartPart]:
    """Return the map of the recommended method, or of the best that has one and is quickly fitted."""
    data = comparison.plan.data
    means, means_title = target_means(data)
    best = comparison.best
    for item in sorted(done, key=lambda item: (item.method, item.model) != best):
        is_best = (item.method, item.model) == best
        if item.method not in MAPPABLE or (chooses(item.method) and not is_best):
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
    listed = "all" if len(largest) == len(labels) else f"the {len(largest):,} largest"
    limited = f" Only the {MAX_LEVELS:,} largest levels are drawn." if len(labels) > MAX_LEVELS else ""
    return ChartPart(
        title=f"Map of the levels of {data.group_name}",
        text=(
            f"Levels that are similar according to {method} are close to each other. It is no geographic "
            f"map: only distances between dots matter. Colour: {means_title}. "
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
            f"Show {listed} levels as a table",
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
                f"assigned at random. Directions above it: {n_above} of {len(spectrum.shares)}. About so "
                "many columns are enough to say how the covariates of the levels differ; the rest is noise."
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
        table=TablePart(
            "Levels by their number of rows",
            ("rows of a level", "levels", "rows", "share of all rows"),
            [
                (
                    group.sizes,
                    group.n_levels,
                    group.n_rows,
                    share_text(group.n_rows, len(comparison.plan.data.y)),
                )
                for group in size_groups(counts)
            ],
            unfolded=True,
        ),
    )


def time_part(comparison: Comparison, done: Sequence[Summary]) -> ChartPart:
    rows = [
        {**row, "x": max(row["seconds"], 1e-4), "y": row["value"]} for row in _common_rows(comparison, done)
    ]
    lowest = axis_limits([row["y"] for row in rows])[0]
    return ChartPart(
        title="Time against accuracy",
        text=(
            "Seconds to fit encoder and model in one fold (median), and by how much the result is better "
            f"than with {_common_baseline(comparison)}; further up and left is better."
            f"{_below_text(comparison, [row for row in rows if row['y'] < lowest])}"
        ),
        chart=labelled_scatter(
            rows=rows,
            series=list(comparison.plan.models),
            x_title="seconds to fit",
            y_title=_improvement_title(comparison),
            hover={
                "name": "method",
                "series": "model",
                "x": "seconds",
                "y": "improvement",
                "text": "what it is",
            },
            percent=comparison.plan.scoring.is_loss,
            lowest=lowest,
            highlighted=comparison.best,
        ),
        description="Improvement of each method against the time to fit it.",
    )


def _below_text(comparison: Comparison, rows: Sequence[dict[str, Any]]) -> str:
    """Name the methods below the axis, because a narrow chart may not have room for all of their labels."""
    several = len(comparison.plan.models) > 1
    named = []
    for row in rows:
        name = f"{row['name']} with {row['series']}" if several else row["name"]
        gain = comparison.plan.scoring.improvement_text(row["y"]).replace("-", "\u2212")
        named.append(f"{name} ({gain})")
    return f" Arrows are methods further down: {', '.join(named)}." if named else ""


# The charts of a report by name, each with the parts that it may consist of.
CHARTS: dict[str, Callable[[Comparison, Sequence[Summary]], Sequence[ChartPart]]] = {
    "ranking": lambda comparison, done: [ranking_part(comparison, done)],
    "folds": fold_parts,
    "map": map_parts,
    "spectrum": lambda comparison, _: spectrum_parts(comparison),
    "sizes": lambda comparison, _: [size_part(comparison)],
    "times": lambda comparison, done: [time_part(comparison, done)],
}


def _improvement_title(comparison: Comparison) -> str:
    # Short, because a phone is narrow; the text above the chart explains it.
    return f"improvement over {comparison.baseline}"


def _common_baseline(comparison: Comparison) -> str:
    """The baseline of charts that have all models on one scale."""
    several = len(comparison.plan.models) > 1
    baseline = in_words(comparison.baseline)
    return f"{baseline} and {comparison.summaries[0].model}" if several else baseline


# What tables say in the same words


def in_words(method: str) -> str:
    """Return the name of a method in charts and tables with the words of the verdict, if these differ."""
    words = described(method)
    return words if words.startswith(method) else f"{method} ({words})"


def fold_names(comparison: Comparison) -> list[str]:
    splits = comparison.plan.splits
    repeated = len({split.repeat for split in splits}) > 1
    return [f"{split.repeat + 1}.{split.fold + 1}" if repeated else str(split.fold + 1) for split in splits]


def chooses(method: str) -> bool:
    return method in METHODS and METHODS[method][0] is SufficientEncoder


def share_text(value: float, unit: float) -> str | None:
    # Adding zero makes a negative zero positive.
    return f"{round(100 * value / unit, 1) + 0.0:.1f}\u00a0%" if unit and math.isfinite(value) else None


def improvement_text(comparison: Comparison, value: float) -> str | None:
    return comparison.plan.scoring.improvement_text(value) if math.isfinite(value) else None


def number_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
