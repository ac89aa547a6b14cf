"""One canonical order of levels of any kind."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep.representation import as_levels, level_label, sort_levels

SIMPLE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
    | st.binary(max_size=3)
    | st.dates()
    | st.datetimes()
    | st.timedeltas()
    | st.decimals(allow_nan=False, places=2, min_value=-1000, max_value=1000)
)
ANY = SIMPLE | st.tuples(SIMPLE, SIMPLE)
# Levels of one type, which has an order of its own.
ONE_TYPE = st.one_of(
    *(
        st.lists(kind, unique=True, max_size=8)
        for kind in (
            st.integers(),
            st.floats(allow_nan=False),
            st.text(max_size=4),
            st.dates(),
            st.datetimes(),
            st.timedeltas(),
            st.decimals(allow_nan=False, places=2, min_value=-1000, max_value=1000),
            st.tuples(st.text(max_size=2), st.integers()),
        )
    )
)


@given(st.lists(ANY, unique=True, max_size=8), st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_given(levels, random):
    shuffled = random.sample(levels, len(levels))
    assert sort_levels(shuffled).tolist() == sort_levels(levels).tolist()


@given(st.lists(ANY, unique=True, max_size=8))
def test_sorting_neither_loses_nor_changes_a_level(levels):
    found = sort_levels(levels)
    assert found.dtype == object
    assert found.shape == (len(levels),)
    assert {(type(level), level) for level in found} == {(type(level), level) for level in levels}


@given(ONE_TYPE)
def test_levels_of_one_type_are_ordered_by_value(levels):
    assert sort_levels(levels).tolist() == sorted(levels)


@given(ONE_TYPE)
def test_a_missing_level_comes_last_and_leaves_the_others_in_order(levels):
    """Codes are not computed anew when null becomes a level, so the others must stay in place."""
    assert sort_levels([None, *levels]).tolist() == [*sorted(levels), None]


@pytest.mark.parametrize(
    "levels",
    [
        [Decimal(9), Decimal(10)],
        [datetime.timedelta(days=9), datetime.timedelta(days=10)],
        [Fraction(1, 3), Fraction(1, 2), Fraction(2, 1)],
        [("a", Decimal(9)), ("a", Decimal(10))],
    ],
    ids=["decimal", "timedelta", "fraction", "tuple"],
)
def test_values_are_not_ordered_by_their_text_next_to_null(levels):
    assert sort_levels([None, *reversed(levels)]).tolist() == [*levels, None]


def test_numbers_come_first_then_text_then_tuples_then_null():
    expected = [-1.5, 0, True, 2, 10, b"z", "10", "9", ("a", 1), ("a", "b"), ("a", None), None]
    for start in range(len(expected)):
        assert sort_levels(expected[start:] + expected[:start]).tolist() == expected


def test_big_integers_are_compared_exactly():
    big = [2**53, 2**53 + 1, 10**400]
    for order in permutations([*big, None]):
        assert sort_levels(order).tolist() == [*big, None]


def test_text_is_ordered_by_code_points():
    expected = ["", "Z", "a", "é", "日本", "👍", "👍🏽", "🧪"]
    assert sort_levels(reversed(expected)).tolist() == expected
    assert sort_levels([None, *reversed(expected)]).tolist() == [*expected, None]


@pytest.mark.parametrize("values", [[], ["a"], [(1, 2)], [(1, 2), (3, 4)], [(1, 2), (3,)], [None, (None,)]])
def test_levels_are_an_array_of_one_dimension(values):
    levels = as_levels(values)
    assert levels.shape == (len(values),)
    assert levels.tolist() == values


def test_no_levels_sort_to_no_levels():
    assert sort_levels([]).shape == (0,)


@pytest.mark.parametrize(
    ("level", "label"),
    [
        ("north", "north"),
        (98178, "98178"),
        (1.5, "1.5"),
        (True, "True"),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (None, "missing"),
        (("a", None, 3), "a:missing:3"),
        ((("a", "b"), "c"), "a:b:c"),
        ("👍", "👍"),
    ],
)
def test_a_level_is_named_by_its_text(level, label):
    assert level_label(level) == label


@given(st.lists(ANY, unique=True, min_size=1, max_size=6))
def test_sorted_levels_sort_to_themselves(levels):
    once = sort_levels(levels)
    np.testing.assert_array_equal(sort_levels(once), once)
