"""A page: all values are shown as text, nothing is loaded, and a file is written completely or not at all."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep import _charts, errors
from sufrep._charts import _altair
from sufrep._report import (
    ChartPart,
    CodePart,
    Page,
    SearchBox,
    TablePart,
    _render,
    render_page,
    write_page,
)

law = settings()
# Empty text is left out of a page, and a lone surrogate cannot be kept: it has its own test.
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | st.sampled_from(
    [
        "</script><script>alert(1)</script>",
        "<!--",
        "]]>",
        "&lt;",
        '"',
        "'",
        "$title {{ page }} {% x %} {# #}",
        "\u2028",
        "🦆",
    ]
)
SENTENCE = Page("title", "subtitle", ("ü 🦆 verdict",))
REAL_BUNDLE = _render.drawing_bundle
CHART = {"data": {"values": [{"name": "a"}]}, "mark": "point", "encoding": {}}


@pytest.fixture(scope="module", autouse=True)
def no_bundle() -> Iterator[None]:
    """Bundling takes seconds; only the test that nothing is loaded needs the real drawing library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_render, "drawing_bundle", lambda: "")
        yield


def page_of(text: str) -> Page:
    folded = TablePart(text, [text], [[text]], text)
    table = TablePart(text, [text, text], [[text, text], [None, 1.0]], text, 0, {text: text}, (folded,))
    chart = ChartPart(text, text, CHART, text, table, SearchBox("search", text, text))
    return Page(
        text,
        text,
        (text, text),
        text,
        ((text, text),),
        (table, chart, CodePart(text, text, text)),
        (text,),
        text,
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

    tables = [TablePart(word(), [word()], [[word()]], word()) for _ in range(2)]
    chart = ChartPart(word(), word(), CHART, word(), tables[1], SearchBox(word(), word(), word()))
    parts = (tables[0], chart, CodePart(word(), word(), word()))
    page = Page(word(), word(), (word(), word()), word(), ((word(), word()),), parts, (word(),), word())
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


def test_a_lone_surrogate_is_replaced():
    html = render_page(page_of("broken \ud800 name"))
    assert "broken ? name" in html
    html.encode()


def test_numbers_that_json_does_not_have_become_null_and_numpy_scalars_become_plain():
    values = [np.float64(1.5), np.int64(2), float("nan"), np.inf, True, None]
    assert _render.chart_json({"values": values}) == '{"values":[1.5,2,null,null,true,null]}'


def test_an_altair_chart_loses_the_url_of_its_schema():
    chart = _charts.spectrum_bars(np.array([0.7, 0.3]))
    assert "$schema" in chart.to_dict()
    found = json.loads(_render.chart_json(chart))
    assert found["data"] == chart.to_dict()["data"]
    assert "$schema" not in found


def test_the_page_loads_nothing(monkeypatch, read):
    monkeypatch.setattr(_render, "drawing_bundle", REAL_BUNDLE)
    html = render_page(page_of("https://example.org/ as text is fine"))
    assert len(html) < 1_200_000
    reader = read(html)
    assert not reader.attributes("src")
    assert all(address.startswith(("#", "data:")) for address in reader.attributes("href"))
    assert not re.search(r"url\(|@import", _render.read_asset("page.css"))
    # The policy restricts what the bundle can do, and no text in it ends its own element.
    assert html.count("<script") == html.count("</script") == 4


def test_the_policy_allows_exactly_the_scripts_of_the_page(read):
    html = render_page(page_of("text"))
    policy = next(a["content"] for _, a in read(html).elements if "http-equiv" in a) or ""
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert _render.content_policy(scripts) == policy
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


def test_a_page_of_one_sentence_has_no_empty_elements(read):
    reader = read(render_page(Page("title", "", ("only this",))))
    assert not {"nav", "footer", "dl", "ul", "figure"} & set(reader.tags())
    assert "only this" in reader.texts


@pytest.mark.parametrize("package", ["altair", "vl_convert", "jinja2"])
def test_without_an_optional_package_the_error_says_what_to_install(monkeypatch, package):
    monkeypatch.setattr(_render, "drawing_bundle", REAL_BUNDLE.__wrapped__)
    monkeypatch.setattr(_render, "_template", _render._template.__wrapped__)
    for module in (_altair, _render):
        monkeypatch.setattr(module, "find_spec", lambda name: None if name == package else name)
    name = "vl-convert-python" if package == "vl_convert" else package
    expected = rf"needs the package '{name}', which is not installed\.\nHint: pip install .sufrep\[report\]"
    with pytest.raises(errors.MissingDependencyError, match=expected):
        render_page(page_of("text"))


def test_a_page_without_charts_does_not_need_the_drawing_library(monkeypatch):
    def fail() -> Any:
        pytest.fail("the bundle was built")

    monkeypatch.setattr(_render, "drawing_bundle", fail)
    assert "only this" in render_page(Page("title", "", ("only this",)))


def test_the_file_contains_the_rendered_page_and_others_may_read_it(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    assert write_page(SENTENCE, str(path)) == path
    assert path.read_text(encoding="utf-8") == render_page(SENTENCE)
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o444 == 0o444


def test_a_full_disk_leaves_the_old_page_and_nothing_else(tmp_path, monkeypatch):
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    expected = r"report.html'?: No space left on device\.\nHint: choose"
    with pytest.raises(errors.NotWritableError, match=expected):
        write_page(SENTENCE, path)
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("report.html", "old")]


def test_a_missing_folder_is_named(tmp_path):
    expected = r"there is no folder '.*missing'\.\nHint: create it"
    with pytest.raises(errors.NotWritableError, match=expected):
        write_page(SENTENCE, tmp_path / "missing" / "report.html")


def test_a_path_that_is_a_folder_is_rejected(tmp_path):
    with pytest.raises(errors.NotWritableError, match=r"it is a folder\.\nHint: name a file in it"):
        write_page(SENTENCE, tmp_path)


def test_a_folder_without_write_permission_is_an_error_with_a_hint(tmp_path, monkeypatch):
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(errors.NotWritableError, match=r"Permission denied\.\nHint: choose a folder"):
        write_page(SENTENCE, tmp_path / "report.html")
