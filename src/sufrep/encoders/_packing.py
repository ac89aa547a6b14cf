"""Encoders as JSON and arrays: the records that they are made of, and their parameters and attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sufrep._files import ColumnReading, TableReading
from sufrep._packing import Packer
from sufrep.encoders._inputs import Covariate, Layout, OutputColumn
from sufrep.encoders._nesting import Links
from sufrep.moments import MOMENTS_RECORDS
from sufrep.representation import Representation
from sufrep.solvers.correspondence import BinScores
from sufrep.solvers.crossings import CellEffects
from sufrep.solvers.experts import ClassExperts, LinearExperts
from sufrep.solvers.level_kernels import LevelKernel
from sufrep.solvers.local_effects import LocalEffects
from sufrep.solvers.mixed_model import Variances
from sufrep.solvers.mixture import Mixture
from sufrep.solvers.nesting import StatesTier, Tier
from sufrep.solvers.new_levels import DiscriminantRule, LinearRule, StatesRule
from sufrep.solvers.regressions import Curve, NormalScores
from sufrep.solvers.shrinkage import MeansPrior

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The records in the files of encoders; `sufrep._packing.Records` says what the words mean.
RECORDS: dict[type, Mapping[str, str]] = {
    Covariate: {"position": "integer?", "level": "text?", "null": "truth"},
    Layout: {"names": "texts columns"},
    OutputColumn: {"text": "text", "covariate": "Covariate?"},
    ColumnReading: {"name": "text", "kind": "text", "time_zone": "text?"},
    TableReading: {"nulls": "texts nulls", "separator": "text?", "encoding": "text?"},
    **MOMENTS_RECORDS,
    Representation: {
        "levels": "levels n",
        "values": "numbers n k",
        "columns": "texts k",
        "weight": "numbers n",
        "prior": "numbers k",
        "group": "texts g",
    },
    Mixture: {
        "center": "numbers p",
        "means": "numbers s p",
        "covariance": "numbers p p",
        "shares": "numbers n s",
        "prior": "numbers s",
        "objective": "numbers i",
        "converged": "truth",
    },
    MeansPrior: {
        "center": "numbers p",
        "scale": "numbers p",
        "within": "numbers p p",
        "signal": "numbers p",
        "forward": "numbers p p",
        "back": "numbers p p",
    },
    LinearRule: {
        "fill": "numbers p",
        "outputs": "integers m",
        "matrix": "numbers? m k",
        "offset": "numbers? k",
        "one_more_row": "truth",
        "shrink": "truth",
        "prior": "MeansPrior?",
    },
    Tier: {"names": "levels n", "means": "numbers n p", "prior": "MeansPrior"},
    StatesTier: {"names": "levels n", "shares": "numbers n s"},
    Links: {
        "column": "text",
        "above": "text",
        "children": "levels c",
        "parents": "levels q",
        "child": "integers n",
        "parent": "integers n",
        "weight": "numbers n",
    },
    DiscriminantRule: {
        "center": "numbers p",
        "scale": "numbers p",
        "precision": "numbers p p",
        "total": "number",
        "shift": "numbers k",
        "factor": "numbers k",
    },
    StatesRule: {"concentration": "number"},
    BinScores: {"edges": "numbers e", "scores": "numbers b k"},
    NormalScores: {"linear": "truth"},
    LinearExperts: {
        "coefficients": "numbers s q",
        "variances": "numbers s",
        "pooled": "numbers q",
        "pooled_variance": "number",
        "penalty": "numbers q",
        "origin": "number",
    },
    ClassExperts: {"probabilities": "numbers s c", "pooled": "numbers c"},
    Curve: {"origin": "number", "coefficients": "numbers q"},
    CellEffects: {"keys": "integers c", "effects": "numbers c"},
    Variances: {"ratio": "numbers q", "deviation": "number"},
    LevelKernel: {
        "constant": "number",
        "variances": "numbers m",
        "weights": "numbers m p",
        "noise": "number",
    },
    LocalEffects: {
        "curve": "Curve",
        "kernel": "LevelKernel",
        "ends": "integers n",
        "scores": "numbers r u",
        "coefficients": "numbers r",
    },
}


class EncoderPacker(Packer):
    """Packs estimators too, also those inside others."""

    def __init__(self) -> None:
        super().__init__(RECORDS)
        self.n_estimators = 0

    def _other(self, value: Any, what: str) -> Any:
        if hasattr(value, "representations_"):
            return {"$encoder": self.pack_estimator(value)}
        return super()._other(value, what)

    def pack_estimator(self, estimator: Any, leave_out: Sequence[str] = ()) -> dict[str, Any]:
        """The parameters and fitted attributes of an estimator."""
        self.records.add(type(estimator).__name__)
        self.n_estimators += 1
        # Sorted: the order in which attributes were set depends on earlier fits.
        fitted = {
            key: value
            for key, value in sorted(vars(estimator).items())
            if key.endswith("_") and key[0] != "_" and key not in leave_out
        }
        return {
            "class": type(estimator).__name__,
            "parameters": {
                key: self.pack(value, f"The parameter {key!r}")
                for key, value in saved_parameters(estimator).items()
            },
            "fitted": {key: self.pack(value, f"The attribute {key!r}") for key, value in fitted.items()},
            "output": vars(estimator).get("_sklearn_output_config", {}).get("transform"),
        }


def saved_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator as a file holds them: of a learner, only its name.

    >>> from sklearn.linear_model import Ridge
    >>> from sufrep import SufficientEncoder
    >>> saved_parameters(SufficientEncoder("zip", estimator=Ridge()))["estimator"]
    'Ridge'
    """
    given = estimator.get_params(deep=False).items()
    return {key: _learner_name(value) if hasattr(value, "predict") else value for key, value in given}


def _learner_name(learner: Any) -> str:
    return " + ".join(type(step).__name__ for _, step in getattr(learner, "steps", [("", learner)]))
