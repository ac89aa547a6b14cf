"""``sufrep encode``: a table with new columns, from a new encoder."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sufrep._names import DESCRIBING_METHODS, ENCODERS, MAX_SEED, TARGET_METHODS
from sufrep.cli._arguments import (
    ColumnRoles,
    DropOption,
    ForceOption,
    LazyOption,
    Output,
    PartitionOption,
    Spelling,
    TablesArgument,
    TextOption,
    known_names,
    message,
    output_option,
    print_result,
    report_notes,
    report_warnings,
    usage_error,
)
from sufrep.cli._lazy import check_lazy, fit_lazily, write_encoded
from sufrep.cli._outputs import (
    OUT_HELP,
    TableOutput,
    check_parts,
    find_inputs,
    refuse_clashing_names,
    table_output,
    with_new_columns,
)
from sufrep.cli._progress import phases, progress
from sufrep.errors import NoCovariateWarning, TextColumnWarning, UninformativeGroupWarning, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from sufrep._files import TableSource
    from sufrep.encoders._base import GroupEncoder


class Unseen(StrEnum):
    """Treatment of levels that the encoder has not seen."""

    estimate = "estimate"
    prior = "prior"
    error = "error"


class Missing(StrEnum):
    """Treatment of nulls in the group column."""

    level = "level"
    prior = "prior"
    error = "error"


# A covariate whose ranks correlate so much with those of the target is the target in another form; among
# fewer rows that may be chance.
_NEARLY, _LEAST_ROWS = 0.999, 10
# Parameters of encoders with an option of their own, and those that the command sets itself.
_OPTIONS = {
    "group": "--group",
    "covariates": "--covariates",
    "unseen": "--unseen",
    "missing": "--missing",
    "min_frequency": "--min-frequency",
    "random_state": "--seed",
    "time": "--time",
    "sample_rows": "--sample-rows",
    "sample_by": "--sample-by",
}
_FIXED = ("remainder", "sparse_output", "estimator", "verbose")
_SPELLING = Spelling({**_OPTIONS, "remainder='drop'": "--drop"}, others="--param")

# Rows of a table that is not read into memory which tell whether a covariate is nearly the target.
_HEAD_ROWS = 10_000

OutOption = Annotated[
    Path | None,
    output_option("--out", OUT_HELP),
]


@_SPELLING.errors()
def encode(
    table: TablesArgument,
    group: Annotated[
        list[str],
        typer.Option(
            "--group",
            help="Group columns; several may follow, and store+brand is one group of all combinations. They "
            "are read as text: 01234 stays 01234.",
            show_default=False,
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            callback=known_names(ENCODERS),
            help="sufficient, means, low_rank, latent_state, one_hot, …",
        ),
    ] = "sufficient",
    target: Annotated[
        str | None,
        typer.Option("--target", help="Column to predict. It is never a covariate."),
    ] = None,
    no_target: Annotated[
        bool,
        typer.Option(
            "--no-target", help="No column of the table is the target: all that are numeric may be averaged."
        ),
    ] = False,
    covariates: Annotated[
        list[str],
        typer.Option(
            "--covariates",
            help="Numeric columns that describe the levels; by default all; several may follow.",
        ),
    ] = [],
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            help="Column that says when each row happened: what uses the target is learnt from earlier rows.",
        ),
    ] = None,
    fold: Annotated[
        str | None,
        typer.Option(
            "--fold",
            help="Column that holds the fold of each row: what uses the target is learnt from other folds.",
        ),
    ] = None,
    drop: DropOption = [],
    text: TextOption = [],
    out: OutOption = None,
    partition_by: PartitionOption = [],
    save: Annotated[
        Path | None, output_option("--save", "File for the encoder, for `sufrep apply` and sufrep.load.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=MAX_SEED, help="Random seed.")] = 0,
    unseen: Annotated[Unseen, typer.Option("--unseen", help="Treatment of new levels.")] = Unseen.estimate,
    missing: Annotated[
        Missing, typer.Option("--missing", help="Treatment of nulls in the group column.")
    ] = Missing.level,
    min_frequency: Annotated[
        float | None,
        typer.Option(
            "--min-frequency", help="Levels with fewer rows, or a smaller share of them, are pooled."
        ),
    ] = None,
    param: Annotated[
        list[str],
        typer.Option(
            "--param",
            help="Further parameters of the encoder, as in --param n_components=3; several may follow.",
        ),
    ] = [],
    lazy: LazyOption = False,
    sample_rows: Annotated[
        int | None,
        typer.Option(
            "--sample-rows",
            min=2,
            help="Rows that methods learn from which need rows, if the table is not read into memory.",
        ),
    ] = None,
    sample_by: Annotated[
        str | None,
        typer.Option(
            "--sample-by", help="Column that distinguishes rows, such as an identifier, to draw the sample."
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Encode a column of a table.

    The new table has all columns of the old one, including the group columns and the target, followed by the
    new ones. If the target is used, the encoding is cross-fitted: each row gets values that were learnt from
    the other folds, so that a model may be trained on the new table. `sufrep apply` encodes new rows with
    what was learnt from all rows.

    Several files, a folder or a pattern are one table, which may be larger than memory. It is not read into
    memory, and the order of its rows is not kept; the same holds for one file with `--lazy`. If the target is
    used, `--fold` is necessary then; methods that need rows learn from a sample (`--sample-rows`).

    Example: sufrep encode houses.csv --group zipcode --target price --out train.parquet --save zip.sufrep
    """
    roles = ColumnRoles.from_options(group, target, covariates, drop, time, fold)
    if out is None and save is None:
        raise usage_error("nothing would be written; name at least one file.", "--out, --save")
    parts = check_parts(partition_by, drop, out)
    output = None if out is None else TableOutput(out, parts, force)
    if sample_by is not None and sample_rows is None:
        raise usage_error("it needs --sample-rows.", "--sample-by")
    further = parse_parameters(param)
    if target is not None and no_target:
        raise usage_error("it cannot be combined with --target.", "--no-target")
    if method in TARGET_METHODS and target is None:
        raise _target_needed(method)
    if method in DESCRIBING_METHODS and target is None and not (no_target or covariates):
        raise usage_error(
            f"{method} describes levels by all numeric columns, also by the target if it is among them; name "
            "its column, name the --covariates, or use --no-target if there is none.",
            "--target",
        )
    outputs = [table_output(out, partition_by), Output("--save", save, "encoder")]
    tables = find_inputs(table, [], *outputs, force=force)
    parameters: dict[str, Any] = {
        "unseen": unseen.value,
        "missing": missing.value,
        "min_frequency": _count(min_frequency),
    }
    if sample_rows is not None:
        parameters |= {"sample_rows": sample_rows, "sample_by": sample_by}
    encoder = build_encoder(method, roles, parameters | further, seed)
    job = _Job(encoder, method, roles, output, save)
    needed = [*partition_by, *([] if sample_by is None else [sample_by])]

    def opened() -> TableSource:
        source, job.roles = roles.open(tables, [*parent_columns(further), *text], needed)
        report_notes(source)
        encoder.set_params(group=job.roles.group)
        return source

    if lazy or len(tables) > 1:
        source = job.run_lazily(opened)
    else:
        if sample_rows is not None:
            message("note: a single file is read into memory; --sample-rows is for several files, or --lazy.")
        source = job.run(opened)
    print_result(_summary(encoder, source, out, save), [out, save])


