"""`compare`, and the `Comparison` that it returns."""

from __future__ import annotations

import json
import math
import re
import warnings
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from sufrep._atomic import replace_file
from sufrep._charts import save_chart
from sufrep._compare._data import make_splits, read_data, sampled
from sufrep._compare._page import comparison_markdown, comparison_page
from sufrep._compare._page_charts import comparison_chart
from sufrep._compare._results import Choice, Gain, Summary, choose, choose_baseline, make_verdict, summarise
from sufrep._compare._run import (
    ComparisonPlan,
    FoldScore,
    check_methods,
    check_scorer,
    choose_methods,
    make_scoring,
    make_steps,
    scores_by_method,
)
from sufrep._compare._running import Deadline, Listener, Watcher, run_comparison
from sufrep._compare._suspicions import suspicions
from sufrep._frames import frame_from_columns, library_of
from sufrep._grid import Failure, attempt, check_n_jobs
from sufrep._models import make_models
from sufrep._names import COMPARED_METHODS, DROP, MAX_SEED, ONE_HOT
from sufrep._report import write_page
from sufrep.errors import ComparisonError, InvalidParameterError, NoCovariateWarning, check_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date
    from os import PathLike

    from sufrep._compare._data import ComparisonData
    from sufrep._progress import Report
    from sufrep.encoders._inputs import Column, Group


# Of the JSON; a change that readers of older files could misread raises it, a new field does not.
SCHEMA_VERSION = 1


