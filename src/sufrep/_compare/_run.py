"""Running a comparison: every method with every model in every split, scored."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import TargetEncoder

from sufrep._grid import Failure, attempt, run_grid, single_threaded_without_warnings
from sufrep._models import LabelledClassifier, log_losses
from sufrep._names import COMPARED_METHODS, DROP, EVERYDAY_SCORERS, ONE_HOT, TARGET_ENCODER
from sufrep._sklearn import take_rows
from sufrep.encoders import METHODS, ContrastEncoder, GroupEncoder, SufficientEncoder, ToNumbers, make_encoder
from sufrep.encoders._sharing import encode_new, fit_encode, read_for_several
from sufrep.encoders._times import ORDERED
from sufrep.errors import InvalidParameterError, check_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sufrep._arrays import Array, Floats
    from sufrep._compare._data import ComparisonData, Split
    from sufrep._progress import Report
    from sufrep.encoders._inputs import Inputs

# Codings with a column for each level but one.
CODINGS = tuple(name for name, (kind, _) in METHODS.items() if kind is ContrastEncoder)
# Encodings of more cells (of 8 bytes) fail instead of filling the memory.
MAX_CELLS = 1e8
_INNER_FOLDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonPlan:
    """What is run.

    Attributes
    ----------
    data : ComparisonData
    methods : sequence of str
    models : mapping of str to estimator
        Unfitted.
    splits : sequence of Split
    scoring : Scoring
    seed : int
    """

    data: ComparisonData
    methods: Sequence[str]
    models: Mapping[str, Any]
    splits: Sequence[Split]
    scoring: Scoring
    seed: int

    @property
    def n_folds(self) -> int:
        """Number of folds of one repetition."""
        return 1 + max(split.fold for split in self.splits)

    @property
    def effective_n_folds(self) -> float:
        """K such that test sets are 1/(K − 1) of the training sets; at most the number of folds."""
        n_train, n_test = (sum(len(getattr(s, part)) for s in self.splits) for part in ("train", "test"))
        return min(self.n_folds, 1 + n_train / n_test) if n_test else self.n_folds


@dataclass(frozen=True, slots=True)
class FoldScore:
    """Score of one method with one model in one split.

    Attributes
    ----------
    method, model : str
    repeat, fold : int
    score : float
        NaN if it failed.
    fit_seconds, predict_seconds : float
        Of encoder and model together. Reading the table and turning text and dates into numbers is not
        included: it is done once for all methods.
    n_columns : int
        Number of columns that the method adds to those that are not groups.
    failure : str or None
        Why there is no score.
    choice : str or None
        What the encoder chose and why, if it makes a choice.
    """

    method: str
    model: str
    repeat: int
    fold: int
    score: float = math.nan
    fit_seconds: float = math.nan
    predict_seconds: float = math.nan
    n_columns: int = 0
    failure: str | None = None
    choice: str | None = None


def run_comparison(plan: ComparisonPlan, n_jobs: int | None, report: Report | None) -> list[FoldScore]:
    """Score everything in parallel; the scores are sorted by model, method and split."""
    found: list[FoldScore] = []
    run_grid(
        score_split,
        _cells(plan),
        found.extend,
        n_jobs=n_jobs,
        report=report,
        n_cells=len(plan.methods) * len(plan.splits),
        name=lambda scores: scores[0].method,
    )
    methods, models = list(plan.methods), list(plan.models)
    return sorted(
        found,
        key=lambda item: (models.index(item.model), methods.index(item.method), item.repeat, item.fold),
    )


def scores_by_method(scores: Sequence[FoldScore]) -> Iterator[tuple[tuple[str, str], list[FoldScore]]]:
    """Group scores by (model, method), in their order."""
    found: dict[tuple[str, str], list[FoldScore]] = {}
    for item in scores:
        found.setdefault((item.model, item.method), []).append(item)
    yield from found.items()


# Methods


def check_methods(methods: str | Sequence[str] | None) -> list[str]:
    """Return the methods to compare, always with one-hot columns, the baseline."""
    if methods is None:
        return list(COMPARED_METHODS)
    listed = [methods] if isinstance(methods, str) else methods
    if not isinstance(listed, Iterable) or not (listed := list(listed)):
        raise InvalidParameterError("methods", methods, "None for all, or a list of names")
    for method in listed:
        check_name("methods", method, COMPARED_METHODS)
    return list(dict.fromkeys([ONE_HOT, *listed]))


def make_steps(data: ComparisonData, method: str, seed: int, model: Any = None) -> list[tuple[str, Any]]:
    """Return the unfitted steps of a pipeline that come before the model."""
    encoder = ("encoder", judged_by(model, make_method(data.after_to_numbers(), method, seed)))
    return [encoder] if data.all_numeric else [("columns", ToNumbers(keep=data.columns)), encoder]


def make_method(data: ComparisonData, method: str, seed: int) -> Any:
    """Return the unfitted encoder of a method, for the groups of the data."""
    if method == DROP:
        return _column_transformer("drop", data)
    if method == TARGET_ENCODER:
        kind = KFold if data.task == "regression" else StratifiedKFold
        inner = kind(_INNER_FOLDS, shuffle=True, random_state=seed)
        return _column_transformer(TargetEncoder(target_type=data.target_type, cv=inner), data)
    options = {"random_state": seed, "target_type": data.target_type}
    known = METHODS[method][0]._parameter_constraints
    encoder = make_encoder(method, data.group, **{key: options[key] for key in options if key in known})
    if data.time is not None and encoder._needs.uses_target:
        encoder.set_params(cv=ORDERED, time=data.time.column)
    return encoder


def judged_by(model: Any, encoder: Any) -> Any:
    """Return the encoder with the model as its judge, if it has one: that is what its columns are for."""
    if model is None or not isinstance(encoder, SufficientEncoder):
        return encoder
    judge = model.estimator if isinstance(model, LabelledClassifier) else model
    return clone(encoder).set_params(estimator=clone(judge))


def n_cells(data: ComparisonData, method: str) -> int:
    """Return the number of cells that the columns of a coding have; 0 for other methods."""
    return len(data.y) * len(data.levels) if method in CODINGS else 0


def _column_transformer(encoder: Any, data: ComparisonData) -> ColumnTransformer:
    step = ("encoder", encoder, data.columns)
    return ColumnTransformer([step], remainder="passthrough", verbose_feature_names_out=False)


# One split


@dataclass(frozen=True, slots=True, eq=False)
class SplitRows:
    """Training and test rows of a split, all numeric but for the groups; every method starts from these.

    Encoders of ours start from the inputs, which were read once for all of them.
    """

    train: Any
    test: Any
    y_train: Array
    y_test: Array
    train_inputs: Inputs
    test_inputs: Inputs
    n_others: int  # columns that are not groups


@dataclass(frozen=True, slots=True, eq=False)
class EncodedSplit:
    """Training and test rows of a split as the models see them, and how long encoding took."""

    train: Any
    test: Any
    y_train: Array
    y_test: Array
    n_columns: int
    fit_seconds: float
    transform_seconds: float
    choice: str | None = None


def read_split(data: ComparisonData, split: Split) -> SplitRows:
    """Take the rows of a split, and turn text and dates into numbers as learnt from the training rows."""
    train, test = (take_rows(data.X, rows) for rows in (split.train, split.test))
    if not data.all_numeric:
        to_numbers = ToNumbers(keep=data.columns).fit(train)
        train, test = to_numbers.transform(train), to_numbers.transform(test)
    y_train, y_test, numeric = data.y[split.train], data.y[split.test], data.after_to_numbers()
    time = None if numeric.time is None else numeric.time.column
    inputs = read_for_several(numeric.group, train, y_train, test, target_type=data.target_type, time=time)
    return SplitRows(train, test, y_train, y_test, *inputs, np.shape(train)[1] - len(data.columns))


def encode_split(encoder: Any, rows: SplitRows) -> EncodedSplit:
    """Fit an encoder to the training rows, and encode training and test rows."""
    start = perf_counter()
    if isinstance(encoder, GroupEncoder):
        train = fit_encode(encoder, rows.train_inputs)
        middle = perf_counter()
        test = encode_new(encoder, rows.test_inputs)
    else:
        train = encoder.fit_transform(rows.train, rows.y_train)
        middle = perf_counter()
        test = encoder.transform(rows.test)
    end = perf_counter()
    n_columns = np.shape(train)[1] - rows.n_others
    choice = encoder.report_["summary"] if isinstance(encoder, SufficientEncoder) else None
    seconds = middle - start, end - middle
    return EncodedSplit(train, test, rows.y_train, rows.y_test, n_columns, *seconds, choice)


def score_split(
    name: tuple[str, int, int],
    inputs: tuple[Any, SplitRows] | Failure,
    models: Mapping[str, Any],
    scoring: Scoring,
) -> list[FoldScore]:
    """Encode the rows of a split, once for all models unless these are judges, and score every model.

    Parameters
    ----------
    name : tuple of str, int and int
        Method, repetition and fold.
    inputs : tuple of unfitted encoder and SplitRows, or Failure
    models : mapping of str to estimator
    scoring : Scoring
    """
    method, repeat, fold = name
    # EM that stops early, levels that are new in a fold, deprecations in other packages: all are ignored.
    with single_threaded_without_warnings(Warning):
        found: list[FoldScore] = []
        encoded: EncodedSplit | Failure | None = None
        for label, model in models.items():
            if isinstance(inputs, Failure):
                encoded = inputs
            elif encoded is None or isinstance(inputs[0], SufficientEncoder):
                encoded = attempt(partial(encode_split, judged_by(model, inputs[0]), inputs[1]))
            found.append(_scored((method, label, repeat, fold), encoded, model, scoring))
    return found


def _scored(
    cell: tuple[str, str, int, int], encoded: EncodedSplit | Failure, model: Any, scoring: Scoring
) -> FoldScore:
    """Score one model on encoded rows."""
    if isinstance(encoded, Failure):
        return FoldScore(*cell, failure=encoded.reason)
    score = attempt(partial(_fit_and_score, model, encoded, scoring))
    if isinstance(score, Failure):
        return FoldScore(*cell, failure=score.reason)
    return FoldScore(*cell, *score, choice=encoded.choice)


def _cells(plan: ComparisonPlan) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of `score_split`; the rows of a split are read once for all methods."""
    for split in plan.splits:
        rows = attempt(partial(read_split, plan.data, split))
        # The last methods of the registry are the slowest, and what is slow should start first.
        for method in reversed(plan.methods):
            encoder = attempt(partial(_make_feasible_method, plan, method))
            failed = next((part for part in (encoder, rows) if isinstance(part, Failure)), None)
            yield (method, split.repeat, split.fold), failed or (encoder, rows), plan.models, plan.scoring


