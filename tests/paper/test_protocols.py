"""Protocols say of each data set what its loader says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sufrep._paper.names import BENCHMARK_MODELS, PAPER_MODELS, TRIAL_METHODS
from sufrep._paper.protocols import _PROTOCOLS, Protocol, protocol_of
from sufrep.datasets import DATASETS, PUBLISHED_FOLDS, load_dataset


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "nycflights"])
def test_kind_of_the_target_and_folds_are_those_of_the_data(data_dir, name):
    data, protocol = load_dataset(name, data_dir), protocol_of(name)
    kinds = {0: "continuous", 2: "binary"}
    assert protocol.target_type == kinds.get(len(data.classes), "multiclass")
    assert protocol.own_folds == (None if data.folds is None else data.folds.max() + 1)


def test_every_protocol_is_of_a_data_set_and_names_models():
    assert set(_PROTOCOLS) <= set(DATASETS)
    assert {protocol.encoded_model for protocol in _PROTOCOLS.values()} <= set(PAPER_MODELS)
    assert protocol_of("wages").own_folds == PUBLISHED_FOLDS


@pytest.mark.parametrize("name", DATASETS)
def test_tables_of_several_groups_are_known(name):
    several = (
        "insteval_sigrist",
        "videogame_sales",
        "movielens",
        "open_payments_text",
        "midwest_survey_text",
    )
    assert protocol_of(name).has_several_groups == (name in several)
    assert protocol_of(name).suits(protocol_of(name).encoded_model, "crossed_effects")


def test_numbers_are_the_default():
    assert protocol_of("ames") == Protocol()
    assert (Protocol().loss, Protocol().models) == ("MSE", BENCHMARK_MODELS)


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_classes_are_judged_by_their_log_loss(kind):
    assert Protocol(kind).loss == "log loss"


def test_results_are_published_for_tuned_models_so_ours_is_tuned_too():
    wages = protocol_of("wages")
    assert wages.models == ("xgboost_tuned",)
    assert replace(wages, is_published=False).models == BENCHMARK_MODELS


@pytest.mark.parametrize("model", PAPER_MODELS)
@pytest.mark.parametrize("method", TRIAL_METHODS)
def test_every_model_and_method_suits_numbers(model, method):
    assert Protocol().suits(model, method)


@pytest.mark.parametrize(
    ("kind", "model", "method", "suits"),
    [
        ("binary", "xgboost", "glmm", True),
        ("multiclass", "xgboost", "glmm", False),
        ("multiclass", "xgboost", "target_encoder", True),
        ("binary", "gpboost", "native", True),
        ("multiclass", "gpboost", "native", False),
        ("multiclass", "catboost_native", "native", True),
        ("binary", "xgboost_tuned", "means", False),
        ("binary", "latent_state_regressor", "native", False),
    ],
)
def test_what_suits_classes(kind, model, method, suits):
    assert Protocol(kind).suits(model, method) == suits
