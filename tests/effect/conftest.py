"""An analysis of simulated patients, whose hospital decides who is treated and how they do."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from sufrep import AIPW
from sufrep._effect import EffectAnalysis, analyse


def simulated(n: int = 400, effect: float = 1.0) -> pl.DataFrame:
    """Patients in 40 hospitals, two of which treat everybody or nobody."""
    rng = np.random.default_rng(0)
    hospital = np.arange(n) % 40
    quality = rng.normal(size=40)[hospital]
    treated = rng.random(n) < 1 / (1 + np.exp(-quality))
    treated = np.where(hospital == 0, True, np.where(hospital == 1, False, treated))
    return pl.DataFrame(
        {
            "hospital": [f"h{code:02d}" for code in hospital],
            "age": 60 + 5 * quality + rng.normal(size=n),
            "ward": rng.choice(["a", "b"], n),
            "drug": np.where(treated, "yes", "no"),
            "days": effect * treated + 2 * quality + 0.3 * rng.normal(size=n),
        }
    )


def analysed(table: pl.DataFrame, by: tuple[str, ...] = (), **parameters: Any) -> EffectAnalysis:
    model = AIPW(LinearRegression(), LogisticRegression(), group="hospital", **parameters)
    given = {"treatment": "drug", "outcome": "days", "treated": "yes"}
    return analyse(model, table, **given, by=by, progress=lambda *_: None)


@pytest.fixture(scope="session")
def analysis() -> EffectAnalysis:
    return analysed(simulated())
