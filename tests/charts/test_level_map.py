"""The map of levels: light, labelled where there is room, and searchable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sufrep._charts import MOST_LEVELS, level_map


def drawn(labels: list[str], **changes: Any) -> Any:
    n = len(labels)
    arguments = {
        "labels": labels,
        "points": np.random.default_rng(0).normal(size=(n, 2)),
        "sizes": np.arange(1.0, n + 1),
        "values": np.linspace(-1, 1, n),
        "titles": ["across", "up"],
    }
    return level_map(**(arguments | changes))


def values_of(chart: Any) -> list[dict[str, Any]]:
    return chart.to_dict(validate=False)["data"]["values"]


def encoding(chart: Any) -> dict[str, Any]:
    return chart.to_dict()["layer"][0]["encoding"]


@pytest.mark.parametrize("labels", [["one"], ["a", "b"], ["</script>", "🦆", "", 'quote " and \\'], []])
def test_a_map_renders_whatever_the_labels(labels, png_size):
    width, height = png_size(drawn(labels).properties(width=400))
    assert width > 400
    assert height > 400


@pytest.mark.parametrize("values", [None, np.full(3, np.nan), np.ones(3), np.array([0.0, 0.0, 9.0])])
def test_a_map_renders_without_or_with_odd_values(values, png_size):
    chart = drawn(["a", "b", "c"], values=values, points=np.zeros((3, 2)))
    png_size(chart.properties(width=400))
    assert ("color" in encoding(chart)) == (values is not None)


def test_each_level_keeps_its_place_size_value_and_what_else_is_to_be_shown():
    chart = drawn(
        ["a", "b"],
        points=np.array([[1.0, 2.0], [3.0, 4.123456789]]),
        sizes=np.array([5.0, 6.5]),
        values=np.array([np.nan, 2.0]),
        more={"state": ["x", "y"]},
    )
    assert values_of(chart) == [
        {"label": "b", "x": 3.0, "y": 4.1235, "size": 6.5, "value": 2.0, "more0": "y", "named": True},
        {"label": "a", "x": 1.0, "y": 2.0, "size": 5, "value": None, "more0": "x", "named": True},
    ]
    titles = [line["title"] for line in encoding(chart)["tooltip"]]
    assert titles == ["level", "rows", "mean of the target", "state"]


def test_of_very_many_levels_the_largest_are_drawn():
    values = values_of(drawn([str(i) for i in range(MOST_LEVELS + 100)]))
    assert len(values) == MOST_LEVELS
    assert min(row["size"] for row in values) == 101


def test_a_few_of_the_largest_carry_their_label():
    values = values_of(drawn([f"level {i}" for i in range(500)]))
    named = [row["size"] for row in values if row.get("named")]
    assert len(named) == 12
    assert min(named) > 440


def test_labels_that_would_cover_each_other_are_left_to_hovering():
    values = values_of(drawn(["first", "second"], points=np.zeros((2, 2))))
    assert [row["label"] for row in values if row.get("named")] == ["second"]


def test_a_few_far_values_do_not_take_all_the_colours():
    scale = encoding(drawn([str(i) for i in range(101)], values=np.r_[np.linspace(0, 1, 100), 1e6]))
    low, middle, high = scale["color"]["scale"]["domain"]
    assert low < middle < high < 1.0
    assert scale["color"]["scale"]["clamp"]


def test_the_search_is_a_parameter_of_the_given_name():
    chart = drawn(["a"], search="wanted").to_dict()
    assert {"name": "wanted", "value": ""} in chart["params"]
    assert "lower(wanted)" in str(chart["layer"][1]["transform"])
