"""Models and encodings of peers: their settings, and that they match their own libraries."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep._paper.methods import ModelSettings, evaluate
from sufrep._paper.models import (
    DEPTH,
    ENCODING_BUILDERS,
    LEARNING_RATE,
    PAPER_XGBOOST,
    ROUNDS,
    TAKES_SPARSE,
    TUNED_XGBOOST,
    grf_features,
    make_model,
    peer_columns,
)
from sufrep._paper.names import CLASS_MODELS, NATIVE, NATIVE_MODELS, PAPER_MODELS, PEER_ENCODINGS, PEER_MODELS
from sufrep._paper.samples import TrialData
from sufrep.errors import InvalidParameterError, MissingDependencyError

PACKAGES = {
    "forest": "econml",
    "sklearn_forest": "sklearn",
    "xgboost": "xgboost",
    "xgboost_tuned": "xgboost",
}
# The others read a column of levels by themselves; those of other libraries are tested below.
ENCODED = [name for name in PAPER_MODELS if name not in NATIVE_MODELS]


def made(name: str, *, n_columns: int = 4, n_trees: int = 8, seed: int = 0):
    pytest.importorskip(PACKAGES[name], reason=f"the model {name!r} needs {PACKAGES[name]}")
    return make_model(name, n_columns=n_columns, n_trees=n_trees, seed=seed)


def rows(seed: int = 0, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, 3 * X[:, 0] + rng.normal(size=n) / 10


@pytest.mark.parametrize(
    ("n_columns", "tried"), [(1, 1), (20, 20), (25, 25), (26, 26), (100, 30), (1020, 52)]
)
def test_grf_tries_the_root_of_the_columns_and_twenty_more(n_columns, tried):
    assert grf_features(n_columns) == tried


@given(st.integers(1, 100_000))
def test_the_number_of_candidate_columns_is_the_formula_of_grf(p):
    assert grf_features(p) == min(math.ceil(p**0.5 + 20), p)
    assert 1 <= grf_features(p) <= p
    assert grf_features(p) <= grf_features(p + 1)


@pytest.mark.parametrize("name", ENCODED)
def test_every_model_learns_and_a_seed_gives_the_same_predictions(name):
    (X, y), (new, truth) = rows(0), rows(1)
    predictions = [np.ravel(made(name, n_trees=20).fit(X, y).predict(new)) for _ in range(2)]
    np.testing.assert_array_equal(*predictions)
    assert np.mean((predictions[0] - truth) ** 2) < 0.5 * truth.var()


@pytest.mark.parametrize("name", [name for name in ENCODED if name != "xgboost_tuned"])
def test_every_model_takes_one_thread_and_its_seed(name):
    parameters = made(name, seed=17).get_params()
    assert parameters["n_jobs"] == 1
    assert parameters["random_state"] == 17


@pytest.mark.parametrize("name", ["forest", "sklearn_forest"])
def test_forests_have_as_many_trees_as_asked_for_and_the_candidates_of_grf(name):
    parameters = made(name, n_columns=1020, n_trees=12).get_params()
    assert parameters["n_estimators"] == 12
    assert parameters["max_features"] == 52
    assert parameters["min_samples_leaf"] == 5


def test_the_honest_forest_has_the_defaults_of_grf():
    parameters = made("forest").get_params()
    assert (parameters["honest"], parameters["max_samples"]) == (True, 0.5)
    # Each side of a split keeps 1/2 − 0.45 of its node: grf's alpha of 5 %.
    assert parameters["min_balancedness_tol"] == 0.45


def test_boosted_trees_have_the_settings_that_the_store_records():
    parameters = made("xgboost", n_trees=3).get_params()
    assert {name: parameters[name] for name in PAPER_XGBOOST} == PAPER_XGBOOST


@pytest.mark.parametrize("name", sorted(TAKES_SPARSE))
def test_models_listed_as_taking_sparse_rows_do(name):
    from scipy import sparse

    X, y = rows()
    prediction = made(name).fit(sparse.csr_array(X), y).predict(sparse.csr_array(X))
    assert np.isfinite(prediction).all()


def test_an_unknown_model_raises_with_the_known_ones():
    expected = r"model is 'lasso'\.\nHint: model must be one of forest, sklearn_forest, xgboost"
    with pytest.raises(InvalidParameterError, match=expected):
        make_model("lasso", n_columns=1, n_trees=4, seed=0)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("forest", "econml", "paper"),
        ("xgboost", "xgboost", "boost"),
        ("xgboost_tuned", "xgboost", "boost"),
        ("xgboost_native", "xgboost", "boost"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_its_extra(monkeypatch, name, package, extra):
    monkeypatch.setitem(sys.modules, {"econml": "econml.grf"}.get(package, package), None)
    expected = rf"The model '{name}' needs the package '{package}'.*\n.*sufrep\[{extra}\]"
    with pytest.raises(MissingDependencyError, match=expected):
        make_model(name, n_columns=1, n_trees=4, seed=0)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_tuned_trees_are_those_that_xgboost_called_by_hand_finds(as_sparse):
    from scipy import sparse
    from xgboost import DMatrix, train

    made("xgboost_tuned")
    (X, y), (new, _) = rows(0, n=500), rows(1)
    rate: dict[str, Any] = {"learning_rate": 0.06, "nthread": 1, "seed": 3}
    order = np.random.default_rng(3).permutation(500)
    held_out, rest = DMatrix(X[order[:100]], y[order[:100]]), DMatrix(X[order[100:]], y[order[100:]])
    errors: dict[tuple[int, int], float] = {}
    for depth in (3, 6, 9):
        history: dict[str, Any] = {}
        train(
            {**rate, "max_depth": depth},
            rest,
            num_boost_round=300,
            evals=[(held_out, "validation")],
            evals_result=history,
            verbose_eval=False,
        )
        by_round = history["validation"]["rmse"]
        # The first minimum that is not beaten in the 20 rounds after it.
        best = next(i for i, error in enumerate(by_round) if error <= min(by_round[: i + 21]))
        errors[depth, best + 1] = by_round[best]
    depth, n_rounds = min(errors, key=errors.__getitem__)
    expected = train({**rate, "max_depth": depth}, DMatrix(X, y), num_boost_round=n_rounds).predict(
        DMatrix(new)
    )

    as_given = sparse.csr_array if as_sparse else np.asarray
    model = made("xgboost_tuned", seed=3).fit(as_given(X), y)
    assert (model.depth_, model.n_rounds_) == (depth, n_rounds)
    np.testing.assert_allclose(model.predict(as_given(new)), expected, rtol=1e-5)


def test_tuned_trees_are_judged_on_a_fifth_of_the_rows_with_early_stopping():
    assert TUNED_XGBOOST == {
        "learning_rate": 0.06,
        "max_depth": [3, 6, 9],
        "max_rounds": 5000,
        "early_stopping_rounds": 20,
        "validation_share": 0.2,
    }


def test_the_formula_of_lemma_one_reads_the_column_after_the_covariates():
    assert make_model("latent_state_regressor", n_columns=4, n_trees=4, seed=0).group == 4


# Peers


PEERS = ("xgboost", "lightgbm", "catboost", "gpboost", "category_encoders")

READERS = ("xgboost_native", *PEER_MODELS)
UNSEEN = 99


@cache
def peer_data() -> TrialData:
    """600 rows of 30 levels, each with an effect on y; some covariates are missing. The last are tested."""
    for package in PEERS:
        pytest.importorskip(package, reason="the peers are in the extra 'peers'")
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 30, 600)
    X = rng.normal(size=(600, 3))
    y = 2 * X[:, 0] + rng.normal(size=30)[codes] + 10 + rng.normal(size=600) / 5
    X[rng.random(X.shape) < 0.05] = np.nan
    return TrialData(X, codes, y, test=np.arange(600) >= 450)


def columns(method: str, seed: int = 0, new: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    sample = peer_data()
    train = ~sample.test
    new = sample.codes[sample.test] if new is None else new
    return peer_columns(method, sample.codes[train], sample.y[train], new, seed)


@cache
def fitted(name: str, seed: int = 0) -> Any:
    """A model fitted to the training rows, once for all tests."""
    return fit(name, seed, peer_data().y)


def fit(name: str, seed: int, y: np.ndarray) -> Any:
    sample = peer_data()
    model = make_model(name, n_columns=3, n_trees=0, seed=seed)
    return model.fit(sample.table[~sample.test], y[~sample.test])


def predicted(name: str, table: np.ndarray) -> np.ndarray:
    return np.asarray(fitted(name).predict(table))


# Encodings


def test_the_target_encoder_is_scikit_learn_s_with_its_own_cross_fitting():
    from sklearn.model_selection import KFold

    sample = peer_data()
    codes, y = sample.codes[~sample.test], sample.y[~sample.test]
    train, test = columns("target_encoder", seed=7)
    # In training: the same encoder, fitted to the other four folds.
    for fit, held_out in KFold(5, shuffle=True, random_state=7).split(codes):
        np.testing.assert_allclose(
            train[held_out], peer_columns("target_encoder", codes[fit], y[fit], codes[held_out], 7)[1]
        )
    # For new rows: the mean of the level, smoothed by the variances (empirical Bayes).
    of_level = y[codes == 3]
    weight = y.var() / (y.var() + of_level.var() / len(of_level))
    expected = weight * of_level.mean() + (1 - weight) * y.mean()
    np.testing.assert_allclose(test[sample.codes[sample.test] == 3], expected)


def test_the_catboost_encoder_takes_the_rows_before_in_a_random_order():
    sample = peer_data()
    codes, y = sample.codes[~sample.test], sample.y[~sample.test]
    train, test = columns("catboost_encoder", seed=3)
    sums, counts = np.zeros(30), np.zeros(30)
    for row in np.random.default_rng(3).permutation(len(codes)):
        level = codes[row]
        assert train[row, 0] == pytest.approx((sums[level] + y.mean()) / (counts[level] + 1))
        sums[level], counts[level] = sums[level] + y[row], counts[level] + 1
    expected = (sums + y.mean()) / (counts + 1)
    np.testing.assert_allclose(test[:, 0], expected[sample.codes[sample.test]])


@pytest.mark.parametrize(
    ("method", "name", "options"),
    [("james_stein", "JamesSteinEncoder", {}), ("glmm", "GLMMEncoder", {"binomial_target": False})],
)
def test_other_encodings_are_those_of_category_encoders_for_levels_that_are_text(method, name, options):
    import category_encoders

    sample = peer_data()
    levels = pd.DataFrame({"level": [f"level {code}" for code in sample.codes]})
    encoder = getattr(category_encoders, name)(cols=["level"], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        train = encoder.fit_transform(levels[~sample.test], pd.Series(sample.y[~sample.test]))
        test = encoder.transform(levels[sample.test])
    ours = columns(method)
    np.testing.assert_allclose(ours[0], train.to_numpy())
    np.testing.assert_allclose(ours[1], test.to_numpy())


def test_the_mixed_model_gives_the_random_effects_of_statsmodels():
    from statsmodels.regression.mixed_linear_model import MixedLM

    sample = peer_data()
    train = ~sample.test
    fitted = MixedLM(sample.y[train], np.ones((450, 1)), groups=sample.codes[train]).fit()
    effects = np.array([fitted.random_effects[code].iloc[0] for code in sample.codes[train]])
    np.testing.assert_allclose(columns("glmm")[0][:, 0], effects, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", PEER_ENCODINGS)
def test_an_unseen_level_is_encoded_as_an_average_level(method):
    sample = peer_data()
    new = columns(method, new=np.array([UNSEEN, 3, UNSEEN]))[1]
    assert new.shape == (3, 1)
    average = 0 if method == "glmm" else sample.y[~sample.test].mean()
    np.testing.assert_allclose(new[[0, 2], 0], average)
    assert new[1, 0] != pytest.approx(average)


@pytest.mark.parametrize("method", PEER_ENCODINGS)
def test_columns_depend_on_the_seed_only_through_the_order_of_rows(method):
    first, same, other = (columns(method, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first[0], same[0])
    np.testing.assert_array_equal(first[1], same[1])
    np.testing.assert_allclose(first[1], other[1])
    depends = method in ("target_encoder", "catboost_encoder")
    assert np.allclose(first[0], other[0]) != depends


@pytest.mark.parametrize("method", PEER_ENCODINGS)
def test_an_encoding_is_one_column_next_to_the_covariates_and_uses_the_seed_of_the_trial(method):
    from xgboost import XGBRegressor

    sample = peer_data()
    train, test = columns(method, seed=5)
    model = XGBRegressor(**PAPER_XGBOOST).fit(
        np.hstack([sample.X[~sample.test], train]), sample.y[~sample.test]
    )
    error = np.mean((model.predict(np.hstack([sample.X[sample.test], test])) - sample.y[sample.test]) ** 2)
    result = evaluate(sample, method, ModelSettings("xgboost", 4, seed=5))
    assert (result.loss, result.n_columns) == (pytest.approx(error, rel=1e-6), 1)


# Models that read the levels without an encoding


def by_hand(name: str) -> np.ndarray:
    """Predictions for the test rows, with levels as each library's own example has them."""
    sample = peer_data()
    train, test, y = ~sample.test, sample.test, sample.y[~sample.test]
    frame = pd.DataFrame(sample.X, columns=["a", "b", "c"])
    frame["level"] = pd.Categorical(sample.codes)
    if name == "xgboost_native":
        from xgboost import XGBRegressor

        return (
            XGBRegressor(**PAPER_XGBOOST, enable_categorical=True).fit(frame[train], y).predict(frame[test])
        )
    if name == "lightgbm_native":
        from lightgbm import LGBMRegressor

        settings: dict[str, Any] = {"max_depth": 4, "num_leaves": 16, "verbose": -1, "deterministic": True}
        model = LGBMRegressor(n_estimators=100, learning_rate=0.2, n_jobs=1, **settings)
        return np.asarray(model.fit(frame[train], y).predict(frame[test]))
    if name == "catboost_native":
        from catboost import CatBoostRegressor, Pool

        text = frame.assign(level=[str(code) for code in sample.codes])
        model = CatBoostRegressor(100, 0.2, 4, silent=True, allow_writing_files=False, random_seed=0)
        model.fit(Pool(text[train], y, cat_features=["level"]))
        return np.asarray(model.predict(text[test]))
    import gpboost

    settings = {"learning_rate": 0.2, "max_depth": 4, "num_leaves": 16, "line_search_step_length": True}
    booster = gpboost.train(
        {**settings, "num_threads": 1, "verbose": -1},
        gpboost.Dataset(frame.loc[train, ["a", "b", "c"]], y),
        gp_model=gpboost.GPModel(group_data=sample.codes[train].astype(str), num_parallel_threads=1),
        num_boost_round=100,
    )
    new = frame.loc[test, ["a", "b", "c"]]
    found = booster.predict(new, group_data_pred=sample.codes[test].astype(str), pred_latent=True)
    return np.asarray(found["fixed_effect"] + found["random_effect_mean"])


