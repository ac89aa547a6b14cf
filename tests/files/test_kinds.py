"""An existing file is replaced if it is empty or of the kind that is written."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from sufrep import MeansEncoder
from sufrep._files import KINDS, is_replaceable, table_kind, write_table
from sufrep._paper.tables import TextTable
from sufrep._report import Page, write_page
from sufrep.errors import FileEndingError

FRAME = pl.DataFrame({"g": ["a, b", "b\n\n", "ä" * 70_000, None], "x": [1.0, 2.0, None, 3.0]})
TABLE = TextTable("Table 1", ("method", "error"), (("means", "0.5"),), ("a note",))


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", '{"format": "another"}')


OURS: dict[str, list[Callable[[Path], object]]] = {
    "encoder": [lambda path: MeansEncoder("g").fit(FRAME).save(path)],
    "moments": [lambda path: MeansEncoder("g").fit(FRAME).moments_["g"].save(path)],
    "report": [lambda path: write_page(Page("Title", "Sub", ()), path)],
    "text table": [
        lambda path: path.write_text(TABLE.render("text")),
        lambda path: path.write_text(TABLE.render("markdown")),
        lambda path: path.write_text(TABLE.render("latex")),
    ],
    ".csv": [lambda path: write_table(FRAME, path.with_suffix(".csv"))],
    ".tsv": [lambda path: write_table(FRAME, path.with_suffix(".tsv"))],
    ".csv.gz": [lambda path: write_table(FRAME, path)],
    ".tsv.gz": [lambda path: write_table(FRAME, path)],
    ".parquet": [lambda path: write_table(FRAME, path.with_suffix(".parquet"))],
    ".feather": [lambda path: write_table(FRAME, path.with_suffix(".feather"))],
    ".png": [lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n...")],
    ".svg": [lambda path: path.write_text('<svg class="marks">')],
    ".html": [lambda path: path.write_text("<!DOCTYPE html>\n<html>")],
}
STRANGE: list[bytes] = [
    b"Dear diary, today\nI wrote a program, a test, and a page.\n",
    b"#!/usr/bin/env python\nprint(1, 2)\n",
    b"a;b\n1;2\n",
    b"\x00\x01\x02",
    gzip.compress(b"Dear diary, today\nI wrote a program, a test, and a page.\n"),
    b"\x1f\x8b half a compressed file",
    b"\xff\xfe,\n1,2\n",
    b"<html>my page</html>",
    b"PK\x03\x04 half an archive",
    b'"' + b"x" * 200_000,
]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_recognised_and_not_taken_for_another(tmp_path, kind):
    for number, write in enumerate(OURS[kind]):
        path = tmp_path / f"{number}{kind if kind[0] == '.' else ''}"
        write(path)
        kinds = [other for other in KINDS if is_replaceable(path, other)]
        assert kinds == ([kind, ".html"] if kind == "report" else [kind])


@pytest.mark.parametrize("content", STRANGE)
def test_other_files_are_of_no_kind_of_ours(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    kinds = [kind for kind in KINDS if kind != ".html" and is_replaceable(path, kind)]
    assert kinds == []


def test_an_archive_of_another_program_is_no_encoder(tmp_path):
    _zip(tmp_path / "file")
    assert not is_replaceable(tmp_path / "file", "encoder")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_with_a_file_that_is_empty_or_missing_or_a_device(tmp_path, kind):
    (tmp_path / "empty").touch()
    assert is_replaceable(tmp_path / "empty", kind)
    assert is_replaceable(tmp_path / "missing", kind)
    assert is_replaceable(Path("/dev/null"), kind)


@pytest.mark.parametrize(
    ("name", "kind"), [("a.CSV", ".csv"), ("a.pq", ".parquet"), ("a.ipc", ".feather"), ("/dev/null", ".csv")]
)
def test_the_ending_tells_the_kind_of_a_table(name, kind):
    assert table_kind(Path(name)) == kind


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(FileEndingError, match=r"out.xlsx' is none of .csv"):
        table_kind(tmp_path / "out.xlsx")
