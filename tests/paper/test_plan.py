"""Plans: which trials there are, in which order, and what makes two stores different."""

from __future__ import annotations

from collections import Counter
from dataclasses import FrozenInstanceError, fields, replace
from itertools import groupby

import pytest

from sufrep._names import SETUPS
from sufrep._paper.names import (
    BENCHMARK_DATASETS,
    BENCHMARK_METHODS,
    BENCHMARK_MODELS,
    EFFECT_ARMS,
    EFFECT_METHODS,
    PAPER_DATASETS,
    PAPER_METHODS,
    PAPER_MODELS,
    PEER_ENCODINGS,
    REFERENCES,
)
from sufrep._paper.plan import (
    BenchmarkPlan,
    EffectPlan,
    EffectTrial,
    EmpiricalPlan,
    EmpiricalTrial,
    Settings,
    SimulationPlan,
    SimulationTrial,
)
from sufrep.datasets import DATASETS
from sufrep.encoders import METHODS
from sufrep.errors import InvalidParameterError, SufrepError, UnknownMethodError

# Another value of each setting.
CHANGES = {"n": 500, "p": 4, "own_probability": 0.5, "n_trees": 8, "n_folds": 5}


def test_the_default_simulations_are_the_twelve_cells_of_the_paper_times_methods_times_seeds():
    trials = SimulationPlan().trials()
    cells = {(trial.setup, trial.n_latent, trial.levels_per_latent) for trial in trials}
    assert cells == {
        (setup, latent, levels) for setup in SETUPS for latent in (2, 10) for levels in (50, 100)
    }
    assert len(trials) == len(set(trials)) == 12 * (12 + 2) * 20
    assert {trial.model for trial in trials} == {"xgboost"}
    assert not any(trial.k_index_bug for trial in trials)


def test_the_default_tables_are_the_paper_s_data_sets_and_folds_with_both_models():
    trials = EmpiricalPlan().trials()
    assert len(trials) == len(set(trials)) == 4 * 2 * 4 * 12
    assert {trial.dataset for trial in trials} == {"pakistan", "ames", "ames_full", "king_county"}
    assert {trial.fold for trial in trials} == {0, 1, 2, 3}
    assert {trial.model for trial in trials} == {"forest", "xgboost"}


def test_the_default_benchmark_is_every_entry_in_five_folds_data_set_by_data_set():
    trials = BenchmarkPlan().trials()
    assert [name for name, _ in groupby(trial.dataset for trial in trials)] == list(BENCHMARK_DATASETS)
    assert (BenchmarkPlan().models, BenchmarkPlan().methods) == ((), ())
    entries = [("xgboost", method) for method in BENCHMARK_METHODS]
    entries += [(model, "native") for model in BENCHMARK_MODELS[1:]]
    of_ames = [trial for trial in trials if trial.dataset == "ames"]
    assert Counter((trial.model, trial.method) for trial in of_ames) == dict.fromkeys(entries, 5)
    assert {trial.fold for trial in of_ames} == {0, 1, 2, 3, 4}
    assert {trial.seed for trial in trials} == {0}
    assert BenchmarkPlan().experiment == "benchmark"


def test_the_benchmark_is_of_all_data_sets_and_the_paper_s_are_among_them():
    assert set(BENCHMARK_DATASETS) == set(DATASETS)
    assert set(PAPER_DATASETS) < set(DATASETS)


def test_repetitions_of_the_benchmark_stay_with_their_data_set():
    plan = BenchmarkPlan(("ames", "pakistan"), ("xgboost",), ("drop",), seeds=(3, 1))
    found = [key for key, _ in groupby((trial.dataset, trial.seed) for trial in plan.trials())]
    assert found == [("ames", 3), ("ames", 1), ("pakistan", 3), ("pakistan", 1)]


def test_a_data_set_is_cut_into_no_more_folds_than_its_levels_have_rows():
    plan = BenchmarkPlan(("pakistan", "ames"), ("xgboost",), ("drop",))
    assert [(trial.dataset, trial.fold) for trial in plan.trials()] == [
        *(("pakistan", fold) for fold in range(4)),
        *(("ames", fold) for fold in range(5)),
    ]
    assert [Settings(n_folds=n).folds_of("pakistan") for n in (3, 4, 5)] == [3, 4, 4]


def test_a_data_set_with_folds_of_its_own_has_as_many():
    assert [Settings(n_folds=n).folds_of("wages") for n in (3, 5, 10)] == [5, 5, 5]


def entries(dataset: str, **names: tuple[str, ...]) -> list[tuple[str, str]]:
    """The model and method of each trial of a fold."""
    trials = BenchmarkPlan((dataset,), **names).trials()
    return [(trial.model, trial.method) for trial in trials if trial.fold == 0]


