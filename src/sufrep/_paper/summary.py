"""From records to results: improvements over one-hot, shares of a reference, ranks, published comparisons.

The published numbers of the paper are here too: the bars of its two simulation figures were read off the
published images, to about half a point; its two tables are exact.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from sufrep._paper.names import BENCHMARK_DATASETS, BUG_SUFFIX, NATIVE_MODELS, REFERENCES
from sufrep._paper.protocols import protocol_of
from sufrep._statistics import paired_p_values, rounding_error, student_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sufrep._arrays import Floats
    from sufrep._paper.store import Record

BASELINE = "one_hot"
BASELINE_MODEL = "xgboost"
# The methods of the paper's figures and tables.
PUBLISHED_METHODS = ("means", "low_rank", "sparse_low_rank", "mnl")
# The entry of the benchmark that is compared with all others.
OURS = "sufficient"
FAILED = "failed"
VERDICTS = ("first", "within one standard error", "behind")
Verdict: TypeAlias = Literal["first", "within one standard error", "behind", "failed"]

# Setup, number of hidden states, levels of each.
SimulationCell: TypeAlias = tuple[str, int, int]


# Improvements over one-hot


@dataclass(frozen=True, slots=True)
class SimulatedImprovement:
    """By how much the error of a method is below that of one-hot columns, in one cell of a figure.

    Attributes
    ----------
    model, cell, method
        A method with the authors' bug has its own name.
    mean, low, high : float
        Mean over the seeds of 1 − MSE / MSE of one-hot, and its 95 % interval (Student); NaN for one seed.
    mse : float
        Mean error.
    n_seeds : int
        Number of seeds with both this method and one-hot.
    published : float or None
        The bar in the paper's figure, if there is one.
    """

    model: str
    cell: SimulationCell
    method: str
    mean: float
    low: float
    high: float
    mse: float
    n_seeds: int
    published: float | None


@dataclass(frozen=True, slots=True)
class EmpiricalImprovement:
    """By how much the error of a method is below that of one-hot columns, on one data set.

    Attributes
    ----------
    model, dataset, method : str
    percent : float
        100 (1 − mean MSE / mean MSE of one-hot) over all folds.
    p_plain : float
        The paper's paired t-test over the folds, which treats them as independent.
    p_corrected : float
        The same with the variance of Nadeau and Bengio, which accounts for overlapping training sets.
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


def simulated_improvements(records: Sequence[Record]) -> list[SimulatedImprovement]:
    """Return the improvement of every method in every cell; order as in the records."""
    published = published_improvements()
    found = []
    errors = _errors_by_cell(records, ("model", "setup", "n_latent", "levels_per_latent"), "seed")
    for (model, *where), by_method in errors.items():
        cell: SimulationCell = tuple(where)
        for method, ours in by_method.items():
            from_baseline = model in NATIVE_MODELS and method in REFERENCES
            if method == BASELINE or from_baseline:
                continue
            mse, one_hot = _paired(ours, by_method.get(BASELINE, {}))
            if not len(mse):
                continue
            shares = 1 - mse / one_hot
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
                    float(mse.mean()),
                    len(shares),
                    bar,
                )
            )
    return found


