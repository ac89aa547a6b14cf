"""Progress as lines: every few seconds, with the time that is left, and one at the end."""

from __future__ import annotations

import pytest

from sufrep import _progress
from sufrep._progress import LOG_PERIOD, Lines, make_report


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """Time that passes only when the test changes it."""
    now = [1000.0]
    monkeypatch.setattr(_progress, "monotonic", lambda: now[0])
    return now


def test_a_line_is_printed_every_two_seconds_and_at_the_end(clock, capsys):
    report = make_report(True, "compare")
    assert report is not None
    for done in range(7):
        report(done, 6, "means" if done else "")
        clock[0] += 0.8
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == ["compare: 3 of 6, about 2 s left  means", "compare: done in 5 s"]


def test_progress_is_optional_or_goes_to_a_function_of_the_user():
    assert make_report(False, "compare") is None
    assert make_report(print, "compare") is print


def test_long_times_are_in_minutes(clock, capsys):
    report = Lines("job", LOG_PERIOD)
    report(0, 100, "")
    clock[0] += 60
    report(1, 100, "")
    assert capsys.readouterr().err == "job: 1 of 100, about 99 min left\n"


def test_the_time_before_the_start_does_not_count(clock, capsys):
    report = Lines("job")
    clock[0] += 1000
    report(0, 2, "")
    clock[0] += 40
    report(1, 2, "")
    assert capsys.readouterr().err == "job: 1 of 2, about 40 s left\n"


def test_a_line_is_never_broken(clock, capsys):
    report = Lines("job")
    clock[0] += 40
    report(1, 2, "[red]" + "x" * 300)
    assert capsys.readouterr().err.splitlines() == ["job: 1 of 2, about 40 s left  [red]" + "x" * 300]


def test_a_job_without_work_and_the_end_of_a_short_one_print_nothing(clock, capsys):
    Lines("job")(0, 0, "")
    report = Lines("job")
    clock[0] += 1
    report(1, 1, "")
    assert capsys.readouterr().err == ""
