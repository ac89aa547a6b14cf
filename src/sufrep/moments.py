"""Group moments: all that most encoders need to know about the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from sufrep._accumulate import accumulate, exponents, ratio, remainder, unscaled
from sufrep._merging import (
    Union,
    merge_means,
    pool_means,
    positions_in,
    remove_means,
    sum_products,
    sum_squares,
    unite,
)
from sufrep._packing import load_record, save_record
from sufrep.errors import LengthMismatchError, MomentsMismatchError, SampleWeightError
from sufrep.representation import as_levels, is_null, level_order, level_positions, sort_levels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from numpy.typing import ArrayLike

    from sufrep._accumulate import Sums
    from sufrep._arrays import Array, Codes, Columns, Floats, Levels, Mask


class SecondMoments(NamedTuple):
    """The tables of `GroupMoments` that only ``order=2`` has."""

    squares: Floats
    complete_weight: Floats
    complete_mean: Floats
    scatter: Floats


class LevelsWithout(NamedTuple):
    """The level of each row without the row: means, NaN where nothing is left, and weights; (n, p)."""

    mean: Floats
    observed: Floats


@dataclass(frozen=True, slots=True)
class MomentsTarget:
    """Which covariates of moments are those of the target: the last ones.

    Parameters
    ----------
    name : str
        Name of the column, "target" if it has none.
    kind : {"continuous", "binary", "multiclass"}
    classes : tuple of str
        Labels of the classes, each with an indicator among the covariates; empty if it is continuous.
    """

    name: str
    kind: str
    classes: tuple[str, ...] = ()

    @property
    def n_columns(self) -> int:
        """Number of covariates that are the target's."""
        return len(self.classes) if self.kind != "continuous" else 1

    def check(self) -> None:
        """Raise `ValueError` if this is no target."""
        if self.kind not in ("continuous", "binary", "multiclass"):
            raise ValueError("an unknown kind of target")
        if len(set(self.classes)) < len(self.classes) or (self.kind == "continuous") != (not self.classes):
            raise ValueError("other classes than the kind of target has")


