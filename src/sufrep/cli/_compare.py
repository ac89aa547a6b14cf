"""``sufrep compare`` and ``sufrep demo``: which representation is best for a table, and by how much."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sufrep.cli import FAILED
from sufrep.cli._encode import DropOption, Roles, TableArgument, TextOption
from sufrep.cli._loading import loading_code
from sufrep.cli._messages import tell, tell_notes, warnings_told, wrong_usage
from sufrep.cli._progress import progress, waiting

if TYPE_CHECKING:
    from sufrep._compare import Comparison
    from sufrep.cli._progress import Advance


class Task(StrEnum):
    """What kind of target there is."""

    auto = "auto"
    regression = "regression"
    binary = "binary"
    multiclass = "multiclass"


# Wide enough for the table where nobody says how wide the paper is.
_WIDTH = 120
_SHOWN = 12
# Of tables that also hold text or dates, which an encoder alone leaves as they are.
_SAVED = " (describes levels by the columns of numbers; text and dates are only in the code of the report)"

MethodsOption = Annotated[
    list[str],
    typer.Option(
        "--methods",
        help="Encoders by name, target_encoder (scikit-learn's), drop; all if not given. Several in a row.",
        show_default=False,
    ),
]
ModelsOption = Annotated[
    list[str], typer.Option("--models", help="forest, xgboost, boosting, linear; several in a row.")
]
FoldsOption = Annotated[int, typer.Option("--folds", min=2, help="Folds of the cross-validation.")]
JobsOption = Annotated[int, typer.Option("--jobs", help="Splits side by side; -1 is one for each core.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Of folds, draws, encoders and models.")]
HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", help="File of the report, one page that needs no network.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print all results as JSON, and nothing else.")]


def compare(
    table: TableArgument,
    target: Annotated[str, typer.Option("--target", help="Column to be predicted.", show_default=False)],
    group: Annotated[
        list[str],
        typer.Option(
            "--group",
            help="The column of many levels; several in a row. It is read as text: 01234 stays 01234.",
            show_default=False,
        ),
    ],
    html: HtmlOption = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", help="File of the winning encoder, for `sufrep apply`.", show_default=False),
    ] = None,
    methods: MethodsOption = [],
    models: ModelsOption = ["forest", "xgboost"],
    folds: FoldsOption = 4,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="How often rows are dealt anew.")] = 1,
    new_levels: Annotated[
        bool, typer.Option("--new-levels", help="Test on levels that were never seen in training.")
    ] = False,
    task: Annotated[
        Task, typer.Option("--task", help="Kind of the target, if the guess is wrong.")
    ] = Task.auto,
    scoring: Annotated[
        str | None, typer.Option("--scoring", help="A measure of scikit-learn's, such as r2 or roc_auc.")
    ] = None,
    covariates: Annotated[
        list[str],
        typer.Option("--covariates", help="Columns beside the group; all if not given. Several in a row."),
    ] = [],
    drop: DropOption = [],
    text: TextOption = [],
    sample: Annotated[
        int | None, typer.Option("--sample", min=10, help="Compare on so many rows, drawn at random.")
    ] = None,
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Find the representation of a column that predicts the target best.

    All encoders, dropping the column and scikit-learn's TargetEncoder are cross-validated on the rows of the
    table. The verdict says which is best, by how much, and whether that may be chance; the report has
    pictures, a map of the levels, and code to copy.

    Example: sufrep compare houses.csv --target price --group zipcode --html report.html
    """
    roles = Roles(tuple(dict.fromkeys(group)), target, tuple(covariates), tuple(drop))
    roles.check()
    _check_names(methods, models, scoring)
    _check_places(html, save)
    from sufrep._files import open_table

    with waiting("reading the table"):
        source = open_table(table, text=(*roles.group, *text), drop=drop)
        source.require(roles.all())
        rows = source.read(sample, seed)
    if roles.covariates:
        rows = rows.select(*roles.group, *roles.covariates, target)
    found = _compared(
        rows.drop(target),
        rows[target],
        group=list(roles.group) if len(roles.group) > 1 else roles.group[0],
        methods=methods or None,
        models=tuple(models),
        cv=folds,
        n_repeats=repeats,
        folds="grouped" if new_levels else "stratified",
        task=task.value,
        scoring=scoring,
        n_jobs=jobs,
        random_state=seed,
    )
    tell_notes(source)
    loading = loading_code(source, roles, text) if html is not None else None
    _finish(found, html, save, loading, as_json=as_json)


