"""The paper's own numbers, to stand beside ours.

The bars of its two simulation figures were read off the published images, to about half a point; its two
tables are exact.
"""

from __future__ import annotations

import csv
from importlib.resources import files

# The methods that its figures and tables show.
PUBLISHED_METHODS = ("means", "low_rank", "sparse_low_rank", "mnl")

Cell = tuple[str, int, int]


def published_improvements() -> dict[tuple[str, Cell, str], float]:
    """Improvement over one-hot, as a share, by model, (setup, n_latent, levels_per_latent) and method."""
    return {
        (row["model"], (row["setup"], int(row["n_latent"]), int(row["levels_per_latent"])), method): float(
            row[method]
        )
        for row in _rows("published_simulations.csv")
        for method in PUBLISHED_METHODS
    }


def published_tables() -> dict[tuple[str, str, str], dict[str, float]]:
    """``improvement_percent`` and ``p_value`` by model, data set and method."""
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in _rows("published_empirical.csv"):
        for method in PUBLISHED_METHODS:
            cell = found.setdefault((row["model"], row["dataset"], method), {})
            cell[row["statistic"]] = float(row[method])
    return found


def _rows(name: str) -> list[dict[str, str]]:
    text = files("sufrep._paper").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
