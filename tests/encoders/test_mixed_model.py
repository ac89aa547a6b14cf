"""The mixed model: known regressions are found, and EM written out in loops gives the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from sufrep import MixedModelEncoder

# Every example fits several encoders.
few = settings(max_examples=settings.default.max_examples // 5)


def shops(seed: int, n: int = 60, n_levels: int = 5) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows, a target whose level and slopes differ by shop, and weights."""
    rng = np.random.default_rng(seed)
    code = np.append(np.repeat(np.arange(n_levels), 3), rng.integers(0, n_levels, n - 3 * n_levels))
    X = pd.DataFrame({"x": rng.normal(size=n), "z": rng.exponential(size=n)})
    own = rng.normal(size=(n_levels, 2))[code]
    y = 2 * own[:, 0] + (1 + own[:, 1]) * X["x"] - X["z"] + rng.normal(size=n) / 2
    return X.assign(shop=[f"shop {c}" for c in code]), y.to_numpy(), rng.choice([1.0, 2.0, 3.0], n)


def scores_of(encoder: MixedModelEncoder, X: pd.DataFrame) -> np.ndarray:
    """1 and the normal scores of the covariates."""
    columns = [X[name].to_numpy() for name in X.columns if name != "shop"]
    return np.column_stack([np.ones(len(X)), encoder.normal_scores_["shop"].apply(columns)])


def naive_em(
    Z: np.ndarray, level: list[Any], y: np.ndarray, weights: np.ndarray, n_rounds: int, absent: Any = ()
) -> tuple[dict[Any, np.ndarray], np.ndarray]:
    """Coefficients of each level, and of all, by rounds of EM with a loop over the levels.

    β_g ~ N(m, diag τ), y ~ N(zᵀβ_g, σ²). Every level has as many rows as coefficients, so that its own
    regression b_g ~ N(m, V_g), V_g = σ²(Z_gᵀZ_g)⁻¹ + diag τ, is defined; levels that are absent have none.
    """
    names = sorted(set(level))
    rows = {name: np.array([other == name for other in level]) for name in names}
    gram = {g: (Z[inside] * weights[inside, None]).T @ Z[inside] for g, inside in rows.items()}
    own = {
        g: np.linalg.inv(gram[g]) @ (Z[inside].T @ (weights[inside] * y[inside]))
        for g, inside in rows.items()
    }
    first = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
    noise, spread = first, np.full(Z.shape[1], first)
    means, center = {}, np.zeros(Z.shape[1])
    for _ in range(n_rounds):
        certainty = {g: np.linalg.inv(noise * np.linalg.inv(gram[g]) + np.diag(spread)) for g in names}
        total = sum(certainty.values())
        center = np.linalg.inv(total) @ sum(certainty[g] @ own[g] for g in names)
        covariance = {g: np.linalg.inv(gram[g] / noise + np.diag(1 / spread)) for g in names}
        means = {g: covariance[g] @ (gram[g] @ own[g] / noise + center / spread) for g in names}
        before = spread
        squares = [(means[g] - center) ** 2 + np.diag(covariance[g]) for g in names]
        spread = np.mean([*squares, *(before for _ in absent)], axis=0)
        spread = np.maximum(spread, 1e-9 * spread.max())
        residual = 0.0
        for g, inside in rows.items():
            residual += (weights[inside] * (y[inside] - Z[inside] @ means[g]) ** 2).sum()
            residual += np.trace(gram[g] @ covariance[g])
        noise = (residual + first) / (weights.sum() + 1)
        if (np.abs(spread - before) < 0.01 * before).all():
            break
    return means, center


