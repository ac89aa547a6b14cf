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
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fuzz.damage import write_originals
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
        arguments = _command_line(rng)
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
        "emoji.csv": "place,size,price,😀\n".encode() + "👩‍🚀,1,2,3\nKöln,2,3,4\n\u202eabc,4,5,6\n".encode() * 6,
        "controls.csv": b"place,size,price,\x1b[31mred\n" + b"\x1b]0;title\x07,1,2,3\nb\x9b,2,3,4\n" * 8,
        "twice.csv": b"place,size,size,price\n" + b"north,1,2,3\nsouth,4,5,6\n" * 8,
        "ragged.csv": b"place,size,price\nnorth,1\nsouth,2,3,4\n",
        "quotes.csv": b'place,size,price\n"north,1,2\nsouth,3,4\n',
        "latin.csv": "place,size,price\n".encode() + "Köln,1,2\nWürzburg,3,4\n".encode("latin-1") * 8,
        "wide.csv": ",".join(f"c{j}" for j in range(300)).encode() + b"\n" + (b",".join([b"1"] * 300) + b"\n") * 12,
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
    (folder / "link.csv").symlink_to("table.csv")
    (folder / "dangling.csv").symlink_to("not_there.csv")
    (folder / "circle.csv").symlink_to("circle.csv")


_SOUND = ["table.csv", "table.csv", "table.tsv", "table.csv.gz", "table.parquet", "table.feather"]
_DATABASES = ["sqlite:table.sqlite", "sqlite:table.sqlite#sales", "duckdb:table.duckdb#sales", "duckdb:table.duckdb"]
_ODD = [
    *("empty.csv", "header.csv", "one_row.csv", "one_level.csv", "nulls.csv", "mostly_nulls.csv", "constant.csv"),
    *("large.csv", "infinite.csv", "emoji.csv", "controls.csv", "twice.csv", "ragged.csv", "quotes.csv"),
    *("latin.csv", "wide.csv", "classes.csv", "clash.csv", "random.csv", "name [1] *.csv", "text.parquet"),
    *("cut.csv.gz", "cut.parquet", "link.csv", "dangling.csv", "circle.csv", "folder", "nowhere.csv", "means.sufrep"),
    *("nowhere/table.csv", "sqlite:table.csv", "duckdb:table.sqlite#sales", "sqlite:table.sqlite#nothing", "-"),
    *("sqlite:", "duckdb:nowhere.db", "", "table.xlsx", "/dev/null", "table.sqlite", "old.html", "a" * 300 + ".csv"),
]
_ENCODERS = ["means.sufrep", "low_rank.sufrep", "one_hot.sufrep", "fisher.sufrep", "mixed_model.sufrep"]
_ODD_ENCODERS = ["cut.sufrep", "text.sufrep", "table.csv", "folder", "nowhere.sufrep", "", "/dev/null", "old.html"]
_NEW = ["new.csv", "new.tsv", "new.parquet", "new.feather", "new.sufrep", "new.html", "-", "/dev/stdout", "/dev/null"]
_ODD_OUTPUTS = [
    *("old.csv", "old.html", "old.sufrep", "notes.csv", "table.csv", "means.sufrep", "link.csv", "dangling.csv"),
    *("circle.csv", "folder", "folder/new.csv", "nowhere/new.csv", "new.xlsx", "new", "", "a" * 300 + ".csv"),
    *("folder/../table.csv", "new.csv.gz", "empty.csv", "./means.sufrep", "\x1b[31m.csv", "😀.csv"),
]
_COLUMNS = ["place", "place", "size", "rooms", "garden", "day", "price"]
_ODD_COLUMNS = ["nothing", "", "Place", "place ", "😀", "\x1b[31mred", "c1", "place_mean_size", "--out", "=", "a,b"]
_METHODS = [
    *("means", "low_rank", "one_hot", "sparse_low_rank", "permutation", "multi_permutation", "helmert", "deviation"),
    *("fisher", "random_intercept", "drop", "target_encoder"),
]
_SLOW_METHODS = ["mnl", "latent_state", "mixed_model", "local_effect"]
_ODD_METHODS = ["mean", "", "sufficient ", "MEANS", "😀", "means,low_rank"]
_PARAMETERS = [
    *("n_components=2", "shrinkage=auto", "use_target=true", "leave_one_out=true", "standardize=false", "cv=2"),
    *("n_components=0", "n_components=-1", "n_components=1e9", "nothing=1", "=", "cv", "cv=[]", "cv={}", "cv=((((("),
    *("shrinkage=1", "target_type=binary", "target_type=multiclass", "unseen=error", "group=size", "covariates=[]"),
    *("n_permutations=3", "categorical_covariates=share", "remainder=drop", "coding=nope", "cv=0", "cv=99", "a" * 500),
]
_NUMBERS = ["2", "3", "10", "0", "-1", "1.5", "nan", "1e9", "", "x", "99999999999999999999"]