@dataclass(frozen=True, slots=True, eq=False)
class GroupMoments:
    """Count, mean and pooled scatter of the covariates within every level of one column.

    Moments of disjoint samples add up (``a + b``) and can be subtracted (``a - b``), which is why one pass
    serves chunks, workers, folds and engines alike.

    Parameters
    ----------
    levels : ndarray of object, shape (n_levels,)
        Levels that have at least one row, in the order of :func:`sufrep.representation.sort_levels`.
    covariates : tuple of str
        Names of the covariates.
    count : ndarray of int, shape (n_levels,)
        Number of rows with positive weight.
    weight : ndarray, shape (n_levels,)
        Their total weight. Weights are frequencies: a row with weight 2 counts as two rows.
    observed : ndarray, shape (n_levels, n_covariates)
        Total weight of the rows in which the covariate is not null.
    mean : ndarray, shape (n_levels, n_covariates)
        Mean over those rows, NaN where there are none.
    squares : ndarray, shape (n_covariates,), or None
        Sum of squared deviations over those rows, each from the mean of its own level, pooled over the
        levels (``order=2``).
    complete_weight : ndarray, shape (n_levels,), or None
        Total weight of the rows without any null (``order=2``).
    complete_mean : ndarray, shape (n_levels, n_covariates), or None
        Mean over the rows without any null, 0 where there are none (``order=2``).
    scatter : ndarray, shape (n_covariates, n_covariates), or None
        Sum of (x − mean)(x − mean)ᵀ over the rows without any null, each about the mean of its own
        level, pooled over the levels (``order=2``).
    group : tuple of str
        Names of the columns that the levels are from, several if they are crossed; empty if not known.
    target : MomentsTarget or None
        Which of the covariates, the last ones, are the target's.

    Examples
    --------
    >>> a = GroupMoments.from_rows(["north", "south", "north"], [[1.0], [5.0], [3.0]])
    >>> b = GroupMoments.from_rows(["north", "east"], [[8.0], [2.0]])
    >>> (a + b).levels.tolist(), (a + b).mean.ravel().tolist()
    (['east', 'north', 'south'], [2.0, 4.0, 5.0])
    >>> (a + b - a).mean.ravel().tolist()
    [2.0, 8.0]
    """

    levels: Levels
    covariates: tuple[str, ...]
    count: Codes
    weight: Floats
    observed: Floats
    mean: Floats
    squares: Floats | None = None
    complete_weight: Floats | None = None
    complete_mean: Floats | None = None
    scatter: Floats | None = None
    group: tuple[str, ...] = ()
    target: MomentsTarget | None = None

    @classmethod
    def from_rows(
        cls,
        group: Sequence[Any],
        rows: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        order: Literal[1, 2] = 2,
        covariates: Sequence[str] | None = None,
    ) -> Self:
        """Compute the moments of rows whose levels are given one by one; `from_columns` is the fast way.

        Parameters
        ----------
        group : sequence of hashable, length n
        rows : array-like, shape (n, n_covariates)
        weights : array-like, shape (n,), optional
        order : {1, 2}
        covariates : sequence of str, optional
        """
        matrix = np.asarray(rows, dtype=np.float64)
        if matrix.ndim != 2:
            raise MomentsMismatchError(
                f"rows has {matrix.ndim} dimension(s).", "give a table of shape (n, n_covariates)."
            )
        names = [f"x{j}" for j in range(matrix.shape[1])] if covariates is None else covariates
        weight = None if weights is None else np.asarray(weights, dtype=np.float64)
        lengths = {"group": len(group), "weights": len(matrix) if weight is None else len(weight)}
        for name, length in lengths.items():
            if length != len(matrix):
                raise LengthMismatchError(len(matrix), name, length)
        if weight is not None and not (np.isfinite(weight) & (weight >= 0)).all():
            raise SampleWeightError("is negative, infinite or NaN")
        if len(names) != matrix.shape[1] or order not in (1, 2):
            raise MomentsMismatchError(
                f"{len(names)} name(s) are given for {matrix.shape[1]} column(s), and order={order!r}.",
                "name every column; order is 1 or 2.",
            )
        known = [None if is_null(level) else level for level in group]
        levels = sort_levels(dict.fromkeys(known))
        position = level_positions(levels)
        codes = np.fromiter((position[level] for level in known), dtype=np.intp)
        return cls.from_columns(codes, matrix.T, levels, weights=weight, order=order, covariates=names)

    @classmethod
    def from_columns(
        cls,
        codes: Codes,
        columns: Columns,
        levels: Levels,
        *,
        covariates: Sequence[str],
        weights: Floats | None = None,
        order: Literal[1, 2] = 2,
    ) -> Self:
        """Compute the moments by level in passes over columns, which are not copied.

        Parameters
        ----------
        codes : ndarray of int, shape (n,)
            Position in ``levels`` of each row, −1 for rows to leave out.
        columns : sequence of ndarray, each of shape (n,)
            The covariates, real, integer or boolean; NaN is a null.
        levels : ndarray of object, shape (n_levels,)
            Sorted; levels without a row of positive weight are dropped.
        covariates : sequence of str
            Names of the columns.
        weights : ndarray, shape (n,), optional
            Frequencies; rows with weight zero are ignored.
        order : {1, 2}
            1 for counts and means only.

        Raises
        ------
        InfiniteValueError
            If a covariate holds an infinite value.
        MagnitudeError
            If second moments of a covariate are requested whose squares are out of range, beyond 1e140.
        """
        sums = accumulate(codes, columns, len(levels), names=covariates, weights=weights, order=order)
        tables = {field.name: getattr(sums, field.name) for field in fields(sums)}
        moments = cls(levels, tuple(covariates), **tables)
        return moments if sums.count.all() else moments._where(sums.count > 0)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the moments to a file that holds no code; `GroupMoments.load` reads it back.

        The file is written completely or not at all. Levels keep their types.
        """
        save_record(self, path, "moments", MOMENTS_RECORDS)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> GroupMoments:
        """Read what `save` wrote.

        Nothing in the file is executed.

        Raises
        ------
        EncoderFileError
            If the file is truncated, damaged, or holds something else.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "monday.moments"
        ...     GroupMoments.from_rows(["north", "south"], [[1.0], [5.0]]).save(path)
        ...     GroupMoments.load(path).levels.tolist()
        ['north', 'south']
        """
        return load_record(path, "moments", GroupMoments, MOMENTS_RECORDS)

    def check(self) -> None:
        """Raise `ValueError` if the tables do not belong together, as in a file that somebody changed."""
        tables = {name: getattr(self, name) for name in (*_LEVEL_TABLES, "squares", "scatter")}
        second = {name: tables.pop(name) for name in SecondMoments._fields}
        if len({table is None for table in second.values()}) > 1:
            raise ValueError("only some of the second moments")
        tables |= {name: table for name, table in second.items() if table is not None}
        if tables.pop("count").dtype != np.int64 or any(t.dtype != np.float64 for t in tables.values()):
            raise ValueError("tables of another type")
        if (self.count < 1).any() or not (np.isfinite(self.weight) & (self.weight > 0)).all():
            raise ValueError("levels without rows")
        if not (np.isfinite(self.observed) & (self.observed >= 0)).all():
            raise ValueError("weights out of range")
        if not np.array_equal(np.isfinite(self.mean), self.observed > 0):
            raise ValueError("means of no rows, or rows without a mean")
        for name, table in second.items() if self.order == 2 else ():
            negative = name in ("squares", "complete_weight") and (table < 0).any()
            if negative or not np.isfinite(table).all():
                raise ValueError("second moments out of range")
        if not np.array_equal(level_order(self.levels.tolist()), np.arange(self.n_levels)):
            raise ValueError("levels in another order")
        if len(set(self.covariates)) < len(self.covariates):
            raise ValueError("a covariate twice")
        if self.target is not None:
            self.target.check()
            if self.target.n_columns > len(self.covariates):
                raise ValueError("a target without its covariates")

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @property
    def order(self) -> Literal[1, 2]:
        """2 if second moments are held, else 1."""
        return 1 if self.scatter is None else 2

    def of_order(self, order: Literal[1, 2]) -> Self:
        """The same moments; with 1, without the second ones."""
        if order == self.order:
            return self
        if order == 2:
            self.require_order_two()
        return replace(self, squares=None, complete_weight=None, complete_mean=None, scatter=None)

    def without_levels(self) -> Self:
        """The same covariates, without any row: moments that can be added to these can be added to it."""
        return self._where(np.zeros(self.n_levels, dtype=bool))

    @property
    def total_weight(self) -> float:
        """Total weight of all rows."""
        return float(self.weight.sum())

    def overall_mean(self) -> Floats:
        """Mean of each covariate over all its observed rows, 0 for one that is null everywhere; (p,)."""
        known = self.observed > 0
        power = exponents(np.where(known, np.abs(self.mean), 0.0).max(axis=0, initial=0.0))
        scaled = np.where(known, np.ldexp(self.mean, -power), 0.0)
        center = ratio((self.observed * scaled).sum(axis=0), self.observed.sum(axis=0))
        return unscaled(center, power)

    def filled_mean(self) -> Floats:
        """``mean`` with the overall mean where a level has no value of a covariate; (n_levels, p)."""
        filled: Floats = np.where(self.observed > 0, self.mean, self.overall_mean())
        return filled

    def require_order_two(self) -> SecondMoments:
        """Return the tables of order 2, or raise an error if they are missing."""
        tables = (self.squares, self.complete_weight, self.complete_mean, self.scatter)
        if any(table is None for table in tables):
            raise MomentsMismatchError(
                "Second moments were requested from moments of order 1.", "build them with order=2."
            )
        return SecondMoments(*tables)  # type: ignore[arg-type]

    def leave_one_out(self, codes: Codes, columns: Columns, weights: Floats | None = None) -> Floats:
        """Mean of each row's level without the row itself.

        Parameters
        ----------
        codes : ndarray of int, shape (n,)
            Position of each row's level in ``levels``, −1 for rows without a level.
        columns : sequence of ndarray, each of shape (n,)
            The covariates of rows that are part of these moments.
        weights : ndarray, shape (n,), optional
            Their weights.

        Returns
        -------
        ndarray, shape (n, n_covariates)
            NaN where no other row of the level has the covariate, and where there is no level.
        """
        return self.without_each(codes, columns, weights).mean

    def without_each(self, codes: Codes, columns: Columns, weights: Floats | None = None) -> LevelsWithout:
        """Mean and weight of each row's level without the row itself; see `leave_one_out`."""
        own = np.ones(len(codes)) if weights is None else weights
        there = codes >= 0
        all_here = self._count(codes[there & (own > 0)]) == self.count
        mean, observed = np.empty((2, len(codes), len(self.covariates)))
        for j, column in enumerate(columns):
            weight = np.where(np.isnan(column) | ~there, 0.0, own)
            whole = np.where(there, self.observed[codes, j], 0.0)
            rest = remainder(whole, weight)
            left = _mean_without(self.mean[codes, j], column, weight, rest)
            # A row with most of the weight leaves rounding errors of its own size. It is rare, and the others
            # are summed instead, if they are known (test_a_heavy_row_leaves_the_light_ones).
            heavy = (weight > 0.5 * whole) & all_here[codes] & (weights is not None)
            if heavy.any():
                others = self._sums_without(np.where(heavy, -1, codes), column, own)
                rest[heavy] = others.observed[codes[heavy], 0]
                left[heavy] = others.mean[codes[heavy], 0]
            mean[:, j], observed[:, j] = np.where(rest > 0, left, np.nan), rest
        return LevelsWithout(mean, observed)

    def _count(self, codes: Codes) -> Codes:
        """Number of rows by level."""
        return np.bincount(codes, minlength=self.n_levels)

    def _sums_without(self, codes: Codes, column: Array, weights: Floats) -> Sums:
        return accumulate(codes, [column], self.n_levels, names=[""], weights=weights, order=1)

    def pool(self, rare: Mask, level: Any) -> Self:
        """Merge the levels marked in ``rare`` (n_levels,) into one called ``level``, which comes last."""
        if not rare.any():
            return self
        common, pooled = self._where(~rare), _pool(self._where(rare), level)
        tables: dict[str, Any] = {
            name: np.concatenate([getattr(common, name), getattr(pooled, name)])
            for name in _LEVEL_TABLES
            if getattr(self, name) is not None
        }
        levels = as_levels([*common.levels, level])
        return replace(self, levels=levels, squares=pooled.squares, scatter=pooled.scatter, **tables)

    def expand(self, covariates: Sequence[str]) -> Self:
        """Add covariates that were 0 in every row so far; ``covariates`` names all, in their new order."""
        old = [covariates.index(name) for name in self.covariates]

        def widen(table: Floats, fill: Floats | float = 0.0) -> Floats:
            wide = np.broadcast_to(fill, (self.n_levels, len(covariates))).copy()
            wide[:, old] = table
            return wide

        wider = replace(
            self,
            covariates=tuple(covariates),
            observed=widen(self.observed, self.weight[:, None]),
            mean=widen(self.mean),
        )
        if self.order == 1:
            return wider
        second = self.require_order_two()
        scatter, squares = np.zeros((len(covariates), len(covariates))), np.zeros(len(covariates))
        scatter[np.ix_(old, old)], squares[old] = second.scatter, second.squares
        return replace(wider, squares=squares, complete_mean=widen(second.complete_mean), scatter=scatter)

    def select(self, positions: Sequence[int]) -> Self:
        """Keep only some covariates; complete rows stay those that are complete in all."""
        chosen = list(positions)
        n_targets = 0 if self.target is None else self.target.n_columns
        targets = list(range(len(self.covariates)))[len(self.covariates) - n_targets :]
        part = replace(
            self,
            target=self.target if chosen[len(chosen) - n_targets :] == targets else None,
            covariates=tuple(self.covariates[j] for j in chosen),
            observed=self.observed[:, chosen],
            mean=self.mean[:, chosen],
        )
        if self.order == 1:
            return part
        second = self.require_order_two()
        return replace(
            part,
            squares=second.squares[chosen],
            complete_mean=second.complete_mean[:, chosen],
            scatter=second.scatter[np.ix_(chosen, chosen)],
        )

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, GroupMoments):
            return NotImplemented
        self, other = _with_all_classes(self, other)
        self._check_compatible(other)
        levels, union = unite(self.levels, other.levels)
        merged: Self = _merge(self, other, levels, union)
        return merged

    def __sub__(self, other: Self) -> Self:
        if not isinstance(other, GroupMoments):
            return NotImplemented
        self, other = _with_all_classes(self, other)
        self._check_compatible(other)
        rows: Codes = np.arange(self.n_levels)
        if not np.array_equal(self.levels, other.levels):
            rows = positions_in(self.levels, other.levels)
        fewer, lighter = self.count[rows] < other.count, self.weight[rows] < (1 - 1e-9) * other.weight
        if (rows < 0).any() or fewer.any() or lighter.any():
            raise MomentsMismatchError(
                "The moments to subtract contain rows that are not part of the others.",
                "subtract the moments of a part of the rows from those of all of them.",
            )
        changed = _difference(self._map_levels(lambda table: table[rows], other.levels), other)
        tables: dict[str, Any] = {
            name: _replace_rows(getattr(self, name), rows, getattr(changed, name))
            for name in _LEVEL_TABLES
            if getattr(self, name) is not None
        }
        rest: Self = replace(self, squares=changed.squares, scatter=changed.scatter, **tables)
        return rest._where(rest.count > 0)

    def _where(self, keep: Mask) -> Self:
        """Keep only the levels marked in ``keep`` (n_levels,); the others must be empty."""
        return self._map_levels(lambda table: table[keep], self.levels[keep])

    def _map_levels(self, change: Callable[[Array], Array], levels: Levels) -> Self:
        """Apply ``change`` to every table that has a row for each level."""
        tables = {name: getattr(self, name) for name in _LEVEL_TABLES}
        changed: dict[str, Any] = {name: change(table) for name, table in tables.items() if table is not None}
        return replace(self, levels=levels, **changed)

    def _check_compatible(self, other: Self) -> None:
        if self.group and other.group and self.group != other.group:
            raise MomentsMismatchError(
                f"Moments of the levels of {':'.join(self.group)!r} cannot be combined with those of "
                f"{':'.join(other.group)!r}.",
                "combine moments of the same group.",
            )
        if self.target and other.target and self.target != other.target:
            raise MomentsMismatchError(
                f"The target {self.target.name!r} is {self.target.kind}, and in the other moments "
                f"{other.target.name!r} is {other.target.kind}.",
                "build both with the same target, and say what it is: target_type='continuous', 'binary' or "
                "'multiclass'.",
            )
        if self.covariates != other.covariates or self.order != other.order:
            raise MomentsMismatchError(
                f"Moments of {self._description()} cannot be combined with moments of "
                f"{other._description()}.",
                "build both from the same covariates, in the same order, with the same `order`.",
            )

    def _description(self) -> str:
        return f"order {self.order} of covariates {', '.join(self.covariates) or '(none)'}"


