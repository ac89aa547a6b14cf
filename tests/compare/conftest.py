"""Small data, and comparisons on them that many tests look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sufrep import compare
from sufrep._compare import Comparison
from sufrep._report import _render

ATTACK = "<script>alert(1)</script>"


def make_rows(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Six towns with different mean sizes and effects on a price."""
    rng = np.random.default_rng(seed)
    town = rng.integers(0, 6, n)
    size = rng.normal(town, 1.0, n)
    X = pd.DataFrame({"town": np.array(list("abcdef"))[town], "size": size, "age": rng.normal(size=n)})
    return X, pd.Series(size + 2.0 * (town % 2) + 0.3 * rng.normal(size=n), name="price")


@pytest.fixture(scope="session")
def rows() -> Callable[..., tuple[pd.DataFrame, pd.Series]]:
    """``rows(n, seed)`` gives a table of numbers and one text column, and a target."""
    return make_rows


@pytest.fixture(scope="session")
def mixed() -> tuple[pd.DataFrame, pd.Series]:
    """A table with text and a date before the group, so that its position changes in `ToNumbers`."""
    X, y = make_rows()
    X.insert(0, "view", np.where(X["age"] > 0, "sea", "hill"))
    X.insert(1, "sold", [f"2014-{1 + i % 12:02d}-13" for i in range(len(X))])
    return X, y


@pytest.fixture(scope="session")
def found() -> Comparison:
    """A comparison of four methods with one model."""
    X, y = make_rows()
    methods = ["means", "drop", "target_encoder", "one_hot"]
    return compare(X, y, group="town", methods=methods, models="linear")


@pytest.fixture(scope="session")
def attacked() -> Comparison:
    """A comparison with markup in the names of a level, of columns and of the target."""
    X, y = make_rows()
    X = X.rename(columns={"town": ATTACK, "age": f"{ATTACK} age"})
    X[ATTACK] = X[ATTACK].replace("a", ATTACK)
    methods = ["means", "drop", "one_hot"]
    return compare(X, y.rename(f"{ATTACK} y"), group=ATTACK, methods=methods, models="linear")


@pytest.fixture
def no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making the bundle of scripts takes seconds; tests of pages as text do without."""
    monkeypatch.setattr(_render, "drawing_bundle", lambda: "")


def plain_table(comparison: Comparison) -> Any:
    """The results without times."""
    return comparison.table(library="pandas").drop(columns=["fit_seconds", "predict_seconds"])


@pytest.fixture(scope="session")
def without_seconds() -> Callable[[Comparison], Any]:
    """``without_seconds(comparison)`` is its table without times."""
    return plain_table


@pytest.fixture(scope="session")
def values_of() -> Callable[[Any], list[dict[str, Any]]]:
    """``values_of(chart)`` gives all rows of data of an Altair chart, at any depth."""
    return _values_of


def _values_of(chart: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    waiting = [chart.to_dict()]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found += part["data"]["values"] if "values" in part.get("data", ()) else []
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return found
