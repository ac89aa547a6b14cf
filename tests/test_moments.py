"""Group moments: what they are, by double loops, and the laws that every use of them rests on."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import reduce
from operator import add, sub
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sufrep.errors import InfiniteValueError, LengthMismatchError, MomentsMismatchError, SampleWeightError
from sufrep.moments import GroupMoments
from sufrep.representation import as_levels, sort_levels

ORDERS = st.sampled_from([1, 2])
NAMES = ("x0", "x1", "x2")
# Fields that are not tables of numbers.
DESCRIPTION = ("levels", "covariates", "group", "target")

# The distance between numbers that are too small for twelve digits.
SUBNORMAL = Fraction(np.finfo(np.float64).smallest_subnormal)


@dataclass(frozen=True)
class Sample:
    """Rows with levels and perhaps with weights."""

    group: list[Any]
    rows: np.ndarray
    weights: np.ndarray | None

    def __len__(self) -> int:
        return len(self.group)

    def take(self, positions: Any) -> Sample:
        index = np.asarray(positions, dtype=np.intp)
        weights = None if self.weights is None else self.weights[index]
        return Sample([self.group[i] for i in index], self.rows[index], weights)

    def weight(self, i: int) -> float:
        return 1.0 if self.weights is None else float(self.weights[i])

    def moments(self, order: Any = 2) -> GroupMoments:
        return GroupMoments.from_rows(self.group, self.rows, weights=self.weights, order=order)

    def positions(self, levels: np.ndarray) -> np.ndarray:
        known = levels.tolist()
        return np.array([known.index(level) if level in known else -1 for level in self.group], dtype=np.intp)


@st.composite
def labelled_rows(draw: st.DrawFn, frequencies: bool = False) -> Sample:
    n, p = draw(st.integers(0, 20)), draw(st.integers(1, 3))
    values = st.floats(-100, 100) | st.just(np.nan) if draw(st.booleans()) else st.floats(-100, 100)
    weights = [0.0, 1.0, 2.0, 3.0] if frequencies else [0.0, 0.1, 1 / 3, 1.0, 2.0]
    some = hnp.arrays(float, n, elements=st.sampled_from(weights))
    return Sample(
        draw(st.lists(st.sampled_from(["a", "b", "c", 7]), min_size=n, max_size=n)),
        draw(hnp.arrays(float, (n, p), elements=values)),
        draw(some if frequencies else st.none() | some),
    )


def naive_moments(sample: Sample) -> GroupMoments:
    present = [i for i in range(len(sample)) if sample.weight(i) > 0]
    levels, p = sort_levels({sample.group[i] for i in present}), sample.rows.shape[1]
    count, weight, complete_weight = (np.zeros(len(levels)) for _ in range(3))
    observed, mean, complete_mean = (np.zeros((len(levels), p)) for _ in range(3))
    squares = np.zeros(p)
    scatter = np.zeros((p, p))
    for g, level in enumerate(levels):
        mine = [i for i in present if sample.group[i] == level]
        count[g], weight[g] = len(mine), sum(map(sample.weight, mine))
        for j in range(p):
            known = [(sample.rows[i, j], sample.weight(i)) for i in mine if not np.isnan(sample.rows[i, j])]
            observed[g, j] = sum(w for _, w in known)
            mean[g, j] = sum(w * x for x, w in known) / observed[g, j] if known else np.nan
            squares[j] += sum(w * (x - mean[g, j]) ** 2 for x, w in known)
        complete = [i for i in mine if not np.isnan(sample.rows[i]).any()]
        complete_weight[g] = sum(map(sample.weight, complete))
        if complete:
            complete_mean[g] = sum(sample.weight(i) * sample.rows[i] for i in complete) / complete_weight[g]
        for i in complete:
            apart = sample.rows[i] - complete_mean[g]
            scatter += sample.weight(i) * np.outer(apart, apart)
    tables = (count, weight, observed, mean, squares, complete_weight, complete_mean, scatter)
    return GroupMoments(levels, NAMES[:p], *tables)


def assert_same(found: GroupMoments, expected: GroupMoments, *, but: tuple[str, ...] = ()) -> None:
    assert found.levels.tolist() == expected.levels.tolist()
    assert found.covariates == expected.covariates
    assert found.order == expected.order
    for field in fields(GroupMoments):
        table = getattr(expected, field.name)
        if field.name not in (*DESCRIPTION, *but) and table is not None:
            ours = getattr(found, field.name)
            np.testing.assert_allclose(ours, table, rtol=1e-9, atol=1e-7, err_msg=field.name)
            if field.name in ("weight", "observed", "complete_weight"):
                # A weight that is only rounding would make a level of no rows.
                assert not ours[table == 0].any(), field.name


def first_order(moments: GroupMoments) -> GroupMoments:
    return replace(moments, squares=None, complete_weight=None, complete_mean=None, scatter=None)


def random_sample(seed: int, n: int, n_levels: int, *, away: float = 0.0) -> Sample:
    rng = np.random.default_rng(seed)
    rows = away + rng.normal(size=(n, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
    return Sample(rng.integers(n_levels, size=n).tolist(), rows, None)


# What moments are


@given(labelled_rows(), ORDERS)
def test_moments_agree_with_a_double_loop(sample, order):
    expected = naive_moments(sample)
    assert_same(sample.moments(order), expected if order == 2 else first_order(expected))


@given(labelled_rows())
def test_moments_of_order_one_are_those_of_order_two_without_the_second(sample):
    assert_same(sample.moments(1), first_order(sample.moments(2)))


@given(labelled_rows(), st.data())
def test_rows_with_a_negative_code_are_left_out(sample, data):
    out = data.draw(hnp.arrays(bool, len(sample)))
    levels = sort_levels(["a", "b", "c", 7, "a level without rows"])
    codes = np.where(out, -1, sample.positions(levels))
    p = sample.rows.shape[1]
    found = GroupMoments.from_columns(
        codes, list(sample.rows.T), levels, covariates=NAMES[:p], weights=sample.weights
    )
    assert_same(found, sample.take(np.flatnonzero(~out)).moments())


@given(labelled_rows())
def test_overall_and_filled_means_agree_with_loops(sample):
    moments = sample.moments()
    weights = np.array([sample.weight(i) for i in range(len(sample))])
    codes = sample.positions(moments.levels)
    for j in range(sample.rows.shape[1]):
        column = sample.rows[:, j]
        known = ~np.isnan(column) & (weights > 0)
        overall = np.average(column[known], weights=weights[known]) if known.any() else 0.0
        assert moments.overall_mean()[j] == pytest.approx(overall, abs=1e-9)
        for g in range(moments.n_levels):
            mine = known & (codes == g)
            mean = np.average(column[mine], weights=weights[mine]) if mine.any() else overall
            assert moments.filled_mean()[g, j] == pytest.approx(mean, abs=1e-9)


def test_moments_know_their_size():
    moments = GroupMoments.from_rows(["a", "b", "a"], [[1.0]] * 3, weights=[0.5, 1, 2], covariates=["size"])
    assert (moments.n_levels, moments.total_weight, moments.covariates) == (2, 3.5, ("size",))
    assert moments.order == 2
    assert first_order(moments).order == 1
    assert moments.count.tolist() == [2, 1]


def test_levels_may_be_missing_or_tuples():
    moments = GroupMoments.from_rows([None, ("a", 1), None, ("a", None)], [[1.0], [2.0], [3.0], [4.0]])
    assert moments.levels.tolist() == [("a", 1), ("a", None), None]
    assert moments.mean.ravel().tolist() == [2.0, 4.0, 2.0]


@pytest.mark.parametrize("order", [1, 2])
def test_without_rows_there_are_no_levels(order):
    nothing = GroupMoments.from_rows([], np.empty((0, 2)), order=order)
    something = GroupMoments.from_rows(["a"], [[1.0, 2.0]], order=order)
    assert nothing.n_levels == 0
    assert nothing.overall_mean().tolist() == [0.0, 0.0]
    assert_same(nothing + something, something)
    assert_same(something - nothing, something)
    assert_same(something - something, nothing)


# Laws


@given(labelled_rows(), ORDERS, st.data())
def test_moments_do_not_depend_on_where_the_sample_is_cut(sample, order, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sample)), max_size=4)))
    parts = [sample.take(part).moments(order) for part in np.split(np.arange(len(sample)), cuts)]
    assert_same(reduce(add, data.draw(st.permutations(parts))), sample.moments(order))


@given(labelled_rows(), ORDERS, st.data())
def test_a_part_that_was_added_can_be_taken_away(sample, order, data):
    inside = data.draw(hnp.arrays(bool, len(sample)))
    a = sample.take(np.flatnonzero(inside)).moments(order)
    b = sample.take(np.flatnonzero(~inside)).moments(order)
    assert_same((a + b) - b, a)
    assert_same(sample.moments(order) - b, a)


def assert_close(found: GroupMoments, expected: GroupMoments, tolerance: float) -> None:
    """The same up to a share of the largest entry of each table."""
    assert found.levels.tolist() == expected.levels.tolist()
    for field in fields(GroupMoments):
        ours, table = getattr(found, field.name), getattr(expected, field.name)
        if field.name not in DESCRIPTION and table is not None:
            scale = np.nanmax(np.abs(table), initial=0.0)
            np.testing.assert_allclose(ours, table, rtol=0, atol=tolerance * scale, err_msg=field.name)


@given(labelled_rows(), labelled_rows(), labelled_rows(), ORDERS)
def test_merging_is_commutative_and_associative(first, second, third, order):
    p = min(sample.rows.shape[1] for sample in (first, second, third))
    a, b, c = (replace(sample, rows=sample.rows[:, :p]).moments(order) for sample in (first, second, third))
    assert_close(a + b, b + a, 1e-10)
    assert_close((a + b) + c, a + (b + c), 1e-10)


@pytest.mark.parametrize("center", [0.0, 1e6])
def test_a_thousand_days_added_and_removed_leave_the_moments_of_the_last_ones(center):
    """The nightly refresh: the whole, without the oldest day, with the newest."""
    rng = np.random.default_rng(0)

    def day() -> tuple[np.ndarray, np.ndarray]:
        rows = rng.normal(center, 1.0, (40, 3))
        rows[rng.random(rows.shape) < 0.05] = np.nan
        return rng.choice(list("abcdefgh"), 40, p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.03, 0.01, 0.01]), rows

    def moments(days: list[tuple[np.ndarray, np.ndarray]]) -> GroupMoments:
        return GroupMoments.from_rows(
            np.concatenate([group for group, _ in days]).tolist(), np.vstack([rows for _, rows in days])
        )

    days = [day() for _ in range(7)]
    whole = moments(days)
    for _ in range(1000):
        days.append(day())
        whole = whole - moments([days.pop(0)]) + moments([days[-1]])
    assert_close(whole, moments(days), 1e-8)


def test_parts_of_many_levels_are_merged_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    parts = [
        Sample(rng.integers(low, low + 30, 200).tolist(), rng.normal(size=(200, 3)), None) for low in (0, 12)
    ]
    a, b = (part.moments() for part in parts)
    whole, rest = a + b, (a + b) - b
    monkeypatch.setattr("sufrep._merging._BLOCK", 7)
    assert_close(a + b, whole, 1e-14)
    assert_close((a + b) - b, rest, 1e-13)
    everything = Sample([*parts[0].group, *parts[1].group], np.vstack([part.rows for part in parts]), None)
    assert_same(a + b, naive_moments(everything))


@given(labelled_rows(), ORDERS, st.data())
def test_the_order_of_the_rows_does_not_matter(sample, order, data):
    shuffled = sample.take(data.draw(st.permutations(range(len(sample)))))
    assert_same(shuffled.moments(order), sample.moments(order))


@given(labelled_rows(), st.permutations(["a", "b", "c", 7]), ORDERS)
def test_renaming_levels_only_renames(sample, names, order):
    rename = dict(zip(["a", "b", "c", 7], names, strict=True))
    before = sample.moments(order)
    after = replace(sample, group=[rename[level] for level in sample.group]).moments(order)
    assert set(after.levels) == {rename[level] for level in before.levels}
    rows = [after.levels.tolist().index(rename[level]) for level in before.levels]
    back = {
        field.name: getattr(after, field.name)[rows]
        for field in fields(after)
        if field.name not in (*DESCRIPTION, "squares", "scatter") and getattr(after, field.name) is not None
    }
    assert_same(replace(after, levels=before.levels, **back), before)


@given(labelled_rows(frequencies=True), ORDERS)
def test_a_weight_of_two_is_a_row_that_came_twice(sample, order):
    times = sample.weights.astype(int)
    repeated = replace(sample.take(np.repeat(np.arange(len(sample)), times)), weights=None)
    assert_same(sample.moments(order), repeated.moments(order), but=("count",))


@given(labelled_rows(), ORDERS)
def test_a_weight_of_zero_is_a_row_that_is_not_there(sample, order):
    present = [i for i in range(len(sample)) if sample.weight(i) > 0]
    assert_same(sample.moments(order), sample.take(present).moments(order))


@given(labelled_rows(), ORDERS, st.data())
def test_pooled_levels_are_those_of_rows_that_were_relabelled(sample, order, data):
    moments = sample.moments(order)
    assume(moments.n_levels)
    rare = data.draw(hnp.arrays(bool, moments.n_levels).filter(np.any))
    rarely = set(moments.levels[rare])
    relabelled = replace(sample, group=[None if level in rarely else level for level in sample.group])
    assert_same(moments.pool(rare, None), relabelled.moments(order))


def test_pooling_no_level_changes_nothing():
    moments = random_sample(0, 20, 3).moments()
    assert_same(moments.pool(np.zeros(3, dtype=bool), None), moments)


@given(labelled_rows(), ORDERS, st.data())
def test_expanding_adds_columns_of_zeros(sample, order, data):
    p = sample.rows.shape[1]
    names = data.draw(st.permutations([*NAMES[:p], "new", "newer"]))
    old = [names.index(name) for name in NAMES[:p]]
    rows = np.zeros((len(sample), p + 2))
    rows[:, old] = sample.rows
    wide = GroupMoments.from_rows(sample.group, rows, weights=sample.weights, order=order, covariates=names)
    assert_same(sample.moments(order).expand(names), wide)


@given(labelled_rows(), ORDERS, st.data())
def test_selecting_keeps_some_covariates_in_any_order(sample, order, data):
    p = sample.rows.shape[1]
    chosen = data.draw(st.lists(st.integers(0, p - 1), unique=True))
    moments, part = sample.moments(order), sample.moments(order).select(chosen)
    assert part.covariates == tuple(NAMES[j] for j in chosen)
    assert part.order == order
    alone = GroupMoments.from_rows(
        sample.group, sample.rows[:, chosen], weights=sample.weights, order=order, covariates=part.covariates
    )
    # Complete rows stay those that are complete in all covariates, of which the part may lack some.
    assert_same(part, alone, but=("complete_weight", "complete_mean", "scatter"))
    if order == 2:
        np.testing.assert_array_equal(part.complete_weight, moments.complete_weight)
        np.testing.assert_array_equal(part.complete_mean, moments.complete_mean[:, chosen])
        expected = [[moments.scatter[i, j] for j in chosen] for i in chosen]
        np.testing.assert_array_equal(part.scatter, np.reshape(expected, (len(chosen), len(chosen))))
    if not np.isnan(sample.rows).any():
        assert_same(part, alone)
    assert_same(moments.select(range(p)), moments)


@given(labelled_rows())
def test_leaving_a_row_out_gives_the_mean_of_the_others(sample):
    moments = sample.moments()
    codes = sample.positions(moments.levels)
    rows = np.flatnonzero(codes >= 0)
    weights = None if sample.weights is None else sample.weights[rows]
    found = moments.leave_one_out(codes[rows], sample.rows[rows].T, weights)
    for i, means in zip(rows, found, strict=True):
        for j, mean in enumerate(means):
            others = [
                k
                for k in rows
                if k != i
                and codes[k] == codes[i]
                and sample.weight(k) > 0
                and not np.isnan(sample.rows[k, j])
            ]
            expected = np.nan
            if others:
                expected = np.average(sample.rows[others, j], weights=[sample.weight(k) for k in others])
            assert mean == pytest.approx(expected, abs=1e-7, nan_ok=True)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_a_row_is_left_out_of_columns_of_any_type(dtype):
    column = np.array([1, 0, 0, 1]).astype(dtype)
    codes = np.array([0, 0, 0, 1])
    moments = GroupMoments.from_columns(codes, [column], as_levels(["a", "b"]), covariates=["x"], order=1)
    found = moments.leave_one_out(codes, [column]).ravel()
    np.testing.assert_allclose(found, [0.0, 0.5, 0.5, np.nan], atol=1e-15)


# Digits


def test_merged_moments_far_from_zero():
    """Sums of raw moments, or averages of the means themselves, would lose the spread."""
    near = random_sample(1, 4000, 3)
    sample = replace(near, rows=near.rows + 1e9)
    exact = replace(near, rows=sample.rows - 1e9)
    chunks = [sample.take(part).moments() for part in np.array_split(np.arange(4000), 40)]
    whole = reduce(add, chunks)
    half = reduce(sub, chunks[20:], whole)
    rows_apart = replace(sample, group=list(range(4000))).moments()
    pooled = rows_apart.pool(np.ones(4000, dtype=bool), 0)
    for merged, reference, atol in (
        (whole, exact, 2e-6),
        (half, exact.take(range(2000)), 2e-6),
        (pooled, replace(exact, group=[0] * 4000), 3e-7),
    ):
        expected = naive_moments(reference)
        np.testing.assert_array_equal(merged.count, expected.count)
        np.testing.assert_allclose(merged.mean - 1e9, expected.mean, atol=atol)
        np.testing.assert_allclose(merged.complete_mean - 1e9, expected.complete_mean, atol=atol)
        np.testing.assert_allclose(merged.squares, expected.squares, rtol=1e-6)
        np.testing.assert_allclose(merged.scatter, expected.scatter, rtol=1e-6)


def test_left_out_means_far_from_zero():
    sample = random_sample(2, 300, 5, away=1e9)
    moments = sample.moments()
    codes = sample.positions(moments.levels)
    near = replace(sample, rows=sample.rows - 1e9)
    expected = near.moments().leave_one_out(codes, near.rows.T)
    found = moments.leave_one_out(codes, sample.rows.T)
    np.testing.assert_allclose(found - 1e9, expected, atol=1e-6)


def test_rows_taken_away_leave_no_weight_behind_by_rounding():
    """0.1 + 0.2 + 0.3 − (0.3 + 0.2 + 0.1) is not 0; a level of weight 1e-16 would count as one."""
    whole = GroupMoments.from_rows("aaaa", [[1e9], [1e9], [1e9 + 1], [np.nan]], weights=[0.1, 0.2, 0.3, 1])
    part = GroupMoments.from_rows("aaa", [[1e9 + 1], [1e9], [1e9]], weights=[0.3, 0.2, 0.1])
    rest = whole - part
    assert rest.observed.tolist() == [[0.0]]
    assert rest.complete_weight.tolist() == [0.0]
    again = rest + GroupMoments.from_rows("aa", [[1e9], [1e9 + 1]])
    assert again.scatter.item() == pytest.approx(0.5)


@st.composite
def extreme_samples(draw: st.DrawFn) -> Sample:
    """Rows of levels with magnitudes of their own, with weights over thirty decades."""
    n = draw(st.integers(2, 15))
    group = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=n, max_size=n))
    size = {level: 10.0 ** draw(st.integers(-120, 120)) for level in "abc"}
    values = draw(hnp.arrays(float, (n, 1), elements=st.floats(-100, 100) | st.just(np.nan)))
    decades = draw(hnp.arrays(float, n, elements=st.floats(-15, 15)))
    rows = values * np.array([size[level] for level in group])[:, None]
    return Sample(group, rows, draw(st.none() | st.just(10.0**decades)))


def exact(values: Any, weights: Any) -> tuple[float, Fraction, Fraction]:
    """Weight, mean and sum of squared deviations, in rational numbers."""
    x, w = [Fraction(float(v)) for v in values], [Fraction(float(v)) for v in weights]
    total = sum(w, Fraction(0))
    mean = sum((a * b for a, b in zip(x, w, strict=True)), Fraction(0)) / total if w else Fraction(0)
    return float(total), mean, sum((b * (a - mean) ** 2 for a, b in zip(x, w, strict=True)), Fraction(0))


def assert_exact(sample: Sample, found: GroupMoments) -> None:
    """Means to 1e-12 of the level's largest value, weights to 1e-12, squares to 1e-12 and that rounding."""
    weights = np.array([sample.weight(i) for i in range(len(sample))])
    squares, rounding = Fraction(0), Fraction(1e-290)  # below which weighted squares underflow
    for g, level in enumerate(found.levels):
        mine = np.array([own == level for own in sample.group]) & ~np.isnan(sample.rows[:, 0])
        weight, mean, spread = exact(sample.rows[mine, 0], weights[mine])
        assert found.observed[g, 0] == pytest.approx(weight, rel=1e-12)
        largest = Fraction(np.abs(sample.rows[mine, 0]).max(initial=0.0))
        error = abs(Fraction(found.mean[g, 0]) - mean) if mine.any() else 0
        # The means of chunks, and their merged mean, are each rounded to a step of the smallest numbers, and
        # so is every product with a weight, before the sum is divided by the weight.
        steps = 4 + Fraction(int(mine.sum())) / Fraction(weight) if mine.any() else 4
        assert error <= Fraction(1e-12) * largest + steps * SUBNORMAL
        squares, rounding = squares + spread, rounding + Fraction(weight) * (Fraction(1e-14) * largest) ** 2
    assert abs(Fraction(found.squares[0]) - squares) <= Fraction(1e-12) * squares + rounding


