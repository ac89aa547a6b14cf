"""Dots with names: those that matter are named first."""

from __future__ import annotations

from typing import Any

import pytest

from sufrep._charts import labelled_scatter


def timed(name: str, x: float, y: float) -> dict[str, Any]:
    return {"name": name, "series": "forest", "x": x, "y": y}


def scatter(*rows: dict[str, Any]) -> Any:
    hover = {"name": "encoding", "x": "seconds", "y": "gain"}
    return labelled_scatter(rows=rows, series=["forest", "ridge"], x_title="x", y_title="y", hover=hover)


@pytest.mark.parametrize(
    "rows", [[], [timed("one", 1.0, 0.1)], [timed("<a>", 0.01, -0.2), timed("b", 300.0, 0.2)]]
)
def test_a_scatter_renders(rows, png_size):
    width, height = png_size(scatter(*rows).properties(width=400))
    assert width > 400
    assert height > 390


def test_every_dot_keeps_what_it_was_given():
    row = timed("a", 1.0, 0.1)
    (drawn,) = scatter(row).to_dict()["data"]["values"]
    assert drawn == {**row, "wide": "right", "narrow": "right"}


def test_where_names_would_cover_each_other_the_faster_and_better_is_named():
    rows = [timed(f"slow {i}", 1.001 + i / 1e6, 0.1) for i in range(9)]
    rows += [timed("best", 1.0, 0.1), timed("corner", 1e-3, -1.0), timed("corner", 1e3, 1.0)]
    drawn = {row["name"]: row["wide"] for row in scatter(*rows).to_dict()["data"]["values"]}
    assert drawn["best"]
    assert sum(bool(side) for name, side in drawn.items() if name.startswith("slow")) < 3


def test_gains_are_in_percent_and_seconds_are_not():
    tooltip = scatter(timed("a", 1.5, 0.1)).to_dict()["layer"][1]["encoding"]["tooltip"]
    assert [line.get("format") for line in tooltip] == [None, ",.4~r", ".3~p"]
