"""Encoders from moments: the columns that moments name, and a fit that needs nothing else.

Moments of parts of the rows, from files or workers, are added up before; see ``docs/how-to/serving.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._frames import ArrayTable, Factor
from sufrep.encoders._inputs import Covariate, Inputs, Layout
from sufrep.encoders._target import Target
from sufrep.errors import MomentsMismatchError
from sufrep.moments import GroupMoments, MomentsTarget

if TYPE_CHECKING:
    from sufrep.encoders._base import GroupEncoder


@dataclass(frozen=True, slots=True, eq=False)
class _Described:
    """What moments say: the columns that new rows must have, and what was collected of each group."""

    layout: Layout
    covariates: list[Covariate]
    moments: dict[str, GroupMoments]
    target: Target | None


def learn_from_moments(encoder: GroupEncoder, given: GroupMoments | Mapping[str, GroupMoments]) -> None:
    """Set the fitted attributes of an encoder that needs no rows."""
    listed = _in_order(encoder, given) if isinstance(given, Mapping) else [given]
    if not listed or not all(isinstance(part, GroupMoments) for part in listed):
        kinds = ", ".join(sorted({type(part).__name__ for part in listed})) or "nothing"
        raise MomentsMismatchError(
            f"fit_moments got {kinds}.", "give GroupMoments, or a dict of them by group, such as moments_."
        )
    parts = [_needed(encoder, part) for part in listed]
    found = _as_fitted(encoder, parts) if hasattr(encoder, "layout_") else _described(encoder, parts)
    for part in parts:
        _check_nulls(encoder, part)
    # Only levels are asked for: an encoder that needs rows has no fit_moments.
    factors = tuple(Factor(np.empty(0, dtype=np.intp), part.levels) for part in found.moments.values())
    table = ArrayTable(np.empty((0, len(found.layout.names))), found.layout.names)
    inputs = Inputs(table, found.layout, factors, tuple(found.covariates), target=found.target)
    encoder._represent_groups(inputs, found.covariates, found.moments)


def _in_order(encoder: GroupEncoder, given: Mapping[str, GroupMoments]) -> list[GroupMoments]:
    """Moments by group in the order of the groups; those that do not know their group take its name."""
    groups: list[Any] = encoder.group if isinstance(encoder.group, list) else [encoder.group]
    names = [":".join(map(str, entry)) if isinstance(entry, tuple) else str(entry) for entry in groups]
    if hasattr(encoder, "layout_"):
        names = encoder.layout_.group_names(encoder.layout_.names)
    if given.keys() != set(names):
        names = list(given)
    return [_named(given[name], name) for name in names]


def _named(moments: Any, name: str) -> Any:
    if not isinstance(moments, GroupMoments) or moments.group:
        return moments
    crossed = moments.n_levels and isinstance(moments.levels[0], tuple)
    return replace(moments, group=tuple(name.split(":")) if crossed else (name,))


def _needed(encoder: GroupEncoder, moments: GroupMoments) -> GroupMoments:
    """The covariates of moments that the encoder uses."""
    needs, name = encoder._needs, type(encoder).__name__
    if vars(encoder).get("parent"):
        raise MomentsMismatchError(
            f"{name} has a parent, and moments do not say what their levels are part of.",
            "call fit with the rows, or leave parent out.",
        )
    if needs.uses_target and moments.target is None:
        raise MomentsMismatchError(
            f"{name} uses the target, which is not among the covariates {', '.join(moments.covariates)}.",
            "collect moments with the target: use_target=True, or `sufrep moments --target`.",
        )
    if moments.order < needs.order:
        raise MomentsMismatchError(
            f"{name} needs second moments, and these are of order 1.", "build them with order=2."
        )
    n_targets = 0 if moments.target is None else moments.target.n_columns
    n_others = len(moments.covariates) - n_targets
    if needs.covariates == "required" and not n_others:
        raise MomentsMismatchError(
            f"{name} describes levels by covariates, and these moments have none.",
            "collect moments of the columns that describe the levels.",
        )
    # A target is never null, so that rows are complete with or without it.
    return moments if needs.uses_target else moments.select(range(n_others))


def _as_fitted(encoder: GroupEncoder, parts: list[GroupMoments]) -> _Described:
    """Other moments of the columns that a fitted encoder knows."""
    layout, covariates = encoder.layout_, encoder.covariates_
    names = [covariate.name(layout.names) for covariate in covariates]
    groups = [tuple(layout.names[column] for column in columns) for columns in layout.groups]
    target = _common_target(parts)
    own = _covariates_of(target)
    plain = [covariate for covariate in covariates if covariate.position is not None]
    united = [*plain, *own]
    expected = [covariate.name(layout.names) for covariate in plain]
    for part in parts:
        found = list(part.covariates[: len(part.covariates) - len(own)])
        if found != expected and encoder._needs.covariates != "unused":
            raise _other_columns(encoder, "covariates", names, list(part.covariates))
    if encoder._needs.covariates == "unused":
        parts = [_last_covariates(part, len(own)) for part in parts]
    if len(parts) != len(groups) or any(
        part.group not in ((), columns) for part, columns in zip(parts, groups, strict=False)
    ):
        shown = [":".join(part.group) or "(unknown)" for part in parts]
        raise _other_columns(encoder, "groups", layout.group_names(layout.names), shown)
    return _Described(
        layout,
        united,
        dict(zip(layout.group_names(layout.names), parts, strict=True)),
        _read_target(target, own),
    )


def _described(encoder: GroupEncoder, parts: list[GroupMoments]) -> _Described:
    """The columns that moments name, for an encoder that was not fitted before."""
    groups = _group_columns(encoder, parts)
    target = _common_target(parts)
    own = _covariates_of(target)
    described = [list(part.covariates[: len(part.covariates) - len(own)]) for part in parts]
    if any(names != described[0] for names in described):
        raise MomentsMismatchError(
            "The moments of several groups have other covariates.", "collect them from the same columns."
        )
    given = encoder.covariates
    if given is not None and [str(name) for name in given] != described[0]:
        raise _other_columns(encoder, "covariates", [str(name) for name in given], described[0])
    above = list(dict.fromkeys(column for columns in groups for column in columns))
    names = (*above, *(name for name in described[0] if name not in above))
    position = {name: number for number, name in enumerate(names)}
    used = {position[column] for columns in groups for column in columns}
    free = tuple(number for number in range(len(names)) if number not in used)
    layout = Layout(
        names,
        tuple(tuple(position[column] for column in columns) for columns in groups),
        tuple(position[name] for name in described[0]),
        (),
        free if encoder.remainder == "passthrough" else (),
    )
    covariates = [*(Covariate(position[name]) for name in described[0]), *own]
    if encoder._needs.covariates == "unused":
        covariates = own
        parts = [_last_covariates(part, len(own)) for part in parts]
    encoder.n_features_in_, encoder.feature_names_in_ = len(names), np.asarray(names, dtype=object)
    name = None if target is None else target.name
    if name is not None and name not in names and name != "target":
        encoder.target_name_ = name
    moments = {":".join(columns): part for columns, part in zip(groups, parts, strict=True)}
    return _Described(layout, covariates, moments, _read_target(target, own))


def _group_columns(encoder: GroupEncoder, parts: list[GroupMoments]) -> list[tuple[str, ...]]:
    """The columns of each group, from the moments or, where these do not know them, from the encoder."""
    listed: list[Any] = encoder.group if isinstance(encoder.group, list) else [encoder.group]
    asked = [entry if isinstance(entry, tuple) else (entry,) for entry in listed]
    if encoder.group is None:
        asked = [part.group for part in parts]
    found = [part.group or columns for part, columns in zip(parts, asked, strict=False)]
    if len(asked) != len(parts) or found != asked:
        shown = [":".join(part.group) or "(unknown)" for part in parts]
        raise _other_columns(encoder, "groups", [":".join(map(str, columns)) for columns in asked], shown)
    if not all(columns and all(isinstance(column, str) for column in columns) for columns in found):
        raise MomentsMismatchError(
            f"The moments do not know their group, and group is {encoder.group!r}.",
            "name the column of the group, as in MeansEncoder('zipcode').",
        )
    return found


def _common_target(parts: list[GroupMoments]) -> MomentsTarget | None:
    targets = [part.target for part in parts]
    if any(target != targets[0] for target in targets):
        raise MomentsMismatchError(
            "The moments of several groups have other targets.", "collect them from the same rows."
        )
    return targets[0]


def _last_covariates(moments: GroupMoments, number: int) -> GroupMoments:
    """The moments of the last covariates, which are the target's."""
    return moments.select(range(len(moments.covariates))[len(moments.covariates) - number :])


