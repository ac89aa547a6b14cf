"""Random intercepts, mixed models and local effects: naive code gives the same, known effects are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.model_selection import KFold

from sufrep import LocalEffectEncoder, MeansEncoder, MixedModelEncoder, RandomInterceptEncoder, errors
from sufrep.solvers.local_effects import fit_local_effects
from sufrep.solvers.mixed_model import arrange_levels, coefficient_errors, fit_mixed_model
from sufrep.solvers.regressions import NormalScores

# Every example fits several encoders.
few = settings(max_examples=settings.default.max_examples // 5)

# Every model, and the columns that it gives for a continuous target and for two classes.
MODELS: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "intercept": (RandomInterceptEncoder, {}, ["intercept"]),
    "mixed model": (MixedModelEncoder, {}, ["fit"]),
    "local effect": (LocalEffectEncoder, {"output": "both"}, ["local_effect", "local_fit"]),
}
every_model = pytest.mark.parametrize("model", MODELS)


def make(model: str, **options: Any) -> Any:
    cls, parameters, _ = MODELS[model]
    return cls("shop", **{"remainder": "drop", **parameters, **options})


def shops(seed: int, n: int = 60, n_levels: int = 6) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows with a few nulls, a target whose level and slopes differ by shop, and weights."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, n_levels, n)
    X = pd.DataFrame({"x": rng.normal(size=n), "z": rng.exponential(size=n).round(1)})
    own = rng.normal(size=(n_levels, 2))[code]
    y = 2 * own[:, 0] + (1 + own[:, 1]) * X["x"] - X["z"] + rng.normal(size=n)
    X.loc[rng.random(n) < 0.1, "x"] = None
    return X.assign(shop=[f"shop {c}" for c in code]), y.to_numpy(), rng.choice([1.0, 2.0, 3.0], n)


# All models.


@every_model
def test_only_the_order_of_a_covariate_matters(model):
    X, y, weights = shops(10)
    encoder = make(model)
    one, other = (
        encoder.fit_transform(frame, y, sample_weight=weights)
        for frame in (X, X.assign(x=np.exp(3 * X["x"]), z=X["z"] ** 3 - 100))
    )
    np.testing.assert_allclose(other, one, rtol=1e-12)


@every_model
@pytest.mark.parametrize("value", [7.0, np.nan])
def test_a_covariate_that_is_constant_or_null_everywhere_does_nothing(model, value):
    X, y, _ = shops(5)
    encoder = make(model)
    found = encoder.fit_transform(X.assign(more=value), y)
    atol = {"intercept": 1e-9, "mixed model": 1e-6, "local effect": 1e-8}[model]
    np.testing.assert_allclose(found, encoder.fit_transform(X, y), atol=atol)


@every_model
def test_classes_are_encoded_by_their_indicators(model):
    X, y, weights = shops(8, n=120)
    three, two = np.array(["low", "mid", "top"])[np.digitize(y, [-2, 1])], np.where(y > 0, "yes", "no")
    encoder, ends = make(model), MODELS[model][2]
    many = encoder.fit_transform(X, three, sample_weight=weights)
    assert encoder.target_type_ == "multiclass"
    names = [f"shop_{end}_{label}" for label in ("low", "mid", "top") for end in ends]
    assert encoder.get_feature_names_out().tolist() == names
    one = encoder.fit_transform(X, two, sample_weight=weights)
    assert encoder.target_type_ == "binary"
    assert encoder.get_feature_names_out().tolist() == [f"shop_{end}" for end in ends]
    encoder.set_params(target_type="continuous")
    indicators = [two == "yes", *(three == label for label in ("low", "mid", "top"))]
    found = np.split(np.hstack([one, many]), 4, axis=1)
    for part, indicator in zip(found, indicators, strict=True):
        expected = encoder.fit_transform(X, indicator.astype(float), sample_weight=weights)
        np.testing.assert_allclose(part, expected, atol=1e-12)


@every_model
def test_a_weight_of_two_is_a_row_that_came_twice(model):
    X, y, _ = shops(9, n=40)
    times = np.random.default_rng(9).integers(0, 3, len(y))
    place = np.repeat(np.arange(len(y)), times)
    encoder = make(model)
    weighted = encoder.fit(X, y, sample_weight=times).transform(X)
    repeated = encoder.fit(X.iloc[place], y[place]).transform(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


@every_model
@few
@given(seed=st.integers(0, 2**32 - 1), unit=st.sampled_from([0.25, 3.0]), origin=st.floats(-50, 50))
def test_the_unit_of_the_target_carries_over_and_its_origin_to_predictions_only(model, seed, unit, origin):
    X, y, _ = shops(seed)
    encoder = make(model, cv=3, target_type="continuous")
    one, other = (encoder.fit_transform(X, some) for some in (y, unit * y + origin))
    moved = [origin if end.endswith("fit") else 0.0 for end in MODELS[model][2]]
    np.testing.assert_allclose(other, unit * one + moved, rtol=1e-6, atol=1e-6 * max(unit, abs(origin), 1))


@every_model
def test_a_target_far_from_zero_keeps_its_digits(model):
    X, y, _ = shops(13)
    encoder = make(model)
    near, far = (encoder.fit_transform(X, y + origin) for origin in (0.0, 1.7e9))
    moved = [1.7e9 if end.endswith("fit") else 0.0 for end in MODELS[model][2]]
    atol = {"intercept": 1e-6, "mixed model": 1e-5, "local effect": 1e-4}[model]
    np.testing.assert_allclose(far - moved, near, atol=atol)


@pytest.mark.parametrize("cls", [RandomInterceptEncoder, MixedModelEncoder])
def test_a_level_of_one_row_is_shrunk_further_than_one_of_many(cls):
    rng = np.random.default_rng(7)
    size = np.array([1, 100] * 10)
    code = np.repeat(np.arange(20), size)
    y = 3 * rng.normal(size=20)[code] + 2 * rng.normal(size=len(code))
    X = pd.DataFrame({"shop": [f"shop {c:02}" for c in code]})
    table = cls("shop").fit(X, y - y.mean()).representations_["shop"]
    raw = pd.Series(y - y.mean()).groupby(code).mean().to_numpy()
    kept = (table.values.ravel() - table.prior) / (raw - table.prior)
    assert kept[size == 1].max() < 0.95 < kept[size == 100].min() < kept.max() < 1


@every_model
def test_infinite_covariates_are_refused(model):
    X, y, _ = shops(12)
    with pytest.raises(errors.InfiniteValueError, match="'z' contains infinity"):
        make(model).fit(X.assign(z=np.inf), y)


# Random intercepts.


def level_shops(seed: int, n: int = 60, n_levels: int = 6) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
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


def intercepts_of(encoder: RandomInterceptEncoder) -> dict[Any, float]:
    table = encoder.representations_["shop"]
    return dict(zip(table.levels.tolist(), table.values.ravel().tolist(), strict=True))


@few
@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans())
def test_intercepts_are_those_of_a_loop_over_the_rows(seed, weighted):
    X, y, weights = level_shops(seed)
    encoder = RandomInterceptEncoder("shop").fit(X, y, sample_weight=weights if weighted else None)
    own = weights if weighted else np.ones(len(y))
    expected, center = naive_intercepts(X["shop"].tolist(), [X["x"], X["z"]], y, own)
    assert intercepts_of(encoder) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(encoder.representations_["shop"].prior, center, atol=1e-9)


def test_a_row_gets_the_intercept_that_is_learnt_outside_its_fold():
    X, y, weights = level_shops(1)
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
    found = np.array(list(intercepts_of(RandomInterceptEncoder("shop").fit(X, y)).values()))
    raw = pd.Series(y).groupby(code).mean().to_numpy()
    assert np.corrcoef(found, effect)[0, 1] > 0.98
    assert ((found - effect + effect.mean()) ** 2).mean() < 0.5 * np.var(raw - effect)


def test_without_covariates_intercepts_are_shrunken_means_about_the_overall_one():
    X, y, weights = level_shops(4)
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


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_a_constant_target_leaves_no_intercepts(value):
    X, _, _ = level_shops(6)
    encoder = RandomInterceptEncoder("shop", target_type="continuous", remainder="drop")
    np.testing.assert_allclose(encoder.fit_transform(X, np.full(len(X), value)), 0.0, atol=1e-8)


def test_the_prior_of_an_intercept_is_zero():
    X, y, _ = level_shops(7)
    encoder = RandomInterceptEncoder("shop", remainder="drop", unseen="prior").fit(X, y)
    found = encoder.transform(X.iloc[:2].assign(shop=["never seen", "shop 0"])).ravel()
    assert found[0] == pytest.approx(0.0, abs=1e-8)
    assert abs(found[1]) > 0.1


# Mixed models.


def sloped_shops(seed: int, n: int = 60, n_levels: int = 5) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_regressions_are_those_of_the_solver(seed, weighted):
    X, y, weights = sloped_shops(seed)
    own = weights if weighted else None
    encoder = MixedModelEncoder("shop").fit(X, y, sample_weight=own)
    table, scores = encoder.representations_["shop"], scores_of(encoder, X)[:, 1:]
    codes = table.positions(X["shop"].tolist())
    expected = fit_mixed_model(scores, codes, y, 5, own)
    np.testing.assert_allclose(table.values, expected.coefficients, rtol=1e-9)
    np.testing.assert_allclose(table.prior, expected.center, rtol=1e-9)
    errors = coefficient_errors(arrange_levels(scores, codes, 5, own), expected.variances)
    np.testing.assert_allclose(encoder.standard_errors_["shop"], errors, rtol=1e-9)


def test_a_row_gets_the_prediction_that_is_learnt_outside_its_fold():
    X, y, weights = sloped_shops(3, n=80)
    X.loc[[0, 2, 6], "shop"] = "of one fold"
    folds = list(KFold(4).split(X))
    encoder = MixedModelEncoder("shop", remainder="drop", cv=folds)
    found = encoder.fit_transform(X, y, sample_weight=weights).ravel()
    Z, codes = scores_of(encoder, X), encoder.representations_["shop"].positions(X["shop"].tolist())
    for train, test in folds:
        outside = fit_mixed_model(Z[train, 1:], codes[train], y[train], 6, weights[train])
        expected = (Z[test] * outside.coefficients[codes[test]]).sum(axis=1)
        np.testing.assert_allclose(found[test], expected, rtol=1e-9)


def test_normal_scores_are_computed_once_for_all_folds(monkeypatch):
    X, y, _ = sloped_shops(4)
    applied = []
    apply = NormalScores.apply

    def counted(self: NormalScores, columns: Any) -> np.ndarray:
        applied.append(len(columns[0]))
        return apply(self, columns)

    monkeypatch.setattr(NormalScores, "apply", counted)
    MixedModelEncoder("shop", cv=4).fit_transform(X, y)
    assert applied == [60]  # to fit and to encode all rows


def test_the_seed_chooses_the_levels_that_variances_are_estimated_from():
    rng = np.random.default_rng(14)
    code = np.arange(4400) % 1100
    X = pd.DataFrame({"x": rng.normal(size=4400), "shop": code})
    y = rng.normal(size=1100)[code] + rng.normal(size=4400)
    tables = [
        MixedModelEncoder("shop", random_state=seed).fit(X, y).representations_["shop"].values
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(tables[0], tables[1])
    assert 0 < np.abs(tables[0] - tables[2]).max() < 0.2


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


def test_a_row_gets_the_prediction_at_its_own_covariates():
    X, y, _ = sloped_shops(8)
    encoder = MixedModelEncoder("shop", remainder="drop", unseen="prior").fit(X, y)
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
    X, y, weights = sloped_shops(9)
    empty = MixedModelEncoder("shop", covariates=[], remainder="drop")
    alone = MixedModelEncoder("shop", remainder="drop")
    found = empty.fit_transform(X, y, sample_weight=weights)
    np.testing.assert_array_equal(alone.fit_transform(X[["shop"]], y, sample_weight=weights), found)
    assert empty.representations_["shop"].columns == ("shop_intercept",)
    assert empty.get_feature_names_out().tolist() == ["shop_fit"]
    codes = empty.representations_["shop"].positions(X["shop"].tolist())
    expected = fit_mixed_model(np.empty((len(X), 0)), codes, y, 5, weights).coefficients[codes]
    np.testing.assert_allclose(empty.transform(X), expected, rtol=1e-9)


@pytest.mark.parametrize("value", [7.0, np.nan])
def test_a_covariate_that_is_constant_or_null_everywhere_has_no_slope(value):
    X, y, _ = sloped_shops(10)
    encoder = MixedModelEncoder("shop", remainder="drop")
    found = encoder.fit_transform(X.assign(more=value), y)
    np.testing.assert_allclose(found, encoder.fit_transform(X, y), atol=1e-6)
    slopes = encoder.fit(X.assign(more=value), y).representations_["shop"].values[:, 3]
    np.testing.assert_allclose(slopes, 0.0, atol=1e-9)


@pytest.mark.parametrize("value", [0.0, 5.0])
@pytest.mark.parametrize("n", [60, 20_000])
def test_a_constant_target_is_predicted_everywhere(value, n):
    X, _, _ = sloped_shops(11, n=n)
    encoder = MixedModelEncoder("shop", target_type="continuous", remainder="drop", cv=2)
    np.testing.assert_allclose(encoder.fit_transform(X, np.full(n, value)), value, rtol=1e-6)
    np.testing.assert_allclose(encoder.transform(X), value, rtol=1e-6)


def test_a_class_that_no_other_fold_has_is_predicted_nowhere():
    X, _, _ = sloped_shops(12, n=20_000)
    y = np.zeros(20_000, dtype=int)
    y[[0, 19_999]] = [1, 2]
    encoder = MixedModelEncoder("shop", remainder="drop", cv=list(KFold(2).split(X)))
    found = encoder.fit_transform(X, y)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[0, 1], 0.0, atol=1e-12)
    np.testing.assert_allclose(found[-1, 2], 0.0, atol=1e-12)


def test_coefficients_of_classes_are_named():
    X, y, weights = sloped_shops(13, n=90)
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


# Local effects.


def seasonal_shops(
    seed: int, n: int = 300, n_levels: int = 10
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows, a target with seasons that differ by shop, and weights."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, n_levels, n)
    X = pd.DataFrame({"day": rng.uniform(0, 365, n), "size": rng.exponential(size=n)})
    season = np.sin(2 * np.pi * (X["day"] / 365 + rng.uniform(size=n_levels)[code]))
    y = 2 * season + np.log(X["size"]) + rng.normal(size=n) / 2
    return X.assign(shop=[f"shop {c}" for c in code]), y.to_numpy(), rng.choice([1.0, 2.0, 3.0], n)


def parts(encoder: LocalEffectEncoder, X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Normal scores of the covariates, and the positions of the levels."""
    columns = [X["day"].to_numpy(), X["size"].to_numpy()]
    codes = encoder.representations_["shop"].positions(X["shop"].tolist())
    return encoder.normal_scores_["shop"].apply(columns), codes


