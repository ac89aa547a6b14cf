"""Settings that all tests share."""

from __future__ import annotations

import os

# scikit-learn's conformance suite checks array input only where scipy was imported with this set.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
