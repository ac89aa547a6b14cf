"""Estimators with scikit-learn's conventions.

Names are imported when they are first used (PEP 562): an encoder of means needs no gradient boosting, which
the judge of `SufficientEncoder` loads.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# The module of each public name; the warnings are in sufrep.errors.
_HOMES = {
    "_base": ("GroupEncoder",),
    "_cells": ("CellsEncoder",),
    "_classical": ("ContrastEncoder", "FisherEncoder", "PermutationEncoder"),
    "_cold_start": ("ColdStartEstimator",),
    "_crossed_effects": ("CrossedEffectsEncoder",),
    "_drift": ("Drift",),
    "_drop_columns": ("DropColumns",),
    "_latent_regressor": ("LatentStateRegressor",),
    "_latent_state": ("LatentStateEncoder",),
    "_level_models": ("LocalEffectEncoder", "MixedModelEncoder", "RandomInterceptEncoder"),
    "_low_rank": ("LowRankEncoder", "SparseLowRankEncoder"),
    "_means": ("MeansEncoder",),
    "_mnl": ("MNLEncoder",),
    "_registry": ("METHODS", "load", "make_encoder", "save"),
    "_shares": ("SharesEncoder",),
    "_sufficiency": ("SufficiencyCheck", "sufficiency_check"),
    "_sufficient": ("SufficientEncoder",),
    "_to_numbers": ("ToNumbers",),
}
_MODULES = {name: f"sufrep.encoders.{module}" for module, names in _HOMES.items() for name in names}


# Hidden from type checkers, which would accept any name otherwise.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'sufrep.encoders' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULES.get(name, "sufrep.errors")), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