@pytest.mark.parametrize("weighted", [False, True])
def test_new_rows_get_what_the_solver_gives(weighted):
    X, y, weights = seasonal_shops(0)
    own = weights if weighted else None
    encoder = LocalEffectEncoder("shop", output="both", remainder="drop").fit(X, y, sample_weight=own)
    scores, codes = parts(encoder, X)
    expected, means = fit_local_effects(scores, codes, y, 10, own)
    effect = expected.effects(scores, codes)
    found = encoder.transform(X)
    np.testing.assert_allclose(found[:, 0], effect, rtol=1e-9)
    np.testing.assert_allclose(found[:, 1], expected.curve.predict(scores) + effect, rtol=1e-9)
    table = encoder.representations_["shop"]
    np.testing.assert_allclose(table.values.ravel(), means, rtol=1e-9)
    assert (table.columns, table.prior.tolist()) == (("shop_local_effect",), [0.0])


def test_a_row_gets_what_is_learnt_outside_its_fold():
    X, y, weights = seasonal_shops(1)
    folds = list(KFold(4).split(X))
    encoder = LocalEffectEncoder("shop", remainder="drop", cv=folds)
    found = encoder.fit_transform(X, y, sample_weight=weights).ravel()
    scores, codes = parts(encoder, X)
    for train, test in folds:
        outside, _ = fit_local_effects(scores[train], codes[train], y[train], 10, weights[train])
        np.testing.assert_allclose(found[test], outside.effects(scores[test], codes[test]), rtol=1e-9)


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("effect", ["shop_local_effect"]),
        ("fit", ["shop_local_fit"]),
        ("both", ["shop_local_effect", "shop_local_fit"]),
    ],
)
def test_outputs_are_named(output, names):
    X, y, _ = seasonal_shops(2)
    both = LocalEffectEncoder("shop", output="both", remainder="drop").fit_transform(X, y)
    encoder = LocalEffectEncoder("shop", output=output, remainder="drop").set_output(transform="pandas")
    found = encoder.fit_transform(X, y)
    assert found.columns.tolist() == names
    expected = both[:, [["shop_local_effect", "shop_local_fit"].index(name) for name in names]]
    np.testing.assert_array_equal(found, expected)


