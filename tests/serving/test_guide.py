"""The code of docs/how-to/serving.md runs, and does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GUIDE = (Path(__file__).parents[2] / "docs" / "how-to" / "serving.md").read_text()


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("sqlglot", "duckdb", "dask"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    assert len(blocks) == 7
    checks = {1: _one_vector, 3: _sql, 4: _refresh, 6: _workers}
    for number, block in enumerate(blocks):
        exec(block, names)
        checks.get(number, lambda _: None)(names)
    assert (tmp_path / "zipcode.parquet").exists()


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
