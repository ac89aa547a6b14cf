"""What the text of a CSV file stands for, found from all of its rows.

Every column is read as text first, so that nothing is lost before it is known to be a number. A column is
the first of these that all its values fit: true and false, whole numbers of 64 bits (with or without sign),
longer whole numbers (which stay text, because a float would round them), numbers with a decimal point,
numbers with a decimal comma (only between semicolons or tabs), text. In a column of numbers, NA and the
like are nulls; in a column of text they are text (NA is Namibia).

A file whose numbers have decimal commas takes points for thousands: "1.234" is 1234 there, and "1.234,5" is
1234.5. Where some columns have decimal points that cannot be thousands ("1.5"), those with commas stay
text, and a note says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_NULLS = ("", "NA", "N/A", "n/a", "null", "NULL", "None")
# Rows that most guesses are settled by; the rest of the file is only asked about what they leave open.
_HEAD = 10_000
_COMMA = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?$"


@dataclass(frozen=True, slots=True)
class Kind:
    """Something that text can stand for: a type, and how it is read; null is what cannot be read so."""

    dtype: pl.DataType
    parse: Callable[[pl.Expr], pl.Expr]


def _truth(text: pl.Expr) -> pl.Expr:
    lower = text.str.to_lowercase()
    return pl.when(lower.is_in(["true", "false"])).then(lower == "true")


def _digits(text: pl.Expr) -> pl.Expr:
    return pl.when(text.str.contains(r"^[+-]?\d+$")).then(text)


def _comma(text: pl.Expr) -> pl.Expr:
    plain = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return pl.when(text.str.contains(_COMMA)).then(plain).cast(pl.Float64, strict=False)


# In the order in which they are preferred.
KINDS: dict[str, Kind] = {
    "truth": Kind(pl.Boolean(), _truth),
    "whole": Kind(pl.Int64(), lambda text: text.cast(pl.Int64, strict=False)),
    "unsigned": Kind(pl.UInt64(), lambda text: text.cast(pl.UInt64, strict=False)),
    "digits": Kind(pl.String(), _digits),
    "point": Kind(pl.Float64(), lambda text: text.cast(pl.Float64, strict=False)),
    "comma": Kind(pl.Float64(), _comma),
}


@dataclass(frozen=True, slots=True, eq=False)
class Types:
    """How to read each column that is no text, and what to tell about it."""

    n_rows: int
    n_empty: int
    last_has_nulls: bool
    kinds: Mapping[str, str]
    notes: tuple[str, ...]

    def expressions(self) -> list[pl.Expr]:
        """The columns that are more than text, read as what they are."""
        return [
            KINDS[kind].parse(_stripped(name)).alias(name)
            if kind != "nothing"
            else pl.lit(None, dtype=pl.String).alias(name)
            for name, kind in self.kinds.items()
        ]


def find_types(rows: pl.LazyFrame, names: Sequence[str], text: Sequence[str], *, commas: bool) -> Types:
    """Find what the columns of text stand for; those in ``text`` are text in any case."""
    kinds = [kind for kind in KINDS if commas or kind != "comma"]
    open_ = {name: kinds for name in names if name not in text}
    head = _measure(rows.head(_HEAD), names, open_)
    open_ = {name: _fitting(head, name, tried) for name, tried in open_.items()}
    found = _measure(rows, names, {name: fits for name, fits in open_.items() if fits})
    fitting = {name: _fitting(found, name, tried) for name, tried in open_.items() if tried}
    fitting = {name: fits for name, fits in fitting.items() if fits}
    decided = {name: "nothing" if _is_null(found, name) else fits[0] for name, fits in fitting.items()}
    notes = _settle_commas(decided, fitting)
    notes += [_about_digits(name) for name, kind in decided.items() if kind == "digits"]
    zeros = [name for name, kind in decided.items() if kind == "whole" and found[f"{name}\0zeros"]]
    if zeros:
        notes.append(f"read as numbers, which lose their leading zeros: {_listed(zeros)}")
    return Types(
        n_rows=found["\0rows"],
        n_empty=found["\0empty"],
        last_has_nulls=bool(found["\0last"]),
        kinds={name: kind for name, kind in decided.items() if kind != "digits"},
        notes=tuple(notes),
    )


def _measure(rows: pl.LazyFrame, names: Sequence[str], tried: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Count, in one pass, the values of each column and those that each kind can read."""
    wanted = [
        pl.len().alias("\0rows"),
        pl.all_horizontal(pl.col(name).is_null() for name in names).sum().alias("\0empty"),
        pl.col(names[-1]).is_null().sum().alias("\0last"),
    ]
    for name, kinds in tried.items():
        value = _stripped(name)
        wanted.append(value.is_not_null().sum().alias(f"{name}\0values"))
        wanted.append(value.is_in(_NULLS).sum().alias(f"{name}\0nulls"))
        if "whole" in kinds:
            wanted.append(value.str.contains(r"^[+-]?0\d").sum().alias(f"{name}\0zeros"))
        wanted += [KINDS[kind].parse(value).is_not_null().sum().alias(f"{name}\0{kind}") for kind in kinds]
    return rows.select(wanted).collect(engine="streaming").row(0, named=True)


def _stripped(name: str) -> pl.Expr:
    return pl.col(name).str.strip_chars()


def _fitting(found: Mapping[str, int], name: str, tried: Sequence[str]) -> list[str]:
    wanted = found.get(f"{name}\0values", 0) - found.get(f"{name}\0nulls", 0)
    return [kind for kind in tried if found[f"{name}\0{kind}"] == wanted]


def _is_null(found: Mapping[str, int], name: str) -> bool:
    return found[f"{name}\0values"] == found[f"{name}\0nulls"]


def _settle_commas(decided: dict[str, str], fitting: Mapping[str, Sequence[str]]) -> list[str]:
    """Change what points and commas mean where the columns together say more than each alone."""
    commas = [name for name, kind in decided.items() if kind == "comma"]
    if not commas:
        return []
    points = [name for name, kind in decided.items() if kind == "point"]
    if any("comma" not in fitting[name] for name in points):
        for name in commas:
            del decided[name]
        return [
            f"read as text, because some columns have decimal points and others commas: {_listed(commas)}"
        ]
    decided.update(dict.fromkeys(points, "comma"))
    notes = [f"commas taken as decimal signs in {_listed(commas)}"]
    return notes + [f"points taken as signs of thousands in {_listed(points)}"] * bool(points)


def _about_digits(name: str) -> str:
    return f"read as text, because its numbers have more than 64 bits: {name!r}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + f" and {len(names) - 5} more" * (len(names) > 5)


def as_text(name: str, dtype: pl.DataType) -> pl.Expr:
    """A column as text: 98178 and 98178.0 are "98178", null and NaN are null."""
    column = pl.col(name)
    if dtype == pl.String:
        return column
    text = column.cast(pl.String)
    if dtype.is_float():
        # Beyond 2**53 not every whole number is a float, and its digits would be made up.
        whole = column.cast(pl.Int64, strict=False)
        is_whole = (whole.cast(pl.Float64) == column) & (column.abs() < 2**53)
        return pl.when(is_whole).then(whole.cast(pl.String)).when(column.is_not_nan()).then(text).alias(name)
    return text.str.replace(r"\.0+$", "") if dtype.is_decimal() else text
