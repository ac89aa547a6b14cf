"""Random intercepts: known ones are found, and a loop over the rows gives the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.model_selection import KFold

from sufrep import MeansEncoder, RandomInterceptEncoder, errors

# Every example fits several encoders.
few = settings(max_examples=settings.default.max_examples // 5)


def shops(seed: int, n: int = 60, n_levels: int = 6) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows with a few nulls, a target that both shop and covariates have a part in, and weights."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, n_levels, n)
    X = pd.DataFrame({"x": rng.normal(size=n), "z": rng.exponential(size=n).round(1)})
    y = 2 * rng.normal(size=n_levels)[code] + 3 * X["x"] - X["z"] + rng.normal(size=n)
    X.loc[rng.random(n) < 0.1, "x"] = None
    return X.assign(shop=[f"shop {c}" for c in code]), y.to_numpy(), rng.choice([1.0, 2.0, 3.0], n)


def naive_scores(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Φ⁻¹ of the share of rows below, ties in the middle; 0 for nulls and for a constant."""
    seen = ~np.isnan(values)
    if len(set(values[seen])) < 2:
        return np.zeros(len(values))
    found = np.zeros(len(values))
    for i in np.flatnonzero(seen):
        below = weights[seen & (values < values[i])].sum() + weights[seen & (values == values[i])].sum() / 2
        found[i] = norm.ppf(below / weights[seen].sum())
    return found


