"""The code of docs/how-to/serving.md does what the page says; tests/test_pages.py runs its commands, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.pages import DOCS, blocks

GUIDE = DOCS / "how-to" / "serving.md"


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the page has defined at its end."""
    for package in ("sqlglot", "duckdb", "dask"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    defined: dict[str, Any] = {}
    for block in blocks(GUIDE):
        if block.language == "python" and block.mark is None:
            exec(block.text, defined)
            if "to_sql" in block.text:
                # The page fits the encoder again later.
                defined["in_memory"] = defined["encoder"].transform(defined["houses"].drop("price"))[:, -1]
    return defined


def test_the_block_of_spark_runs(names: dict[str, Any], tmp_path: Path, spark_session: Any) -> None:
    (block,) = (block.text for block in blocks(GUIDE) if "mapInPandas" in block.text)
    sales = spark_session.createDataFrame(pl.concat(names["days"]).to_arrow()).repartition(3)
    names |= {"sales": sales, "shared_folder": str(tmp_path)}
    exec(block, names)
    assert len(names["paths"]) == 3
    whole = names["MeansEncoder"]("zipcode").fit(pl.concat(names["days"]).drop("price"))
    found, expected = (one.representations_["zipcode"] for one in (names["encoder"], whole))
    assert found.levels.tolist() == expected.levels.tolist()
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)


def test_one_vector_is_a_row_of_the_table(names: dict[str, Any]) -> None:
    np.testing.assert_array_equal(names["vectors"][0], names["vector"])
    assert names["vector"].shape == (1,)
    assert names["known"] is False


def test_the_loaded_encoder_gives_the_same(names: dict[str, Any]) -> None:
    found = names["same"].transform(names["houses"].drop("price"))[:, -1]
    np.testing.assert_array_equal(found, names["in_memory"])


def test_the_database_gives_the_same(names: dict[str, Any]) -> None:
    found = names["encoded"].sort("price")["zipcode_mean_sqft"].to_numpy()
    order = np.argsort(names["houses"]["price"].to_numpy())
    np.testing.assert_array_equal(found, names["in_memory"][order])


def test_the_refreshed_moments_are_those_of_the_last_days(names: dict[str, Any]) -> None:
    assert names["whole"].count.sum() == 250
    assert names["fresh"].transform(names["houses"].drop("price")).shape == (50, 2)


def test_the_moments_of_workers_add_up(names: dict[str, Any]) -> None:
    assert names["encoder"].representations_["zipcode"].weight.sum() == 250
    assert Path("zipcode.parquet").exists()
