"""The tree of commands."""

from __future__ import annotations

import typer

from sufrep.cli import _paper

app = typer.Typer(
    name="sufrep",
    help="Short, sufficient vectors for columns with many categories.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(_paper.app, name="paper")


@app.callback()
def _root() -> None:
    """Keep ``paper`` a command of its own, also while it is the only one."""
