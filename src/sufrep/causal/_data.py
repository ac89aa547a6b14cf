"""From a table to the rows that an effect is estimated from: roles of columns, checks, overlap of groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sufrep._frames import ArrayTable, FrameTable, is_frame, refuse_other_tables
from sufrep.encoders._inputs import MOST_SHARES, position_of, positions_of, read_factor
from sufrep.errors import EffectDataError
from sufrep.representation import is_null, level_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Floats
    from sufrep._frames import Table
    from sufrep.encoders._inputs import Column, Group


@dataclass(frozen=True, slots=True, eq=False)
class EffectData:
    """The rows that an effect is estimated from.

    Attributes
    ----------
    table : Table
        The table as it was given, with all rows.
    rows : ndarray of int, shape (n,)
        Positions in the table of the rows below.
    covariates : ndarray, shape (n, p)
        NaN for null.
    names : tuple of str
        Names of the covariates; an indicator is called ``column=level``.
    treatment : ndarray, shape (n,)
        1 for treated rows, 0 for the others.
    outcome : ndarray, shape (n,)
    groups : ndarray of int, shape (n,)
        Number of the group of each row, in order of appearance.
    labels : tuple of str
        The label of each group.
    clusters : ndarray of int, shape (n,), or None
        Likewise the cluster of each row; None if rows are independent.
    weights : ndarray, shape (n,)
        Sample weights.
    propensity : ndarray, shape (n,), or None
        Known probabilities of treatment.
    treated_label : str
        The value of the treatment that means treated.
    """

    table: Table
    rows: Codes
    covariates: Floats
    names: tuple[str, ...]
    treatment: Floats
    outcome: Floats
    groups: Codes
    labels: tuple[str, ...]
    clusters: Codes | None
    weights: Floats
    propensity: Floats | None
    treated_label: str

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.labels)

    def group_means(self, columns: Floats) -> Floats:
        """Means of columns (n, k) within each group, nulls skipped; (n_groups, k)."""
        known = ~np.isnan(columns)
        filled = np.where(known, columns, 0.0)
        shape = (self.n_groups, columns.shape[1])
        total, count = np.zeros(shape), np.zeros(shape)
        for j in range(columns.shape[1]):
            total[:, j] = np.bincount(self.groups, filled[:, j], minlength=self.n_groups)
            count[:, j] = np.bincount(self.groups, known[:, j], minlength=self.n_groups)
        return np.asarray(np.divide(total, count, out=np.full(shape, np.nan), where=count > 0))

    def take(self, rows: Codes) -> EffectData:
        """Some of the rows; groups and clusters are numbered anew, in order of appearance."""
        groups, found = number_by_appearance(self.groups[rows])
        clusters = None if self.clusters is None else number_by_appearance(self.clusters[rows])[0]
        return replace(
            self,
            rows=self.rows[rows],
            covariates=self.covariates[rows],
            treatment=self.treatment[rows],
            outcome=self.outcome[rows],
            groups=groups,
            labels=tuple(self.labels[code] for code in found),
            clusters=clusters,
            weights=self.weights[rows],
            propensity=None if self.propensity is None else self.propensity[rows],
        )


def read_effect_data(
    X: Any,
    *,
    group: Group,
    covariates: Sequence[Column] | None,
    cluster: Any,
    treatment: Any,
    outcome: Any,
    treated: Any,
    propensity: Any,
    sample_weight: Any,
) -> EffectData:
    """Read and check the table; ``treatment``, ``outcome`` and the like are columns of it, or arrays."""
    table = _wrap(X)
    positions = positions_of(table.names, group if isinstance(group, tuple) else (group,), "group")
    groups = read_factor(table, positions, "level")
    roles = {"treatment": treatment, "outcome": outcome, "cluster": cluster}
    roles |= {"propensity": propensity, "sample_weight": sample_weight}
    places = {
        role: position_of(table.names, given, role) for role, given in roles.items() if _is_column(given)
    }
    taken = {*positions, *places.values()}
    values = {role: _values(table, roles[role], places.get(role), role) for role in ("treatment", "outcome")}
    if places.get("treatment", -1) == places.get("outcome", -2):
        raise EffectDataError(
            f"Treatment and outcome are the same column, {table.names[places['treatment']]!r}.",
            "name the column that holds the outcome.",
        )
    w, label = _binary(values["treatment"], treated)
    y = _numbers(values["outcome"], "outcome")
    if _repeats(y, w):
        raise EffectDataError(
            "The outcome is the treatment itself: it has one value for treated rows, and another for the "
            "others.",
            "name the column that holds the outcome.",
        )
    matrix, names = _covariates(table, covariates, taken)
    _check_covariates(matrix, names, w)
    codes, found = number_by_appearance(groups.codes)
    labels = tuple(level_label(groups.levels[code]) for code in found)
    return EffectData(
        table,
        np.arange(table.n_rows),
        matrix,
        names,
        w,
        y,
        codes,
        labels,
        _clusters(table, cluster, places.get("cluster"), codes, labels),
        _weights(table, sample_weight, places.get("sample_weight")),
        _propensities(table, propensity, places.get("propensity")),
        label,
    )


def number_by_appearance(codes: Codes) -> tuple[Codes, Codes]:
    """Number codes in the order in which they first occur, and the code that each number stands for.

    Folds then depend on neither the names of levels nor the order of categories.
    """
    distinct, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank[inverse], distinct[order]


def overlapping_groups(data: EffectData) -> tuple[EffectData, tuple[str, ...]]:
    """The rows of groups that have treated and untreated rows, and the labels of the other groups."""
    share = data.group_means(data.treatment[:, None])[:, 0]
    keep = (share > 0) & (share < 1)
    if not keep.any():
        raise EffectDataError(
            f"The treatment is the same for all rows of a group, in all {data.n_groups} groups: there is "
            "nobody in a group to compare its rows with, and the group cannot be controlled for.",
            "compare groups that look alike with statistics=('X',), whose errors are clustered by group; it "
            "assumes that groups with the same covariates have the same outcomes.",
        )
    dropped = tuple(label for label, kept in zip(data.labels, keep, strict=True) if not kept)
    return (data.take(np.flatnonzero(keep[data.groups])), dropped) if dropped else (data, ())


def _wrap(X: Any) -> Table:
    if is_frame(X):
        return FrameTable.from_native(X)
    refuse_other_tables(X)
    array = np.asarray(X)
    if array.ndim != 2:
        raise EffectDataError(
            f"X has {array.ndim} dimension(s).", "pass a frame, or an array with two dimensions."
        )
    return ArrayTable(array, tuple(f"x{j}" for j in range(array.shape[1])))


def _is_column(given: Any) -> bool:
    """Whether a parameter names a column; numbers are positions only of the roles that are columns."""
    return isinstance(given, str) and given != "auto"


def _values(table: Table, given: Any, position: int | None, role: str) -> Array:
    """The values of a column as objects or numbers; (n,)."""
    if position is not None:
        if table.kind(position) == "numeric":
            return np.asarray(table.numbers(position))
        factor = table.factorize(position)
        return np.append(factor.levels, [None])[factor.codes]
    values = np.asarray(given)
    if values.ndim != 1 or len(values) != table.n_rows:
        raise EffectDataError(
            f"The {role} has the shape {values.shape}, and X has {table.n_rows} row(s).",
            "give one value for each row, or the name of a column.",
        )
    return values


def _nulls(values: Array) -> int:
    if values.dtype.kind == "f":
        return int(np.isnan(values).sum())
    return sum(is_null(value) for value in values.tolist()) if values.dtype == object else 0


def _binary(values: Array, treated: Any) -> tuple[Floats, str]:
    """The treatment as 0 and 1, and the label of what means treated."""
    if missing := _nulls(values):
        raise EffectDataError(
            f"The treatment is null in {missing} row(s).", "drop the rows whose treatment is unknown."
        )
    distinct = list(dict.fromkeys(values.tolist()))
    shown = ", ".join(repr(value) for value in distinct[:5])
    if len(distinct) != 2:
        one = "one value only" if len(distinct) == 1 else f"{len(distinct)} values"
        raise EffectDataError(
            f"The treatment has {one}: {shown}{', …' if len(distinct) > 5 else ''}; expected two.",
            "keep the rows of two treatments, or turn it into 0 and 1.",
        )
    if treated is None and set(distinct) == {0, 1}:
        treated = next(value for value in distinct if value)
    if treated not in distinct:
        raise EffectDataError(
            f"The treatment has the values {shown}; "
            + (
                "which of them means treated?" if treated is None else f"treated={treated!r} is none of them."
            ),
            f"name it, as in treated={distinct[0]!r}.",
        )
    return np.array([value == treated for value in values.tolist()], dtype=np.float64), level_label(treated)


def _numbers(values: Array, role: str) -> Floats:
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise EffectDataError(f"The {role} is not a column of numbers ({error}).", "pass numbers.") from error
    bad = int((~np.isfinite(numbers)).sum())
    if bad:
        raise EffectDataError(f"The {role} is null or infinite in {bad} row(s).", "drop these rows.")
    return np.asarray(numbers)


def _covariates(
    table: Table, covariates: Sequence[Column] | None, taken: set[int]
) -> tuple[Floats, tuple[str, ...]]:
    """Numbers as they are, text of few levels as an indicator for each level but the first."""
    chosen = [position for position in range(len(table.names)) if position not in taken]
    if covariates is not None:
        chosen = positions_of(table.names, covariates, "covariates")
        for position in taken.intersection(chosen):
            raise EffectDataError(
                f"Column {table.names[position]!r} is a covariate, but also group, treatment, outcome or the "
                "like.",
                "leave it out of covariates.",
            )
    columns, names = [], []
    for position in chosen:
        name = table.names[position]
        if table.kind(position) == "numeric":
            columns.append(np.asarray(table.numbers(position), dtype=np.float64))
            names.append(name)
            continue
        if table.kind(position) != "text":
            raise EffectDataError(
                f"Column {name!r} holds {table.dtype(position)} values, neither numbers nor text.",
                "turn it into numbers, as sufrep.ToNumbers does, or name the covariates to control for.",
            )
        factor = table.factorize(position)
        # In order of appearance: names, and the order of categories, do not decide which level comes first.
        codes, found = number_by_appearance(factor.codes)
        n_levels = int((found >= 0).sum())
        if n_levels > MOST_SHARES:
            raise EffectDataError(
                f"Column {name!r} is text with {n_levels} levels, and no group.",
                f"make it the group, or name the columns to control for in covariates; text with at most "
                f"{MOST_SHARES} levels becomes indicators.",
            )
        for number, code in list(enumerate(found))[1:]:
            columns.append((codes == number).astype(np.float64))
            names.append(f"{name} is null" if code < 0 else f"{name}={level_label(factor.levels[code])}")
    matrix = np.column_stack(columns) if columns else np.empty((table.n_rows, 0))
    return matrix, tuple(names)


def _check_covariates(matrix: Floats, names: Sequence[str], treatment: Floats) -> None:
    for name, column in zip(names, matrix.T, strict=True):
        if np.isinf(column).any():
            raise EffectDataError(
                f"Covariate {name!r} is infinite in {int(np.isinf(column).sum())} row(s).", "drop these rows."
            )
        if _repeats(column, treatment):
            raise EffectDataError(
                f"Covariate {name!r} is the treatment itself: it has one value for treated rows, and another "
                "for the others.",
                "name the columns to control for in covariates.",
            )
        if _repeats(np.isnan(column).astype(np.float64), treatment):
            raise EffectDataError(
                f"Covariate {name!r} is null for all rows of one arm, and for no other.",
                "name the columns to control for in covariates.",
            )


def _repeats(column: Floats, treatment: Floats) -> bool:
    """Whether a column has one value in all treated rows, and another in all untreated rows."""
    first, other = column[treatment == 0], column[treatment == 1]
    return bool((first == first[0]).all() and (other == other[0]).all() and first[0] != other[0])


def _clusters(
    table: Table, cluster: Any, position: int | None, groups: Codes, labels: Sequence[str]
) -> Codes | None:
    if cluster is None:
        return None
    if position is None and isinstance(cluster, str):  # "auto"
        return groups
    if position is not None:
        codes = table.factorize(position).codes
    else:
        values = _values(table, cluster, None, "cluster").tolist()
        known = {value: code for code, value in enumerate(dict.fromkeys(values))}
        codes = np.array([-1 if is_null(value) else known[value] for value in values], dtype=np.intp)
    if (codes < 0).any():
        raise EffectDataError(
            f"The cluster is null in {int((codes < 0).sum())} row(s).",
            "drop these rows, or give them a cluster.",
        )
    clusters, _ = number_by_appearance(codes)
    order = np.argsort(groups, kind="stable")
    split = (np.diff(clusters[order]) != 0) & (np.diff(groups[order]) == 0)
    if split.any():
        label = labels[groups[order][1:][split][0]]
        raise EffectDataError(
            f"Group {label!r} has rows in more than one cluster; a cluster must contain whole groups.",
            "name a coarser cluster, or cluster='auto' for the group itself.",
        )
    return clusters


def _weights(table: Table, given: Any, position: int | None) -> Floats:
    if given is None:
        return np.ones(table.n_rows)
    weights = _numbers(_values(table, given, position, "sample_weight"), "sample_weight")
    if (weights < 0).any() or not weights.any():
        raise EffectDataError(
            "sample_weight is negative, or zero in every row.", "give weights of at least zero."
        )
    return weights


def _propensities(table: Table, given: Any, position: int | None) -> Floats | None:
    if given is None:
        return None
    if position is None and np.ndim(given) == 0:
        given = np.full(table.n_rows, float(given))
    known = _numbers(_values(table, given, position, "propensity"), "propensity")
    if not ((known > 0) & (known < 1)).all():
        raise EffectDataError(
            f"Known propensities range from {known.min():.3g} to {known.max():.3g}.",
            "give probabilities strictly between 0 and 1.",
        )
    return known
