"""The encoder to use when in doubt: it chooses."""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import is_regressor

from sufrep._accumulate import check_squares
from sufrep._sklearn import HasMethods, Interval, StrOptions
from sufrep._splits import ordered_folds
from sufrep.encoders._base import TARGET_CONSTRAINTS, GroupEncoder, Needs
from sufrep.encoders._inputs import copy_input_names, find_levels
from sufrep.encoders._new_levels import add_moments, learn_levels
from sufrep.encoders._sharing import own_inputs
from sufrep.encoders._sufficient_search import (
    CHANCE_ROWS,
    ComponentSearch,
    Progress,
    Tried,
    counted_folds,
    make_choice_data,
    whole_levels,
    without_convergence_warnings,
)
from sufrep.encoders._target import split_rows
from sufrep.encoders._times import ORDERED, follows_time, is_ordered
from sufrep.errors import NoLevelError
from sufrep.representation import Representation, dense_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sufrep._arrays import Codes, Floats, Levels
    from sufrep._frames import Factor, Lookup
    from sufrep.encoders._inputs import Column, Inputs
    from sufrep.encoders._sufficient_search import ChoiceData

# Small samples are split into more folds, or several times.
_FEW_FOLDS, _MANY_FOLDS = 3, 10
_MOST_REPEATS = 3

# Tree learners, which compare the encodings, compute in single precision.
_LARGEST = 1e30


