"""A browser, and a page with every kind of part, whose names try to be more than text."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from sufrep import _charts, _report

ATTACK = "</script><script>window.attacked = 1</script>"
NASTY = [
    ATTACK,
    "<img src=x onerror='window.attacked = 2'>",
    "quotes \" and ' and `",
    "a & b &amp; c",
    "🦆 duck",
    "שלום עולם",
    "x" * 200,
    "New York",
    "new orleans",
]
SEARCH_STATUS = ".search [role=status]"
DESKTOP: Any = {"width": 1100, "height": 800}
CODE = "model.fit(X)\nprint(\"<b>bold</b> & 'quoted'\")"


# Not for the session: Playwright's event loop would disturb later tests that start their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
    if found is None:
        pytest.skip("no Chromium or Chrome is installed; `make browser` installs Debian's")
    with sync_playwright() as playwright:
        # Continuous integration may run as root, for whom Chromium has no sandbox.
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _report.write_page(sample_page(), tmp_path_factory.mktemp("page") / "report & more.html")


class WatchedPage:
    """A page in a browser, and everything it requested, logged or ran beyond itself."""

    def __init__(self, browser: Browser, file: Path, **options: Any) -> None:
        self._url = file.as_uri()
        self._seen: list[str] = []
        # Without smooth scrolling, what is scrolled into view can be pointed at immediately.
        context = browser.new_context(**{"viewport": DESKTOP, "reduced_motion": "reduce", **options})
        self.page = context.new_page()
        self.page.set_default_timeout(10_000)
        self.page.on("request", lambda request: self._seen.append(request.url))
        self.page.on("console", lambda message: self._seen.append(message.text))
        self.page.on("pageerror", lambda error: self._seen.append(str(error)))
        self.page.goto(self._url)
        self.page.wait_for_selector("html[data-drawn]")

    def check(self) -> None:
        """Nothing was requested but the file, nothing was logged, no name became a script."""
        assert set(self._seen) == {self._url}
        assert self.page.evaluate("typeof window.attacked") == "undefined"


@pytest.fixture(scope="package")
def opened() -> dict[Path, WatchedPage]:
    """Pages that are shared by tests, because opening one takes a second."""
    return {}


@pytest.fixture
def page(browser: Browser, page_file: Path, opened: dict[Path, WatchedPage]) -> Iterator[Page]:
    """The page on a desktop in light mode, for tests whose changes are undone here."""
    if page_file not in opened:
        opened[page_file] = WatchedPage(browser, page_file, color_scheme="light")
    page = opened[page_file].page
    yield page
    opened[page_file].check()
    page.set_viewport_size(DESKTOP)
    page.emulate_media(media="screen", color_scheme="light")
    page.get_by_role("searchbox").fill("")
    expect(page.locator(SEARCH_STATUS)).to_have_text("")
    # A click sets where the Tab key continues: at the start of the page.
    page.evaluate("getSelection().empty(); scrollTo(0, 0)")
    page.mouse.click(1, 1)


@pytest.fixture
def open_page(browser: Browser, page_file: Path) -> Iterator[Callable[..., Page]]:
    """Open the page with options of Playwright's ``new_context``."""
    watched: list[WatchedPage] = []

    def open_with(**options: Any) -> Page:
        watched.append(WatchedPage(browser, page_file, **options))
        return watched[-1].page

    yield open_with
    for one in watched:
        one.check()
        one.page.context.close()


def sample_page() -> _report.Page:
    rows = [[name, i / 7, i % 3, f"{3 * i} %"] for i, name in enumerate(NASTY)]
    table = _report.TablePart(
        ATTACK, [ATTACK, "gain", "rank", "share"], [*rows, ["last", None, None, None]], ATTACK, 1
    )
    charts = [
        _report.ChartPart(f"Chart {number} {ATTACK}", ATTACK, chart, ATTACK, table)
        for number, chart in enumerate(sample_charts())
    ]
    search = _report.SearchBox("search", f"Find a level {ATTACK}", "label")
    level_map = _report.ChartPart("Map", "Where the levels are.", sample_map(), "A map.", None, search)
    return _report.Page(
        title=f"Title {ATTACK}",
        subtitle=" ".join(NASTY),
        verdict=tuple(NASTY),
        facts=tuple((name, name) for name in NASTY),
        parts=(level_map, *charts, table, _report.CodePart("Code", ATTACK, CODE)),
        notes=tuple(NASTY),
        footer=ATTACK,
    )


def sample_map() -> Any:
    """Levels far apart from each other, the first the largest."""
    n = len(NASTY)
    points = np.column_stack([np.arange(n), np.arange(n) % 3]).astype(float)
    sizes = np.arange(n, 0, -1) * 10.0
    return _charts.level_map(
        labels=NASTY,
        points=points,
        sizes=sizes,
        values=sizes / 7,
        titles=[ATTACK, "up"],
        value_title=ATTACK,
    )


def sample_charts() -> list[Any]:
    hover = {"name": ATTACK, "value": "value"}
    ranked = [
        {"name": name, "series": series, "value": i / 90, "low": i / 90 - 0.02, "high": i / 90 + 0.03}
        for i, name in enumerate(NASTY)
        for series in (ATTACK, "forest")
    ]
    folds = [
        {"name": name, "fold": str(fold), "value": i / 90 + fold / 100}
        for i, name in enumerate(NASTY)
        for fold in range(3)
    ]
    timed = [{**row, "x": 1.0 + row["value"], "y": row["value"]} for row in ranked]
    common: dict[str, Any] = {
        "hover": hover,
        "names": NASTY,
        "value_title": ATTACK,
        "reference_title": ATTACK,
    }
    return [
        _charts.interval_dots(rows=ranked, series=[ATTACK, "forest"], baseline=ATTACK, **common),
        _charts.paired_dots(rows=folds, **common),
        _charts.spectrum_bars(np.array([0.6, 0.3, 0.1]), noise=0.2),
        _charts.size_bars(np.arange(1.0, 200.0)),
        _charts.propensity_bars(np.linspace(0, 1, 50), np.arange(50) % 3 > 0),
        _charts.group_shares(
            labels=NASTY,
            sizes=np.arange(1.0, 1 + len(NASTY)),
            shares=np.arange(len(NASTY)) / len(NASTY),
            dropped=np.arange(len(NASTY)) == 0,
            group_title=ATTACK,
        ),
        _charts.love_plot({ATTACK: [(name, i / 20, i / 90) for i, name in enumerate(NASTY)]}),
        _charts.labelled_scatter(
            rows=timed, series=[ATTACK, "forest"], x_title=ATTACK, y_title="gain", hover=hover
        ),
    ]
