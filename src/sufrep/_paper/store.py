"""Results on disk: one line of JSON for each finished trial, appended as soon as it is finished.

Readers see complete lines only: an incomplete last line, left by a killed run, is ignored, and cut off before
the next line is written. So a run that is killed loses only the trials that it was running.

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

from sufrep._atomic import explained, replace_file
from sufrep._paper.plan import EffectTrial, EmpiricalTrial, SimulationTrial
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
    "causal": EffectTrial,
}
# The result of a trial that every record has; None if the trial failed.
_RESULTS: dict[Experiment, str] = {
    "simulations": "loss",
    "empirical": "loss",
    "benchmark": "loss",
    "causal": "estimate",
}
# How that result was called before there were classes; the files of results/ have this name.
_EARLIER_NAMES = {"mse": "loss"}
Record = dict[str, Any]


def trial_key(record: Record) -> tuple[Any, ...]:
    """Return the fields that identify a trial within its experiment."""
    trial: type[Any] = EmpiricalTrial
    if "setup" in record:
        trial = SimulationTrial
    elif "arm" in record:
        trial = EffectTrial
    return tuple(record[field.name] for field in fields(trial))


class Store:
    """The results of one experiment in a folder.

    Parameters
    ----------
    folder : str or path
        Created when the first result is written.
    experiment : {"simulations", "empirical", "benchmark", "causal"}
        The file is ``<experiment>.jsonl``. If it does not exist, ``<experiment>.csv`` is read, which
        :meth:`export` writes.
    """

    def __init__(self, folder: str | os.PathLike[str], experiment: Experiment) -> None:
        self.folder = Path(folder)
        self.experiment = experiment
        self.path = self.folder / f"{experiment}.jsonl"

    def records(self) -> list[Record]:
        """Return all finished trials, sorted."""
        if self.source == self.csv_path:
            return self._read_csv()
        records = [line["trial"] for line in self._lines() if "trial" in line]
        return sorted(records, key=trial_key)

    def runs(self) -> list[Record]:
        """Return command, versions and settings of each run, oldest first."""
        return [line["run"] for line in self._lines() if "run" in line]

    @property
    def csv_path(self) -> Path:
        """The file that :meth:`export` writes, read if there is no other."""
        return self.folder / f"{self.experiment}.csv"

    @property
    def source(self) -> Path:
        """The file that is read."""
        return self.csv_path if self.csv_path.exists() and not self.path.exists() else self.path

    @contextmanager
    def writing(self, settings: Record) -> Iterator[Writer]:
        """Open the store for appending: one run at a time, and only with the settings of earlier runs."""
        if self.source == self.csv_path:
            raise StoreError(
                self.csv_path,
                "is an export without settings and versions, which can only be read",
                "name another folder with --store.",
            )
        for run in self.runs():
            if run["settings"] != settings:
                names = {**settings, **run["settings"]}
                differing = [name for name in names if run["settings"].get(name) != settings.get(name)]
                raise StoreError(
                    self.path,
                    f"holds results with different settings ({', '.join(differing)})",
                    "name another folder with --store, or use the same settings.",
                )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise StoreError(self.path, f"cannot be written: {error.strerror}", _WRITABLE) from error
        try:
            self._lock(descriptor)
            _cut_incomplete_line(descriptor)
            yield Writer(self.path, descriptor, settings)
        finally:
            os.close(descriptor)  # which also releases the lock

    def export(self, folder: Path) -> Path:
        """Write all results to ``<experiment>.csv``, completely or not at all, and return its path."""
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
        lines = self.path.read_bytes().split(b"\n")[:-1]  # what follows the last line end is incomplete
        found = []
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
            except ValueError:
                entry = None
            if isinstance(entry, dict) and isinstance(entry.get("trial"), dict):
                entry["trial"] = _with_present_names(entry["trial"])
            what = f"is damaged: line {number} of {len(lines)} is"
            if not isinstance(entry, dict):
                raise StoreError(self.path, f"{what} not a JSON object", _DELETE)
            if not (_is_run(entry.get("run")) or self._is_trial(entry.get("trial"))):
                raise StoreError(
                    self.path, f"{what} neither a trial of the {self.experiment} nor a run", _DELETE
                )
            found.append(entry)
        return found

    def _read_csv(self) -> list[Record]:
        try:
            with self.csv_path.open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
        except (OSError, UnicodeError, csv.Error) as error:
            raise StoreError(self.csv_path, f"cannot be read: {error}", "export it again.") from error
        records = [_with_present_names({name: _value(text) for name, text in row.items()}) for row in rows]
        for number, record in enumerate(records, start=2):
            if not self._is_trial(record):
                what = f"is damaged: line {number} is not a trial of the {self.experiment}"
                raise StoreError(self.csv_path, what, "export it again.")
        return records

    def _is_trial(self, record: Any) -> bool:
        """Whether a record has the fields of a trial, each of its type, and its result, or None for that."""
        result = _RESULTS[self.experiment]
        if not isinstance(record, dict) or result not in record:
            return False
        kinds = {field.name: _KINDS.get(str(field.type), str) for field in fields(TRIALS[self.experiment])}
        right = all(type(record.get(name)) is kind for name, kind in kinds.items())
        return right and isinstance(record[result], (int, float, type(None)))

    def _lock(self, descriptor: int) -> None:
        if fcntl is None:  # pragma: no cover
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreError(
                self.path,
                "is being written by another run",
                "wait for it to finish, or name another folder with --store.",
            ) from error


class Writer:
    """A store that is open for appending; returned by :meth:`Store.writing`."""

    def __init__(self, path: Path, descriptor: int, settings: Record) -> None:
        self._path, self._descriptor, self._settings = path, descriptor, settings
        self.has_run = False

    def append_run(self, command: str, versions: dict[str, str]) -> None:
        """Record the command and versions of a run."""
        self._write({"run": {"command": command, "versions": versions, "settings": self._settings}})
        self.has_run = True

    def append(self, record: Record) -> None:
        """Append one finished trial; when this returns, it is on the disk."""
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
            with suppress(OSError):  # if this fails too, the next run cuts the line off
                os.ftruncate(self._descriptor, size)
            raise StoreError(
                self._path,
                f"cannot be written: {error.strerror}",
                "free some space and run the same command again; all finished trials are kept.",
            ) from error


def export_all(folder: Path, out: Path) -> list[Path]:
    """Write the results of all experiments that have any as CSV files."""
    stores = [Store(folder, experiment) for experiment in TRIALS]
    found = [store for store in stores if store.records()]
    if not found:
        raise StoreError(folder, "holds no results", "run `sufrep paper simulations` first.")
    return [store.export(out) for store in found]


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all."""
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text.encode())


def _with_present_names(record: Record) -> Record:
    return {_EARLIER_NAMES.get(name, name): value for name, value in record.items()}


def _is_run(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("settings"), dict)


# Types of a trial's fields by their annotations; all others are names.
_KINDS = {"int": int, "bool": bool}
_DELETE = "delete that line; its trial will be run again."
_WRITABLE = "name a writable folder on a disk with free space."


def _cut_incomplete_line(descriptor: int) -> None:
    """Cut off an incomplete last line, left by a killed run."""
    size = os.fstat(descriptor).st_size
    data = os.pread(descriptor, size, 0)
    os.ftruncate(descriptor, data.rfind(b"\n") + 1)


def _value(text: Any) -> Any:
    """Parse a field of our own CSV files: empty, a boolean, a number or a name."""
    if not isinstance(text, str):
        return None  # a line with fewer or more fields than the header
    if text in ("", "True", "False"):
        return {"": None, "True": True, "False": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
