"""All encodings compared on a user's data: data → plan → fold scores → summaries → verdict and page."""

from __future__ import annotations

from sufrep._compare._comparison import Comparison, compare
from sufrep._compare._run import check_methods, check_scoring
from sufrep._models import check_models

__all__ = ["Comparison", "check_methods", "check_models", "check_scoring", "compare"]
