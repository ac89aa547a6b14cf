"""Scores of treatment effects, against other libraries and against formulas written out."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression

from sufrep.solvers.effects import (
    Estimate,
    Nuisances,
    Scores,
    SensitivityElements,
    balancing_weights,
    combine_repeats,
    effect_scores,
    effective_size,
    linear_fixed_effect,
    project,
    sensitivity_elements,
    solve_scores,
)

N_CLUSTERS = 20


@pytest.fixture
def rows():
    """Treatment, outcome, predictions and clusters of unequal size."""
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(N_CLUSTERS), rng.integers(4, 15, N_CLUSTERS))
    n = len(clusters)
    propensity = rng.uniform(0.2, 0.8, n)
    treatment = (rng.random(n) < propensity).astype(float)
    untreated = rng.normal(size=n)
    nuisances = Nuisances(propensity, untreated, untreated + 1 + 0.1 * rng.normal(size=n))
    outcome = np.where(treatment > 0, nuisances.treated, untreated) + rng.normal(size=n)
    return treatment, outcome, nuisances, clusters


def double_ml(rows, estimand, clustered):
    """The model of DoubleML for an estimand, with our predictions."""
    dml = pytest.importorskip("doubleml")
    w, y, nuisances, clusters = rows
    e, m0, m1 = nuisances.propensity, nuisances.untreated, nuisances.treated
    frame = pd.DataFrame({"x": e, "y": y, "w": w, "cluster": clusters})
    data = dml.DoubleMLData(frame, "y", "w", x_cols=["x"], cluster_cols="cluster" if clustered else None)
    if estimand == "ATO":
        model = dml.DoubleMLPLR(data, LinearRegression(), LogisticRegression(), n_folds=5)
        given = {"ml_l": e * m1 + (1 - e) * m0, "ml_m": e}
    else:
        score = {"ATE": "ATE", "ATT": "ATTE"}[estimand]
        model = dml.DoubleMLIRM(data, LinearRegression(), LogisticRegression(), n_folds=5, score=score)
        given = {"ml_g0": m0, "ml_g1": m1, "ml_m": e}
    return model.fit(external_predictions={"w": {name: values[:, None] for name, values in given.items()}})


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATO"])
def test_effects_are_those_of_doubleml_given_the_same_predictions(rows, estimand, clustered):
    w, y, nuisances, clusters = rows
    theirs = double_ml(rows, estimand, clustered)
    ours = solve_scores(
        effect_scores(estimand, w, y, nuisances), np.ones_like(w), clusters if clustered else None
    )
    n = N_CLUSTERS if clustered else len(w)
    assert ours.value == pytest.approx(theirs.coef[0], abs=1e-10)
    assert ours.std_error == pytest.approx(theirs.se[0] * math.sqrt(n / (n - 1)), abs=1e-10)
    assert ours.dof == (n - 1 if clustered else math.inf)


@pytest.mark.parametrize("estimand", ["ATE", "ATT"])
def test_robustness_and_bounds_are_those_of_doubleml(rows, estimand):
    w, y, nuisances, _ = rows
    theirs = double_ml(rows, estimand, clustered=False)
    theirs.sensitivity_analysis(cf_y=0.03, cf_d=0.05, rho=0.8)
    effect = solve_scores(effect_scores(estimand, w, y, nuisances), np.ones_like(w), None)
    elements = sensitivity_elements(estimand, w, y, nuisances, np.ones_like(w))
    lower = theirs.sensitivity_params["theta"]["lower"][0]
    assert elements.robustness(effect.value, rho=0.8) == pytest.approx(
        theirs.sensitivity_params["rv"][0], abs=1e-4
    )
    assert effect.value - elements.bound(0.03, 0.05, 0.8) == pytest.approx(lower, abs=1e-10)


@given(st.floats(1e-6, 1e6), st.floats(-1, 1).filter(lambda rho: abs(rho) > 0.01))
def test_the_robustness_is_the_share_whose_bound_reaches_the_distance(distance, rho):
    elements = SensitivityElements(2.0, 3.0)
    share = elements.robustness(distance, rho)
    if share < 1 - 1e-9:
        assert elements.bound(share, share, rho) == pytest.approx(distance, rel=1e-5)


def test_nothing_is_robust_to_a_distance_of_zero():
    assert SensitivityElements(2.0, 3.0).robustness(0.0) == 0
    assert math.isnan(SensitivityElements(0.0, 3.0).robustness(1.0))


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATO"])
@given(seed=st.integers(0, 10_000))
def test_a_weight_of_two_is_a_row_twice(estimand, seed):
    rng = np.random.default_rng(seed)
    n = 12
    w = np.r_[0.0, 1.0, rng.integers(0, 2, n - 2)]
    nuisances = Nuisances(rng.uniform(0.1, 0.9, n), rng.normal(size=n), rng.normal(size=n))
    y, clusters, counts = rng.normal(size=n), rng.integers(0, 5, n), rng.integers(1, 4, n)
    twice = np.repeat(np.arange(n), counts)
    scores = effect_scores(estimand, w, y, nuisances)
    weighted = solve_scores(scores, counts.astype(float), clusters)
    repeated = solve_scores(
        effect_scores(estimand, w[twice], y[twice], nuisances.take(twice)),
        np.ones(len(twice)),
        clusters[twice],
    )
    assert weighted.value == pytest.approx(repeated.value)
    assert weighted.std_error == pytest.approx(repeated.std_error, nan_ok=True)


def test_equal_weights_of_groups_give_mean_and_error_of_the_group_means(rows):
    w, y, nuisances, groups = rows
    scores = effect_scores("ATE", w, y, nuisances)
    found = solve_scores(scores, 1 / np.bincount(groups)[groups], groups)
    means = np.bincount(groups, scores.constant) / np.bincount(groups)
    assert found.value == pytest.approx(means.mean(), abs=1e-12)
    assert found.std_error == pytest.approx(stats.sem(means), abs=1e-12)


def test_independent_rows_have_the_normal_distribution_and_clusters_student_s():
    independent, clustered = Estimate(1.0, 0.5), Estimate(1.0, 0.5, 4)
    assert independent.interval() == pytest.approx((1 - 0.5 * 1.959964, 1 + 0.5 * 1.959964), abs=1e-6)
    assert clustered.interval(0.9) == pytest.approx(stats.t.interval(0.9, 4, 1.0, 0.5))
    assert clustered.p_value == pytest.approx(2 * stats.t.sf(2, 4))
    assert math.isnan(Estimate(1.0, 0.0).p_value)


def test_scores_without_weight_determine_no_effect():
    found = solve_scores(Scores(np.zeros(3), np.ones(3)), np.ones(3), np.arange(3))
    assert math.isnan(found.value)
    assert found.dof == 2


def test_one_cluster_has_no_standard_error():
    found = solve_scores(Scores(np.ones(3), np.arange(3.0)), np.ones(3), np.zeros(3, dtype=int))
    assert found.value == 1
    assert math.isnan(found.std_error)


def test_repeats_are_medians_and_their_spread_adds_to_the_variance():
    found = combine_repeats([Estimate(1.0, 0.1, 9), Estimate(2.0, 0.3, 8), Estimate(4.0, 0.2, 9)])
    variance = np.median([0.1**2 + 1, 0.3**2, 0.2**2 + 4])
    assert found == Estimate(2.0, math.sqrt(variance), 8)


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATO"])
def test_balancing_weights_make_the_arms_alike_in_a_population(estimand):
    e = np.array([0.2, 0.5, 0.9])
    treated, untreated = (balancing_weights(estimand, np.full(3, arm), e) for arm in (1.0, 0.0))
    np.testing.assert_allclose(e * treated, (1 - e) * untreated)


def test_equal_weights_are_as_many_effective_rows():
    assert effective_size(np.full(7, 0.3)) == pytest.approx(7)
    assert effective_size(np.array([1.0, 0.0])) == 1
    assert effective_size(np.zeros(2)) == 0


def panel(seed):
    """Unbalanced groups, covariates of very different units, and one that is constant within groups."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(15), rng.integers(2, 12, 15))
    shift = rng.normal(size=15)[groups]
    x = np.column_stack([rng.normal(size=len(groups)) + shift, 1e3 * rng.normal(size=len(groups))])
    w = (rng.random(len(groups)) < 1 / (1 + np.exp(-shift))).astype(float)
    y = w + x @ [1, 1e-3] + 3 * shift + rng.normal(size=len(groups))
    return groups, x, w, y


