"""Levels by the order of their mean response (appendix of the paper)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.stats import rankdata

from sufrep.encoders._cross_fitting import CrossFittingEncoder
from sufrep.encoders._vectors import Rows, Suffix, Vectors

if TYPE_CHECKING:
    from sufrep._arrays import Floats, Levels
    from sufrep.moments import GroupMoments


class FisherEncoder(CrossFittingEncoder):
    """Represent each level by the rank of its mean response.

    The paper takes it from Hastie, Tibshirani and Friedman, after Fisher: for one split of a tree, the
    order by the mean response is as good as any grouping of the levels. Levels with the same mean share
    their rank. For classes, levels are ranked by the share of the class: of the second one if there are
    two, else of every class.

    It uses the target, so ``fit_transform`` cross-fits: the ranks that a row gets are learnt without its
    fold, and nothing of its own response reaches it. A fold may miss levels; its ranks are stretched to
    the number of levels in all, so that both scales agree.

    Parameters
    ----------
    {common parameters}
    cv : int, splitter or iterable of (train, test), default=5
        Folds of ``fit_transform``; every row must be in one test fold. An integer makes shuffled folds.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes. The first chunk
        of ``partial_fit`` decides; name the type there.
    random_state : int, default=0
        Seed of the shuffling of ``cv=int``.

    Attributes
    ----------
    {common attributes}
    target_type_ : str
        Kind of the target that was found.
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

    _needs_covariates: ClassVar[bool] = False

    @property
    def _uses_target(self) -> bool:
        return True

    def _represent_fold(self, outside: GroupMoments, name: str, levels: Levels) -> Vectors:
        """A fold may miss levels; its ranks are stretched to the number of levels in all."""
        vectors = self._represent_group(outside, None, levels)
        n_ranks, here = self.n_ranks_[name], vectors.details["n_ranks_"]
        return replace(vectors, values=(vectors.values - 0.5) * n_ranks / here + 0.5)

    def _nothing_known(self, name: str) -> Floats:
        n_columns = len(self.representations_[name].columns)
        return np.full(n_columns, (self.n_ranks_[name] + 1) / 2)

    def _represent(self, moments: GroupMoments, rows: Rows | None) -> Vectors:  # noqa: ARG002
        classes = [name.partition("=")[2] for name in moments.covariates]
        chosen = self._given_targets()
        ranks = [shared_ranks(moments.mean[:, j]) for j in chosen]
        several = len(chosen) > 1
        suffixes = [Suffix(f"fisher_{classes[j]}" if several else "fisher") for j in chosen]
        return Vectors(np.column_stack(ranks), suffixes, {"n_ranks_": moments.n_levels})


def shared_ranks(values: Floats) -> Floats:
    """Ranks from 1; values that differ by rounding only share theirs; (n,)."""
    low, high = values.min(), values.max()
    rounding = max(1e-11 * (high - low), 1e-13 * max(abs(high), abs(low)), np.finfo(np.float64).tiny)
    return np.asarray(rankdata(np.round((values - low) / rounding)))
