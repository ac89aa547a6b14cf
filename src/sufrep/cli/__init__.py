"""The command ``sufrep``: parse, call, print, exit code. Heavy imports stand inside the commands."""

from __future__ import annotations

import sys

from sufrep.errors import SufrepError

# Exit codes: 0 done, 1 an error that a message explains, 2 wrong usage (click's), 130 stopped by Ctrl-C.
FAILED = 1
STOPPED = 130


def main() -> None:
    """Run the command line; an error of ours becomes a message and an exit code, never a traceback."""
    try:
        from sufrep.cli._app import app

        app()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("typer", "rich", "click"):
            raise
        print(
            f"The command line needs the package {package!r}, which is not installed.\n"
            'Hint: pip install "sufrep[cli]"',
            file=sys.stderr,
        )
        sys.exit(FAILED)
    except SufrepError as error:
        print(f"sufrep: {error}", file=sys.stderr)
        sys.exit(FAILED)
    except (KeyboardInterrupt, SystemExit) as error:
        # Inside a command typer makes this code of Ctrl-C, and says nothing.
        if isinstance(error, SystemExit) and error.code != STOPPED:
            raise
        print("sufrep: stopped", file=sys.stderr)
        sys.exit(STOPPED)