def _make_feasible_method(plan: ComparisonPlan, method: str) -> Any:
    """Make the encoder of a method, unless its columns would not fit into memory."""
    cells = n_cells(plan.data, method)
    if cells > MAX_CELLS:
        raise MemoryError(
            f"a column for each of {len(plan.data.levels):,} levels would need {cells / 1e9 * 8:.1f} GB; "
            "use fewer rows, or pool rare levels"
        )
    return make_method(plan.data.after_to_numbers(), method, plan.seed)


def _fit_and_score(model: Any, encoded: EncodedSplit, scoring: Scoring) -> tuple[float, float, float, int]:
    """Return the score, seconds to fit, seconds to predict, and the number of columns."""
    model = clone(model)
    start = perf_counter()
    model.fit(encoded.train, encoded.y_train)
    middle = perf_counter()
    score = float(scoring.measure(model, encoded.test, encoded.y_test))
    end = perf_counter()
    if not math.isfinite(score):
        raise ValueError(f"the {scoring.name} is {score}")
    fit_seconds = encoded.fit_seconds + middle - start
    return score, fit_seconds, encoded.transform_seconds + end - middle, encoded.n_columns


# Scoring


@dataclass(frozen=True, slots=True, eq=False)
class Scoring:
    """A measure of how good predictions are.

    Attributes
    ----------
    name : str
        Shown in tables.
    measure : callable
        Takes a fitted model, columns and target.
    is_loss : bool
        Whether smaller is better. Improvements of losses are relative, those of scores are differences.
    """

    name: str
    measure: Callable[[Any, Any, Array], float]
    is_loss: bool

    def gains(self, baseline: Floats, scores: Floats) -> Floats:
        """Return by how much each score is better than its baseline."""
        return baseline - scores if self.is_loss else scores - baseline

    def unit(self, baseline: Floats) -> float:
        """Return what gains are divided by to give improvements."""
        return float(np.mean(baseline)) if self.is_loss else 1.0

    def improvement_text(self, value: float, *, sign: bool = True) -> str:
        """Format an improvement: a percentage of a loss, or a difference of scores."""
        plus = "+" if sign else ""
        return f"{100 * value:{plus}.1f}\u00a0%" if self.is_loss else f"{value:{plus}.4f}"


