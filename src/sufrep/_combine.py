"""Adding and taking apart weighted means: Chan, Golub and LeVeque's update in both directions.

All tables are (n_levels, n_columns). Averages of differences, not of the means themselves, keep the
digits of values far from zero (test_merged_moments_far_from_zero).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sufrep._arrays import Array, Codes, Floats


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
    rest = weight - part_weight
    # Weights need not be integers: what is left of 0.1 + 0.2 − 0.3 is nothing.
    rest = np.where(rest > 1e-12 * weight, rest, 0.0)
    between = np.where((part_weight > 0) & (weight > 0), mean - part_mean, 0.0)
    moved = mean + between * ratio(part_weight, rest)
    return Rest(rest, np.where(rest > 0, moved, 0.0), between, weight * ratio(part_weight, rest))


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Quotient, 0 where the denominator is."""
    whole = np.broadcast_to(denominator, numerator.shape)
    return np.divide(numerator, whole, out=np.zeros_like(numerator), where=whole > 0)