@given(extreme_samples(), st.integers(0, 15))
def test_sums_of_chunks_are_right_in_each_level_whatever_the_others_hold(sample, cut):
    first, second = (sample.take(part) for part in (range(len(sample))[:cut], range(len(sample))[cut:]))
    assert_exact(sample, first.moments() + second.moments())


@given(extreme_samples())
def test_pooled_levels_are_right_up_to_their_largest_value(sample):
    moments = sample.moments()
    pooled = moments.pool(np.ones(moments.n_levels, dtype=bool), "all")
    assert_exact(replace(sample, group=["all"] * len(sample)), pooled)


@given(extreme_samples(), st.integers(1, 14))
def test_what_is_left_of_a_level_is_right_up_to_the_rounding_of_the_whole(sample, cut):
    """Relative to the largest value of the whole level, times the weight that was there per weight left."""
    assume(cut < len(sample))
    kept, weights = range(cut, len(sample)), np.array([sample.weight(i) for i in range(len(sample))])
    rest = sample.moments() - sample.take(range(cut)).moments()
    for g, level in enumerate(rest.levels):
        here = np.array([own == level for own in sample.group]) & ~np.isnan(sample.rows[:, 0])
        mine = here & np.isin(np.arange(len(sample)), kept)
        whole, left = weights[here].sum(), weights[mine].sum()
        if left < 2e-12 * whole:
            continue  # lost in the rounding of the whole
        weight, mean, _ = exact(sample.rows[mine, 0], weights[mine])
        assert rest.observed[g, 0] == pytest.approx(weight, abs=1e-14 * whole)
        if mine.any():
            error = abs(Fraction(rest.mean[g, 0]) - mean)
            largest = Fraction(np.abs(sample.rows[here, 0]).max())
            assert error <= Fraction(whole / left) * (Fraction(1e-14) * largest + 3 * SUBNORMAL)


