"""Which rows are tested when."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import GroupKFold, check_cv

from sufrep._splits import ALWAYS_TRAINING, level_folds
from sufrep.errors import InvalidParameterError

if TYPE_CHECKING:
    from sufrep._arrays import Array, Codes
    from sufrep._compare._problem import Problem

FOLDS = ("stratified", "grouped")


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Rows to learn from, and rows to test on.

    Attributes
    ----------
    repeat, fold : int
    train, test : ndarray of int
        Positions of rows.
    """

    repeat: int
    fold: int
    train: Codes
    test: Codes


def make_splits(
    problem: Problem, *, cv: Any, n_repeats: int, folds: str, seed: int
) -> tuple[list[Split], list[str]]:
    """All splits, those of one repetition after the other, and notes on them."""
    if folds not in FOLDS:
        raise InvalidParameterError("folds", folds, f"one of {', '.join(FOLDS)}")
    if not isinstance(cv, Integral):
        return _given_splits(problem, cv), []
    n_folds, n_most = int(cv), len(problem.levels) if folds == "grouped" else len(problem.y)
    if not 2 <= n_folds <= n_most:
        what = "levels" if folds == "grouped" else "rows"
        raise InvalidParameterError(
            "cv", n_folds, f"a number of folds from 2 to that of {what}, {n_most}, or a splitter"
        )
    if n_repeats < 1:
        raise InvalidParameterError("n_repeats", n_repeats, "1 or more")
    splits: list[Split] = []
    notes: list[str] = []
    for repeat in range(n_repeats):
        if folds == "grouped":
            tested, notes = _by_level(problem.codes, n_folds, seed + repeat), []
        else:
            tested, notes = _within_levels(problem.codes, n_folds, seed + repeat)
        splits += [
            Split(repeat, fold, np.flatnonzero(tested != fold), np.flatnonzero(tested == fold))
            for fold in range(n_folds)
        ]
    return splits, notes


def _given_splits(problem: Problem, cv: Any) -> list[Split]:
    """The splits of a splitter of the user's, or those that are given."""
    n_rows = len(problem.y)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        try:
            found = list(check_cv(cv, problem.y).split(np.zeros((n_rows, 1)), problem.y, problem.codes))
        except (TypeError, ValueError) as error:
            expected = f"a number of folds, a splitter, or a list of (train, test) that fit ({error})"
            raise InvalidParameterError("cv", cv, expected) from error
    splits = [Split(0, fold, _rows(train), _rows(test)) for fold, (train, test) in enumerate(found)]
    if not splits:
        raise InvalidParameterError("cv", cv, "one split or more")
    named = np.concatenate([rows for split in splits for rows in (split.train, split.test)])
    if named.min(initial=0) < 0 or named.max(initial=0) >= n_rows:
        found_rows = f"splits of rows from {named.min()} to {named.max()}"
        raise InvalidParameterError("cv", found_rows, f"splits of rows from 0 to {n_rows - 1}")
    return splits


def _rows(chosen: Any) -> Codes:
    """Positions, which may be given as a mask."""
    chosen = np.asarray(chosen)
    return np.flatnonzero(chosen) if chosen.dtype == bool else chosen


def _by_level(codes: Codes, n_folds: int, seed: int) -> Array:
    """The fold of each row, that of its level."""
    tested = np.empty(len(codes), dtype=np.intp)
    splitter = GroupKFold(n_folds, shuffle=True, random_state=seed)
    for fold, (_, test) in enumerate(splitter.split(codes[:, None], groups=codes)):
        tested[test] = fold
    return tested


def _within_levels(codes: Codes, n_folds: int, seed: int) -> tuple[Array, list[str]]:
    """The fold of each row, that of no row twice, so that levels are in all folds alike."""
    tested = level_folds(codes, n_folds, seed)
    rare = tested == ALWAYS_TRAINING
    if 2 * rare.sum() <= len(codes):
        note = (
            f"{int(rare.sum()):,} rows of levels with fewer than {n_folds} rows are always learnt from and "
            "never tested."
        )
        return tested, [note] if rare.any() else []
    # Most levels are small; what is learnt about them is what there is to test.
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    by_level = shuffled[np.argsort(codes[shuffled], kind="stable")]
    tested[by_level] = np.arange(len(codes)) % n_folds
    return tested, [
        f"Most rows are of levels with fewer than {n_folds} rows; in some folds these levels are new."
    ]
