"""Timing and memory, in the same way for every benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Result:
    """One line of the table: a figure of ours beside that of a peer."""

    case: str
    ours: str
    peer: str
    ratio: float
    goal: str
    reached: bool


def alternate(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median seconds of each call; the calls take turns, so that a slow minute hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            start = perf_counter()
            call()
            times[name].append(perf_counter() - start)
    return {name: median(seconds) for name, seconds in times.items()}


def extra_memory(call: Callable[[], Any]) -> int:
    """Bytes that a call needs at its peak beyond what the process held before (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    kept = call()
    peak = _status("VmHWM")
    del kept
    return max(peak - before, 0)


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in /proc/self/status: memory is measured on Linux only")


def milliseconds(seconds: float) -> str:
    """Write a time with three digits."""
    return f"{seconds * 1e3:,.0f} ms" if seconds < 10 else f"{seconds:,.1f} s"
