"""What the encoders share that fit a model of the target to the rows of every level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sufrep.encoders._cross_fitting import CrossFittingEncoder
from sufrep.encoders._layout import read_covariates
from sufrep.encoders._target import Target, read_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Columns
    from sufrep._frames import Table
    from sufrep.encoders._layout import Column, Covariate, Group, Layout


class ResponseModelEncoder(CrossFittingEncoder):
    """Base of the encoders by mixed models: they need the rows, the target, and perhaps no covariate."""

    _needs_covariates: ClassVar[bool] = False
    _target_is_covariate: ClassVar[bool] = False

    def __init__(
        self,
        group: Group | list[Group] | None = None,
        *,
        covariates: Sequence[Column] | None = None,
        categorical_covariates: Literal["ignore", "share"] = "ignore",
        remainder: Literal["passthrough", "drop"] = "passthrough",
        unseen: Literal["prior", "error"] = "prior",
        missing: Literal["level", "prior", "error"] = "level",
        min_frequency: int | float | None = None,
        cv: Any = 5,
        target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto",
        random_state: int = 0,
    ) -> None:
        super().__init__(
            group,
            covariates=covariates,
            categorical_covariates=categorical_covariates,
            remainder=remainder,
            unseen=unseen,
            missing=missing,
            min_frequency=min_frequency,
        )
        self.cv = cv
        self.target_type = target_type
        self.random_state = random_state

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
