"""Cross-fitting: in training, a row's columns are learnt without its own target.

``fit`` learns from all rows, for new ones. ``fit_transform`` gives every row what was learnt outside its
fold: given the folds, the target of a row does not change its own columns. It therefore differs from ``fit(X,
y).transform(X)``, where a row's columns contain its own target.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from sufrep._accumulate import weighted_mean
from sufrep._frames import Factor, Lookup, taken
from sufrep.encoders._inputs import GroupSample
from sufrep.representation import level_positions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sufrep._arrays import Array, Codes
    from sufrep.encoders._base import GroupEncoder, Vectors
    from sufrep.encoders._inputs import Inputs, Rows
    from sufrep.moments import GroupMoments


def cross_fit(
    encoder: GroupEncoder,
    inputs: Inputs,
    columns: Sequence[Array],
    rows: Rows,
    whole: Vectors,
    folds: Sequence[tuple[Codes, Codes]],
) -> Lookup:
    """Return the columns of training rows, where they depend on the target as learnt outside each row's fold.

    Parameters
    ----------
    encoder : GroupEncoder
        Fitted to these rows.
    inputs : Inputs
    columns : sequence of ndarray, each of shape (n,)
        What moments are made of.
    rows : Rows
        The rows of one group.
    whole : Vectors
        What was learnt from all of them.
    folds : sequence of (train, test)
        A single row has no fold; nothing is left to learn from.
    """
    folds = folds or [(np.empty(0, dtype=np.intp), np.arange(len(rows.codes)))]
    by_rows = encoder._needs.rows
    samples = (
        _row_samples(rows, whole, folds, quick=inputs.quick_folds)
        if by_rows
        else _moment_samples(inputs, columns, rows, whole, folds)
    )
    parts, first = [], 0
    for (_, test), sample in zip(folds, samples, strict=True):
        found = encoder._represent_fold(sample, whole)
        if not (by_rows or sample.is_empty):
            found = with_all_levels(found, sample.moments, whole)
        parts.append(taken(encoder._encode_rows(found, rows.take(test))))
        first = found.first_cross_fitted
    if first:  # the columns before these are those of new rows
        values = np.array(taken(encoder._encode_rows(whole, rows)))
    else:
        values = np.empty((len(rows.codes), parts[0].shape[1]))
    for (_, test), part in zip(folds, parts, strict=True):
        values[test, first:] = part[:, first:]
    return Lookup(values)


def _row_samples(
    rows: Rows, whole: Vectors, folds: Sequence[tuple[Codes, Codes]], *, quick: bool
) -> Iterator[GroupSample]:
    """The rows outside each fold that have a level and a positive weight."""
    counted = np.zeros(len(rows.codes), dtype=bool)
    counted[rows.counted()] = True
    for train, _ in folds:
        yield GroupSample(None, rows.take(np.asarray(train)[counted[train]]), whole.nesting, quick)


def _moment_samples(
    inputs: Inputs, columns: Sequence[Array], rows: Rows, whole: Vectors, folds: Sequence[tuple[Codes, Codes]]
) -> Iterator[GroupSample]:
    """The moments of the training rows of each fold: those of the other folds, or of earlier ones, added up.

    Each fold is collected once. Subtracting a fold from the whole would leave rounding errors that depend on
    the targets of the fold.
    """
    known: GroupMoments = whole.known_moments()

    def collect(some: Codes) -> GroupMoments:
        return inputs.table.moments(
            Factor(rows.codes[some], known.levels),
            [np.asarray(column)[some] for column in columns],
            names=known.covariates,
            weights=None if inputs.weights is None else inputs.weights[some],
            order=known.order,
        )

    before, after = _sums_around([collect(np.asarray(test)) for _, test in folds])
    earlier = np.zeros(len(rows.codes), dtype=bool)
    for (train, test), left, right in zip(folds, before, after, strict=True):
        # A splitter may leave out more than the fold itself, or give rows several times.
        unique = len(train) > 0 and int(np.bincount(train).max()) == 1
        found = None
        if unique and len(train) + len(test) == len(earlier):
            found = right if left is None else left if right is None else left + right
        elif unique and len(train) == earlier.sum() and earlier[train].all():
            found = left  # blocks in time; later ones must not leave rounding errors either
        earlier[test] = True
        moments = collect(np.asarray(train)) if found is None else found
        nesting = whole.nesting
        if nesting is not None:
            nesting = nesting.take(positions_of_levels(moments, known))
        yield GroupSample(moments, None, nesting)


def sums_of_others(parts: Sequence[GroupMoments]) -> list[GroupMoments]:
    """For each of at least two folds, the sum of the others."""
    both = zip(*_sums_around(parts), strict=True)
    return [left + right if left and right else left or right for left, right in both]  # type: ignore[misc]


def _sums_around(
    parts: Sequence[GroupMoments],
) -> tuple[list[GroupMoments | None], list[GroupMoments | None]]:
    """For each fold, the sum of those before it and of those after it, None where there is none."""
    before = [None, *accumulate(parts[:-1], add)]
    after = [*list(accumulate(parts[:0:-1], add))[::-1], None]
    return before, after


def with_all_levels(vectors: Vectors, moments: GroupMoments, whole: Vectors) -> Vectors:
    """Extend the vectors of the levels that a fold has to all levels.

    The others get the vector of their nearest ancestor in the fold, or the prior.
    """
    known = whole.known_moments()
    prior = vectors.prior
    if prior is None:
        prior = weighted_mean(vectors.values, moments.weight)
    values = np.tile(prior, (known.n_levels, 1))
    own = positions_of_levels(moments, known)
    absent = np.setdiff1d(np.arange(known.n_levels), own)
    if whole.nesting is not None and len(absent):
        starts, found = vectors.details["new_levels_"].starts(whole.nesting.paths(absent))
        values[absent[found]] = starts[found]
    values[own] = vectors.values
    return replace(vectors, values=values, prior=prior)


def positions_of_levels(moments: GroupMoments, known: GroupMoments) -> Codes:
    """Positions of the levels of some moments among all levels."""
    position = level_positions(known.levels)
    return np.array([position[level] for level in moments.levels.tolist()], dtype=np.intp)
