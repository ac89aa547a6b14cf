"""Fewer rows to choose on, whose levels are as large as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sufrep._arrays import Codes

# Whole levels are kept, at least so many, when rows are too many.
_LEAST_LEVELS = 50


def whole_levels(codes: Codes, max_rows: int, seed: int) -> Codes:
    """Rows of as many whole levels as fit, because parts of levels would look smaller than they are.

    If that leaves too few levels, rows are drawn from more of them.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        −1 for rows of no level, which count as one.
    max_rows : int
    seed : int

    Returns
    -------
    ndarray of int, shape (n_kept,)
        Positions, ascending.
    """
    if len(codes) <= max_rows:
        return np.arange(len(codes))
    draw = np.random.default_rng(seed)
    counts = np.bincount(codes + 1)
    order = draw.permutation(np.flatnonzero(counts))
    fitting = int(np.searchsorted(np.cumsum(counts[order]), max_rows, side="right"))
    keep = np.zeros(len(counts), dtype=bool)
    keep[order[: max(fitting, min(_LEAST_LEVELS, len(order)))]] = True
    rows = np.flatnonzero(keep[codes + 1])
    if len(rows) > max_rows:
        rows = np.sort(draw.choice(rows, max_rows, replace=False))
    return rows