def _covariates_of(target: MomentsTarget | None) -> list[Covariate]:
    """The covariates of the target."""
    if target is None:
        return []
    return [Covariate(None, label) for label in target.classes] or [Covariate(None)]


def _read_target(target: MomentsTarget | None, covariates: list[Covariate]) -> Target | None:
    """The kind and the classes of a target, without any row."""
    return None if target is None else Target(target.kind, covariates, [], np.empty(0))


def _check_nulls(encoder: GroupEncoder, moments: GroupMoments) -> None:
    """Refuse a null level if the encoder is not to have one: its rows are part of what levels share."""
    crossed = len(moments.group) > 1
    null = [level for level in moments.levels.tolist() if level is None or (crossed and None in level)]
    if null and encoder.missing != "level":
        raise MomentsMismatchError(
            f"The moments have null as a level, and missing={encoder.missing!r}.",
            "use missing='level', or collect the moments without rows whose level is null.",
        )


def _other_columns(
    encoder: GroupEncoder, what: str, expected: list[str], found: list[str]
) -> MomentsMismatchError:
    return MomentsMismatchError(
        f"The moments have the {what} {', '.join(found) or '(none)'}; this {type(encoder).__name__} has "
        f"{', '.join(expected) or '(none)'}.",
        "give moments of the same columns, in the same order, or use an encoder that was not fitted before.",
    )