@pytest.mark.parametrize("name", READERS)
def test_predictions_are_those_of_the_library_called_by_hand(name):
    sample = peer_data()
    expected = by_hand(name)
    np.testing.assert_allclose(predicted(name, sample.table[sample.test]), expected, rtol=1e-5)
    error = float(np.mean((expected - sample.y[sample.test]) ** 2))
    result = evaluate(sample, NATIVE, ModelSettings(name, 4, 0))
    assert (result.loss, result.n_columns) == (pytest.approx(error, rel=1e-5), 0)


@cache
def error_without_levels() -> float:
    return evaluate(peer_data(), "drop", ModelSettings("xgboost", 4, 0)).loss


@pytest.mark.parametrize("name", READERS)
def test_models_learn_from_the_levels_and_from_rows_with_missing_covariates(name):
    sample = peer_data()
    error = np.mean((predicted(name, sample.table[sample.test]) - sample.y[sample.test]) ** 2)
    assert error < 0.8 * error_without_levels()
    none = np.full((2, 4), np.nan)
    none[:, 3] = [3, UNSEEN]
    assert np.isfinite(predicted(name, none)).all()


@pytest.mark.parametrize("name", READERS)
def test_an_unseen_level_does_not_change_predictions_for_other_rows(name):
    table = peer_data().table[peer_data().test]
    before = predicted(name, table)
    table[0, -1] = UNSEEN
    after = predicted(name, table)
    assert np.isfinite(after).all()
    assert after[0] != before[0]
    np.testing.assert_array_equal(after[1:], before[1:])