@given(extreme_samples())
def test_a_row_that_is_left_out_leaves_the_others_whatever_they_weigh(sample):
    moments = sample.moments(1)
    codes = sample.positions(moments.levels)
    found = moments.without_each(codes, sample.rows.T, sample.weights)
    weights = np.array([sample.weight(i) for i in range(len(sample))])
    for i, code in enumerate(codes):
        level = (codes == code) & ~np.isnan(sample.rows[:, 0])
        others = level & (np.arange(len(sample)) != i)
        weight, mean, _ = exact(sample.rows[others, 0], weights[others])
        assert found.observed[i, 0] == pytest.approx(weight, rel=1e-12)
        if others.any():
            largest = Fraction(np.abs(sample.rows[level, 0]).max())
            # What is left of two rows has twice the rounding of their mean, which is a step of the smallest
            # number where rows are that small.
            assert abs(Fraction(found.mean[i, 0]) - mean) <= Fraction(1e-12) * largest + 3 * SUBNORMAL
        else:
            assert np.isnan(found.mean[i, 0])


def test_a_heavy_row_leaves_the_light_ones():
    moments = GroupMoments.from_rows("aaa", [[1.0], [4.0], [6.0]], weights=[1e15, 1e-3, 1e-3], order=1)
    rows, weights = np.array([1.0, 4.0, 6.0]), np.array([1e15, 1e-3, 1e-3])
    found = moments.leave_one_out(np.zeros(3, dtype=int), [rows], weights)
    np.testing.assert_allclose(found.ravel(), [5.0, 1.0, 1.0], rtol=1e-12)


