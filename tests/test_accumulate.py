"""Sums by level, against a double loop over rows and covariates."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sufrep import _accumulate
from sufrep._accumulate import (
    Sums,
    accumulate,
    check_squares,
    exponents,
    refuse_large,
    refuse_small,
    unscaled,
    weighted_mean,
)
from sufrep.errors import InfiniteValueError, MagnitudeError
from sufrep.moments import GroupMoments
from sufrep.representation import as_levels

# The distance between numbers that are too small for twelve digits.
SUBNORMAL = Fraction(np.finfo(np.float64).smallest_subnormal)


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
    with pytest.raises(InfiniteValueError, match=r"'price' contains infinity: 2 .* row 50000\. .*\nHint: "):
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
    found = accumulate(np.arange(3), [np.full(3, 1e308)], 3, names=["x"], order=1)
    assert found.mean.ravel().tolist() == [1e308] * 3


@pytest.mark.parametrize("late", [[1e300, 1e300], [1.7e308, -1.7e307]])
@pytest.mark.parametrize("early", [1e-320, 1e-200, 1.0, 1e270])
def test_the_first_rows_do_not_limit_the_size_of_later_ones(early, late):
    """The units are those of the first rows; in these, later numbers and their sums may be infinite."""
    column = np.full(80_000, early)
    column[40_000:40_100], column[-100:] = late
    exact = float((79_800 * Fraction(early) + 100 * sum(map(Fraction, late))) / 80_000)
    found = accumulate(np.zeros(80_000, dtype=int), [column], 1, names=["x"], order=1)
    np.testing.assert_allclose(found.mean.ravel(), [exact], rtol=1e-12)


def test_a_column_that_only_seems_infinite_hides_no_other():
    rows = np.full((20_000, 2), 1e-200)
    rows[-1] = [1e300, np.inf]
    with pytest.raises(InfiniteValueError, match=r"'price' contains infinity: 1 .* row 19999\."):
        accumulate(np.zeros(20_000, dtype=int), rows.T, 1, names=["size", "price"], order=1)


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


def test_means_of_levels_far_apart_need_no_second_pass():
    codes, centres = np.repeat([0, 1, 2], 500), np.array([-1e9, 0.0, 1e9])
    rows, near = timestamps(np.random.default_rng(4), codes, centres)
    found, expected = sums(Table(codes, rows, None, 3), order=1), naive_sums(Table(codes, near, None, 3))
    np.testing.assert_allclose(found.mean - centres[:, None], expected.mean, atol=1e-5)


# Digits


@st.composite
def extreme_tables(draw: st.DrawFn) -> Table:
    """Values and weights over many decades, with nulls; each level has a magnitude of its own."""
    n, n_levels = draw(st.integers(1, 25)), draw(st.integers(1, 4))
    codes = draw(hnp.arrays(np.intp, n, elements=st.integers(0, n_levels - 1)))
    size = 10.0 ** draw(hnp.arrays(np.intp, n_levels, elements=st.integers(-120, 120)))
    values = draw(hnp.arrays(float, (n, 2), elements=st.floats(-100, 100) | st.just(np.nan)))
    decades = draw(hnp.arrays(float, n, elements=st.floats(-15, 15)))
    return Table(codes, values * size[codes, None], draw(st.none() | st.just(10.0**decades)), n_levels)


def exact_level(values: Any, weights: Any) -> tuple[Fraction, Fraction, Fraction]:
    """Weight, mean and sum of squares in rational numbers."""
    x, w = [Fraction(float(v)) for v in values], [Fraction(float(v)) for v in weights]
    mean = sum(a * b for a, b in zip(x, w, strict=True)) / sum(w) if w else Fraction(0)
    return (
        sum(w, Fraction(0)),
        mean,
        sum((b * (a - mean) ** 2 for a, b in zip(x, w, strict=True)), Fraction(0)),
    )


def assert_exact(table: Table, found: Sums, order: int) -> None:
    """Means to 1e-12 of the level's largest value, weights to 1e-12, squares to 1e-12 of themselves.

    A mean is rounded to a double at a distance of up to eps·max|x|, so a spread far below that is known only
    up to the square of this distance.
    """
    weights = np.ones(len(table.codes)) if table.weights is None else table.weights
    for j in range(table.rows.shape[1]):
        squares, rounding = Fraction(0), Fraction(1e-290)  # below which weighted squares underflow
        for g in range(table.n_levels):
            mine = (table.codes == g) & ~np.isnan(table.rows[:, j])
            weight, mean, spread = exact_level(table.rows[mine, j], weights[mine])
            assert float(abs(Fraction(found.observed[g, j]) - weight)) <= 1e-12 * float(weight)
            largest = Fraction(np.abs(table.rows[mine, j]).max(initial=0.0))
            if mine.any():
                assert abs(Fraction(found.mean[g, j]) - mean) <= Fraction(1e-12) * largest + SUBNORMAL
            else:
                assert np.isnan(found.mean[g, j])
            squares += spread
            rounding += weight * (Fraction(1e-15) * largest) ** 2
        if order == 2:
            assert abs(Fraction(found.squares[j]) - squares) <= Fraction(1e-12) * squares + rounding


@given(extreme_tables(), st.sampled_from([1, 2]), st.sampled_from([3, 1 << 13]))
def test_each_level_is_right_whatever_the_others_hold(table, order, first_rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_accumulate, "_READ", first_rows)
        assert_exact(table, sums(table, order=order), order)


@given(extreme_tables())
def test_scatter_of_complete_rows_is_right_whatever_the_others_hold(table):
    found = sums(table)
    weights = np.ones(len(table.codes)) if table.weights is None else table.weights
    complete = ~np.isnan(table.rows).any(axis=1)
    part = Table(
        table.codes[complete],
        table.rows[complete],
        None if table.weights is None else weights[complete],
        table.n_levels,
    )
    alone = sums(part)
    np.testing.assert_allclose(found.complete_weight, alone.weight, rtol=1e-12)
    expected = np.nan_to_num(alone.mean)
    largest = np.array(
        [np.abs(part.rows[part.codes == g]).max(axis=0, initial=0.0) for g in range(table.n_levels)]
    )
    # Products with small weights are rounded to a step of the smallest numbers.
    step = (
        4 * np.finfo(np.float64).smallest_subnormal / np.minimum(weights[weights > 0].min(initial=1.0), 1.0)
    )
    assert (np.abs(found.complete_mean - expected) <= 1e-12 * largest + step).all()
    rounding = np.sqrt((alone.weight[:, None] * (1e-15 * largest) ** 2).sum(axis=0))
    size = np.sqrt(alone.squares) + rounding + 1e-140
    assert (np.abs(found.scatter - alone.scatter) <= 1e-11 * np.outer(size, size)).all()


@pytest.mark.parametrize("order", [1, 2])
def test_one_huge_value_changes_no_other_level(order):
    """An origin shared by all levels, the first value, gave the second level a mean of 0."""
    table = Table(np.array([0, 1, 1, 1]), np.array([[1e18], [1.0], [2.0], [3.0]]), None, 2)
    assert sums(table, order=order).mean.ravel().tolist() == [1e18, 2.0]


def test_a_huge_value_within_a_level_leaves_the_spread_of_the_others():
    rows = np.array([[1e18, 0.0], [1.0, 1.0], [3.0, 2.0]])
    table = Table(np.array([0, 1, 1]), rows, None, 2)
    assert sums(table).squares[0] == 2.0
    rows[0, 1] = np.nan
    assert sums(Table(np.array([0, 0, 0]), rows, None, 1)).scatter[0, 0] == 2.0


@pytest.mark.parametrize("order", [1, 2])
def test_weights_of_thirty_decades_keep_their_digits(order):
    """The weight of the rows with a value was a difference, in which a light row vanished next to nulls."""
    rows = np.array([[np.nan, 1.0], [7.0, 2.0], [5.0, np.nan]])
    found = sums(Table(np.zeros(3, dtype=int), rows, np.array([1e15, 1e-15, 1e-15]), 1), order=order)
    np.testing.assert_allclose(found.observed, [[2e-15, 1e15]], rtol=1e-12)
    np.testing.assert_allclose(found.mean, [[6.0, 1.0]], rtol=1e-12)
    if order == 2:
        np.testing.assert_allclose(found.complete_weight, [1e-15], rtol=1e-12)
        np.testing.assert_allclose(found.complete_mean, [[7.0, 2.0]], rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_a_million_rows_of_one_level_keep_the_digits_of_their_mean(order):
    """A tenth is no double: added up one by one, a million of them are wrong in the eleventh digit."""
    column = np.full(1_000_000, 0.1)
    column[0], column[-1] = -1.0, 1.2
    found = accumulate(np.zeros(len(column), dtype=int), [column], 1, names=["x"], order=order)
    assert found.mean.item() == pytest.approx(math.fsum(column) / len(column), rel=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_a_column_far_from_zero_that_comes_close_later_is_summed_again(order, monkeypatch):
    """The first rows suggest an origin that would cost the last level its digits."""
    monkeypatch.setattr(_accumulate, "_READ", 2)
    column = np.array([1e18, 1e18, 1.0, 3.0, -2.0])
    found = accumulate(np.array([0, 0, 1, 1, 2]), [column], 3, names=["x"], order=order)
    assert found.mean.ravel().tolist() == [1e18, 2.0, -2.0]


def test_means_of_the_largest_doubles_are_finite():
    most = np.finfo(np.float64).max
    column = np.array([most, most, most, -most, 0.9 * most, 1.0, 3.0])
    codes = np.array([0, 0, 0, 1, 1, 2, 2])
    found = accumulate(codes, [column], 3, names=["x"], weights=np.full(7, 0.3), order=1)
    np.testing.assert_allclose(found.mean.ravel(), [most, -0.05 * most, 2.0], rtol=1e-12)


@pytest.mark.parametrize("size", [1e155, -1e200, 1e308])
def test_squares_of_large_numbers_are_refused(size):
    with pytest.raises(MagnitudeError, match=r"Column 'x' holds numbers as large as .*\nHint: rescale"):
        accumulate(np.arange(3) % 2, [np.array([1.0, size, 2.0])], 2, names=["x"], order=2)


def test_a_spread_too_small_to_be_squared_is_not_none():
    column = np.array([1.0, 2.0, 2.0]) * 1e-300
    found = accumulate(np.zeros(3, dtype=int), [column], 1, names=["x"], order=2)
    assert found.squares.item() > 0
    assert (
        accumulate(np.zeros(3, dtype=int), [column * 0 + 1e-300], 1, names=["x"], order=2).squares.item() == 0
    )


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


def test_levels_at_both_ends_of_the_range_keep_their_digits():
    columns = [np.array([9e307, 1e308, 1e-300, 3e-300, 1.0, 2.0, 1e-315]), np.arange(7.0)]
    codes = np.array([0, 0, 1, 1, 2, 2, 3])
    found = accumulate(codes, columns, 4, names=["x", "y"], order=1)
    np.testing.assert_allclose(found.mean[:, 0], [9.5e307, 2e-300, 1.5, 1e-315], rtol=1e-12)
    np.testing.assert_array_equal(found.mean[:, 1], [0.5, 2.5, 4.5, 6.0])
    # The same in chunks, taken apart again, and pooled.
    names, levels = ["x", "y"], as_levels(range(4))
    whole, *parts = (
        GroupMoments.from_columns(
            codes[rows], [column[rows] for column in columns], levels, covariates=names, order=1
        )
        for rows in (slice(None), slice(0, None, 2), slice(1, None, 2))
    )
    np.testing.assert_allclose((parts[0] + parts[1]).mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose((whole - parts[1]).mean, parts[0].mean, rtol=1e-12)
    pooled = whole.pool(np.array([False, True, False, True]), "rest")
    np.testing.assert_allclose(pooled.mean[-1, 0], 4e-300 / 3, rtol=1e-12)


# Units for sums of extreme numbers, and what cannot be squared

MOST = np.finfo(np.float64).max


def test_ordinary_columns_keep_their_units():
    assert exponents(np.array([0.0, 1e-130, 1.0, 1e140, 1e265])).tolist() == [0] * 5


@given(st.floats(5e-324, MOST))
def test_units_bring_every_number_where_sums_are_safe(largest):
    power = exponents(np.array([largest]))
    scaled = np.ldexp(largest, -power).item()
    assert 1e-140 < scaled < 1e275
    assert np.ldexp(scaled, power).item() == largest


def test_a_mean_above_all_doubles_by_rounding_is_the_largest():
    assert unscaled(np.ldexp(np.array([MOST]), -2) * (1 + 1e-15), 2).tolist() == [MOST]


@given(hnp.arrays(float, (4, 2), elements=st.floats(-MOST, MOST)), st.sampled_from([0.1, 1.0, 1e15]))
def test_means_of_all_finite_numbers_exist(values, heavy):
    weight = np.array([1.0, heavy, 2.0, 0.0])
    for found, column in zip(weighted_mean(values, weight), values.T, strict=True):
        parts = zip(map(Fraction, column.tolist()), map(Fraction, weight.tolist()), strict=True)
        exact = sum(x * w for x, w in parts) / sum(map(Fraction, weight.tolist()))
        assert math.isfinite(found)
        assert abs(Fraction(found) - exact) <= Fraction(1e-12) * Fraction(np.abs(column).max()) + Fraction(
            1e-300
        )


def test_numbers_too_large_to_be_squared_are_refused_by_name():
    refuse_large("price", 1e140)
    with pytest.raises(MagnitudeError, match=r"'price' holds numbers as large as 1e\+141.*\nHint: .* divide"):
        refuse_large("price", 1e141)


def test_spreads_too_small_to_be_squared_are_refused_by_name():
    refuse_small("price", 0.0)
    refuse_small("price", 1e-140)
    with pytest.raises(MagnitudeError, match=r"'price' varies by 1e-141 only.*\nHint: .* multiply"):
        refuse_small("price", 1e-141)


@pytest.mark.parametrize(
    ("values", "found"),
    [([-1e200, 1.0], "as large as 1e\\+200"), ([2e-200, np.nan, 1e-200], "by 1e-200 only")],
)
def test_a_column_is_checked_for_both(values, found):
    with pytest.raises(MagnitudeError, match=found):
        check_squares("x", np.array(values))


@pytest.mark.parametrize("values", [[], [1e-200, 1e-200], [np.nan, np.nan], [1e-200, 1.0], [np.inf, 1]])
def test_constant_and_empty_columns_and_small_values_next_to_larger_ones_pass(values):
    check_squares("x", np.array(values))
