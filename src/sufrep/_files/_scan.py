"""The result of opening a table in any format, and temporary copies that it may rest on."""

from __future__ import annotations

import csv
import os
import tempfile
import weakref
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sufrep._files._reading import TableReading
from sufrep.errors import SufrepError, TableContentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        Python code that defines `table`, a polars frame with the same rows, from `pl` and the imports; empty
        for several files.
    notes : tuple of str
        What a user should know about how the rows are read.
    copies : tuple of TemporaryCopy
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
    copies: tuple[TemporaryCopy, ...] = ()
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


@contextmanager
def reading_errors(where: str) -> Iterator[None]:
    """Turn the errors of polars about a damaged file into an error of ours."""
    import polars as pl

    # A panic of polars is not an Exception (test_a_panic_of_polars_is_an_error_of_ours).
    polars_errors = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
    broken: Any = (*polars_errors, OSError, EOFError, zlib.error, csv.Error, UnicodeError)
    try:
        yield
    except SufrepError:
        raise
    except broken as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        what = f"cannot be read; it may be damaged, or not have the format of its ending ({first})."
        raise TableContentError(where, what, "get a new copy, or check the step that wrote it.") from error
