"""Sums by level, against a double loop over rows and covariates."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sufrep import _accumulate
from sufrep._accumulate import Sums, accumulate
from sufrep.errors import InfiniteValueError
from sufrep.moments import GroupMoments
from sufrep.representation import as_levels


@dataclass
class Table:
    """Rows as ``accumulate`` takes them; some levels have no row."""

    codes: np.ndarray
    rows: np.ndarray
    weights: np.ndarray | None
    n_levels: int


@st.composite
def tables(draw: st.DrawFn) -> Table:
    n, p, n_levels = draw(st.integers(0, 30)), draw(st.integers(0, 3)), draw(st.integers(1, 5))
    values = st.floats(-100, 100) | st.just(np.nan) if draw(st.booleans()) else st.floats(-100, 100)
    weights = hnp.arrays(float, n, elements=st.sampled_from([0.0, 0.1, 1 / 3, 1.0, 2.0]))
    return Table(
        draw(hnp.arrays(np.intp, n, elements=st.integers(-1, n_levels - 1))),
        draw(hnp.arrays(float, (n, p), elements=values)),
        draw(st.none() | weights),
        n_levels,
    )


def sums(table: Table, **changes: Any) -> Sums:
    given = {"weights": table.weights, "order": 2, **changes}
    names = [f"x{j}" for j in range(table.rows.shape[1])]
    return accumulate(table.codes, table.rows.T, table.n_levels, names=names, **given)


def naive_sums(table: Table) -> Sums:
    n, p = table.rows.shape
    weights = np.ones(n) if table.weights is None else table.weights
    count, weight, complete_weight = np.zeros((3, table.n_levels))
    observed, complete_mean = np.zeros((2, table.n_levels, p))
    squares = np.zeros(p)
    mean, scatter = np.full((table.n_levels, p), np.nan), np.zeros((p, p))
    for g in range(table.n_levels):
        mine = [i for i in range(n) if table.codes[i] == g and weights[i] > 0]
        count[g], weight[g] = len(mine), sum(weights[i] for i in mine)
        for j in range(p):
            known = [i for i in mine if not np.isnan(table.rows[i, j])]
            observed[g, j] = sum(weights[i] for i in known)
            if known:
                mean[g, j] = sum(weights[i] * table.rows[i, j] for i in known) / observed[g, j]
            squares[j] += sum(weights[i] * (table.rows[i, j] - mean[g, j]) ** 2 for i in known)
        complete = [i for i in mine if not np.isnan(table.rows[i]).any()]
        complete_weight[g] = sum(weights[i] for i in complete)
        if complete:
            complete_mean[g] = sum(weights[i] * table.rows[i] for i in complete) / complete_weight[g]
        for i in complete:
            apart = table.rows[i] - complete_mean[g]
            scatter += weights[i] * np.outer(apart, apart)
    return Sums(count, weight, observed, mean, squares, complete_weight, complete_mean, scatter)


def assert_same(found: Sums, expected: Sums) -> None:
    for field in fields(Sums):
        ours, theirs = getattr(found, field.name), getattr(expected, field.name)
        if theirs is None:
            assert ours is None, field.name
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-7, err_msg=field.name)


def timestamps(rng: np.random.Generator, codes: np.ndarray, centres: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows at a distance from zero, and what is left of them when that distance is taken away exactly."""
    away = np.asarray(centres, dtype=float)[codes, None]
    rows = away + rng.normal(size=(len(codes), 2)) @ [[1.0, 0.5], [0.0, 1.0]]
    return rows, rows - away


@given(tables())
def test_sums_agree_with_a_double_loop(table):
    assert_same(sums(table), naive_sums(table))


@given(tables())
def test_order_one_gives_the_same_counts_and_means(table):
    expected = naive_sums(table)
    assert_same(sums(table, order=1), Sums(expected.count, expected.weight, expected.observed, expected.mean))


@given(tables(), st.integers(8, 16), st.sampled_from([1, 2]))
def test_sums_do_not_depend_on_the_size_of_chunks(table, size, order):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_accumulate, "_CHUNK", size)
        small = sums(table, order=order)
    assert_same(small, sums(table, order=order))


@pytest.mark.parametrize("order", [1, 2])
def test_a_level_null_in_every_row_is_observed_in_none_of_several_chunks(order, monkeypatch):
    """Weights added in another order differ in the last digit, and that is no observation."""
    monkeypatch.setattr(_accumulate, "_CHUNK", 8)
    rows = np.column_stack([np.full(13, np.nan), np.ones(13)])
    found = sums(Table(np.zeros(13, dtype=np.intp), rows, np.full(13, 0.1), 1), order=order)
    assert found.observed[0, 0] == 0
    assert np.isnan(found.mean[0, 0])
    assert order == 1 or found.complete_weight.tolist() == [0.0]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int8", "uint8", "int64", "uint64", "bool"], ids=lambda name: name
)
def test_columns_of_any_real_type_count_as_floats(dtype, order):
    rng = np.random.default_rng(1)
    codes = rng.integers(-1, 4, size=60)
    column = rng.integers(0, 2 if dtype == "bool" else 100, size=60).astype(dtype)
    found = accumulate(codes, [column], 4, names=["x"], order=order)
    assert_same(found, sums(Table(codes, column[:, None].astype(float), None, 4), order=order))


