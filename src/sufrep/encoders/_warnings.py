"""Warnings about columns that were probably read, spelt or handed over in another way than was meant."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Spellings:
    """How levels are written: types and spellings of those that are not null, and the first one as code."""

    types: frozenset[str]
    spelt: frozenset[str]
    first: str


def spellings_of(levels: Sequence[Any]) -> Spellings:
    """Find out how levels are written."""
    known = [level for level in levels if level is not None]
    types = frozenset(type(level).__name__ for level in known)
    return Spellings(types, frozenset(map(_spelling, known)), _as_code(known[0]) if known else "")


def warn_of_unseen(group: str, new: list[Any], known: Spellings) -> None:
    """Warn if levels seem unseen only because they were read or spelt differently."""
    found = spellings_of(new)
    if not (found.types and known.types):
        return
    if found.types & known.types and not found.spelt & known.spelt:
        return  # levels that are simply new, as in folds that are cut by group
    here, there = (", ".join(sorted(names)) for names in (found.types, known.types))
    warn(
        f"No row of column {group!r} holds a level that fit saw: all are new. The levels here are of "
        f"type {here} ({found.first}, …), those of fit of type {there} "
        f"({known.first}, …).\nHint: read the column in the same way on both sides"
        + (
            f", as in X.astype({{{group!r}: {there}}})." if there in ("str", "int") and there != here else "."
        ),
        UnseenLevelsWarning,
    )


def _as_code(level: Any) -> str:
    """A level as one would type it: text in quotes, numbers without."""
    return repr(level) if isinstance(level, str) else level_label(level)


def _spelling(level: Any) -> str:
    """A level without case, spaces, leading zeros and trailing ".0"."""
    return level_label(level).strip().casefold().removesuffix(".0").lstrip("0")
