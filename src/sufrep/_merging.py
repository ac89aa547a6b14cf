"""Means by level, merged and taken apart: arrays in, arrays out.

Of two parts, most levels are in one or in both. Those of one are copied, and the others are merged in blocks.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sufrep._accumulate import exponents, ratio, remainder, unscaled
from sufrep.representation import level_order, level_positions

if TYPE_CHECKING:
    from collections.abc import Callable

    from sufrep._arrays import Array, Codes, Floats, Levels

# Levels that are merged at a time: what is computed for them stays in the cache of the processor.
_BLOCK = 1 << 13


class Union(NamedTuple):
    """Where the levels of two parts are among all of theirs.

    Attributes
    ----------
    n_levels : int
        Number of levels that either part has.
    rows : tuple of two ndarray of int
        Position of each level of each part among them.
    shared : tuple of two ndarray of int
        The levels that both parts have, by their positions in each part.
    """

    n_levels: int
    rows: tuple[Codes, Codes]
    shared: tuple[Codes, Codes]

    def total(self, left: Array, right: Array) -> Array:
        """Sum of two tables, each with a row for each level of its part."""
        if self.rows[0] is self.rows[1]:  # both have all levels
            return left + right
        found = np.zeros((self.n_levels, *left.shape[1:]), dtype=left.dtype)
        found[self.rows[0]] = left
        found[self.rows[1]] += right
        return found


def unite(left: Levels, right: Levels) -> tuple[Levels, Union]:
    """All levels of two parts in their order, and where those of each part are among them."""
    if np.array_equal(left, right):
        everywhere = np.arange(len(left))
        return left, Union(len(left), (everywhere, everywhere), (everywhere, everywhere))
    in_left = positions_in(left, right)
    shared = np.flatnonzero(in_left >= 0)
    new = np.flatnonzero(in_left < 0)
    levels = np.concatenate([left, right[new]])
    order = level_order(levels.tolist())
    place = np.empty(len(levels), dtype=np.intp)
    place[order] = np.arange(len(levels))
    rows = np.empty(len(right), dtype=np.intp)
    rows[shared], rows[new] = place[in_left[shared]], place[len(left) :]
    return levels[order], Union(len(levels), (place[: len(left)], rows), (in_left[shared], shared))


def positions_in(levels: Levels, some: Levels) -> Codes:
    """Position of each of ``some`` in ``levels``, −1 for those that are not there."""
    position = level_positions(levels)
    return np.fromiter(map(position.get, some.tolist(), repeat(-1)), dtype=np.intp, count=len(some))


# Chan, Golub and LeVeque's update, in both directions. All tables are (n_levels, n_columns). Differences of
# means are averaged, not the means themselves, which keeps the digits of values far from zero
# (test_merged_moments_far_from_zero).


class MergedMeans(NamedTuple):
    """Means by level, (n_levels, p), and the squares, (p,), or the scatter, (p, p), between two parts."""

    mean: Floats
    between: Any


def sum_squares(weight: Floats, apart: Floats) -> Floats:
    """Weighted sum of squares; (p,)."""
    return np.asarray((weight * apart**2).sum(axis=0))


def sum_products(weight: Floats, apart: Floats) -> Floats:
    """Weighted sum of the products of all pairs of columns; (p, p)."""
    return np.asarray((weight * apart).T @ apart)


def _no_spread(_weight: Floats, _apart: Floats) -> float:
    return 0.0


def merge_means(
    union: Union,
    weights: tuple[Floats, Floats],
    means: tuple[Floats, Floats],
    spread: Callable[[Floats, Floats], Any] = _no_spread,
) -> MergedMeans:
    """Merge the means of two parts; those of levels that only one part has stay as they are.

    Weights are (n_levels, p), or (n_levels, 1) if they are the same for all columns.
    """
    p, between = means[0].shape[1], 0.0
    merged = np.empty((union.n_levels, p))
    for rows, mean in zip(union.rows, means, strict=True):
        merged[rows] = mean
    for start in range(0, len(union.shared[0]), _BLOCK):
        some = [places[start : start + _BLOCK] for places in union.shared]
        mean = np.stack([table[places] for table, places in zip(means, some, strict=True)])
        weight = np.stack([table[places] for table, places in zip(weights, some, strict=True)])
        weight = np.broadcast_to(weight, mean.shape)
        pooled = pool_means(weight, mean)
        # Where no part has a value, what stands for none stays.
        merged[union.rows[0][some[0]]] = np.where(pooled.weight > 0, pooled.mean, mean[0])
        rows_of = (2 * len(some[0]), p)
        between = between + spread(weight.reshape(rows_of), pooled.between.reshape(rows_of))
    return MergedMeans(merged, between)


def remove_means(
    weights: tuple[Floats, Floats],
    means: tuple[Floats, Floats],
    nothing: float,
    spread: Callable[[Floats, Floats], Any] = _no_spread,
) -> MergedMeans:
    """Means of what is left of a whole without a part; ``nothing`` where nothing is.

    Weights are (n_levels, p), or (n_levels, 1) if they are the same for all columns.
    """
    left, between = np.empty_like(means[0]), 0.0
    for start in range(0, len(left), _BLOCK):
        block = slice(start, start + _BLOCK)
        mean, part_mean = (table[block] for table in means)
        weight, part_weight = (np.broadcast_to(table[block], mean.shape) for table in weights)
        found = _remove_part(weight, mean, part_weight, part_mean)
        left[block] = np.where(found.weight > 0, found.mean, nothing)
        between = between + spread(found.factor, found.between)
    return MergedMeans(left, between)


class PooledMeans(NamedTuple):
    """The means of several parts merged into one for each level."""

    weight: Floats
    mean: Floats
    between: Floats  # difference of the mean of each part from the one it was merged into


class _RemainingMeans(NamedTuple):
    """Means of what is left after a part was removed."""

    weight: Floats
    mean: Floats
    between: Floats  # difference of the whole from the part that was removed
    factor: Floats  # multiplies the square of `between` to give the sum of squares between the two parts


def pool_means(weight: Floats, mean: Floats) -> PooledMeans:
    """Pool the means (n_parts, n_levels, p) of several parts of each level; their weight is zero for none."""
    usable = weight > 0
    power = _powers(np.where(usable, np.abs(mean), 0.0).max(axis=0))
    scaled = _in_units(mean, power)
    # Any of the means would do.
    last = len(weight) - 1 - np.argmax(usable[::-1], axis=0)
    pivot = np.where(usable.any(axis=0), np.take_along_axis(scaled, last[None], axis=0)[0], 0.0)
    apart = np.where(usable, scaled - pivot, 0.0)
    total = weight.sum(axis=0)
    shift = ratio((weight * apart).sum(axis=0), total)
    between = np.where(usable, apart - shift, 0.0)
    return PooledMeans(total, unscaled(pivot + shift, power), unscaled(between, power))


def _powers(largest: Floats) -> Codes | int:
    """`exponents`, or a single 0 if they are all 0, which saves a pass over the numbers each time."""
    power = exponents(largest)
    return power if power.any() else 0


def _in_units(values: Floats, power: Codes | int) -> Floats:
    """Values divided by powers of two."""
    return values if isinstance(power, int) else np.ldexp(values, -power)


def _remove_part(weight: Floats, mean: Floats, part_weight: Floats, part_mean: Floats) -> _RemainingMeans:
    """Weight and mean of what is left of a whole when a part of it is removed."""
    rest = remainder(weight, part_weight)
    both = (part_weight > 0) & (weight > 0)
    power = _powers(np.where(both, np.maximum(np.abs(mean), np.abs(part_mean)), 0.0))
    scaled = _in_units(mean, power)
    between = np.where(both, scaled - _in_units(part_mean, power), 0.0)
    share = ratio(part_weight, rest)
    moved = unscaled(scaled + between * share, power)
    return _RemainingMeans(rest, moved, unscaled(between, power), weight * share)
