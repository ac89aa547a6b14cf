"""One part of a comparison: a method, with every model, in one split, scored."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import TargetEncoder

from sufrep._compare._data import LEVEL_KINDS
from sufrep._grid import Failure, attempt, single_threaded_without_warnings
from sufrep._models import LabelledClassifier, is_default_boosting, log_losses
from sufrep._names import (
    COMPARED_METHODS,
    DROP,
    EVERYDAY_SCORERS,
    METHOD_LISTS,
    ONE_HOT,
    QUICK_METHODS,
    TARGET_ENCODER,
    USUAL_METHODS,
)
from sufrep._sklearn import take_rows
from sufrep.encoders import (
    METHODS,
    ContrastEncoder,
    DropColumns,
    GroupEncoder,
    SufficientEncoder,
    ToNumbers,
    make_encoder,
)
from sufrep.encoders._sharing import encode_new, fit_encode, read_for_several
from sufrep.encoders._times import ORDERED
from sufrep.errors import InvalidParameterError, check_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sufrep._arrays import Array, Codes, Floats
    from sufrep._compare._data import ComparisonData, Split
    from sufrep.encoders._inputs import Inputs

# Codings with a column for each level but one.
CODINGS = tuple(name for name, (kind, _) in METHODS.items() if kind is ContrastEncoder)
# Encodings of more cells (of 8 bytes) fail instead of filling the memory.
MAX_CELLS = 1e8
PERCENT = "\u00a0%"
# One-hot columns of more levels are compared only if they are named.
FEW_LEVELS = 100
_INNER_FOLDS = 5
_LISTS = {"usual": USUAL_METHODS, "quick": QUICK_METHODS, "all": COMPARED_METHODS}
# About how long a method takes, as a multiple of leaving the column out. They decide on the order, and on the
# time left until a method has been measured; others take `_USUAL_COST`.
_COSTS = {
    DROP: 1.0,
    "target_mean": 1.2,
    "means": 1.4,
    "low_rank": 1.5,
    "mixed_model": 1.8,
    "permutation": 1.2,
    "fisher": 1.2,
    ONE_HOT: 2.5,
    "latent_state": 4.0,
    "mnl": 6.0,
    **dict.fromkeys((name for name in CODINGS if name != ONE_HOT), 5.0),
    "sufficient": 15.0,
}
_USUAL_COST = 2.0


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
    def n_repeats(self) -> int:
        """Number of repetitions."""
        return len({split.repeat for split in self.splits})

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
        Of all test rows; NaN if it failed.
    fit_seconds, predict_seconds : float
        Of encoder and model together. Reading the table and turning text and dates into numbers is not
        included: it is done once for all methods.
    n_columns : int
        Number of columns that the method adds to those that are not groups.
    failure : str or None
        Why there is no score.
    choice : str or None
        What the encoder chose and why, if it makes a choice.
    also : float
        The second measure of the scoring, if it has one.
    common, rare, new : float
        Score of the test rows whose level has many, few or no training rows; NaN without such rows.
    n_common, n_rare, n_new : int
        Number of such rows.
    rows : ndarray, shape (n_test,), or None
        What each test row contributes to the score, if the scoring knows; see `Scoring`.
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
    also: float = math.nan
    common: float = math.nan
    rare: float = math.nan
    new: float = math.nan
    n_common: int = 0
    n_rare: int = 0
    n_new: int = 0
    rows: Floats | None = field(default=None, repr=False, compare=False)


def scores_by_method(scores: Sequence[FoldScore]) -> Iterator[tuple[tuple[str, str], list[FoldScore]]]:
    """Group scores by (model, method), in their order."""
    found: dict[tuple[str, str], list[FoldScore]] = {}
    for item in scores:
        found.setdefault((item.model, item.method), []).append(item)
    yield from found.items()


# Methods


def check_methods(methods: str | Sequence[str]) -> list[str]:
    """Return the methods to compare as the user named them, lists of methods spelt out."""
    listed = [methods] if isinstance(methods, str) else methods
    if not isinstance(listed, Iterable) or not (listed := list(listed)):
        raise InvalidParameterError("methods", methods, "'usual', 'quick', 'all', or a list of names")
    for method in listed:
        check_name("methods", method, (*COMPARED_METHODS, *METHOD_LISTS))
    return [name for method in listed for name in _LISTS.get(method, (method,))]


def choose_methods(methods: str | Sequence[str], n_levels: int) -> list[str]:
    """Return the methods to compare, the fast ones first; leaving the column out is always one of them.

    One-hot columns of many levels take more time than all other usual methods, and must be named.
    """
    chosen = dict.fromkeys([DROP, *check_methods(methods)])
    named = {methods} if isinstance(methods, str) else set(methods)
    if ONE_HOT in chosen and not named & {ONE_HOT, "all"} and n_levels > FEW_LEVELS:
        del chosen[ONE_HOT]
    return sorted(chosen, key=usual_cost)


def usual_cost(method: str) -> float:
    """Return about how long a method takes, as a multiple of leaving the column out."""
    return _COSTS.get(method, _USUAL_COST)


def make_steps(data: ComparisonData, method: str, seed: int, model: Any = None) -> list[tuple[str, Any]]:
    """Return the unfitted steps of a pipeline that come before the model."""
    # `DropColumns` comes second like every encoder: of a table that still has text it would make an array of
    # objects, without the names by which `ToNumbers` is saved and applied.
    encoder = ("encoder", judged_by(model, make_method(data.after_to_numbers(), method, seed)))
    return [encoder] if data.all_numeric else [("columns", ToNumbers(keep=data.columns)), encoder]


def make_method(data: ComparisonData, method: str, seed: int) -> Any:
    """Return the unfitted encoder of a method, for the groups of the data."""
    if method == DROP:
        return DropColumns(data.columns)
    if method == TARGET_ENCODER:
        kind = KFold if data.task == "regression" else StratifiedKFold
        inner = kind(_INNER_FOLDS, shuffle=True, random_state=seed)
        step = ("encoder", TargetEncoder(target_type=data.target_type, cv=inner), data.columns)
        return ColumnTransformer([step], remainder="passthrough", verbose_feature_names_out=False)
    options = {"random_state": seed, "target_type": data.target_type}
    known = METHODS[method][0]._parameter_constraints
    encoder = make_encoder(method, data.group, **{key: options[key] for key in options if key in known})
    if data.time is not None and encoder._needs.uses_target:
        encoder.set_params(cv=ORDERED, time=data.time.column)
    return encoder


def judged_by(model: Any, encoder: Any) -> Any:
    """Return the encoder with the model as its judge, if it has one: that is what its columns are for.

    The default model is left to the encoder, whose own judge is the same boosting in a faster form.
    """
    if model is None or not isinstance(encoder, SufficientEncoder) or is_default_boosting(model):
        return encoder
    judge = model.estimator if isinstance(model, LabelledClassifier) else model
    return clone(encoder).set_params(estimator=clone(judge))


def n_cells(data: ComparisonData, method: str) -> int:
    """Return the number of cells that the columns of a coding have; 0 for other methods."""
    return len(data.y) * len(data.levels) if method in CODINGS else 0


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
    kinds: Codes  # of the levels of the test rows, as `ComparisonData.level_kinds` has them


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The rows of a split in a file that workers read; arrays stay in the file.

    Attributes
    ----------
    path : str
    """

    path: str

    @classmethod
    def save(cls, rows: SplitRows, path: str) -> StoredRows:
        """Write rows to a file."""
        joblib.dump(rows, path)
        return cls(path)

    def load(self) -> SplitRows:
        """Return the rows of the file."""
        return _load(self.path)


