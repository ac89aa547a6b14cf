"""Lazy frames: what is read of them, and what their rows get.

The moments of a lazy frame come home like those of any table (`LazyTable.moments`), and the tables of levels
are learnt from them as always. What differs stands here: target and weights are columns, and rows get their
vectors by a join with the table of levels (`LevelLookup`) instead of by positions.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from sufrep._frames import LazyTable, LevelLookup, sample_table
from sufrep.encoders._cross_fitting import positions_of_levels, sums_of_others, with_all_levels
from sufrep.encoders._inputs import Covariate, GroupSample, indicator_order, position_of
from sufrep.encoders._nesting import new_lazy_paths
from sufrep.encoders._new_levels import estimate_lazily, known_columns, rows_needed
from sufrep.encoders._target import (
    MOST_CLASSES,
    Target,
    check_classes,
    class_label,
    fold_problem,
    kind_of,
    warn_of_integer_classes,
)
from sufrep.encoders._times import follows_time
from sufrep.errors import (
    FoldColumnError,
    LazyOutputError,
    LazyTrainingError,
    NoRowsError,
    RowsNeededError,
    SampleWeightError,
    TargetError,
    UnseenLevelError,
    UnseenLevelsWarning,
    warn,
)
from sufrep.representation import dense_values, level_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Codes, Floats, Levels
    from sufrep._frames import Key
    from sufrep.encoders._base import GroupEncoder
    from sufrep.encoders._inputs import Inputs
    from sufrep.moments import GroupMoments

# Unseen levels that an error counts.
_MOST_SHOWN = 1_000


def sample_rows(encoder: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """A sample of the rows of a lazy frame as a frame in memory, for an encoder that needs rows."""
    parameters = vars(encoder)
    if parameters.get("sample_rows") is None:
        other = " or choose solver='lda', which needs none," if "solver" in parameters else ""
        raise RowsNeededError(
            f"{type(encoder).__name__} needs rows, and {{frame}}.",
            f"set sample_rows=100_000, for instance,{other} or {{collect}} first.",
        )
    whole = LazyTable.from_native(X)
    roles = [given for given in (y, sample_weight) if isinstance(given, str)]
    table = whole.without(roles)
    layout = encoder._layout_of(table)
    groups = [table.group(columns, encoder.missing) for columns in layout.groups]
    by = parameters["sample_by"]
    columns = whole.names if by is None else [whole.names[position_of(whole.names, by, "sample_by")]]
    sample = sample_table(whole, groups, parameters["sample_rows"], columns)
    if sample is None:
        raise NoRowsError(len(whole.names))
    return sample


def fit_and_append(encoder: GroupEncoder, X: Any, y: str | None, fold: str | None) -> Any:
    """Fit an encoder to a lazy frame, and return all its columns, as they are, followed by the new ones.

    Unlike ``fit_transform`` this keeps the group columns, the target and the folds.
    """
    if encoder._needs.rows:
        encoder.fit(X, y)
        # The sample has rows of every level, so there are no new ones to be estimated.
        known = copy(encoder).set_params(unseen="prior")
        return append_columns(known, X, X)
    inputs = encoder._read(X, y, None, fold=fold)
    encoder._learn(inputs)
    return _append(X, lazy_lookups(encoder, inputs, training=True))


def append_columns(encoder: GroupEncoder, known: Any, whole: Any) -> Any:
    """All columns of a lazy frame, as they are, followed by the new ones of a fitted encoder.

    Parameters
    ----------
    encoder : GroupEncoder
    known : lazy frame
        The columns that ``fit`` saw.
    whole : lazy frame
        The same rows with further columns.
    """
    return _append(whole, lazy_lookups(encoder, encoder._read_new(known), training=False))


def _append(X: Any, lookups: list[LevelLookup]) -> Any:
    whole = LazyTable.from_native(X)
    return whole.encode(range(len(whole.names)), lookups, "default")


def mark_known(encoder: GroupEncoder, X: Any, names: Sequence[str]) -> Any:
    """A lazy frame of the group columns and, for each group, 1 where the encoder knows the level, else 0.

    Parameters
    ----------
    encoder : GroupEncoder
    X : lazy frame
        The columns that ``fit`` saw.
    names : sequence of str
        Names of the new columns.
    """
    inputs = encoder._read_new(X)
    lookups = [
        LevelLookup(factor, known.levels, np.ones((known.n_levels, 1)), np.zeros(1), (name,))
        for factor, known, name in zip(inputs.factors, encoder.representations_.values(), names, strict=True)
    ]
    groups = sorted({column for columns in inputs.layout.groups for column in columns})
    return inputs.table.encode(groups, lookups, "default")


def read_lazy_weights(table: LazyTable, weight: Key | None) -> Any:
    """The column of weights; its values are checked with the moments."""
    if weight is None:
        return None
    if weight.kind not in ("integer", "float", "boolean"):
        raise SampleWeightError(f"is the column {weight.name!r}, which holds {weight.kind} values")
    return table.as_number(weight)


def read_lazy_target(table: LazyTable, target: Key | None, target_type: str) -> Target:
    """The column of the target: one covariate, or an indicator for each class."""
    if target is None:
        raise TargetError(
            "This encoder requires the target, but y is None.", "name its column, as in fit(X, 'price')."
        )
    if target.kind in ("date", "datetime"):
        raise TargetError(f"y holds {target.kind} values.", "convert times to numbers, for instance to days.")
    is_number = target.kind in ("integer", "float")
    kind, classes = target_type, []
    if kind == "auto":
        # More distinct numbers than this are no classes.
        classes = table.distinct(target, MOST_CLASSES + 2 if is_number else None)
        kind = kind_of(np.array([value for value in classes if value is not None]))
        if is_number and kind == "multiclass":
            warn_of_integer_classes(len(classes))
    elif kind != "continuous":
        classes = table.distinct(target)
    if kind == "continuous":
        if not (is_number or target.kind == "boolean"):
            raise TargetError(
                f"y holds {target.kind} values, but target_type is 'continuous'.",
                "pass numbers, or target_type='auto'.",
            )
        _refuse_unknown(table.count_unusable(target))
        number: Any = table.as_number(target)
        return Target(kind, [Covariate(None)], [number], np.empty(0))
    _refuse_unknown(int(None in classes))
    check_classes(kind, len(classes))
    found = {Covariate(None, class_label(value)): value for value in classes}
    order = sorted(found, key=indicator_order)
    columns: list[Any] = [table.indicator(target, found[covariate]) for covariate in order]
    return Target(kind, order, columns, np.empty(0))


def _refuse_unknown(n_unknown: int) -> None:
    if n_unknown:
        raise TargetError(
            f"Input y contains null, NaN or infinity in {n_unknown} row(s).",
            "drop the rows whose target is unknown.",
        )


def lazy_lookups(encoder: GroupEncoder, inputs: Inputs, *, training: bool) -> list[LevelLookup]:
    """The tables that are joined to the rows of a lazy frame, one for each group."""
    refuse_row_columns(encoder, training=training)
    lookups = []
    for number, (group, representation) in enumerate(encoder.representations_.items()):
        if sparse.issparse(representation.values):
            raise LazyOutputError.of_sparse()
        if training and encoder._needs.uses_target:
            lookup = _cross_fitted(encoder, inputs, number)
        else:
            lookup = LevelLookup(
                inputs.factors[number],
                representation.levels,
                dense_values(representation.values),
                representation.prior,
            )
        if not training:
            lookup = _with_new_levels(encoder, inputs, number, group, lookup)
        own = encoder._outputs_of(number)
        names = tuple(column.name(encoder.layout_.names) for column in own)
        lookups.append(replace(lookup, names=names))
    return lookups


def refuse_row_columns(encoder: GroupEncoder, *, training: bool) -> None:
    """Refuse columns that each row needs for itself."""
    kind = type(encoder).__name__
    if encoder._needs.own_covariates:
        raise RowsNeededError(
            f"The columns of {kind} depend on the covariates of each row, and {{frame}}.",
            "{collect}, or call transform for batches of its rows.",
        )
    if training and vars(encoder).get("leave_one_out"):
        raise LazyTrainingError(
            "leave_one_out=True gives every training row a mean of its own, and {frame}.",
            "leave it out and set shrinkage='auto', or {collect} first.",
        )
    given = vars(encoder)
    if training and encoder._needs.uses_target and follows_time(given.get("cv")):
        raise LazyTrainingError(
            f"cv={given['cv']!r} lets rows learn from earlier rows only, and {{frame}}.",
            "{collect} first or, if rows may learn from later ones, leave cv and time out and name a column "
            "of folds, as in fit_transform(X, 'price', fold='fold').",
        )
    if training and encoder._needs.rows:
        raise LazyTrainingError(
            f"{kind} learnt from a sample of the rows, and {{frame}}.",
            "{new_rows}.",
        )


def _with_new_levels(
    encoder: GroupEncoder, inputs: Inputs, number: int, group: str, lookup: LevelLookup
) -> LevelLookup:
    """Add the vectors of levels that ``fit`` did not see, from their own rows; or refuse such levels."""
    table: LazyTable = inputs.table  # type: ignore[assignment]
    known = lookup.levels
    if not table.possible(lookup.group, known):
        _warn_of_other_types(group, lookup)
    if encoder.unseen == "error":
        new = table.unknown_levels(lookup.group, known, _MOST_SHOWN)
        if new:
            raise UnseenLevelError(group, [level_label(level) for level in new], len(known))
    rule = getattr(encoder, "new_levels_", {}).get(group)
    nested = bool(inputs.parents) and bool(inputs.parents[number])
    if rule is None or encoder.unseen == "error" or (encoder.unseen == "prior" and not nested):
        return lookup
    if encoder.unseen == "prior":
        levels, paths = new_lazy_paths(inputs, number, known, vars(encoder)["on_conflict"])
        starts, has_ancestor = rule.starts(paths)
        return _with_rows(lookup, levels[has_ancestor], starts[has_ancestor])
    details = {name: getattr(encoder, name)[group] for name in encoder.details_}
    if rule.needs_rows:
        hint = "set unseen='prior' (set_params works on a fitted encoder), or {collect} first."
        raise rows_needed(encoder, hint)
    found = estimate_lazily(encoder, inputs, number, *known_columns(encoder, inputs), details)
    return lookup if found is None else _with_rows(lookup, found[0].levels, found[1])


def _with_rows(lookup: LevelLookup, levels: Levels, values: Floats) -> LevelLookup:
    """The same with more levels."""
    return replace(
        lookup,
        levels=np.concatenate([lookup.levels, levels]),
        values=np.vstack([lookup.values, values]),
    )


def _warn_of_other_types(group: str, lookup: LevelLookup) -> None:
    """Warn that no level can occur in the columns of a group, which the types alone say."""
    here = ", ".join(key.kind for key in lookup.group.keys)
    there = next((level for level in lookup.levels.tolist() if level is not None), None)
    if there is not None:
        warn(
            f"No row of column {group!r} can hold a level that fit saw: all are new. The column holds {here} "
            f"values, the levels of fit are of type {type(there).__name__} ({level_label(there)!r}, …).\n"
            "Hint: read the column in the same way on both sides.",
            UnseenLevelsWarning,
        )


def _cross_fitted(encoder: GroupEncoder, inputs: Inputs, number: int) -> LevelLookup:
    """The vectors of every level and fold, learnt from the rows of the other folds."""
    if inputs.fold is None:
        raise LazyTrainingError(
            "fit_transform with the target needs folds, and the rows of a lazy frame have no order.",
            "name a column of folds, as in fit_transform(X, 'price', fold='fold').",
        )
    table: LazyTable = inputs.table  # type: ignore[assignment]
    group = list(encoder.representations_)[number]
    whole, place = encoder._pooled_vectors(group)
    whole = replace(whole, nesting=encoder._nesting(group, encoder.representations_[group].levels, place))
    known = whole.known_moments()
    target = inputs.target.columns if encoder._needs.target == "covariate" and inputs.target else []
    found = table.moments_by_fold(
        inputs.factors[number],
        inputs.fold,
        [*inputs.columns, *target],
        names=known.covariates,
        weights=inputs.weights,
        order=known.order,
    )
    folds = [fold for fold, _ in found]
    if None in folds or len(folds) < 2:
        raise FoldColumnError(inputs.fold.name, fold_problem(None in folds))
    representation = encoder.representations_[group]
    pooled = [_pooled(moments, representation.levels, known, place) for _, moments in found]
    values, priors = [], []
    for moments in sums_of_others(pooled):
        nesting = None if whole.nesting is None else whole.nesting.take(positions_of_levels(moments, known))
        sample = GroupSample(moments, None, nesting)
        vectors = with_all_levels(encoder._represent_fold(sample, whole), moments, whole)
        own, first = vectors.with_prior().copy(), vectors.first_cross_fitted
        own[:, :first] = whole.with_prior()[:, :first]
        values.append(own[place])
        priors.append(own[-1])
    return LevelLookup(
        inputs.factors[number],
        np.tile(representation.levels, len(folds)),
        np.vstack(values),
        np.array(priors),
        fold=inputs.fold,
        folds=np.repeat(np.array(folds, dtype=object), len(place)).tolist(),
    )


def _pooled(moments: GroupMoments, levels: Levels, known: GroupMoments, place: Codes) -> GroupMoments:
    """The moments of a fold, with the levels pooled that are pooled in the whole."""
    if known.n_levels == len(levels):
        return moments
    rare = set(levels[place == place.max()].tolist())
    return moments.pool(np.array([level in rare for level in moments.levels]), known.levels[-1])
