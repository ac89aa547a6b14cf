"""What `from sufrep import MeansEncoder` costs, next to the modules that it cannot do without.

CPU time of fresh processes with compiled files, because the first import after an installation compiles them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

from benchmarks.measure import Result, milliseconds

OURS = "from sufrep import MeansEncoder"
PEER = "import sklearn.base, scipy.sparse"
GOAL = 1.15
# Starting a process is cheap, and single imports vary by a tenth.
RUNS_PER_REPEAT = 10


def results(repeats: int) -> list[Result]:
    times: dict[str, list[float]] = {OURS: [], PEER: []}
    for statement in times:
        import_seconds(statement)
    for _ in range(RUNS_PER_REPEAT * repeats):
        for statement, seconds in times.items():
            seconds.append(import_seconds(statement))
    ours, peer = (median(times[statement]) for statement in (OURS, PEER))
    return [
        Result(
            f"imports, {OURS}",
            milliseconds(ours),
            f"{PEER} {milliseconds(peer)}",
            ours / peer,
            f"at most {GOAL:g} x",
            ours <= GOAL * peer,
        )
    ]


def import_seconds(statement: str) -> float:
    """CPU seconds of one import statement in a fresh process."""
    code = f"from time import process_time as now\nstart = now()\n{statement}\nprint(now() - start)"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout
    return float(printed)
