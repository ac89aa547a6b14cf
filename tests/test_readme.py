"""What README and the page about the encoders say is true; tests/test_pages.py runs their code."""

from __future__ import annotations

import re

from tests.pages import DOCS, ROOT, blocks

import sufrep
from sufrep.encoders import METHODS

README = ROOT / "README.md"
ENCODERS = (DOCS / "explanation" / "encoders.md").read_text("utf-8")


def test_the_readme_fits_on_a_screen() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= 75


def test_the_example_of_the_readme_is_short_and_prints_a_gain() -> None:
    (example,) = [block.text for block in blocks(README) if block.language == "python"]
    assert len([line for line in example.splitlines() if line and not re.match("import|from", line)]) <= 10
    assert "less error" in example


def test_the_two_commands_are_shown() -> None:
    text = README.read_text("utf-8")
    assert "make demo" in text
    assert "make test" in text


def test_the_table_of_the_encoders_names_every_method() -> None:
    rows = [line.split("|") for line in ENCODERS.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row[3])} == set(METHODS)


def test_every_encoder_is_described() -> None:
    headings = "\n".join(re.findall(r"^### .*$", ENCODERS, flags=re.MULTILINE))
    encoders = {type(sufrep.make_encoder(method, "g")).__name__ for method in METHODS}
    assert {name for name in encoders if name not in headings} == set()


def test_every_public_encoder_is_described() -> None:
    public = {name for name in sufrep.__all__ if name.endswith(("Encoder", "Regressor", "Estimator"))}
    assert {name for name in public if name not in ENCODERS} == set()
