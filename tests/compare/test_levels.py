"""What the report shows of the levels: means, positions in a plane, and the spectrum of their means."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep import make_encoder
from sufrep._compare._data import read_data
from sufrep._compare._levels import group_means, level_plane, means_spectrum, target_means
from sufrep._compare._page_charts import MAPPABLE


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-50, 50)), min_size=1, max_size=20))
def test_group_means_are_the_means_of_each_level(rows):
    codes, values = np.array(rows).T
    found = group_means(codes, np.column_stack([values, 2.0 * values]), 4)
    for level in range(4):
        expected = values[codes == level].mean() if (codes == level).any() else 0.0
        np.testing.assert_allclose(found[level], [expected, 2 * expected])


def test_the_target_of_a_level_is_its_mean_or_the_share_of_a_class(rows):
    X, y = rows()
    means, title = target_means(read_data(X, y, "town", "auto"))
    np.testing.assert_allclose(means, y.groupby(X["town"]).mean())
    assert title == "mean of price"
    sold = (y > 1).rename("sold")
    means, title = target_means(read_data(X, sold, "town", "auto"))
    np.testing.assert_allclose(means, sold.groupby(X["town"]).mean())
    assert title == "share of sold = True"


def test_of_many_classes_the_most_frequent_is_shown(rows):
    X, _ = rows()
    kinds = pd.Series((["a"] * 3 + ["b"] * 2 + ["c"]) * 20, name="kind")
    means, title = target_means(read_data(X, kinds, "town", "auto"))
    assert title == "share of kind = a"
    np.testing.assert_allclose(means, (kinds == "a").groupby(X["town"]).mean())


@pytest.mark.parametrize("method", sorted(MAPPABLE - {"sufficient"}))
def test_every_method_with_a_map_places_every_level(rows, method):
    X, y = rows()
    data = read_data(X, y, "town", "auto")
    encoder = make_encoder(method, "town").fit(X, y)
    plane = level_plane(data, encoder.representations_["town"], np.arange(6.0))
    assert plane is not None
    assert plane.points.shape == (6, 2)
    assert np.isfinite(plane.points).all()
    assert len(plane.titles) == 2


def test_one_column_is_drawn_against_the_target(rows):
    X, y = rows()
    data = read_data(X, y, "town", "auto")
    encoder = make_encoder("fisher", "town").fit(X, y)
    plane = level_plane(data, encoder.representations_["town"], np.arange(6.0))
    assert plane is not None
    np.testing.assert_array_equal(plane.points[:, 1], np.arange(6.0))
    assert plane.titles[1] == "mean of the target"


def test_an_encoding_without_columns_has_no_map(rows):
    nothing: Any = SimpleNamespace(values=np.empty((6, 0)), positions=lambda levels: np.arange(len(levels)))
    assert level_plane(read_data(*rows(), "town", "auto"), nothing, np.arange(6.0)) is None


def test_the_spectrum_is_that_of_the_standardised_means(rows):
    X, y = rows()
    spectrum = means_spectrum(read_data(X, y, "town", "auto"), 0)
    assert spectrum is not None
    covariates = X[["size", "age"]]
    means = covariates.groupby(X["town"]).transform("mean")
    spread = np.sqrt(((covariates - means) ** 2).mean())
    between = ((means - covariates.mean()) / spread).to_numpy()
    expected = np.linalg.eigvalsh(between.T @ between / len(X))[::-1]
    np.testing.assert_allclose(spectrum.shares, expected / expected.sum())
    # Towns differ in size and not in age.
    assert spectrum.shares[0] > spectrum.noise > spectrum.shares[1]


def test_constant_and_missing_columns_do_not_change_the_spectrum(rows):
    X, y = rows()
    expected = means_spectrum(read_data(X, y, "town", "auto"), 0)
    found = means_spectrum(read_data(X.assign(constant=3.0, nothing=np.nan), y, "town", "auto"), 0)
    assert expected is not None
    assert found is not None
    np.testing.assert_allclose(found.shares[:2], expected.shares)
    np.testing.assert_allclose(found.shares[2:], 0, atol=1e-12)


def test_a_column_that_is_constant_within_levels_counts_by_its_spread_overall(rows):
    X, y = rows()
    X = X.assign(code=X["town"].map("abcdef".index).astype(float))[["town", "code"]]
    spectrum = means_spectrum(read_data(X, y, "town", "auto"), 0)
    assert spectrum is not None
    np.testing.assert_allclose(spectrum.shares, [1.0])


def test_without_covariates_there_is_no_spectrum(rows):
    X, y = rows()
    assert means_spectrum(read_data(X[["town"]], y, "town", "auto"), 0) is None
    assert means_spectrum(read_data(X[["town"]].assign(c=1.0), y, "town", "auto"), 0) is None
    assert means_spectrum(read_data(X[["town"]].assign(c=np.nan), y, "town", "auto"), 0) is None
