"""The columns that the models of an effect see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sufrep.causal._data import EffectData
from sufrep.causal._features import build_features, fill_nulls, treatment_marks_rows
from sufrep.encoders import FisherEncoder, MeansEncoder
from sufrep.errors import EffectDataError

N_GROUPS, PER_GROUP = 12, 10


def sample(covariates=None, seed=0, per_group=PER_GROUP):
    """Rows of 12 groups, with two covariates by default."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(N_GROUPS), per_group)
    n = len(groups)
    x = rng.normal(size=(n, 2)) + rng.normal(size=(N_GROUPS, 1))[groups] if covariates is None else covariates
    w = (rng.random(n) < 0.5).astype(float)
    names = tuple(f"x{j}" for j in range(x.shape[1]))
    labels = tuple(f"level {j}" for j in range(N_GROUPS))
    return EffectData(
        None, np.arange(n), x, names, w, rng.normal(size=n), groups, labels, groups, np.ones(n), None, "1"
    )


def build(data, encoder="means", statistics=("X", "W"), products=False, without_nulls=True):
    return build_features(
        data, encoder=encoder, statistics=statistics, products=products, without_nulls=without_nulls
    )


def means(data, column):
    return (np.bincount(data.groups, column) / np.bincount(data.groups))[data.groups]


def test_statistics_are_the_means_of_a_group_its_own_row_included():
    data = sample()
    features = build(data, statistics=("X", "W", "WX"))
    assert features.names == (
        "x0",
        "x1",
        "mean of x0",
        "mean of x1",
        "mean of treatment",
        "mean of treatment * x0",
        "mean of treatment * x1",
    )
    x, w = data.covariates, data.treatment
    expected = [x[:, 0], x[:, 1], *(means(data, c) for c in (x[:, 0], x[:, 1], w, w * x[:, 0], w * x[:, 1]))]
    np.testing.assert_allclose(features.values, np.column_stack(expected))
    assert features.n_covariates == 2


def test_without_statistics_the_models_see_the_covariates_only():
    assert build(sample(), statistics=()).names == ("x0", "x1")


def test_means_that_repeat_a_covariate_or_are_constant_are_left_out():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(N_GROUPS), PER_GROUP)
    own = rng.normal(size=len(groups))
    school = rng.normal(size=N_GROUPS)[groups]
    centred = own - (np.bincount(groups, own) / PER_GROUP)[groups]
    year = (np.arange(len(groups)) % PER_GROUP == 0).astype(float)
    features = build(sample(np.column_stack([own, school, centred, year])))
    assert features.names == ("x0", "x1", "x2", "x3", "mean of x0", "mean of treatment")


def test_a_covariate_of_the_group_has_no_mean_of_its_product_with_the_treatment():
    groups = np.repeat(np.arange(N_GROUPS), PER_GROUP)
    school = np.random.default_rng(1).normal(size=N_GROUPS)[groups]
    features = build(sample(school[:, None]), statistics=("X", "W", "WX"))
    assert features.names == ("x0", "mean of treatment")


def test_products_are_those_of_covariates_and_statistics():
    features = build(sample(), products=True)
    assert features.names[5:] == tuple(
        f"{x} * {mean}" for mean in ("mean of x0", "mean of x1", "mean of treatment") for x in ("x0", "x1")
    )
    np.testing.assert_allclose(features.values[:, 5], features.values[:, 0] * features.values[:, 2])


@pytest.mark.parametrize("encoder", ["low_rank", "latent_state", MeansEncoder("any")], ids=str)
def test_any_encoder_without_a_target_describes_the_covariates_and_the_share_is_added_as_it_is(encoder):
    data = sample()
    features = build(data, encoder=encoder)
    assert features.names[-1] == "mean of treatment"
    np.testing.assert_allclose(features.values[:, -1], means(data, data.treatment))
    described = features.values[:, 2:-1]
    assert described.shape[1] > 0
    first = np.unique(data.groups, return_index=True)[1]
    np.testing.assert_array_equal(described, described[first][data.groups])


