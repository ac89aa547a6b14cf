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

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class JobProgress(Protocol):
        """What a job reports: its number of steps, and the end of each."""

        def start(self, n_steps: int) -> None: ...

        def advance(self, note: str = "") -> None: ...


# Seconds between two lines without a terminal.
_PERIOD = 30.0
# Seconds after which the end of a job is reported.
_LONG = 2.0


@contextmanager
def progress(what: str) -> Iterator[JobProgress]:
    """Show the progress of a job on the error stream, so that results can be piped."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Log(what, console)
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
    if monotonic() - started > _LONG:
        line = f"{what}: done in {_minutes(monotonic() - started)}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)


class _Bar:
    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, note="")

    def start(self, n_steps: int) -> None:
        self._bar.update(self._task, total=n_steps)

    def advance(self, note: str = "") -> None:
        self._bar.update(self._task, advance=1, note=note)


class _Log:
    def __init__(self, what: str, console: Console) -> None:
        self._what, self._console = what, console
        self._started = self._last = monotonic()
        self._n_steps = self._done = 0

    def start(self, n_steps: int) -> None:
        self._n_steps, self._started, self._last = n_steps, monotonic(), monotonic()

    def advance(self, note: str = "") -> None:
        self._done += 1
        now = monotonic()
        elapsed = now - self._started
        if self._done >= self._n_steps:
            if elapsed > _LONG:
                self._print(f"{self._what}: done in {_minutes(elapsed)}")
        elif now - self._last >= _PERIOD:
            self._last = now
            left = max(1.0, elapsed / self._done * (self._n_steps - self._done))
            self._print(f"{self._what}: {self._done} of {self._n_steps}, about {_minutes(left)} left  {note}")

    def _print(self, line: str) -> None:
        self._console.print(line.rstrip(), markup=False, highlight=False, soft_wrap=True)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
