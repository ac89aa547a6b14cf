"""Bins, cells, and the effects of groups and crossings that are found in samples of a known kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sufrep.solvers.crossings import (
    CellEffects,
    CrossedRows,
    Crossing,
    JointEffects,
    cut_into_bins,
    find_cuts,
    learn_effects,
)

# Bins and cells


def test_few_values_have_a_bin_each_and_nulls_the_last_one():
    column = np.array([3.0, 1.0, np.nan, 7.0, 1.0])
    cuts = find_cuts(column)
    np.testing.assert_array_equal(cuts, [2.0, 5.0])
    np.testing.assert_array_equal(cut_into_bins(column, cuts), [1, 0, 3, 2, 0])
    np.testing.assert_array_equal(cut_into_bins(np.array([-9.0, 2.9, 99.0]), cuts), [0, 1, 2])


def test_many_values_have_bins_of_about_the_same_size():
    column = np.random.default_rng(0).normal(size=1000)
    sizes = np.bincount(cut_into_bins(column, find_cuts(column)))
    assert len(sizes) == 8
    assert sizes.min() >= 124


def test_a_weight_counts_how_often_a_value_came():
    rng = np.random.default_rng(1)
    column, times = np.round(rng.normal(size=200), 1), rng.integers(0, 4, 200)
    counted = times > 0
    np.testing.assert_array_equal(
        find_cuts(column[counted], times[counted].astype(float)), find_cuts(np.repeat(column, times))
    )


@pytest.mark.parametrize("column", [np.full(5, 2.0), np.full(5, np.nan), np.empty(0)])
def test_a_covariate_that_does_not_vary_has_no_cut(column):
    assert not len(find_cuts(column))


def test_neighbouring_numbers_are_told_apart():
    low = np.nextafter(0.0, 1.0)
    cuts = find_cuts(np.array([low, 2 * low, -low]))
    np.testing.assert_array_equal(cut_into_bins(np.array([-low, low, 2 * low]), cuts), [0, 1, 2])


def rows_of(groups: list[np.ndarray], columns: Any = (), weights: Any = None) -> CrossedRows:
    cuts = [find_cuts(column) for column in columns]
    bins = [cut_into_bins(column, cut) for column, cut in zip(columns, cuts, strict=True)]
    sizes = [int(codes.max()) + 1 for codes in groups]
    return CrossedRows(groups, sizes, columns, bins, [len(cut) + 2 for cut in cuts], weights)


@pytest.mark.parametrize("scale", [1, 10_000], ids=["counted", "sorted"])
def test_cells_are_the_distinct_combinations(scale):
    rng = np.random.default_rng(2)
    first, second = rng.integers(-1, 5, 100), rng.integers(0, 4, 100)
    rows = CrossedRows([first, second], [5 * scale, 4 * scale])
    cells = rows.cells(Crossing((0, 1)))
    pairs = sorted({(a, b) for a, b in zip(first.tolist(), second.tolist(), strict=True) if a >= 0})
    assert [divmod(key, 4 * scale) for key in cells.keys.tolist()] == pairs
    for a, b, code in zip(first.tolist(), second.tolist(), cells.codes.tolist(), strict=True):
        assert code == (pairs.index((a, b)) if a >= 0 else -1)


def test_more_cells_than_can_be_numbered_are_no_crossing():
    codes = np.zeros(3, dtype=np.int64)
    assert CrossedRows([codes, codes], [2**31, 2**32]).cells(Crossing((0, 1))) is None


def test_effects_of_cells_are_looked_up_and_zero_elsewhere():
    cells = CellEffects((0,), (0,), (3, 4), np.array([1, 6]), np.array([0.5, -2.0]))
    groups, bins = [np.array([0, 1, 1, -1, 2])], [np.array([1, 2, 1, 1, 3])]
    np.testing.assert_array_equal(cells.lookup(groups, bins), [0.5, -2.0, 0.0, 0.0, 0.0])
    none = CellEffects((0,), (0,), (3, 4), np.empty(0, dtype=np.int64), np.empty(0))
    np.testing.assert_array_equal(none.lookup(groups, bins), np.zeros(5))


# What is found


def world(seed: int = 0, n: int = 4000, kind: str = "slopes") -> tuple[CrossedRows, np.ndarray, np.ndarray]:
    """Two groups with effects, one without, three covariates; and the sum of the true effects."""
    rng = np.random.default_rng(seed)
    first, second, silent = (rng.integers(0, q, n) for q in (120, 40, 60))
    X = rng.normal(size=(3, n))
    effects = rng.normal(size=120)[first] + 0.7 * rng.normal(size=40)[second]
    if kind == "slopes":
        effects = effects + rng.normal(size=120)[first] * X[0]
    if kind == "two slopes":
        X[:2] = X[:2] > 0
        effects = effects + 1.5 * rng.normal(size=(120, 2, 2))[first, X[0].astype(int), X[1].astype(int)]
    if kind == "pairs":
        effects = effects + rng.normal(size=(120, 40))[first, second]
    y = effects + np.sin(2 * X[2]) + rng.normal(size=n)
    return rows_of([first, second, silent], list(X)), y, effects


def total(found: JointEffects, rows: CrossedRows) -> np.ndarray:
    groups = sum(effects[codes] for effects, codes in zip(found.effects, rows.groups, strict=True))
    return groups + sum(part.lookup(rows.groups, rows.bins) for part in found.cells)


def kept(found: JointEffects) -> list[Crossing]:
    return [item.crossing for item in found.screened if item.kept]


@pytest.mark.parametrize(
    ("kind", "crossing"),
    [("slopes", Crossing((0,), (0,))), ("pairs", Crossing((0, 1))), ("two slopes", Crossing((0,), (0, 1)))],
)
def test_a_crossing_with_an_effect_is_kept_and_predicted(kind, crossing):
    rows, y, effects = world(kind=kind, n=8000)
    found = learn_effects(rows, y)
    assert crossing in kept(found)
    assert [part.groups for part in found.cells].count(crossing.groups) >= 1
    plain = learn_effects(rows, y, most_crossings=0)
    assert not plain.cells
    assert not plain.screened
    gap = [np.mean((total(part, rows) - effects) ** 2) for part in (found, plain)]
    assert gap[0] < 0.75 * gap[1]


def test_without_an_effect_hardly_any_crossing_is_kept_and_the_silent_group_leaves():
    found = [learn_effects(*world(seed, kind="none")[:2]) for seed in range(6)]
    assert sum(len(part.cells) for part in found) <= 1
    silent = [part.group_z[2] < 3 for part in found]
    assert sum(silent) >= 5
    for part, leaves in zip(found, silent, strict=True):
        assert leaves == (not part.effects[2].any())
        assert (part.group_z[:2] > 3).all()
        np.testing.assert_allclose(part.variances[:2], [1.0, 0.49], rtol=0.6)
        assert part.noise == pytest.approx(1.0, rel=0.1)


def test_errors_belong_to_the_groups_that_say_something():
    rows, y, _ = world(kind="none")
    found = learn_effects(rows, y, with_errors=True)
    assert (found.errors[0] > 0).all()
    assert np.isnan(found.errors[2]).all()


def test_effects_of_classes_are_log_odds():
    rng = np.random.default_rng(3)
    n = 20_000
    codes, x = rng.integers(0, 100, n), rng.normal(size=n)
    logits = 0.8 * rng.normal(size=100)
    y = (rng.random(n) < 1 / (1 + np.exp(-(logits[codes] + 0.5 * x)))).astype(float)
    found = learn_effects(rows_of([codes], [x]), y, is_class=True)
    slope, _ = np.polyfit(found.effects[0], logits - logits.mean(), 1)
    assert 0.8 < slope < 1.4  # one step from the mean, so large effects come out small
    assert np.corrcoef(found.effects[0], logits)[0, 1] > 0.95


@pytest.mark.parametrize("power", [-300, 40])
def test_a_power_of_two_as_the_unit_changes_no_digit(power):
    rows, y, _ = world()
    plain, scaled = (
        learn_effects(rows, y, with_errors=True),
        learn_effects(rows, np.ldexp(y, power), with_errors=True),
    )
    np.testing.assert_array_equal(np.ldexp(total(plain, rows), power), total(scaled, rows))
    np.testing.assert_array_equal(np.ldexp(plain.errors[0], power), scaled.errors[0])


@pytest.mark.parametrize("value", [0.0, 0.1, -1e100])
def test_a_constant_target_has_no_effects(value):
    rows, y, _ = world()
    found = learn_effects(rows, np.full(len(y), value))
    np.testing.assert_array_equal(total(found, rows), 0.0)


def test_the_noise_is_that_of_the_sample():
    """Many covariates, of which the strongest are in the first fit."""
    rng = np.random.default_rng(4)
    codes, X = rng.integers(0, 30, 3000), rng.normal(size=(20, 3000))
    y = rng.normal(size=30)[codes] + 2 * X[17] + rng.normal(size=3000)
    found = learn_effects(rows_of([codes], list(X)), y)
    assert found.noise == pytest.approx(1.0, rel=0.2)
