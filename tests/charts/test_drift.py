"""Charts of drift: every level is drawn where its numbers put it, and names are only text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sufrep._charts import MAX_LEVELS, level_moves, level_sizes

STATUSES = ("stable", "moved", "new", "vanished")


def row(label: str, status: str, difference: float, rows: float = 10) -> dict[str, Any]:
    numbers = {"rows_then": 20, "rows_now": rows, "difference": difference}
    return {"label": label, "status": status, **numbers, "covariate": "sqft", "p": "0.010"}


def moves(*rows: dict[str, Any]) -> dict[str, Any]:
    return level_moves(rows=rows, statuses=STATUSES[:2]).to_dict(validate=False)


def test_levels_are_as_high_as_they_moved_and_those_that_moved_have_labels():
    quoted = row('<b> "quoted"', "moved", 1.0, 100)
    chart = moves(row("a", "moved", -2.0), quoted, row("c", "stable", 0.5), row("d", "stable", 0.1, 1000))
    values = {value["label"]: value for value in chart["data"]["values"]}
    assert [value["height"] for value in values.values()] == [0.1, 0.5, 1, 2]
    assert [label for label, value in values.items() if value["named"]] == ['<b> "quoted"', "a"]
    assert values["a"]["moved"] == "-2"
    assert chart["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["stable", "moved"]
    assert chart["width"] == "container"


def test_a_covariate_that_never_varied_is_drawn_above_all_others():
    values = moves(row("a", "moved", -math.inf), row("b", "moved", 3.0))["data"]["values"]
    heights = {value["label"]: value["height"] for value in values}
    assert heights["b"] == 3 < heights["a"] < 4
    assert moves(row("a", "moved", math.inf))["data"]["values"][0]["moved"] == "it never varied"


def test_what_matters_most_is_drawn_last_and_the_rest_may_be_left_out():
    rows = [row(str(i), "moved" if i < 3 else "stable", 1.0) for i in range(MAX_LEVELS + 5)]
    values = moves(*rows)["data"]["values"]
    assert len(values) == MAX_LEVELS
    assert values[-1]["label"] == "0"
    assert moves()["data"]["values"] == []


def sizes(then: list[float], now: list[float], kinds: list[str]) -> dict[str, Any]:
    labels = [f"level {i}" for i in range(len(then))]
    return level_sizes(
        labels=labels, then=np.array(then), now=np.array(now), kinds=kinds, statuses=STATUSES
    ).to_dict()


def test_levels_with_the_same_numbers_are_one_dot():
    chart = sizes([5.0, 5.0, 0.0, 7.0], [5.0, 5.0, 3.0, 0.0], ["stable", "stable", "new", "vanished"])
    line, dots = chart["layer"]
    assert [(dot["label"], dot["count"], dot["status"]) for dot in dots["data"]["values"]] == [
        ("level 0, level 1", 2, "stable"),
        ("level 3", 1, "vanished"),
        ("level 2", 1, "new"),
    ]
    assert dots["encoding"]["color"]["scale"]["domain"] == ["stable", "new", "vanished"]
    assert dots["encoding"]["x"]["axis"]["values"] == [0, 1]
    ends = line["data"]["values"][0], line["data"]["values"][-1]
    assert ends[0] == {"then": 0.0, "now": 0.0}
    assert ends[1]["now"] / ends[1]["then"] == pytest.approx(13 / 17)


def test_without_old_or_new_rows_there_is_no_line():
    assert sizes([], [], [])["layer"][0]["data"]["values"] == []
    assert sizes([3.0], [0.0], ["vanished"])["layer"][0]["data"]["values"] == []
