"""A page to a file, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING

from sufrep._report._render import render_page
from sufrep.errors import NotWritableError

if TYPE_CHECKING:
    from sufrep._report._parts import Page


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write a page under a temporary name beside its place, and then rename it.

    Parameters
    ----------
    page : Page
    path : path-like
        Its folder must be there; what stood at the path is replaced.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    NotWritableError
        If the folder is missing or cannot be written, or the path is a folder.
    """
    final = Path(path)
    if not final.parent.is_dir():
        raise NotWritableError(final, f"the folder {str(final.parent)!r} does not exist.", "create it first.")
    if final.is_dir():
        raise NotWritableError(final, "it is a folder.", "name a file in it, such as report.html.")
    text = render_page(page)
    try:
        _replace(final, text.encode("utf-8"))
    except OSError as error:
        hint = "choose a folder that you may write, on a disk with room."
        raise NotWritableError(final, f"{error.strerror or error}.", hint) from error
    return final


def _replace(final: Path, content: bytes) -> None:
    descriptor, name = mkstemp(dir=final.parent, prefix=f".{final.name[:40]}.", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp lets nobody else read, but a report is to be shared.
        part.chmod(0o644)
        part.replace(final)
    finally:
        part.unlink(missing_ok=True)
