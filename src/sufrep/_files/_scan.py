"""The result of opening a table in any format, and temporary copies that it may rest on."""

from __future__ import annotations

import os
import tempfile
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sufrep._files._reading import TableReading

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

# Characters in a line of generated code.
_WIDTH = 88


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """Rows that are not read yet, and what is known about them.

    Attributes
    ----------
    rows : LazyFrame
    n_rows : int
    imports : tuple of str
        Modules that the code imports in addition to polars.
    code : str
        Python code that defines `table`, a polars frame with the same rows, from `pl` and the imports.
    notes : tuple of str
        What a user should know about how the rows are read.
    copy : TemporaryCopy or None
        Must live as long as the rows.
    reading : TableReading
        What was found about a text file, without its columns.
    empty : tuple of str
        Columns of a text file without values, whose kind is not known.
    """

    rows: pl.LazyFrame
    n_rows: int
    imports: tuple[str, ...]
    code: str
    notes: tuple[str, ...] = ()
    copy: TemporaryCopy | None = None
    reading: TableReading = field(default_factory=TableReading)
    empty: tuple[str, ...] = ()


class TemporaryCopy:
    """A file in the folder for temporary files, removed with the last reference to this object."""

    def __init__(self, suffix: str) -> None:
        handle, name = tempfile.mkstemp(prefix="sufrep-", suffix=suffix)
        os.close(handle)
        self.path = Path(name)
        # Unlike __del__ this also runs when the interpreter exits.
        weakref.finalize(self, self.path.unlink, missing_ok=True)


def call_code(function: str, arguments: Sequence[str]) -> str:
    """Code of a call, on one line if it fits, else with one argument a line.

    >>> print(call_code("pl.read_csv", ["'houses.csv'", "separator=';'"]))
    pl.read_csv('houses.csv', separator=';')
    """
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= _WIDTH and "\n" not in line:
        return line
    return f"{function}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def dict_code(items: Sequence[str]) -> str:
    """Code of a dictionary as an argument of a call, filled into lines.

    >>> dict_code(["'a': pl.Int64", "'b': pl.String"])
    "{'a': pl.Int64, 'b': pl.String}"
    """
    line = f"{{{', '.join(items)}}}"
    if len(line) <= _WIDTH - len("    schema_overrides=,"):
        return line
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) + 2 > _WIDTH - 8:
            lines.append("")
        lines[-1] += f" {item}," if lines[-1] else f"{item},"
    return "{\n" + "".join(f"        {line}\n" for line in lines) + "    }"


def has_pattern(path: str) -> bool:
    """Whether polars would read the characters of a path as a pattern for several files."""
    return any(character in path for character in "*?[")
