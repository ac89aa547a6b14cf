"""The names of the experiments are those of what is run."""

from __future__ import annotations

import pytest

from sufrep._names import DATASET_NAMES, ENCODERS
from sufrep._paper import names
from sufrep._paper.methods import chooses_components
from sufrep._paper.models import CLASSIFIER_BUILDERS, ENCODING_BUILDERS, MODEL_BUILDERS
from sufrep.encoders import METHODS


def test_models_and_encodings_of_peers_have_these_names():
    assert tuple(MODEL_BUILDERS) == names.PAPER_MODELS
    assert tuple(CLASSIFIER_BUILDERS) == names.CLASS_MODELS
    assert tuple(ENCODING_BUILDERS) == names.PEER_ENCODINGS


def test_methods_that_choose_a_number_of_components_have_these_names():
    assert tuple(method for method in METHODS if chooses_components(method)) == names.COMPONENT_METHODS


def test_variants_are_encoders_with_other_parameters():
    assert {method for method, _ in names.VARIANTS.values()} <= set(ENCODERS)


@pytest.mark.parametrize(
    ("chosen", "known"),
    [
        (names.PAPER_METHODS, names.TRIAL_METHODS),
        (names.BENCHMARK_METHODS, names.TRIAL_METHODS),
        (names.BENCHMARK_MODELS, names.PAPER_MODELS),
        (names.AT_MOST_BINARY, (*names.PEER_ENCODINGS, *names.CLASS_MODELS)),
        (names.PAPER_DATASETS, DATASET_NAMES),
        (names.BENCHMARK_DATASETS, DATASET_NAMES),
    ],
)
def test_an_experiment_chooses_from_what_there_is(chosen, known):
    assert set(chosen) <= set(known)
    assert len(set(chosen)) == len(chosen)
