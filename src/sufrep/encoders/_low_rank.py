"""Levels by the leading directions of their means: algorithms 2 (dense) and 3 (sparse) of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sufrep._accumulate import ratio, refuse_large
from sufrep._sklearn import Interval, StrOptions
from sufrep.encoders._base import (
    PARENT_CONSTRAINTS,
    TARGET_CONSTRAINTS,
    GroupEncoder,
    Needs,
    Suffix,
    Vectors,
    most_iterations,
)
from sufrep.encoders._target import output_positions
from sufrep.errors import TooManyComponentsError, warn
from sufrep.solvers.low_rank import left_singular_vectors, n_components_above_noise
from sufrep.solvers.nesting import Nesting, shrink_nested, shrink_towards_parents
from sufrep.solvers.new_levels import LinearRule
from sufrep.solvers.shrinkage import (
    estimate_means_prior,
    shrink_with_target,
    within_covariance,
    within_scale,
)
from sufrep.solvers.sparse_pca import sparse_pca

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats
    from sufrep.encoders._inputs import Column, GroupSample, Parents
    from sufrep.moments import GroupMoments


@dataclass(eq=False, repr=False, kw_only=True)
class LowRankEncoder(GroupEncoder):
    """Replace each level by its place along the few directions in which covariate means differ most.

    Use it where `MeansEncoder` would add too many columns: it keeps the directions in which levels
    differ, and drops those that look like chance. A level becomes its row of the first k left singular
    vectors of the means matrix.

    Assumption (lemma 3 of the paper): as for `MeansEncoder`, with k hidden states. The matrix of the
    means (levels × covariates) then has rank k, and its first k left singular vectors lose nothing.
    As in the paper it is neither centered nor weighted.

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
    n_components : int or "auto", default="auto"
        Number k of vectors, at most the number of covariates; those beyond the number of levels are
        zero. "auto" counts the singular values above the noise: if levels do not differ and lie at zero,
        the means divided by their standard errors are standard normal noise, and Johnstone's (2008)
        largest-root law gives the singular value that 5 % of such samples exceed. It needs no target;
        at least one component is kept.
    standardize : bool, default=True
        Divide each covariate by its pooled standard deviation within levels first, so that the
        result does not depend on units.
    shrinkage : {"auto"} or None, default=None
        "auto" starts from the shrunken means of `MeansEncoder`.
    use_target : bool, default=False
        Use the target as one more covariate, by its shrunken mean (of two classes, the share of the second).
        The means matrix with the target is replaced by its best approximation of rank k + q, where q is the
        number of columns of the target: one more column raises the rank of a matrix by at most one. A level
        gets k + q columns: the coordinates of its approximate covariate means on the directions found
        without the target, and its approximate mean of the target. The directions do not depend on the
        target, so the vectors of all folds are comparable as they are. ``fit_transform`` then cross-fits.
    parent : dict, default=None
        Which columns contain a group: ``parent={"zip5": "zip3"}``, or several from the nearest to the
        farthest, ``{"zip5": ["zip3", "state"]}``. Keys are as in ``group``. Levels are then shrunk towards
        their parent, parents towards theirs, and the last ones towards the overall mean, each by as much as
        the data say; a tier that does not differ by more than noise is skipped. A level that ``fit`` did not
        see starts from its nearest known ancestor, with ``unseen="prior"`` it gets the vector of that one. A
        parent column passes through like any other and, unless ``covariates`` names it, is not a covariate.
        Where it is null a row says nothing; a level without any parent has one of its own.
    on_conflict : {"error", "majority"}, default="error"
        Whether a level with several parents is an error, or belongs to the parent of most of its rows.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes.
    cv : int, splitter, iterable of (train, test) or "ordered", default=5
        Folds of ``fit_transform`` with ``use_target``; every row must be in one test fold.
        With "ordered", columns that depend on the target are learnt from earlier rows only: rows are cut by
        ``time`` into at most 10 blocks of about the same size, ties together, and a block is encoded with
        what all blocks before it say; the first one gets what is known before any target. scikit-learn's
        `TimeSeriesSplit` does the same by the position of the rows.
    time : str or int, default=None
        The column of X that says when each row happened, for ``cv="ordered"``: numbers, dates, or ISO text.
        With a `TimeSeriesSplit`, rows are checked to be in the order of this column. It passes through like
        any other column and, if it is numeric, is a covariate unless ``covariates`` leaves it out.
    random_state : int, default=0
        Seed of the shuffling of ``cv=int``.

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
    singular_values_ : dict of str to ndarray, shape (min(n_levels, n_covariates),)
        All singular values of the means matrix.
    directions_ : dict of str to ndarray, shape (n_covariates, n_components)
        With ``use_target``: the directions found without it. The standardised means times the directions
        are the vectors without the target.
    target_type_ : str
        With ``use_target``: the kind of target that was found.
    n_targets_ : int
        With ``use_target``: number of columns of the target, one for each class.
    parents_ : dict of str to tuple of Links
        With ``parent``: the parents of the levels of a group, the parents of these, and so on.

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

    n_components: int | Literal["auto"] = "auto"
    standardize: bool = True
    shrinkage: Literal["auto"] | None = None
    use_target: bool = False
    parent: Parents | None = None
    on_conflict: Literal["error", "majority"] = "error"
    target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto"
    cv: Any = 5
    time: Column | None = None
    random_state: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        **TARGET_CONSTRAINTS,
        **PARENT_CONSTRAINTS,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "standardize": ["boolean"],
        "shrinkage": [StrOptions({"auto"}), None],
        "use_target": ["boolean"],
    }

    @property
    def _needs(self) -> Needs:
        second = self.standardize or self.shrinkage or self.use_target or self.n_components == "auto"
        return Needs(
            order=2 if second else 1,
            target="covariate" if self.use_target else "unused",
            target_type=self.target_type,
            shrinks=bool(self.shrinkage or self.use_target),
        )

    def _represent(self, sample: GroupSample) -> Vectors:
        moments = sample.moments
        own = moments.select(range(len(moments.covariates) - self.n_targets_)) if self.use_target else moments
        k = count_components(own, self.n_components)
        nesting = sample.nesting
        matrix = means_matrix(own, standardize=self.standardize, shrinkage=self.shrinkage, nesting=nesting)
        found = left_singular_vectors(matrix, k)
        suffixes = [Suffix(f"u{j + 1}") for j in range(k)]
        directions = found.right * ratio(np.ones(k), np.pad(found.singular_values, (0, k))[:k])
        if not self.use_target:
            rule = self._rule(
                own, range(len(own.covariates)), directions / self._scale(own)[:, None], nesting
            )
            details = {"singular_values_": found.singular_values, "new_levels_": rule}
            return Vectors(found.vectors, suffixes, details)
        approximated = self._values_with_target(sample, directions, self._scale(own))
        suffixes += [Suffix("u_", len(own.covariates) + j) for j in self._target_outputs()]
        rule = self._rule(moments, self._used_columns(len(directions)), approximated.matrix, nesting)
        details = {"singular_values_": approximated.singular_values, "directions_": directions}
        return Vectors(approximated.values, suffixes, {**details, "new_levels_": rule})

    def _rule(
        self, moments: GroupMoments, outputs: Sequence[int], matrix: Floats, nesting: Nesting | None
    ) -> LinearRule:
        """How the vector of a new level follows from its means."""
        found = shrink_nested(moments, nesting) if self.shrinkage or self.use_target else None
        return LinearRule(
            moments.overall_mean(),
            np.array(outputs, dtype=np.intp),
            matrix,
            shrink=bool(self.shrinkage),
            prior=None if found is None else found.prior,
            tiers=() if found is None else found.tiers,
        )

    def _represent_fold(self, sample: GroupSample, whole: Vectors) -> Vectors:
        """Describe the levels by the directions and the scales of all rows, which do not see the target."""
        if sample.is_empty:
            return super()._represent_fold(sample, whole)
        directions = whole.details["directions_"]
        scale = self._scale(whole.known_moments().select(range(len(directions))))
        found = self._values_with_target(sample, directions, scale)
        if sample.nesting is None:
            return Vectors(found.values)
        outputs = self._used_columns(len(directions))
        rule = self._rule(sample.moments, outputs, found.matrix, sample.nesting)
        return Vectors(found.values, details={"new_levels_": rule})

    def _values_with_target(self, sample: GroupSample, directions: Floats, scale: Floats) -> _WithTarget:
        """The vectors of the levels.

        Parameters
        ----------
        sample : GroupSample
            With moments of covariates and target.
        directions : ndarray, shape (n_covariates, k)
        scale : ndarray, shape (n_covariates,)
            What the means of the covariates are divided by.
        """
        moments, n_covariates = sample.moments, len(directions)
        chosen = self._used_columns(n_covariates)
        shrink = partial(shrink_towards_parents, nesting=sample.nesting)
        mean = shrink_with_target(moments, n_covariates, jointly=bool(self.shrinkage), shrink=shrink)[0]
        mean = mean[:, chosen]
        units = np.append(scale, self._scale(moments)[chosen[n_covariates:]])
        # A class that does not occur adds nothing to the rank: it may be that of a row in the fold only
        # (test_a_row_does_not_see_its_own_target).
        occurs = np.append(np.ones(n_covariates, dtype=bool), mean[:, n_covariates:].any(axis=0))
        rank = directions.shape[1] + np.count_nonzero(occurs[n_covariates:])
        left, values, found = np.linalg.svd((mean / units)[:, occurs], full_matrices=False)
        right = np.zeros((len(found), len(units)))
        right[:, occurs] = found
        low_rank = (left[:, :rank] * values[:rank]) @ right[:rank]
        target = low_rank[:, n_covariates:] * units[n_covariates:]
        vectors = np.column_stack([low_rank[:, :n_covariates] @ directions, target])
        project = right[:rank].T @ right[:rank]
        into = np.column_stack(
            [project[:, :n_covariates] @ directions, project[:, n_covariates:] * units[n_covariates:]]
        )
        return _WithTarget(vectors, values, into / units[:, None])

    def _used_columns(self, n_covariates: int) -> list[int]:
        """Positions of the covariates and of the columns of the target that are used."""
        return [*range(n_covariates), *(n_covariates + j for j in self._target_outputs())]

    def _scale(self, moments: GroupMoments) -> Floats:
        """The spread of each covariate within levels, or 1 if they are not standardised; (p,)."""
        return within_scale(moments) if self.standardize else np.ones(len(moments.covariates))

    def _target_outputs(self) -> list[int]:
        """Positions of the columns of the target that are used: of two classes only the second."""
        return output_positions(self.target_type_, self.n_targets_)


