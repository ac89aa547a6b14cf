"""Commands that are killed while they run: every file is the old one or the new one, never half of one.

Most commands are forks of a process that has done the imports, a few are started as users start them. A
command is killed after a share of the time that it takes, or as soon as an unfinished file appears, plus a
few milliseconds. An unfinished file may be left, hidden and with the ending ``.part``. It must not be in the
way of the next run, which has to succeed and to give what a run gives that nobody disturbed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from fuzz.damage import make_table
from fuzz.launcher import Command, Launched, Launcher
from fuzz.part import Case, Outcome, Part, signature
from fuzz.worker import environment
from sufrep import MeansEncoder
from sufrep._paper.store import Store

_ENCODE = "encode rows.csv --group place --method means --no-target".split()
_APPLY = "apply means.sufrep rows.csv --out".split()
_COMPARE = """
compare small.csv --target price --group place --methods means drop --models linear --folds 3 --jobs 1
--html new.html --save new.sufrep
""".split()
_SIMULATE = """
paper simulations --setups latent_linear --latent 2 --levels 3 --jobs 1 --methods drop means --seeds 3 --n 100
--trees 4 --store store
""".split()
_TABLES = ("polars", "sufrep._files", "sufrep.encoders", "sufrep.cli._encode", "sufrep.cli._apply")
COMMANDS: dict[str, Command] = {
    "encode": Command(
        [*_ENCODE, "--out", "new.csv", "--save", "new.sufrep"], ("new.csv", "new.sufrep"), _TABLES
    ),
    "encode to Parquet": Command([*_ENCODE, "--out", "new.parquet"], ("new.parquet",), _TABLES),
    "apply": Command([*_APPLY, "new.csv"], ("new.csv",), _TABLES),
    "apply to Arrow": Command([*_APPLY, "new.feather"], ("new.feather",), _TABLES),
    "compare": Command(
        _COMPARE, ("new.html", "new.sufrep"), (*_TABLES, "altair", "jinja2", "sufrep._compare._page")
    ),
    "simulations": Command(_SIMULATE, (), ("polars", "xgboost", "sufrep._paper.run")),
}
_OLD = b"place,size\nold,1\nolder,2\n"


class Whole(NamedTuple):
    """A run that nobody disturbed: its seconds, what its files hold, the results in its store."""

    seconds: float
    contents: dict[str, str]
    records: list[str]


class Kills(Part):
    """Processes of their own, killed at random moments."""

    name = "kills"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._inputs = folder / "inputs"
        _write_inputs(self._inputs)
        self._whole: dict[tuple[str, bool], Whole] = {}
        self._launcher = Launcher()
        self._messages = folder / "messages"

    def draw(self, seed: int) -> Case:
        """A command and the moment."""
        rng = np.random.default_rng(seed)
        return {
            "command": str(rng.choice(list(COMMANDS))),
            "share": round(float(rng.beta(3, 1)), 4),
            "at_the_file": bool(rng.random() < 0.5),
            "milliseconds": round(float(rng.exponential(4)), 2),
            "signal": str(rng.choice(["SIGKILL"] * 8 + ["SIGTERM", "SIGINT"])),
            "old": bool(rng.random() < 0.5),
            # With the interpreter's start, as users run it; that takes many times as long.
            "process": bool(rng.random() < 0.1),
        }

    def check(self, case: Case) -> Outcome:
        """Run the command, kill it, look at the files, and run it again."""
        name, real = case["command"], case["process"]
        whole = self._undisturbed(name, real)
        place = self._fresh("case")
        if case["old"]:
            for file in whole.contents:
                shutil.copy(self._inputs / f"old{Path(file).suffix}", place / file)
        old = _contents(place, name)
        process = self._start(name, place, real)
        ran = _stop(process, place, case, whole.seconds)
        code = process.wait() if case["signal"] == "SIGINT" else 0
        problem = _problem(place, name, code, old, whole) or self._problem_of_the_next_run(place, name, whole)
        if not problem:
            return Outcome(f"stopped by {case['signal']}" if ran else "ended before")
        what = f"{name}, {case['signal']}: {problem[:60]}"
        return Outcome("half", f"{case}: {problem}", signature("kills", what))

    def _undisturbed(self, name: str, real: bool) -> Whole:
        """A run that nobody disturbs."""
        if (name, real) not in self._whole:
            place = self._fresh("whole")
            started = time.monotonic()
            if self._start(name, place, real).wait():
                raise RuntimeError(f"{name} fails when nobody disturbs it: {self._messages.read_text()}")
            seconds = time.monotonic() - started
            self._whole[name, real] = Whole(seconds, _contents(place, name), _records(place))
        return self._whole[name, real]

    def _problem_of_the_next_run(self, place: Path, name: str, whole: Whole) -> str:
        if self._start(name, place, real=False).wait():
            return f"the next run fails: {self._messages.read_text(errors='replace')[-500:]}"
        if (_contents(place, name), _records(place)) != (whole.contents, whole.records):
            return "the next run gives something else than a run that nobody disturbed"
        return ""

    def _start(self, name: str, place: Path, real: bool) -> Launched | subprocess.Popen[bytes]:
        command = COMMANDS[name]
        if not real:
            return self._launcher.start(command, place, self._messages)
        with self._messages.open("wb") as messages:
            return subprocess.Popen(
                [sys.executable, "-m", "sufrep.cli", *command.arguments],
                cwd=place,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=messages,
                start_new_session=True,
            )

    def close(self) -> None:
        """End the launcher."""
        self._launcher.close()

    def _fresh(self, name: str) -> Path:
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self._inputs, place)
        return place


def _problem(place: Path, name: str, code: int, old: dict[str, str], whole: Whole) -> str:
    """What is wrong with the files of a command that was stopped."""
    for file, found in _contents(place, name).items():
        if found not in (old[file], whole.contents[file]):
            return f"{file} is neither the old one nor the new one"
    odd = [path.name for path in place.iterdir() if path.name.startswith(".") and path.suffix != ".part"]
    if odd:
        return f"it leaves {odd[0]}"
    if not set(_records(place)) <= set(whole.records):
        return "the store holds results that no run gives"
    return "" if code in (0, 130, -signal.SIGINT) else f"after Ctrl-C the exit code is {code}"


def _write_inputs(folder: Path) -> None:
    """A table of many rows, so that writing takes a while; a small one; an encoder; and old outputs."""
    folder.mkdir()
    small = make_table()
    small.write_csv(folder / "small.csv")
    pl.concat([small] * 400).write_csv(folder / "rows.csv")
    MeansEncoder("place").fit(small).save(folder / "means.sufrep")
    MeansEncoder("place", covariates=["size"]).fit(small).save(folder / "old.sufrep")
    (folder / "old.csv").write_bytes(_OLD)
    small.write_parquet(folder / "old.parquet")
    small.write_ipc(folder / "old.feather")
    (folder / "old.html").write_text(
        '<!doctype html><meta name="generator" content="sufrep"><p>old</p></html>'
    )


def _stop(process: Launched | subprocess.Popen[bytes], place: Path, case: Case, seconds: float) -> bool:
    """Send the signal at its moment; return whether the process still ran."""
    started = time.monotonic()
    while process.poll() is None:
        if case["at_the_file"]:
            if _is_writing(place):
                time.sleep(case["milliseconds"] / 1000)
                break
        elif time.monotonic() - started >= case["share"] * seconds:
            break
        time.sleep(0.0005)
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.Signals[case["signal"]])
    process.wait()
    return running


def _is_writing(place: Path) -> bool:
    """Whether an unfinished file is there, or the store has its first line."""
    with os.scandir(place) as entries:
        return any(entry.name.endswith(".part") or entry.name == "store" for entry in entries)


def _contents(place: Path, name: str) -> dict[str, str]:
    """What the files of a command hold, in a form that does not depend on the moment of writing."""
    found = {}
    for file in COMMANDS[name].outputs:
        path = place / file
        content = path.read_bytes() if path.exists() else b""
        found[file] = hashlib.sha256(_without_times(file, content)).hexdigest() if content else ""
    return found


def _without_times(file: str, content: bytes) -> bytes:
    """A report states when it was made, and how long that took: only its beginning and its end count."""
    if not file.endswith(".html"):
        return content
    return content[:15] + content.rstrip()[-7:] + (b"old" if len(content) < 1000 else b"new")


def _records(place: Path) -> list[str]:
    """The results of a store, without the times that they took."""
    if not (place / "store").exists():
        return []
    records = Store(place / "store", "simulations").records()
    return [repr({key: value for key, value in record.items() if "second" not in key}) for record in records]
