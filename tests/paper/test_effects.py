"""Treatment effects on simulated samples: every method, the rows and the truth that it is compared with."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from sufrep import AIPW
from sufrep._paper import effects
from sufrep._paper.effects import LINEAR_METHODS, estimate_effect, sample_size
from sufrep._paper.names import EFFECT_ARMS, EFFECT_METHODS
from sufrep._paper.plan import EffectTrial
from sufrep._simulate_effects import ARMS, simulate_effects

WITH_SHARES = ("means_w", "w", "low_rank_w", "latent_state_w", "row_folds")


def found(
    method: str, arm: str = "small_5", model: str = "linear", seed: int = 3, n: int = 1000
) -> dict[str, Any]:
    return asdict(estimate_effect(EffectTrial(arm, sample_size(arm, n), model, method, seed)))


def test_arms_are_those_of_the_samples():
    assert tuple(arm.replace("_", " ") for arm in EFFECT_ARMS) == ARMS


def test_samples_have_the_rows_asked_for_or_the_whole_groups_among_them():
    assert [sample_size(arm) for arm in ("main", "slope", "small_10")] == [4000, 10000, 4000]
    assert [sample_size(arm, 703) for arm in ("main", "slope", "small_10")] == [703, 703, 700]


# Products of so many statistics need larger groups.
@pytest.mark.filterwarnings("ignore::sufrep.errors.OverlapWarning")
@pytest.mark.parametrize("method", EFFECT_METHODS)
def test_every_method_has_an_estimate_inside_its_interval(method):
    result = found(method, n=500)
    assert all(math.isfinite(value) for value in result.values())
    assert result["lower"] < result["estimate"] < result["upper"]
    assert result["std_error"] > 0


@pytest.mark.parametrize("method", [name for name in EFFECT_METHODS if name not in LINEAR_METHODS])
def test_boosting_is_the_default_learners(method, monkeypatch):
    def no_fit(*models: Any, **_: Any) -> Any:
        raise LookupError(models)

    monkeypatch.setattr(effects, "AIPW", no_fit)
    with pytest.raises(LookupError, match=r"\(None, None\)"):
        found(method, model="boosting")


def test_ours_is_the_estimator_with_its_defaults():
    sample = simulate_effects("small 5", n=1000, seed=3)
    model = AIPW(LinearRegression(), LogisticRegression(C=1e4), group=10, random_state=3)
    model.fit(np.column_stack([sample.X, sample.group]), treatment=sample.treatment, outcome=sample.outcome)
    ours = found("means_w")
    assert ours["estimate"] == pytest.approx(model.effect_.estimate, abs=1e-3)
    assert ours["std_error"] == pytest.approx(model.effect_.std_error, rel=1e-2)


@pytest.mark.parametrize("method", ["true_psi", "loo_w", *WITH_SHARES])
def test_the_truth_is_that_of_the_rows_in_groups_with_both_arms(method):
    sample = simulate_effects("small 5", n=1000, seed=3)
    shares = np.array([sample.treatment[sample.group == level].mean() for level in range(200)])
    kept = ((shares > 0) & (shares < 1))[sample.group]
    result = found(method)
    assert 0 < result["dropped"] == pytest.approx(1 - kept.mean())
    assert result["truth"] == pytest.approx(sample.effect[kept].mean())


@pytest.mark.parametrize("method", ["nothing", "one_hot", "target_encoder", "fixed_effects", "means"])
def test_methods_without_the_share_keep_all_rows_and_estimate_the_effect_of_the_population(method):
    result = found(method)
    assert (result["truth"], result["dropped"]) == (1.0, 0.0)


def test_an_experiment_is_estimated_with_its_known_propensities(monkeypatch):
    given = []
    fit = AIPW.fit
    monkeypatch.setattr(AIPW, "fit", lambda *args, **kw: given.append(kw["propensity"]) or fit(*args, **kw))
    found("nothing", "experiment")
    found("nothing", "main")
    sample = simulate_effects("experiment", n=1000, seed=3)
    by_level = [np.unique(sample.propensity[sample.group == level]) for level in np.unique(sample.group)]
    assert all(len(values) == 1 for values in by_level)
    np.testing.assert_array_equal(given[0], sample.propensity)
    assert given[1] is None


def test_leaving_a_row_s_own_treatment_out_of_the_share_brings_the_bias_back():
    errors = {
        method: np.mean([(r := found(method, seed=seed))["estimate"] - r["truth"] for seed in range(8)])
        for method in ("means_w", "loo_w")
    }
    assert abs(errors["means_w"]) < 0.12 < errors["loo_w"]


def test_the_penalty_of_the_logistic_model_changes_little():
    linear, penalised = (found("means_w", model=model) for model in ("linear", "penalised"))
    assert 0 < abs(linear["estimate"] - penalised["estimate"]) < 0.1
