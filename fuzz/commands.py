"""Random command lines over sound and broken files.

Whatever is typed: the exit code is 0, 1, 2 or 130, nobody sees a traceback, nothing in a file controls the
terminal, files that are read stay as they are, and so does everything else unless the command succeeds. What
it then wrote can be read.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fuzz.damage import write_originals
from fuzz.grammar import command_line
from fuzz.part import Case, Outcome, Part, signature
from fuzz.worker import Worker

EXIT_CODES = (0, 1, 2, 130)
_OUTPUTS = ("--out", "--save", "--html", "--store")
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class Commands(Part):
    """Command lines, run inside a worker; a few as processes of their own."""

    name = "commands"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        write_inputs(folder / "inputs")
        self._worker = Worker("commands", folder)

    def draw(self, seed: int) -> Case:
        """A command line."""
        rng = np.random.default_rng(seed)
        arguments = command_line(rng)
        return {"arguments": arguments, "process": bool(rng.random() < 0.02)}

    def check(self, case: Case) -> Outcome:
        """Run the command in the worker."""
        outcome = self._worker.check(case)
        if isinstance(outcome, Outcome):
            return outcome
        return Outcome(outcome, f"the process ended: {outcome}", signature("commands", f"ended by {outcome}"))

    def close(self) -> None:
        """End the worker."""
        self._worker.close()


# Files


def write_inputs(folder: Path) -> None:
    """Write tables, encoders and other files, sound and broken, into a new folder."""
    folder.mkdir()
    write_originals(folder)
    rng = np.random.default_rng(1)
    sound = (folder / "table.csv").read_bytes()
    texts = {
        "empty.csv": b"",
        "header.csv": b"place,size,price\n",
        "one_row.csv": b"place,size,price\nnorth,1.5,3\n",
        "one_level.csv": b"place,size,price\n" + b"".join(b"north,%d,%d\n" % (j, j % 7) for j in range(20)),
        "nulls.csv": b"place,size,price\n" + b",,\n" * 12,
        "mostly_nulls.csv": b"place,size,price\n" + b"north,,1\n,2,\nsouth,,3\n" * 5,
        "constant.csv": b"place,size,price\n" + b"north,2,1\nsouth,2,1\n" * 8,
        "large.csv": b"place,size,price\n"
        + b"".join(b"%d,%d,%de300\n" % (2**64 + j % 3, 2**63 + j, j % 9) for j in range(20)),
        "infinite.csv": b"place,size,price\n" + b"north,inf,1\nsouth,nan,2\nnorth,-inf,inf\n" * 6,
        "emoji.csv": "place,size,price,😀\n".encode()
        + "👩‍🚀,1,2,3\nKöln,2,3,4\n\u202eabc,4,5,6\n".encode() * 6,
        "controls.csv": b"place,size,price,\x1b[31mred\n" + b"\x1b]0;title\x07,1,2,3\nb\x9b,2,3,4\n" * 8,
        "twice.csv": b"place,size,size,price\n" + b"north,1,2,3\nsouth,4,5,6\n" * 8,
        "ragged.csv": b"place,size,price\nnorth,1\nsouth,2,3,4\n",
        "quotes.csv": b'place,size,price\n"north,1,2\nsouth,3,4\n',
        "latin.csv": b"place,size,price\n" + "Köln,1,2\nWürzburg,3,4\n".encode("latin-1") * 8,
        "wide.csv": ",".join(f"c{j}" for j in range(300)).encode() + (b"\n1" + b",1" * 299) * 12,
        "classes.csv": b"place,size,price\n" + b"north,1,yes\nsouth,2,no\neast,3,yes\n" * 8,
        "clash.csv": b"place,size,place_mean_size,price\n" + b"north,1,2,3\nsouth,4,5,6\n" * 8,
        "random.csv": rng.bytes(500),
        "name [1] *.csv": sound,
        "text.parquet": sound,
        "cut.csv.gz": gzip.compress(sound, mtime=0)[:-20],
        "cut.parquet": (folder / "table.parquet").read_bytes()[:-50],
        "cut.sufrep": (folder / "means.sufrep").read_bytes()[:-50],
        "text.sufrep": b"no encoder\n",
        "old.csv": sound,
        "old.html": b"<!doctype html><p>mine</p>",
        "old.sufrep": (folder / "means.sufrep").read_bytes(),
        "notes.csv": b"Dear diary\n\ntoday, I wrote a fuzzer\n",
        "folder/inside.csv": sound,
        "broken_store/simulations.jsonl": b'{"trial": {"setup": 1}}\n{"tri',
        "empty_store/simulations.jsonl": b"",
    }
    for name, content in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    _write_parts(folder)
    (folder / "link.csv").symlink_to("table.csv")
    (folder / "dangling.csv").symlink_to("not_there.csv")
    (folder / "circle.csv").symlink_to("circle.csv")


def _write_parts(folder: Path) -> None:
    """Write folders of files that are one table, and one of files that are none."""
    table = pl.read_parquet(folder / "table.parquet")
    half = len(table) // 2
    parts = {"a": table[:half], "b": table[half:]}
    for name in ("parts", "csvs", "mixed"):
        (folder / name).mkdir()
    for name, rows in parts.items():
        rows.write_parquet(folder / "parts" / f"{name}.parquet")
        rows.write_csv(folder / "csvs" / f"{name}.csv")
    parts["a"].write_parquet(folder / "mixed" / "a.parquet")
    other = parts["b"].with_columns(pl.col("size").cast(pl.String), more=1)
    other.write_parquet(folder / "mixed" / "b.parquet")


# In the worker


def checker(folder: Path) -> Callable[[Case], Outcome]:
    """What the worker does with a case."""
    from sufrep.cli import main

    def check(case: Case) -> Outcome:
        place = folder / "case"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(folder / "inputs", place, symlinks=True)
        os.chdir(place)
        before = _snapshot(place)
        run = _run_process if case["process"] else _run_inside
        code, out, err = run(main, case["arguments"])
        problem = _problem(case["arguments"], code, out, err) or _changes(
            case["arguments"], code, place, before
        )
        if not problem:
            return Outcome(f"exit {code}")
        what = f"{' '.join(case['arguments'])[:500]!r}: {problem}\n{err[-1500:]}"
        return Outcome(
            f"exit {code}", what, signature("commands", f"{case['arguments'][:1]}: {_general(problem)}")
        )

    return check


def _general(problem: str) -> str:
    """A problem without the numbers and names that differ between cases of the same defect."""
    return re.sub(r"0x[0-9a-f]+|\d+|'[^']*('|$)", "…", problem)[:200]


def _run_inside(main: Callable[[], None], arguments: list[str]) -> tuple[int, str, str]:
    """Run the command in this process; all that it prints goes to two files, also from libraries in C."""
    saved = sys.argv, sys.stdout, sys.stderr, os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.argv = ["sufrep", *arguments]
        sys.stdout, sys.stderr = (os.fdopen(os.dup(stream), "w", encoding="utf-8") for stream in (1, 2))
        code = 0
        try:
            main()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        except BaseException:
            traceback.print_exc()
            code = 1
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.close()
            sys.argv, sys.stdout, sys.stderr = saved[:3]
            for stream, copy in zip((1, 2), saved[3:], strict=True):
                os.dup2(copy, stream)
                os.close(copy)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", errors="replace"))
    return code, *texts


def _run_process(_: Callable[[], None], arguments: list[str]) -> tuple[int, str, str]:
    """Run the command as a user does."""
    done = subprocess.run(
        [sys.executable, "-m", "sufrep.cli", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.returncode, *(text.decode("utf-8", errors="replace") for text in (done.stdout, done.stderr))


def _problem(arguments: list[str], code: int, out: str, err: str) -> str:
    """What is wrong with the exit code and with what was printed."""
    if code not in EXIT_CODES:
        return f"the exit code is {code}"
    if "Traceback (most" in err + out:
        return f"a traceback, {err.strip().splitlines()[-1][:300]}"
    if "Unexpected error" in err:
        return err[err.index("Unexpected error") :].splitlines()[0][:300]
    if "panicked at" in err:
        return f"a panic is printed, {err[err.index('panicked at') :][:150]}"
    if code and not (err + out).strip():
        return "it fails without a message"
    # Tables are printed as they are.
    printed = err if {"-", "/dev/stdout"} & set(arguments) else out + err
    found = _UNSAFE.search(printed)
    return f"it prints the control character {found[0]!r}" if found else ""


def _snapshot(place: Path) -> dict[str, str]:
    """What each file holds, and where each link leads."""
    found = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if path.is_symlink():
            found[name] = f"link to {os.readlink(path)}"
        else:
            found[name] = "folder" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _changes(arguments: list[str], code: int, place: Path, before: dict[str, str]) -> str:
    """What is wrong with the files afterwards."""
    after = _snapshot(place)
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    left = [name for name in changed if name.endswith((".part", ".tmp")) or "/.nfs" in name]
    if left:
        return f"an unfinished file is left, {left[0]}"
    named = _values(arguments, _OUTPUTS)
    allowed = {os.path.relpath(os.path.realpath(place / value), place) for value in named if value}
    read = {os.path.relpath(os.path.realpath(place / name), place) for name in _inputs(arguments)}
    for name in changed:
        inside = {name, *(str(parent) for parent in Path(name).parents)}
        if not inside & allowed:
            return f"{name} was changed, which no option names"
        if name in read:
            return f"{name} was changed, which is read"
        if code and before.get(name, "folder") != "folder":
            return f"{name} was changed, but the command failed"
    return "" if code else _unreadable(arguments, place)


def _values(arguments: list[str], options: tuple[str, ...]) -> list[str]:
    """What follows the options, however they are written."""
    found = [value for name, value in pairwise(arguments) if name in options]
    return found + [word.partition("=")[2] for word in arguments if word.partition("=")[0] in options]


def _inputs(arguments: list[str]) -> list[str]:
    """The files that the first positional arguments name."""
    positional = []
    for word in arguments[1:]:
        if word.startswith("--"):
            break
        positional.append(re.sub(r"^(sqlite|duckdb):", "", word).partition("#")[0])
    return [word for word in positional if word]


def _unreadable(arguments: list[str], place: Path) -> str:
    """Whether what a successful command wrote cannot be read."""
    from sufrep import load
    from sufrep._files import open_table

    if "--help" in arguments:
        return ""
    readers: dict[str, Callable[[Path], Any]] = {
        "--out": lambda path: open_table(path).read(),
        "--save": load,
        "--html": lambda path: path.read_text().index("</html>"),
    }
    if arguments[0] == "paper":
        return ""
    for option, read in readers.items():
        for value in _values(arguments, (option,))[-1:]:
            path = place / value
            if value and path.is_file() and not value.startswith(("/dev", "-")):
                try:
                    read(path)
                except Exception as error:
                    return (
                        f"{option} cannot be read: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
                    )
    return ""
