"""The code of docs/serving.md runs, and does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

GUIDE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("sqlglot", "duckdb", "dask"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    assert len(blocks) == 8
    checks = {1: _one_vector, 3: _sql, 4: _refresh, 6: _workers}
    assert "mapInPandas" in blocks[7]
    for number, block in enumerate(blocks[:7]):
        exec(block, names)
        checks.get(number, lambda _: None)(names)
    assert (tmp_path / "zipcode.parquet").exists()


def test_the_block_of_spark_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_session: Any) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(blocks[0], names)
    sales = spark_session.createDataFrame(pl.concat(names["days"]).to_arrow()).repartition(3)
    names |= {"sales": sales, "shared_folder": str(tmp_path)}
    exec(blocks[7], names)
    assert len(names["paths"]) == 3
    whole = names["MeansEncoder"]("zipcode").fit(pl.concat(names["days"]).drop("price"))
    found, expected = (one.representations_["zipcode"] for one in (names["encoder"], whole))
    assert found.levels.tolist() == expected.levels.tolist()
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)


def _one_vector(names: dict[str, Any]) -> None:
    np.testing.assert_array_equal(names["vectors"][0], names["vector"])
    assert names["vector"].shape == (1,)
    assert names["known"] is False


def _sql(names: dict[str, Any]) -> None:
    expected = names["encoder"].transform(names["houses"].drop("price"))[:, -1]
    found = names["encoded"].sort("price")["zipcode_mean_sqft"].to_numpy()
    np.testing.assert_array_equal(found, expected[np.argsort(names["houses"]["price"].to_numpy())])


def _refresh(names: dict[str, Any]) -> None:
    assert names["whole"].count.sum() == 250
    for encoder in (names["encoder"], names["fresh"]):
        assert encoder.transform(names["houses"].drop("price")).shape == (50, 2)


def _workers(names: dict[str, Any]) -> None:
    assert names["encoder"].representations_["zipcode"].weight.sum() == 250
