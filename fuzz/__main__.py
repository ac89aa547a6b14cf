"""Look for defects for some minutes: ``python -m fuzz --minutes 5``; see docs/reference/reliability.md.

A case that fails is printed with its seed and stored in ``fuzz/corpus``; ``--case commands:12345`` runs the
case of a seed again. The exit code is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import secrets
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from fuzz import corpus
from fuzz.running import PARTS, markdown, run_case, run_part
from fuzz.worker import ENVIRONMENT

_PACKAGES = ("sufrep", "numpy", "scikit-learn", "polars", "pandas", "pyarrow", "duckdb")


def main() -> None:
    """Parse, run, report."""
    given = _parser().parse_args()
    if given.table:
        print(markdown(json.loads(Path(given.table).read_text())))
        return
    os.environ.update(ENVIRONMENT)
    if given.case:
        part, _, seed = given.case.partition(":")
        sys.exit(run_case(part, int(seed)))
    seed = secrets.randbelow(10**9) if given.seed is None else given.seed
    parts = given.only or list(PARTS)
    waves = math.ceil(len(parts) / given.jobs)
    seconds = 60 * given.minutes / waves
    print(
        f"seed {seed}: {', '.join(parts)}; {seconds / 60:.1f} minutes each, {given.jobs} at a time",
        flush=True,
    )
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        started = [pool.submit(run_part, part, seed, seconds) for part in parts]
        counts = [future.result() for future in started]
    report = {
        "seed": seed,
        "minutes": given.minutes,
        "generator": corpus.GENERATOR,
        "python": platform.python_version(),
        "versions": {package: version(package) for package in _PACKAGES},
        "parts": counts,
    }
    if given.report:
        Path(given.report).write_text(json.dumps(report, indent=1) + "\n")
    print(markdown(report))
    sys.exit(any(part["findings"] for part in counts))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="time for all parts together (default: 5)")
    parser.add_argument("--seed", type=int, help="first seed; by default another one in each run")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help="parts to run; by default all")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="parts at a time")
    parser.add_argument("--case", metavar="PART:SEED", help="run the case of one seed, and print it")
    parser.add_argument("--report", metavar="FILE", help="write the counts as JSON")
    parser.add_argument(
        "--table", metavar="FILE", help="print such counts as a Markdown table, and do nothing else"
    )
    return parser


if __name__ == "__main__":
    main()
