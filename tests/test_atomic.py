"""Files are written completely or not at all, and keep what their owner decided about them."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sufrep import MeansEncoder
from sufrep._atomic import check_path, is_standard_output, replace_file, replacing_folder
from sufrep._files import write_table
from sufrep._paper.store import write_text
from sufrep.errors import NotWritableError

NOBODY = 65534
FRAME = pl.DataFrame({"g": ["a", "b"] * 200, "x": [float(j) / 7 for j in range(400)]})

WRITERS: dict[str, Callable[[Path], Any]] = {
    "bytes": lambda path: replace_file(path, b"new" * 1000),
    "csv": lambda path: write_table(FRAME, path.with_suffix(".csv")),
    "parquet": lambda path: write_table(FRAME, path.with_suffix(".parquet")),
    "feather": lambda path: write_table(FRAME, path.with_suffix(".feather")),
    "encoder": lambda path: MeansEncoder("g").fit(FRAME).save(path),
    "text": lambda path: write_text(path, "new" * 1000),
}
ENDINGS = {"csv": ".csv", "parquet": ".parquet", "feather": ".feather"}


@pytest.fixture(params=WRITERS)
def writer(request) -> tuple[str, Callable[[Path], Any]]:
    """The ending of a file, and a function that writes it."""
    return ENDINGS.get(request.param, ".out"), WRITERS[request.param]


@pytest.fixture
def owned() -> Iterator[Path]:
    """A folder in which this process has no more rights than an ordinary user."""
    folder = Path(tempfile.mkdtemp())
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    before = (os.getegid(), os.geteuid()) if is_root else None
    if before:
        os.chown(folder, NOBODY, NOBODY)
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if before:
            os.seteuid(before[1])
            os.setegid(before[0])
        folder.chmod(0o700)
        shutil.rmtree(folder)


def test_a_replaced_file_keeps_its_mode(tmp_path, writer):
    ending, write = writer
    path = tmp_path / f"out{ending}"
    path.write_text("old")
    path.chmod(0o600)
    write(path)
    assert path.read_bytes() != b"old"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_file_has_the_mode_of_the_umask(tmp_path, writer):
    ending, write = writer
    before = os.umask(0o027)
    try:
        write(tmp_path / f"out{ending}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / f"out{ending}").stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can change owners")
def test_a_replaced_file_keeps_its_owner(tmp_path, writer):
    ending, write = writer
    path = tmp_path / f"out{ending}"
    path.write_text("old")
    os.chown(path, NOBODY, NOBODY)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY, NOBODY)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can change owners")
def test_a_group_that_cannot_be_kept_loses_its_rights_to_nobody_else(owned):
    path = owned / "out"
    path.write_text("old")
    os.seteuid(0)
    os.chown(path, 0, 0)
    path.chmod(0o666)
    os.seteuid(NOBODY)
    replace_file(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o606


def test_a_link_is_followed(tmp_path, writer):
    ending, write = writer
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / f"target{ending}"
    link = tmp_path / f"out{ending}"
    link.symlink_to(Path("folder") / target.name)
    for _ in range(2):  # the target is created, then replaced
        write(link)
        assert link.is_symlink()
        assert target.stat().st_size > 10
    assert [path.name for path in (tmp_path / "folder").iterdir()] == [target.name]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_written_to(tmp_path, writer):
    ending, write = writer
    plain, pipe = tmp_path / f"plain{ending}", tmp_path / f"pipe{ending}"
    write(plain)
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write(pipe)
    reader.join(timeout=30)
    assert found == [plain.read_bytes()]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_device_is_written_to():
    with pytest.raises(NotWritableError, match=r"'/dev/full': No space left on device.\nHint: choose"):
        replace_file("/dev/full", b"new")
    with pytest.raises(NotWritableError, match=r"'/dev/full': No space left on device.\nHint: choose"):
        write_table(FRAME, "/dev/full")
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="this system has no /dev/stdout")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_standard_output_is_appended_to_even_if_it_is_a_file(tmp_path, name):
    (tmp_path / "link").symlink_to("/dev/stdout")
    log = tmp_path / "log"
    log.write_text("old\n")
    code = "import sys; from sufrep._atomic import replace_file; print('first'); "
    code += "replace_file(sys.argv[1], b'second\\n')"
    with log.open("ab") as file:
        subprocess.run([sys.executable, "-c", code, name], stdout=file, cwd=tmp_path, check=True)
    assert log.read_text() == "old\nfirst\nsecond\n"
    assert is_standard_output(tmp_path / "link")
    assert not is_standard_output(log)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, writer, step):
    ending, write = writer
    path = tmp_path / f"out{ending}"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), full)
    with pytest.raises(NotWritableError, match=r"Cannot write .*: No space left on device.\nHint: choose"):
        write(path)
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [(path.name, "old")]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of file sizes are set as on Linux")
def test_a_file_that_reaches_a_size_limit_leaves_the_old_one(tmp_path, writer, limited_file_size):
    ending, write = writer
    path = tmp_path / f"out{ending}"
    path.write_text("old")
    with (
        limited_file_size(),
        pytest.raises(NotWritableError, match=r"Cannot write .*: File too large.*\nHint: choose"),
    ):
        write(path)
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [(path.name, "old")]


def test_a_write_protected_file_is_kept(owned, writer):
    ending, write = writer
    path = owned / f"out{ending}"
    path.write_text("old")
    path.chmod(0o400)
    for attempt in (write, check_path):
        with pytest.raises(NotWritableError, match=r"it is write-protected.\nHint: name another file"):
            attempt(path)
    assert [(found.name, found.read_text()) for found in owned.iterdir()] == [(path.name, "old")]


def test_a_folder_without_permission_is_reported(owned, writer):
    ending, write = writer
    path = owned / f"out{ending}"
    path.write_text("old")
    owned.chmod(0o500)
    for attempt in (write, check_path):
        with pytest.raises(NotWritableError, match=r"Permission denied.\nHint: choose a folder in which you"):
            attempt(path)
    assert path.read_text() == "old"


def test_nobody_can_read_the_unfinished_file(tmp_path, monkeypatch):
    modes: list[int] = []

    def look(*_: object) -> None:
        modes.extend(stat.S_IMODE(found.stat().st_mode) for found in tmp_path.iterdir())

    monkeypatch.setattr(os, "fsync", look)
    replace_file(tmp_path / "out", b"new")
    assert modes == [0o700]


def test_links_that_somebody_planted_next_to_the_output_are_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("old")
    for name in ("out.part", ".out.part", "out.tmp"):
        (tmp_path / name).symlink_to(victim)
    replace_file(tmp_path / "out", b"new")
    assert victim.read_text() == "old"


def test_a_circle_of_links_is_reported(tmp_path):
    (tmp_path / "out").symlink_to("out")
    with pytest.raises(NotWritableError, match="Too many levels of symbolic links"):
        replace_file(tmp_path / "out", b"new")


def test_long_names_are_written(tmp_path):
    path = tmp_path / ("ä" * 120)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"


# Folders


def write_folder(path: Path, content: str) -> None:
    with replacing_folder(path) as whole:
        whole.mkdir()
        (whole / "part").write_text(content)


def test_a_folder_takes_the_place_of_an_older_one(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for content in ("first", "second"):
        write_folder(tmp_path / "out", content)
        write_folder(tmp_path / "link", content)
        assert (tmp_path / "out/part").read_text() == (tmp_path / "real/part").read_text() == content
    assert (tmp_path / "link").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "out", "real"]


def test_a_folder_that_is_not_finished_leaves_the_older_one(tmp_path):
    write_folder(tmp_path / "out", "first")
    with pytest.raises(UnicodeEncodeError, match="surrogates"):
        write_folder(tmp_path / "out", "a slip \ud800")
    with replacing_folder(tmp_path / "out"):
        pass  # nothing was written
    assert (tmp_path / "out/part").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_cannot_take_its_name_gives_it_back_to_the_older_one(tmp_path, monkeypatch):
    write_folder(tmp_path / "out", "first")
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if path.name == "whole":
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(NotWritableError, match="Input/output error"):
        write_folder(tmp_path / "out", "second")
    assert (tmp_path / "out/part").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_places_where_no_folder_can_be_are_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotWritableError, match=r"it is a file.\nHint: name a folder"):
        write_folder(tmp_path / "file", "")
    with pytest.raises(NotWritableError, match="there is no folder"):
        write_folder(tmp_path / "none/out", "")
