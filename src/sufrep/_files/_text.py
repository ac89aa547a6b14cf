"""Text files with a header and separated fields: how they are written, and the types of their columns.

Every column is read as text first, so that nothing is lost before it is known to be a number. The type of a
column is the first of these that fits all its values: booleans, integers of 64 bits (signed, then unsigned),
longer integers (which stay text, because a float would round them), numbers with a decimal point, numbers
with a decimal comma (only in files separated by semicolons or tabs), text. In a column of numbers, NA and
similar spellings are nulls; in a column of text they are text (NA is Namibia).

In a file with decimal commas, points separate thousands: "1.234" is 1234 there, and "1.234,5" is 1234.5. If
some columns have decimal points that cannot separate thousands ("1.5"), columns with commas stay text, and a
note reports them.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from sufrep._files._scan import Scan, TemporaryCopy, call_code, dict_code, has_pattern
from sufrep.errors import TableContentError, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from io import BufferedReader

# Characters that are rarer in text come first.
SEPARATORS = ("\t", "|", ";", ",")
# Records that the separator is guessed from, and bytes that are read for it.
_RECORDS = 50
_HEAD_BYTES = 1 << 18
# The longest header and the longest field; what is longer is a quote that is not closed.
_LIMIT = 1 << 26
_CHUNK = 1 << 20
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Bytes without a meaning in Windows-1252.
_UNDEFINED = frozenset(b"\x81\x8d\x8f\x90\x9d")
_ENCODING_NOTES = {
    "utf-8": (),
    "utf-16": ("read as UTF-16",),
    "cp1252": ("read as Windows-1252 (Latin-1), because it is not UTF-8",),
    "latin-1": ("read as Latin-1, because it is not UTF-8",),
}
_NULLS = ("", "NA", "N/A", "n/a", "null", "NULL", "None")
# Rows that rule out most types; the whole file is only checked for the remaining ones.
_HEAD_ROWS = 10_000
_COMMA = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?$"


def scan_text(path: Path, text: Sequence[str]) -> Scan:
    """Find the dialect and the types of a file, in one pass over it; only counts stay in memory."""
    file = read_dialect(path)
    rows = _scan_as_text(file)
    try:
        types = find_types(rows, file.names, text, commas=file.separator in ";\t")
    except pl.exceptions.PolarsError as error:
        _check_records(file)
        what = f"cannot be read as a table: {str(error).splitlines()[0]}."
        raise TableContentError(file.where, what, "look for quotes that are not closed.") from error
    n_rows, notes = types.n_rows, file.notes + types.notes
    # polars fills short records with nulls, and reads blank lines as such records.
    has_blanks = types.last_has_nulls and _check_records(file) > 0
    if has_blanks:
        rows = rows.filter(~pl.all_horizontal(pl.all().is_null()))
        n_rows -= types.n_empty
        notes += (f"{types.n_empty} empty line(s) left out",)
    imports, code = reading_code(file, types, has_blanks=has_blanks)
    return Scan(rows.with_columns(types.expressions()), n_rows, imports, code, notes, file.copy)


def _scan_as_text(file: TextFile, *, rename: bool = True) -> pl.LazyFrame:
    return pl.scan_csv(
        file.path,
        separator=file.separator,
        eol_char=file.line_end,
        infer_schema=False,
        new_columns=file.names if rename else None,
        glob=False,
    )


def _check_records(file: TextFile) -> int:
    """Raise if a record has too many or too few fields; return the number of blank lines between them."""
    n_blank, expected = 0, len(file.names)
    line = 0
    try:
        for last, record in file.records():
            first, line = line + 1, last
            if not record and expected > 1:
                n_blank += 1
            elif record and len(record) != expected:
                lines = f"line {line}" if first == line else f"the record of lines {first} to {line}"
                what = f"has {len(record)} field(s) in {lines}; its header has {expected}."
                hint = "look for a separator or a quote in the text of a field, or a truncated line."
                raise TableContentError(file.where, what, hint)
    except csv.Error as error:
        what = f"cannot be read after line {line}: {error}."
        raise TableContentError(file.where, what, "look for quotes that are not closed.") from error
    return n_blank


# The dialect


@dataclass(frozen=True, slots=True, eq=False)
class TextFile:
    """A text file, and a form of it that polars can read.

    Attributes
    ----------
    where : str
        The file as the user named it.
    path : Path
        The file itself, or a copy in UTF-8.
    encoding, separator, line_end : str
    names : tuple of str
        The header.
    notes : tuple of str
        What a user should know about how the file is read.
    copy : TemporaryCopy or None
        Keeps the copy.
    """

    where: str
    path: Path
    encoding: str
    separator: str
    line_end: str
    names: tuple[str, ...]
    notes: tuple[str, ...]
    copy: TemporaryCopy | None

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """The records as lists of text, each with the number of its last line; slow, but it counts lines."""
        with self.path.open(encoding="utf-8-sig", newline="") as file, _long_fields():
            reader = csv.reader(file, delimiter=self.separator)
            for record in reader:
                yield reader.line_num, record


def read_dialect(path: Path) -> TextFile:
    """Find encoding, separator and header of a file, and copy it where polars cannot read it as it is."""
    where, encoding = str(path), _encoding(path)
    copy = _copy_as_utf8(path, encoding) if encoding != "utf-8" or _is_compressed(path) else None
    path = copy.path if copy else path
    is_tabbed = where.lower().removesuffix(".gz").endswith(".tsv")
    with _long_fields():
        head, separator, header = _read_header(where, path, "\t" if is_tabbed else None)
    line_end = "\n" if "\n" in head else "\r" if "\r" in head else "\n"
    if not any(name.strip() for name in header):
        raise TableContentError(where, "has no header in its first line.", "write the column names there.")
    names, unnamed = _names(where, header)
    notes = (*_ENCODING_NOTES[encoding], *unnamed)
    return TextFile(where, path, encoding, separator, line_end, names, notes, copy)


def _read_header(where: str, path: Path, separator: str | None) -> tuple[str, str, list[str]]:
    """The first characters of a file, its separator and its header, for which more is read if necessary."""
    n_bytes = _HEAD_BYTES
    while True:
        head, is_whole = _head(path, n_bytes)
        lines, found = _lines(head), separator or _guess_separator(head)
        header = next(csv.reader(lines, delimiter=found), [])
        if next(lines, None) is not None:  # something follows the header, so it is complete
            return head, found, header
        if is_whole and head.count('"') % 2 == 0:
            return head, found, header
        if is_whole or n_bytes >= _LIMIT:
            what = f"has no end of its header in its first {len(head):,} characters."
            raise TableContentError(where, what, "look for a quote that is not closed, or for missing lines.")
        n_bytes *= 4


@contextmanager
def _long_fields() -> Iterator[None]:
    """Raise the limit of the csv module, 131,072 characters a field, which polars does not have."""
    before = csv.field_size_limit(_LIMIT)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _names(where: str, header: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Names without surrounding blanks; columns without a name, as pandas and R write them, get one."""
    names = tuple(name.strip() or f"column_{j}" for j, name in enumerate(header, start=1))
    duplicates = sorted(name for name, count in Counter(names).items() if count > 1)
    if duplicates:
        what = f"has more than one column called {listed(duplicates)}."
        raise TableContentError(where, what, "rename or remove all but one.")
    unnamed = [j for j, name in enumerate(header, start=1) if not name.strip()]
    return names, [f"column {j} has no name and is called 'column_{j}'" for j in unnamed]


