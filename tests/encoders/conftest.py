"""What several tests of encoders share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sufrep.encoders._sufficient_search import ComponentSearch, Tried


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets given pieces be chosen untried, for what holds whatever is chosen."""

    def chosen(*pieces: str) -> None:
        def run(search: ComponentSearch, *_: Any) -> list[Tried]:
            n = len(search.data.y)
            return [Tried((), np.ones(n), 0), Tried(pieces, np.zeros(n), 0)][: 1 + bool(pieces)]

        monkeypatch.setattr(ComponentSearch, "run", run)

    return chosen
