"""The encoder to use when in doubt: it decides."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Integral
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_classifier, is_regressor

from sufrep._accumulate import check_squares
from sufrep._sklearn import HasMethods, Interval
from sufrep._splits import spread_folds
from sufrep._threads import one_thread
from sufrep.encoders._base import SAMPLE_CONSTRAINTS, TARGET_CONSTRAINTS, GroupEncoder, Needs
from sufrep.encoders._inputs import copy_input_names, find_levels, with_roles
from sufrep.encoders._judging import (
    CANDIDATES,
    COMPONENTS,
    DROP,
    FAMILIES,
    JudgedRows,
    Learner,
    judge,
    suitable_groups,
    whole_levels,
    without_convergence_warnings,
)
from sufrep.encoders._new_levels import add_moments, learn_levels
from sufrep.encoders._sharing import own_inputs
from sufrep.encoders._times import follows_time, training_folds
from sufrep.errors import InvalidParameterError, NoLevelError, UninformativeGroupWarning, check_name, warn
from sufrep.representation import Representation, dense_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._arrays import Codes, Floats, Levels
    from sufrep._frames import Factor, Lookup
    from sufrep.encoders._inputs import Column, Inputs
    from sufrep.encoders._judging import Fold, Judgement
    from sufrep.encoders._target import Target

# Tree learners, which judge the encodings, compute in single precision.
_LARGEST = 1e30


@dataclass(eq=False, repr=False, kw_only=True)
class SufficientEncoder(GroupEncoder):
    """Describe the levels, predict their targets, do both or neither: whatever predicts the target best.

    Where the level acts only through a hidden state, a description of its covariates loses nothing. On real
    data that may hold, partly hold, or fail, and then a prediction of the target by level adds what is
    missing:

    ===========  ==============  =============================================================================
    description  means           `MeansEncoder` with ``shrinkage="auto"``
    description  states          `LatentStateEncoder`, level and row
    prediction   target_mean     the level's mean of the target, shrunk
    prediction   mixed_model     `MixedModelEncoder`
    prediction   local_effect    `LocalEffectEncoder`, effect and fit
    ===========  ==============  =============================================================================

    With several groups, the target means become effects that are net of each other, and other groups are
    covariates, too (what needs covariates is left out where there are none):

    ===========  ==============  =============================================================================
    description  shares          `SharesEncoder`: the level's shares over the other groups
    description  indicators      one-hot columns of groups with at most 30 levels
    prediction   effects         `CrossedEffectsEncoder`, in place of ``target_mean``
    prediction   cells           `CellsEncoder`: mean targets of levels and of combinations of groups
    ===========  ==============  =============================================================================

    In each fold, both kinds are fitted to the rows outside it and cross-fitted there once more; the learner
    is fitted with neither, either or both of them, and its loss is measured on the rows of the fold, which
    took no part in anything. (The squared error of a row counts for at most four times the mean.) Candidates
    that are clearly behind after some folds leave, and the one with the smallest loss is chosen. If it does
    not gain more than one standard error, clustered by level, on dropping the column, the column is dropped,
    with an `UninformativeGroupWarning`. Of several groups, those are dropped whose levels may be permuted
    among the rows held out for no more than one standard error, if the loss without them is not larger by
    more than that, either.

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
        all that levels share as it was learnt (codings, ranks, cells and local effects use the prior
        instead); an average vector (usually the weighted mean of the level vectors); or an error.
    missing : {"level", "prior", "error"}, default="level"
        How a null in the group column is treated: as a level of its own, as an unseen level, or as an error.
    min_frequency : int or float, default=None
        Levels with fewer rows (or a smaller share of the rows) are pooled into one before encoding, if there
        are at least two of them.
    sample_rows : int, default=None
        If X is a lazy frame: about how many of its rows to learn from. Large levels give as many rows each,
        and small ones all of theirs.
    sample_by : str or int, default=None
        The column whose values decide which rows these are, by a hash: an identifier. By default all columns
        decide, and rows with the same values are in the sample together.
    estimator : estimator or None, default=None
        The learner that candidates are judged by: a regressor, or a classifier (by −log P if it has
        ``predict_proba``). It should be the one that is used afterwards. None is scikit-learn's histogram
        gradient boosting with small trees, which stops early. A saved encoder keeps the name of its learner:
        once loaded it encodes, and is fitted again only with another ``estimator``.
    families : sequence of {"description", "prediction"}, default=("description", "prediction")
        Which of the two kinds of components may be chosen. ``("description",)`` uses the target for the
        choice only.
    max_rows : int, default=50000
        Maximum number of rows that the choice is made on, those of whole levels sampled at random. Fewer
        levels are easier to distinguish by their covariates, so a choice made on some of them favours
        descriptions. The chosen components are fitted to all rows.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes, unless a regressor is
        given as ``estimator``.
    cv : int, splitter, iterable of (train, test) or "ordered", default=5
        Folds that candidates are judged on, and that ``fit_transform`` cross-fits with; every row must be in
        one test fold. An integer makes folds with as equal parts of each level as possible.
        With "ordered", columns that depend on the target are learnt from earlier rows only, and candidates
        judged on later ones: rows are cut by ``time`` into at most 10 blocks of about the same size, ties
        together, and a block is encoded with what all blocks before it say; the first one gets what is known
        before any target. scikit-learn's `TimeSeriesSplit` does the same by the position of the rows.
    time : str or int, default=None
        The column of X that says when each row happened, for ``cv="ordered"``: numbers, dates, or ISO text.
        With a `TimeSeriesSplit`, rows are checked to be in the order of this column. It passes through like
        any other column and, if it is numeric, is a covariate unless ``covariates`` leaves it out.
    n_jobs : int or None, default=None
        Number of folds to judge, and of components to fit, at the same time; None is 1, −1 all processors.
        The result does not depend on it.
    verbose : int, default=0
        1 shows progress.
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
    report_ : dict
        What the choice is based on: ``summary``, the choice and its reason in words; ``candidates`` and
        ``components``, dicts of lists for ``pd.DataFrame``. The former has for each ``candidate`` its
        ``loss`` on the rows that it was judged on (mean squared error, −log P, or the share of errors of a
        classifier without probabilities), the ``gain`` over dropping the column, in which the losses of
        single rows are limited, its ``standard_error``, both as shares of the loss without the column
        (``relative_gain``, ``relative_error``), ``n_rows``, ``n_columns`` and ``chosen``. The latter
        has for each ``component`` of the chosen candidate the ``loss`` if its columns are shuffled among the
        rows held out, its ``contribution``, which is how much larger that is, and its ``standard_error``.
        ``groups``, empty if there is one, has the same for each ``group`` whose levels are permuted, and
        whether it is kept (``chosen``).
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
    >>> encoder = SufficientEncoder("group", estimator=tree, cv=3).fit(X, sample.y)
    >>> encoder.report_["candidates"]["candidate"]
    ['drop', 'description', 'prediction', 'both']
    >>> encoder.report_["summary"].partition(" by ")[0]
    'The column is encoded'
    """

    estimator: Any = None
    families: Sequence[Literal["description", "prediction"]] = ("description", "prediction")
    max_rows: int = 50_000
    target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto"
    cv: Any = 5
    time: Column | None = None
    n_jobs: int | None = None
    verbose: int = 0
    random_state: int = 0
    sample_rows: int | None = None
    sample_by: Column | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEncoder._parameter_constraints,
        **SAMPLE_CONSTRAINTS,
        **TARGET_CONSTRAINTS,
        "estimator": [HasMethods(["fit", "predict"]), str, None],
        "families": [list, tuple],
        "max_rows": [Interval(Integral, 2, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    @property
    def _needs(self) -> Needs:
        # A regressor needs a continuous target, whatever the target looks like.
        regression = hasattr(self.estimator, "predict") and is_regressor(self.estimator)
        return Needs(
            rows=True,
            covariates="optional",
            target="response",
            target_type="continuous" if self.target_type == "auto" and regression else self.target_type,
            own_covariates=True,
            joint=True,
        )

    def _learn(self, inputs: Inputs) -> None:
        """Choose the components, and fit them to all rows."""
        self._check(inputs)
        self.layout_, self.covariates_ = inputs.layout, list(inputs.covariates)
        self.target_type_ = _target(inputs).kind
        found = self._choose(inputs)
        self.chosen_ = tuple(found.components)
        self.report_ = _report(found, self._group_names(inputs))
        dropped = [
            name for number, name in enumerate(self._group_names(inputs)) if number not in found.groups
        ]
        if dropped:
            names = ", ".join(map(repr, dropped))
            warn(
                f"No column is made of {names}. {self.report_['summary']}\n"
                "Hint: report_ has the losses; other encoders, such as MeansEncoder, always make columns.",
                UninformativeGroupWarning,
            )
        tasks = (delayed(_fitted)(component, self, inputs) for component in found.components.values())
        self.encoders_: dict[str, GroupEncoder] = dict(
            zip(self.chosen_, Parallel(n_jobs=self.n_jobs)(tasks), strict=True)
        )
        # What `drift` compares new rows with, also if the column is dropped.
        self.moments_ = with_roles(self._collect(inputs)[1], self.layout_, self.covariates_, self)
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
        if training:
            inputs = replace(inputs, folds=self._folds(inputs))
        # What unseen levels get may have been changed since fit.
        components = [copy(part).set_params(unseen=self.unseen) for part in self.encoders_.values()]
        tasks = (delayed(_columns)(part, inputs, training=training) for part in components)
        return [*chain.from_iterable(Parallel(n_jobs=self.n_jobs if training else 1)(tasks))]

    def _group_names(self, inputs: Inputs) -> list[str]:
        return inputs.layout.group_names(inputs.layout.names)

    def _check(self, inputs: Inputs) -> None:
        """Refuse groups without a level, learners for another target, and numbers that they cannot use."""
        if isinstance(self.estimator, str):
            expected = (
                "a learner, or None; a saved encoder keeps only the name of the one that judged it, and "
                "needs one for another fit, as in set_params(estimator=…)"
            )
            raise InvalidParameterError("estimator", self.estimator, expected)
        if isinstance(self.cv, Iterator):
            raise InvalidParameterError("cv", self.cv, "a list of folds, because a generator works only once")
        continuous = _target(inputs).kind == "continuous"
        if self.estimator is not None and (is_classifier if continuous else is_regressor)(self.estimator):
            wanted = "a regressor for numbers" if continuous else "a classifier for classes"
            raise InvalidParameterError("estimator", self.estimator, f"{wanted}, or another target_type")
        counts = slice(None) if inputs.weights is None else inputs.weights > 0
        for group, factor in zip(self._group_names(inputs), inputs.factors, strict=True):
            if (factor.codes[counts] < 0).all():
                raise NoLevelError(group)
        for covariate, column in zip(inputs.covariates, inputs.columns, strict=True):
            check_squares(covariate.name(inputs.layout.names), column[counts], largest=_LARGEST)
        if _target(inputs).kind == "continuous":
            response = _target(inputs).columns[0][counts]
            check_squares("target", response, smallest=1 / _LARGEST, largest=_LARGEST)

    def _components(self, inputs: Inputs, groups: Sequence[int] | None = None) -> dict[str, GroupEncoder]:
        """The components that make sense for some groups of these rows, not fitted; none if there is none."""
        own_groups = range(len(inputs.factors)) if groups is None else groups
        shared = {
            "covariates": self.covariates,
            "categorical_covariates": self.categorical_covariates,
            "remainder": "drop",
            "unseen": self.unseen,
            "missing": self.missing,
            "min_frequency": self.min_frequency,
            "random_state": self.random_state,
            "target_type": self.target_type_,
        }
        found: dict[str, GroupEncoder] = {}
        allowed = {name for family in self._families() for name in FAMILIES[family]}
        for name, (kind, own) in COMPONENTS.items():
            suitable = suitable_groups(name, inputs, own_groups)
            if name not in allowed or not suitable:
                continue
            known = {key: value for key, value in shared.items() if key in kind._parameter_constraints}
            every = list(suitable) == list(range(len(inputs.factors)))
            group = self.group if every else [_as_group(inputs, number) for number in suitable]
            found[name] = kind(**{"group": group, **known, **own})
            if follows_time(self.cv) and found[name]._needs.uses_target:
                found[name].set_params(cv=self.cv, time=self.time)
        return found

    def _families(self) -> list[str]:
        """The families that may be chosen."""
        for family in self.families:
            check_name("families", family, FAMILIES)
        return list(self.families)

    def _choose(self, inputs: Inputs) -> _Choice:
        """Decide about the families of components, and then about each of several groups."""
        components, rows = self._components(inputs), self._judged_rows(inputs)
        learner = Learner(self.estimator, self.target_type_, self.random_state)
        judgement = self._judge(rows, components, learner)
        chosen, groups = judgement.chosen(), list(range(len(inputs.factors)))
        if chosen != DROP and judgement.permuted:
            useful = judgement.useful_groups(chosen)
            fewer = self._components(inputs, useful)
            if len(useful) < len(groups) and any(part in fewer for part in CANDIDATES[chosen]):
                without = self._judge(rows, fewer, learner, only=chosen)
                if not judgement.is_better(chosen, without):
                    components, groups = fewer, useful
        parts = {name: components[name] for name in CANDIDATES[chosen] if name in components}
        return _Choice(judgement, chosen, parts, groups if parts else [])

    def _judged_rows(self, inputs: Inputs) -> JudgedRows:
        """The rows that decisions are made on: some of them if there are many."""
        counted = np.arange(inputs.table.n_rows)
        if inputs.weights is not None:
            counted = np.flatnonzero(inputs.weights > 0)
        rows = counted[whole_levels(_most_levels(inputs)[counted], self.max_rows, self.random_state)]
        position = np.full(inputs.table.n_rows, -1)
        position[rows] = np.arange(len(rows))
        parts = [tuple(position[part][position[part] >= 0] for part in fold) for fold in self._folds(inputs)]
        return JudgedRows(
            inputs.take(rows),
            _features(inputs)[rows],
            _target(inputs).values()[rows],
            [(train, test) for train, test in parts if len(train) and len(test)],
            in_time=follows_time(self.cv),
        )

    def _judge(
        self,
        rows: JudgedRows,
        components: Mapping[str, GroupEncoder],
        learner: Learner,
        *,
        only: str | None = None,
    ) -> Judgement:
        if self.unseen == "error":  # a level may be in one fold only
            components = {
                name: copy(component).set_params(unseen="prior") for name, component in components.items()
            }
        progress = _Progress(self.verbose)
        found = judge(rows, components, learner, only=only, n_jobs=self.n_jobs, report=progress)
        progress.close()
        return found

    def _folds(self, inputs: Inputs) -> list[Fold]:
        """The folds of judging and cross-fitting; none for a single row."""
        n_rows, seed = inputs.table.n_rows, self.random_state
        if not isinstance(self.cv, Integral):
            return training_folds(self.cv, n_rows, _target(inputs).raw, seed, inputs.times)
        # Rows with weight 0 are ignored, and encoded like those of the first fold.
        ignored = np.zeros(n_rows, dtype=bool) if inputs.weights is None else inputs.weights <= 0
        counted = np.flatnonzero(~ignored)
        if len(counted) < 2:
            return []
        folds = spread_folds(_most_levels(inputs)[counted], int(self.cv), seed)
        found = [(counted[train], counted[test]) for train, test in folds]
        train, test = found[0]
        return [(train, np.sort(np.append(test, np.flatnonzero(ignored)))), *found[1:]]

    def _join(self, groups: Mapping[str, tuple[Levels, Floats]]) -> None:
        """Put the tables of all components next to each other, given the levels and their weights."""
        self.representations_, components = {}, self.encoders_
        names = self.layout_.names
        columns = {
            ":".join(names[position] for position in positions): [names[position] for position in positions]
            for positions in self.layout_.groups
        }
        for group, (levels, weight) in groups.items():
            tables = {
                name: component.representations_[group]
                for name, component in components.items()
                if group in component.representations_
            }
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
                group=columns[group],
            )
        self.outputs_ = [*chain.from_iterable(component.outputs_ for component in components.values())]
        self._refuse_clashing_names()


def _target(inputs: Inputs) -> Target:
    if inputs.target is None:
        raise TypeError("the choice needs the target")
    return inputs.target


def _most_levels(inputs: Inputs) -> Codes:
    """The codes of the group with the most levels; (n,)."""
    if not inputs.factors:
        return np.zeros(inputs.table.n_rows, dtype=np.intp)
    return max(inputs.factors, key=lambda factor: len(factor.levels)).codes


def _features(inputs: Inputs) -> Floats:
    """All numbers but groups: what the learner gets in addition to the encoding; (n, n_features)."""
    table, layout = inputs.table, inputs.layout
    used = {position for columns in layout.groups for position in columns}
    others = [
        table.numbers(position)
        for position in range(len(table.names))
        if position not in used and position not in layout.covariates and table.kind(position) == "numeric"
    ]
    columns = [np.asarray(column, dtype=np.float64) for column in (*inputs.columns, *others)]
    return np.column_stack([np.empty((table.n_rows, 0)), *columns])


def _fitted(component: GroupEncoder, encoder: SufficientEncoder, inputs: Inputs) -> GroupEncoder:
    """A component, fitted to all rows."""
    copy_input_names(encoder, component)
    with one_thread(), without_convergence_warnings():
        component._learn(own_inputs(component, inputs))
    return component


def _columns(component: GroupEncoder, inputs: Inputs, *, training: bool) -> list[Lookup]:
    with one_thread(), without_convergence_warnings():
        return component._lookups(own_inputs(component, inputs), training=training)


def _level_weights(inputs: Inputs, factor: Factor) -> tuple[Levels, Floats]:
    """The levels that have rows, and their weights."""
    weight = np.bincount(factor.codes + 1, inputs.weights, minlength=len(factor.levels) + 1)[1:]
    return factor.levels[weight > 0], weight[weight > 0].astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """What was chosen.

    Attributes
    ----------
    judgement : Judgement
        Of all groups.
    candidate : str
    components : dict of str to encoder
        Those of the candidate, not fitted; empty if everything is dropped.
    groups : list of int
        The groups that they encode.
    """

    judgement: Judgement
    candidate: str
    components: Mapping[str, GroupEncoder]
    groups: Sequence[int]


def _as_group(inputs: Inputs, number: int) -> Any:
    """A group as users name it."""
    names = tuple(inputs.layout.names[position] for position in inputs.layout.groups[number])
    return names if len(names) > 1 else names[0]


def _report(choice: _Choice, groups: Sequence[str]) -> dict[str, Any]:
    """What was compared, what each component and each group contributes, and all that in words."""
    judgement, chosen, components = choice.judgement, choice.candidate, list(choice.components)
    names = list(judgement.losses)
    gains = [judgement.gain(name) for name in names]
    shares = [judgement.relative_gain(name) for name in names]
    added = [judgement.contribution(chosen, component) for component in components]
    by_group = [
        judgement.group_contribution(chosen, number)
        for number in range(len(groups) if judgement.permuted and components else 0)
    ]
    return {
        "summary": _summary(judgement, chosen, [groups[number] for number in choice.groups], groups),
        "candidates": {
            "candidate": names,
            "loss": [judgement.loss(name) for name in names],
            "gain": [gain for gain, _ in gains],
            "standard_error": [error for _, error in gains],
            "relative_gain": [float(gain) for gain, _ in shares],
            "relative_error": [float(error) for _, error in shares],
            "n_rows": [judgement.n_judged(name) for name in names],
            "n_columns": [judgement.n_columns[name] for name in names],
            "chosen": [name == chosen for name in names],
        },
        "components": {
            "component": components,
            "loss": [judgement.loss(chosen) + more for more, _ in added],
            "contribution": [more for more, _ in added],
            "standard_error": [error for _, error in added],
        },
        "groups": {
            "group": list(groups[: len(by_group)]),
            "loss": [judgement.loss(chosen) + more for more, _ in by_group],
            "contribution": [more for more, _ in by_group],
            "standard_error": [error for _, error in by_group],
            "chosen": [number in choice.groups for number in range(len(by_group))],
        },
    }


def _summary(judgement: Judgement, chosen: str, kept: Sequence[str], groups: Sequence[str]) -> str:
    """The choice and its reason, in words."""
    several = len(groups) > 1
    what = "The columns are" if several else "The column is"
    best = judgement.best()
    if best is None or not judgement.loss(DROP):
        return f"{what} dropped: there is nothing to judge an encoding by."
    gain, error = (100 * part for part in judgement.relative_gain(best))
    if np.isinf(error):
        return f"{what} dropped: {'each' if several else 'it'} has a single level among the rows held out."
    found = f"{gain:.1f} % (standard error {error:.1f} %)"
    words = {"description": "a description of its levels", "prediction": "a prediction by level"}
    if several:
        words = {"description": "a description of their levels", "prediction": "a prediction by level"}
    words["both"] = " and ".join(words.values())
    words["averages"] = "the mean targets of their levels and of combinations of these"
    if chosen != DROP:
        text = f"{what} encoded by {words[chosen]}: the loss on rows held out is smaller by {found}."
        left_out = [repr(name) for name in groups if name not in kept]
        if left_out:
            text += f" Without {', '.join(left_out)} the loss is not clearly larger."
        return text
    if gain <= 0:
        return f"{what} dropped: no encoding lowers the loss on rows held out."
    return (
        f"{what} dropped: the best encoding ({words[best]}) lowers the loss on rows held out by "
        f"{found}, which is not more than one standard error."
    )


def _distinct_columns(tables: Mapping[str, Representation]) -> list[str]:
    """Names of the columns of all tables, with the component where two names would be the same."""
    times = Counter(chain.from_iterable(table.columns for table in tables.values()))
    return [
        column if times[column] == 1 else f"{column} ({component})"
        for component, table in tables.items()
        for column in table.columns
    ]


class _Progress:
    """A growing line on a terminal, or a line of text for every fold."""

    def __init__(self, verbose: int) -> None:
        self._verbose, self._start = verbose, perf_counter()

    def __call__(self, done: int, n_folds: int) -> None:
        if self._verbose:
            text = (
                f"[SufficientEncoder] fold {done} of {n_folds} judged ({perf_counter() - self._start:.0f} s)"
            )
            start, end = ("\r", "") if sys.stderr.isatty() else ("", "\n")
            sys.stderr.write(f"{start}{text}{end}")
            sys.stderr.flush()

    def close(self) -> None:
        """End the growing line."""
        if self._verbose and sys.stderr.isatty():
            sys.stderr.write("\n")
