"""Cells: the combinations of several groups, by their mean target, where it says more than the groups do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from sufrep._frames import Lookup, cross, taken
from sufrep._sklearn import Interval
from sufrep.encoders._base import (
    SAMPLE_CONSTRAINTS,
    TARGET_CONSTRAINTS,
    GroupEncoder,
    Needs,
    Suffix,
    Vectors,
)
from sufrep.errors import InvalidParameterError
from sufrep.solvers.cells import ChosenCells, Factors, cell_means, choose_cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep.encoders._inputs import Column, GroupSample, Inputs, Layout, Rows


@dataclass(eq=False, repr=False, kw_only=True)
class CellsEncoder(GroupEncoder):
    """Represent levels, and combinations of the levels of several groups, by their size and mean target.

    It assumes nothing about hidden states, and serves where two groups together say what neither says alone,
    such as the price of a brand in a store. The combinations of two or three groups that are worth it become
    further groups, *cells*. In folds, the effects of all groups are fitted to the target at the same time,
    and then the effects of the cells of each combination to what is left; a combination is chosen if this
    reduces the squared error on the rows held out significantly. Combinations whose cells hardly ever have
    two rows, or are hardly more than the levels of one of the groups, are not tried. With a single group
    there are no combinations, and its levels alone get columns.

    Every group and every chosen combination gets the logarithm of one plus the number of other rows of the
    level or cell, and the mean of the target in it, shrunk towards the overall mean by empirical Bayes (for
    classes the shares of the classes, of two the second). A level or cell that ``fit`` did not see has no row
    and the overall mean.

    ``fit_transform`` cross-fits, so that a row's columns do not depend on its own target, except through the
    choice of the combinations, which is made on all rows (``max_cells=0`` makes none).

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
    max_order : {1, 2, 3}, default=3
        Largest number of groups that are combined.
    max_cells : int, default=12
        Largest number of combinations that are chosen.
    unscreened : int, default=10
        If at most so many pairs of groups can be combined, all of them are chosen, whatever they add: they
        may serve trees also where they add little to a sum of effects. Triples always have to be
        significant.
    max_columns : int, default=60
        Largest number of columns: combinations are left out as long as there are more. The groups themselves
        always have theirs.
    sample_rows : int, default=None
        If X is a lazy frame: about how many of its rows to learn from. Large levels give as many rows each,
        and small ones all of theirs.
    sample_by : str or int, default=None
        The column whose values decide which rows these are, by a hash: an identifier. By default all columns
        decide, and rows with the same values are in the sample together.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes.
    cv : int, splitter, iterable of (train, test) or "ordered", default=5
        Folds of the choice and of ``fit_transform``; every row must be in one test fold. An integer makes
        shuffled folds.
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
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Their names, if X has any.
    cells_ : dict of str to list
        The combinations that were chosen, for ``pd.DataFrame``: ``groups``, the names of the groups,
        ``gain``, the share of the squared error on held-out rows that the cells remove in addition to the
        groups, and ``z``, the gain divided by its standard error.
    target_type_ : str
        The kind of target that was found.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sufrep import CellsEncoder
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.integers(0, 20, (2000, 3)).astype(str), columns=["store", "brand", "day"])
    >>> price = rng.normal(size=(20, 20))  # of every brand in every store
    >>> y = price[X["store"].astype(int), X["brand"].astype(int)] + rng.normal(size=2000)
    >>> encoder = CellsEncoder(["store", "brand", "day"], unscreened=0).fit(X, y)
    >>> encoder.cells_["groups"]
    [('store', 'brand')]
    >>> encoder.get_feature_names_out()[-2:].tolist()
    ['store:brand_log_count', 'store:brand_target_mean']
    """

    max_order: int = 3
    max_cells: int = 12
    unscreened: int = 10
    max_columns: int = 60
    target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto"
    cv: Any = 5
    time: Column | None = None
    random_state: int = 0
    sample_rows: int | None = None
    sample_by: Column | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        **SAMPLE_CONSTRAINTS,
        **TARGET_CONSTRAINTS,
        "max_order": [Interval(Integral, 1, 3, closed="both")],
        "max_cells": [Interval(Integral, 0, None, closed="left")],
        "unscreened": [Interval(Integral, 0, None, closed="left")],
        "max_columns": [Interval(Integral, 1, None, closed="left")],
    }

    @property
    def _needs(self) -> Needs:
        return Needs(rows=True, covariates="unused", target="response", target_type=self.target_type)

    def _learn(self, inputs: Inputs) -> None:
        """Choose the cells, and learn them like groups."""
        if isinstance(self.cv, Iterator):
            raise InvalidParameterError("cv", self.cv, "a list of folds, because a generator works only once")
        names = inputs.layout.group_names(inputs.layout.names)
        chosen = self._choose(inputs)
        self.cells_: dict[str, list[Any]] = {
            "groups": [tuple(names[group] for group in cells.columns) for cells in chosen],
            "gain": [cells.gain for cells in chosen],
            "z": [cells.z for cells in chosen],
        }
        super()._learn(with_cells(inputs, [cells.columns for cells in chosen], self.missing))

    def _lookups(self, inputs: Inputs, *, training: bool) -> list[Any]:
        """The columns of each group and each cell."""
        if inputs.layout.groups != self.layout_.groups:  # rows that were read before the choice
            names = inputs.layout.group_names(inputs.layout.names)
            cells = [tuple(map(names.index, groups)) for groups in self.cells_["groups"]]
            inputs = with_cells(inputs, cells, self.missing)
        return super()._lookups(inputs, training=training)

    def _represent(self, sample: GroupSample) -> Vectors:
        rows, target = sample.rows, sample.rows.response()
        found = cell_means(rows.codes, rows.n_levels, target.output_columns().T, rows.weights)
        suffixes = [Suffix("log_count"), *(Suffix(f"target_mean{label}") for label in target.suffixes)]
        values = np.column_stack([np.log1p(found.weight), found.means])
        return Vectors(values, suffixes, prior=np.append(0.0, found.center), first_cross_fitted=1)

    def _represent_fold(self, sample: GroupSample, whole: Vectors) -> Vectors:
        """Without any row, all cells get 0."""
        if not sample.is_empty:
            return self._represent(sample)
        return whole.with_one_vector(np.zeros(whole.values.shape[1]), first_cross_fitted=1)

    def _encode_rows(self, vectors: Vectors, rows: Rows) -> Lookup:
        """A training row does not count itself, so that a new row, which is not counted, is like it."""
        lookup = super()._encode_rows(vectors, rows)
        if not rows.training:
            return lookup
        values = np.array(taken(lookup))
        known = np.flatnonzero(rows.codes >= 0)
        own = np.ones(len(known)) if rows.weights is None else rows.weights[known]
        weight = np.bincount(rows.codes[known], own, vectors.n_levels)
        values[known, 0] = np.log1p(np.maximum(weight[rows.codes[known]] - own, 0.0))
        return Lookup(values)

    def _choose(self, inputs: Inputs) -> list[ChosenCells]:
        """The combinations of groups that are worth it, by positions of the groups."""
        single = [j for j, columns in enumerate(inputs.layout.groups) if len(columns) == 1]
        if len(single) < 2 or self.max_order < 2 or not self.max_cells:
            return []
        target = inputs.target
        if target is None:
            raise TypeError("the choice needs the target")
        n_columns = 1 + len(target.outputs)
        room = self.max_columns // n_columns - len(inputs.factors)
        factors = [inputs.factors[group] for group in single]
        found = choose_cells(
            Factors([factor.codes for factor in factors], [len(factor.levels) for factor in factors]),
            target.output_columns().T,
            self._split(inputs),
            inputs.weights,
            max_order=self.max_order,
            max_cells=max(min(self.max_cells, room), 0),
            unscreened=self.unscreened,
        )
        known = set(inputs.layout.groups)
        chosen = [replace(cells, columns=tuple(single[j] for j in cells.columns)) for cells in found]
        return [cells for cells in chosen if _columns_of(inputs.layout, cells.columns) not in known]


def with_cells(inputs: Inputs, cells: Sequence[tuple[int, ...]], missing: str) -> Inputs:
    """The same rows with combinations of groups, by positions of these, as further groups."""
    columns = tuple(_columns_of(inputs.layout, groups) for groups in cells)
    layout = replace(inputs.layout, groups=inputs.layout.groups + columns)
    factors = tuple(
        cross([inputs.factors[group] for group in groups], keep_null=missing == "level") for groups in cells
    )
    return replace(inputs, layout=layout, factors=inputs.factors + factors)


def _columns_of(layout: Layout, groups: Sequence[int]) -> tuple[int, ...]:
    return tuple(layout.groups[group][0] for group in groups)
