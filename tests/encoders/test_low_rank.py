"""Low rank: R's numbers, numpy's singular vectors, and freedom from units."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep import LowRankEncoder, MeansEncoder, errors


def shops(seed: int, n: int = 200, n_levels: int = 8, p: int = 4) -> pd.DataFrame:
    """Levels with means of their own; no two singular values tie."""
    rng = np.random.default_rng(seed)
    level = np.append(np.arange(n_levels), rng.integers(0, n_levels, n - n_levels))
    centre = rng.normal(size=(n_levels, p)) * 3 + 1
    rows = pd.DataFrame(rng.normal(size=(n, p)) + centre[level], columns=[f"x{j}" for j in range(p)])
    return rows.assign(shop=[f"shop {code}" for code in level])


def table_of(encoder: LowRankEncoder) -> np.ndarray:
    return encoder.representations_["shop"].values


def test_vectors_and_singular_values_are_those_of_r(r_fixtures):
    rows = pd.read_csv(r_fixtures / "input.csv").drop(columns="y")
    expected = pd.read_csv(r_fixtures / "low_rank_3.csv", index_col="level")
    encoder = LowRankEncoder("g", standardize=False, n_components=3).fit(rows)
    table = encoder.representations_["g"]
    assert table.levels.tolist() == expected.index.tolist()
    signs = np.sign((table.values * expected.to_numpy()).sum(axis=0))
    np.testing.assert_allclose(table.values, expected * signs, rtol=0, atol=1e-8)
    singular = pd.read_csv(r_fixtures / "low_rank_singular_values.csv")["d"]
    np.testing.assert_allclose(encoder.singular_values_["g"], singular, rtol=1e-8)


@given(seed=st.integers(0, 2**32 - 1), standardize=st.booleans(), k=st.integers(1, 4))
def test_the_vectors_are_numpys_up_to_sign(seed, standardize, k):
    rows = shops(seed)
    covariates = rows.drop(columns="shop")
    means = covariates.groupby(rows["shop"]).mean().to_numpy()
    if standardize:
        within = covariates - covariates.groupby(rows["shop"]).transform("mean")
        means = means / np.sqrt((within**2).sum() / (len(rows) - 8)).to_numpy()
    left, singular, _ = np.linalg.svd(means, full_matrices=False)
    encoder = LowRankEncoder("shop", n_components=k, standardize=standardize).fit(rows)
    np.testing.assert_allclose(np.abs(table_of(encoder)), np.abs(left[:, :k]), atol=1e-7)
    np.testing.assert_allclose(table_of(encoder).T @ table_of(encoder), np.eye(k), atol=1e-12)
    np.testing.assert_allclose(encoder.singular_values_["shop"], singular, rtol=1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    units=st.lists(st.floats(1e-6, 1e6), min_size=4, max_size=4),
    k=st.sampled_from(["auto", 1, 2, 4]),
)
def test_units_do_not_matter_when_standardised(seed, units, k):
    rows = shops(seed)
    others = rows.assign(**{f"x{j}": rows[f"x{j}"] * unit for j, unit in enumerate(units)})
    one, other = (LowRankEncoder("shop", n_components=k).fit(frame) for frame in (rows, others))
    np.testing.assert_allclose(table_of(one), table_of(other), atol=1e-7)


def test_units_matter_when_not_standardised():
    rows = shops(0)
    others = rows.assign(x0=rows["x0"] * 1000)
    one, other = (
        LowRankEncoder("shop", n_components=1, standardize=False).fit(frame) for frame in (rows, others)
    )
    assert np.abs(table_of(one) - table_of(other)).max() > 0.1


@given(seed=st.integers(0, 2**32 - 1), order=st.permutations(range(4)))
def test_the_order_of_the_covariates_changes_no_subspace(seed, order):
    rows = shops(seed)
    moved = rows[[*(f"x{j}" for j in order), "shop"]]
    one, other = (table_of(LowRankEncoder("shop", n_components=2).fit(frame)) for frame in (rows, moved))
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-7)


def test_all_components_span_what_the_means_span():
    rows = shops(1)
    means = MeansEncoder("shop").fit(rows).representations_["shop"].values
    vectors = table_of(LowRankEncoder("shop", n_components=4).fit(rows))
    np.testing.assert_allclose(vectors @ (vectors.T @ means), means, atol=1e-10)


def test_components_beyond_the_number_of_levels_are_zero():
    rows = shops(2, n=30, n_levels=2)
    encoder = LowRankEncoder("shop", n_components=4).fit(rows)
    assert table_of(encoder).shape == (2, 4)
    np.testing.assert_array_equal(table_of(encoder)[:, 2:], 0.0)
    np.testing.assert_allclose(table_of(encoder)[:, :2].T @ table_of(encoder)[:, :2], np.eye(2), atol=1e-12)


def test_more_components_than_covariates_are_refused():
    with pytest.raises(errors.TooManyComponentsError, match=r"n_components=5 .*\n?.*number, 4"):
        LowRankEncoder("shop", n_components=5).fit(shops(0))


@pytest.mark.parametrize("seed", range(5))
def test_auto_finds_the_number_of_states(seed):
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(3, 10)) * 2
    level = rng.integers(0, 60, 6_000)
    mix = rng.dirichlet(np.full(3, 0.3), size=60)
    state = (rng.random((6_000, 1)) > mix[level].cumsum(axis=1)).sum(axis=1).clip(max=2)
    rows = pd.DataFrame(states[state] + rng.normal(size=(6_000, 10))).rename(columns=str).assign(shop=level)
    encoder = LowRankEncoder("shop").fit(rows)
    assert table_of(encoder).shape == (60, 3)
    assert encoder.get_feature_names_out().tolist()[-3:] == ["shop_u1", "shop_u2", "shop_u3"]


def test_auto_keeps_one_component_where_levels_do_not_differ():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(2_000, 5)), columns=list("abcde")).assign(
        shop=rng.integers(0, 40, 2_000)
    )
    assert table_of(LowRankEncoder("shop").fit(rows)).shape == (40, 1)


def test_one_row_is_enough():
    encoder = LowRankEncoder(0).fit([["a", 3.0, 4.0]])
    np.testing.assert_allclose(encoder.transform([["a", 3.0, 4.0]]), [[3.0, 4.0, 1.0]])


def test_each_group_has_its_own_number_of_components():
    rows = shops(3)
    noise = np.random.default_rng(3).integers(0, 5, len(rows))
    encoder = LowRankEncoder(["shop", "noise"], covariates=["x0", "x1", "x2", "x3"])
    encoder.fit(rows.assign(noise=[f"n{code}" for code in noise]))
    assert set(encoder.singular_values_) == {"shop", "noise"}
    assert encoder.representations_["shop"].values.shape == (8, 4)
    assert encoder.representations_["noise"].values.shape[0] == 5


def test_a_constant_covariate_does_no_harm():
    rows = shops(4).assign(constant=7.0, also=0.0)
    assert np.isfinite(table_of(LowRankEncoder("shop", n_components=6).fit(rows))).all()
