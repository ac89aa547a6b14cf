"""The report of a real comparison in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page, expect
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from sufrep import compare

MAP = "figure[data-chart]:has(input)"
DOTS = f"{MAP} .mark-symbol.role-mark path"
# The titles of all charts of a report.
CHARTS = [
    "Ranking",
    "Fold by fold",
    "Map of the levels of shop",
    "In how many directions the levels differ",
    "How large the levels are",
    "Time against accuracy",
]
LEVELS = ["</script><script>window.attacked = 1</script>", "north", "North End", "🦆"]


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replaces the artificial page that the other tests of this folder open."""
    rng = np.random.default_rng(0)
    shop = rng.integers(0, 4, 240)
    X = pd.DataFrame(rng.normal(size=(240, 3)) + shop[:, None], columns=["a", "b", "c"])
    y = pd.Series(3 * (shop % 2) + X["a"] + rng.normal(size=240), name="<b>sales</b>")
    X["shop"] = np.array(LEVELS)[shop]
    models = {"linear": LinearRegression(), "tree": DecisionTreeRegressor(max_depth=2, random_state=0)}
    comparison = compare(X, y, group="shop", methods=["means", "low_rank", "drop"], models=models)
    return comparison.to_html(tmp_path_factory.mktemp("report") / "report.html")


def test_every_chart_of_the_report_is_drawn(page: Page) -> None:
    figures = page.locator("figure[data-chart]")
    assert figures.count() == len(CHARTS)
    for i, title in enumerate(CHARTS):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
        assert figures.nth(i).locator("svg .role-mark path").count() >= 1


def test_the_tooltip_of_a_level_shows_its_name_rows_and_mean_target(page: Page) -> None:
    page.get_by_role("searchbox").fill("🦆")
    expect(page.locator(f"{MAP} [role=status]")).to_have_text("1 of 4 found: 🦆")
    expect(page.locator(DOTS)).to_have_count(len(LEVELS) + 1)
    ring = page.locator(DOTS).last  # around the match, whose dot is at its centre
    ring.scroll_into_view_if_needed()
    ring.hover(force=True)
    tooltip = page.locator("#vg-tooltip-element.visible")
    for text in ("🦆", "rows", "mean of <b>sales</b>"):
        expect(tooltip).to_contain_text(text)


def test_the_search_ignores_case(page: Page) -> None:
    page.get_by_role("searchbox").fill("NORTH")
    expect(page.locator(f"{MAP} [role=status]")).to_have_text(
        re.compile("^2 of 4 found: (north, North End|North End, north)$")
    )


def test_on_a_phone_the_report_does_not_scroll_sideways(open_page: Callable[..., Page]) -> None:
    page = open_page(viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
