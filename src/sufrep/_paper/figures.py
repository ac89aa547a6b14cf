"""The paper's two figures, drawn from a store beside the published bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sufrep._charts import grouped_bars, write_chart
from sufrep._paper.summary import simulated_improvements
from sufrep._simulate import SETUPS
from sufrep.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sufrep._paper.store import Store
    from sufrep._paper.summary import SimulatedImprovement

# The paper's four, those with the authors' slip, and the references.
COLOURS = {
    "low_rank (k index)": "#f3c08a",
    "low_rank": "#e58a2b",
    "sparse_low_rank (k index)": "#b7d9a8",
    "sparse_low_rank": "#5a9f45",
    "means": "#2a78b5",
    "mnl": "#7b5aa6",
    "oracle": "#8f8f8f",
    "bayes": "#cfcfcf",
}
# For methods beyond these.
_MORE_COLOURS = ("#c2477f", "#3aa6a0", "#a8792d", "#5b6ee1", "#d1495b", "#70804a", "#1f6f8b", "#99582a")


def draw_figures(store: Store, folder: Path, methods: Sequence[str] | None = None) -> list[Path]:
    """Write ``figure_<model>.png``, ``.svg`` and ``.html`` for every model of the store; the files' paths.

    Parameters
    ----------
    store : Store
        Of simulations.
    folder : Path
    methods : sequence of str or None
        The bars; by default the paper's four methods and the references, as far as they are there.
    """
    found = simulated_improvements(store.records())
    if not found:
        raise StoreError(
            store.path,
            "holds no cell with both one_hot and another method",
            "run `sufrep paper simulations` first, with one_hot among its methods.",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for model in dict.fromkeys(item.model for item in found):
            chart = figure([item for item in found if item.model == model], methods)
            written += write_chart(chart, folder / f"figure_{model}")
    except OSError as error:
        raise StoreError(folder, f"cannot be written: {error.strerror}", "name another folder.") from error
    return written


def figure(items: Sequence[SimulatedImprovement], methods: Sequence[str] | None = None) -> Any:
    """The chart of one model: a panel a setup, a group of bars a cell, a bar a method."""
    wanted = methods or COLOURS
    shown = [item for item in items if item.method in wanted]
    names = [name for name in wanted if any(item.method == name for item in shown)]
    fresh = iter(_MORE_COLOURS * (1 + len(names)))
    seeds = {item.n_seeds for item in shown}
    return grouped_bars(
        rows=[_row(item) for item in shown],
        panels=[_words(setup) for setup in SETUPS],
        places=[_place(cell) for cell in sorted({item.cell[1:] for item in shown})],
        series={name: COLOURS.get(name) or next(fresh) for name in names},
        value_title="test error below that of one-hot columns",
        reference_title="published",
        title=f"{items[0].model}: improvement over one-hot, 95 % intervals over {_range(seeds)} seeds",
    )


def _row(item: SimulatedImprovement) -> dict[str, Any]:
    return {
        "panel": _words(item.cell[0]),
        "place": _place(item.cell[1:]),
        "series": item.method,
        "value": item.mean,
        "low": item.low if item.n_seeds > 1 else None,
        "high": item.high if item.n_seeds > 1 else None,
        "reference": item.published,
        "seeds": item.n_seeds,
    }


def _place(cell: tuple[int, int]) -> str:
    """The paper's name of a cell: hidden states, and levels of each."""
    return f"{cell[0]}L-{cell[1]}G"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _range(numbers: set[int]) -> str:
    return str(min(numbers)) if len(numbers) == 1 else f"{min(numbers)} to {max(numbers)}"
