"""The names that users type are those of the registries."""

from __future__ import annotations

from sklearn.metrics import get_scorer_names

from sufrep._models import MODELS
from sufrep._names import COMPARISON_MODELS, DATASET_NAMES, ENCODERS, SCORERS, TARGET_METHODS
from sufrep.datasets import DATASETS
from sufrep.encoders import METHODS, make_encoder


def test_the_registry_has_the_encoder_of_each_name():
    assert list(METHODS) == list(ENCODERS)
    assert {method: kind.__name__ for method, (kind, _) in METHODS.items()} == {
        method: name for method, (_, name, _) in ENCODERS.items()
    }


def test_the_methods_that_need_a_target_are_those_whose_encoders_use_it():
    assert tuple(method for method in METHODS if make_encoder(method)._needs.uses_target) == TARGET_METHODS


def test_models_and_data_sets_have_these_names():
    assert tuple(MODELS) == COMPARISON_MODELS
    assert tuple(DATASETS) == DATASET_NAMES


def test_the_command_knows_every_scorer_of_the_installed_scikit_learn():
    assert set(get_scorer_names()) <= set(SCORERS)
