"""Low rank with the target: numpy's vectors in scipy's rotation, the same in every fold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes
from sklearn.model_selection import KFold

from sufrep import LowRankEncoder, MeansEncoder, errors, simulate
from sufrep.encoders._low_rank import rotated


def shops(seed: int, n: int = 300, n_levels: int = 8, p: int = 4) -> tuple[pd.DataFrame, np.ndarray]:
    """Levels with means of their own, and a target in which they differ."""
    rng = np.random.default_rng(seed)
    level = np.append(np.arange(n_levels), rng.integers(0, n_levels, n - n_levels))
    centre = rng.normal(size=(n_levels, p)) * 3 + 1
    X = pd.DataFrame(rng.normal(size=(n, p)) + centre[level], columns=[f"x{j}" for j in range(p)])
    y = 3 * rng.normal(size=n_levels)[level] + rng.normal(size=n)
    return X.assign(shop=[f"shop {code}" for code in level]), y


def naive_matrix(X: pd.DataFrame, columns: np.ndarray, *, standardize: bool) -> np.ndarray:
    """Means by level, divided by the pooled standard deviation within levels; (n_levels, p)."""
    names = sorted(X["shop"].unique())
    inside = [(X["shop"] == name).to_numpy() for name in names]
    means = np.array([columns[rows].mean(axis=0) for rows in inside])
    if not standardize:
        return means
    squares = sum(((columns[rows] - columns[rows].mean(axis=0)) ** 2).sum(axis=0) for rows in inside)
    return means / np.sqrt(squares / (len(X) - len(names)))


def shrunken(X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """The mean of the target in each level's place of every row; see test_means_with_target."""
    encoder = MeansEncoder("shop", use_target=True, covariates=[], remainder="drop")
    return encoder.fit(X, y).transform(X).ravel().astype(float)


@given(seed=st.integers(0, 2**32 - 1), standardize=st.booleans(), k=st.integers(1, 3))
def test_vectors_are_those_of_numpy_in_the_rotation_nearest_to_those_without_the_target(seed, standardize, k):
    X, y = shops(seed)
    covariates = X.drop(columns="shop").to_numpy()
    reference = np.linalg.svd(naive_matrix(X, covariates, standardize=standardize))[0][:, :k]
    plain = LowRankEncoder("shop", n_components=k, standardize=standardize).fit(X)
    reference = reference * np.sign((reference * plain.representations_["shop"].values).sum(axis=0))
    mean = naive_matrix(X, shrunken(X, y)[:, None], standardize=False)
    scale = naive_matrix(X, y[:, None], standardize=False) / naive_matrix(
        X, y[:, None], standardize=standardize
    )
    joint = np.column_stack([naive_matrix(X, covariates, standardize=standardize), mean / scale])
    left, singular, _ = np.linalg.svd(joint, full_matrices=False)
    rotation, _ = orthogonal_procrustes(left[:, :k], reference)
    encoder = LowRankEncoder("shop", n_components=k, standardize=standardize, use_target=True).fit(X, y)
    found = encoder.representations_["shop"].values
    np.testing.assert_allclose(encoder.references_["shop"], reference, atol=1e-7)
    np.testing.assert_allclose(found, left[:, :k] @ rotation, atol=1e-5)
    np.testing.assert_allclose(encoder.singular_values_["shop"], singular, rtol=1e-6)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 4))
def test_no_rotation_is_nearer_to_the_reference(seed, k):
    rng = np.random.default_rng(seed)
    vectors, reference = rng.normal(size=(2, 9, k))
    turn = orthogonal_procrustes(vectors, reference)[0]
    np.testing.assert_allclose(rotated(vectors, reference), vectors @ turn, atol=1e-9)
    other = np.linalg.qr(rng.normal(size=(k, k)))[0]
    distances = [np.linalg.norm(part - reference) for part in (vectors @ turn, vectors @ other)]
    assert distances[0] <= distances[1] + 1e-9


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 4))
def test_vectors_that_are_turned_are_turned_back(seed, k):
    rng = np.random.default_rng(seed)
    vectors, turn = rng.normal(size=(9, k)), np.linalg.qr(rng.normal(size=(k, k)))[0]
    np.testing.assert_allclose(rotated(vectors @ turn, vectors), vectors, atol=1e-9)


def naive_fold(X: pd.DataFrame, y: np.ndarray, train: np.ndarray, reference: pd.DataFrame) -> pd.DataFrame:
    """The vectors outside a fold, on the scale of all levels, in the rotation nearest to the reference."""
    part, own = X.iloc[train], y[train]
    covariates = part.drop(columns="shop").to_numpy()
    scale = naive_matrix(part, own[:, None], standardize=False) / naive_matrix(
        part, own[:, None], standardize=True
    )
    mean = naive_matrix(part, shrunken(part, own)[:, None], standardize=False)
    joint = np.column_stack([naive_matrix(part, covariates, standardize=True), mean / scale])
    levels = sorted(part["shop"].unique())
    vectors = np.linalg.svd(joint, full_matrices=False)[0][:, : reference.shape[1]]
    vectors = vectors * np.sqrt(len(levels) / len(reference))
    turn, _ = orthogonal_procrustes(vectors, reference.loc[levels])
    return pd.DataFrame(vectors @ turn, index=levels)


