"""What the encoders share that fit a model of the target to the rows of every level."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sufrep.encoders._cross_fitting import CrossFittingEncoder
from sufrep.encoders._layout import read_covariates
from sufrep.encoders._target import Target, read_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sufrep._arrays import Codes, Columns, Floats
    from sufrep._frames import Factorized, Table
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


class PredictingEncoder(ResponseModelEncoder):
    """Base of those whose columns are predictions of a level's model at the row's own covariates."""

    def _cross_fitted(
        self,
        full: Floats,
        name: str,
        factor: Factorized,
        columns: Columns,
        target: Target,
        weights: Floats | None,
        folds: Sequence[tuple[Codes, Codes]],
    ) -> Floats:
        """The columns of each row by the models that are fitted outside its fold; 0 where none can be."""
        codes, n_levels = self._pooled_codes(name, factor)
        counts = (codes >= 0) if weights is None else (codes >= 0) & (weights > 0)
        scores, wanted = self._scores(name, columns, len(codes)), self._given(target)
        values = np.zeros_like(full)
        for train, test in folds:
            inside = np.asarray(train)[counts[train]]
            if len(inside):
                own = None if weights is None else weights[inside]
                predict = self._outside(scores[inside], codes[inside], wanted[:, inside], n_levels, own)
                values[test] = predict(scores[test], codes[test])
        return values

    @abstractmethod
    def _scores(self, name: str, columns: Columns, n_rows: int) -> Floats:
        """The covariates as the model sees them; (n, n_scores)."""

    @abstractmethod
    def _outside(
        self, scores: Floats, codes: Codes, wanted: Floats, n_levels: int, weights: Floats | None
    ) -> Callable[[Floats, Codes], Floats]:
        """Fit the model to rows; return what others get, given their scores and levels, −1 for none."""
