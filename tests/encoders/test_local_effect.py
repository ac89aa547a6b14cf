"""Levels by functions of their own: the solver's functions, cross-fitted, in columns with the right names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from sufrep import LocalEffectEncoder
from sufrep.errors import UnseenLevelError
from sufrep.solvers.local_effects import fit_local_effects

# Every example fits several encoders.
few = settings(max_examples=settings.default.max_examples // 5)


def shops(seed: int, n: int = 300, n_levels: int = 10) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
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
def test_new_rows_get_what_the_solver_says(weighted):
    X, y, weights = shops(0)
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
    X, y, weights = shops(1)
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
    X, y, _ = shops(2)
    both = LocalEffectEncoder("shop", output="both", remainder="drop").fit_transform(X, y)
    encoder = LocalEffectEncoder("shop", output=output, remainder="drop").set_output(transform="pandas")
    found = encoder.fit_transform(X, y)
    assert found.columns.tolist() == names
    expected = both[:, [["shop_local_effect", "shop_local_fit"].index(name) for name in names]]
    np.testing.assert_array_equal(found, expected)


def test_seasons_of_shops_are_found_that_no_mean_can_tell():
    X, y, _ = shops(3, n=3000, n_levels=30)
    encoder = LocalEffectEncoder("shop", output="fit", remainder="drop")
    fit = encoder.fit_transform(X, y).ravel()
    assert np.mean((y - fit) ** 2) < 0.35  # noise 0.25, seasons 2
    assert encoder.effects_["shop"][0].likeness.used.tolist() == [0]


def test_a_level_never_seen_has_no_effect_but_the_common_curve():
    X, y, _ = shops(4)
    encoder = LocalEffectEncoder("shop", output="both", remainder="drop").fit(X, y)
    new = X.iloc[:4].assign(shop=["shop 0", "never seen", None, "never seen"])
    found = encoder.transform(new)
    assert found[0, 0] != 0
    assert found[1:, 0].tolist() == [0, 0, 0]
    scores, _ = parts(encoder, new)
    np.testing.assert_allclose(found[1:, 1], encoder.effects_["shop"][0].curve.predict(scores)[1:])
    with pytest.raises(UnseenLevelError, match="never seen"):
        encoder.set_params(unseen="error").transform(new)


def test_rare_levels_share_their_effects():
    X, y, _ = shops(5)
    X.loc[:3, "shop"] = ["rare a", "rare a", "rare b", "rare b"]
    encoder = LocalEffectEncoder("shop", min_frequency=5, remainder="drop").fit(X, y)
    together = X.assign(shop=X["shop"].replace({"rare a": "rare", "rare b": "rare"}))
    expected = LocalEffectEncoder("shop", remainder="drop").fit(together, y).transform(together)
    np.testing.assert_allclose(encoder.transform(X), expected, rtol=1e-9)


def test_classes_are_predicted_by_their_indicators():
    X, y, weights = shops(6)
    three, two = np.array(["low", "mid", "top"])[np.digitize(y, [-1.5, 1])], np.where(y > 0, "yes", "no")
    encoder = LocalEffectEncoder("shop", output="both", remainder="drop")
    many = encoder.fit_transform(X, three, sample_weight=weights)
    labels = [f"shop_local_{kind}_{label}" for label in ("low", "mid", "top") for kind in ("effect", "fit")]
    assert encoder.get_feature_names_out().tolist() == labels
    one = encoder.fit_transform(X, two, sample_weight=weights)
    assert encoder.get_feature_names_out().tolist() == ["shop_local_effect", "shop_local_fit"]
    encoder.set_params(target_type="continuous")
    indicators = [two == "yes", *(three == label for label in ("low", "mid", "top"))]
    for place, indicator in enumerate(indicators):
        expected = encoder.fit_transform(X, indicator.astype(float), sample_weight=weights)
        np.testing.assert_allclose(np.hstack([one, many])[:, 2 * place : 2 * place + 2], expected, atol=1e-12)


@pytest.mark.parametrize("value", [7.0, np.nan])
def test_a_covariate_that_is_constant_or_null_everywhere_does_nothing(value):
    X, y, _ = shops(7)
    encoder = LocalEffectEncoder("shop", output="both", remainder="drop")
    found = encoder.fit_transform(X.assign(more=value), y)
    np.testing.assert_allclose(found, encoder.fit_transform(X, y), atol=1e-8)


def test_without_covariates_levels_have_random_intercepts():
    X, y, _ = shops(8)
    y = y + 3 * np.random.default_rng(8).normal(size=10)[X["shop"].str[5:].astype(int)]
    encoder = LocalEffectEncoder("shop", covariates=[], remainder="drop").fit(X, y)
    found = encoder.transform(X).ravel()
    likeness = encoder.effects_["shop"][0].likeness
    apart = pd.Series(y - y.mean()).groupby(X["shop"])
    count = apart.transform("size")
    share = likeness.constant * count / (likeness.constant * count + likeness.noise)
    np.testing.assert_allclose(found, share * apart.transform("mean"), rtol=1e-8)


def test_one_row_and_one_level_are_enough():
    X, y, _ = shops(9)
    encoder = LocalEffectEncoder("shop", output="both", remainder="drop", target_type="continuous")
    np.testing.assert_allclose(encoder.fit(X.iloc[:1], y[:1]).transform(X.iloc[:1]), [[0.0, y[0]]])
    one = encoder.fit_transform(X.assign(shop="the one"), y)
    assert np.isfinite(one).all()


@few
@given(seed=st.integers(0, 2**32 - 1))
def test_units_and_origin_of_the_target_carry_over(seed):
    X, y, _ = shops(seed)
    encoder = LocalEffectEncoder("shop", output="both", remainder="drop", cv=3)
    one, other = (encoder.fit_transform(X, some) for some in (y, 4 * y + 1))
    np.testing.assert_allclose(other, 4 * one + [0, 1], rtol=1e-6, atol=1e-6)


def test_a_target_far_from_zero_keeps_its_digits():
    X, y, _ = shops(11)
    encoder = LocalEffectEncoder("shop", remainder="drop")
    near, far = (encoder.fit_transform(X, y + origin) for origin in (0.0, 1.7e9))
    np.testing.assert_allclose(far, near, atol=1e-4)


def test_large_levels_are_known_by_some_of_their_rows():
    X, y, _ = shops(12)
    encoder = LocalEffectEncoder("shop", max_level_rows=5).fit(X, y)
    assert len(encoder.effects_["shop"][0].coefficients) == 50
    with pytest.raises(ValueError, match="max_level_rows"):
        encoder.set_params(max_level_rows=0).fit(X, y)
