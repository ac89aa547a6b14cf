"""Sparse low rank: between principal components and nothing at all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from sufrep import LowRankEncoder, MeansEncoder, SparseLowRankEncoder, errors

# Every example fits several encoders.
few = settings(max_examples=settings.default.max_examples // 5)


def shops(seed: int, n: int = 300, n_levels: int = 12, p: int = 6) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    level = np.append(np.arange(n_levels), rng.integers(0, n_levels, n - n_levels))
    centre = rng.normal(size=(n_levels, p)) * np.linspace(4, 1, p)
    rows = pd.DataFrame(rng.normal(size=(n, p)) + centre[level], columns=[f"x{j}" for j in range(p)])
    return rows.assign(shop=[f"shop {code:02}" for code in level])


def fit(rows: pd.DataFrame, **parameters: object) -> SparseLowRankEncoder:
    return SparseLowRankEncoder("shop", **parameters).fit(rows)


def scaled_means(rows: pd.DataFrame) -> np.ndarray:
    """The means over the pooled standard deviation within levels; (n_levels, p)."""
    covariates = rows.drop(columns="shop")
    within = covariates - covariates.groupby(rows["shop"]).transform("mean")
    scale = np.sqrt((within**2).sum() / (len(rows) - rows["shop"].nunique()))
    return (covariates.groupby(rows["shop"]).mean() / scale).to_numpy()


@pytest.mark.parametrize("center", [True, False])
def test_without_penalties_the_vectors_are_principal_components(center):
    rows = shops(0)
    means = scaled_means(rows)
    means = means - means.mean(axis=0) * center
    _, _, right = np.linalg.svd(means, full_matrices=False)
    found = fit(rows, n_components=3, alpha=0.0, ridge=0.0, center=center).representations_["shop"].values
    expected = means @ right[:3].T
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-4)


@few
@given(
    seed=st.integers(0, 2**32 - 1),
    alpha=st.sampled_from([0.0, 0.003, 0.01, 0.1, 0.5, 1.0]),
    standardize=st.booleans(),
    center=st.booleans(),
)
def test_the_vectors_are_the_means_times_the_loadings(seed, alpha, standardize, center):
    rows = shops(seed)
    encoder = fit(rows, n_components=3, alpha=alpha, standardize=standardize, center=center)
    means = MeansEncoder("shop").fit(rows).representations_["shop"].values
    means = scaled_means(rows) if standardize else means
    means = means - means.mean(axis=0) * center
    loadings = encoder.loadings_["shop"]
    assert loadings.shape == (6, 3)
    np.testing.assert_allclose(encoder.representations_["shop"].values, means @ loadings, atol=1e-9)


def test_covariates_far_from_zero_leave_components_only_where_the_means_are_centred():
    rows = shops(0)
    covariates = [name for name in rows.columns if name != "shop"]
    rows[covariates] += 1000.0
    used = [
        fit(rows, n_components=3, alpha=0.001, center=center).loadings_["shop"].any(axis=0).sum()
        for center in (True, False)
    ]
    assert used == [3, 1]


def test_an_alpha_of_one_zeroes_everything():
    encoder = fit(shops(1), n_components=4, alpha=1.0)
    np.testing.assert_array_equal(encoder.loadings_["shop"], 0.0)
    np.testing.assert_array_equal(encoder.representations_["shop"].values, 0.0)
    np.testing.assert_array_equal(encoder.representations_["shop"].prior, 0.0)


def test_more_alpha_leaves_fewer_loadings():
    rows = shops(2)
    left = [
        np.count_nonzero(fit(rows, n_components=3, alpha=alpha).loadings_["shop"])
        for alpha in (0.0, 0.05, 0.3, 1.0)
    ]
    assert left == sorted(left, reverse=True)
    assert left[0] == 18
    assert left[1] < 18
    assert left[-1] == 0


@few
@given(seed=st.integers(0, 2**32 - 1), units=st.lists(st.floats(1e-4, 1e4), min_size=6, max_size=6))
def test_units_do_not_matter_when_standardised(seed, units):
    rows = shops(seed)
    others = rows.assign(**{f"x{j}": rows[f"x{j}"] * unit for j, unit in enumerate(units)})
    one, other = (fit(frame, n_components=2, alpha=0.05) for frame in (rows, others))
    np.testing.assert_allclose(
        one.representations_["shop"].values, other.representations_["shop"].values, atol=1e-3
    )


def test_auto_takes_as_many_components_as_low_rank_does():
    rows = shops(3)
    k = LowRankEncoder("shop").fit(rows).representations_["shop"].values.shape[1]
    encoder = fit(rows)
    assert encoder.get_feature_names_out().tolist()[6:] == [f"shop_sparse{j + 1}" for j in range(k)]


def test_iterations_are_counted_for_each_group():
    rows = shops(4).assign(other=lambda frame: frame["shop"].str[-1])
    encoder = SparseLowRankEncoder(["shop", "other"], n_components=2).fit(rows)
    assert set(encoder.iterations_) == {"shop", "other"}
    assert encoder.n_iter_ == max(encoder.iterations_.values()) >= 1


def test_too_few_rounds_are_told():
    with pytest.warns(
        ConvergenceWarning, match=r"did not converge in max_iter=1 rounds.*\nHint: raise max_iter"
    ):
        fit(shops(5), n_components=3, alpha=0.05, max_iter=1)


def test_more_components_than_covariates_are_refused():
    with pytest.raises(errors.TooManyComponentsError, match="n_components=7 is more"):
        fit(shops(0), n_components=7)


@pytest.mark.parametrize("alpha", [-0.1, 1.1])
def test_alpha_is_a_share(alpha):
    with pytest.raises(ValueError, match=r"'alpha' parameter .* must be a float in the range \[0.0, 1.0\]"):
        fit(shops(0), alpha=alpha)


def test_one_level_is_enough():
    encoder = fit(shops(6, n=10, n_levels=1), n_components=2)
    assert np.isfinite(encoder.representations_["shop"].values).all()
