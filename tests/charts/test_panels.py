"""Bars in panels: they keep their rows, orders and colours."""

from __future__ import annotations

from typing import Any

import pytest

from sufrep import _charts


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
def test_bars_render_above_at_and_below_zero(value, png_size):
    width, height = png_size(bars(bar(value), bar(0.1, place="there", series="theirs")))
    assert width > 300
    assert height > 200


def test_bars_without_interval_or_reference_render(png_size):
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
