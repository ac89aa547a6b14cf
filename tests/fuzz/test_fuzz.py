"""A short, seeded part of `make fuzz`, and every case that it ever found."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # the harness is not installed

from fuzz.part import Outcome, Part
from fuzz.running import PARTS, markdown

from fuzz import corpus

# Kills take seconds each, and are timed; one is enough to know that the harness works.
SEEDS = {"numbers": range(2), "damage": range(40), "commands": range(1000, 1025), "kills": range(3, 4)}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Part]]:
    made: dict[str, Part] = {}

    def part(name: str) -> Part:
        if name not in made:
            made[name] = PARTS[name](tmp_path_factory.mktemp(name))
        return made[name]

    yield part
    for found in made.values():
        found.close()


@pytest.mark.parametrize("name", SEEDS)
def test_a_few_seeds_find_nothing(name, parts):
    for seed in SEEDS[name]:
        for case, outcome in parts(name).run(seed, set()):
            assert not outcome.finding, f"{name}:{seed} {case}"


@pytest.mark.parametrize("name", PARTS)
def test_what_was_found_before_stays_repaired(name, parts):
    for entry in corpus.entries(name):
        assert not parts(name).check(entry["case"]).finding, entry["signature"]


@pytest.mark.parametrize("name", ["damage", "commands", "kills"])
def test_a_seed_always_gives_the_same_case(name, parts):
    assert [parts(name).draw(seed) for seed in range(20)] == [parts(name).draw(seed) for seed in range(20)]


def test_a_case_of_a_seed_is_stored_once_and_small_ones_only(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "FOLDER", tmp_path)
    outcome = Outcome("half", "new.csv is cut", "kills: cut")
    assert corpus.add("kills", 7, {"command": "encode"}, outcome)
    assert corpus.add("kills", 8, {"command": "apply"}, outcome)
    assert not corpus.add("kills", 9, {"command": "x" * 100_000}, Outcome("half", "", "kills: other"))
    assert [entry["seed"] for entry in corpus.entries("kills")] == [7]
    assert json.loads((tmp_path / "kills.json").read_text())[0]["case"] == {"command": "encode"}


def test_the_counts_are_printed_as_a_table():
    part = {"part": "kills", "cases": 1200, "results": {"stopped by SIGKILL": 1200}, "findings": [{}]}
    report = {"seed": 3, "minutes": 60.0, "python": "3.11", "versions": {"polars": "2"}, "parts": [part]}
    assert "| 1,200 | 1,200 stopped by SIGKILL | 1 |" in markdown(report)