def test_seasons_of_shops_are_found():
    X, y, _ = seasonal_shops(3, n=3000, n_levels=30)
    encoder = LocalEffectEncoder("shop", output="fit", remainder="drop")
    fit = encoder.fit_transform(X, y).ravel()
    assert np.mean((y - fit) ** 2) < 0.35  # noise 0.25, seasons 2
    assert encoder.effects_["shop"][0].kernel.used.tolist() == [0]


def test_a_level_never_seen_has_no_effect_but_the_common_curve():
    X, y, _ = seasonal_shops(4)
    encoder = LocalEffectEncoder("shop", output="both", remainder="drop").fit(X, y)
    new = X.iloc[:4].assign(shop=["shop 0", "never seen", None, "never seen"])
    found = encoder.transform(new)
    assert found[0, 0] != 0
    assert found[1:, 0].tolist() == [0, 0, 0]
    scores, _ = parts(encoder, new)
    np.testing.assert_allclose(found[1:, 1], encoder.effects_["shop"][0].curve.predict(scores)[1:])
    with pytest.raises(errors.UnseenLevelError, match="never seen"):
        encoder.set_params(unseen="error").transform(new)


def test_rare_levels_share_their_effects():
    X, y, _ = seasonal_shops(5)
    X.loc[:3, "shop"] = ["rare a", "rare a", "rare b", "rare b"]
    encoder = LocalEffectEncoder("shop", min_frequency=5, remainder="drop").fit(X, y)
    together = X.assign(shop=X["shop"].replace({"rare a": "rare", "rare b": "rare"}))
    expected = LocalEffectEncoder("shop", remainder="drop").fit(together, y).transform(together)
    np.testing.assert_allclose(encoder.transform(X), expected, rtol=1e-9)


