"""The paper's two tables, and the numbers of its figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sufrep._paper.benchmark import benchmark_tables
from sufrep._paper.models import NATIVE_MODELS
from sufrep._paper.plan import REFERENCES
from sufrep._paper.published import PUBLISHED_METHODS
from sufrep._paper.rendering import Table
from sufrep._paper.store import Store
from sufrep._paper.summary import (
    BASELINE_MODEL,
    empirical_improvements,
    recoveries,
    simulated_improvements,
)
from sufrep.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from sufrep._paper.store import Record
    from sufrep._paper.summary import EmpiricalImprovement, Recovery, SimulatedImprovement

# Within so many points of the published bar, ours counts as the same: what we ask of each model.
TOLERANCE = {"xgboost": 4, "forest": 8}

# More columns than this are split into several tables, so that lines of text stay readable.
_MOST_METHODS = 7


def all_tables(folder: Path) -> list[Table]:
    """The tables of all experiments of a store, as far as there are results."""
    records = Store(folder, "simulations").records()
    found = [
        *simulation_tables(records),
        *recovery_tables(records),
        *empirical_tables(Store(folder, "empirical").records()),
        *benchmark_tables(Store(folder, "benchmark").records()),
    ]
    if not found:
        raise StoreError(
            folder,
            "holds no results that can be compared with one_hot",
            "run `sufrep paper simulations`, `empirical` or `benchmark` first.",
        )
    return found


def empirical_tables(records: Sequence[Record], n_folds: int = 4) -> list[Table]:
    """Tables of each model: improvement over one-hot with both tests, and the published values."""
    found = empirical_improvements(records, n_folds)
    return [
        _empirical_table([item for item in found if item.model == model and item.method in methods], methods)
        for model in dict.fromkeys(item.model for item in found)
        for methods in _blocks(item.method for item in found if item.model == model)
    ]


def _empirical_table(found: Sequence[EmpiricalImprovement], methods: Sequence[str]) -> Table:
    items = {(item.dataset, item.method): item for item in found}
    rows: list[tuple[str, ...]] = []
    for dataset in dict.fromkeys(item.dataset for item in found):
        cells = [items.get((dataset, method)) for method in methods]
        lines = [(dataset, name, *map(cell, cells)) for name, cell in _STATISTICS.items()]
        rows += [line for line in lines if any(line[2:])]
    splits = _range(item.n_splits for item in found)
    note = f"{splits} test folds. p corrected: for overlapping training sets (Nadeau and Bengio)."
    title = f"{found[0].model}: percent improvement of the MSE over one-hot, real data"
    return Table(title, ("data set", "", *methods), tuple(rows), (note,))


def simulation_tables(records: Sequence[Record]) -> list[Table]:
    """Tables of each model: improvement over one-hot in percent, ± half the 95 % interval, (published)."""
    found = simulated_improvements(records)
    return [
        _simulation_table([item for item in found if item.model == model and item.method in methods], methods)
        for model in dict.fromkeys(item.model for item in found)
        for methods in _blocks(item.method for item in found if item.model == model)
    ]


def _simulation_table(found: Sequence[SimulatedImprovement], methods: Sequence[str]) -> Table:
    items = {(item.cell, item.method): item for item in found}
    rows = tuple(
        (cell[0], f"{cell[1]}L-{cell[2]}G", *(_simulated(items.get((cell, method))) for method in methods))
        for cell in dict.fromkeys(item.cell for item in found)
    )
    published = " (published)" if any(item.published is not None for item in found) else ""
    title = f"{found[0].model}: percent improvement of the MSE over one-hot ± 95 %{published}"
    notes = (f"Seeds a cell: {_range(item.n_seeds for item in found)}.", *_agreement(found, methods))
    return Table(title, ("setup", "cell", *methods), rows, notes)


def recovery_tables(records: Sequence[Record]) -> list[Table]:
    """Tables of each model: percent of the way from one-hot to a reference that each method goes, ± 95 %.

    The oracle is the reference of encodings; a model that predicts by itself is held against Bayes.
    """
    found = [item for item in recoveries(records, "oracle") if item.model not in NATIVE_MODELS]
    found += [item for item in recoveries(records, "bayes") if item.model in NATIVE_MODELS]
    return [
        _recovery_table([item for item in found if item.model == model and item.method in methods], methods)
        for model in dict.fromkeys(item.model for item in found)
        for methods in _blocks(item.method for item in found if item.model == model)
    ]


def _recovery_table(found: Sequence[Recovery], methods: Sequence[str]) -> Table:
    items = {(item.cell, item.method): item for item in found}
    rows = tuple(
        (cell[0], f"{cell[1]}L-{cell[2]}G", *(_recovered(items.get((cell, method))) for method in methods))
        for cell in dict.fromkeys(item.cell for item in found)
    )
    model, reference = found[0].model, found[0].reference
    against = f" ({BASELINE_MODEL})" if model in NATIVE_MODELS else ""
    title = f"{model}: percent of the improvement from one-hot{against} to {reference} that is reached ± 95 %"
    note = (
        f"Ratios of mean differences over the seeds ({_range(item.n_seeds for item in found)} a cell); "
        f"where one-hot and {reference} hardly differ, they say little."
    )
    return Table(title, ("setup", "cell", *methods), rows, (note,))


def _recovered(item: Recovery | None) -> str:
    if item is None:
        return ""
    half = "" if math.isnan(item.high) else f" ± {100 * (item.high - item.share):.0f}"
    return f"{100 * item.share:z.0f}{half}"


def _agreement(items: Sequence[SimulatedImprovement], methods: Sequence[str]) -> list[str]:
    """How often our bar is near the published one."""
    points = TOLERANCE.get(items[0].model)
    if points is None:
        return []
    shares = []
    for method in methods:
        ours = [item for item in items if item.method == method]
        gaps = [abs(item.mean - item.published) for item in ours if item.published is not None]
        if gaps:
            shares.append(f"{method} {sum(gap <= points / 100 for gap in gaps)} of {len(gaps)}")
    return [f"Cells within {points} points of the published bar: {', '.join(shares)}."] if shares else []


def _simulated(item: SimulatedImprovement | None) -> str:
    if item is None:
        return ""
    half = "" if math.isnan(item.high) else f" ± {100 * (item.high - item.mean):.1f}"
    published = "" if item.published is None else f" ({100 * item.published:.1f})"
    return f"{100 * item.mean:z.1f}{half}{published}"  # z: no minus before a zero


def _percent(item: EmpiricalImprovement | None) -> str:
    return "" if item is None else f"{item.percent:z.3f}"


def _p_plain(item: EmpiricalImprovement | None) -> str:
    return "" if item is None or math.isnan(item.p_plain) else f"{item.p_plain:.5f}"


def _p_corrected(item: EmpiricalImprovement | None) -> str:
    return "" if item is None or math.isnan(item.p_corrected) else f"{item.p_corrected:.5f}"


def _published(item: EmpiricalImprovement | None) -> str:
    if item is None or item.published_percent is None:
        return ""
    return f"{item.published_percent:.3f} ({item.published_p:.5f})"


_STATISTICS = {
    "improvement": _percent,
    "p": _p_plain,
    "p corrected": _p_corrected,
    "published (p)": _published,
}


def _blocks(methods: Iterable[str]) -> list[list[str]]:
    """The methods of each table: the paper's four and the references first, then all others."""
    names = dict.fromkeys(methods)
    first = [name for name in (*PUBLISHED_METHODS, *REFERENCES) if name in names]
    others = [name for name in names if name not in first]
    n_tables = math.ceil(len(others) / _MOST_METHODS)
    parts = [others[len(others) * i // n_tables : len(others) * (i + 1) // n_tables] for i in range(n_tables)]
    return [block for block in (first, *parts) if block]


def _range(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"