class Best(NamedTuple):
    """The recommended method and its model."""

    method: str
    model: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """Which encoding of a column predicts best, by how much, and whether that may be chance.

    Returned by `sufrep.compare`.

    Attributes
    ----------
    plan : ComparisonPlan
        What was run: data, methods, models and splits.
    fold_scores : list of FoldScore
        One for each method, model and split.
    summaries : list of Summary
        Every method with every model over all splits, best first, failures last.
    baseline : str
        The method that improvements are relative to: "one_hot", or "drop" if that was not run or failed.
    notes : tuple of str
        What a reader of the results should know about the data and the run.
    all_data : ComparisonData
        All rows, of which ``plan.data`` may be a sample.
    """

    plan: ComparisonPlan
    fold_scores: list[FoldScore]
    summaries: list[Summary]
    baseline: str
    notes: tuple[str, ...]
    all_data: ComparisonData
    _fitted: dict[tuple[str, str], Pipeline] = field(default_factory=dict)

    @property
    def n_folds(self) -> int:
        """Number of folds of one repetition."""
        return self.plan.n_folds

    @property
    def best(self) -> Best:
        """The recommended method and its model.

        Of the methods that predict as well as the one with the best mean score, within 1 % or one standard
        error, it is the one that adds the fewest columns: "drop" unless some encoding is better than that.
        """
        choice = self._choice()
        if choice is None:
            raise ComparisonError(str(self.summaries[0].failure))
        return Best(choice.best.method, choice.best.model)

    @property
    def over_others(self) -> dict[str, Gain]:
        """By how much the recommended method is better than each other one with the same model.

        Improvements with intervals that are each for its pair alone; NaN where there is no test.
        """
        choice = self._choice()
        return {} if choice is None else choice.over_others

    @property
    def verdict(self) -> tuple[str, ...]:
        """The result in words; the first paragraph is the headline."""
        data = self.plan.data
        return make_verdict(
            self.summaries,
            self._choice(),
            self.plan.scoring,
            baseline=self.baseline,
            group=data.groups_in_words,
            target=data.target_name,
            is_identifier=data.is_identifier,
            n_repeats=self.plan.n_repeats,
        )

    def _choice(self) -> Choice | None:
        plan = self.plan
        return choose(
            self.summaries,
            self.fold_scores,
            plan.scoring,
            plan.effective_n_folds,
            is_identifier=plan.data.is_identifier,
        )

    def table(self, *, library: str | None = None) -> Any:
        """Return every method with every model as a frame, best first.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            Library of the frame; by default that of X. If X is an array, pandas if it is installed, else
            polars, else pyarrow.
        """
        rows = [asdict(item) for item in self.summaries]
        columns = {part.name: [row[part.name] for row in rows] for part in fields(Summary)}
        for name in ("failure", "no_test"):
            columns[name] = [text or "" for text in columns[name]]
        return frame_from_columns(columns, library, preferred=library_of(self.plan.data.X))

    def plot(self, chart: str = "ranking") -> Any:
        """Draw a chart of the report, as an Altair chart that fills the width of its page.

        Parameters
        ----------
        chart : {"ranking", "folds", "map", "spectrum", "sizes", "times"}, default="ranking"
            Improvements with their intervals; the same in each fold; levels by their vectors; directions in
            which levels differ; numbers of rows; times against improvements.
        """
        return comparison_chart(self, chart)

    def save_chart(self, path: str | PathLike[str], chart: str = "ranking", *, width: int = 760) -> Path:
        """Write a chart of the report to a file, completely or not at all.

        Parameters
        ----------
        path : str or path
            Ends in .png, .svg or .html (interactive; works offline).
        chart : {"ranking", "folds", "map", "spectrum", "sizes", "times"}, default="ranking"
            See `plot`.
        width : int, default=760
            Of the plot without its axes, in pixels; a PNG has twice as many.
        """
        return save_chart(self.plot(chart).properties(width=width), Path(path))

    def to_html(
        self,
        path: str | PathLike[str],
        *,
        loading: str | None = None,
        source: str | None = None,
        day: date | None = None,
    ) -> Path:
        """Write the report, a single HTML page that needs no network.

        The page is written under a temporary name and then renamed, so it is never incomplete.

        Parameters
        ----------
        path : str or path
        loading : str or None
            Python code that defines X and y, shown in the report before the code of the best pipeline.
        source : str or None
            Where the rows come from, for the header: the name of a file, or "simulated data".
        day : datetime.date or None
            The date in the header; None is today.
        """
        return write_page(comparison_page(self, loading, source, day), path)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return all results as JSON, which ``comparison.schema.json`` in this package describes.

        Parameters
        ----------
        path : str, path or None
            A file to write it to as well, completely or not at all.
        """
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False)
        if path is not None:
            replace_file(path, text.encode())
        return text

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str:
        """Return verdict, results and notes as Markdown with a table, in which all names are only text.

        Parameters
        ----------
        path : str, path or None
            A file to write it to as well, completely or not at all.
        """
        text = comparison_markdown(self)
        if path is not None:
            replace_file(path, text.encode("utf-8", "replace"))
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain values for JSON; NaN becomes None."""
        data = self.plan.data
        return {
            "schema_version": SCHEMA_VERSION,
            "group": data.group_name,
            "target": data.target_name,
            "time": None if data.time is None else data.time.name,
            "task": data.task,
            "scoring": self.plan.scoring.name,
            "is_loss": self.plan.scoring.is_loss,
            "baseline": self.baseline,
            "n_rows": len(data.y),
            "n_levels": len(data.levels),
            "n_folds": self.n_folds,
            "n_splits": len(self.plan.splits),
            "random_state": self.plan.seed,
            "best": None if self._choice() is None else self.best._asdict(),
            "best_over_others": {name: _difference(gain) for name, gain in self.over_others.items()},
            "verdict": list(self.verdict),
            "results": [_plain(asdict(item)) for item in self.summaries],
            "fold_scores": [_plain(_without_rows(item)) for item in self.fold_scores],
            "notes": list(self.notes),
        }

    def pipeline(self, method: str, model: str) -> Pipeline:
        """Return the unfitted pipeline of a method and a model.

        Where nothing is left to predict from, because the table has no other column than the group that is
        dropped, the model is a constant, as it was in the comparison.
        """
        check_name("method", method, COMPARED_METHODS)
        check_name("model", model, self.plan.models)
        data = self.plan.data
        steps = make_steps(data, method, self.plan.seed, self.plan.models[model])
        last = self.plan.models[model]
        if method == DROP and len(data.columns) == np.shape(data.X)[1]:
            last = DummyRegressor() if data.task == "regression" else DummyClassifier()
        return Pipeline([*steps, ("model", clone(last))])

    def fit_best(self) -> Pipeline:
        """Fit the best method and model on all rows; returns a scikit-learn pipeline.

        The last step is the model. The steps before it are those that were cross-validated and that the
        report prints, and ``sufrep.save(comparison.fit_best()[:-1], path)`` is what ``sufrep compare --save``
        writes.
        """
        return deepcopy(self._fitted_on_all(*self.best))

    def fitted_encoder(self, method: str, model: str) -> Any:
        """Return the encoder of a method after fitting its pipeline on all rows."""
        return self._fitted_on_all(method, model).named_steps["encoder"]

    def _fitted_on_all(self, method: str, model: str) -> Pipeline:
        """Fit a pipeline once; report, saved file and `fit_best` share it."""
        if (method, model) not in self._fitted:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                # All columns of the user's table are there.
                warnings.simplefilter("ignore", NoCovariateWarning)
                data = self.all_data
                self._fitted[method, model] = self.pipeline(method, model).fit(data.X, data.y)
        return self._fitted[method, model]

    def __repr__(self) -> str:
        data = self.plan.data
        size = f"{len(data.y)} rows, {len(data.levels)} levels of {data.group_name!r}"
        return f"<Comparison of {len(self.plan.methods)} methods on {size}>\n" + "\n".join(self.verdict)


