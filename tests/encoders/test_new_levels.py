"""Levels that ``fit`` did not see get the vectors that their own rows say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

import sufrep
from sufrep import (
    LatentStateEncoder,
    LowRankEncoder,
    MeansEncoder,
    MixedModelEncoder,
    MNLEncoder,
    RandomInterceptEncoder,
    SparseLowRankEncoder,
    SufficientEncoder,
    make_encoder,
    simulate,
)
from sufrep.encoders import METHODS
from sufrep.errors import LengthMismatchError, NoRuleError, TargetError
from sufrep.moments import GroupMoments
from sufrep.solvers.regressions import fit_curve, fit_normal_scores
from sufrep.solvers.shrinkage import estimate_means_prior

# Given the same rows, these encode a new level exactly as a known one.
EXACT: dict[str, Any] = {
    "means": MeansEncoder("shop"),
    "shrunken means": MeansEncoder("shop", shrinkage="auto"),
    "left-out means": MeansEncoder("shop", leave_one_out=True),
    "low rank": LowRankEncoder("shop", n_components=2),
    "low rank in raw units": LowRankEncoder("shop", n_components=2, standardize=False),
    "shrunken low rank": LowRankEncoder("shop", shrinkage="auto"),
    "sparse low rank": SparseLowRankEncoder("shop", n_components=2),
    "shrunken sparse low rank, not centred": SparseLowRankEncoder(
        "shop", n_components=1, center=False, shrinkage="auto"
    ),
    "logit in closed form": MNLEncoder("shop", solver="lda"),
}
OTHERS: dict[str, Any] = {
    "logit": MNLEncoder("shop"),
    "hidden states": LatentStateEncoder("shop", n_states=2, n_starts=1, tol=1e-10, output="both"),
    "means with target": MeansEncoder("shop", use_target=True),
    "shrunken means with target": MeansEncoder("shop", use_target=True, shrinkage="auto"),
    "low rank with target": LowRankEncoder("shop", use_target=True, n_components=2),
    "random intercept": RandomInterceptEncoder("shop"),
    "mixed model": MixedModelEncoder("shop"),
    "hidden states with target": LatentStateEncoder("shop", n_states=2, n_starts=1, use_target=True),
}
ENCODERS = EXACT | OTHERS


def drawn(seed: int = 0, n: int = 240, n_levels: int = 8) -> tuple[pd.DataFrame, np.ndarray]:
    """Shops of two kinds, which differ in covariates of several scales and in the target; some nulls."""
    rng = np.random.default_rng(seed)
    shop = np.append(np.arange(n_levels), rng.integers(0, n_levels, n - n_levels))
    kind = shop % 2
    X = pd.DataFrame(rng.normal(size=(n, 3)) + 2.0 * kind[:, None], columns=["a", "b", "c"])
    X["b"] = 1000 + 50 * X["b"]
    X.loc[rng.random(n) < 0.1, "c"] = np.nan
    X["shop"] = [f"s{code}" for code in shop]
    return X, 3.0 * kind + X["a"].to_numpy() + rng.normal(size=n)


def fitted(name: str) -> tuple[Any, pd.DataFrame]:
    X, y = drawn()
    return ENCODERS[name].set_params(remainder="drop").fit(X, y), X


@pytest.mark.parametrize("name", EXACT)
def test_the_rows_of_a_known_level_say_its_vector_under_another_name(name):
    encoder, X = fitted(name)
    for level in ("s0", "s5"):
        rows = X[X["shop"] == level]
        found = encoder.transform(rows.assign(shop="never seen"))
        np.testing.assert_allclose(found, encoder.transform(rows), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["hidden states", "logit"])
def test_what_is_learnt_by_iteration_is_nearly_the_same_under_another_name(name):
    encoder, X = fitted(name)
    again, known = (
        np.vstack(
            [encoder.transform(rows.assign(shop=change or level))[0] for level, rows in X.groupby("shop")]
        )
        for change in ("never seen", "")
    )
    for column in range(2 if name == "hidden states" else known.shape[1]):
        assert np.corrcoef(again[:, column], known[:, column])[0, 1] > 0.95


@pytest.mark.parametrize("name", ENCODERS)
@given(data=st.data())
@settings(max_examples=settings.default.max_examples // 5)
def test_a_new_level_depends_on_no_row_but_its_own(name, data):
    encoder, X = fitted(name)
    new, _ = drawn(data.draw(st.integers(1, 50)), n=30, n_levels=5)
    new["shop"] = new["shop"].map({"s0": "n0", "s1": "n1", "s2": "n2"}).fillna(new["shop"])
    new = pd.concat([new, X[:10]], ignore_index=True)
    order = np.array(data.draw(st.permutations(range(len(new)))))
    together = encoder.transform(new.iloc[order])[np.argsort(order)]
    for level in ("n0", "n1", "n2"):
        rows = (new["shop"] == level).to_numpy()
        alone = encoder.transform(new[rows])
        np.testing.assert_allclose(together[rows], alone, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("jointly", [False, True])
def test_the_target_of_a_new_level_is_expected_given_its_covariates(jointly):
    X, y = drawn()
    X = X.drop(columns="c")  # without nulls the formula is short
    encoder = MeansEncoder("shop", use_target=True, shrinkage="auto" if jointly else None, remainder="drop")
    encoder.fit(X, y)
    prior = estimate_means_prior(encoder.moments_["shop"])
    rows = X[X["shop"] == "s1"][:7].assign(shop="never seen")
    deviation = (rows[["a", "b"]].mean().to_numpy() - prior.center[:2]) / prior.scale[:2]
    between = prior.between
    weight = np.linalg.solve(between[:2, :2] + prior.within[:2, :2] / 7, deviation)
    expected = prior.center + prior.scale * (between[:, :2] @ weight)
    found = encoder.transform(rows)[0]
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-6)
    means = expected[:2] if jointly else rows[["a", "b"]].mean()
    np.testing.assert_allclose(found[:2], means, rtol=1e-6)
    assert abs(found[2] - prior.center[2]) > 0.5


def test_shrunken_vectors_of_few_rows_are_near_the_prior():
    X, y = drawn()
    encoder = MeansEncoder("shop", shrinkage="auto", remainder="drop").fit(X, y)
    prior = encoder.representations_["shop"].prior
    rows = X[X["shop"] == "s1"].assign(shop="never seen")
    mean = rows[["a", "b", "c"]].mean().to_numpy()
    scale = X[["a", "b", "c"]].std().to_numpy()
    one, many = (
        encoder.transform(pd.concat([rows.assign(a=mean[0], b=mean[1], c=mean[2])[:1]] * times))[0]
        for times in (1, 500)
    )
    distance = [np.linalg.norm((vector - mean) / scale) for vector in (prior, one, many)]
    assert distance[2] < 0.2 < distance[1] < distance[0]


@pytest.mark.parametrize("method", [name for name in METHODS if name != "sufficient"])
def test_levels_without_a_rule_and_nulls_get_the_prior(method):
    X, y = drawn()
    encoder = make_encoder(method, "shop", unseen="estimate").fit(X.fillna(0.0), y)
    new = X.fillna(0.0)[:4].assign(shop=["never seen", "never seen", None, None])
    found = encoder.transform(new)
    as_prior = make_encoder(method, "shop", unseen="prior").fit(X.fillna(0.0), y).transform(new)
    np.testing.assert_array_equal(found[2:], as_prior[2:])
    same = np.array_equal(found[:2], as_prior[:2])
    codings = {"one_hot", "deviation", "difference", "helmert", "repeated_effect", "simple_effect"}
    others = {"permutation", "multi_permutation", "fisher", "local_effect", "target_mean", "cells"}
    assert same == (method in codings | others)


def intercepts_by_hand(X: pd.DataFrame, residual: np.ndarray, new: pd.DataFrame) -> float:
    """Expected mean residual of a level, given its means of the covariates, with covariances by numpy."""
    names = [name for name in X if name != "shop"]
    both = X[names].assign(residual=residual)
    prior = estimate_means_prior(GroupMoments.from_rows(X["shop"].tolist(), both.to_numpy()))
    scale = np.outer(prior.scale, prior.scale)
    within, between = prior.within * scale, prior.between * scale
    p = len(names)
    excess = np.linalg.solve(
        between[:p, :p] + within[:p, :p] / len(new), new[names].to_numpy().mean(axis=0) - prior.center[:p]
    )
    return float(prior.center[p] + between[p, :p] @ excess)


def test_the_intercept_of_a_new_level_is_the_one_that_its_covariates_let_expect():
    X, y = drawn()
    X = X.fillna(0.0)
    new = X[:5].assign(shop="never seen")
    encoder = RandomInterceptEncoder("shop", remainder="drop").fit(X, y)
    residual = y - fitted_curve(X, y)
    assert encoder.transform(new) == pytest.approx(
        np.full((5, 1), intercepts_by_hand(X, residual, new)), rel=1e-6
    )


def test_the_regression_of_a_new_level_is_the_common_one_with_an_intercept_of_its_own():
    X, y = drawn()
    X = X.fillna(0.0)
    new = X[:5].assign(shop="never seen")
    encoder = MixedModelEncoder("shop", remainder="drop").fit(X, y)
    found = encoder.transform(new)
    encoder.set_params(unseen="prior")
    common = encoder.transform(X.assign(shop="never seen")).ravel()
    expected = intercepts_by_hand(X, y - common, new) - (y - common).mean()
    assert found - encoder.transform(new) == pytest.approx(np.full((5, 1), expected), rel=1e-6)


def fitted_curve(X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    columns = [X[name].to_numpy() for name in X if name != "shop"]
    scores = fit_normal_scores(columns, None).apply(columns)
    return np.asarray(fit_curve(scores, y, None).predict(scores))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table, pd.DataFrame.to_numpy])
def test_every_library_gives_the_same_vectors(library):
    X, y = drawn()
    X = X.fillna(1.0)
    new = X[:20].assign(shop=["new", "newer"] * 10)
    plain = library if library is pd.DataFrame.to_numpy else lambda frame: library(frame.to_dict("list"))
    group = 3 if library is pd.DataFrame.to_numpy else "shop"
    encoder = MeansEncoder(group, remainder="drop").fit(plain(X), y)
    expected = new.groupby("shop")[["a", "b", "c"]].mean().loc[new["shop"]]
    np.testing.assert_allclose(np.asarray(encoder.transform(plain(new)), dtype=float), expected)


@pytest.mark.parametrize("name", ENCODERS)
def test_a_saved_encoder_gives_new_levels_the_same_vectors(name, tmp_path):
    encoder, X = fitted(name)
    encoder.save(tmp_path / "shop.sufrep")
    new = X[:9].assign(shop="never seen")
    np.testing.assert_array_equal(
        sufrep.load(tmp_path / "shop.sufrep").transform(new), encoder.transform(new)
    )


def test_several_and_crossed_groups_and_shares_are_estimated():
    X, y = drawn()
    X["town"], X["colour"] = np.where(np.arange(len(X)) % 3, "north", "south"), list("rgb") * (len(X) // 3)
    group = ["shop", ("shop", "town")]
    encoder = MeansEncoder(group, categorical_covariates="share", remainder="drop").fit(X, y)
    new = X[:12].assign(town="west", shop=["s0"] * 6 + ["new"] * 6)
    found = pd.DataFrame(encoder.transform(new), columns=encoder.get_feature_names_out())
    np.testing.assert_allclose(found["shop:town_mean_a"][:6], new["a"][:6].mean())
    np.testing.assert_allclose(found["shop_mean_a"][6:], new["a"][6:].mean())
    np.testing.assert_allclose(found["shop_mean_colour=r"][6:], (new["colour"][6:] == "r").mean())
    known = encoder.representations_["shop"].lookup(["s0"])[0]
    np.testing.assert_allclose(found.iloc[0, : len(known)], known)


def test_new_levels_are_predicted_better_than_with_the_prior_and_than_without_the_column():
    sample = simulate("latent_linear", n=4000, p=8, n_latent=3, levels_per_latent=20, seed=1)
    X = pd.DataFrame(sample.columns())
    held_out = X["group"].isin(X["group"].unique()[:12]).to_numpy()
    learner = HistGradientBoostingRegressor(max_iter=50, random_state=0)

    def error(train: Any, test: Any) -> float:
        predicted = learner.fit(train, sample.y[~held_out]).predict(test)
        return float(np.mean((predicted - sample.y[held_out]) ** 2))

    errors = {"drop": error(X[~held_out].drop(columns="group"), X[held_out].drop(columns="group"))}
    for unseen in ("prior", "estimate"):
        encoder = LatentStateEncoder("group", n_states=3, unseen=unseen)
        errors[unseen] = error(encoder.fit_transform(X[~held_out]), encoder.transform(X[held_out]))
    assert errors["estimate"] < 0.9 * min(errors["drop"], errors["prior"])


# Levels that are learnt for good.


@pytest.mark.parametrize("name", ENCODERS)
def test_learnt_levels_keep_the_vector_that_their_rows_said(name, tmp_path):
    X, y = drawn()
    encoder = clone(ENCODERS[name]).set_params(remainder="drop").fit(X, y)
    new = X[:30].assign(shop=["new", "a new one"] * 15)
    before, table = encoder.transform(X), encoder.table()
    expected = encoder.transform(new)
    learnt = encoder.learn_levels(pd.concat([X[30:40], new]))
    np.testing.assert_allclose(learnt.transform(new), expected, rtol=1e-9)
    # One row is now answered like thirty, because the level is known; other levels are as they were.
    if name not in ("hidden states", "hidden states with target"):  # a row's own covariates matter there
        np.testing.assert_allclose(learnt.transform(new[:1]), expected[:1], rtol=1e-9)
    np.testing.assert_allclose(learnt.transform(X), before, rtol=1e-9)
    found = learnt.table(errors=True).set_index("shop")
    assert set(found.index.dropna()) == {*table["shop"].dropna(), "new", "a new one"}
    known = encoder.table(errors=True).set_index("shop")
    if name not in ("logit", "logit in closed form"):  # their intercepts are relative to all levels
        # W stays; the errors of a prior that is estimated from more levels may be smaller.
        pd.testing.assert_frame_equal(found.loc[known.index], known, rtol=0.1)
    assert encoder.table().equals(table)
    learnt.save(tmp_path / "learnt.sufrep")
    np.testing.assert_array_equal(
        sufrep.load(tmp_path / "learnt.sufrep").transform(new), learnt.transform(new)
    )


def test_levels_may_be_learnt_night_after_night():
    X, y = drawn()
    encoder = MeansEncoder("shop", shrinkage="auto", use_target=True, min_frequency=20).fit(X, y)
    first, second = X[:7].assign(shop="a"), X[7:12].assign(shop="zz")
    found = encoder.learn_levels(first).learn_levels(second)
    both = pd.concat([first, second, X])
    expected = encoder.learn_levels(pd.concat([second, first])).transform(both)
    np.testing.assert_allclose(found.transform(both), expected, rtol=1e-12)
    np.testing.assert_allclose(found.transform(X), encoder.transform(X), rtol=1e-12)


@pytest.mark.parametrize("classes", [False, True])
def test_a_level_that_is_learnt_with_its_target_is_shrunk_like_a_known_one(classes):
    X, y = drawn()
    X = X.fillna(0.0)
    target = np.where(y > np.median(y), "yes", "no") if classes else y
    encoder = MeansEncoder("shop", shrinkage="auto", use_target=True, remainder="drop").fit(X, target)
    new = X[:30].assign(shop="new")
    learnt = encoder.learn_levels(new, target[:30])
    columns = [*X.drop(columns="shop").to_numpy().T]
    columns += [target == "no", target == "yes"] if classes else [y]
    matrix = np.column_stack(columns).astype(float)
    prior = estimate_means_prior(GroupMoments.from_rows(X["shop"].tolist(), matrix))
    expected = prior.posterior(matrix[:30].mean(axis=0)[None], np.array([30.0]))[0]
    expected = np.append(expected[:3], expected[4]) if classes else expected
    np.testing.assert_allclose(learnt.transform(new[:1])[0], expected, rtol=1e-9)
    assert not np.allclose(encoder.transform(new)[0], expected)


@pytest.mark.parametrize("chosen", [(), ("target_mean", "means"), ("states", "local_effect")])
def test_an_encoder_that_is_made_of_others_learns_what_these_can_learn(chosen, choose, tmp_path):
    choose(*chosen)
    X, y = drawn(n=60)
    encoder = SufficientEncoder("shop", remainder="drop").fit(X, y)
    new = X[:10].assign(shop="new")
    learnt, expected = encoder.learn_levels(pd.concat([new, X[10:12]])), encoder.transform(new)
    np.testing.assert_allclose(learnt.transform(new), expected, rtol=1e-9)
    np.testing.assert_allclose(learnt.transform(X), encoder.transform(X), rtol=1e-9)
    assert set(learnt.table()["shop"].dropna()) == {*X["shop"].dropna(), "new"}
    learnt.save(tmp_path / "learnt.sufrep")
    loaded = sufrep.load(tmp_path / "learnt.sufrep")
    np.testing.assert_array_equal(loaded.transform(new), learnt.transform(new))
    with pytest.raises(TargetError, match="SufficientEncoder cannot learn"):
        encoder.learn_levels(new, y[:10])


@pytest.mark.parametrize("method", ["one_hot", "fisher", "local_effect"])
def test_encoders_without_a_rule_refuse_to_learn_levels(method):
    X, y = drawn(n=60)
    encoder = make_encoder(method, "shop").fit(X.fillna(0.0), y)
    with pytest.raises(NoRuleError, match=r"has no rule(.|\n)*Hint: call fit with all rows"):
        encoder.learn_levels(X[:3].fillna(0.0).assign(shop="new"))


def test_a_target_that_cannot_be_used_is_refused():
    X, y = drawn()
    with pytest.raises(TargetError, match=r"RandomInterceptEncoder cannot learn(.|\n)*leave y out"):
        RandomInterceptEncoder("shop").fit(X, y).learn_levels(X[:3].assign(shop="new"), y[:3])
    kinds = np.where(y > np.median(y), "yes", "no")
    encoder = MeansEncoder("shop", use_target=True).fit(X, kinds)
    with pytest.raises(TargetError, match=r"classes that fit did not see: never\."):
        encoder.learn_levels(X[:3].assign(shop="new"), ["yes", "never", "never"])
    with pytest.raises(LengthMismatchError, match="y has 2"):
        encoder.learn_levels(X[:3].assign(shop="new"), ["yes", "no"])


def test_a_level_of_extreme_rows_is_learnt_as_it_is_encoded_and_changes_no_error():
    X, _ = drawn()
    encoder = MeansEncoder("shop", remainder="drop").fit(X)
    wild = X[:4].assign(shop="wild", a=[1e6, -1e6, 1e6, -1e6])
    found = encoder.learn_levels(wild).table(errors=True).set_index("shop")
    known = encoder.table(errors=True).set_index("shop")
    pd.testing.assert_frame_equal(found.loc[known.index], known)
    huge = X[:4].assign(shop="huge", a=1e200)
    np.testing.assert_array_equal(encoder.learn_levels(huge).transform(huge), encoder.transform(huge))


def test_errors_of_learnt_levels_are_unknown_to_components_without_a_rule(choose):
    choose("local_effect", "means")
    X, y = drawn(n=60)
    learnt = SufficientEncoder("shop").fit(X, y).learn_levels(X[:5].assign(shop="new"))
    errors = learnt.table(errors=True).set_index("shop").filter(like="_error")
    assert errors.loc["s1"].notna().sum() == 3
    assert errors.loc["new"].notna().sum() == 3
    assert learnt.plot() is not None
