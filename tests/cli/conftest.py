"""The command line, called as a user calls it, but inside this process, which is much faster."""

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
class CommandResult:
    """Exit code and output of a command."""

    code: object
    out: str
    err: str


def call(command: str) -> CommandResult:
    """Run ``sufrep <command>``; exceptions that ``main`` does not catch are raised here too."""
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
    return CommandResult(code[0] if code else 0, out.getvalue(), err.getvalue())


@contextmanager
def _exit_code() -> Iterator[list[object]]:
    codes: list[object] = []
    try:
        yield codes
    except SystemExit as error:
        codes.append(error.code)


@pytest.fixture(scope="session")
def sufrep() -> Callable[[str], CommandResult]:
    """``sufrep("paper tables --store …")`` returns exit code, output and messages."""
    return call
