"""The site in a browser: on a desktop and a phone, light and dark, with its search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

PAGES = [
    "index.html",
    "tutorials/index.html",
    "how-to/index.html",
    "gallery/index.html",
    "gallery/plot_02_zip_codes.html",
    "reference/commands.html",
    "reference/generated/sufrep.MeansEncoder.html",
]
WIDTHS = [1280, 390]


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Callable[..., Page]]:
    """Open a page of the site; in the end, it has asked for nothing elsewhere and logged nothing."""
    seen: list[str] = []
    contexts = []

    def opened(page_name: str, width: int = 1280, theme: str = "light") -> Page:
        options: Any = {"viewport": {"width": width, "height": 800}, "color_scheme": theme}
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("request", lambda request: seen.append(request.url))
        # The theme logs which theme it sets.
        page.on("console", lambda message: message.type == "log" or seen.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: seen.append(f"error: {error}"))
        page.goto(address + page_name, wait_until="networkidle")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [entry for entry in seen if not entry.startswith((address, "data:"))] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_complete_and_as_wide_as_the_screen(
    open_page: Callable[..., Page], name: str, width: int, theme: str
) -> None:
    page = open_page(name, width, theme)
    expect(page.locator("h1").first).to_be_visible()
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    loaded = (
        "[...document.images].filter(i => i.loading != 'lazy').every(i => i.complete && i.naturalWidth > 0)"
    )
    assert page.evaluate(loaded)


def test_every_page_fits_on_a_phone(open_page: Callable[..., Page], site: Path, address: str) -> None:
    page = open_page("index.html", 390)
    too_wide = []
    for file in sorted(site.rglob("*.html")):
        name = file.relative_to(site).as_posix()
        # The source is as wide as its lines; _static holds parts of the theme.
        if not name.startswith(("_modules/", "_static/")):
            page.goto(address + name)
            if page.evaluate("document.documentElement.scrollWidth") > 390:
                too_wide.append(name)
    assert too_wide == []


@pytest.mark.parametrize(
    ("asked", "page_name"),
    [("zip code", "Zip codes and house prices"), ("MeansEncoder", "sufrep.MeansEncoder")],
)
def test_search_finds(open_page: Callable[..., Page], asked: str, page_name: str) -> None:
    page = open_page(f"search.html?q={asked}")
    results = page.locator("#search-results li")
    expect(results.filter(has_text=page_name).first).to_be_visible(timeout=20_000)


def test_code_can_be_copied(open_page: Callable[..., Page]) -> None:
    page = open_page("index.html")
    assert page.locator("button.copybtn").count() > 0
