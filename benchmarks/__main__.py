"""Run every benchmark and print one table; also written to ``benchmarks/RESULTS.md``."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from benchmarks import (
    bench_cells,
    bench_compare,
    bench_crossed,
    bench_drift,
    bench_effects,
    bench_engines,
    bench_imports,
    bench_latent_state,
    bench_local_effect,
    bench_means,
    bench_mixed_model,
    bench_mnl,
    bench_multinomial,
    bench_new_levels,
    bench_serving,
    bench_sufficient,
)

PACKAGES = ("sufrep", "numpy", "scipy", "scikit-learn", "polars", "pandas", "narwhals", "skrub")
BENCHMARKS = {
    "means": bench_means,
    "mnl": bench_mnl,
    "multinomial": bench_multinomial,
    "latent_state": bench_latent_state,
    "local_effect": bench_local_effect,
    "effects": bench_effects,
    "cells": bench_cells,
    "new_levels": bench_new_levels,
    "drift": bench_drift,
    "serving": bench_serving,
    "mixed_model": bench_mixed_model,
    "crossed": bench_crossed,
    "sufficient": bench_sufficient,
    "compare": bench_compare,
    "engines": bench_engines,
    "imports": bench_imports,
}


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of each call (median is taken)")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, help="print these, and write no file")
    parser.add_argument(
        "--large", type=Path, metavar="FOLDER", help="with --only engines: the files of benchmarks.make_large"
    )
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="with --large: interpreter for the tasks in DuckDB and polars",
    )
    options = parser.parse_args()
    if options.large is not None and options.only != ["engines"]:
        parser.error("--large needs --only engines")
    if options.large is not None:
        rows = bench_engines.large_results(options.large, options.repeats, options.python)
    else:
        rows = [
            row for name in options.only or BENCHMARKS for row in BENCHMARKS[name].results(options.repeats)
        ]
    lines = [
        "| case | ours | peer | ours / peer | goal | reached |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row.case} | {row.ours} | {row.peer} | {row.ratio:.3g} | {row.goal} | "
            f"{'yes' if row.reached else 'no'} |"
            for row in rows
        ),
    ]
    table = "\n".join(lines)
    print(table)
    if options.only:
        return
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    text = (
        f"# Benchmarks\n\nWritten by `make bench` (medians of {options.repeats} interleaved runs, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}).\n\n{table}\n\n{versions}\n"
    )
    Path(__file__).with_name("RESULTS.md").write_text(text)


if __name__ == "__main__":
    main()
