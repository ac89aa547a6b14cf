"""How `SufficientEncoder` decides: by the loss of a learner on rows that took no part in anything.

In each fold, the components are fitted to the rows outside it, cross-fitted there once more, and the learner
is fitted to their columns. The rows of the fold are then encoded as new rows, and predicted. So the columns
that are judged do not depend on the targets that they are judged by
(test_held_out_targets_do_not_move_the_columns_that_are_judged).
"""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.stats import t as student_t
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

from sufrep._frames import taken
from sufrep._splits import spread_folds
from sufrep._threads import one_thread
from sufrep.encoders._cells import CellsEncoder
from sufrep.encoders._classical import ContrastEncoder
from sufrep.encoders._crossed_effects import CrossedEffectsEncoder
from sufrep.encoders._inputs import MOST_SHARES
from sufrep.encoders._latent_state import LatentStateEncoder
from sufrep.encoders._level_models import LocalEffectEncoder, MixedModelEncoder
from sufrep.encoders._means import MeansEncoder
from sufrep.encoders._shares import SharesEncoder
from sufrep.encoders._sharing import own_inputs
from sufrep.errors import NoLevelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sufrep._arrays import Array, Codes, Floats
    from sufrep.encoders._base import GroupEncoder
    from sufrep.encoders._inputs import Inputs

# The components. A description says what a level is like, by covariates and other groups alone; a prediction
# says what its target will be, and is cross-fitted.
DESCRIPTION = ("means", "states", "shares", "indicators")
PREDICTION = ("target_mean", "effects", "cells", "mixed_model", "local_effect")
FAMILIES = {"description": DESCRIPTION, "prediction": PREDICTION}
COMPONENTS: dict[str, tuple[type[GroupEncoder], dict[str, Any]]] = {
    "means": (MeansEncoder, {"shrinkage": "auto"}),
    "states": (LatentStateEncoder, {"output": "both", "max_states": 10}),
    "shares": (SharesEncoder, {}),
    "indicators": (ContrastEncoder, {"coding": "one_hot"}),
    "target_mean": (MeansEncoder, {"covariates": [], "use_target": True}),
    "effects": (CrossedEffectsEncoder, {}),
    "cells": (CellsEncoder, {}),
    "mixed_model": (MixedModelEncoder, {}),
    "local_effect": (LocalEffectEncoder, {"output": "both"}),
}
_OF_COVARIATES, _OF_LEVEL_MODELS = ("means", "states"), ("mixed_model", "local_effect")
_OF_SEVERAL = ("shares", "effects", "cells")
DROP = "drop"
# What is compared: no column at all, one of the two kinds, or both. Of several groups, mean targets alone are
# simpler than all predictions, and better where groups are many and rows are few.
CANDIDATES: dict[str, tuple[str, ...]] = {
    DROP: (),
    "averages": ("cells",),
    **FAMILIES,
    "both": DESCRIPTION + PREDICTION,
}
# The default learner: small trees that are learnt fast, and no more of them than help.
_FAST = {"max_iter": 50, "learning_rate": 0.2, "max_leaf_nodes": 8, "n_iter_no_change": 5}
# It cannot tell values of a column apart that are in the same of so many parts with equally many rows.
_PARTS = 64
# In the choice, the squared error of a row counts as at most so many times the mean without the column.
# Otherwise a few that nothing predicts would decide (test_a_few_rows_that_nothing_predicts_do_not_decide).
# The log loss of a rare class is large for every model, and says most (test_rare_classes_count_in_full).
_MOST_LOSS = 4.0
# Relative difference in loss that an iterative learner may gain by stopping a little later.
_ROUNDING = 1e-6
# A candidate leaves the race if it is so far behind the best one that chance would do that this rarely.
_CLEARLY = 0.01
# Minimum number of whole levels to keep when there are too many rows.
_LEAST_LEVELS = 50

Fold = tuple["Codes", "Codes"]


