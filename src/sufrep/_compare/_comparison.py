"""`compare`, and the `Comparison` that it returns."""

from __future__ import annotations

import math
import warnings
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from sufrep._compare._data import make_splits, read_data
from sufrep._compare._page import comparison_page, ranking_chart
from sufrep._compare._results import Summary, choose_baseline, find_ties, make_verdict, summarise
from sufrep._compare._run import (
    ComparisonPlan,
    FoldScore,
    check_methods,
    check_scorer,
    judged_by,
    make_method,
    make_scoring,
    make_steps,
    run_comparison,
)
from sufrep._frames import frame_from_columns, library_of
from sufrep._grid import check_n_jobs
from sufrep._models import make_models
from sufrep._names import COMPARED_METHODS, MAX_SEED
from sufrep._progress import make_report
from sufrep._report import write_page
from sufrep.encoders import METHODS, SufficientEncoder
from sufrep.errors import ComparisonError, InvalidParameterError, NoEncoderError, check_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from sufrep._progress import Report
    from sufrep.encoders import GroupEncoder
    from sufrep.encoders._inputs import Column, Group


class Best(NamedTuple):
    """The method and the model with the best mean score."""

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
        The method that improvements are relative to: "one_hot", or "drop" if one-hot columns failed.
    notes : tuple of str
        What a reader of the results should know about the data and the run.
    """

    plan: ComparisonPlan
    fold_scores: list[FoldScore]
    summaries: list[Summary]
    baseline: str
    notes: tuple[str, ...]
    _fitted: dict[tuple[str, str], Pipeline] = field(default_factory=dict)

    @property
    def n_folds(self) -> int:
        """Number of folds of one repetition."""
        return self.plan.n_folds

    @property
    def best(self) -> Best:
        """The method and the model with the best mean score."""
        first = self.summaries[0]
        if first.failed:
            raise ComparisonError(str(first.failure))
        return Best(first.method, first.model)

    @property
    def verdict(self) -> tuple[str, ...]:
        """The result in words; the first paragraph is the headline."""
        summaries, plan = self.summaries, self.plan
        first = summaries[0]
        tied: list[str] = []
        if not first.failed:
            best = (first.model, first.method)
            tied = find_ties(self.fold_scores, plan.scoring, best, plan.effective_n_folds)
        return make_verdict(
            summaries,
            plan.scoring,
            baseline=self.baseline,
            group=plan.data.group_name,
            target=plan.data.target_name,
            tied=tied,
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

    def plot(self) -> Any:
        """Draw the ranking with its intervals, as an Altair chart."""
        return ranking_chart(self)

    def to_html(self, path: str | PathLike[str], *, loading: str | None = None) -> Path:
        """Write the report, a single HTML page that needs no network.

        The page is written under a temporary name and then renamed, so it is never incomplete.

        Parameters
        ----------
        path : str or path
        loading : str or None
            Python code that defines X and y, shown in the report before the code of the best pipeline.
        """
        return write_page(comparison_page(self, loading), path)

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain values for JSON; NaN becomes None."""
        data = self.plan.data
        return {
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
            "best": None if self.summaries[0].failed else self.best._asdict(),
            "verdict": list(self.verdict),
            "results": [_plain(asdict(item)) for item in self.summaries],
            "fold_scores": [_plain(asdict(item)) for item in self.fold_scores],
            "notes": list(self.notes),
        }

    def pipeline(self, method: str, model: str) -> Pipeline:
        """Return the unfitted pipeline of a method and a model."""
        check_name("method", method, COMPARED_METHODS)
        check_name("model", model, self.plan.models)
        steps = make_steps(self.plan.data, method, self.plan.seed, self.plan.models[model])
        return Pipeline([*steps, ("model", clone(self.plan.models[model]))])

    def fit_best(self) -> Pipeline:
        """Fit the best method and model on all rows; returns a scikit-learn pipeline."""
        return deepcopy(self._fitted_on_all(*self.best))

    def fit_encoder(self) -> GroupEncoder:
        """Fit the encoder of the best method alone on the table as it is, ready to be saved.

        In the pipeline of `fit_best`, text and dates are turned into numbers before they reach the encoder.
        Alone, the encoder passes them through and describes levels by the numeric columns only.
        """
        method, model = self.best
        if method not in METHODS:
            raise NoEncoderError(method)
        data = self.plan.data
        if data.all_numeric:
            encoder = deepcopy(self.fitted_encoder(method, model))
        else:
            encoder = judged_by(self.plan.models[model], make_method(data, method, self.plan.seed))
            encoder.fit(data.X, data.y)
        if isinstance(encoder, SufficientEncoder):
            encoder.set_params(estimator=None)  # the judge has done its work, and cannot be saved
        return encoder  # type: ignore[no-any-return]

    def fitted_encoder(self, method: str, model: str) -> Any:
        """Return the encoder of a method after fitting its pipeline on all rows."""
        return self._fitted_on_all(method, model).named_steps["encoder"]

    def _fitted_on_all(self, method: str, model: str) -> Pipeline:
        """Fit a pipeline once; report, saved file and `fit_best` share it."""
        if (method, model) not in self._fitted:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                data = self.plan.data
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
    methods: str | Sequence[str] | None = None,
    models: str | Any | Sequence[Any] | Mapping[str, Any] = ("forest", "xgboost"),
    cv: Any = 4,
    n_repeats: int = 1,
    folds: str = "stratified",
    time: Column | None = None,
    task: str = "auto",
    scoring: str | Callable[..., float] | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: bool | Report = False,
) -> Comparison:
    """Compare encodings of a column on your own data, by cross-validation.

    Every method is fitted to the training rows of every split. A method that fails is reported as failed and
    does not stop the others.

    Parameters
    ----------
    X : frame or array, shape (n, n_features)
        The column to encode, next to others. Text columns with few levels and dates become numbers
        (`ToNumbers`).
    y : array-like, shape (n,), or str
        The target, or the name of its column in the frame X.
    group : str, int, tuple, or list of these
        The column to encode; None takes the only text column.
    methods : str, sequence of str, or None
        Names of encoders, "target_encoder" (scikit-learn's) or "drop" (leave the column out). None is all of
        them. "one_hot" is always added, because it is the baseline of all improvements.
    models : str, estimator, a sequence of these, or mapping of str to any of these
        "forest", "xgboost", "boosting" (scikit-learn's), "linear", or your own estimator. A model that is
        not installed is left out with a note.
    cv : int, splitter or iterable of (train, test), default=4
        Number of folds, or anything scikit-learn accepts. Improvements are tested from three folds on.
    n_repeats : int, default=1
        Number of repetitions with different folds, if ``cv`` is a number.
    folds : {"stratified", "grouped"}, default="stratified"
        "stratified" spreads each level over all folds, as in the paper; "grouped" tests on levels that
        training has not seen.
    time : str or int, default=None
        The column of X that says when each row happened: numbers, dates, or ISO text. The first rows only
        train; the others are cut by time into ``cv`` blocks, ties together, and each block is predicted from
        all rows before it. Encoders that use the target have ``cv="ordered"``. The models see the column too.
    task : {"auto", "regression", "binary", "multiclass"}, default="auto"
        "auto" treats text, booleans, two distinct values and up to 20 distinct integers as classes.
    scoring : str, callable or None
        "rmse", "mae", "mse", "auc", "accuracy", "log_loss", another scorer of scikit-learn by its name, or a
        function of (estimator, X, y) where larger is better. None is the mean squared error, or the log loss
        for classes.
    n_jobs : int or None
        Number of parallel jobs; −1 is one for each core.
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
    >>> found.verdict[0]
    'Encode group with LatentStateEncoder (latent_state): with linear, it predicts y best.'
    """
    _check_whole("random_state", random_state, 0, MAX_SEED)
    _check_whole("n_repeats", n_repeats, 1)
    check_n_jobs(n_jobs)
    chosen = check_methods(methods)
    data = read_data(X, y, group, task, time)
    built, model_notes = make_models(models, classes=data.task != "regression", seed=random_state)
    splits, fold_notes = make_splits(data, cv=cv, n_repeats=n_repeats, folds=folds, seed=random_state)
    measure = make_scoring(scoring, data.task)
    if isinstance(scoring, str):
        check_scorer(scoring, data.y, data.task)
    plan = ComparisonPlan(data, chosen, built, splits, measure, random_state)
    scores = run_comparison(plan, n_jobs, make_report(progress, "compare"))
    baseline = choose_baseline(scores)
    summaries = summarise(scores, plan.scoring, baseline, plan.effective_n_folds)
    return Comparison(plan, scores, summaries, baseline, (*data.notes, *model_notes, *fold_notes))


def _check_whole(parameter: str, value: object, least: int, most: int | None = None) -> None:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):  # type: ignore[operator]
        expected = f"{least} or more" if most is None else f"from {least} to {most}"
        raise InvalidParameterError(parameter, value, f"a whole number, {expected}")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Replace NaN and infinity, which JSON does not have, by None."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }
