"""Running a comparison: the order, the results so far, the time left, and stopping."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sufrep import compare
from sufrep._compare._running import Deadline, Standing, TimeLeft
from sufrep.cli import main
from sufrep.errors import ComparisonError


class Clock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Watching:
    """Keeps what it sees, and stops after some splits."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.seen: list[Standing] = []
        self._stop_after = stop_after

    def see(self, standing: Standing) -> None:
        self.seen.append(standing)

    def stops(self) -> bool:
        return self._stop_after is not None and self.seen[-1].n_done >= self._stop_after


def watched(rows: Any, watching: Watching, **options: Any) -> Any:
    X, y = rows()
    given = {"group": "town", "methods": ["means", "fisher"], "models": "linear", "cv": 3, "n_jobs": 1}
    return compare(X, y, progress=watching, **{**given, **options})


def test_fast_methods_come_first_and_the_ranking_grows_with_them(rows):
    watching = Watching()
    found = watched(rows, watching)
    assert [standing.method for standing in watching.seen] == [
        "",
        *["drop"] * 3,
        *["fisher"] * 3,
        *["means"] * 3,
    ]
    assert [(standing.n_done, standing.n_all) for standing in watching.seen] == [(i, 9) for i in range(10)]
    assert [len(standing.ranking) for standing in watching.seen] == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    last = watching.seen[-1]
    assert last.ranking == [(item.method, item.model, item.score) for item in found.summaries]
    assert last.seconds_left == 0


def test_whoever_watches_may_stop_and_gets_what_is_done(rows):
    whole, part = watched(rows, Watching()), watched(rows, Watching(stop_after=4))
    # The fifth split had been prepared; nothing is started after that.
    assert {item.method for item in part.summaries} == {"drop"}
    assert part.notes[0] == "Not finished, and not compared: fisher, means."
    (drop,) = part.summaries
    assert drop.score == next(item.score for item in whole.summaries if item.method == "drop")
    assert part.best.method == "drop"


def test_if_no_method_is_finished_that_is_an_error(rows):
    with pytest.raises(ComparisonError, match="no time to finish any method"):
        watched(rows, Watching(stop_after=0))


def test_a_budget_ends_a_comparison(rows):
    X, y = rows()
    slow = slow_ridge()
    found = compare(X, y, group="town", methods=["means", "fisher"], models=slow, cv=2, n_jobs=1, budget=0.25)
    assert {item.method for item in found.summaries} == {"drop"}
    assert "not compared: fisher, means" in found.notes[0]


def slow_ridge() -> Any:
    from sklearn.linear_model import Ridge

    class Slow(Ridge):
        def fit(self, X: Any, y: Any) -> Any:
            time.sleep(0.1)
            return super().fit(X, y)

    return Slow()


def test_workers_read_each_split_from_a_file_and_give_the_same(rows, without_seconds):
    one, two = watched(rows, Watching()), watched(rows, Watching(), n_jobs=2)
    pd.testing.assert_frame_equal(without_seconds(one), without_seconds(two))


def test_a_deadline_follows_its_clock():
    clock = Clock()
    deadline = Deadline(60, clock)
    assert not deadline.is_over()
    clock.now += 59.9
    assert not deadline.is_over()
    clock.now += 0.1
    assert deadline.is_over()
    assert not Deadline(None, clock).is_over()


def test_the_time_left_follows_from_what_methods_took():
    left = TimeLeft({"drop": 2, "means": 2, "sufficient": 1}, n_jobs=1)
    assert left.seconds() == 0  # nothing is known yet
    left.add("drop", 1.0)
    # Another split of drop, and the others as usual: 1.4 and 15 times as long.
    assert left.seconds() == pytest.approx(1.0 + 2 * 1.4 + 15.0)
    left.add("drop", 3.0)
    assert left.seconds() == pytest.approx(2.0 * (2 * 1.4 + 15.0))
    left.add("means", 10.0)
    # What was measured counts: means takes 10 seconds; sufficient 15 usual times of 14 / 3.4 seconds.
    assert left.seconds() == pytest.approx(10.0 + 15 * 14 / 3.4)
    left.add("means", 10.0)
    left.add("sufficient", 5.0)
    assert left.seconds() == 0
    assert TimeLeft({"drop": 3}, n_jobs=2).seconds() == 0
    shared = TimeLeft({"drop": 3}, n_jobs=2)
    shared.add("drop", 4.0)
    assert shared.seconds() == pytest.approx(4.0)


@pytest.fixture
def arguments(tmp_path):
    """Arguments of a comparison in which one method is fast and the other is not."""
    rng = np.random.default_rng(0)
    town = rng.integers(0, 20, 400)
    size = rng.normal(town % 7, 1.0)
    y = size + 2.0 * (town % 2) + rng.normal(size=400)
    pd.DataFrame({"town": town, "size": size, "y": y}).to_csv(tmp_path / "table.csv", index=False)
    options = f"--target y --group town --models linear --folds 2 --html {tmp_path}/report.html"
    return f"compare {tmp_path}/table.csv {options} --methods drop sufficient".split()


class Pressing(StringIO):
    """A stream for messages at which somebody presses Ctrl-C as soon as the first method is done."""

    def write(self, text: str) -> int:
        n_written = super().write(text)
        if text.startswith("compare: drop"):
            signal.raise_signal(signal.SIGINT)
        return n_written


def test_ctrl_c_reports_what_is_done(arguments, tmp_path, monkeypatch, capsys):
    messages = Pressing()
    monkeypatch.setattr(sys, "argv", ["sufrep", *arguments, "--jobs", "1"])
    monkeypatch.setattr(sys, "stderr", messages)
    with pytest.raises(SystemExit, match=r"^0$"):
        main()
    assert "Press Ctrl-C again to stop at once." in messages.getvalue()
    assert "Note: Not finished, and not compared: sufficient." in capsys.readouterr().out
    assert (tmp_path / "report.html").exists()


def is_gone(group: int) -> bool:
    """Whether no process of a group is left after some seconds."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(os.name != "posix", reason="sends signals, as POSIX knows them")
def test_the_second_ctrl_c_stops_at_once_without_orphans(arguments, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "sufrep.cli", *arguments, "--repeats", "40", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell may let background processes ignore this signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stderr is not None
    assert any(line.startswith("compare: drop") for line in process.stderr), "it ended early"
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Press Ctrl-C again to stop at once." in err
    assert err.endswith("sufrep: stopped\n")
    assert "Traceback" not in err  # of a worker
    assert not (tmp_path / "report.html").exists()
    assert is_gone(process.pid)
