"""The moments of every level: a pass over the rows for the means, another for the squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from sufrep.errors import InfiniteValueError, MagnitudeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sufrep._arrays import Array, Codes, Columns, Floats, Mask

# Rows that are summed together, by default and at most, and rows that are read together: where the columns
# belong to one array, stored row by row, the last keeps it in the cache until all of them are read.
_CHUNK, _LARGEST_CHUNK = 1 << 15, 1 << 18
_READ = 1 << 13
# Squares of numbers up to this size, and of spreads down to the other, leave room for weights and for sums.
LARGEST, SMALLEST = 1e140, 1e-140
# Powers of two between which sums need no other units: about 1e-135 and 1e270.
_LOW, _HIGH = -450, 900
_LARGEST_DOUBLE = np.finfo(np.float64).max


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
    rows = _Rows(_bins(codes, weights, n_levels), columns, n_levels, weights)
    first, units = _sum_columns(rows, names, order)
    if order == 2:
        return _spread(rows, names, first, units)
    if (units.power > 0).any():
        units = _level_units(rows, units)
        first = _first_pass(rows, names, order, units)
    mean = np.where(first.observed > 0, units.back(ratio(first.sums, first.observed)), np.nan)
    count = np.bincount(rows.bins, minlength=rows.n_bins)[:n_levels]
    return Sums(count, first.weight[:n_levels], rows.by_level(first.observed), rows.by_level(mean))


def _bins(codes: Codes, weights: Floats | None, n_levels: int) -> Codes:
    """Assign rows that do not count to an extra bin after the levels."""
    out = codes < 0
    if weights is not None:
        out |= weights == 0
    return np.where(out, n_levels, codes.astype(np.intp, copy=False)) if out.any() else codes


@dataclass(frozen=True, slots=True, eq=False)
class _Units:
    """How a column is summed: in units of 2**power, from an origin in these units; both (p, 1).

    The power may also differ by level, (p, n_bins).

    The origin of a column is 0, or, if its value closest to zero is farther from zero than from the other
    end of the column, that value: no level loses a digit (test_one_huge_value_changes_no_other_level), and a
    column far from zero keeps those of its spread (test_moments_far_from_zero).
    """

    power: Codes
    origin: Floats

    @classmethod
    def of(cls, lowest: Floats, highest: Floats) -> Self:
        """Return the units that fit columns of a given extent, (p,) each."""
        power = exponents(np.maximum(np.abs(lowest), np.abs(highest)))[:, None]
        low, high = np.ldexp(lowest[:, None], -power), np.ldexp(highest[:, None], -power)
        closest = np.where(low > 0, low, np.where(high < 0, high, 0.0))
        return cls(power, np.where(np.abs(closest) > high - low, closest, 0.0))

    def fit(self, lowest: Floats, highest: Floats) -> bool:
        """Whether they do: an origin may be a few times as far from zero as the closest value."""
        low, high = np.ldexp(lowest[:, None], -self.power), np.ldexp(highest[:, None], -self.power)
        near = np.where(self.origin > 0, low, np.where(self.origin < 0, -high, 0.0))
        enough = exponents(np.maximum(np.abs(lowest), np.abs(highest)))[:, None]
        return bool(((self.power == enough) & (np.abs(self.origin) / 8 <= near)).all())

    def back(self, deviations: Floats, more: Floats | float = 0.0) -> Floats:
        """Values (p, n) in the units of the columns."""
        return unscaled(deviations + self.origin + more, self.power)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The rows, which are read in chunks; those that do not count are in the last bin."""

    bins: Codes
    columns: Columns
    n_levels: int
    weights: Floats | None

    @property
    def n_bins(self) -> int:
        return self.n_levels + 1

    def chunks(self, power: Codes, origin: Floats) -> Iterator[_Chunk]:
        """Read the columns as distances from an origin, one for each column (p, 1) or bin (p, n_bins)."""
        # Every chunk costs a look at each level, so it has several rows for each, and never fewer than one.
        size = max(_CHUNK, min(4 * self.n_levels, _LARGEST_CHUNK), self.n_levels)
        memory = np.empty((len(self.columns), min(size, len(self.bins))))
        for start in range(0, len(self.bins), size):
            bins = self.bins[start : start + size]
            values = memory[:, : len(bins)]
            self._read(start, bins, power, origin, values)
            out = bins == self.n_levels
            own = None if self.weights is None else self.weights[start : start + size]
            yield _Chunk(bins, self.n_bins, own, values, out if out.any() else None)

    def _read(self, start: int, bins: Codes, power: Codes, origin: Floats, into: Floats) -> None:
        # Rows that do not count may hold anything.
        with np.errstate(invalid="ignore", over="ignore"):
            for begin in range(0, len(bins), _READ):
                end = min(begin + _READ, len(bins))
                for j, column in enumerate(self.columns):
                    values = column[start + begin : start + end]
                    if power[j].any():
                        shift = power[j, 0] if power.shape[1] == 1 else power[j].take(bins[begin:end])
                        values = np.ldexp(np.asarray(values, dtype=np.float64), -shift)
                    # Bins are never out of range: "clip" saves the look at each of them.
                    away = origin[j] if origin.shape[1] == 1 else origin[j].take(bins[begin:end], mode="clip")
                    np.subtract(values, away, out=into[j, begin:end])

    def by_level(self, table: Floats) -> Floats:
        """Return a table (p, n_bins) in the form that users see; (n_levels, p)."""
        return table[:, : self.n_levels].T.copy()


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """Some rows: their bins, weights and values (p, n), and which of them do not count, None if all do."""

    bins: Codes
    n_bins: int
    weights: Floats | None
    values: Floats
    out: Mask | None

    def weight(self, bins: Codes | None = None) -> Floats:
        """Total weight of the rows by bin."""
        total = np.bincount(self.bins if bins is None else bins, self.weights, self.n_bins)
        return total.astype(np.float64, copy=False)

    def totals(self, values: Array, bins: Codes | None = None) -> Floats:
        """Weighted sum of values (n,) by bin."""
        weighted = values if self.weights is None else values * self.weights
        total = np.bincount(self.bins if bins is None else bins, weighted, self.n_bins)
        return total.astype(np.float64, copy=False)

    def extremes(self) -> tuple[Floats, Floats, bool]:
        """Smallest and largest value of each column (p,), NaN for none, and whether there is any null."""
        values = self.values if self.out is None else self.values[:, ~self.out]
        if not values.shape[1]:
            nothing = np.full(len(values), np.nan)
            return nothing, nothing, False
        with np.errstate(invalid="ignore"):
            low, high = values.min(axis=1), values.max(axis=1)
            null = np.flatnonzero(np.isnan(low))
            for j in null:
                low[j], high[j] = np.fmin.reduce(values[j]), np.fmax.reduce(values[j])
        return low, high, bool(len(null))

    def clear_rest(self) -> None:
        """Set the rows that do not count to 0."""
        if self.out is not None:
            self.values[:, self.out] = 0.0

    def clear_nulls(self, nulls: bool) -> Mask | None:
        """Set nulls to 0, and return where they were; (p, n) or None."""
        missing = np.isnan(self.values) if nulls else None
        if missing is not None:
            self.values[missing] = 0.0
        return missing


