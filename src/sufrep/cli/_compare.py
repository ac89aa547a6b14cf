"""``sufrep compare`` and ``sufrep demo``: which encoding is best for a table, and by how much."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sufrep._names import (
    COMPARED_METHODS,
    COMPARISON_MODELS,
    EVERYDAY_SCORERS,
    MAX_SEED,
    METHOD_LISTS,
    SCORERS,
)
from sufrep.cli import EXIT_FAILED
from sufrep.cli._arguments import (
    ColumnRoles,
    DropOption,
    ForceOption,
    JobsOption,
    Output,
    Printer,
    Spelling,
    TableArgument,
    TextOption,
    check_outputs,
    known_names,
    message,
    output_option,
    print_json,
    report_notes,
    report_warnings,
    usage_error,
)
from sufrep.cli._encode import keep_reading
from sufrep.cli._progress import number_in_table, running_ranking, waiting
from sufrep.errors import import_package

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._compare import Comparison
    from sufrep._files import TableSource


class Task(StrEnum):
    """The kind of the target."""

    auto = "auto"
    regression = "regression"
    binary = "binary"
    multiclass = "multiclass"


# The parameters of `sufrep.compare`.
_SPELLING = Spelling(
    {
        "budget": "--budget",
        "cv": "--folds",
        "folds='grouped'": "--new-levels",
        "group": "--group",
        "max_rows": "--sample",
        "max_rows=None": "--all-rows",
        "methods": "--methods",
        "models": "--models",
        "n_jobs": "--jobs",
        "n_repeats": "--repeats",
        "random_state": "--seed",
        "scoring": "--scoring",
        "task": "--task",
        "time": "--time",
    }
)
# What the demonstration's report says where the rows come from.
_SIMULATED = "simulated data"
# Rows of the printed table.
_SHOWN = 12

MethodsOption = Annotated[
    list[str],
    typer.Option(
        "--methods",
        callback=known_names((*COMPARED_METHODS, *METHOD_LISTS)),
        help="usual, quick (the fast ones), all, or encoders by name, target_encoder (scikit-learn's), drop; "
        "several may follow.",
    ),
]
ModelsOption = Annotated[
    list[str],
    typer.Option(
        "--models",
        callback=known_names(COMPARISON_MODELS),
        help=f"{', '.join(COMPARISON_MODELS)}; several may follow.",
    ),
]
QuickOption = Annotated[bool, typer.Option("--quick", help="Compare the fast methods only.")]
FoldsOption = Annotated[int, typer.Option("--folds", min=2, help="Folds of the cross-validation.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, max=MAX_SEED, help="Random seed.")]
HtmlOption = Annotated[
    Path | None,
    output_option("--html", "File for the report, one HTML page that works offline.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print all results as JSON, and nothing else.")]


@_SPELLING.errors()
def compare(
    table: TableArgument,
    target: Annotated[str, typer.Option("--target", help="Column to predict.", show_default=False)],
    group: Annotated[
        list[str],
        typer.Option(
            "--group",
            help="The group column; several may follow, and store+brand is one group of all combinations. It "
            "is read as text: 01234 stays 01234.",
            show_default=False,
        ),
    ],
    html: HtmlOption = None,
    save: Annotated[
        Path | None,
        output_option("--save", "File for the best encoder, for `sufrep apply`.", show_default=False),
    ] = None,
    methods: MethodsOption = ["usual"],
    models: ModelsOption = ["boosting"],
    quick: QuickOption = False,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            help="Start nothing more after this time, such as 90s, 2m or 1h, and report what is done.",
        ),
    ] = None,
    folds: FoldsOption = 5,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Repetitions of the cross-validation.")
    ] = 1,
    new_levels: Annotated[
        bool, typer.Option("--new-levels", help="Test on levels that are not in the training folds.")
    ] = False,
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            help="Column that says when each row happened; test on later rows only. It is a feature too.",
        ),
    ] = None,
    task: Annotated[
        Task, typer.Option("--task", help="Kind of the target; by default it is detected.")
    ] = Task.auto,
    scoring: Annotated[
        str | None,
        typer.Option(
            "--scoring",
            callback=known_names((*EVERYDAY_SCORERS, *SCORERS)),
            help="rmse, mae, mse, auc, accuracy, log_loss, or a scorer of scikit-learn, such as r2.",
        ),
    ] = None,
    covariates: Annotated[
        list[str],
        typer.Option(
            "--covariates", help="Columns to use next to the group; by default all; several may follow."
        ),
    ] = [],
    drop: DropOption = [],
    text: TextOption = [],
    sample: Annotated[
        int,
        typer.Option(
            "--sample", min=10, help="Compare on the rows of some levels if there are more rows than this."
        ),
    ] = 100_000,
    all_rows: Annotated[bool, typer.Option("--all-rows", help="Compare on all rows.")] = False,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Find the encoding of a column that predicts the target best.

    Encoders, and dropping the column, are cross-validated on the table, the fast ones first. The verdict
    states which to use, by how much it is better, and whether the difference is significant. The report has
    charts, a map of the levels, and code to copy. Ctrl-C ends the comparison and reports what is done.

    Example: sufrep compare houses.csv --target price --group zipcode --html report.html
    """
    roles = ColumnRoles.from_options(group, target, covariates, drop, time)
    if time is not None and new_levels:
        raise usage_error("it cannot be combined with --new-levels.", "--time")
    from sufrep._atomic import is_standard_output
    from sufrep._files import table_files

    _check_files(table_files(table), html, save, force=force)
    if as_json and any(path is not None and is_standard_output(path) for path in (html, save)):
        raise usage_error("the standard output is also the file of another option.", "--json")
    check_renderer(html)

    with waiting("reading the table"):
        source, roles = roles.open(table, text)
        report_notes(source)
        rows = source.read()
    if roles.covariates:
        rows = rows.select(*roles.features(), target)
    found = _run(
        rows.drop(target),
        rows[target],
        group=roles.group,
        methods="quick" if quick else methods[0] if len(methods) == 1 else methods,
        models=tuple(models),
        cv=folds,
        n_repeats=repeats,
        folds="grouped" if new_levels else "spread",
        time=time,
        task=task.value,
        scoring=scoring,
        n_jobs=jobs,
        max_rows=None if all_rows else sample,
        budget=budget,
        random_state=seed,
    )
    if roles.drop:
        left_out = f"Left out by --drop: {', '.join(map(repr, roles.drop))}."
        found = replace(found, notes=(*found.notes, left_out))
    _finish(found, html, save, _loading_code(source, roles), source, as_json=as_json)


