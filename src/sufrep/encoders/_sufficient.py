"""The encoder to use when in doubt: it chooses."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from sufrep.encoders._candidates import CHANCE_ROWS
from sufrep.encoders._choice import Search, Tried, without_convergence_warnings
from sufrep.encoders._choice_problem import Problem, counted_folds, make_problem
from sufrep.encoders._choice_progress import Progress
from sufrep.encoders._cross_fitting import CrossFittingEncoder
from sufrep.encoders._layout import read_covariates
from sufrep.encoders._reading import check_length, check_weights, read_group, read_table
from sufrep.encoders._target import read_target, split_rows
from sufrep.encoders._vectors import refuse_clashes
from sufrep.encoders._whole_levels import whole_levels
from sufrep.errors import NoLevelError
from sufrep.representation import Representation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scipy import sparse

    from sufrep._arrays import Array, Floats
    from sufrep._frames import Factorized, Lookup, Table
    from sufrep.encoders._base import GroupEncoder
    from sufrep.encoders._layout import Column, Group


# Folds of few rows are more, or dealt several times.
_FEW_FOLDS, _MANY_FOLDS = 3, 10
_MOST_REPEATS = 3


class SufficientEncoder(CrossFittingEncoder):
    """Choose the representation that predicts the target best, by cross-validation in the training rows.

    Where the level acts only through a hidden state, its states or the means of the covariates lose nothing.
    On real data that may hold, half hold, or fail; so candidates of every kind are tried with a fast learner,
    alone, in pairs and in threes, and the best is fitted on all rows:

    ====================  =================================================================================
    drop                  nothing: the column is left out
    target                the level's mean of the target, shrunk and cross-fitted
    mixed_model           `MixedModelEncoder`
    local_effect          `LocalEffectEncoder`
    local_fit             the same with ``output="fit"``
    means                 means of the covariates, in training without the row itself
    intercept             `RandomInterceptEncoder`
    states                `LatentStateEncoder`, level and row
    shrunken_means        `MeansEncoder` with ``shrinkage="auto"``
    joint_means           the same with the target as one more covariate, cross-fitted
    one_hot               indicators, for up to 200 levels
    low_rank              `LowRankEncoder` of the shrunken means
    ====================  =================================================================================

    Of the candidates whose losses are within a standard error of the smallest (of the difference, paired by
    row), those of the fewest pieces are taken, and the best of them; dropping the column has none. With fewer
    than 2,000 rows the choice among encodings is mostly chance; where dropping is not chosen, two predictions
    and two descriptions together, ``local_fit + mixed_model + low_rank + states``, are then preferred, unless
    they are more than two standard errors behind the smallest, or one behind dropping. As the smallest of
    many losses is flattered by chance, choosing must else also gain on rows that did not make the choice: in
    each fold, with the candidate that is best on the other folds.

    All that uses the target is cross-fitted in ``fit_transform``, so that no row's columns know its own
    target, but for the choice itself, which all rows make together.

    Parameters
    ----------
    {common parameters}
    estimator : estimator or None, default=None
        The learner that candidates are judged by: a regressor, or a classifier (by −log P if it has
        ``predict_proba``). None is scikit-learn's histogram gradient boosting,
        with half of its rounds.
    max_candidates : int or None, default=None
        Most candidates that are tried, in the order above, then pairs and triples; None tries all,
        21 at most.
    max_rows : int, default=100000
        Rows that the choice is made on, those of whole levels drawn at random; the time of a fit is about in
        proportion. With fewer levels, covariates tell them apart more easily, so that a choice on a part of
        them leans towards the covariates. The chosen encoders are fitted on all rows.
    target_type : {"auto", "continuous", "binary", "multiclass"}, default="auto"
        With "auto", text, booleans, two values and up to 20 whole numbers are classes, unless a regressor is
        given as ``estimator``.
    cv : "auto", int, splitter or iterable of (train, test), default="auto"
        Folds that candidates are compared on; a splitter sees the rows that the choice is made on. With
        "auto" there are 3, and with fewer than 2,000 rows 10, because levels of few rows lose too much of
        what they are with a third of them left out. With an integer and fewer than 2,000 rows they are
        dealt anew once or twice more, because chance would choose.
    verbose : int, default=0
        1 shows progress, 2 in a line for each candidate.
    random_state : int, default=0
        Seed of folds, draws and learners.

    Attributes
    ----------
    {common attributes}
    chosen_ : tuple of str
        The pieces that were chosen; empty where the column is dropped.
    encoders_ : dict of str to encoder
        The fitted pieces.
    report_ : dict of str to list
        What was tried, in that order: ``candidate``, ``loss`` (mean squared error, or −log P),
        ``gain`` over dropping the column and its ``standard_error``, ``n_columns``, ``chosen``. Made for
        ``pd.DataFrame(encoder.report_)``.
    target_type_ : str
        Kind of the target that was found.

    Examples
    --------
    >>> import pandas as pd
    >>> from sufrep import SufficientEncoder, simulate
    >>> sample = simulate("latent_linear", n=1200, n_latent=3, levels_per_latent=10)
    >>> X = pd.DataFrame(sample.columns())
    >>> encoder = SufficientEncoder("group", max_candidates=8).fit(X, sample.y)
    >>> encoder.report_["candidate"]
    ['drop', 'target', 'mixed_model', 'local_effect', 'local_fit', 'means', 'intercept', 'states']
    >>> encoder.chosen_
    ('states',)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CrossFittingEncoder._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), None],
        "max_candidates": [Interval(Integral, 1, None, closed="left"), None],
        "max_rows": [Interval(Integral, 2, None, closed="left")],
        "verbose": ["verbose"],
        "cv": ["cv_object", StrOptions({"auto"})],
    }

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
        estimator: Any = None,
        max_candidates: int | None = None,
        max_rows: int = 100_000,
        target_type: Literal["auto", "continuous", "binary", "multiclass"] = "auto",
        cv: Any = "auto",
        verbose: int = 0,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            group,
            covariates=covariates,
            categorical_covariates=categorical_covariates,
            remainder=remainder,
            unseen=unseen,
            missing=missing,
            min_frequency=min_frequency,
            cv=cv,
            target_type=target_type,
            random_state=random_state,
        )
        self.estimator = estimator
        self.max_candidates = max_candidates
        self.max_rows = max_rows
        self.verbose = verbose

    @property
    def _uses_target(self) -> bool:
        return True

    @property
    def _moments_suffice(self) -> bool:
        return False

    def _update(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Table, list[Factorized]]:
        """Choose, and fit the chosen pieces on all rows."""
        table, factors = self._choose(X, y, sample_weight, reset=reset)
        with without_convergence_warnings():
            for encoder in self.encoders_.values():
                encoder.fit(X, y, sample_weight)
        self._join(table, factors, sample_weight)
        return table, factors

    def _training_lookups(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, list[Lookup]]:
        """What the pieces give to their own training rows."""
        table, factors = self._choose(X, y, sample_weight, reset=True)
        with without_convergence_warnings():
            parts = [encoder._training_lookups(X, y, sample_weight)[1] for encoder in self.encoders_.values()]
        self._join(table, factors, sample_weight)
        return table, [*chain.from_iterable(parts)]

    def _look_up(self, table: Table, factors: Sequence[Factorized]) -> list[Lookup]:
        if self.unseen == "error":
            super()._look_up(table, factors)  # a column that is dropped may hold new levels too
        parts = [encoder._look_up(table, factors) for encoder in self.encoders_.values()]
        return [*chain.from_iterable(parts)]

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the output columns: those that pass through, then those of each piece."""
        check_is_fitted(self)
        names = [str(name) for name in _check_feature_names_in(self, input_features)]
        kept = [names[position] for position in self.layout_.kept]
        new = [encoder.get_feature_names_out(input_features).tolist() for encoder in self.encoders_.values()]
        return np.asarray([*kept, *chain.from_iterable(new)], dtype=object)

    def _choose(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Table, list[Factorized]]:
        """Set what was tried and chosen, and the chosen pieces, not yet fitted."""
        table = read_table(self, X, reset=reset)
        check_length(y, table.n_rows)
        weights = check_weights(sample_weight, table.n_rows)
        target = read_target(y, self._wanted_type())
        self.target_type_, self.layout_ = target.kind, self._layout_of(table)
        factors = [read_group(table, columns, self.missing) for columns in self.layout_.groups]
        counts = np.ones(table.n_rows, dtype=bool) if weights is None else weights > 0
        for name, factor in zip(self.layout_.group_names(table.names), factors, strict=True):
            if (factor.codes[counts] < 0).all():
                raise NoLevelError(name)
        self.covariates_, _ = read_covariates(table, self.layout_)
        search = self._search(make_problem(table, self.layout_, factors, target, weights))
        progress = Progress(self.verbose)
        tried = search.run(
            self.max_candidates if factors else 1,
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
        return table, factors

    def _wanted_type(self) -> str:
        """A regressor asks for a quantity, whatever the target looks like."""
        wants_numbers = self.estimator is not None and is_regressor(self.estimator)
        return "continuous" if self.target_type == "auto" and wants_numbers else self.target_type

    def _search(self, problem: Problem) -> Search:
        """The rows that the choice is made on, and their folds."""
        dealt = isinstance(self.cv, (str, Integral))
        if dealt and problem.weights is not None:  # rows of weight 0 are absent, but given folds hold them
            problem = problem.take(np.flatnonzero(problem.weights > 0))
        p = problem.n_covariates
        codes = np.zeros(len(problem.y), dtype=np.intp)
        if problem.rows.shape[1] > p:  # of several groups, the one with most levels
            largest = int(np.argmax(np.nanmax(problem.rows[:, p:], axis=0)))
            codes = np.nan_to_num(problem.rows[:, p + largest], nan=-1.0).astype(np.intp)
        rows = whole_levels(codes, self.max_rows, self.random_state)
        problem = problem.take(rows)
        cv, n_repeats = self._dealing(len(rows))
        folds = [
            fold
            for repeat in range(n_repeats)
            for fold in split_rows(cv, len(rows), problem.y, self.random_state + repeat)
        ]
        return Search(
            problem,
            counted_folds(folds, problem.weights),
            self.estimator,
            {"min_frequency": self.min_frequency},
            self.random_state,
        )

    def _dealing(self, n_rows: int) -> tuple[Any, int]:
        """The folds of so many rows, and how many times they are dealt."""
        if isinstance(self.cv, str):
            return _MANY_FOLDS if n_rows < CHANCE_ROWS else _FEW_FOLDS, 1
        times = min(_MOST_REPEATS, -(-CHANCE_ROWS // max(n_rows, 1)))
        return self.cv, times if isinstance(self.cv, Integral) else 1  # a splitter may not be random

    def _join(self, table: Table, factors: Sequence[Factorized], sample_weight: Any) -> None:
        """Set the tables of all pieces side by side."""
        weights = check_weights(sample_weight, table.n_rows)
        self.representations_ = {}
        for name, factor in zip(self.layout_.group_names(table.names), factors, strict=True):
            weight = np.bincount(factor.codes + 1, weights, minlength=len(factor.levels) + 1)[1:]
            levels, weight = factor.levels[weight > 0], weight[weight > 0].astype(np.float64)
            tables = {piece: encoder.representations_[name] for piece, encoder in self.encoders_.items()}
            self.representations_[name] = Representation.from_values(
                levels,
                np.hstack([np.empty((len(levels), 0)), *(_dense(table.values) for table in tables.values())]),
                _distinct_columns(tables),
                weight=weight,
                prior=np.concatenate([np.empty(0), *(table.prior for table in tables.values())]),
            )
        names = self.get_feature_names_out().tolist()
        n_kept = len(self.layout_.kept)
        refuse_clashes(names[:n_kept], {"": names[n_kept:]})


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
    """Names of the columns of all tables; the piece is added where two would be called the same."""
    times = Counter(chain.from_iterable(table.columns for table in tables.values()))
    return [
        column if times[column] == 1 else f"{column} ({piece})"
        for piece, table in tables.items()
        for column in table.columns
    ]


def _dense(values: Floats | sparse.csr_array) -> Floats:
    return values if isinstance(values, np.ndarray) else np.asarray(values.toarray())
