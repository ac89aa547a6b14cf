"""Normal scores: what is mapped where."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, norm, rankdata

from sufrep.solvers.normal_scores import normal_scores

values = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=60)


@given(values)
def test_scores_are_normal_quantiles_of_mid_ranks(rows: list[float]) -> None:
    column = np.array(rows)
    found = normal_scores([column]).apply([column])[:, 0]
    expected = norm.ppf((rankdata(column) - 0.5) / len(column))
    np.testing.assert_allclose(found, expected if len(set(rows)) > 1 else 0.0, atol=1e-12)


@given(values)
def test_only_the_order_of_the_values_matters(rows: list[float]) -> None:
    column = np.array(rows)
    first, second = (normal_scores([part]).apply([part]) for part in (column, np.exp(column / 10)))
    np.testing.assert_allclose(first, second, atol=1e-9)


@given(values, st.data())
def test_a_weight_of_two_is_a_row_that_came_twice(rows: list[float], data: st.DataObject) -> None:
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    column = np.array(rows)
    weighted = normal_scores([column], np.array(times, dtype=float))
    repeated = normal_scores([np.repeat(column, times)])
    np.testing.assert_allclose(weighted.apply([column]), repeated.apply([column]), atol=1e-12)


@pytest.mark.parametrize("shape", ["lognormal", "exponential", "uniform"])
def test_long_columns_become_normal(shape: str) -> None:
    rng = np.random.default_rng(0)
    column = getattr(rng, shape)(size=20_000)
    maps = normal_scores([column])
    assert len(maps.knots[0]) <= 1000
    assert kstest(maps.apply([column])[:, 0], "norm").statistic < 0.005
    assert kstest(maps.apply([getattr(rng, shape)(size=20_000)])[:, 0], "norm").statistic < 0.02


def test_nulls_constants_and_values_beyond_the_ends() -> None:
    maps = normal_scores([np.array([1.0, 2, 3, np.nan]), np.full(4, 5.0), np.full(4, np.nan)])
    found = maps.apply([np.array([np.nan, 99.0, -99.0]), np.array([5.0, 6.0, np.nan]), np.ones(3)])
    assert found[0].tolist() == [0, 0, 0]
    np.testing.assert_allclose(found[1:, 0], norm.ppf([5 / 6, 1 / 6]))
    assert not found[:, 1:].any()


def test_without_ranks_columns_are_standardised() -> None:
    column = np.random.default_rng(1).normal(3, 2, 500)
    found = normal_scores([column], ranks=False).apply([column])[:, 0]
    np.testing.assert_allclose(found, (column - column.mean()) / column.std(), atol=1e-10)
    assert not normal_scores([np.ones(3)], ranks=False).apply([np.ones(3)]).any()
