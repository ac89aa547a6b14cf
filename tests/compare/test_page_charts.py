"""Charts of the report hold what the results say."""

from __future__ import annotations

from typing import Any

import pytest

from sufrep import compare
from sufrep._compare._page_charts import (
    fold_parts,
    improvement_text,
    map_parts,
    number_or_none,
    ranking_part,
    size_part,
    spectrum_parts,
    time_part,
)
from sufrep._report import SearchBox


def values_of(chart: Any) -> list[dict[str, Any]]:
    """All rows of data of an Altair chart, wherever they stand in it."""
    found: list[dict[str, Any]] = []
    waiting = [chart.to_dict()]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found += part["data"]["values"] if "values" in part.get("data", ()) else []
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return found


@pytest.fixture(scope="module")
def done(found):
    return found.summaries


def test_the_ranking_shows_improvements_and_names_the_best(found, done):
    part = ranking_part(found, done)
    shown = {row["name"]: row["value"] for row in values_of(part.chart) if "value" in row and "name" in row}
    assert shown == pytest.approx({item.method: item.improvement for item in done})
    assert "mean squared error lies below that of one_hot" in part.text
    assert f"the best is {done[0].method} with linear" in part.description


def test_scores_lie_above_the_baseline(rows):
    found = compare(*rows(), group="town", methods="means", models="linear", scoring="r2")
    assert "the r2 lies above that of one_hot" in ranking_part(found, found.summaries).text
    assert "improvement over one_hot" in found.plot().to_json()


def test_each_fold_has_a_dot_for_each_method_but_the_baseline(found, done):
    (part,) = fold_parts(found, done)
    methods = {item.method for item in done} - {"one_hot"}
    assert {row[0] for row in part.table.rows} == methods
    assert part.table.columns == ("method", "fold 1", "fold 2", "fold 3", "fold 4")
    assert len([row for row in values_of(part.chart) if "fold" in row]) == 4 * len(methods)


def test_the_baseline_alone_has_no_chart_of_folds(rows):
    found = compare(*rows(), group="town", methods="one_hot", models="linear")
    assert fold_parts(found, found.summaries) == []
    assert map_parts(found, found.summaries) == []


def test_the_map_lists_the_largest_levels(found, done):
    (part,) = map_parts(found, done)
    problem = found.plan.problem
    assert part.table.title == "Show the 6 largest levels as a table"
    assert [row[1] for row in part.table.rows] == sorted(problem.counts.tolist(), reverse=True)
    assert {row[0] for row in part.table.rows} == set("abcdef")
    assert part.search == SearchBox("search", "Find a level", "label")


def test_a_method_without_columns_has_no_map(found, done, monkeypatch):
    monkeypatch.setitem(map_parts.__globals__, "level_plane", lambda *_: None)
    assert map_parts(found, done) == []


def test_the_spectrum_counts_directions_above_noise(found):
    (part,) = spectrum_parts(found)
    assert "1 of 2 directions lie above it" in part.text


def test_one_direction_has_no_spectrum(rows):
    X, y = rows()
    found = compare(X[["town", "size"]], y, group="town", methods="drop", models="linear")
    assert spectrum_parts(found) == []


def test_sizes_tell_how_many_levels_are_rare(found):
    counts = found.plan.problem.counts
    assert (
        f"6 levels of {counts.min()} to {counts.max()} rows; 0 have fewer rows than" in size_part(found).text
    )


def test_times_stand_against_improvements(found, done):
    shown = [row for row in values_of(time_part(found, done).chart) if "x" in row]
    assert {row["name"] for row in shown} >= {item.method for item in done}
    assert all(row["x"] > 0 for row in shown)


def test_what_is_no_number_is_not_shown(found):
    assert number_or_none(float("nan")) is None
    assert number_or_none(2.0) == 2.0
    assert improvement_text(found, float("nan")) is None
    assert improvement_text(found, 0.5) == "+50.0\u00a0%"
