"""Levels by sparse combinations of their means (algorithm 3 of the paper)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sufrep.encoders._base import GroupEncoder
from sufrep.encoders._low_rank import count_components, means_matrix
from sufrep.encoders._vectors import Rows, Suffix, Vectors
from sufrep.errors import warn
from sufrep.solvers.sparse_pca import sparse_pca

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep.encoders._layout import Column, Group
    from sufrep.moments import GroupMoments


class SparseLowRankEncoder(GroupEncoder):
    """Represent each level by k sparse linear combinations of its covariate means.

    Assumption: as for `LowRankEncoder` (lemma 3 of the paper). The combinations are those of sparse
    principal component analysis (Zou, Hastie and Tibshirani, eq. 3.12), which trees can use better
    because each involves few covariates: with the means ω_g of the M levels,

        min over A, B of  1/M Σ_g ‖ω_g − A Bᵀω_g‖² + ridge Σ‖b_j‖² + penalty Σ‖b_j‖₁,  AᵀA = I,

    and the level's vector is Bᵀω_g (with ``center``, all ω_g less their mean).

    Parameters
    ----------
    {common parameters}
    n_components : int or "auto", default="auto"
        Number of combinations; "auto" as in `LowRankEncoder`, of the centred means where they are centred.
    alpha : float, default=0.001
        The L1 penalty as a share of the smallest one that makes every loading zero, from 0 to 1.
    ridge : float, default=0.01
        The ridge penalty as a share of the mean square of the covariate means.
    standardize : bool, default=True
        Divide each covariate by its pooled standard deviation within levels first.
    center : bool, default=True
        Take the mean over the levels off the means first. The paper does not; but where covariates lie
        far from zero, the common mean is all that the largest penalty and the ridge then see, and every
        component but the first is zero. Sufficiency is untouched: P(L | g) sums to 1, so that vectors
        known up to a constant are enough.
    shrinkage : {"auto"} or None, default=None
        "auto" starts from the shrunken means of `MeansEncoder`.
    max_iter : int, default=1000
        Most rounds of the alternating minimisation.

    Attributes
    ----------
    {common attributes}
    loadings_ : dict of str to ndarray, shape (n_covariates, n_components)
        B, on the scale of the standardised covariates.
    iterations_ : dict of str to int
        Rounds that each group took; ``n_iter_`` is the largest.

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
        alpha: float = 0.001,
        ridge: float = 0.01,
        standardize: bool = True,
        center: bool = True,
        shrinkage: Literal["auto"] | None = None,
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
        self.n_components = n_components
        self.alpha = alpha
        self.ridge = ridge
        self.standardize = standardize
        self.center = center
        self.shrinkage = shrinkage
        self.max_iter = max_iter

    @property
    def _order(self) -> Literal[1, 2]:
        return 2 if self.standardize or self.shrinkage or self.n_components == "auto" else 1

    @property
    def n_iter_(self) -> int:
        """Most iterations that any group took."""
        check_is_fitted(self)
        iterations: dict[str, int] = getattr(self, "iterations_", {})
        return max([1, *iterations.values()])

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:  # noqa: ARG002
        matrix = means_matrix(moments, standardize=self.standardize, shrinkage=self.shrinkage)
        if self.center:
            matrix = matrix - matrix.mean(axis=0)
        k = count_components(moments, self.n_components, center=self.center)
        gram = matrix.T @ matrix / len(matrix)
        result = sparse_pca(gram, k, alpha=self.alpha, ridge=self.ridge, max_iter=self.max_iter)
        if not result.converged:
            warn(
                f"Sparse principal components did not converge in max_iter={self.max_iter} rounds.\n"
                "Hint: raise max_iter, or alpha, which makes the problem easier.",
                ConvergenceWarning,
            )
        details = {"loadings_": result.loadings, "iterations_": result.n_iter}
        suffixes = [Suffix(f"sparse{j + 1}") for j in range(k)]
        return Vectors(matrix @ result.loadings, suffixes, details)