def test_without_covariates_levels_have_random_intercepts():
    X, y, _ = seasonal_shops(8)
    y = y + 3 * np.random.default_rng(8).normal(size=10)[X["shop"].str[5:].astype(int)]
    encoder = LocalEffectEncoder("shop", covariates=[], remainder="drop").fit(X, y)
    found = encoder.transform(X).ravel()
    kernel = encoder.effects_["shop"][0].kernel
    apart = pd.Series(y - y.mean()).groupby(X["shop"])
    count = apart.transform("size")
    share = kernel.constant * count / (kernel.constant * count + kernel.noise)
    np.testing.assert_allclose(found, share * apart.transform("mean"), rtol=1e-8)


def test_one_row_and_one_level_are_enough():
    X, y, _ = seasonal_shops(9)
    encoder = LocalEffectEncoder("shop", output="both", remainder="drop", target_type="continuous")
    np.testing.assert_allclose(encoder.fit(X.iloc[:1], y[:1]).transform(X.iloc[:1]), [[0.0, y[0]]])
    one = encoder.fit_transform(X.assign(shop="the one"), y)
    assert np.isfinite(one).all()


def test_large_levels_are_known_by_some_of_their_rows():
    X, y, _ = seasonal_shops(12)
    encoder = LocalEffectEncoder("shop", max_level_rows=5).fit(X, y)
    assert len(encoder.effects_["shop"][0].coefficients) == 50
    with pytest.raises(ValueError, match="max_level_rows"):
        encoder.set_params(max_level_rows=0).fit(X, y)
