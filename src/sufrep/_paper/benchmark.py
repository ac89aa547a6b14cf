"""The comparison with peers: from records to ranks, and their tables.

An entry is a method with xgboost, or a model that reads the levels by itself. The entries of a data set are
compared over the folds in which one-hot columns have an error; one that has not yet run in all of these is
left out, and one that failed in any of them has failed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from sufrep._paper.models import NATIVE_MODELS
from sufrep._paper.plan import BENCHMARK_DATASETS, BENCHMARK_METHODS, BENCHMARK_MODELS
from sufrep._paper.rendering import Table
from sufrep._paper.summary import BASELINE, BASELINE_MODEL, method_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sufrep._arrays import Floats
    from sufrep._paper.store import Record

# The entry that is held against all others.
OURS = "sufficient"
FAILED = "failed"
VERDICTS = ("first", "within one standard error", "behind")
Verdict: TypeAlias = Literal["first", "within one standard error", "behind", "failed"]


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """One entry on one data set; where it failed, the numbers are NaN.

    Attributes
    ----------
    dataset, entry : str
    mse : float
        Mean over the folds.
    percent : float
        The same in percent of the mean MSE of one-hot columns.
    difference : float
        MSE above that of the best entry, which has the smallest mean.
    standard_error : float
        Of the difference, over the folds; NaN for one fold.
    rank : int or None
        1 for the best; None where the entry failed.
    seconds : float
        Median over the folds.
    n_folds : int
    """

    dataset: str
    entry: str
    mse: float
    percent: float
    difference: float
    standard_error: float
    rank: int | None
    seconds: float
    n_folds: int

    @property
    def percent_error(self) -> float:
        """The standard error in the unit of `percent`."""
        return self.standard_error * self.percent / self.mse


@dataclass(frozen=True, slots=True)
class Judgement:
    """Our entry beside the best other one on one data set.

    Attributes
    ----------
    dataset : str
    rank : int or None
    n_ranked : int
        Entries that did not fail.
    other : str
        The best of the others.
    percent, percent_error : float
        MSE above that of the other, in percent of it, and the standard error of this over the folds.
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
    """Every entry on every data set that one-hot columns were run on; both in the order of the plan."""
    found = []
    for dataset, entries in _aligned(records).items():
        errors = {entry: _errors(folds) for entry, folds in entries.items()}
        best = errors[_best(errors)]
        baseline = errors[BASELINE].mean()
        for entry, ours in errors.items():
            mse = float(ours.mean())
            failed = math.isnan(mse)
            found.append(
                BenchmarkResult(
                    dataset,
                    entry,
                    mse,
                    100 * mse / baseline,
                    *paired_difference(ours, best),
                    None if failed else 1 + sum(other.mean() < mse for other in errors.values()),
                    math.nan if failed else float(np.median([fold["seconds"] for fold in entries[entry]])),
                    len(ours),
                )
            )
    return found


def judgements(records: Sequence[Record]) -> list[Judgement]:
    """Our entry beside the best other one, on every data set that it was run on."""
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
    """Mean difference over the folds and its standard error, sd / √n; NaN for one fold."""
    differences = ours - theirs
    n = len(differences)
    error = differences.std(ddof=1) / math.sqrt(n) if n > 1 else math.nan
    return float(differences.mean()), float(error)


def benchmark_tables(records: Sequence[Record]) -> list[Table]:
    """Errors, what they say about our encoder, and times; none without one-hot columns."""
    found = benchmark_results(records)
    if not found:
        return []
    folds = sorted({item.n_folds for item in found})
    notes = (
        f"Means over {' or '.join(map(str, folds))} folds; methods are used with {BASELINE_MODEL}.",
        "± is the standard error of the paired difference to the best entry, which is marked with *.",
    )
    errors = _grid(f"Benchmark: MSE in percent of that of {BASELINE}", found, _error_cell, notes)
    judged = judgements(records)
    seconds = _grid("Benchmark: median seconds a fold", found, lambda item: f"{item.seconds:.2f}")
    return [errors, *([_judgement_table(judged)] if judged else []), seconds]


def _grid(
    title: str,
    found: Sequence[BenchmarkResult],
    cell: Callable[[BenchmarkResult], str],
    notes: tuple[str, ...] = (),
) -> Table:
    """A row an entry, a column a data set."""
    items = {(item.entry, item.dataset): item for item in found}
    datasets = dict.fromkeys(item.dataset for item in found)
    rows = []
    for entry in _ordered({item.entry for item in found}, (*BENCHMARK_METHODS, *BENCHMARK_MODELS)):
        of_entry = [items.get((entry, dataset)) for dataset in datasets]
        cells = ["" if item is None else FAILED if item.rank is None else cell(item) for item in of_entry]
        rows.append((entry, *cells))
    return Table(title, ("", *datasets), tuple(rows), notes)


def _error_cell(item: BenchmarkResult) -> str:
    if item.rank == 1:
        return f"{item.percent:.1f} *"
    error = "" if math.isnan(item.standard_error) else f" ± {item.percent_error:.1f}"
    return f"{item.percent:.1f}{error}"


def _judgement_table(judged: Sequence[Judgement]) -> Table:
    counts = {verdict: sum(item.verdict == verdict for item in judged) for verdict in (*VERDICTS, FAILED)}
    said = [f"{name} {count}" for name, count in counts.items() if count or name != FAILED]
    return Table(
        f"Benchmark: {OURS} beside the best other entry, difference of the MSE in percent",
        ("data set", "rank", "best other", "difference", "verdict"),
        tuple(_judgement_row(item) for item in judged),
        (f"Of {len(judged)} data sets: {', '.join(said)}.",),
    )


def _judgement_row(item: Judgement) -> tuple[str, ...]:
    if item.rank is None:
        return item.dataset, "", item.other, "", item.verdict
    error = "" if math.isnan(item.percent_error) else f" ± {item.percent_error:.1f}"
    rank = f"{item.rank} of {item.n_ranked}"
    return item.dataset, rank, item.other, f"{item.percent:+z.1f}{error}", item.verdict


def _verdict(rank: int | None, difference: float, error: float) -> Verdict:
    if rank is None:
        return "failed"
    if rank == 1:
        return "first"
    return "within one standard error" if difference <= error else "behind"


def _aligned(records: Sequence[Record]) -> dict[str, dict[str, list[Record]]]:
    """The records of each data set and entry, one for each fold that is compared."""
    found: dict[str, dict[str, dict[Any, Record]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        found[record["dataset"]][_entry(record)][record["seed"], record["fold"]] = record
    aligned = {}
    for dataset in _ordered(found, BENCHMARK_DATASETS):
        entries = found[dataset]
        baseline = entries.get(BASELINE, {})
        folds = [split for split in sorted(baseline) if baseline[split]["mse"] is not None]
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
    return method_name(record) + ("" if model == BASELINE_MODEL else f" ({model})")


def _errors(folds: Sequence[Record]) -> Floats:
    """The error of each fold; NaN where it failed."""
    return np.array([math.nan if fold["mse"] is None else fold["mse"] for fold in folds])


def _best(errors: dict[str, Floats]) -> str:
    means = {entry: of_entry.mean() for entry, of_entry in errors.items()}
    return min((entry for entry in means if not math.isnan(means[entry])), key=means.__getitem__)


def _ordered(names: Iterable[str], first: Sequence[str]) -> list[str]:
    """The names, those that are listed first, the others by alphabet."""
    place = {name: i for i, name in enumerate(first)}
    return sorted(names, key=lambda name: (place.get(name, len(place)), name))
