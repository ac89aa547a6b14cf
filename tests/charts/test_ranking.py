"""Rankings: names in their order, one axis for all layers, what is compared with is marked."""

from __future__ import annotations

from typing import Any

import pytest

from sufrep._charts import interval_dots, paired_dots

NAMES = ["b", "<a>", 'quote " and \\']


def ranked(**changes: Any) -> dict[str, Any]:
    row = {"name": "b", "series": "forest", "value": 0.1, "low": 0.05, "high": 0.2, "rows": 1200}
    return {**row, **changes}


def ranking(*rows: dict[str, Any], **changes: Any) -> Any:
    hover = {"name": "encoding", "value": "gain", "rows": "rows"}
    arguments = {"names": NAMES, "series": ["forest"], "value_title": "gain", "hover": hover}
    return interval_dots(rows=rows, **(arguments | changes))


def folds(n_folds: int, **changes: Any) -> Any:
    rows = [
        {"name": name, "fold": str(fold), "value": fold / 10} for name in NAMES for fold in range(n_folds)
    ]
    arguments = {"names": NAMES, "value_title": "gain", "hover": {"name": "encoding", "value": "gain"}}
    return paired_dots(rows=rows, **(arguments | changes))


def layers(chart: Any, mark: str) -> list[dict[str, Any]]:
    return [layer for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == mark]


@pytest.mark.parametrize("chart", [ranking(ranked(), baseline=NAMES[2], reference_title="zero"), folds(3)])
def test_charts_render_and_fill_what_holds_them(chart, png_size):
    assert chart.to_dict()["width"] == "container"
    width, height = png_size(chart.properties(width=500))
    assert width > 500
    assert height > 70


def test_an_interval_that_is_not_known_is_not_drawn(png_size):
    chart = ranking(ranked(low=None, high=None), ranked(series="ridge"), series=["forest", "ridge"])
    png_size(chart.properties(width=500))
    assert layers(chart, "rule")[1]["transform"] == [{"filter": "datum.low !== null && datum.high !== null"}]


def test_names_and_series_keep_the_given_order():
    (dots,) = layers(ranking(ranked(), series=["z", "forest"]), "circle")
    assert dots["encoding"]["y"]["sort"] == NAMES
    assert dots["encoding"]["y"]["scale"]["domain"] == NAMES
    assert dots["encoding"]["color"]["scale"]["domain"] == ["z", "forest"]
    assert dots["encoding"]["yOffset"]["sort"] == ["z", "forest"]


@pytest.mark.parametrize(("series", "drawn"), [(["forest"], False), (["forest", "ridge"], True)])
def test_one_series_needs_no_legend(series, drawn):
    (dots,) = layers(ranking(ranked(), series=series), "circle")
    assert (dots["encoding"]["color"]["legend"] is not None) == drawn


def test_all_layers_share_one_axis():
    for chart in (ranking(ranked(), reference_title="zero"), folds(2)):
        titles = {layer["encoding"]["x"].get("title") for layer in chart.to_dict()["layer"]}
        assert titles == {"gain"}


@pytest.mark.parametrize(("percent", "tick", "hover"), [(True, ".2~%", ".3~p"), (False, ",.4~g", ",.4~r")])
def test_shares_are_shown_in_percent_and_other_numbers_are_not(percent, tick, hover):
    (dots,) = layers(ranking(ranked(), percent=percent), "circle")
    assert dots["encoding"]["x"]["axis"]["format"] == tick
    formats = [line.get("format") for line in dots["encoding"]["tooltip"]]
    assert formats == [None, hover, ",d"]


def test_the_baseline_is_marked_whatever_its_name():
    (dots,) = layers(ranking(ranked(), baseline=NAMES[2]), "circle")
    axis = dots["encoding"]["y"]["axis"]
    marked = 'datum.value === "quote \\" and \\\\"'
    assert axis["labelFontWeight"]["condition"]["test"] == marked
    assert axis["labelExpr"] == f"{marked} ? datum.label + ' (baseline)' : datum.label"


def test_without_a_baseline_no_name_is_marked():
    (dots,) = layers(ranking(ranked()), "circle")
    assert dots["encoding"]["y"]["axis"]["labelExpr"].startswith("datum.value === null ?")


def test_the_span_of_a_name_is_that_of_its_folds():
    (line,) = [layer for layer in layers(folds(3), "rule") if "x2" in layer["encoding"]]
    assert line["data"]["values"] == [
        {"name": name, "low": 0.0, "high": 0.2, "mean": pytest.approx(0.1)} for name in sorted(NAMES)
    ]


def test_a_name_of_which_nothing_is_known_has_no_span(png_size):
    rows = [{"name": "b", "fold": "0", "value": None}]
    chart = paired_dots(rows=rows, names=NAMES, value_title="gain", hover={})
    assert layers(chart, "tick")[0]["data"]["values"] == []
    png_size(chart.properties(width=300))


@pytest.mark.parametrize(("n_folds", "coloured"), [(8, True), (9, False)])
def test_more_folds_than_can_be_told_apart_share_a_colour(n_folds, coloured):
    (dots,) = layers(folds(n_folds), "circle")
    assert ("color" in dots["encoding"]) == coloured