def check_scoring(scoring: str | Callable[..., float] | None) -> None:
    """Raise unless `scoring` is None, a callable, an everyday name, or that of a scorer of scikit-learn."""
    names = list(dict.fromkeys([*EVERYDAY_SCORERS, *get_scorer_names()]))
    if scoring is None or callable(scoring) or scoring in names:
        return
    close = get_close_matches(str(scoring), names, n=3)
    known = f"did you mean {' or '.join(map(repr, close))}?" if close else ", ".join(names)
    expected = f"None, a callable of (estimator, X, y), or the name of a scorer ({known})"
    raise InvalidParameterError("scoring", scoring, expected)


def make_scoring(scoring: str | Callable[..., float] | None, task: str) -> Scoring:
    """Return the measure that the user chose, or the default of the task."""
    check_scoring(scoring)
    if scoring is None:
        if task == "regression":
            return Scoring("mean squared error", _mean_squared_error, is_loss=True)
        return Scoring("log loss", _log_loss, is_loss=True)
    if callable(scoring):
        return Scoring(getattr(scoring, "__name__", "score"), scoring, is_loss=False)
    scoring = EVERYDAY_SCORERS.get(scoring, scoring)
    scorer = get_scorer(scoring)
    if scoring.startswith("neg_"):
        name = scoring.removeprefix("neg_").replace("_", " ")
        return Scoring(name, _NegatedScorer(scorer), is_loss=True)
    return Scoring(scoring.replace("_", " "), scorer, is_loss=False)


