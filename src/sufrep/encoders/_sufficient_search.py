"""How `SufficientEncoder` chooses among components: by cross-validation inside the training rows."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from sufrep._models import log_losses, make_learner
from sufrep._splits import ordered_folds
from sufrep.encoders._classical import ContrastEncoder
from sufrep.encoders._latent_state import LatentStateEncoder
from sufrep.encoders._level_models import LocalEffectEncoder, MixedModelEncoder, RandomInterceptEncoder
from sufrep.encoders._low_rank import LowRankEncoder
from sufrep.encoders._means import MeansEncoder
from sufrep.errors import NoLevelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sufrep._arrays import Array, Codes, Floats, Mask
    from sufrep.encoders._base import GroupEncoder
    from sufrep.encoders._inputs import Inputs

Candidate = tuple[str, ...]
# The encoders that candidates are made of, the most useful ones first.
COMPONENTS: dict[str, tuple[type[GroupEncoder], dict[str, Any]]] = {
    "target": (MeansEncoder, {"covariates": [], "use_target": True}),
    "mixed_model": (MixedModelEncoder, {}),
    "local_effect": (LocalEffectEncoder, {}),
    "local_fit": (LocalEffectEncoder, {"output": "fit"}),
    "means": (MeansEncoder, {"leave_one_out": True}),
    "intercept": (RandomInterceptEncoder, {}),
    "states": (LatentStateEncoder, {"output": "both"}),
    "shrunken_means": (MeansEncoder, {"shrinkage": "auto"}),
    "joint_means": (MeansEncoder, {"shrinkage": "auto", "use_target": True}),
    "one_hot": (ContrastEncoder, {"coding": "one_hot"}),
    "low_rank": (LowRankEncoder, {"shrinkage": "auto"}),
}
_NEED_COVARIATES = ("means", "shrunken_means", "joint_means", "states", "low_rank")
# Components whose columns have the same names, or contain the same information.
_ALIKE = (
    {"means", "shrunken_means", "joint_means"},
    {"target", "joint_means"},
    {"local_effect", "local_fit"},
)
# Components that one encoder computes together: the value of its ``output``, and the order of their columns.
_TOGETHER = {"both": ("local_effect", "local_fit")}
# With fewer rows than this, the losses of candidates differ mostly by chance, and this union of two
# predictions and two descriptions is preferred unless the losses clearly contradict it.
CHANCE_ROWS = 2_000
_UNION: Candidate = ("local_fit", "mixed_model", "low_rank", "states")
# With more levels than this, one-hot columns are not tried.
_MOST_INDICATORS = 200
# Fewer states and fewer rounds of EM than by default, to save time.
_EM = {"max_states": 10, "max_iter": 100, "tol": 1e-5}
# With fewer rows than this, threads of a learner cost more than they save.
_FEW_ROWS = 20_000
# Half of scikit-learn's rounds of trees half as large, with twice its learning rate: four times as fast.
_FAST = {"max_iter": 50, "learning_rate": 0.2, "max_leaf_nodes": 15}
# Relative difference in loss that an iterative learner may gain by stopping a little later.
_ROUNDING = 1e-6
# Pairs and triples are made of this many of the best components.
_PAIRED = 4
# Minimum number of whole levels to keep when there are too many rows.
_LEAST_LEVELS = 50


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """A candidate and its loss on the rows held out.

    Attributes
    ----------
    candidate : tuple of str
        Its components; empty for dropping the column.
    losses : ndarray, shape (n,)
        The loss of each row, averaged if it was held out several times.
    n_columns : int
        Number of columns that it adds.
    """

    candidate: Candidate
    losses: Floats
    n_columns: int


@dataclass(slots=True, eq=False)
class ComponentSearch:
    """Tries candidates one by one; the columns of a component are computed once for each fold.

    Attributes
    ----------
    data : ChoiceData
    folds : list of (train, test)
    estimator : estimator or None
        The learner; None is scikit-learn's histogram gradient boosting.
    parameters : dict
        Parameters of all components.
    random_state : int
    """

    data: ChoiceData
    folds: Sequence[tuple[Codes, Codes]]
    estimator: Any
    parameters: dict[str, Any]
    random_state: int
    _n_states: int = 0
    _columns: dict[tuple[str, int], tuple[Floats, Floats]] = field(default_factory=dict)

    def components(self) -> list[str]:
        """The components that make sense for these data."""
        n_levels = np.nanmax(self.data.rows[:, self.data.n_covariates :], axis=0, initial=0) + 1
        left_out = set() if self.data.n_covariates else set(_NEED_COVARIATES)
        if n_levels.sum() > _MOST_INDICATORS:
            left_out.add("one_hot")
        return [name for name in COMPONENTS if name not in left_out]

    def candidates(self, tried: Sequence[Tried]) -> Iterator[Candidate]:
        """No encoding, single components, pairs of the best ones, and the best pair with one more of them.

        With few rows, the preferred union comes before the pairs. `tried` grows meanwhile.
        """
        yield ()
        for name in self.components():
            yield (name,)
        if self._prefers_union():
            yield _UNION
        best = [item.candidate[0] for item in self._of_size(1, tried)[:_PAIRED]]
        yield from filter(_worth_trying, combinations(best, 2))
        for pair in self._of_size(2, tried)[:1]:
            triples = [(*pair.candidate, name) for name in best if name not in pair.candidate]
            known = {frozenset(item.candidate) for item in tried}
            yield from (item for item in triples if _worth_trying(item) and frozenset(item) not in known)

    def _prefers_union(self) -> bool:
        return len(self.data.y) < CHANCE_ROWS and set(_UNION) <= {*self.components()}

    def _of_size(self, n_components: int, tried: Sequence[Tried]) -> list[Tried]:
        """The candidates with this many components, the best first."""
        found = [item for item in tried if len(item.candidate) == n_components]
        return sorted(found, key=lambda item: self.mean(item.losses))

    def run(self, max_candidates: int | None, report: Callable[[Tried, int], None]) -> list[Tried]:
        """Try candidates, up to a maximum; ``report`` is called with each and with that maximum."""
        tried: list[Tried] = []
        n_single = 1 + len(self.components()) + self._prefers_union()
        most = n_single + _PAIRED * (_PAIRED - 1) // 2 + _PAIRED - 2
        if max_candidates is not None:
            most = min(most, max_candidates)
        for candidate in self.candidates(tried):
            if len(tried) >= most:
                break
            tried.append(self.try_out(candidate))
            report(tried[-1], most)
        return tried

    def try_out(self, candidate: Candidate) -> Tried:
        """Fit the learner with the columns of a candidate, and measure its loss out of fold."""
        with threadpool_limits(1 if len(self.data.y) < _FEW_ROWS else None):
            return self._try_out(candidate)

    def _try_out(self, candidate: Candidate) -> Tried:
        total, n_columns = np.zeros(len(self.data.y)), 0
        for number, (train, test) in enumerate(self.folds):
            parts = [self._encoded(name, number) for name in candidate]
            inside, outside = self.data.take(train), self.data.take(test)
            columns = np.column_stack([inside.features, *(part[0] for part in parts)])
            # scikit-learn's boosting cannot bin a column of nulls.
            usable = ~np.isnan(columns).all(axis=0)
            learner = make_learner(
                self.estimator,
                classes=self.data.kind != "continuous",
                n_columns=int(usable.sum()),
                y=inside.y,
                random_state=self.random_state,
                **_FAST,
            )
            weighted = inside.weights is not None and has_fit_parameter(learner, "sample_weight")
            learner.fit(
                columns[:, usable], inside.y, **({"sample_weight": inside.weights} if weighted else {})
            )
            columns = np.column_stack([outside.features, *(part[1] for part in parts)])[:, usable]
            total[test] += self._losses(learner, columns, outside.y)
            n_columns = sum(part[0].shape[1] for part in parts)
        times = sum(len(test) for _, test in self.folds) / max(self._n_judged(), 1)
        return Tried(candidate, total / max(times, 1), n_columns)

    def mean(self, losses: Floats) -> float:
        """Weighted mean of losses."""
        return float(np.average(losses, weights=self._weights()))

    def _weights(self) -> Floats | None:
        """The weights of the rows in the comparison: none of those that no fold tests."""
        if self.data.times is None or not self._n_judged():
            return self.data.weights
        tested = (self._parts() >= 0).astype(np.float64)
        return tested if self.data.weights is None else tested * self.data.weights

    def _n_judged(self) -> int:
        """Number of rows that are held out in a fold; in time, the first block never is."""
        return len(self.data.y) if self.data.times is None else int((self._parts() >= 0).sum())

    def gain(self, before: Floats, after: Floats) -> tuple[float, float]:
        """Mean difference of the losses (before − after) and its standard error, paired by row."""
        weights, gains = self._weights(), before - after
        mean = np.average(gains, weights=weights)
        total = len(gains) if weights is None else weights.sum()
        return float(mean), float(np.sqrt(np.average((gains - mean) ** 2, weights=weights) / total))

    def best(self, tried: Sequence[Tried]) -> Tried:
        """Fewest components whose loss is within one standard error of the smallest, if that is no accident.

        Dropping the column has the fewest components of all. With few rows the union is preferred if it is
        within two standard errors of the smallest loss, because the smallest of many losses is too optimistic
        by about as much, and within one of dropping (examples/few_rows.py). For the same reason the choice
        must otherwise also gain on rows that did not take part in it: in each fold, with the candidate that
        is best on the other folds (test_the_gain_of_a_choice_is_that_on_rows_which_did_not_make_it).
        Requiring a larger gain there would drop useful columns if a few rows have large errors.
        """
        dropped = tried[0]
        smallest = self._smallest(tried, np.ones(len(dropped.losses), dtype=bool))
        near = [item for item in tried if self._is_within(1, item, smallest)]
        gain, _ = self.gain(dropped.losses, smallest.losses)
        if dropped in near or gain <= _ROUNDING * self.mean(dropped.losses):
            return dropped
        preferred = [item for item in tried if item.candidate == _UNION and self._prefers_union()]
        for item in preferred:
            if self._is_within(2, item, smallest) and self._is_within(1, item, dropped):
                return item
        if self.gain(dropped.losses, self._chosen_elsewhere(tried))[0] <= 0:
            return dropped
        return min(near, key=lambda item: (len(item.candidate), self.mean(item.losses)))

    def _is_within(self, n_errors: float, item: Tried, other: Tried) -> bool:
        """Whether a candidate is at most this many standard errors behind another."""
        behind, error = self.gain(item.losses, other.losses)
        return behind <= n_errors * error

    def _chosen_elsewhere(self, tried: Sequence[Tried]) -> Floats:
        """The loss of each row with the candidate that is best on the rows of other folds; (n,)."""
        parts = self._parts()
        found = np.empty(len(parts))
        for part in np.unique(parts):
            inside = parts == part
            found[inside] = self._smallest(tried, ~inside).losses[inside]
        return found

    def _smallest(self, tried: Sequence[Tried], rows: Mask) -> Tried:
        """The candidate with the smallest loss in some rows, on ties the one with fewer components."""
        own = self._weights()
        weights = np.ones(len(rows)) if own is None else own
        return min(tried, key=lambda item: (item.losses[rows] @ weights[rows], len(item.candidate)))

    def _parts(self) -> Codes:
        """The first fold that holds each row out; with a single fold, every other row."""
        parts = np.full(len(self.data.y), -1)
        if len(self.folds) == 1:
            test = np.asarray(self.folds[0][1])
            parts[test] = np.arange(len(test)) % 2
            return parts
        for number, (_, test) in reversed([*enumerate(self.folds)]):
            parts[test] = number
        return parts

    def encoder(self, name: str, **parameters: Any) -> GroupEncoder:
        """A component that is not yet fitted."""
        kind, own = COMPONENTS[name]
        known = kind._parameter_constraints
        extra = {"random_state": self.random_state, "target_type": self.data.kind}
        if name == "states":
            extra |= _EM
            extra["n_states"] = self._n_states or "auto"
        usable = {key: value for key, value in extra.items() if key in known}
        return kind(**{**parameters, **self.parameters, "remainder": "drop", **usable, **own})

    def _encoded(self, name: str, number: int) -> tuple[Floats, Floats]:
        """Columns of a component for the training and the test rows of a fold."""
        if (name, number) not in self._columns:
            train, test = self.folds[number]
            output, names = next((item for item in _TOGETHER.items() if name in item[1]), ("", (name,)))
            try:
                with without_convergence_warnings():
                    first, other = self._encode(name, train, test, **({"output": output} if output else {}))
            except NoLevelError:  # none of the training rows has a level
                first, other = np.empty((len(train), 0)), np.empty((len(test), 0))
            for place, component in enumerate(names):
                turn = slice(place, None, len(names))
                self._columns[component, number] = first[:, turn], other[:, turn]
        return self._columns[name, number]

    def _encode(self, name: str, train: Codes, test: Codes, **parameters: Any) -> tuple[Floats, Floats]:
        if name == "states" and not self._n_states:
            self._count_states()
        inside = self.data.take(train)
        encoder = self._for_positions(name).set_params(**parameters).set_output(transform="default")
        if inside.times is not None and encoder._needs.uses_target:
            encoder.set_params(cv=ordered_folds(inside.times))
        first = encoder.fit_transform(inside.rows, inside.y, inside.weights)
        return first, encoder.transform(self.data.rows[test])

    def _for_positions(self, name: str) -> GroupEncoder:
        p, width = self.data.n_covariates, self.data.rows.shape[1]
        groups = list(range(p, width))
        encoder = self.encoder(name, covariates=list(range(p)))
        return encoder.set_params(group=groups, missing="prior", unseen="prior")  # type: ignore[no-any-return]

    def _count_states(self) -> None:
        """Choose the number of states once, without the target; with several groups, the largest number."""
        encoder: Any = self._for_positions("states")
        encoder.fit(self.data.rows, None, self.data.weights)
        self._n_states = max(encoder.n_states_.values())

    def _losses(self, learner: Any, columns: Floats, y: Array) -> Floats:
        """Squared errors, −log P(class), or misclassifications if there are no probabilities; (n,)."""
        if self.data.kind == "continuous":
            return np.asarray((np.asarray(learner.predict(columns)).reshape(-1) - y) ** 2, dtype=np.float64)
        # A dummy in place of the estimator must be measured in the same way, so the estimator decides.
        if self.estimator is not None and not hasattr(self.estimator, "predict_proba"):
            return np.asarray(learner.predict(columns) != y, dtype=np.float64)
        return log_losses(np.asarray(learner.predict_proba(columns)), learner.classes_, y)


@contextmanager
def without_convergence_warnings() -> Iterator[None]:
    """Silence the warnings of EM, which is stopped early on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceData:
    """The rows that the choice is made on, as numbers.

    Attributes
    ----------
    features : ndarray, shape (n, n_features)
        What the learner gets in addition to the encoding.
    rows : ndarray, shape (n, p + n_groups)
        Covariates, then the positions of the levels, NaN for none.
    n_covariates : int
        p.
    y : ndarray, shape (n,)
        The target, or the codes of its classes.
    kind : {"continuous", "binary", "multiclass"}
    weights : ndarray, shape (n,), or None
    times : ndarray, shape (n,), or None
        When each row happened, if rows are to learn from earlier ones only.
    """

    features: Floats
    rows: Floats
    n_covariates: int
    y: Array
    kind: str
    weights: Floats | None
    times: Array | None = None

    def take(self, rows: Codes) -> ChoiceData:
        """Some rows, in the given order."""
        weights, times = (None if part is None else part[rows] for part in (self.weights, self.times))
        return ChoiceData(
            self.features[rows], self.rows[rows], self.n_covariates, self.y[rows], self.kind, weights, times
        )