def test_a_heavy_row_whose_others_are_not_known_leaves_what_the_sums_say():
    moments = GroupMoments.from_rows("aaa", [[1.0], [4.0], [6.0]], weights=[1e4, 1.0, 1.0], order=1)
    found = moments.leave_one_out(np.zeros(1, dtype=int), [np.array([1.0])], np.array([1e4]))
    assert found.item() == pytest.approx(5.0)


def test_means_of_the_largest_doubles_are_merged_split_and_left_out():
    most = np.finfo(np.float64).max
    rows = np.array([[most], [-most], [most], [-most]])
    first = GroupMoments.from_rows("aa", rows[:2], weights=[3.0, 1.0], order=1)
    second = GroupMoments.from_rows("ab", rows[2:], order=1)
    whole = first + second
    np.testing.assert_allclose(whole.mean.ravel(), [0.6 * most, -most])
    np.testing.assert_allclose((whole - first).mean.ravel(), [most, -most])
    np.testing.assert_allclose(whole.pool(np.array([True, True]), "c").mean.ravel(), [most / 3])
    np.testing.assert_allclose(whole.overall_mean(), [most / 3])
    found = whole.leave_one_out(np.array([0, 0, 0, 1]), rows.T, np.array([3.0, 1.0, 1.0, 1.0]))
    np.testing.assert_allclose(found.ravel(), [0.0, most, most / 2, np.nan], atol=1e293)


