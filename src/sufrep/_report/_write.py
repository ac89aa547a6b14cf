"""A page to a file, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sufrep._atomic import replace_file
from sufrep._report._render import render_page
from sufrep.errors import NotWritableError

if TYPE_CHECKING:
    import os

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
        replace_file(final, text.encode("utf-8"))
    except OSError as error:
        hint = "choose a folder that you may write, on a disk with room."
        raise NotWritableError(final, f"{error.strerror or error}.", hint) from error
    return final
