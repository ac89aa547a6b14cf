"""Fixtures of several tests of encoders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sufrep import SufficientEncoder
from sufrep.encoders._judging import CANDIDATES, DROP, Judgement


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make SufficientEncoder choose given components without judging, for what holds for any choice."""

    def chosen(*components: str) -> None:
        def judged(_encoder: SufficientEncoder, inputs: Any, _components: Any) -> Judgement:
            n = inputs.table.n_rows
            losses = {DROP: np.ones(n), "both": np.zeros(n)} if components else {DROP: np.ones(n)}
            shuffled = {("both", component): np.ones(n) for component in components}
            return Judgement(losses, shuffled, dict.fromkeys(losses, 0), None, [np.arange(n)])

        monkeypatch.setitem(CANDIDATES, "both", components)
        monkeypatch.setattr(SufficientEncoder, "_judge", judged)

    return chosen