def test_wages_are_predicted_with_tuned_trees_unless_other_models_are_named():
    methods = ("sufficient", "drop")
    assert entries("wages", methods=methods) == [("xgboost_tuned", method) for method in methods]
    assert entries("wages", methods=methods, models=("gpboost",)) == [("gpboost", "native")]


def test_two_classes_have_every_entry_but_the_slow_one_which_can_be_named():
    slow = ("xgboost", "glmm")
    assert entries("open_payments") == [entry for entry in entries("ames") if entry != slow]
    assert entries("open_payments", methods=("glmm",), models=("xgboost",)) == [slow]


def test_more_classes_have_no_entry_that_is_made_for_two():
    left_out = {(model, method) for model, method in entries("ames")} - {*entries("midwest_survey")}
    assert left_out == {
        ("xgboost", "james_stein"),
        ("xgboost", "catboost_encoder"),
        ("xgboost", "glmm"),
        ("gpboost", "native"),
    }


def test_models_of_numbers_alone_are_left_out_where_there_are_classes():
    models = ("forest", "sklearn_forest", "xgboost_tuned", "latent_state_regressor", "xgboost")
    assert entries("nycflights_delayed", models=models, methods=("drop",)) == [("xgboost", "drop")]


@pytest.mark.parametrize(
    "names",
    [
        {"models": ("forest", "gpboost")},
        {"models": ("xgboost",), "methods": ("glmm", "james_stein")},
    ],
)
def test_a_data_set_that_nothing_named_can_predict_raises(names):
    expected = (
        r"datasets is 'midwest_survey'\.\nHint: datasets must be a data set that one of the models and "
        r"methods can predict; its target is multiclass"
    )
    with pytest.raises(InvalidParameterError, match=expected):
        BenchmarkPlan(("ames", "midwest_survey"), **names)


def test_the_methods_of_the_paper_are_encoders_and_the_references_are_not():
    assert set(PAPER_METHODS) <= set(METHODS)
    assert not set(REFERENCES) & set(METHODS)


@pytest.mark.parametrize("plan", [SimulationPlan(seeds=(3, 1, 2)), EmpiricalPlan(seeds=(3, 1, 2))])
def test_trials_go_seed_by_seed_so_that_a_stopped_run_has_as_many_of_each_cell(plan):
    trials = plan.trials()
    assert [seed for seed, _ in groupby(trial.seed for trial in trials)] == [3, 1, 2]
    assert set(Counter(trial.seed for trial in trials).values()) == {len(trials) // 3}


def test_methods_of_one_sample_stand_side_by_side_in_the_order_given():
    plan = SimulationPlan(methods=("means", "one_hot"), models=("forest", "xgboost"), seeds=(0,))
    trials = plan.trials()
    assert [trial.method for trial in trials] == ["means", "one_hot"] * 24
    assert trials[0] == SimulationTrial("global_linear", 2, 50, "forest", "means", 0)
    assert trials[2] == SimulationTrial("global_linear", 2, 50, "xgboost", "means", 0)
    assert trials[4] == SimulationTrial("global_linear", 2, 100, "forest", "means", 0)
    assert trials[-1] == SimulationTrial("piecewise_linear", 10, 100, "xgboost", "one_hot", 0)


def test_folds_follow_the_setting():
    plan = EmpiricalPlan(("ames",), ("xgboost",), ("means",), seeds=(7,), settings=Settings(n_folds=3))
    assert plan.trials() == [EmpiricalTrial("ames", "xgboost", "means", 7, fold) for fold in range(3)]


@pytest.mark.parametrize("plan", [SimulationPlan, EmpiricalPlan])
def test_the_bug_concerns_the_methods_that_choose_k_only(plan):
    trials = plan(k_index_bug=True, seeds=(0,)).trials()
    assert {trial.method for trial in trials if trial.k_index_bug} == {"low_rank", "sparse_low_rank"}
    assert {trial.method for trial in trials if not trial.k_index_bug}.isdisjoint(
        {"low_rank", "sparse_low_rank"}
    )


def test_no_seeds_are_no_trials():
    assert SimulationPlan(seeds=()).trials() == []


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (
            {"setups": ("linear",)},
            "setups is 'linear'.\nHint: setups must be one of global_linear, latent_linear",
        ),
        (
            {"models": ("boost",)},
            "models is 'boost'.\nHint: models must be one of forest, sklearn_forest, xgboost",
        ),
        ({"n_latent": (2, 0)}, "n_latent is 0.\nHint: n_latent must be an integer of at least 1"),
        ({"levels_per_latent": (-1,)}, "levels_per_latent is -1.\nHint: levels_per_latent must be an in"),
    ],
)
def test_simulations_with_an_unknown_name_or_nothing_to_simulate_raise(names, text):
    with pytest.raises(InvalidParameterError, match=text):
        SimulationPlan(**names)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ({"datasets": ("boston",)}, "datasets is 'boston'.\nHint: datasets must be one of pakistan, ames"),
        ({"models": ("lasso",)}, "models is 'lasso'.\nHint: models must be one of forest"),
    ],
)
def test_an_unknown_name_in_tables_raises_with_the_known_ones(names, text):
    with pytest.raises(InvalidParameterError, match=text):
        EmpiricalPlan(**names)


