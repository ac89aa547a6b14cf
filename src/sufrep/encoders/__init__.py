"""Estimators with scikit-learn's conventions."""

from __future__ import annotations

from sufrep.encoders._base import GroupEncoder
from sufrep.encoders._cells import CellsEncoder
from sufrep.encoders._classical import ContrastEncoder, FisherEncoder, PermutationEncoder
from sufrep.encoders._cold_start import ColdStartEstimator
from sufrep.encoders._crossed_effects import CrossedEffectsEncoder
from sufrep.encoders._drift import Drift
from sufrep.encoders._drop_columns import DropColumns
from sufrep.encoders._latent_regressor import LatentStateRegressor
from sufrep.encoders._latent_state import LatentStateEncoder
from sufrep.encoders._level_models import LocalEffectEncoder, MixedModelEncoder, RandomInterceptEncoder
from sufrep.encoders._low_rank import LowRankEncoder, SparseLowRankEncoder
from sufrep.encoders._means import MeansEncoder
from sufrep.encoders._mnl import MNLEncoder
from sufrep.encoders._registry import METHODS, load, make_encoder, save
from sufrep.encoders._shares import SharesEncoder
from sufrep.encoders._sufficiency import SufficiencyCheck, sufficiency_check
from sufrep.encoders._sufficient import SufficientEncoder
from sufrep.encoders._to_numbers import ToNumbers
from sufrep.errors import (
    IntegerClassesWarning,
    NoCovariateWarning,
    NoGroupWarning,
    TextColumnWarning,
    UninformativeGroupWarning,
    UnseenLevelsWarning,
)

__all__ = [
    "METHODS",
    "CellsEncoder",
    "ColdStartEstimator",
    "ContrastEncoder",
    "CrossedEffectsEncoder",
    "Drift",
    "DropColumns",
    "FisherEncoder",
    "GroupEncoder",
    "IntegerClassesWarning",
    "LatentStateEncoder",
    "LatentStateRegressor",
    "LocalEffectEncoder",
    "LowRankEncoder",
    "MNLEncoder",
    "MeansEncoder",
    "MixedModelEncoder",
    "NoCovariateWarning",
    "NoGroupWarning",
    "PermutationEncoder",
    "RandomInterceptEncoder",
    "SharesEncoder",
    "SparseLowRankEncoder",
    "SufficiencyCheck",
    "SufficientEncoder",
    "TextColumnWarning",
    "ToNumbers",
    "UninformativeGroupWarning",
    "UnseenLevelsWarning",
    "load",
    "make_encoder",
    "save",
    "sufficiency_check",
]
