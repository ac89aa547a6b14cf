"""A bar in a terminal, and lines elsewhere."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from rich.console import Console

from sufrep import _progress as lines
from sufrep.cli import _progress
from sufrep.cli._progress import phases, progress, waiting


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """Time that passes only when the test changes it."""
    now = [1000.0]
    for module in (_progress, lines):
        monkeypatch.setattr(module, "monotonic", lambda: now[0])
    return now


@contextmanager
def shown(monkeypatch: pytest.MonkeyPatch, **console: Any) -> Iterator[tuple[Any, io.StringIO]]:
    """A job, and what it shows; `console` sets the kind of terminal."""
    screen = io.StringIO()
    made = partial(Console, stderr=True, file=screen, width=150, **console)
    monkeypatch.setattr(_progress, "_error_console", made)
    with progress("paper simulations") as bar:
        yield bar, screen


def test_without_a_terminal_there_is_a_line_every_half_minute_on_the_error_stream(capsys, clock):
    with progress("paper simulations") as report:
        for done in range(11):
            report(done, 10, f"trial {done}")
            clock[0] += 10
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.splitlines() == [
        "paper simulations: 3 of 10, about 70 s left  trial 3",
        "paper simulations: 6 of 10, about 40 s left  trial 6",
        "paper simulations: 9 of 10, about 10 s left  trial 9",
        "paper simulations: done in 2 min",
    ]


def test_a_terminal_shows_a_bar_with_counts_and_the_last_step(monkeypatch):
    with shown(monkeypatch, force_terminal=True, force_interactive=True) as (bar, screen):
        for done in range(4):
            bar(done, 4, f"trial {done}")
    last = screen.getvalue().split("\r")[-1]
    assert "\x1b[" in last
    assert "paper simulations" in last
    assert "3/4" in last
    assert "trial 3" in last


def test_a_bar_without_colours_is_still_a_bar(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    with shown(monkeypatch, force_terminal=True, force_interactive=True) as (bar, screen):
        bar(1, 2, "trial")
    assert "1/2" in screen.getvalue()
    assert "\x1b[3" not in screen.getvalue()  # colours of the foreground
    assert "\x1b[9" not in screen.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_an_error_inside_the_job_comes_through(monkeypatch, terminal):
    def job() -> None:
        with shown(monkeypatch, force_terminal=terminal) as (bar, _):
            bar(0, 1, "")
            raise ValueError("of the job")

    with pytest.raises(ValueError, match="of the job"):
        job()


@pytest.mark.parametrize(("seconds", "expected"), [(1.0, ""), (7.0, "reading [a]: done in 7 s\n")])
def test_the_end_of_a_job_without_steps_is_reported_if_it_took_long(capsys, clock, seconds, expected):
    with waiting("reading [a]"):
        clock[0] += seconds
    assert capsys.readouterr().err == expected


def test_a_terminal_shows_a_job_without_steps(monkeypatch):
    screen = io.StringIO()
    made = partial(Console, stderr=True, file=screen, force_terminal=True, width=80)
    monkeypatch.setattr(_progress, "_error_console", made)
    with waiting("drawing the report"):
        pass
    assert "drawing the report" in screen.getvalue()


def test_a_job_without_steps_prints_a_line_every_half_minute(capsys, clock, monkeypatch):
    monkeypatch.setattr(_progress, "LOG_PERIOD", 0.001)
    with phases("encode") as tell:
        clock[0] += 30
        tell("2,000 of 9,000 rows written")
        seen = ""
        while "rows" not in seen:
            seen += capsys.readouterr().err
        clock[0] += 40
    assert "encode: 30 s so far  2,000 of 9,000 rows written\n" in seen
    assert capsys.readouterr().err.endswith("encode: done in 70 s\n")


def test_a_job_that_fails_prints_no_end(capsys, clock):
    def fail() -> None:
        with phases("encode"):
            clock[0] += 60
            raise OSError("a disk")

    with pytest.raises(OSError, match="a disk"):
        fail()
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_what_a_job_without_steps_does(monkeypatch):
    screen = io.StringIO()
    made = partial(Console, file=screen, width=150, force_terminal=True, force_interactive=True)
    monkeypatch.setattr(_progress, "_error_console", lambda: made(stderr=True))
    with phases("encode") as tell:
        tell("fitting [bold]")
    last = screen.getvalue().split("\r")[-1]
    assert "encode" in last
    assert "0:00:00" in last
    assert "fitting [bold]" in last
