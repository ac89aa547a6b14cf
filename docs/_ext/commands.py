"""The directive `sufrep-commands`: the help of every command, as a page.

The text is that of `sufrep COMMAND --help`, read from the same objects, so that it cannot become outdated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command

from sufrep.cli import make_app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("sufrep-commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Commands(SphinxDirective):
    """A section for each command: what it does, an example, arguments and options."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        lines: list[str] = []
        for name, command in _walk("sufrep", get_command(make_app(completes=False))):
            lines += _section(name, command)
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def _walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    for sub_name, sub_command in getattr(command, "commands", {}).items():
        if hasattr(sub_command, "commands"):
            yield from _walk(f"{name} {sub_name}", sub_command)
        else:
            yield f"{name} {sub_name}", sub_command


def _section(name: str, command: Any) -> list[str]:
    """Markdown of one command."""
    text, _, example = command.help.partition("Example:")
    lines = [f"## {name}", "", text.strip(), ""]
    if example:
        lines += ["```shell", " ".join(example.split()), "```", ""]
    with command.make_context(name, [], resilient_parsing=True) as context:
        usage = " ".join(command.collect_usage_pieces(context))
    lines += ["```text", f"Usage: {name} {usage}", "```", ""]
    for parameter in command.params:
        lines += _parameter(parameter)
    return lines


def _parameter(parameter: Any) -> list[str]:
    """A definition: spellings, then the help, whether it must be given, and the default."""
    is_option = parameter.opts[0].startswith("-")
    spellings = [*parameter.opts, *parameter.secondary_opts] if is_option else [parameter.metavar]
    term = ", ".join(f"`{spelling}`" for spelling in spellings)
    default = parameter.default
    # What no option was given for is no default that a reader would type.
    if parameter.required:
        term += " (required)"
    elif isinstance(default, str | int | float) and not isinstance(default, bool):
        term += f" (default: `{default}`)"
    return [term, f": {_escaped(parameter.help or '')}", ""]


def _escaped(text: str) -> str:
    """Help is plain text apart from code in backticks: a star or an underscore is no markup."""
    parts = text.split("`")
    for position in range(0, len(parts), 2):
        for sign in "\\*_<[$":
            parts[position] = parts[position].replace(sign, f"\\{sign}")
    return "`".join(parts)
