"""A table of level vectors as a Parquet file, for readers that know nothing of sufrep."""

from __future__ import annotations

from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._atomic import replacing
from sufrep.errors import MissingDependencyError, NotExportableError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from sufrep._arrays import Floats

# What a row is about.
LEVEL, PRIOR = "level", "prior"


def write_parquet(
    path: str | os.PathLike[str],
    keys: Sequence[str],
    levels: Sequence[Any],
    weight: Floats,
    values: Floats,
    columns: Sequence[str],
    prior: Floats,
) -> None:
    """Write the levels, one row each, and the prior in the last row, completely or not at all."""
    parts = list(zip(*levels, strict=True)) if len(keys) > 1 and levels else [levels] * len(keys)
    table: dict[str, Any] = {
        name: [*_of_one_type(name, part), None] for name, part in zip(keys, parts, strict=True)
    }
    numbers = np.vstack([values, prior])
    others = {
        "row": [*[LEVEL] * len(levels), PRIOR],
        "weight": np.append(weight, weight.sum()),
    }
    for name, column in others.items():
        free = name
        while free in table or free in columns:
            free += "_"
        table[free] = column
    table |= {name: numbers[:, j] for j, name in enumerate(columns)}
    with replacing(path) as whole:
        _write(table, whole)


def _write(table: dict[str, Any], path: Path) -> None:
    if find_spec("polars") is not None:
        import polars as pl

        pl.DataFrame(table, strict=True).write_parquet(path)
    elif find_spec("pyarrow") is not None:
        frame = import_module("pyarrow").table(table)
        import_module("pyarrow.parquet").write_table(frame, path)
    else:
        raise MissingDependencyError("polars", "Parquet files", "cli")


def _of_one_type(name: str, levels: Sequence[Any]) -> list[Any]:
    """Levels that a column of a file can hold."""
    known = [level for level in levels if level is not None]
    types = {type(level) for level in known}
    if types == {int, float} and all(abs(level) <= 2**53 for level in known):
        return [None if level is None else float(level) for level in levels]
    if len(types) > 1:
        shown = ", ".join(sorted(kind.__name__ for kind in types))
        raise NotExportableError(
            f"The levels of {name!r} are of several types ({shown}), and a column of a file has one.",
            "convert the column to one type before fit, for instance to text.",
        )
    if types == {int} and any(not -(2**63) <= level < 2**63 for level in known):
        raise NotExportableError(
            f"The levels of {name!r} are integers of more than 64 bits.",
            "convert the column to text before fit.",
        )
    if types == {Decimal} and all(level == level.to_integral_value() for level in known):
        return [None if level is None else int(level) for level in levels]
    return list(levels)
