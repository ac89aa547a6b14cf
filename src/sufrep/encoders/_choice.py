"""Which pieces make the best representation: cross-validation inside the training rows."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from sufrep._models import log_losses, make_learner
from sufrep.encoders._candidates import (
    CHANCE_ROWS,
    MOST_INDICATORS,
    NEED_COVARIATES,
    PIECES,
    SAFE,
    TOGETHER,
    Candidate,
    worth_trying,
)
from sufrep.errors import NoLevelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sufrep._arrays import Array, Codes, Floats, Mask
    from sufrep.encoders._base import GroupEncoder
    from sufrep.encoders._choice_problem import Problem

# Fewer states than may be found, and rounds of EM that end earlier, because they take long.
_EM = {"max_states": 10, "max_iter": 100, "tol": 1e-5}
# With fewer rows than this, threads of a learner wait for each other longer than they work.
_FEW_ROWS = 20_000
# Half of scikit-learn's rounds of trees half as large, with twice its learning rate: four times as fast.
_FAST = {"max_iter": 50, "learning_rate": 0.2, "max_leaf_nodes": 15}
# A share of the loss that learners which iterate may gain by stopping a little later.
_ROUNDING = 1e-6
# Pairs and triples are made of so many of the best pieces.
_PAIRED = 4


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """A candidate and its loss on the rows held out.

    Attributes
    ----------
    candidate : tuple of str
        Its pieces; none is dropping the column.
    losses : ndarray, shape (n,)
        Of each row, a mean where it was held out several times.
    n_columns : int
        Columns that it adds.
    """

    candidate: Candidate
    losses: Floats
    n_columns: int


@dataclass(slots=True, eq=False)
class Search:
    """Tries candidates one by one; columns of a piece are made once for each fold.

    Attributes
    ----------
    problem : Problem
    folds : list of (train, test)
    estimator : estimator or None
        The learner; None is scikit-learn's histogram gradient boosting.
    parameters : dict
        Parameters of all pieces.
    random_state : int
    """

    problem: Problem
    folds: Sequence[tuple[Codes, Codes]]
    estimator: Any
    parameters: dict[str, Any]
    random_state: int
    _n_states: int = 0
    _columns: dict[tuple[str, int], tuple[Floats, Floats]] = field(default_factory=dict)

    def pieces(self) -> list[str]:
        """The pieces that make sense for these data."""
        n_levels = np.nanmax(self.problem.rows[:, self.problem.n_covariates :], axis=0, initial=0) + 1
        left_out = set() if self.problem.n_covariates else set(NEED_COVARIATES)
        if n_levels.sum() > MOST_INDICATORS:
            left_out.add("one_hot")
        return [name for name in PIECES if name not in left_out]

    def candidates(self, tried: Sequence[Tried]) -> Iterator[Candidate]:
        """No encoding, single pieces, pairs of the best of these, and the best pair with one more of them.

        With few rows, what is safe comes before the pairs. `tried` grows meanwhile.
        """
        yield ()
        for name in self.pieces():
            yield (name,)
        if self._knows_what_is_safe():
            yield SAFE
        best = [item.candidate[0] for item in self._of_size(1, tried)[:_PAIRED]]
        yield from filter(worth_trying, combinations(best, 2))
        for pair in self._of_size(2, tried)[:1]:
            triples = [(*pair.candidate, name) for name in best if name not in pair.candidate]
            known = {frozenset(item.candidate) for item in tried}
            yield from (item for item in triples if worth_trying(item) and frozenset(item) not in known)

    def _knows_what_is_safe(self) -> bool:
        return len(self.problem.y) < CHANCE_ROWS and set(SAFE) <= {*self.pieces()}

    def _of_size(self, n_pieces: int, tried: Sequence[Tried]) -> list[Tried]:
        """The candidates of so many pieces, the best first."""
        found = [item for item in tried if len(item.candidate) == n_pieces]
        return sorted(found, key=lambda item: self.mean(item.losses))

    def run(self, max_candidates: int | None, report: Callable[[Tried, int], None]) -> list[Tried]:
        """Try candidates, at most so many; ``report`` hears of each, and how many there may be."""
        tried: list[Tried] = []
        n_single = 1 + len(self.pieces()) + self._knows_what_is_safe()
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
        with threadpool_limits(1 if len(self.problem.y) < _FEW_ROWS else None):
            return self._try_out(candidate)

    def _try_out(self, candidate: Candidate) -> Tried:
        total, n_columns = np.zeros(len(self.problem.y)), 0
        for number, (train, test) in enumerate(self.folds):
            parts = [self._encoded(name, number) for name in candidate]
            inside, outside = self.problem.take(train), self.problem.take(test)
            columns = np.column_stack([inside.features, *(part[0] for part in parts)])
            # scikit-learn's boosting cannot bin a column of nulls.
            told = ~np.isnan(columns).all(axis=0)
            learner = make_learner(
                self.estimator,
                classes=self.problem.kind != "continuous",
                n_columns=int(told.sum()),
                y=inside.y,
                random_state=self.random_state,
                **_FAST,
            )
            weighted = inside.weights is not None and has_fit_parameter(learner, "sample_weight")
            learner.fit(columns[:, told], inside.y, **({"sample_weight": inside.weights} if weighted else {}))
            columns = np.column_stack([outside.features, *(part[1] for part in parts)])[:, told]
            total[test] += self._losses(learner, columns, outside.y)
            n_columns = sum(part[0].shape[1] for part in parts)
        times = sum(len(test) for _, test in self.folds) / max(len(total), 1)
        return Tried(candidate, total / max(times, 1), n_columns)

    def mean(self, losses: Floats) -> float:
        """Weighted mean of losses."""
        return float(np.average(losses, weights=self.problem.weights))

    def gain(self, before: Floats, after: Floats) -> tuple[float, float]:
        """How much smaller the second losses are, and the standard error of that (paired by row)."""
        weights, gains = self.problem.weights, before - after
        mean = np.average(gains, weights=weights)
        total = len(gains) if weights is None else weights.sum()
        return float(mean), float(np.sqrt(np.average((gains - mean) ** 2, weights=weights) / total))

    def best(self, tried: Sequence[Tried]) -> Tried:
        """The fewest pieces whose loss is within a standard error of the smallest, if that one was not luck.

        No encoding has the fewest pieces of all. With few rows, what is safe comes next, within two standard
        errors, by which the smallest of so many losses is flattered, and if it is not behind no encoding by
        more than one (examples/few_rows.py). For the same reason choosing must else also gain where it cannot
        be: for the rows of each fold, with the candidate that is best on the other rows
        (test_the_gain_of_a_choice_is_that_on_rows_which_did_not_make_it). To ask for more than any gain there
        would drop columns that help, where few rows have large errors.
        """
        dropped = tried[0]
        smallest = self._smallest(tried, np.ones(len(dropped.losses), dtype=bool))
        near = [item for item in tried if self._is_within(1, item, smallest)]
        gain, _ = self.gain(dropped.losses, smallest.losses)
        if dropped in near or gain <= _ROUNDING * self.mean(dropped.losses):
            return dropped
        preferred = [item for item in tried if item.candidate == SAFE and self._knows_what_is_safe()]
        for item in preferred:
            if self._is_within(2, item, smallest) and self._is_within(1, item, dropped):
                return item
        if self.gain(dropped.losses, self._chosen_elsewhere(tried))[0] <= 0:
            return dropped
        return min(near, key=lambda item: (len(item.candidate), self.mean(item.losses)))

    def _is_within(self, n_errors: float, item: Tried, other: Tried) -> bool:
        """Whether a candidate is so many standard errors behind another at most."""
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
        """The candidate with the smallest loss in some rows, of equal ones that of fewer pieces."""
        weights = np.ones(len(rows)) if self.problem.weights is None else self.problem.weights
        return min(tried, key=lambda item: (item.losses[rows] @ weights[rows], len(item.candidate)))

    def _parts(self) -> Codes:
        """The first fold that holds each row out; of a single fold, every other row."""
        parts = np.full(len(self.problem.y), -1)
        if len(self.folds) == 1:
            test = np.asarray(self.folds[0][1])
            parts[test] = np.arange(len(test)) % 2
            return parts
        for number, (_, test) in reversed([*enumerate(self.folds)]):
            parts[test] = number
        return parts

    def encoder(self, name: str, **parameters: Any) -> GroupEncoder:
        """A piece that is not yet fitted."""
        kind, own = PIECES[name]
        known = kind._parameter_constraints
        extra = {"random_state": self.random_state, "target_type": self.problem.kind}
        if name == "states":
            extra |= _EM
            extra["n_states"] = self._n_states or "auto"
        usable = {key: value for key, value in extra.items() if key in known}
        return kind(**{**parameters, **self.parameters, "remainder": "drop", **usable, **own})

    def _encoded(self, name: str, number: int) -> tuple[Floats, Floats]:
        """Columns of a piece for the rows inside and outside a fold's training part."""
        if (name, number) not in self._columns:
            train, test = self.folds[number]
            output, names = next((item for item in TOGETHER.items() if name in item[1]), ("", (name,)))
            try:
                with without_convergence_warnings():
                    first, other = self._encode(name, train, test, **({"output": output} if output else {}))
            except NoLevelError:  # none of the rows to learn from has a level
                first, other = np.empty((len(train), 0)), np.empty((len(test), 0))
            for place, piece in enumerate(names):
                turn = slice(place, None, len(names))
                self._columns[piece, number] = first[:, turn], other[:, turn]
        return self._columns[name, number]

    def _encode(self, name: str, train: Codes, test: Codes, **parameters: Any) -> tuple[Floats, Floats]:
        if name == "states" and not self._n_states:
            self._count_states()
        inside = self.problem.take(train)
        encoder = self._for_positions(name).set_params(**parameters).set_output(transform="default")
        first = encoder.fit_transform(inside.rows, inside.y, inside.weights)
        return first, encoder.transform(self.problem.rows[test])

    def _for_positions(self, name: str) -> GroupEncoder:
        p, width = self.problem.n_covariates, self.problem.rows.shape[1]
        groups = list(range(p, width))
        encoder = self.encoder(name, covariates=list(range(p)))
        return encoder.set_params(group=groups, missing="prior", unseen="prior")  # type: ignore[no-any-return]

    def _count_states(self) -> None:
        """Choose the number of states once, without the target; of several groups, the largest number."""
        encoder: Any = self._for_positions("states")
        encoder.fit(self.problem.rows, None, self.problem.weights)
        self._n_states = max(encoder.n_states_.values())

    def _losses(self, learner: Any, columns: Floats, y: Array) -> Floats:
        """Squared errors, −log P(class), or errors of a classifier that knows no probabilities; (n,)."""
        if self.problem.kind == "continuous":
            return np.asarray((np.asarray(learner.predict(columns)).reshape(-1) - y) ** 2, dtype=np.float64)
        # Asked of the estimator: a dummy in its place must be measured alike.
        if self.estimator is not None and not hasattr(self.estimator, "predict_proba"):
            return np.asarray(learner.predict(columns) != y, dtype=np.float64)
        return log_losses(np.asarray(learner.predict_proba(columns)), learner.classes_, y)


@contextmanager
def without_convergence_warnings() -> Iterator[None]:
    """EM that ends early is meant to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