@pytest.mark.parametrize("layout", ["C", "F", "list", "strided", "read-only"])
def test_the_layout_of_the_columns_does_not_matter(layout):
    rng = np.random.default_rng(2)
    table = Table(rng.integers(-1, 3, size=40), rng.normal(size=(40, 3)), rng.random(40), 3)
    table.rows[rng.random((40, 3)) < 0.2] = np.nan
    columns: Any = np.array(table.rows.T, order="F" if layout == "F" else "C")
    if layout == "list":
        columns = list(columns)
    elif layout == "strided":
        columns = [np.repeat(column, 2)[::2] for column in columns]
    elif layout == "read-only":
        for array in (columns, table.codes, table.weights):
            array.setflags(write=False)
    found = accumulate(table.codes, columns, 3, names="abc", weights=table.weights, order=2)
    assert_same(found, naive_sums(table))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
def test_codes_may_be_of_any_integer_type(dtype):
    n_levels = np.iinfo(dtype).max + 1 if dtype.endswith("8") else 200
    codes = np.arange(n_levels).astype(dtype)
    weights = np.ones(n_levels)
    weights[0] = 0.0
    found = accumulate(codes, [codes.astype(float)], n_levels, names=["x"], weights=weights, order=2)
    assert found.count.tolist() == [0] + [1] * (n_levels - 1)
    assert found.mean[1:, 0].tolist() == list(range(1, n_levels))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values_are_refused_by_name_and_row(value, order):
    rows = np.zeros((70_000, 2))
    rows[[50_000, 60_000], 1] = value
    rows[5, 1] = np.nan
    with pytest.raises(InfiniteValueError, match=r"'price' contains infinity: 2 .* row 50000\.\nHint: "):
        accumulate(np.zeros(70_000, dtype=int), rows.T, 1, names=["size", "price"], order=order)


@pytest.mark.parametrize("order", [1, 2])
def test_infinite_values_of_rows_that_are_left_out_do_no_harm(order):
    """They are absent, also next to nulls and to levels without rows."""
    codes, weights = np.array([-1, 0, 0, 2]), np.array([1.0, 0.0, 1.0, 1.0])
    column = np.array([np.inf, -np.inf, 5.0, np.nan])
    found = accumulate(codes, [column], 3, names=["x"], weights=weights, order=order)
    np.testing.assert_array_equal(found.mean.ravel(), [5.0, np.nan, np.nan])


def test_infinities_of_both_signs_are_distinguished_from_nulls():
    column = np.array([np.inf, -np.inf, np.nan])
    with pytest.raises(InfiniteValueError, match=r"2 value\(s\), the first in row 0"):
        accumulate(np.zeros(3, dtype=int), [column], 1, names=["x"], order=2)


def test_values_whose_sum_overflows_are_not_infinite():
    found = accumulate(np.arange(3), [np.full(3, 1e308)], 3, names=["x"], order=2)
    assert found.mean.ravel().tolist() == [1e308] * 3


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nulls", [False, True])
def test_moments_far_from_zero(order, weighted, nulls):
    """Raw sums of squares would keep no digit at all here."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 5, size=2000)
    rows, near = timestamps(rng, codes, [1e9] * 5)
    if nulls:
        null = rng.random(rows.shape) < 0.1
        rows[null] = near[null] = np.nan
    weights = rng.random(2000) if weighted else None
    found = sums(Table(codes, rows, weights, 5), order=order)
    expected = naive_sums(Table(codes, near, weights, 5))
    np.testing.assert_allclose(found.mean - 1e9, expected.mean, atol=1e-6)
    if order == 2:
        np.testing.assert_allclose(found.squares, expected.squares, rtol=1e-6)
        np.testing.assert_allclose(found.complete_mean - 1e9, expected.complete_mean, atol=1e-6)
        np.testing.assert_allclose(found.scatter, expected.scatter, rtol=1e-6)


def test_levels_far_apart_keep_their_spread():
    """One pivot for all levels would leave two of them at a distance of 1e9."""
    codes, centres = np.repeat([0, 1, 2], 500), np.array([-1e9, 0.0, 1e9])
    rows, near = timestamps(np.random.default_rng(4), codes, centres)
    found, expected = sums(Table(codes, rows, None, 3)), naive_sums(Table(codes, near, None, 3))
    np.testing.assert_allclose(found.mean - centres[:, None], expected.mean, atol=1e-6)
    np.testing.assert_allclose(found.squares, expected.squares, rtol=1e-6)
    np.testing.assert_allclose(found.scatter, expected.scatter, rtol=1e-6)


def test_means_of_levels_far_apart_need_one_pivot_only():
    codes, centres = np.repeat([0, 1, 2], 500), np.array([-1e9, 0.0, 1e9])
    rows, near = timestamps(np.random.default_rng(4), codes, centres)
    found, expected = sums(Table(codes, rows, None, 3), order=1), naive_sums(Table(codes, near, None, 3))
    np.testing.assert_allclose(found.mean - centres[:, None], expected.mean, atol=1e-5)


@pytest.mark.parametrize("order", [1, 2])
def test_no_matrix_of_rows_by_levels_is_made(order):
    n, n_levels = 200_000, 50_000
    rng = np.random.default_rng(5)
    codes, rows, weights = rng.integers(0, n_levels, size=n), rng.normal(size=(n, 3)), rng.random(n)
    rows[rng.random((n, 3)) < 0.01] = np.nan
    levels = as_levels(range(n_levels))
    tracemalloc.start()
    try:
        whole = GroupMoments.from_columns(
            codes, rows.T, levels, covariates="abc", weights=weights, order=order
        )
        half = GroupMoments.from_columns(
            codes[: n // 2],
            rows[: n // 2].T,
            levels,
            covariates="abc",
            weights=weights[: n // 2],
            order=order,
        )
        both = (whole - half) + half
        both.pool(both.count < 4, None)
        both.leave_one_out(codes[codes < both.n_levels], rows[codes < both.n_levels].T)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # One byte for each of n × n_levels cells would be 10 GB.
    assert peak < 100e6
