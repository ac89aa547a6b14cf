"""How far a comparison is: nobody is told, the error stream, or the user's function."""

from __future__ import annotations

import pytest

from sufrep._compare._progress import teller


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only when told."""
    now = [1000.0]
    monkeypatch.setitem(teller.__wrapped__.__globals__, "monotonic", lambda: now[0])
    return now


def test_a_line_is_written_every_two_seconds_and_at_the_end(clock, capsys):
    with teller(True) as tell:
        for done in range(7):
            tell(done, 6, "means" if done else "")
            clock[0] += 0.8
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.splitlines() == [
        "[compare] 3 of 6 (2 s)  means",
        "[compare] 6 of 6 (5 s)  means",
    ]


def test_without_progress_nobody_is_told():
    with teller(False) as tell:
        assert tell is None


def test_a_function_of_the_user_s_is_told_itself():
    told = []
    with teller(lambda *news: told.append(news)) as tell:
        tell(1, 2, "means")
    assert told == [(1, 2, "means")]
