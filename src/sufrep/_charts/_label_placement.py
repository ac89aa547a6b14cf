"""Choose on which side of its dot a label fits; Vega-Lite does not place labels itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sufrep._arrays import Floats

    Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom

# Pixels: mean width of a letter at 11 px, height of a line, distance from a dot's centre to its label,
# radius of a dot.
_LETTER, _LINE, GAP, _RADIUS = 6.3, 13.0, 9.0, 6.0
# Offset of the upper left corner of the label from the centre of the dot. Horizontally in widths of the
# label and in gaps, vertically in lines and in gaps.
_CORNERS = {"right": (0.0, 1.0, -0.5, 0.0), "left": (-1.0, -1.0, -0.5, 0.0), "top": (-0.5, 0.0, -1.0, -1.0)}


def label_sides(
    labels: Sequence[str],
    points: Floats,
    order: Iterable[int],
    size: tuple[float, float],
    *,
    sides: Sequence[str] = ("right", "left", "top"),
    over_dots: bool = False,
    max_labels: int | None = None,
) -> list[str]:
    """On which side of its dot each label fits without overlap: right, left, top, or nowhere (``''``).

    Parameters
    ----------
    labels : sequence of str, length n
    points : ndarray, shape (n, 2)
        On linear scales that span their range.
    order : iterable of int
        Labels are placed greedily in this order; points that are not in it get no label.
    size : pair of float
        Width and height of the plot, in pixels.
    sides : sequence of str
        In the order in which they are tried.
    over_dots : bool
        Whether a label may cover dots.
    max_labels : int, optional
        Stop after so many labels.

    Returns
    -------
    list of str, length n
    """
    width, height = size
    centres = np.column_stack([_rescale(points[:, 0]) * width, (1 - _rescale(points[:, 1])) * height])
    occupied = [] if over_dots else [_dot_box(x, y) for x, y in centres.tolist()]
    chosen = [""] * len(labels)
    n_placed = 0
    for i in order:
        for side in sides:
            box = _label_box(centres[i, 0], centres[i, 1], len(labels[i]), side)
            inside = box[0] >= -2 * GAP and box[2] <= width + 2 * GAP
            if inside and not any(_overlap(box, other) for other in occupied):
                chosen[i] = side
                occupied.append(box)
                n_placed += 1
                break
        if n_placed == max_labels:
            break
    return chosen


def _label_box(x: float, y: float, n_letters: int, side: str) -> Box:
    length = n_letters * _LETTER
    lengths, gaps_right, lines, gaps_down = _CORNERS[side]
    left, top = x + lengths * length + gaps_right * GAP, y + lines * _LINE + gaps_down * GAP
    return left, top, left + length, top + _LINE


def _dot_box(x: float, y: float) -> Box:
    return x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _rescale(values: Floats) -> Floats:
    """Values on a scale from 0 to 1; all 0.5 if they are equal."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
