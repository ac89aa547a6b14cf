"""Tables as text, Markdown or LaTeX: the paper's two, the numbers of its figures, benchmark and effects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, get_args

from sufrep._paper.effect_summary import effect_summaries
from sufrep._paper.names import (
    AT_MOST_BINARY,
    BENCHMARK_METHODS,
    BENCHMARK_MODELS,
    NATIVE_MODELS,
    REFERENCES,
)
from sufrep._paper.protocols import SLOW_ON_CLASSES, Loss, protocol_of
from sufrep._paper.store import Store
from sufrep._paper.summary import (
    BASELINE,
    BASELINE_MODEL,
    FAILED,
    OURS,
    PUBLISHED_METHODS,
    VERDICTS,
    benchmark_results,
    empirical_improvements,
    in_order,
    judgements,
    published_comparison,
    recoveries,
    simulated_improvements,
)
from sufrep._statistics import p_value_text
from sufrep.datasets import PUBLISHED_FOLDS, load_published_insteval, load_published_wages
from sufrep.errors import DataNotFoundError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from sufrep._paper.effect_summary import EffectSummary, Measured
    from sufrep._paper.store import Record
    from sufrep._paper.summary import (
        BenchmarkResult,
        ComparedEntry,
        EmpiricalImprovement,
        Judgement,
        Recovery,
        SimulatedImprovement,
    )

# What one entry of a table shows.
Item = TypeVar("Item", "EmpiricalImprovement", "SimulatedImprovement", "Recovery")
Format: TypeAlias = Literal["text", "markdown", "latex"]

# Within this many points of the published bar, ours counts as the same.
TOLERANCE = {"xgboost": 4, "forest": 8}

# Losses of the benchmark, in the order of its tables.
LOSSES: tuple[Loss, ...] = get_args(Loss)
_BINARY_ONLY = ", ".join(AT_MOST_BINARY)
# Methods of one table; more are split into several tables, so that lines of text stay readable.
_MAX_METHODS = 7


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table whose cells are text, with a title and notes."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def render(self, style: Format) -> str:
        """Return the table in one of the three formats, ending with a newline."""
        return {"text": self._text, "markdown": self._markdown, "latex": self._latex}[style]()

    def _text(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (self.header, tuple("-" * width for width in widths), *self.rows)
        ]
        return "\n".join([self.title, *lines, *self.notes]) + "\n"

    def _markdown(self) -> str:
        lines = [f"| {' | '.join(row)} |" for row in (self.header, ("---",) * len(self.header), *self.rows)]
        notes = [line for note in self.notes for line in ("", note)]
        return "\n".join([f"**{self.title}**", "", *lines, *notes]) + "\n"

    def _latex(self) -> str:
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{{'l' * len(self.header)}}}",
            r"\hline",
            _latex_row(self.header),
            r"\hline",
            *map(_latex_row, self.rows),
            r"\hline",
            r"\end{tabular}",
            rf"\caption{{{_latex(' '.join((self.title + '.', *self.notes)))}}}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"


def all_tables(folder: Path, data_dir: Path | None = None) -> list[TextTable]:
    """Return the tables of all experiments of a store that have results.

    Parameters
    ----------
    folder : path
        The store.
    data_dir : path, optional
        Folder of the data, from which published results are read; by default that of the environment.
    """
    records = Store(folder, "simulations").records()
    benchmark = Store(folder, "benchmark").records()
    found = [
        *simulation_tables(records),
        *recovery_tables(records),
        *empirical_tables(Store(folder, "empirical").records()),
        *benchmark_tables(benchmark),
        *compared_tables(benchmark, data_dir),
        *effect_tables(Store(folder, "causal").records()),
    ]
    if not found:
        raise StoreError(
            folder,
            "holds no results that can be compared with one_hot",
            "run `sufrep paper simulations`, `empirical`, `benchmark` or `causal` first.",
        )
    return found


# Improvements over one-hot


def empirical_tables(records: Sequence[Record], n_folds: int = 4) -> list[TextTable]:
    """Return tables of each model: improvement over one-hot with both tests, and the published values."""
    found = empirical_improvements(records, n_folds)
    return _tables_by_model(found, _empirical_table)


def _empirical_table(found: Sequence[EmpiricalImprovement], methods: Sequence[str]) -> TextTable:
    items = {(item.dataset, item.method): item for item in found}
    rows: list[tuple[str, ...]] = []
    for dataset in dict.fromkeys(item.dataset for item in found):
        cells = [items.get((dataset, method)) for method in methods]
        lines = [(dataset, name, *map(cell, cells)) for name, cell in _STATISTICS.items()]
        rows += [line for line in lines if any(line[2:])]
    splits = _range(item.n_splits for item in found)
    note = f"{splits} test folds. p, corrected: accounts for overlapping training sets (Nadeau and Bengio)."
    title = f"{found[0].model}: percent improvement of the MSE over one-hot, real data"
    return TextTable(title, ("data set", "", *methods), tuple(rows), (note,))


def simulation_tables(records: Sequence[Record]) -> list[TextTable]:
    """Return tables of each model: percent improvement over one-hot ± 95 %, (published)."""
    found = simulated_improvements(records)
    return _tables_by_model(found, _simulation_table)


def _simulation_table(found: Sequence[SimulatedImprovement], methods: Sequence[str]) -> TextTable:
    items = {(item.cell, item.method): item for item in found}
    rows = tuple(
        (cell[0], f"{cell[1]}L-{cell[2]}G", *(_simulated(items.get((cell, method))) for method in methods))
        for cell in dict.fromkeys(item.cell for item in found)
    )
    published = " (published)" if any(item.published is not None for item in found) else ""
    title = f"{found[0].model}: percent improvement of the MSE over one-hot ± 95 %{published}"
    notes = (f"Seeds per cell: {_range(item.n_seeds for item in found)}.", *_agreement(found, methods))
    return TextTable(title, ("setup", "cell", *methods), rows, notes)


def recovery_tables(records: Sequence[Record]) -> list[TextTable]:
    """Return tables of each model: percent of the improvement of a reference reached, ± 95 %.

    The reference of encodings is the oracle; that of models without an encoding is Bayes.
    """
    found = [item for item in recoveries(records, "oracle") if item.model not in NATIVE_MODELS]
    found += [item for item in recoveries(records, "bayes") if item.model in NATIVE_MODELS]
    return _tables_by_model(found, _recovery_table)


def _recovery_table(found: Sequence[Recovery], methods: Sequence[str]) -> TextTable:
    items = {(item.cell, item.method): item for item in found}
    rows = tuple(
        (cell[0], f"{cell[1]}L-{cell[2]}G", *(_recovered(items.get((cell, method))) for method in methods))
        for cell in dict.fromkeys(item.cell for item in found)
    )
    model, reference = found[0].model, found[0].reference
    against = f" ({BASELINE_MODEL})" if model in NATIVE_MODELS else ""
    title = f"{model}: percent of the improvement from one-hot{against} to {reference} reached, ± 95 %"
    note = (
        f"Ratios of mean differences over the seeds ({_range(item.n_seeds for item in found)} per cell); "
        f"they are unreliable where one-hot and {reference} hardly differ."
    )
    return TextTable(title, ("setup", "cell", *methods), rows, (note,))


def _recovered(item: Recovery | None) -> str:
    if item is None:
        return ""
    half = "" if math.isnan(item.high) else f" ± {100 * (item.high - item.share):.0f}"
    return f"{100 * item.share:z.0f}{half}"


def _agreement(items: Sequence[SimulatedImprovement], methods: Sequence[str]) -> list[str]:
    """Note how many of our bars are close to the published ones."""
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
    return f"{100 * item.mean:z.1f}{half}{published}"  # z: no minus sign before zero


def _percent(item: EmpiricalImprovement | None) -> str:
    return "" if item is None else f"{item.percent:z.3f}"


def _p_plain(item: EmpiricalImprovement | None) -> str:
    return "" if item is None else p_value_text(item.p_plain, 5)


def _p_corrected(item: EmpiricalImprovement | None) -> str:
    return "" if item is None else p_value_text(item.p_corrected, 5)


def _published(item: EmpiricalImprovement | None) -> str:
    if item is None or item.published_percent is None:
        return ""
    return f"{item.published_percent:.3f} ({item.published_p:.5f})"


_STATISTICS = {
    "improvement": _percent,
    "p": _p_plain,
    "p, corrected": _p_corrected,
    "published (p)": _published,
}


def _tables_by_model(
    found: Sequence[Item], make_table: Callable[[Sequence[Item], Sequence[str]], TextTable]
) -> list[TextTable]:
    """Return one table for each model and block of methods."""
    return [
        make_table([item for item in found if item.model == model and item.method in methods], methods)
        for model in dict.fromkeys(item.model for item in found)
        for methods in _blocks(item.method for item in found if item.model == model)
    ]


def _blocks(methods: Iterable[str]) -> list[list[str]]:
    """Split methods into tables: the paper's four and the references first, then all others."""
    names = dict.fromkeys(methods)
    first = [name for name in (*PUBLISHED_METHODS, *REFERENCES) if name in names]
    others = [name for name in names if name not in first]
    n_tables = math.ceil(len(others) / _MAX_METHODS)
    parts = [others[len(others) * i // n_tables : len(others) * (i + 1) // n_tables] for i in range(n_tables)]
    return [block for block in (first, *parts) if block]


def _range(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


# The benchmark


_SEVERAL_GROUPS = ", several groups"


def benchmark_tables(records: Sequence[Record]) -> list[TextTable]:
    """Return losses, our encoder against the best other entry, and times; nothing without one-hot columns.

    Data sets with another loss, or with several groups, have other tables.
    """
    found = benchmark_results(records)
    kinds: dict[tuple[bool, Loss], list[BenchmarkResult]] = {
        (several, loss): [] for several in (False, True) for loss in LOSSES
    }
    for item in found:
        protocol = protocol_of(item.dataset)
        kinds[protocol.has_several_groups, protocol.loss].append(item)
    parts = [(loss, several, items) for (several, loss), items in kinds.items() if items]
    judged = judgements(records)
    return [
        *(_loss_table(*part) for part in parts),
        *([_judgement_table(judged)] if judged else []),
        *(_seconds_table(*part) for part in parts),
    ]


def _loss_table(loss: Loss, several: bool, found: Sequence[BenchmarkResult]) -> TextTable:
    folds = sorted({item.n_folds for item in found})
    notes = [
        f"Means over {' or '.join(map(str, folds))} folds; encodings are followed by {BASELINE_MODEL}.",
        "±: standard error of the paired difference to the best entry, which is marked with *.",
    ]
    if loss == "log loss":
        notes.append(f"Run only if named, because it is slow on classes: {', '.join(SLOW_ON_CLASSES)}.")
    if any(protocol_of(item.dataset).target_type == "multiclass" for item in found):
        notes.append(f"Not run on more than two classes, for which they are not made: {_BINARY_ONLY}.")
    title = f"Benchmark: {loss} in percent of {BASELINE}{_SEVERAL_GROUPS if several else ''}"
    return _entry_table(title, found, _error_cell, tuple(notes))


def _seconds_table(loss: Loss, several: bool, found: Sequence[BenchmarkResult]) -> TextTable:
    of_classes = "" if loss == "MSE" else ", classes"
    title = f"Benchmark: median seconds per fold{of_classes}{_SEVERAL_GROUPS if several else ''}"
    return _entry_table(title, found, lambda item: f"{item.seconds:.2f}")


def _entry_table(
    title: str,
    found: Sequence[BenchmarkResult],
    cell: Callable[[BenchmarkResult], str],
    notes: tuple[str, ...] = (),
) -> TextTable:
    """Make a table with a row for each entry and a column for each data set."""
    items = {(item.entry, item.dataset): item for item in found}
    datasets = dict.fromkeys(item.dataset for item in found)
    rows = []
    for entry in in_order({item.entry for item in found}, (*BENCHMARK_METHODS, *BENCHMARK_MODELS)):
        of_entry = [items.get((entry, dataset)) for dataset in datasets]
        cells = ["" if item is None else FAILED if item.rank is None else cell(item) for item in of_entry]
        rows.append((entry, *cells))
    return TextTable(title, ("", *datasets), tuple(rows), notes)


def _error_cell(item: BenchmarkResult) -> str:
    if item.rank == 1:
        return f"{item.percent:.1f} *"
    error = "" if math.isnan(item.standard_error) else f" ± {item.percent_error:.1f}"
    return f"{item.percent:.1f}{error}"


def _judgement_table(judged: Sequence[Judgement]) -> TextTable:
    counts = {verdict: sum(item.verdict == verdict for item in judged) for verdict in (*VERDICTS, FAILED)}
    listed = [f"{name} {count}" for name, count in counts.items() if count or name != FAILED]
    return TextTable(
        f"Benchmark: {OURS} against the best other entry, difference of the loss in percent",
        ("data set", "loss", "rank", "best other", "difference", "verdict"),
        tuple(_judgement_row(item) for item in judged),
        (f"Of {len(judged)} data sets: {', '.join(listed)}.",),
    )


def _judgement_row(item: Judgement) -> tuple[str, ...]:
    loss = protocol_of(item.dataset).loss
    if item.rank is None:
        return item.dataset, loss, "", item.other, "", item.verdict
    error = "" if math.isnan(item.percent_error) else f" ± {item.percent_error:.1f}"
    rank = f"{item.rank} of {item.n_ranked}"
    return item.dataset, loss, rank, item.other, f"{item.percent:+z.1f}{error}", item.verdict


# The published comparison on wages and ratings

_PUBLISHED = {"wages": load_published_wages, "insteval_sigrist": load_published_insteval}


def compared_tables(records: Sequence[Record], data_dir: Path | None = None) -> list[TextTable]:
    """Return tables of the published entries and ours, the best first, of the data sets with records."""
    found = (
        _compared_table(name, [record for record in records if record["dataset"] == name], data_dir)
        for name in _PUBLISHED
    )
    return [table for table in found if table is not None]


def _compared_table(name: str, records: Sequence[Record], data_dir: Path | None) -> TextTable | None:
    if not records:
        return None
    published, missing = _published_losses(name, data_dir)
    found = published_comparison(records, published, PUBLISHED_FOLDS)
    folds = (f"fold {fold}" for fold in range(PUBLISHED_FOLDS))
    notes = (
        f"MSE on the published folds; our encodings are followed by {protocol_of(name).encoded_model}.",
        "±: standard error of the paired difference. Seconds are the median per fold, and of our machine.",
        *missing,
    )
    title = f"{name}: {'published and ours' if published else 'ours'}"
    header = ("", "by", *folds, "mean", "to the best", "seconds")
    return TextTable(title, header, tuple(_compared_row(item) for item in found), notes)


def _published_losses(name: str, data_dir: Path | None) -> tuple[dict[str, list[float]], tuple[str, ...]]:
    """Return the published results; or none and a note, if no folder is named and none is set."""
    try:
        return _PUBLISHED[name](data_dir), ()
    except DataNotFoundError:
        if data_dir is not None:
            raise
        return {}, ("The published results are with the data: name their folder with --data-dir.",)


def _compared_row(item: ComparedEntry) -> tuple[str, ...]:
    best = item.difference == 0
    difference = "*" if best else f"{item.difference:+.4f} ± {item.standard_error:.4f}"
    return (
        item.entry,
        "Sigrist (2023)" if item.is_published else "ours",
        *("" if math.isnan(loss) else f"{loss:.4f}" for loss in item.losses),
        *(("", "") if math.isnan(item.loss) else (f"{item.loss:.4f}", difference)),
        "" if math.isnan(item.seconds) else f"{item.seconds:.1f}",
    )


# Treatment effects


def effect_tables(records: Sequence[Record]) -> list[TextTable]:
    """Return a table of each model, arm and number of rows, with a row for each method."""
    found = effect_summaries(records)
    cells = dict.fromkeys((item.model, item.arm, item.n) for item in found)
    return [
        _effect_table([item for item in found if (item.model, item.arm, item.n) == cell]) for cell in cells
    ]


def _effect_table(found: Sequence[EffectSummary]) -> TextTable:
    model, arm, n = found[0].model, found[0].arm, found[0].n
    return TextTable(
        f"{model}, {arm}: treatment effects, {n:,} rows",
        ("method", *_EFFECT_COLUMNS, "seeds"),
        tuple(
            (item.method, *(cell(item) for cell in _EFFECT_COLUMNS.values()), str(item.n_seeds))
            for item in found
        ),
        (_EFFECT_NOTE,),
    )


def _with_error(measured: Measured | None, digits: int = 3, sign: str = "") -> str:
    if measured is None or math.isnan(measured.value):
        return ""
    error = "" if math.isnan(measured.error) else f" ± {measured.error:.{digits}f}"
    return f"{measured.value:{sign}z.{digits}f}{error}"


_EFFECT_COLUMNS: dict[str, Callable[[EffectSummary], str]] = {
    "bias": lambda item: _with_error(item.bias, sign="+"),
    "RMSE": lambda item: _with_error(item.rmse),
    "RMSE / true ψ": lambda item: _with_error(item.relative, 2),
    "coverage": lambda item: _with_error(item.coverage),
    "s.e. / sd": lambda item: _with_error(item.calibration, 2),
    "length": lambda item: _with_error(item.length),
    "dropped": lambda item: f"{item.dropped.value:.1%}",
}
_EFFECT_NOTE = "±: Monte Carlo standard error. Where groups are dropped, the truth is that of the rows kept."


# LaTeX


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex, cells)) + r" \\"


_LATEX = str.maketrans(
    {
        "±": r"$\pm$",
        "ψ": r"$\psi$",
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
    | {special: f"\\{special}" for special in "_%&#${}"}
)


def _latex(text: str) -> str:
    return text.translate(_LATEX)
