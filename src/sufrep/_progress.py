"""Progress of a job with steps: what is called after each step, and a report of it in lines of text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from typing import TypeAlias

# Called with the number of steps done, their total number, and a note on the last one. The first call, before
# the first step, has 0 done.
Report: TypeAlias = Callable[[int, int, str], None]

# Seconds between two lines: where somebody is waiting, and in a log file.
_PERIOD = 2.0
LOG_PERIOD = 30.0
# The end of a shorter job is not reported.
_LONG = 2.0


def make_report(progress: bool | Report, name: str) -> Report | None:
    """Return what is called after each step.

    Parameters
    ----------
    progress : bool or callable
        True prints lines to standard error, False reports nothing, a callable is returned as it is.
    name : str
        Starts each line.
    """
    if callable(progress):
        return progress
    return Lines(name) if progress else None


class Lines:
    """Prints to standard error a line every few seconds, with the time that is left, and one at the end.

    Parameters
    ----------
    name : str
        Starts each line.
    period : float
        Seconds between two lines.
    left : callable, optional
        Returns the seconds that are left; by default they follow from the number of steps done.
    """

    def __init__(self, name: str, period: float = _PERIOD, left: Callable[[], float] | None = None) -> None:
        self._name, self._period, self._left = name, period, left
        self._start = self._last = monotonic()

    def __call__(self, done: int, total: int, note: str) -> None:
        now = monotonic()
        if not done:
            self._start = self._last = now
        elif done >= total:
            print_end(self._name, now - self._start)
        elif now - self._last >= self._period:
            self._last = now
            left = self._left() if self._left else (now - self._start) / done * (total - done)
            left = max(1.0, left)
            line = f"{self._name}: {done} of {total}, about {time_in_words(left)} left  {note}"
            print(line.rstrip(), file=sys.stderr)


def print_end(name: str, seconds: float) -> None:
    """Print that a job is done, if it took long."""
    if seconds > _LONG:
        print(f"{name}: done in {time_in_words(seconds)}", file=sys.stderr)


def time_in_words(seconds: float) -> str:
    """Return a time as people say it, in whole seconds or minutes."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
