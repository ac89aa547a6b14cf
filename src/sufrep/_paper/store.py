"""Results on disk: one line of JSON for each finished trial, appended at once.

A line is written whole or not at all as far as readers are concerned: what a killed run left of a last line,
which has no line end, is not read, and is cut off before the next line is written. So a run that is killed
at any moment loses the trials that were under way, and nothing else.

A line is ``{"run": {...}}`` (the command, versions and settings of a run) or ``{"trial": {...}}``.
"""

from __future__ import annotations

import csv
import io
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sufrep._paper.plan import EmpiricalTrial, SimulationTrial
from sufrep.errors import StoreError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no advisory locks of this kind
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sufrep._paper.plan import Experiment

TRIALS: dict[Experiment, type[Any]] = {
    "simulations": SimulationTrial,
    "empirical": EmpiricalTrial,
    "benchmark": EmpiricalTrial,
}
Record = dict[str, Any]


def trial_key(record: Record) -> tuple[Any, ...]:
    """What tells a trial from all others of its experiment."""
    trial = SimulationTrial if "setup" in record else EmpiricalTrial
    return tuple(record[field.name] for field in fields(trial))


class Store:
    """The results of one experiment in a folder.

    Parameters
    ----------
    folder : str or path
        Made when the first result is written.
    experiment : {"simulations", "empirical", "benchmark"}
        The file is ``<experiment>.jsonl``. Where there is none, ``<experiment>.csv`` is read, which
        :meth:`export` writes.
    """

    def __init__(self, folder: str | os.PathLike[str], experiment: Experiment) -> None:
        self.folder = Path(folder)
        self.experiment = experiment
        self.path = self.folder / f"{experiment}.jsonl"

    def records(self) -> list[Record]:
        """All finished trials, sorted by what they are."""
        if not self.path.exists() and self.csv_path.exists():
            return self._read_csv()
        records = [line["trial"] for line in self._lines() if "trial" in line]
        return sorted(records, key=trial_key)

    def runs(self) -> list[Record]:
        """Command, versions and settings of each run, in the order of time."""
        return [line["run"] for line in self._lines() if "run" in line]

    @property
    def csv_path(self) -> Path:
        """Where :meth:`export` writes into the same folder, and what is read when there is nothing else."""
        return self.folder / f"{self.experiment}.csv"

    @contextmanager
    def writing(self, settings: Record) -> Iterator[Writer]:
        """Append results; one run at a time, and only with the settings of the runs before."""
        if self.csv_path.exists() and not self.path.exists():
            raise StoreError(
                self.csv_path,
                "is an export, which tells neither settings nor versions and is only read",
                "name another folder with --store.",
            )
        for run in self.runs():
            if run["settings"] != settings:
                names = {**settings, **run["settings"]}
                differing = [name for name in names if run["settings"].get(name) != settings.get(name)]
                raise StoreError(
                    self.path,
                    f"holds results with other settings ({', '.join(differing)})",
                    "name another folder with --store, or the same settings.",
                )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise StoreError(self.path, f"cannot be written: {error.strerror}", _WRITABLE) from error
        try:
            self._lock(descriptor)
            _cut_torn_line(descriptor)
            yield Writer(self.path, descriptor, settings)
        finally:
            os.close(descriptor)  # which also gives the lock back

    def export(self, folder: Path) -> Path:
        """Write all results into ``<experiment>.csv``, whole or not at all; the path of the file."""
        text = io.StringIO()
        records = self.records()
        writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        path = Store(folder, self.experiment).csv_path
        write_text(path, text.getvalue())
        return path

    def _lines(self) -> list[Record]:
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")[:-1]  # what follows the last line end is torn
        found = []
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
            except ValueError:
                entry = None
            if not isinstance(entry, dict):
                raise StoreError(
                    self.path,
                    f"is damaged: line {number} of {len(lines)} is no JSON object",
                    "delete that line; its trial is then run again.",
                )
            found.append(entry)
        return found

    def _read_csv(self) -> list[Record]:
        with self.csv_path.open(newline="", encoding="utf-8") as file:
            return [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(file)]

    def _lock(self, descriptor: int) -> None:
        if fcntl is None:  # pragma: no cover
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreError(
                self.path,
                "is being written by another run",
                "wait for it, or name another folder with --store.",
            ) from error


class Writer:
    """An open store; made by :meth:`Store.writing`."""

    def __init__(self, path: Path, descriptor: int, settings: Record) -> None:
        self._path, self._descriptor, self._settings = path, descriptor, settings

    def append_run(self, command: str, versions: dict[str, str]) -> None:
        """Say what is about to be run."""
        self._write({"run": {"command": command, "versions": versions, "settings": self._settings}})

    def append(self, record: Record) -> None:
        """Store one finished trial; when this returns, it is on the disk."""
        self._write({"trial": record})

    def _write(self, line: Record) -> None:
        data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        size = os.fstat(self._descriptor).st_size
        try:
            written = os.write(self._descriptor, data)
            if written < len(data):
                raise OSError(28, "only part of a line could be written")  # ENOSPC
            os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):  # else the next run cuts the line off
                os.ftruncate(self._descriptor, size)
            raise StoreError(
                self._path,
                f"cannot be written: {error.strerror}",
                "free some space and start the same command again; all finished trials are kept.",
            ) from error


def export_all(folder: Path, out: Path) -> list[Path]:
    """Write the results of all experiments as CSV files, as far as there are any."""
    stores = [Store(folder, experiment) for experiment in TRIALS]
    found = [store for store in stores if store.records()]
    if not found:
        raise StoreError(folder, "holds no results", "run `sufrep paper simulations` first.")
    return [store.export(out) for store in found]


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise StoreError(path, f"cannot be written: {error.strerror}", _WRITABLE) from error


_WRITABLE = "name a folder that can be written, with space left on its disk."


def _cut_torn_line(descriptor: int) -> None:
    """Cut off what a killed run left of a last line."""
    size = os.fstat(descriptor).st_size
    data = os.pread(descriptor, size, 0)
    os.ftruncate(descriptor, data.rfind(b"\n") + 1)


def _value(text: str) -> Any:
    """A field of our own CSV files: empty, a truth value, a number or a name."""
    if text in ("", "True", "False"):
        return {"": None, "True": True, "False": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
