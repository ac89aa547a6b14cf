"""Public names in the prose and in docstrings, such as `MeansEncoder`, link to their pages of the reference.

Pages are plain Markdown, which reads well on a code host. The first mention of a name in a section is a link.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.addnodes import pending_xref

import sufrep
from sufrep import datasets, errors

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_FULL_NAMES = {
    **{name: f"sufrep.{name}" for name in sufrep.__all__},
    **{f"sufrep.{name}": f"sufrep.{name}" for name in sufrep.__all__},
    **{name: f"sufrep.datasets.{name}" for name in datasets.__all__},
    **{f"sufrep.datasets.{name}": f"sufrep.datasets.{name}" for name in datasets.__all__},
}
_ERRORS = {name: f"sufrep.errors.{name}" for name, _ in inspect.getmembers(errors, inspect.isclass)}
# Common words: `load` and `save` are also methods of other objects.
_AMBIGUOUS = {"compare", "load", "save", "Dataset", "Representation"}


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at every page once it is read."""
    app.connect("doctree-read", _link)
    app.connect("missing-reference", _resolve)
    # After numpydoc, which has the default priority.
    app.connect("autodoc-process-docstring", _escape_shapes, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _link(app: Sphinx, doctree: nodes.document) -> None:
    page = app.env.current_document.docname
    if page.startswith("reference/generated/"):
        return
    linked = set()
    for literal in list(doctree.findall(nodes.literal)):
        text = literal.astext().removesuffix("()")
        target = None if text in _AMBIGUOUS else _FULL_NAMES.get(text)
        section = _enclosing(literal, nodes.section)
        inside = _enclosing(literal, nodes.reference, nodes.title, pending_xref)
        if target is None or inside is not None or (id(section), target) in linked:
            continue
        linked.add((id(section), target))
        reference = pending_xref(
            "", refdomain="py", reftype="obj", reftarget=target, refdoc=page, refexplicit=True, refwarn=True
        )
        literal.replace_self(reference)
        reference += literal


def _enclosing(node: nodes.Node, *kinds: type[nodes.Node]) -> nodes.Node | None:
    parent = node.parent
    while parent is not None and not isinstance(parent, kinds):
        parent = parent.parent
    return parent


def _resolve(app: Sphinx, env: Any, node: pending_xref, content: nodes.Node) -> nodes.Node | None:
    """Find a public name that a docstring of another module gives without its module."""
    full_name = {**_ERRORS, **_FULL_NAMES}.get(node["reftarget"])
    if node["refdomain"] != "py" or full_name in (None, node["reftarget"]):
        return None
    return env.domains.python_domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", full_name, node, content
    )


def _escape_shapes(*arguments: Any) -> None:
    """Shapes such as (n_features_in_,) stand outside code, where a last underscore would make a link."""
    lines: list[str] = arguments[-1]
    for position, line in enumerate(lines):
        if "shape (" in line:
            lines[position] = re.sub(r"(?<=\w)_(?=[,)])", r"\\_", line)
