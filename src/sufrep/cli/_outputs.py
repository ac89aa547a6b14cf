"""Where new tables go, and what they are made of: checked before anything is computed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sufrep.cli._arguments import Output, check_outputs, usage_error
from sufrep.errors import TableContentError, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

OUT_HELP = (
    "File for the new table: .csv or .tsv, each also with .gz; .parquet; .feather or .arrow; - prints CSV; "
    "duckdb:results.db#houses is a table of a DuckDB database."
)


@dataclass(frozen=True, slots=True)
class TableOutput:
    """Where the new table goes.

    Attributes
    ----------
    path : Path
    partition_by : tuple of str
    force : bool
        Whether a table of a database is replaced.
    """

    path: Path
    partition_by: tuple[str, ...] = ()
    force: bool = False


def find_inputs(
    given: Sequence[str], others: Sequence[Path], table: Output, *further: Output, force: bool
) -> list[str]:
    """The tables that names stand for; raise if an output cannot be written or would replace an input."""
    from sufrep._files import find_tables, is_database, table_files

    tables = find_tables(given)
    for folder in (name for name in given if os.path.isdir(name)):
        for option, path, _ in (table, *further):
            if path is not None and _is_below(path, folder):
                what = (
                    f"{str(path)!r} is in the folder {folder!r}, which is read, and would become part of it"
                )
                raise usage_error(f"{what}; name another folder.", option)
    inputs = [*others]
    for name in tables:
        # Another table of the database that is read is no input.
        other_table = table.path is not None and is_database(table.path) and str(table.path) != name
        if not (other_table and "#" in name and is_database(name)):
            inputs += table_files(name)
    check_outputs(inputs, [table, *further], force=force)
    return tables


def _is_below(path: Path, folder: str) -> bool:
    from sufrep._files import written_file

    return Path(os.path.realpath(written_file(path))).is_relative_to(os.path.realpath(folder))


def table_output(out: Path | None, partition_by: Sequence[str]) -> Output:
    return Output("--out", out, "parts" if partition_by else "table")


def check_parts(partition_by: Sequence[str], drop: Sequence[str], out: Path | None) -> tuple[str, ...]:
    """The columns that partition the new table, each once; raise if they are not part of it."""
    both = set(partition_by).intersection(drop)
    if both:
        raise usage_error(f"{min(both)!r} is also in --drop.", "--partition-by")
    if out is None and partition_by:
        raise usage_error("no table is written; name its folder with --out.", "--partition-by")
    return tuple(dict.fromkeys(partition_by))


def refuse_clashing_names(names: Sequence[str], new: Sequence[str], where: str) -> None:
    """Raise if a table has columns that an encoder would add."""
    clashing = [name for name in new if name in names]
    if clashing:
        what = f"already has columns that the encoder would add: {listed(clashing, 3)}."
        raise TableContentError(where, what, "leave them out with --drop, or rename them.")


def with_new_columns(rows: pl.DataFrame, new: pl.DataFrame, where: str) -> pl.DataFrame:
    """Append new columns, whose names must be new."""
    refuse_clashing_names(rows.columns, new.columns, where)
    return rows.hstack(new)