@pytest.mark.parametrize("plan", [SimulationPlan, EmpiricalPlan])
def test_a_misspelt_method_suggests_the_closest_one(plan):
    with pytest.raises(UnknownMethodError, match=r"'lowrank'\.\nHint: did you mean 'low_rank'\?"):
        plan(methods=("means", "lowrank"))


@pytest.mark.parametrize("method", REFERENCES)
def test_real_data_have_no_truth_that_oracle_or_bayes_could_use(method):
    assert SimulationPlan(methods=(method,)).methods == (method,)
    with pytest.raises(SufrepError, match=f"No encoder is called '{method}'"):
        EmpiricalPlan(methods=(method,))


@pytest.mark.parametrize("method", [*METHODS, *PEER_ENCODINGS, "drop"])
@pytest.mark.parametrize("plan", [SimulationPlan, EmpiricalPlan])
def test_every_encoder_and_the_covariates_alone_can_be_planned(plan, method):
    assert {trial.method for trial in plan(methods=(method,), seeds=(0,)).trials()} == {method}


@pytest.mark.parametrize("model", PAPER_MODELS)
def test_every_model_can_be_planned(model):
    assert {trial.model for trial in EmpiricalPlan(models=(model,)).trials()} == {model}


@pytest.mark.parametrize(
    ("frozen", "name"),
    [
        (SimulationPlan(), "seeds"),
        (EmpiricalPlan(), "datasets"),
        (BenchmarkPlan(), "datasets"),
        (Settings(), "n"),
        (SimulationPlan().trials()[0], "seed"),
        (EmpiricalPlan().trials()[0], "fold"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_plans_and_trials_cannot_be_changed(frozen, name):
    with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
        setattr(frozen, name, 1)


@pytest.mark.parametrize(("name", "value"), CHANGES.items())
def test_the_identity_changes_with_every_setting(name, value):
    before, after = Settings().identity(), Settings(**{name: value}).identity()
    assert {key for key in before if before[key] != after[key]} == {name}


def test_the_identity_does_not_depend_on_where_the_data_lie():
    assert Settings(data_dir="/a").identity() == Settings(data_dir="/b").identity() == Settings().identity()


def test_all_settings_but_the_place_of_the_data_are_covered_here():
    assert {field.name for field in fields(Settings)} == {*CHANGES, "data_dir"}


@pytest.mark.parametrize(
    "name", ["PAPER_XGBOOST", "TUNED_XGBOOST", "COMPONENTS", "ALPHAS", "CHOICE_FOLDS", "CHOICE_TREES"]
)
def test_the_identity_changes_with_every_constant_that_results_depend_on(monkeypatch, name):
    before = Settings().identity()
    other = {"PAPER_XGBOOST": {"max_depth": 1}, "COMPONENTS": (2,), "ALPHAS": (0.5,)}.get(name, 17)
    monkeypatch.setattr(f"sufrep._paper.plan.{name}", other)
    assert Settings().identity() != before


def test_trials_sort_by_what_they_are():
    trial = SimulationTrial("latent_linear", 2, 50, "xgboost", "means", 3)
    assert sorted([trial, replace(trial, seed=1)]) == [replace(trial, seed=1), trial]


# Treatment effects


def test_the_default_effects_are_all_arms_and_methods_with_linear_models():
    trials = EffectPlan().trials()
    assert len(trials) == len(set(trials)) == len(EFFECT_ARMS) * len(EFFECT_METHODS) * 100
    assert {trial.model for trial in trials} == {"linear"}
    assert [seed for seed, _ in groupby(trial.seed for trial in trials)] == list(range(100))


def test_fixed_effects_are_linear_whatever_the_models():
    plan = EffectPlan(("main",), ("linear", "boosting"), ("fixed_effects", "means_w"), seeds=[5], n=700)
    assert plan.trials() == [
        EffectTrial("main", 700, "linear", "fixed_effects", 5),
        EffectTrial("main", 700, "linear", "means_w", 5),
        EffectTrial("main", 700, "boosting", "means_w", 5),
    ]


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"arms": ("mian",)}, "'mian'"),
        ({"models": ("forest",)}, "'forest'"),
        ({"methods": ("mnl",)}, "'mnl'"),
        ({"n": 0}, "at least 1"),
    ],
)
def test_unknown_names_of_effects_are_clear_errors(wrong, text):
    with pytest.raises(SufrepError, match=text):
        EffectPlan(**wrong)
