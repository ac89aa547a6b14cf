"""A progress bar in a terminal, a line now and then elsewhere."""

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

    class Advance(Protocol):
        """What a long job calls: how much there is to do, and that a piece is done."""

        def start(self, todo: int) -> None: ...

        def advance(self, note: str = "") -> None: ...


# Seconds between two lines where there is no terminal.
_PERIOD = 30.0
# Seconds that nobody minds.
_LONG = 2.0


@contextmanager
def progress(what: str) -> Iterator[Advance]:
    """Show how far a job is, on the error stream, so that results can be piped."""
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
    # The estimate looks back on ten minutes: trials of one seed take very different times.
    with Progress(*columns, console=console, speed_estimate_period=600) as bar:
        yield _Bar(bar)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say what is done while nobody can tell how far it is; without a terminal, afterwards if it was long."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(what):
            yield
        return
    begun = monotonic()
    yield
    if monotonic() - begun > _LONG:
        line = f"{what}: done in {monotonic() - begun:.0f} s"
        console.print(line, markup=False, highlight=False, soft_wrap=True)


class _Bar:
    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, note="")

    def start(self, todo: int) -> None:
        self._bar.update(self._task, total=todo)

    def advance(self, note: str = "") -> None:
        self._bar.update(self._task, advance=1, note=note)


class _Log:
    def __init__(self, what: str, console: Console) -> None:
        self._what, self._console = what, console
        self._begun = self._last = monotonic()
        self._todo = self._done = 0

    def start(self, todo: int) -> None:
        self._todo, self._begun, self._last = todo, monotonic(), monotonic()

    def advance(self, note: str = "") -> None:
        self._done += 1
        now = monotonic()
        if now - self._last < _PERIOD and self._done < self._todo:
            return
        self._last = now
        left = (now - self._begun) / self._done * (self._todo - self._done)
        line = f"{self._what}: {self._done} of {self._todo}, about {_minutes(left)} left  {note}"
        self._console.print(line.rstrip(), markup=False, highlight=False, soft_wrap=True)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