def make_choice_data(inputs: Inputs, times: Array | None = None) -> ChoiceData:
    """All rows as numbers: what the learner sees, what describes the levels, and the levels."""
    table, layout, nothing = inputs.table, inputs.layout, np.empty((inputs.table.n_rows, 0))
    own = [np.asarray(column, dtype=np.float64) for column in inputs.columns]
    used = {position for columns in layout.groups for position in columns}
    others = [
        np.asarray(table.numbers(position), dtype=np.float64)
        for position in range(len(table.names))
        if position not in used and position not in layout.covariates and table.kind(position) == "numeric"
    ]
    codes = [np.where(factor.codes < 0, np.nan, factor.codes) for factor in inputs.factors]
    if inputs.target is None:
        raise TypeError("the choice needs the target")
    return ChoiceData(
        np.column_stack([nothing, *own, *others]),
        np.column_stack([nothing, *own, *codes]),
        len(own),
        inputs.target.values(),
        inputs.target.kind,
        inputs.weights,
        times,
    )


def counted_folds(
    folds: Sequence[tuple[Codes, Codes]], weights: Floats | None
) -> Sequence[tuple[Codes, Codes]]:
    """The folds without rows of weight 0."""
    if weights is None:
        return folds
    parts = [[part[weights[part] > 0] for part in map(np.asarray, fold)] for fold in folds]
    return [(train, test) for train, test in parts if len(train) and len(test)]


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


class Progress:
    """A line of text for every candidate, or one growing line on a terminal."""

    def __init__(self, verbose: int) -> None:
        self._verbose, self._start, self._done = verbose, perf_counter(), 0

    def __call__(self, tried: Tried, most: int, loss: float) -> None:
        """Report a candidate."""
        if not self._verbose:
            return
        self._done += 1
        name = " + ".join(tried.candidate) or "drop"
        text = f"[SufficientEncoder] {self._done} of {most}: {name}, loss {loss:.6g}"
        text += f" ({perf_counter() - self._start:.0f} s)"
        if self._one_line():
            bar = "#" * round(20 * self._done / most)
            sys.stderr.write(f"\r{bar:<20} {text:<88}")
            sys.stderr.flush()
        else:
            sys.stderr.write(text + "\n")

    def close(self) -> None:
        """End the growing line; there may be fewer candidates than announced."""
        if self._one_line():
            sys.stderr.write("\n")

    def _one_line(self) -> bool:
        return self._verbose == 1 and sys.stderr.isatty()


def _worth_trying(candidate: Candidate) -> bool:
    """Whether no two components contain the same information."""
    return not any(len(alike.intersection(candidate)) > 1 for alike in _ALIKE)
