"""How a text file is written: its characters, its separator, its header."""

from __future__ import annotations

import codecs
import csv
import gzip
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from sufrep._files._scratch import Scratch
from sufrep.errors import TableContentError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from pathlib import Path

# Those that are rarer in text come first.
SEPARATORS = ("\t", "|", ";", ",")
# Records that the separator is guessed from, and bytes that are looked at for it.
_RECORDS = 50
_HEAD = 1 << 18
_CHUNK = 1 << 20
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Bytes that mean nothing in Windows-1252.
_UNDEFINED = frozenset(b"\x81\x8d\x8f\x90\x9d")


@dataclass(frozen=True, slots=True, eq=False)
class TextFile:
    """A text file that polars can read as it is.

    Attributes
    ----------
    where : str
        What errors call it.
    path : Path
        The file itself, or a copy in UTF-8.
    separator, line_end : str
    names : tuple of str
        The header.
    notes : tuple of str
        What a user should know of how the file was read.
    scratch : Scratch or None
        Keeps the copy.
    """

    where: str
    path: Path
    separator: str
    line_end: str
    names: tuple[str, ...]
    notes: tuple[str, ...]
    scratch: Scratch | None

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """The records as lists of text, each with the number of its last line; slow, but it knows lines."""
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=self.separator)
            for record in reader:
                yield reader.line_num, record


def read_dialect(path: Path) -> TextFile:
    """Find out how a file is written, and copy it where polars would not understand it."""
    where = str(path)
    path, scratch, notes = _as_utf8(path)
    head = _head(path)
    line_end = "\n" if "\n" in head else "\r" if "\r" in head else "\n"
    separator = "\t" if where.removesuffix(".gz").endswith(".tsv") else _guess_separator(head)
    header = next(csv.reader(_lines(head), delimiter=separator), [])
    if not any(name.strip() for name in header):
        raise TableContentError(
            where, "has no header in its first line.", "write the names of the columns there."
        )
    names, unnamed = _names(where, header)
    return TextFile(where, path, separator, line_end, names, (*notes, *unnamed), scratch)


def _names(where: str, header: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """Names without blanks around them; a column without a name gets one, because pandas and R write such."""
    names = tuple(name.strip() or f"column_{j}" for j, name in enumerate(header, start=1))
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        what = f"has more than one column called {', '.join(map(repr, twice))}."
        raise TableContentError(where, what, "rename or remove all but one.")
    unnamed = [j for j, name in enumerate(header, start=1) if not name.strip()]
    return names, [f"column {j} has no name and is called 'column_{j}'" for j in unnamed]


def _as_utf8(path: Path) -> tuple[Path, Scratch | None, list[str]]:
    """The file, or a copy of it without compression and in UTF-8, and how it was read."""
    encoding = _encoding(path)
    notes = {
        "utf-8": [],
        "utf-16": ["read as UTF-16"],
        "cp1252": ["read as Windows-1252 (Latin-1), because it is not UTF-8"],
        "latin-1": ["read as Latin-1, because it is not UTF-8"],
    }[encoding]
    if encoding == "utf-8" and path.suffix != ".gz":
        return path, None, notes
    scratch = Scratch(".csv")
    decode = codecs.getincrementaldecoder(encoding)().decode
    with _opened(path) as source, scratch.path.open("wb") as copy:
        for chunk in _chunks(source):
            copy.write(decode(chunk).encode())
    return scratch.path, scratch, notes


def _encoding(path: Path) -> str:
    """UTF-8 if the whole file is, else UTF-16 if a mark says so, else Windows' or the plain Latin-1."""
    decode = codecs.getincrementaldecoder("utf-8")().decode
    with _opened(path) as file:
        start = file.read(_HEAD)
        if start.startswith(_UTF16):
            return "utf-16"
        if b"\0" in start:
            what = "has the name of a text file but holds something else."
            raise TableContentError(str(path), what, "look at where it comes from, or correct its ending.")
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


def _opened(path: Path) -> BufferedReader | gzip.GzipFile:
    return gzip.GzipFile(path) if path.suffix == ".gz" else path.open("rb")


def _chunks(file: BufferedReader | gzip.GzipFile) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _head(path: Path) -> str:
    """The first characters; what the cut leaves of the last line is left out, if there are others."""
    with path.open("rb") as file:
        content = file.read(_HEAD)
    text = content.decode("utf-8-sig", errors="ignore")
    return text if len(content) < _HEAD else text[: text.rfind("\n") + 1] or text


def _lines(text: str) -> Iterator[str]:
    """Lines for csv.reader, which knows quotes but wants line ends kept."""
    return iter(text.splitlines(keepends=True))


def _guess_separator(head: str) -> str:
    """The separator by which most records have as many fields as the header, and of these the most."""

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
