"""Folds that keep every level in the training rows, and folds that follow time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sufrep._arrays import Array, Codes

# The fold of rows that are never tested.
ALWAYS_TRAINING = -1
# Number of blocks that rows are cut into by time.
N_BLOCKS = 10


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


def spread_folds(codes: Codes, n_folds: int, seed: int) -> list[tuple[Codes, Codes]]:
    """Return (train, test) folds with as equal parts of each level as possible; every row is tested once.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        The level of each row.
    n_folds : int
        The largest number of folds; there are no more than rows.
    seed : int

    Examples
    --------
    >>> import numpy as np
    >>> for train, test in spread_folds(np.array([0, 0, 1, 1, 1]), n_folds=2, seed=0):
    ...     print(train, test)
    [0 4] [1 2 3]
    [1 2 3] [0 4]
    """
    shuffled = np.random.default_rng(seed).permutation(len(codes))
    # Levels in the order of their first shuffled row: codes depend on names, which must not matter.
    _, first, places = np.unique(codes[shuffled], return_index=True, return_inverse=True)
    folds = np.empty(len(codes), dtype=np.intp)
    folds[shuffled[np.argsort(first[places], kind="stable")]] = np.arange(len(codes)) % n_folds
    everywhere = range(min(n_folds, len(codes)))
    return [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in everywhere]


def time_blocks(times: Array, n_blocks: int = N_BLOCKS) -> Codes:
    """Cut rows into consecutive blocks of about the same number of rows, without splitting ties.

    Parameters
    ----------
    times : ndarray, shape (n,)
        When each row happened; in any order, without nulls.
    n_blocks : int, default=10
        The largest number of blocks; there are fewer if there are few distinct times, or many ties.

    Returns
    -------
    ndarray of int, shape (n,)
        The block of each row, 0 for the earliest; none is empty. There are at least two unless all times are
        the same.

    Examples
    --------
    >>> import numpy as np
    >>> time_blocks(np.array([2021, 2019, 2020, 2020, 2019, 2022]), n_blocks=3)
    array([2, 0, 1, 1, 0, 2])
    """
    _, ranks, counts = np.unique(times, return_inverse=True, return_counts=True)
    # A time goes where the middle of its rows lies. The first and the last one differ by half of all rows or
    # more, so they never share a block.
    middles = np.cumsum(counts) - counts / 2
    blocks = np.floor(n_blocks * middles / max(len(times), 1)).astype(np.intp)
    dense: Codes = np.unique(blocks, return_inverse=True)[1]
    return dense[ranks]


def ordered_folds(times: Array, n_blocks: int = N_BLOCKS) -> list[tuple[Codes, Codes]]:
    """Return (train, test) for each block of rows in time: all rows before it, and the block itself.

    The first block comes with no training rows.

    Examples
    --------
    >>> import numpy as np
    >>> for train, test in ordered_folds(np.array([3.0, 1.0, 2.0, 2.0])):
    ...     print(train, test)
    [] [1]
    [1] [2 3]
    [1 2 3] [0]
    """
    blocks = time_blocks(times, n_blocks)
    return [
        (np.flatnonzero(blocks < block), np.flatnonzero(blocks == block))
        for block in range(int(blocks.max(initial=-1)) + 1)
    ]