@pytest.mark.parametrize("n_rounds", [1, 3, 20])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_regressions_are_those_of_a_naive_em(seed, weighted, n_rounds, monkeypatch):
    # Not by the name of the module: pytest imports modules with doctests a second time.
    monkeypatch.setitem(MixedModelEncoder._represent.__globals__, "_ROUNDS", n_rounds)
    X, y, weights = shops(seed)
    encoder = MixedModelEncoder("shop").fit(X, y, sample_weight=weights if weighted else None)
    own = weights if weighted else np.ones(len(y))
    expected, center = naive_em(scores_of(encoder, X), X["shop"].tolist(), y, own, n_rounds)
    table = encoder.representations_["shop"]
    np.testing.assert_allclose(table.values, [expected[g] for g in table.levels], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(table.prior, center, rtol=1e-6, atol=1e-6)


def test_a_row_gets_the_prediction_that_is_learnt_outside_its_fold():
    X, y, weights = shops(3, n=80)
    X.loc[[0, 2, 6], "shop"] = "of one fold"
    folds = list(KFold(4).split(X))
    encoder = MixedModelEncoder("shop", remainder="drop", cv=folds)
    found = encoder.fit_transform(X, y, sample_weight=weights).ravel()
    Z = scores_of(encoder, X)
    for train, test in folds:
        level = X["shop"].iloc[train].tolist()
        absent = set(X["shop"]) - set(level)
        expected, center = naive_em(Z[train], level, y[train], weights[train], 20, absent)
        for i in test:
            assert found[i] == pytest.approx(Z[i] @ expected.get(X["shop"][i], center), abs=1e-6)


def test_known_intercepts_and_slopes_are_found():
    rng = np.random.default_rng(5)
    code = np.arange(6000) % 30
    true = np.column_stack([3 + rng.normal(size=30), -1 + 2 * rng.normal(size=30)])
    X = pd.DataFrame({"x": rng.normal(size=6000), "shop": [f"shop {c:02}" for c in code]})
    y = true[code, 0] + true[code, 1] * X["x"] + rng.normal(size=6000)
    table = MixedModelEncoder("shop").fit(X, y).representations_["shop"]
    assert np.abs(table.values - true).max() < 0.35
    np.testing.assert_allclose(table.prior, true.mean(axis=0), atol=0.05)


def test_slopes_in_which_levels_do_not_differ_are_shared():
    rng = np.random.default_rng(6)
    code = np.arange(1200) % 30
    X = pd.DataFrame({"x": rng.normal(size=1200), "z": rng.normal(size=1200)})
    y = 2 * rng.normal(size=30)[code] + 1.5 * X["x"] + rng.normal(size=30)[code] * X["z"]
    X["shop"] = [f"shop {c:02}" for c in code]
    encoder = MixedModelEncoder("shop").fit(X, y + rng.normal(size=1200))
    spread = encoder.representations_["shop"].values.std(axis=0)
    assert spread[1] < 0.05  # 0.16 by regressions of their own
    assert spread[0] > 1.5
    assert spread[2] > 0.7
    assert encoder.representations_["shop"].prior[1] == pytest.approx(1.5, abs=0.1)


def test_a_level_of_one_row_is_drawn_further_than_one_of_many():
    rng = np.random.default_rng(7)
    size = np.array([1, 100] * 10)
    code = np.repeat(np.arange(20), size)
    y = 3 * rng.normal(size=20)[code] + 2 * rng.normal(size=len(code))
    X = pd.DataFrame({"shop": [f"shop {c:02}" for c in code]})
    table = MixedModelEncoder("shop").fit(X, y).representations_["shop"]
    raw = pd.Series(y).groupby(code).mean().to_numpy()
    kept = (table.values.ravel() - table.prior) / (raw - table.prior)
    assert kept[size == 1].max() < 0.95 < kept[size == 100].min() < kept.max() < 1


def test_a_row_gets_the_prediction_at_its_own_covariates():
    X, y, _ = shops(8)
    encoder = MixedModelEncoder("shop", remainder="drop").fit(X, y)
    new = X.iloc[:6].assign(x=[-9.0, 0.0, 9.0, None, 0.5, 0.5])
    new.loc[[4, 5], "shop"] = ["never seen", None]
    found, table = encoder.transform(new).ravel(), encoder.representations_["shop"]
    Z = scores_of(encoder, new)
    for i in range(6):
        level = new["shop"].iloc[i]
        known = table.values[table.levels.tolist().index(level)] if i < 4 else table.prior
        assert found[i] == pytest.approx(Z[i] @ known, rel=1e-12)
    assert Z[3, 1] == 0.0  # a null counts as the median
    assert found[4] != pytest.approx(found[0], abs=0.1)


def test_without_covariates_levels_have_intercepts_only():
    X, y, weights = shops(9)
    empty = MixedModelEncoder("shop", covariates=[], remainder="drop")
    alone = MixedModelEncoder("shop", remainder="drop")
    found = empty.fit_transform(X, y, sample_weight=weights)
    np.testing.assert_array_equal(alone.fit_transform(X[["shop"]], y, sample_weight=weights), found)
    assert empty.representations_["shop"].columns == ("shop_intercept",)
    assert empty.get_feature_names_out().tolist() == ["shop_fit"]
    expected, _ = naive_em(np.ones((len(X), 1)), X["shop"].tolist(), y, weights, 20)
    np.testing.assert_allclose(empty.transform(X).ravel(), [expected[g].item() for g in X["shop"]], rtol=1e-6)


@pytest.mark.parametrize("value", [7.0, np.nan])
def test_a_covariate_that_is_constant_or_null_everywhere_does_nothing(value):
    X, y, _ = shops(10)
    encoder = MixedModelEncoder("shop", remainder="drop")
    found = encoder.fit_transform(X.assign(more=value), y)
    np.testing.assert_allclose(found, encoder.fit_transform(X, y), atol=1e-6)
    slopes = encoder.fit(X.assign(more=value), y).representations_["shop"].values[:, 3]
    np.testing.assert_allclose(slopes, 0.0, atol=1e-9)


@pytest.mark.parametrize("value", [0.0, 5.0])
@pytest.mark.parametrize("n", [60, 20_000])
def test_a_constant_target_is_predicted_everywhere(value, n):
    X, _, _ = shops(11, n=n)
    encoder = MixedModelEncoder("shop", target_type="continuous", remainder="drop", cv=2)
    np.testing.assert_allclose(encoder.fit_transform(X, np.full(n, value)), value, rtol=1e-6)
    np.testing.assert_allclose(encoder.transform(X), value, rtol=1e-6)


def test_a_class_that_no_other_fold_has_is_predicted_nowhere():
    X, _, _ = shops(12, n=20_000)
    y = np.zeros(20_000, dtype=int)
    y[[0, 19_999]] = [1, 2]
    encoder = MixedModelEncoder("shop", remainder="drop", cv=list(KFold(2).split(X)))
    found = encoder.fit_transform(X, y)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[0, 1], 0.0, atol=1e-12)
    np.testing.assert_allclose(found[-1, 2], 0.0, atol=1e-12)


