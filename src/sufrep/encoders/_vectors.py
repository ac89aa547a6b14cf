"""What goes into and comes out of an encoder's one formula, ``_represent``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep.errors import ClashingNamesError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._arrays import Codes, Columns, Floats
    from sufrep.encoders._layout import Covariate, Layout
    from sufrep.encoders._target import Target
    from sufrep.moments import GroupMoments

# What levels that are pooled because they are rare are called.
INFREQUENT = "infrequent"


@dataclass(frozen=True, slots=True)
class Suffix:
    """End of an output column's name: a text, and the covariate that it is about, if any."""

    text: str
    covariate: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """What an encoder makes of a group.

    Parameters
    ----------
    values : ndarray or csr_array, shape (n_levels, n_columns)
    suffixes : list of Suffix
        Names of the columns.
    details : dict
        More that was learnt, by the name of the fitted attribute (a dict by group) that it goes to.
    prior : ndarray, shape (n_columns,), or None
        The vector of a level never seen; None for the mean of the level vectors.
    """

    values: Any
    suffixes: list[Suffix]
    details: dict[str, Any] = field(default_factory=dict)
    prior: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows behind the moments, for the encoders that need them.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Position of each row's level in the moments, −1 for rows to leave out.
    columns : sequence of ndarray, each of shape (n,)
        The covariates; NaN is a null.
    weights : ndarray, shape (n,), or None
    target : Target or None
        For the encoders that take it into account.
    """

    codes: Codes
    columns: Columns
    weights: Floats | None
    target: Target | None = None


def pool_rare(moments: GroupMoments, min_frequency: float | None) -> tuple[GroupMoments, Codes]:
    """Pool the levels below ``min_frequency``; also return where each level went, (n_levels,)."""
    place = pooled_places(moments.weight, min_frequency)
    rare = place == place.max()
    if rare.sum() < 2:
        return moments, place
    return moments.pool(rare, INFREQUENT), place


def pooled_places(weight: Floats, min_frequency: float | None) -> Codes:
    """Where each level goes when those below ``min_frequency`` share the last place; (n_levels,)."""
    everywhere = np.arange(len(weight))
    if min_frequency is None:
        return everywhere
    least = min_frequency if isinstance(min_frequency, Integral) else min_frequency * weight.sum()
    rare = weight < least
    if rare.sum() < 2:
        return everywhere
    return np.where(rare, (~rare).sum(), np.cumsum(~rare) - 1)


def name_columns(
    layout: Layout,
    names: Sequence[str],
    suffixes: Mapping[str, Sequence[Suffix]],
    covariates: Sequence[Covariate],
) -> dict[str, list[str]]:
    """Name the new columns of each group, given the names of the input columns."""
    described = [covariate.name(names) for covariate in covariates]
    return {
        group: [
            f"{label}_{suffix.text}" + ("" if suffix.covariate is None else described[suffix.covariate])
            for suffix in suffixes[group]
        ]
        for group, label in zip(suffixes, layout.group_names(names), strict=True)
    }


def refuse_clashes(kept: Sequence[str], new: Mapping[str, Sequence[str]]) -> None:
    """Raise an error if two columns of the output would have the same name."""
    twice = [name for name, times in Counter(chain(kept, *new.values())).items() if times > 1]
    if twice:
        raise ClashingNamesError(twice)
