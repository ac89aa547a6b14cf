"""Code that reads a table as a command did, for the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sufrep._files import TableSource
    from sufrep.cli._encode import Roles

_READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".parquet": "read_parquet",
    ".pq": "read_parquet",
    ".feather": "read_ipc",
    ".arrow": "read_ipc",
    ".ipc": "read_ipc",
}


def loading_code(source: TableSource, roles: Roles) -> str | None:
    """Lines that define X and y with polars; None for what polars alone does not read like that."""
    ending = Path(source.where).suffix.lower()
    if ending not in _READERS or source.notes or ":" in source.where[:8]:
        return None
    arguments = [repr(source.where)]
    cast = ""
    if _READERS[ending] == "read_csv":
        arguments += ['separator="\\t"'] if ending == ".tsv" else []
        types = ", ".join(f"{name!r}: pl.String" for name in roles.group)
        arguments += [f"schema_overrides={{{types}}}", "infer_schema_length=None"]
    else:
        cast = f".cast({{{', '.join(f'{name!r}: pl.String' for name in roles.group)}}})"
    lines = ["import polars as pl", "", f"table = pl.{_READERS[ending]}({', '.join(arguments)}){cast}"]
    if roles.covariates:
        lines.append(f"X = table.select({[*roles.group, *roles.covariates]!r})")
    else:
        lines.append(f"X = table.drop({[roles.target, *roles.drop]!r})")
    return "\n".join([*lines, f"y = table[{roles.target!r}]"])