def test_classes_are_predicted_by_their_indicators():
    X, y, weights = shops(13, n=90)
    three, two = np.array(["low", "mid", "top"])[np.digitize(y, [-1.5, 1])], np.where(y > 0, "yes", "no")
    encoder = MixedModelEncoder("shop", remainder="drop")
    many = encoder.fit_transform(X, three, sample_weight=weights)
    assert encoder.get_feature_names_out().tolist() == ["shop_fit_low", "shop_fit_mid", "shop_fit_top"]
    assert encoder.representations_["shop"].columns[3:6] == (
        *("shop_intercept_mid", "shop_slope_mid_x", "shop_slope_mid_z"),
    )
    one = encoder.fit_transform(X, two, sample_weight=weights)
    assert (encoder.target_type_, encoder.get_feature_names_out().tolist()) == ("binary", ["shop_fit"])
    encoder.set_params(target_type="continuous")
    indicators = [two == "yes", *(three == label for label in ("low", "mid", "top"))]
    for found, indicator in zip(np.hstack([one, many]).T, indicators, strict=True):
        expected = encoder.fit_transform(X, indicator.astype(float), sample_weight=weights)
        np.testing.assert_allclose(found, expected.ravel(), atol=1e-12)


def test_a_weight_of_two_is_a_row_that_came_twice():
    X, y, _ = shops(14)
    times = np.random.default_rng(14).integers(0, 3, len(y))
    place = np.repeat(np.arange(len(y)), times)
    encoder = MixedModelEncoder("shop", remainder="drop")
    weighted = encoder.fit(X, y, sample_weight=times).transform(X)
    repeated = encoder.fit(X.iloc[place], y[place]).transform(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


@few
@given(seed=st.integers(0, 2**32 - 1))
def test_units_and_origin_of_the_target_carry_over(seed):
    X, y, _ = shops(seed)
    encoder = MixedModelEncoder("shop", remainder="drop", cv=3)
    one, other = (encoder.fit_transform(X, some) for some in (y, 3 * y + 1))
    np.testing.assert_allclose(other, 3 * one + 1, rtol=1e-6, atol=1e-6)


def test_a_target_far_from_zero_keeps_its_digits():
    X, y, _ = shops(17)
    encoder = MixedModelEncoder("shop", remainder="drop")
    near, far = (encoder.fit_transform(X, y + origin) - origin for origin in (0.0, 1.7e9))
    np.testing.assert_allclose(far, near, atol=1e-5)
