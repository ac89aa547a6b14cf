"""Adding moments and taking them apart: Chan, Golub and LeVeque's update in both directions.

All tables are (n_levels, n_columns). Averages of differences, not of the means themselves, keep the
digits of values far from zero (test_merged_moments_far_from_zero).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Floats, Levels
    from sufrep.moments import GroupMoments

M = TypeVar("M", bound="GroupMoments")


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """Several means become one."""

    weight: Floats
    mean: Floats
    between: Floats  # distance of each given mean from the one it went into, in the order given


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """One mean is taken out of another."""

    weight: Floats
    mean: Floats
    between: Floats  # distance of the part taken away from the whole
    factor: Floats  # what its square is to be multiplied with to give the squares lost between them


def merge(parts: Sequence[M], assignment: Codes, levels: Levels) -> M:
    """Pool the levels of all parts, one below the other, into ``levels`` as ``assignment`` says."""

    def stacked(name: str) -> Array:
        return np.concatenate([getattr(part, name) for part in parts])

    def total(table: Array) -> Array:
        return sum_by(assignment, table, len(levels))

    observed = stacked("observed")
    cells = pooled(assignment, len(levels), observed, stacked("mean"))
    merged = replace(
        parts[0],
        levels=levels,
        count=total(stacked("count")),
        weight=total(stacked("weight")),
        observed=cells.weight,
        mean=np.where(cells.weight > 0, cells.mean, np.nan),
    )
    if merged.order == 1:
        return merged
    centre = stacked("complete_mean")
    weight = _wide(stacked("complete_weight"), centre)
    complete = pooled(assignment, len(levels), weight, centre)
    within = sum(part.require_order_two().scatter for part in parts)
    return replace(
        merged,
        squares=total(stacked("squares") + observed * cells.between**2),
        complete_weight=total(stacked("complete_weight")),
        complete_mean=complete.mean,
        scatter=within + (complete.between * weight).T @ complete.between,
    )


def difference(whole: M, part: M) -> M:
    """Moments of the rows of ``whole`` that are not in ``part``; both have the same levels."""
    cells = part_removed(whole.observed, whole.mean, part.observed, part.mean)
    rest = replace(
        whole,
        count=whole.count - part.count,
        weight=remainder(whole.weight, part.weight),
        observed=cells.weight,
        mean=np.where(cells.weight > 0, cells.mean, np.nan),
    )
    if whole.order == 1:
        return rest
    more, less = whole.require_order_two(), part.require_order_two()
    complete = part_removed(
        _wide(more.complete_weight, more.complete_mean),
        more.complete_mean,
        _wide(less.complete_weight, less.complete_mean),
        less.complete_mean,
    )
    lost = (complete.between * complete.factor).T @ complete.between
    return replace(
        rest,
        squares=np.maximum(more.squares - less.squares - cells.factor * cells.between**2, 0.0),
        complete_weight=remainder(more.complete_weight, less.complete_weight),
        complete_mean=complete.mean,
        scatter=more.scatter - less.scatter - lost,
    )


def sum_by(assignment: Codes, table: Array, n_levels: int) -> Array:
    """Sum the rows of ``table`` that are assigned to the same level."""
    total = np.zeros((n_levels, *table.shape[1:]), dtype=table.dtype)
    np.add.at(total, assignment, table)
    return total


def pooled(assignment: Codes, n_levels: int, weight: Floats, mean: Floats) -> Pooled:
    """Pool means, of weight zero where there is none, by the level each row is assigned to."""
    usable = weight > 0
    pivot = np.zeros((n_levels, mean.shape[1]))
    rows, columns = np.nonzero(usable)
    pivot[assignment[rows], columns] = mean[rows, columns]
    apart = np.where(usable, mean - pivot[assignment], 0.0)
    total = sum_by(assignment, weight, n_levels)
    shift = ratio(sum_by(assignment, weight * apart, n_levels), total)
    return Pooled(total, pivot + shift, np.where(usable, apart - shift[assignment], 0.0))


def part_removed(weight: Floats, mean: Floats, part_weight: Floats, part_mean: Floats) -> Rest:
    """Weight and mean of what is left of a whole when a part of it is taken away."""
    rest = remainder(weight, part_weight)
    between = np.where((part_weight > 0) & (weight > 0), mean - part_mean, 0.0)
    moved = mean + between * ratio(part_weight, rest)
    return Rest(rest, np.where(rest > 0, moved, 0.0), between, weight * ratio(part_weight, rest))


def remainder(weight: Floats, part: Floats) -> Floats:
    """Weight that is left when a part is taken away; of 0.1 + 0.2 − 0.3, nothing."""
    rest = weight - part
    return np.where(rest > 1e-12 * weight, rest, 0.0)


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Quotient, 0 where the denominator is."""
    whole = np.broadcast_to(denominator, numerator.shape)
    return np.divide(numerator, whole, out=np.zeros_like(numerator), where=whole > 0)


def _wide(weight: Floats, like: Floats) -> Floats:
    """Repeat one weight a level (n_levels,) for every column of ``like`` (n_levels, n_columns)."""
    return np.repeat(weight[:, None], like.shape[1], axis=1)
