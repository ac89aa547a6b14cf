"""The command line, called as a user calls it, but inside this process: starting one takes seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from shlex import split

import pytest

from sufrep.cli import main


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command left behind."""

    code: object
    out: str
    err: str


def call(command: str) -> Outcome:
    """Run ``sufrep <command>``; an exception that ``main`` lets through is let through here too."""
    out, err = StringIO(), StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(out),
        redirect_stderr(err),
        _exit_code() as code,
    ):
        patch.setattr(sys, "argv", ["sufrep", *split(command)])
        patch.setenv("COLUMNS", "200")  # else messages are broken into lines
        main()
    return Outcome(code[0] if code else 0, out.getvalue(), err.getvalue())


@contextmanager
def _exit_code() -> Iterator[list[object]]:
    codes: list[object] = []
    try:
        yield codes
    except SystemExit as error:
        codes.append(error.code)


@pytest.fixture(scope="session")
def sufrep() -> Callable[[str], Outcome]:
    """``sufrep("paper tables --store …")`` gives exit code, output and messages."""
    return call
