"""A short, seeded part of `make fuzz`, and every case that it ever found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from fuzz.part import Outcome, Part
from fuzz.running import PARTS, markdown

from fuzz import commands, corpus, damage, kills, numerics

# Few, because `make fuzz` is there for more. Seed 63 kills `sufrep apply` while it writes.
SEEDS = {"numbers": range(1), "damage": range(30), "commands": range(1000, 1012), "kills": [63]}


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
            assert outcome.finding == "", f"{name}:{seed} {case}"


@pytest.mark.parametrize("name", PARTS)
def test_what_was_found_before_stays_repaired(name, parts):
    for entry in corpus.entries(name):
        assert parts(name).check(entry["case"]).finding == "", entry["signature"]


@pytest.mark.parametrize("name", ["damage", "commands", "kills"])
def test_a_seed_always_gives_the_same_case(name, parts):
    assert [parts(name).draw(seed) for seed in range(20)] == [parts(name).draw(seed) for seed in range(20)]


# What the harness would report


def test_a_wrong_mean_is_found(monkeypatch, tmp_path):
    right = numerics.MeansEncoder.fit_transform
    case = {"kind": "many", "seed": 0, "n": 50}
    assert not numerics.Numbers(tmp_path).check(case).finding
    monkeypatch.setattr(
        numerics.MeansEncoder, "fit_transform", lambda *given, **named: right(*given, **named) * (1 + 1e-11)
    )
    assert "another mean" in numerics.Numbers(tmp_path).check(case).finding


def test_a_file_that_was_cut_is_found(tmp_path):
    (tmp_path / "new.csv").write_bytes(b"whole")
    whole = kills.Whole(1.0, kills._contents(tmp_path, "apply"), [])
    old = {"new.csv": ""}
    assert kills._problem(tmp_path, "apply", 0, old, whole) == ""
    (tmp_path / "new.csv").write_bytes(b"who")
    assert "neither the old one nor the new one" in kills._problem(tmp_path, "apply", 0, old, whole)


@pytest.mark.parametrize(
    ("code", "err", "problem"),
    [
        (3, "", "the exit code is 3"),
        (1, "Traceback (most recent call last):\nKeyError: 1", "a traceback, KeyError: 1"),
        (1, "sufrep: Unexpected error, KeyError: 1", "Unexpected error"),
        (1, "", "without a message"),
        (0, "\x1b[31m", "control character"),
    ],
)
def test_bad_ends_of_a_command_are_found(code, err, problem):
    assert problem in commands._problem(["encode"], code, "", err)
    assert not commands._problem(["encode"], 0, "", "sufrep: a note")


def test_changed_files_are_found(tmp_path):
    for name in ("table.csv", "old.csv", "other.csv"):
        (tmp_path / name).write_text("old")
    arguments = ["encode", "table.csv", "--out", "old.csv", "--save", "table.csv"]
    before = commands._snapshot(tmp_path)
    assert not commands._changes(arguments, 1, tmp_path, before)
    for name, problem in {
        "table.csv": "which is read",
        "old.csv": "but the command failed",
        "other.csv": "which no option names",
        ".new.csv.x.part": "an unfinished file is left",
    }.items():
        (tmp_path / name).write_text("new")
        assert problem in commands._changes(arguments, 1, tmp_path, before)
        (tmp_path / name).write_text("old") if name in before else (tmp_path / name).unlink()


def test_a_changed_encoder_that_loads_is_found(tmp_path, monkeypatch):
    damage.write_originals(tmp_path)
    check = damage.checker(tmp_path)
    case = {"file": "means.sufrep", "content": damage.packed((tmp_path / "low_rank.sufrep").read_bytes())}
    assert "gives other columns" in check(case).finding
    monkeypatch.setattr(damage, "load", lambda path: {}[path])
    assert "KeyError" in check(case).finding


# The corpus and the report


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
