"""Group moments: all that most encoders need to know about the data."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from sufrep._accumulate import accumulate, exponents, ratio, remainder, unscaled
from sufrep.errors import LengthMismatchError, MomentsMismatchError, SampleWeightError
from sufrep.representation import as_levels, is_null, level_positions, sort_levels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
        common = np.flatnonzero(~rare)
        assignment = np.full(self.n_levels, len(common))
        assignment[common] = np.arange(len(common))
        merged: Self = _merge([self], assignment, as_levels([*self.levels[common], level]))
        return merged

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
        part = replace(
            self,
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
        self._check_compatible(other)
        levels = self.levels
        if not np.array_equal(levels, other.levels):
            levels = sort_levels({*self.levels.tolist(), *other.levels.tolist()})
        assignment = np.concatenate([_positions(levels, self.levels), _positions(levels, other.levels)])
        merged: Self = _merge([self, other], assignment, levels)
        return merged

    def __sub__(self, other: Self) -> Self:
        if not isinstance(other, GroupMoments):
            return NotImplemented
        self._check_compatible(other)
        rows = _positions(self.levels, other.levels)
        fewer, lighter = self.count[rows] < other.count, self.weight[rows] < (1 - 1e-9) * other.weight
        if (rows < 0).any() or fewer.any() or lighter.any():
            raise MomentsMismatchError(
                "The moments to subtract contain rows that are not part of the others.",
                "subtract the moments of a part of the rows from those of all of them.",
            )
        part = other._map_levels(lambda table: _scatter_rows(table, rows, self.n_levels), self.levels)
        rest: Self = _difference(self, part)
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
        if self.covariates != other.covariates or self.order != other.order:
            raise MomentsMismatchError(
                f"Moments of {self._description()} cannot be combined with moments of "
                f"{other._description()}.",
                "build both from the same covariates, in the same order, with the same `order`.",
            )

    def _description(self) -> str:
        return f"order {self.order} of covariates {', '.join(self.covariates) or '(none)'}"


_LEVEL_TABLES = ("count", "weight", "observed", "mean", "complete_weight", "complete_mean")


def _positions(levels: Levels, some: Levels) -> Codes:
    """Position of each of ``some`` in ``levels``, −1 for those that are not there."""
    if levels is some:
        return np.arange(len(levels))
    position = level_positions(levels)
    # The loop is in C: cross-fitting looks up all levels once for each fold.
    return np.fromiter(map(position.get, some.tolist(), repeat(-1)), dtype=np.intp, count=len(some))


def _scatter_rows(table: Array, rows: Codes, n_levels: int) -> Array:
    """Put row i of ``table`` at position ``rows[i]`` of a table of zeros."""
    wide = np.zeros((n_levels, *table.shape[1:]), dtype=table.dtype)
    wide[rows] = table
    return wide


# Chan, Golub and LeVeque's update, in both directions. All tables are (n_levels, n_columns). Differences of
# means are averaged, not the means themselves, which keeps the digits of values far from zero
# (test_merged_moments_far_from_zero).


def _merge(parts: Sequence[GroupMoments], assignment: Codes, levels: Levels) -> Any:
    """Stack the levels of all parts, and pool those that ``assignment`` sends to the same of ``levels``."""

    def stacked(name: str) -> Array:
        return np.concatenate([getattr(part, name) for part in parts])

    def total(table: Array) -> Array:
        return _sum_by(assignment, table, len(levels))

    observed = stacked("observed")
    cells = _pool_means(assignment, len(levels), observed, stacked("mean"))
    merged = replace(
        parts[0],
        levels=levels,
        count=total(stacked("count")),
        weight=total(stacked("weight")),
        observed=cells.weight,
        mean=np.where(cells.weight > 0, cells.mean, np.nan),
    )
    if merged.order == 1:
        return merged
    second = [part.require_order_two() for part in parts]
    complete_mean = stacked("complete_mean")
    weight = _repeat_columns(stacked("complete_weight"), complete_mean)
    complete = _pool_means(assignment, len(levels), weight, complete_mean)
    return replace(
        merged,
        squares=sum(part.squares for part in second) + (observed * cells.between**2).sum(axis=0),
        complete_weight=total(stacked("complete_weight")),
        complete_mean=complete.mean,
        scatter=sum(part.scatter for part in second) + (complete.between * weight).T @ complete.between,
    )


def _difference(whole: Any, part: GroupMoments) -> Any:
    """Moments of the rows of ``whole`` that are not in ``part``; both have the same levels."""
    cells = _remove_part(whole.observed, whole.mean, part.observed, part.mean)
    rest = replace(
        whole,
        count=whole.count - part.count,
        weight=remainder(whole.weight, part.weight),
        observed=cells.weight,
        mean=np.where(cells.weight > 0, cells.mean, np.nan),
    )
    if whole.order == 1:
        return rest
    more, less = whole.require_order_two(), part.require_order_two()
    complete = _remove_part(
        _repeat_columns(more.complete_weight, more.complete_mean),
        more.complete_mean,
        _repeat_columns(less.complete_weight, less.complete_mean),
        less.complete_mean,
    )
    between = (cells.factor * cells.between**2).sum(axis=0)
    return replace(
        rest,
        squares=np.maximum(more.squares - less.squares - between, 0.0),
        complete_weight=remainder(more.complete_weight, less.complete_weight),
        complete_mean=complete.mean,
        scatter=more.scatter - less.scatter - (complete.between * complete.factor).T @ complete.between,
    )


class _PooledMeans(NamedTuple):
    """Several means merged into one."""

    weight: Floats
    mean: Floats
    between: Floats  # difference of each given mean from the one it was merged into, in the order given


class _RemainingMeans(NamedTuple):
    """Means of what is left after a part was removed."""

    weight: Floats
    mean: Floats
    between: Floats  # difference of the whole from the part that was removed
    factor: Floats  # multiplies the square of `between` to give the sum of squares between the two parts


def _pool_means(assignment: Codes, n_levels: int, weight: Floats, mean: Floats) -> _PooledMeans:
    """Pool means, of weight zero where there is none, by the level that each row is assigned to."""
    usable = weight > 0
    largest = np.zeros((n_levels, mean.shape[1]))
    np.maximum.at(largest, assignment, np.where(usable, np.abs(mean), 0.0))
    power = exponents(largest)
    mean = np.ldexp(mean, -power[assignment])
    pivot = np.zeros((n_levels, mean.shape[1]))
    rows, columns = np.nonzero(usable)
    pivot[assignment[rows], columns] = mean[rows, columns]
    apart = np.where(usable, mean - pivot[assignment], 0.0)
    total = _sum_by(assignment, weight, n_levels)
    shift = ratio(_sum_by(assignment, weight * apart, n_levels), total)
    between = np.where(usable, apart - shift[assignment], 0.0)
    return _PooledMeans(total, unscaled(pivot + shift, power), unscaled(between, power[assignment]))


def _remove_part(weight: Floats, mean: Floats, part_weight: Floats, part_mean: Floats) -> _RemainingMeans:
    """Weight and mean of what is left of a whole when a part of it is removed."""
    rest = remainder(weight, part_weight)
    both = (part_weight > 0) & (weight > 0)
    power = exponents(np.where(both, np.maximum(np.abs(mean), np.abs(part_mean)), 0.0))
    scaled = np.ldexp(mean, -power)
    between = np.where(both, scaled - np.ldexp(part_mean, -power), 0.0)
    moved = unscaled(scaled + between * ratio(part_weight, rest), power)
    return _RemainingMeans(
        rest,
        np.where(rest > 0, moved, 0.0),
        unscaled(between, power),
        weight * ratio(part_weight, rest),
    )


def _mean_without(mean: Floats, values: Array, weight: Floats, rest: Floats) -> Floats:
    """Means of levels without one of their rows, of the given value and weight, 0 for a null; (n,)."""
    # The mean moves away from the row by the row's share of what is left. Quarters cannot overflow, and a row
    # without weight may hold anything, infinity included.
    apart = np.where(weight > 0, mean / 4 - np.asarray(values, dtype=np.float64) / 4, 0.0)
    return unscaled(mean / 4 + apart * ratio(weight, rest), 2)


def _sum_by(assignment: Codes, table: Array, n_levels: int) -> Array:
    """Sum the rows of ``table`` that are assigned to the same level."""
    total = np.zeros((n_levels, *table.shape[1:]), dtype=table.dtype)
    np.add.at(total, assignment, table)
    return total


def _repeat_columns(weight: Floats, like: Floats) -> Floats:
    """Repeat one weight per level (n_levels,) for every column of ``like`` (n_levels, n_columns)."""
    return np.repeat(weight[:, None], like.shape[1], axis=1)
