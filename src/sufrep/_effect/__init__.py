"""A treatment effect as a reader needs it: a verdict in words, every table behind it, and a report."""

from __future__ import annotations

from sufrep._effect._analysis import EffectAnalysis, analyse

__all__ = ["EffectAnalysis", "analyse"]
