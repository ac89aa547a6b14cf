"""Reports of unusual tables on a desktop and on a phone, in light and dark: 10,000 levels, classes, noise."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from tests.browser.conftest import WatchedPage
from tests.browser.test_themes import CONTRASTS, TEXT

from sufrep import compare
from sufrep._compare import Comparison

QUOTED = 7  # method, model, score, improvement, both ends of its interval, p


def many_levels() -> Comparison:
    """10,000 levels, most of them with one row; one-hot columns do not fit into memory."""
    rng = np.random.default_rng(0)
    level = np.r_[np.arange(10_000), np.minimum(rng.pareto(1.0, 3_000) * 30, 9_999).astype(int)]
    quality, a, b = rng.normal(size=10_000)[level], *rng.normal(size=(2, len(level)))
    X = pd.DataFrame({"shop": [f"shop {i:05d}" for i in level], "a": quality + a, "b": b})
    y = pd.Series(quality + b, name="sales")
    return compare(X, y, group="shop", methods=["means", "fisher", "drop"], models=LinearRegression(), cv=3)


def classes() -> Comparison:
    """Three classes and two models."""
    rng = np.random.default_rng(1)
    level = rng.integers(0, 30, 300)
    X = pd.DataFrame({"a": level % 3 + rng.normal(size=300), "zip code": [f"9{i:04d}" for i in level]})
    y = pd.Series(np.array(["low", "mid", "top"])[(level + (rng.random(300) < 0.3)) % 3], name="price class")
    models = {"logistic": LogisticRegression(), "tree": DecisionTreeClassifier(max_depth=3, random_state=0)}
    return compare(X, y, group="zip code", methods=["means", "fisher", "drop"], models=models, cv=3)


def noise() -> Comparison:
    """A column that says nothing, so that dropping it wins."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"id": [f"c{i}" for i in rng.integers(0, 60, 400)], "a": rng.normal(size=400)})
    y = pd.Series(X["a"] + rng.normal(size=400), name="y")
    methods = ["permutation", "target_encoder", "random_intercept", "helmert", "drop"]
    found = compare(X, y, group="id", methods=methods, models=LinearRegression(), cv=3)
    assert found.best.method == "drop"
    return found


@pytest.fixture(scope="module", params=[many_levels, classes, noise], ids=lambda make: make.__name__)
def comparison(request: pytest.FixtureRequest) -> Comparison:
    return request.param()


@pytest.fixture(scope="module")
def page_file(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("comparison") / "report.html"
    return comparison.to_html(path, source="houses.csv", day=date(2026, 3, 1))


@pytest.fixture(scope="module", params=[1280, 390])
def opened_at(
    request: pytest.FixtureRequest, browser: Browser, page_file: Path
) -> Iterator[tuple[Page, int]]:
    """The page and the width that it was opened with; opening one takes a second."""
    viewport: Any = {"width": request.param, "height": 900}
    watched = WatchedPage(browser, page_file, viewport=viewport, color_scheme="light")
    yield watched.page, request.param
    watched.check()
    watched.page.context.close()


def boxes(page: Page, selector: str) -> list[dict[str, float]]:
    script = "all => all.map(one => one.getBoundingClientRect().toJSON())"
    return page.locator(selector).evaluate_all(script)


def figure(title: str) -> str:
    return f"section:has(> h2:text-is('{title}')) figure"


def overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    across = one["left"] < other["right"] - 1 and other["left"] < one["right"] - 1
    return across and one["top"] < other["bottom"] - 3 and other["top"] < one["bottom"] - 3


def test_nothing_is_cut_off_or_unreadable_in_either_theme(opened_at):
    page, width = opened_at
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator(".chart svg").count() == page.locator("figure[data-chart]").count() >= 5
    for chart in boxes(page, ".chart svg"):
        assert 0 <= chart["left"] < chart["right"] <= width
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        contrast = page.evaluate(CONTRASTS, TEXT)
        assert min(contrast)[0] >= 4.5, min(contrast)
    expect(page.locator("#origin")).to_contain_text("houses.csv · 1 March 2026 · sufrep ")


def test_what_the_verdict_quotes_is_seen_without_scrolling(opened_at):
    page, width = opened_at
    table = "section:has(> h2:text-is('All results')) > .scroll"
    (container,) = boxes(page, table)
    quoted = boxes(page, f"{table} thead th")[: QUOTED if width == 1280 else 2]
    assert all(cell["right"] <= container["right"] for cell in quoted)
    p_values = page.locator(f"{table} tbody td:nth-child({QUOTED})").all_text_contents()
    assert all(text == "–" or float(text.removeprefix("< ")) > 0 for text in p_values)


def test_labels_do_not_overlap_and_name_the_best(opened_at, comparison):
    page, _ = opened_at
    for title in ("Ranking", "Time against accuracy"):
        marks = f"{figure(title)} .mark-text.role-mark text"
        assert not any(overlap(one, other) for one, other in combinations(boxes(page, marks), 2)), title
    names = page.locator(f"{figure('Time against accuracy')} .mark-text.role-mark text").all_text_contents()
    assert comparison.best.method in names


def test_bins_have_equal_widths_next_to_a_table_of_level_groups(opened_at, comparison):
    page, _ = opened_at
    bars = boxes(page, f"{figure('How large the levels are')} .mark-rect.role-mark path")
    np.testing.assert_allclose([bar["width"] for bar in bars], bars[0]["width"], atol=0.6)
    table = page.locator("section:has(> h2:text-is('How large the levels are')) details[open] table")
    counts = [int(text.replace(",", "")) for text in table.locator("td:nth-child(2)").all_text_contents()]
    assert sum(counts) == len(comparison.plan.data.levels)


def test_pointing_at_a_method_explains_it(opened_at, comparison):
    page, _ = opened_at
    dot = page.locator(f"{figure('Ranking')} .mark-symbol.role-mark path").first
    dot.scroll_into_view_if_needed()
    dot.hover(force=True)
    expect(page.locator("#vg-tooltip-element.visible")).to_contain_text("what it is")
    page.mouse.move(1, 1)
    method = comparison.best.method
    glossary = page.locator("section:has(> h2:text-is('The methods in one line each')) tr", has_text=method)
    explained = page.locator("section:has(> h2:text-is('All results')) > .scroll tr.highlighted th")
    expect(glossary.first.locator("td")).to_have_text(str(explained.get_attribute("title")))
