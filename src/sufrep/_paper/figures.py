"""The paper's two figures, drawn from a store next to the published bars, and one of treatment effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sufrep._charts import dot_panels, grouped_bars, write_chart
from sufrep._names import SETUPS
from sufrep._paper.effect_summary import effect_summaries
from sufrep._paper.names import EFFECT_ARMS, EFFECT_METHODS, EFFECT_OURS
from sufrep._paper.summary import simulated_improvements
from sufrep.errors import NotWritableError, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sufrep._paper.effect_summary import EffectSummary, Measured
    from sufrep._paper.store import Store
    from sufrep._paper.summary import SimulatedImprovement

# The paper's four methods, also with the authors' bug, and the references.
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
# For other methods.
_MORE_COLOURS = ("#c2477f", "#3aa6a0", "#a8792d", "#5b6ee1", "#7a1f1f", "#70804a", "#e8c547", "#99582a")


def draw_figures(store: Store, folder: Path, methods: Sequence[str] | None = None) -> list[Path]:
    """Write ``figure_<model>.png``, ``.svg`` and ``.html`` for every model of the store; return the paths.

    Parameters
    ----------
    store : Store
        Store of simulations.
    folder : Path
    methods : sequence of str or None
        The bars; by default those of the paper's four methods and the references that the store has, or all
        methods if it has none of them. A model without any of the methods gets no figure.
    """
    found = simulated_improvements(store.records())
    if not found:
        raise StoreError(
            store.path,
            "holds no cell with both one_hot and another method",
            "run `sufrep paper simulations` first, with one_hot among its methods.",
        )
    shown = _chosen(found, methods, store)
    charts = {
        f"figure_{model}": figure([item for item in shown if item.model == model])
        for model in dict.fromkeys(item.model for item in shown)
    }
    return _write(charts, folder)


def draw_effect_figures(store: Store, folder: Path, methods: Sequence[str] | None = None) -> list[Path]:
    """Write ``figure_effects_<model>.png``, ``.svg`` and ``.html`` for every model; return the paths.

    Parameters
    ----------
    store : Store
        Store of treatment effects.
    folder : Path
    methods : sequence of str or None
        By default all that the store has.
    """
    found = [item for item in effect_summaries(store.records()) if not methods or item.method in methods]
    if not found:
        raise StoreError(store.path, "holds no effect of these methods", "run `sufrep paper causal` first.")
    charts = {
        f"figure_effects_{model}": effect_figure([item for item in found if item.model == model])
        for model in dict.fromkeys(item.model for item in found)
    }
    return _write(charts, folder)


def _write(charts: dict[str, Any], folder: Path) -> list[Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [path for name, chart in charts.items() for path in write_chart(chart, folder / name)]
    except NotWritableError:
        raise
    except OSError as error:
        raise NotWritableError(folder, f"{error.strerror or error}.", "name another folder.") from error


def _chosen(
    found: Sequence[SimulatedImprovement], methods: Sequence[str] | None, store: Store
) -> list[SimulatedImprovement]:
    """Return what is drawn, in the order of the bars."""
    known = list(dict.fromkeys(item.method for item in found))
    wanted = list(methods or [name for name in COLOURS if name in known] or known)
    for name in wanted:
        if name not in known:
            what = f"has no improvement of {name!r} over one_hot"
            raise StoreError(store.path, what, f"the methods are {', '.join(known)}.")
    return sorted(
        (item for item in found if item.method in wanted), key=lambda item: wanted.index(item.method)
    )


def figure(items: Sequence[SimulatedImprovement]) -> Any:
    """Draw the chart of one model: a panel per setup, a group of bars per cell, a bar per method."""
    fresh = iter(_MORE_COLOURS * len(items))
    return grouped_bars(
        rows=[_row(item) for item in items],
        panels=[_words(setup) for setup in SETUPS],
        categories=[_cell_name(cell) for cell in sorted({item.cell[1:] for item in items})],
        series={
            name: COLOURS.get(name) or next(fresh) for name in dict.fromkeys(item.method for item in items)
        },
        value_title="reduction of the test error",
        reference_title="published",
        title=f"{items[0].model}: improvement over one-hot columns",
        subtitle=_explanation(items),
    )


def _explanation(items: Sequence[SimulatedImprovement]) -> str:
    _, n_latent, levels = items[0].cell
    cell = f"{_cell_name((n_latent, levels))}: {n_latent} states of {levels} levels."
    fewest, most = min(item.n_seeds for item in items), max(item.n_seeds for item in items)
    if most == 1:
        return f"One seed. {cell}"
    n_seeds = most if fewest == most else f"{fewest} to {most}"
    return f"Means over {n_seeds} seeds, lines are 95 % intervals. {cell}"


def _row(item: SimulatedImprovement) -> dict[str, Any]:
    return {
        "panel": _words(item.cell[0]),
        "category": _cell_name(item.cell[1:]),
        "series": item.method,
        "value": item.mean,
        "low": item.low if item.n_seeds > 1 else None,
        "high": item.high if item.n_seeds > 1 else None,
        "reference": item.published,
        "seeds": item.n_seeds,
    }


def _cell_name(cell: tuple[int, int]) -> str:
    """Return the paper's name of a cell: hidden states, and levels of each."""
    return f"{cell[0]}L-{cell[1]}G"


def _words(name: str) -> str:
    return name.replace("_", " ")


# Treatment effects

_MEASURES = {"bias": 0.0, "coverage": 0.95}


def effect_figure(items: Sequence[EffectSummary]) -> Any:
    """Draw the chart of one model: bias and coverage, a panel per arm, a dot per method."""
    cells = {(item.arm, item.n) for item in items}
    panels = {
        (arm, n): _words(arm) if sum(other == arm for other, _ in cells) == 1 else f"{_words(arm)}, n {n:,}"
        for arm, n in sorted(cells, key=lambda cell: (EFFECT_ARMS.index(cell[0]), cell[1]))
    }
    present = {item.method for item in items}
    fewest, most = min(item.n_seeds for item in items), max(item.n_seeds for item in items)
    n_seeds = most if fewest == most else f"{fewest} to {most}"
    return dot_panels(
        rows=[
            {"panel": panels[item.arm, item.n], **_effect_row(item, measure)}
            for measure in _MEASURES
            for item in items
        ],
        panels=list(panels.values()),
        names=[method for method in EFFECT_METHODS if method in present],
        measures=_MEASURES,
        highlighted=EFFECT_OURS,
        title=f"{items[0].model}: bias of treatment effects, and coverage of 95 % intervals",
        subtitle=f"{n_seeds} samples each; lines are 95 % intervals, dashed lines the best case.",
    )


def _effect_row(item: EffectSummary, measure: str) -> dict[str, Any]:
    measured: Measured = {"bias": item.bias, "coverage": item.coverage}[measure]
    one = item.n_seeds == 1
    return {
        "measure": measure,
        "name": item.method,
        "value": measured.value,
        "low": None if one else measured.value - 1.96 * measured.error,
        "high": None if one else measured.value + 1.96 * measured.error,
    }
