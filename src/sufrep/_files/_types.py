"""What columns of text hold: booleans, numbers or text.

The type of a column is the first of these that fits all its values: booleans, integers of 64 bits (signed,
then unsigned), longer integers (which stay text, because a float would round them), numbers with a decimal
point, numbers with a decimal comma (only in files separated by semicolons or tabs), text. In a column of
numbers, NA and similar spellings are nulls; in a column of text they are text (NA is Namibia).

In a file with decimal commas, points separate thousands: "1.234" is 1234 there, and "1.234,5" is 1234.5. If
some columns have decimal points that cannot separate thousands ("1.5"), columns with commas stay text, and a
note reports them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from sufrep.errors import ReadingMismatchError, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sufrep._files._reading import TableReading

NULLS = ("", "NA", "N/A", "n/a", "null", "NULL", "None")
# Rows that rule out most types; the whole file is only checked for the remaining ones.
_HEAD_ROWS = 10_000
_COMMA = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?$"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type that text may stand for.

    Attributes
    ----------
    dtype : DataType
    parse : callable
        From an expression of stripped text to the values; null for what cannot be read.
    code : str
        What `parse` does, as Python code that follows the expression.
    """

    dtype: pl.DataType
    parse: Callable[[pl.Expr], pl.Expr]
    code: str = ""


def _boolean(text: pl.Expr) -> pl.Expr:
    lower = text.str.to_lowercase()
    return pl.when(lower.is_in(["true", "false"])).then(lower == "true")


def _digits(text: pl.Expr) -> pl.Expr:
    return pl.when(text.str.contains(r"^[+-]?\d+$")).then(text)


def _comma(text: pl.Expr) -> pl.Expr:
    plain = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return pl.when(text.str.contains(_COMMA)).then(plain).cast(pl.Float64, strict=False)


def _cast(dtype: pl.DataType) -> ColumnType:
    return ColumnType(dtype, lambda text: text.cast(dtype, strict=False), f".cast(pl.{dtype}, strict=False)")


# In order of preference.
COLUMN_TYPES: dict[str, ColumnType] = {
    "boolean": ColumnType(
        pl.Boolean(),
        _boolean,
        ".str.to_lowercase().replace_strict({'true': True, 'false': False}, default=None)",
    ),
    "integer": _cast(pl.Int64()),
    "unsigned": _cast(pl.UInt64()),
    "digits": ColumnType(pl.String(), _digits),
    "point": _cast(pl.Float64()),
    "comma": ColumnType(
        pl.Float64(),
        _comma,
        ".str.replace_all('.', '', literal=True).str.replace(',', '.', literal=True)"
        ".cast(pl.Float64, strict=False)",
    ),
    "empty": ColumnType(pl.String(), lambda _: pl.lit(None, dtype=pl.String)),
}


@dataclass(frozen=True, slots=True)
class ColumnFindings:
    """The type of a column that is not plain text, and how its values are spelled.

    Attributes
    ----------
    kind : str
        Key of `COLUMN_TYPES`.
    nulls : tuple of str
        Spellings of null; "" if there are empty texts in quotes.
    is_padded : bool
        Whether some values have blanks around them.
    has_thousands : bool
        Whether points separate thousands.
    """

    kind: str
    nulls: tuple[str, ...]
    is_padded: bool
    has_thousands: bool

    @property
    def is_direct(self) -> bool:
        """Whether ``polars.read_csv`` gives the same values when it is given the type."""
        if self.kind == "empty":
            return not self.nulls
        return len(tuple(filter(None, self.nulls))) <= 1 and not self.is_padded and not self.has_thousands


@dataclass(frozen=True, slots=True, eq=False)
class TextTypes:
    """How to read each column that is not text, and the notes about them."""

    n_rows: int
    n_empty: int
    last_has_nulls: bool
    columns: Mapping[str, ColumnFindings]
    notes: tuple[str, ...]

    @property
    def decimal(self) -> str | None:
        """The decimal sign; None if no column has one."""
        kinds = {column.kind for column in self.columns.values()}
        return "," if "comma" in kinds else "." if "point" in kinds else None

    def expressions(self) -> list[pl.Expr]:
        """The columns that are not text, parsed."""
        return [
            COLUMN_TYPES[column.kind].parse(_stripped(name)).alias(name)
            for name, column in self.columns.items()
        ]


