"""Subgroups contain every row once, and have an effect only if they are large enough."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep._effect._subgroups import subgroup_codes, subgroup_effects

NUMBERS = st.lists(st.one_of(st.none(), st.integers(-50, 50)), min_size=1, max_size=60)


@given(NUMBERS)
def test_subgroups_of_numbers_are_ordered_and_nulls_are_apart(numbers):
    values = pl.Series("x", numbers, dtype=pl.Int64)
    codes, labels = subgroup_codes(values)
    assert codes.min() >= 0
    assert codes.max() < len(labels)
    assert (codes == len(labels) - 1).tolist() == values.is_null().to_list()
    if values.drop_nulls().n_unique() > 6:
        order = sorted(
            (number, code) for number, code in zip(numbers, codes, strict=True) if number is not None
        )
        assert [code for _, code in order] == sorted(code for _, code in order)


def test_labels_of_thirds_say_which_numbers_they_contain():
    codes, labels = subgroup_codes(pl.Series("age", np.arange(9.0)))
    assert codes.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert labels[:3] == ["age up to 2", "age over 2, up to 5", "age over 5"]


def test_thirds_that_differ_in_late_digits_have_names_of_their_own():
    _, labels = subgroup_codes(pl.Series("x", 1 + np.arange(9.0) * 1e-9))
    assert len(set(labels)) == 4
    assert subgroup_codes(pl.Series("day", np.arange(20_140_101, 20_140_110)))[1][0] == "day up to 20140103"


def test_a_column_may_be_called_count():
    assert subgroup_codes(pl.Series("count", [1, 1, 2]))[1][:2] == ["count = 1", "count = 2"]


def test_rare_levels_of_text_are_together():
    codes, labels = subgroup_codes(pl.Series("x", [*"aabbccddeeff", "g", None]))
    assert labels == [*(f"x = {level}" for level in "abcdef"), None, "x is null"]
    assert codes.tolist()[-2:] == [6, 7]


def test_nan_is_a_null_and_booleans_are_written_as_in_files():
    assert subgroup_codes(pl.Series("x", [1.0, float("nan"), None]))[0].tolist() == [0, 2, 2]
    assert subgroup_codes(pl.Series("x", [True, False]))[1][:2] == ["x = false", "x = true"]


def test_effects_are_those_of_gate(analysis, patients):
    found = subgroup_effects(analysis.model, patients["ward"])
    expected = analysis.model.gate("ward", library="polars").drop("level").to_dicts()
    assert [row["subgroup"] for row in found.rows] == ["ward = a", "ward = b"]
    for row, other in zip(found.rows, expected, strict=True):
        assert {key: row[key] for key in other} == pytest.approx(other)
    assert found.n_left_out == 0


def test_a_subgroup_that_is_too_small_is_left_out(analysis, patients):
    ward = patients["ward"].to_list()
    ward[40:50] = ["c"] * 10
    found = subgroup_effects(analysis.model, pl.Series("ward", ward))
    assert [row["subgroup"] for row in found.rows] == ["ward = a", "ward = b"]
    assert found.n_left_out == 8  # two of the ten rows are in dropped groups


def test_small_subgroups_may_be_large_enough_together(analysis, patients):
    ward = patients["ward"].to_list()
    ward[200:230] = ["c"] * 15 + ["d"] * 15
    found = subgroup_effects(analysis.model, pl.Series("ward", ward))
    assert [row["subgroup"] for row in found.rows][-1] == "other ward"
    assert found.n_left_out == 0


def test_a_constant_and_the_group_itself_have_no_subgroups(analysis, patients):
    assert subgroup_effects(analysis.model, pl.Series("x", [1] * 400)) is None
    assert subgroup_effects(analysis.model, patients["hospital"]) is None
