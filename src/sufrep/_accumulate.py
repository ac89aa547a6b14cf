"""One pass over the rows that yields the moments of every level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from sufrep.errors import InfiniteValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Columns, Floats, Mask

# Rows that are summed together, and rows that are read together: where the columns belong to one array,
# stored row by row, the second keeps it in the cache until the last of them is read.
_CHUNK = 1 << 15
_READ = 1 << 13


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """The fields of :class:`sufrep.GroupMoments` that come from rows; levels without rows included."""

    count: Codes
    weight: Floats
    observed: Floats
    mean: Floats
    squares: Floats | None = None
    complete_weight: Floats | None = None
    complete_mean: Floats | None = None
    scatter: Floats | None = None


def accumulate(
    codes: Codes,
    columns: Columns,
    n_levels: int,
    *,
    names: Sequence[str],
    weights: Floats | None = None,
    order: Literal[1, 2],
) -> Sums:
    """Sum up the columns by level; the parameters are those of ``GroupMoments.from_columns``."""
    bins = _bins(codes, weights, n_levels)
    work = _Accumulator(bins, columns, names, n_levels, weights, order)
    # Every chunk costs a look at each level, so it has at least as many rows as there are levels.
    size = max(_CHUNK, n_levels)
    for start in range(0, len(bins), size):
        work.add(slice(start, start + size))
    return work.finish()


def _bins(codes: Codes, weights: Floats | None, n_levels: int) -> Codes:
    """Assign rows that do not count to an extra bin after the levels."""
    out = codes < 0
    if weights is not None:
        out |= weights == 0
    return np.where(out, n_levels, codes.astype(np.intp, copy=False)) if out.any() else codes


class _Accumulator:
    """Running sums of deviations from a pivot.

    Raw sums lose their digits if a mean is large compared with its spread (timestamps, prices). For means
    one pivot per column is enough; sums of squares need one per level, because levels may lie far apart:
    test_moments_far_from_zero, test_levels_far_apart_keep_their_spread.
    """

    def __init__(
        self,
        bins: Codes,
        columns: Columns,
        names: Sequence[str],
        n_levels: int,
        weights: Floats | None,
        order: Literal[1, 2],
    ) -> None:
        self.bins, self.columns, self.names, self.weights = bins, columns, names, weights
        self.order, self.n_bins = order, n_levels + 1
        shape = (len(columns), self.n_bins)
        self.pivots = self._level_pivots() if order == 2 else self._column_pivots()
        self.sums = np.zeros(shape)
        self.lost = np.zeros(shape)  # weight of the rows where the column is null
        if order == 2:
            self.squares = np.zeros(shape)
            self.raw = np.zeros((len(columns), len(columns)))
            self.incomplete = np.zeros(self.n_bins)  # weight and sums of the rows with any null
            self.incomplete_sums = np.zeros(shape)

    def add(self, rows: slice) -> None:
        part = self.bins[rows]
        own = None if self.weights is None else self.weights[rows]
        deviations = self._deviations(rows, part)
        missing = self._missing(rows, deviations)
        if missing is not None:
            deviations[missing] = 0.0
            for j, nulls in enumerate(missing):
                self.lost[j] += self._totals(part, nulls, own)
        for j, values in enumerate(deviations):
            self.sums[j] += self._totals(part, values, own)
            if self.order == 2:
                self.squares[j] += self._totals(part, values * values, own)
        if self.order == 2:
            self._add_scatter(part, deviations, own, missing)

    def _deviations(self, rows: slice, part: Codes) -> Floats:
        """Distances from the pivots (p, n_rows), 0 in rows that do not count."""
        deviations = np.empty((len(self.columns), len(part)))
        with np.errstate(invalid="ignore"):
            for begin in range(0, len(part), _READ):
                end = min(begin + _READ, len(part))
                for j, column in enumerate(self.columns):
                    pivot = self.pivots[j] if self.order == 1 else self.pivots[j].take(part[begin:end])
                    values = column[rows.start + begin : rows.start + end]
                    np.subtract(values, pivot, out=deviations[j, begin:end])
        out = part == self.n_bins - 1
        if out.any():
            deviations[:, out] = 0.0
        return deviations

    def _missing(self, rows: slice, deviations: Floats) -> Mask | None:
        """Return where a chunk is null, None if nowhere; raise an error for infinite values."""
        with np.errstate(invalid="ignore", over="ignore"):
            if np.isfinite(deviations.sum()):
                return None  # one sum is quicker than a look at every value
        counted = self.bins < self.n_bins - 1
        for name, column in zip(self.names, self.columns, strict=True):
            # Not the deviations: from an infinite pivot they are NaN.
            if (np.isinf(column[rows]) & counted[rows]).any():
                infinite = np.isinf(column) & counted
                raise InfiniteValueError(name, int(infinite.sum()), int(np.argmax(infinite)))
        missing = np.isnan(deviations)
        return missing if missing.any() else None

    def _add_scatter(self, part: Codes, deviations: Floats, own: Floats | None, missing: Mask | None) -> None:
        """Scatter comes from rows without nulls; the others are noted, to be left out of its means."""
        if missing is not None:
            incomplete: Mask = np.any(missing, axis=0)
            self.incomplete += self._totals(part, incomplete, own)
            for j, values in enumerate(deviations):
                self.incomplete_sums[j] += self._totals(part, values * incomplete, own)
            deviations[:, incomplete] = 0.0
        self.raw += (deviations if own is None else deviations * own) @ deviations.T

    def finish(self) -> Sums:
        levels = slice(0, self.n_bins - 1)
        count = np.bincount(self.bins, minlength=self.n_bins)[levels]
        weight = count.astype(np.float64)
        if self.weights is not None:
            weight = self._totals(self.bins, self.weights, None)[levels]
        observed = remainder(weight, self.lost[:, levels])
        shift = ratio(self.sums[:, levels], observed)
        mean = np.where(observed > 0, shift + self.pivots[:, levels], np.nan)
        if self.order == 1:
            return Sums(count, weight, observed.T.copy(), mean.T.copy())
        squares = np.maximum(self.squares[:, levels] - observed * shift**2, 0.0)
        complete_weight = remainder(weight, self.incomplete[levels])
        complete_shift = ratio(self.sums[:, levels] - self.incomplete_sums[:, levels], complete_weight)
        complete_mean = np.where(complete_weight > 0, complete_shift + self.pivots[:, levels], 0.0)
        scatter = self.raw - (complete_shift * complete_weight) @ complete_shift.T
        return Sums(
            count,
            weight,
            observed.T.copy(),
            mean.T.copy(),
            squares.sum(axis=1),
            complete_weight,
            complete_mean.T.copy(),
            scatter,
        )

    def _totals(self, part: Codes, values: Array, own: Floats | None) -> Floats:
        weighted = values if own is None else values * own
        return np.bincount(part, weighted, minlength=self.n_bins).astype(np.float64, copy=False)

    def _column_pivots(self) -> Floats:
        """First observed value of each column that counts, 0 where there is none; (p, 1)."""
        pivots = np.zeros((len(self.columns), 1))
        counted = np.flatnonzero(self.bins < self.n_bins - 1)
        for j, column in enumerate(self.columns):
            if len(counted):
                pivots[j] = column[counted[0]]
            if np.isnan(pivots[j]):
                seen = counted[~np.isnan(column[counted])]
                pivots[j] = column[seen[0]] if len(seen) else 0.0
        return pivots

    def _level_pivots(self) -> Floats:
        """First observed value of each column in each level, 0 where there is none; (p, n_bins)."""
        pivots = np.zeros((len(self.columns), self.n_bins))
        first = np.zeros(self.n_bins, dtype=np.intp)
        # Written backwards, the first row of a level is the one that stays.
        first[self.bins[::-1]] = np.arange(len(self.bins))[::-1]
        for j, column in enumerate(self.columns):
            if not len(column):
                continue
            pivots[j] = column[first]
            if np.isnan(pivots[j]).any():
                seen = np.flatnonzero(~np.isnan(column))[::-1]
                pivots[j] = 0.0
                pivots[j, self.bins[seen]] = column[seen]
        return pivots


def remainder(weight: Floats, part: Floats) -> Floats:
    """Weight that is left when a part is taken away; of 0.1 + 0.2 − 0.3, nothing."""
    rest = weight - part
    return np.where(rest > 1e-12 * weight, rest, 0.0)


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Quotient, 0 where the denominator is."""
    whole = np.broadcast_to(denominator, numerator.shape)
    return np.divide(numerator, whole, out=np.zeros_like(numerator), where=whole > 0)
