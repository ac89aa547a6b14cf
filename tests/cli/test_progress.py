"""A bar in a terminal, and a line every half minute for log files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from rich.console import Console

from sufrep.cli import _progress
from sufrep.cli._progress import progress, waiting


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_progress, "monotonic", clock)
    return clock


@contextmanager
def shown(monkeypatch: pytest.MonkeyPatch, **console: Any) -> Iterator[tuple[Any, io.StringIO]]:
    """A job, and what it shows; `console` sets the kind of terminal."""
    screen = io.StringIO()
    made = partial(Console, file=screen, width=150, **console)
    monkeypatch.setattr(_progress, "Console", lambda stderr: made(stderr=stderr))
    with progress("paper simulations") as bar:
        yield bar, screen


def test_a_log_has_a_line_every_half_minute_and_one_at_the_end(monkeypatch, clock):
    with shown(monkeypatch, force_terminal=False) as (bar, screen):
        bar.start(10)
        for i in range(10):
            clock.now += 10
            bar.advance(f"trial {i}")
    assert screen.getvalue().splitlines() == [
        "paper simulations: 3 of 10, about 70 s left  trial 2",
        "paper simulations: 6 of 10, about 40 s left  trial 5",
        "paper simulations: 9 of 10, about 10 s left  trial 8",
        "paper simulations: done in 2 min",
    ]


def test_long_times_are_in_minutes(monkeypatch, clock):
    with shown(monkeypatch, force_terminal=False) as (bar, screen):
        bar.start(100)
        clock.now += 60
        bar.advance()
    assert screen.getvalue() == "paper simulations: 1 of 100, about 99 min left\n"


def test_the_time_before_the_start_does_not_count(monkeypatch, clock):
    with shown(monkeypatch, force_terminal=False) as (bar, screen):
        clock.now += 1000
        bar.start(2)
        clock.now += 40
        bar.advance()
    assert screen.getvalue() == "paper simulations: 1 of 2, about 40 s left\n"


def test_a_log_line_is_never_broken_nor_read_as_markup(monkeypatch, clock):
    with shown(monkeypatch, force_terminal=False) as (bar, screen):
        bar.start(2)
        clock.now += 40
        bar.advance("[red]" + "x" * 300)
    assert screen.getvalue().splitlines() == ["paper simulations: 1 of 2, about 40 s left  [red]" + "x" * 300]


def test_a_job_without_work_prints_nothing(monkeypatch):
    with shown(monkeypatch, force_terminal=False) as (bar, screen):
        bar.start(0)
    assert screen.getvalue() == ""


def test_a_terminal_shows_a_bar_with_counts_and_the_last_step(monkeypatch):
    with shown(monkeypatch, force_terminal=True, force_interactive=True) as (bar, screen):
        bar.start(4)
        for i in range(3):
            bar.advance(f"trial {i}")
    last = screen.getvalue().split("\r")[-1]
    assert "\x1b[" in last
    assert "paper simulations" in last
    assert "3/4" in last
    assert "trial 2" in last


def test_a_bar_without_colours_is_still_a_bar(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    with shown(monkeypatch, force_terminal=True, force_interactive=True) as (bar, screen):
        bar.start(2)
        bar.advance("trial")
    assert "1/2" in screen.getvalue()
    assert "\x1b[3" not in screen.getvalue()  # colours of the foreground
    assert "\x1b[9" not in screen.getvalue()


def test_the_end_of_a_short_job_is_not_reported(monkeypatch, clock):
    with shown(monkeypatch, force_terminal=False) as (bar, screen):
        bar.start(1)
        clock.now += 1
        bar.advance()
    assert screen.getvalue() == ""


def test_progress_goes_to_the_error_stream(capsys, clock):
    with progress("job") as bar:
        bar.start(1)
        clock.now += 3
        bar.advance()
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err == "job: done in 3 s\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_an_error_inside_the_job_comes_through(monkeypatch, terminal):
    def job() -> None:
        with shown(monkeypatch, force_terminal=terminal) as (bar, _):
            bar.start(1)
            raise ValueError("of the job")

    with pytest.raises(ValueError, match="of the job"):
        job()


@pytest.mark.parametrize(("seconds", "expected"), [(1.0, ""), (7.0, "reading [a]: done in 7 s\n")])
def test_the_end_of_a_job_without_steps_is_reported_if_it_took_long(monkeypatch, clock, seconds, expected):
    screen = io.StringIO()
    monkeypatch.setattr(_progress, "Console", lambda stderr: Console(file=screen, stderr=stderr))
    with waiting("reading [a]"):
        clock.now += seconds
    assert screen.getvalue() == expected


def test_a_terminal_shows_a_job_without_steps(monkeypatch):
    screen = io.StringIO()
    made = partial(Console, file=screen, force_terminal=True, width=80)
    monkeypatch.setattr(_progress, "Console", lambda stderr: made(stderr=stderr))
    with waiting("drawing the report"):
        pass
    assert "drawing the report" in screen.getvalue()