# The records in a file of moments; `sufrep._packing.Records` says what the words mean.
MOMENTS_RECORDS: dict[type, Mapping[str, str]] = {
    GroupMoments: {
        "levels": "levels n",
        "covariates": "texts p",
        "count": "integers n",
        "weight": "numbers n",
        "observed": "numbers n p",
        "mean": "numbers n p",
        "squares": "numbers? p",
        "complete_weight": "numbers? n",
        "complete_mean": "numbers? n p",
        "scatter": "numbers? p p",
        "group": "texts g",
        "target": "MomentsTarget?",
    },
    MomentsTarget: {"name": "text", "kind": "text", "classes": "texts c"},
}


def label_order(label: str) -> tuple[float, str]:
    """Sort key of the labels of classes and indicators: numbers by size, then the others."""
    try:
        size = float(label)
    except ValueError:
        size = math.inf
    return math.inf if math.isnan(size) else size, label


def _with_all_classes(left: Any, right: Any) -> tuple[Any, Any]:
    """The same moments, with indicators of the classes of the target that only the other one has.

    A class that no row has is an indicator that is 0 in every row.
    """
    both = [part.target for part in (left, right) if part.target is not None and part.target.classes]
    if len(both) < 2 or both[0].classes == both[1].classes or both[0].name != both[1].name:
        return left, right
    classes = tuple(sorted({*both[0].classes, *both[1].classes}, key=label_order))
    kind = max((target.kind for target in both), key=("binary", "multiclass").index)
    if kind == "binary" and len(classes) > 2:
        raise MomentsMismatchError(
            f"The target {both[0].name!r} is binary, but both moments together have {len(classes)} classes: "
            f"{', '.join(classes[:5])}.",
            "build both with target_type='multiclass'.",
        )
    return _with_classes(left, kind, classes), _with_classes(right, kind, classes)