# Command lines


def _pick(rng: np.random.Generator, usual: list[str], odd: list[str], share: float = 0.2) -> str:
    return str(rng.choice(odd if rng.random() < share else usual))


def _several(rng: np.random.Generator, pick: Callable[[], str]) -> list[str]:
    return [pick() for _ in range(rng.choice([1, 1, 1, 2, 3]))]


def _command_line(rng: np.random.Generator) -> list[str]:
    makers = [_encode, _encode, _encode, _apply, _apply, _compare, _describe, _paper, _nonsense]
    arguments = makers[rng.integers(len(makers))](rng)
    while rng.random() < 0.15:
        arguments = _mutated(arguments, rng)
    return arguments


def _table(rng: np.random.Generator) -> str:
    return _pick(rng, [*_SOUND, *_DATABASES], _ODD, 0.5)


def _column(rng: np.random.Generator) -> str:
    return _pick(rng, _COLUMNS, _ODD_COLUMNS, 0.06)


def _group(rng: np.random.Generator) -> str:
    return _pick(rng, ["place"], [*_COLUMNS, *_ODD_COLUMNS])


def _options(rng: np.random.Generator, share: float, options: dict[str, Callable[[], list[str]]]) -> list[str]:
    """Each option with some probability, in any order."""
    names = [name for name in options if rng.random() < share]
    rng.shuffle(names)
    return [word for name in names for word in (name, *options[name]())]


def _shared(rng: np.random.Generator) -> dict[str, Callable[[], list[str]]]:
    return {
        "--covariates": lambda: _several(rng, lambda: _column(rng)),
        "--drop": lambda: _several(rng, lambda: _column(rng)),
        "--text": lambda: _several(rng, lambda: _column(rng)),
        "--force": list,
    }


def _encode(rng: np.random.Generator) -> list[str]:
    method = _pick(rng, _METHODS if rng.random() < 0.9 else _SLOW_METHODS, _ODD_METHODS, 0.05)
    words = ["encode", _table(rng), "--group", *_several(rng, lambda: _group(rng)), "--method", method]
    if rng.random() < 0.6:
        words += ["--target", _pick(rng, ["price"], [*_COLUMNS, *_ODD_COLUMNS])]
    if rng.random() < 0.9:
        words += ["--out", _pick(rng, _NEW, _ODD_OUTPUTS, 0.4)]
    if rng.random() < 0.4:
        words += ["--save", _pick(rng, ["new.sufrep"], [*_NEW, *_ODD_OUTPUTS], 0.4)]
    return words + _options(
        rng,
        0.12,
        {
            **_shared(rng),
            "--param": lambda: _several(rng, lambda: str(rng.choice(_PARAMETERS))),
            "--seed": lambda: [str(rng.choice(_NUMBERS))],
            "--unseen": lambda: [_pick(rng, ["prior", "error"], ["", "x"])],
            "--missing": lambda: [_pick(rng, ["level", "prior", "error"], ["", "x"])],
            "--min-frequency": lambda: [_pick(rng, ["2", "0.2", "100"], _NUMBERS)],
        },
    )


def _apply(rng: np.random.Generator) -> list[str]:
    words = ["apply", _pick(rng, _ENCODERS, _ODD_ENCODERS), _table(rng)]
    if rng.random() < 0.95:
        words += ["--out", _pick(rng, _NEW, _ODD_OUTPUTS, 0.4)]
    shared = _shared(rng)
    del shared["--covariates"]
    return words + _options(rng, 0.12, shared)


def _compare(rng: np.random.Generator) -> list[str]:
    """Of few cheap methods, so that many comparisons are made in a minute."""
    words = ["compare", _table(rng), "--target", _pick(rng, ["price"], [*_COLUMNS, *_ODD_COLUMNS])]
    words += ["--group", *_several(rng, lambda: _group(rng)), "--jobs", "1", "--folds", "2", "--models", "linear"]
    words += ["--methods", *_several(rng, lambda: _pick(rng, _METHODS, _ODD_METHODS, 0.03))]
    return words + _options(
        rng,
        0.15,
        {
            **_shared(rng),
            "--html": lambda: [_pick(rng, ["new.html"], [*_NEW, *_ODD_OUTPUTS])],
            "--save": lambda: [_pick(rng, ["new.sufrep"], [*_NEW, *_ODD_OUTPUTS])],
            "--repeats": lambda: [_pick(rng, ["2"], ["0", "-1", "x", ""])],
            "--new-levels": list,
            "--task": lambda: [_pick(rng, ["auto", "regression", "binary", "multiclass"], ["", "x"])],
            "--scoring": lambda: [_pick(rng, ["r2", "accuracy", "roc_auc", "neg_log_loss"], ["", "x"])],
            "--sample": lambda: [_pick(rng, ["10", "30"], ["0", "x", "-1", "99999999999"])],
            "--seed": lambda: [str(rng.choice(_NUMBERS))],
            "--json": list,
        },
    )


