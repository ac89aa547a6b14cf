"""The report: what stands on it, in which order, and that names on it are text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from sklearn.linear_model import Ridge

from sufrep import compare
from sufrep._compare._page import comparison_page
from sufrep._report import CodePart, render_page

ATTACK = "<script>alert(1)</script>"


def part(page: Any, title: str) -> Any:
    return next(found for found in page.parts if found.title.startswith(title))


def titles(page: Any) -> list[str]:
    return [found.title for found in page.parts]


def test_the_verdict_comes_first_then_the_ranking_the_code_and_the_rest(found):
    page = comparison_page(found)
    assert page.title == "town: which representation predicts price?"
    assert page.verdict == found.verdict
    assert titles(page) == [
        *("Ranking", "Use the winner", "All results", "Fold by fold", "Map of the levels of town"),
        *("In how many ways the levels differ", "How large the levels are", "Time against accuracy"),
    ]
    assert page.footer.endswith("with random_state=0.")


def test_facts_tell_what_was_compared(found):
    facts = dict(comparison_page(found).facts)
    sizes = found.plan.problem.counts
    assert facts == {
        "rows": "120",
        "levels": "6",
        "rows a level": f"{sizes.min()} to {sizes.max()}",
        "task": "regression",
        "measure": "mean squared error",
        "folds": "4",
        "models": "linear",
    }


def test_repetitions_are_told_and_folds_named_after_them(rows):
    found = compare(*rows(), group="town", methods="means", models="linear", cv=2, n_repeats=2)
    page = comparison_page(found)
    assert dict(page.facts)["folds"] == "2, 2 times"
    assert part(page, "Fold by fold").table.columns[1:] == ("fold 1.1", "fold 1.2", "fold 2.1", "fold 2.2")


def test_the_table_has_all_results_and_marks_the_best(found):
    table = part(comparison_page(found), "All results")
    assert [row[:2] for row in table.rows] == [(item.method, item.model) for item in found.summaries]
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert table.highlight == 0
    assert "failed because" not in table.columns
    base = next(row for row in table.rows if row[0] == "one_hot")
    assert base[4:9] == (None,) * 5


def test_failures_stand_in_the_table_with_their_reason(rows, monkeypatch):
    monkeypatch.setitem(compare.__globals__["run_plan"].__globals__, "MOST_CELLS", 1.0)
    found = compare(*rows(), group="town", methods=["drop"], models="linear", n_jobs=1)
    page = comparison_page(found)
    table = part(page, "All results")
    assert table.columns[-1] == "failed because"
    assert [row[-1][:11] for row in table.rows] == ["", "MemoryError"]
    assert table.rows[1][2:12] == (None,) * 10
    assert "Map of the levels of town" not in titles(page)


@pytest.mark.usefixtures("no_bundle")
def test_a_page_of_failures_only_says_so(rows):
    def broken(*_: Any) -> float:
        raise ValueError("no score")

    found = compare(*rows(), group="town", methods="drop", models="linear", scoring=broken, n_jobs=1)
    page = comparison_page(found)
    assert page.verdict == ("No method worked on these data.", "The first reason: ValueError: no score")
    assert titles(page) == ["All results", "How large the levels are"]
    assert part(page, "All results").highlight is None
    assert "no score" in render_page(page)


def test_the_code_is_that_of_the_winner_with_its_loading(found):
    code = part(comparison_page(found, "X, y = mine()"), "Use the winner")
    assert isinstance(code, CodePart)
    assert "X, y = mine()" in code.code
    assert f"make_encoder('{found.best.method}', 'town'" in code.code


class Reader(HTMLParser):
    """Elements, and all text outside of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.texts: list[str] = []
        self.data: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:  # noqa: ARG002
        self.elements.append(tag)

    def handle_data(self, data: str) -> None:
        (self.data if self.elements[-1:] == ["script"] else self.texts).append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


@pytest.mark.usefixtures("no_bundle")
def test_names_that_try_to_be_more_than_text_are_text(attacked, found):
    html = render_page(comparison_page(attacked))
    page = read(html)
    text = " ".join(page.texts)
    assert f"Represent {ATTACK}" in text or f"Leave {ATTACK}" in text  # the column
    assert f"{ATTACK}: which representation predicts {ATTACK} y?" in text  # the target
    assert any(cell.strip() == ATTACK for cell in page.texts)  # the level, in the table of the map
    # As many scripts as a page without attacks has, apart from charts, and none of them is the user's.
    calm = render_page(comparison_page(found))
    assert html.count("<script") == calm.count("<script")
    assert "alert(1)</script" not in html
    assert not re.search(r"<script[^>]*>\s*alert", html)


@pytest.mark.usefixtures("no_bundle")
def test_the_data_of_charts_hold_names_as_they_are(attacked):
    html = render_page(comparison_page(attacked))
    specs = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL)
    assert any(ATTACK in json.dumps(json.loads(spec)) for spec in specs)


def test_a_page_is_made_for_classes_and_for_several_models(mixed):
    X, y = mixed
    models = {"one": "linear", "two": "boosting"}
    found = compare(
        X, y > y.median(), group=["town", "view"], methods=["means", "fisher"], models=models, cv=2
    )
    page = comparison_page(found)
    assert dict(page.facts)["models"] == "one, two"
    assert "share of price = True" in part(page, "Map of").text


def test_a_winner_without_a_map_gives_way_to_the_next_that_has_one(rows):
    X, y = rows()
    found = compare(X, y, group="town", methods=["means"], models=Ridge())
    assert found.best.method == "one_hot"
    assert "Levels that means takes for alike" in part(comparison_page(found), "Map of").text
