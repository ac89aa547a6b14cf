"""Options that take several values in a row, as in ``--latent 2 10``."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand


class SeveralValues(TyperCommand):
    """A command whose repeatable options may be followed by many values.

    ``--latent 2 10`` becomes ``--latent 2 --latent 10``, which is all that click knows. Positional arguments
    stand before such options, or behind options of one value; ``--`` ends a row of values too.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the name of the option before each of its values, then parse as usual."""
        repeatable = {
            name for option in self.params if getattr(option, "multiple", False) for name in option.opts
        }
        expanded = repeat_names(args, repeatable)
        may_have_swallowed = not repeatable.isdisjoint(expanded)
        try:
            return super().parse_args(ctx, expanded)
        except typer.BadParameter as error:
            is_argument = getattr(error.param, "param_type_name", "") == "argument"
            if is_argument and not error.message and may_have_swallowed:
                error.message = "It stands before options that take several values."
            raise


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
