"""Text files with a header and separated fields: how they are written, and code that reads them.

Every column is read as text first, so that nothing is lost before it is known to be a number; `_types` finds
out what each column holds.
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
from typing import TYPE_CHECKING

import polars as pl

from sufrep._files._paths import has_pattern
from sufrep._files._reading import TableReading
from sufrep._files._scan import Scan, TemporaryCopy, call_code, dict_code
from sufrep._files._typed import check_same_columns
from sufrep._files._types import COLUMN_TYPES, NULLS, find_same_types, find_types
from sufrep.errors import TableContentError, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from io import BufferedReader

    from sufrep._files._types import ColumnFindings, TextTypes

# Characters that are rarer in text come first.
SEPARATORS = ("\t", "|", ";", ",")
# Records that the separator is guessed from, and bytes that are read for it.
_RECORDS = 50
_HEAD_BYTES = 1 << 18
# Rows of a file that mostly tell whether a column is text.
_HEAD_ROWS = 1_000
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


def scan_text(paths: Sequence[Path], text: Sequence[str], reading: TableReading | None = None) -> Scan:
    """Find the dialect and the types of files, in one pass over them; only counts stay in memory.

    Several files are one table. With a ``reading`` of another table, its decimal sign, spellings of null and
    kinds of columns hold here.
    """
    files = [read_dialect(path) for path in paths]
    _check_same_names(files)
    first, rows = files[0], _scan_all(files)
    try:
        commas = all(file.separator in ";\t" for file in files)
        if reading is None:
            types = find_types(rows, first.names, text, commas=commas)
        else:
            where = first.where if len(files) == 1 else f"{first.where} and {len(files) - 1} more"
            types = find_same_types(rows, where, first.names, text, reading, commas=commas)
        _check_same_kinds(files, [name for name in first.names if name not in (*types.columns, *text)])
    except pl.exceptions.PolarsError as error:
        for file in files:
            _check_records(file)
        what = f"cannot be read as a table: {str(error).splitlines()[0]}."
        raise TableContentError(first.where, what, "look for quotes that are not closed.") from error
    n_rows, notes = types.n_rows, _file_notes(files) + types.notes
    # polars fills short records with nulls, and reads blank lines as such records.
    has_blanks = types.last_has_nulls and sum(map(_check_records, files)) > 0
    if has_blanks:
        rows = rows.filter(~pl.all_horizontal(pl.all().is_null()))
        n_rows -= types.n_empty
        notes += (f"{types.n_empty} empty line(s) left out",)
    imports, code = reading_code(first, types, has_blanks=has_blanks) if len(files) == 1 else ((), "")
    found = TableReading(
        decimal=types.decimal,
        thousands="." if types.decimal == "," else None,
        nulls=NULLS if reading is None or not reading.nulls else reading.nulls,
        separator=first.separator,
        encoding=first.encoding,
    )
    empty = tuple(name for name, column in types.columns.items() if column.kind == "empty")
    parsed = rows.with_columns(types.expressions())
    copies = tuple(file.copy for file in files if file.copy is not None)
    return Scan(parsed, n_rows, imports, code, notes, copies, found, empty)


def _scan_all(files: Sequence[TextFile]) -> pl.LazyFrame:
    """The rows of all files as text; files of the same dialect are read by one scan."""
    dialects: dict[tuple[object, ...], list[TextFile]] = {}
    for file in files:
        dialects.setdefault((file.separator, file.line_end, file.names), []).append(file)
    scans = [_scan_as_text(*same).select(files[0].names) for same in dialects.values()]
    return scans[0] if len(scans) == 1 else pl.concat(scans)


def _scan_as_text(*files: TextFile, rename: bool = True) -> pl.LazyFrame:
    """The rows of files of the same dialect as text."""
    return pl.scan_csv(
        [file.path for file in files],
        separator=files[0].separator,
        eol_char=files[0].line_end,
        infer_schema=False,
        new_columns=files[0].names if rename else None,
        glob=False,
    )


def _file_notes(files: Sequence[TextFile]) -> tuple[str, ...]:
    """What is to be known about the files, each once; with the first file if it does not hold for all."""
    notes: dict[str, list[TextFile]] = {}
    for file in files:
        for note in file.notes:
            notes.setdefault(note, []).append(file)
    return tuple(
        note if len(found) == len(files) else f"{note} (in {len(found)} file(s), such as {found[0].where!r})"
        for note, found in notes.items()
    )


def _check_same_names(files: Sequence[TextFile]) -> None:
    columns = {file.where: dict.fromkeys(file.names, pl.String()) for file in files}
    for where, found in columns.items():
        check_same_columns(files[0].where, columns[files[0].where], where, found)


# What a column of one file holds, in words.
_IN_WORDS = {
    "boolean": "booleans",
    "integer": "numbers",
    "unsigned": "numbers",
    "point": "numbers with decimal points",
    "comma": "numbers with decimal commas",
    "text": "text",
}


def _check_same_kinds(files: Sequence[TextFile], names: Sequence[str]) -> None:
    """Raise if a column that is text as a whole is not text in each of the files."""
    for name in names if len(files) > 1 else ():
        found: dict[str, TextFile] = {}
        for file in files:
            found.setdefault(_kind(file, name), file)
        kinds = [kind for kind in found if kind != "empty"]
        if len(kinds) > 1 and "digits" not in kinds:
            first, other = (found[kind] for kind in kinds[:2])
            what = f"holds {_IN_WORDS[kinds[1]]} in column {name!r}, where {first.where!r} holds"
            hint = f"correct the file, or read the column as text with --text {name}."
            raise TableContentError(other.where, f"{what} {_IN_WORDS[kinds[0]]}.", hint)


def _kind(file: TextFile, name: str) -> str:
    """What a column of one file holds: a key of `COLUMN_TYPES`, or "text"."""
    rows = _scan_as_text(file).select(name)
    # The first rows mostly tell that a column is text.
    for some in (rows.head(_HEAD_ROWS), rows):
        types = find_types(some, [name], (), commas=file.separator in ";\t")
        kind = types.columns[name].kind if name in types.columns else "digits" if types.notes else "text"
        if kind == "text":
            break
    return kind


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
