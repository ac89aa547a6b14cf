"""The page in a real browser: drawn, searchable, readable, and isolated.

Every test also checks, at its end, that nothing was requested, logged or executed (``WatchedPage.check``).
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

MAP = "figure[data-chart]:has(input)"
DOTS = f"{MAP} .mark-symbol.role-mark path"
LABELS = f"{MAP} .mark-text.role-mark text"
STATUS = f"{MAP} [role=status]"
TOOLTIP = "#vg-tooltip-element.visible"
ATTACK = "</script><script>window.attacked = 1</script>"
CODE = "model.fit(X)\nprint(\"<b>bold</b> & 'quoted'\")"


def opacities(page: Page) -> list[float]:
    found = page.locator(DOTS).evaluate_all("all => all.map(one => getComputedStyle(one).opacity)")
    return [round(float(one), 2) for one in found[:9]]


def wait_until(page: Page, condition: str) -> None:
    """Wait for a condition. Playwright's own way evaluates text in the page, which its policy forbids."""
    for _ in range(100):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    pytest.fail(f"never true: {condition}")


def test_every_chart_is_drawn(page):
    figures = page.locator("figure[data-chart]").all()
    assert len(figures) == 9
    for figure in figures:
        assert figure.locator("svg .role-mark path").count() >= 3
        box = figure.locator("svg").bounding_box()
        assert box["width"] > 700
        assert box["height"] > 200


def test_for_a_screen_reader_a_chart_is_one_picture_with_a_description(page):
    expect(page.get_by_role("img", name="A map.")).to_be_visible()
    # Axes and marks are not read out.
    assert page.locator(f"{MAP} [role=img]").aria_snapshot() == '- img "A map."'


def test_pointing_at_a_level_shows_its_name_as_text(page):
    page.locator(DOTS).first.hover(force=True)
    expect(page.locator(TOOLTIP)).to_contain_text(ATTACK)
    assert page.locator(f"{TOOLTIP} script, {TOOLTIP} img").count() == 0
    page.mouse.move(1, 1)
    expect(page.locator(TOOLTIP)).to_have_count(0)


@pytest.mark.parametrize(
    ("wanted", "n_matches", "status"),
    [
        ("NEW", 2, "2 of 9 found: New York, new orleans"),
        ("🦆", 1, "1 of 9 found: 🦆 duck"),
        ("<script>", 1, f"1 of 9 found: {ATTACK[:39]}…"),
        ("'", 2, re.compile("^2 of 9 found: ")),
        ("no such level", 0, "0 of 9 found"),
    ],
)
def test_searching_highlights_the_matches_and_reports_their_number(page, wanted, n_matches, status):
    page.get_by_role("searchbox").fill(wanted)
    expect(page.locator(STATUS)).to_have_text(status)
    assert sorted(opacities(page)) == [0.1] * (9 - n_matches) + [0.75] * n_matches
    assert page.locator(DOTS).count() == 9 + n_matches  # and a ring around each
    assert page.locator(LABELS).count() == n_matches


def test_clearing_the_search_restores_the_map(page):
    before = opacities(page), set(page.locator(LABELS).all_text_contents())
    page.get_by_role("searchbox").fill("new")
    expect(page.locator(STATUS)).not_to_have_text("")
    page.get_by_role("searchbox").fill("")
    expect(page.locator(STATUS)).to_have_text("")
    assert (opacities(page), set(page.locator(LABELS).all_text_contents())) == before


def test_the_wheel_scrolls_the_page_and_zooms_only_with_a_key_until_a_double_click(page):
    svg, dot = page.locator(f"{MAP} svg"), page.locator(DOTS).first
    svg.scroll_into_view_if_needed()
    svg.hover()
    place, top = dot.get_attribute("transform"), page.evaluate("scrollY")
    page.mouse.wheel(0, 120)
    wait_until(page, f"scrollY > {top}")
    assert dot.get_attribute("transform") == place
    svg.hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    expect(dot).not_to_have_attribute("transform", place)
    svg.dblclick()
    expect(dot).to_have_attribute("transform", place)


def test_the_copy_button_copies_the_code(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == CODE
    expect(page.locator("#announcement")).to_have_text("Code copied.")


def test_where_copying_is_forbidden_the_code_is_selected(page):
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    page.locator(".code button").click()
    expect(page.locator("#announcement")).to_contain_text("the code is selected")
    assert page.evaluate("String(getSelection())") == CODE
    page.evaluate("() => { delete navigator.clipboard.writeText; }")


def test_a_header_sorts_the_table_by_numbers_with_missing_values_last(page):
    table = page.locator("section:not(:has(figure)) table")
    shares = table.locator("tbody tr td:nth-child(4)")
    header = table.get_by_role("columnheader", name="share")
    header.get_by_role("button").press("Enter")
    assert shares.all_text_contents() == [f"{3 * i} %" for i in range(9)] + ["–"]
    expect(header).to_have_attribute("aria-sort", "ascending")
    header.get_by_role("button").press("Enter")
    assert shares.all_text_contents() == [f"{3 * i} %" for i in reversed(range(9))] + ["–"]
    expect(header).to_have_attribute("aria-sort", "descending")
    expect(table.locator("tr.highlighted th")).to_contain_text("<img")


def test_every_control_can_be_reached_with_the_tab_key(page):
    reached = []
    describe = """() => {
      const element = document.activeElement;
      const kind = element.matches("thead button") ? "header" : element.dataset.copies ? "copy" : element.id;
      return [kind || element.className, getComputedStyle(element).outlineStyle];
    }"""
    while "copy" not in reached and len(reached) < 80:
        page.keyboard.press("Tab")
        name, outline = page.evaluate(describe)
        reached.append(name)
        assert outline == "solid", name
    assert reached[:2] == ["skip", "theme"]
    assert reached.index("search-0") < reached.index("scroll") < reached.index("header")
    assert reached[-1] == "copy"
    assert reached.count("header") == 4


def test_the_skip_link_appears_on_focus_and_leads_to_the_content(page):
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def test_on_a_phone_only_tables_and_code_scroll_sideways(open_page):
    page = open_page(viewport={"width": 360, "height": 700}, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    for figure in page.locator(".chart svg").all():
        assert figure.bounding_box()["width"] <= 360


def test_charts_follow_the_width_of_the_window(page):
    page.set_viewport_size({"width": 600, "height": 800})
    wait_until(page, "document.querySelector('.chart svg').clientWidth < 600")
    assert page.evaluate("document.documentElement.scrollWidth") == 600


def test_in_print_the_page_is_light_and_has_charts_but_no_controls(page):
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for hidden in ["#theme", "input", "nav", ".code button"]:
        expect(page.locator(hidden).first).to_be_hidden()
    for chart in page.locator(".chart svg").all():
        expect(chart).to_be_visible()
    assert page.pdf().startswith(b"%PDF")


def test_without_javascript_the_page_explains_itself_and_shows_its_verdict(browser, page_file):
    context = browser.new_context(java_script_enabled=False)
    page: Any = context.new_page()
    page.goto(page_file.as_uri())
    expect(page.locator("noscript p")).to_contain_text("The charts need JavaScript")
    expect(page.locator(".headline")).to_have_text(ATTACK)
    expect(page.locator("#theme")).to_be_hidden()
    context.close()