def suitable_groups(component: str, inputs: Inputs, groups: Sequence[int]) -> list[int]:
    """The groups, of some, that a component is for: it has what it needs, and no other does it better."""
    several, groups = len(groups) > 1, list(groups)
    if component in _OF_COVARIATES or (several and component in _OF_LEVEL_MODELS):
        return groups if inputs.columns else []
    if component in _OF_SEVERAL:
        return groups if several else []
    if component == "indicators":
        few = [group for group in groups if len(inputs.factors[group].levels) <= MOST_SHARES]
        return few if several else []
    return [] if several and component == "target_mean" else groups  # effects are net of each other


@dataclass(frozen=True, slots=True, eq=False)
class Learner:
    """What judges columns.

    Attributes
    ----------
    estimator : estimator or None
        None is scikit-learn's histogram gradient boosting, which stops early.
    kind : {"continuous", "binary", "multiclass"}
        The kind of target.
    seed : int
    """

    estimator: Any
    kind: str
    seed: int

    def prepare(self, inside: Floats, *outside: Floats) -> tuple[Floats, ...]:
        """Return columns as `fit` and `Judge.losses` need them.

        Boosting cuts every column into parts, for each candidate once more; so its columns already are.
        """
        return (inside, *outside) if self.estimator is not None else in_parts(inside, *outside)

    def fit(self, columns: Floats, y: Array, weights: Floats | None) -> Judge:
        """Return the fitted model; columns of nulls must be left out before."""
        # Other encoders need no learner and do not load any (test_lazy_frames_load_no_learner).
        from sufrep._models import make_learner

        classes, scale = None, 1.0
        if self.kind != "continuous":  # some classifiers expect the classes 0, 1, … without a gap
            classes, y = np.unique(y, return_inverse=True)
        elif self.estimator is None:  # boosting stops early by an absolute gain
            scale = float(np.std(y)) or 1.0
            y = y / scale
        model = make_learner(
            self.estimator,
            classes=self.kind != "continuous",
            n_columns=columns.shape[1],
            y=y,
            random_state=self.seed,
            early_stopping=_can_stop_early(y, self.kind),
            **_FAST,
        )
        weighted = weights is not None and has_fit_parameter(model, "sample_weight")
        model.fit(columns, y, **({"sample_weight": weights} if weighted else {}))
        # A dummy in place of the estimator must be measured in the same way, so the estimator decides.
        probabilities = self.estimator is None or hasattr(self.estimator, "predict_proba")
        return Judge(model, classes, probabilities, scale)


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """A fitted learner.

    Attributes
    ----------
    model : estimator
    classes : ndarray, shape (n_classes,), or None
        The classes of its rows, which it knows by their positions; None for a continuous target.
    probabilities : bool
        Whether classes are judged by their probabilities.
    scale : float
        What the model's predictions of a continuous target are multiplied by.
    """

    model: Any
    classes: Array | None
    probabilities: bool
    scale: float = 1.0

    def losses(self, columns: Floats, y: Array) -> Floats:
        """Squared errors, −log P(class), or misclassifications if there are no probabilities; (n,)."""
        from sufrep._models import log_losses

        if self.classes is None:
            predicted = self.scale * np.asarray(self.model.predict(columns)).reshape(-1)
            return np.asarray((predicted - y) ** 2, dtype=np.float64)
        if not self.probabilities:
            return np.asarray(self.classes[self.model.predict(columns)] != y, dtype=np.float64)
        known = self.classes[self.model.classes_]
        return log_losses(np.asarray(self.model.predict_proba(columns)), known, y)


