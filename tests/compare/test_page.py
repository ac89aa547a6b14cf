"""The report: its parts, their order, their charts, and that names in it are text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from sufrep import compare
from sufrep._compare import _run
from sufrep._compare._page import comparison_page, level_kinds_parts
from sufrep._report import CodePart, render_page
from sufrep.errors import ComparisonError

ATTACK = "<script>alert(1)</script>"


def part(page: Any, title: str) -> Any:
    return next(found for found in page.parts if found.title.startswith(title))


def titles(page: Any) -> list[str]:
    return [found.title for found in page.parts]


@pytest.fixture(scope="module")
def page(found):
    """The page of a comparison, made once: Altair checks every chart against its schema."""
    return comparison_page(found)


def test_the_verdict_comes_first_then_the_ranking_the_code_and_the_rest(page, found):
    assert page.title == "town: which encoding predicts price best?"
    assert page.verdict == found.verdict
    assert titles(page) == [
        *(
            "Ranking",
            "Use the recommended pipeline",
            "All results",
            "Fold by fold",
            "Map of the levels of town",
        ),
        *("In how many directions the levels differ", "How large the levels are", "Time against accuracy"),
        "The methods in one line each",
    ]
    assert page.footer.endswith("with random_state=0.")


def test_the_header_says_where_the_rows_come_from_when_and_by_which_version(page, found):
    dated = comparison_page(found, source="houses.csv", day=date(2026, 3, 1))
    assert dated.origin == f"houses.csv · 1 March 2026 · sufrep {version('sufrep')}"
    today = page.origin
    assert str(date.today().year) in today
    assert today.count(" · ") == 1


def test_facts_describe_the_comparison(page, found):
    facts = dict(page.facts)
    sizes = found.plan.data.counts
    assert facts == {
        "rows": "120",
        "levels": "6",
        "rows per level": f"{sizes.min()} to {sizes.max()}",
        "task": "regression",
        "scoring": "typical error (RMSE)",
        "folds": "5",
        "models": "linear",
    }


def test_folds_are_numbered_by_repetition(rows):
    found = compare(*rows(), group="town", methods="means", models="linear", cv=2, n_repeats=2)
    page = comparison_page(found)
    assert dict(page.facts)["folds"] == "2, repeated 2 times"
    assert part(page, "Fold by fold").table.columns[1:] == ("fold 1.1", "fold 1.2", "fold 2.1", "fold 2.2")


def test_the_table_has_all_results_and_marks_the_best(page, found):
    table = part(page, "All results")
    assert [row[:2] for row in table.rows] == [(item.method, item.model) for item in found.summaries]
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert table.rows[table.highlighted][:2] == tuple(found.best)
    assert [further.title for further in table.tables] == [
        f"Compare {found.best.method} with each other method",
        "Show all tests and times",
    ]
    base = next(row for row in table.rows if row[0] == "one_hot")
    assert base[4:7] == (None,) * 3


def test_what_the_verdict_quotes_comes_first_and_the_other_tests_are_folded(page):
    table = part(page, "All results")
    quoted = ["typical error (RMSE)", "improvement", "95 % from", "to", "p"]
    assert table.columns[2:7] == quoted
    tests = table.tables[-1]
    assert tests.columns[2:5] == ["plain p", "corrected p", "adjusted p"]
    assert [row[:2] for row in tests.rows] == [row[:2] for row in table.rows]
    assert not tests.unfolded


def test_no_p_value_is_shown_as_zero(found, values_of):
    sure = replace(found.summaries[0], p_plain=0.0, p_corrected=1e-7, p_adjusted=2e-7)
    table = part(comparison_page(replace(found, summaries=[sure, *found.summaries[1:]])), "All results")
    assert table.rows[0][6] == "< 0.001"
    assert table.tables[-1].rows[0][2:5] == ("< 0.001",) * 3
    shown = values_of(replace(found, summaries=[sure, *found.summaries[1:]]).plot())
    assert next(row["p"] for row in shown if row.get("name") == sure.method) == "< 0.001"


def test_where_no_test_was_made_table_and_ranking_say_why(rows, values_of):
    found = compare(*rows(), group="town", methods="means", models="linear", cv=2)
    page = comparison_page(found)
    table = part(page, "All results")
    assert table.tables[-1].columns[-1] == "no test"
    assert {row[0]: row[-1] for row in table.tables[-1].rows} == {"means": "two folds", "drop": ""}
    assert table.tables[0].columns == ["compared with", "improvement", "95 % from", "to", "not tested"]
    assert [row[2:] for row in table.tables[0].rows] == [(None, None, "two folds")]
    assert all(row[4:7] == (None,) * 3 for row in table.rows)
    assert part(page, "Ranking").text.endswith(" No test and no intervals: two folds.")
    shown = {row["name"]: row["p"] for row in values_of(part(page, "Ranking").chart) if "p" in row}
    assert shown == {"means": "no test: two folds", "drop": None}


def test_without_another_method_the_ranking_says_nothing_about_tests(rows):
    found = compare(*rows(), group="town", methods="drop", models="linear")
    text = part(comparison_page(found), "Ranking").text
    assert text.endswith("Bold is the recommended method: drop (the column left out).")


def test_failures_are_in_the_table_with_their_reason(rows, monkeypatch):
    monkeypatch.setattr(_run, "MAX_CELLS", 1.0)
    found = compare(*rows(), group="town", methods=["drop", "one_hot"], models="linear", n_jobs=1)
    page = comparison_page(found)
    table = part(page, "All results")
    failed = table.tables[0]
    assert failed.unfolded
    assert [(*row[:2], row[2][:11]) for row in failed.rows] == [("one_hot", "linear", "MemoryError")]
    assert table.rows[1][2:9] == (None,) * 7
    assert "Map of the levels of town" not in titles(page)


@pytest.mark.usefixtures("no_bundle")
def test_a_page_of_failures_only(rows):
    def broken(*_: Any) -> float:
        raise ValueError("no score")

    found = compare(*rows(), group="town", methods="drop", models="linear", scoring=broken, n_jobs=1)
    page = comparison_page(found)
    assert page.verdict == ("Every method failed on these data.", "First reason: ValueError: no score")
    assert titles(page) == ["All results", "How large the levels are", "The methods in one line each"]
    with pytest.raises(ComparisonError, match="no score"):
        found.plot()
    assert part(page, "All results").highlighted is None
    assert "no score" in render_page(page)


def test_the_code_loads_the_data_and_builds_the_winner(found):
    code = part(comparison_page(found, "X, y = mine()"), "Use the recommended pipeline")
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


@pytest.fixture(scope="module")
def attacked_page(attacked):
    return comparison_page(attacked)


@pytest.mark.usefixtures("no_bundle")
def test_markup_in_names_is_escaped(attacked_page, page):
    html = render_page(attacked_page)
    shown = read(html)
    text = " ".join(shown.texts)
    assert f"Encode {ATTACK}" in text or f"Drop {ATTACK}" in text  # the column
    assert f"{ATTACK}: which encoding predicts {ATTACK} y best?" in text  # the target
    assert any(cell.strip() == ATTACK for cell in shown.texts)  # the level, in the table of the map
    # As many scripts as a page without attacks has, apart from charts, and none of them is the user's.
    calm = render_page(page)
    assert html.count("<script") == calm.count("<script")
    assert "alert(1)</script" not in html
    assert not re.search(r"<script[^>]*>\s*alert", html)


@pytest.mark.usefixtures("no_bundle")
def test_charts_contain_names_unchanged(attacked_page):
    html = render_page(attacked_page)
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


def test_the_map_is_of_the_best_method_that_has_one(rows):
    X, y = rows()
    found = compare(X, y, group="town", methods=["means", "one_hot"], models=Ridge())
    assert found.best.method == "one_hot"
    assert "Levels that are similar according to means" in part(comparison_page(found), "Map of").text


def test_every_other_method_is_compared_with_the_recommended_one(page, found):
    table = part(page, "All results").tables[0]
    assert table.columns == ["compared with", "improvement", "95 % from", "to"]
    others = [item.method for item in found.summaries if item.method != found.best.method]
    assert [row[0] for row in table.rows] == others
    scores = {item.method: item.score for item in found.summaries}
    for row in table.rows:
        gain = 1 - scores[found.best.method] / scores[row[0]]
        assert row[1] == f"{100 * gain:+.1f}\u00a0%"
        assert None not in row


def test_rare_and_new_levels_have_a_table_if_there_are_any(found, rows):
    assert level_kinds_parts(found, found.summaries) == []
    X, y = rows(300)
    X.loc[:70, "town"] = [
        "x",
        "x",
        *(f"once {i}" for i in range(33)),
        *(f"twice {i // 2}" for i in range(36)),
    ]
    few = compare(X, y, group="town", methods="means", models="linear", folds="spread")
    (table,) = level_kinds_parts(few, few.summaries)
    kinds = {kind: getattr(few.summaries[0], f"n_{kind}") for kind in ("common", "rare", "new")}
    assert kinds["new"] == 33
    assert table.rows[table.highlighted][:2] == tuple(few.best)
    assert "A level is a value of town: common with 10 training rows or more" in table.text
    assert "dash" not in table.text
    assert table.columns == ["method", "model", *(f"{kind} levels, rows: {n}" for kind, n in kinds.items())]
    assert table.rows == [
        (item.method, item.model, item.common, item.rare, item.new) for item in few.summaries
    ]


@pytest.mark.parametrize("n_repeats", [1, 20])
def test_few_rows_of_rare_and_new_levels_have_no_score(rows, n_repeats):
    X, y = rows()
    X.loc[:2, "town"] = ["x", "x", "y"]
    few = compare(X, y, group="town", methods="means", models="linear", n_repeats=n_repeats)
    (table,) = level_kinds_parts(few, few.summaries)
    assert [row[3:] for row in table.rows] == [(None, None)] * 2
    assert table.text.endswith("A dash: fewer than 30 rows, too few for a score.")
    assert all(np.isfinite(item.new) for item in few.summaries)
    assert not any("new levels" in text for text in few.verdict)


@pytest.fixture(scope="module")
def chosen(rows):
    """A comparison of an encoder that chooses."""
    return compare(*rows(), group="town", methods=["sufficient"], models=Ridge(1.0), cv=3)


def test_the_page_says_what_was_kept_and_what_each_component_contributes(chosen):
    page = comparison_page(chosen)
    report = chosen.fitted_encoder("sufficient", "Ridge").report_
    kept = part(page, "What SufficientEncoder kept")
    assert kept.text.startswith(report["summary"].replace(" %", "\u00a0%"))
    assert [row[0] for row in kept.rows] == report["candidates"]["candidate"]
    assert report["candidates"]["chosen"][kept.highlighted]
    contributions, folds = kept.tables
    assert [row[0] for row in contributions.rows] == report["components"]["component"]
    unit = report["candidates"]["loss"][0]
    first = report["components"]["contribution"][0] / unit
    assert contributions.rows[0][1] == f"{100 * first:.1f}\u00a0%"
    assert [row[:2] for row in folds.rows] == [("1", "Ridge"), ("2", "Ridge"), ("3", "Ridge")]
    assert {"means", "states", "target_mean", "mixed_model", "local_effect", "sufficient"} <= dict(
        part(page, "The methods").rows
    ).keys()


def test_an_encoder_that_chooses_is_not_fitted_to_all_rows_for_the_page_alone(rows):
    X, _ = rows()
    noise = np.random.default_rng(1).normal(size=len(X))
    found = compare(X, noise, group="town", methods=["sufficient", "drop"], models=Ridge(1.0), cv=3)
    kept = part(comparison_page(found), "What SufficientEncoder kept in each fold")
    assert [row[:2] for row in kept.rows] == [("1", "Ridge"), ("2", "Ridge"), ("3", "Ridge")]
    assert not any("sufficient" in fitted for fitted in found._fitted)
