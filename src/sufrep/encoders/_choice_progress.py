"""How far a choice is."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sufrep.encoders._choice import Tried


class Progress:
    """A line of text for every candidate, or one line that grows where a person looks on."""

    def __init__(self, verbose: int) -> None:
        self._verbose, self._start, self._done = verbose, perf_counter(), 0

    def __call__(self, tried: Tried, most: int, loss: float) -> None:
        """Say what was tried."""
        if not self._verbose:
            return
        self._done += 1
        name = " + ".join(tried.candidate) or "drop"
        text = f"[SufficientEncoder] {self._done} of {most}: {name}, loss {loss:.6g}"
        text += f" ({perf_counter() - self._start:.0f} s)"
        if self._one_line():
            bar = "#" * round(20 * self._done / most)
            sys.stderr.write(f"\r{bar:<20} {text:<88}")
            sys.stderr.flush()
        else:
            sys.stderr.write(text + "\n")

    def close(self) -> None:
        """End the line that grew; there may be fewer candidates than were announced."""
        if self._one_line():
            sys.stderr.write("\n")

    def _one_line(self) -> bool:
        return self._verbose == 1 and sys.stderr.isatty()