# What is refused


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("group", ["aba", "abb", "abc", "aab"])
@pytest.mark.parametrize("row", [0, 1, 2])
def test_infinite_values_are_refused_by_name(order, group, row):
    rows = np.ones((3, 2))
    rows[row, 1] = np.inf
    with pytest.raises(InfiniteValueError, match=rf"'price' contains infinity: 1 .* row {row}\. .*\nHint"):
        GroupMoments.from_rows(group, rows, covariates=["size", "price"], order=order)


def test_an_infinite_value_alone_in_its_column_is_refused():
    with pytest.raises(InfiniteValueError, match="'x0' contains infinity"):
        GroupMoments.from_rows("a", [[-np.inf]], order=1)


@pytest.mark.parametrize("combine", [add, sub])
def test_moments_of_other_covariates_do_not_fit(combine):
    a = GroupMoments.from_rows("ab", [[1.0], [2.0]], covariates=["size"])
    b = GroupMoments.from_rows("ab", [[1.0], [2.0]], covariates=["price"])
    with pytest.raises(
        MomentsMismatchError, match=r"covariates size cannot be combined with .* covariates price"
    ):
        combine(a, b)


@pytest.mark.parametrize("combine", [add, sub])
def test_moments_of_another_order_do_not_fit(combine):
    a, b = (GroupMoments.from_rows("ab", [[1.0], [2.0]], order=order) for order in (1, 2))
    with pytest.raises(
        MomentsMismatchError,
        match=r"order 1 .* cannot be combined with moments of order 2 .*\nHint: build both",
    ):
        combine(a, b)