def _copy_as_utf8(path: Path, encoding: str) -> TemporaryCopy:
    """A copy without compression and in UTF-8."""
    copy = TemporaryCopy(".csv")
    decode = codecs.getincrementaldecoder(encoding)().decode
    with _open(path) as source, copy.path.open("wb") as target:
        for chunk in _chunks(source):
            target.write(decode(chunk).encode())
    return copy


def _encoding(path: Path) -> str:
    """UTF-8 if the whole file is valid, UTF-16 if it has its mark, else Windows-1252 or Latin-1."""
    decode = codecs.getincrementaldecoder("utf-8")().decode
    with _open(path) as file:
        start = file.read(_HEAD_BYTES)
        if start.startswith(_UTF16):
            return "utf-16"
        if b"\0" in start:
            what = "has the ending of a text file but holds something else."
            raise TableContentError(str(path), what, "check where it comes from, or correct its ending.")
        try:
            decode(start)
            for chunk in _chunks(file):
                decode(chunk)
            decode(b"", True)
        except UnicodeDecodeError:
            file.seek(0)
            windows = all(_UNDEFINED.isdisjoint(chunk) for chunk in _chunks(file))
            return "cp1252" if windows else "latin-1"
    return "utf-8"


def _is_compressed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _open(path: Path) -> BufferedReader | gzip.GzipFile:
    return gzip.GzipFile(path) if _is_compressed(path) else path.open("rb")


