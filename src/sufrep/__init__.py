"""Sufficient representations for high-cardinality categorical variables.

A category that acts on the target only through a hidden state is replaced by a short vector that is
built from the other covariates and keeps all predictive information (Johannemann, Hadad, Athey and
Wager, *Sufficient Representations for Categorical Variables*).

Names are imported when they are first used (PEP 562), so that ``import sufrep`` is immediate.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sufrep import datasets as datasets
    from sufrep import encoders as encoders
    from sufrep import errors as errors
    from sufrep import moments as moments
    from sufrep import representation as representation
    from sufrep import solvers as solvers
    from sufrep._compare import Comparison, compare
    from sufrep._simulate import Simulation, simulate
    from sufrep.causal import AIPW, EffectEstimate
    from sufrep.encoders import (
        CellsEncoder,
        ColdStartEstimator,
        ContrastEncoder,
        CrossedEffectsEncoder,
        Drift,
        DropColumns,
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
        SharesEncoder,
        SparseLowRankEncoder,
        SufficiencyCheck,
        SufficientEncoder,
        ToNumbers,
        load,
        make_encoder,
        save,
        sufficiency_check,
    )
    from sufrep.moments import GroupMoments
    from sufrep.representation import Representation

__version__ = "0.1.0"

__all__ = [
    "AIPW",
    "CellsEncoder",
    "ColdStartEstimator",
    "Comparison",
    "ContrastEncoder",
    "CrossedEffectsEncoder",
    "Drift",
    "DropColumns",
    "EffectEstimate",
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
    "SharesEncoder",
    "Simulation",
    "SparseLowRankEncoder",
    "SufficiencyCheck",
    "SufficientEncoder",
    "ToNumbers",
    "compare",
    "load",
    "make_encoder",
    "save",
    "simulate",
    "sufficiency_check",
]

_MODULES = ("datasets", "encoders", "errors", "moments", "representation", "solvers")
# The module of each public name; all others are in sufrep.encoders.
_HOMES = {
    "Comparison": "sufrep._compare",
    "compare": "sufrep._compare",
    "AIPW": "sufrep.causal",
    "EffectEstimate": "sufrep.causal",
    "Simulation": "sufrep._simulate",
    "simulate": "sufrep._simulate",
    "GroupMoments": "sufrep.moments",
    "Representation": "sufrep.representation",
}


# Hidden from type checkers, which would accept any name otherwise.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"sufrep.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'sufrep' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES.get(name, "sufrep.encoders")), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
