"""Plots of a fitted model hold its tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

from sufrep import AIPW
from sufrep.causal._plots import MOST_BALANCE_ROWS, balance_chart


@pytest.fixture(scope="module")
def model() -> AIPW:
    rng = np.random.default_rng(0)
    group = np.arange(300) % 30
    treated = np.where(group == 0, 1, rng.integers(0, 2, 300))
    table = pl.DataFrame({"g": group, "x": rng.normal(size=300), "w": treated, "y": rng.normal(size=300)})
    estimator = AIPW(LinearRegression(), LogisticRegression(), group="g")
    return estimator.fit(table, treatment="w", outcome="y")


def values(chart: Any) -> list[dict[str, Any]]:
    return chart["data"]["values"]


def test_the_ladder_shows_every_step_and_highlights_the_effect(model):
    chart = model.plot_ladder().to_dict()
    steps = model.ladder(library="polars")
    assert [row["value"] for row in values(chart)] == steps["estimate"].to_list()
    assert [row["low"] for row in values(chart)] == steps["lower"].to_list()
    circles = next(layer for layer in chart["layer"] if layer["mark"]["type"] == "circle")
    assert "share of treated rows" in circles["encoding"]["opacity"]["condition"]["test"]


def test_the_overlap_counts_kept_rows_and_all_groups(model):
    arms, groups = model.plot_overlap().to_dict()["vconcat"]
    assert sum(bar["count"] for bar in values(arms)) == len(model.rows_) == 290
    assert sum(dot["count"] for dot in values(groups)) == 30
    assert [dot["label"] for dot in values(groups) if dot["kind"] == "dropped"] == ["0"]


def test_the_love_plot_shows_the_table_of_balance(model):
    drawn = values(model.plot_balance().to_dict())
    table = model.balance(library="polars")
    assert [row["value"] for row in drawn if row["series"] == "before"] == table["before"].to_list()
    assert [row["value"] for row in drawn if row["series"] == "after"] == table["after"].to_list()


def test_only_the_largest_differences_are_drawn_in_their_order():
    rows = [
        {"column": f"x{j}", "kind": "covariate", "before": j / 100, "after": 0.0}
        for j in range(MOST_BALANCE_ROWS + 5)
    ]
    rows.append({"column": "unknown", "kind": "group", "before": float("nan"), "after": 0.0})
    names = list(dict.fromkeys(row["name"] for row in values(balance_chart(rows).to_dict())))
    assert names == [f"x{j}" for j in range(5, MOST_BALANCE_ROWS + 5)]


@pytest.mark.parametrize("name", ["plot_ladder", "plot_overlap", "plot_balance"])
def test_a_model_that_is_not_fitted_has_no_plots(name):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(AIPW(group="g"), name)()
