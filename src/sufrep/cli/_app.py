"""The tree of commands."""

from __future__ import annotations

import typer

from sufrep.cli import _apply, _compare, _describe, _encode, _paper
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
app.command(cls=SeveralValues)(_apply.apply)
app.command()(_describe.describe)
app.command()(_compare.demo)
app.add_typer(_paper.app, name="paper")
