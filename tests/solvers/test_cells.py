"""Means in cells, effects of several factors, and the choice of combinations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from sufrep.solvers.cells import (
    Factors,
    cell_means,
    choose_cells,
    combine,
    fit_additive,
    fit_effects,
)

law = settings()
seeds = st.integers(0, 2**32 - 1)


def draw(seed, n=300, n_cells=20, spread=1.0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_cells, n)
    return codes, rng.normal(size=n) + spread * rng.normal(size=n_cells)[codes]


def folds_of(n, n_folds=5, seed=0):
    own = np.random.default_rng(seed).permutation(np.arange(n) % n_folds)
    return [(np.flatnonzero(own != fold), np.flatnonzero(own == fold)) for fold in range(n_folds)]


def test_means_are_shrunk_by_the_rows_of_the_cell():
    codes, y = draw(0)
    found = cell_means(codes, 22, y[:, None])
    counts = np.bincount(codes, minlength=22)
    for cell in range(22):
        own = y[codes == cell].mean() if counts[cell] else 0.0
        shrunk = counts[cell] / (counts[cell] + found.ratio)
        np.testing.assert_allclose(found.means[cell, 0], y.mean() + shrunk * (own - y.mean()))
    assert found.weight.tolist() == counts.tolist()


def test_the_ratio_is_the_likeliest_of_the_grid():
    codes, y = draw(1, n=60, n_cells=8)
    y -= y.mean()
    same = codes[:, None] == codes

    def log_likelihood(ratio):
        """At the best variance of the noise, which has a closed form."""
        shape = np.eye(60) + same / ratio
        variance = y @ np.linalg.solve(shape, y) / 60
        return multivariate_normal(np.zeros(60), variance * shape).logpdf(y)

    grid = 2.0 ** np.arange(-2, 11)
    likely = [log_likelihood(ratio) for ratio in grid]
    found = fit_effects(codes, 8, y[:, None], np.ones(60))
    assert found.ratio == grid[np.argmax(likely)]
    none = multivariate_normal(np.zeros(60), y @ y / 60 * np.eye(60)).logpdf(y)
    np.testing.assert_allclose(found.gain, 2 * (max(likely) - none))


def test_cells_that_do_not_differ_get_the_overall_mean():
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    found = [cell_means(rng.permutation(np.arange(300) % 60), 60, y[:, None]) for _ in range(40)]
    assert sum(np.isinf(one.ratio) for one in found) > 15
    constant = cell_means(np.arange(300) % 60, 60, np.full((300, 1), 7.0))
    np.testing.assert_array_equal(constant.means, 7.0)


@law
@given(seeds, st.sampled_from([-700, -3, 40, 400]))
def test_means_scale_with_the_response(seed, power):
    codes, y = draw(seed)
    ours = cell_means(codes, 20, np.ldexp(y, power)[:, None]).means
    np.testing.assert_allclose(np.ldexp(ours, -power), cell_means(codes, 20, y[:, None]).means, rtol=1e-9)


@law
@given(seeds)
def test_a_weight_counts_how_often_a_row_came(seed):
    codes, y = draw(seed, n=60, n_cells=6)
    times = np.random.default_rng(seed).integers(1, 4, 60)
    ours = cell_means(codes, 6, y[:, None], times.astype(float))
    theirs = cell_means(np.repeat(codes, times), 6, np.repeat(y, times)[:, None])
    assert ours.ratio == theirs.ratio
    np.testing.assert_allclose(ours.means, theirs.means, atol=1e-10)


@law
@given(seeds)
def test_additive_effects_solve_the_equations_of_the_mixed_model(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 5, 200), rng.integers(0, 7, 200)
    y = rng.normal(size=5)[a] + rng.normal(size=7)[b] + rng.normal(size=200)
    found = fit_additive(Factors([a, b], [5, 7]), y[:, None], np.ones(200), ratios=[2.0, 3.0])
    design = np.hstack([np.eye(5)[a], np.eye(7)[b]])
    penalty = np.diag([2.0] * 5 + [3.0] * 7)
    expected = np.linalg.solve(design.T @ design + penalty, design.T @ (y - y.mean()))
    # A constant moves between the factors for long, and changes no prediction.
    prediction = found.predict(Factors([a, b], [5, 7]))[:, 0]
    np.testing.assert_allclose(prediction, y.mean() + design @ expected, atol=5e-3)


def test_rows_without_a_level_have_no_effect():
    codes, y = draw(0)
    codes = np.where(np.arange(300) % 10 == 0, -1, codes)
    found = fit_additive(Factors([codes], [20]), y[:, None], np.ones(300))
    prediction = found.predict(Factors([codes], [20]))
    np.testing.assert_array_equal(prediction[codes < 0, 0], found.center[0])


@law
@given(seeds)
def test_combinations_are_those_of_tuples(seed):
    rng = np.random.default_rng(seed)
    columns = [rng.integers(-1, 4, 50) for _ in range(3)]
    codes, n_cells = combine(Factors(columns, [4, 4, 4]), (0, 1, 2))
    rows = np.column_stack(columns)
    known = (rows >= 0).all(axis=1)
    assert ((codes >= 0) == known).all()
    assert n_cells == len({tuple(row) for row in rows[known]})
    for i, j in rng.integers(0, 50, (40, 2)):
        if known[i] and known[j]:
            assert (codes[i] == codes[j]) == (rows[i] == rows[j]).all()


class TestChoice:
    @staticmethod
    def table(seed, n=3000, size=20):
        rng = np.random.default_rng(seed)
        codes = [rng.integers(0, size, n) for _ in range(4)]
        additive = sum(rng.normal(size=size)[one] for one in codes[:2]) + rng.normal(size=n)
        return rng, Factors(codes, [size] * 4), additive

    def test_a_pair_that_says_more_than_its_columns_is_chosen(self):
        rng, factors, y = self.table(0)
        y = y + rng.normal(size=(20, 20))[factors.codes[1], factors.codes[3]]
        found = choose_cells(factors, y[:, None], folds_of(len(y)))
        assert [cells.columns for cells in found] == [(1, 3)]
        assert found[0].z > 5
        assert 0.1 < found[0].gain < 0.6

    def test_sums_of_columns_are_no_cells(self):
        chosen = 0
        for seed in range(12):
            _, factors, y = self.table(seed, n=1000)
            chosen += bool(choose_cells(factors, y[:, None], folds_of(len(y))))
        assert chosen <= 2

    def test_a_triple_is_chosen_where_its_pairs_are(self):
        rng = np.random.default_rng(0)
        codes = [rng.integers(0, 12, 8000), rng.integers(0, 5, 8000), rng.integers(0, 5, 8000)]
        whole = rng.normal(size=(12, 5, 5))
        y = whole[tuple(codes)] + 0.5 * rng.normal(size=8000)
        found = choose_cells(Factors(codes, [12, 5, 5]), y[:, None], folds_of(8000))
        assert found[0].columns == (0, 1, 2)
        pairs = choose_cells(Factors(codes, [12, 5, 5]), y[:, None], folds_of(8000), max_order=2)
        assert {len(cells.columns) for cells in pairs} == {2}

    def test_nested_columns_and_columns_of_unique_values_are_not_tried(self):
        rng = np.random.default_rng(0)
        town = rng.integers(0, 40, 2000)
        codes = [town, town // 5, np.arange(2000)]
        y = rng.normal(size=40)[town] + 0.1 * rng.normal(size=2000)
        assert choose_cells(Factors(codes, [40, 8, 2000]), y[:, None], folds_of(2000)) == []

    def test_no_more_cells_than_asked_for(self):
        rng, factors, y = self.table(0)
        for one, other in ((0, 1), (0, 2), (1, 3)):
            y = y + rng.normal(size=(20, 20))[factors.codes[one], factors.codes[other]]
        found = choose_cells(factors, y[:, None], folds_of(len(y)), max_cells=2)
        assert len(found) == 2
        assert found[0].z >= found[1].z

    @pytest.mark.parametrize("folds", [[], [(np.empty(0, dtype=int), np.arange(3000))]])
    def test_without_rows_to_learn_from_nothing_is_chosen(self, folds):
        rng, factors, y = self.table(0)
        y = y + rng.normal(size=(20, 20))[factors.codes[1], factors.codes[3]]
        assert choose_cells(factors, y[:, None], folds) == []

    def test_rows_of_weight_zero_say_nothing(self):
        rng, factors, y = self.table(0)
        weights = np.where(np.arange(3000) < 2000, 1.0, 0.0)
        y = y + rng.normal(size=(20, 20))[factors.codes[1], factors.codes[3]]
        folds = folds_of(2000)
        kept = choose_cells(factors.take(np.arange(2000)), y[:2000, None], folds)
        y[2000:] += 100 * rng.normal(size=1000)
        both = [(train, np.append(test, np.arange(2000, 3000))) for train, test in folds[:1]] + folds[1:]
        found = choose_cells(factors, y[:, None], both, weights)
        assert [cells.columns for cells in found] == [cells.columns for cells in kept]
        np.testing.assert_allclose([cells.z for cells in found], [cells.z for cells in kept])
