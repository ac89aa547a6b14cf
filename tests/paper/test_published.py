"""The paper's numbers: all there, and those of the files that they were copied from."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from sufrep._paper.published import PUBLISHED_METHODS, published_improvements, published_tables
from sufrep._simulate import SETUPS

# The sources call the forest by another name.
MODELS = {"regression_forest": "forest", "xgboost": "xgboost"}


def source(name: str) -> list[dict[str, str]]:
    path = Path(__file__).parents[3] / "shared" / "paper" / name
    if not path.is_file():
        pytest.skip(f"the numbers as first written down are not at {path}")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_figures_have_four_bars_in_twelve_cells_for_two_models():
    bars = published_improvements()
    assert len(bars) == 2 * 12 * 4
    assert set(bars) == {
        (model, (setup, n_latent, levels), method)
        for model in MODELS.values()
        for setup in SETUPS
        for n_latent in (2, 10)
        for levels in (50, 100)
        for method in PUBLISHED_METHODS
    }
    assert all(-0.5 < bar < 0.5 for bar in bars.values())


def test_the_tables_have_four_methods_on_three_data_sets_for_two_models():
    cells = published_tables()
    assert len(cells) == 2 * 3 * 4
    assert {dataset for _, dataset, _ in cells} == {"pakistan", "ames", "king_county"}
    for cell in cells.values():
        assert set(cell) == {"improvement_percent", "p_value"}
        assert 0 < cell["p_value"] < 1


def test_bars_are_those_of_the_source():
    expected = {
        (
            MODELS[row["model"]],
            (row["setup"], int(row["n_latent"]), int(row["levels_per_latent"])),
            method,
        ): float(row[method])
        for row in source("published_simulations.csv")
        for method in PUBLISHED_METHODS
    }
    assert published_improvements() == expected


def test_tables_are_those_of_the_source():
    rows = source("published_empirical.csv")
    found = published_tables()
    assert len(rows) * len(PUBLISHED_METHODS) == sum(map(len, found.values()))
    for row in rows:
        for method in PUBLISHED_METHODS:
            cell = found[MODELS[row["model"]], row["dataset"], method]
            assert cell[row["statistic"]] == float(row[method])


def test_two_numbers_of_the_paper_stand_where_they_should():
    assert published_improvements()["forest", ("global_linear", 10, 100), "means"] == 0.341
    assert published_tables()["xgboost", "king_county", "low_rank"] == {
        "improvement_percent": -3.243,
        "p_value": 0.62293,
    }
