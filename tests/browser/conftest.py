"""A browser, and a page with every kind of part in which names try to be more than text."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

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
DESKTOP: Any = {"width": 1100, "height": 800}
CODE = "model.fit(X)\nprint(\"<b>bold</b> & 'quoted'\")"


# Not for the session: while it lives, its event loop would stand in the way of tests that start their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
    if found is None:
        pytest.skip("no Chromium or Chrome is installed; `make browser` installs Debian's")
    with sync_playwright() as playwright:
        # Continuous integration may run as root, for whom Chromium has no sandbox.
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _report.write_page(sample_page(), tmp_path_factory.mktemp("page") / "report & more.html")


class Watched:
    """Pages of one browser, and what they asked of the network, logged or ran beyond themselves."""

    def __init__(self, browser: Browser, file: Path) -> None:
        self._browser, self._file = browser, file
        self._opened: list[Page] = []
        self._seen: list[str] = []

    def open(self, *, script: str = "", **options: Any) -> Page:
        context = self._browser.new_context(**{"viewport": DESKTOP, **options})
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("request", lambda request: self._seen.append(request.url))
        page.on("console", lambda message: self._seen.append(message.text))
        page.on("pageerror", lambda error: self._seen.append(str(error)))
        if script:
            page.add_init_script(script)
        page.goto(self._file.as_uri())
        page.wait_for_selector("html[data-drawn]")
        self._opened.append(page)
        return page

    def check(self) -> None:
        """Nothing was requested but the file, nothing was logged, no name became a script."""
        assert set(self._seen) == {self._file.as_uri()}
        assert {page.evaluate("typeof window.attacked") for page in self._opened} == {"undefined"}

    def close(self) -> None:
        for page in self._opened:
            page.context.close()


@pytest.fixture(scope="module")
def shared(browser: Browser, page_file: Path) -> Iterator[Watched]:
    watched = Watched(browser, page_file)
    watched.open()
    yield watched
    watched.close()


@pytest.fixture
def page(shared: Watched) -> Iterator[Page]:
    """The page on a light desktop, for tests that change what can be changed back here."""
    (opened,) = shared._opened
    opened.set_viewport_size(DESKTOP)
    opened.emulate_media(media="screen", color_scheme="light")
    opened.evaluate("document.activeElement.blur(); getSelection().empty(); scrollTo(0, 0)")
    opened.mouse.move(1, 1)
    box = opened.get_by_role("searchbox")
    if box.input_value():
        box.fill("")
        opened.wait_for_timeout(250)
    yield opened
    shared.check()


@pytest.fixture
def open_page(browser: Browser, page_file: Path) -> Iterator[Callable[..., Page]]:
    """Open the page with options of Playwright's ``new_context``."""
    watched = Watched(browser, page_file)
    yield watched.open
    watched.check()
    watched.close()


def sample_page() -> _report.Page:
    rows = [[name, i / 7, i % 3, f"{3 * i} %"] for i, name in enumerate(NASTY)]
    table = _report.TablePart(
        ATTACK, [ATTACK, "gain", "rank", "share"], [*rows, ["last", None, None, None]], ATTACK, ATTACK, 1
    )
    charts = [
        _report.ChartPart(f"Chart {number} {ATTACK}", ATTACK, chart, ATTACK, table)
        for number, chart in enumerate(sample_charts())
    ]
    search = _report.SearchBox("search", f"Find a level {ATTACK}", "label")
    found = _report.ChartPart("Map", "Where levels lie.", sample_map(), "A map.", None, search)
    return _report.Page(
        title=f"Title {ATTACK}",
        subtitle=" ".join(NASTY),
        verdict=tuple(NASTY),
        facts=tuple((name, name) for name in NASTY),
        parts=(found, *charts, table, _report.CodePart("Code", ATTACK, CODE)),
        notes=tuple(NASTY),
        footer=ATTACK,
    )


def sample_map() -> Any:
    """The levels in a row, far apart, the first the largest."""
    n = len(NASTY)
    points = np.column_stack([np.arange(n), np.arange(n) % 3]).astype(float)
    sizes = np.arange(n, 0, -1) * 10.0
    return _charts.level_map(
        labels=NASTY,
        points=points,
        sizes=sizes,
        values=sizes / 7,
        titles=[ATTACK, "up"],
        extra={ATTACK: NASTY},
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
        _charts.spectrum_bars(np.array([0.6, 0.3, 0.1]), noise=0.2, noise_title=ATTACK),
        _charts.size_bars(np.arange(1.0, 200.0), size_title=ATTACK),
        _charts.labelled_scatter(
            rows=timed, series=[ATTACK, "forest"], x_title=ATTACK, y_title="gain", hover=hover
        ),
    ]
