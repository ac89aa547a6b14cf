"""A sample of the rows of a lazy frame, for encoders that need rows."""

from __future__ import annotations

from typing import Any

from sufrep.errors import RowsNeededError


def sample_rows(encoder: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    raise RowsNeededError("later", "later")