def test_the_random_effect_of_an_unseen_level_is_zero():
    sample = peer_data()
    model = fitted("gpboost")
    table = sample.table[:5]
    fixed = model._booster.predict(table[:, :3], group_data_pred=table[:, 3].astype(int), pred_latent=True)
    table[:, 3] = UNSEEN
    np.testing.assert_allclose(model.predict(table), fixed["fixed_effect"])


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_gpboost_does_not_depend_on_the_unit_of_y(unit):
    table = peer_data().table[peer_data().test]
    found = fit("gpboost", 0, unit * peer_data().y).predict(table)
    np.testing.assert_allclose(found, unit * predicted("gpboost", table), rtol=0.02)


@pytest.mark.parametrize("name", READERS)
def test_a_model_repeats_itself(name):
    table = peer_data().table[peer_data().test]
    np.testing.assert_array_equal(fit(name, 0, peer_data().y).predict(table), predicted(name, table))


def test_the_seed_reaches_catboost():
    table = peer_data().table[peer_data().test]
    other = fit("catboost_native", 1, peer_data().y).predict(table)
    assert not np.array_equal(predicted("catboost_native", table), other)


def test_all_have_as_many_rounds_as_the_xgboost_of_the_encodings():
    assert tuple(PAPER_XGBOOST[name] for name in ("n_estimators", "learning_rate", "max_depth")) == (
        ROUNDS,
        LEARNING_RATE,
        DEPTH,
    )
    assert fitted("xgboost_native").get_booster().num_boosted_rounds() == 100
    assert fitted("lightgbm_native")._model.booster_.num_trees() == 100
    assert fitted("catboost_native")._model.tree_count_ == 100
    assert fitted("gpboost")._booster.num_trees() == 100


