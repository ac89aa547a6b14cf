"""Links from pages to files of the repository that are no pages, such as SECURITY.md, offer these files.

On a code host the same links open them. (MyST does this for all files but those that look like pages.)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx.addnodes import download_reference, pending_xref

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at every page once it is read."""
    app.connect("doctree-read", _offer_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _offer_files(app: Sphinx, doctree: nodes.document) -> None:
    page = app.env.current_document.docname
    for link in list(doctree.findall(pending_xref)):
        if link.get("refdomain") != "doc" or link["reftarget"] in app.env.found_docs:
            continue
        file = Path(app.srcdir, link["reftarget"] + ".md").resolve()
        if file.is_file():
            name = app.env.dlfiles.add_file(page, str(file))
            offered = download_reference("", *link.children, reftarget=str(file), filename=name)
            link.replace_self(offered)
