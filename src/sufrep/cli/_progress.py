"""Progress of a command: a bar in a terminal; elsewhere a line every half minute, and one at the end."""

from __future__ import annotations

from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from sufrep._progress import LOG_PERIOD, Lines, print_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sufrep._progress import Report


@contextmanager
def progress(what: str) -> Iterator[Report]:
    """Show the progress of a job on the error stream, so that results can be piped."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines(what, LOG_PERIOD)
        return
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    # The estimate uses the last ten minutes, because the trials of a seed take very different times.
    with Progress(*columns, console=console, speed_estimate_period=600) as bar:
        yield _Bar(bar)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show what a job without steps does; without a terminal, report its end if it took long."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(what):
            yield
        return
    started = monotonic()
    yield
    print_end(what, monotonic() - started)


class _Bar:
    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, note="")

    def __call__(self, done: int, total: int, note: str) -> None:
        self._bar.update(self._task, completed=done, total=total, note=note)