@lru_cache(maxsize=1)  # reading again takes little time, keeping all splits much memory
def _load(path: str) -> SplitRows:
    rows: SplitRows = joblib.load(path, mmap_mode="r")
    return rows


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
    kinds: Codes
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
    n_others = np.shape(train)[1] - len(data.columns)
    return SplitRows(train, test, y_train, y_test, *inputs, n_others, data.level_kinds(split))


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
    if not np.shape(train)[1]:  # without any column, models predict a constant, but most refuse to be fitted
        train, test = (np.zeros((len(target), 1)) for target in (rows.y_train, rows.y_test))
    return EncodedSplit(train, test, rows.y_train, rows.y_test, n_columns, *seconds, rows.kinds, choice)


def score_split(
    name: tuple[str, int, int],
    encoder: Any,
    rows: SplitRows | StoredRows | Failure,
    models: Mapping[str, Any],
    scoring: Scoring,
) -> tuple[list[FoldScore], float]:
    """Encode the rows of a split, once for all models unless these are judges, and score every model.

    Parameters
    ----------
    name : tuple of str, int and int
        Method, repetition and fold.
    encoder : estimator or Failure
        Unfitted.
    rows : SplitRows, StoredRows or Failure
    models : mapping of str to estimator
    scoring : Scoring

    Returns
    -------
    list of FoldScore, and float
        One score for each model, and the seconds that all of it took.
    """
    method, repeat, fold = name
    start = perf_counter()
    # EM that stops early, levels that are new in a fold, deprecations in other packages: all are ignored.
    with single_threaded_without_warnings(Warning):
        if isinstance(rows, StoredRows):
            rows = rows.load()
        found: list[FoldScore] = []
        encoded: EncodedSplit | Failure | None = None
        for label, model in models.items():
            if isinstance(encoder, Failure):
                encoded = encoder
            elif isinstance(rows, Failure):
                encoded = rows
            elif encoded is None or isinstance(encoder, SufficientEncoder):
                encoded = attempt(partial(encode_split, judged_by(model, encoder), rows))
            found.append(_scored((method, label, repeat, fold), encoded, model, scoring))
    return found, perf_counter() - start


