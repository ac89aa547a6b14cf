"""Every encoder passes scikit-learn's own suite, without a single exception."""

from __future__ import annotations

from unittest import SkipTest

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from sufrep import (
    ContrastEncoder,
    FisherEncoder,
    LowRankEncoder,
    MeansEncoder,
    MNLEncoder,
    SparseLowRankEncoder,
)
from sufrep.encoders import METHODS, make_encoder

VARIANTS = [
    MNLEncoder(0, solver="lda"),
    MNLEncoder(0, standardize=False),
    ContrastEncoder(0, sparse_output=True),
    LowRankEncoder(0, standardize=False),
    SparseLowRankEncoder(0, center=False),
    MeansEncoder(0, remainder="drop"),
    FisherEncoder(0, target_type="continuous"),
]
ENCODERS = [make_encoder(method, group) for method in METHODS for group in (None, 0)] + VARIANTS


# One check fits a frame of numbers: without a named group there is nothing to encode, as the warning says.
@pytest.mark.filterwarnings("ignore:group=None takes the text columns:sufrep.encoders.NoGroupWarning")
@parametrize_with_checks(ENCODERS)
def test_every_check_of_scikit_learn_passes_and_none_is_skipped(estimator, check):
    try:
        check(estimator)
    except (SkipTest, pytest.skip.Exception) as skipped:
        pytest.fail(f"{estimator!r} was not checked: {skipped}")


@pytest.mark.parametrize("method", METHODS)
def test_an_encoder_takes_categories_where_a_group_is_named(method):
    assert get_tags(make_encoder(method, "shop")).input_tags.categorical
    assert not get_tags(make_encoder(method)).input_tags.categorical


@pytest.mark.parametrize("method", METHODS)
def test_only_fisher_requires_a_target(method):
    assert get_tags(make_encoder(method, 0)).target_tags.required == (method == "fisher")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("group", [None, 0])
def test_no_encoder_is_random_and_all_take_nulls(method, group):
    tags = get_tags(make_encoder(method, group))
    assert not tags.non_deterministic
    assert tags.input_tags.allow_nan
    assert not tags.no_validation
    assert not tags._skip_test