def find_types(rows: pl.LazyFrame, names: Sequence[str], text: Sequence[str], *, commas: bool) -> TextTypes:
    """Find the types of columns of text; those in ``text`` stay text in any case."""
    kinds = [kind for kind in COLUMN_TYPES if kind != "empty" and (commas or kind != "comma")]
    return _find_types(rows, names, {name: kinds for name in names if name not in text})


def find_same_types(
    rows: pl.LazyFrame,
    where: str,
    names: Sequence[str],
    text: Sequence[str],
    reading: TableReading,
    *,
    commas: bool,
) -> TextTypes:
    """Find the types as `find_types` does, but as another table was read; raise if they contradict it."""
    if reading.decimal is None:
        signs = ("point", "comma") if commas else ("point",)
    else:
        signs = ("comma",) if reading.decimal == "," else ("point",)
    kinds = [kind for kind in COLUMN_TYPES if kind not in ("empty", "point", "comma") or kind in signs]
    known = reading.kinds()
    numbers = [name for name in names if known.get(name) == "number" and name not in text]
    tried = {
        # A number stays a number, even if it has more digits than 64 bits hold.
        name: [kind for kind in kinds if kind != "digits"] if name in numbers else kinds
        for name in names
        if name not in text and known.get(name, "number") == "number"
    }
    nulls = reading.nulls or NULLS
    types = _find_types(rows, names, tried, nulls, sign_is_known=reading.decimal is not None)
    for name in numbers:
        if name not in types.columns:
            found = _found_instead(rows, name, signs, nulls)
            raise ReadingMismatchError(where, name, found, _EXPECTED[reading.decimal])
    fixed = [name for name, column in types.columns.items() if column.kind == "comma"]
    if reading.decimal != "," or not fixed:
        return types
    note = "commas read as decimal signs and points as thousands separators, as when the encoder was fitted"
    return replace(types, notes=(f"{note}: {listed(fixed)}", *types.notes))


_EXPECTED = {
    None: "numbers",
    ".": "numbers with decimal points (1.708 is less than 2)",
    ",": "numbers with decimal commas (1.708 is more than 1700)",
}


def _found_instead(rows: pl.LazyFrame, name: str, signs: Sequence[str], nulls: Sequence[str]) -> str:
    """Describe the first value that is no number with one of these decimal signs."""
    value = _stripped(name)
    numbers = [COLUMN_TYPES[sign].parse(value).is_not_null() for sign in signs]
    wrong = value.is_not_null() & ~value.is_in(nulls) & ~pl.any_horizontal(numbers)
    first = rows.select(value).with_row_index("\0row", offset=1).filter(wrong).head(1).collect()
    if not first.height:
        return "holds values of several kinds"
    row, cell = first.row(0)
    shown = f"holds {cell[:40]!r} in row {row:,}"
    for sign, described in (("point", "decimal point"), ("comma", "decimal comma")):
        number = first.select(COLUMN_TYPES[sign].parse(value)).item()
        if number is not None:
            return f"{shown}, which is {number:g} with a {described}"
    return f"{shown}, which is no number"


