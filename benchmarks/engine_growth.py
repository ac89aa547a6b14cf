"""How ``MeansEncoder.fit`` in memory grows with rows and with levels, next to polars by hand.

    python -m benchmarks.engine_growth measure
    python -m benchmarks.engine_growth draw docs/results/engines/growth.png

The first command adds lines to ``results/engines/growth.jsonl``, the second draws them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import altair as alt
import polars as pl
import pyarrow as pa

from benchmarks.engine_runs import append, medians, read
from benchmarks.make_large import chunks
from sufrep import MeansEncoder

SIZES = (
    *((rows, 50_000) for rows in (1_000_000, 3_000_000, 10_000_000)),
    *((10_000_000, levels) for levels in (1_000, 300_000, 1_000_000)),
)
NAMES = {"by_hand": "polars group_by mean", "fit": "MeansEncoder.fit"}


def frame_of(rows: int, levels: int) -> pl.DataFrame:
    """Rows of the large data set, with text levels, in one piece."""
    frame = pl.from_arrow(pa.concat_tables(chunks(rows, levels)))
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.col("zip").cast(pl.String)).rechunk()


def measure(rows: int, levels: int, repeats: int) -> list[dict[str, Any]]:
    """Times of both, alternately, in this process."""
    frame = frame_of(rows, levels)
    covariates = frame.columns[1:]
    calls: dict[str, Callable[[], Any]] = {
        "by_hand": lambda: frame.group_by("zip").agg(pl.col(covariates).mean()),
        "fit": lambda: MeansEncoder("zip").fit(frame),
    }
    records = []
    for run in range(repeats):
        for task, call in calls.items():
            cpu, wall = process_time(), perf_counter()
            kept = call()
            seconds = {"cpu_s": round(process_time() - cpu, 3), "wall_s": round(perf_counter() - wall, 3)}
            del kept
            records.append({"rows": rows, "levels": levels, "task": task, "run": run, **seconds})
    return records


def summary() -> pl.DataFrame:
    """Median CPU time by size and task, from the file of results."""
    runs = read("growth")
    return pl.DataFrame(
        {"rows": rows, "levels": levels, "who": NAMES[task], "cpu_s": cpu}
        for rows, levels in sorted({(run["rows"], run["levels"]) for run in runs})
        for task, cpu in medians(
            [run for run in runs if (run["rows"], run["levels"]) == (rows, levels)], "cpu_s"
        ).items()
    )


def draw(path: Path) -> None:
    """Draw CPU time against rows, and against levels."""
    found = summary()
    panels = [
        _panel(found.filter(pl.col("levels") == 50_000), "rows", "Rows (50,000 levels)"),
        _panel(found.filter(pl.col("rows") == 10_000_000), "levels", "Levels (10 million rows)"),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    alt.hconcat(*panels).save(path, scale_factor=2)


def _panel(found: pl.DataFrame, size: str, title: str) -> alt.LayerChart:
    log = alt.Scale(type="log")
    base = alt.Chart(found, width=300, height=220).encode(
        x=alt.X(size, type="quantitative", scale=log, axis=alt.Axis(title=title, format="~s")),
        y=alt.Y("cpu_s:Q", scale=log, axis=alt.Axis(title="CPU time (s)")),
        color=alt.Color("who:N", title=None, legend=alt.Legend(orient="top")),
    )
    return base.mark_line() + base.mark_point(filled=True, size=50)


def main() -> None:
    """Measure or draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("measure").add_argument("--repeats", type=int, default=3)
    commands.add_parser("draw").add_argument("path", type=Path)
    options = parser.parse_args()
    if options.command == "draw":
        draw(options.path)
        return
    for rows, levels in SIZES:
        append("growth", measure(rows, levels, options.repeats))


if __name__ == "__main__":
    main()
