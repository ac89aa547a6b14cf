"""``sufrep effect``: what a treatment does, adjusted for covariates and for a group with many levels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sufrep._names import EFFECT_WEIGHTS, ESTIMANDS, GROUP_STATISTICS
from sufrep.cli._arguments import (
    DropOption,
    ForceOption,
    Output,
    Printer,
    Spelling,
    TableArgument,
    TextOption,
    check_outputs,
    known_names,
    message,
    open_groups,
    print_json,
    report_notes,
    report_warnings,
    usage_error,
)
from sufrep.cli._compare import FoldsOption, HtmlOption, JsonOption, SeedOption, check_renderer
from sufrep.cli._progress import progress, waiting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from sufrep._effect import EffectAnalysis
    from sufrep.causal import AIPW

# The parameters of `sufrep.AIPW` and of its `fit`.
_SPELLING = Spelling(
    {
        "clip": "--clip",
        "cluster": "--cluster",
        "cluster=None": "--cluster none",
        "covariates": "--covariates",
        "estimand": "--estimand",
        "folds='row'": "folds='row' in Python",
        "group": "--group",
        "n_folds": "--folds",
        "n_repeats": "--repeats",
        "outcome": "--outcome",
        "propensity": "--propensity",
        "random_state": "--seed",
        "sample_weight": "--sample-weight",
        "statistics": "--statistics",
        "treated": "--treated",
        "treatment": "--treatment",
        "trim": "--trim",
        "weights": "--weights",
    }
)
_NO_CLUSTERS = "none"


@_SPELLING.errors()
def effect(
    table: TableArgument,
    treatment: Annotated[
        str, typer.Option("--treatment", help="Column that says who was treated.", show_default=False)
    ],
    outcome: Annotated[
        str,
        typer.Option(
            "--outcome", help="Column of numbers that the treatment may change.", show_default=False
        ),
    ],
    group: Annotated[
        list[str],
        typer.Option(
            "--group",
            help="The column with many levels, such as hospital; of several (store brand or store+brand) all "
            "combinations are levels. It is read as text: 01234 stays 01234.",
            show_default=False,
        ),
    ],
    treated: Annotated[
        str | None,
        typer.Option("--treated", help="The value that means treated, unless it is 1 or true."),
    ] = None,
    covariates: Annotated[
        list[str],
        typer.Option(
            "--covariates", help="Columns to adjust for; by default all others; several may follow."
        ),
    ] = [],
    drop: DropOption = [],
    text: TextOption = [],
    by: Annotated[
        list[str],
        typer.Option(
            "--by",
            help="Columns whose values (of numbers, thirds of the rows) are subgroups; by default the first "
            "covariates, in the report only; several may follow.",
        ),
    ] = [],
    estimand: Annotated[
        str,
        typer.Option(
            "--estimand",
            callback=known_names(ESTIMANDS),
            help="Average over all rows (ATE), treated rows (ATT), or rows weighted by overlap (ATO).",
        ),
    ] = "ATE",
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster",
            help="Clusters of the standard error: a column, auto (the group), or none (independent rows).",
        ),
    ] = "auto",
    statistics: Annotated[
        list[str],
        typer.Option(
            "--statistics",
            callback=known_names(GROUP_STATISTICS),
            help="What stands for the group: the means of its covariates (X), its share of treated rows (W), "
            "means of their products (WX); several may follow.",
        ),
    ] = ["X", "W"],
    propensity: Annotated[
        str | None,
        typer.Option(
            "--propensity",
            help="Known probability of treatment, in an experiment: a number, or a column of them.",
        ),
    ] = None,
    weights: Annotated[
        str,
        typer.Option(
            "--weights",
            callback=known_names(EFFECT_WEIGHTS),
            help="Whether all rows count the same (row), or all groups (group).",
        ),
    ] = "row",
    sample_weight: Annotated[
        str | None, typer.Option("--sample-weight", help="Column with the weight of each row.")
    ] = None,
    clip: Annotated[
        float,
        typer.Option(
            "--clip", min=0.0, max=0.499, help="Bound probabilities of treatment to [clip, 1 - clip]."
        ),
    ] = 0.01,
    trim: Annotated[
        float | None,
        typer.Option(
            "--trim",
            min=0.0,
            max=0.499,
            help="Leave out rows whose probability of treatment is outside [trim, 1 - trim].",
        ),
    ] = None,
    linear: Annotated[
        bool,
        typer.Option("--linear", help="Linear and logistic regression instead of gradient boosting; faster."),
    ] = False,
    folds: FoldsOption = 5,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Assignments to folds; the result is their median.")
    ] = 1,
    html: HtmlOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    force: ForceOption = False,
) -> None:
    """Estimate the effect of a treatment.

    Rows are compared within groups such as hospitals, schools or persons, which differ in ways that no column
    records: the estimate is adjusted for the covariates, their means in the group, and the group's share of
    treated rows (doubly robust, with clustered errors). The verdict states the effect and which rows it
    holds for; the ladder shows what each adjustment does.

    Example: sufrep effect patients.csv --treatment drug --outcome days --group hospital --html report.html
    """
    known = None if propensity is None else _number_or_column(propensity)
    further = {"--propensity": known, "--sample-weight": sample_weight}
    columns = {option: name for option, name in further.items() if isinstance(name, str)}
    roles = {"--treatment": [treatment], "--outcome": [outcome], "--group": group}
    roles |= {option: [name] for option, name in columns.items()}
    _check_roles({**roles, "--covariates": covariates, "--drop": drop}, cluster, by)
    from sufrep._atomic import is_standard_output
    from sufrep._files import table_files

    check_outputs(table_files(table), [Output("--html", html, "report")], force=force)
    if as_json and html is not None and is_standard_output(html):
        raise usage_error("the standard output is also the file of another option.", "--json")
    check_renderer(html)
    clusters = [] if cluster in ("auto", _NO_CLUSTERS) else [cluster]

    with waiting("reading the table"):
        others = [treatment, outcome, *covariates, *columns.values(), *by]
        source, groups = open_groups(table, group, text=[*clusters, *text], drop=drop, needed=others)
        report_notes(source)
        crossed = tuple(dict.fromkeys(column for columns in groups for column in columns))
        _check_roles({**roles, "--group": crossed, "--covariates": covariates, "--drop": drop}, cluster, by)
        rows = source.read()
    from sufrep._effect import analyse

    with report_warnings(_SPELLING), progress("effect") as report:
        analysis = analyse(
            _model(
                linear=linear,
                group=crossed if len(crossed) > 1 else crossed[0],
                covariates=list(dict.fromkeys(covariates)) or None,
                statistics=tuple(dict.fromkeys(statistics)),
                estimand=estimand,
                cluster=None if cluster == _NO_CLUSTERS else cluster,
                weights=weights,
                clip=clip,
                trim=trim,
                n_folds=folds,
                n_repeats=repeats,
                random_state=seed,
            ),
            rows,
            treatment=treatment,
            outcome=outcome,
            treated=treated_value(rows[treatment], treated),
            propensity=known,
            sample_weight=sample_weight,
            by=by,
            progress=report,
        )
    if as_json:
        print_json(analysis.to_dict(), indent=1)
    else:
        _print(analysis, Printer([html]), subgroups=bool(by))
    if html is not None:
        with waiting("drawing the report"):
            analysis.to_html(html, loading=source.code, source=source.short_name)
        message(f"report: {html}")


def _check_roles(roles: Mapping[str, Sequence[str]], cluster: str, by: Sequence[str]) -> None:
    """Raise if a column has two roles; a cluster may be a group, and subgroups may be by covariates."""
    seen: dict[str, str] = {}
    for option, columns in roles.items():
        for column in dict.fromkeys(columns):
            if column in seen:
                raise usage_error(f"{column!r} is also in {seen[column]}.", option)
            seen[column] = option
    if seen.get(cluster, "--group") != "--group":
        raise usage_error(f"{cluster!r} is also in {seen[cluster]}.", "--cluster")
    for column in by:
        if seen.get(column) in ("--treatment", "--outcome", "--drop"):
            raise usage_error(f"{column!r} is also in {seen[column]}.", "--by")


def _model(*, linear: bool, **parameters: Any) -> AIPW:
    from sufrep import AIPW

    if not linear:
        return AIPW(**parameters)
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # Logistic regression is penalised, so the units of columns would matter.
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return AIPW(LinearRegression(), logistic, **parameters)


def treated_value(values: pl.Series, typed: str | None) -> Any:
    """The value of the column that was typed; the typed text if there is none, which the fit then refuses."""
    if typed is None:
        return None
    for value in values.unique().drop_nulls().to_list():
        if str(value) == typed or (isinstance(value, bool) and str(value).lower() == typed.lower()):
            return value
        if isinstance(value, int | float) and _is_number(typed, value):
            return value
    return typed


def _number_or_column(typed: str) -> float | str:
    try:
        return float(typed)
    except ValueError:
        return typed


def _is_number(typed: str, value: float) -> bool:
    try:
        return float(typed) == value
    except ValueError:
        return False


def _print(analysis: EffectAnalysis, printer: Printer, *, subgroups: bool) -> None:
    from sufrep._effect._analysis import number_text
    from sufrep._statistics import p_value_text

    def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
        estimate, error, low, high = (
            number_text(row[key], row["std_error"]) for key in ("estimate", "std_error", "lower", "upper")
        )
        return estimate, error, f"{low} to {high}", p_value_text(row["p_value"])

    titles = ("estimate", "standard error", "95 % interval", "p")
    printer.table(
        ("adjusted for", *titles), [(row["step"], *cells(row)) for row in analysis.ladder], n_left=1
    )
    for found in analysis.subgroups if subgroups else ():
        printer.line()
        rows = [(row["subgroup"], f"{row['n_rows']:,}", *cells(row)) for row in found.rows]
        printer.table((f"by {found.column}", "rows", *titles), rows, n_left=1)
    printer.line()
    first, *rest = analysis.verdict
    printer.line(first, style="bold")
    for text in (*rest, analysis.sensitivity_text, *(f"Note: {note}" for note in analysis.notes)):
        printer.line(_SPELLING.text(text))