@dataclass(eq=False, repr=False, kw_only=True)
class SufficientEncoder(GroupEncoder):
    """Choose the representation that predicts the target best, by cross-validation in the training rows.

    Where the level acts only through a hidden state, its states or the means of the covariates lose nothing.
    On real data that may hold, partly hold, or fail; so candidates of every kind are tried with a fast
    learner, alone, in pairs and in triples, and the best is fitted to all rows:

    ====================  =================================================================================
    drop                  no encoding: the column is dropped
    target                the level's mean of the target, shrunk and cross-fitted
    mixed_model           `MixedModelEncoder`
    local_effect          `LocalEffectEncoder`
    local_fit             the same with ``output="fit"``
    means                 means of the covariates, in training without the row itself
    intercept             `RandomInterceptEncoder`
    states                `LatentStateEncoder`, level and row
    shrunken_means        `MeansEncoder` with ``shrinkage="auto"``
    joint_means           the same with the target as one more covariate, cross-fitted
    one_hot               indicators, for at most 200 levels
    low_rank              `LowRankEncoder` of the shrunken means
    ====================  =================================================================================

    Of the candidates whose loss is within one standard error of the smallest (of the difference, paired by
    row), the one with the fewest components is chosen, and among those the best; dropping the column has
    none. With fewer than 2,000 rows the choice among encodings is mostly chance. Unless dropping is chosen,
    two predictions and two descriptions together, ``local_fit + mixed_model + low_rank + states``, are then
    preferred, if they are at most two standard errors behind the smallest loss and one behind dropping.
    Because the smallest of many losses is too optimistic, the choice must otherwise also gain on rows that
    did not take part in it: in each fold, with the candidate that is best on the other folds.

    All columns that use the target are cross-fitted in ``fit_transform``, so that they do not depend on the
    row's own target, except through the choice itself, which is made on all rows. With ``cv="ordered"``, the
    same holds for later targets.

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
        all that levels share as it was learnt (codings, ranks and local effects use the prior
        instead); an average vector (usually the weighted mean of the level vectors); or an error.
    missing : {"level", "prior", "error"}, default="level"
        How a null in the group column is treated: as a level of its own, as an unseen level, or as an error.
    min_frequency : int or float, default=None
        Levels with fewer rows (or a smaller share of the rows) are pooled into one before encoding, if there
        are at least two of them.
    estimator : estimator or None, default=None
        The learner that candidates are judged with: a regressor, or a classifier (by −log P if it has
        ``predict_proba``). None is scikit-learn's histogram gradient boosting with half the default rounds.
    max_candidates : int or None, default=None
        Maximum number of candidates to try, in the order above, then pairs and triples; None tries all,
        at most 21.
    max_rows : int, default=100000
        Maximum number of rows that the choice is made on, those of whole levels sampled at random; the time
        of a fit is roughly proportional to it. Fewer levels are easier to distinguish by their covariates, so
        a choice made on some of them favours the covariates. The chosen encoders are fitted to all rows.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes, unless a regressor is
        given as ``estimator``.
    cv : "auto", int, splitter, iterable of (train, test) or "ordered", default="auto"
        Folds that candidates are compared on; a splitter is given the rows that the choice is made on. "auto"
        means 3 folds, and 10 with fewer than 2,000 rows, because small levels lose too much information if a
        third of their rows is left out. With an integer and fewer than 2,000 rows, rows are split once or
        twice more, to reduce the role of chance. With "ordered", candidates are judged on rows that are later
        than those they are fitted to, by ``time``, and so are the components in ``fit_transform``: rows are
        cut into at most 10 blocks of about the same size, ties together, and a block is encoded with what all
        blocks before it say; the first one gets what is known before any target. scikit-learn's
        `TimeSeriesSplit` does the same by the position of the rows.
    time : str or int, default=None
        The column of X that says when each row happened, for ``cv="ordered"``: numbers, dates, or ISO text.
        With a `TimeSeriesSplit`, rows are checked to be in the order of this column. It passes through like
        any other column and, if it is numeric, is a covariate unless ``covariates`` leaves it out.
    verbose : int, default=0
        1 shows progress, 2 shows a line for each candidate.
    random_state : int, default=0
        Seed of folds, samples and learners.

    Attributes
    ----------
    representations_ : dict of str to Representation
        The table of each group.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Their names, if X has any.
    chosen_ : tuple of str
        The components that were chosen; empty if the column is dropped.
    encoders_ : dict of str to encoder
        The fitted components.
    report_ : dict of str to list
        The candidates in the order they were tried: ``candidate``, ``loss`` (mean squared error, or −log P),
        ``gain`` over dropping the column and its ``standard_error``, ``n_columns``, ``chosen``. Use
        ``pd.DataFrame(encoder.report_)`` to look at it.
    target_type_ : str
        The kind of target that was found.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from sufrep import SufficientEncoder, simulate
    >>> sample = simulate("latent_linear", n=1200, n_latent=3, levels_per_latent=10)
    >>> X = pd.DataFrame(sample.columns())
    >>> tree = DecisionTreeRegressor(min_samples_leaf=10, random_state=0)
    >>> encoder = SufficientEncoder("group", estimator=tree, cv=3, max_candidates=8).fit(X, sample.y)
    >>> encoder.report_["candidate"]
    ['drop', 'target', 'mixed_model', 'local_effect', 'local_fit', 'means', 'intercept', 'states']
    >>> encoder.chosen_
    ('states',)
    """

    estimator: Any = None
    max_candidates: int | None = None
    max_rows: int = 100_000
    target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto"
    cv: Any = "auto"
    time: Column | None = None
    verbose: int = 0
    random_state: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        **TARGET_CONSTRAINTS,
        "estimator": [HasMethods(["fit", "predict"]), None],
        "max_candidates": [Interval(Integral, 1, None, closed="left"), None],
        "max_rows": [Interval(Integral, 2, None, closed="left")],
        "verbose": ["verbose"],
        "cv": ["cv_object", StrOptions({"auto", ORDERED})],
    }

    @property
    def _needs(self) -> Needs:
        # A regressor needs a continuous target, whatever the target looks like.
        regression = self.estimator is not None and is_regressor(self.estimator)
        return Needs(
            rows=True,
            covariates="optional",
            target="response",
            target_type="continuous" if self.target_type == "auto" and regression else self.target_type,
            own_covariates=True,
        )

    def _learn(self, inputs: Inputs) -> None:
        """Choose the components, and fit them to all rows."""
        counts = slice(None) if inputs.weights is None else inputs.weights > 0
        for group, factor in zip(self._group_names(inputs), inputs.factors, strict=True):
            if (factor.codes[counts] < 0).all():
                raise NoLevelError(group)
        for covariate, column in zip(inputs.covariates, inputs.columns, strict=True):
            check_squares(covariate.name(inputs.layout.names), column[counts], largest=_LARGEST)
        if inputs.target is not None and inputs.target.kind == "continuous":
            response = inputs.target.columns[0][counts]
            check_squares("target", response, smallest=1 / _LARGEST, largest=_LARGEST)
        times = inputs.times
        if follows_time(self.cv) and not is_ordered(self.cv):
            times = np.arange(inputs.table.n_rows)  # the position of the rows is their time
        data = make_choice_data(inputs, times)
        self.layout_, self.covariates_, self.target_type_ = inputs.layout, list(inputs.covariates), data.kind
        self._choose(data, n_groups=len(inputs.factors))
        with without_convergence_warnings():
            for component in self.encoders_.values():
                copy_input_names(self, component)
                component._learn(own_inputs(component, inputs))
        # What `drift` compares new rows with, also if the column is dropped.
        _, self.moments_ = self._collect(inputs)
        groups = zip(self._group_names(inputs), inputs.factors, strict=True)
        self._join({group: _level_weights(inputs, factor) for group, factor in groups})

    def learn_levels(self, X: Any, y: Any = None) -> Self:
        """Return an encoder that knows the new levels of these rows too, without another fit.

        The components that can estimate new levels learn them; to the others they stay unseen. See
        `MeansEncoder.learn_levels`.
        """
        inputs = self._read_levels(X, y)
        learnt = copy(self)
        learnt.encoders_ = {
            name: learn_levels(component, own_inputs(component, inputs))
            for name, component in self.encoders_.items()
        }
        learnt.moments_ = add_moments(self, inputs)
        learnt._join({group: (found.levels, found.weight) for group, found in learnt.moments_.items()})
        return learnt

    def _lookups(self, inputs: Inputs, *, training: bool) -> list[Lookup]:
        """The columns of each component in turn."""
        if self.unseen == "error" and not training:  # a column that is dropped may hold new levels too
            for group, factor in zip(self._group_names(inputs), inputs.factors, strict=True):
                find_levels(self.representations_[group], factor, group, self.unseen)
        with without_convergence_warnings():
            parts = [
                component._lookups(own_inputs(component, inputs), training=training)
                for component in self.encoders_.values()
            ]
        return [*chain.from_iterable(parts)]

    def _group_names(self, inputs: Inputs) -> list[str]:
        return inputs.layout.group_names(inputs.layout.names)

    def _choose(self, data: ChoiceData, *, n_groups: int) -> None:
        """Set what was tried and chosen, and the chosen components, not yet fitted."""
        search = self._search(data)
        progress = Progress(self.verbose)
        tried = search.run(
            self.max_candidates if n_groups else 1,
            lambda item, most: progress(item, most, search.mean(item.losses)),
        )
        progress.close()
        chosen = search.best(tried)
        self.chosen_, self.report_ = chosen.candidate, _report(tried, chosen, search.mean, search.gain)
        own = {"covariates": self.covariates, "categorical_covariates": self.categorical_covariates}
        self.encoders_: dict[str, GroupEncoder] = {
            name: search.encoder(name, **own).set_params(
                group=self.group, missing=self.missing, unseen=self.unseen
            )
            for name in chosen.candidate
        }
        if follows_time(self.cv):
            for component in self.encoders_.values():
                if component._needs.uses_target:
                    component.set_params(cv=self.cv, time=self.time)

    def _search(self, data: ChoiceData) -> ComponentSearch:
        """The rows that the choice is made on, and their folds."""
        if isinstance(self.cv, (str, Integral)) and data.weights is not None:
            # Rows with weight 0 are ignored; folds that were given may contain them.
            data = data.take(np.flatnonzero(data.weights > 0))
        p = data.n_covariates
        codes = np.zeros(len(data.y), dtype=np.intp)
        if data.rows.shape[1] > p:  # with several groups, the one with most levels
            largest = int(np.argmax(np.nanmax(data.rows[:, p:], axis=0)))
            codes = np.nan_to_num(data.rows[:, p + largest], nan=-1.0).astype(np.intp)
        rows = whole_levels(codes, self.max_rows, self.random_state)
        data = data.take(rows)
        return ComponentSearch(
            data,
            counted_folds(self._folds(data), data.weights),
            self.estimator,
            {"min_frequency": self.min_frequency},
            self.random_state,
        )

    def _folds(self, data: ChoiceData) -> list[tuple[Codes, Codes]]:
        """The folds that candidates are compared on."""
        n_rows, seed = len(data.y), self.random_state
        n_folds = _MANY_FOLDS if n_rows < CHANCE_ROWS else _FEW_FOLDS
        if data.times is not None:  # the first block has nothing to learn from
            folds = (
                ordered_folds(data.times, n_folds + 1)
                if is_ordered(self.cv)
                else split_rows(self.cv, n_rows, data.y, seed, first_rows=True)
            )
            return folds[1:]
        if isinstance(self.cv, str):
            return split_rows(n_folds, n_rows, data.y, seed)
        n_repeats = 1  # a splitter may not be random
        if isinstance(self.cv, Integral):
            n_repeats = min(_MOST_REPEATS, -(-CHANCE_ROWS // max(n_rows, 1)))
        return [
            fold for repeat in range(n_repeats) for fold in split_rows(self.cv, n_rows, data.y, seed + repeat)
        ]

    def _join(self, groups: Mapping[str, tuple[Levels, Floats]]) -> None:
        """Put the tables of all components next to each other, given the levels and their weights."""
        self.representations_, components = {}, self.encoders_
        for group, (levels, weight) in groups.items():
            tables = {name: component.representations_[group] for name, component in components.items()}
            self.representations_[group] = Representation.from_values(
                levels,
                np.hstack(
                    [
                        np.empty((len(levels), 0)),
                        *(dense_values(table.lookup(levels.tolist())) for table in tables.values()),
                    ]
                ),
                _distinct_columns(tables),
                weight=weight,
                prior=np.concatenate([np.empty(0), *(table.prior for table in tables.values())]),
            )
        self.outputs_ = [*chain.from_iterable(component.outputs_ for component in components.values())]
        self._refuse_clashing_names()


def _level_weights(inputs: Inputs, factor: Factor) -> tuple[Levels, Floats]:
    """The levels that have rows, and their weights."""
    weight = np.bincount(factor.codes + 1, inputs.weights, minlength=len(factor.levels) + 1)[1:]
    return factor.levels[weight > 0], weight[weight > 0].astype(np.float64)


def _report(
    tried: Sequence[Tried],
    chosen: Tried,
    mean: Callable[[Floats], float],
    gain: Callable[[Floats, Floats], tuple[float, float]],
) -> dict[str, list[Any]]:
    gains = [gain(tried[0].losses, item.losses) for item in tried]
    return {
        "candidate": [" + ".join(item.candidate) or "drop" for item in tried],
        "loss": [mean(item.losses) for item in tried],
        "gain": [value for value, _ in gains],
        "standard_error": [error for _, error in gains],
        "n_columns": [item.n_columns for item in tried],
        "chosen": [item is chosen for item in tried],
    }


def _distinct_columns(tables: Mapping[str, Representation]) -> list[str]:
    """Names of the columns of all tables, with the component where two names would be the same."""
    times = Counter(chain.from_iterable(table.columns for table in tables.values()))
    return [
        column if times[column] == 1 else f"{column} ({component})"
        for component, table in tables.items()
        for column in table.columns
    ]
