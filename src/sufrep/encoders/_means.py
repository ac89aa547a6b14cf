"""Levels by the means of their covariates (algorithm 1 of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from sufrep._frames import Lookup
from sufrep.encoders._cross_fitting import CrossFittingEncoder
from sufrep.encoders._layout import read_covariates
from sufrep.encoders._reading import check_weights
from sufrep.encoders._vectors import Rows, Suffix, Vectors, pool_rare
from sufrep.solvers.shrinkage import estimate_means_prior, posterior_means, shrink_each, shrink_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Codes, Columns, Floats
    from sufrep._frames import Factorized, Table
    from sufrep.encoders._layout import Column, Group
    from sufrep.encoders._target import Target
    from sufrep.moments import GroupMoments


class MeansEncoder(CrossFittingEncoder):
    """Represent each level by the mean of the covariates of its rows, and of the target if asked.

    Assumption (lemma 2 of the paper): the level acts on the target only through a hidden state L, and
    the matrix A of the means E[X | L = l] has a left inverse. Then ω(g) = E[X | G = g] = A·P(L | G = g)
    loses nothing that the level says about the target. It needs no target, so it cannot leak one. With
    ``use_target`` the target is one more covariate, which adds a row to A and helps where the covariates
    alone say too little; the mean that a row gets in training is then learnt without its fold.

    Nulls in the covariates are skipped; a level that has no value of a covariate gets its overall mean.

    Parameters
    ----------
    {common parameters}
    shrinkage : {"auto"} or None, default=None
        "auto" replaces the sample means by their posterior means under the normal model
        x̄_g ~ N(ω_g, W/n_g), ω_g ~ N(m, T), whose m, T and W are estimated from the moments (multivariate
        empirical Bayes): small levels, and directions in which levels hardly differ, are drawn to the
        overall mean. A level never seen gets m.
    leave_one_out : bool, default=False
        Give each row of ``fit_transform`` the mean of its level without the row itself. Where levels are
        small, their means contain the row in training but not for new rows, and trees learn that
        difference. Unless ``shrinkage`` says how, all means are then drawn to the overall mean as by one
        more row, so that a level of one row has a mean too.
    use_target : bool, default=False
        Add the mean of the target, or the share of each class (of two, the second). It is shrunk to the
        overall mean as far as it is noise: alone, or together with the others with ``shrinkage="auto"``.
        ``fit_transform`` then cross-fits all columns that the target has a part in. With ``covariates=[]``
        nothing but the target is averaged.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes.
    cv : int, splitter or iterable of (train, test), default=5
        Folds of ``fit_transform`` with ``use_target``; every row must be in one test fold.
    random_state : int, default=0
        Seed of the shuffling of ``cv=int``.

    Attributes
    ----------
    {common attributes}
    target_type_ : str
        With ``use_target``: the kind of the target that was found.
    n_targets_ : int
        With ``use_target``: columns that the target has, one for each class.

    Examples
    --------
    >>> import polars as pl
    >>> from sufrep import MeansEncoder
    >>> houses = pl.DataFrame(
    ...     {"zipcode": ["98178", "98178", "98125"], "sqft": [1000.0, 1400.0, 2600.0], "floors": [1, 2, 2]}
    ... )
    >>> encoder = MeansEncoder("zipcode").set_output(transform="polars")
    >>> encoder.fit_transform(houses)
    shape: (3, 4)
    ┌────────┬────────┬───────────────────┬─────────────────────┐
    │ sqft   ┆ floors ┆ zipcode_mean_sqft ┆ zipcode_mean_floors │
    │ ---    ┆ ---    ┆ ---               ┆ ---                 │
    │ f64    ┆ i64    ┆ f64               ┆ f64                 │
    ╞════════╪════════╪═══════════════════╪═════════════════════╡
    │ 1000.0 ┆ 1      ┆ 1200.0            ┆ 1.5                 │
    │ 1400.0 ┆ 2      ┆ 1200.0            ┆ 1.5                 │
    │ 2600.0 ┆ 2      ┆ 2600.0            ┆ 2.0                 │
    └────────┴────────┴───────────────────┴─────────────────────┘
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CrossFittingEncoder._parameter_constraints,
        "shrinkage": [StrOptions({"auto"}), None],
        "leave_one_out": ["boolean"],
        "use_target": ["boolean"],
    }
    _target_suffices: ClassVar[bool] = True

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
        shrinkage: Literal["auto"] | None = None,
        leave_one_out: bool = False,
        use_target: bool = False,
        target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto",
        cv: Any = 5,
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
            cv=cv,
            target_type=target_type,
            random_state=random_state,
        )
        self.shrinkage = shrinkage
        self.leave_one_out = leave_one_out
        self.use_target = use_target

    @property
    def _order(self) -> Literal[1, 2]:
        return 2 if self.shrinkage or self.use_target else 1

    def _training_lookups(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, list[Lookup]]:
        """With ``leave_one_out``, the covariates' means are made without the row itself."""
        if self.use_target or not self.leave_one_out:
            return super()._training_lookups(X, y, sample_weight)
        table, factors = self._update(X, y, sample_weight, reset=True)
        columns = read_covariates(table, self.layout_)[1]
        weights = check_weights(sample_weight, table.n_rows)
        lookups = [
            Lookup(full.names, self._left_out(name, factor, columns, weights))
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
        target: Target,
        weights: Floats | None,
        folds: Sequence[tuple[Codes, Codes]],
    ) -> Floats:
        values = super()._cross_fitted(full, name, factor, columns, target, weights, folds)
        if self.shrinkage:
            return values  # the target has a part in every column
        own = columns[: len(columns) - self.n_targets_]
        if own:
            left_out = self._left_out(name, factor, own, weights) if self.leave_one_out else full
            values[:, : len(own)] = left_out[:, : len(own)]
        return values

    def _left_out(self, name: str, factor: Factorized, columns: Columns, weights: Floats | None) -> Floats:
        """Means of the covariates, without the row itself; (n, n_covariates)."""
        moments, _ = pool_rare(self.moments_[name].select(range(len(columns))), self.min_frequency)
        codes, _ = self._pooled_codes(name, factor)
        values = np.tile(self.representations_[name].prior[: len(columns)], (len(codes), 1))
        inside = codes >= 0  # the rest has no level, and nothing to leave out
        codes, columns = codes[inside], [column[inside] for column in columns]
        own = np.ones(len(codes)) if weights is None else weights[inside]
        mean = moments.leave_one_out(codes, columns, own)
        null = np.column_stack([np.isnan(column) for column in columns])
        rest = np.maximum(moments.observed[codes] - np.where(null, 0.0, own[:, None]), 0.0)
        rest[np.isnan(mean)] = 0.0  # what rounding leaves of weights
        if self.shrinkage:
            weight = np.maximum(moments.weight[codes] - own, 0.0)
            values[inside] = posterior_means(estimate_means_prior(moments), mean, rest, weight)
        else:
            values[inside] = one_more_row(mean, rest, moments.overall_mean())
        return values

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:  # noqa: ARG002
        n_own = len(moments.covariates) - (self.n_targets_ if self.use_target else 0)
        given = list(range(n_own))
        if self.use_target:
            given += [n_own + j for j in self._given_targets()]
        suffixes = [Suffix("mean_", j) for j in given]
        if self.shrinkage or self.use_target:
            values, center = shrunken_target_means(moments, n_own, self.shrinkage)
            if self.leave_one_out and not self.shrinkage:
                own = moments.select(range(n_own))
                values[:, :n_own] = one_more_row(own.mean, own.observed, center[:n_own])
            return Vectors(values[:, given], suffixes, prior=center[given])
        if self.leave_one_out:
            center = moments.overall_mean()
            return Vectors(one_more_row(moments.mean, moments.observed, center), suffixes, prior=center)
        return Vectors(moments.filled_mean(), suffixes)

    def _nothing_known(self, name: str) -> Floats:
        n_given = len(self._given_targets())
        prior = self.representations_[name].prior.copy()
        prior[len(prior) - n_given :] = 0.0  # the overall mean of the target would be the row's own
        return prior


def shrunken_target_means(
    moments: GroupMoments, n_own: int, shrinkage: Literal["auto"] | None
) -> tuple[Floats, Floats]:
    """Means of the covariates and, behind `n_own` of them, of the target, which are always shrunk.

    Returns
    -------
    values : ndarray, shape (n_levels, p)
    center : ndarray, shape (p,)
        What a level without rows gets.
    """
    if shrinkage:
        prior = estimate_means_prior(moments)
        return shrink_means(moments, prior), prior.center
    values, center = moments.filled_mean(), moments.overall_mean()
    target = moments.select(range(n_own, len(moments.covariates)))
    if target.covariates:
        values[:, n_own:], center[n_own:] = shrink_each(target)
    return values, center


def one_more_row(mean: Floats, observed: Floats, center: Floats) -> Floats:
    """Means as if every level had one more row, at the centre; (k, p)."""
    return np.asarray((np.where(observed > 0, observed * np.nan_to_num(mean), 0.0) + center) / (observed + 1))
