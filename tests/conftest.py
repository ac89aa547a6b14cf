"""Settings and places that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# scikit-learn's conformance suite checks array input only where scipy was imported with this set.
os.environ.setdefault("SCIPY_ARRAY_API", "1")


@pytest.fixture
def r_fixtures() -> Path:
    """Numbers that R printed for one small input; see the README beside them."""
    return Path(__file__).parent / "fixtures" / "r"
