"""A page as text: what it is given comes back as text, and it needs nothing from elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep import _charts, errors
from sufrep._charts import _altair
from sufrep._report import ChartPart, CodePart, Page, Search, TablePart, _render, _scripts, render_page

law = settings(deadline=None, max_examples=50)
# An empty text is left out, and half of a surrogate pair is none: it has a test of its own.
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | st.sampled_from(
    ["</script><script>alert(1)</script>", "<!--", "]]>", "&lt;", '"', "'", "$title ${x} $$", "\u2028", "🦆"]
)
CHART = {"data": {"values": [{"name": "a"}]}, "mark": "point", "encoding": {}}


@pytest.fixture(scope="module", autouse=True)
def no_bundle() -> Iterator[None]:
    """Making the real bundle takes seconds; only the test of self-containedness wants it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_render, "drawing_bundle", lambda: "")
        yield


def page_of(text: str) -> Page:
    table = TablePart(text, [text, text], [[text, text], [None, 1.0]], text, text, 0)
    chart = ChartPart(text, text, CHART, text, table, Search("search", text, text))
    return Page(
        text, text, (text, text), ((text, text),), (table, chart, CodePart(text, text, text)), (text,), text
    )


@law
@given(text=ANY_TEXT)
def test_any_text_in_any_place_comes_back(read, text):
    plain, found = read(render_page(page_of("unlike"))), read(render_page(page_of(text)))
    assert found.tags() == plain.tags()
    assert found.texts.count(text) >= 1
    for before, after in zip(plain.texts, found.texts, strict=True):
        if before == "unlike":
            assert after == text
    for (_, before), (_, after) in zip(plain.elements, found.elements, strict=True):
        for name, value in before.items():
            assert after[name] == (text if value == "unlike" else value) or name == "class"


def test_every_field_of_every_part_is_on_the_page(read):
    given: list[str] = []

    def word() -> str:
        given.append(f"word {len(given)}")
        return given[-1]

    tables = [TablePart(word(), [word()], [[word()]], word(), word()) for _ in range(2)]
    chart = ChartPart(word(), word(), CHART, word(), tables[1], Search(word(), word(), word()))
    parts = (tables[0], chart, CodePart(word(), word(), word()))
    page = Page(word(), word(), (word(), word()), ((word(), word()),), parts, (word(),), word())
    reader = read(render_page(page))
    names = ["aria-label", "data-field", "data-parameter"]
    assert set(given) <= {*reader.texts, *(value for name in names for value in reader.attributes(name))}


@law
@given(text=ANY_TEXT)
def test_any_text_in_the_data_of_a_chart_comes_back(read, text):
    data = _render.chart_json({"data": {"values": [{"name": text, text: 1}]}})
    reader = read(f'<script type="application/json">{data}</script>')
    assert reader.tags() == ["script"]
    assert json.loads("".join(reader.texts)) == {"data": {"values": [{"name": text, text: 1}]}}
    assert "<" not in data


def test_half_a_surrogate_pair_does_not_stop_a_page():
    html = render_page(page_of("broken \ud800 name"))
    assert "broken ? name" in html
    html.encode()


def test_numbers_that_json_does_not_know_become_null_and_numpy_becomes_plain():
    values = [np.float64(1.5), np.int64(2), float("nan"), np.inf, True, None]
    assert _render.chart_json({"values": values}) == '{"values":[1.5,2,null,null,true,null]}'


def test_a_chart_of_altair_is_taken_without_the_address_of_its_schema():
    chart = _charts.spectrum_bars(np.array([0.7, 0.3]))
    assert "$schema" in chart.to_dict()
    found = json.loads(_render.chart_json(chart))
    assert found["data"] == chart.to_dict()["data"]
    assert "$schema" not in found


def test_the_page_loads_nothing_from_elsewhere(monkeypatch, read):
    monkeypatch.setattr(_render, "drawing_bundle", _scripts.drawing_bundle)
    html = render_page(page_of("https://example.org/ as text is fine"))
    assert len(html) < 1_200_000
    reader = read(html)
    assert not reader.attributes("src")
    assert all(address.startswith(("#", "data:")) for address in reader.attributes("href"))
    assert not re.search(r"url\(|@import", _scripts.read_asset("page.css"))
    # What a bundle holds is closed in by the policy, and cannot end its own element.
    assert html.count("<script") == html.count("</script") == 4


def test_the_policy_lets_exactly_the_scripts_of_the_page_run(read):
    html = render_page(page_of("text"))
    policy = next(a["content"] for _, a in read(html).elements if "http-equiv" in a) or ""
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert _scripts.content_policy(scripts) == policy
    assert "unsafe-eval" not in policy


def test_landmarks_headings_and_labels_are_in_order(read):
    reader = read(render_page(page_of("text")))
    headings = [tag for tag in reader.tags() if re.fullmatch(r"h\d", tag)]
    assert headings == ["h1"] + ["h2"] * 5
    assert {"header", "main", "nav", "footer"} <= set(reader.tags())
    identities = reader.attributes("id")
    assert len(identities) == len(set(identities))
    pointed = (
        reader.attributes("aria-labelledby") + reader.attributes("for") + reader.attributes("data-copies")
    )
    pointed += [address[1:] for address in reader.attributes("href") if address.startswith("#")]
    assert set(pointed) <= set(identities)
    assert dict(reader.elements)["html"] == {"lang": "en"}


def test_a_page_of_one_sentence_has_no_empty_places(read):
    reader = read(render_page(Page("title", "", ("only this",))))
    assert not {"nav", "footer", "dl", "ul", "figure"} & set(reader.tags())
    assert "only this" in reader.texts


@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_without_the_drawing_packages_it_is_said_what_to_install(monkeypatch, package):
    monkeypatch.setattr(_render, "drawing_bundle", _scripts.drawing_bundle.__wrapped__)
    monkeypatch.setattr(_altair, "find_spec", lambda name: None if name == package else name)
    with pytest.raises(errors.MissingDependencyError, match=r"Hint: pip install .sufrep\[report\]"):
        render_page(page_of("text"))


def test_a_page_without_charts_needs_no_drawing_package(monkeypatch):
    def fail() -> Any:
        pytest.fail("the bundle was made")

    monkeypatch.setattr(_render, "drawing_bundle", fail)
    assert "only this" in render_page(Page("title", "", ("only this",)))
