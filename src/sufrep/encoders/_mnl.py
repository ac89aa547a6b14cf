"""Levels by their multinomial logit coefficients (algorithm 4 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sufrep._sklearn import Interval, StrOptions
from sufrep.encoders._base import SAMPLE_CONSTRAINTS, GroupEncoder, Needs, Suffix, Vectors, most_iterations
from sufrep.errors import warn
from sufrep.solvers.closed_forms import linear_discriminant
from sufrep.solvers.multinomial import fit_multinomial
from sufrep.solvers.new_levels import discriminant_rule
from sufrep.solvers.shrinkage import overall_scale, within_freedom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Floats
    from sufrep.encoders._inputs import Column, GroupSample
    from sufrep.moments import GroupMoments


@dataclass(eq=False, repr=False, kw_only=True)
class MNLEncoder(GroupEncoder):
    """Replace each level by the coefficients of a logit that predicts it from the covariates.

    Use it to compare with the paper. ``solver="lda"`` is a closed form for normal covariates, and much faster
    than the exact fit.

    Assumption (lemma 4 of the paper): as for `MeansEncoder`, and P(G = g | X = x) is a multinomial
    logit in x. Its coefficients determine E[X | G = g], hence P(L | G = g). They minimise

        Σ_i −log Λ(g_i | x_i) + penalty/2 · ‖slopes‖²,

    with a free intercept; with ``standardize``, the slopes penalised are those of covariates divided by
    their standard deviation. (Without it this is scikit-learn's LogisticRegression with C = 1/penalty.)
    Coefficients are in the units of the covariates; intercepts have mean 0 over the levels. Nulls in the
    covariates count as their mean.

    Parameters
    ----------
    group : str, int, tuple, list of these, or None, default=None
        The categorical column: its name or position; several in a list; a tuple of columns is one
        group of their combinations, as in ``group=[("store", "brand")]``. None selects every text or
        categorical column.
    covariates : list of str or int, default=None
        The columns that describe the levels; by default every numeric column that is not a group.
    categorical_covariates : {"ignore", "share"}, default="ignore"
        With "share", text columns with at most 30 levels that are not a group (of those in ``covariates``, if
        that is given) join the covariates, by one indicator for each of their levels.
    remainder : {"passthrough", "drop"}, default="passthrough"
        Whether the other columns come before the encoding in the output, or are dropped.
    unseen : {"estimate", "prior", "error"}, default="estimate"
        What a level that ``fit`` did not see gets: the vector that its own rows in the given table say, with
        all that levels share as it was learnt (codings, ranks, cells and local effects use the prior
        instead); an average vector (usually the weighted mean of the level vectors); or an error.
    missing : {"level", "prior", "error"}, default="level"
        How a null in the group column is treated: as a level of its own, as an unseen level, or as an error.
    min_frequency : int or float, default=None
        Levels with fewer rows (or a smaller share of the rows) are pooled into one before encoding, if there
        are at least two of them.
    sample_rows : int, default=None
        If X is a lazy frame: about how many of its rows to learn from. Large levels give as many rows each,
        and small ones all of theirs.
    sample_by : str or int, default=None
        The column whose values decide which rows these are, by a hash: an identifier. By default all columns
        decide, and rows with the same values are in the sample together.
    solver : {"lbfgs", "lda"}, default="lbfgs"
        "lbfgs" solves the problem above exactly, from the rows. "lda" uses the closed form that holds
        if covariates are normal with the same covariance in all levels; it needs only the moments, so it
        is much faster and has ``partial_fit``. There ``penalty`` is the number of pseudo-observations that
        shrink the covariance within levels towards a diagonal one.
    penalty : float, default=1.0
        Penalty of the slopes for "lbfgs"; number of pseudo-observations for "lda".
    standardize : bool, default=True
        Penalise the slopes of covariates divided by their standard deviation, so that the result does
        not depend on units.
    max_iter : int, default=1000
        Maximum number of iterations of "lbfgs".

    Attributes
    ----------
    representations_ : dict of str to Representation
        The table of each group.
    moments_ : dict of str to GroupMoments
        The moments of the covariates in the levels of each group.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Their names, if X has any.
    iterations_ : dict of str to int
        Number of iterations of "lbfgs" for each group; ``n_iter_`` is the largest.

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

    solver: Literal["lbfgs", "lda"] = "lbfgs"
    penalty: float = 1.0
    standardize: bool = True
    max_iter: int = 1000
    sample_rows: int | None = None
    sample_by: Column | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        **SAMPLE_CONSTRAINTS,
        "solver": [StrOptions({"lbfgs", "lda"})],
        "penalty": [Interval(Real, 0, None, closed="left")],
        "standardize": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    n_iter_ = property(most_iterations)

    @property
    def _needs(self) -> Needs:
        return Needs(order=2, rows=self.solver == "lbfgs")

    def _represent(self, sample: GroupSample) -> Vectors:
        moments = sample.moments
        scale = overall_scale(moments) if self.standardize else np.ones(len(moments.covariates))
        suffixes = [Suffix("intercept"), *(Suffix("slope_", j) for j in range(len(scale)))]
        if self.solver == "lda":
            values, n_iter = self._closed_form(moments, scale), 1
        else:
            values, n_iter = self._iterate(sample, scale)
        rule = discriminant_rule(moments, values, penalty=self.penalty, scale=scale)
        return Vectors(values, suffixes, {"iterations_": n_iter, "new_levels_": rule})

    def _closed_form(self, moments: GroupMoments, scale: Floats) -> Floats:
        result = linear_discriminant(
            moments.filled_mean(),
            moments.weight,
            moments.require_order_two().scatter,
            within_freedom(moments),
            penalty=self.penalty,
            scale=scale,
        )
        return np.column_stack([result.intercepts, result.slopes])

    def _iterate(self, sample: GroupSample, scale: Floats) -> tuple[Floats, int]:
        rows = sample.rows
        result = fit_multinomial(
            StackedColumns(list(rows.columns), sample.moments.overall_mean()),
            rows.codes,
            rows.n_levels,
            penalty=self.penalty,
            scale=scale,
            weights=rows.weights,
            max_iter=self.max_iter,
        )
        if not result.converged:
            warn(
                f"The multinomial logit did not converge in max_iter={self.max_iter} iterations.\n"
                "Hint: raise max_iter, or penalty; with penalty=0 separable levels have no solution.",
                ConvergenceWarning,
            )
        return np.column_stack([result.intercepts, result.slopes]), result.n_iter


@dataclass(frozen=True, slots=True, eq=False)
class StackedColumns:
    """Columns as a matrix (n, p) with nulls filled; blocks are built on demand, so no copy is kept."""

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
