"""Levels by the leading directions of their means (algorithm 2 of the paper)."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from sufrep.encoders._cross_fitting import CrossFittingEncoder
from sufrep.encoders._means import shrunken_target_means
from sufrep.encoders._vectors import Rows, Suffix, Vectors, pool_rare, pooled_places
from sufrep.errors import TooManyComponentsError
from sufrep.solvers.low_rank import left_singular_vectors, n_components_above_noise
from sufrep.solvers.shrinkage import estimate_means_prior, shrink_means, within_covariance, within_scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats, Levels
    from sufrep.encoders._layout import Column, Group
    from sufrep.moments import GroupMoments


class LowRankEncoder(CrossFittingEncoder):
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
    use_target : bool, default=False
        Take the target for one more covariate, by its shrunken mean. The number of components is chosen
        without it, and vectors are rotated to lie as near as can be to those without it (Procrustes), so
        that those of all folds mean the same. ``fit_transform`` then cross-fits.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes.
    cv : int, splitter or iterable of (train, test), default=5
        Folds of ``fit_transform`` with ``use_target``; every row must be in one test fold.
    random_state : int, default=0
        Seed of the shuffling of ``cv=int``.

    Attributes
    ----------
    {common attributes}
    singular_values_ : dict of str to ndarray, shape (min(n_levels, n_covariates),)
        All singular values of the means matrix.
    references_ : dict of str to ndarray, shape (n_levels, n_components)
        With ``use_target``: the vectors without it.
    target_type_ : str
        With ``use_target``: the kind of the target that was found.
    n_targets_ : int
        With ``use_target``: columns that the target has, one for each class.

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
        **CrossFittingEncoder._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "standardize": ["boolean"],
        "shrinkage": [StrOptions({"auto"}), None],
        "use_target": ["boolean"],
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
        self.n_components = n_components
        self.standardize = standardize
        self.shrinkage = shrinkage
        self.use_target = use_target

    @property
    def _order(self) -> Literal[1, 2]:
        needed = self.standardize or self.shrinkage or self.use_target or self.n_components == "auto"
        return 2 if needed else 1

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:  # noqa: ARG002
        n_own = len(moments.covariates) - (self.n_targets_ if self.use_target else 0)
        own = moments.select(range(n_own)) if self.use_target else moments
        k = count_components(own, self.n_components)
        found = left_singular_vectors(
            means_matrix(own, standardize=self.standardize, shrinkage=self.shrinkage), k
        )
        suffixes = [Suffix(f"u{j + 1}") for j in range(k)]
        if not self.use_target:
            return Vectors(found.vectors, suffixes, {"singular_values_": found.singular_values})
        joint = left_singular_vectors(self._matrix_with_target(moments), k)
        details = {"singular_values_": joint.singular_values, "references_": found.vectors}
        return Vectors(rotated(joint.vectors, found.vectors), suffixes, details)

    def _represent_fold(self, outside: GroupMoments, name: str, levels: Levels) -> Vectors:  # noqa: ARG002
        whole, reference = self.moments_[name], self.references_[name]
        reference = reference[pooled_places(whole.weight, self.min_frequency)]
        position = {level: row for row, level in enumerate(whole.levels.tolist())}
        same = reference[[position[level] for level in outside.levels.tolist()]]
        moments, place = pool_rare(outside, self.min_frequency)
        vectors = left_singular_vectors(self._matrix_with_target(moments), reference.shape[1]).vectors
        # Columns have norm 1 over the levels that are there; fewer levels, larger entries.
        values = vectors[place] * np.sqrt(moments.n_levels / len(self.references_[name]))
        return Vectors(rotated(values, same), [])

    def _matrix_with_target(self, moments: GroupMoments) -> Floats:
        """The means of covariates and target, those of two classes once; (n_levels, p + n_given)."""
        n_own = len(moments.covariates) - self.n_targets_
        values, _ = shrunken_target_means(moments, n_own, self.shrinkage)
        if self.standardize:
            values = values / within_scale(moments)
        return values[:, [*range(n_own), *(n_own + j for j in self._given_targets())]]

    def _nothing_known(self, name: str) -> Floats:
        mean: Floats = self.references_[name].mean(axis=0)
        return mean


def rotated(vectors: Floats, reference: Floats) -> Floats:
    """The vectors (n, k) in the rotation, or reflection, that is nearest to the reference (Procrustes)."""
    left, _, right = np.linalg.svd(vectors.T @ reference)
    return np.asarray(vectors @ (left @ right))


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