@dataclass(slots=True)
class _Job:
    """What `encode` is to do with a table."""

    encoder: GroupEncoder
    method: str
    roles: ColumnRoles
    output: TableOutput | None
    save: Path | None

    def run(self, opened: Callable[[], TableSource]) -> TableSource:
        """Read the table into memory, encode and write it."""
        from sufrep._files import batch_sink

        with progress("encode") as report:
            report(0, 3, "")
            source = opened()
            rows = source.read()
            report(1, 3, "read")
            with report_warnings(_SPELLING):
                encoded = encode_rows(self.encoder, rows, self.roles, source.where)
            report_covariates(self.encoder, rows, self.roles)
            report(2, 3, "fitted")
            if self.output is not None:
                path, partition_by, force = self.output.path, self.output.partition_by, self.output.force
                with batch_sink(path, partition_by, replace=force) as write:
                    write(encoded)
            self._save(source)
            report(3, 3, "written")
        return source

    def run_lazily(self, opened: Callable[[], TableSource]) -> TableSource:
        """Encode and write the table without reading it into memory."""
        writes = self.output is not None
        check_lazy(self.encoder, self.method, self.roles, writes=writes)
        with phases("encode") as tell:
            tell("reading")
            source = opened()
            tell("fitting")
            with report_warnings(_SPELLING):
                rows = fit_lazily(self.encoder, source, self.roles, writes=writes)
            report_covariates(self.encoder, source.rows.head(_HEAD_ROWS).collect(), self.roles)
            if self.output is None:
                self._save(source)
            else:
                refuse_clashing_names(source.names, _new_names(self.encoder), source.where)
                write_encoded(
                    self.encoder, rows, source, self.output, tell, finish=lambda: self._save(source)
                )
        return source

    def _save(self, source: TableSource) -> None:
        if self.save is not None:
            keep_reading(self.encoder.set_output(transform="default"), source)
            self.encoder.save(self.save)


