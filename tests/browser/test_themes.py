"""Light and dark: the reader's setting, the button, and readable contrast in both."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

# Contrast between text or marks and their background, as defined by WCAG 2.
CONTRASTS = """
(selector) => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = parse(colour).map((c) => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (parse(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  return [...document.querySelectorAll(selector)].map((element) => {
    const style = getComputedStyle(element);
    const drawn = style.fill === "none" ? style.stroke : style.fill;
    const painted = element instanceof SVGElement ? drawn : style.color;
    const [a, b] = [luminance(painted), luminance(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    return [contrast, `${element.tagName} ${element.textContent.slice(0, 20)} ${painted}`];
  });
}
"""
TEXT = "h1, h2, p:not(.visually-hidden), dt, dd, a, summary, th, td, li, code, button, label, .chart svg text"
MARKS = ".role-mark.mark-symbol path, .role-mark.mark-rect path, .role-legend-symbol path"


def colours(page: Page) -> list[str]:
    """Colours of the page, its text, the text of a chart and a dot."""
    return page.evaluate(
        """() => [
          getComputedStyle(document.body).backgroundColor,
          getComputedStyle(document.body).color,
          getComputedStyle(document.querySelector(".role-axis-label text")).fill,
          getComputedStyle(document.querySelector(".role-legend-symbol path")).fill,
        ]"""
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_marks_have_enough_contrast(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.locator(".role-mark.mark-symbol path").first.hover(force=True)
    texts = page.evaluate(CONTRASTS, f"{TEXT}, #vg-tooltip-element td")
    assert len(texts) > 100
    assert min(texts)[0] >= 4.5, min(texts)
    marks = page.evaluate(CONTRASTS, MARKS)
    assert len(marks) > 50
    assert min(marks)[0] >= 3.0, min(marks)


@pytest.mark.parametrize(("scheme", "pressed"), [("light", "false"), ("dark", "true")])
def test_the_page_follows_the_preferred_theme(page, scheme, pressed):
    page.emulate_media(color_scheme=scheme)
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", pressed)
    assert (colours(page)[0] == "rgb(255, 255, 255)") == (scheme == "light")


def test_the_button_changes_page_and_charts_and_outlasts_a_change_of_the_preferred_theme(open_page):
    page = open_page(color_scheme="light")
    button = page.get_by_role("button", name="Dark")
    light = colours(page)
    button.press("Space")
    expect(button).to_have_attribute("aria-pressed", "true")
    dark = colours(page)
    assert all(one != other for one, other in zip(light, dark, strict=True))
    page.emulate_media(color_scheme="dark")
    page.emulate_media(color_scheme="light")
    assert colours(page) == dark
    button.click()
    assert colours(page) == light
