"""Every block of Python and shell in README and the documentation runs, or says why it does not.

The blocks of a page run in order, in a folder that holds `houses.csv`, some of the simulated houses. A
comment above a block changes that:

- ``<!-- output -->``: the text below is what the Python above it prints, up to a tenth of each number.
- ``<!-- parsed, not run: reason -->``: commands of sufrep have the options that are shown, but are not run.
- ``<!-- not run: reason -->``: neither.
"""

from __future__ import annotations

import io
import re
import shlex
import tomllib
import warnings
from contextlib import redirect_stdout
from glob import glob
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.pages import DOCS, GENERATED, ROOT, Block, anchors, blocks, links, page_name, prose, written_pages

from sufrep.cli import _command
from sufrep.datasets import load_houses

PAGES = written_pages()
WITH_CODE = [page for page in PAGES if any(block.language in ("python", "sh") for block in blocks(page))]
# Languages of blocks that hold no code, or code of others that our tests do not run.
QUIET = {"text", "json", "toml", "bibtex"}
OTHERS = {"r", "sql", "yaml"}


@pytest.mark.filterwarnings("default")  # pages show data that encoders warn of
@pytest.mark.parametrize("page", WITH_CODE, ids=page_name)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _houses().write_csv(tmp_path / "houses.csv")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__page__"}
    printed = ""
    for block in blocks(page):
        if block.mark == "output":
            assert _same_text(printed, block.text), (
                f"line {block.line} of {page}: the block prints\n{printed}"
            )
        elif block.mark == "not run":
            continue
        elif block.language == "python":
            printed = _run_python(block, names)
        elif block.language == "sh":
            for command in _commands(block.text):
                _run_command(command, block)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_blocks_that_do_not_run_say_why(page: Path) -> None:
    for block in blocks(page):
        where = f"line {block.line} of {page}"
        if block.mark in ("not run", "parsed, not run"):
            assert block.reason, f"{where}: the comment gives no reason"
        if block.language in OTHERS:
            assert block.mark == "not run", f"{where}: {block.language} needs a comment, not run: reason"
        elif not block.language.startswith("{"):
            assert block.language in {"python", "sh", *QUIET}, f"{where}: unknown language"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_commands_stand_in_blocks_that_tests_find(page: Path) -> None:
    assert not re.findall(r"^ {4,}(?:sufrep|pip|make|python) .*", prose(page), flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{page}: {target}"
        if DOCS in page.parents:
            assert DOCS in found.parents, f"{page}: {target} is outside of the documentation"
        if anchor:
            assert anchor in anchors(found), f"{page}: {target} names no heading"


@pytest.mark.parametrize("folder", ["tutorials", "how-to", "explanation", "results", "coming-from"])
def test_every_page_is_in_the_contents_of_its_folder(folder: str) -> None:
    index = DOCS / folder / "index.md"
    (toctree,) = [block.text for block in blocks(index) if block.language == "{toctree}"]
    listed = {line for line in toctree.splitlines() if line and not line.startswith(":")}
    pages = {*(DOCS / folder).rglob("*.md")} - {index}
    assert listed == {page.relative_to(DOCS / folder).with_suffix("").as_posix() for page in pages}


@pytest.mark.parametrize("page", sorted((DOCS / "results").glob("*.md")), ids=page_name)
def test_results_begin_with_a_short_summary(page: Path) -> None:
    if page.name != "index.md":
        title, summary, *_ = page.read_text("utf-8").split("\n\n")
        assert title.startswith("# ")
        assert summary.startswith("**In short.**")
        assert len(summary.splitlines()) <= 3


def test_tables_of_results_exist() -> None:
    assert all(page.read_text("utf-8").startswith("# ") for page in GENERATED)


def _houses() -> pl.DataFrame:
    """Some of the rows of the houses, because these tests are about the code."""
    data = load_houses()
    return pl.DataFrame(data.columns()).with_columns(price=data.y)[:600]


def _run_python(block: Block, names: dict[str, Any]) -> str:
    # Lines of errors are those of the page.
    code = compile("\n" * block.line + block.text, block.page, "exec")
    with redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, names)
    return printed.getvalue()


def _same_text(found: str, expected: str) -> bool:
    numbers = r"-?\d[\d,]*\.?\d*(?:e-?\d+)?"
    if re.sub(numbers, "0", found).split() != re.sub(numbers, "0", expected).split():
        return False
    pairs = zip(re.findall(numbers, found), re.findall(numbers, expected), strict=True)
    return all(
        float(a.replace(",", "")) == pytest.approx(float(b.replace(",", "")), rel=0.1) for a, b in pairs
    )


def _commands(text: str) -> list[list[str]]:
    joined = text.replace("\\\n", " ")
    commands = (shlex.split(line, comments=True) for line in joined.splitlines())
    return [command for command in commands if command]


def _run_command(command: list[str], block: Block) -> None:
    program, *arguments = command
    if program == "sufrep":
        _run_sufrep(arguments, run=block.mark is None)
    elif program == "make":
        targets = re.findall(r"^([\w-]+):.*##", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        assert {name for name in arguments if "=" not in name} <= {*targets}
    elif program == "pip":
        _check_extras(arguments)
    else:
        assert program == "python", f"{block.page}, line {block.line}: unknown program {program}"
        module = ROOT / arguments[1].replace(".", "/") if arguments[0] == "-m" else ROOT / arguments[0]
        assert module.is_dir() or module.with_suffix(".py").exists()


def _run_sufrep(arguments: list[str], *, run: bool) -> None:
    # As a shell does: a pattern that matches files becomes their names.
    given = [name for argument in arguments for name in (sorted(glob(argument)) or [argument])]
    group = _command(False)
    if run:
        with redirect_stdout(io.StringIO()):
            assert not group(given, standalone_mode=False)
        return
    context = group.make_context("sufrep", list(given))
    while hasattr(group, "resolve_command"):
        name, group, given = group.resolve_command(context, [*context._protected_args, *context.args])
        context = group.make_context(name, given, parent=context)


def _check_extras(arguments: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert arguments[0] == "install"
    for argument in arguments[1:]:
        for extras in re.findall(r"\[(.*)\]", argument):
            assert {*extras.split(",")} <= {*project["optional-dependencies"]}
