"""All encodings compared on a user's data: data → plan → fold scores → summaries → verdict and page."""

from __future__ import annotations

from sufrep._compare._comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
