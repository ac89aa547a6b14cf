"""Fixtures of the engines."""

from __future__ import annotations

from tests.serving.engines import dialect, engine

__all__ = ["dialect", "engine"]
