"""Which rows are tested when: every level in all folds, or levels that were never seen."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, LeaveOneGroupOut, ShuffleSplit, StratifiedKFold

from sufrep._compare._folds import make_splits
from sufrep._splits import level_folds
from sufrep.errors import InvalidParameterError

law = settings(deadline=None, max_examples=50)


def splits_of(codes: Any, **changes: Any) -> Any:
    codes = np.asarray(codes)
    problem: Any = SimpleNamespace(
        codes=codes, y=np.arange(len(codes)) % 2, levels=np.arange(int(codes.max()) + 1, dtype=object)
    )
    options: dict[str, Any] = {"cv": 4, "n_repeats": 1, "folds": "stratified", "seed": 0}
    return make_splits(problem, **{**options, **changes})


# Levels of four rows or more, each of which is in all folds.
large = st.lists(st.integers(4, 9), min_size=2, max_size=6).map(lambda n: np.repeat(np.arange(len(n)), n))


@law
@given(large, st.integers(0, 5))
def test_folds_are_those_of_the_paper(codes, seed):
    splits, notes = splits_of(codes, seed=seed)
    tested = level_folds(codes, 4, seed)
    assert notes == []
    for split in splits:
        np.testing.assert_array_equal(split.test, np.flatnonzero(tested == split.fold))
        np.testing.assert_array_equal(split.train, np.flatnonzero(tested != split.fold))
        assert set(codes[split.test]) == set(codes[split.train]) == set(codes)


@law
@given(large, st.integers(0, 5))
def test_grouped_folds_test_levels_that_were_never_seen(codes, seed):
    splits, _ = splits_of(codes, folds="grouped", cv=2, seed=seed)
    for split in splits:
        assert not set(codes[split.train]) & set(codes[split.test])
    tested = np.sort(np.concatenate([split.test for split in splits]))
    np.testing.assert_array_equal(tested, np.arange(len(codes)))


def test_repetitions_deal_anew():
    splits, _ = splits_of(np.repeat([0, 1, 2], 20), n_repeats=3)
    assert [(split.repeat, split.fold) for split in splits] == [(r, f) for r in range(3) for f in range(4)]
    assert len({tuple(split.test) for split in splits}) == 12
    once, _ = splits_of(np.repeat([0, 1, 2], 20), seed=2)
    np.testing.assert_array_equal(splits[8].test, once[0].test)


def test_rows_of_rare_levels_are_learnt_from_and_the_reader_is_told():
    codes = np.array([0] * 20 + [1] * 3)
    splits, notes = splits_of(codes)
    assert all(set(range(20, 23)) <= set(split.train) for split in splits)
    assert notes == ["3 rows of levels with fewer than 4 rows are always learnt from and never tested."]


def test_where_most_levels_are_rare_all_rows_are_tested():
    codes = np.repeat(np.arange(15), 2)
    splits, notes = splits_of(codes, n_repeats=2)
    for repeat in range(2):
        tested = np.concatenate([split.test for split in splits if split.repeat == repeat])
        np.testing.assert_array_equal(np.sort(tested), np.arange(30))
    assert notes == ["Most rows are of levels with fewer than 4 rows; in some folds these levels are new."]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cv": 1}, r"cv is 1\.\nHint: cv is a number of folds from 2 to that of rows, 12"),
        ({"cv": 13}, "cv is 13"),
        ({"cv": 4, "folds": "grouped"}, "to that of levels, 3, or a splitter"),
        ({"folds": "group"}, "folds is 'group'.\nHint: folds is one of stratified, grouped"),
        ({"n_repeats": 0}, "n_repeats is 1 or more"),
        ({"cv": "x"}, r"a list of \(train, test\) that fit \(Expected `cv`"),
        ({"cv": KFold(13)}, "that fit .*number of splits n_splits=13 greater"),
        ({"cv": [3, 4]}, "that fit"),
        ({"cv": []}, "one split or more"),
        (
            {"cv": [([0, 1], [2, 12])]},
            r"splits of rows from 0 to 12'\.\nHint: cv is splits of rows from 0 to 11",
        ),
        ({"cv": [([0, 1], [2, -1])]}, "splits of rows from -1 to 2"),
    ],
)
def test_folds_that_cannot_be_made_are_told(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        splits_of(np.repeat([0, 1, 2], 4), **changes)


@pytest.mark.parametrize(
    ("cv", "n_splits"),
    [
        (KFold(3), 3),
        (StratifiedKFold(2), 2),
        (ShuffleSplit(5, random_state=0), 5),
        (LeaveOneGroupOut(), 3),
        (None, 5),
        ([([0, 1, 2], [3, 4])], 1),
        (iter([([0, 1, 2], [3, 4]), ([3, 4], [0])]), 2),
    ],
)
def test_splits_may_be_whatever_scikit_learn_takes(cv, n_splits):
    codes = np.repeat([0, 1, 2], 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        splits, notes = splits_of(codes, cv=cv, n_repeats=7)
    assert [(split.repeat, split.fold) for split in splits] == [(0, fold) for fold in range(n_splits)]
    assert notes == []
    if isinstance(cv, LeaveOneGroupOut):
        assert [set(codes[split.test]) for split in splits] == [{0}, {1}, {2}]


def test_masks_become_positions():
    mask = np.arange(12) < 8
    (split,), _ = splits_of(np.repeat([0, 1, 2], 4), cv=[(mask, ~mask)])
    assert (split.train.tolist(), split.test.tolist()) == ([*range(8)], [8, 9, 10, 11])
