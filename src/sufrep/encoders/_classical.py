"""Classical codings of a factor (appendix of the paper): contrasts, random orders, ranks of the response."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from scipy.stats import rankdata

from sufrep._frames import Lookup
from sufrep._names import MAX_SEED
from sufrep._sklearn import Interval, StrOptions
from sufrep.encoders._base import TARGET_CONSTRAINTS, GroupEncoder, Needs, Suffix, Vectors
from sufrep.encoders._target import class_suffixes, output_positions
from sufrep.errors import SparseCodingError
from sufrep.representation import distinct_labels
from sufrep.solvers.closed_forms import CODINGS

if TYPE_CHECKING:
    from sufrep._arrays import Floats
    from sufrep.encoders._inputs import Column, GroupSample, Inputs


@dataclass(eq=False, repr=False, kw_only=True)
class ContrastEncoder(GroupEncoder):
    """Replace each level by one-hot columns or another classical coding, n_levels − 1 columns wide.

    Use it as the baseline of a comparison, or where there are few levels.

    These are the baselines: they identify the level of a row without describing it. Levels are in
    sorted order, the missing value last.

    Parameters
    ----------
    group : str, int, tuple, list of these, or None, default=None
        The categorical column: its name or position; several in a list; a tuple of columns is one
        group of their combinations, as in ``group=[("store", "brand")]``. None selects every text or
        categorical column.
    covariates : list of str or int, default=None
        Not used; present so that all encoders have the same parameters.
    categorical_covariates : {"ignore", "share"}, default="ignore"
        Not used; present so that all encoders have the same parameters.
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
    coding : {"one_hot", "deviation", "difference", "helmert", "repeated_effect", "simple_effect"}, \
            default="one_hot"
        The reference level of one_hot is the first one, as in the paper.
    sparse_output : bool, default=False
        Return a sparse matrix; only for one_hot, because the other codings have no zeros. An unseen level
        is a dense row, the shares of all levels, so many of them make the matrix large.

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

    coding: str = "one_hot"
    sparse_output: bool = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        "coding": [StrOptions(set(CODINGS))],
        "sparse_output": ["boolean"],
    }

    @property
    def _needs(self) -> Needs:
        return Needs(covariates="unused")

    def _lookups(self, inputs: Inputs, *, training: bool) -> list[Lookup]:
        """With ``sparse_output``, the result is sparse even if there is no group."""
        lookups = super()._lookups(inputs, training=training)
        if self.sparse_output and not lookups:
            return [Lookup(sparse.csr_array((inputs.table.n_rows, 0)))]
        return lookups

    def _represent(self, sample: GroupSample) -> Vectors:
        levels = sample.moments.levels
        if self.coding != "one_hot":
            if self.sparse_output:
                raise SparseCodingError(self.coding)
            suffixes = [Suffix(f"{self.coding}{j + 1}") for j in range(len(levels) - 1)]
            return Vectors(CODINGS[self.coding](len(levels)), suffixes)
        suffixes = [Suffix(label) for label in distinct_labels(levels)[1:]]
        if self.sparse_output:
            indicators = sparse.eye_array(len(levels), len(levels) - 1, k=-1, format="csr")
            return Vectors(indicators, suffixes)
        return Vectors(CODINGS["one_hot"](len(levels)), suffixes)