def _chunks(file: BufferedReader | gzip.GzipFile) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _head(path: Path, n_bytes: int) -> tuple[str, bool]:
    """The first characters, without the truncated last line if there are others, and whether they are all."""
    with path.open("rb") as file:
        content = file.read(n_bytes)
        is_whole = not file.read(1)
    text = content.decode("utf-8-sig", errors="ignore")
    return text if is_whole else text[: text.rfind("\n") + 1] or text, is_whole


def _lines(text: str) -> Iterator[str]:
    """Lines for csv.reader, which handles quotes but needs the line ends."""
    # Unlike str.splitlines, this does not end a line at a form feed or U+2028, nor does polars.
    return io.StringIO(text, newline="")


def _guess_separator(head: str) -> str:
    """The separator that gives most records as many fields as the header, and of these the most fields."""

    def score(separator: str) -> tuple[float, int]:
        try:
            records = list(islice(csv.reader(_lines(head), delimiter=separator), _RECORDS))
        except csv.Error:
            return 0.0, 0
        lengths = [len(record) for record in records if record]
        if not lengths or lengths[0] < 2:
            return 0.0, 0
        return sum(length == lengths[0] for length in lengths) / len(lengths), lengths[0]

    best = max(SEPARATORS, key=score)
    return best if any(score(best)) else ","


# The types


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

    def expressions(self) -> list[pl.Expr]:
        """The columns that are not text, parsed."""
        return [
            COLUMN_TYPES[column.kind].parse(_stripped(name)).alias(name)
            for name, column in self.columns.items()
        ]


def find_types(rows: pl.LazyFrame, names: Sequence[str], text: Sequence[str], *, commas: bool) -> TextTypes:
    """Find the types of columns of text; those in ``text`` stay text in any case."""
    kinds = [kind for kind in COLUMN_TYPES if kind != "empty" and (commas or kind != "comma")]
    tried = {name: kinds for name in names if name not in text}
    head = _measure(rows.head(_HEAD_ROWS), names, tried)
    tried = {name: _fitting(head, name, kinds) for name, kinds in tried.items()}
    found = _measure(rows, names, {name: fits for name, fits in tried.items() if fits})
    fitting = {name: _fitting(found, name, kinds) for name, kinds in tried.items() if kinds}
    fitting = {name: fits for name, fits in fitting.items() if fits}
    decided = {name: "empty" if _is_null(found, name) else fits[0] for name, fits in fitting.items()}
    notes = _settle_commas(decided, fitting)
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


