"""``sufrep encode``: from a table to a table with new columns, and an encoder for rows to come."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sufrep.cli._messages import tell_notes, warnings_told, wrong_usage
from sufrep.cli._progress import progress

if TYPE_CHECKING:
    import polars as pl

    from sufrep._files import TableSource
    from sufrep.encoders._base import GroupEncoder


class Unseen(StrEnum):
    """What a level gets that was never seen."""

    prior = "prior"
    error = "error"


class Missing(StrEnum):
    """What a null in the column of levels is."""

    level = "level"
    prior = "prior"
    error = "error"


# Parameters of encoders that options of their own set, and those that the command decides.
_OPTIONS = {
    "group": "--group",
    "covariates": "--covariates",
    "unseen": "--unseen",
    "missing": "--missing",
    "min_frequency": "--min-frequency",
    "random_state": "--seed",
}
_DECIDED = ("remainder", "sparse_output", "estimator", "verbose")

TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A file (.csv, .tsv, .txt, also with .gz; .parquet; .feather, .arrow), or a table of a data "
        "base as in duckdb:houses.db#sales or sqlite:houses.db#sales.",
        show_default=False,
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", help="File of the new table: .csv, .tsv, .parquet, .feather or .arrow."),
]
DropOption = Annotated[
    list[str], typer.Option("--drop", help="Columns to leave out, also of the new table; several in a row.")
]
TextOption = Annotated[
    list[str],
    typer.Option("--text", help="Further columns to read as text, such as numbers with leading zeros."),
]


def encode(
    table: TableArgument,
    group: Annotated[
        list[str],
        typer.Option(
            "--group",
            help="Columns of levels, several in a row. They are read as text: 01234 stays 01234.",
            show_default=False,
        ),
    ],
    method: Annotated[
        str, typer.Option("--method", help="sufficient, means, low_rank, latent_state, one_hot, …")
    ] = "sufficient",
    target: Annotated[
        str | None,
        typer.Option("--target", help="Column to be predicted. It is never a covariate."),
    ] = None,
    covariates: Annotated[
        list[str],
        typer.Option("--covariates", help="Numeric columns that describe the levels; all if not given."),
    ] = [],
    drop: DropOption = [],
    text: TextOption = [],
    out: OutOption = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="File of the encoder, for `sufrep apply` and sufrep.load.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of folds and draws.")] = 0,
    unseen: Annotated[Unseen, typer.Option("--unseen", help="What new levels get.")] = Unseen.prior,
    missing: Annotated[
        Missing, typer.Option("--missing", help="What a null among the levels is.")
    ] = Missing.level,
    min_frequency: Annotated[
        float | None,
        typer.Option("--min-frequency", help="Rows, or a share of them, below which levels are pooled."),
    ] = None,
    param: Annotated[
        list[str],
        typer.Option("--param", help="Further parameters of the encoder, as in --param n_components=3."),
    ] = [],
) -> None:
    """Add columns that stand for the levels of a column, and save the encoder.

    The new table has all columns of the old one in their order, those of levels and the target too, and then
    the new ones. Where the target is used, each row gets what was learnt without the fold that it is in, so
    that a model may be trained on the new table. Rows to come get what was learnt from all rows; that is what
    `sufrep apply` does.

    Example: sufrep encode houses.csv --group zipcode --target price --out train.parquet --save zip.sufrep
    """
    from sufrep._files import check_place, check_writable, open_table, write_table

    roles = Roles(tuple(dict.fromkeys(group)), target, tuple(covariates), tuple(drop))
    roles.check()
    parameters = {"unseen": unseen.value, "missing": missing.value, "min_frequency": _count(min_frequency)}
    encoder = make(method, roles, {**parameters, **parsed(param)}, seed)
    if out is None and save is None:
        raise wrong_usage("nothing would be kept; name at least one of them.", "--out, --save")
    if out is not None:
        check_writable(out)
    if save is not None:
        check_place(save)
    with progress("encode") as bar:
        bar.start(3)
        source = open_table(table, text=(*roles.group, *text), drop=drop)
        source.require(roles.all())
        rows = source.read()
        bar.advance("read")
        with warnings_told():
            encoded = fit(encoder, rows, roles, source.where)
        bar.advance("learnt")
        if out is not None:
            write_table(encoded, out)
        if save is not None:
            encoder.set_output(transform="default").save(save)
        bar.advance("written")
    tell_notes(source)
    typer.echo(_summary(encoder, source, out, save))


@dataclass(frozen=True, slots=True)
class Roles:
    """Which columns are what."""

    group: tuple[str, ...]
    target: str | None
    covariates: tuple[str, ...]
    drop: tuple[str, ...]

    def all(self) -> list[str]:
        """Every column that is named and kept."""
        return [*self.group, *([self.target] if self.target else []), *self.covariates]

    def check(self) -> None:
        """Raise if a column has two roles."""
        named = {"--group": self.group, "--covariates": self.covariates, "--drop": self.drop}
        for option, columns in named.items():
            if self.target in columns:
                raise wrong_usage(f"{self.target!r} is named by {option} too.", "--target")
        for option in ("--covariates", "--drop"):
            both = set(self.group).intersection(named[option])
            if both:
                raise wrong_usage(f"{sorted(both)[0]!r} is named by --group too.", option)
        both = set(self.covariates).intersection(self.drop)
        if both:
            raise wrong_usage(f"{sorted(both)[0]!r} is named by --covariates too.", "--drop")


def make(method: str, roles: Roles, parameters: dict[str, Any], seed: int) -> GroupEncoder:
    """The encoder that is asked for, not yet fitted, with parameters that it knows."""
    from sufrep._sklearn import InvalidParameterError

    from sufrep.encoders import make_encoder

    plain = make_encoder(method)
    known = plain.get_params(deep=False)
    further = [name for name in known if name not in _OPTIONS and name not in _DECIDED]
    for name in parameters:
        if name not in known:
            near = get_close_matches(name, further, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(further)}."
            raise wrong_usage(f"{method} has no parameter {name!r}; {hint}", "--param")
    if "random_state" in known:
        parameters["random_state"] = seed
    if roles.covariates:
        parameters["covariates"] = list(roles.covariates)
    group: Any = roles.group[0] if len(roles.group) == 1 else list(roles.group)
    encoder = make_encoder(method, group, **parameters)
    try:
        encoder._validate_params()
    except InvalidParameterError as error:
        raise wrong_usage(str(error), "--param") from error
    if encoder.__sklearn_tags__().target_tags.required and roles.target is None:
        raise wrong_usage(f"{method} learns from the column to be predicted; name it.", "--target")
    return encoder


def parsed(given: list[str]) -> dict[str, Any]:
    """Values by name, from texts such as "n_components=3".

    >>> parsed(["n_components=3", "shrinkage=auto", "use_target=true", "cv=none"])
    {'n_components': 3, 'shrinkage': 'auto', 'use_target': True, 'cv': None}
    """
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise wrong_usage(f"{text!r} is not of the form name=value.", "--param")
        if name in _OPTIONS:
            raise wrong_usage(f"{name} is set by {_OPTIONS[name]}.", "--param")
        if name in _DECIDED:
            raise wrong_usage(f"{name} cannot be set in a command.", "--param")
        found[name] = _literal(value)
    return found


def _literal(text: str) -> Any:
    """A number, a list or a truth value where the text looks like one, else the text."""
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _count(number: float | None) -> int | float | None:
    return int(number) if number is not None and number.is_integer() else number


def fit(encoder: GroupEncoder, rows: pl.DataFrame, roles: Roles, where: str) -> pl.DataFrame:
    """Learn from the rows; return them with the new columns behind the others."""
    X = rows.drop(roles.target) if roles.target else rows
    y = rows[roles.target] if roles.target else None
    encoded = encoder.set_output(transform="polars").fit_transform(X, y)
    return with_new_columns(rows, encoded[:, len(encoder.layout_.kept) :], where)


def with_new_columns(rows: pl.DataFrame, new: pl.DataFrame, where: str) -> pl.DataFrame:
    """Put new columns behind the old ones, which must have other names."""
    from sufrep.errors import TableContentError

    clashing = [name for name in new.columns if name in rows.columns]
    if clashing:
        what = f"already has columns that the encoder makes: {', '.join(map(repr, clashing[:3]))}."
        raise TableContentError(where, what, "leave them out with --drop, or rename them.")
    return rows.hstack(new)


def _summary(encoder: GroupEncoder, source: TableSource, out: Path | None, save: Path | None) -> str:
    """What was learnt, in a few lines."""
    names = encoder.get_feature_names_out().tolist()[len(encoder.layout_.kept) :]
    lines = [
        f"{name}: {representation.n_levels:,} level(s) in {source.n_rows:,} row(s)"
        for name, representation in encoder.representations_.items()
    ]
    chosen = getattr(encoder, "chosen_", None)
    if chosen is not None:
        lines.append(f"chosen: {' + '.join(chosen) or 'to leave the column out, because it does not help'}")
    shown = ", ".join(names[:5]) + f" and {len(names) - 5} more" * (len(names) > 5)
    lines.append(f"{len(names)} new column(s){': ' * bool(names)}{shown}")
    lines += [f"table: {out}"] if out is not None else []
    lines += [f"encoder: {save}"] if save is not None else []
    return "\n".join(lines)
