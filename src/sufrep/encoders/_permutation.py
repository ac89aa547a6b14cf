"""Levels by their place in random orders (appendix of the paper)."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval

from sufrep.encoders._base import GroupEncoder
from sufrep.encoders._vectors import Rows, Suffix, Vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep.encoders._layout import Column, Group
    from sufrep.moments import GroupMoments


class PermutationEncoder(GroupEncoder):
    """Represent each level by its place in one or more random orders of the levels.

    The paper's *permutation* is one such order, its *multi-permutation* four of them.

    Parameters
    ----------
    {common parameters}
    n_permutations : int, default=1
        Number of orders, a column each.
    random_state : int, default=0
        Seed of the orders; an integer, so that chunks and files give what one fit gives.

    Attributes
    ----------
    {common attributes}

    Examples
    --------
    >>> from sufrep import PermutationEncoder
    >>> encoder = PermutationEncoder(group=0, n_permutations=2, random_state=1)
    >>> encoder.fit_transform([["a"], ["b"], ["c"], ["a"]])
    array([[1., 3.],
           [2., 1.],
           [3., 2.],
           [1., 3.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        "n_permutations": [Interval(Integral, 1, None, closed="left")],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }
    _needs_covariates = False

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
        n_permutations: int = 1,
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
        self.n_permutations = n_permutations
        self.random_state = random_state

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:  # noqa: ARG002
        rng = np.random.default_rng(self.random_state)
        orders = [rng.permutation(moments.n_levels) + 1.0 for _ in range(self.n_permutations)]
        one = self.n_permutations == 1
        suffixes = [Suffix("permutation" if one else f"permutation{j + 1}") for j in range(len(orders))]
        return Vectors(np.column_stack(orders), suffixes)
