"""Rankings: names in their order, one axis for all layers, and one name in bold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep._charts import axis_limits, dot_panels, interval_dots, paired_dots

NAMES = ["b", "<a>", 'quote " and \\']


def row(**changes: Any) -> dict[str, Any]:
    values = {"name": "b", "series": "forest", "value": 0.1, "low": 0.05, "high": 0.2, "rows": 1200}
    return {**values, **changes}


def ranking(**changes: Any) -> Any:
    hover = {"name": "encoding", "value": "gain", "rows": "rows"}
    arguments = {"rows": [row()], "names": NAMES, "series": ["forest"], "value_title": "gain", "hover": hover}
    return interval_dots(**(arguments | changes))


def folds(n_folds: int, **changes: Any) -> Any:
    rows = [
        {"name": name, "fold": str(fold), "value": fold / 10} for name in NAMES for fold in range(n_folds)
    ]
    hover = {"name": "encoding", "value": "gain"}
    return paired_dots(rows=rows, names=NAMES, value_title="gain", hover=hover, **changes)


def layers(chart: Any, mark: str) -> list[dict[str, Any]]:
    return [layer for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == mark]


def dots(chart: Any) -> dict[str, Any]:
    (layer,) = layers(chart, "circle")
    return layer["encoding"]


def test_an_unknown_interval_is_not_drawn():
    chart = ranking(rows=[row(low=None, high=None), row(series="ridge")], series=["forest", "ridge"])
    assert layers(chart, "rule")[1]["transform"] == [{"filter": "datum.low !== null && datum.high !== null"}]


def test_names_and_series_keep_the_given_order():
    encoding = dots(ranking(series=["z", "forest"]))
    assert encoding["y"]["sort"] == NAMES
    assert encoding["y"]["scale"]["domain"] == NAMES
    assert encoding["color"]["scale"]["domain"] == ["z", "forest"]
    assert encoding["yOffset"]["sort"] == ["z", "forest"]


@pytest.mark.parametrize(("series", "drawn"), [(["forest"], False), (["forest", "ridge"], True)])
def test_a_single_series_needs_no_legend(series, drawn):
    assert (dots(ranking(series=series))["color"]["legend"] is not None) == drawn


@pytest.mark.parametrize("chart", [ranking(reference_title="zero"), folds(2)])
def test_all_layers_share_one_axis_that_fills_the_page(chart):
    spec = chart.to_dict()
    assert spec["width"] == "container"
    assert {layer["encoding"]["x"].get("title") for layer in spec["layer"]} == {"gain"}


@pytest.mark.parametrize(("percent", "tick", "hover"), [(True, ".2~%", ".3~p"), (False, ",.4~g", ",.4~r")])
def test_shares_are_shown_in_percent_and_other_numbers_are_not(percent, tick, hover):
    encoding = dots(ranking(percent=percent))
    assert encoding["x"]["axis"]["format"] == tick
    assert [line.get("format") for line in encoding["tooltip"]] == [None, hover, ",d"]


def test_the_baseline_is_in_italics_and_the_highlighted_name_is_bold_whatever_their_names():
    axis = dots(ranking(baseline=NAMES[2], highlighted="b"))["y"]["axis"]
    is_baseline = 'datum.value === "quote \\" and \\\\"'
    assert axis["labelFontStyle"]["condition"] == {"test": is_baseline, "value": "italic"}
    assert axis["labelFontWeight"]["condition"] == {"test": 'datum.value === "b"', "value": "bold"}
    assert axis["labelExpr"] == f"{is_baseline} ? datum.label + ' (baseline)' : datum.label"


def test_of_the_highlighted_name_only_one_series_may_stand_out():
    encoding = dots(ranking(highlighted="b", highlighted_series="forest", series=["forest", "ridge"]))
    assert encoding["opacity"]["condition"]["test"] == 'datum.name === "b" && datum.series === "forest"'


def test_on_a_narrow_axis_there_are_fewer_numbers():
    assert dots(ranking())["x"]["axis"]["tickCount"] == {"expr": "width < 320 ? 3 : 6"}


def test_without_a_baseline_no_name_is_marked():
    assert dots(ranking())["y"]["axis"]["labelExpr"].startswith("datum.value === null ?")


def test_the_line_of_a_name_covers_the_range_of_its_folds():
    (line,) = [layer for layer in layers(folds(3), "rule") if "x2" in layer["encoding"]]
    assert line["data"]["values"] == [
        {"name": name, "low": 0.0, "high": 0.2, "mean": pytest.approx(0.1)} for name in sorted(NAMES)
    ]


def test_a_name_without_any_known_value_has_no_line():
    rows = [{"name": "b", "fold": "0", "value": None}]
    chart = paired_dots(rows=rows, names=NAMES, value_title="gain", hover={})
    assert layers(chart, "tick")[0]["data"]["values"] == []


@pytest.mark.parametrize(("n_folds", "coloured"), [(8, True), (9, False)])
def test_more_folds_than_distinguishable_colours_share_one(n_folds, coloured):
    assert ("color" in dots(folds(n_folds))) == coloured


# The ends of the axis

GAINS = st.lists(st.floats(-100, 1), min_size=1, max_size=20)


@given(GAINS)
def test_the_better_half_and_zero_take_a_third_of_the_axis(gains):
    low, high = axis_limits(gains)
    better = sorted(gains, reverse=True)[: (len(gains) + 1) // 2]
    seen = [0.0, *better]
    assert low <= min(seen) <= max(seen) <= high
    if min(seen) < max(seen):
        assert 3 * (max(seen) - min(seen)) >= (high - low) * (1 - 1e-9)


@given(GAINS, st.floats(-1e6, -200))
def test_however_bad_the_worst_is_the_axis_is_the_same(gains, worst):
    assert axis_limits([*gains, 0.5, worst]) == axis_limits([*gains, 0.5, worst - 1e6])


def test_the_axis_is_no_longer_than_needed_and_has_what_must_be_seen():
    assert axis_limits([0.1, 0.05, -0.02], [0.04, 0.16]) == (-0.02, 0.16)
    assert axis_limits([0.1, 0.05, -0.02], [0.04, 0.16], drawn=[-9.0, 0.2]) == (-0.16, 0.2)
    assert axis_limits([0.0, 0.0, -0.1, -30.0]) == (-0.2, 0.0)
    assert axis_limits([]) == (0.0, 0.0)


def texts(chart: Any) -> list[dict[str, Any]]:
    return [layer for layer in layers(chart, "text") if "field" in layer["encoding"]["text"]]


def test_values_beyond_the_axis_are_arrows_with_their_number():
    rows = [row(), row(name="<a>", value=-25.0, low=-30.0, high=-20.0)]
    chart = ranking(rows=rows, limits=(-0.2, 0.2))
    scale = dots(chart)["x"]["scale"]
    assert scale == {"domain": pytest.approx([-0.208, 0.208]), "clamp": True, "nice": False}
    left, right = layers(chart, "point")
    assert [arrow["mark"]["shape"] for arrow in (left, right)] == ["triangle-left", "triangle-right"]
    assert left["transform"] == [{"filter": "datum.value !== null && datum.value < -0.2"}]
    assert right["transform"] == [{"filter": "datum.value > 0.2"}]
    (circles,) = layers(chart, "circle")
    assert circles["transform"] == [{"filter": "datum.value >= -0.2 && datum.value <= 0.2"}]
    assert {layer["encoding"]["text"]["format"] for layer in texts(chart)} == {".3~p"}
    assert layers(ranking(), "point") == []


def test_of_folds_beyond_the_axis_the_number_is_that_of_their_mean():
    chart = folds(3, limits=(0.0, 0.15))
    assert {layer["encoding"]["text"]["field"] for layer in texts(chart)} == {"mean"}
    assert layers(chart, "tick")[0]["transform"] == [{"filter": "datum.mean >= 0.0 && datum.mean <= 0.15"}]


# Panels


def test_panels_have_a_line_for_each_measure_with_a_rule_at_its_best_value():
    rows = [
        {"measure": measure, "panel": panel, "name": "b", "value": 0.1, "low": None, "high": None}
        for measure in ("bias", "coverage")
        for panel in ("p", "q")
    ]
    chart = dot_panels(
        rows=rows,
        panels=["q", "p"],
        names=NAMES,
        measures={"bias": 0.0, "coverage": 0.95},
        highlighted="b",
        title="t",
    )
    lines = chart.to_dict()["vconcat"]
    rules = [line["spec"]["layer"][0]["encoding"]["x"]["datum"] for line in lines]
    assert rules == [0.0, 0.95]
    for line, measure in zip(lines, ("bias", "coverage"), strict=True):
        assert line["data"]["values"] == [row for row in rows if row["measure"] == measure]
        assert line["facet"]["column"]["sort"] == ["q", "p"]
        assert line["spec"]["layer"][2]["encoding"]["x"]["title"] == measure
        assert line["spec"]["layer"][2]["encoding"]["y"]["sort"] == NAMES