def naive_residuals(columns: list[np.ndarray], y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What a ridge regression on the scores and their positive parts leaves, by sums over the rows."""
    scores = [naive_scores(np.asarray(column, dtype=float), weights) for column in columns]
    basis = [[1.0, *row, *(max(value, 0.0) for value in row)] for row in zip(*scores, strict=True)]
    basis = basis or [[1.0] for _ in y]
    gram = np.diag([1e-9, *[1.0] * (len(basis[0]) - 1)])
    right = np.zeros(len(basis[0]))
    for row, value, weight in zip(basis, y, weights, strict=True):
        gram += weight * np.outer(row, row)
        right += weight * value * np.array(row)
    coefficients = np.linalg.inv(gram) @ right
    return np.array([value - np.dot(row, coefficients) for row, value in zip(basis, y, strict=True)])


def naive_intercepts(
    level: list[Any], columns: list[np.ndarray], y: np.ndarray, weights: np.ndarray
) -> tuple[dict[Any, float], float]:
    """m + τ/(τ + w/n)(r̄ − m) of the residuals of each level, and m."""
    residual = naive_residuals(columns, y, weights)
    inside = {own: np.array([other == own for other in level]) for own in set(level)}
    size = {own: weights[rows].sum() for own, rows in inside.items()}
    mean = {own: (weights * residual)[rows].sum() / size[own] for own, rows in inside.items()}
    m = (weights * residual).sum() / weights.sum()
    squares = sum((weights[rows] * (residual[rows] - mean[own]) ** 2).sum() for own, rows in inside.items())
    noise = squares / (weights.sum() - len(size))
    spread = sum(n * (mean[own] - m) ** 2 for own, n in size.items()) - (len(size) - 1) * noise
    signal = max(spread / (weights.sum() - sum(n**2 for n in size.values()) / weights.sum()), 0.0)
    return {own: m + signal / (signal + noise / n) * (mean[own] - m) for own, n in size.items()}, m


def table_of(encoder: RandomInterceptEncoder) -> dict[Any, float]:
    table = encoder.representations_["shop"]
    return dict(zip(table.levels.tolist(), table.values.ravel().tolist(), strict=True))


@few
@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans())
def test_intercepts_are_those_of_a_loop_over_the_rows(seed, weighted):
    X, y, weights = shops(seed)
    encoder = RandomInterceptEncoder("shop").fit(X, y, sample_weight=weights if weighted else None)
    own = weights if weighted else np.ones(len(y))
    expected, center = naive_intercepts(X["shop"].tolist(), [X["x"], X["z"]], y, own)
    assert table_of(encoder) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(encoder.representations_["shop"].prior, center, atol=1e-9)


def test_a_row_gets_the_intercept_that_is_learnt_outside_its_fold():
    X, y, weights = shops(1)
    X.loc[:2, "shop"] = "of one fold"
    folds = list(KFold(4).split(X))
    encoder = RandomInterceptEncoder("shop", remainder="drop", cv=folds)
    found = encoder.fit_transform(X, y, sample_weight=weights).ravel()
    for train, test in folds:
        part = X.iloc[train]
        columns = [part["x"].to_numpy(), part["z"].to_numpy()]
        expected, center = naive_intercepts(part["shop"].tolist(), columns, y[train], weights[train])
        for i in test:
            assert found[i] == pytest.approx(expected.get(X["shop"][i], center), rel=1e-6, abs=1e-6)


def test_known_intercepts_are_found():
    rng = np.random.default_rng(2)
    code = np.arange(4000) % 20
    effect = rng.normal(size=20)
    X = pd.DataFrame({"x": rng.exponential(size=4000), "shop": [f"shop {c:02}" for c in code]})
    y = effect[code] + 5 * np.log(X["x"]) + rng.normal(size=4000)
    found = np.array(list(table_of(RandomInterceptEncoder("shop").fit(X, y)).values()))
    raw = pd.Series(y).groupby(code).mean().to_numpy()
    assert np.corrcoef(found, effect)[0, 1] > 0.98
    assert ((found - effect + effect.mean()) ** 2).mean() < 0.5 * np.var(raw - effect)


def test_a_level_of_one_row_is_drawn_further_than_one_of_many():
    rng = np.random.default_rng(3)
    size = np.array([1, 100] * 10)
    code = np.repeat(np.arange(20), size)
    y = 3 * rng.normal(size=20)[code] + 2 * rng.normal(size=len(code))
    X = pd.DataFrame({"x": rng.normal(size=len(code)), "shop": [f"shop {c:02}" for c in code]})
    found = RandomInterceptEncoder("shop").fit(X, y).representations_["shop"].values.ravel()
    residual = naive_residuals([X["x"].to_numpy()], y, np.ones(len(y)))
    kept = found / pd.Series(residual).groupby(code).mean().to_numpy()
    assert kept[size == 1].max() < 0.95 < kept[size == 100].min() < kept.max() < 1


def test_without_covariates_intercepts_are_shrunken_means_about_the_overall_one():
    X, y, weights = shops(4)
    means = MeansEncoder("shop", use_target=True, covariates=[], remainder="drop")
    expected = means.fit_transform(X, y, sample_weight=weights)
    full = means.transform(X) - np.average(y, weights=weights)
    for frame, covariates in ((X, []), (X[["shop"]], None)):
        encoder = RandomInterceptEncoder("shop", covariates=covariates, remainder="drop")
        found = encoder.fit_transform(frame, y, sample_weight=weights)
        np.testing.assert_allclose(encoder.transform(frame), full, atol=1e-7)
        for train, test in KFold(5, shuffle=True, random_state=0).split(X):
            center = np.average(y[train], weights=weights[train])
            np.testing.assert_allclose(found[test], expected[test] - center, atol=1e-7)


@pytest.mark.parametrize("value", [7.0, np.nan])
def test_a_covariate_that_is_constant_or_null_everywhere_does_nothing(value):
    X, y, _ = shops(5)
    encoder = RandomInterceptEncoder("shop", remainder="drop")
    np.testing.assert_allclose(
        encoder.fit_transform(X.assign(more=value), y), encoder.fit_transform(X, y), atol=1e-9
    )


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_a_constant_target_leaves_no_intercepts(value):
    X, _, _ = shops(6)
    encoder = RandomInterceptEncoder("shop", target_type="continuous", remainder="drop")
    np.testing.assert_allclose(encoder.fit_transform(X, np.full(len(X), value)), 0.0, atol=1e-8)


def test_a_new_level_has_no_intercept():
    X, y, _ = shops(7)
    encoder = RandomInterceptEncoder("shop", remainder="drop").fit(X, y)
    found = encoder.transform(X.iloc[:2].assign(shop=["never seen", "shop 0"])).ravel()
    assert found[0] == pytest.approx(0.0, abs=1e-8)
    assert abs(found[1]) > 0.1


def test_classes_have_intercepts_of_their_indicators():
    X, y, weights = shops(8, n=120)
    three, two = np.array(["low", "mid", "top"])[np.digitize(y, [-2, 1])], np.where(y > 0, "yes", "no")
    encoder = RandomInterceptEncoder("shop", remainder="drop")
    many = encoder.fit_transform(X, three, sample_weight=weights)
    assert encoder.target_type_ == "multiclass"
    assert encoder.get_feature_names_out().tolist() == [
        *("shop_intercept_low", "shop_intercept_mid", "shop_intercept_top"),
    ]
    one = encoder.fit_transform(X, two, sample_weight=weights)
    assert encoder.target_type_ == "binary"
    assert encoder.get_feature_names_out().tolist() == ["shop_intercept"]
    encoder.set_params(target_type="continuous")
    indicators = [two == "yes", *(three == label for label in ("low", "mid", "top"))]
    for found, indicator in zip(np.hstack([one, many]).T, indicators, strict=True):
        expected = encoder.fit_transform(X, indicator.astype(float), sample_weight=weights)
        np.testing.assert_allclose(found, expected.ravel(), atol=1e-12)


def test_a_weight_of_two_is_a_row_that_came_twice():
    X, y, _ = shops(9)
    times = np.random.default_rng(9).integers(0, 3, len(y))
    place = np.repeat(np.arange(len(y)), times)
    encoder = RandomInterceptEncoder("shop", remainder="drop")
    weighted = encoder.fit(X, y, sample_weight=times).transform(X)
    repeated = encoder.fit(X.iloc[place], y[place]).transform(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


@few
@given(seed=st.integers(0, 2**32 - 1), unit=st.floats(0.01, 100), origin=st.floats(-50, 50))
def test_units_carry_over_and_the_origin_does_not(seed, unit, origin):
    X, y, _ = shops(seed)
    encoder = RandomInterceptEncoder("shop", target_type="continuous", remainder="drop")
    one, other = (encoder.fit_transform(X, some) for some in (y, unit * y + origin))
    np.testing.assert_allclose(other, unit * one, rtol=1e-6, atol=1e-6 * max(unit, 1))


def test_a_target_far_from_zero_keeps_its_digits():
    X, y, _ = shops(13)
    encoder = RandomInterceptEncoder("shop", remainder="drop")
    near, far = (encoder.fit_transform(X, y + origin) for origin in (0.0, 1.7e9))
    np.testing.assert_allclose(far, near, atol=1e-6)


def test_chunks_are_not_offered():
    assert not hasattr(RandomInterceptEncoder("shop"), "partial_fit")


def test_infinite_covariates_are_refused():
    X, y, _ = shops(12)
    with pytest.raises(errors.InfiniteValueError, match="'z' contains infinity"):
        RandomInterceptEncoder("shop").fit(X.assign(z=np.inf), y)