@dataclass(eq=False, repr=False, kw_only=True)
class PermutationEncoder(GroupEncoder):
    """Replace each level by its place in one or more random orders of the levels.

    Use it as a baseline: trees can split such numbers, which say nothing about the levels.

    The paper's *permutation* is one such order, its *multi-permutation* four of them.

    Parameters
    ----------
    group : str, int, tuple, list of these, or None, default=None
        The categorical column: its name or position; several in a list; a tuple of columns is one
        group of their combinations, as in ``group=[("store", "brand")]``. None selects every text or
        categorical column.
    covariates : list of str or int, default=None
        Not used; present so that all encoders have the same parameters.
    categorical_covariates : {"ignore", "share"}, default="ignore"
        Not used; present so that all encoders have the same parameters.
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
    n_permutations : int, default=1
        Number of orders, a column each.
    random_state : int, default=0
        Seed of the orders; an integer, so that chunks and files give what one fit gives.

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

    n_permutations: int = 1
    random_state: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        "n_permutations": [Interval(Integral, 1, None, closed="left")],
        "random_state": [Interval(Integral, 0, MAX_SEED, closed="both")],
    }

    @property
    def _needs(self) -> Needs:
        return Needs(covariates="unused")

    def _represent(self, sample: GroupSample) -> Vectors:
        rng = np.random.default_rng(self.random_state)
        orders = [rng.permutation(sample.moments.n_levels) + 1.0 for _ in range(self.n_permutations)]
        one = self.n_permutations == 1
        suffixes = [Suffix("permutation" if one else f"permutation{j + 1}") for j in range(len(orders))]
        return Vectors(np.column_stack(orders), suffixes)


@dataclass(eq=False, repr=False, kw_only=True)
class FisherEncoder(GroupEncoder):
    """Replace each level by the rank of its mean target.

    Use it as a baseline: it keeps the order of the levels by their targets, and not how far they are apart.

    The paper takes it from Hastie, Tibshirani and Friedman, after Fisher: for one split of a tree, the
    order by the mean response is as good as any grouping of the levels. Levels with the same mean share
    their rank. For classes, levels are ranked by the share of the class: of the second one if there are
    two, else of every class.

    It uses the target, so ``fit_transform`` cross-fits: the ranks that a row gets are learnt without its
    fold, and do not depend on its own response. A fold may miss levels; its ranks are stretched to the
    number of all levels, so that both scales agree.

    Parameters
    ----------
    group : str, int, tuple, list of these, or None, default=None
        The categorical column: its name or position; several in a list; a tuple of columns is one
        group of their combinations, as in ``group=[("store", "brand")]``. None selects every text or
        categorical column.
    covariates : list of str or int, default=None
        Not used; present so that all encoders have the same parameters.
    categorical_covariates : {"ignore", "share"}, default="ignore"
        Not used; present so that all encoders have the same parameters.
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
    cv : int, splitter, iterable of (train, test) or "ordered", default=5
        Folds of ``fit_transform``; every row must be in one test fold. An integer makes shuffled folds.
        With "ordered", columns that depend on the target are learnt from earlier rows only: rows are cut by
        ``time`` into at most 10 blocks of about the same size, ties together, and a block is encoded with
        what all blocks before it say; the first one gets what is known before any target. scikit-learn's
        `TimeSeriesSplit` does the same by the position of the rows.
    time : str or int, default=None
        The column of X that says when each row happened, for ``cv="ordered"``: numbers, dates, or ISO text.
        With a `TimeSeriesSplit`, rows are checked to be in the order of this column. It passes through like
        any other column and, if it is numeric, is a covariate unless ``covariates`` leaves it out.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes. The first chunk
        of ``partial_fit`` decides; name the type there.
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
    target_type_ : str
        The kind of target that was found.
    n_ranks_ : dict of str to int
        Number of levels that were ranked.

    Examples
    --------
    >>> from sufrep import FisherEncoder
    >>> encoder = FisherEncoder(group=0).fit([["a"], ["b"], ["c"], ["a"]], [2.5, 0.5, 9.0, 3.5])
    >>> encoder.transform([["a"], ["b"], ["c"], ["never seen"]])
    array([[2.],
           [1.],
           [3.],
           [2.]])
    """

    target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto"
    cv: Any = 5
    time: Column | None = None
    random_state: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        **TARGET_CONSTRAINTS,
    }

    @property
    def _needs(self) -> Needs:
        return Needs(covariates="unused", target="covariate", target_type=self.target_type)

    def _represent(self, sample: GroupSample) -> Vectors:
        moments = sample.moments
        outputs = output_positions(self.target_type_, self.n_targets_)
        classes = [moments.covariates[j].partition("=")[2] for j in outputs]
        ranks = [shared_ranks(moments.mean[:, j]) for j in outputs]
        suffixes = [Suffix(f"fisher{label}") for label in class_suffixes(self.target_type_, classes)]
        return Vectors(np.column_stack(ranks), suffixes, {"n_ranks_": moments.n_levels})

    def _represent_fold(self, sample: GroupSample, whole: Vectors) -> Vectors:
        """Stretch the ranks of a fold, which may miss levels, to the number of all levels."""
        n_ranks = whole.details["n_ranks_"]
        if sample.is_empty:
            return whole.with_one_vector(np.full(whole.values.shape[1], (n_ranks + 1) / 2))
        vectors = self._represent(sample)
        return replace(vectors, values=(vectors.values - 0.5) * n_ranks / sample.moments.n_levels + 0.5)


def shared_ranks(values: Floats) -> Floats:
    """Ranks from 1; values that differ only by rounding share one; (n,)."""
    low, high = values.min(), values.max()
    rounding = max(1e-11 * (high - low), 1e-13 * max(abs(high), abs(low)), np.finfo(np.float64).tiny)
    return np.asarray(rankdata(np.round((values - low) / rounding)))
