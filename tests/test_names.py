"""The names that users type are those of the registries."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from sklearn.metrics import get_scorer_names

from sufrep import AIPW
from sufrep._models import MODELS
from sufrep._names import (
    COMPARED_METHODS,
    COMPARISON_MODELS,
    DATASET_NAMES,
    DESCRIBING_METHODS,
    ENCODERS,
    ESTIMANDS,
    EVERYDAY_SCORERS,
    GROUP_STATISTICS,
    METHOD_TEXTS,
    SCORERS,
    TARGET_METHODS,
)
from sufrep.datasets import DATASETS
from sufrep.encoders import METHODS, make_encoder
from sufrep.encoders._judging import COMPONENTS
from sufrep.errors import InvalidParameterError
from sufrep.solvers.effects import Estimand


def test_the_registry_has_the_encoder_of_each_name():
    assert list(METHODS) == list(ENCODERS)
    assert {method: kind.__name__ for method, (kind, _) in METHODS.items()} == {
        method: name for method, (_, name, _) in ENCODERS.items()
    }


def test_the_methods_that_need_a_target_are_those_whose_encoders_use_it():
    assert tuple(method for method in METHODS if make_encoder(method)._needs.uses_target) == TARGET_METHODS


def test_every_method_and_component_is_explained_in_one_line():
    assert set(METHOD_TEXTS) == {*COMPARED_METHODS, *COMPONENTS}
    assert all(text.endswith(".") and len(text) < 110 for text in METHOD_TEXTS.values())


def test_the_documentation_explains_the_methods_in_the_same_words():
    text = (Path(__file__).parents[1] / "docs" / "how-to" / "compare.md").read_text("utf-8")
    listed = [f"| `{method}` | {METHOD_TEXTS[method]} |" for method in COMPARED_METHODS]
    assert "\n".join(listed) in text


def test_the_methods_that_could_average_a_target_are_those_with_covariates_and_without_a_target():
    found = {method: make_encoder(method)._needs for method in METHODS}
    assert (
        tuple(
            method
            for method, needs in found.items()
            if needs.covariates != "unused" and not needs.uses_target
        )
        == DESCRIBING_METHODS
    )


def test_models_and_data_sets_have_these_names():
    assert tuple(MODELS) == COMPARISON_MODELS
    assert tuple(DATASETS) == DATASET_NAMES


def test_the_command_knows_every_scorer_of_the_installed_scikit_learn():
    assert set(get_scorer_names()) <= set(SCORERS)


def test_everyday_names_are_those_of_scorers_and_of_no_other_scorer():
    assert set(EVERYDAY_SCORERS.values()) <= set(get_scorer_names())
    assert not set(EVERYDAY_SCORERS) & set(SCORERS)


def test_effects_have_these_estimands_and_statistics():
    assert get_args(Estimand) == ESTIMANDS
    assert set(AIPW().statistics) < set(GROUP_STATISTICS)
    with pytest.raises(InvalidParameterError, match=f"some of {', '.join(GROUP_STATISTICS)}"):
        AIPW(group="g", statistics=("Z",)).fit([[1]], treatment=[1], outcome=[1])
