"""Charts to files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sufrep._charts._library import require_renderer

if TYPE_CHECKING:
    from pathlib import Path


def write_chart(chart: Any, path: Path) -> list[Path]:
    """Write a chart as PNG, SVG and interactive HTML that needs no network; `path` is without its ending.

    Each file appears whole or not at all.
    """
    require_renderer("Writing pictures")
    written = []
    formats: dict[str, dict[str, Any]] = {"png": {"scale_factor": 2}, "svg": {}, "html": {"inline": True}}
    for ending, options in formats.items():
        final = path.with_name(f"{path.name}.{ending}")
        part = path.with_name(f"{path.name}.part")
        try:
            chart.save(part, format=ending, **options)
            part.replace(final)
        finally:
            part.unlink(missing_ok=True)
        written.append(final)
    return written
