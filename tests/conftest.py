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


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the real data: SUFREP_DATA, or shared/data beside the repository."""
    folder = Path(os.environ.get("SUFREP_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"the real data are not at {folder}; set SUFREP_DATA to their folder")
    return folder
