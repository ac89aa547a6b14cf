"""The classical codings of a factor (appendix of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from scipy import sparse
from sklearn.utils._param_validation import StrOptions

from sufrep._levels import distinct_labels
from sufrep.encoders._base import GroupEncoder
from sufrep.encoders._vectors import Rows, Suffix, Vectors
from sufrep.errors import SparseCodingError
from sufrep.solvers.closed_forms import CODINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep.encoders._layout import Column, Group
    from sufrep.moments import GroupMoments


class ContrastEncoder(GroupEncoder):
    """Represent each level by its row of a contrast matrix, n_levels − 1 columns wide.

    These are the baselines: they say which level a row has, and nothing about it. Levels count in
    sorted order, the missing value last.

    Parameters
    ----------
    {common parameters}
    coding : {"one_hot", "deviation", "difference", "helmert", "repeated_effect", "simple_effect"}, \
            default="one_hot"
        one_hot has the first level as its reference, as in the paper.
    sparse_output : bool, default=False
        Return a sparse matrix; of one_hot only, the others have no zeros to leave out. A level never seen
        is a full row, the shares of all levels, so many of them make the matrix large.

    Attributes
    ----------
    {common attributes}

    Examples
    --------
    >>> import pandas as pd
    >>> from sufrep import ContrastEncoder
    >>> sizes = pd.DataFrame({"size": ["a", "b", "c", "d", "e"]})
    >>> ContrastEncoder("size", coding="helmert").fit_transform(sizes).round(2)
    array([[ 0.8 ,  0.  ,  0.  ,  0.  ],
           [-0.2 ,  0.75,  0.  ,  0.  ],
           [-0.2 , -0.25,  0.67,  0.  ],
           [-0.2 , -0.25, -0.33,  0.5 ],
           [-0.2 , -0.25, -0.33, -0.5 ]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        "coding": [StrOptions(set(CODINGS))],
        "sparse_output": ["boolean"],
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
        coding: str = "one_hot",
        sparse_output: bool = False,
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
        self.coding = coding
        self.sparse_output = sparse_output

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:  # noqa: ARG002
        n_levels = moments.n_levels
        if self.coding != "one_hot":
            if self.sparse_output:
                raise SparseCodingError(self.coding)
            suffixes = [Suffix(f"{self.coding}{j + 1}") for j in range(n_levels - 1)]
            return Vectors(CODINGS[self.coding](n_levels), suffixes)
        suffixes = [Suffix(label) for label in distinct_labels(moments.levels)[1:]]
        if self.sparse_output:
            return Vectors(sparse.eye_array(n_levels, n_levels - 1, k=-1, format="csr"), suffixes)
        return Vectors(CODINGS["one_hot"](n_levels), suffixes)
