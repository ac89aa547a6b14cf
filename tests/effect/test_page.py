"""The report: its parts, their order, and code that gives the same estimate."""

from __future__ import annotations

from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from typing import Any

from sufrep._effect._analysis import CANNOT_DETECT
from sufrep._effect._page import effect_page
from sufrep._effect._subgroups import Subgroups


def part(page: Any, title: str) -> Any:
    return next(found for found in page.parts if found.title.startswith(title))


def test_the_verdict_comes_first_then_the_ladder_and_the_code_last(analysis):
    page = effect_page(analysis)
    assert page.title == "What does drug = yes do to days?"
    assert [paragraph.replace("\u00a0", " ") for paragraph in page.verdict] == list(analysis.verdict)
    assert [found.title for found in page.parts] == [
        *("What the adjustments do", "Effects by subgroup", "Overlap of treated and untreated rows"),
        *("Overlap by hospital", "Balance", "If something is not observed", "Do it in Python"),
    ]
    assert page.notes == analysis.notes


def test_facts_describe_the_estimate(analysis):
    facts = dict(effect_page(analysis).facts)
    assert facts["rows"] == "380 of 400"
    assert facts["groups"] == "38 of 40"
    assert facts["clusters of the errors"] == "38"
    assert facts["effect on"] == "all rows (ATE)"


def test_the_ladder_is_drawn_and_listed_with_the_final_step_highlighted(analysis):
    ladder = part(effect_page(analysis), "What the adjustments do")
    drawn = ladder.chart.to_dict()["data"]["values"]
    assert [row["value"] for row in drawn] == [row["estimate"] for row in analysis.ladder]
    assert ladder.table.rows[ladder.table.highlighted][0] == "+ share of treated rows"
    assert "in bold: + share of treated rows" in ladder.text


def test_dropped_groups_are_in_text_chart_and_table(analysis):
    overlap = part(effect_page(analysis), "Overlap by hospital")
    assert "2 of 40 levels, with 20 rows, have only one of the two" in overlap.text
    assert sum(row["kind"] == "dropped" for row in overlap.chart.to_dict()["data"]["values"]) == 2
    assert [row[0] for row in overlap.table.rows if row[3] == "yes"] == ["h00", "h01"]


def test_balance_lists_covariates_and_statistics_of_the_group(analysis):
    balance = part(effect_page(analysis), "Balance")
    assert {row[1] for row in balance.table.rows} == {"covariate", "group"}
    assert {"age", "mean of treatment"} <= {row[0] for row in balance.table.rows}
    worst = max(balance.table.rows, key=lambda row: abs(row[3]))
    assert f"is {abs(worst[3]):.2f} ({worst[0]})." in balance.text


def test_sensitivity_says_that_it_cannot_detect_a_violation(analysis):
    assert part(effect_page(analysis), "If something").text.endswith(CANNOT_DETECT)


def test_a_page_without_subgroups_or_sensitivity_is_complete(analysed):
    page = effect_page(replace(analysed(estimand="ATO"), subgroups=()))
    assert "Effects by subgroup" not in [found.title for found in page.parts]
    assert part(page, "If something").rows == []


def test_subgroups_that_are_too_small_are_mentioned(analysis):
    row = analysis.subgroups[0].rows[0]
    found = part(effect_page(replace(analysis, subgroups=(Subgroups("age", (row,), 3),))), "Effects by")
    assert [cells[0] for cells in found.table.rows] == ["all rows", row["subgroup"]]
    assert "left out: 3 by age." in found.text


def test_the_code_gives_the_same_estimate(analysis, patients):
    loading = "import numpy as np\ntable = the_table"
    code = part(effect_page(analysis, loading), "Do it in Python").code
    printed = StringIO()
    with redirect_stdout(printed):
        exec(code, {"the_table": patients})
    assert printed.getvalue().strip() == analysis.model.effect_.summary()
    assert "table is the table" in part(effect_page(analysis), "Do it in Python").code
