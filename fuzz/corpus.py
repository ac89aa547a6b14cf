"""The cases that once failed, in ``fuzz/corpus``: they are replayed first in every run, and in the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fuzz.part import Case, Outcome

FOLDER = Path(__file__).with_name("corpus")
# Raised with every change that gives a seed another case.
GENERATOR = 1
# Characters of a stored case; larger ones are only printed.
_LARGEST = 20_000


def entries(part: str) -> list[dict[str, Any]]:
    """The stored cases of a part, oldest first."""
    path = FOLDER / f"{part}.json"
    return json.loads(path.read_text()) if path.exists() else []


def add(part: str, seed: int, case: Case, outcome: Outcome) -> bool:
    """Store a case that failed, unless one like it is stored already; return whether it is stored now."""
    stored = entries(part)
    if any(entry["signature"] == outcome.signature for entry in stored):
        return True
    if len(json.dumps(case)) > _LARGEST:
        return False
    stored.append(
        {
            "seed": seed,
            "generator": GENERATOR,
            "signature": outcome.signature,
            "finding": outcome.finding.partition("\n")[0],  # what follows may name folders of one machine
            "case": case,
        }
    )
    FOLDER.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(entry, ensure_ascii=True) for entry in stored)
    (FOLDER / f"{part}.json").write_text(f"[\n{lines}\n]\n")
    return True