class _ColumnSums(NamedTuple):
    """What the first pass finds, by bin: (n_bins,) and (p, n_bins); rows without any null are complete."""

    weight: Floats
    observed: Floats
    sums: Floats
    complete_weight: Floats
    complete_sums: Floats
    nulls: bool
    lowest: Floats  # of each column, in its own units; (p,)
    highest: Floats


def _sum_columns(rows: _Rows, names: Sequence[str], order: Literal[1, 2]) -> tuple[_ColumnSums, _Units]:
    """Sums by level, and the units they are in: those of the first rows, if they fit all of them.

    Where they do not, the pass is repeated in units that fit what it found. In the units of tiny numbers,
    large ones are infinite and their size is not known before the next pass
    (test_the_first_rows_do_not_limit_the_size_of_later_ones).
    """
    nothing = np.zeros(len(rows.columns))
    out = (rows.bins[:_READ] == rows.n_levels).astype(np.intp)
    head = _Rows(out, [column[:_READ] for column in rows.columns], 1, None)
    look = _first_pass(head, names, 1, _Units.of(nothing, nothing))
    units = _Units.of(look.lowest, look.highest)
    found = _first_pass(rows, names, order, units)
    while not units.fit(found.lowest, found.highest):
        units = _Units.of(found.lowest, found.highest)
        found = _first_pass(rows, names, order, units)
    return found, units