@given(seed=st.integers(0, 10_000))
def test_group_means_in_a_regression_give_the_within_estimator(seed):
    groups, x, w, y = panel(seed)
    own = np.column_stack([w, x])
    means = np.column_stack([np.bincount(groups, column) / np.bincount(groups) for column in own.T])[groups]
    design = np.column_stack([own, means, np.ones(len(w))])
    mundlak = project(y, design, np.ones_like(w), groups)[0]
    within = linear_fixed_effect(w, y, x, groups, np.ones_like(w), groups)
    assert mundlak.value == pytest.approx(within.value, abs=1e-10)


def test_the_linear_fixed_effect_is_the_regression_with_an_intercept_for_each_group():
    groups, x, w, y = panel(1)
    design = np.column_stack([w, x, np.eye(15)[groups]])
    coefficients = np.linalg.lstsq(design, y, rcond=None)[0]
    bread = np.linalg.inv(design.T @ design)
    sums = np.zeros((15, design.shape[1]))
    np.add.at(sums, groups, design * (y - design @ coefficients)[:, None])
    variance = 15 / 14 * bread @ sums.T @ sums @ bread
    found = linear_fixed_effect(w, y, x, groups, np.ones_like(w), groups)
    assert found.value == pytest.approx(coefficients[0])
    assert found.std_error == pytest.approx(math.sqrt(variance[0, 0]))


def test_a_covariate_that_is_constant_within_groups_changes_no_fixed_effect():
    groups, x, w, y = panel(2)
    constant = np.random.default_rng(0).normal(size=15)[groups]
    one = linear_fixed_effect(w, y, x, groups, np.ones_like(w), groups)
    both = linear_fixed_effect(w, y, np.column_stack([x, constant]), groups, np.ones_like(w), groups)
    assert both.value == pytest.approx(one.value, abs=1e-12)
    assert both.std_error == pytest.approx(one.std_error, abs=1e-12)


def test_a_treatment_that_is_constant_within_groups_has_no_fixed_effect():
    groups, x, _, y = panel(3)
    found = linear_fixed_effect(groups % 2 * 0.1, y, x, groups, np.ones(len(y)), groups)
    assert math.isnan(found.value)


def test_units_of_a_column_do_not_change_a_projection():
    groups, x, w, y = panel(4)
    design = np.column_stack([np.ones(len(w)), w, x])
    units = np.array([1.0, 1e-7, 1e7, 1e7])
    plain, scaled = (project(y, columns, np.ones_like(w), groups) for columns in (design, design * units))
    np.testing.assert_allclose([s.value for s in scaled] * units, [p.value for p in plain], rtol=1e-8)
    np.testing.assert_allclose([s.std_error for s in scaled] * units, [p.std_error for p in plain], rtol=1e-8)