# Classes


@cache
def class_data(n_classes: int) -> TrialData:
    """The rows of `peer_data`, whose targets are cut into classes of about the same size."""
    sample = peer_data()
    cuts = np.quantile(sample.y, np.arange(1, n_classes) / n_classes)
    kind: Any = "binary" if n_classes == 2 else "multiclass"
    return replace(sample, y=np.searchsorted(cuts, sample.y).astype(float), target_type=kind)


def classifier_by_hand(name: str, sample: TrialData) -> np.ndarray:
    """Probabilities for the test rows, with levels as each library's own example has them."""
    train, test, y = ~sample.test, sample.test, sample.y[~sample.test].astype(int)
    frame = pd.DataFrame(sample.X, columns=["a", "b", "c"])
    frame["level"] = pd.Categorical(sample.codes)
    if name == "xgboost_native":
        from xgboost import XGBClassifier

        model = XGBClassifier(**PAPER_XGBOOST, enable_categorical=True)
        return model.fit(frame[train], y).predict_proba(frame[test])
    if name == "lightgbm_native":
        from lightgbm import LGBMClassifier

        settings: dict[str, Any] = {"max_depth": 4, "num_leaves": 16, "verbose": -1, "deterministic": True}
        model = LGBMClassifier(n_estimators=100, learning_rate=0.2, n_jobs=1, **settings)
        return np.asarray(model.fit(frame[train], y).predict_proba(frame[test]))
    if name == "catboost_native":
        from catboost import CatBoostClassifier, Pool

        text = frame.assign(level=[str(code) for code in sample.codes])
        settings = {"iterations": 100, "learning_rate": 0.2, "depth": 4, "random_seed": 0}
        model = CatBoostClassifier(**settings, silent=True, allow_writing_files=False)
        model.fit(Pool(text[train], y, cat_features=["level"]))
        return np.asarray(model.predict_proba(text[test]))
    import gpboost

    booster = gpboost.train(
        {"learning_rate": 0.2, "max_depth": 4, "num_leaves": 16, "num_threads": 1, "verbose": -1},
        gpboost.Dataset(frame.loc[train, ["a", "b", "c"]], y),
        gp_model=gpboost.GPModel(
            group_data=sample.codes[train].astype(str), likelihood="bernoulli_logit", num_parallel_threads=1
        ),
        num_boost_round=100,
    )
    levels = sample.codes[test].astype(str)
    found = booster.predict(frame.loc[test, ["a", "b", "c"]], group_data_pred=levels)["response_mean"]
    return np.column_stack([1 - found, found])


