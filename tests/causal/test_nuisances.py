"""Folds, and predictions of models that never saw the row."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sufrep.causal._data import EffectData
from sufrep.causal._nuisances import accepts_nulls, assign_folds, cross_fit, default_models
from sufrep.errors import EffectDataError


def sample(n_groups=20, per_group=10, seed=0, **changes):
    """Rows with one covariate that moves treatment and outcome."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), per_group)
    n = len(groups)
    x = rng.normal(size=(n, 1))
    w = (rng.random(n) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
    fields = {
        "treatment": w,
        "outcome": w + x[:, 0] + rng.normal(size=n),
        "clusters": groups,
        "weights": np.ones(n),
        "propensity": None,
    }
    return EffectData(
        table=None,
        rows=np.arange(n),
        covariates=x,
        names=("x",),
        groups=groups,
        labels=tuple(map(str, range(n_groups))),
        treated_label="1",
        **(fields | changes),
    )


def predict(data, folds, outcome_model=None, propensity_model=None, calibration=None):
    return cross_fit(
        data,
        data.covariates,
        folds,
        LinearRegression() if outcome_model is None else outcome_model,
        LogisticRegression() if propensity_model is None else propensity_model,
        calibration=calibration,
        n_jobs=None,
    )


@pytest.mark.parametrize("changes", [{}, {"clusters": None}], ids=["clusters", "groups"])
def test_folds_keep_clusters_or_groups_whole_and_share_them_equally(changes):
    data = sample(**changes)
    folds = assign_folds(data, "group", 5, 0)
    by_group = folds.reshape(20, 10)
    assert (by_group == by_group[:, :1]).all()
    assert np.bincount(by_group[:, 0]).tolist() == [4] * 5
    assert (folds != assign_folds(data, "group", 5, 1)).any()


def test_folds_keep_clusters_whole_that_contain_several_groups():
    data = sample(clusters=np.repeat(np.arange(5), 40))
    folds = assign_folds(data, "group", 5, 0).reshape(5, 40)
    assert (folds == folds[:, :1]).all()


def test_folds_of_rows_have_the_same_share_of_treated_rows():
    data = sample()
    folds = assign_folds(data, "row", 4, 0)
    for arm in (0, 1):
        counts = np.bincount(folds[data.treatment == arm])
        assert counts.max() - counts.min() <= 1


def test_more_folds_than_clusters_are_refused():
    with pytest.raises(EffectDataError, match=r"(?s)There are 3 clusters for 5 folds.*Hint: use n_folds=3"):
        assign_folds(sample(n_groups=3), "group", 5, 0)


def test_each_row_is_predicted_by_models_of_the_other_folds_and_of_its_arm():
    data = sample()
    folds = [assign_folds(data, "group", 3, seed) for seed in (0, 1)]
    for assigned, found in zip(folds, predict(data, folds), strict=True):
        for fold in range(3):
            test, train = assigned == fold, assigned != fold
            propensity = LogisticRegression().fit(data.covariates[train], data.treatment[train])
            expected = propensity.predict_proba(data.covariates[test])[:, 1]
            np.testing.assert_allclose(found.propensity[test], expected)
            for arm, predicted in enumerate((found.untreated, found.treated)):
                rows = train & (data.treatment == arm)
                outcome = LinearRegression().fit(data.covariates[rows], data.outcome[rows])
                np.testing.assert_allclose(predicted[test], outcome.predict(data.covariates[test]))


def test_folds_without_both_arms_to_fit_to_are_refused():
    treatment = np.zeros(200)
    treatment[:10] = 1
    data = sample(treatment=treatment)
    with pytest.raises(
        EffectDataError, match="The rows that the models of a fold are fitted to have no treated"
    ):
        predict(data, [assign_folds(data, "group", 5, 0)])


class Refusing(LogisticRegression):
    """A classifier that cannot be fitted."""

    def fit(self, *_):
        raise AssertionError("a model was fitted")


def test_known_propensities_are_used_as_they_are_and_no_model_is_fitted():
    known = np.linspace(0.2, 0.8, 200)
    data = sample(propensity=known)
    found = predict(data, [assign_folds(data, "group", 5, 0)], None, Refusing(), "sigmoid")[0]
    np.testing.assert_array_equal(found.propensity, known)


def test_a_classifier_predicts_outcomes_by_its_probability():
    outcome = (sample().outcome > 0).astype(float)
    data = sample(outcome=outcome)
    found = predict(data, [assign_folds(data, "group", 5, 0)], LogisticRegression())[0]
    assert ((found.treated > 0) & (found.treated < 1)).all()
    assert found.treated.mean() > found.untreated.mean()


def test_a_classifier_predicts_the_only_class_of_an_arm():
    base = sample()
    data = sample(outcome=np.where(base.treatment == 1, 1.0, base.outcome > 0))
    found = predict(data, [assign_folds(data, "group", 5, 0)], LogisticRegression())[0]
    assert set(found.treated) == {1.0}


def test_a_classifier_is_refused_for_other_outcomes_than_0_and_1():
    data = sample()
    with pytest.raises(
        EffectDataError, match="LogisticRegression is a classifier, and the outcome has values"
    ):
        predict(data, [assign_folds(data, "group", 5, 0)], LogisticRegression())


def test_weights_go_to_the_learners_also_inside_a_pipeline():
    weights = np.random.default_rng(5).integers(1, 4, 200).astype(float)
    data = sample(weights=weights)
    folds = [assign_folds(data, "group", 2, 0)]
    train = (folds[0] == 1) & (data.treatment == 1)
    model = LinearRegression().fit(data.covariates[train], data.outcome[train], weights[train])
    expected = model.predict(data.covariates[folds[0] == 0])
    for outcome_model in (LinearRegression(), make_pipeline(StandardScaler(), LinearRegression())):
        found = predict(data, folds, outcome_model)[0]
        np.testing.assert_allclose(found.treated[folds[0] == 0], expected)


def test_a_learner_that_takes_no_weights_is_refused():
    data = sample(weights=np.arange(1.0, 201.0))
    with pytest.raises(EffectDataError, match="KNeighborsRegressor takes no sample_weight"):
        predict(data, [assign_folds(data, "group", 2, 0)], KNeighborsRegressor())


def test_the_sigmoid_is_one_map_for_all_rows_and_agrees_with_the_share_of_treated_rows():
    data = sample()
    folds = [assign_folds(data, "group", 5, 0)]
    plain, calibrated = (predict(data, folds, calibration=kind)[0].propensity for kind in (None, "sigmoid"))
    logit = [np.log(e / (1 - e)) for e in (plain, calibrated)]
    slope, constant = np.polyfit(*logit, 1)
    np.testing.assert_allclose(logit[1], slope * logit[0] + constant, atol=1e-8)
    assert calibrated.mean() == pytest.approx(data.treatment.mean(), abs=1e-4)
    assert (calibrated * logit[0]).mean() == pytest.approx((data.treatment * logit[0]).mean(), abs=1e-3)


def test_isotonic_calibration_is_that_of_the_out_of_fold_propensities():
    data = sample()
    folds = [assign_folds(data, "group", 5, 0)]
    plain, calibrated = (predict(data, folds, calibration=kind)[0].propensity for kind in (None, "isotonic"))
    np.testing.assert_allclose(calibrated, IsotonicRegression().fit_transform(plain, data.treatment))


def test_nulls_go_to_models_that_take_them():
    outcome, propensity = default_models(0)
    assert accepts_nulls(outcome)
    assert accepts_nulls(propensity)
    assert not accepts_nulls(LinearRegression())
    assert accepts_nulls(make_pipeline(StandardScaler(), HistGradientBoostingRegressor()))
    assert not accepts_nulls(make_pipeline(StandardScaler(), LinearRegression()))
