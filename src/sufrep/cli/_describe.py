"""``sufrep describe``: the contents of an encoder file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sufrep.cli._arguments import print_json, print_result
from sufrep.cli._saved import EncoderArgument, read_saved
from sufrep.errors import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

# Columns of a group, and names in a line, that are printed.
_COLUMNS = 6
_NAMES = 10
_SIGNS = {".": "with decimal points", ",": "with decimal commas"}


def describe(
    encoder: EncoderArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Describe a saved encoder: its steps, groups, covariates, new columns and parameters.

    Only what the file says about itself is read, which takes no longer for large encoders. Long lists are
    cut, also with --json; entries such as n_columns_made count all.

    Example: sufrep describe zip.sufrep
    """
    from sufrep._description import read_description

    described = read_saved(read_description, encoder)
    if as_json:
        print_json(described, indent=2)
    else:
        print_result("\n".join(map(_one_line, _lines(described))))


def _lines(described: dict[str, Any]) -> list[str]:
    method = f" (method {described['method']})" if described["method"] else ""
    lines = [f"{', then '.join(described['steps'])}{method}"]
    lines += [
        f"  group         {group['name']}: {group['n_levels']:,} level(s), {_counted(group['n_rows'])} row(s)"
        for group in described["groups"]
    ]
    for part, title in (("as_numbers", "as numbers "), ("dropped", "left out   ")):
        if described[part]:
            lines.append(f"  {title}   {_listed(described[part])}")
    lines.append(f"  covariates    {_listed(described['covariates'], described['n_covariates'])}")
    if "target_type" in described:
        lines.append(f"  target        {described['target_type']}")
    lines.append(f"  new columns   {_listed(described['columns_made'], described['n_columns_made'])}")
    if described.get("reading", {}).get("decimal"):
        lines.append(f"  numbers       {_SIGNS[described['reading']['decimal']]}")
    changed = [f"{name}={value!r}" for name, value in described["parameters"].items()]
    lines.append(f"  parameters    {', '.join(changed) or 'defaults'}")
    if "report" in described:
        lines += ["", *_report_lines(described)]
    for group in described["groups"]:
        lines += ["", *_level_lines(group)]
        if group["least_certain"]:
            lines += ["", *_certainty_lines(group)]
    return lines


def _report_lines(described: dict[str, Any]) -> list[str]:
    report = described["report"]
    keys = ("candidate", "loss", "gain", "standard_error", "n_rows", "n_columns", "chosen")
    candidates = [
        (
            "*" if mark else "",
            name,
            _shown(loss, 6),
            f"{_shown(gain, 4)} ± {_shown(error, 2)}",
            f"{n_rows:,}",
            str(width),
        )
        for name, loss, gain, error, n_rows, width, mark in zip(
            *(report["candidates"][key] for key in keys), strict=True
        )
    ]
    lines = [report["summary"], *_aligned(("", "candidate", "loss", "gain", "rows", "columns"), candidates)]
    for kind in ("component", "group"):
        contributions = [
            (name, f"{_shown(contribution, 4)} ± {_shown(error, 2)}")
            for name, contribution, error in zip(
                *(report[f"{kind}s"][key] for key in (kind, "contribution", "standard_error")), strict=True
            )
        ]
        if contributions:
            lines += ["", *_aligned((kind, "contribution"), contributions)]
    return lines


def _level_lines(group: dict[str, Any]) -> list[str]:
    columns, first = group["columns"][:_COLUMNS], group["first_levels"]
    more = group["n_columns"] - len(columns)
    rows = [
        (
            _level_text(entry["level"]),
            _counted(entry["rows"]),
            *(_shown(value, 4) for value in entry["values"][:_COLUMNS]),
        )
        for entry in first
    ]
    title = f"{group['name']}: {len(first)} of {group['n_levels']:,} level(s)"
    title += f", {len(columns)} of {group['n_columns']:,} columns" if more else ""
    return [title, *_aligned((group["name"], "rows", *columns), rows)]


def _certainty_lines(group: dict[str, Any]) -> list[str]:
    """The levels whose vectors are the least and the most certain."""
    rows = [
        (
            _level_text(entry["level"]),
            _counted(entry["rows"]),
            _shown(entry["relative_error"], 2),
            f"{kind} certain" if number == 0 else "",
        )
        for kind in ("least", "most")
        for number, entry in enumerate(group[f"{kind}_certain"])
    ]
    title = (
        f"{group['name']}: how certain the vectors are (standard error / standard deviation over the rows)"
    )
    return [title, *_aligned((group["name"], "rows", "relative error", ""), rows)]


def _listed(names: Sequence[str], n_names: int | None = None) -> str:
    """The first names, and the number of the others."""
    more = (len(names) if n_names is None else n_names) - len(names[:_NAMES])
    return (", ".join(names[:_NAMES]) or "none") + (f" and {more:,} more" if more > 0 else "")


def _level_text(level: Any) -> str:
    return "(null)" if level is None else str(level)


def _shown(value: float | None, digits: int) -> str:
    """A number; those that JSON lacks are null."""
    return "nan" if value is None else f"{value:.{digits}g}"


def _counted(value: float | None) -> str:
    return "nan" if value is None else f"{value:,}"


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table in columns, which escapes and wide characters do not shift."""
    from rich.cells import cell_len, set_cell_size

    table = [list(map(_one_line, row)) for row in (header, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    return ["  " + "  ".join(map(set_cell_size, row, widths)).rstrip() for row in table]


def _one_line(text: str) -> str:
    """A text as it is printed, in one line."""
    return shown(text).replace("\n", r"\n")