def compare(
    X: Any,
    y: Any,
    *,
    group: Group | list[Group] | None = None,
    methods: str | Sequence[str] = "usual",
    models: str | Any | Sequence[Any] | Mapping[str, Any] = "boosting",
    cv: Any = 5,
    n_repeats: int = 1,
    folds: str = "spread",
    time: Column | None = None,
    task: str = "auto",
    scoring: str | Callable[..., float] | None = None,
    n_jobs: int | None = None,
    max_rows: int | None = 100_000,
    budget: float | str | None = None,
    random_state: int = 0,
    progress: bool | Report | Watcher = False,
) -> Comparison:
    """Compare encodings of a column on your own data, by cross-validation.

    Every method is fitted to the training rows of every split, the fast ones first. A method that fails is
    reported as failed and does not stop the others. Every row is predicted once; rows of levels that the
    training rows of their fold do not have are predicted as rows of new levels.

    Parameters
    ----------
    X : frame or array, shape (n, n_features)
        The column to encode, next to others. Text columns with few levels and dates become numbers
        (`ToNumbers`).
    y : array-like, shape (n,), or str
        The target, or the name of its column in the frame X.
    group : str, int, tuple, or list of these
        The column to encode; None takes the only text column.
    methods : str or sequence of str, default="usual"
        Names of encoders, "target_encoder" (scikit-learn's), or "drop" (leave the column out), which is
        always compared. "usual" is eight methods, with "one_hot" only up to 100 levels; "quick" are the
        fast ones of these; "all" is every method.
    models : str, estimator, a sequence of these, or mapping of str to any of these
        "boosting" (scikit-learn's, which stops early), "xgboost", "forest", "linear", or your own estimator.
        A model that is not installed is left out with a note.
    cv : int, splitter or iterable of (train, test), default=5
        Number of folds, or anything scikit-learn accepts. Improvements are tested from three folds on.
    n_repeats : int, default=1
        Number of repetitions with different folds, if ``cv`` is a number.
    folds : {"spread", "grouped", "paper"}, default="spread"
        "spread" distributes the rows of each level over the folds as equally as possible, and tests every
        row once. "grouped" tests on levels that training has not seen. "paper" never tests rows of levels
        with fewer rows than folds, as in the paper.
    time : str or int, default=None
        The column of X that says when each row happened: numbers, dates, or ISO text. The first rows only
        train; the others are cut by time into ``cv`` blocks, ties together, and each block is predicted from
        all rows before it. Encoders that use the target have ``cv="ordered"``. The models see the column too.
    task : {"auto", "regression", "binary", "multiclass"}, default="auto"
        "auto" treats text, booleans, two distinct values and up to 20 distinct integers as classes.
    scoring : str, callable or None
        "rmse", "mae", "mse", "auc", "accuracy", "log_loss", another scorer of scikit-learn by its name, or a
        function of (estimator, X, y) where larger is better. None is the root mean squared error, or the log
        loss for classes.
    n_jobs : int or None
        Number of parallel jobs; −1 is one for each core.
    max_rows : int or None, default=100_000
        Larger tables are compared on a random sample of whole levels with about so many rows; None takes
        all rows, and so do splits given by ``cv``. `fit_best` always uses all rows.
    budget : float, str or None, default=None
        Seconds, or a time such as "90s", "2m" or "1h", after which nothing more is started. Methods that
        were not finished are left out with a note.
    random_state : int, default=0
        Seed of folds, encoders and models.
    progress : bool or callable, default=False
        True prints lines to standard error; a callable is called with the number done, the total number, and
        a method.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import pandas as pd
    >>> from sufrep import compare, simulate
    >>> sample = simulate("latent_linear", n=2000, n_latent=3, levels_per_latent=20)
    >>> X = pd.DataFrame(sample.columns())
    >>> found = compare(X, sample.y, group="group", methods=["means", "latent_state"], models="linear")
    >>> found.best
    Best(method='latent_state', model='linear')
    >>> found.verdict[0].partition(":")[0]
    'Encode group with latent_state (LatentStateEncoder)'
    """
    _check_whole("random_state", random_state, 0, MAX_SEED)
    _check_whole("n_repeats", n_repeats, 1)
    if max_rows is not None:
        _check_whole("max_rows", max_rows, 10)
    check_n_jobs(n_jobs)
    check_methods(methods)
    deadline = Deadline(None if budget is None else read_seconds(budget))
    all_data = read_data(X, y, group, task, time)
    # Splits that the user gives are of all rows.
    data, sample_notes = sampled(all_data, max_rows if isinstance(cv, Integral) else None, random_state)
    built, model_notes = make_models(models, classes=data.task != "regression", seed=random_state)
    splits, fold_notes = make_splits(data, cv=cv, n_repeats=n_repeats, folds=folds, seed=random_state)
    measure = make_scoring(scoring, data.task)
    if isinstance(scoring, str):
        check_scorer(scoring, data.y, data.task)
    if folds != "spread" or time is not None or not isinstance(cv, Integral):
        # Rows that are tested together because they belong together are not independent; folds are.
        measure = replace(measure, contributions=None)
    chosen = choose_methods(methods, len(data.levels))
    plan = ComparisonPlan(data, chosen, built, splits, measure, random_state)
    watcher = progress if isinstance(progress, Watcher) else Listener(progress)
    scores = run_comparison(plan, n_jobs, watcher, deadline)
    finished, unfinished_notes = _finished(scores, plan)
    baseline = choose_baseline(finished)
    summaries = summarise(finished, plan.scoring, baseline, plan.effective_n_folds)
    notes = (*unfinished_notes, *sample_notes, *data.notes, *model_notes, *fold_notes)
    if ONE_HOT in check_methods(methods) and ONE_HOT not in chosen:
        notes += (
            f"One-hot columns of {len(data.levels):,} levels take long and are not compared; name them in "
            "methods to compare them.",
        )
    suspicious = attempt(lambda: tuple(suspicions(data, summaries, plan.scoring)))
    notes += () if isinstance(suspicious, Failure) else suspicious
    return Comparison(plan, finished, summaries, baseline, notes, all_data)


