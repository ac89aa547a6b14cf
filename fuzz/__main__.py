"""Look for defects for some minutes: ``python -m fuzz --minutes 5``; see docs/reliability.md.

A case that fails is printed with its seed and stored in ``fuzz/corpus``; ``--case commands:12345`` runs the
case of a seed again. The exit code is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import secrets
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from fuzz import corpus
from fuzz.commands import Commands
from fuzz.damage import Damage
from fuzz.kills import Kills
from fuzz.numerics import Numbers
from fuzz.part import Case, Outcome, Part
from fuzz.worker import ENVIRONMENT

PARTS: dict[str, type[Part]] = {part.name: part for part in (Numbers, Damage, Commands, Kills)}
_PACKAGES = ("sufrep", "numpy", "scikit-learn", "polars", "pandas", "pyarrow", "duckdb")
_TITLES = {
    "numbers": "numbers: encoders against exact arithmetic and laws",
    "damage": "damage: files with changed bytes",
    "commands": "commands: random command lines",
    "kills": "kills: commands killed while they run",
}
# Seconds between two lines about the progress of a part.
_PROGRESS = 30.0


def main() -> None:
    """Parse, run, report."""
    given = _parser().parse_args()
    if given.table:
        print(markdown(json.loads(Path(given.table).read_text())))
        return
    os.environ.update(ENVIRONMENT)
    if given.case:
        part, _, seed = given.case.partition(":")
        sys.exit(_run_case(part, int(seed)))
    seed = secrets.randbelow(10**9) if given.seed is None else given.seed
    parts = given.only or list(PARTS)
    waves = math.ceil(len(parts) / given.jobs)
    seconds = 60 * given.minutes / waves
    print(
        f"seed {seed}: {', '.join(parts)}; {seconds / 60:.1f} minutes each, {given.jobs} at a time",
        flush=True,
    )
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        started = [pool.submit(run_part, part, seed, seconds) for part in parts]
        counts = [future.result() for future in started]
    report = {
        "seed": seed,
        "minutes": given.minutes,
        "generator": corpus.GENERATOR,
        "python": platform.python_version(),
        "versions": {package: version(package) for package in _PACKAGES},
        "parts": counts,
    }
    if given.report:
        Path(given.report).write_text(json.dumps(report, indent=1) + "\n")
    print(markdown(report))
    sys.exit(any(part["findings"] for part in counts))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="time for all parts together (default: 5)")
    parser.add_argument("--seed", type=int, help="first seed; by default another one in each run")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help="parts to run; by default all")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="parts at a time")
    parser.add_argument("--case", metavar="PART:SEED", help="run the case of one seed, and print it")
    parser.add_argument("--report", metavar="FILE", help="write the counts as JSON")
    parser.add_argument(
        "--table", metavar="FILE", help="print such counts as a Markdown table, and do nothing else"
    )
    return parser


def run_part(name: str, seed: int, seconds: float) -> dict[str, Any]:
    """Replay the corpus of a part, then run new cases until the time is over; return the counts."""
    started, shown = time.monotonic(), time.monotonic()
    results: Counter[str] = Counter()
    known: set[str] = set()
    findings: list[dict[str, Any]] = []

    def note(seed: int, case: Case, outcome: Outcome) -> None:
        results[outcome.result] += 1
        if not outcome.finding or outcome.signature in known:
            return
        known.add(outcome.signature)
        stored = corpus.add(name, seed, case, outcome)
        findings.append({"seed": seed, "signature": outcome.signature, "finding": outcome.finding})
        kept = "" if stored else " (too large for the corpus)"
        print(f"FOUND {name}:{seed} {outcome.signature}{kept}\n  {outcome.finding}", flush=True)

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, PARTS[name](Path(folder)) as part:
        replayed = corpus.entries(name)
        for entry in replayed:
            note(entry["seed"], entry["case"], part.check(entry["case"]))
        while time.monotonic() - started < seconds:
            for case, outcome in part.run(seed, known):
                note(seed, case, outcome)
            seed += 1
            if time.monotonic() - shown > _PROGRESS:
                shown = time.monotonic()
                print(f"{name}: {results.total():,} cases, {len(findings)} finding(s)", flush=True)
    return {
        "part": name,
        "seconds": round(time.monotonic() - started),
        "replayed": len(replayed),
        "cases": results.total(),
        "results": dict(results.most_common()),
        "findings": findings,
    }


def _run_case(name: str, seed: int) -> int:
    """Run the case of a seed and print all about it."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, PARTS[name](Path(folder)) as part:
        for case, outcome in part.run(seed, set()):
            if outcome.finding or name != "numbers":
                print(json.dumps(case, indent=1, ensure_ascii=True), outcome, sep="\n")
            failed += bool(outcome.finding)
    return int(failed > 0)


def markdown(report: dict[str, Any]) -> str:
    """The counts of a run as a table."""
    lines = ["| part | cases | what became of them | findings |", "|---|---|---|---|"]
    for part in report["parts"]:
        results = ", ".join(f"{count:,} {result}" for result, count in part["results"].items())
        lines.append(f"| {_TITLES[part['part']]} | {part['cases']:,} | {results} | {len(part['findings'])} |")
    versions = ", ".join(f"{package} {number}" for package, number in report["versions"].items())
    lines += [
        "",
        f"Seed {report['seed']}, {report['minutes']:g} minutes, Python {report['python']}, {versions}.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