def test_an_encoder_that_learns_from_outcomes_is_refused():
    for encoder in ("random_intercept", FisherEncoder("any")):
        with pytest.raises(EffectDataError, match="learns from the target, and an effect must not adjust"):
            build(sample(), encoder=encoder)


def test_only_encoders_of_this_library_are_taken():
    with pytest.raises(EffectDataError, match="encoder is a dict"):
        build(sample(), encoder={})


def test_nulls_become_the_median_with_an_indicator_for_models_that_take_none():
    x = sample().covariates.copy()
    x[::7, 0] = np.nan
    data = sample(x)
    features = build(data)
    assert features.names[:3] == ("x0", "x1", "x0 is null")
    assert features.filled == ("x0",)
    assert features.n_covariates == 3
    assert set(features.values[::7, 0]) == {np.nanmedian(x[:, 0])}
    assert features.values[:, 2].tolist() == np.isnan(x[:, 0]).tolist()
    assert np.isfinite(features.values).all()
    as_they_are = build(data, without_nulls=False)
    assert as_they_are.filled == ()
    np.testing.assert_array_equal(as_they_are.values[:, :2], x)


def test_a_covariate_that_is_null_in_a_whole_group_has_a_mean_that_is_null():
    x = sample().covariates.copy()
    x[:PER_GROUP, 0] = np.nan
    assert "mean of x0 is null" not in build(sample(x)).names  # the row's own indicator is the same column
    assert np.isnan(build(sample(x), without_nulls=False).values[0, 2])


def test_a_column_of_nulls_only_is_filled_with_zero():
    values, names, filled = fill_nulls(np.full((3, 1), np.nan), ["x"])
    assert names == ["x", "x is null"]
    assert filled == ("x",)
    np.testing.assert_array_equal(values, [[0, 1]] * 3)


def test_with_known_propensities_a_row_does_not_see_its_own_treatment():
    data = replace(sample(), propensity=np.full(N_GROUPS * PER_GROUP, 0.5))
    features = build(data, statistics=("X", "W", "WX"))
    others = (means(data, data.treatment) * PER_GROUP - data.treatment) / (PER_GROUP - 1)
    np.testing.assert_allclose(features.values[:, 4], others)
    for i in (0, 57):
        changed = replace(data, treatment=data.treatment.copy())
        changed.treatment[i] = 1 - changed.treatment[i]
        found = build(changed, statistics=("X", "W", "WX")).values
        np.testing.assert_allclose(found[i], features.values[i], atol=1e-12)
        assert np.abs(found - features.values).max() > 0.01


def test_a_row_alone_in_its_group_gets_the_share_of_all_other_rows():
    data = replace(sample(per_group=1), propensity=np.full(N_GROUPS, 0.5))
    share = build(data).values[:, -1]
    np.testing.assert_allclose(share, (data.treatment.sum() - data.treatment) / (N_GROUPS - 1))


def test_outcomes_never_take_part():
    data, other = sample(), sample()
    other.outcome[:] = np.random.default_rng(9).permutation(other.outcome)
    for encoder in ("means", "low_rank"):
        np.testing.assert_array_equal(build(data, encoder).values, build(other, encoder).values)


def test_an_indicator_of_one_row_in_a_group_would_reveal_its_treatment():
    year = np.tile(np.eye(PER_GROUP), (N_GROUPS, 1))[:, :1]
    assert treatment_marks_rows(sample(year)) == "covariate 'x0' marks at most one row of a group"
    assert treatment_marks_rows(sample(1 - year)) is None


def test_groups_with_fewer_than_two_rows_for_each_mean_are_too_small():
    assert treatment_marks_rows(sample(per_group=6)) is None
    assert treatment_marks_rows(sample(per_group=5)) == "the median group has 5 rows, fewer than 6"
