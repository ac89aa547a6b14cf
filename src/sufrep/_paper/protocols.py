"""How entries are judged on each data set: by which loss, on which folds, with which models.

As in `sufrep._paper.names`, nothing heavy is imported: plans and tables need this without the data.
tests/paper/test_protocols.py compares it with the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sufrep._paper.names import (
    AT_MOST_BINARY,
    BENCHMARK_METHODS,
    BENCHMARK_MODELS,
    CLASS_MODELS,
)

Loss: TypeAlias = Literal["MSE", "log loss"]
TargetType: TypeAlias = Literal["continuous", "binary", "multiclass"]

# Not run on classes unless it is named: one fold of open_payments, with 1,466 levels, takes it more than
# 14 minutes (it was stopped then), and nycflights_delayed has three times as many levels.
SLOW_ON_CLASSES = ("glmm",)


@dataclass(frozen=True, slots=True)
class Protocol:
    """How entries are judged on one data set.

    Attributes
    ----------
    target_type : {"continuous", "binary", "multiclass"}
    own_folds : int or None
        Number of folds that the data set brings; None if it is split by us.
    max_folds : int or None
        Maximum number of folds that we split it into, if its levels are small.
    encoded_model : str
        The model that follows encodings.
    is_published : bool
        Whether others have published results on the same folds, with which ours are compared.
    has_several_groups : bool
        Whether there is more than one column of many levels.
    """

    target_type: TargetType = "continuous"
    own_folds: int | None = None
    max_folds: int | None = None
    encoded_model: str = "xgboost"
    is_published: bool = False
    has_several_groups: bool = False

    @property
    def loss(self) -> Loss:
        """The name of the loss in tables."""
        return "MSE" if self.target_type == "continuous" else "log loss"

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the benchmark, of which those that do not suit the target are not run."""
        # The published models were tuned; ours that read the group have fixed settings.
        return (self.encoded_model,) if self.is_published else BENCHMARK_MODELS

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of the benchmark, of which those that do not suit the target are not run."""
        slow = () if self.target_type == "continuous" else SLOW_ON_CLASSES
        return tuple(method for method in BENCHMARK_METHODS if method not in slow)

    def suits(self, model: str, method: str) -> bool:
        """Whether a model with a method can predict this target from these groups."""
        if self.target_type == "continuous":
            return True
        if self.target_type == "multiclass" and (model in AT_MOST_BINARY or method in AT_MOST_BINARY):
            return False
        return model in CLASS_MODELS


_NUMBERS = Protocol()
_PROTOCOLS = {
    # Every level has four rows; with more folds no row could be tested.
    "pakistan": Protocol(max_folds=4),
    "nycflights_delayed": Protocol("binary"),
    "open_payments": Protocol("binary"),
    "midwest_survey": Protocol("multiclass"),
    "videogame_sales": Protocol(has_several_groups=True),
    "movielens": Protocol(has_several_groups=True),
    "open_payments_text": Protocol("binary", has_several_groups=True),
    "midwest_survey_text": Protocol("multiclass", has_several_groups=True),
    "wages": Protocol(own_folds=5, encoded_model="xgboost_tuned", is_published=True),
    "insteval_sigrist": Protocol(
        own_folds=5, encoded_model="xgboost_tuned", is_published=True, has_several_groups=True
    ),
}


def protocol_of(dataset: str) -> Protocol:
    """Return the protocol of a data set; by default its target is a number and we split it."""
    return _PROTOCOLS.get(dataset, _NUMBERS)