def _new_names(encoder: GroupEncoder) -> list[str]:
    names: list[str] = encoder.get_feature_names_out().tolist()
    return names[len(encoder.layout_.kept) :]


def keep_reading(first: Any, source: TableSource) -> None:
    """Store in the first step how its columns were read, so that `apply` reads new tables in the same way."""
    names = getattr(first, "feature_names_in_", ())
    first.reading_ = source.reading.select([str(name) for name in names])


def build_encoder(method: str, roles: ColumnRoles, parameters: dict[str, Any], seed: int) -> GroupEncoder:
    """The encoder, not yet fitted; raise if it does not have one of the parameters.

    What an encoder accepts and needs is known only to itself, so these usage errors load it.
    """
    from sufrep._sklearn import InvalidParameterError as SklearnParameterError
    from sufrep.encoders import make_encoder

    plain = make_encoder(method)
    known = plain.get_params(deep=False)
    further = [name for name in known if name not in _OPTIONS and name not in _FIXED]
    for name in parameters:
        if name in ("sample_rows", "sample_by") and name not in known:
            raise usage_error(f"{method} learns from all rows.", _OPTIONS[name])
        if name not in known:
            near = get_close_matches(name, further, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(further)}."
            raise usage_error(f"{method} has no parameter {name!r}; {hint}", "--param")
    if "random_state" in known:
        parameters["random_state"] = seed
    if roles.covariates:
        parameters["covariates"] = list(roles.covariates)
    if roles.time is not None and "time" in known:
        parameters.setdefault("cv", "ordered")
        parameters["time"] = roles.time
    encoder = make_encoder(method, roles.group, **parameters)
    try:
        encoder._validate_params()
    except SklearnParameterError as error:
        wrong = [option for name, option in _OPTIONS.items() if f"{name!r} parameter" in str(error)]
        raise usage_error(str(error), wrong[0] if wrong else "--param") from error
    uses_target = encoder.__sklearn_tags__().target_tags.required
    if uses_target and roles.target is None:
        raise _target_needed(f"{method} with these parameters")
    for option, column in (("--time", roles.time), ("--fold", roles.fold)):
        if column is not None and not uses_target:
            raise usage_error(f"{method} with these parameters does not use the target.", option)
    return encoder


def _target_needed(what: str) -> typer.BadParameter:
    return usage_error(f"{what} learns from the target; name its column.", "--target")


def parse_parameters(given: list[str]) -> dict[str, Any]:
    """Values by name, from texts such as "n_components=3".

    >>> parse_parameters(["n_components=3", "shrinkage=auto", "use_target=true", "cv=none"])
    {'n_components': 3, 'shrinkage': 'auto', 'use_target': True, 'cv': None}
    """
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise usage_error(f"{text!r} is not of the form name=value.", "--param")
        if name in _OPTIONS:
            raise usage_error(f"{name} is set by {_OPTIONS[name]}.", "--param")
        if name in _FIXED:
            raise usage_error(f"{name} cannot be set on the command line.", "--param")
        found[name] = _literal(value)
    return found


