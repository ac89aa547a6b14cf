"""All encodings on one user's data: problem → plan → outcomes → summaries → verdict and page."""

from __future__ import annotations

from sufrep._compare._comparison import Comparison, compare
from sufrep._compare._methods import check_methods
from sufrep._compare._models import make_models
from sufrep._compare._scoring import make_scoring

__all__ = ["Comparison", "check_methods", "compare", "make_models", "make_scoring"]