@pytest.mark.parametrize(
    ("name", "n_classes"), [(name, n) for name in READERS for n in (2, 4) if (name, n) != ("gpboost", 4)]
)
def test_log_losses_are_those_of_the_library_called_by_hand(name, n_classes):
    sample = class_data(n_classes)
    probabilities = classifier_by_hand(name, sample)
    own = probabilities[np.arange(150), sample.y[sample.test].astype(int)]
    result = evaluate(sample, NATIVE, ModelSettings(name, 4, 0))
    assert (result.loss, result.n_columns) == (pytest.approx(-np.log(own).mean(), rel=1e-4), 0)
    without = evaluate(sample, "drop", ModelSettings("xgboost", 4, 0)).loss
    assert result.loss < 0.95 * without


@pytest.mark.parametrize("name", CLASS_MODELS)
def test_a_class_without_training_rows_has_the_smallest_probability(name):
    """Its loss is finite, so that the fold counts."""
    sample = class_data(2)
    y = sample.y.copy()
    y[np.flatnonzero(sample.test)[:3]] = 2
    loss = evaluate(sample, NATIVE if name != "xgboost" else "drop", ModelSettings(name, 4, 0)).loss
    other = evaluate(
        replace(sample, y=y), NATIVE if name != "xgboost" else "drop", ModelSettings(name, 4, 0)
    ).loss
    assert loss < other < loss + 3 / 150 * 17


