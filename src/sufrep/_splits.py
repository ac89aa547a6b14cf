"""Folds that keep every level in the training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sufrep._arrays import Codes

# The fold of rows that are never tested.
ALWAYS_TRAINING = -1


def level_folds(codes: Codes, n_folds: int, seed: int) -> Codes:
    """Distribute the shuffled rows of each level over the folds in turn.

    Every level with at least `n_folds` rows is in the test and the training rows of each fold. Smaller
    levels are always in the training rows; scikit-learn's stratified splitters would raise, warn or lose
    such levels.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        The level of each row.
    n_folds : int
    seed : int

    Returns
    -------
    ndarray of int, shape (n,)
        The fold in which each row is tested, ``ALWAYS_TRAINING`` for rows of small levels. The sizes of the
        folds differ by at most one.

    Examples
    --------
    >>> import numpy as np
    >>> level_folds(np.array([0, 0, 0, 1, 0, 2, 2]), n_folds=2, seed=0)
    array([ 0,  1,  0, -1,  1,  1,  0])
    """
    codes = np.asarray(codes)
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    # Rows sorted by level, in random order within it. Each level continues with the next fold.
    by_level = shuffled[np.argsort(codes[shuffled], kind="stable")]
    large = np.bincount(codes)[codes[by_level]] >= n_folds
    folds = np.full(len(codes), ALWAYS_TRAINING)
    folds[by_level[large]] = np.arange(large.sum()) % n_folds
    return folds
