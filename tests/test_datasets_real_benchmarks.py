"""The further data sets on their real files, where these are."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sufrep.datasets import (
    DATASETS,
    load_county_murders,
    load_dataset,
    load_insteval,
    load_nycflights,
    load_orange_juice,
)

REAL = [
    ("orange_juice", (106_139, 26), 913, "store_brand", "logmove"),
    ("county_murders", (37_349, 12), 2_197, "countyid", "log1p murdrate"),
    ("insteval", (73_421, 4), 1_128, "d", "y"),
    ("nycflights", (327_346, 20), 4_037, "tailnum", "slog arr_delay"),
]
FILES = ("orange_juice.parquet", "countymurders.csv", "insteval.csv", "nycflights.parquet")


@pytest.fixture
def real_dir(data_dir: Path) -> Path:
    """The folder of the real data, if it holds the benchmarks too."""
    absent = [file for file in FILES if not (data_dir / file).is_file()]
    if absent:
        pytest.skip(f"{data_dir} does not hold {', '.join(absent)}")
    return data_dir


def test_every_further_data_set_is_tested_on_its_real_file():
    assert list(DATASETS)[4:] == [name for name, *_ in REAL]


@pytest.mark.parametrize(("name", "shape", "n_levels", "group", "target"), REAL)
def test_the_real_files_have_the_sizes_that_the_docs_tell(real_dir, name, shape, n_levels, group, target):
    data = load_dataset(name, real_dir)
    assert (data.name, data.group, data.target) == (name, group, target)
    assert data.X.shape == shape
    assert data.y.shape == data.labels.shape == shape[:1]
    assert data.n_levels == n_levels
    assert not np.isinf(data.X).any()
    assert np.isfinite(data.y).all()
    assert np.ptp(data.y) > 0


@pytest.mark.parametrize(("name", "rows"), [("orange_juice", 0), ("county_murders", 3), ("insteval", 0)])
def test_real_rows_with_a_null_are_counted(real_dir, name, rows):
    assert np.isnan(load_dataset(name, real_dir).X).any(axis=1).sum() == rows


def test_real_orange_juice_holds_the_values_of_its_file(real_dir):
    data, frame = load_orange_juice(real_dir), pl.read_parquet(real_dir / "orange_juice.parquet")
    assert data.covariates == tuple(
        name for name in frame.columns if name not in ("store", "brand", "profit", "logmove", "store_brand")
    )
    for name in data.covariates:
        assert data.columns()[name].tolist() == frame[name].to_list()
    assert data.y.tolist() == frame["logmove"].to_list()
    assert data.labels.tolist() == frame["store_brand"].to_list()


@pytest.mark.parametrize(
    ("load", "file", "label", "target"),
    [
        (load_county_murders, "countymurders.csv", "countyid", "murdrate"),
        (load_insteval, "insteval.csv", "d", "y"),
    ],
)
def test_real_csv_files_are_read_to_the_letter(real_dir, load, file, label, target):
    with (real_dir / file).open(encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source))
    data, values = load(real_dir), np.array([float(row[target]) for row in rows])
    assert data.labels.tolist() == [row[label] for row in rows]
    np.testing.assert_allclose(data.y, values if target == "y" else np.log(1 + values), atol=1e-12)
    for name in data.covariates:
        expected = [float(row[name]) if row[name] else math.nan for row in rows]
        np.testing.assert_array_equal(data.columns()[name], expected)


def test_real_nycflights_holds_the_values_of_its_file(real_dir):
    data, frame = load_nycflights(real_dir), pl.read_parquet(real_dir / "nycflights.parquet")
    assert data.labels.tolist() == frame["tailnum"].to_list()
    delays = frame["arr_delay"].to_list()
    np.testing.assert_allclose(data.y, [math.copysign(math.log(1 + abs(v)), v) for v in delays], rtol=1e-12)
    for name in ("temp", "pressure", "seats", "month"):
        expected = frame[name].cast(pl.Float64).fill_null(math.nan).to_numpy()
        np.testing.assert_array_equal(data.columns()[name], expected)
    for name in ("carrier", "origin", "manufacturer", "plane_model"):
        levels = sorted(set(frame[name].to_list()) - {None})
        decoded = [None if math.isnan(code) else levels[int(code) - 1] for code in data.columns()[name]]
        assert decoded == frame[name].to_list()
