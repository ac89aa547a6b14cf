"""Low rank and sparse low rank: the numbers of R, numpy and scipy, and freedom from units."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from sufrep import LowRankEncoder, MeansEncoder, SparseLowRankEncoder, errors, simulate
from sufrep.encoders._low_rank import means_matrix

# Every example fits several encoders.
few = settings(max_examples=settings.default.max_examples // 5)


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


# With the target.


def shops_with_target(
    seed: int, n: int = 300, n_levels: int = 8, p: int = 4
) -> tuple[pd.DataFrame, np.ndarray]:
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


def naive_vectors(
    X: pd.DataFrame, y: np.ndarray, whole: pd.DataFrame, k: int, *, standardize: bool
) -> tuple[pd.DataFrame, np.ndarray]:
    """Coordinates of the low-rank means on the directions of all rows, and the mean of the target."""

    def covariates(part: pd.DataFrame) -> np.ndarray:
        return part.drop(columns="shop").to_numpy()

    plain = naive_matrix(whole, covariates(whole), standardize=False)
    matrix = naive_matrix(whole, covariates(whole), standardize=standardize)
    singular, right = np.linalg.svd(matrix)[1:]
    directions = right[:k].T / singular[:k]
    directions *= np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(k)])
    unit = naive_matrix(X, y[:, None], standardize=False) / naive_matrix(
        X, y[:, None], standardize=standardize
    )
    mean = naive_matrix(X, shrunken(X, y)[:, None], standardize=False)
    own = naive_matrix(X, covariates(X), standardize=False) / (plain / matrix)[0]
    left, singular, right = np.linalg.svd(np.column_stack([own, mean / unit]), full_matrices=False)
    low_rank = sum(np.outer(left[:, j] * singular[j], right[j]) for j in range(k + 1))
    values = np.column_stack([low_rank[:, :-1] @ directions, low_rank[:, -1] * unit[0]])
    return pd.DataFrame(values, index=sorted(X["shop"].unique())), singular


@given(seed=st.integers(0, 2**32 - 1), standardize=st.booleans(), k=st.integers(1, 3))
def test_vectors_with_the_target_are_those_of_numpy(seed, standardize, k):
    X, y = shops_with_target(seed)
    expected, singular = naive_vectors(X, y, X, k, standardize=standardize)
    encoder = LowRankEncoder("shop", n_components=k, standardize=standardize, use_target=True).fit(X, y)
    table = encoder.representations_["shop"]
    assert table.columns == (*(f"shop_u{j + 1}" for j in range(k)), "shop_u_target")
    np.testing.assert_allclose(table.values, expected, atol=1e-5)
    np.testing.assert_allclose(encoder.singular_values_["shop"], singular, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_a_row_gets_the_vector_that_is_learnt_outside_its_fold(seed):
    X, y = shops_with_target(seed, n=120)
    X.loc[:2, "shop"] = "rare"  # a level that one fold has for itself
    folds = list(KFold(3).split(X))
    encoder = LowRankEncoder("shop", n_components=2, use_target=True, remainder="drop", cv=folds)
    found = encoder.fit_transform(X, y)
    for train, test in folds:
        expected, _ = naive_vectors(X.iloc[train], y[train], X, 2, standardize=True)
        weight = X.iloc[train]["shop"].value_counts()[expected.index]
        prior = np.average(expected, axis=0, weights=weight)
        for i in test:
            level = X["shop"].iloc[i]
            vector = expected.loc[level] if level in expected.index else prior
            np.testing.assert_allclose(found[i], vector, atol=1e-6)


@pytest.mark.parametrize("shrinkage", [None, "auto"])
@pytest.mark.parametrize("seed", range(2))
def test_the_target_adds_one_column_and_changes_no_direction(seed, shrinkage):
    drawn = simulate("latent_linear", n=1500, n_latent=2 + seed, levels_per_latent=8, seed=seed)
    X = pd.DataFrame(drawn.columns())
    without = LowRankEncoder("group", shrinkage=shrinkage).fit(X)
    with_target = LowRankEncoder("group", shrinkage=shrinkage, use_target=True).fit(X, drawn.y)
    table, plain = with_target.representations_["group"], without.representations_["group"]
    assert table.columns == (*plain.columns, "group_u_target")
    assert len(plain.columns) == 2 + seed
    matrix = means_matrix(without.moments_["group"], standardize=True, shrinkage=shrinkage)
    np.testing.assert_allclose(matrix @ with_target.directions_["group"], plain.values, atol=1e-10)
    assert np.abs(table.values[:, :-1] - plain.values).max() > 1e-3


@pytest.mark.parametrize("shrinkage", [None, "auto"])
@pytest.mark.parametrize("kind", ["continuous", "binary", "multiclass"])
def test_the_vectors_of_all_folds_mean_the_same(kind, shrinkage):
    drawn = simulate("latent_linear", n=3000, n_latent=3, levels_per_latent=8, seed=3)
    X, edges = pd.DataFrame(drawn.columns()), {"binary": [0.0], "multiclass": [-1.0, 1.0]}
    y = np.digitize(drawn.y, edges[kind]) if kind in edges else drawn.y
    encoder = LowRankEncoder("group", use_target=True, shrinkage=shrinkage, remainder="drop")
    crossed, full = encoder.fit_transform(X, y), encoder.transform(X)
    assert encoder.target_type_ == kind
    n_columns = 6 if kind == "multiclass" else 4
    assert crossed.shape == full.shape == (3000, n_columns)
    for j in range(n_columns):
        assert np.corrcoef(crossed[:, j], full[:, j])[0, 1] > 0.9


def test_states_that_differ_in_the_target_only_are_separated():
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
    # The target has a component of its own, and the number of the others is chosen without it.
    assert LowRankEncoder("g", use_target=True).fit(X, y).representations_["g"].values.shape[1] == 2
    assert LowRankEncoder("g").fit(X).representations_["g"].values.shape[1] == 1


def test_units_of_the_target_do_not_matter_when_standardised():
    X, y = shops_with_target(5)
    encoder = LowRankEncoder("shop", n_components=2, use_target=True, remainder="drop")
    one, other = (encoder.fit_transform(X, some) for some in (y, 1e4 * y))
    np.testing.assert_allclose(other / [1, 1, 1e4], one, atol=1e-7)


def test_a_constant_target_adds_nothing_to_the_covariates():
    X, _ = shops_with_target(6)
    encoder = LowRankEncoder("shop", n_components=2, use_target=True, target_type="continuous")
    found = encoder.fit(X, np.zeros(len(X))).representations_["shop"].values
    expected = LowRankEncoder("shop", n_components=2).fit(X).representations_["shop"].values
    np.testing.assert_allclose(found, np.column_stack([expected, np.zeros(len(found))]), atol=1e-9)


def test_rare_levels_share_a_vector_in_and_out_of_the_folds():
    X, y = shops_with_target(7, n=100)
    X.loc[[0, 40, 80], "shop"] = ["rare 1", "rare 2", "rare 3"]
    options = {"n_components": 2, "use_target": True, "min_frequency": 3, "remainder": "drop"}
    encoder = LowRankEncoder("shop", cv=list(KFold(5).split(X)), **options)
    crossed = encoder.fit_transform(X, y)
    full = encoder.transform(X)
    np.testing.assert_array_equal(full[[0, 0]], full[[40, 80]])
    assert np.corrcoef(crossed.ravel(), full.ravel())[0, 1] > 0.9


def test_low_rank_of_the_target_alone_is_refused():
    X, y = shops_with_target(8)
    for k in (1, "auto"):
        with pytest.raises(errors.NoCovariateError, match="none of which is a numeric covariate"):
            LowRankEncoder("shop", covariates=[], n_components=k, use_target=True).fit(X, y)
    with pytest.raises(errors.TooManyComponentsError, match="n_components=5"):
        LowRankEncoder("shop", n_components=5, use_target=True).fit(X, y)


# Sparse low rank.


def sparse_shops(seed: int, n: int = 300, n_levels: int = 12, p: int = 6) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    level = np.append(np.arange(n_levels), rng.integers(0, n_levels, n - n_levels))
    centre = rng.normal(size=(n_levels, p)) * np.linspace(4, 1, p)
    rows = pd.DataFrame(rng.normal(size=(n, p)) + centre[level], columns=[f"x{j}" for j in range(p)])
    return rows.assign(shop=[f"shop {code:02}" for code in level])


def fit_sparse(rows: pd.DataFrame, **parameters: object) -> SparseLowRankEncoder:
    return SparseLowRankEncoder("shop", **parameters).fit(rows)


def scaled_means(rows: pd.DataFrame) -> np.ndarray:
    """The means over the pooled standard deviation within levels; (n_levels, p)."""
    covariates = rows.drop(columns="shop")
    within = covariates - covariates.groupby(rows["shop"]).transform("mean")
    scale = np.sqrt((within**2).sum() / (len(rows) - rows["shop"].nunique()))
    return (covariates.groupby(rows["shop"]).mean() / scale).to_numpy()


@pytest.mark.parametrize("center", [True, False])
def test_without_penalties_the_vectors_are_principal_components(center):
    rows = sparse_shops(0)
    means = scaled_means(rows)
    means = means - means.mean(axis=0) * center
    _, _, right = np.linalg.svd(means, full_matrices=False)
    found = (
        fit_sparse(rows, n_components=3, alpha=0.0, ridge=0.0, center=center).representations_["shop"].values
    )
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
    rows = sparse_shops(seed)
    encoder = fit_sparse(rows, n_components=3, alpha=alpha, standardize=standardize, center=center)
    means = MeansEncoder("shop").fit(rows).representations_["shop"].values
    means = scaled_means(rows) if standardize else means
    means = means - means.mean(axis=0) * center
    loadings = encoder.loadings_["shop"]
    assert loadings.shape == (6, 3)
    np.testing.assert_allclose(encoder.representations_["shop"].values, means @ loadings, atol=1e-9)


def test_covariates_far_from_zero_leave_components_only_where_the_means_are_centred():
    rows = sparse_shops(0)
    covariates = [name for name in rows.columns if name != "shop"]
    rows[covariates] += 1000.0
    used = [
        fit_sparse(rows, n_components=3, alpha=0.001, center=center).loadings_["shop"].any(axis=0).sum()
        for center in (True, False)
    ]
    assert used == [3, 1]


def test_an_alpha_of_one_zeroes_everything():
    encoder = fit_sparse(sparse_shops(1), n_components=4, alpha=1.0)
    np.testing.assert_array_equal(encoder.loadings_["shop"], 0.0)
    np.testing.assert_array_equal(encoder.representations_["shop"].values, 0.0)
    np.testing.assert_array_equal(encoder.representations_["shop"].prior, 0.0)


def test_more_alpha_leaves_fewer_loadings():
    rows = sparse_shops(2)
    left = [
        np.count_nonzero(fit_sparse(rows, n_components=3, alpha=alpha).loadings_["shop"])
        for alpha in (0.0, 0.05, 0.3, 1.0)
    ]
    assert left == sorted(left, reverse=True)
    assert left[0] == 18
    assert left[1] < 18
    assert left[-1] == 0


@few
@given(seed=st.integers(0, 2**32 - 1), units=st.lists(st.floats(1e-4, 1e4), min_size=6, max_size=6))
def test_units_do_not_matter_to_sparse_vectors_when_standardised(seed, units):
    rows = sparse_shops(seed)
    others = rows.assign(**{f"x{j}": rows[f"x{j}"] * unit for j, unit in enumerate(units)})
    one, other = (fit_sparse(frame, n_components=2, alpha=0.05) for frame in (rows, others))
    np.testing.assert_allclose(
        one.representations_["shop"].values, other.representations_["shop"].values, atol=1e-3
    )


def test_auto_takes_as_many_components_as_low_rank_does():
    rows = sparse_shops(3)
    k = LowRankEncoder("shop").fit(rows).representations_["shop"].values.shape[1]
    encoder = fit_sparse(rows)
    assert encoder.get_feature_names_out().tolist()[6:] == [f"shop_sparse{j + 1}" for j in range(k)]


def test_iterations_are_counted_for_each_group():
    rows = sparse_shops(4).assign(other=lambda frame: frame["shop"].str[-1])
    encoder = SparseLowRankEncoder(["shop", "other"], n_components=2).fit(rows)
    assert set(encoder.iterations_) == {"shop", "other"}
    assert encoder.n_iter_ == max(encoder.iterations_.values()) >= 1


def test_too_few_rounds_are_warned_of():
    with pytest.warns(
        ConvergenceWarning, match=r"did not converge in max_iter=1 rounds.*\nHint: raise max_iter"
    ):
        fit_sparse(sparse_shops(5), n_components=3, alpha=0.05, max_iter=1)


def test_more_sparse_components_than_covariates_are_refused():
    with pytest.raises(errors.TooManyComponentsError, match="n_components=7 is more"):
        fit_sparse(sparse_shops(0), n_components=7)


@pytest.mark.parametrize("alpha", [-0.1, 1.1])
def test_alpha_is_a_share(alpha):
    with pytest.raises(ValueError, match=r"'alpha' parameter .* must be a float in the range \[0.0, 1.0\]"):
        fit_sparse(sparse_shops(0), alpha=alpha)


def test_one_level_is_enough():
    encoder = fit_sparse(sparse_shops(6, n=10, n_levels=1), n_components=2)
    assert np.isfinite(encoder.representations_["shop"].values).all()
