"""Numbers so large or so small that their sums or squares leave the range of doubles.

Sums are taken in units of a power of two, which changes no digit, so that means exist for all finite numbers.
Squares have units that users see (`GroupMoments.squares`), so what cannot be squared is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sufrep.errors import MagnitudeError

if TYPE_CHECKING:
    from sufrep._arrays import Array, Codes, Floats

# Squares of numbers up to this size, and of spreads down to the other, leave room for weights and for sums.
LARGEST, SMALLEST = 1e140, 1e-140
# Powers of two between which sums need no other units: about 1e-135 and 1e270.
_LOW, _HIGH = -450, 900


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
    most = np.ldexp(np.finfo(np.float64).max, -np.maximum(power, 0))
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
