"""Levels by the means of their covariates (algorithm 1 of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions

from sufrep._frames import Lookup
from sufrep.encoders._base import GroupEncoder
from sufrep.encoders._layout import read_covariates
from sufrep.encoders._reading import check_weights
from sufrep.encoders._vectors import Rows, Suffix, Vectors, pool_rare
from sufrep.solvers.shrinkage import estimate_means_prior, posterior_means, shrink_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Columns, Floats
    from sufrep._frames import Factorized
    from sufrep.encoders._layout import Column, Group
    from sufrep.moments import GroupMoments


class MeansEncoder(GroupEncoder):
    """Represent each level by the mean of the covariates of its rows.

    Assumption (lemma 2 of the paper): the level acts on the target only through a hidden state L, and
    the matrix A of the means E[X | L = l] has a left inverse. Then ω(g) = E[X | G = g] = A·P(L | G = g)
    loses nothing that the level says about the target. It needs no target, so it cannot leak one.

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

    Attributes
    ----------
    {common attributes}

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
        **GroupEncoder._parameter_constraints,
        "shrinkage": [StrOptions({"auto"}), None],
        "leave_one_out": ["boolean"],
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
        shrinkage: Literal["auto"] | None = None,
        leave_one_out: bool = False,
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
        self.shrinkage = shrinkage
        self.leave_one_out = leave_one_out

    @property
    def _order(self) -> Literal[1, 2]:
        return 2 if self.shrinkage else 1

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit and transform the same rows; with ``leave_one_out``, each row's mean is made without it.

        Parameters as in ``fit``, result as in ``transform``.
        """
        table, factors = self._learn(X, y, sample_weight, reset=True)
        lookups = self._look_up(table, factors)
        if self.leave_one_out:
            columns = read_covariates(table, self.layout_)[1]
            weights = check_weights(sample_weight, table.n_rows)
            lookups = [
                self._left_out(lookup, name, factor, columns, weights)
                for lookup, name, factor in zip(lookups, self.representations_, factors, strict=True)
            ]
        return self._append(table, lookups)

    def _left_out(
        self, full: Lookup, name: str, factor: Factorized, columns: Columns, weights: Floats | None
    ) -> Lookup:
        """Replace the look-up of one group by means without the row itself."""
        moments, place = pool_rare(self.moments_[name], self.min_frequency)
        known = self.representations_[name].positions(factor.levels.tolist())
        codes = np.append(np.where(known < 0, -1, place[known]), -1)[factor.codes]
        values = np.tile(self.representations_[name].prior, (len(codes), 1))
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
        return Lookup(full.names, values)

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:  # noqa: ARG002
        suffixes = [Suffix("mean_", j) for j in range(len(moments.covariates))]
        if self.shrinkage:
            prior = estimate_means_prior(moments)
            return Vectors(shrink_means(moments, prior), suffixes, prior=prior.center)
        if self.leave_one_out:
            center = moments.overall_mean()
            return Vectors(one_more_row(moments.mean, moments.observed, center), suffixes, prior=center)
        return Vectors(moments.filled_mean(), suffixes)


def one_more_row(mean: Floats, observed: Floats, center: Floats) -> Floats:
    """Means as if every level had one more row, at the centre; (k, p)."""
    return np.asarray((np.where(observed > 0, observed * np.nan_to_num(mean), 0.0) + center) / (observed + 1))
