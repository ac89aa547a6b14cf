"""The demo's parts work; `make demo` runs the whole."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from sufrep import simulate


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    path = Path(__file__).parents[1] / "examples" / "demo.py"
    spec = importlib.util.spec_from_file_location("demo", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sample(**parameters: int) -> tuple[pd.DataFrame, np.ndarray]:
    drawn = simulate("latent_linear", **parameters)
    return pd.DataFrame(drawn.columns()), drawn.y


def test_means_beat_one_hot_on_the_simulated_data(demo: ModuleType) -> None:
    X, y = sample(seed=1, n=4_000, levels_per_latent=10)
    errors = {method: demo.evaluate(method, X, y)[0] for method in ("one_hot", "means")}
    assert errors["means"] < errors["one_hot"]


def test_the_pictures_are_written(demo: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "OUTPUT", tmp_path)
    X, y = sample(seed=1, n=500, levels_per_latent=5)
    *_, pipeline = demo.evaluate("means", X, y)
    demo.write_pictures({"one_hot": 0.0, "means": 0.1}, pipeline)
    for name in ("improvement.png", "levels.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
