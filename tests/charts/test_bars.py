"""Bars: every level is counted once, whatever the sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep._charts import size_bars, spectrum_bars
from sufrep._charts._bars import log_edges

law = settings(deadline=None, max_examples=25)
SIZES = st.lists(st.integers(1, 10**9), min_size=1, max_size=50).map(lambda sizes: np.array(sizes, float))


def values_of(chart: Any) -> list[dict[str, Any]]:
    return chart.to_dict()["data"]["values"]


@law
@given(SIZES)
def test_bins_hold_every_size_once_and_are_few(sizes):
    edges = log_edges(sizes)
    assert (np.diff(edges) >= 1).all()
    assert edges[0] <= sizes.min()
    assert edges[-1] > sizes.max()
    assert 1 <= len(edges) - 1 <= 16
    assert np.histogram(sizes, edges)[0].sum() == len(sizes)


@law
@given(SIZES)
def test_bars_add_up_to_all_levels_and_all_rows(sizes):
    bars = values_of(size_bars(sizes))
    assert sum(bar["count"] for bar in bars) == len(sizes)
    assert sum(bar["share"] for bar in bars) == pytest.approx(1.0)


def test_bins_of_small_sizes_are_named_by_their_sizes():
    bars = values_of(size_bars(np.array([1.0, 2.0, 3.0, 40.0, 1500.0])))
    assert [bar["sizes"] for bar in bars[:3]] == ["1", "2 to 3", "4 to 7"]
    assert bars[-1]["sizes"] == "1,024 to 2,047"


def test_a_weight_below_one_is_counted_in_the_first_bin():
    assert values_of(size_bars(np.array([0.2, 1.0, 5.0])))[0]["count"] == 2


@pytest.mark.parametrize("sizes", [[7.0], [7.0, 7.0], [400.0, 450.0, 600.0], [1.0, 1e6]])
def test_sizes_render(sizes, png_size):
    width, height = png_size(size_bars(np.array(sizes)).properties(width=400))
    assert width > 400
    assert height > 200


@pytest.mark.parametrize(("noise", "n_layers"), [(None, 1), (0.15, 3)])
def test_a_spectrum_renders_with_and_without_a_level_of_noise(noise, n_layers, png_size):
    chart = spectrum_bars(np.array([0.6, 0.3, 0.1]), noise=noise)
    assert len(chart.to_dict()["layer"]) == n_layers
    png_size(chart.properties(width=400))


def test_a_spectrum_keeps_its_order_and_shows_the_first_thirty():
    bars = values_of(spectrum_bars(np.linspace(1, 0.1, 40)))
    assert [bar["index"] for bar in bars] == list(range(1, 31))
    assert bars[0]["share"] == 1.0
