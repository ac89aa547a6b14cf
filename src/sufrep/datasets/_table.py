"""A table of text: read from a CSV file, taken apart into numbers and labels."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from sufrep.errors import DataContentError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from sufrep._arrays import Array, Floats

# What stands for a missing value. The Kaggle part of Ames also writes "NA" for 'has none'.
_MISSING = ("", "NA")


def number(text: str) -> float | None:
    """The finite number that a text is, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    # Python reads "1_000" as a number; in a file it is none.
    return value if math.isfinite(value) and "_" not in text else None


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns of text, where None is a missing value.

    Attributes
    ----------
    where : str
        What errors call the table.
    origin : str
        Where the data can be had, in words.
    values : dict of str to list, each of length n
        The columns, in the order of the file.
    lines : list of int, length n
        Where each row stands in the file, for errors.
    """

    where: str
    origin: str
    values: dict[str, list[str | None]]
    lines: list[int]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.values)

    def require(self, names: Collection[str]) -> None:
        """Raise if one of the columns is not there."""
        require_columns(self.where, self.origin, self.names, names)

    def keep(self, wanted: Callable[[dict[str, str | None]], bool]) -> Table:
        """The rows that are wanted, of which there must be one."""
        names = list(self.values)
        rows = zip(*self.values.values(), strict=True)
        kept = [i for i, row in enumerate(rows) if wanted(dict(zip(names, row, strict=True)))]
        if not kept:
            raise DataContentError(
                self.where,
                f"has {len(self.lines)} row(s), none of which can be used.",
                f"get it from {self.origin}.",
            )
        values = {name: [column[i] for i in kept] for name, column in self.values.items()}
        return Table(self.where, self.origin, values, [self.lines[i] for i in kept])

    def numbers(
        self, name: str, *, missing: float | None = None, parse: Callable[[str], float | None] = number
    ) -> Floats:
        """A column as numbers, shape (n,); `missing`, if given, stands in for missing values."""
        parsed = [missing if text is None else parse(text) for text in self.values[name]]
        for i, value in enumerate(parsed):
            if value is None:
                self._fail(name, i, "a number")
        return np.array(parsed, dtype=np.float64)

    def labels(self, name: str) -> Array:
        """A column as text, shape (n,), none of it missing."""
        for i, text in enumerate(self.values[name]):
            if text is None:
                self._fail(name, i, "a level")
        return np.array(self.values[name], dtype=np.str_)

    def is_numeric(self, name: str) -> bool:
        """Whether all values of the column that are not missing are numbers."""
        return all(text is None or number(text) is not None for text in self.values[name])

    def codes(self, name: str) -> Floats:
        """A column of text as 1, 2, … in sorted order of its levels, and 0 where missing, shape (n,)."""
        return coded(self.values[name], missing=0.0)

    def _fail(self, name: str, i: int, expected: str) -> NoReturn:
        text = self.values[name][i]
        found = "nothing" if text is None else repr(text)
        raise DataContentError(
            self.where,
            f"holds {found} in column {name!r}, line {self.lines[i]}; expected {expected}.",
            f"correct or remove the line, or get the file anew from {self.origin}.",
        )


def require_columns(where: str, origin: str, present: Collection[str], names: Collection[str]) -> None:
    """Raise if one of the columns `names` is not present."""
    missing = [name for name in names if name not in present]
    if missing:
        what = f"does not have the column(s) {', '.join(map(repr, missing))}."
        spare = [name for name in present if name not in names]
        near = _renaming(missing, spare) or _listing(list(present))
        raise DataContentError(where, what, f"{near} The file is from {origin}.")


def _renaming(missing: list[str], spare: list[str]) -> str:
    # 'Pool_QC', 'Pool QC' and 'poolqc' are near 'PoolQC'.
    plain = {_plain(name): name for name in spare}
    found = {name: get_close_matches(_plain(name), plain, n=1, cutoff=0.8) for name in missing}
    renamed = [f"{plain[near[0]]!r} for {name!r}" for name, near in found.items() if near]
    return f"rename {', '.join(renamed)}." if renamed else ""


def _listing(names: list[str]) -> str:
    return f"the columns are {', '.join(map(repr, names[:10]))}{', …' * (len(names) > 10)}."


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def coded(texts: Collection[str | None], *, missing: float) -> Floats:
    """Text as 1, 2, … in sorted order of its levels, and `missing` for None, shape (n,)."""
    levels = sorted({text for text in texts if text is not None})
    code = {level: float(i) for i, level in enumerate(levels, start=1)}
    return np.array([missing if text is None else code[text] for text in texts])


def as_text(value: object) -> str | None:
    """A value of any type as the text that a CSV file would hold; None if it is missing."""
    if value is None or value != value:  # only NaN differs from itself
        return None
    # A zip code that arrives as 98178.0 is the level "98178", as in the file
    # (test_zip_codes_of_openml_are_text_as_in_the_file).
    return str(int(value)) if isinstance(value, float) and value.is_integer() else cell(str(value))


def cell(text: str) -> str | None:
    """A field of a file without the blanks around it; None if it is missing."""
    stripped = text.strip()
    return None if stripped in _MISSING else stripped


def read_csv(path: Path, origin: str) -> Table:
    """Read a file with a header and commas, in UTF-8 (with or without mark) or else Latin-1."""
    where = repr(str(path))
    reader = csv.reader(io.StringIO(_decoded(path.read_bytes()), newline=""))
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        what = f"is no CSV file: {error} (line {reader.line_num})."
        raise DataContentError(where, what, f"get it anew from {origin}.") from error
    names = [name.strip() for name in rows[0][1]] if rows else []
    if len(rows) < 2:
        what = f"has {len(rows)} line(s); expected a header and rows."
        raise DataContentError(where, what, f"get it from {origin}.")
    _check_shape(where, names, rows)
    values = {name: [cell(row[j]) for _, row in rows[1:]] for j, name in enumerate(names)}
    return Table(where, origin, values, [line for line, _ in rows[1:]])


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _check_shape(where: str, names: list[str], rows: list[tuple[int, list[str]]]) -> None:
    if "" in names:
        hint = "row numbers that R wrote have no name; use row.names = FALSE, or name the column."
        raise DataContentError(where, f"has no name for its column {names.index('') + 1}.", hint)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        what = f"has two columns called {', '.join(map(repr, twice))}."
        raise DataContentError(where, what, "rename or remove one.")
    for line, row in rows:
        if len(row) != len(names):
            what = f"has {len(row)} field(s) in line {line}; its header has {len(names)}."
            raise DataContentError(
                where, what, "look for a comma that is not in quotes, or a line cut short."
            )
