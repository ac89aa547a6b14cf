"""Every estimator passes scikit-learn's own suite; those that leave rows out differ from it by design."""

from __future__ import annotations

from functools import partialmethod
from unittest import SkipTest

import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from sufrep import (
    CellsEncoder,
    ColdStartEstimator,
    ContrastEncoder,
    CrossedEffectsEncoder,
    FisherEncoder,
    LatentStateEncoder,
    LatentStateRegressor,
    LocalEffectEncoder,
    LowRankEncoder,
    MeansEncoder,
    MixedModelEncoder,
    MNLEncoder,
    RandomInterceptEncoder,
    SharesEncoder,
    SufficientEncoder,
)
from sufrep._names import TARGET_METHODS
from sufrep.encoders import METHODS, make_encoder

# The contrast codings share all code but their matrix, and so do one and several permutations.
ALIKE = {"deviation", "difference", "repeated_effect", "simple_effect", "permutation", "target_mean"}
# Without a group, arrays pass through, in a way that is the same for most encoders.
WITHOUT_GROUP = ["one_hot", "fisher", "mixed_model", "means", "sufficient"]
# What is searched, and how well it is fitted, is tested elsewhere.
QUICK = {
    "sufficient": {
        "estimator": DecisionTreeRegressor(max_depth=2, random_state=0),
        "families": ("prediction",),
        "cv": KFold(2),
    },
    "latent_state": {"max_states": 2, "n_starts": 1, "tol": 1e-4},
}
VARIANTS = [
    MNLEncoder(0, solver="lda"),
    ContrastEncoder(0, sparse_output=True),
    MeansEncoder(0, remainder="drop"),
    FisherEncoder(0, target_type="continuous"),
    MeansEncoder(0, shrinkage="auto"),
    MeansEncoder(0, leave_one_out=True),
    LowRankEncoder(0, shrinkage="auto"),
    LatentStateEncoder(0, output="both", n_states=2, n_starts=1, tol=1e-4),
    LatentStateEncoder(0, use_target=True, target_type="continuous", n_states=2, n_starts=1, tol=1e-4, cv=2),
    MeansEncoder(0, use_target=True, leave_one_out=True),
    MeansEncoder(0, use_target=True, shrinkage="auto", target_type="continuous"),
    LowRankEncoder(0, use_target=True, target_type="continuous"),
    CrossedEffectsEncoder(0, target_type="continuous", min_z=-50.0),
    MixedModelEncoder(0, target_type="continuous"),
    LocalEffectEncoder(0, target_type="continuous"),
    CellsEncoder(0, target_type="continuous"),
    LatentStateRegressor(n_states=2, n_starts=1, tol=1e-4),
    LatentStateRegressor(0, n_states=2, n_starts=1, tol=1e-4),
    ColdStartEstimator(MeansEncoder(0), DecisionTreeRegressor(random_state=0)),
    ColdStartEstimator(MeansEncoder(0), DecisionTreeClassifier(random_state=0), n_folds=2),
]
ENCODERS = [
    *(make_encoder(method, 0, **QUICK.get(method, {})) for method in METHODS if method not in ALIKE),
    *(make_encoder(method, **QUICK.get(method, {})) for method in WITHOUT_GROUP),
    *VARIANTS,
]

# These compare fit_transform with transform.
COMPARING = {"check_transformer_general", "check_transformer_data_not_an_array"}
WEIGHTING = "check_sample_weight_equivalence_on_dense_data"


def ignore_training(encoder, lookups, inputs, *, training):  # noqa: ARG001
    """What training rows would get if they were new."""
    return lookups(encoder, inputs, training=False)


def leaves_rows_out(estimator):
    models = (
        *(RandomInterceptEncoder, CrossedEffectsEncoder, MixedModelEncoder, LocalEffectEncoder),
        *(CellsEncoder, SharesEncoder),
    )
    always = isinstance(estimator, models) and estimator.group is not None
    return always or getattr(estimator, "leave_one_out", False) or getattr(estimator, "use_target", False)


# One check fits a frame of numbers. Without a named group there is nothing to encode, as the warning says.
@pytest.mark.filterwarnings("ignore:group=None selects the text columns:sufrep.encoders.NoGroupWarning")
@parametrize_with_checks(ENCODERS)
def test_every_check_of_scikit_learn_passes_and_none_is_skipped(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it, one check of array input is skipped
    if leaves_rows_out(estimator) and check.func.__name__ in COMPARING:
        # In training a row is encoded without itself, on purpose. Nothing else may be wrong, so the whole
        # check must pass if no row is left out.
        with pytest.raises(AssertionError, match="fit_transform and transform outcomes not consistent"):
            check(estimator)
        as_new_rows = partialmethod(ignore_training, type(estimator)._lookups)
        monkeypatch.setattr(type(estimator), "_lookups", as_new_rows)
    if isinstance(estimator, SufficientEncoder) and check.func.__name__ == WEIGHTING:
        # A row of weight 2 is in one fold, two equal rows may be in two, so that the choice may differ.
        # Nothing else may be wrong: without a choice the check must pass.
        estimator = clone(estimator).set_params(families=())
    if isinstance(estimator, ColdStartEstimator) and check.func.__name__ == WEIGHTING:
        # Two equal rows may be in two parts of a level. Without a group, the check must pass.
        estimator = clone(estimator).set_params(encoder__group=None)
    try:
        check(estimator)
    except (SkipTest, pytest.skip.Exception) as skipped:
        pytest.fail(f"{estimator!r} was not checked: {skipped}")


@pytest.mark.parametrize("method", METHODS)
def test_the_tags_of_every_encoder_are_true(method):
    for group in (None, 0):
        tags = get_tags(make_encoder(method, group))
        assert tags.input_tags.categorical == (group is not None)
        assert tags.input_tags.allow_nan
        assert not tags.non_deterministic
        assert not tags.no_validation
        assert not tags._skip_test
        assert tags.target_tags.required == (method in TARGET_METHODS)


@pytest.mark.parametrize("encoder", [LatentStateEncoder, MeansEncoder, LowRankEncoder])
def test_a_target_is_required_if_it_is_used(encoder):
    for use_target in (False, True):
        assert get_tags(encoder(0, use_target=use_target)).target_tags.required == use_target
