"""What the pages of the site hold: every name, every option, pictures, and links that lead somewhere."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from typer.main import get_command

import sufrep
from sufrep import datasets
from sufrep.cli import make_app

NAMES = [f"sufrep.{name}" for name in sufrep.__all__]
DATA_NAMES = [f"sufrep.datasets.{name}" for name in datasets.__all__]
EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "gallery").glob("plot_*.py"))
# Tags whose address the browser asks for on its own; that of <a> is for the reader.
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}


@pytest.mark.parametrize("name", NAMES + DATA_NAMES)
def test_every_public_name_has_a_page(site: Path, name: str) -> None:
    assert f'id="{name}"' in reference_page(site, name)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_links_to_its_source(site: Path, name: str) -> None:
    assert 'class="viewcode-link' in reference_page(site, name)


@pytest.mark.parametrize("name", ["MeansEncoder", "LatentStateEncoder", "AIPW", "compare", "simulate"])
def test_pages_of_names_show_the_examples_that_use_them(site: Path, name: str) -> None:
    assert "Examples in the gallery" in reference_page(site, f"sufrep.{name}")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_ran_without_a_warning_and_drew_a_picture(site: Path, example: Path) -> None:
    text = (site / "gallery" / f"{example.stem}.html").read_text(encoding="utf-8")
    assert (site / "_images" / f"sphx_glr_{example.stem}_001.png").stat().st_size > 5_000
    assert not re.search(r"\w+Warning:|Traceback", text)


def test_there_are_at_least_twelve_examples() -> None:
    assert len(EXAMPLES) >= 12


def test_the_page_of_the_commands_has_every_option(site: Path) -> None:
    text = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    options = set(every_option(get_command(make_app(completes=False))))
    assert len(options) > 50
    assert {option for option in options if f">{option}<" not in text} == set()


def test_formulas_are_drawn_by_the_browser_itself(site: Path) -> None:
    assert any("<math" in page.read_text(encoding="utf-8") for page in pages(site))


def test_names_in_the_prose_link_to_their_pages(site: Path) -> None:
    links = scanned(site / "reference" / "glossary.html").links
    assert "generated/sufrep.LowRankEncoder.html#sufrep.LowRankEncoder" in links


def test_every_link_inside_the_site_leads_somewhere(site: Path) -> None:
    broken = defaultdict(list)
    for page in pages(site):
        for link in scanned(page).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not leads_somewhere(target, unquote(parts.fragment)):
                broken[str(page.relative_to(site))].append(link)
    assert dict(broken) == {}


def test_no_page_fetches_anything_from_another_host(site: Path) -> None:
    fetched = {address for page in pages(site) for address in scanned(page).fetched}
    assert {address for address in fetched if urlsplit(address).netloc} == set()


def leads_somewhere(target: Path, fragment: str) -> bool:
    if not target.is_file() or not fragment or target.suffix != ".html":
        return target.is_file()
    return fragment in scanned(target).ids


def reference_page(site: Path, name: str) -> str:
    return (site / "reference" / "generated" / f"{name}.html").read_text(encoding="utf-8")


def every_option(command: Any) -> list[str]:
    """The long spellings of all options of a command and those below it, but those of the program itself."""
    below = getattr(command, "commands", {}).values()
    own = [] if below else [parameter.opts[-1] for parameter in command.params]
    return [name for name in own if name.startswith("--")] + [
        name for sub_command in below for name in every_option(sub_command)
    ]


def pages(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


@cache
def scanned(page: Path) -> Scanned:
    found = Scanned()
    found.feed(page.read_text(encoding="utf-8"))
    return found


class Scanned(HTMLParser):
    """The identifiers of a page, where its links lead, and what it fetches."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.fetched: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if tag in FETCHED and FETCHED[tag] in given:
            self.fetched.add(given[FETCHED[tag]])
            self.links.add(given[FETCHED[tag]])
