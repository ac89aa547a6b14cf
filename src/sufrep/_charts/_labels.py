"""Where names find room beside their dots, which no chart grammar decides for us."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sufrep._arrays import Floats

    Box: TypeAlias = tuple[float, float, float, float]

# Pixels: the mean width of a letter of 11 px, a line of them, from a dot's centre to its name, half a dot.
_LETTER, _LINE, GAP, _DOT = 6.3, 13.0, 9.0, 6.0
# From the dot to the left upper corner of the box: in lengths of the name, in gaps, in lines, in gaps.
_CORNERS = {"right": (0.0, 1.0, -0.5, 0.0), "left": (-1.0, -1.0, -0.5, 0.0), "top": (-0.5, 0.0, -1.0, -1.0)}


def name_sides(
    names: Sequence[str],
    points: Floats,
    order: Iterable[int],
    size: tuple[float, float],
    *,
    sides: Sequence[str] = ("right", "left", "top"),
    over_dots: bool = False,
    most: int | None = None,
) -> list[str]:
    """On which side of its dot each name finds room: right, left, top, or none ('').

    Parameters
    ----------
    names : sequence of str, length n
    points : ndarray, shape (n, 2)
        On linear scales that reach from the least to the most.
    order : iterable of int
        Who is asked first; those that are not asked get no name.
    size : pair of float
        Width and height of the plane, in pixels.
    sides : sequence of str
        In the order in which they are tried.
    over_dots : bool
        Whether a name may cover other dots.
    most : int, optional
        Places for no more names than this.

    Returns
    -------
    list of str, length n
    """
    width, height = size
    centres = np.column_stack([_spread(points[:, 0]) * width, (1 - _spread(points[:, 1])) * height])
    taken = [] if over_dots else [_dot(x, y) for x, y in centres.tolist()]
    found = [""] * len(names)
    for i in order:
        for side in sides:
            box = _box(centres[i, 0], centres[i, 1], len(names[i]), side)
            inside = box[0] >= -2 * GAP and box[2] <= width + 2 * GAP
            if inside and not any(_overlap(box, other) for other in taken):
                found[i] = side
                taken.append(box)
                break
        if most is not None and len(found) - found.count("") == most:
            break
    return found


def _box(x: float, y: float, n_letters: int, side: str) -> Box:
    length = n_letters * _LETTER
    lengths, gaps_right, lines, gaps_down = _CORNERS[side]
    left, top = x + lengths * length + gaps_right * GAP, y + lines * _LINE + gaps_down * GAP
    return left, top, left + length, top + _LINE


def _dot(x: float, y: float) -> Box:
    return x - _DOT, y - _DOT, x + _DOT, y + _DOT


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _spread(values: Floats) -> Floats:
    """Values on a scale from 0 to 1; all at 0.5 if they are alike."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
