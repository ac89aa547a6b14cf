"""Text files with a header and separated fields."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import polars as pl

from sufrep._files._dialect import TextFile, read_dialect
from sufrep._files._scan import Scan
from sufrep._files._types import find_types
from sufrep.errors import TableContentError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def scan_csv(path: Path, text: Sequence[str]) -> Scan:
    """Find out what a file holds, in one pass over it; nothing but counts stays in memory."""
    file = read_dialect(path)
    rows = _all_text(file)
    try:
        types = find_types(rows, file.names, text, commas=file.separator in ";\t")
    except pl.exceptions.PolarsError as error:
        _check_records(file)
        what = f"is no table that can be read: {str(error).splitlines()[0]}."
        raise TableContentError(file.where, what, "look for quotes that are not closed.") from error
    n_rows, notes = types.n_rows, file.notes + types.notes
    # polars fills short records with nulls, and takes blank lines for such.
    n_blank = _check_records(file) if types.last_has_nulls else 0
    if n_blank:
        rows = rows.filter(~pl.all_horizontal(pl.all().is_null()))
        n_rows -= types.n_empty
        notes += (f"{types.n_empty} empty line(s) left out",)
    return Scan(rows.with_columns(types.expressions()), n_rows, notes, file)


def _all_text(file: TextFile) -> pl.LazyFrame:
    return pl.scan_csv(
        file.path,
        separator=file.separator,
        eol_char=file.line_end,
        infer_schema=False,
        new_columns=file.names,
        glob=False,
    )


def _check_records(file: TextFile) -> int:
    """Raise if a record has too many or too few fields; return the number of blank lines between them."""
    n_blank, expected = 0, len(file.names)
    line = 0
    try:
        for line, record in file.records():
            if not record and expected > 1:
                n_blank += 1
            elif record and len(record) != expected:
                what = f"has {len(record)} field(s) in line {line}; its header has {expected}."
                hint = "look for a separator or a quote in the text of a field, or a line cut short."
                raise TableContentError(file.where, what, hint)
    except csv.Error as error:
        what = f"cannot be read after line {line}: {error}."
        raise TableContentError(file.where, what, "look for quotes that are not closed.") from error
    return n_blank
