"""Folds by level against rows distributed one by one, and folds in time; the laws that both obey."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep._splits import ALWAYS_TRAINING, level_folds, ordered_folds, time_blocks

law = settings()
codes_of_rows = st.lists(st.integers(0, 8), max_size=60).map(lambda codes: np.array(codes, dtype=np.int64))
numbers_of_folds = st.integers(2, 6)
seeds = st.integers(0, 2**32)


def distributed_one_by_one(codes: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """Naive: one deck a level, in the shuffled order of the rows; the next card goes to the next fold."""
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    folds = np.full(len(codes), ALWAYS_TRAINING)
    n_done = 0
    for level in sorted(set(codes.tolist())):
        deck = [row for row in shuffled if codes[row] == level]
        if len(deck) < n_folds:
            continue
        for row in deck:
            folds[row] = n_done % n_folds
            n_done += 1
    return folds


def large_levels(codes: np.ndarray, n_folds: int) -> list[int]:
    return [level for level in set(codes.tolist()) if (codes == level).sum() >= n_folds]


@law
@given(codes_of_rows, numbers_of_folds, seeds)
def test_folds_match_rows_distributed_one_by_one(codes, n_folds, seed):
    np.testing.assert_array_equal(
        level_folds(codes, n_folds, seed), distributed_one_by_one(codes, n_folds, seed)
    )


@law
@given(codes_of_rows, numbers_of_folds, seeds)
def test_every_large_level_is_tested_and_known_in_each_fold(codes, n_folds, seed):
    folds = level_folds(codes, n_folds, seed)
    for level in large_levels(codes, n_folds):
        of_level = folds[codes == level]
        for fold in range(n_folds):
            assert (of_level == fold).any()
            assert (of_level != fold).any()


@law
@given(codes_of_rows, numbers_of_folds, seeds)
def test_sizes_of_folds_differ_by_one_at_most_in_all_and_within_each_level(codes, n_folds, seed):
    folds = level_folds(codes, n_folds, seed)
    assert np.ptp([(folds == fold).sum() for fold in range(n_folds)]) <= 1
    for level in large_levels(codes, n_folds):
        assert np.ptp([(folds[codes == level] == fold).sum() for fold in range(n_folds)]) <= 1


@law
@given(codes_of_rows, numbers_of_folds, seeds)
def test_rows_of_small_levels_and_only_these_always_stay_in_training(codes, n_folds, seed):
    folds = level_folds(codes, n_folds, seed)
    np.testing.assert_array_equal(folds == ALWAYS_TRAINING, ~np.isin(codes, large_levels(codes, n_folds)))


@law
@given(codes_of_rows, numbers_of_folds, seeds)
def test_a_seed_always_gives_the_same_folds(codes, n_folds, seed):
    before = codes.copy()
    np.testing.assert_array_equal(level_folds(codes, n_folds, seed), level_folds(codes, n_folds, seed))
    np.testing.assert_array_equal(codes, before)


@law
@given(codes_of_rows, numbers_of_folds, seeds)
def test_other_names_of_levels_in_the_same_order_change_nothing(codes, n_folds, seed):
    np.testing.assert_array_equal(
        level_folds(codes, n_folds, seed), level_folds(7 * codes + 3, n_folds, seed)
    )


@law
@given(codes_of_rows, numbers_of_folds, seeds, st.permutations(range(9)))
def test_other_names_of_levels_keep_how_many_rows_of_each_can_be_tested(codes, n_folds, seed, names):
    renamed = np.array(names)[codes]
    before, after = level_folds(codes, n_folds, seed), level_folds(renamed, n_folds, seed)
    np.testing.assert_array_equal(before == ALWAYS_TRAINING, after == ALWAYS_TRAINING)
    assert sorted(np.bincount(before[before >= 0])) == sorted(np.bincount(after[after >= 0]))


def test_another_seed_gives_other_folds():
    codes = np.repeat(np.arange(10), 20)
    assert (level_folds(codes, 5, 0) != level_folds(codes, 5, 1)).mean() > 0.5


def test_no_rows_have_no_folds():
    assert level_folds(np.array([], dtype=np.int64), 4, 0).shape == (0,)


def test_a_row_alone_stays_in_training():
    assert level_folds(np.array([0]), 2, 0).tolist() == [ALWAYS_TRAINING]


def test_a_single_level_is_cut_into_folds_like_any_sample():
    folds = level_folds(np.zeros(10, dtype=np.int64), 4, 0)
    assert sorted(np.bincount(folds)) == [2, 2, 3, 3]


@pytest.mark.parametrize(("n_rows", "tested"), [(3, False), (4, True)])
def test_a_level_is_large_from_as_many_rows_as_folds(n_rows, tested):
    folds = level_folds(np.zeros(n_rows, dtype=np.int64), 4, 0)
    assert sorted(folds) == (list(range(4)) if tested else [ALWAYS_TRAINING] * 3)


def test_folds_are_drawn_at_random_and_not_in_the_order_of_the_rows():
    folds = level_folds(np.zeros(1000, dtype=np.int64), 2, 0)
    runs = 1 + (np.diff(folds) != 0).sum()
    assert 400 < runs < 600


# Time


@law
@given(st.lists(st.integers(-20, 20), max_size=60), st.integers(2, 12))
def test_blocks_follow_time_and_never_split_ties(days, n_blocks):
    days = np.array(days, dtype=np.int64)
    blocks = time_blocks(days, n_blocks)
    assert sorted(set(blocks.tolist())) == list(range(blocks.max(initial=-1) + 1))
    assert len(set(blocks.tolist())) <= n_blocks
    assert len(set(blocks.tolist())) >= min(2, len(set(days.tolist())))
    order = np.argsort(days, kind="stable")
    assert (np.diff(blocks[order]) >= 0).all()
    assert ((np.diff(days[order]) > 0) | (np.diff(blocks[order]) == 0)).all()


@law
@given(st.lists(st.integers(-20, 20), max_size=60))
def test_a_fold_in_time_learns_from_all_rows_before_it(days):
    days = np.array(days, dtype=np.int64)
    folds = ordered_folds(days)
    tested = [row for _, test in folds for row in test]
    assert sorted(tested) == list(range(len(days)))
    for train, test in folds:
        np.testing.assert_array_equal(train, np.flatnonzero(days < days[test].min()))


def test_blocks_have_about_the_same_number_of_rows():
    times = np.random.default_rng(0).permutation(1003).astype(float)
    np.testing.assert_allclose(np.bincount(time_blocks(times)), 100, atol=1)
