"""Names beside dots never cover each other."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep._charts._labels import _box, _dot, _overlap, _spread, name_sides

law = settings(deadline=None, max_examples=50)
SIZE = (300.0, 200.0)
PLACES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=25)


@law
@given(PLACES)
def test_no_name_covers_a_name_or_a_dot(places):
    points = np.array(places, float)
    names = [f"name {i}" for i in range(len(points))]
    sides = name_sides(names, points, range(len(points)), SIZE)
    x, y = _spread(points[:, 0]) * SIZE[0], (1 - _spread(points[:, 1])) * SIZE[1]
    boxes = [_box(x[i], y[i], len(names[i]), side) for i, side in enumerate(sides) if side]
    dots = [_dot(x[i], y[i]) for i in range(len(points))]
    assert not any(_overlap(one, other) for one, other in combinations(boxes, 2))
    assert not any(_overlap(box, dot) for box in boxes for dot in dots)


def test_a_name_at_the_right_edge_stands_on_the_left():
    points = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert name_sides(["left end", "right end"], points, [0, 1], SIZE) == ["right", "left"]


def test_a_name_that_is_wider_than_the_plane_is_not_placed():
    assert name_sides(["x" * 200], np.zeros((1, 2)), [0], SIZE) == [""]


def test_those_who_are_not_asked_and_those_after_the_most_get_no_name():
    points = np.array([[0.0, 0.0], [1.0, 5.0], [2.0, 10.0]])
    assert name_sides(["a", "b", "c"], points, [2, 0], SIZE) == ["right", "", "right"]
    assert name_sides(["a", "b", "c"], points, [0, 1, 2], SIZE, most=1) == ["right", "", ""]
