"""From records to improvements over one-hot, with intervals and tests."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._paper.models import NATIVE_MODELS
from sufrep._paper.plan import REFERENCES
from sufrep._paper.published import Cell, published_improvements, published_tables
from sufrep._statistics import paired_p_values, student_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats

BASELINE = "one_hot"
BASELINE_MODEL = "xgboost"
BUG_SUFFIX = " (k index)"


@dataclass(frozen=True, slots=True)
class SimulatedImprovement:
    """How much smaller the error of a method is than that of one-hot columns, in one cell of a figure.

    Attributes
    ----------
    model, cell, method
        The cell is (setup, n_latent, levels_per_latent). A method with the authors' slip has its own name.
    mean, low, high : float
        Mean over the seeds of 1 − MSE / MSE of one-hot, and its 95 % interval (Student); NaN for one seed.
    mse : float
        Mean error.
    n_seeds : int
        Seeds that have both this method and one-hot.
    published : float or None
        The bar of the paper's figure, where it has one.
    """

    model: str
    cell: Cell
    method: str
    mean: float
    low: float
    high: float
    mse: float
    n_seeds: int
    published: float | None


@dataclass(frozen=True, slots=True)
class EmpiricalImprovement:
    """How much smaller the error of a method is than that of one-hot columns, on one data set.

    Attributes
    ----------
    model, dataset, method : str
    percent : float
        100 (1 − mean MSE / mean MSE of one-hot) over all folds.
    p_plain : float
        The paper's paired t-test of the folds' errors, which takes them for independent.
    p_corrected : float
        The same with the variance of Nadeau and Bengio, which allows for training sets that overlap.
    n_splits : int
        Folds times repetitions.
    published_percent, published_p : float or None
    """

    model: str
    dataset: str
    method: str
    percent: float
    p_plain: float
    p_corrected: float
    n_splits: int
    published_percent: float | None
    published_p: float | None


def simulated_improvements(records: Sequence[dict[str, Any]]) -> list[SimulatedImprovement]:
    """Improvement of every method in every cell; models, cells and methods as they first appear."""
    published = published_improvements()
    found = []
    errors = _errors(records, ("model", "setup", "n_latent", "levels_per_latent"), "seed")
    for (model, *where), by_method in errors.items():
        cell: Cell = tuple(where)
        for method, ours in by_method.items():
            borrowed = model in NATIVE_MODELS and method in REFERENCES
            if method == BASELINE or borrowed:
                continue
            seeds, theirs = _paired(ours, by_method.get(BASELINE, {}))
            if not len(seeds):
                continue
            shares = 1 - seeds / theirs
            low, high = student_interval(shares)
            bar = published.get((model, cell, method.removesuffix(BUG_SUFFIX)))
            found.append(
                SimulatedImprovement(
                    model,
                    cell,
                    method,
                    float(shares.mean()),
                    low,
                    high,
                    float(seeds.mean()),
                    len(shares),
                    bar,
                )
            )
    return found


@dataclass(frozen=True, slots=True)
class Recovery:
    """Which share of the way from one-hot to a reference a method goes, in one cell.

    Attributes
    ----------
    model, cell, method
    reference : str
        "oracle" or "bayes".
    share, low, high : float
        Ratio of the mean differences over the seeds, and its 95 % interval from the paired differences.
    n_seeds : int
    """

    model: str
    cell: Cell
    method: str
    reference: str
    share: float
    low: float
    high: float
    n_seeds: int


def recoveries(records: Sequence[dict[str, Any]], reference: str = "oracle") -> list[Recovery]:
    """Share of the improvement of `reference` that every method reaches, in every cell that has both."""
    found = []
    errors = _errors(records, ("model", "setup", "n_latent", "levels_per_latent"), "seed")
    for (model, *where), by_method in errors.items():
        best, baseline = by_method.get(reference, {}), by_method.get(BASELINE, {})
        for method, ours in by_method.items():
            seeds = sorted(ours.keys() & best.keys() & baseline.keys())
            if method in (BASELINE, *REFERENCES) or not seeds:
                continue
            gained = np.array([baseline[seed] - ours[seed] for seed in seeds])
            possible = np.array([baseline[seed] - best[seed] for seed in seeds])
            interval = ratio_interval(gained, possible)
            cell: Cell = tuple(where)
            found.append(Recovery(model, cell, method, reference, *interval, len(seeds)))
    return found


def ratio_interval(above: Floats, below: Floats, level: float = 0.95) -> tuple[float, float, float]:
    """Ratio of two means over the same seeds, with the ends of its interval.

    The ratio R has the standard error of mean(above − R·below) / mean(below) (the delta method); Student's
    interval, NaN for one seed.
    """
    ratio = float(above.mean() / below.mean())
    rest = (above - ratio * below) / below.mean()
    low, high = student_interval(rest, level)
    return ratio, ratio + low, ratio + high


def empirical_improvements(records: Sequence[dict[str, Any]], n_folds: int) -> list[EmpiricalImprovement]:
    """Improvement of every method on every data set, with both tests."""
    published = published_tables()
    found = []
    errors = _errors(records, ("model", "dataset"), "seed", "fold")
    for (model, dataset), by_method in errors.items():
        for method, ours in by_method.items():
            if method == BASELINE:
                continue
            mse, one_hot = _paired(ours, by_method.get(BASELINE, {}))
            if not len(mse):
                continue
            plain, corrected = paired_p_values(one_hot - mse, n_folds)
            paper = published.get((model, dataset, method.removesuffix(BUG_SUFFIX)), {})
            found.append(
                EmpiricalImprovement(
                    model,
                    dataset,
                    method,
                    100 * float(1 - mse.mean() / one_hot.mean()),
                    plain,
                    corrected,
                    len(mse),
                    paper.get("improvement_percent"),
                    paper.get("p_value"),
                )
            )
    return found


def method_name(record: dict[str, Any]) -> str:
    """The name under which a record is summarised; the slip makes it another method."""
    return f"{record['method']}{BUG_SUFFIX * record['k_index_bug']}"


def _errors(
    records: Sequence[dict[str, Any]], where: Sequence[str], *split: str
) -> dict[tuple[Any, ...], dict[str, dict[tuple[Any, ...], float]]]:
    """Errors by place (the model first), method and split.

    A model that reads the group by itself has no one-hot columns; it is held against `BASELINE_MODEL`, with
    whose baseline and references it is given back.
    """
    found: dict[Any, dict[str, dict[Any, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        place, part = tuple(record[name] for name in where), tuple(record[name] for name in split)
        found[place][method_name(record)][part] = record["mse"]
    for model, *rest in list(found):
        if model in NATIVE_MODELS:
            theirs = found.get((BASELINE_MODEL, *rest), {})
            found[(model, *rest)] |= {
                method: theirs[method] for method in (BASELINE, *REFERENCES) if method in theirs
            }
    return found


def _paired(ours: dict[Any, float], baseline: dict[Any, float]) -> tuple[Floats, Floats]:
    """The errors of both in the splits that both have."""
    splits = sorted(ours.keys() & baseline.keys())
    return np.array([ours[split] for split in splits]), np.array([baseline[split] for split in splits])
