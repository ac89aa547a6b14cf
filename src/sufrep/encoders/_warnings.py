"""Warnings about columns that were probably read, spelt or handed over in another way than was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sufrep.errors import (
    WHOLE_FRAME,
    NoCovariateWarning,
    TextColumnWarning,
    UnseenLevelsWarning,
    groups_alone,
    listed,
    warn,
)
from sufrep.representation import level_label

if TYPE_CHECKING:
    from collections.abc import Sequence

# Names in a warning.
_MOST_NAMES = 5


def warn_of_groups_alone(encoder: str, n_features: int, groups: Sequence[str]) -> None:
    """Warn that an encoder which can do without covariates has none."""
    warn(
        f"{groups_alone(n_features, groups)}. {encoder} works without covariates, but learns more with "
        "them.\n"
        f"Hint: {WHOLE_FRAME}; covariates=[] confirms that there are none.",
        NoCovariateWarning,
    )


def warn_of_text(encoder: str, columns: Sequence[str], groups: Sequence[str]) -> None:
    """Warn that text columns pass through."""
    keep = repr(groups[0] if len(groups) == 1 else list(groups))
    warn(
        f"Text passes through {encoder} as it is: {listed(columns, _MOST_NAMES)}. Most scikit-learn learners "
        "take numbers only.\n"
        f"Hint: put ToNumbers(keep={keep}) before the encoder, name the columns as groups, or set "
        "remainder='drop'.",
        TextColumnWarning,
    )


def warn_of_unseen(group: str, new: list[Any], known: list[Any]) -> None:
    """Warn if levels seem unseen only because they were read or spelt differently."""
    new, known = ([level for level in levels if level is not None] for levels in (new, known))
    if not (new and known):
        return
    types = [{type(level).__name__ for level in levels} for levels in (new, known)]
    spelt = [{_spelling(level) for level in levels} for levels in (new, known)]
    if types[0] & types[1] and not spelt[0] & spelt[1]:
        return  # levels that are simply new, as in folds that are cut by group
    here, there = (", ".join(sorted(found)) for found in types)
    warn(
        f"No row of column {group!r} holds a level that fit saw: all are new. The levels here are of "
        f"type {here} ({level_label(new[0])!r}, …), those of fit of type {there} "
        f"({level_label(known[0])!r}, …).\nHint: read the column in the same way on both sides.",
        UnseenLevelsWarning,
    )


def _spelling(level: Any) -> str:
    """A level without case, spaces, leading zeros and trailing ".0"."""
    return level_label(level).strip().casefold().removesuffix(".0").lstrip("0")