@pytest.mark.parametrize("name", ["forest", "xgboost_tuned", "latent_state_regressor"])
def test_a_model_of_numbers_is_refused_for_classes(name):
    with pytest.raises(InvalidParameterError, match="model must be one of xgboost, xgboost_native"):
        make_model(name, n_columns=1, n_trees=4, seed=0, classes=True)


def test_the_target_encoder_has_a_column_for_each_of_several_classes():
    sample = class_data(4)
    codes, y = sample.codes[~sample.test], sample.y[~sample.test]
    train, test = peer_columns("target_encoder", codes, y, sample.codes[sample.test], 0, "multiclass")
    assert (train.shape, test.shape) == ((450, 4), (150, 4))
    of_class, of_level = y == 1, codes == 3
    share = of_class[of_level].mean()
    variance = of_class.mean() * (1 - of_class.mean())
    weight = variance / (variance + share * (1 - share) / of_level.sum())
    expected = weight * share + (1 - weight) * of_class.mean()
    np.testing.assert_allclose(test[sample.codes[sample.test] == 3, 1], expected)
    assert evaluate(sample, "target_encoder", ModelSettings("xgboost", 4, 0)).n_columns == 4


@pytest.mark.parametrize("method", PEER_ENCODINGS)
def test_two_classes_are_one_column_in_every_encoding_of_peers(method):
    result = evaluate(class_data(2), method, ModelSettings("xgboost", 4, 0))
    assert result.n_columns == 1
    assert result.loss < np.log(2)


