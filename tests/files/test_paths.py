"""The names that users give, and the files that they stand for."""

from __future__ import annotations

import os

import pytest

from sufrep._files import find_tables
from sufrep.errors import TableContentError, TableNotFoundError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with folders, and with files that are not part of the table."""
    monkeypatch.chdir(tmp_path)
    for name in (
        "a/2.csv",
        "a/b/1.csv",
        "a/10.csv",
        "a/.hidden.csv",
        "a/_SUCCESS",
        "a/_log/0.csv",
        "[x].csv",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("g,x\n")
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["a"], ["a/10.csv", "a/2.csv", "a/b/1.csv"]),
        (["a/*.csv"], ["a/10.csv", "a/2.csv"]),
        (["a/**/[12].csv"], ["a/2.csv", "a/b/1.csv"]),
        (["?/b"], ["a/b/1.csv"]),
        (["a/2.csv", "a/b"], ["a/2.csv", "a/b/1.csv"]),
        (["[x].csv"], ["[x].csv"]),  # a file of that name is no pattern
        (["none.csv"], ["none.csv"]),  # opening it explains what is wrong
        (["duckdb:a.db#t"], ["duckdb:a.db#t"]),
    ],
)
def test_names_stand_for_files(given, expected):
    assert find_tables(given) == expected


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a/2.csv", "./a/2.csv"], "'./a/2.csv' is read twice"),
        (["a", "a/b"], "is read twice"),
        (["a/2.csv", "sqlite:a.db#t"], "only files can be read as one table"),
    ],
)
def test_tables_that_cannot_be_one_are_refused(given, message):
    with pytest.raises(TableContentError, match=message):
        find_tables(given)


def test_a_pattern_without_files_is_reported(folder):
    with pytest.raises(
        TableNotFoundError, match=r"No file matches 'a/\*.parquet'.\nHint: check the spelling"
    ):
        find_tables(["a/*.parquet"])
    (folder / "empty").mkdir()
    with pytest.raises(TableContentError, match="'empty' is a folder without files"):
        find_tables(["empty"])


@pytest.mark.usefixtures("folder")
def test_a_folder_that_cannot_be_read_is_reported(monkeypatch):
    def refuse(place):
        raise PermissionError(13, "Permission denied", place)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(
        TableContentError, match=r"'a' cannot be read: Permission denied.\nHint: check that you may"
    ):
        find_tables(["a"])
