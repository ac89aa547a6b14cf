"""Normal scores: covariates of any shape, made normal one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Floats

# Knots of a map; between them scores are interpolated.
_MOST_KNOTS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class NormalScores:
    """A rising map of each covariate to normal scores: Φ⁻¹ of the share of rows below, ties in the middle.

    Attributes
    ----------
    knots, scores : list of ndarray, each of shape (n_knots,)
        Values and what they become, for each covariate. Without knots, everything becomes 0.
    """

    knots: list[Floats]
    scores: list[Floats]

    def apply(self, columns: Sequence[Array]) -> Floats:
        """Scores of rows; nulls get 0, the score of the median; (n, n_covariates)."""
        result = np.zeros((len(columns[0]) if len(columns) else 0, len(self.knots)))
        for j, (column, knots, scores) in enumerate(zip(columns, self.knots, self.scores, strict=True)):
            if not len(knots):
                continue
            values = np.asarray(column, dtype=np.float64)
            observed = ~np.isnan(values)
            result[observed, j] = np.interp(values[observed], knots, scores)
        return result


def normal_scores(
    columns: Sequence[Array], weights: Floats | None = None, *, ranks: bool = True
) -> NormalScores:
    """Learn the maps from rows; nulls are left out, and a covariate without spread becomes 0.

    Parameters
    ----------
    columns : sequence of ndarray, each of shape (n,)
    weights : ndarray, shape (n,), optional
        Frequencies.
    ranks : bool, default=True
        False keeps the shape: scores are (x − mean) / standard deviation.
    """
    learn = _by_ranks if ranks else _by_moments
    maps = [learn(np.asarray(column, dtype=np.float64), weights) for column in columns]
    return NormalScores([knots for knots, _ in maps], [scores for _, scores in maps])


def _by_ranks(values: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    knots, count = _distinct(values, weights)
    if len(knots) < 2:
        return np.empty(0), np.empty(0)
    below = np.cumsum(count) - count / 2  # ties share the middle of their ranks
    scores = np.asarray(ndtri(below / count.sum()))
    if len(knots) > _MOST_KNOTS:
        # Evenly over the ranks, both ends among them.
        wanted = np.linspace(below[0], below[-1], _MOST_KNOTS)
        kept = np.unique(np.searchsorted(below, wanted).clip(0, len(knots) - 1))
        knots, scores = knots[kept], scores[kept]
    return knots, scores


def _by_moments(values: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    knots, count = _distinct(values, weights)
    if len(knots) < 2:
        return np.empty(0), np.empty(0)
    mean = np.average(knots, weights=count)
    deviation = np.sqrt(np.average((knots - mean) ** 2, weights=count))
    ends = knots[[0, -1]]
    return ends, (ends - mean) / deviation


def _distinct(values: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """The distinct values and their weights."""
    present = ~np.isnan(values)
    if weights is not None:
        present &= weights > 0
    knots, index = np.unique(values[present], return_inverse=True)
    return knots, np.bincount(index, None if weights is None else weights[present]).astype(np.float64)
