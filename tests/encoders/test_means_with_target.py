"""Means with the target as one more covariate: shrunk as by a loop over the rows, and cross-fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.model_selection import KFold
from sklearn.preprocessing import TargetEncoder

from sufrep import GroupMoments, MeansEncoder, errors
from sufrep.solvers.shrinkage import estimate_means_prior, shrink_means


def shops(seed: int, n: int = 60, n_levels: int = 6) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows, a target in which the shops differ, and weights."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, n_levels, n)
    X = pd.DataFrame({"x": rng.normal(size=n) + code, "z": rng.normal(size=n)})
    y = 2 * rng.normal(size=n_levels)[code] + rng.normal(size=n) + 10
    return X.assign(shop=[f"shop {c}" for c in code]), y, rng.choice([0.5, 1.0, 2.0, 3.0], n)


def naive_shrunken(level: list[Any], y: Any, weights: Any) -> tuple[dict[Any, float], float]:
    """m + τ/(τ + w/n)(ȳ − m) by loops, with τ and w by the method of moments; also m."""
    total = sum(weights)
    m = sum(w * v for v, w in zip(y, weights, strict=True)) / total
    size = {own: sum(w for g, w in zip(level, weights, strict=True) if g == own) for own in set(level)}
    mean = {
        own: sum(w * v for g, v, w in zip(level, y, weights, strict=True) if g == own) / size[own]
        for own in size
    }
    squares = sum(w * (v - mean[g]) ** 2 for g, v, w in zip(level, y, weights, strict=True))
    noise = squares / sum(max(n - 1, 0) for n in size.values())
    spread = sum(n * (mean[own] - m) ** 2 for own, n in size.items())
    between = (spread - (len(size) - 1) * noise) / (total - sum(n**2 for n in size.values()) / total)
    signal = max(between, 0.0)
    return {own: m + signal / (signal + noise / n) * (mean[own] - m) for own, n in size.items()}, m


@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans())
def test_the_mean_of_the_target_is_that_of_a_loop_over_the_rows(seed, weighted):
    X, y, weights = shops(seed)
    own = weights if weighted else np.ones(len(y))
    encoder = MeansEncoder("shop", use_target=True, covariates=[])
    encoder.fit(X, y, sample_weight=weights if weighted else None)
    expected, center = naive_shrunken(X["shop"].tolist(), y, own)
    table = encoder.representations_["shop"]
    np.testing.assert_allclose(table.values.ravel(), [expected[level] for level in table.levels], rtol=1e-6)
    np.testing.assert_allclose(table.prior, [center], rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_row_gets_the_mean_of_the_target_outside_its_fold(seed, weighted):
    X, y, weights = shops(seed)
    X.loc[X.index[:3], "shop"] = None
    level = [None if name is None or name != name else name for name in X["shop"].tolist()]
    own = weights if weighted else np.ones(len(y))
    folds = list(KFold(3, shuffle=True, random_state=seed).split(X))
    encoder = MeansEncoder(
        "shop", use_target=True, covariates=[], remainder="drop", missing="prior", cv=folds
    )
    found = encoder.fit_transform(X, y, sample_weight=weights if weighted else None).ravel()
    for train, test in folds:
        outside = [i for i in train if level[i] is not None]
        expected, center = naive_shrunken([level[i] for i in outside], y[outside], own[outside])
        for i in test:
            assert found[i] == pytest.approx(expected.get(level[i], center), rel=1e-6)


def test_levels_of_one_size_are_shrunk_as_james_and_stein_say():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(8, 5)) + rng.normal(size=(8, 1))
    X = np.repeat([f"level {g}" for g in range(8)], 5).astype(object)[:, None]
    table = MeansEncoder(0, use_target=True, covariates=[]).fit(X, y.ravel()).representations_["x0"]
    between = 5 * y.mean(axis=1).var(ddof=1)
    within = y.var(axis=1, ddof=1).mean()
    assert between > within
    expected = y.mean() + (1 - within / between) * (y.mean(axis=1) - y.mean())
    np.testing.assert_allclose(table.values.ravel(), expected, rtol=1e-7)


def test_levels_that_differ_less_than_noise_would_share_the_overall_mean():
    X = np.array(list("aabb"), dtype=object)[:, None]
    encoder = MeansEncoder(0, use_target=True, covariates=[]).fit(X, [0.5, 9.5, 0.0, 10.5])
    np.testing.assert_allclose(encoder.representations_["x0"].values.ravel(), [5.125, 5.125])


def test_a_level_of_one_row_is_drawn_further_than_one_of_many():
    rng = np.random.default_rng(1)
    size = np.array([1, 100] * 10)
    code = np.repeat(np.arange(20), size)
    y = 3 * rng.normal(size=20)[code] + 2 * rng.normal(size=len(code))
    frame = pd.DataFrame({"g": [f"{c:02}" for c in code], "y": y})
    raw = frame.groupby("g")["y"].mean().to_numpy()
    found = MeansEncoder("g", use_target=True, covariates=[]).fit(frame[["g"]], y).representations_["g"]
    kept = (found.values.ravel() - y.mean()) / (raw - y.mean())
    assert kept[size == 1].max() < 0.95 < kept[size == 100].min() < kept.max() < 1


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_the_covariates_own_means_do_not_change_by_the_target(leave_one_out):
    X, y, weights = shops(4)
    options = {"leave_one_out": leave_one_out, "remainder": "drop"}
    without = MeansEncoder("shop", **options)
    with_target = MeansEncoder("shop", use_target=True, **options)
    crossed = with_target.fit_transform(X, y, sample_weight=weights)
    np.testing.assert_allclose(crossed[:, :2], without.fit_transform(X, sample_weight=weights), rtol=1e-12)
    np.testing.assert_allclose(with_target.transform(X)[:, :2], without.transform(X), rtol=1e-12)
    alone = MeansEncoder("shop", use_target=True, covariates=[], **options)
    np.testing.assert_allclose(crossed[:, 2:], alone.fit_transform(X, y, sample_weight=weights), rtol=1e-12)


@pytest.mark.parametrize("kind", ["continuous", "multiclass"])
def test_with_shrinkage_covariates_and_target_are_shrunk_together(kind):
    X, y, weights = shops(5)
    wanted = y[:, None]
    if kind == "multiclass":
        y = np.digitize(y, [9, 11])
        wanted = (y[:, None] == [0, 1, 2]).astype(float)
    joint = np.column_stack([X[["x", "z"]], wanted])
    folds = list(KFold(4).split(X))
    encoder = MeansEncoder("shop", use_target=True, shrinkage="auto", remainder="drop", cv=folds)
    found = encoder.fit_transform(X, y, sample_weight=weights)
    for rows, places, values in [
        *((train, test, found[test]) for train, test in folds),
        (np.arange(60), np.arange(60), encoder.transform(X)),
    ]:
        moments = GroupMoments.from_rows(X["shop"][rows].tolist(), joint[rows], weights=weights[rows])
        shrunk = shrink_means(moments, estimate_means_prior(moments))
        position = {level: row for row, level in enumerate(moments.levels)}
        expected = shrunk[[position[level] for level in X["shop"][places]]]
        np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-9)


def test_columns_are_named_after_the_target_and_its_classes():
    X, y, _ = shops(6)
    names = {
        "shop_mean_target": y,
        "shop_mean_target=yes": np.where(y > 10, "yes", "no"),
        "shop_mean_target=1": (y > 10).astype(int),
        "shop_mean_target=low shop_mean_target=mid shop_mean_target=top": np.array(["low", "mid", "top"])[
            np.digitize(y, [9, 11])
        ],
    }
    for expected, target in names.items():
        encoder = MeansEncoder("shop", use_target=True, remainder="drop").fit(X, target)
        found = encoder.get_feature_names_out().tolist()
        assert found[:2] == ["shop_mean_x", "shop_mean_z"]
        assert " ".join(found[2:]) == expected
        assert encoder.n_targets_ == (1 if target is y else len(set(target)))


def test_shares_of_all_classes_add_up_and_of_two_the_second_is_given():
    X, y, _ = shops(7, n=200)
    options: dict[str, Any] = {"use_target": True, "covariates": [], "remainder": "drop"}
    for shrinkage in (None, "auto"):
        options["shrinkage"] = shrinkage
        three = MeansEncoder("shop", **options).fit(X, np.digitize(y, [9, 11])).transform(X)
        assert three.shape == (200, 3)
        if shrinkage:  # shrunk together, they stay shares
            np.testing.assert_allclose(three.sum(axis=1), 1.0, atol=1e-6)
        two = MeansEncoder("shop", **options).fit(X, y > 10).transform(X)
        both = MeansEncoder("shop", target_type="continuous", **options).fit(X, (y > 10) * 1.0).transform(X)
        assert two.shape == (200, 1)
        np.testing.assert_allclose(two, both, rtol=1e-6)


def test_levels_stand_in_the_order_that_the_target_encoder_of_scikit_learn_gives_them():
    X, y, _ = shops(8, n=6000, n_levels=60)
    X, y = X.sort_values("shop", ignore_index=True), y[np.argsort(X["shop"], kind="stable")]
    peer = TargetEncoder(smooth="auto", target_type="continuous").fit(X[["shop"]], y)
    encoder = MeansEncoder("shop", use_target=True, covariates=[], remainder="drop").fit(X, y)
    ours, theirs = encoder.transform(X).ravel(), peer.transform(X[["shop"]]).ravel()
    assert spearmanr(ours, theirs).statistic > 0.999
    np.testing.assert_allclose(ours, theirs, atol=0.05)


def test_units_and_origin_of_the_target_carry_over():
    X, y, weights = shops(9)
    encoder = MeansEncoder("shop", use_target=True, remainder="drop")
    one, other = (encoder.fit_transform(X, some, sample_weight=weights) for some in (y, 100 * y - 7))
    np.testing.assert_allclose(other[:, 2], 100 * one[:, 2] - 7, rtol=1e-8)
    np.testing.assert_array_equal(other[:, :2], one[:, :2])


@pytest.mark.parametrize("shrinkage", [None, "auto"])
def test_a_weight_of_two_is_a_row_that_came_twice(shrinkage):
    X, y, _ = shops(10)
    times = np.random.default_rng(10).integers(0, 3, len(y))
    place = np.repeat(np.arange(len(y)), times)
    encoder = MeansEncoder("shop", use_target=True, shrinkage=shrinkage, remainder="drop")
    weighted = encoder.fit(X, y, sample_weight=times).transform(X)
    repeated = encoder.fit(X.iloc[place], y[place]).transform(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-8)


@pytest.mark.parametrize("shrinkage", [None, "auto"])
def test_a_constant_target_is_the_same_for_all(shrinkage):
    X, y, _ = shops(11)
    encoder = MeansEncoder(
        "shop", use_target=True, shrinkage=shrinkage, target_type="continuous", remainder="drop"
    )
    np.testing.assert_allclose(encoder.fit_transform(X, np.full(len(y), 4.5))[:, 2], 4.5, rtol=1e-9)


def test_with_hardly_any_signal_the_mean_of_the_target_hardly_predicts_it_in_training():
    rng = np.random.default_rng(12)
    X = np.array([f"level {i % 200}" for i in range(1000)], dtype=object)[:, None]
    y = rng.normal(size=1000) + 0.2 * rng.normal(size=200)[np.arange(1000) % 200]
    encoder = MeansEncoder(0, use_target=True, covariates=[])
    honest = np.corrcoef(encoder.fit_transform(X, y).ravel().astype(float), y)[0, 1]
    leaky = np.corrcoef(encoder.transform(X).ravel().astype(float), y)[0, 1]
    assert leaky > 0.4
    assert honest < 0.15


def test_covariates_must_be_renounced_by_name():
    X, y, _ = shops(13)
    with pytest.raises(errors.NoCovariateError, match="none of which is a numeric covariate"):
        MeansEncoder("shop", use_target=True).fit(X[["shop"]], y)
    found = MeansEncoder("shop", use_target=True, covariates=[]).fit(X[["shop"]], y)
    assert found.get_feature_names_out().tolist() == ["shop_mean_target"]


def test_a_covariate_that_is_called_target_is_told():
    X, y, _ = shops(14)
    with pytest.raises(errors.ClashingNamesError, match="'shop_mean_target'"):
        MeansEncoder("shop", use_target=True).fit(X.rename(columns={"x": "target"}), y)
