"""Formulas as MathML, which browsers draw themselves: no script, no font, no request.

The translation is that of docutils. MyST and reStructuredText hand over the same nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.utils.math import latex2mathml

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer, which `html_math_renderer` names."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(latex2mathml.tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    # The wrapper scrolls where a formula is wider than a phone.
    formula = latex2mathml.tex2mathml(node.astext(), as_block=True)
    translator.body.append(translator.starttag(node, "div", CLASS="formula") + formula + "</div>\n")
    raise nodes.SkipNode
