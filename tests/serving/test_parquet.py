"""Vectors as Parquet files, which other programs read."""

from __future__ import annotations

import datetime as dt
import importlib.util
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from sufrep import MeansEncoder, Representation
from sufrep.errors import MissingDependencyError, NotExportableError, NotWritableError


@pytest.fixture(params=["polars", "pyarrow"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one library is there to write the file."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "sufrep._parquet.find_spec", lambda name: found(name) if name == request.param else None
    )


every_library = pytest.mark.usefixtures("library")


def table_of(levels: list[Any], **more: Any) -> Representation:
    values = np.arange(2 * len(levels)).reshape(-1, 2) / 3
    return Representation.from_values(levels, values, ["u", "v"], weight=1 + np.arange(len(levels)), **more)


@every_library
@pytest.mark.parametrize(
    "levels",
    [
        ["a", "Käse 😀", None],
        [98178, -1],
        [0.5, 1 / 3],
        [True, False],
        [dt.date(2024, 2, 29)],
        [dt.datetime(2024, 2, 29, 1, 2, 3, 4)],
        [b"\x00\xff"],
    ],
)
def test_levels_weights_vectors_and_the_prior(levels: list[Any], tmp_path: Path) -> None:
    table = table_of(levels, group=["zip"])
    table.to_parquet(tmp_path / "it.parquet")
    found = pq.read_table(tmp_path / "it.parquet").to_pydict()
    assert list(found) == ["zip", "row", "weight", "u", "v"]
    assert found["zip"] == [*levels, None]
    assert found["row"] == [*["level"] * len(levels), "prior"]
    assert found["weight"] == [*table.weight, table.weight.sum()]
    np.testing.assert_array_equal(np.column_stack([found["u"], found["v"]]), table.with_prior())


@every_library
def test_decimals_and_mixed_numbers_have_one_type(tmp_path: Path) -> None:
    table_of([Decimal(1), Decimal(20)]).to_parquet(tmp_path / "whole.parquet")
    table_of([1, 2.5]).to_parquet(tmp_path / "mixed.parquet")
    assert pq.read_table(tmp_path / "whole.parquet")["level"].to_pylist() == [1, 20, None]
    assert pq.read_table(tmp_path / "mixed.parquet")["level"].to_pylist() == [1.0, 2.5, None]


def test_crossed_levels_have_a_column_for_each_part(tmp_path: Path) -> None:
    rows = pd.DataFrame({"shop": ["a", "a", None], "brand": [1, 2, 2], "x": [1.0, 2.0, 4.0]})
    encoder = MeansEncoder([("shop", "brand")], covariates=["x"]).fit(rows)
    encoder.representations_["shop:brand"].to_parquet(tmp_path / "it.parquet")
    found = pl.read_parquet(tmp_path / "it.parquet")
    assert found.columns == ["shop", "brand", "row", "weight", "shop:brand_mean_x"]
    assert found.rows()[:-1] == [
        ("a", 1, "level", 1.0, 1.0),
        ("a", 2, "level", 1.0, 2.0),
        (None, 2, "level", 1.0, 4.0),
    ]
    table_of([("a", 1)]).to_parquet(tmp_path / "unknown.parquet")
    assert pl.read_parquet(tmp_path / "unknown.parquet").columns[:2] == ["level_1", "level_2"]


def test_names_that_are_taken_are_left_to_the_data(tmp_path: Path) -> None:
    table = Representation.from_values(["a"], [[1.0]], ["weight"], weight=[1], group=["row"])
    table.to_parquet(tmp_path / "it.parquet")
    assert pl.read_parquet(tmp_path / "it.parquet").columns == ["row", "row_", "weight_", "weight"]


def test_an_error_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "it.parquet"
    table_of(["a"]).to_parquet(path)
    before = path.read_bytes()
    for levels, message in ((["a", 1], "several types .int, str."), ([2**70], "more than 64 bits")):
        with pytest.raises(NotExportableError, match=f"(?s){message}.*Hint: "):
            table_of(levels).to_parquet(path)
    with pytest.raises(NotWritableError, match="there is no folder"):
        table_of(["a"]).to_parquet(tmp_path / "nowhere" / "it.parquet")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_without_a_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sufrep._parquet.find_spec", lambda _: None)
    with pytest.raises(MissingDependencyError, match=r"sufrep\[cli\]"):
        table_of(["a"]).to_parquet(tmp_path / "it.parquet")
