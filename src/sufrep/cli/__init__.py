"""The command ``sufrep``: parse, call, print, exit code. Heavy imports are inside the commands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sufrep.errors import SufrepError

if TYPE_CHECKING:
    import typer

# Exit codes: 0 success, 1 an error that a message explains, 2 wrong usage (an option or its value; click's),
# 130 stopped by Ctrl-C.
EXIT_FAILED = 1
EXIT_STOPPED = 130


def main() -> None:
    """Run the command line; an error of ours becomes a message and an exit code, never a traceback."""
    try:
        make_app()()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("typer", "rich", "click", "polars"):
            raise
        print(
            f"The command line needs the package {package!r}, which is not installed.\n"
            'Hint: pip install "sufrep[cli]"',
            file=sys.stderr,
        )
        sys.exit(EXIT_FAILED)
    except SufrepError as error:
        print(f"sufrep: {error}", file=sys.stderr)
        sys.exit(EXIT_FAILED)
    except (KeyboardInterrupt, SystemExit) as error:
        # Inside a command typer turns Ctrl-C into this code, without a message.
        if isinstance(error, SystemExit) and error.code != EXIT_STOPPED:
            raise
        print("sufrep: stopped", file=sys.stderr)
        sys.exit(EXIT_STOPPED)


def make_app() -> typer.Typer:
    """The tree of commands."""
    import typer

    from sufrep.cli import _compare, _describe, _encode, _paper
    from sufrep.cli._arguments import SeveralValues

    app = typer.Typer(
        name="sufrep",
        help="Short, sufficient vectors for columns with many categories.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
    )
    app.command(cls=SeveralValues)(_compare.compare)
    app.command(cls=SeveralValues)(_encode.encode)
    app.command(cls=SeveralValues)(_encode.apply)
    app.command()(_describe.describe)
    app.command()(_compare.demo)
    app.add_typer(_paper.app, name="paper")
    return app
