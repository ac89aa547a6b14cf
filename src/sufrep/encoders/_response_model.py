"""What the encoders share that fit a model of the target to the rows of every level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sufrep.encoders._cross_fitting import CrossFittingEncoder
from sufrep.encoders._layout import read_covariates
from sufrep.encoders._target import Target, read_target

if TYPE_CHECKING:
    from sufrep._arrays import Columns, Floats
    from sufrep._frames import Table
    from sufrep.encoders._layout import Covariate, Layout


class ResponseModelEncoder(CrossFittingEncoder):
    """Base of the encoders by mixed models: they need the rows, the target, and perhaps no covariate."""

    _needs_covariates: ClassVar[bool] = False
    _target_is_covariate: ClassVar[bool] = False

    @property
    def _uses_target(self) -> bool:
        return True

    @property
    def _moments_suffice(self) -> bool:
        return False

    def _describe(
        self,
        table: Table,
        layout: Layout,
        y: Any,  # noqa: ARG002
        *,
        reset: bool,  # noqa: ARG002
    ) -> tuple[list[Covariate], Columns]:
        """The covariates, of which there may be none: then levels differ in their means only."""
        return read_covariates(table, layout) if layout.groups else ([], [])

    def _target_of(self, y: Any) -> Target:
        target = read_target(y, self.target_type)
        self.target_type_ = target.kind
        return target

    def _labels(self, target: Target) -> list[str]:
        """Ends of the names of the columns, one for each class where there are several."""
        classes = [covariate.level for covariate in target.covariates]
        return [f"_{label}" for label in classes] if self.target_type_ == "multiclass" else [""]

    def _given(self, target: Target) -> Floats:
        """The target's columns that are predicted; (n_given, n)."""
        chosen = target.columns[-1 if self.target_type_ == "binary" else 0 :]
        return np.array([np.asarray(column, dtype=np.float64) for column in chosen])