def in_parts(inside: Floats, *outside: Floats) -> tuple[Floats, ...]:
    """Replace values by the number of the part that they are in, of parts with equally many rows; NaN stays.

    Parameters
    ----------
    inside : ndarray, shape (n, p)
        What the parts are made of.
    *outside : ndarray, each of shape (m, p)

    Examples
    --------
    >>> import numpy as np
    >>> in_parts(np.array([[5.0], [1.0], [np.nan], [9.0]]), np.array([[6.0], [-1.0]]))
    (array([[ 1.],
           [ 0.],
           [nan],
           [ 2.]]), array([[2.],
           [0.]]))
    """
    given = (inside, *outside)
    found = tuple(map(np.empty_like, given))
    for j, column in enumerate(inside.T):
        ordered = np.sort(column)  # NaN comes last
        ordered = ordered[: len(ordered) - int(np.isnan(column).sum())]
        ends = ordered[(np.arange(1, _PARTS) * len(ordered)) // _PARTS] if len(ordered) >= _PARTS else ordered
        ends = np.unique(ends)
        for columns, result in zip(given, found, strict=True):
            values = columns[:, j]
            result[:, j] = np.where(np.isnan(values), np.nan, np.searchsorted(ends, values))
    return found


def _can_stop_early(y: Array, kind: str) -> bool:
    """Whether a tenth of the rows can be set aside to stop by, with a row of each class."""
    if kind == "continuous":
        return len(y) >= 10
    _, counts = np.unique(y, return_counts=True)
    return bool(counts.min() >= 2 and len(y) // 10 >= len(counts))


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRows:
    """The rows that the decision is made on.

    Attributes
    ----------
    inputs : Inputs
    features : ndarray, shape (n, n_features)
        What the learner gets in addition to the encoding.
    y : ndarray, shape (n,)
        The target, or the codes of its classes.
    folds : sequence of (train, test)
        None of the parts is empty.
    in_time : bool
        Whether the rows of a fold are later than those outside it.
    """

    inputs: Inputs
    features: Floats
    y: Array
    folds: Sequence[Fold]
    in_time: bool = False

    @property
    def several_groups(self) -> bool:
        """Whether there are groups of which some may be dropped."""
        return len(self.inputs.factors) > 1


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """The losses of all candidates on rows held out.

    Attributes
    ----------
    losses : dict of str to ndarray, shape (n,)
        For each candidate; NaN in the folds that it did not take part in, because it was far behind before.
    shuffled : dict of (str, str) to ndarray, shape (n,)
        The losses of a candidate if the columns of a component are shuffled among the rows of a fold.
    n_columns : dict of str to int
        Number of columns that each candidate adds.
    weights : ndarray, shape (n,), or None
    clusters : sequence of ndarray of int, each of shape (n,)
        The level of each row, for each group.
    limit : float
        What the loss of a single row counts as at most, in all that is decided.
    permuted : dict of (str, int) to ndarray, shape (n,)
        The losses of a candidate if the levels of a group are permuted among the rows of a fold; empty if
        there is one group.
    """

    losses: Mapping[str, Floats]
    shuffled: Mapping[tuple[str, str], Floats]
    n_columns: Mapping[str, int]
    weights: Floats | None
    clusters: Sequence[Codes]
    limit: float = np.inf
    permuted: Mapping[tuple[str, int], Floats] = field(default_factory=dict)

    def loss(self, candidate: str) -> float:
        """Mean loss on the rows that a candidate was judged on."""
        return replace(self, limit=np.inf)._limited_loss(candidate)

    def gain(self, candidate: str) -> tuple[float, float]:
        """How much smaller the loss is than without the column, and the standard error of that."""
        return self._difference(self.losses[DROP], self.losses[candidate])

    def relative_gain(self, candidate: str) -> tuple[float, float]:
        """The gain and its standard error, relative to the loss without the column on the same rows."""
        gain, error = self.gain(candidate)
        both = ~np.isnan(self.losses[DROP] - self.losses[candidate])
        dropped = np.where(both, self.losses[DROP], np.nan)
        whole = self._difference(dropped, np.zeros(len(dropped)))[0]
        return (gain / whole, error / whole) if whole else (0.0, np.inf)

    def best(self) -> str | None:
        """The encoding with the smallest loss; None if none was compared."""
        found = [name for name in self._present() if name != DROP]
        return min(found, key=self._limited_loss) if found else None

    def contribution(self, candidate: str, component: str) -> tuple[float, float]:
        """How much the loss grows if the columns of a component are shuffled, and its standard error."""
        everything = replace(self, limit=np.inf)
        return everything._difference(self.shuffled[candidate, component], self.losses[candidate])

    def group_contribution(self, candidate: str, group: int) -> tuple[float, float]:
        """How much the loss grows if the levels of a group are permuted, and its standard error."""
        return replace(self, limit=np.inf)._growth_without(candidate, group)

    def useful_groups(self, candidate: str) -> list[int]:
        """The groups whose levels lower the loss by more than one standard error."""
        found = [self._growth_without(candidate, group) for group in range(len(self.clusters))]
        return [group for group, (gain, error) in enumerate(found) if gain > error]

    def _growth_without(self, candidate: str, group: int) -> tuple[float, float]:
        return self._difference(self.permuted[candidate, group], self.losses[candidate])

    def is_better(self, candidate: str, other: Judgement) -> bool:
        """Whether the loss is smaller by more than one standard error than with other groups."""
        gain, error = self._difference(other.losses[candidate], self.losses[candidate])
        return gain > error

    def n_judged(self, candidate: str) -> int:
        """Number of rows that a candidate was judged on."""
        return int((~np.isnan(self.losses[candidate])).sum())

    def remaining(self) -> list[str]:
        """The candidates that may still be the best: judged everywhere, and not clearly behind."""
        present = self._present()
        best = min(present, key=self._limited_loss)
        return [name for name in present if not self._is_behind(name, best)]

    def chosen(self) -> str:
        """The candidate with the smallest loss, if it gains more than one standard error on dropping."""
        present = self._present()
        best = min(present, key=self._limited_loss)
        if DROP not in present:  # it was far behind
            return best
        gain, error = self.gain(best)
        return best if gain > max(error, _ROUNDING * self.loss(DROP)) else DROP

    def _limited_loss(self, candidate: str) -> float:
        return self._difference(self.losses[candidate], np.zeros(len(self.losses[candidate])))[0]

    def _present(self) -> list[str]:
        n_rows = max(map(self.n_judged, self.losses))
        return [name for name in self.losses if self.n_judged(name) == n_rows]

    def _is_behind(self, candidate: str, other: str) -> bool:
        """Whether the loss is larger by more than chance allows, if levels are drawn at random."""
        behind, error, n_levels = self._compared(self.losses[candidate], self.losses[other])
        return n_levels > 1 and behind > error * float(student_t.isf(_CLEARLY, n_levels - 1))

    def _difference(self, first: Floats, second: Floats) -> tuple[float, float]:
        return self._compared(first, second)[:2]

    def _compared(self, first: Floats, second: Floats) -> tuple[float, float, int]:
        """The mean difference, its standard error, and the number of levels that this is based on.

        Rows of a level depend on each other. Of several groups the one with the largest error counts, but not
        one with a single level.
        """
        difference = np.minimum(first, self.limit) - np.minimum(second, self.limit)
        both = ~np.isnan(difference)
        if not both.any():
            return 0.0, np.inf, 1
        weights = None if self.weights is None else self.weights[both]
        found = [
            (clustered_error(difference[both], codes[both], weights), n_levels)
            for codes in self.clusters
            if (n_levels := len(np.unique(codes[both]))) > 1
        ]
        error, n_levels = max(found, default=(np.inf, 1))
        return float(np.average(difference[both], weights=weights)), error, n_levels


def clustered_error(values: Floats, codes: Codes, weights: Floats | None = None) -> float:
    """Standard error of a weighted mean whose rows depend on each other within clusters; inf of one cluster.

    Examples
    --------
    >>> import numpy as np
    >>> clustered_error(np.array([1.0, 1.0, 3.0, 3.0]), np.array([0, 0, 1, 1]))
    1.0
    """
    labels, codes = np.unique(codes, return_inverse=True)
    if len(labels) < 2:
        return np.inf
    weights = np.ones(len(values)) if weights is None else weights
    total = np.bincount(codes, weights * (values - np.average(values, weights=weights)))
    n_clusters = len(labels)
    return float(np.sqrt((total**2).sum() * n_clusters / (n_clusters - 1)) / weights.sum())


def judge(
    rows: JudgedRows,
    components: Mapping[str, GroupEncoder],
    learner: Learner,
    *,
    only: str | None = None,
    n_jobs: int | None = None,
    report: Callable[[int, int], None] | None = None,
) -> Judgement:
    """Measure the losses of all candidates that can be made of some components, out of fold.

    It is a race: after each fold, candidates that are clearly behind the best one leave. With one group it
    ends when only one is left, so what is easy to decide costs little; with several, what each group
    contributes is measured on all folds.

    Parameters
    ----------
    rows : JudgedRows
    components : mapping of str to encoder
        Not fitted.
    learner : Learner
    only : str, optional
        The name of a single candidate to judge, on all folds.
    n_jobs : int, optional
        Number of folds to work on at a time; the result does not depend on it.
    report : callable, optional
        Called after each fold with the number of folds done and of all folds.
    """
    candidates = {name: [part for part in parts if part in components] for name, parts in CANDIDATES.items()}
    if only is not None:
        candidates = {only: candidates[only]}
    # Without covariates there is no description, and both kinds are one.
    distinct = {tuple(parts): name for name, parts in reversed(candidates.items())}
    candidates = {name: parts for name, parts in candidates.items() if distinct[tuple(parts)] == name}
    found: list[_HeldOut] = []
    remaining = list(candidates)

    def hold_out(number: int) -> _HeldOut:
        return _hold_out(rows, number, components, {name: candidates[name] for name in remaining}, learner)

    numbers = _judged_folds(rows)
    if effective_n_jobs(n_jobs) > 1:  # all candidates take part in all folds, though some would have left
        tasks = (delayed(_hold_out)(rows, number, components, candidates, learner) for number in numbers)
        results = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
    else:
        results = map(hold_out, numbers)
    limited = learner.kind == "continuous"
    judgement = _joined(rows, found, candidates, limited=limited)
    for held_out in results:
        found.append(held_out.only(remaining))
        judgement = _joined(rows, found, candidates, limited=limited)
        remaining = judgement.remaining()
        if report is not None:
            report(len(found), len(numbers))
        if len(remaining) == 1 and only is None and (remaining == [DROP] or not rows.several_groups):
            break
    if isinstance(results, Generator):
        with warnings.catch_warnings():  # of folds that turn out not to be needed
            warnings.simplefilter("ignore", UserWarning)
            results.close()
    return judgement


def _judged_folds(rows: JudgedRows) -> Sequence[int]:
    """The folds that candidates are compared on: in time not those whose training rows have none before."""
    numbers = range(len(rows.folds))
    if not rows.in_time:
        return numbers
    return [
        number for number in numbers if any(len(inner) for inner, _ in inner_folds(rows, number))
    ] or numbers


def _joined(
    rows: JudgedRows,
    found: Sequence[_HeldOut],
    candidates: Mapping[str, Sequence[str]],
    *,
    limited: bool,
) -> Judgement:
    """Put the losses of several folds next to each other."""
    test = np.concatenate([np.empty(0, dtype=np.intp), *(part.rows for part in found)])
    losses = {name: _losses([(part.losses.get(name), part.rows) for part in found]) for name in candidates}
    shuffled = {
        (name, component): _losses([(part.shuffled.get((name, component)), part.rows) for part in found])
        for name, parts in candidates.items()
        for component in parts
    }
    permuted = {
        key: _losses([(part.permuted.get(key), part.rows) for part in found])
        for key in dict.fromkeys(chain.from_iterable(part.permuted for part in found))
    }
    weights = None if rows.inputs.weights is None else rows.inputs.weights[test]
    found_all = Judgement(
        losses,
        shuffled,
        found[0].n_columns if found else dict.fromkeys(candidates, 0),
        weights,
        [factor.codes[test] for factor in rows.inputs.factors],
        permuted=permuted,
    )
    if not limited or DROP not in losses:
        return found_all
    return replace(found_all, limit=_MOST_LOSS * found_all.loss(DROP))


def _losses(parts: Sequence[tuple[Floats | None, Codes]]) -> Floats:
    """The losses of several folds, NaN for the rows of folds without any."""
    filled = [np.full(len(rows), np.nan) if losses is None else losses for losses, rows in parts]
    return np.concatenate([np.empty(0), *filled])


@dataclass(frozen=True, slots=True, eq=False)
class _HeldOut:
    """What one fold gives: its rows, and their losses."""

    rows: Codes
    losses: dict[str, Floats]
    shuffled: dict[tuple[str, str], Floats]
    permuted: dict[tuple[str, int], Floats]
    n_columns: dict[str, int]

    def only(self, names: Sequence[str]) -> _HeldOut:
        """Leave all other candidates out."""
        losses = {name: self.losses[name] for name in names}
        shuffled = {key: losses for key, losses in self.shuffled.items() if key[0] in names}
        permuted = {key: losses for key, losses in self.permuted.items() if key[0] in names}
        return replace(self, losses=losses, shuffled=shuffled, permuted=permuted)


def _hold_out(
    rows: JudgedRows,
    number: int,
    components: Mapping[str, GroupEncoder],
    candidates: Mapping[str, Sequence[str]],
    learner: Learner,
) -> _HeldOut:
    """Judge all candidates on the rows of one fold."""
    train, test = rows.folds[number]
    needed = {part: components[part] for part in dict.fromkeys(chain.from_iterable(candidates.values()))}
    with one_thread(), without_convergence_warnings():
        columns = held_out_columns(rows, number, needed, seed=learner.seed)
        weights = None if rows.inputs.weights is None else rows.inputs.weights[train]
        losses, shuffled, permuted, n_columns = {}, {}, {}, {}
        known = {part: learner.prepare(found.inside, *found.new()) for part, found in columns.items()}
        features = learner.prepare(rows.features[train], rows.features[test])
        order = np.random.default_rng([learner.seed, number]).permutation(len(test))
        for name, parts in candidates.items():
            inside = np.column_stack([features[0], *(known[part][0] for part in parts)])
            # scikit-learn's boosting cannot bin a column of nulls.
            usable = np.flatnonzero(~np.isnan(inside).all(axis=0))
            model = learner.fit(inside[:, usable], rows.y[train], weights)

            def loss(blocks: Sequence[Floats], model: Judge = model, usable: Codes = usable) -> Floats:
                return model.losses(np.column_stack([features[1], *blocks])[:, usable], rows.y[test])

            blocks = [known[part][1] for part in parts]
            losses[name] = loss(blocks)
            n_columns[name] = sum(block.shape[1] for block in blocks)
            for place, component in enumerate(parts):
                mixed = [block[order] if j == place else block for j, block in enumerate(blocks)]
                shuffled[name, component] = loss(mixed)
            for group in range(len(rows.inputs.factors) if parts and rows.several_groups else 0):
                permuted[name, group] = loss([known[part][2 + group] for part in parts])
    return _HeldOut(test, losses, shuffled, permuted, n_columns)


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutColumns:
    """The columns of a component in one fold.

    Attributes
    ----------
    inside : ndarray, shape (n_train, n_columns)
        Of the rows outside the fold, cross-fitted.
    outside : ndarray, shape (n_test, n_columns)
        Of the rows of the fold, which are new.
    permuted : tuple of ndarray, each of shape (n_test, n_columns)
        The same with the levels of each group in turn permuted among these rows; empty if there is one group.
    """

    inside: Floats
    outside: Floats
    permuted: tuple[Floats, ...] = ()

    def new(self) -> tuple[Floats, ...]:
        """The columns of new rows, as they are and permuted."""
        return self.outside, *self.permuted


def held_out_columns(
    rows: JudgedRows, number: int, components: Mapping[str, GroupEncoder], *, seed: int = 0
) -> dict[str, HeldOutColumns]:
    """The columns of each component in a fold, of which neither targets nor weights are used."""
    train, test = rows.folds[number]
    inside = replace(rows.inputs.take(train), folds=inner_folds(rows, number), quick_folds=True)
    outside = replace(rows.inputs.take(test), target=None, weights=None, times=None)
    order = np.random.default_rng([seed, number]).permutation(len(test))
    new = [outside]
    if rows.several_groups:
        new += [outside.permute_levels(group, order) for group in range(len(outside.factors))]
    found = {}
    for name, component in components.items():
        encoder = clone(component)
        try:
            own = own_inputs(encoder, inside)
            encoder._learn(own)
            known = encoder._lookups(own, training=True)
            encoded = [encoder._lookups(own_inputs(encoder, part), training=False) for part in new]
        except NoLevelError:  # none of the training rows has a level
            found[name] = HeldOutColumns(
                np.empty((len(train), 0)),
                np.empty((len(test), 0)),
                tuple(np.empty((len(test), 0)) for _ in new[1:]),
            )
            continue
        # A component may find nothing to say.
        none = [np.empty((len(part), 0)) for part in (train, test)]
        first, *others = (np.hstack([none[1], *map(taken, lookups)]) for lookups in encoded)
        found[name] = HeldOutColumns(np.hstack([none[0], *map(taken, known)]), first, tuple(others))
    return found


def inner_folds(rows: JudgedRows, number: int) -> list[Fold]:
    """The other folds without the rows of one of them, by positions among its training rows.

    Two folds leave nothing to learn from, so the rows of the other one are spread over two.
    """
    train = np.asarray(rows.folds[number][0])
    position = np.full(len(rows.y), -1)
    position[train] = np.arange(len(train))
    found = []
    for place, fold in enumerate(rows.folds):
        inner, outer = (position[part][position[part] >= 0] for part in map(np.asarray, fold))
        if place != number and len(outer):
            found.append((inner, outer))
    covered = np.sort(np.concatenate([np.empty(0, dtype=np.intp), *(outer for _, outer in found)]))
    first_rows = np.setdiff1d(np.arange(len(train)), covered)
    if len(first_rows):  # in time, the rows before the first fold
        found.insert(0, (np.empty(0, dtype=np.intp), first_rows))
    if len(train) > 1 and not rows.in_time and not any(len(inner) for inner, _ in found):
        codes = [
            *(factor.codes[train] for factor in rows.inputs.factors),
            np.zeros(len(train), dtype=np.intp),
        ]
        found = spread_folds(codes[0], 2, seed=0)
    return found


@contextmanager
def without_convergence_warnings() -> Iterator[None]:
    """Silence the warnings of EM, which is stopped early on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def whole_levels(codes: Codes, max_rows: int, seed: int) -> Codes:
    """Rows of as many whole levels as fit, because parts of levels would look smaller than they are.

    If that leaves too few levels, rows are sampled from more of them.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        −1 for rows without a level, which count as one level.
    max_rows : int
    seed : int

    Returns
    -------
    ndarray of int, shape (n_kept,)
        Positions, ascending.
    """
    if len(codes) <= max_rows:
        return np.arange(len(codes))
    draw = np.random.default_rng(seed)
    counts = np.bincount(codes + 1)
    order = draw.permutation(np.flatnonzero(counts))
    fitting = int(np.searchsorted(np.cumsum(counts[order]), max_rows, side="right"))
    keep = np.zeros(len(counts), dtype=bool)
    keep[order[: max(fitting, min(_LEAST_LEVELS, len(order)))]] = True
    rows = np.flatnonzero(keep[codes + 1])
    if len(rows) > max_rows:
        rows = np.sort(draw.choice(rows, max_rows, replace=False))
    return rows
