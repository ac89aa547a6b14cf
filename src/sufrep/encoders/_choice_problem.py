"""What a choice is made on: all rows as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sufrep.encoders._layout import read_covariates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Floats
    from sufrep._frames import Factorized, Table
    from sufrep.encoders._layout import Layout
    from sufrep.encoders._target import Target


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What the choice is made on.

    Attributes
    ----------
    features : ndarray, shape (n, n_features)
        What the learner gets beside the encoding.
    rows : ndarray, shape (n, p + n_groups)
        Covariates, then the positions of the levels, NaN for none.
    n_covariates : int
        p.
    y : ndarray, shape (n,)
        The target, or the codes of its classes.
    kind : {"continuous", "binary", "multiclass"}
    weights : ndarray, shape (n,), or None
    """

    features: Floats
    rows: Floats
    n_covariates: int
    y: Array
    kind: str
    weights: Floats | None

    def take(self, rows: Codes) -> Problem:
        """Some rows, in the given order."""
        weights = None if self.weights is None else self.weights[rows]
        return Problem(
            self.features[rows], self.rows[rows], self.n_covariates, self.y[rows], self.kind, weights
        )


def make_problem(
    table: Table,
    layout: Layout,
    factors: Sequence[Factorized],
    target: Target,
    weights: Floats | None,
) -> Problem:
    """All rows as numbers: what the learner sees, what describes the levels, and the levels."""
    own = [np.asarray(column, dtype=np.float64) for column in read_covariates(table, layout)[1]]
    used = {position for columns in layout.groups for position in columns}
    others = [
        np.asarray(table.numbers(position), dtype=np.float64)
        for position in range(len(table.names))
        if position not in used and position not in layout.covariates and table.kind(position) == "numeric"
    ]
    codes = [np.where(factor.codes < 0, np.nan, factor.codes) for factor in factors]
    nothing = np.empty((table.n_rows, 0))
    y = np.asarray(target.columns[0], dtype=np.float64)
    if target.kind != "continuous":
        y = np.argmax(np.column_stack(target.columns), axis=1)
    return Problem(
        np.column_stack([nothing, *own, *others]),
        np.column_stack([nothing, *own, *codes]),
        len(own),
        y,
        target.kind,
        weights,
    )


def counted_folds(
    folds: Sequence[tuple[Codes, Codes]], weights: Floats | None
) -> Sequence[tuple[Codes, Codes]]:
    """The folds without rows of weight 0."""
    if weights is None:
        return folds
    parts = [[part[weights[part] > 0] for part in map(np.asarray, fold)] for fold in folds]
    return [(train, test) for train, test in parts if len(train) and len(test)]
