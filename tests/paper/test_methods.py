"""One method on one sample: errors against plain numpy and xgboost, and a choice that sees no test row."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from sufrep import LowRankEncoder, make_encoder
from sufrep._paper import methods
from sufrep._paper.methods import (
    ALPHAS,
    COMPONENTS,
    ModelSettings,
    TrialResult,
    chooses_components,
    evaluate,
)
from sufrep._paper.models import PAPER_XGBOOST, make_model
from sufrep._paper.names import TRIAL_METHODS
from sufrep._paper.plan import Settings, SimulationTrial
from sufrep._paper.samples import TrialData, simulated_data
from sufrep.encoders import METHODS

pytest.importorskip("xgboost", reason="the experiments need xgboost")

BOOST = ModelSettings("xgboost", 8, seed=0)


@cache
def drawn(n: int = 400, p: int = 6, n_latent: int = 2, levels: int = 5, seed: int = 0) -> TrialData:
    trial = SimulationTrial("latent_linear", n_latent, levels, "xgboost", "means", seed)
    return simulated_data(trial, Settings(n=n, p=p))


def boosted_error(sample: TrialData, columns: np.ndarray) -> float:
    """By hand: xgboost on the training rows of covariates and columns, squared error on the test rows."""
    from xgboost import XGBRegressor

    rows = np.hstack([sample.X, columns])
    model = XGBRegressor(**PAPER_XGBOOST, random_state=0).fit(rows[~sample.test], sample.y[~sample.test])
    return float(np.mean((model.predict(rows[sample.test]) - sample.y[sample.test]) ** 2))


# Against plain numpy and xgboost


def test_means_are_the_averages_of_the_training_rows_of_each_level():
    sample = drawn()
    train = ~sample.test
    means = np.array([sample.X[train & (sample.codes == level)].mean(axis=0) for level in range(10)])
    result = evaluate(sample, "means", BOOST)
    assert result.loss == pytest.approx(boosted_error(sample, means[sample.codes]), rel=1e-6)
    assert result == TrialResult(result.loss, n_columns=6)


def test_one_hot_columns_are_indicators_of_all_levels_but_the_first():
    sample = drawn()
    columns = (sample.codes[:, None] == np.arange(1, 10)).astype(float)
    result = evaluate(sample, "one_hot", BOOST)
    assert result.loss == pytest.approx(boosted_error(sample, columns), rel=1e-6)
    assert result == TrialResult(result.loss, n_columns=9)


def test_drop_sees_the_covariates_alone():
    sample = drawn()
    result = evaluate(sample, "drop", BOOST)
    assert result == TrialResult(boosted_error(sample, np.empty((400, 0))), n_columns=0)


def test_the_oracle_sees_the_probabilities_of_the_states():
    sample = drawn()
    result = evaluate(sample, "oracle", BOOST)
    assert result == TrialResult(boosted_error(sample, sample.truth.state_probabilities), n_columns=2)


def test_bayes_is_the_error_of_the_conditional_mean_and_fits_no_model():
    sample = drawn()
    errors = (sample.y - sample.truth.conditional_mean)[sample.test]
    assert evaluate(sample, "bayes", ModelSettings("no model", 0, 0)) == TrialResult(
        float(np.mean(errors**2))
    )


@pytest.mark.parametrize("model", ["xgboost", "sklearn_forest"])
def test_the_oracle_beats_one_hot_columns_where_levels_are_many(model):
    sample = drawn(n=2000, p=20, n_latent=10, levels=20)
    one_hot, oracle, bayes = (
        evaluate(sample, method, ModelSettings(model, 20, 0)).loss
        for method in ("one_hot", "oracle", "bayes")
    )
    assert bayes < oracle < 0.95 * one_hot


# Classes


def with_classes(n_classes: int) -> TrialData:
    sample = drawn()
    cuts = np.quantile(sample.y, np.arange(1, n_classes) / n_classes)
    kind: Any = "binary" if n_classes == 2 else "multiclass"
    return replace(sample, y=np.searchsorted(cuts, sample.y).astype(float), truth=None, target_type=kind)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_are_judged_by_the_logarithm_of_their_probability(n_classes):
    from xgboost import XGBClassifier

    sample = with_classes(n_classes)
    train, test = ~sample.test, sample.test
    means = np.array([sample.X[train & (sample.codes == level)].mean(axis=0) for level in range(10)])
    rows = np.hstack([sample.X, means[sample.codes]])
    model = XGBClassifier(**PAPER_XGBOOST, random_state=0).fit(rows[train], sample.y[train].astype(int))
    own = model.predict_proba(rows[test])[np.arange(test.sum()), sample.y[test].astype(int)]
    result = evaluate(sample, "means", BOOST)
    assert result == TrialResult(pytest.approx(-np.log(own).mean(), rel=1e-5), n_columns=6)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("method", ["fisher", "low_rank", "one_hot", "drop"])
def test_other_methods_run_on_classes_and_repeat_themselves(method, n_classes):
    sample = with_classes(n_classes)
    result = evaluate(sample, method, BOOST)
    assert 0 < result.loss < 2 * np.log(n_classes)
    assert evaluate(sample, method, BOOST) == result


@pytest.mark.parametrize(("n_classes", "columns"), [(2, 1), (4, 4)])
def test_encoders_that_use_the_target_know_that_it_is_classes(n_classes, columns):
    assert evaluate(with_classes(n_classes), "random_intercept", BOOST).n_columns == columns


@pytest.mark.parametrize(
    ("sample", "judge"),
    [
        (drawn(), "XGBRegressor"),
        (with_classes(2), "LabelledClassifier"),
        (with_classes(4), "LabelledClassifier"),
    ],
    ids=["numbers", "two", "four"],
)
@pytest.mark.parametrize("model", ["xgboost", "xgboost_tuned"])
def test_the_sufficient_encoder_is_told_the_kind_of_target_and_judges_with_the_paper_s_trees(
    monkeypatch, sample, judge, model
):
    asked = {}

    def made(_: str, **parameters: Any) -> Any:
        asked.update(parameters)
        return make_encoder("means", group=parameters["group"])

    monkeypatch.setattr(methods, "make_encoder", made)
    methods._encode(sample, "sufficient", ModelSettings(model, 8, 0), {}, sparse=False)
    assert asked["target_type"] == sample.target_type
    assert type(asked["estimator"]).__name__ == judge
    trees = getattr(asked["estimator"], "estimator", asked["estimator"])
    assert {name: trees.get_params()[name] for name in PAPER_XGBOOST} == PAPER_XGBOOST


# Sparse columns


def test_one_hot_columns_are_sparse_if_the_model_accepts_them(monkeypatch):
    seen = []

    def watched(name: str, **arguments: Any) -> Any:
        model = make_model(name, **arguments)
        fit = model.fit
        model.fit = lambda X, y: (seen.append(sparse.issparse(X)), fit(X, y))[1]
        return model

    monkeypatch.setattr(methods, "make_model", watched)
    for method in ("one_hot", "deviation", "means"):
        evaluate(drawn(), method, BOOST)
    evaluate(drawn(), "one_hot", ModelSettings("sklearn_forest", 4, 0))
    assert seen == [True, False, False, True]


def sparse_or_not(
    sample: TrialData, learner: ModelSettings, monkeypatch: pytest.MonkeyPatch
) -> tuple[float, float]:
    in_sparse = evaluate(sample, "one_hot", learner).loss
    monkeypatch.setattr(methods, "TAKES_SPARSE", frozenset())
    return in_sparse, evaluate(sample, "one_hot", learner).loss


@pytest.mark.parametrize("model", ["xgboost", "sklearn_forest"])
def test_dense_one_hot_columns_have_the_same_error(monkeypatch, model):
    in_sparse, dense = sparse_or_not(drawn(), ModelSettings(model, 8, 0), monkeypatch)
    assert in_sparse == pytest.approx(dense, rel=1e-6)


def with_zeros() -> TrialData:
    """Covariates of real data are often exactly zero: counts, codes, flags."""
    return replace(drawn(), X=np.round(drawn().X))


def test_zeros_among_the_covariates_mean_zero_to_a_forest_that_takes_sparse_rows(monkeypatch):
    in_sparse, dense = sparse_or_not(with_zeros(), ModelSettings("sklearn_forest", 8, 0), monkeypatch)
    assert in_sparse == pytest.approx(dense, rel=1e-6)


def test_zeros_among_the_covariates_mean_zero_to_xgboost_too(monkeypatch):
    in_sparse, dense = sparse_or_not(with_zeros(), BOOST, monkeypatch)
    assert in_sparse == pytest.approx(dense, rel=1e-6)


@pytest.mark.parametrize("model", ["xgboost", "sklearn_forest"])
def test_large_one_hot_columns_are_sparse_despite_zeros_and_predict_the_same(monkeypatch, model):
    X = np.round(drawn().X)
    X[:, 3] = np.abs(X[:, 3]) + 1  # a column that is never zero
    if model == "xgboost":  # a forest of scikit-learn takes no NaN in sparse rows
        X[::7, 1] = np.nan
    sample, learner = replace(drawn(), X=X), ModelSettings(model, 8, 0)
    seen = []

    def watched(name: str, **arguments: Any) -> Any:
        fitted = make_model(name, **arguments)
        fit, predict = fitted.fit, fitted.predict
        fitted.fit = lambda X, y: fit(X, y)
        fitted.predict = lambda X: (seen.append((sparse.issparse(X), predict(X))), seen[-1][1])[1]
        return fitted

    monkeypatch.setattr(methods, "make_model", watched)
    for most in (400 * (6 + 10), 400 * (6 + 10) - 1):
        monkeypatch.setattr(methods, "MAX_DENSE_CELLS", most)
        evaluate(sample, "one_hot", learner)
    (was_sparse, dense), (is_sparse, large) = seen
    assert (was_sparse, is_sparse) == (False, True)
    np.testing.assert_allclose(large, dense, rtol=1e-6)


def test_covariates_without_a_zero_are_not_shifted():
    X = np.array([[1.0, -2.0], [np.nan, 5.0]])
    np.testing.assert_array_equal(methods.without_zeros(X), X)


# The choice of k and alpha


def test_only_low_rank_methods_choose_the_number_of_components():
    assert [m for m in (*TRIAL_METHODS, "oracle", "bayes") if chooses_components(m)] == [
        "low_rank",
        "sparse_low_rank",
    ]


def test_k_is_the_one_with_the_smallest_error_of_three_folds_inside_the_training_rows():
    sample = drawn(p=20)
    errors = []
    for k in COMPONENTS:
        of_k = []
        for part in sample.inner(3, seed=0):
            encoder = LowRankEncoder(20, n_components=k).fit(part.table[~part.test])
            vectors = encoder.transform(part.table)[:, 20:]
            of_k.append(boosted_error(part, vectors))
        errors.append(np.mean(of_k))
    result = evaluate(sample, "low_rank", BOOST)
    assert result.k == COMPONENTS[int(np.argmin(errors))]
    assert result.n_columns == result.k
    assert result.alpha is None


def test_k_is_chosen_with_fewer_trees_than_are_judged(monkeypatch):
    trees = []

    def watched(name: str, **arguments: Any) -> Any:
        trees.append(arguments["n_trees"])
        return make_model(name, **arguments)

    monkeypatch.setattr(methods, "make_model", watched)
    evaluate(drawn(p=20), "low_rank", ModelSettings("sklearn_forest", 100, 0))
    assert trees == [12] * 9 + [100]


@pytest.mark.parametrize(("p", "allowed"), [(3, {1}), (6, {5}), (12, {5, 10}), (20, {5, 10, 15})])
def test_no_more_components_are_tried_than_there_are_covariates(p, allowed):
    assert evaluate(drawn(p=p), "low_rank", ModelSettings("sklearn_forest", 4, 0)).k in allowed


def test_sparse_low_rank_chooses_alpha_too():
    result = evaluate(drawn(), "sparse_low_rank", ModelSettings("sklearn_forest", 4, 0))
    assert result.k == 5
    assert result.alpha in ALPHAS


@pytest.mark.parametrize("seed", range(3))
def test_the_authors_bug_uses_the_index_of_the_chosen_k_for_k(seed):
    sample, learner = drawn(p=20, seed=seed), ModelSettings("sklearn_forest", 8, seed)
    chosen = evaluate(sample, "low_rank", learner)
    bug = evaluate(sample, "low_rank", learner, k_index_bug=True)
    assert bug.k == bug.n_columns == 1 + COMPONENTS.index(chosen.k)
    assert bug.loss != chosen.loss


def test_the_bug_changes_nothing_but_the_number_of_components():
    """The error is that of an encoder with as few components, and alpha stays the chosen one."""
    sample, learner = drawn(), ModelSettings("sklearn_forest", 8, 0)
    chosen = evaluate(sample, "sparse_low_rank", learner)
    bug = evaluate(sample, "sparse_low_rank", learner, k_index_bug=True)
    assert (bug.k, bug.alpha) == (1, chosen.alpha)
    low_rank = evaluate(sample, "low_rank", learner, k_index_bug=True)
    vectors = LowRankEncoder(6, n_components=1).fit(sample.table[~sample.test]).transform(sample.table)
    model = make_model("sklearn_forest", n_columns=7, n_trees=8, seed=0)
    model.fit(vectors[~sample.test], sample.y[~sample.test])
    assert low_rank.loss == np.mean((model.predict(vectors[sample.test]) - sample.y[sample.test]) ** 2)


@pytest.mark.parametrize("method", ["means", "one_hot"])
def test_the_bug_does_not_affect_methods_that_choose_nothing(method):
    assert evaluate(drawn(), method, BOOST, k_index_bug=True) == evaluate(drawn(), method, BOOST)


def test_the_bug_with_too_few_covariates_for_any_choice_keeps_one_component():
    assert evaluate(drawn(p=3), "low_rank", BOOST, k_index_bug=True).k == 1


def scrambled(sample: TrialData) -> TrialData:
    """The same sample with other targets and covariates in the test rows."""
    rng = np.random.default_rng(0)
    X, y = sample.X.copy(), sample.y.copy()
    X[sample.test] = rng.normal(10, 5, size=(sample.test.sum(), X.shape[1]))
    y[sample.test] = rng.normal(100, 50, size=sample.test.sum())
    return replace(sample, X=X, y=y)


@pytest.mark.parametrize("method", ["low_rank", "sparse_low_rank"])
def test_the_choice_does_not_see_the_test_rows(method):
    sample = drawn(p=6, n=200)
    learner = ModelSettings("sklearn_forest", 4, 0)
    chosen = methods._choose(sample, method, learner)
    assert methods._choose(scrambled(sample), method, learner) == chosen


@pytest.mark.parametrize("method", [*METHODS, "drop"])
def test_what_is_fitted_does_not_see_the_test_rows(method):
    sample = drawn()
    parameters = {"families": ("prediction",)} if method == "sufficient" else {}  # all would take long
    train, _ = methods._encode(sample, method, BOOST, parameters, sparse=False)
    again, _ = methods._encode(scrambled(sample), method, BOOST, parameters, sparse=False)
    np.testing.assert_array_equal(train, again)


@pytest.mark.parametrize("method", ["fisher", "means", "mnl"])
def test_predictions_do_not_see_the_targets_of_the_test_rows(method):
    """A shift of these changes the mean squared error as it must if predictions do not change."""
    sample = drawn()
    error = evaluate(sample, method, BOOST).loss
    shifted = replace(sample, y=np.where(sample.test, 2 * sample.y + 7, sample.y))
    train, test = methods._encode(sample, method, BOOST, {}, sparse=False)
    model = make_model("xgboost", n_columns=train.shape[1], n_trees=8, seed=0)
    predicted = model.fit(train, sample.y[~sample.test]).predict(test)
    assert error == pytest.approx(np.mean((predicted - sample.y[sample.test]) ** 2))
    expected = np.mean((predicted - 2 * sample.y[sample.test] - 7) ** 2)
    assert evaluate(shifted, method, BOOST).loss == pytest.approx(expected)


# Every method


@pytest.mark.parametrize("method", [*TRIAL_METHODS, "oracle"])
def test_every_method_runs_and_repeats_itself(method, monkeypatch):
    if method == "sufficient":  # all candidates would take long
        monkeypatch.setattr(methods, "make_encoder", partial(make_encoder, families=("prediction",)))
    sample, learner = drawn(n=200), ModelSettings("sklearn_forest", 4, 1)
    result = evaluate(sample, method, learner)
    assert bayes_error(sample) / 2 < result.loss < 3 * sample.y.var()
    assert result.n_columns == {"drop": 0, "oracle": 2, "permutation": 1, "fisher": 1}.get(
        method, result.n_columns
    )
    if not chooses_components(method):
        assert evaluate(sample, method, learner) == result
        assert (result.k, result.alpha) == (None, None)


def bayes_error(sample: TrialData) -> float:
    return evaluate(sample, "bayes", BOOST).loss


@pytest.mark.parametrize("method", ["one_hot", "means", "low_rank", "mnl", "oracle", "drop"])
def test_the_honest_forest_runs_too(method):
    pytest.importorskip("econml", reason="the model 'forest' needs econml")
    sample, learner = drawn(n=200), ModelSettings("forest", 8, 1)
    result = evaluate(sample, method, learner)
    assert bayes_error(sample) / 2 < result.loss < 3 * sample.y.var()
    assert evaluate(sample, method, learner) == result


@pytest.mark.parametrize("method", ["oracle", "bayes"])
def test_a_sample_without_truth_has_neither_oracle_nor_bayes(method):
    with pytest.raises(AssertionError, match="oracle and bayes only for simulated samples"):
        evaluate(replace(drawn(), truth=None), method, BOOST)
