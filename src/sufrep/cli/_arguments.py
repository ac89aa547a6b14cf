"""Options that take several values in a row, as in ``--latent 2 10``."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class SeveralValues(TyperCommand):
    """A command without positional arguments, whose repeatable options may be followed by many values.

    ``--latent 2 10`` becomes ``--latent 2 --latent 10``, which is all that click knows.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the name of the option before each of its values, then parse as usual."""
        repeatable = {
            name for option in self.params if getattr(option, "multiple", False) for name in option.opts
        }
        return super().parse_args(ctx, repeat_names(args, repeatable))


def repeat_names(args: list[str], repeatable: set[str]) -> list[str]:
    """Put the name of a repeatable option before each value that follows it.

    >>> repeat_names(["--latent", "2", "10", "--seeds", "3"], {"--latent"})
    ['--latent', '2', '--latent', '10', '--seeds', '3']
    >>> repeat_names(["--latent=2", "10"], {"--latent"})
    ['--latent=2', '--latent', '10']
    """
    expanded: list[str] = []
    current, first = "", True
    for argument in args:
        if argument.startswith("-"):
            name, equals, _ = argument.partition("=")
            current, first = name if name in repeatable else "", not equals
        elif current and not first:
            expanded.append(current)
        else:
            first = False
        expanded.append(argument)
    return expanded