def demo(
    html: Annotated[Path, typer.Option("--html", help="File of the report.")] = Path("sufrep_demo.html"),
    jobs: JobsOption = -1,
    seed: SeedOption = 0,
) -> None:
    """Compare all representations on simulated data, and write the report.

    The data are the paper's: levels act on the target through hidden states, which show in the covariates.

    Example: sufrep demo --html demo.html
    """
    import polars as pl

    from sufrep import simulate

    _check_places(html, None)
    setup = {"n": 3_000, "n_latent": 5, "levels_per_latent": 20, "seed": seed}
    drawn = simulate("latent_linear", **setup)
    X = pl.DataFrame(drawn.columns())
    tell(f"{X.height:,} simulated rows, {X['group'].n_unique()} levels that act through 5 hidden states")
    y = pl.Series("y", drawn.y)
    found = _compared(X, y, group="group", models=("xgboost",), n_jobs=jobs, random_state=seed)
    given = ", ".join(f"{name}={value}" for name, value in setup.items())
    loading = (
        "import polars as pl\nfrom sufrep import simulate\n"
        f'drawn = simulate("latent_linear", {given})\nX, y = pl.DataFrame(drawn.columns()), drawn.y'
    )
    _finish(found, html, None, loading, as_json=False)


def _check_names(methods: list[str], models: list[str], scoring: str | None) -> None:
    """Refuse unknown names before a table is read."""
    from sufrep._compare import check_methods, check_models, check_scoring
    from sufrep.errors import InvalidParameterError

    checks: dict[str, Any] = {
        "--methods": lambda: check_methods(methods or None),
        "--models": lambda: check_models(tuple(models)),
        "--scoring": lambda: check_scoring(scoring),
    }
    for option, check in checks.items():
        try:
            check()
        except InvalidParameterError as error:
            raise wrong_usage(str(error), option) from error


def _check_places(html: Path | None, save: Path | None) -> None:
    """Refuse places that cannot be written, before the long work."""
    from sufrep._charts import load_altair, require_renderer
    from sufrep._files import check_place

    if html is not None:
        load_altair()
        require_renderer("The report")
    for path in (html, save):
        if path is not None:
            check_place(path)


def _compared(X: Any, y: Any, **parameters: Any) -> Comparison:
    from sufrep import compare

    with warnings_told(), progress("compare") as bar:
        return compare(X, y, progress=_Told(bar), **parameters)


class _Told:
    """Passes on how far a comparison is."""

    def __init__(self, bar: Advance) -> None:
        self._bar = bar

    def __call__(self, done: int, total: int, what: str) -> None:
        if not done:
            self._bar.start(total)
        else:
            self._bar.advance(what)


def _finish(
    found: Comparison, html: Path | None, save: Path | None, loading: str | None, *, as_json: bool
) -> None:
    """Print what was found, and write what was asked for."""
    if as_json:
        typer.echo(json.dumps(found.to_dict(), ensure_ascii=False, indent=1))
    else:
        _print(found)
    with warnings_told():
        if html is not None:
            with waiting("fitting the winner on all rows, and drawing the report"):
                found.to_html(html, loading=loading)
            tell(f"report: {html}")
        if save is not None:
            with waiting("fitting the encoder on all rows"):
                found.fit_encoder().save(save)
            tell(f"encoder: {save}{_SAVED * (not found.plan.data.all_numeric)}")
    if found.summaries[0].failed:
        raise typer.Exit(FAILED)


def _print(found: Comparison) -> None:
    console = Console(soft_wrap=True)
    if not console.is_terminal:
        console = Console(width=_WIDTH, soft_wrap=True)
    scoring = found.plan.scoring
    titles = ("method", "model", scoring.name, f"over {found.baseline}", "95 % interval", "p, adjusted")
    shown = Table(*titles, "columns", "seconds", title=None, header_style="bold", box=None, pad_edge=False)
    for column in shown.columns[2:]:
        column.justify = "right"
    done = [item for item in found.summaries if not item.failed]
    for item in done[:_SHOWN]:
        row = [item.method, item.model, f"{item.score:.5g}", *_improvement(found, item)]
        shown.add_row(*map(Text, [*row, str(item.n_columns), f"{item.fit_seconds:.2f}"]))
    console.print(shown)
    if len(done) > _SHOWN:
        console.print(f"… and {len(done) - _SHOWN} more; the report and --json have all.", style="dim")
    for item in found.summaries[len(done) :]:
        console.print(Text(f"{item.method} with {item.model} failed: {item.failure}"), style="red")
    console.print()
    first, *rest = found.verdict
    console.print(Text(first), style="bold")
    for text in (*rest, *(f"Note: {note}" for note in found.notes)):
        console.print(Text(text))


def _improvement(found: Comparison, item: Any) -> tuple[str, str, str]:
    from math import isnan

    text = found.plan.scoring.improvement_text
    better = "" if isnan(item.improvement) else text(item.improvement)
    interval = "" if isnan(item.low) else f"{text(item.low)} to {text(item.high)}"
    p = "" if isnan(item.p_adjusted) else "< 0.001" if item.p_adjusted < 0.001 else f"{item.p_adjusted:.3f}"
    return better, interval, p