def _measure(rows: pl.LazyFrame, names: Sequence[str], tried: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Count, in one pass, the values of each column and those that each type can read."""
    wanted = [
        pl.len().alias("\0rows"),
        pl.all_horizontal(pl.col(name).is_null() for name in names).sum().alias("\0empty"),
        pl.col(names[-1]).is_null().sum().alias("\0last"),
    ]
    for name, kinds in tried.items():
        value = _stripped(name)
        null = value.is_in(_NULLS)
        padded = value.str.len_bytes() != pl.col(name).str.len_bytes()
        wanted.append(value.is_not_null().sum().alias(f"{name}\0values"))
        wanted.append(null.sum().alias(f"{name}\0nulls"))
        wanted.append(value.filter(null).unique().sort().implode().alias(f"{name}\0spellings"))
        wanted.append(padded.sum().alias(f"{name}\0padded"))
        if "integer" in kinds:
            wanted.append(value.str.contains(r"^[+-]?0\d").sum().alias(f"{name}\0zeros"))
        if "comma" in kinds:
            wanted.append(value.str.contains(".", literal=True).sum().alias(f"{name}\0points"))
        wanted += [
            COLUMN_TYPES[kind].parse(value).is_not_null().sum().alias(f"{name}\0{kind}") for kind in kinds
        ]
    return rows.select(wanted).collect(engine="streaming").row(0, named=True)


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


# The code


def reading_code(file: TextFile, types: TextTypes, *, has_blanks: bool) -> tuple[tuple[str, ...], str]:
    """Modules to import, and code that defines `table` with the columns and types that were found."""
    # Blank lines differ from records of null spellings only while all columns are text.
    direct = {} if has_blanks else {name: c for name, c in types.columns.items() if c.is_direct}
    parsed = {name: column for name, column in types.columns.items() if name not in direct}
    options = _options(file, direct)
    if _is_compressed(Path(file.where)) and file.encoding != "utf-8":
        imports: tuple[str, ...] = ("gzip",)
        opened = f"gzip.open({file.where!r}, 'rt', encoding={file.encoding!r}, newline='')"
        read = call_code("pl.read_csv", ["file.read().encode()", *options]).replace("\n", "\n    ")
        lines = [f"with {opened} as file:", f"    table = {read}"]
    else:
        imports = ()
        encoding = [f"encoding={file.encoding!r}"] if file.encoding != "utf-8" else []
        lines = [f"table = {call_code('pl.read_csv', [repr(file.where), *encoding, *options])}"]
    if has_blanks:
        lines.append("table = table.filter(~pl.all_horizontal(pl.all().is_null()))")
    if parsed:
        lines.append(call_code("table = table.with_columns", _parsing_code(parsed)))
    return imports, "\n".join(lines)


def _options(file: TextFile, direct: Mapping[str, ColumnFindings]) -> list[str]:
    """Arguments of ``polars.read_csv`` other than the file and its encoding."""
    # polars keeps blanks around names, and quotes before a second carriage return.
    header = tuple(_scan_as_text(file, rename=False).collect_schema().names())
    dtypes = {name: COLUMN_TYPES[column.kind].dtype for name, column in direct.items()}
    nulls = {name: spelling for name, column in direct.items() for spelling in column.nulls if spelling}
    options = {
        f"separator={file.separator!r}": file.separator != ",",
        f"eol_char={file.line_end!r}": file.line_end != "\n",
        "glob=False": has_pattern(file.where),
        "decimal_comma=True": any(column.kind == "comma" for column in direct.values()),
        f"new_columns={list(file.names)!r}": file.names != header,
        "infer_schema=False": not direct,
    }
    chosen = [option for option, is_needed in options.items() if is_needed]
    if direct:
        items = [f"{name!r}: pl.{dtypes.get(name, pl.String())}" for name in file.names]
        chosen.append(f"schema_overrides={dict_code(items)}")
    if nulls:
        chosen.append(f"null_values={dict_code([f'{name!r}: {text!r}' for name, text in nulls.items()])}")
    return chosen


def _parsing_code(columns: Mapping[str, ColumnFindings]) -> list[str]:
    """Expressions that parse columns of text, one for all columns of a type."""
    names: dict[str, list[str]] = {}
    for name, column in columns.items():
        names.setdefault(column.kind, []).append(name)
    empty = [f"pl.lit(None, pl.String).alias({name!r})" for name in names.pop("empty", ())]
    return empty + [
        f"{call_code('pl.col', list(map(repr, same)))}.str.strip_chars(){COLUMN_TYPES[kind].code}"
        for kind, same in names.items()
    ]
