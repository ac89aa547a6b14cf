"""Settings and places that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# scikit-learn's conformance suite checks array input only where scipy was imported with this set.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

SHARED = Path(__file__).parents[1].parent / "shared"


@pytest.fixture
def r_fixtures() -> Path:
    """Numbers printed by R; they lie beside the repository, not in it."""
    folder = SHARED / "fixtures" / "r"
    if not folder.is_dir():
        pytest.skip(f"no R fixtures: {folder} is absent")
    return folder