@dataclass(frozen=True, slots=True, eq=False)
class _WithTarget:
    """Vectors of levels by covariates and target.

    Attributes
    ----------
    values : ndarray, shape (n_levels, k + q)
    singular_values : ndarray, shape (min(n_levels, n_covariates + q),)
        Of the means with the target.
    matrix : ndarray, shape (n_covariates + q, k + q)
        What the means are multiplied by to give the vectors.
    """

    values: Floats
    singular_values: Floats
    matrix: Floats


@dataclass(eq=False, repr=False, kw_only=True)
class SparseLowRankEncoder(GroupEncoder):
    """Replace each level by a few combinations of its covariate averages, each of few covariates.

    Use it like `LowRankEncoder`, if the columns should be easy to read or trees follow, which look at one
    column at a time.

    Assumption: as for `LowRankEncoder` (lemma 3 of the paper). The combinations are those of sparse
    principal component analysis (Zou, Hastie and Tibshirani, eq. 3.12), which trees can use better
    because each involves few covariates: with the means ω_g of the M levels,

        min over A, B of  1/M Σ_g ‖ω_g − A Bᵀω_g‖² + ridge Σ‖b_j‖² + penalty Σ‖b_j‖₁,  AᵀA = I,

    and the level's vector is Bᵀω_g (with ``center``, all ω_g less their mean).

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
    n_components : int or "auto", default="auto"
        Number of combinations; "auto" as in `LowRankEncoder`, of the centered means where they are centered.
    alpha : float, default=0.001
        The L1 penalty as a share of the smallest one that makes every loading zero, from 0 to 1.
    ridge : float, default=0.01
        The ridge penalty as a share of the mean square of the covariate means.
    standardize : bool, default=True
        Divide each covariate by its pooled standard deviation within levels first.
    center : bool, default=True
        Subtract the mean over the levels from the means first. The paper does not; but where covariates lie
        far from zero, the common mean dominates the largest penalty and the ridge, and every component but
        the first is zero. Sufficiency is not affected: P(L | g) sums to 1, so that vectors known up to a
        constant are enough.
    shrinkage : {"auto"} or None, default=None
        "auto" starts from the shrunken means of `MeansEncoder`.
    max_iter : int, default=1000
        Maximum number of rounds of the alternating minimisation.

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
    loadings_ : dict of str to ndarray, shape (n_covariates, n_components)
        B, on the scale of the standardised covariates.
    iterations_ : dict of str to int
        Number of rounds for each group; ``n_iter_`` is the largest.

    Examples
    --------
    >>> import pandas as pd
    >>> from sufrep import SparseLowRankEncoder
    >>> shops = pd.DataFrame(
    ...     {"shop": list("aabbcc"), "price": [1.0, 2, 8, 9, 4, 5], "size": [3.0, 4, 4, 3, 5, 2]}
    ... )
    >>> encoder = SparseLowRankEncoder("shop", n_components=1, alpha=0.3).fit(shops)
    >>> encoder.get_feature_names_out().tolist()
    ['price', 'size', 'shop_sparse1']
    """

    n_components: int | Literal["auto"] = "auto"
    alpha: float = 0.001
    ridge: float = 0.01
    standardize: bool = True
    center: bool = True
    shrinkage: Literal["auto"] | None = None
    max_iter: int = 1000

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "alpha": [Interval(Real, 0, 1, closed="both")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "standardize": ["boolean"],
        "center": ["boolean"],
        "shrinkage": [StrOptions({"auto"}), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    n_iter_ = property(most_iterations)

    @property
    def _needs(self) -> Needs:
        second = self.standardize or self.shrinkage or self.n_components == "auto"
        return Needs(order=2 if second else 1)

    def _represent(self, sample: GroupSample) -> Vectors:
        moments = sample.moments
        matrix = means_matrix(moments, standardize=self.standardize, shrinkage=self.shrinkage)
        center = matrix.mean(axis=0) if self.center else np.zeros(matrix.shape[1])
        matrix = matrix - center
        k = count_components(moments, self.n_components, center=self.center)
        # In units of a power of two: the squares of tiny means would be zero.
        scaled = np.ldexp(matrix, -np.frexp(np.abs(matrix).max(initial=0.0))[1])
        gram = scaled.T @ scaled / len(scaled)
        result = sparse_pca(gram, k, alpha=self.alpha, ridge=self.ridge, max_iter=self.max_iter)
        if not result.converged:
            warn(
                f"Sparse principal components did not converge in max_iter={self.max_iter} rounds.\n"
                "Hint: raise max_iter, or alpha, which makes the problem easier.",
                ConvergenceWarning,
            )
        scale = within_scale(moments) if self.standardize else np.ones(len(center))
        rule = LinearRule(
            moments.overall_mean(),
            np.arange(len(center)),
            result.loadings / scale[:, None],
            -center @ result.loadings,
            shrink=bool(self.shrinkage),
            prior=estimate_means_prior(moments) if self.shrinkage else None,
        )
        details = {"loadings_": result.loadings, "iterations_": result.n_iter, "new_levels_": rule}
        suffixes = [Suffix(f"sparse{j + 1}") for j in range(k)]
        return Vectors(matrix @ result.loadings, suffixes, details)


def means_matrix(
    moments: GroupMoments,
    *,
    standardize: bool,
    shrinkage: Literal["auto"] | None,
    nesting: Nesting | None = None,
) -> Floats:
    """The means of the levels, optionally shrunk and divided by the spread within levels; (n_levels, p)."""
    mean = shrink_nested(moments, nesting).values if shrinkage else moments.filled_mean()
    if standardize:
        return mean / within_scale(moments)
    for name, column in zip(moments.covariates, mean.T, strict=True):
        refuse_large(name, float(np.abs(column).max(initial=0.0)))
    return mean


def count_components(
    moments: GroupMoments, n_components: int | Literal["auto"], *, center: bool = False
) -> int:
    """The number of components requested, or with "auto" the number above the noise.

    That is the rank of the between-level covariance if the means are centered.
    """
    n_covariates = len(moments.covariates)
    if isinstance(n_components, str):
        scale = within_scale(moments)
        covariance = within_covariance(moments) / np.outer(scale, scale)
        mean = moments.filled_mean()
        if center:
            rounding = 1e-12 * np.abs(mean).max(axis=0)
            mean = mean - moments.weight @ mean / moments.total_weight
            # Rounding errors of a covariate that does not vary must not count as a component.
            mean = np.where(np.abs(mean) > rounding, mean, 0.0)
        return n_components_above_noise(mean / scale, moments.weight, covariance)
    if n_components > n_covariates:
        raise TooManyComponentsError(n_components, n_covariates)
    return n_components
