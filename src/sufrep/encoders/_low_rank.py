"""Levels by the leading directions of their means (algorithm 2 of the paper)."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from sufrep.encoders._base import GroupEncoder
from sufrep.encoders._vectors import Rows, Suffix, Vectors
from sufrep.errors import TooManyComponentsError
from sufrep.solvers.low_rank import left_singular_vectors, n_components_above_noise
from sufrep.solvers.scales import within_covariance, within_scale
from sufrep.solvers.shrinkage import estimate_means_prior, shrink_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats
    from sufrep.encoders._layout import Column, Group
    from sufrep.moments import GroupMoments


class LowRankEncoder(GroupEncoder):
    """Represent each level by its row of the first k left singular vectors of the means matrix.

    Assumption (lemma 3 of the paper): as for `MeansEncoder`, with k hidden states. The matrix of the
    means (levels × covariates) then has rank k, and its first k left singular vectors lose nothing.
    As in the paper it is neither centred nor weighted.

    Parameters
    ----------
    {common parameters}
    n_components : int or "auto", default="auto"
        Number k of vectors, at most the number of covariates; those beyond the number of levels are
        zero. "auto" counts the singular values that stand above noise: where levels do not differ and lie
        at zero, the means, divided by their standard errors, are standard normal noise, and Johnstone's
        (2008) largest-root law tells which singular value 5 % of such samples exceed. It needs no target;
        at least one component is kept.
    standardize : bool, default=True
        Divide each covariate by its pooled standard deviation within levels first, so that the
        result does not depend on units.
    shrinkage : {"auto"} or None, default=None
        "auto" starts from the shrunken means of `MeansEncoder`.

    Attributes
    ----------
    {common attributes}
    singular_values_ : dict of str to ndarray, shape (min(n_levels, n_covariates),)
        All singular values of the means matrix.

    Examples
    --------
    Choosing k by cross-validation, with scikit-learn's own tools:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import Pipeline
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from sufrep import LowRankEncoder, SparseLowRankEncoder
    >>> rng = np.random.default_rng(0)
    >>> shop = rng.integers(0, 30, 600)
    >>> state = np.where(rng.random(600) < 0.9, shop % 3, rng.integers(0, 3, 600))
    >>> X = pd.DataFrame(rng.normal(size=(600, 4)) + np.eye(3, 4)[state] * 2, columns=list("abcd"))
    >>> X["shop"] = [f"shop {number}" for number in shop]
    >>> y = 3 * state + rng.normal(size=600)
    >>> tree = DecisionTreeRegressor(max_depth=4, random_state=0)
    >>> pipeline = Pipeline([("encode", LowRankEncoder("shop")), ("tree", tree)])
    >>> search = GridSearchCV(pipeline, {"encode__n_components": [1, 2, 3]}, cv=3).fit(X, y)
    >>> print(search.best_params_, f"R² = {search.best_score_:.2f}")
    {'encode__n_components': 2} R² = 0.74

    and likewise k and the sparsity together:

    >>> pipeline = Pipeline([("encode", SparseLowRankEncoder("shop")), ("tree", tree)])
    >>> grid = {"encode__n_components": [1, 2, 3], "encode__alpha": [0.0, 0.1, 0.5]}
    >>> search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    >>> print(search.best_params_, f"R² = {search.best_score_:.2f}")
    {'encode__alpha': 0.5, 'encode__n_components': 2} R² = 0.73
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "standardize": ["boolean"],
        "shrinkage": [StrOptions({"auto"}), None],
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
        n_components: int | Literal["auto"] = "auto",
        standardize: bool = True,
        shrinkage: Literal["auto"] | None = None,
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
        self.n_components = n_components
        self.standardize = standardize
        self.shrinkage = shrinkage

    @property
    def _order(self) -> Literal[1, 2]:
        return 2 if self.standardize or self.shrinkage or self.n_components == "auto" else 1

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:  # noqa: ARG002
        matrix = means_matrix(moments, standardize=self.standardize, shrinkage=self.shrinkage)
        k = count_components(moments, self.n_components)
        result = left_singular_vectors(matrix, k)
        suffixes = [Suffix(f"u{j + 1}") for j in range(k)]
        return Vectors(result.vectors, suffixes, {"singular_values_": result.singular_values})


def means_matrix(moments: GroupMoments, *, standardize: bool, shrinkage: Literal["auto"] | None) -> Floats:
    """The means of the levels, shrunk and in units of the spread within levels if asked; (n_levels, p)."""
    mean = shrink_means(moments, estimate_means_prior(moments)) if shrinkage else moments.filled_mean()
    return mean / within_scale(moments) if standardize else mean


def count_components(
    moments: GroupMoments, n_components: int | Literal["auto"], *, center: bool = False
) -> int:
    """The number of components asked for, or the number that stand above noise.

    That is the rank of the between-level covariance where the means are centred.
    """
    n_covariates = len(moments.covariates)
    if isinstance(n_components, str):
        scale = within_scale(moments)
        covariance = within_covariance(moments) / np.outer(scale, scale)
        mean = moments.filled_mean()
        if center:
            rounding = 1e-12 * np.abs(mean).max(axis=0)
            mean = mean - moments.weight @ mean / moments.total_weight
            # What is left of a covariate that does not vary must not pass for a component.
            mean = np.where(np.abs(mean) > rounding, mean, 0.0)
        return n_components_above_noise(mean / scale, moments.weight, covariance)
    if n_components > n_covariates:
        raise TooManyComponentsError(n_components, n_covariates)
    return n_components
