"""How sure the vectors of a fitted encoder are: standard errors, and the levels known best and worst.

Errors are computed when they are asked for, from the moments and rules that every encoder keeps, so that
neither fits nor files grow. ``docs/explanation/how-sure.md`` says what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep.errors import MagnitudeError
from sufrep.representation import dense_values
from sufrep.solvers.new_levels import DiscriminantRule, LinearRule, StatesRule
from sufrep.solvers.standard_errors import (
    IndependentErrors,
    discriminant_errors,
    means_errors,
    shares_errors,
    standard_errors,
)

if TYPE_CHECKING:
    from sufrep._arrays import Codes, Floats
    from sufrep.representation import Representation
    from sufrep.solvers.nesting import Nesting
    from sufrep.solvers.standard_errors import LevelErrors

# Levels that are named as the least and as the most certain.
_NAMED = 3


@dataclass(frozen=True, slots=True, eq=False)
class VectorErrors:
    """Errors of the vectors of one group, of one encoder or of several next to each other.

    Attributes
    ----------
    parts : list of ((int, int), LevelErrors or None, ndarray of int)
        For each encoder, the numbers of its vectors and columns, their errors (None if they have none), and
        the vector of every level by its position, (n_levels,): rare levels may share one, and −1 is a level
        that the encoder does not know.
    """

    parts: list[tuple[tuple[int, int], LevelErrors | None, Codes]]

    @property
    def known(self) -> bool:
        """Whether any column has errors."""
        return any(errors is not None for _, errors, _ in self.parts)

    def covariances(self, chosen: Codes) -> Floats:
        """Covariances of the errors of some levels, by their positions; (n_chosen, n_columns, n_columns).

        NaN where they are not known; errors of different encoders count as uncorrelated.
        """
        n_columns = sum(size for (_, size), _, _ in self.parts)
        found, start = np.zeros((len(chosen), n_columns, n_columns)), 0
        for (_, size), errors, place in self.parts:
            own = slice(start, start + size)
            found[:, own, own] = np.nan
            known = np.flatnonzero(place[chosen] >= 0)
            if errors is not None and len(known):
                found[known, own, own] = errors.covariances(place[chosen][known])
            start += size
        return found

    def standard_errors(self) -> Floats:
        """Standard errors of all entries, NaN where they are not known; (n_levels, n_columns)."""
        if not self.parts:  # the column was dropped
            return np.empty((0, 0))
        return np.hstack(
            [
                np.full((len(place), shape[1]), np.nan)
                if errors is None
                else np.vstack([standard_errors(errors, *shape), np.full(shape[1], np.nan)])[place]
                for shape, errors, place in self.parts
            ]
        )


def vector_errors(encoder: Any, group: str) -> VectorErrors:
    """Return the errors of the vectors of a group of a fitted encoder."""
    if hasattr(encoder, "encoders_"):
        levels, parts = encoder.representations_[group].levels.tolist(), []
        for component in encoder.encoders_.values():
            if group not in component.representations_:  # of another group
                continue
            # A component that has no rule for new levels does not know those that were learnt later.
            position = component.representations_[group].positions(levels)
            for shape, errors, place in vector_errors(component, group).parts:
                parts.append((shape, errors, np.append(place, -1)[position]))
        return VectorErrors(parts)
    vectors, place = encoder._pooled_vectors(group)
    try:
        errors = _errors_of(
            encoder, vectors, encoder._nesting(group, encoder.representations_[group].levels, place)
        )
    except MagnitudeError:  # the squares of these numbers are out of range
        errors = None
    return VectorErrors([(vectors.values.shape, errors, place)])


def _errors_of(encoder: Any, vectors: Any, nesting: Nesting | None) -> LevelErrors | None:
    """The errors of vectors, rare levels pooled; None if the encoder has none or kept too little."""
    if "standard_errors_" in vectors.details:
        return IndependentErrors(vectors.details["standard_errors_"])
    rule, moments = vectors.details.get("new_levels_"), vectors.moments
    if moments is None:
        return None
    if isinstance(rule, StatesRule):
        return shares_errors(vectors.details["mixtures_"], moments.weight, rule.concentration)
    if moments.order == 1:
        return None
    if isinstance(rule, LinearRule):
        n_targets = sum(covariate.position is None for covariate in encoder.covariates_)
        return means_errors(rule, moments, n_targets, nesting)
    if isinstance(rule, DiscriminantRule):
        return discriminant_errors(rule, moments)
    return None


@dataclass(frozen=True, slots=True)
class Certainty:
    """The levels of a group whose vectors are the least and the most certain.

    Each has its relative error: the standard errors of its vector, each divided by the standard deviation of
    the entry over all rows, as a root mean square. An error of 1 is as large as the differences between
    levels.

    Attributes
    ----------
    least : tuple of (level, float)
        The largest relative errors first.
    most : tuple of (level, float)
        The smallest first.
    """

    least: tuple[tuple[Any, float], ...] = ()
    most: tuple[tuple[Any, float], ...] = ()


def find_certainty(encoder: Any, group: str) -> Certainty:
    """Name the levels with the least and the most certain vectors; none if errors are equal or unknown."""
    representation, errors = encoder.representations_[group], vector_errors(encoder, group)
    if not errors.known:
        return Certainty()
    relative = relative_errors(representation, errors.standard_errors())
    known = np.flatnonzero(np.isfinite(relative))
    # In single precision: the last digits depend on the order of sums, and must not decide who is named.
    rounded = relative[known].astype(np.float32)
    if not len(known) or rounded.min() == rounded.max():
        return Certainty()
    order = known[np.argsort(rounded, kind="stable")]
    n_named = min(_NAMED, len(order) // 2)
    pairs = [(representation.levels[i], float(relative[i])) for i in order.tolist()]
    return Certainty(tuple(reversed(pairs[-n_named:])), tuple(pairs[:n_named]))


def relative_errors(representation: Representation, errors: Floats) -> Floats:
    """Root mean square of errors relative to the spread of each column, NaN if unknown; (n_levels,)."""
    values, share = dense_values(representation.values), representation.weight / representation.weight.sum()
    center = share @ values
    spread = np.sqrt(share @ (values - center) ** 2)
    # Columns that do not vary have a spread of rounding errors.
    varies = spread > 1e-12 * np.abs(values).max(axis=0, initial=0.0)
    square = (errors[:, varies] / spread[varies]) ** 2
    known = np.isfinite(square)
    total, count = np.where(known, square, 0.0).sum(axis=1), known.sum(axis=1)
    mean = np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0)
    return np.asarray(np.sqrt(mean))
