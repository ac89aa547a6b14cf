"""What a representation may be made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sufrep.encoders._contrasts import ContrastEncoder
from sufrep.encoders._latent_state import LatentStateEncoder
from sufrep.encoders._local_effect import LocalEffectEncoder
from sufrep.encoders._low_rank import LowRankEncoder
from sufrep.encoders._means import MeansEncoder
from sufrep.encoders._mixed_model import MixedModelEncoder
from sufrep.encoders._random_intercept import RandomInterceptEncoder

if TYPE_CHECKING:
    from sufrep.encoders._base import GroupEncoder

Candidate = tuple[str, ...]
# The encoders that candidates are made of, the most useful ones first. Pairs and triples follow.
PIECES: dict[str, tuple[type[GroupEncoder], dict[str, Any]]] = {
    "target": (MeansEncoder, {"covariates": [], "use_target": True}),
    "mixed_model": (MixedModelEncoder, {}),
    "local_effect": (LocalEffectEncoder, {}),
    "local_fit": (LocalEffectEncoder, {"output": "fit"}),
    "means": (MeansEncoder, {"leave_one_out": True}),
    "intercept": (RandomInterceptEncoder, {}),
    "states": (LatentStateEncoder, {"output": "both"}),
    "shrunken_means": (MeansEncoder, {"shrinkage": "auto"}),
    "joint_means": (MeansEncoder, {"shrinkage": "auto", "use_target": True}),
    "one_hot": (ContrastEncoder, {"coding": "one_hot"}),
    "low_rank": (LowRankEncoder, {"shrinkage": "auto"}),
}
NEED_COVARIATES = ("means", "shrunken_means", "joint_means", "states", "low_rank")
# Pieces whose columns have the same names, or say the same.
_ALIKE = (
    {"means", "shrunken_means", "joint_means"},
    {"target", "joint_means"},
    {"local_effect", "local_fit"},
)
# Pieces that one encoder gives at once: the value of its ``output``, and the columns of each piece in turn.
TOGETHER = {"both": ("local_effect", "local_fit")}
# With fewer rows than this, losses of candidates differ mostly by chance, and levels are represented by these
# pieces if losses do not say otherwise: two predictions and two descriptions.
CHANCE_ROWS = 2_000
SAFE: Candidate = ("local_fit", "mixed_model", "low_rank", "states")
# More indicators than this are not affordable.
MOST_INDICATORS = 200


def worth_trying(candidate: Candidate) -> bool:
    """Whether no two pieces say the same."""
    return not any(len(alike.intersection(candidate)) > 1 for alike in _ALIKE)