def _scored(
    cell: tuple[str, str, int, int], encoded: EncodedSplit | Failure, model: Any, scoring: Scoring
) -> FoldScore:
    """Score one model on encoded rows."""
    if isinstance(encoded, Failure):
        return FoldScore(*cell, failure=encoded.reason)
    score = attempt(partial(_fit_and_score, model, encoded, scoring))
    if isinstance(score, Failure):
        return FoldScore(*cell, failure=score.reason)
    return FoldScore(*cell, choice=encoded.choice, n_columns=encoded.n_columns, **score)


def make_feasible_method(plan: ComparisonPlan, method: str) -> Any:
    """Make the encoder of a method, unless its columns would not fit into memory."""
    cells = n_cells(plan.data, method)
    if cells > MAX_CELLS:
        raise MemoryError(
            f"a column for each of {len(plan.data.levels):,} levels would need {cells / 1e9 * 8:.1f} GB; "
            "use fewer rows, or pool rare levels"
        )
    return make_method(plan.data.after_to_numbers(), method, plan.seed)


def _fit_and_score(model: Any, encoded: EncodedSplit, scoring: Scoring) -> dict[str, Any]:
    """Return the scores of a `FoldScore`, and the seconds that fitting and predicting took."""
    model = clone(model)
    start = perf_counter()
    model.fit(encoded.train, encoded.y_train)
    middle = perf_counter()
    rows = scoring.contributions(model, encoded.test, encoded.y_test) if scoring.contributions else None
    score = float(scoring.measure(model, encoded.test, encoded.y_test) if rows is None else rows.mean())
    end = perf_counter()
    if not math.isfinite(score):
        raise ValueError(f"the {scoring.name} is {score}")
    found: dict[str, Any] = {
        "score": score,
        "rows": rows,
        "fit_seconds": encoded.fit_seconds + middle - start,
        "predict_seconds": encoded.transform_seconds + end - middle,
    }
    if scoring.also is not None:
        found["also"] = _score_or_nan(scoring.also[1], model, encoded.test, encoded.y_test)
    for number, kind in enumerate(LEVEL_KINDS):
        own = np.flatnonzero(encoded.kinds == number)
        found[f"n_{kind}"] = len(own)
        if len(own) == len(encoded.kinds):
            found[kind] = score
        elif len(own):
            part = take_rows(encoded.test, own)
            found[kind] = _score_or_nan(scoring.measure, model, part, encoded.y_test[own])
    return found


def _score_or_nan(measure: Callable[[Any, Any, Array], float], model: Any, columns: Any, y: Array) -> float:
    """Return a score, or NaN where there is none, such as the area under the curve of a single class."""
    score = attempt(lambda: float(measure(model, columns, y)))
    return math.nan if isinstance(score, Failure) else score


# Scoring