def _with_classes(part: Any, kind: str, classes: tuple[str, ...]) -> Any:
    """Moments whose target has these classes."""
    known = part.target.classes
    others = part.covariates[: len(part.covariates) - len(known)]
    start = part.covariates[-1].removesuffix(known[-1])
    wider = part.expand([*others, *(f"{start}{label}" for label in classes)])
    return replace(wider, target=replace(part.target, kind=kind, classes=classes))


_LEVEL_TABLES = ("count", "weight", "observed", "mean", "complete_weight", "complete_mean")


def _replace_rows(table: Array, rows: Codes, new: Array) -> Array:
    """A copy of a table with some of its rows replaced."""
    found = table.copy()
    found[rows] = new
    return found


def _merge(left: GroupMoments, right: GroupMoments, levels: Levels, union: Union) -> Any:
    """Moments of the rows of both parts."""

    def total(name: str) -> Array:
        return union.total(getattr(left, name), getattr(right, name))

    observed, means = (left.observed, right.observed), (left.mean, right.mean)
    merged = replace(
        left,
        levels=levels,
        count=total("count"),
        weight=total("weight"),
        observed=total("observed"),
        group=left.group or right.group,
        target=left.target or right.target,
    )
    if merged.order == 1:
        return replace(merged, mean=merge_means(union, observed, means).mean)
    first, second = left.require_order_two(), right.require_order_two()
    complete_means = (first.complete_mean, second.complete_mean)
    weights = (_column(first.complete_weight), _column(second.complete_weight))
    cells = merge_means(union, observed, means, sum_squares)
    complete = merge_means(union, weights, complete_means, sum_products)
    return replace(
        merged,
        mean=cells.mean,
        squares=first.squares + second.squares + cells.between,
        complete_weight=total("complete_weight"),
        complete_mean=complete.mean,
        scatter=first.scatter + second.scatter + complete.between,
    )


