"""What the models of an effect see of each row: its covariates, and the statistics of its group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from sufrep.encoders import GroupEncoder, make_encoder
from sufrep.errors import EffectDataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Floats
    from sufrep.causal._data import EffectData


# Differences of this size, relative to the values, are rounding errors.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Columns with their names.

    Attributes
    ----------
    values : ndarray, shape (n, k)
    names : tuple of str
    n_covariates : int
        Number of columns, at the beginning, that are covariates of the row itself.
    filled : tuple of str
        Covariates whose nulls were replaced by the median.
    """

    values: Floats
    names: tuple[str, ...]
    n_covariates: int
    filled: tuple[str, ...] = ()


def build_features(
    data: EffectData, *, encoder: Any, statistics: Sequence[str], products: bool, without_nulls: bool
) -> Features:
    """Covariates, and the statistics of each row's group.

    Conditioning on the means of the covariates and of the treatment within the group removes a confounder
    that is the same for all rows of a group, if covariates and treatment given the confounder are an
    exponential family with these statistics (Arkhangelsky and Imbens). That holds for the means of all rows,
    the row's own treatment included: leaving it out brings the bias back. Outcomes never take part.

    Known propensities are the other way round. They are right given the group, and no longer given a mean
    that the row's own treatment is part of; so what its group says about the treatment leaves the row out
    (test_with_known_propensities_a_row_does_not_see_its_own_treatment).
    """
    average = _spread if data.propensity is None else _spread_of_others
    blocks: list[tuple[Floats, list[str]]] = []
    if "X" in statistics:
        blocks.append(_encode(data, encoder))
    if "W" in statistics:
        blocks.append((average(data, data.treatment[:, None]), ["mean of treatment"]))
    if "WX" in statistics:
        varying = ~_is_constant_in_groups(data, data.covariates)
        chosen = [name for name, varies in zip(data.names, varying, strict=True) if varies]
        product = data.covariates[:, varying] * data.treatment[:, None]
        blocks.append((average(data, product), [f"mean of treatment * {name}" for name in chosen]))
    covariates, names = data.covariates, list(data.names)
    filled: tuple[str, ...] = ()
    if without_nulls:
        covariates, names, filled = fill_nulls(covariates, data.names)
        blocks = [fill_nulls(values, labels)[:2] for values, labels in blocks]
    n_covariates = covariates.shape[1]
    group_values = np.column_stack([np.empty((len(data.rows), 0)), *(values for values, _ in blocks)])
    group_names = [name for _, labels in blocks for name in labels]
    group_values, group_names = _distinct(covariates, group_values, group_names)
    parts, all_names = [covariates, group_values], [*names, *group_names]
    if products:
        for j, name in enumerate(group_names):
            parts.append(covariates * group_values[:, [j]])
            all_names += [f"{covariate} * {name}" for covariate in names]
    return Features(np.column_stack(parts), tuple(all_names), n_covariates, filled)


def treatment_marks_rows(data: EffectData) -> str | None:
    """Why the means of treatment × covariates would reveal a row's own treatment, if they would.

    If a covariate is an indicator with at most one row a group, such as a year, then the mean of its product
    with the treatment is the treatment of that row. And a small group has too few rows for so many means.
    """
    for name, column in zip(data.names, data.covariates.T, strict=True):
        if set(np.unique(column[~np.isnan(column)])) <= {0.0, 1.0}:
            most = np.bincount(data.groups, column == 1, minlength=data.n_groups).max(initial=0)
            if 0 < most <= 1:
                return f"covariate {name!r} marks at most one row of a group"
    median = float(np.median(np.bincount(data.groups)))
    needed = 2 * (data.covariates.shape[1] + 1)
    if median < needed:
        return f"the median group has {median:g} rows, fewer than {needed}"
    return None


