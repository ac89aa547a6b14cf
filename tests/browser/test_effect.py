"""The report of a treatment effect in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Page, expect
from sklearn.linear_model import LinearRegression, LogisticRegression

from sufrep import AIPW
from sufrep._effect import analyse

ATTACK = "</script><script>window.attacked = 1</script>"
CHARTS = [
    "What the adjustments do",
    "Effects by subgroup",
    "Overlap of treated and untreated rows",
    f"Overlap by {ATTACK}",
    "Balance",
]


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Patients of hospitals, whose names try to be scripts, and of which one treats everybody."""
    rng = np.random.default_rng(0)
    hospital = np.arange(600) % 30
    quality = rng.normal(size=30)[hospital]
    treated = rng.random(600) < 1 / (1 + np.exp(-quality))
    treated[hospital == 0] = True
    patients = pl.DataFrame(
        {
            ATTACK: [ATTACK if code == 0 else f"🏥 {code}" for code in hospital],
            "age": quality + rng.normal(size=600),
            "<b>ward</b>": rng.choice(["<i>a</i>", "b"], 600),
            "drug": treated,
            "days": treated + 2 * quality + rng.normal(size=600),
        }
    )
    analysis = analyse(
        AIPW(LinearRegression(), LogisticRegression(), group=ATTACK),
        patients,
        treatment="drug",
        outcome="days",
        progress=lambda *_: None,
    )
    return analysis.to_html(tmp_path_factory.mktemp("effect") / "effect.html")


@pytest.fixture
def effect_page(open_page: Callable[..., Page]) -> Callable[..., Page]:
    """The page in a window of some width."""
    return lambda width=1280, **options: open_page(viewport={"width": width, "height": 800}, **options)


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_every_chart_is_drawn_and_nothing_scrolls_sideways(effect_page, width, theme):
    page = effect_page(width, color_scheme=theme)
    figures = page.locator("figure[data-chart]")
    assert figures.count() == len(CHARTS)
    for i, title in enumerate(CHARTS):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
        assert figures.nth(i).locator("svg .role-mark path").count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_states_the_effect_the_dropped_group_and_the_code(effect_page):
    page = effect_page()
    expect(page.locator("body")).to_contain_text("drug raises days by")
    expect(page.get_by_text("with 40 row(s) were dropped")).to_be_visible()
    expect(page.get_by_text("It cannot detect a violated assumption")).to_be_visible()
    expect(page.locator("pre").first).to_contain_text("model = AIPW(")


def test_tables_behind_the_charts_open(effect_page):
    page = effect_page()
    page.get_by_text("Show as a table").first.click()
    table = page.locator("details[open] table").first
    expect(table).to_contain_text("+ share of treated rows")
    expect(table).to_contain_text("linear fixed effect")