@dataclass(frozen=True, slots=True)
class Recovery:
    """Share of the improvement from one-hot to a reference that a method reaches, in one cell.

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
    cell: SimulationCell
    method: str
    reference: str
    share: float
    low: float
    high: float
    n_seeds: int


def recoveries(records: Sequence[Record], reference: str = "oracle") -> list[Recovery]:
    """Return the share of the improvement of `reference` that each method reaches, in each cell."""
    found = []
    errors = _errors_by_cell(records, ("model", "setup", "n_latent", "levels_per_latent"), "seed")
    for (model, *where), by_method in errors.items():
        best, baseline = by_method.get(reference, {}), by_method.get(BASELINE, {})
        for method, ours in by_method.items():
            seeds = sorted(ours.keys() & best.keys() & baseline.keys())
            if method in (BASELINE, *REFERENCES) or not seeds:
                continue
            gained = np.array([baseline[seed] - ours[seed] for seed in seeds])
            possible = np.array([baseline[seed] - best[seed] for seed in seeds])
            interval = ratio_interval(gained, possible)
            cell: SimulationCell = tuple(where)
            found.append(Recovery(model, cell, method, reference, *interval, len(seeds)))
    return found


def ratio_interval(above: Floats, below: Floats, level: float = 0.95) -> tuple[float, float, float]:
    """Return the ratio of two means over the same seeds, with its interval.

    The ratio R has the standard error of mean(above − R·below) / mean(below) (the delta method); Student's
    interval, NaN for one seed.
    """
    ratio = float(above.mean() / below.mean())
    rest = (above - ratio * below) / below.mean()
    low, high = student_interval(rest, level)
    return ratio, ratio + low, ratio + high


def empirical_improvements(records: Sequence[Record], n_folds: int) -> list[EmpiricalImprovement]:
    """Return the improvement of every method on every data set, with both tests."""
    published = published_tables()
    found = []
    errors = _errors_by_cell(records, ("model", "dataset"), "seed", "fold")
    for (model, dataset), by_method in errors.items():
        for method, ours in by_method.items():
            if method == BASELINE:
                continue
            mse, one_hot = _paired(ours, by_method.get(BASELINE, {}))
            if not len(mse):
                continue
            plain, corrected = paired_p_values(one_hot - mse, n_folds, rounding_error(one_hot, mse))
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


def method_name(record: Record) -> str:
    """Return the method of a record; with the authors' bug it is a method of its own."""
    return f"{record['method']}{BUG_SUFFIX * record['k_index_bug']}"


