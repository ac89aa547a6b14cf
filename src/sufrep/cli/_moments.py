"""``sufrep moments`` and ``sufrep merge``: what encoders learn from, collected in parts and added up."""

from __future__ import annotations

import warnings
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sufrep.cli._arguments import (
    ColumnRoles,
    DropOption,
    ForceOption,
    Output,
    Spelling,
    TableArgument,
    TextOption,
    check_outputs,
    output_option,
    print_result,
    report_notes,
    report_warnings,
    usage_error,
)
from sufrep.cli._encode import Missing
from sufrep.cli._progress import progress
from sufrep.cli._saved import BATCH, read_saved
from sufrep.errors import EncoderFileError, MomentsMismatchError, SufrepError, TextColumnWarning, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sufrep._files import TableSource
    from sufrep.moments import GroupMoments


class TargetType(StrEnum):
    """What the target is."""

    auto = "auto"
    continuous = "continuous"
    binary = "binary"
    multiclass = "multiclass"


_SPELLING = Spelling(
    {
        "group": "--group",
        "covariates": "--covariates",
        "missing": "--missing",
        "target_type": "--target-type",
    }
)
OutOption = Annotated[
    Path,
    output_option(
        "--out", "File for the moments, for `sufrep merge` and GroupMoments.load.", show_default=False
    ),
]


@_SPELLING.errors()
def moments(
    table: TableArgument,
    group: Annotated[
        str,
        typer.Option(
            "--group",
            help="The group column; store+brand is one group of all combinations. It is read as text: 01234 "
            "stays 01234.",
            show_default=False,
        ),
    ],
    out: OutOption,
    target: Annotated[
        str | None,
        typer.Option("--target", help="Column to predict, kept apart from the covariates."),
    ] = None,
    target_type: Annotated[
        TargetType,
        typer.Option("--target-type", help="What the target is; name it if parts may look different."),
    ] = TargetType.auto,
    covariates: Annotated[
        list[str],
        typer.Option(
            "--covariates",
            help="Numeric columns that describe the levels; by default all; several may follow.",
        ),
    ] = [],
    drop: DropOption = [],
    text: TextOption = [],
    missing: Annotated[
        Missing, typer.Option("--missing", help="Treatment of nulls in the group column.")
    ] = Missing.level,
    force: ForceOption = False,
) -> None:
    """Collect the moments of a table: counts, means and scatter of its numeric columns by level.

    Moments of disjoint rows add up (`sufrep merge`), and are all that many encoders learn from:
    MeansEncoder("zip").fit_moments(GroupMoments.load(path)) in Python. Rows are read in batches, so the table
    may be larger than memory.

    Example: sufrep moments monday.csv --group zip --target price --out monday.moments
    """
    roles = ColumnRoles.from_options([group], target, covariates, drop)
    if target is None and target_type is not TargetType.auto:
        raise usage_error("it needs --target.", "--target-type")
    from sufrep._files import table_files

    check_outputs(table_files(table), [Output("--out", out, "moments")], force=force)
    source, roles = roles.open(table, text)
    report_notes(source)
    with progress("moments") as report, report_warnings(_SPELLING):
        warnings.simplefilter("ignore", TextColumnWarning)  # nothing passes through
        found = add_up(_batches(source, roles, missing.value, target_type.value, report))
    found.save(out)
    print_result(f"{_summary(found)}\nmoments: {out}", [out])


