"""Parameters that all encoders share are described in the same words, in the source of each."""

from __future__ import annotations

import inspect
import re

import pytest

from sufrep.encoders import METHODS, LatentStateEncoder, MeansEncoder, MNLEncoder

ENCODERS = sorted({encoder for encoder, _ in METHODS.values()}, key=lambda encoder: encoder.__name__)
SHARED_PARAMETERS = (
    *("group", "covariates", "categorical_covariates", "remainder", "unseen", "missing", "min_frequency"),
)
SHARED_ATTRIBUTES = ("representations_", "moments_", "n_features_in_", "feature_names_in_")


def entries(encoder: type) -> dict[str, str]:
    """The description of each parameter and attribute, as it stands in the source."""
    source = inspect.getsource(encoder)
    docstring = source[source.index('"""') : source.index('"""', source.index('"""') + 3)]
    parts = re.split(r"\n    (?=\w[\w, ]* : )", docstring)
    return {part.partition(" : ")[0]: re.split(r"\n\n", part)[0].strip() for part in parts[1:]}


UNUSED = "Not used; present so that all encoders have the same parameters."


@pytest.mark.parametrize("encoder", ENCODERS)
def test_shared_parameters_are_described_alike(encoder):
    described, expected = entries(encoder), entries(MeansEncoder)
    needs = encoder()._needs
    for name in SHARED_PARAMETERS:
        if needs.covariates == "unused" and "covariates" in name:
            assert described[name].endswith(UNUSED)
        else:
            assert described[name] == expected[name]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_shared_attributes_are_described_alike(encoder):
    described, expected = entries(encoder), entries(MeansEncoder)
    for name in SHARED_ATTRIBUTES:
        if name == "moments_" and encoder()._needs.rows and encoder is not MNLEncoder:
            assert name not in described
        else:
            assert described[name] == expected[name]


def test_the_time_is_described_alike_where_there_are_folds():
    in_folds = [encoder for encoder in ENCODERS if "cv" in encoder._parameter_constraints]
    assert len(in_folds) == 10
    for encoder in in_folds:
        assert entries(encoder)["time"] == entries(MeansEncoder)["time"]


def test_parents_are_described_alike_where_levels_are_shrunk_towards_them():
    nested = [encoder for encoder in ENCODERS if "parent" in encoder._parameter_constraints]
    assert len(nested) == 4
    for encoder in nested:
        # Hidden states have no variances that say how far they are shrunk.
        for name in ("parent",) * (encoder is not LatentStateEncoder) + ("on_conflict", "parents_"):
            assert entries(encoder)[name] == entries(MeansEncoder)[name]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_parameter_is_described(encoder):
    assert set(inspect.signature(encoder).parameters) <= set(entries(encoder))
