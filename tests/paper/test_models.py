"""The learners: their settings, and that each fits and predicts alike every time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sufrep._paper import models
from sufrep._paper.models import MODELS, NATIVE_MODELS, TAKES_SPARSE, XGBOOST, grf_features, make_model
from sufrep.errors import InvalidParameterError, MissingDependencyError

PACKAGES = {"forest": "econml", "sklearn_forest": "sklearn", "xgboost": "xgboost"}
# The others read a column of levels by themselves; those of other libraries are in test_peers.py.
ENCODED = [name for name in MODELS if name not in NATIVE_MODELS]


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


@pytest.mark.parametrize("name", ENCODED)
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
    assert {name: parameters[name] for name in XGBOOST} == XGBOOST


@pytest.mark.parametrize("name", sorted(TAKES_SPARSE))
def test_models_that_are_said_to_take_sparse_rows_do(name):
    from scipy import sparse

    X, y = rows()
    prediction = made(name).fit(sparse.csr_array(X), y).predict(sparse.csr_array(X))
    assert np.isfinite(prediction).all()


def test_an_unknown_model_is_named_beside_those_that_are_known():
    expected = r"model is 'lasso'\.\nHint: model is one of forest, sklearn_forest, xgboost"
    with pytest.raises(InvalidParameterError, match=expected):
        make_model("lasso", n_columns=1, n_trees=4, seed=0)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("forest", "econml", "paper"),
        ("xgboost", "xgboost", "boost"),
        ("xgboost_native", "xgboost", "boost"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_its_extra(monkeypatch, name, package, extra):
    monkeypatch.setattr(models, "find_spec", lambda package: None)  # noqa: ARG005
    expected = rf"The model '{name}' needs the package '{package}'.*\n.*sufrep\[{extra}\]"
    with pytest.raises(MissingDependencyError, match=expected):
        make_model(name, n_columns=1, n_trees=4, seed=0)


def test_a_forest_of_scikit_learn_needs_no_further_package(monkeypatch):
    monkeypatch.setattr(models, "find_spec", lambda package: None)  # noqa: ARG005
    assert make_model("sklearn_forest", n_columns=1, n_trees=4, seed=0).n_estimators == 4


def test_the_formula_of_lemma_one_reads_the_column_after_the_covariates():
    assert make_model("latent_state_regressor", n_columns=4, n_trees=4, seed=0).group == 4
