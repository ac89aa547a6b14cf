"""Charts of effects: every row is counted, dropped groups are marked, and names are only text."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from sufrep._charts import group_shares, interval_dots, love_plot, propensity_bars

NASTY = ["<b>", 'quote " and \\', "\u2028", "age"]


def values_of(chart: Any) -> list[dict[str, Any]]:
    return chart.to_dict()["data"]["values"]


def layers(chart: Any, mark: str) -> list[dict[str, Any]]:
    return [layer for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == mark]


def shares(**changes: Any) -> Any:
    arguments = {
        "labels": ["a", "b", "c", "d"],
        "sizes": np.array([8.0, 8.0, 8.0, 20.0]),
        "shares": np.array([0.5, 0.5, 1.0, 0.25]),
        "dropped": np.array([False, False, True, False]),
        "group_title": "school",
    }
    return group_shares(**(arguments | changes))


def test_every_row_is_in_a_bar_of_its_arm_also_at_the_bounds():
    bars = values_of(propensity_bars(np.array([0.0, 1.0, 0.5, 0.51]), np.array([True, True, False, False])))
    for arm, sign in (("treated", 1), ("untreated", -1)):
        own = [bar for bar in bars if bar["arm"] == arm]
        assert sum(bar["count"] for bar in own) == 2
        assert sum(bar["height"] for bar in own) == pytest.approx(sign)


def test_an_arm_without_rows_has_no_bars():
    bars = values_of(propensity_bars(np.array([0.5]), np.array([True])))
    assert [bar["share"] for bar in bars if bar["arm"] == "untreated"] == [0.0] * (len(bars) // 2)


def test_groups_with_the_same_numbers_are_one_dot_and_dropped_ones_are_marked():
    assert values_of(shares()) == [
        {"label": "d", "count": 1, "size": 20, "share": 0.25, "kind": "kept"},
        {"label": "a, b", "count": 2, "size": 8, "share": 0.5, "kind": "kept"},
        {"label": "c", "count": 1, "size": 8, "share": 1.0, "kind": "dropped"},
    ]
    assert shares().to_dict()["encoding"]["x"]["title"] == "rows per school"


def test_without_dropped_groups_there_is_no_legend():
    chart = shares(dropped=np.zeros(4, dtype=bool)).to_dict()
    assert chart["encoding"]["color"]["legend"] is None
    low, high = shares(sizes=np.full(4, 8.0)).to_dict()["encoding"]["x"]["scale"]["domain"]
    assert 0 < low < 8 < high


def test_the_love_plot_has_two_dots_for_each_column_below_the_title_of_its_section():
    chart = love_plot({"age": [(name, 0.4, -0.05) for name in NASTY], "none": [], "group": [("x", 0.1, 0.0)]})
    dots = values_of(chart)
    assert [(dot["name"], dot["value"]) for dot in dots[:2]] == [("<b>", 0.4), ("<b>", -0.05)]
    assert sorted({dot["row"] for dot in dots}) == [1, 2, 3, 4, 6]
    (points,) = layers(chart, "point")
    axis = points["encoding"]["y"]["axis"]
    assert json.loads(axis["labelExpr"].removesuffix("[datum.value]")) == ["age", *NASTY, "group", "x"]
    assert axis["labelFontWeight"]["condition"]["test"] == "indexof([0, 5], datum.value) >= 0"
    lines = [row["value"] for layer in layers(chart, "rule")[:2] for row in layer["data"]["values"]]
    assert lines == [0, -0.1, 0.1]


def test_the_highlighted_name_is_bold_and_the_others_are_pale():
    rows = [{"name": name, "series": "", "value": 1.0, "low": 0.0, "high": 2.0} for name in ("a", "b")]
    arguments: dict[str, Any] = {"rows": rows, "names": ["a", "b"], "series": [""], "value_title": "effect"}
    chart = interval_dots(**arguments, hover={"name": "step"}, highlighted="b")
    (dots,) = layers(chart, "circle")
    assert dots["encoding"]["opacity"]["condition"]["test"] == 'datum.name === "b"'
    assert 'datum.value === "b"' in dots["encoding"]["y"]["axis"]["labelFontWeight"]["condition"]["test"]
    (plain,) = layers(interval_dots(**arguments, hover={}), "circle")
    assert "opacity" not in plain["encoding"]
