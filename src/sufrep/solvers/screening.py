"""Whether residuals of the same level, or of the same cell of a crossing, go together: z statistics.

Pairs of rows decide. Under the null hypothesis the residuals of two rows are uncorrelated, so that the sum
of their products over many pairs is about normal with mean 0. No model has to be fitted, and a crossing costs
two sums over the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sufrep._arrays import Codes, Floats, Mask


@dataclass(frozen=True, slots=True, eq=False)
class ScreenedRows:
    """Residuals of rows, each of which stands for ``counts`` rows.

    Attributes
    ----------
    scores : ndarray, shape (n,)
        The residuals e; if rows have precisions ω, their products ωe.
    precisions : ndarray, shape (n,), or None
        ω; None for 1.
    counts : ndarray, shape (n,), or None
        Frequencies; None for 1.
    """

    scores: Floats
    precisions: Floats | None = None
    counts: Floats | None = None

    def noise(self) -> float:
        """The variance of a residual of precision 1."""
        omega = np.ones_like(self.scores) if self.precisions is None else self.precisions
        square = np.divide(self.scores**2, omega, out=np.zeros_like(omega), where=omega > 0)
        if self.counts is None:
            return float(square.mean())
        return float(self.counts @ square / self.counts.sum())

    def pairs(self, codes: Codes, n_cells: int) -> Pairs:
        """The pairs of rows in the same cell; ``codes`` (n,), −1 for rows in none."""
        known = codes >= 0
        rows = self if known.all() else self.take(known)
        own = codes if rows is self else codes[known]
        counts, scores, omega = rows.counts, rows.scores, rows.precisions
        total = np.bincount(own, scores if counts is None else counts * scores, n_cells)
        weight = omega if counts is None else counts if omega is None else counts * omega
        size = np.bincount(own, weight, n_cells)
        one = np.ones_like(scores) if counts is None else counts
        alone = float(one @ (np.ones_like(scores) if omega is None else omega**2))
        return Pairs(float(total @ total - one @ scores**2), float(size @ size) - alone)

    def take(self, rows: Codes | Mask) -> ScreenedRows:
        """Some of the rows."""
        return ScreenedRows(
            self.scores[rows],
            None if self.precisions is None else self.precisions[rows],
            None if self.counts is None else self.counts[rows],
        )


@dataclass(frozen=True, slots=True)
class Pairs:
    """Ordered pairs of rows in the same cell.

    Attributes
    ----------
    products : float
        W, the sum of the products of their scores.
    number : float
        p, the sum of the products of their precisions: the number of pairs, where these are 1.
    """

    products: float
    number: float


@dataclass(frozen=True, slots=True)
class Screened:
    """An estimate of the variance of a crossing, and its z statistic."""

    variance: float
    z: float


def crossing_screen(cells: Pairs, levels: Pairs, noise: float) -> Screened:
    """Compare pairs of rows in the same cell with those in the same level but other cells.

    τ̂ = W_c/p − (W_g − W_c)/(t − p) needs no correction for the shrinkage of the levels' own effects, which
    both kinds of pairs share. Its variance under the null is noise²·(2/p + 2/(t − p)).

    Parameters
    ----------
    cells, levels : Pairs
        In the same cell, and in the same level of the group that is crossed (of several, of the finest).
    noise : float
    """
    others = levels.number - cells.number
    if not (cells.number >= 1 and others >= 1 and noise > 0):
        return Screened(0.0, 0.0)
    variance = cells.products / cells.number - (levels.products - cells.products) / others
    return Screened(variance, variance / (noise * math.sqrt(2 / cells.number + 2 / others)))


def group_z(rows: ScreenedRows, codes: Codes, n_levels: int) -> float:
    """Return z of the pairs of rows in the same level, given residuals with the effects of this group.

    The variance under the null is 2Σ[(Σe²)² − Σe⁴], which allows for noise that differs between levels.
    """
    square = ScreenedRows(rows.scores**2, None, rows.counts).pairs(codes, n_levels)
    if not square.products > 0:
        return 0.0
    return rows.pairs(codes, n_levels).products / math.sqrt(2 * square.products)