# Scorers of scikit-learn that the defaults stand for, and whether they are for numbers.
_DEFAULT_SCORERS = {"neg_root_mean_squared_error": True, "neg_log_loss": False}
_IN_UNITS = ("root mean squared error", "mean absolute error", "median absolute error", "max error")


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
    also : tuple of str and callable, or None
        Name and measure of a score that is shown next to it, because more readers know it.
    in_units : bool
        Whether a score is in the units of the target.
    contributions : callable or None
        Takes what `measure` takes, and returns what each row contributes: values with the score as their
        mean, and whose variance divided by their number is the variance of the score.
    is_root : bool
        Whether a score is the root of a mean of squares.
    """

    name: str
    measure: Callable[[Any, Any, Array], float]
    is_loss: bool
    also: tuple[str, Callable[[Any, Any, Array], float]] | None = None
    in_units: bool = False
    contributions: Callable[[Any, Any, Array], Floats] | None = None
    is_root: bool = False

    @property
    def spoken(self) -> str:
        """The name within a sentence, without an abbreviation in parentheses."""
        return self.name.partition(" (")[0]

    def gains(self, baseline: Floats, scores: Floats) -> Floats:
        """Return by how much each score is better than its baseline."""
        return baseline - scores if self.is_loss else scores - baseline

    def unit(self, baseline: Floats) -> float:
        """Return what gains are divided by to give improvements."""
        return float(np.mean(baseline)) if self.is_loss else 1.0

    def pooled(self, scores: Floats, n_rows: Floats) -> float:
        """Return the score of the rows of several splits together, from their scores and numbers of rows.

        The root mean squared error of one row is its absolute error: the mean of many such errors would be
        smaller than what is called by this name. Scores that are no means over rows are averaged.
        """
        if self.is_root:
            return float(np.sqrt(np.average(scores**2, weights=n_rows)))
        return float(np.average(scores, weights=n_rows))

    def improvement_text(self, value: float, *, sign: bool = True) -> str:
        """Format an improvement: a percentage of a loss, or a difference of scores."""
        plus = "+" if sign else ""
        # Adding zero removes the minus of a negative zero.
        percent, difference = round(100 * value, 1) + 0.0, round(value, 4) + 0.0
        return f"{percent:{plus}.1f}{PERCENT}" if self.is_loss else f"{difference:{plus}.4f}"


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
    if isinstance(scoring, str) and _DEFAULT_SCORERS.get(EVERYDAY_SCORERS.get(scoring, scoring)) == (
        task == "regression"
    ):
        scoring = None
    if scoring is None:
        if task == "regression":
            return Scoring(
                "typical error (RMSE)",
                _root_mean_squared_error,
                is_loss=True,
                in_units=True,
                contributions=_error_contributions,
                is_root=True,
            )
        also = ("AUC", get_scorer("roc_auc")) if task == "binary" else ("accuracy", get_scorer("accuracy"))
        return Scoring("log loss", _log_loss, is_loss=True, also=also, contributions=_row_log_losses)
    if callable(scoring):
        name = getattr(scoring, "__name__", "score")
        return Scoring(name if name.isidentifier() else "score", scoring, is_loss=False)
    scoring = EVERYDAY_SCORERS.get(scoring, scoring)
    scorer = get_scorer(scoring)
    if scoring.startswith("neg_"):
        name = scoring.removeprefix("neg_").replace("_", " ")
        in_units = name in _IN_UNITS
        return Scoring(name, _NegatedScorer(scorer), is_loss=True, in_units=in_units)
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


def _root_mean_squared_error(model: Any, columns: Any, y: Array) -> float:
    return float(_error_contributions(model, columns, y).mean())


def _error_contributions(model: Any, columns: Any, y: Array) -> Floats:
    """Squared errors, scaled and shifted so that the root of their mean is linear in them, to first order."""
    errors: Floats = (np.asarray(model.predict(columns), dtype=np.float64).reshape(-1) - y) ** 2
    typical = float(np.sqrt(errors.mean()))
    return (errors / typical + typical) / 2 if typical > 0 else errors


def _log_loss(model: Any, columns: Any, y: Array) -> float:
    return float(_row_log_losses(model, columns, y).mean())


def _row_log_losses(model: Any, columns: Any, y: Array) -> Floats:
    return log_losses(np.asarray(model.predict_proba(columns)), model.classes_, y)


class _NegatedScorer:
    """A scorer with the opposite sign; a class, because it is pickled for the workers."""

    def __init__(self, scorer: Any) -> None:
        self._scorer = scorer

    def __call__(self, model: Any, columns: Any, y: Array) -> float:
        return -float(self._scorer(model, columns, y))