def _encode(data: EffectData, encoder: Any) -> tuple[Floats, list[str]]:
    """The representation of each row's group by the covariates."""
    if isinstance(encoder, str) and encoder == "means":
        return _spread(data, data.covariates), [f"mean of {name}" for name in data.names]
    p = data.covariates.shape[1]
    fitted: Any = make_encoder(encoder, p) if isinstance(encoder, str) else _with_group(encoder, p)
    if fitted._needs.uses_target:
        raise EffectDataError(
            f"{type(fitted).__name__} learns from the target, and an effect must not adjust for outcomes.",
            "choose an encoder that needs no target, such as 'means', 'low_rank' or 'latent_state'.",
        )
    rows = np.column_stack([data.covariates, data.groups])
    values = np.asarray(fitted.set_params(remainder="drop").fit_transform(rows), dtype=np.float64)
    given = [*data.names, "group"]
    return values, [str(name) for name in fitted.get_feature_names_out(given)]


def _with_group(encoder: Any, position: int) -> Any:
    if not isinstance(encoder, GroupEncoder):
        raise EffectDataError(
            f"encoder is a {type(encoder).__name__}.", "pass the name of a method, or an encoder of sufrep."
        )
    return clone(encoder).set_params(group=position, covariates=None)


def _spread(data: EffectData, columns: Floats) -> Floats:
    """The mean of columns in each row's group; (n, k)."""
    means = data.group_means(columns)
    # A covariate that was centred within groups has means that are rounding errors, not statistics
    # (test_means_that_repeat_a_covariate_or_are_constant_are_left_out).
    scale = np.nanmax(np.abs(columns), axis=0, initial=0.0)
    means[np.abs(means) <= _ROUNDING * scale] = 0.0
    return np.asarray(means[data.groups])


def _spread_of_others(data: EffectData, columns: Floats) -> Floats:
    """The mean of columns over the other rows of each row's group; over all other rows if there is none."""
    known = ~np.isnan(columns)
    filled = np.where(known, columns, 0.0)

    def sum_of_others(values: Floats) -> tuple[Floats, Floats]:
        own = np.column_stack([np.bincount(data.groups, column) for column in values.T])[data.groups]
        return own - values, values.sum(axis=0) - values

    sums, counts = sum_of_others(filled), sum_of_others(known.astype(np.float64))
    everywhere = np.divide(sums[1], counts[1], out=np.zeros_like(filled), where=counts[1] > 0)
    return np.asarray(np.divide(sums[0], counts[0], out=everywhere, where=counts[0] > 0))


def _is_constant_in_groups(data: EffectData, columns: Floats) -> Any:
    """Whether each column is the same for all rows of a group; (k,)."""
    mean = _spread(data, columns)
    scale = np.nanmax(np.abs(columns), axis=0, initial=0.0)
    same = np.abs(columns - mean) <= _ROUNDING * np.maximum(scale, 1e-300)
    return (same | np.isnan(columns)).all(axis=0)


def fill_nulls(columns: Floats, names: Sequence[str]) -> tuple[Floats, list[str], tuple[str, ...]]:
    """Columns with the median in place of nulls, an indicator for each that has any, and which these are."""
    null = np.isnan(columns)
    some = [j for j in range(columns.shape[1]) if null[:, j].any()]
    if not some:
        return columns, list(names), ()
    filled = columns.copy()
    for j in some:
        known = columns[~null[:, j], j]
        filled[null[:, j], j] = np.median(known) if len(known) else 0.0
    indicators = null[:, some].astype(np.float64)
    labels = [f"{names[j]} is null" for j in some]
    return np.column_stack([filled, indicators]), [*names, *labels], tuple(names[j] for j in some)


def _distinct(covariates: Floats, values: Floats, names: Sequence[str]) -> tuple[Floats, list[str]]:
    """Statistics of groups that are not constant, and repeat neither a covariate nor one another."""
    kept: list[int] = []
    known = list(covariates.T)
    for j, column in enumerate(values.T):
        size = np.nanmax(np.abs(column), initial=0.0)
        if np.nanmax(column, initial=-np.inf) - np.nanmin(column, initial=np.inf) <= _ROUNDING * size:
            continue
        if any(np.allclose(column, other, rtol=0, atol=_ROUNDING * size, equal_nan=True) for other in known):
            continue
        kept.append(j)
        known.append(column)
    return values[:, kept], [names[j] for j in kept]
