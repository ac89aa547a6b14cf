"""Progress of a command: a bar in a terminal; elsewhere a line every half minute, and one at the end."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from sufrep._progress import LOG_PERIOD, Lines, print_end, time_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console
    from rich.live import Live
    from rich.progress import Progress
    from rich.table import Table

    from sufrep._compare._running import Standing
    from sufrep._progress import Report

# Rows of the ranking so far.
_SHOWN = 12


@contextmanager
def progress(what: str) -> Iterator[Report]:
    """Show the progress of a job on the error stream, so that results can be piped."""
    console = _error_console()
    if not console.is_terminal:
        yield Lines(what, LOG_PERIOD)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

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
    console = _error_console()
    if console.is_terminal:
        with console.status(what):
            yield
        return
    started = monotonic()
    yield
    print_end(what, monotonic() - started)


@contextmanager
def phases(what: str) -> Iterator[Callable[[str], None]]:
    """Show what a job without countable steps does, and for how long; elsewhere a line every half minute.

    What is called with a note may be called from any thread.
    """
    console = _error_console()
    if console.is_terminal:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(),
            TextColumn(what),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", markup=False),
        )
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("", total=None, note="")
            yield lambda note: bar.update(task, note=note)
        return
    notes, started, ended = [""], monotonic(), threading.Event()

    def print_lines() -> None:
        while not ended.wait(LOG_PERIOD):
            elapsed = time_in_words(monotonic() - started)
            print(f"{what}: {elapsed} so far  {notes[-1]}".rstrip(), file=sys.stderr)

    thread = threading.Thread(target=print_lines, daemon=True)
    thread.start()
    try:
        yield lambda note: notes.__setitem__(0, note)
    finally:
        ended.set()
        thread.join()
    print_end(what, monotonic() - started)


@contextmanager
def running_ranking() -> Iterator[RunningRanking]:
    """Show the ranking so far of a comparison, and let the first Ctrl-C end it with what is done."""
    console = _error_console()
    with ExitStack() as stack:
        live = None
        if console.is_terminal:
            from rich.live import Live

            live = stack.enter_context(Live(console=console, transient=True, auto_refresh=False))
        watcher = RunningRanking(console, live)
        if threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGINT, watcher.interrupt)
            stack.callback(signal.signal, signal.SIGINT, before)
        yield watcher


class RunningRanking:
    """Shows the ranking so far: a table in a terminal, elsewhere a line for each method that is done.

    Parameters
    ----------
    console : Console
    live : Live or None
        Draws the table; None prints lines.
    """

    def __init__(self, console: Console, live: Live | None) -> None:
        self._console, self._live = console, live
        self._printed: set[tuple[str, str]] = set()
        self._stopped = False
        self._started = monotonic()

    def see(self, standing: Standing) -> None:
        """Show the results so far."""
        if self._live is not None:
            self._live.update(self._table(standing), refresh=True)
            return
        for place, (method, model, score) in enumerate(standing.ranking, 1):
            if (method, model) not in self._printed:
                self._printed.add((method, model))
                left = time_in_words(standing.seconds_left)
                done = f"compare: {method} with {model}: {number_in_table(score)}"
                n_so_far = len(standing.ranking)
                print(f"{done}, place {place} of {n_so_far} so far; about {left} left", file=sys.stderr)
        if standing.n_done == standing.n_all:
            print_end("compare", monotonic() - self._started)

    def stops(self) -> bool:
        """Return whether Ctrl-C was pressed."""
        return self._stopped

    def interrupt(self, *_: object) -> None:
        """Ask to stop; the second time, stop at once."""
        if self._stopped:
            raise KeyboardInterrupt
        self._stopped = True
        text = "Finishing the fits that are running, then the report. Press Ctrl-C again to stop at once."
        self._console.print(text, style="dim", soft_wrap=True)

    @staticmethod
    def _table(standing: Standing) -> Table:
        from rich.table import Table

        left = time_in_words(standing.seconds_left) if standing.n_done else "…"
        title = f"{standing.n_done} of {standing.n_all} fits, about {left} left  {standing.method}"
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        table.add_column("", justify="right")
        table.add_column("so far")
        table.add_column("")
        table.add_column("score", justify="right")
        for place, (method, model, score) in enumerate(standing.ranking[:_SHOWN], 1):
            table.add_row(str(place), method, model, number_in_table(score))
        return table


def number_in_table(value: float) -> str:
    """Format a score: five digits, and large numbers without decimals.

    Examples
    --------
    >>> number_in_table(121_391.7), number_in_table(0.123456)
    ('121,392', '0.12346')
    """
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.5g}"


def _error_console() -> Console:
    """The error stream; rich is loaded here, because wrong usage is reported without it."""
    from rich.console import Console

    return Console(stderr=True)


class _Bar:
    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, note="")

    def __call__(self, done: int, total: int, note: str) -> None:
        self._bar.update(self._task, completed=done, total=total, note=note)
