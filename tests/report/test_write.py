"""A page in a file: whole or not at all, with errors that say what to do."""

from __future__ import annotations

import os
import tempfile

import pytest

from sufrep._report import Page, render_page, write_page
from sufrep.errors import NotWritableError

PAGE = Page("title", "subtitle", ("ü 🦆 verdict",))


def test_what_is_written_is_what_is_rendered(tmp_path):
    path = write_page(PAGE, str(tmp_path / "report.html"))
    assert path == tmp_path / "report.html"
    assert path.read_text(encoding="utf-8") == render_page(PAGE)
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_replaces_what_stood_there_and_others_may_read_it(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    write_page(PAGE, path)
    assert "verdict" in path.read_text(encoding="utf-8")
    assert path.stat().st_mode & 0o444 == 0o444


def test_a_disk_that_is_full_leaves_the_old_page_and_nothing_else(tmp_path, monkeypatch):
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(NotWritableError, match=r"report.html'?: No space left on device\.\nHint: choose"):
        write_page(PAGE, path)
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("report.html", "old")]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NotWritableError, match=r"the folder '.*missing' does not exist\.\nHint: create it"):
        write_page(PAGE, tmp_path / "missing" / "report.html")


def test_a_path_that_is_a_folder_is_refused(tmp_path):
    with pytest.raises(NotWritableError, match=r"it is a folder\.\nHint: name a file in it"):
        write_page(PAGE, tmp_path)


def test_a_folder_that_may_not_be_written_is_an_error_with_a_hint(tmp_path, monkeypatch):
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(NotWritableError, match=r"Permission denied\.\nHint: choose a folder"):
        write_page(PAGE, tmp_path / "report.html")