def _level_units(rows: _Rows, units: _Units) -> _Units:
    """Units for each level of the columns whose largest numbers cannot be summed as they are.

    In the units of the largest numbers of a column, tiny ones of other levels would be lost
    (test_levels_at_both_ends_of_the_range_keep_their_digits).
    """
    power = np.repeat(units.power, rows.n_bins, axis=1)
    for j in np.flatnonzero(units.power[:, 0] > 0).tolist():
        largest = np.zeros(rows.n_bins)
        size = np.abs(np.asarray(rows.columns[j], dtype=np.float64))
        np.maximum.at(largest, rows.bins, np.where(np.isfinite(size), size, 0.0))
        power[j] = exponents(largest)
    return _Units(power, np.where(units.power > 0, 0.0, units.origin))


@np.errstate(over="ignore", invalid="ignore")
def _first_pass(rows: _Rows, names: Sequence[str], order: Literal[1, 2], units: _Units) -> _ColumnSums:
    """Weights and sums by level; sums that overflow are those of units that do not fit.

    All weights are summed, never what a difference leaves (test_weights_of_thirty_decades_keep_their_digits).
    """
    p = len(rows.columns)
    weight, sums = np.zeros(rows.n_bins), np.zeros((p, rows.n_bins))
    # The same as those of all rows, until there is a null.
    observed: dict[int, Floats] = {}
    complete_weight, complete_sums = weight, sums
    lowest, highest = np.full(p, np.nan), np.full(p, np.nan)
    for chunk in rows.chunks(units.power, units.origin):
        low, high, nulls = chunk.extremes()
        lowest, highest = np.fmin(lowest, low), np.fmax(highest, high)
        missing = chunk.clear_nulls(nulls)
        chunk.clear_rest()
        total = chunk.weight()
        partial: Any = ()
        if missing is not None:
            partial = np.flatnonzero(missing.any(axis=1))
            observed = {**{j: weight.copy() for j in partial}, **observed}
            if order == 2 and complete_sums is sums:
                complete_weight, complete_sums = weight.copy(), sums.copy()
        for j in observed:
            observed[j] += chunk.totals(~missing[j]) if missing is not None and j in partial else total
        weight += total
        complete = None if missing is None else np.where(missing.any(axis=0), rows.n_levels, chunk.bins)
        for j, values in enumerate(chunk.values):
            here = chunk.totals(values)
            sums[j] += here
            if complete_sums is not sums:
                complete_sums[j] += here if complete is None else chunk.totals(values, complete)
        if complete_sums is not sums:
            complete_weight += total if complete is None else chunk.weight(complete)
    _refuse_infinite(rows, names, np.isinf(lowest) | np.isinf(highest))
    return _ColumnSums(
        weight,
        np.array([observed.get(j, weight) for j in range(p)]).reshape(p, rows.n_bins),
        sums,
        complete_weight,
        complete_sums,
        bool(observed),
        *(units.back(np.nan_to_num(end)[:, None])[:, 0] for end in (lowest, highest)),
    )


def _refuse_infinite(rows: _Rows, names: Sequence[str], suspects: Mask) -> None:
    """Raise an error for the first of some columns (p,) that is infinite in a row that counts."""
    for j in np.flatnonzero(suspects).tolist():
        infinite = np.isinf(rows.columns[j]) & (rows.bins < rows.n_levels)
        if infinite.any():
            raise InfiniteValueError(names[j], int(infinite.sum()), int(np.argmax(infinite)))


def _spread(rows: _Rows, names: Sequence[str], first: _ColumnSums, units: _Units) -> Sums:
    """Second moments, from the deviations of each row from the means of its own level.

    These means are rounded: what the deviations still sum to is taken off the squares again (the corrected
    two-pass algorithm of Chan, Golub and LeVeque) and added to the means.
    """
    for name, low, high in zip(names, first.lowest, first.highest, strict=True):
        refuse_large(name, max(abs(float(low)), abs(float(high))))
    complete_mean = ratio(first.complete_sums, first.complete_weight)
    rest, raw = _second_pass(rows, units, complete_mean, nulls=first.nulls, complete=True)
    complete_shift = ratio(rest, first.complete_weight)
    scatter = raw - (complete_shift * first.complete_weight) @ complete_shift.T
    mean, shift, squares = complete_mean, complete_shift, np.diag(scatter)
    if first.nulls:
        mean = ratio(first.sums, first.observed)
        rest, raw = _second_pass(rows, units, mean, nulls=True, complete=False)
        shift = ratio(rest, first.observed)
        squares = np.diag(raw) - (first.observed * shift**2).sum(axis=1)
    power = units.power
    return Sums(
        np.bincount(rows.bins, minlength=rows.n_bins)[: rows.n_levels],
        first.weight[: rows.n_levels],
        rows.by_level(first.observed),
        rows.by_level(np.where(first.observed > 0, units.back(mean, shift), np.nan)),
        _in_units(np.maximum(squares, 0.0), 2 * power[:, 0]),
        first.complete_weight[: rows.n_levels],
        rows.by_level(np.where(first.complete_weight > 0, units.back(complete_mean, complete_shift), 0.0)),
        np.ldexp(scatter, power + power.T),
    )


