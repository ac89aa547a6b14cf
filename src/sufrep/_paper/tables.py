"""The paper's two tables, and the numbers of its figures, as text, Markdown and LaTeX."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from sufrep._paper.plan import REFERENCES
from sufrep._paper.published import PUBLISHED_METHODS
from sufrep._paper.summary import empirical_improvements, simulated_improvements
from sufrep.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sufrep._paper.store import Record, Store
    from sufrep._paper.summary import EmpiricalImprovement, SimulatedImprovement

Format: TypeAlias = Literal["text", "markdown", "latex"]

# Within so many points of the published bar, ours counts as the same: what we ask of each model.
TOLERANCE = {"xgboost": 4, "forest": 8}


@dataclass(frozen=True, slots=True)
class Table:
    """A title, a header, rows of text and notes."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def render(self, style: Format) -> str:
        """The table in one of the three formats, ending with a line end."""
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


def all_tables(simulations: Store, empirical: Store) -> list[Table]:
    """The tables of both experiments, as far as there are results."""
    found = simulation_tables(simulations.records()) + empirical_tables(empirical.records())
    if not found:
        raise StoreError(
            simulations.folder,
            "holds no results that can be compared with one_hot",
            "run `sufrep paper simulations` or `sufrep paper empirical` first.",
        )
    return found


def empirical_tables(records: Sequence[Record], n_folds: int = 4) -> list[Table]:
    """One table a model: improvement over one-hot with both tests, and the published values, by data set."""
    found = empirical_improvements(records, n_folds)
    tables = []
    for model in dict.fromkeys(item.model for item in found):
        items = {(item.dataset, item.method): item for item in found if item.model == model}
        methods = _in_order(method for _, method in items)
        rows: list[tuple[str, ...]] = []
        for dataset in dict.fromkeys(dataset for dataset, _ in items):
            cells = [items.get((dataset, method)) for method in methods]
            rows += [(dataset, name, *map(cell, cells)) for name, cell in _STATISTICS.items()]
        splits = max(item.n_splits for item in items.values())
        note = f"{splits} test folds. p corrected: for overlapping training sets (Nadeau and Bengio)."
        title = f"{model}: percent improvement of the MSE over one-hot, real data"
        tables.append(Table(title, ("data set", "", *methods), tuple(rows), (note,)))
    return tables


def simulation_tables(records: Sequence[Record]) -> list[Table]:
    """One table a model: improvement over one-hot in percent, ± half the 95 % interval, (published)."""
    found = simulated_improvements(records)
    tables = []
    for model in dict.fromkeys(item.model for item in found):
        items = {(item.cell, item.method): item for item in found if item.model == model}
        methods = _in_order(method for _, method in items)
        rows = tuple(
            (
                cell[0],
                f"{cell[1]}L-{cell[2]}G",
                *(_simulated(items.get((cell, method))) for method in methods),
            )
            for cell in dict.fromkeys(cell for cell, _ in items)
        )
        seeds = {item.n_seeds for item in items.values()}
        title = f"{model}: percent improvement of the MSE over one-hot ± 95 % (published)"
        notes = (f"Seeds a cell: {min(seeds)} to {max(seeds)}.", *_agreement(model, list(items.values())))
        tables.append(Table(title, ("setup", "cell", *methods), rows, notes))
    return tables


def _agreement(model: str, items: Sequence[SimulatedImprovement]) -> list[str]:
    """How often our bar is near the published one."""
    points = TOLERANCE.get(model)
    if points is None:
        return []
    shares = []
    for method in _in_order(item.method for item in items):
        gaps = [abs(item.mean - item.published) for item in items if item.method == method and item.published]
        if gaps:
            shares.append(f"{method} {sum(gap <= points / 100 for gap in gaps)} of {len(gaps)}")
    return [f"Cells within {points} points of the published bar: {', '.join(shares)}."] if shares else []


def _simulated(item: SimulatedImprovement | None) -> str:
    if item is None:
        return ""
    half = "" if math.isnan(item.high) else f" ± {100 * (item.high - item.mean):.1f}"
    published = "" if item.published is None else f" ({100 * item.published:.1f})"
    return f"{100 * item.mean:.1f}{half}{published}"


def _percent(item: EmpiricalImprovement | None) -> str:
    return "" if item is None else f"{item.percent:.3f}"


def _p_plain(item: EmpiricalImprovement | None) -> str:
    return "" if item is None else f"{item.p_plain:.5f}"


def _p_corrected(item: EmpiricalImprovement | None) -> str:
    return "" if item is None else f"{item.p_corrected:.5f}"


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


def _in_order(methods: Iterable[str]) -> list[str]:
    """The methods of the paper's tables first, then others as they come, the references last."""
    names = dict.fromkeys(methods)
    first = [name for name in PUBLISHED_METHODS if name in names]
    last = [name for name in REFERENCES if name in names]
    return [*first, *(name for name in names if name not in (*first, *last)), *last]


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex, cells)) + r" \\"


def _latex(text: str) -> str:
    for plain, escaped in (("_", r"\_"), ("%", r"\%"), ("±", r"$\pm$")):
        text = text.replace(plain, escaped)
    return text
