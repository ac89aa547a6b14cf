"""Charts: they render, whatever the labels, and large ones stay light."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sufrep import _charts, errors


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


def png_size(chart: Any) -> tuple[int, int]:
    """Render, and read width and height from the header of the picture."""
    picture = io.BytesIO()
    chart.save(picture, format="png")
    assert picture.getvalue().startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", picture.getvalue()[16:24])


def values_of(chart: Any) -> list[dict[str, Any]]:
    return chart.to_dict(validate=False)["data"]["values"]


@pytest.mark.parametrize(
    "labels", [["one"], ["a", "b"], ["<script>alert(1)</script>", "🦆", "", 'quote " and \\']]
)
def test_a_chart_renders_whatever_the_labels(labels):
    width, height = png_size(points(labels))
    assert width > 300
    assert height > 300


def test_points_in_one_place_render():
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
    monkeypatch.setattr(_charts, "find_spec", lambda _: None)
    with pytest.raises(
        errors.MissingDependencyError,
        match=r"Drawing needs the package 'altair'.*\nHint: pip install .sufrep\[report\]",
    ):
        points(["a"])


def bars(*rows: dict[str, Any], **changes: Any) -> Any:
    arguments = {
        "panels": ["left", "right"],
        "places": ["here", "there"],
        "series": {"ours": "#123456", "theirs": "#654321"},
        "value_title": "better",
        "reference_title": "published",
        "title": "all",
    }
    return _charts.grouped_bars(rows=rows, **(arguments | changes))


def bar(value: float, **changes: Any) -> dict[str, Any]:
    row = {"panel": "left", "place": "here", "series": "ours", "value": value}
    return {**row, "low": value - 0.1, "high": value + 0.1, "reference": 0.2, **changes}


@pytest.mark.parametrize("value", [-0.5, 0.0, 0.5])
def test_bars_render_above_at_and_below_zero(value):
    width, height = png_size(bars(bar(value), bar(0.1, place="there", series="theirs")))
    assert width > 300
    assert height > 200


def test_bars_without_interval_or_reference_render():
    png_size(bars(bar(0.1, low=None, high=None, reference=None), bar(-0.1, panel="right")))


def test_bars_keep_their_rows_orders_and_colours():
    rows = [bar(0.3, seeds=4), bar(-0.2, panel="right", series="theirs", seeds=5)]
    spec = bars(*rows, subtitle="in words").to_dict()
    encoding = spec["spec"]["layer"][0]["encoding"]
    assert spec["data"]["values"] == rows
    assert spec["title"] == {"text": "all", "subtitle": "in words"}
    assert spec["facet"]["column"]["sort"] == ["left", "right"]
    assert encoding["x"]["sort"] == ["here", "there"]
    assert encoding["color"]["scale"] == {"domain": ["ours", "theirs"], "range": ["#123456", "#654321"]}
    assert encoding["y"]["title"] == "better"


def test_hovering_shows_shares_in_percent_and_everything_else_as_it_is():
    encoding = bars(bar(0.3, seeds=4)).to_dict()["spec"]["layer"][0]["encoding"]
    formats = {shown["field"]: shown.get("format") for shown in encoding["tooltip"]}
    shares = dict.fromkeys(["value", "low", "high", "reference"], ".1%")
    assert formats == {"place": None, "series": None, "seeds": None, **shares}


@pytest.mark.parametrize(("reference", "n_layers"), [(0.2, 3), (0.0, 3), (None, 2)])
def test_marks_are_drawn_and_explained_only_if_there_is_one(reference, n_layers):
    layers = bars(bar(0.3, reference=reference)).to_dict()["spec"]["layer"]
    assert len(layers) == n_layers


class Page:
    """Something that can be saved, and fails at one of the formats."""

    def __init__(self, fails_at: str = "") -> None:
        self._fails_at = fails_at

    def save(self, path: Path, format: str, **_: Any) -> None:  # noqa: A002 - the name is Altair's
        path.write_text("half")
        if format == self._fails_at:
            raise OSError(28, "No space left on device")
        path.write_text(f"whole {format}")


def test_a_chart_is_written_in_three_formats_under_one_name(tmp_path):
    written = _charts.write_chart(Page(), tmp_path / "figure_1.5")
    assert [path.name for path in written] == ["figure_1.5.png", "figure_1.5.svg", "figure_1.5.html"]
    assert [path.read_text() for path in written] == ["whole png", "whole svg", "whole html"]
    assert sorted(tmp_path.iterdir()) == sorted(written)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    (tmp_path / "figure.svg").write_text("old")
    with pytest.raises(OSError, match="No space left"):
        _charts.write_chart(Page(fails_at="svg"), tmp_path / "figure")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"figure.png": "whole png", "figure.svg": "old"}


def test_without_the_renderer_it_is_said_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(_charts, "find_spec", lambda _: None)
    with pytest.raises(
        errors.MissingDependencyError,
        match=r"Writing pictures needs the package 'vl-convert-python'.*\nHint: .* .sufrep\[report\]",
    ):
        _charts.write_chart(Page(), tmp_path / "figure")
    assert not list(tmp_path.iterdir())