def demo(
    html: Annotated[Path, output_option("--html", "File for the report.")] = Path("sufrep_demo.html"),
    quick: QuickOption = False,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
    force: ForceOption = False,
) -> None:
    """Compare all encodings on simulated house sales, and write the report.

    As in the paper, zip codes act on the price through hidden states, the types of neighbourhoods, which also
    shape the other columns. In Python, sufrep.datasets.load_houses() gives the same table.

    Example: sufrep demo --html demo.html
    """
    from sufrep.datasets import load_houses

    _check_files([], html, None, force=force)
    check_renderer(html)
    pl = import_package("polars", "The demonstration", "cli")
    houses = load_houses(seed=seed)
    X, y = pl.DataFrame(houses.columns()), pl.Series(houses.target, houses.y)
    simulated = f"The data are simulated: {X.height:,} house sales in {houses.n_levels} zip codes."
    message(simulated)
    methods = "quick" if quick else "usual"
    found = _run(X, y, group=houses.group, methods=methods, n_jobs=jobs, random_state=seed)
    loading = (
        f"import polars as pl\nfrom sufrep.datasets import load_houses\n"
        f"houses = load_houses(seed={seed})  # simulated\n"
        f"X, y = pl.DataFrame(houses.columns()), pl.Series({houses.target!r}, houses.y)"
    )
    found = replace(found, notes=(simulated, *found.notes))
    _finish(found, html, None, loading, None, as_json=False)


