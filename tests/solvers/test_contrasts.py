"""The classical codings against the paper's tables, R's numbers and what every coding must satisfy."""

from __future__ import annotations

import numpy as np
import pytest

from sufrep.solvers.contrasts import CODINGS

# The tables of the paper's appendix, with the digits it prints.
PAPER_TABLES = {
    "one_hot": (
        0,
        [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
    ),
    "deviation": (
        0,
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [-1, -1, -1, -1]],
    ),
    "difference": (
        3,
        [
            [-0.5, -0.333, -0.25, -0.2],
            [0.5, -0.333, -0.25, -0.2],
            [0.0, 0.667, -0.25, -0.2],
            [0.0, 0.000, 0.75, -0.2],
            [0.0, 0.000, 0.00, 0.8],
        ],
    ),
    "helmert": (
        2,
        [
            [0.80, 0.00, 0.00, 0.00],
            [-0.20, 0.75, 0.00, 0.00],
            [-0.20, -0.25, 0.67, 0.00],
            [-0.20, -0.25, -0.33, 0.50],
            [-0.20, -0.25, -0.33, -0.50],
        ],
    ),
    "repeated_effect": (
        1,
        [
            [0.8, 0.6, 0.4, 0.2],
            [-0.2, 0.6, 0.4, 0.2],
            [-0.2, -0.4, 0.4, 0.2],
            [-0.2, -0.4, -0.6, 0.2],
            [-0.2, -0.4, -0.6, -0.8],
        ],
    ),
}


def read_level_table(path):
    return np.genfromtxt(path, delimiter=",", skip_header=1)[:, 1:]


@pytest.mark.parametrize("name", PAPER_TABLES)
def test_five_levels_give_the_table_the_paper_prints(name):
    digits, table = PAPER_TABLES[name]
    np.testing.assert_array_equal(np.round(CODINGS[name](5), digits), np.array(table, dtype=float))


@pytest.mark.parametrize("name", ["deviation", "difference", "repeated_effect", "simple_effect"])
def test_seven_levels_give_the_numbers_of_r(name, r_fixtures):
    np.testing.assert_allclose(CODINGS[name](7), read_level_table(r_fixtures / f"{name}.csv"), atol=1e-12)


def test_one_hot_is_that_of_r_with_the_first_level_as_reference_instead_of_the_last(r_fixtures):
    theirs = read_level_table(r_fixtures / "one_hot.csv")
    np.testing.assert_array_equal(np.roll(theirs, 1, axis=0), CODINGS["one_hot"](7))


@pytest.mark.parametrize("name", sorted(set(CODINGS) - {"one_hot"}))
@pytest.mark.parametrize("n_levels", [1, 2, 3, 17, 30])
def test_columns_sum_to_zero(name, n_levels):
    np.testing.assert_allclose(CODINGS[name](n_levels).sum(axis=0), 0.0, atol=1e-13)


@pytest.mark.parametrize("name", CODINGS)
@pytest.mark.parametrize("n_levels", range(2, 31))
def test_with_a_constant_the_coding_spans_all_functions_of_the_level(name, n_levels):
    design = np.column_stack([np.ones(n_levels), CODINGS[name](n_levels)])
    assert design.shape == (n_levels, n_levels)
    assert np.linalg.matrix_rank(design) == n_levels


@pytest.mark.parametrize("name", CODINGS)
def test_a_single_level_needs_no_columns(name):
    assert CODINGS[name](1).shape == (1, 0)


@pytest.mark.parametrize("name", CODINGS)
def test_each_call_returns_an_array_of_its_own(name):
    first = CODINGS[name](4)
    expected = first.copy()
    first[:] = np.nan
    np.testing.assert_array_equal(CODINGS[name](4), expected)


def test_zeros_carry_no_minus_sign():
    for name, coding in CODINGS.items():
        matrix = coding(6)
        assert not np.signbit(matrix[matrix == 0]).any(), name
