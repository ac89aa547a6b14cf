"""Warnings that point at the user's line, whatever stands between."""

from __future__ import annotations

import sys
import warnings

_BETWEEN = ("sufrep.", "sklearn.", "joblib.", "contextlib")


class NoGroupWarning(UserWarning):
    """A frame holds no text column and no group was named, so nothing is encoded."""


class IdColumnWarning(UserWarning):
    """A group has a level of its own in every row; it looks like an identifier."""


class UnseenLevelsWarning(UserWarning):
    """Not one row holds a level that ``fit`` saw; the types of the two may differ."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line that is neither ours nor scikit-learn's."""
    # Python 3.12 has skip_file_prefixes for this; we start at 3.11.
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_BETWEEN):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth + 1)
