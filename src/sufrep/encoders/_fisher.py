"""Levels by the order of their mean response (appendix of the paper)."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from scipy.stats import rankdata
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from sufrep._frames import Factorized, Lookup
from sufrep.encoders._base import GroupEncoder
from sufrep.encoders._reading import check_weights
from sufrep.encoders._target import Target, check_classes, check_still_classes, read_target, split_rows
from sufrep.encoders._vectors import Rows, Suffix, Vectors
from sufrep.representation import Representation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Columns, Floats
    from sufrep._frames import Table
    from sufrep.encoders._layout import Column, Covariate, Group, Layout
    from sufrep.moments import GroupMoments


class FisherEncoder(GroupEncoder):
    """Represent each level by the rank of its mean response.

    The paper takes it from Hastie, Tibshirani and Friedman, after Fisher: for one split of a tree, the
    order by the mean response is as good as any grouping of the levels. Levels with the same mean share
    their rank. For classes, levels are ranked by the share of the class: of the second one if there are
    two, else of every class.

    It uses the target, so ``fit_transform`` cross-fits: the ranks that a row gets are learnt without its
    fold, and nothing of its own response reaches it. A fold may miss levels; its ranks are stretched to
    the number of levels in all, so that both scales agree.

    Parameters
    ----------
    {common parameters}
    cv : int, splitter or iterable of (train, test), default=5
        Folds of ``fit_transform``; every row must be in one test fold. An integer makes shuffled folds.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes. The first chunk
        of ``partial_fit`` decides; name the type there.
    random_state : int, default=0
        Seed of the shuffling of ``cv=int``.

    Attributes
    ----------
    {common attributes}
    target_type_ : str
        Kind of the target that was found.
    n_ranks_ : dict of str to int
        Number of levels that were ranked.

    Examples
    --------
    >>> from sufrep import FisherEncoder
    >>> encoder = FisherEncoder(group=0).fit([["a"], ["b"], ["c"], ["a"]], [2.5, 0.5, 9.0, 3.5])
    >>> encoder.transform([["a"], ["b"], ["c"], ["never seen"]])
    array([[2.],
           [1.],
           [3.],
           [2.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        "cv": ["cv_object"],
        "target_type": [StrOptions({"auto", "continuous", "binary", "multiclass"})],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn from all rows, and give each row the ranks learnt without its fold.

        Parameters as in ``fit``, result as in ``transform``; ``fit(X, y).transform(X)`` differs, because
        there the ranks know the response of the rows they are given to.
        """
        target = read_target(y, self.target_type)
        folds = split_rows(self.cv, len(target.columns[0]), y, self.random_state)
        table, factors = self._learn(X, y, sample_weight, reset=True)
        weights = check_weights(sample_weight, table.n_rows)
        full = self._look_up(table, factors)
        lookups = [
            self._cross_fitted(lookup, name, factor, target, weights, folds)
            for lookup, name, factor in zip(full, self.representations_, factors, strict=True)
        ]
        return self._append(table, lookups)

    def _cross_fitted(
        self,
        full: Lookup,
        name: str,
        factor: Factorized,
        target: Target,
        weights: Floats | None,
        folds: Sequence[tuple[Any, Any]],
    ) -> Lookup:
        """Replace the look-up of one group by ranks that were learnt outside each row's fold."""
        values = full.taken().copy()
        n_ranks = self.n_ranks_[name]
        for train, test in folds:
            codes = np.full(len(factor.codes), -1)
            codes[train] = factor.codes[train]
            values[test] = (n_ranks + 1) / 2
            names = [covariate.name(self.layout_.names) for covariate in target.covariates]
            outside = self._collect(replace(factor, codes=codes), names, target.columns, weights)
            if not outside.n_levels:
                continue  # nobody is left to learn from
            vectors = self._represent_group(outside, None, factor.levels)
            ranks = (vectors.values - 0.5) * n_ranks / vectors.details["n_ranks_"] + 0.5
            known = Representation.from_values(outside.levels, ranks, full.names, weight=outside.weight)
            # Behind the levels stands the prior, for rows whose level is null.
            values[test] = np.vstack([known.lookup(factor.levels), known.prior])[factor.codes[test]]
        return Lookup(full.names, values)

    def _describe(
        self,
        table: Table,  # noqa: ARG002
        layout: Layout,  # noqa: ARG002
        y: Any,
        *,
        reset: bool,
    ) -> tuple[list[Covariate], Columns]:
        """Levels are described by their response."""
        if not reset and self.target_type == "auto" and self.target_type_ != "continuous":
            check_still_classes(y, self.covariates_)
        target = read_target(y, self.target_type if reset else self.target_type_)
        self.target_type_: str = target.kind
        return target.covariates, target.columns

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:  # noqa: ARG002
        classes = [name.partition("=")[2] for name in moments.covariates]
        check_classes(self.target_type_, len(classes))
        chosen = range(len(classes))[-1:] if self.target_type_ == "binary" else range(len(classes))
        ranks = [shared_ranks(moments.mean[:, j]) for j in chosen]
        several = len(chosen) > 1
        suffixes = [Suffix(f"fisher_{classes[j]}" if several else "fisher") for j in chosen]
        return Vectors(np.column_stack(ranks), suffixes, {"n_ranks_": moments.n_levels})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def shared_ranks(values: Floats) -> Floats:
    """Ranks from 1; values that differ by rounding only share theirs; (n,)."""
    low, high = values.min(), values.max()
    rounding = max(1e-11 * (high - low), 1e-13 * max(abs(high), abs(low)), np.finfo(np.float64).tiny)
    return np.asarray(rankdata(np.round((values - low) / rounding)))
