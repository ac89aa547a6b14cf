"""A small table with a confounder that is a hospital."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def patients() -> pd.DataFrame:
    """400 patients of 40 hospitals; quality moves treatment and outcome, and the treatment adds 1."""
    rng = np.random.default_rng(0)
    hospital = np.arange(400) % 40
    quality = rng.normal(size=40)[hospital]
    age, weight = rng.normal(size=(2, 400)) + quality
    treated = (rng.random(400) < 1 / (1 + np.exp(-0.7 * quality - 0.5 * age))).astype(int)
    outcome = treated + age + 2 * quality + rng.normal(size=400)
    return pd.DataFrame(
        {
            "hospital": [f"h{code}" for code in hospital],
            "age": age,
            "weight": weight,
            "treated": treated,
            "outcome": outcome,
        }
    )
