"""``sufrep describe``: the contents of an encoder file."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sufrep.cli._arguments import print_json, print_result
from sufrep.cli._encode import EncoderArgument, read_encoder
from sufrep.errors import listed, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep.encoders._base import GroupEncoder
    from sufrep.encoders._certainty import Certainty
    from sufrep.representation import Representation

# Levels and columns of a group that are printed.
_LEVELS = 5
_COLUMNS = 6
_SIGNS = {".": "with decimal points", ",": "with decimal commas"}


def describe(
    encoder: EncoderArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Describe a saved encoder: its groups, covariates, new columns and parameters.

    Example: sufrep describe zip.sufrep
    """
    from sufrep.encoders._persistence import load_certainty

    described = description(read_encoder(encoder), load_certainty(encoder))
    if as_json:
        print_json(described, indent=2)
    else:
        print_result("\n".join(map(_one_line, _lines(described))))


def description(encoder: GroupEncoder, certainty: Mapping[str, Certainty]) -> dict[str, Any]:
    """The description, in types that JSON has."""
    from sufrep.encoders._registry import method_of

    layout = encoder.layout_
    names = encoder.get_feature_names_out().tolist()
    described = {
        "encoder": type(encoder).__name__,
        "method": method_of(encoder),
        "groups": [
            _group(name, table, certainty.get(name)) for name, table in encoder.representations_.items()
        ],
        # The target, too, may describe the levels; it has no position.
        "covariates": [
            covariate.name(layout.names)
            for covariate in encoder.covariates_
            if covariate.position is not None
        ],
        "columns_needed": list(layout.names),
        "columns_made": names[len(layout.kept) :],
        "parameters": _changed_parameters(encoder),
    }
    reading = getattr(encoder, "reading_", None)
    if reading is not None:
        described["reading"] = {
            "decimal": reading.decimal,
            "thousands": reading.thousands,
            "separator": reading.separator,
            "encoding": reading.encoding,
            "kinds": reading.kinds(),
        }
    if hasattr(encoder, "target_type_"):
        described["target_type"] = encoder.target_type_
    if hasattr(encoder, "report_"):
        described["chosen"] = list(encoder.chosen_)
        described["report"] = {
            "summary": encoder.report_["summary"],
            **{
                part: {key: list(map(_plain, values)) for key, values in encoder.report_[part].items()}
                for part in ("candidates", "components")
            },
        }
    return described


def _group(name: str, table: Representation, certainty: Certainty | None) -> dict[str, Any]:
    values: Any = table.values[:_LEVELS]
    values = values.toarray() if hasattr(values, "toarray") else values
    return {
        "name": name,
        "n_levels": table.n_levels,
        "n_rows": _plain(float(table.weight.sum())),
        "columns": list(table.columns),
        "first_levels": [
            {
                "level": _plain(level),
                "rows": _plain(float(weight)),
                "values": [_plain(float(v)) for v in vector],
            }
            for level, weight, vector in zip(table.levels, table.weight, values, strict=False)
        ],
        "least_certain": [] if certainty is None else _with_rows(table, certainty.least),
        "most_certain": [] if certainty is None else _with_rows(table, certainty.most),
    }


def _with_rows(table: Representation, pairs: Sequence[tuple[Any, float]]) -> list[dict[str, Any]]:
    """Levels and their relative errors, with their numbers of rows."""
    rows = table.weight[table.positions([level for level, _ in pairs])]
    return [
        {"level": _plain(level), "rows": _plain(float(weight)), "relative_error": error}
        for (level, error), weight in zip(pairs, rows, strict=True)
    ]


def _plain(value: Any) -> Any:
    """A value as a type that JSON has."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return None if not math.isfinite(value) else int(value) if value.is_integer() else value
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _changed_parameters(encoder: GroupEncoder) -> dict[str, Any]:
    defaults = {
        name: parameter.default for name, parameter in inspect.signature(type(encoder)).parameters.items()
    }
    given = {name: _jsonable(value) for name, value in encoder.get_params(deep=False).items()}
    return {name: given[name] for name in defaults if given[name] != _jsonable(defaults[name])}


def _jsonable(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value
    return list(map(_jsonable, value)) if isinstance(value, (list, tuple)) else _plain(value)


def _lines(described: dict[str, Any]) -> list[str]:
    method = f" (method {described['method']})" if described["method"] else ""
    lines = [f"{described['encoder']}{method}"]
    lines += [
        f"  group         {group['name']}: {group['n_levels']:,} level(s), {_counted(group['n_rows'])} row(s)"
        for group in described["groups"]
    ]
    lines.append(f"  covariates    {listed(described['covariates'], quote=False) or 'none'}")
    if "target_type" in described:
        lines.append(f"  target        {described['target_type']}")
    lines.append(f"  new columns   {listed(described['columns_made'], quote=False) or 'none'}")
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
    components = [
        (name, f"{_shown(contribution, 4)} ± {_shown(error, 2)}")
        for name, contribution, error in zip(
            *(report["components"][key] for key in ("component", "contribution", "standard_error")),
            strict=True,
        )
    ]
    lines = [report["summary"], *_aligned(("", "candidate", "loss", "gain", "rows", "columns"), candidates)]
    if components:
        lines += ["", *_aligned(("component", "contribution"), components)]
    return lines


def _level_lines(group: dict[str, Any]) -> list[str]:
    columns, first = group["columns"][:_COLUMNS], group["first_levels"]
    more = len(group["columns"]) - len(columns)
    rows = [
        (
            _level_text(entry["level"]),
            _counted(entry["rows"]),
            *(_shown(value, 4) for value in entry["values"][:_COLUMNS]),
        )
        for entry in first
    ]
    title = f"{group['name']}: {len(first)} of {group['n_levels']:,} level(s)"
    title += f", {len(columns)} of {len(group['columns']):,} columns" if more else ""
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
