"""Arrays as tables."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from sufrep._frames import ArrayTable, Lookup
from sufrep._frames._eager import _CHUNK, dense_rows


def table(rows, dtype=object):
    array = np.array(rows, dtype=dtype)
    return ArrayTable(array, tuple(f"x{j}" for j in range(array.shape[1])))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint64", "bool"])
def test_columns_of_a_numeric_array_are_numbers(dtype):
    assert table([[0, 1], [1, 0]], dtype).kind(1) == "numeric"


def test_an_object_column_is_text_as_soon_as_it_holds_a_string():
    mixed = table([["a", 1.0, None, 1, True], [None, None, None, "1", False]])
    assert [mixed.kind(j) for j in range(5)] == ["text", "numeric", "numeric", "text", "numeric"]


def test_columns_of_a_text_array_are_text_even_if_they_look_like_numbers():
    assert table([["a", "1"], ["b", "2"]], dtype="U1").kind(1) == "text"


def test_an_object_column_that_is_neither_text_nor_numbers_is_refused():
    with pytest.raises(TypeError, match=r"float\(\) argument must be a string or a real number, not 'dict'"):
        table([["a", {"size": 1}]]).kind(1)


def test_the_type_of_a_column_is_that_of_the_array():
    assert table([["a", 1.0]]).dtype(1) == "object"
    assert table([[1.0]], "float32").dtype(0) == "float32"


@pytest.mark.parametrize("null", [None, float("nan"), np.nan, np.float32("nan"), pd.NA], ids=repr)
def test_every_kind_of_null_among_numbers_is_nan(null):
    numbers = table([["a", 1], ["b", null], ["c", True]])
    assert numbers.kind(1) == "numeric"
    np.testing.assert_array_equal(numbers.numbers(1), [1.0, np.nan, 1.0])


def test_numbers_of_a_numeric_array_are_a_view():
    numeric = table([[1.0, 2.0], [3.0, 4.0]], "float64")
    assert np.shares_memory(numeric.numbers(1), numeric.array)


@pytest.mark.parametrize("null", [None, float("nan"), pd.NaT, pd.NA], ids=repr)
def test_every_kind_of_null_in_a_group_is_null(null):
    factor = table([["b", 1], [null, 2], ["a", 3]]).factorize(0)
    assert (factor.codes.tolist(), factor.levels.tolist()) == ([1, -1, 0], ["a", "b"])


def test_a_column_of_a_numeric_array_has_its_numbers_as_levels():
    factor = table([[2.0, 9], [np.nan, 9], [1.5, 9]], "float64").factorize(0)
    assert (factor.codes.tolist(), factor.levels.tolist()) == ([1, -1, 0], [1.5, 2.0])


def test_a_column_of_a_text_array_has_plain_text_as_levels():
    levels = table([["b", "1"], ["a", "2"]], dtype="U1").factorize(0).levels.tolist()
    assert levels == ["a", "b"]
    assert {type(level) for level in levels} == {str}


def test_days_in_an_object_array_are_levels():
    first, second = dt.date(2020, 1, 1), dt.date(2021, 1, 1)
    factor = table([[second, 1], [first, 2]]).factorize(0)
    assert (factor.codes.tolist(), factor.levels.tolist()) == ([1, 0], [first, second])


def test_moments_in_time_of_numpy_are_text_whose_nat_is_null():
    moments = table([["2020-01-01"], ["NaT"]], dtype="datetime64[s]")
    assert moments.kind(0) == "text"
    assert moments.factorize(0).levels.tolist() == [dt.datetime(2020, 1, 1)]


NEW = Lookup(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0, 1]), ("u", "v"))


def test_kept_columns_come_before_new_ones():
    result = table([[1, 9], [2, 9], [3, 9]], "int64").encode([0], [NEW], "default")
    assert result.tolist() == [[1, 3, 4], [2, 1, 2], [3, 3, 4]]
    assert result.dtype == np.float64


def test_the_result_is_of_numbers_if_the_kept_objects_are():
    result = table([["a", 1], ["b", None], ["c", True]]).encode([1], [NEW], "default")
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, [[1, 3, 4], [np.nan, 1, 2], [1, 3, 4]])


def test_the_result_is_of_objects_if_text_is_kept():
    result = table([["a", 1], [None, 2], ["c", 3]]).encode([0, 1], [NEW], "default")
    assert result.dtype == object
    assert result.tolist() == [["a", 1, 3.0, 4.0], [None, 2, 1.0, 2.0], ["c", 3, 3.0, 4.0]]


def test_columns_that_are_kept_need_not_be_neighbours():
    result = table([[1, 9, 2, 3, 9, 4], [5, 9, 6, 7, 9, 8]], "int64").encode([0, 2, 3, 5], [], "default")
    assert result.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_nothing_kept_leaves_the_new_columns():
    assert table([["a"], ["b"], ["c"]]).encode([], [NEW], "default").tolist() == [[3, 4], [1, 2], [3, 4]]


def test_new_columns_that_have_a_row_for_each_row_are_taken_as_they_are():
    own = Lookup(np.array([[7.0], [8.0]]), names=("u",))
    assert dense_rows([np.array([[True], [False]])], [own], 2).tolist() == [[1.0, 7.0], [0.0, 8.0]]


def test_long_results_are_whole():
    n = 2 * _CHUNK + 3  # more rows than one thread writes at once
    rows = np.arange(n) % 2
    result = dense_rows([np.arange(n)[:, None]], [Lookup(NEW.values, rows, NEW.names)], n)
    np.testing.assert_array_equal(result, np.column_stack([np.arange(n), NEW.values[rows]]))


def test_the_objects_of_a_column_are_looked_at_once(monkeypatch):
    looks: list[int] = []
    find = ArrayTable._find_kind
    monkeypatch.setattr(ArrayTable, "_find_kind", lambda self, j: looks.append(j) or find(self, j))
    mixed = table([["a", 1.0], [None, 2.0]])
    assert [mixed.kind(j) for j in (0, 1, 0, 1)] == ["text", "numeric", "text", "numeric"]
    assert looks == [0, 1]
