"""Timing and memory, in the same way for every benchmark."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Result:
    """One line of the table: our figure next to that of a peer."""

    case: str
    ours: str
    peer: str
    ratio: float
    goal: str
    reached: bool


def alternate(
    calls: dict[str, Callable[[], Any]],
    repeats: int,
    *,
    warm_up: bool = True,
    clock: Callable[[], float] = perf_counter,
) -> dict[str, float]:
    """Return median seconds of each call; calls are interleaved, so that a slow minute affects all."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values() if warm_up else ():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            call()
            times[name].append(clock() - start)
    return {name: median(seconds) for name, seconds in times.items()}


def extra_memory(call: Callable[[], Any]) -> int:
    """Return the peak memory in bytes that a call needs in addition to what the process had (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    kept = call()
    peak = _status("VmHWM")
    del kept
    return max(peak - before, 0)


def memory_of_fit(case: str, module: str, kind: str, size: int) -> Result:
    """Compare what ``measure_memory(kind)`` of a module returns, in a fresh process, with ``size`` bytes."""
    code = f"from {module} import measure_memory; print(measure_memory({kind!r}))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    extra = int(printed)
    return Result(
        f"{case}, extra memory of fit, {kind}",
        f"{extra / 2**20:,.0f} MiB",
        f"covariates {size / 2**20:,.0f} MiB",
        extra / size,
        "at most 1.2 x",
        extra <= 1.2 * size,
    )


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in /proc/self/status: memory is measured on Linux only")


def milliseconds(seconds: float) -> str:
    """Write a time with three digits."""
    return f"{seconds * 1e3:,.0f} ms" if seconds < 10 else f"{seconds:,.1f} s"
