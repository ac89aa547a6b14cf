"""Fixtures of several tests of encoders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sufrep.encoders._sufficient_search import ComponentSearch, Tried


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make SufficientEncoder choose given components without a search, for what holds for any choice."""

    def chosen(*components: str) -> None:
        def run(search: ComponentSearch, *_: Any) -> list[Tried]:
            n = len(search.data.y)
            return [Tried((), np.ones(n), 0), Tried(components, np.zeros(n), 0)][: 1 + bool(components)]

        monkeypatch.setattr(ComponentSearch, "run", run)

    return chosen
