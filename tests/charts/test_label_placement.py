"""Labels never cover each other or a dot."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sufrep._charts._label_placement import SIDES, _dot_box, _label_box, _overlap, _rescale, label_sides

SIZE = (300.0, 200.0)
PLACES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=25)


@settings(deadline=None)
@given(PLACES, st.sampled_from([("right", "left", "top"), SIDES]))
def test_no_label_covers_a_label_or_a_dot(places, allowed):
    points = np.array(places, float)
    labels = [f"name {i}" for i in range(len(points))]
    sides = label_sides(labels, points, range(len(points)), SIZE, sides=allowed)
    x, y = _rescale(points[:, 0]) * SIZE[0], (1 - _rescale(points[:, 1])) * SIZE[1]
    boxes = [_label_box(x[i], y[i], len(labels[i]), side) for i, side in enumerate(sides) if side]
    dots = [_dot_box(x[i], y[i]) for i in range(len(points))]
    assert not any(_overlap(one, other) for one, other in combinations(boxes, 2))
    assert not any(_overlap(box, dot) for box in boxes for dot in dots)


def test_a_required_label_covers_dots_rather_than_to_be_left_out():
    points = np.array([[x, y] for x in np.linspace(0, 1, 40) for y in np.linspace(0, 1, 40)])
    labels = ["name"] * len(points)
    assert not any(label_sides(labels, points, [800, 801], SIZE))
    sides = label_sides(labels, points, [800, 801], SIZE, required=[800])
    assert [i for i, side in enumerate(sides) if side] == [800]


def test_a_label_is_not_on_a_line():
    points = np.array([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]])
    assert label_sides(["a", "b", "c"], points, [2], SIZE) == ["", "", "right"]
    assert label_sides(["a", "b", "c"], points, [2], SIZE, lines=[0.5]) == ["", "", "top"]


def test_the_label_of_a_dot_at_the_right_edge_is_on_its_left():
    points = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert label_sides(["left end", "right end"], points, [0, 1], SIZE) == ["right", "left"]


def test_a_label_wider_than_the_plot_is_left_out():
    assert label_sides(["x" * 200], np.zeros((1, 2)), [0], SIZE) == [""]


def test_labels_follow_the_order_up_to_their_maximal_number():
    points = np.array([[0.0, 0.0], [1.0, 5.0], [2.0, 10.0]])
    assert label_sides(["a", "b", "c"], points, [2, 0], SIZE) == ["right", "", "right"]
    assert label_sides(["a", "b", "c"], points, [1, 0, 2], SIZE, max_labels=1) == ["", "right", ""]