def check_scorer(name: str, y: Array, task: str) -> None:
    """Raise if a scorer of scikit-learn does not suit the target, before every method fails for that reason.

    A constant prediction is scored, because scikit-learn does not list what its scorers accept.

    Parameters
    ----------
    name : str
    y : ndarray, shape (n,)
    task : {"regression", "binary", "multiclass"}
    """
    columns = np.zeros((len(y), 1))
    model = DummyRegressor() if task == "regression" else DummyClassifier()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            get_scorer(EVERYDAY_SCORERS.get(name, name))(model.fit(columns, y), columns, y)
    except Exception as error:
        # An AttributeError only says that a regression has no probabilities.
        reason = "" if isinstance(error, AttributeError) else f": {str(error).rstrip('.')}"
        expected = f"a scorer for the target, whose task is {task}{reason}"
        raise InvalidParameterError("scoring", name, expected) from error


def _mean_squared_error(model: Any, columns: Any, y: Array) -> float:
    return float(np.mean((np.asarray(model.predict(columns)).reshape(-1) - y) ** 2))


def _log_loss(model: Any, columns: Any, y: Array) -> float:
    return float(log_losses(np.asarray(model.predict_proba(columns)), model.classes_, y).mean())


class _NegatedScorer:
    """A scorer with the opposite sign; a class, because it is pickled for the workers."""

    def __init__(self, scorer: Any) -> None:
        self._scorer = scorer

    def __call__(self, model: Any, columns: Any, y: Array) -> float:
        return -float(self._scorer(model, columns, y))
