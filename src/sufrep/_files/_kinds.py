"""What kind of output an existing file is, by its contents.

One rule protects files from a mistyped name: an existing file is replaced if it is empty or of the kind that
is written; anything else needs ``--force``.
"""

from __future__ import annotations

import csv
import io
import re
import zlib
from typing import TYPE_CHECKING

from sufrep._atomic import explained, find_destination
from sufrep._files._writing import written_ending

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Bytes that a kind is recognised from.
_HEAD = 1 << 16


def table_kind(path: Path) -> str:
    """The kind of a table that is written to ``path``."""
    ending = written_ending(path)
    return {".pq": ".parquet", ".arrow": ".feather", ".ipc": ".feather"}.get(ending, ending)


def is_replaceable(path: Path, kind: str) -> bool:
    """Whether nothing of another kind is lost when a file of this kind is written to ``path``.

    Parameters
    ----------
    path : Path
        Need not exist; a pipe or a device is not replaced at all.
    kind : str
        A key of `KINDS`.
    """
    file = find_destination(path).file
    if file is None or not file.exists():
        return True
    with explained(path), file.open("rb") as opened:
        head = opened.read(_HEAD)
    return not head or _RECOGNISERS[kind](file, head)


def _starts_with(*starts: bytes) -> Callable[[Path, bytes], bool]:
    return lambda _, head: head.lstrip().lower().startswith(tuple(start.lower() for start in starts))


def _separated(separator: str) -> Callable[[Path, bytes], bool]:
    def recognise(_: Path, head: bytes) -> bool:
        """Whether each record has as many fields as the header, and at least two."""
        text = _text(head)
        if text is None:
            return False
        try:
            lengths = [
                len(record) for record in csv.reader(io.StringIO(text, newline=""), delimiter=separator)
            ]
        except csv.Error:
            return False
        # The last record may be cut off by the end of the head.
        whole = lengths[:-1] if len(head) == _HEAD and len(lengths) > 1 else lengths
        return whole[0] > 1 and len(set(whole)) == 1

    return recognise


def _compressed(separator: str) -> Callable[[Path, bytes], bool]:
    def recognise(path: Path, head: bytes) -> bool:
        """Whether a gzip file begins like a table."""
        try:
            start = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
        except zlib.error:
            return False
        return _separated(separator)(path, start)

    return recognise


def _text(head: bytes) -> str | None:
    """The text, or None for other contents; a character at the end of the head may be cut off."""
    text = head.decode("utf-8-sig", errors="replace")
    return None if "\0" in text or "�" in text[:-1] else text


def _is_encoder(_: Path, head: bytes) -> bool:
    """Whether a file begins with the manifest of an encoder, which is not compressed."""
    return _is_sufrep(head) and not _is_moments(_, head)


def _is_moments(_: Path, head: bytes) -> bool:
    """Whether a file begins with the manifest of moments."""
    return _is_sufrep(head) and b'},"moments":{"$record":' in head


def _is_sufrep(head: bytes) -> bool:
    return head.startswith(b"PK") and b'manifest.json{"format":"sufrep"' in head


def _is_text_table(_: Path, head: bytes) -> bool:
    """Whether a file begins like a table of results as text, Markdown or LaTeX."""
    text = _text(head) or ""
    rule = re.compile(r"[^\n]+\n[^\n]+\n-+(  -+)*\n|\*\*[^\n]+\*\*\n\n\| [^\n]+\n\| ---|\\begin\{table\}")
    return rule.match(text) is not None


# Each kind with words for it.
KINDS = {
    "encoder": "an encoder of sufrep",
    "moments": "a file of moments of sufrep",
    "report": "a report of sufrep",
    "text table": "a table of results as text",
    ".csv": "a table separated by commas",
    ".tsv": "a table separated by tabs",
    ".csv.gz": "a compressed table separated by commas",
    ".tsv.gz": "a compressed table separated by tabs",
    ".parquet": "a Parquet file",
    ".feather": "an Arrow file",
    ".png": "a PNG picture",
    ".svg": "an SVG picture",
    ".html": "an HTML page",
}
_RECOGNISERS: dict[str, Callable[[Path, bytes], bool]] = {
    "encoder": _is_encoder,
    "moments": _is_moments,
    "report": lambda _, head: b'<meta name="generator" content="sufrep">' in head,
    "text table": _is_text_table,
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
    ".csv.gz": _compressed(","),
    ".tsv.gz": _compressed("\t"),
    ".parquet": _starts_with(b"PAR1"),
    ".feather": _starts_with(b"ARROW1"),
    ".png": _starts_with(b"\x89PNG"),
    ".svg": _starts_with(b"<svg", b"<?xml"),
    ".html": _starts_with(b"<!doctype html", b"<html"),
}