def parent_columns(parameters: dict[str, Any]) -> list[str]:
    """The columns that ``parent`` names; like groups, they are read as text.

    >>> parent_columns({"parent": {"zip5": ["zip3", "state"], "county": "state"}})
    ['zip3', 'state', 'state']
    """
    given = parameters.get("parent")
    values = given.values() if isinstance(given, dict) else []
    return [name for value in values for name in (value if isinstance(value, (list, tuple)) else [value])]


def _literal(text: str) -> Any:
    """A number, a list or a boolean if the text looks like one, else the text."""
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _count(number: float | None) -> int | float | None:
    return int(number) if number is not None and number.is_integer() else number


def encode_rows(encoder: GroupEncoder, rows: pl.DataFrame, roles: ColumnRoles, where: str) -> pl.DataFrame:
    """Fit the encoder; return the rows with the new columns after the others."""
    X = rows if roles.target is None else rows.drop(roles.target)
    y = None if roles.target is None else rows[roles.target]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UninformativeGroupWarning)  # the summary says it
        # Text stays in the table as it is; of the covariates there are as many as the table has.
        warnings.simplefilter("ignore", TextColumnWarning)
        warnings.simplefilter("ignore", NoCovariateWarning)
        encoded = encoder.set_output(transform="polars").fit_transform(X, y, fold=roles.fold)
    return with_new_columns(rows, encoded[:, len(encoder.layout_.kept) :], where)


def report_covariates(encoder: GroupEncoder, rows: pl.DataFrame, roles: ColumnRoles) -> None:
    """Print which covariates are nearly the target, and which columns are none because of their type."""
    layout = encoder.layout_
    used = {covariate.position for covariate in encoder.covariates_}
    if roles.target is not None:
        described = [name for position, name in enumerate(layout.names) if position in used]
        for name, correlation in near_target(rows, roles.target, described).items():
            message(
                f"warning: the covariate {name!r} is nearly the target {roles.target!r}: the correlation of "
                f"their ranks is {correlation:.4f}.\n"
                "Hint: leave it out with --drop, unless it is known before the target."
            )
    others = {*used, *sum(layout.groups, ()), *sum(layout.parents, ())}
    text = [
        name
        for position, name in enumerate(layout.names)
        if position not in others and not _is_numeric(rows[name].dtype)
    ]
    if text and not roles.covariates and encoder._needs.covariates != "unused":
        message(
            f"note: columns that are not numeric do not describe the levels: {listed(text)}.\n"
            "Hint: --param categorical_covariates=share uses text of few levels; in Python, ToNumbers turns "
            "text and dates into numbers."
        )


def near_target(rows: pl.DataFrame, target: str, covariates: Sequence[str]) -> dict[str, float]:
    """The covariates whose ranks are nearly those of a numeric target, with the correlation of the ranks.

    Ranks do not change with units, logarithms and the like.

    >>> import polars as pl
    >>> price = pl.Series(range(1, 13))
    >>> rows = pl.DataFrame({"price": price, "euros": 0.9 * price, "rooms": [1, 2] * 6})
    >>> near_target(rows, "price", ["euros", "rooms"])
    {'euros': 1.0}
    """
    import polars as pl

    found: dict[str, float] = {}
    for name in covariates if _is_numeric(rows[target].dtype) else ():
        if not _is_numeric(rows[name].dtype):
            continue
        pair = rows.select(pl.col(name, target).cast(pl.Float64).fill_nan(None)).drop_nulls()
        correlation = pair.select(pl.corr(name, target, method="spearman")).item()
        if pair.height >= _LEAST_ROWS and abs(correlation) > _NEARLY:
            found[name] = correlation
    return found


def _is_numeric(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or str(dtype) == "Boolean"


def _summary(encoder: GroupEncoder, source: TableSource, out: Path | None, save: Path | None) -> str:
    """The levels, the new columns and the files, in a few lines."""
    names = _new_names(encoder)
    lines = [
        f"{name}: {representation.n_levels:,} level(s) in {source.n_rows:,} row(s)"
        for name, representation in encoder.representations_.items()
    ]
    if hasattr(encoder, "report_"):
        lines.append(encoder.report_["summary"])
    shown = f": {listed(names, 5, quote=False)}" if names else ""
    lines.append(f"{len(names)} new column(s){shown}")
    lines += [f"table: {out}"] if out is not None else []
    lines += [f"encoder: {save}"] if save is not None else []
    return "\n".join(lines)