def _finished(scores: Sequence[FoldScore], plan: ComparisonPlan) -> tuple[list[FoldScore], list[str]]:
    """Return the scores of methods that were done in all splits, and a note on the others."""
    done = {method for (_, method), items in scores_by_method(scores) if len(items) == len(plan.splits)}
    missing = [method for method in plan.methods if method not in done]
    if not done:
        hint = "give it more time, or compare fewer rows (max_rows) or methods."
        raise ComparisonError("there was no time to finish any method.", hint)
    note = f"Not finished, and not compared: {', '.join(missing)}."
    return [item for item in scores if item.method in done], [note] if missing else []


_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|min|sec)?")
_SECONDS = {"s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, None: 1.0}


def read_seconds(budget: float | str) -> float:
    """Return a time in seconds, given as a number or as a text such as "2m".

    Examples
    --------
    >>> read_seconds("2m"), read_seconds("1.5 h"), read_seconds(10)
    (120.0, 5400.0, 10.0)
    """
    read = _TIME.fullmatch(budget.strip().lower()) if isinstance(budget, str) else None
    seconds = float(read[1]) * _SECONDS[read[2]] if read else budget
    if not isinstance(seconds, Real) or isinstance(seconds, bool) or not 0 < seconds < math.inf:
        raise InvalidParameterError("budget", budget, "seconds, or a time such as '90s', '2m' or '1h'")
    return float(seconds)


def _check_whole(parameter: str, value: object, least: int, most: int | None = None) -> None:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):  # type: ignore[operator]
        expected = f"{least} or more" if most is None else f"from {least} to {most}"
        raise InvalidParameterError(parameter, value, f"a whole number, {expected}")


def _without_rows(item: FoldScore) -> dict[str, Any]:
    row = asdict(replace(item, rows=None))
    del row["rows"]
    return row


def _difference(gain: Gain) -> dict[str, Any]:
    # Tests of pairs that were not planned would need another correction; the intervals say they have none.
    return _plain({name: getattr(gain, name) for name in ("improvement", "low", "high", "no_test")})


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Replace NaN and infinity, which JSON does not have, by None."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }
