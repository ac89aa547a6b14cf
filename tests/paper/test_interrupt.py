"""Ctrl-C inside a trial waits for its end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from threading import Thread

import pytest

from sufrep._paper.run import _undisturbed


@pytest.fixture(autouse=True)
def _usual_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def trial(steps: list[str], n_presses: int) -> None:
    with _undisturbed():
        for i in range(n_presses):
            steps.append(f"press {i}")
            signal.raise_signal(signal.SIGINT)
        steps.append("end")


def test_a_trial_ends_before_ctrl_c_is_heard():
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        trial(steps, n_presses=1)
    assert steps == ["press 0", "end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_pressed_twice_it_is_heard_at_once():
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        trial(steps, n_presses=2)
    assert steps == ["press 0", "press 1"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_undisturbed_trial_leaves_the_handler_as_it_was():
    trial([], n_presses=0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_run_that_ignores_ctrl_c_goes_on_ignoring_it():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    steps: list[str] = []
    trial(steps, n_presses=1)
    assert steps == ["press 0", "end"]
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_thread_which_cannot_choose_runs_as_well():
    steps: list[str] = []
    thread = Thread(target=trial, args=(steps, 0))
    thread.start()
    thread.join()
    assert steps == ["end"]