def _pool(parts: GroupMoments, level: Any) -> GroupMoments:
    """Merge all levels into one."""
    cells = pool_means(parts.observed[:, None], parts.mean[:, None])
    pooled = replace(
        parts,
        levels=as_levels([level]),
        count=parts.count.sum(keepdims=True),
        weight=parts.weight.sum(keepdims=True),
        observed=cells.weight,
        mean=np.where(cells.weight > 0, cells.mean, np.nan),
    )
    if parts.order == 1:
        return pooled
    second = parts.require_order_two()
    weight = np.broadcast_to(_column(second.complete_weight), second.complete_mean.shape)
    complete = pool_means(weight[:, None], second.complete_mean[:, None])
    return replace(
        pooled,
        squares=second.squares + sum_squares(parts.observed, cells.between[:, 0]),
        complete_weight=second.complete_weight.sum(keepdims=True),
        complete_mean=complete.mean,
        scatter=second.scatter + sum_products(weight, complete.between[:, 0]),
    )


def _difference(whole: Any, part: GroupMoments) -> Any:
    """Moments of the rows of ``whole`` that are not in ``part``; both have the same levels."""
    observed, means = (whole.observed, part.observed), (whole.mean, part.mean)
    rest = replace(
        whole,
        count=whole.count - part.count,
        weight=remainder(whole.weight, part.weight),
        observed=remainder(*observed),
    )
    if whole.order == 1:
        return replace(rest, mean=remove_means(observed, means, np.nan).mean)
    more, less = whole.require_order_two(), part.require_order_two()
    complete_means = (more.complete_mean, less.complete_mean)
    weights = (_column(more.complete_weight), _column(less.complete_weight))
    cells = remove_means(observed, means, np.nan, sum_squares)
    complete = remove_means(weights, complete_means, 0.0, sum_products)
    return replace(
        rest,
        mean=cells.mean,
        squares=np.maximum(more.squares - less.squares - cells.between, 0.0),
        complete_weight=remainder(more.complete_weight, less.complete_weight),
        complete_mean=complete.mean,
        scatter=more.scatter - less.scatter - complete.between,
    )


def _mean_without(mean: Floats, values: Array, weight: Floats, rest: Floats) -> Floats:
    """Means of levels without one of their rows, of the given value and weight, 0 for a null; (n,)."""
    # The mean moves away from the row by the row's share of what is left. Quarters cannot overflow, and a row
    # without weight may hold anything, infinity included.
    apart = np.where(weight > 0, mean / 4 - np.asarray(values, dtype=np.float64) / 4, 0.0)
    return unscaled(mean / 4 + apart * ratio(weight, rest), 2)


def _column(weight: Floats) -> Floats:
    """One weight per level, (n_levels,), as a column (n_levels, 1)."""
    return weight[:, None]
