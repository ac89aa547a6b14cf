"""What commands say beside their results, on the error stream, and what they call wrong usage."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sufrep._files import TableSource


def tell(message: str) -> None:
    """Say something that is no result."""
    typer.echo(f"sufrep: {message}", err=True)


def tell_notes(source: TableSource) -> None:
    """Say how a table was read, where that is not plain."""
    for note in source.notes:
        tell(f"{source.where}: {note}")


@contextmanager
def warnings_told() -> Iterator[None]:
    """Say what Python would warn of, each thing once, without the line of code that it comes from."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        tell(f"warning: {message}")


def wrong_usage(message: str, option: str) -> typer.BadParameter:
    """An error with exit code 2 that names the option."""
    return typer.BadParameter(message, param_hint=option)
