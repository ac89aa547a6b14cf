"""Points with labels: they render, whatever the labels, and large charts stay light."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sufrep import _charts, errors
from sufrep._charts import _library


def values_of(chart: Any) -> list[dict[str, Any]]:
    return chart.to_dict(validate=False)["data"]["values"]


def points(labels: list[str], **changes: Any) -> Any:
    n = len(labels)
    rng = np.random.default_rng(0)
    arguments = {
        "labels": labels,
        "points": rng.normal(size=(n, 2)),
        "sizes": np.arange(1.0, n + 1),
        "titles": ["across", "up"],
        "title": "levels",
    }
    return _charts.labelled_points(**(arguments | changes))


@pytest.mark.parametrize(
    "labels", [["one"], ["a", "b"], ["<script>alert(1)</script>", "🦆", "", 'quote " and \\']]
)
def test_a_chart_renders_whatever_the_labels(labels, png_size):
    width, height = png_size(points(labels))
    assert width > 300
    assert height > 300


def test_points_in_one_place_render(png_size):
    png_size(points(["a", "b"], points=np.zeros((2, 2)), sizes=np.ones(2)))


def test_every_point_keeps_its_label_place_and_size():
    chart = points(["a", "b"], points=np.array([[1.0, 2.0], [3.0, 4.0]]), sizes=np.array([5.0, 6.0]))
    assert values_of(chart) == [
        {"label": "b", "x": 3.0, "y": 4.0, "weight": 6.0, "named": "b"},
        {"label": "a", "x": 1.0, "y": 2.0, "weight": 5.0, "named": "a"},
    ]


def test_only_the_largest_carry_a_label_and_all_show_it_on_hover():
    values = values_of(points([f"level {i}" for i in range(200)]))
    named = [row["label"] for row in values if row["named"]]
    assert named == [f"level {i}" for i in range(199, 169, -1)]
    assert {row["label"] for row in values} == {f"level {i}" for i in range(200)}


def test_of_very_many_points_the_largest_are_drawn():
    values = values_of(points([str(i) for i in range(10_000)]))
    assert len(values) == 5_000
    assert min(row["weight"] for row in values) == 5_001


def test_titles_are_those_given():
    spec = points(["a"]).to_dict()
    assert spec["title"] == "levels"
    for layer in spec["layer"]:
        assert layer["encoding"]["x"]["title"] == "across"
        assert layer["encoding"]["y"]["title"] == "up"


def test_without_altair_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(_library, "find_spec", lambda _: None)
    with pytest.raises(
        errors.MissingDependencyError,
        match=r"Drawing needs the package 'altair'.*\nHint: pip install .sufrep\[report\]",
    ):
        points(["a"])
