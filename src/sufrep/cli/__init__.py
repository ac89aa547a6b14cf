"""The command ``sufrep``: parse, call, print, exit code. Heavy imports are inside the commands."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from contextlib import suppress
from functools import cache
from io import StringIO
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NoReturn

from sufrep.errors import SufrepError, shown

if TYPE_CHECKING:
    import typer

# Exit codes: 0 success, 1 an error that a message explains, 2 wrong usage (an option or its value; click's),
# 3 a limit that an option sets is exceeded, 130 stopped by Ctrl-C.
EXIT_FAILED = 1
EXIT_EXCEEDED = 3
EXIT_STOPPED = 130


def main() -> None:
    """Run the command line; every error becomes a message and an exit code, and no traceback.

    With ``--debug`` the traceback is printed before the message.
    """
    for stream in (sys.stdout, sys.stderr):
        # A character that the encoding of the terminal lacks is no reason to lose the rest.
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        # Inside a command typer turns Ctrl-C into the code 130, without a message.
        code = _command(_completes())(standalone_mode=False) or 0
    except SystemExit:  # nobody reads the output any more, or the shell asked for completions
        raise
    except KeyboardInterrupt:
        code = EXIT_STOPPED
    except BaseException as error:  # a panic of polars is not an Exception
        # The base class of errors of usage has no public name in typer.
        if hasattr(error, "format_message"):
            _end(_usage(error), getattr(error, "exit_code", EXIT_FAILED))
        # Global options come before the command; errors may also occur before they are parsed.
        if "--debug" in takewhile(lambda given: given.startswith("-"), sys.argv[1:]):
            print(shown(traceback.format_exc()), file=sys.stderr, end="")
        _end(_explanation(error), EXIT_FAILED)
    if code == EXIT_STOPPED:
        _end("sufrep: stopped", EXIT_STOPPED)
    sys.exit(code)


def _end(text: str, code: int) -> NoReturn:
    if text:
        print(shown(text), file=sys.stderr)
    sys.exit(code)


def _usage(error: Any) -> str:
    """The message about wrong usage, in plain text: loading rich for a frame would take most of the time.

    It is empty if help was printed instead.
    """
    text = StringIO()
    error.show(text)
    return text.getvalue().strip()


def _explanation(error: BaseException) -> str:
    """The message of an error: what happened, and what to do."""
    if isinstance(error, SufrepError):
        return f"sufrep: {error}"
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if package in ("typer", "rich", "click", "polars"):
        return (
            f"The command line needs the package {package!r}, which is not installed.\n"
            'Hint: pip install "sufrep[cli]"'
        )
    if isinstance(error, MemoryError):
        return (
            "sufrep: There is not enough memory for this table.\n"
            "Hint: use fewer columns (--drop) or rows, or `sufrep compare --sample 100000`."
        )
    if isinstance(error, OSError) and error.strerror and error.filename is None:
        # Without a file it is a stream, such as results that go to a full disk. That is not a bug.
        return f"sufrep: Cannot write the results: {error.strerror}.\nHint: check where the output goes."
    lines = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    command = shlex.join(["sufrep", "--debug", *(given for given in sys.argv[1:] if given != "--debug")])
    return (
        f"sufrep: Unexpected error, {what}\n"
        f"Hint: this is probably a bug; please report it with the output of: {command}"
    )


def _completes() -> bool:
    """Whether completion by the shell may be asked for: by the shell, or by an option in place of a command.

    With typer's options for it, every call would load pydantic, which takes longer than all the rest of a
    usage error (test_help_and_most_wrong_usage_load_no_pydantic).
    """
    asked = any(name.endswith("_COMPLETE") for name in os.environ)
    return asked or not sys.argv[1:] or sys.argv[1].startswith("-")


@cache
def _command(completes: bool) -> Any:
    from typer.main import get_command

    return get_command(make_app(completes))


def make_app(completes: bool = True) -> typer.Typer:
    """The tree of commands, with or without the options for completion by the shell."""
    import typer

    from sufrep.cli import _apply, _compare, _describe, _drift, _effect, _encode, _moments, _paper
    from sufrep.cli._arguments import Command, Commands, global_options

    app = typer.Typer(
        name="sufrep",
        no_args_is_help=True,
        add_completion=completes,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        cls=Commands,
    )
    app.callback()(global_options)
    app.command(cls=Command)(_compare.compare)
    app.command(cls=Command)(_effect.effect)
    app.command(cls=Command)(_encode.encode)
    app.command(cls=Command)(_apply.apply)
    app.command(cls=Command)(_drift.drift)
    app.command(cls=Command)(_describe.describe)
    app.command(cls=Command)(_moments.moments)
    app.command(cls=Command)(_moments.merge)
    app.command(cls=Command)(_compare.demo)
    app.add_typer(_paper.app, name="paper")
    return app