def _second_pass(
    rows: _Rows, units: _Units, mean: Floats, *, nulls: bool, complete: bool
) -> tuple[Floats, Floats]:
    """Sums of the deviations by bin (p, n_bins), and of their products, or only of squares; (p, p)."""
    p = len(rows.columns)
    rest, raw = np.zeros((p, rows.n_bins)), np.zeros((p, p))
    for chunk in rows.chunks(units.power, mean + units.origin):
        missing = chunk.clear_nulls(nulls)
        chunk.clear_rest()
        values = chunk.values
        if complete and missing is not None:
            values[:, missing.any(axis=0)] = 0.0
        for j in range(p):
            rest[j] += chunk.totals(values[j])
        weighted = values if chunk.weights is None else values * chunk.weights
        if complete:
            raw += weighted @ values.T
        else:
            raw[np.diag_indices(p)] += np.einsum("jn,jn->j", weighted, values)
    return rest, raw


def _in_units(squares: Floats, power: Codes) -> Floats:
    """Squares in the units of the columns; a spread too small to be squared is not the same as none."""
    unscaled = np.ldexp(squares, power)
    return np.where(squares > 0, np.maximum(unscaled, np.finfo(np.float64).tiny), unscaled)


def remainder(weight: Floats, part: Floats) -> Floats:
    """Weight that is left when a part is taken away; of 0.1 + 0.2 − 0.3, nothing."""
    rest = weight - part
    return np.where(rest > 1e-12 * weight, rest, 0.0)


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Quotient, 0 where the denominator is."""
    whole = np.broadcast_to(denominator, numerator.shape)
    return np.divide(numerator, whole, out=np.zeros_like(numerator), where=whole > 0)


# Numbers so large or so small that their sums or squares leave the range of doubles. Sums are taken in units
# of a power of two, which changes no digit, so that means exist for all finite numbers. Squares have units
# that users see (`GroupMoments.squares`), so what cannot be squared is refused.


def exponents(largest: Floats) -> Codes:
    """Powers of two to divide columns by before they are summed, from their largest absolute values; (p,).

    0 for all but extreme columns. Values far below the largest one keep their digits, because no more is
    divided off than necessary.
    """
    power = np.frexp(largest)[1]
    return np.asarray(power - np.clip(power, _LOW, _HIGH))


def unscaled(means: Floats, power: Codes | int) -> Floats:
    """Return means of columns that were divided by powers of two in the units that the columns have."""
    # Rounding may lift a mean of the largest doubles above them all.
    most = np.ldexp(_LARGEST_DOUBLE, -np.maximum(power, 0))
    return np.asarray(np.ldexp(np.clip(means, -most, most), power))


def weighted_mean(values: Floats, weight: Floats) -> Floats:
    """Mean of each column of finite values (n, p) with weights (n,) that are not all zero; (p,)."""
    power = exponents(np.abs(values).max(axis=0, initial=0.0))
    return unscaled(weight @ np.ldexp(values, -power) / weight.sum(), power)


def refuse_large(name: str, found: float, largest: float = LARGEST) -> None:
    """Raise an error if numbers of this size have no squares."""
    if found > largest:
        raise MagnitudeError(name, f"holds numbers as large as {found:.2g}", f"beyond {largest:g}", "divide")


def refuse_small(name: str, spread: float, smallest: float = SMALLEST) -> None:
    """Raise an error if a column varies, but by so little that the square would be zero."""
    if 0 < spread < smallest:
        raise MagnitudeError(name, f"varies by {spread:.2g} only", f"below {smallest:g}", "multiply")


def check_squares(name: str, values: Array, *, smallest: float = SMALLEST, largest: float = LARGEST) -> None:
    """Raise an error if a column (n,) is too large to be squared, or varies by too little.

    Nulls are ignored; infinite values have an error of their own.
    """
    if not len(values):
        return
    low, high = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
    if np.isfinite(low) and np.isfinite(high):
        refuse_large(name, max(abs(low), abs(high)), largest)
        refuse_small(name, high - low, smallest)
