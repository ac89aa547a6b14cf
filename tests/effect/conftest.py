"""An analysis of simulated patients, whose hospital decides who is treated and how they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from sufrep import AIPW
from sufrep._effect import EffectAnalysis, analyse


@pytest.fixture(scope="session")
def patients() -> pl.DataFrame:
    """Patients in 40 hospitals, two of which treat everybody or nobody; the drug adds a day."""
    rng = np.random.default_rng(0)
    n = 400
    hospital = np.arange(n) % 40
    quality = rng.normal(size=40)[hospital]
    treated = rng.random(n) < 1 / (1 + np.exp(-quality))
    treated[:80] = np.arange(80) < 40  # every hospital has both, but for two
    treated[hospital == 0], treated[hospital == 1] = True, False
    return pl.DataFrame(
        {
            "hospital": [f"h{code:02d}" for code in hospital],
            "age": quality + rng.normal(size=n),
            "ward": rng.choice(["a", "b"], n),
            "drug": np.where(treated, "yes", "no"),
            "days": treated + 2 * quality + 0.3 * rng.normal(size=n),
        }
    )


@pytest.fixture(scope="session")
def analysed(patients: pl.DataFrame) -> Callable[..., EffectAnalysis]:
    """``analysed(by=…, estimand=…)`` analyses the patients with a linear model."""

    def run(by: tuple[str, ...] = (), **parameters: Any) -> EffectAnalysis:
        model = AIPW(LinearRegression(), LogisticRegression(), group="hospital", **parameters)
        given = {"treatment": "drug", "outcome": "days", "treated": "yes"}
        return analyse(model, patients, **given, by=by, progress=lambda *_: None)

    return run


@pytest.fixture(scope="session")
def analysis(analysed: Callable[..., EffectAnalysis]) -> EffectAnalysis:
    return analysed()
