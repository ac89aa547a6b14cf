"""Levels of any kind in one canonical order; tables of level vectors, and look-ups in them."""

from __future__ import annotations

import copy
import datetime
import pickle
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from sufrep.errors import OneLevelGivenError
from sufrep.representation import Representation, as_levels, level_label, sort_levels

LEVELS = ["a", "b", 7, None]


@st.composite
def filled(draw: st.DrawFn) -> Representation:
    n_levels, k = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    values = draw(hnp.arrays(float, (n_levels, k), elements=st.floats(-100, 100)))
    weight = draw(hnp.arrays(float, n_levels, elements=st.floats(0.1, 10)))
    names = [f"c{j}" for j in range(k)]
    return Representation.from_values(LEVELS[:n_levels], values, names, weight=weight)


@pytest.fixture(params=["dense", "csr_array", "csr_matrix", "coo_array"])
def table(request: pytest.FixtureRequest) -> Representation:
    values = np.array([[0.0, 1.0], [4.0, 0.0], [8.0, 0.0]])
    if request.param != "dense":
        values = getattr(sparse, request.param)(values)
    return Representation.from_values(["a", 98178, None], values, ["u", "v"], weight=[2, 1, 1])


def dense(values: object) -> np.ndarray:
    return values.toarray() if sparse.issparse(values) else values


@given(filled())
def test_the_prior_is_the_weighted_mean_of_the_level_vectors(table):
    expected = np.zeros(len(table.columns))
    for weight, vector in zip(table.weight, table.values, strict=True):
        expected += weight * vector / table.weight.sum()
    np.testing.assert_allclose(table.prior, expected, atol=1e-9)


@given(filled(), st.lists(st.sampled_from([*LEVELS, "never", ("a", "b"), 7.5])))
def test_lookup_gives_every_level_its_vector_and_an_unseen_one_the_prior(table, levels):
    known = table.levels.tolist()
    found = table.lookup(levels)
    assert found.shape == (len(levels), len(table.columns))
    for level, vector in zip(levels, found, strict=True):
        expected = table.values[known.index(level)] if level in known else table.prior
        np.testing.assert_array_equal(vector, expected)


def test_dense_and_sparse_tables_look_up_the_same(table):
    found = table.lookup([None, "a", "never", 98178, "a"])
    assert dense(found).tolist() == [[8, 0], [0, 1], [3, 0.5], [4, 0], [0, 1]]
    assert table.prior.tolist() == [3.0, 0.5]
    assert table.n_levels == 3


def test_a_sparse_table_stays_sparse(table):
    found = table.lookup(["a", "never"])
    assert sparse.issparse(found) == sparse.issparse(table.values)
    assert not sparse.issparse(found) or found.format == "csr"
    assert isinstance(table.prior, np.ndarray)
    assert table.prior.shape == (2,)


def test_the_prior_is_the_row_below_the_vectors(table):
    assert dense(table.with_prior()).tolist() == [[0, 1], [4, 0], [8, 0], [3, 0.5]]


def test_positions_are_rows_of_the_values_or_minus_one(table):
    found = table.positions(level for level in [98178, "98178", None, "a"])
    assert found.tolist() == [1, -1, 2, 0]
    assert found.dtype == np.intp


@given(filled(), st.sampled_from([*LEVELS, "never", ("a", "b"), 7.5, float("nan")]))
def test_one_level_has_the_vector_that_lookup_gives(table, level):
    np.testing.assert_array_equal(table[level], table.lookup([level])[0])
    assert (level in table) == (table.positions([level])[0] >= 0)


def test_the_vector_of_one_level_is_dense_and_read_only(table):
    assert [table[level].tolist() for level in ("a", None, "never")] == [[0, 1], [8, 0], [3, 0.5]]
    for level in ("a", "never"):
        with pytest.raises(ValueError, match="read-only"):
            table[level][0] = 9.0
    assert table["a"].tolist() == [0, 1]
    assert table.prior.flags.writeable


def test_levels_are_iterated_over_without_end_at_the_last_one(table):
    assert list(table) == ["a", 98178, None]


@pytest.mark.parametrize("level", ["98178", b"98178", 98178, 7.5, None])
def test_one_level_in_the_place_of_many_is_refused(table, level):
    for find in (table.lookup, table.positions):
        with pytest.raises(OneLevelGivenError, match=r"(?s)is one level.*pass a list, .*representation\["):
            find(level)


def test_a_text_is_not_an_iterable_of_levels():
    table = Representation.from_values(["a", "b"], [[1.0], [2.0]], ["u"], weight=[1, 1])
    with pytest.raises(OneLevelGivenError, match="it is one of characters"):
        table.lookup("ab")


def test_a_tuple_of_levels_is_taken_and_a_crossed_level_is_not():
    crossed = Representation.from_values([("a", 1), ("b", 2)], [[1.0], [2.0]], ["u"], weight=[1, 1])
    assert crossed["b", 2].tolist() == [2.0]
    assert crossed.lookup((("b", 2), ("a", 1))).tolist() == [[2.0], [1.0]]
    with pytest.raises(OneLevelGivenError, match="is one level"):
        crossed.lookup(("b", 2))


def test_a_table_without_levels_knows_the_prior_only():
    table = Representation.from_values([], np.empty((0, 1)), ["u"], weight=[], prior=np.array([3.0]))
    assert table.lookup(["a", None]).tolist() == [[3.0], [3.0]]
    assert table["a"].tolist() == [3.0]


def test_what_is_remembered_is_computed_once_for_the_same_objects(table):
    calls, first, second = [], object(), object()
    for given_object in (first, first, second, first):
        table.remember("it", lambda: calls.append(1), given_object)
    assert len(calls) == 3


def test_copies_do_not_carry_what_is_remembered(table):
    table.remember("it", lambda: np.zeros(1_000_000))
    assert len(pickle.dumps(table)) < 10_000


def test_looking_up_nothing_gives_no_rows(table):
    assert table.positions([]).shape == (0,)
    assert table.lookup([]).shape == (0, 2)


@pytest.mark.parametrize("levels", [[("a", 1), ("b", None)], as_levels([("a", 1), ("b", None)])])
def test_tuples_are_levels(levels):
    table = Representation.from_values(levels, [[1.0], [2.0]], ["u"], weight=[1, 1])
    assert table.levels.shape == (2,)
    assert table.lookup([("b", None), ("a", 1), ("a", 2)]).tolist() == [[2.0], [1.0], [1.5]]


def test_whole_numbers_are_found_whatever_their_type():
    table = Representation.from_values([98178], [[1.0]], ["u"], weight=[1])
    assert table.positions([98178.0, np.int64(98178), np.float32(98178), "98178"]).tolist() == [0, 0, 0, -1]


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda table: pickle.loads(pickle.dumps(table)), replace])
def test_copies_look_up_the_same(table, clone):
    levels = ["a", None, "never"]
    np.testing.assert_array_equal(dense(clone(table).lookup(levels)), dense(table.lookup(levels)))


def test_values_are_floats_and_the_input_stays_as_it_was():
    values = np.array([[1, 2]])
    table = Representation.from_values(["a"], values, (name for name in "uv"), weight=[3])
    assert table.values.dtype == table.weight.dtype == np.float64
    assert table.columns == ("u", "v")
    assert values.tolist() == [[1, 2]]


# Levels.

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
