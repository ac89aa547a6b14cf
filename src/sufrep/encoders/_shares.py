"""Levels by their shares over other categories, in a few numbers: the other groups are covariates too."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sufrep._frames import ArrayTable, LazyTable
from sufrep._sklearn import Interval
from sufrep.encoders._base import SAMPLE_CONSTRAINTS, GroupEncoder, Needs, pooled_positions
from sufrep.encoders._inputs import (
    Covariate,
    Inputs,
    Layout,
    OutputColumn,
    collect_moments,
    find_levels,
    with_roles,
)
from sufrep.encoders._lazy import lazy_lookups
from sufrep.encoders._means import MeansEncoder
from sufrep.encoders._new_levels import add_moments, known_columns, learn_levels
from sufrep.errors import NoCovariateError, NoLevelError, RowsNeededError, UnseenLevelsWarning
from sufrep.representation import Representation, dense_values
from sufrep.solvers.correspondence import (
    BinScores,
    Category,
    bin_codes,
    bin_edges,
    score_categories,
    sum_of_scores,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats
    from sufrep._frames import Factor
    from sufrep.encoders._inputs import Column

# Next to larger groups, those with at most this many levels get no column.
_MOST_FEW = 10


@dataclass(eq=False, repr=False, kw_only=True)
class SharesEncoder(GroupEncoder):
    """Represent each level by its shares over other categories: the other groups, and bins of the covariates.

    For a covariate that is a category, the mean within a level is the level's shares over the category.
    Assumption (lemma 3 of the paper): the level acts on the target only through a hidden state, so that the
    matrix of shares has a small rank. Regularised correspondence analysis of the number of rows of each level
    of the group and each level of the other categories gives the latter ``n_scores`` scores, and a level
    gets the mean of the scores of its rows, shrunk by empirical Bayes as in `MeansEncoder`. It needs no
    target, so it cannot leak one.

    In ``fit_transform``, a row gets the mean of its level without the row itself: in small levels the row
    would otherwise be most of the mean, which it is not for new rows. What a new row gets is the mean of all.

    Every group is described by the other groups, except those that share a column with it, and by covariates
    that are indicators of a text column. Numbers are described better by their means, and crowd other
    categories out of the few scores; they join, cut into eight bins and one for null, only if ``covariates``
    names them, or if nothing else describes any group. Next to larger groups, those with at most ten levels
    get no column: learners tell so few levels apart themselves.

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
    n_scores : int, default=6
        Largest number of scores of a group. There are at most half as many as levels, and fewer if the other
        categories have a smaller rank.
    max_columns : int, default=60
        Largest number of columns of all groups; each that is described has the same share of it, and at least
        one column.
    sample_rows : int, default=None
        If X is a lazy frame: about how many of its rows to learn from. Large levels give as many rows each,
        and small ones all of theirs.
    sample_by : str or int, default=None
        The column whose values decide which rows these are, by a hash: an identifier. By default all columns
        decide, and rows with the same values are in the sample together.

    Attributes
    ----------
    representations_ : dict of str to Representation
        The table of each group.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Their names, if X has any.
    scores_ : dict of str to list of Representation or BinScores
        For each group, the scores of the levels of every other group, and those of the bins of every
        covariate that joins.
    encoders_ : dict of str to MeansEncoder
        For each group that has any score, the encoder that averages the scores of the rows of its levels.

    Examples
    --------
    Cities of two countries, distinguished by the shops that they have:

    >>> import pandas as pd
    >>> from sufrep import SharesEncoder
    >>> X = pd.DataFrame({"city": ["Bonn", "Ulm", "Lyon", "Nice"] * 25})
    >>> german = X["city"].isin(["Bonn", "Ulm"])
    >>> X["shop"] = german.map({True: "Aldi", False: "Auchan"}).where(X.index % 10 > 0, "Ikea")
    >>> encoder = SharesEncoder(["city", "shop"]).fit(X)
    >>> encoder.table("city")["city_share1"].round(1).tolist()
    [0.8, -0.8, -1.1, 1.1]
    """

    n_scores: int = 6
    max_columns: int = 60
    sample_rows: int | None = None
    sample_by: Column | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        **SAMPLE_CONSTRAINTS,
        "n_scores": [Interval(Integral, 1, None, closed="left")],
        "max_columns": [Interval(Integral, 1, None, closed="left")],
    }

    @property
    def _needs(self) -> Needs:
        return Needs(rows=True)

    def _learn(self, inputs: Inputs) -> None:
        """Score the other categories of every group, and average the scores of the rows of its levels."""
        layout, groups = inputs.layout, inputs.layout.group_names(inputs.layout.names)
        counted = slice(None) if inputs.weights is None else inputs.weights > 0
        for group, factor in zip(groups, inputs.factors, strict=True):
            if (factor.codes[counted] < 0).all():
                raise NoLevelError(group)
        if groups and not inputs.covariates and not any(others_of(layout, j) for j in range(len(groups))):
            raise NoCovariateError(len(layout.names), groups, [layout.names[j] for j in layout.others])
        self.layout_, self.covariates_ = layout, list(inputs.covariates)
        self.scores_: dict[str, list[Representation | BinScores]] = {}
        self.encoders_: dict[str, MeansEncoder] = {}
        for number, group in enumerate(groups):
            self.scores_[group] = self._score(inputs, number)
            part = self._scored(inputs, number)
            if part.columns:
                self.encoders_[group] = self._averages(part)
                self.encoders_[group]._learn(part)
        names = [covariate.name(layout.names) for covariate in inputs.covariates]
        moments = {
            group: collect_moments(inputs.table, factor, inputs.columns, names=names, weights=inputs.weights)
            for group, factor in zip(groups, inputs.factors, strict=True)
        }
        # What `drift` compares new rows with.
        self.moments_ = with_roles(moments, layout, self.covariates_, self)
        self._join()

    def learn_levels(self, X: Any, y: Any = None) -> Self:
        """Return an encoder that knows the new levels of these rows too, without another fit.

        The scores of other categories stay as they are, so that levels which are new there say nothing. See
        `MeansEncoder.learn_levels`.
        """
        inputs = self._read_levels(X, y)
        groups = list(self.representations_)
        learnt = copy(self)
        learnt.encoders_ = {
            group: learn_levels(encoder, self._scored(inputs, groups.index(group)))
            for group, encoder in self.encoders_.items()
        }
        learnt.moments_ = add_moments(self, inputs)
        learnt._join()
        return learnt

    def _lookups(self, inputs: Inputs, *, training: bool) -> list[Any]:
        """The vector of each row's level; in training, without the row itself."""
        if isinstance(inputs.table, LazyTable):
            if not training and self.unseen == "estimate":
                raise RowsNeededError(
                    f"{type(self).__name__} estimates new levels from their rows, and X is a lazy frame.",
                    "set unseen='prior' (set_params works on a fitted encoder), or collect the frame first.",
                )
            return lazy_lookups(self, inputs, training=training)
        lookups: list[Any] = []
        for number, (group, table) in enumerate(self.representations_.items()):
            unseen = "prior" if training else self.unseen
            positions = find_levels(table, inputs.factors[number], group, unseen)
            if group not in self.encoders_:
                continue
            # What unseen levels get may have been changed since fit.
            encoder = copy(self.encoders_[group]).set_params(unseen=self.unseen)
            scored = self._scored(inputs, number, with_rows=training or bool((positions < 0).any()))
            with warnings.catch_warnings():  # of levels that are all new, said once above
                warnings.simplefilter("ignore", UnseenLevelsWarning)
                (lookup,) = encoder._lookups(scored, training=training)
            lookups.append(replace(lookup, names=table.columns))
        return lookups

    def _binned(self, layout: Layout, covariates: Sequence[Covariate]) -> list[int]:
        """Positions of the covariates that join, among all covariates."""
        alone = not any(others_of(layout, number) for number in range(len(layout.groups)))
        numbers = self.covariates is not None or (alone and not any(one.is_indicator for one in covariates))
        return [j for j, one in enumerate(covariates) if numbers or one.is_indicator]

    def _score(self, inputs: Inputs, number: int) -> list[Representation | BinScores]:
        """The scores of the other categories of a group, which are learnt from these rows."""
        layout, weights = inputs.layout, inputs.weights
        factors = [inputs.factors[other] for other in others_of(layout, number)]
        columns = [inputs.columns[j] for j in self._binned(layout, inputs.covariates)]
        edges = [bin_edges(column, weights) for column in columns]
        binned = [bin_codes(column, own) for column, own in zip(columns, edges, strict=True)]
        categories = [*map(_category, factors), *binned]
        described = _described(inputs)
        if not categories or number not in described:
            return []
        factor = inputs.factors[number]
        place = pooled_positions(_weights(factor, weights), self.min_frequency)
        own = Category(np.append(place, -1)[factor.codes], int(place.max()) + 1)
        n_levels = len(np.unique(place[_weights(factor, weights) > 0]))
        most = min(self.n_scores, self.max_columns // len(described), n_levels // 2)
        found = score_categories(own, categories, weights, n_scores=max(most, 1)).scores
        names = [f"share{j + 1}" for j in range(found[0].shape[1])]
        tables = [
            Representation.from_values(
                factor.levels, scores, names, weight=_weights(factor, weights), prior=np.zeros(len(names))
            )
            for factor, scores in zip(factors, found, strict=False)
        ]
        return [*tables, *map(BinScores, edges, found[len(factors) :])]

    def _scored(self, inputs: Inputs, number: int, *, with_rows: bool = True) -> Inputs:
        """Rows of one group whose covariates are the scores of the row's other categories.

        They are those of a table that has the columns of the group and the scores.
        """
        layout, group = inputs.layout, self.layout_.group_names(self.layout_.names)[number]
        tables = self.scores_[group]
        names = [layout.names[position] for position in layout.groups[number]]
        first, n_scores = len(names), _n_scores(tables)
        scores = self._row_scores(inputs, number, tables) if with_rows and n_scores else None
        names += [f"share{j + 1}" for j in range(n_scores)]
        places = range(first, len(names))
        return Inputs(
            ArrayTable(np.empty((inputs.table.n_rows, 0)), tuple(names)),
            Layout(tuple(names), (tuple(range(first)),), tuple(places), (), ()),
            (inputs.factors[number],),
            tuple(map(Covariate, places)),
            () if scores is None else tuple(scores.T),
            inputs.weights,
        )

    def _row_scores(
        self, inputs: Inputs, number: int, tables: Sequence[Representation | BinScores]
    ) -> Floats:
        """The scores of each row, given those of the levels of its other categories; (n, n_scores)."""
        covariates, known = known_columns(self, inputs)
        factors = [inputs.factors[other] for other in others_of(inputs.layout, number)]
        columns = [known[j] for j in self._binned(inputs.layout, covariates)]
        levels = [table for table in tables if isinstance(table, Representation)]
        bins = [table for table in tables if isinstance(table, BinScores)]
        categories = [
            *map(_category, factors),
            *(bin_codes(column, table.edges) for column, table in zip(columns, bins, strict=True)),
        ]
        scores = [
            dense_values(table.lookup(factor.levels.tolist()))
            for table, factor in zip(levels, factors, strict=True)
        ]
        return sum_of_scores(categories, [*scores, *(table.scores for table in bins)])

    def _averages(self, scored: Inputs) -> MeansEncoder:
        """The encoder of the means of the scores, not fitted."""
        names = scored.layout.names
        group = tuple(names[position] for position in scored.layout.groups[0])
        encoder = MeansEncoder(
            [group],
            remainder="drop",
            unseen=self.unseen,
            missing=self.missing,
            min_frequency=self.min_frequency,
            shrinkage="auto",
            leave_one_out=True,
        )
        encoder.n_features_in_, encoder.feature_names_in_ = len(names), np.asarray(names, dtype=object)
        return encoder

    def _join(self) -> None:
        """Set the tables of all groups, and the output columns."""
        self.representations_, self.outputs_ = {}, []
        names = self.layout_.names
        for number, (group, moments) in enumerate(self.moments_.items()):
            own = self.layout_.groups[number]
            outputs = [OutputColumn(own, f"share{j + 1}") for j in range(_n_scores(self.scores_[group]))]
            self.outputs_ += outputs
            values, prior = np.empty((moments.n_levels, 0)), np.empty(0)
            if group in self.encoders_:
                averages = self.encoders_[group].representations_[group]
                values, prior = dense_values(averages.lookup(moments.levels.tolist())), averages.prior
            self.representations_[group] = Representation.from_values(
                moments.levels,
                values,
                [column.name(names) for column in outputs],
                weight=moments.weight,
                prior=prior,
                group=[names[position] for position in own],
            )
        self._refuse_clashing_names()


def others_of(layout: Layout, number: int) -> list[int]:
    """The other groups that share no column with one."""
    own = set(layout.groups[number])
    return [j for j, columns in enumerate(layout.groups) if not own.intersection(columns)]


def _described(inputs: Inputs) -> list[int]:
    """The groups that get columns."""
    n_levels = [np.count_nonzero(_weights(factor, inputs.weights)) for factor in inputs.factors]
    large = [j for j, number in enumerate(n_levels) if number > _MOST_FEW]
    return large or [*range(len(inputs.factors))]


def _category(factor: Factor) -> Category:
    return Category(factor.codes, len(factor.levels))


def _weights(factor: Factor, weights: Floats | None) -> Floats:
    """The weight of each level."""
    return np.bincount(factor.codes + 1, weights, len(factor.levels) + 1)[1:].astype(np.float64)


def _n_scores(tables: Sequence[Representation | BinScores]) -> int:
    if not tables:
        return 0
    first = tables[0]
    return int((first.scores if isinstance(first, BinScores) else first.values).shape[1])
