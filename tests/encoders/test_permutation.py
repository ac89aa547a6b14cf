"""Permutations: each level has a place of its own, which the seed alone decides."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep import PermutationEncoder, make_encoder


def places(levels: list[int], **parameters: object) -> np.ndarray:
    encoder = PermutationEncoder(0, **parameters).fit(np.array(levels)[:, None])
    return encoder.representations_["x0"].values


@given(
    levels=st.lists(st.integers(0, 50), min_size=1),
    n_permutations=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_column_is_an_order_of_the_levels(levels, n_permutations, seed):
    found = places(levels, n_permutations=n_permutations, random_state=seed)
    n_levels = len(set(levels))
    assert found.shape == (n_levels, n_permutations)
    np.testing.assert_array_equal(
        np.sort(found, axis=0), np.arange(1, n_levels + 1)[:, None].repeat(n_permutations, 1)
    )


def test_the_seed_decides():
    levels = list(range(30))
    np.testing.assert_array_equal(places(levels, random_state=3), places(levels, random_state=3))
    assert (places(levels, random_state=3) != places(levels, random_state=4)).any()


def test_several_orders_differ():
    found = places(list(range(30)), n_permutations=4)
    assert len(np.unique(found, axis=1).T) == 4


def test_the_first_of_several_orders_is_the_single_one():
    levels = list(range(10))
    np.testing.assert_array_equal(places(levels, n_permutations=3)[:, :1], places(levels))


def test_the_columns_are_named():
    rows = pd.DataFrame({"shop": list("ab")})
    assert make_encoder("permutation", "shop").fit(rows).get_feature_names_out().tolist() == [
        "shop_permutation"
    ]
    several = make_encoder("multi_permutation", "shop").fit(rows).get_feature_names_out().tolist()
    assert several == [f"shop_permutation{j}" for j in (1, 2, 3, 4)]


def test_global_random_state_is_not_touched():
    # The old interface is asked on purpose: it is the state that users share.
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    places([1, 2, 3])
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_a_seed_is_a_number():
    with pytest.raises(ValueError, match="'random_state' parameter of PermutationEncoder must be an int"):
        places([1], random_state=None)
