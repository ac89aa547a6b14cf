"""What the README shows is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sufrep import load
from sufrep.encoders import METHODS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_example_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(first, names)
    expected = names["model"][0].transform(names["houses"])
    assert (load("zipcode.sufrep").transform(names["houses"]) == expected).all()
    exec(second, names)
    # Some of the rows, because this test is about the code.
    assert names["model"].fit(names["houses"][:600], names["price"][:600])[0].report_["summary"]


def test_the_table_of_the_readme_names_every_method() -> None:
    rows = [line for line in README.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[3])}
    assert named == set(METHODS)


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)]+)\)", README))
def test_every_link_of_the_readme_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


def test_the_two_commands_are_shown() -> None:
    assert "make demo" in README
    assert "make test" in README