def test_the_mixed_model_of_two_classes_is_logistic():
    encoder = ENCODING_BUILDERS["glmm"](0, "binary")
    assert encoder.binomial_target
    assert not ENCODING_BUILDERS["glmm"](0, "continuous").binomial_target


THREADS = """
import os, numpy as np
from sufrep._paper.models import make_model
from sufrep._paper.names import PEER_MODELS
table = np.random.default_rng(0).normal(size=(2000, 4))
table[:, 3] = np.arange(2000) % 50
for name in PEER_MODELS:
    model = make_model(name, n_columns=3, n_trees=0, seed=0)
    before = len(os.listdir("/proc/self/task"))
    model.fit(table, table[:, 0]).predict(table)
    print(name, len(os.listdir("/proc/self/task")) - before, os.listdir())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted as on Linux")
def test_models_start_no_threads_and_write_no_files_and_nothing_on_the_screen(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", THREADS], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    # CatBoost starts one that waits, however many work.
    assert done.stdout == "lightgbm_native 0 []\ncatboost_native 1 []\ngpboost 0 []\n"
    assert done.stderr == ""
    assert make_model("catboost_native", n_columns=3, n_trees=0, seed=0)._model.get_param("thread_count") == 1


# Missing packages


@pytest.mark.parametrize(
    ("name", "package"),
    [("lightgbm_native", "lightgbm"), ("catboost_native", "catboost"), ("gpboost", "gpboost")],
)
def test_a_model_whose_package_is_missing_names_it_with_its_extra(monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    expected = rf"The model '{name}' needs the package '{package}'.*\n.*sufrep\[peers\]"
    with pytest.raises(MissingDependencyError, match=expected):
        make_model(name, n_columns=3, n_trees=0, seed=0)


@pytest.mark.parametrize("method", ["james_stein", "catboost_encoder", "glmm"])
def test_an_encoding_whose_package_is_missing_names_it_with_its_extra(monkeypatch, method):
    monkeypatch.setitem(sys.modules, "category_encoders", None)
    expected = r"Encoder' needs the package 'category_encoders'.*\n.*sufrep\[peers\]"
    with pytest.raises(MissingDependencyError, match=expected):
        columns(method)


# Several groups


@pytest.mark.parametrize("name", NATIVE_MODELS)
def test_models_that_read_levels_read_those_of_several_groups(name):
    """A second group whose effect no other column shows, so that only a model that reads it predicts well."""
    sample = peer_data()
    other = np.random.default_rng(1).integers(0, 12, 600)
    y = sample.y + 3 * np.random.default_rng(2).normal(size=12)[other]
    both = replace(sample, X=np.nan_to_num(sample.X), y=y, other_codes=(other,))
    found = [
        evaluate(data, "native", ModelSettings(name, 4, seed=0)).loss
        for data in (both, replace(both, other_codes=()))
    ]
    assert found[0] < 0.7 * found[1]


@pytest.mark.parametrize("method", ["target_encoder", "cells", "shares", "one_hot"])
def test_encodings_encode_every_group(method):
    sample = peer_data()
    other = np.random.default_rng(1).integers(0, 12, 600)
    both = replace(sample, other_codes=(other,))
    settings = ModelSettings("xgboost", 4, seed=0)
    several, one = (evaluate(data, method, settings).n_columns for data in (both, sample))
    assert several > one
