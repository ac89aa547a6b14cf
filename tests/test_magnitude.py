"""Units for sums of extreme numbers, and what cannot be squared."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sufrep._magnitude import check_squares, exponents, refuse_large, refuse_small, unscaled, weighted_mean
from sufrep.errors import MagnitudeError

MOST = np.finfo(np.float64).max


def test_ordinary_columns_keep_their_units():
    assert exponents(np.array([0.0, 1e-130, 1.0, 1e140, 1e265])).tolist() == [0] * 5


@given(st.floats(5e-324, MOST))
def test_units_bring_every_number_where_sums_are_safe(largest):
    power = exponents(np.array([largest]))
    scaled = np.ldexp(largest, -power).item()
    assert 1e-140 < scaled < 1e275
    assert np.ldexp(scaled, power).item() == largest


def test_a_mean_above_all_doubles_by_rounding_is_the_largest():
    assert unscaled(np.ldexp(np.array([MOST]), -2) * (1 + 1e-15), 2).tolist() == [MOST]


@given(hnp.arrays(float, (4, 2), elements=st.floats(-MOST, MOST)), st.sampled_from([0.1, 1.0, 1e15]))
def test_means_of_all_finite_numbers_exist(values, heavy):
    weight = np.array([1.0, heavy, 2.0, 0.0])
    for found, column in zip(weighted_mean(values, weight), values.T, strict=True):
        parts = zip(map(Fraction, column.tolist()), map(Fraction, weight.tolist()), strict=True)
        exact = sum(x * w for x, w in parts) / sum(map(Fraction, weight.tolist()))
        assert math.isfinite(found)
        assert abs(Fraction(found) - exact) <= Fraction(1e-12) * Fraction(np.abs(column).max()) + Fraction(
            1e-300
        )


def test_numbers_too_large_to_be_squared_are_refused_by_name():
    refuse_large("price", 1e140)
    with pytest.raises(MagnitudeError, match=r"'price' holds numbers as large as 1e\+141.*\nHint: .* divide"):
        refuse_large("price", 1e141)


def test_spreads_too_small_to_be_squared_are_refused_by_name():
    refuse_small("price", 0.0)
    refuse_small("price", 1e-140)
    with pytest.raises(MagnitudeError, match=r"'price' varies by 1e-141 only.*\nHint: .* multiply"):
        refuse_small("price", 1e-141)


@pytest.mark.parametrize(
    ("values", "found"),
    [([-1e200, 1.0], "as large as 1e\\+200"), ([2e-200, np.nan, 1e-200], "by 1e-200 only")],
)
def test_a_column_is_checked_for_both(values, found):
    with pytest.raises(MagnitudeError, match=found):
        check_squares("x", np.array(values))


@pytest.mark.parametrize("values", [[], [1e-200, 1e-200], [np.nan, np.nan], [1e-200, 1.0], [np.inf, 1]])
def test_constant_and_empty_columns_and_small_values_next_to_larger_ones_pass(values):
    check_squares("x", np.array(values))
