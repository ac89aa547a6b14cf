"""Levels by their multinomial logit coefficients (algorithm 4 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sufrep.encoders._base import GroupEncoder
from sufrep.encoders._vectors import Rows, Suffix, Vectors
from sufrep.errors import warn
from sufrep.solvers.closed_forms import linear_discriminant
from sufrep.solvers.multinomial import fit_multinomial
from sufrep.solvers.shrinkage import overall_scale, within_freedom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Floats
    from sufrep.encoders._layout import Column, Group
    from sufrep.moments import GroupMoments


class MNLEncoder(GroupEncoder):
    """Represent each level by the intercept and slopes of a logit that predicts it from the covariates.

    Assumption (lemma 4 of the paper): as for `MeansEncoder`, and P(G = g | X = x) is a multinomial
    logit in x. Its coefficients determine E[X | G = g], hence P(L | G = g). They minimise

        Σ_i −log Λ(g_i | x_i) + penalty/2 · ‖slopes‖²,

    the intercept being free; with ``standardize``, the slopes penalised are those of covariates divided by
    their standard deviation. (Without it this is scikit-learn's LogisticRegression with C = 1/penalty.)
    Coefficients are in the units of the covariates; intercepts have mean 0 over the levels. Nulls in the
    covariates count as their mean.

    Parameters
    ----------
    {common parameters}
    solver : {"lbfgs", "lda"}, default="lbfgs"
        "lbfgs" solves the problem above exactly, from the rows. "lda" takes the closed form that holds
        where covariates are normal with one covariance within all levels; it needs the moments only,
        so it is much faster and has ``partial_fit``. There ``penalty`` is the number of made-up rows
        that pull the covariance within levels towards a diagonal one.
    penalty : float, default=1.0
        Of the slopes, for "lbfgs"; made-up rows, for "lda".
    standardize : bool, default=True
        Penalise the slopes of covariates divided by their standard deviation, so that the result does
        not depend on units.
    max_iter : int, default=1000
        Most iterations of "lbfgs".

    Attributes
    ----------
    {common attributes}
    iterations_ : dict of str to int
        Iterations that "lbfgs" took for each group; ``n_iter_`` is the largest.

    Examples
    --------
    >>> import pandas as pd
    >>> from sufrep import MNLEncoder
    >>> shops = pd.DataFrame({"shop": list("aabbcc"), "price": [1.0, 2, 8, 9, 4, 5]})
    >>> encoder = MNLEncoder("shop").fit(shops)
    >>> encoder.table(library="pandas").round(2)
      shop  weight  shop_intercept  shop_slope_price
    0    a     2.0            1.44             -0.32
    1    b     2.0           -1.79              0.34
    2    c     2.0            0.34             -0.02
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        "solver": [StrOptions({"lbfgs", "lda"})],
        "penalty": [Interval(Real, 0, None, closed="left")],
        "standardize": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
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
        solver: Literal["lbfgs", "lda"] = "lbfgs",
        penalty: float = 1.0,
        standardize: bool = True,
        max_iter: int = 1000,
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
        self.solver = solver
        self.penalty = penalty
        self.standardize = standardize
        self.max_iter = max_iter

    @property
    def _order(self) -> Literal[1, 2]:
        return 2

    @property
    def _moments_suffice(self) -> bool:
        return self.solver == "lda"

    @property
    def n_iter_(self) -> int:
        """Most iterations that any group took."""
        check_is_fitted(self)
        iterations: dict[str, int] = getattr(self, "iterations_", {})
        return max([1, *iterations.values()])

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:
        scale = overall_scale(moments) if self.standardize else np.ones(len(moments.covariates))
        suffixes = [Suffix("intercept"), *(Suffix("slope_", j) for j in range(len(scale)))]
        if rows is not None:
            return Vectors(*self._solve(moments, rows, scale, suffixes))
        result = linear_discriminant(
            moments.filled_mean(),
            moments.weight,
            moments.require_order_two().scatter,
            within_freedom(moments),
            penalty=self.penalty,
            scale=scale,
        )
        values = np.column_stack([result.intercepts, result.slopes])
        return Vectors(values, suffixes, {"iterations_": 1})

    def _solve(
        self, moments: GroupMoments, rows: Rows, scale: Floats, suffixes: list[Suffix]
    ) -> tuple[Floats, list[Suffix], dict[str, Any]]:
        stacked, codes, weights = complete_rows(moments, rows)
        result = fit_multinomial(
            stacked,
            codes,
            moments.n_levels,
            penalty=self.penalty,
            scale=scale,
            weights=weights,
            max_iter=self.max_iter,
        )
        if not result.converged:
            warn(
                f"The multinomial logit did not converge in max_iter={self.max_iter} iterations.\n"
                "Hint: raise max_iter, or penalty; with penalty=0 separable levels have no solution.",
                ConvergenceWarning,
            )
        return np.column_stack([result.intercepts, result.slopes]), suffixes, {"iterations_": result.n_iter}


@dataclass(frozen=True, slots=True, eq=False)
class StackedColumns:
    """Columns as rows (n, p), nulls filled; blocks are stacked when asked for, so that no copy is held."""

    columns: Sequence[Array]
    fill: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.columns[0]), len(self.columns)

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Type of the blocks."""
        return np.dtype(np.float64)

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, part: slice) -> Floats:
        block = np.empty((len(range(*part.indices(len(self)))), len(self.columns)))
        for j, column in enumerate(self.columns):
            block[:, j] = column[part]
            block[np.isnan(block[:, j]), j] = self.fill[j]
        return block


def complete_rows(moments: GroupMoments, rows: Rows) -> tuple[StackedColumns, Codes, Floats | None]:
    """Return the rows that count, with nulls at their mean, and their codes and weights."""
    counts = rows.codes >= 0
    if rows.weights is not None:
        counts &= rows.weights > 0
    if counts.all():
        return StackedColumns(list(rows.columns), moments.overall_mean()), rows.codes, rows.weights
    columns = [column[counts] for column in rows.columns]
    weights = None if rows.weights is None else rows.weights[counts]
    return StackedColumns(columns, moments.overall_mean()), rows.codes[counts], weights
