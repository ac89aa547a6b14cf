"""The result of a comparison, and the function that makes it."""

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

from sufrep._compare._folds import make_splits
from sufrep._compare._methods import check_methods, make_first_step, make_steps
from sufrep._compare._models import make_models
from sufrep._compare._page import comparison_page
from sufrep._compare._page_charts import ranking_chart
from sufrep._compare._problem import read_problem
from sufrep._compare._progress import teller
from sufrep._compare._run import Outcome, Plan, run_plan
from sufrep._compare._scoring import make_scoring
from sufrep._compare._summary import Summary, choose_baseline, rivals, summarise
from sufrep._compare._verdict import make_verdict
from sufrep._frames import frame_from_columns
from sufrep._report import write_page
from sufrep.encoders import METHODS
from sufrep.errors import ComparisonError, InvalidParameterError, NoEncoderError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from sufrep.encoders import GroupEncoder
    from sufrep.encoders._inputs import Group

_LIBRARIES = ("pandas", "polars", "pyarrow")


class Best(NamedTuple):
    """The winner."""

    method: str
    model: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """Which representation of a column predicts best, by how much, and whether that is noise.

    Made by `sufrep.compare`.

    Attributes
    ----------
    plan : Plan
        What was run: the data, methods, models and splits.
    outcomes : list of Outcome
        One for each method, model and split.
    baseline : str
        What improvements are measured from: "one_hot", or "drop" where one-hot columns failed.
    notes : tuple of str
        What the reader should know about the data and the run.
    """

    plan: Plan
    outcomes: list[Outcome]
    baseline: str
    notes: tuple[str, ...]
    _fitted: dict[tuple[str, str], Pipeline] = field(default_factory=dict)

    @property
    def summaries(self) -> list[Summary]:
        """Every method with every model over all splits, the best first, those that failed last."""
        return summarise(self.outcomes, self.plan.scoring, self.baseline, self._overlapping_folds)

    @property
    def n_folds(self) -> int:
        """Folds of one repetition."""
        return 1 + max(split.fold for split in self.plan.splits)

    @property
    def _overlapping_folds(self) -> float:
        """K such that test sets are 1/(K − 1) of training sets; of a splitter's, if that is fewer folds."""
        n_train, n_test = (sum(len(getattr(s, part)) for s in self.plan.splits) for part in ("train", "test"))
        return min(self.n_folds, 1 + n_train / n_test) if n_test else self.n_folds

    @property
    def best(self) -> Best:
        """Method and model with the best mean score."""
        first = self.summaries[0]
        if first.failed:
            raise ComparisonError(str(first.failure))
        return Best(first.method, first.model)

    @property
    def verdict(self) -> tuple[str, ...]:
        """What the comparison says, in plain words; the first paragraph is the headline."""
        summaries, plan = self.summaries, self.plan
        first = summaries[0]
        tied: list[str] = []
        if not first.failed:
            tied = rivals(self.outcomes, plan.scoring, (first.model, first.method), self._overlapping_folds)
        return make_verdict(
            summaries,
            plan.scoring,
            baseline=self.baseline,
            group=plan.problem.group_name,
            target=plan.problem.target_name,
            tied=tied,
        )

    def table(self, *, library: str | None = None) -> Any:
        """Every method with every model as a frame, the best first.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            Kind of the frame; by default pandas if installed, else polars, else pyarrow.
        """
        rows = [asdict(item) for item in self.summaries]
        columns = {part.name: [row[part.name] for row in rows] for part in fields(Summary)}
        columns["failure"] = [text or "" for text in columns["failure"]]
        return frame_from_columns(columns, _LIBRARIES if library is None else (library,))

    def plot(self) -> Any:
        """Draw the ranking with its intervals; an Altair chart."""
        return ranking_chart(self)

    def to_html(self, path: str | PathLike[str], *, loading: str | None = None) -> Path:
        """Write the report: one page that needs no network.

        The page is complete or not there at all: it is written under another name and then renamed.

        Parameters
        ----------
        path : str or path
        loading : str or None
            Lines of Python that define X and y, for the code in the report.
        """
        return write_page(comparison_page(self, loading), path)

    def to_dict(self) -> dict[str, Any]:
        """All results as plain values, made for JSON; what is no number is None."""
        problem = self.plan.problem
        return {
            "group": problem.group_name,
            "target": problem.target_name,
            "task": problem.task,
            "scoring": self.plan.scoring.name,
            "is_loss": self.plan.scoring.is_loss,
            "baseline": self.baseline,
            "n_rows": len(problem.y),
            "n_levels": len(problem.levels),
            "n_folds": self.n_folds,
            "n_splits": len(self.plan.splits),
            "random_state": self.plan.seed,
            "best": None if self.summaries[0].failed else self.best._asdict(),
            "verdict": list(self.verdict),
            "results": [_plain(asdict(item)) for item in self.summaries],
            "outcomes": [_plain(asdict(item)) for item in self.outcomes],
            "notes": list(self.notes),
        }

    def pipeline(self, method: str, model: str) -> Pipeline:
        """The steps of a method and a model, not yet fitted."""
        steps = make_steps(self.plan.problem, method, self.plan.seed)
        return Pipeline([*steps, ("model", clone(self.plan.models[model]))])

    def fit_best(self) -> Pipeline:
        """Fit the winner on all rows; a scikit-learn pipeline that takes tables like the one compared on."""
        return deepcopy(self._fitted_on_all(*self.best))

    def fit_encoder(self) -> GroupEncoder:
        """Fit the winner's encoder alone, on the table as it is, to be saved.

        In the pipeline of `fit_best` text and dates become numbers before the encoder sees them; alone, it
        passes them through and describes levels by the columns that are numbers already.
        """
        method, model = self.best
        if method not in METHODS:
            raise NoEncoderError(method)
        problem = self.plan.problem
        if problem.plain:
            return deepcopy(self.fitted_encoder(method, model))  # type: ignore[no-any-return]
        encoder = make_first_step(problem, method, self.plan.seed)
        return encoder.fit(problem.X, problem.y)  # type: ignore[no-any-return]

    def fitted_encoder(self, method: str, model: str) -> Any:
        """The encoder of a method, fitted on all rows with what comes before it, and with the model."""
        return self._fitted_on_all(method, model).named_steps["encoder"]

    def _fitted_on_all(self, method: str, model: str) -> Pipeline:
        """Fit once, because report, file and pipeline of the winner may all be asked for."""
        if (method, model) not in self._fitted:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                problem = self.plan.problem
                self._fitted[method, model] = self.pipeline(method, model).fit(problem.X, problem.y)
        return self._fitted[method, model]

    def __repr__(self) -> str:
        problem = self.plan.problem
        size = f"{len(problem.y)} rows, {len(problem.levels)} levels of {problem.group_name!r}"
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
    task: str = "auto",
    scoring: str | Callable[..., float] | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: bool | Callable[[int, int, str], None] = False,
) -> Comparison:
    """Compare all representations of a column on your own data, by cross-validation.

    Every method is fitted anew on the training rows of every split; methods that fail are reported as failed,
    and the rest goes on.

    Parameters
    ----------
    X : frame or array, shape (n, n_features)
        The column to represent beside others. Text of few levels and dates become numbers (`ToNumbers`).
    y : array-like, shape (n,)
    group : str, int, tuple, or list of these
        The column to represent; None takes the one text column that there is.
    methods : str, sequence of str, or None
        Names of encoders, "target_encoder" (scikit-learn's), "drop" (the column left out). None is all of
        them. "one_hot" is always added, because improvements are measured from it.
    models : str, estimator, a sequence of these, or mapping of str to estimator
        "forest", "xgboost", "boosting" (scikit-learn's), "linear", or your own. One that is not installed is
        left out with a note.
    cv : int, splitter or iterable of (train, test), default=4
        Number of folds, or whatever scikit-learn takes.
    n_repeats : int, default=1
        How often rows are dealt anew into folds, if ``cv`` is a number.
    folds : {"stratified", "grouped"}, default="stratified"
        Whether each level is dealt over all folds, as in the paper, or tested as a whole, so that no tested
        level was seen in training.
    task : {"auto", "regression", "binary", "multiclass"}, default="auto"
        Text, booleans, two values and up to 20 whole numbers are classes.
    scoring : str, callable or None
        A name of scikit-learn's, or a function of (estimator, X, y) where larger is better. None is the mean
        squared error, for classes the log loss.
    n_jobs : int or None
        Splits that run side by side; −1 is one for each core.
    random_state : int, default=0
        Seed of folds, encoders and models.
    progress : bool or callable, default=False
        True writes lines to the error stream; a callable gets the number done, the number of all, and a
        name.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import pandas as pd
    >>> from sufrep import compare, simulate
    >>> sample = simulate("latent_linear", n=2000, n_latent=3, levels_per_latent=20)
    >>> X = pd.DataFrame(sample.columns())
    >>> found = compare(X, sample.y, group="group", methods=["means", "latent_state"], models="boosting")
    >>> found.best
    Best(method='latent_state', model='boosting')
    >>> [text for text in found.verdict[:1]]
    ['Represent group by latent_state: with boosting it predicts y best.']
    """
    if not isinstance(random_state, Integral) or random_state < 0:
        raise InvalidParameterError("random_state", random_state, "a whole number, 0 or more")
    problem = read_problem(X, y, group, task)
    chosen = check_methods(methods)
    learners, model_notes = make_models(models, classes=problem.task != "regression", seed=random_state)
    splits, fold_notes = make_splits(problem, cv=cv, n_repeats=n_repeats, folds=folds, seed=random_state)
    plan = Plan(problem, chosen, learners, splits, make_scoring(scoring, problem.task), random_state)
    with teller(progress) as tell:
        outcomes = run_plan(plan, n_jobs, tell)
    return Comparison(plan, outcomes, choose_baseline(outcomes), (*problem.notes, *model_notes, *fold_notes))


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row for JSON, which has no NaN."""
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()
    }
