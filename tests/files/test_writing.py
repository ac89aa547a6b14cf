"""Files appear when they are complete, or not at all."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
import time

import polars as pl
import pytest

from sufrep._atomic import check_path
from sufrep._files import TableWriter, open_table, write_table
from sufrep.errors import FileEndingError, NotWritableError

ENDINGS = ["csv", "tsv", "csv.gz", "tsv.gz", "parquet", "feather"]
BATCH = pl.DataFrame({"level": ["01", None], "x": [1.5, None]})


@pytest.mark.parametrize("ending", ENDINGS)
def test_batches_are_appended(tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    with TableWriter(path) as writer:
        for _ in range(3):
            writer.write(BATCH)
    assert open_table(path, text=["level"]).read().equals(pl.concat([BATCH] * 3))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_old_file_stays_until_the_new_one_is_complete(tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    path.write_text("old")
    with TableWriter(path) as writer:
        writer.write(BATCH)
        assert path.read_text() == "old"
    assert path.read_bytes() != b"old"


def test_a_compressed_table_is_one_stream_that_does_not_depend_on_time_and_place(tmp_path):
    for name in ("one.csv.gz", "other.csv.gz"):
        with TableWriter(tmp_path / name) as writer:
            writer.write(BATCH)
            writer.write(BATCH)
    contents = [(tmp_path / name).read_bytes() for name in ("one.csv.gz", "other.csv.gz")]
    assert contents[0] == contents[1]
    assert pl.read_csv(contents[0]).height == 4


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
@pytest.mark.parametrize("stop", [ValueError("a slip"), KeyboardInterrupt("Ctrl-C")])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, ending, stop):
    path = tmp_path / f"out.{ending}"
    path.write_text("old")

    def job() -> None:
        with TableWriter(path) as writer:
            writer.write(BATCH)
            raise stop

    with pytest.raises(type(stop), match=str(stop)):
        job()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_killed_process_leaves_the_old_file_unchanged(tmp_path):
    path = tmp_path / "out.parquet"
    path.write_text("old")
    code = (
        "import sys, polars as pl\n"
        "from sufrep._files import TableWriter\n"
        "with TableWriter(sys.argv[1]) as writer:\n"
        "    while True:\n"
        "        writer.write(pl.DataFrame({'x': range(1000)}))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)])
    try:
        deadline = time.monotonic() + 60
        while not any(part.stat().st_size for part in tmp_path.glob(".*.part/*")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=30) == -signal.SIGKILL
    finally:
        process.kill()
    assert path.read_text() == "old"


def test_the_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "plain").touch()
    write_table(BATCH, tmp_path / "out.csv")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "out.csv")}
    assert len(modes) == 1


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_writer_without_rows_writes_nothing(tmp_path, ending):
    with TableWriter(tmp_path / f"out.{ending}"):
        pass
    assert not list(tmp_path.iterdir())


def test_a_type_that_text_cannot_hold_is_reported_with_a_hint(tmp_path):
    frame = pl.DataFrame({"a": [[1, 2]]})
    with pytest.raises(NotWritableError, match=r"nested data.\nHint: Parquet .* stores every type"):
        write_table(frame, tmp_path / "out.csv")
    write_table(frame, tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


def test_a_full_disk_is_reported(tmp_path, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    with pytest.raises(NotWritableError, match=r"out.csv': No space left on device.\nHint: choose a folder"):
        write_table(BATCH, tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


def test_an_ending_that_cannot_be_written_is_refused(tmp_path):
    for name in ("out.xlsx", "out.gz", "out.parquet.gz"):
        with pytest.raises(
            FileEndingError, match=rf"{name}' is none of .csv, .tsv, .csv.gz, .tsv.gz, .parquet"
        ):
            write_table(BATCH, tmp_path / name)


def test_places_are_checked_without_writing(tmp_path):
    check_path(tmp_path / "out.csv")
    check_path(str(tmp_path / "out.csv"))
    assert not list(tmp_path.iterdir())
    with pytest.raises(NotWritableError, match=r"there is no folder .*nowhere'.\nHint: create it first"):
        check_path(tmp_path / "nowhere" / "out.csv")
    (tmp_path / "out.csv").mkdir()
    with pytest.raises(NotWritableError, match="it is a folder"):
        check_path(tmp_path / "out.csv")