def _describe(rng: np.random.Generator) -> list[str]:
    return ["describe", _pick(rng, _ENCODERS, _ODD_ENCODERS, 0.4), *(["--json"] if rng.random() < 0.5 else [])]


def _paper(rng: np.random.Generator) -> list[str]:
    command = str(rng.choice(["tables", "figures", "export", "simulations", "empirical", "benchmark", "nothing", ""]))
    store = _pick(rng, ["broken_store", "empty_store", "new_store"], ["table.csv", "folder", "nowhere/store", ""])
    words = ["paper", command, "--store", store]
    if command in ("simulations", "empirical", "benchmark"):
        words += ["--methods", _pick(rng, ["drop", "means"], _ODD_METHODS), "--jobs", "1", "--trees", "4"]
        # Never the real runs: each lacks what it needs.
        words += ["--seeds", str(rng.choice(["0", "-1", "x", ""]))]
    return words + _options(
        rng,
        0.4,
        {
            "--out": lambda: [_pick(rng, ["new.txt", "new_folder"], [*_NEW, *_ODD_OUTPUTS])],
            "--format": lambda: [_pick(rng, ["text", "markdown", "latex"], ["", "x"])],
        },
    )


def _nonsense(rng: np.random.Generator) -> list[str]:
    words = ["encode", "apply", "compare", "describe", "demo", "paper", "--help", "--version", "-h", "--", "-", "\0x"]
    words += ["--jobs", "0", "--group", "place", "--seed", "-1", "table.csv", "means.sufrep", "😀", "--out", "new.csv"]
    picked = [str(word).replace("\0", "\x01") for word in rng.choice(words, rng.integers(0, 5))]
    # The demonstration takes minutes; only what is refused is tried.
    return [*picked, "--seed", "x"] if "demo" in picked or picked[:1] == ["paper"] else picked


def _mutated(arguments: list[str], rng: np.random.Generator) -> list[str]:
    """One word lost, repeated, exchanged, cut or added."""
    words = list(arguments)
    if len(words) < 2:
        return words
    place, other = (int(p) for p in rng.integers(1, len(words), 2))
    kind = rng.integers(5)
    if kind == 0:
        del words[place]
    elif kind == 1:
        words.insert(place, words[place])
    elif kind == 2:
        words[place], words[other] = words[other], words[place]
    elif kind == 3:
        words[place] = words[place][: len(words[place]) // 2]
    else:
        words.insert(place, str(rng.choice(["--nothing", "--help", "--", "-x", "--json", "", "table.csv"])))
    # Without these, a comparison takes minutes and a run of the paper hours.
    needed = {"compare": ("--jobs", "1", "--methods", "--models", "linear", "--folds"), "paper": ("--seeds",)}
    had = [word for word in needed.get(words[0], ()) if word in arguments]
    return words if all(word in words for word in had) else list(arguments)


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
        problem = _problem(case["arguments"], code, out, err) or _changes(case["arguments"], code, place, before)
        if not problem:
            return Outcome(f"exit {code}")
        what = f"{' '.join(case['arguments'])[:500]!r}: {problem}\n{err[-1500:]}"
        return Outcome(f"exit {code}", what, signature("commands", f"{case['arguments'][:1]}: {_general(problem)}"))

    return check


def _general(problem: str) -> str:
    """A problem without the numbers and names that differ between cases of the same defect."""
    return re.sub(r"0x[0-9a-f]+|\d+|'[^']*'", "…", problem)[:200]


def _run_inside(main: Callable[[], None], arguments: list[str]) -> tuple[int, str, str]:
    """Run the command in this process; all that it prints goes to two files, also from libraries in C."""
    saved = sys.argv, sys.stdout, sys.stderr, os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.argv = ["sufrep", *arguments]
        sys.stdout, sys.stderr = (open(stream, "w", encoding="utf-8", closefd=False) for stream in (1, 2))
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
        [sys.executable, "-m", "sufrep.cli", *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False
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
    found = [value for name, value in zip(arguments[:-1], arguments[1:], strict=True) if name in options]
    return found + [word.partition("=")[2] for word in arguments if word.partition("=")[0] in options]


def _inputs(arguments: list[str]) -> list[str]:
    """The files that the first positional arguments name."""
    positional = []
    for word in arguments[1:3]:
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
                    return f"{option} cannot be read: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
    return ""
