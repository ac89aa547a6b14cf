"""One part of the harness for some seconds, and the counts of a run as a table."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fuzz import corpus
from fuzz.commands import Commands
from fuzz.damage import Damage
from fuzz.kills import Kills
from fuzz.numerics import Numbers
from fuzz.part import Case, Outcome, Part

PARTS: dict[str, type[Part]] = {part.name: part for part in (Numbers, Damage, Commands, Kills)}
_TITLES = {
    "numbers": "numbers: encoders against exact arithmetic and laws",
    "damage": "damage: files with changed bytes",
    "commands": "commands: random command lines",
    "kills": "kills: commands killed while they run",
}
# Seconds between two lines about the progress of a part.
_PROGRESS = 30.0


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


def run_case(name: str, seed: int) -> int:
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