def _errors_by_cell(
    records: Sequence[Record], where: Sequence[str], *split: str
) -> dict[tuple[Any, ...], dict[str, dict[tuple[Any, ...], float]]]:
    """Return errors by cell (the model first), method and split.

    A model that reads the group without an encoding has no one-hot columns; it gets the baseline and the
    references of `BASELINE_MODEL`.
    """
    found: dict[Any, dict[str, dict[Any, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        cell, part = tuple(record[name] for name in where), tuple(record[name] for name in split)
        found[cell][method_name(record)][part] = record["loss"]
    for model, *rest in list(found):
        if model in NATIVE_MODELS:
            theirs = found.get((BASELINE_MODEL, *rest), {})
            found[(model, *rest)] |= {
                method: theirs[method] for method in (BASELINE, *REFERENCES) if method in theirs
            }
    return found


def _paired(ours: dict[Any, float], baseline: dict[Any, float]) -> tuple[Floats, Floats]:
    """Return the errors of both in their common splits."""
    splits = sorted(ours.keys() & baseline.keys())
    return np.array([ours[split] for split in splits]), np.array([baseline[split] for split in splits])


# The benchmark: our encoder and its peers


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """One entry on one data set; NaN if it failed.

    An entry is a method with xgboost, or a model that reads the levels without an encoding. Entries are
    compared over the folds in which one-hot columns have a loss; an entry that has not run in all of them
    is left out, and one that failed in any of them has failed.

    Attributes
    ----------
    dataset, entry : str
    loss : float
        Mean over the folds, of the loss of the data set's protocol.
    percent : float
        In percent of the mean loss of one-hot columns.
    difference : float
        Loss minus that of the best entry.
    standard_error : float
        Standard error of the difference over the folds; NaN for one fold.
    rank : int or None
        1 for the best; None if the entry failed.
    seconds : float
        Median over the folds.
    n_folds : int
    """

    dataset: str
    entry: str
    loss: float
    percent: float
    difference: float
    standard_error: float
    rank: int | None
    seconds: float
    n_folds: int

    @property
    def percent_error(self) -> float:
        """The standard error in the unit of `percent`."""
        return self.standard_error * self.percent / self.loss


@dataclass(frozen=True, slots=True)
class Judgement:
    """Our entry compared with the best other one, on one data set.

    Attributes
    ----------
    dataset : str
    rank : int or None
    n_ranked : int
        Number of entries that did not fail.
    other : str
        The best other entry.
    percent, percent_error : float
        Difference of the loss in percent of that of the other, and its standard error over the folds.
    verdict : str
    """

    dataset: str
    rank: int | None
    n_ranked: int
    other: str
    percent: float
    percent_error: float
    verdict: Verdict


def benchmark_results(records: Sequence[Record]) -> list[BenchmarkResult]:
    """Return every entry on every data set that has one-hot columns; data sets in the order of the plan.

    Data sets with published results are compared with these instead, by `published_comparison`.
    """
    found = []
    for dataset, entries in _aligned(records).items():
        errors = {entry: _errors(folds) for entry, folds in entries.items()}
        best = errors[_best(errors)]
        baseline = errors[BASELINE].mean()
        for entry, ours in errors.items():
            loss = float(ours.mean())
            failed = math.isnan(loss)
            found.append(
                BenchmarkResult(
                    dataset,
                    entry,
                    loss,
                    100 * loss / baseline,
                    *paired_difference(ours, best),
                    None if failed else 1 + sum(other.mean() < loss for other in errors.values()),
                    math.nan if failed else float(np.median([fold["seconds"] for fold in entries[entry]])),
                    len(ours),
                )
            )
    return found


def judgements(records: Sequence[Record]) -> list[Judgement]:
    """Compare our entry with the best other one, on every data set that has it."""
    ranks = {(item.dataset, item.entry): item.rank for item in benchmark_results(records)}
    found = []
    for dataset, entries in _aligned(records).items():
        errors = {entry: _errors(folds) for entry, folds in entries.items()}
        ours = errors.pop(OURS, None)
        if ours is None:
            continue
        other = _best(errors)
        mean = float(errors[other].mean())
        difference, error = (100 * value / mean for value in paired_difference(ours, errors[other]))
        rank = ranks[dataset, OURS]
        n_ranked = sum(ranks[dataset, entry] is not None for entry in entries)
        verdict = _verdict(rank, difference, error)
        found.append(Judgement(dataset, rank, n_ranked, other, difference, error, verdict))
    return found


def paired_difference(ours: Floats, theirs: Floats) -> tuple[float, float]:
    """Return the mean difference over the folds and its standard error, sd / √n; NaN for one fold."""
    differences = ours - theirs
    n = len(differences)
    error = differences.std(ddof=1) / math.sqrt(n) if n > 1 else math.nan
    return float(differences.mean()), float(error)


def _verdict(rank: int | None, difference: float, error: float) -> Verdict:
    if rank is None:
        return "failed"
    if rank == 1:
        return "first"
    return "within one standard error" if difference <= error else "behind"


def _aligned(records: Sequence[Record]) -> dict[str, dict[str, list[Record]]]:
    """Return the records of each data set and entry, one for each compared fold."""
    found: dict[str, dict[str, dict[Any, Record]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if not protocol_of(record["dataset"]).is_published:
            found[record["dataset"]][_entry(record)][record["seed"], record["fold"]] = record
    aligned = {}
    for dataset in in_order(found, BENCHMARK_DATASETS):
        entries = found[dataset]
        baseline = entries.get(BASELINE, {})
        folds = [split for split in sorted(baseline) if baseline[split]["loss"] is not None]
        if folds:
            aligned[dataset] = {
                entry: [of_entry[split] for split in folds]
                for entry, of_entry in entries.items()
                if of_entry.keys() >= set(folds)
            }
    return aligned


def _entry(record: Record) -> str:
    model = record["model"]
    if model in NATIVE_MODELS:
        return str(model)
    usual = protocol_of(record["dataset"]).encoded_model
    return method_name(record) + ("" if model == usual else f" ({model})")


def _errors(folds: Sequence[Record]) -> Floats:
    """Return the loss of each fold; NaN if it failed."""
    return np.array([math.nan if fold["loss"] is None else fold["loss"] for fold in folds])


def _best(errors: dict[str, Floats]) -> str:
    means = {entry: of_entry.mean() for entry, of_entry in errors.items()}
    return min((entry for entry in means if not math.isnan(means[entry])), key=means.__getitem__)


def in_order(names: Iterable[str], first: Sequence[str]) -> list[str]:
    """Sort names: those in `first` in its order, then the others alphabetically."""
    rank = {name: i for i, name in enumerate(first)}
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), name))


# Published comparisons


@dataclass(frozen=True, slots=True)
class ComparedEntry:
    """One entry, published or ours, on the folds of a published comparison.

    Attributes
    ----------
    entry : str
    is_published : bool
    losses : tuple of float
        By fold, the mean over the seeds; NaN where the entry has not run or has failed.
    loss : float
        Mean over the folds; NaN unless there is a loss in each.
    difference, standard_error : float
        Loss minus that of the best entry, and its standard error over the folds.
    seconds : float
        Median over folds and seeds; NaN for published entries, which ran on another machine.
    """

    entry: str
    is_published: bool
    losses: tuple[float, ...]
    loss: float
    difference: float
    standard_error: float
    seconds: float


def published_comparison(
    records: Sequence[Record], published: Mapping[str, Sequence[float]], n_folds: int
) -> list[ComparedEntry]:
    """Compare our records on one data set with published losses by fold.

    Parameters
    ----------
    records : sequence of records
        Of one data set.
    published : mapping of str to sequences of float, length n_folds
    n_folds : int

    Returns
    -------
    list of ComparedEntry
        The best first; entries without a loss in every fold last.
    """
    ours: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        ours[_entry(record)].append(record)
    losses = {(name, True): np.array(by_fold) for name, by_fold in published.items()}
    losses |= {(name, False): _fold_means(found, n_folds) for name, found in ours.items()}
    complete = [by_fold for by_fold in losses.values() if not np.isnan(by_fold).any()]
    best = min(complete, key=lambda by_fold: float(by_fold.mean()), default=np.full(n_folds, math.nan))
    entries = [
        ComparedEntry(
            name,
            is_published,
            tuple(by_fold.tolist()),
            float(by_fold.mean()),
            *paired_difference(by_fold, best),
            math.nan if is_published else float(np.median([record["seconds"] for record in ours[name]])),
        )
        for (name, is_published), by_fold in losses.items()
    ]
    return sorted(entries, key=lambda item: (math.isnan(item.loss), item.loss, item.entry))


def _fold_means(records: Sequence[Record], n_folds: int) -> Floats:
    """Return the mean loss of each fold; NaN if it has not run, or failed with any seed."""
    of_fold = [[record for record in records if record["fold"] == fold] for fold in range(n_folds)]
    return np.array([_errors(found).mean() if found else math.nan for found in of_fold])


# The paper's own numbers


def published_improvements() -> dict[tuple[str, SimulationCell, str], float]:
    """Return the relative improvement over one-hot by model, cell and method."""
    return {
        (row["model"], (row["setup"], int(row["n_latent"]), int(row["levels_per_latent"])), method): float(
            row[method]
        )
        for row in _rows("published_simulations.csv")
        for method in PUBLISHED_METHODS
    }


def published_tables() -> dict[tuple[str, str, str], dict[str, float]]:
    """Return ``improvement_percent`` and ``p_value`` by model, data set and method."""
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in _rows("published_empirical.csv"):
        for method in PUBLISHED_METHODS:
            cell = found.setdefault((row["model"], row["dataset"], method), {})
            cell[row["statistic"]] = float(row[method])
    return found


def _rows(name: str) -> list[dict[str, str]]:
    text = files("sufrep._paper").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
