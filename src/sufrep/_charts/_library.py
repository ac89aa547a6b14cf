"""The one place that loads Altair, which is optional."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from sufrep.errors import MissingDependencyError


def load_altair() -> Any:
    """Return the module, or say what to install."""
    if find_spec("altair") is None:
        raise MissingDependencyError("altair", "Drawing", "report")
    import altair

    return altair


def require_renderer(purpose: str) -> None:
    """Say what to install if nothing can turn a chart into a picture or a page."""
    if find_spec("vl_convert") is None:
        raise MissingDependencyError("vl-convert-python", purpose, "report")
