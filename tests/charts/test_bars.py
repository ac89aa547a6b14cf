"""Bars: every level is counted once whatever the sizes, and panels keep rows, order and colours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep._charts import grouped_bars, size_bars, spectrum_bars
from sufrep._charts._bars import _histogram, size_edges

SIZES = st.lists(st.integers(1, 10**9), min_size=1, max_size=50).map(lambda sizes: np.array(sizes, float))


def values_of(chart: Any) -> list[dict[str, Any]]:
    return chart.to_dict()["data"]["values"]


@settings(deadline=None)
@given(SIZES)
def test_few_bins_of_equal_width_contain_every_size_once(sizes):
    edges, kind = size_edges(sizes)
    assert (edges == np.round(edges)).all()
    widths = np.diff(np.log2(edges) if kind == "log" else edges)
    np.testing.assert_allclose(widths, widths[0])
    assert edges[0] <= sizes.min()
    assert edges[-1] > sizes.max()
    assert 1 <= len(edges) - 1 <= 16
    bars, _ = _histogram(sizes)
    assert sum(bar["count"] for bar in bars) == len(sizes)
    assert sum(bar["share"] for bar in bars) == pytest.approx(1.0)


def test_bins_are_named_by_the_sizes_they_contain():
    bars = values_of(size_bars(np.array([1.0, 2.0, 3.0, 40.0, 1500.0])))
    assert [bar["sizes"] for bar in bars[:3]] == ["1", "2 to 3", "4 to 7"]
    assert bars[-1]["sizes"] == "1,024 to 2,047"


def test_sizes_that_differ_little_have_a_linear_axis():
    spec = size_bars(np.array([12.0, 20.0, 33.0])).to_dict()
    assert spec["encoding"]["x"]["scale"] == {"type": "linear", "domain": [12.0, 34.0], "nice": False}
    assert values_of(size_bars(np.array([1.0, 30.0])))[0]["sizes"] == "1"
    assert values_of(size_bars(np.array([1.0, 40.0, 42.0]) + 3))[0]["sizes"] == "1 to 4"


def test_a_weight_below_one_is_counted_in_the_first_bin():
    assert values_of(size_bars(np.array([0.2, 1.0, 5.0])))[0]["count"] == 2


@pytest.mark.parametrize(("noise", "n_layers"), [(None, 1), (0.15, 3)])
def test_the_noise_level_is_drawn_only_if_it_is_known(noise, n_layers):
    chart = spectrum_bars(np.array([0.6, 0.3, 0.1]), noise=noise)
    assert len(chart.to_dict()["layer"]) == n_layers


def test_a_spectrum_keeps_its_order_and_shows_the_first_thirty():
    bars = values_of(spectrum_bars(np.linspace(1, 0.1, 40)))
    assert [bar["index"] for bar in bars] == list(range(1, 31))
    assert bars[0]["share"] == 1.0


def panels(*rows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    arguments = {
        "panels": ["left", "right"],
        "categories": ["here", "there"],
        "series": {"ours": "#123456", "theirs": "#654321"},
        "value_title": "better",
        "reference_title": "published",
        "title": "all",
    }
    return grouped_bars(rows=rows, **(arguments | changes)).to_dict()


def panel_bar(value: float, **changes: Any) -> dict[str, Any]:
    row = {"panel": "left", "category": "here", "series": "ours", "value": value}
    return {**row, "low": value - 0.1, "high": value + 0.1, "reference": 0.2, **changes}


def test_panels_keep_their_rows_order_and_colours():
    rows = [panel_bar(0.3, seeds=4), panel_bar(-0.2, panel="right", series="theirs", seeds=5)]
    spec = panels(*rows, subtitle="in words")
    encoding = spec["spec"]["layer"][0]["encoding"]
    assert spec["data"]["values"] == rows
    assert spec["title"] == {"text": "all", "subtitle": "in words"}
    assert spec["facet"]["column"]["sort"] == ["left", "right"]
    assert encoding["x"]["sort"] == ["here", "there"]
    assert encoding["color"]["scale"] == {"domain": ["ours", "theirs"], "range": ["#123456", "#654321"]}
    assert encoding["y"]["title"] == "better"


def test_tooltips_of_panels_show_shares_in_percent_and_everything_else_unchanged():
    encoding = panels(panel_bar(0.3, seeds=4))["spec"]["layer"][0]["encoding"]
    formats = {line["field"]: line.get("format") for line in encoding["tooltip"]}
    shares = dict.fromkeys(["value", "low", "high", "reference"], ".1%")
    assert formats == {"category": None, "series": None, "seeds": None, **shares}


@pytest.mark.parametrize(("reference", "n_layers"), [(0.2, 3), (0.0, 3), (None, 2)])
def test_references_are_drawn_and_explained_only_if_there_is_one(reference, n_layers):
    assert len(panels(panel_bar(0.3, reference=reference))["spec"]["layer"]) == n_layers