def _batches(
    source: TableSource, roles: ColumnRoles, missing: str, target_type: str, report: Callable[..., None]
) -> Iterable[GroupMoments]:
    """The moments of each batch of rows."""
    from sufrep.encoders import make_encoder
    from sufrep.encoders._inputs import with_roles

    encoder = make_encoder(
        "means",
        [roles.group],
        covariates=list(roles.covariates) or None,
        use_target=roles.target is not None,
        target_type=target_type,
        missing=missing,
    )
    encoder._validate_params()
    n_batches = -(-source.n_rows // BATCH)
    report(0, n_batches, "")
    columns: list[str] | None = [*roles.used()] if roles.covariates else None
    for number, batch in enumerate(source.batches(BATCH), 1):
        rows = batch if columns is None else batch.select(columns)
        first = not hasattr(encoder, "moments_")
        if first:
            encoder.partial_fit(rows, roles.target)
            yield from encoder.moments_.values()
        else:
            inputs = encoder._read(rows, roles.target, None, reset=False, is_chunk=True)
            covariates, found = encoder._collect(inputs)
            yield from with_roles(found, inputs.layout, covariates, encoder).values()
        report(number, n_batches, f"{min(number * BATCH, source.n_rows):,} rows")


@Spelling({"target_type": "moments --target-type"}).errors()
def merge(
    parts: Annotated[
        list[Path],
        typer.Argument(metavar="MOMENTS...", help="Files of `sufrep moments`.", show_default=False),
    ],
    out: OutOption,
    subtract: Annotated[
        list[Path],
        typer.Option(
            "--subtract",
            help="Moments of rows that are part of the others, to leave out; several may follow.",
        ),
    ] = [],
    force: ForceOption = False,
) -> None:
    """Add up moments of disjoint rows, and subtract those of rows to leave out.

    All must be of the same group, covariates and target. Whoever adds the newest day and subtracts the oldest
    every night has the moments of a moving window without reading its rows again.

    Example: sufrep merge whole.moments monday.moments --subtract old.moments --out new.moments
    """
    check_outputs([*parts, *subtract], [Output("--out", out, "moments")], force=force)
    whole = add_up(_checked(parts))
    for path in subtract:
        whole = _combined(path, lambda part, known=whole: known - part, _read(path), whole)
    whole.save(out)
    print_result(f"{_summary(whole)}\nmoments: {out}", [out])


def add_up(parts: Iterable[GroupMoments]) -> GroupMoments:
    """Sum of moments, added in pairs: a part of many rows is not copied for each small one."""
    sums: list[tuple[int, GroupMoments]] = []
    for part in parts:
        sums.append((1, part))
        while len(sums) > 1 and sums[-2][0] <= sums[-1][0]:
            (n_left, left), (n_right, right) = sums[-2:]
            sums[-2:] = [(n_left + n_right, left + right)]
    while len(sums) > 1:
        (n_left, left), (n_right, right) = sums[-2:]
        sums[-2:] = [(n_left + n_right, left + right)]
    return sums[0][1]


def _checked(paths: Iterable[Path]) -> Iterable[GroupMoments]:
    """The moments of files, each of which can be added to the first."""
    first: GroupMoments | None = None
    for path in paths:
        found = _read(path)
        if first is not None:
            # Compared without their levels, which costs nothing; an error names the file.
            _combined(
                path, lambda part, known=first: known.without_levels() + part.without_levels(), found, first
            )
        first = found if first is None else first
        yield found


def _read(path: Path) -> GroupMoments:
    from sufrep.moments import GroupMoments

    found: GroupMoments = read_saved(GroupMoments.load, path)
    if not found.n_levels:
        raise EncoderFileError(path, "it holds moments of no rows.", "leave it out.")
    return found


def _combined(
    path: Path, combine: Callable[..., GroupMoments], part: GroupMoments, known: GroupMoments
) -> GroupMoments:
    """What ``combine`` makes of a part; errors name its file."""
    try:
        _check_types(part, known)
        return combine(part)
    except MomentsMismatchError as error:
        raise SufrepError(f"Cannot use {str(path)!r}: {error}") from error


def _check_types(part: GroupMoments, known: GroupMoments) -> None:
    """Refuse levels of another type, such as 98178 next to "98178": they would be levels of their own."""
    shown = [_types(moments.levels.tolist()) for moments in (known, part)]
    for first, second in zip(*shown, strict=False):
        if first and second and not first.keys() & second.keys():
            here, there = (
                f"{', '.join(sorted(found))} ({next(iter(found.values()))!r}, …)" for found in (second, first)
            )
            raise MomentsMismatchError(
                f"Its levels are of type {here}; those of the others are of type {there}. The same level "
                "would count as two.",
                "collect all parts from columns of the same type; `sufrep moments` reads the group as text.",
            )


def _types(levels: list[Any]) -> list[dict[str, Any]]:
    """The types of levels with an example of each, by part of crossed ones; numbers are of one type."""
    n_parts = len(levels[0]) if levels and isinstance(levels[0], tuple) else 1
    found: list[dict[str, Any]] = [{} for _ in range(n_parts)]
    for level in levels:
        for place, value in enumerate(level if isinstance(level, tuple) and n_parts > 1 else [level]):
            if value is not None and place < n_parts:
                is_number = isinstance(value, (bool, int, float, Decimal))
                found[place].setdefault("number" if is_number else type(value).__name__, value)
    return found


def _summary(found: GroupMoments) -> str:
    """Levels, rows and covariates in a few lines."""
    n_targets = 0 if found.target is None else found.target.n_columns
    described = list(found.covariates[: len(found.covariates) - n_targets])
    name = ":".join(found.group) or "levels"
    lines = [f"{name}: {found.n_levels:,} level(s) in {int(found.count.sum()):,} row(s)"]
    lines.append(
        f"{len(described)} covariate(s)" + (f": {listed(described, 5, quote=False)}" if described else "")
    )
    if found.target is not None:
        classes = f" ({listed(list(found.target.classes), 5, quote=False)})" if found.target.classes else ""
        lines.append(f"target: {found.target.name}, {found.target.kind}{classes}")
    return "\n".join(lines)
