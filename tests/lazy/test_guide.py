"""The code of docs/how-to/large-data.md gives in an engine what the same rows give in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.lazy.cases import same_rows
from tests.pages import DOCS, blocks

from sufrep import MeansEncoder
from sufrep.datasets import load_houses

GUIDE = DOCS / "how-to" / "large-data.md"


def test_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    houses = load_houses()
    frame = pl.DataFrame(houses.columns()).with_columns(price=houses.y).with_row_index("id")
    frame.write_csv("houses.csv")
    (code,) = [block.text for block in blocks(GUIDE) if block.language == "python"]
    names: dict[str, Any] = {}
    exec(code, names)
    eager = MeansEncoder("zipcode", shrinkage="auto").set_output(transform="polars")
    eager.fit(frame, "price")
    same_rows(pl.read_parquet("encoded.parquet"), eager.transform(frame))