def _find_types(
    rows: pl.LazyFrame,
    names: Sequence[str],
    tried: Mapping[str, Sequence[str]],
    nulls: Sequence[str] = NULLS,
    *,
    sign_is_known: bool = False,
) -> TextTypes:
    """Find, for each column, the first of the tried types that fits all its values."""
    head = _measure(rows.head(_HEAD_ROWS), names, tried, nulls)
    tried = {name: _fitting(head, name, kinds) for name, kinds in tried.items()}
    found = _measure(rows, names, {name: fits for name, fits in tried.items() if fits}, nulls)
    fitting = {name: _fitting(found, name, kinds) for name, kinds in tried.items() if kinds}
    fitting = {name: fits for name, fits in fitting.items() if fits}
    decided = {name: "empty" if _is_null(found, name) else fits[0] for name, fits in fitting.items()}
    notes = [] if sign_is_known else _settle_commas(decided, fitting)
    notes += [
        f"read as text, because its numbers have more than 64 bits: {name!r}"
        for name, kind in decided.items()
        if kind == "digits"
    ]
    zeros = [name for name, kind in decided.items() if kind == "integer" and found[f"{name}\0zeros"]]
    if zeros:
        notes.append(f"read as numbers, which lose their leading zeros: {listed(zeros)}")
    return TextTypes(
        n_rows=found["\0rows"],
        n_empty=found["\0empty"],
        last_has_nulls=bool(found["\0last"]),
        columns={name: _findings(found, name, kind) for name, kind in decided.items() if kind != "digits"},
        notes=tuple(notes),
    )


def _measure(
    rows: pl.LazyFrame, names: Sequence[str], tried: Mapping[str, Sequence[str]], nulls: Sequence[str]
) -> dict[str, Any]:
    """Count, in one pass, the values of each column and those that each type can read."""
    wanted = [
        pl.len().alias("\0rows"),
        pl.all_horizontal(pl.col(name).is_null() for name in names).sum().alias("\0empty"),
        pl.col(names[-1]).is_null().sum().alias("\0last"),
    ]
    for name, kinds in tried.items():
        value = _stripped(name)
        padded = value.str.len_bytes() != pl.col(name).str.len_bytes()
        wanted.append(value.is_not_null().sum().alias(f"{name}\0values"))
        # One count for each spelling: distinct values would need the whole column in memory.
        wanted += [(value == null).sum().alias(f"{name}\0null {null}") for null in nulls]
        wanted.append(padded.sum().alias(f"{name}\0padded"))
        if "integer" in kinds:
            wanted.append(value.str.contains(r"^[+-]?0\d").sum().alias(f"{name}\0zeros"))
        if "comma" in kinds:
            wanted.append(value.str.contains(".", literal=True).sum().alias(f"{name}\0points"))
        wanted += [
            COLUMN_TYPES[kind].parse(value).is_not_null().sum().alias(f"{name}\0{kind}") for kind in kinds
        ]
    found = rows.select(wanted).collect(engine="streaming").row(0, named=True)
    for name in tried:
        counts = {null: found[f"{name}\0null {null}"] for null in nulls}
        found[f"{name}\0nulls"] = sum(counts.values())
        found[f"{name}\0spellings"] = sorted(null for null, count in counts.items() if count)
    return found


def _stripped(name: str) -> pl.Expr:
    return pl.col(name).str.strip_chars()


def _fitting(found: Mapping[str, int], name: str, tried: Sequence[str]) -> list[str]:
    wanted = found.get(f"{name}\0values", 0) - found.get(f"{name}\0nulls", 0)
    return [kind for kind in tried if found[f"{name}\0{kind}"] == wanted]


def _is_null(found: Mapping[str, int], name: str) -> bool:
    return found[f"{name}\0values"] == found[f"{name}\0nulls"]


def _findings(found: Mapping[str, Any], name: str, kind: str) -> ColumnFindings:
    return ColumnFindings(
        kind,
        nulls=tuple(found[f"{name}\0spellings"]),
        is_padded=bool(found[f"{name}\0padded"]),
        has_thousands=kind == "comma" and bool(found[f"{name}\0points"]),
    )


def _settle_commas(decided: dict[str, str], fitting: Mapping[str, Sequence[str]]) -> list[str]:
    """Revise the meaning of points and commas where the columns together say more than each alone."""
    commas = [name for name, kind in decided.items() if kind == "comma"]
    if not commas:
        return []
    points = [name for name, kind in decided.items() if kind == "point"]
    if any("comma" not in fitting[name] for name in points):
        for name in commas:
            del decided[name]
        return [f"read as text, because some columns have decimal points and others commas: {listed(commas)}"]
    decided.update(dict.fromkeys(points, "comma"))
    notes = [f"commas read as decimal signs in {listed(commas)}"]
    if points:
        notes.append(f"points read as thousands separators in {listed(points)}")
    return notes
