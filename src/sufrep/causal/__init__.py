"""Treatment effects with a high-cardinality confounder."""

from __future__ import annotations

from sufrep.causal._aipw import AIPW
from sufrep.causal._diagnostics import Sensitivity
from sufrep.causal._estimate import EffectEstimate

__all__ = ["AIPW", "EffectEstimate", "Sensitivity"]
