"""Charts of the report: what they show, and what the text next to them says."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from sklearn.linear_model import Ridge

from sufrep import compare
from sufrep._compare._page import comparison_page
from sufrep._compare._page_charts import (
    CHARTS,
    MAPPABLE,
    _common_rows,
    _ranking_limits,
    fold_parts,
    improvement_text,
    in_words,
    map_parts,
    number_or_none,
    ranking_part,
    size_part,
    spectrum_parts,
    time_part,
)
from sufrep._names import METHOD_TEXTS
from sufrep._report import ChartPart, SearchBox
from sufrep.errors import InvalidParameterError


def part(page: Any, title: str) -> Any:
    return next(found for found in page.parts if found.title.startswith(title))


@pytest.fixture(scope="module")
def done(found):
    return found.summaries


def test_the_ranking_shows_improvements_and_names_the_best(found, done, values_of):
    part = ranking_part(found, done)
    shown = {row["name"]: row["value"] for row in values_of(part.chart) if "value" in row and "name" in row}
    assert shown == pytest.approx({item.method: item.improvement for item in done})
    assert "typical error (RMSE) is lower than with one_hot" in part.text
    assert f"the recommended one is {found.best.method} with linear" in part.description


def test_the_recommended_method_is_bold_in_every_chart_and_table_and_the_baseline_is_not(rows):
    methods = ["means", "low_rank", "one_hot", "drop"]
    X, y = rows()
    found = compare(X, y - 2.0 * X["town"].isin(list("bdf")), group="town", methods=methods, models="linear")
    best = found.best.method
    assert best != found.baseline
    assert f"Bold is the recommended method: {in_words(best)}." in ranking_part(found, found.summaries).text
    (folds,) = fold_parts(found, found.summaries)
    for chart in (found.plot(), folds.chart):
        (bold,) = {json.dumps(axis["labelFontWeight"]["condition"]) for axis in name_axes(chart)}
        assert json.loads(bold) == {"test": f'datum.value === "{best}"', "value": "bold"}
    (italic,) = {axis["labelFontStyle"]["condition"]["test"] for axis in name_axes(found.plot())}
    assert italic == f'datum.value === "{found.baseline}"'
    assert folds.table.rows[folds.table.highlighted][0] == best
    times = time_part(found, found.summaries).chart.to_dict()["data"]["values"]
    assert [row["name"] for row in times if row.get("strong")] == [best]


def name_axes(chart: Any) -> list[dict[str, Any]]:
    axes = [layer["encoding"].get("y", {}).get("axis") for layer in chart.to_dict()["layer"]]
    return [axis for axis in axes if axis]


def test_methods_below_the_axis_of_times_are_named_in_the_text(found, done):
    far = [replace(item, improvement=-40.0 - i) for i, item in enumerate(done[-2:])]
    text = time_part(replace(found, summaries=[*done[:-2], *far]), [*done[:-2], *far]).text
    named = ", ".join(f"{item.method} (\u2212{-100 * item.improvement:.1f}\u00a0%)" for item in far)
    assert text.endswith(f" Arrows are methods further down: {named}.")
    assert "Arrows" not in time_part(found, [*done[:2]]).text


def test_higher_scores_are_better(rows):
    methods = ["means", "one_hot"]
    found = compare(*rows(), group="town", methods=methods, models="linear", scoring="r2")
    assert "the r2 is higher than with one_hot" in ranking_part(found, found.summaries).text
    assert "improvement over one_hot" in found.plot().to_json()


def test_methods_of_several_models_are_on_one_scale(rows, values_of):
    """The further right, the better the score, whatever the model; intervals are moved with the dots."""
    models = {"poor": Ridge(1e4), "good": Ridge(1.0)}
    for scoring in (None, "r2"):
        methods = ["means", "drop", "one_hot"]
        found = compare(*rows(), group="town", methods=methods, models=models, scoring=scoring)
        sign = 1 if scoring is None else -1
        drawn = [row for row in values_of(found.plot()) if "score" in row]
        assert len(drawn) == 6
        by_place = sorted(drawn, key=lambda row: -row["value"])
        assert by_place == sorted(drawn, key=lambda row: sign * row["score"])
        base = {row["series"]: row for row in drawn if row["name"] == "one_hot"}
        assert base["good"]["value"] == 0.0
        for row in drawn:
            (item,) = [o for o in found.summaries if (o.method, o.model) == (row["name"], row["series"])]
            if item.method != "one_hot":  # on either scale, a line includes its baseline or does not
                includes = row["low"] <= base[item.model]["value"] <= row["high"]
                assert includes == (item.low <= 0 <= item.high)
            if item.model == "good":
                assert row["value"] == pytest.approx(item.improvement)
        text = ranking_part(found, found.summaries).text
        assert "than with one_hot (one-hot columns) and good, averaged" in text
        assert "a line includes one_hot with the same model" in text


def test_a_method_far_behind_is_an_arrow_and_does_not_shrink_the_others(found, done):
    last = replace(done[-1], improvement=-40.0, low=-50.0, high=-30.0)
    far = replace(found, summaries=[*done[:-1], last])
    scale = far.plot().to_dict()["layer"][-1]["encoding"]["x"]["scale"]
    assert scale["domain"][0] > -30
    assert scale["clamp"]
    text = ranking_part(far, far.summaries).text
    assert text.endswith(" Arrows are methods further to the left, with their value.")


def test_if_the_baseline_is_best_the_first_interval_is_on_the_axis(found):
    first, *others = found.summaries
    best = replace(first, method="one_hot", improvement=0.0, low=math.nan, high=math.nan)
    close = [replace(item, method="means", improvement=-0.001, low=-0.3, high=0.2) for item in others[:1]]
    far = replace(found, summaries=[best, *close])
    low, high = _ranking_limits(_common_rows(far, far.summaries))
    assert (low, high) == (-0.3, 0.2)


def test_each_fold_has_a_dot_for_each_method_but_the_baseline(found, done, values_of):
    (part,) = fold_parts(found, done)
    methods = {item.method for item in done} - {"one_hot"}
    assert {row[0] for row in part.table.rows} == methods
    assert part.table.columns == ("method", "fold 1", "fold 2", "fold 3", "fold 4", "fold 5")
    assert len([row for row in values_of(part.chart) if "fold" in row]) == 5 * len(methods)


def test_the_baseline_alone_has_no_chart_of_folds(rows):
    found = compare(*rows(), group="town", methods="drop", models="linear")
    assert fold_parts(found, found.summaries) == []
    assert map_parts(found, found.summaries) == []


def test_the_map_lists_the_largest_levels(found, done):
    (part,) = map_parts(found, done)
    data = found.plan.data
    assert part.table.title == "Show all levels as a table"
    assert [row[1] for row in part.table.rows] == sorted(data.counts.tolist(), reverse=True)
    assert {row[0] for row in part.table.rows} == set("abcdef")
    assert part.search == SearchBox("search", "Find a level", "label")


def test_a_method_without_columns_has_no_map(found, done, monkeypatch):
    monkeypatch.setitem(map_parts.__globals__, "level_plane", lambda *_: None)
    assert map_parts(found, done) == []


def test_the_spectrum_counts_directions_above_noise(found):
    (part,) = spectrum_parts(found)
    assert "Directions above it: 1 of 2" in part.text


def test_one_direction_has_no_spectrum(rows):
    X, y = rows()
    found = compare(X[["town", "size"]], y, group="town", methods="drop", models="linear")
    assert spectrum_parts(found) == []


def test_the_number_of_rare_levels_is_given(found):
    counts = found.plan.data.counts
    assert (
        f"6 levels with {counts.min()} to {counts.max()} rows; 0 have fewer rows than"
        in size_part(found).text
    )


def test_levels_are_counted_by_their_number_of_rows(found):
    table = size_part(found).table
    assert table.unfolded
    assert table.columns == ("rows of a level", "levels", "rows", "share of all rows")
    assert sum(row[1] for row in table.rows) == 6
    assert sum(row[2] for row in table.rows) == 120
    assert table.rows[3] == ("10 to 49", 6, 120, "100.0\u00a0%")


def test_methods_are_explained_in_tables_charts_and_a_glossary(found, values_of):
    page = comparison_page(found)
    glossary = dict(part(page, "The methods").rows)
    assert glossary == {item.method: METHOD_TEXTS[item.method] for item in found.summaries}
    assert part(page, "All results").explained == METHOD_TEXTS
    for title in ("Ranking", "Time against accuracy"):
        shown = [row for row in values_of(part(page, title).chart) if "score" in row]
        assert {row["name"]: row["text"] for row in shown} == glossary
        assert '"title": "what it is"' in part(page, title).chart.to_json()


def test_times_are_plotted_against_improvements(found, done, values_of):
    shown = [row for row in values_of(time_part(found, done).chart) if "x" in row]
    assert {row["name"] for row in shown} >= {item.method for item in done}
    assert all(row["x"] > 0 for row in shown)


def test_nan_is_not_shown(found):
    assert number_or_none(float("nan")) is None
    assert number_or_none(2.0) == 2.0
    assert improvement_text(found, float("nan")) is None
    assert improvement_text(found, 0.5) == "+50.0\u00a0%"


def test_codings_and_permutations_have_no_map():
    assert {"means", "latent_state", "sufficient"} <= MAPPABLE
    assert not {"one_hot", "helmert", "permutation", "multi_permutation"} & MAPPABLE


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_of_the_page_is_drawn_by_its_name(found, name):
    parts = comparison_page(found).parts
    assert found.plot(name).to_json() in [one.chart.to_json() for one in parts if isinstance(one, ChartPart)]


def test_a_chart_that_does_not_exist_is_refused(rows):
    found = compare(*rows(), group="town", methods="one_hot", models="linear")
    with pytest.raises(InvalidParameterError, match="chart must be one of ranking, folds"):
        found.plot("rank")
    with pytest.raises(InvalidParameterError, match="chart is 'map'"):
        found.plot("map")
