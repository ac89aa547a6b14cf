"""Choose on which side of its dot a label fits; Vega-Lite does not place labels itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from sufrep._arrays import Floats

    Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom

# Pixels: mean width of a letter at 11 px, height of a line, distance from a dot's centre to its label,
# radius of a dot.
_LETTER, _LINE, GAP, _RADIUS = 6.3, 13.0, 9.0, 6.0
# Offset of the upper left corner of the label from the centre of the dot. Horizontally in widths of the
# label and in gaps, vertically in lines and in gaps.
_CORNERS = {
    "right": (0.0, 1.0, -0.5, 0.0),
    "left": (-1.0, -1.0, -0.5, 0.0),
    "top": (-0.5, 0.0, -1.0, -1.0),
    "bottom": (-0.5, 0.0, 0.0, 1.0),
    "top left": (-1.0, -0.7, -1.0, -0.7),
    "top right": (0.0, 0.7, -1.0, -0.7),
    "bottom left": (-1.0, -0.7, 0.0, 0.7),
    "bottom right": (0.0, 0.7, 0.0, 0.7),
}
SIDES = tuple(_CORNERS)
# For a text mark of Vega: which end of the text is at the dot, and the offset of its middle.
ALIGNMENTS = {
    side: {0.0: "left", -1.0: "right"}.get(corner[0], "center") for side, corner in _CORNERS.items()
}
OFFSETS = {
    side: (corner[1] * GAP, (corner[2] + 0.5) * _LINE + corner[3] * GAP) for side, corner in _CORNERS.items()
}


def label_sides(
    labels: Sequence[str],
    points: Floats,
    order: Iterable[int],
    size: tuple[float, float],
    *,
    sides: Sequence[str] = ("right", "left", "top"),
    over_dots: bool = False,
    required: Collection[int] = (),
    lines: Sequence[float] = (),
    max_labels: int | None = None,
    overhang: tuple[float, float] = (2 * GAP, _LINE + GAP),
) -> list[str]:
    """On which side of its dot each label fits without overlap: one of ``SIDES``, or nowhere (``''``).

    Parameters
    ----------
    labels : sequence of str, length n
    points : ndarray, shape (n, 2)
        On linear scales that span their range, and that of `lines`.
    order : iterable of int
        Labels are placed greedily in this order; points that are not in it get no label.
    size : pair of float
        Width and height of the plot, in pixels.
    sides : sequence of str
        In the order in which they are tried.
    over_dots : bool
        Whether a label may cover dots.
    required : collection of int
        Points whose label covers dots rather than to be left out; it never covers another label.
    lines : sequence of float
        Heights of horizontal lines, which count as dots.
    max_labels : int, optional
        Stop after so many labels.
    overhang : pair of float
        By how many pixels a label may stand out on both sides of the outermost dots, and above them.

    Returns
    -------
    list of str, length n
    """
    width, height = size
    heights = (1 - _rescale(np.append(points[:, 1], lines))) * height
    centres = np.column_stack([_rescale(points[:, 0]) * width, heights[: len(points)]])
    dots = [] if over_dots else [_dot_box(x, y) for x, y in centres.tolist()]
    dots += [(-np.inf, y - 1, np.inf, y + 1) for y in heights[len(points) :].tolist()]
    placed: list[Box] = []
    chosen = [""] * len(labels)
    for i in order:
        boxes = {side: _label_box(centres[i, 0], centres[i, 1], len(labels[i]), side) for side in sides}
        fitting = {
            side: box
            for side, box in boxes.items()
            if _is_inside(box, width, height, overhang) and not any(_overlap(box, other) for other in placed)
        }
        covered = {side: sum(_overlap(box, dot) for dot in dots) for side, box in fitting.items()}
        side = min(covered, key=covered.__getitem__, default="")
        if side and (not covered[side] or i in required):
            chosen[i] = side
            placed.append(fitting[side])
        if len(placed) == max_labels:
            break
    return chosen


def _label_box(x: float, y: float, n_letters: int, side: str) -> Box:
    length = n_letters * _LETTER
    lengths, gaps_right, lines, gaps_down = _CORNERS[side]
    left, top = x + lengths * length + gaps_right * GAP, y + lines * _LINE + gaps_down * GAP
    return left, top, left + length, top + _LINE


def _is_inside(box: Box, width: float, height: float, overhang: tuple[float, float]) -> bool:
    """Whether a label is in the plot or in the margin around it, but not below, where the axis is."""
    across = box[0] >= -overhang[0] and box[2] <= width + overhang[0]
    return across and box[1] >= -overhang[1] and box[3] <= height + _LINE / 2


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
