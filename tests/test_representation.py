"""Tables of level vectors, and look-ups in them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from sufrep.representation import Representation, as_levels

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
