"""Encoders that learn from the target: what a row gets in training says nothing of its own target."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from sufrep._frames import Lookup
from sufrep.encoders._base import GroupEncoder
from sufrep.encoders._layout import read_covariates
from sufrep.encoders._reading import check_weights
from sufrep.encoders._target import Target, check_classes, check_still_classes, read_target, split_rows
from sufrep.encoders._vectors import pooled_places
from sufrep.errors import NoCovariateError
from sufrep.representation import Representation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Codes, Columns, Floats, Levels
    from sufrep._frames import Factorized, Table
    from sufrep.encoders._layout import Column, Covariate, Group, Layout
    from sufrep.encoders._vectors import Vectors
    from sufrep.moments import GroupMoments


class CrossFittingEncoder(GroupEncoder):
    """Base of the encoders that can use the target, as one more covariate or in a way of their own.

    ``fit`` learns from all rows, for new ones. ``fit_transform`` gives every row what was learnt outside its
    fold: with the folds given, the target of a row does not move its own columns. So it differs from
    ``fit(X, y).transform(X)``, where a row's columns know its own target.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        "target_type": [StrOptions({"auto", "continuous", "binary", "multiclass"})],
        "cv": ["cv_object"],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }
    _target_is_covariate: ClassVar[bool] = True
    # Whether covariates=[] is allowed: levels are then described by the target alone.
    _target_suffices: ClassVar[bool] = False

    target_type_: str
    n_targets_: int

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
        return bool(vars(self).get("use_target"))

    def _training_lookups(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, list[Lookup]]:
        """Where the target is used, give each row what was learnt without its fold."""
        if not self._uses_target:
            return super()._training_lookups(X, y, sample_weight)
        target = read_target(y, self.target_type)
        folds = split_rows(self.cv, len(target.columns[0]), y, self.random_state)
        table, factors = self._update(X, y, sample_weight, reset=True)
        weights = check_weights(sample_weight, table.n_rows)
        columns = self._columns_of_rows(table, target)
        lookups = [
            Lookup(
                full.names, self._cross_fitted(full.taken(), name, factor, columns, target, weights, folds)
            )
            for full, name, factor in zip(
                self._look_up(table, factors), self.representations_, factors, strict=True
            )
        ]
        return table, lookups

    def _cross_fitted(
        self,
        full: Floats,
        name: str,
        factor: Factorized,
        columns: Columns,
        target: Target,  # noqa: ARG002
        weights: Floats | None,
        folds: Sequence[tuple[Codes, Codes]],
    ) -> Floats:
        """The new columns of one group's rows, each learnt outside the row's fold; (n, n_columns).

        Here from moments. ``full`` is what the rows would get as new ones.
        """
        names = [covariate.name(self.layout_.names) for covariate in self.covariates_]
        values = np.tile(self._nothing_known(name), (len(full), 1))
        for train, test in folds:
            codes = np.full(len(factor.codes), -1)
            codes[train] = factor.codes[train]
            outside = self._collect(replace(factor, codes=codes), names, columns, weights)
            if not outside.n_levels:
                continue  # nobody is left to learn from
            found = self._represent_fold(outside, name, factor.levels)
            known = Representation.from_values(
                outside.levels,
                found.values,
                self.representations_[name].columns,
                weight=outside.weight,
                prior=found.prior,
            )
            # Behind the levels stands the prior, for rows whose level is null.
            values[test] = np.vstack([known.lookup(factor.levels), known.prior])[factor.codes[test]]
        return values

    def _represent_fold(self, outside: GroupMoments, name: str, levels: Levels) -> Vectors:  # noqa: ARG002
        """Represent the levels that are outside a fold, on the scale of the whole."""
        return self._represent_group(outside, None, levels)

    def _nothing_known(self, name: str) -> Floats:
        """What a row gets when no other row is left to learn from; must not know the target; (n_columns,)."""
        return self.representations_[name].prior

    def _pooled_codes(self, name: str, factor: Factorized) -> tuple[Codes, int]:
        """Position of each row's level after rare ones are pooled, −1 for none; the number of positions."""
        table = self.representations_[name]
        place = pooled_places(table.weight, self.min_frequency)
        known = table.positions(factor.levels.tolist())
        return np.append(np.where(known < 0, -1, place[known]), -1)[factor.codes], int(place.max()) + 1

    def _columns_of_rows(self, table: Table, target: Target) -> Columns:
        """The columns of all covariates that ``fit`` described the levels by."""
        known = dict(zip(*read_covariates(table, self.layout_), strict=True))
        known |= dict(zip(target.covariates, target.columns, strict=True))
        return [known[covariate] for covariate in self.covariates_]

    def _describe(
        self, table: Table, layout: Layout, y: Any, *, reset: bool
    ) -> tuple[list[Covariate], Columns]:
        """Levels are described by the covariates and, behind them, the target."""
        if not (self._uses_target and self._target_is_covariate):
            return super()._describe(table, layout, y, reset=reset)
        known = [] if reset else [item for item in self.covariates_ if item.position is None]
        if not reset and self.target_type == "auto" and self.target_type_ != "continuous":
            check_still_classes(y, known)
        target = read_target(y, self.target_type if reset else self.target_type_)
        self.target_type_, self.n_targets_ = target.kind, len({*known, *target.covariates})
        check_classes(target.kind, self.n_targets_)
        if not self._needs_covariates:
            return target.covariates, target.columns
        found, columns = read_covariates(table, layout)
        optional = self._target_suffices and self.covariates is not None
        if layout.groups and not (found or optional):
            raise NoCovariateError(len(table.names), layout.group_names(table.names))
        return [*found, *target.covariates], [*columns, *target.columns]

    def _given_targets(self) -> list[int]:
        """Which of the target's columns are given out: of two classes the second says it all."""
        return list(range(self.n_targets_))[-1 if self.target_type_ == "binary" else 0 :]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._uses_target
        return tags