def test_second_moments_of_order_one_are_refused():
    with pytest.raises(MomentsMismatchError, match=r"moments of order 1\.\nHint: build them with order=2"):
        GroupMoments.from_rows("ab", [[1.0], [2.0]], order=1).require_order_two()


@pytest.mark.parametrize(
    ("group", "weights"), [("ac", [1, 1]), ("aaa", [1, 1, 1]), ("a", [5])], ids=["level", "rows", "weight"]
)
def test_taking_away_more_than_there_is_is_refused(group, weights):
    whole = GroupMoments.from_rows("aab", [[1.0], [2.0], [3.0]])
    part = GroupMoments.from_rows(group, [[1.0]] * len(group), weights=weights)
    with pytest.raises(MomentsMismatchError, match="contain rows that are not part of the others"):
        whole - part


def test_rows_of_no_level_have_no_mean_without_them():
    moments = GroupMoments.from_rows(["a", "a", "b"], [[1.0], [3.0], [5.0]])
    found = moments.leave_one_out(np.array([0, -1, 1]), [np.array([1.0, 3.0, 5.0])])
    np.testing.assert_array_equal(found.ravel(), [3.0, np.nan, np.nan])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rows": [1.0, 2.0]}, MomentsMismatchError, "rows has 1 dimension"),
        ({"weights": [1.0]}, LengthMismatchError, "weights has 1"),
        ({"weights": [1.0, -1.0]}, SampleWeightError, "is negative, infinite or NaN"),
        ({"covariates": ["a", "b"]}, MomentsMismatchError, "2 name.* are given for 1 column"),
        ({"order": 3}, MomentsMismatchError, "order is 1 or 2"),
    ],
    ids=["rows", "length", "negative", "names", "order"],
)
def test_rows_that_make_no_sense_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        GroupMoments.from_rows(**{"group": ["a", "b"], "rows": [[1.0], [2.0]], **arguments})


def test_nulls_of_every_kind_are_one_level():
    moments = GroupMoments.from_rows([np.nan, None, float("nan"), "a"], np.ones((4, 1)))
    assert moments.levels.tolist() == ["a", None]


@pytest.mark.parametrize("operation", ["__add__", "__sub__"])
def test_moments_and_numbers_do_not_mix(operation):
    moments = GroupMoments.from_rows(["a"], [[1.0]])
    assert getattr(moments, operation)(1) is NotImplemented
