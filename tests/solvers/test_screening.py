"""Screens of groups and crossings: pairs counted one by one, and z under the null and with an effect."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from sufrep.solvers.crossed import CrossedDesign, fit_crossed
from sufrep.solvers.screening import Pairs, ScreenedRows, crossing_screen, group_z


def test_pairs_are_all_ordered_pairs_of_the_same_cell():
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 3, 20)
    scores, precisions = rng.normal(size=20), rng.uniform(0.5, 2.0, 20)
    pairs = [(i, j) for i, j in permutations(range(20), 2) if codes[i] == codes[j] >= 0]
    found = ScreenedRows(scores, precisions).pairs(codes, 3)
    assert found.products == pytest.approx(sum(scores[i] * scores[j] for i, j in pairs))
    assert found.number == pytest.approx(sum(precisions[i] * precisions[j] for i, j in pairs))
    assert ScreenedRows(scores).pairs(codes, 3).number == len(pairs)


def test_a_count_says_how_often_a_row_came():
    rng = np.random.default_rng(1)
    codes, scores, omega = rng.integers(0, 4, 30), rng.normal(size=30), rng.uniform(0.5, 2, 30)
    times = rng.integers(0, 4, 30)
    rows = np.repeat(np.arange(30), times)
    counted = ScreenedRows(scores, omega, times.astype(float))
    repeated = ScreenedRows(scores[rows], omega[rows])
    one, other = counted.pairs(codes, 4), repeated.pairs(codes[rows], 4)
    assert one.products == pytest.approx(other.products)
    assert one.number == pytest.approx(other.number)
    assert counted.noise() == pytest.approx(repeated.noise())
    assert group_z(counted, codes, 4) == pytest.approx(group_z(repeated, codes[rows], 4))


def screens(seed: int, spread: float, *, heavy: bool = False) -> tuple[list[float], float]:
    """z of three crossings of two groups, the first of which may have an effect, and of a silent group."""
    rng, n = np.random.default_rng(seed), 3000
    first, second, covariate = rng.integers(0, 400, n), rng.integers(0, 40, n), rng.integers(0, 8, n)
    silent = rng.integers(0, 100, n)
    noise = rng.standard_t(5, n) if heavy else rng.normal(size=n)
    cells = rng.normal(size=3200)[first * 8 + covariate]
    y = rng.normal(size=400)[first] + 0.5 * rng.normal(size=40)[second] + spread * cells + noise
    fit = fit_crossed(CrossedDesign.of([first, second, silent], [400, 40, 100]), y)
    rows = ScreenedRows(fit.residuals)
    levels = [rows.pairs(first, 400), rows.pairs(second, 40)]
    crossings = [
        (rows.pairs(first * 8 + covariate, 3200), levels[0]),
        (rows.pairs(second * 8 + covariate, 320), levels[1]),
        (rows.pairs(first * 40 + second, 16_000), levels[0]),
    ]
    z = [crossing_screen(cell, level, rows.noise()).z for cell, level in crossings]
    return z, group_z(ScreenedRows(fit.residuals + fit.effects[2][silent]), silent, 100)


@pytest.mark.parametrize("heavy", [False, True])
def test_z_is_about_standard_normal_under_the_null(heavy):
    found = [screens(seed, 0.0, heavy=heavy) for seed in range(80)]
    for z in (*np.array([crossings for crossings, _ in found]).T, np.array([group for _, group in found])):
        assert abs(z.mean()) < 0.5
        assert 0.8 < z.std() < 1.4


def test_a_crossing_with_an_effect_is_found_and_its_variance_estimated():
    z, _ = screens(0, 0.7)
    assert z[0] > 8
    assert max(z[1:]) < 3
    rng, n = np.random.default_rng(3), 40_000
    level, covariate = rng.integers(0, 500, n), rng.integers(0, 8, n)
    e = 0.5 * rng.normal(size=4000)[level * 8 + covariate] + rng.normal(size=n)
    rows = ScreenedRows(e - e.mean())
    found = crossing_screen(rows.pairs(level * 8 + covariate, 4000), rows.pairs(level, 500), rows.noise())
    assert found.variance == pytest.approx(0.25, rel=0.15)


def test_a_group_with_an_effect_is_found():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 50, 1000)
    e = rng.normal(size=50)[codes] + rng.normal(size=1000)
    assert group_z(ScreenedRows(e - e.mean()), codes, 50) > 8


@pytest.mark.parametrize(
    ("cells", "levels"),
    [(Pairs(0.0, 0.0), Pairs(3.0, 10.0)), (Pairs(3.0, 10.0), Pairs(3.0, 10.0))],
    ids=["one row a cell", "nothing split"],
)
def test_without_pairs_to_compare_nothing_is_found(cells, levels):
    found = crossing_screen(cells, levels, 1.0)
    assert (found.variance, found.z) == (0.0, 0.0)


def test_without_noise_or_rows_nothing_is_found():
    assert crossing_screen(Pairs(0.0, 5.0), Pairs(0.0, 10.0), 0.0).z == 0.0
    assert group_z(ScreenedRows(np.zeros(4)), np.array([0, 0, 1, 1]), 2) == 0.0
