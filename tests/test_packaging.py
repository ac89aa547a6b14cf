"""What the package says about itself is consistent: versions, floors, workflows, changelog."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

import sufrep

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
# Which extras each file of the oldest versions is for.
OLDEST = {
    "oldest": ("report", "test"),
    "oldest-extras": ("report", "cli", "boost", "duckdb", "dask", "sql"),
}


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def pins(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {name.lower(): version for name, version in (line.split("==") for line in lines)}


def floors(requirements: list[str]) -> dict[str, str]:
    found = (re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement) for requirement in requirements)
    return {match[1].lower(): match[2] for match in found if match}


def numbers(version: str) -> tuple[int, ...]:
    """A version without its zeros at the end: 2.0.0 is 2."""
    return tuple(int(part) for part in re.sub(r"(\.0)+$", "", version).split("."))


def test_all_versions_are_the_same():
    citation = parsed(ROOT / "CITATION.cff")
    newest = re.findall(r"^## \[(\d\S*)\]", CHANGELOG, flags=re.MULTILINE)[0]
    assert {PROJECT["version"], citation["version"], newest} == {sufrep.__version__}


def test_the_citation_names_the_paper_and_the_licence_of_the_package():
    citation = parsed(ROOT / "CITATION.cff")
    (paper,) = citation["references"]
    names = [author["family-names"] for author in paper["authors"]]
    assert (citation["license"], names) == (PROJECT["license"], ["Johannemann", "Hadad", "Athey", "Wager"])
    assert "1908.09874" in paper["url"]


@pytest.mark.parametrize("name", OLDEST)
def test_the_oldest_versions_are_the_floors_of_the_package(name):
    pinned = pins(ROOT / "constraints" / f"{name}.txt")
    wanted: dict[str, str] = {}
    for package, floor in chain(
        floors(PROJECT["dependencies"]).items(), *(floors(EXTRAS[extra]).items() for extra in OLDEST[name])
    ):
        wanted[package] = max(wanted.get(package, "0"), floor, key=numbers)
    wanted.pop("hypothesis", None)  # any version draws examples
    differing = {
        package: (pinned.get(package), floor)
        for package, floor in wanted.items()
        if package not in pinned or numbers(pinned[package]) != numbers(floor)
    }
    assert differing == {}


def test_every_extra_for_users_has_a_smoke_test():
    text = (ROOT / "release" / "smoke.py").read_text()
    tests = set(re.findall(r"^def (\w+)\(_?folder: Path", text, flags=re.MULTILINE))
    assert set(EXTRAS) - tests == {"dev", "test", "docs"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_complete_and_run_what_exists(path):
    workflow = parsed(path)
    # YAML reads the key "on" as true.
    assert {"name", True, "permissions", "jobs"} <= set(workflow)
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 60
        for step in job["steps"]:
            for target in re.findall(r"make (\w+)", step.get("run", "")):
                assert target in targets


def test_workflows_test_every_version_of_python_that_the_package_names():
    named = {text.rsplit(" ", 1)[1] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)}
    matrix = parsed(ROOT / ".github" / "workflows" / "test.yml")["jobs"]["versions"]["strategy"]["matrix"]
    assert set(matrix["python"]) == named
    assert f">={min(named, key=numbers)}" == PROJECT["requires-python"]


def test_templates_and_the_updates_of_dependencies_are_read():
    updates = parsed(ROOT / ".github" / "dependabot.yml")["updates"]
    for update in updates:
        assert (ROOT / update["directory"].lstrip("/")).is_dir()
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = parsed(path)
        assert path.name == "config.yml" or {"name", "description", "body"} <= set(form)


def test_the_changelog_keeps_its_form():
    headings = re.findall(r"^(#+) (.+)$", CHANGELOG, flags=re.MULTILINE)
    releases = [text for marks, text in headings if marks == "##"]
    assert releases[0] == "[Unreleased]"
    for release in releases[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d|unreleased)", release)
    assert {text for marks, text in headings if marks == "###"} <= KINDS


@pytest.mark.parametrize("name", ["docs/reference/versioning.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md"])
def test_every_link_to_a_file_leads_somewhere(name):
    path = ROOT / name
    for target in re.findall(r"\]\((?!http)([^)#]+)", path.read_text()):
        assert (path.parent / target).exists(), target