@pytest.mark.parametrize("seed", range(3))
def test_a_row_gets_the_vector_that_is_learnt_outside_its_fold(seed):
    X, y = shops(seed, n=120)
    X.loc[:2, "shop"] = "rare"  # a level that one fold has for itself
    folds = list(KFold(3).split(X))
    encoder = LowRankEncoder("shop", n_components=2, use_target=True, remainder="drop", cv=folds)
    found = encoder.fit_transform(X, y)
    table = encoder.representations_["shop"]
    reference = pd.DataFrame(encoder.references_["shop"], index=table.levels.tolist())
    for train, test in folds:
        expected = naive_fold(X, y, train, reference)
        weight = X.iloc[train]["shop"].value_counts()[expected.index]
        prior = np.average(expected, axis=0, weights=weight)
        for i in test:
            level = X["shop"].iloc[i]
            vector = expected.loc[level] if level in expected.index else prior
            np.testing.assert_allclose(found[i], vector, atol=1e-6)


@pytest.mark.parametrize("shrinkage", [None, "auto"])
@pytest.mark.parametrize("seed", range(2))
def test_the_target_does_not_change_the_number_of_components(seed, shrinkage):
    drawn = simulate("latent_linear", n=1500, n_latent=2 + seed, levels_per_latent=8, seed=seed)
    X = pd.DataFrame(drawn.columns())
    without = LowRankEncoder("group", shrinkage=shrinkage).fit(X)
    with_target = LowRankEncoder("group", shrinkage=shrinkage, use_target=True).fit(X, drawn.y)
    table, plain = with_target.representations_["group"], without.representations_["group"]
    assert table.columns == plain.columns
    assert len(table.columns) == 2 + seed
    np.testing.assert_allclose(with_target.references_["group"], plain.values, atol=1e-10)
    assert np.abs(table.values - plain.values).max() > 1e-3
    np.testing.assert_allclose(table.values.T @ table.values, np.eye(2 + seed), atol=1e-10)


@pytest.mark.parametrize("shrinkage", [None, "auto"])
@pytest.mark.parametrize("kind", ["continuous", "binary", "multiclass"])
def test_the_vectors_of_all_folds_mean_the_same(kind, shrinkage):
    drawn = simulate("latent_linear", n=3000, n_latent=3, levels_per_latent=8, seed=3)
    X, edges = pd.DataFrame(drawn.columns()), {"binary": [0.0], "multiclass": [-1.0, 1.0]}
    y = np.digitize(drawn.y, edges[kind]) if kind in edges else drawn.y
    encoder = LowRankEncoder("group", use_target=True, shrinkage=shrinkage, remainder="drop")
    crossed, full = encoder.fit_transform(X, y), encoder.transform(X)
    assert encoder.target_type_ == kind
    assert crossed.shape == full.shape == (3000, 3)
    for j in range(3):
        assert np.corrcoef(crossed[:, j], full[:, j])[0, 1] > 0.95


def test_states_that_only_the_target_tells_apart_are_told_apart():
    rng = np.random.default_rng(4)
    code = np.arange(600) % 20
    X = pd.DataFrame({"a": rng.normal(size=600) + 2, "b": rng.normal(size=600) - 1})
    X["g"] = [f"level {c:02}" for c in code]
    effect = rng.normal(size=20)
    y = 5 * effect[code] + rng.normal(size=600)
    found = [
        LowRankEncoder("g", n_components=2, use_target=use).fit(X, y).representations_["g"].values
        for use in (False, True)
    ]
    explained = [
        1 - np.var(effect - basis @ np.linalg.lstsq(basis, effect, rcond=None)[0]) / np.var(effect)
        for basis in (np.column_stack([np.ones(20), values]) for values in found)
    ]
    assert explained[0] < 0.5
    assert explained[1] > 0.95
    # The target would be a component of its own, but their number is chosen without it.
    number = LowRankEncoder("g", use_target=True).fit(X, y).representations_["g"].values.shape[1]
    assert number == LowRankEncoder("g").fit(X).representations_["g"].values.shape[1] == 1


def test_units_of_the_target_do_not_matter_when_standardised():
    X, y = shops(5)
    encoder = LowRankEncoder("shop", n_components=2, use_target=True, remainder="drop")
    one, other = (encoder.fit_transform(X, some) for some in (y, 1e4 * y))
    np.testing.assert_allclose(other, one, atol=1e-7)


def test_a_constant_target_tells_nothing_that_covariates_do_not():
    X, _ = shops(6)
    constant = X.assign(constant=0.0)
    encoder = LowRankEncoder("shop", n_components=2, use_target=True, target_type="continuous")
    found = encoder.fit(X, np.zeros(len(X))).representations_["shop"].values
    expected = LowRankEncoder("shop", n_components=2).fit(constant).representations_["shop"].values
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_rare_levels_share_a_vector_in_and_out_of_the_folds():
    X, y = shops(7, n=100)
    X.loc[[0, 40, 80], "shop"] = ["rare 1", "rare 2", "rare 3"]
    options = {"n_components": 2, "use_target": True, "min_frequency": 3, "remainder": "drop"}
    encoder = LowRankEncoder("shop", cv=list(KFold(5).split(X)), **options)
    crossed = encoder.fit_transform(X, y)
    full = encoder.transform(X)
    np.testing.assert_array_equal(full[[0, 0]], full[[40, 80]])
    assert len(encoder.references_["shop"]) == X["shop"].nunique() - 2
    assert np.corrcoef(crossed.ravel(), full.ravel())[0, 1] > 0.9


def test_the_target_alone_is_no_matrix():
    X, y = shops(8)
    for k in (1, "auto"):
        with pytest.raises(errors.NoCovariateError, match="none of which is a numeric covariate"):
            LowRankEncoder("shop", covariates=[], n_components=k, use_target=True).fit(X, y)
    with pytest.raises(errors.TooManyComponentsError, match="n_components=5"):
        LowRankEncoder("shop", n_components=5, use_target=True).fit(X, y)
