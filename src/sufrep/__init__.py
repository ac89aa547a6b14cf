"""Sufficient representations for high-cardinality categorical variables.

A category that acts on the target only through a hidden state is replaced by a short vector that is
built from the other covariates and keeps all predictive information (Johannemann, Hadad, Athey and
Wager, *Sufficient Representations for Categorical Variables*).
"""

from __future__ import annotations

from sufrep._compare import Comparison, compare
from sufrep._simulate import Simulation, simulate
from sufrep.encoders import (
    ContrastEncoder,
    FisherEncoder,
    LatentStateEncoder,
    LatentStateRegressor,
    LocalEffectEncoder,
    LowRankEncoder,
    MeansEncoder,
    MixedModelEncoder,
    MNLEncoder,
    PermutationEncoder,
    RandomInterceptEncoder,
    SparseLowRankEncoder,
    SufficiencyCheck,
    SufficientEncoder,
    ToNumbers,
    load,
    make_encoder,
    sufficiency_check,
)
from sufrep.moments import GroupMoments
from sufrep.representation import Representation

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "ContrastEncoder",
    "FisherEncoder",
    "GroupMoments",
    "LatentStateEncoder",
    "LatentStateRegressor",
    "LocalEffectEncoder",
    "LowRankEncoder",
    "MNLEncoder",
    "MeansEncoder",
    "MixedModelEncoder",
    "PermutationEncoder",
    "RandomInterceptEncoder",
    "Representation",
    "Simulation",
    "SparseLowRankEncoder",
    "SufficiencyCheck",
    "SufficientEncoder",
    "ToNumbers",
    "compare",
    "load",
    "make_encoder",
    "simulate",
    "sufficiency_check",
]
