"""Points keep what they were given, the largest and best are labelled, and large charts stay small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sufrep._charts import _points, labelled_points, labelled_scatter, level_map


def example(n: int) -> dict[str, Any]:
    return {
        "labels": [f"level {i}" for i in range(n)],
        "points": np.random.default_rng(0).normal(size=(n, 2)),
        "sizes": np.arange(1.0, n + 1),
        "titles": ["across", "up"],
    }


def map_of(n: int, **changes: Any) -> dict[str, Any]:
    return level_map(**(example(n) | {"values": np.linspace(-1, 1, n)} | changes)).to_dict()


def notebook_plot(n: int, **changes: Any) -> dict[str, Any]:
    return labelled_points(**(example(n) | {"title": "levels"} | changes)).to_dict()


def scatter(*rows: tuple[str, float, float], lowest: float | None = None) -> dict[str, Any]:
    data = [{"name": name, "series": "forest", "x": x, "y": y} for name, x, y in rows]
    hover = {"name": "encoding", "x": "seconds", "y": "gain"}
    series = ["forest", "ridge"]
    titles = {"x_title": "x", "y_title": "y"}
    return labelled_scatter(rows=data, series=series, hover=hover, lowest=lowest, **titles).to_dict()


def values_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return spec["data"]["values"]


def dots(spec: dict[str, Any]) -> dict[str, Any]:
    return spec["layer"][0]["encoding"]


def test_each_level_keeps_its_position_size_and_value():
    spec = map_of(
        2,
        labels=["a", "b"],
        points=np.array([[1.0, 2.0], [3.0, 4.123456789]]),
        sizes=np.array([5.0, 6.5]),
        values=np.array([np.nan, 2.0]),
    )
    assert values_of(spec) == [
        {"label": "b", "x": 3.0, "y": 4.1235, "size": 6.5, "value": 2.0, "named": "left"},
        {"label": "a", "x": 1.0, "y": 2.0, "size": 5, "value": None, "named": "top"},
    ]
    titles = [line["title"] for line in dots(spec)["tooltip"]]
    assert titles == ["level", "rows", "mean of the target"]


@pytest.mark.parametrize("n_levels", [0, 1, 3])
@pytest.mark.parametrize("value", [np.nan, 1.0])
def test_scales_have_an_extent_where_points_and_values_have_none(n_levels, value):
    encoding = dots(map_of(n_levels, points=np.zeros((n_levels, 2)), values=np.full(n_levels, value)))
    for channel in ("x", "y", "color"):
        assert (np.diff(encoding[channel]["scale"]["domain"]) > 0).all()


def test_without_values_a_map_has_no_colour():
    assert "color" not in dots(map_of(3, values=None))


@pytest.mark.parametrize("chart", [map_of, notebook_plot])
def test_of_very_many_levels_the_largest_are_drawn(chart, monkeypatch):
    monkeypatch.setattr(_points, "MAX_LEVELS", 40)
    drawn = [row["label"] for row in values_of(chart(100))]
    assert drawn == [f"level {i}" for i in range(99, 59, -1)]


def test_a_few_of_the_largest_levels_of_a_map_are_labelled():
    grid = np.stack(np.meshgrid(np.arange(25.0), np.arange(20.0)), axis=-1).reshape(-1, 2)
    grid = np.roll(grid, 250, axis=0)  # the largest in the middle, where labels fit above dots
    labelled = [row["size"] for row in values_of(map_of(500, points=grid)) if row.get("named")]
    assert len(labelled) == 12
    assert min(labelled) > 440


def test_levels_that_stand_apart_are_labelled_however_small():
    points = np.random.default_rng(0).normal(size=(500, 2))
    points[:7] = [
        [20.0, 20.0],
        [-20.0, 5.0],
        [20.0, -20.0],
        [0.0, 20.0],
        [0.0, -15.0],
        [9.0, 0.0],
        [-9.0, 0.0],
    ]
    values = values_of(map_of(500, points=points))
    small = {row["label"]: row["named"] for row in values if row.get("named") and row["size"] < 8}
    assert set(small) == {f"level {i}" for i in range(5)}
    assert small["level 0"] == small["level 2"] == "left"  # there is no room on top, at the edge of the map
    mark = map_of(5)["layer"][-1]["mark"]
    assert "length(search) == 0 ? datum.named : 'top'" in mark["align"]["expr"]


def test_labels_that_would_cover_each_other_are_left_to_the_tooltip():
    values = values_of(map_of(5, points=np.zeros((5, 2))))
    assert [(row["label"], row["named"]) for row in values if row.get("named")] == [
        ("level 4", "top"),
        ("level 3", "right"),
        ("level 2", "left"),
    ]


def test_a_few_outliers_do_not_use_up_the_colours():
    scale = dots(map_of(101, values=np.r_[np.linspace(0, 1, 100), 1e6]))["color"]["scale"]
    low, middle, high = scale["domain"]
    assert low < middle < high < 1.0
    assert scale["clamp"]


def test_the_search_is_a_parameter_of_the_chart():
    spec = map_of(1)
    assert {"name": "search", "value": ""} in spec["params"]
    assert "lower(search)" in str(spec["layer"][1]["transform"])


def test_a_notebook_plot_keeps_points_sizes_and_titles():
    spec = notebook_plot(2, points=np.array([[1.0, 2.0], [3.0, 4.0]]), sizes=np.array([5.0, 6.0]))
    assert values_of(spec) == [
        {"label": "level 1", "x": 3.0, "y": 4.0, "weight": 6.0, "named": "level 1"},
        {"label": "level 0", "x": 1.0, "y": 2.0, "weight": 5.0, "named": "level 0"},
    ]
    assert (spec["title"], dots(spec)["x"]["title"], dots(spec)["y"]["title"]) == ("levels", "across", "up")


def test_a_notebook_plot_labels_the_thirty_largest():
    labelled = [row["label"] for row in values_of(notebook_plot(50)) if row["named"]]
    assert labelled == [f"level {i}" for i in range(49, 19, -1)]


def test_labelled_levels_have_ellipses_of_95_percent():
    covariance = np.array([[4.0, 1.0], [1.0, 0.5]])
    spec = notebook_plot(3, covariances=np.array([covariance, np.full((2, 2), np.nan), covariance / 4]))
    outlines = spec["layer"][0]
    assert spec["title"] == {"text": "levels", "subtitle": "Ellipses: 95 % regions of the labelled levels"}
    rows = outlines["data"]["values"]
    assert {row["label"] for row in rows} == {"level 2", "level 0"}  # the largest first; one is not known
    centre = {row["label"]: (row["x"], row["y"]) for row in values_of(spec)}["level 2"]
    edge = np.array([[row["x"], row["y"]] for row in rows if row["label"] == "level 2"]) - centre
    distance = np.einsum("ni,ij,nj->n", edge, np.linalg.inv(covariance), edge)
    np.testing.assert_allclose(distance, 5.9915, rtol=1e-4)  # the 95 % quantile of χ² with 2 d.f.
    np.testing.assert_allclose(edge[0], edge[-1], atol=1e-9)  # closed
    assert outlines["encoding"]["order"]["field"] == "corner"


def test_in_one_dimension_ellipses_are_intervals():
    covariances = np.zeros((2, 2, 2))
    covariances[:, 0, 0] = 0.25
    spec = notebook_plot(2, points=np.array([[1.0, 1.0], [3.0, 2.0]]), covariances=covariances)
    assert spec["title"]["subtitle"] == "Lines: 95 % intervals of the labelled levels"
    x = [row["x"] for row in spec["layer"][0]["data"]["values"] if row["label"] == "level 0"]
    assert (min(x), max(x)) == pytest.approx((1 - 0.98, 1 + 0.98), abs=0.01)
    assert {row["y"] for row in spec["layer"][0]["data"]["values"]} == {1.0, 2.0}


def test_without_any_known_error_there_are_no_ellipses():
    plain, unknown = notebook_plot(3), notebook_plot(3, covariances=np.full((3, 2, 2), np.nan))
    assert len(plain["layer"]) == len(unknown["layer"]) == 2
    assert unknown["title"] == "levels"


def test_every_dot_of_a_scatter_keeps_its_data():
    expected = {"name": "a", "series": "forest", "x": 1.0, "y": 0.1, "label": "a"}
    assert values_of(scatter(("a", 1.0, 0.1))) == [{**expected, "wide": "right", "narrow": "right"}]
    assert values_of(scatter()) == []


def test_where_names_would_cover_each_other_the_faster_and_better_is_named():
    rows = [(f"slow {i}", 1.001 + i / 1e6, 0.1) for i in range(9)]
    rows += [("best", 1.0, 0.1), ("corner", 1e-3, -1.0), ("corner", 1e3, 1.0)]
    sides = {row["name"]: row["wide"] for row in values_of(scatter(*rows))}
    assert sides["best"]
    assert sum(bool(side) for name, side in sides.items() if name.startswith("slow")) < 4


def test_gains_are_in_percent_and_seconds_are_not():
    tooltip = scatter(("a", 1.5, 0.1))["layer"][1]["encoding"]["tooltip"]
    assert [line.get("format") for line in tooltip] == [None, ",.4~r", ".3~p"]


def test_every_dot_that_no_other_beats_is_labelled():
    rng = np.random.default_rng(0)
    for _ in range(20):
        points = rng.normal(size=(18, 2))
        rows = values_of(scatter(*((f"a_long_name_{i}", np.exp(x), y) for i, (x, y) in enumerate(points))))
        for row in rows:
            beaten = any(one["x"] < row["x"] and one["y"] > row["y"] for one in rows)
            assert beaten or row["wide"], row


def test_a_dot_below_the_axis_is_an_arrow_at_its_end_with_its_number():
    spec = scatter(("good", 1.0, 0.1), ("poor", 2.0, -0.1), ("bad", 3.0, -25.0), lowest=-0.1)
    assert [row["label"] for row in values_of(spec)] == ["good", "poor", "bad \u22122500\u00a0%"]
    encoding, mark = spec["layer"][1]["encoding"], spec["layer"][1]["mark"]
    low, high = encoding["y"]["scale"]["domain"]
    assert -0.2 < low < -0.1
    assert 0.1 < high < 0.2
    assert encoding["y"]["scale"]["clamp"]
    assert mark["shape"] == {"expr": "datum.y < -0.1 ? 'triangle-down' : 'circle'"}
