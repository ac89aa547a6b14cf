"""Parquet and Arrow files, whose columns have types: one file, or several that are one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

import polars as pl

from sufrep._files._paths import has_pattern
from sufrep._files._scan import Scan, reading_errors
from sufrep.errors import TableContentError, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# How partitioned tables spell null in the name of a folder.
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def scan_typed(paths: Sequence[Path], kind: Literal["parquet", "ipc"], text: Sequence[str]) -> Scan:
    """Find the columns and the number of rows; those of several files must be the same.

    Other programs leave the columns by which a table is partitioned out of its files: a file in the folder
    ``year=2024`` has the column ``year`` too. ``text`` are columns of which such values stay text.
    """
    schemas = {path: _schema(path, kind) for path in paths}
    for path, schema in schemas.items():
        check_same_columns(str(paths[0]), schemas[paths[0]], str(path), schema)
    if kind == "ipc":
        rows = pl.scan_ipc(list(paths), glob=False)
    elif folders := _folder_columns(paths, schemas[paths[0]], text):
        rows = pl.scan_parquet(list(paths), glob=False, hive_partitioning=True, hive_schema=folders)
    else:
        rows = pl.scan_parquet(list(paths), glob=False)
    n_rows = int(rows.select(pl.len()).collect(engine="streaming").item())
    return Scan(rows, n_rows, (), _code(paths, kind) if len(paths) == 1 else "")


def _schema(path: Path, kind: Literal["parquet", "ipc"]) -> Mapping[str, pl.DataType]:
    with reading_errors(str(path)):
        # Brackets in a path are not a pattern (test_a_name_may_hold_brackets).
        scan = pl.scan_parquet if kind == "parquet" else pl.scan_ipc
        return scan(path, glob=False).collect_schema()


def check_same_columns(
    first: str, expected: Mapping[str, pl.DataType], other: str, found: Mapping[str, pl.DataType]
) -> None:
    """Raise if a file has other columns than the first one, or columns of other types."""
    hint = "several files are one table if all have the same columns, with the same types."
    for what, names in (
        ("has no column", [name for name in expected if name not in found]),
        ("has another column,", [name for name in found if name not in expected]),
    ):
        if names:
            raise TableContentError(other, f"{what} {listed(names, 3)}, unlike {first!r}.", hint)
    for name, dtype in expected.items():
        if found[name] != dtype:
            what = f"holds {found[name]} in column {name!r}, where {first!r} holds {dtype}."
            raise TableContentError(other, what, hint)


def _folder_columns(
    paths: Sequence[Path], schema: Mapping[str, pl.DataType], text: Sequence[str]
) -> dict[str, pl.DataType]:
    """The types of columns in the names of folders, if some of them are not in the files themselves."""
    values: dict[str, list[str]] = {}
    for path in paths if len(paths) > 1 else ():
        for part in path.parts[:-1]:
            name, equals, value = part.partition("=")
            if equals:
                values.setdefault(name, []).append(unquote(value))
    if values.keys() <= schema.keys():
        return {}
    # polars wants the types of all of them.
    return {
        name: schema[name]
        if name in schema
        else pl.Int64()
        if name not in text and _are_integers(found)
        else pl.String()
        for name, found in values.items()
    }


def _are_integers(values: Sequence[str]) -> bool:
    known = [value for value in values if value != _HIVE_NULL]
    return all(value.isdecimal() and str(int(value)) == value for value in known)


def _code(paths: Sequence[Path], kind: str) -> str:
    where = str(paths[0])
    if has_pattern(where):
        return f"table = pl.scan_{kind}({where!r}, glob=False).collect()"
    return f"table = pl.read_{kind}({where!r})"
