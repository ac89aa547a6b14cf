"""The code of docs/how-to/large-data.md runs, and does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.lazy.cases import same_rows

from sufrep import MeansEncoder
from sufrep.datasets import load_houses

GUIDE = (Path(__file__).parents[2] / "docs" / "how-to" / "large-data.md").read_text()


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    houses = load_houses()
    frame = pl.DataFrame(houses.columns()).with_columns(price=houses.y).with_row_index("id")
    Path("houses").mkdir()
    frame[:1_000].write_parquet("houses/a.parquet")
    frame[1_000:].write_parquet("houses/b.parquet")
    (block,) = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    eager = MeansEncoder("zipcode", shrinkage="auto").set_output(transform="polars")
    eager.fit(frame, "price")
    same_rows(pl.read_parquet("encoded.parquet"), eager.transform(frame))