def _check_files(inputs: Sequence[Path], html: Path | None, save: Path | None, *, force: bool) -> None:
    """Raise for files that cannot be written, before the long computation."""
    outputs = [Output("--html", html, "report"), Output("--save", save, "encoder")]
    check_outputs(inputs, outputs, force=force)


def check_renderer(html: Path | None) -> None:
    """Raise if a package for the report is missing, before the long computation."""
    from sufrep._charts import load_altair, require_renderer

    if html is not None:
        load_altair()
        require_renderer("The report")


def _run(X: Any, y: Any, **parameters: Any) -> Comparison:
    """Compare with the results so far on the screen; Ctrl-C ends it with what is done."""
    from sufrep import compare

    with report_warnings(_SPELLING), running_ranking() as watcher:
        return compare(X, y, progress=watcher, **parameters)


def _loading_code(source: TableSource, roles: ColumnRoles) -> str:
    """Code for the report that defines X and y as they were compared, but with all rows, not a sample."""
    X = f"table.select({roles.features()!r})" if roles.covariates else f"table.drop({roles.target!r})"
    return f"{source.code}\nX = {X}\ny = table[{roles.target!r}]"


def _finish(
    found: Comparison,
    html: Path | None,
    save: Path | None,
    loading: str | None,
    source: TableSource | None,
    *,
    as_json: bool,
) -> None:
    """Print the results, and write the report and the encoder."""
    from sufrep import save as save_steps

    if as_json:
        print_json(found.to_dict(), indent=1)
    else:
        _print(found, Printer([html, save]))
    with report_warnings():
        if html is not None:
            with waiting("fitting the best encoding on all rows, and drawing the report"):
                shown = _SIMULATED if source is None else source.short_name
                found.to_html(html, loading=loading, source=shown)
            message(f"report: {html}")
        if save is not None:
            with waiting("fitting the encoder on all rows"):
                steps = found.fit_best()[:-1]
                if source is not None:
                    keep_reading(steps[0], source)
                save_steps(steps, save)
            message(f"encoder: {save}")
    if found.summaries[0].failed:
        raise typer.Exit(EXIT_FAILED)


def _print(found: Comparison, printer: Printer) -> None:
    scoring = found.plan.scoring
    titles = ("method", "model", scoring.name, f"over {found.baseline}", "95 % interval", "adjusted p")
    done = [item for item in found.summaries if not item.failed]
    rows = [
        (item.method, item.model, number_in_table(item.score), *_improvement(found, item), *_size(item))
        for item in done[:_SHOWN]
    ]
    printer.table((*titles, "columns", "seconds"), rows, n_left=2)
    if len(done) > _SHOWN:
        printer.line(f"… and {len(done) - _SHOWN} more; see the report or --json for all.", style="dim")
    for reason in dict.fromkeys(item.no_test for item in done[:_SHOWN] if item.no_test):
        printer.line(f"No test: {reason}.", style="dim")
    for item in found.summaries[len(done) :]:
        printer.line(f"{item.method} with {item.model} failed: {item.failure}", style="red")
    printer.line()
    first, *rest = found.verdict
    printer.line(first, style="bold")
    for text in (*rest, *(f"Note: {note}" for note in found.notes)):
        printer.line(_SPELLING.text(text))


def _size(item: Any) -> tuple[str, str]:
    return str(item.n_columns), f"{item.fit_seconds:.2f}"


def _improvement(found: Comparison, item: Any) -> tuple[str, str, str]:
    from sufrep._statistics import p_value_text

    text = found.plan.scoring.improvement_text
    better = "" if isnan(item.improvement) else text(item.improvement)
    interval = "" if isnan(item.low) else f"{text(item.low)} to {text(item.high)}"
    return better, interval, "no test" if item.no_test else p_value_text(item.p_adjusted)
