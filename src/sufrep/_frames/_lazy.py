"""Tables that an engine holds: lazy polars, DuckDB, Spark, Dask and Ibis.

Moments are group-bys whose small result comes home, and encoding is a join with a small table. The rows stay
where they are, and their order is not kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np

from sufrep._frames._aggregate import (
    LevelSums,
    Selection,
    join_small,
    sum_by_level,
    sum_second_moments,
    sum_squares_along,
)
from sufrep._frames._eager import factorize_objects
from sufrep._frames._keys import Key, zero_or_one
from sufrep._frames._upload import collect, engine_of, engine_step, refuse_old_narwhals
from sufrep.errors import (
    InfiniteValueError,
    LazyOutputError,
    MagnitudeError,
    MissingLevelError,
    NotNumericError,
    RowsNeededError,
    SampleWeightError,
)
from sufrep.moments import GroupMoments
from sufrep.representation import as_levels, level_positions, sort_levels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sufrep._arrays import Array, Floats, Levels
    from sufrep._frames._table import Factor, Kind

# New columns above which a query would stall the planners.
MOST_NEW_COLUMNS = 1_000
_ENCODING = "encoding the rows"


@dataclass(frozen=True, slots=True, eq=False)
class LazyFactor:
    """A group of a lazy table: the keys that make its levels, and whether null is (part of) a level."""

    keys: tuple[Key, ...]
    keeps_null: bool


@dataclass(frozen=True, slots=True, eq=False)
class LevelLookup:
    """New columns as a table of levels, or of levels and folds, to be joined to the rows.

    Parameters
    ----------
    group : LazyFactor
    levels : ndarray of object, shape (n,)
    values : ndarray, shape (n, n_columns)
    prior : ndarray, shape (n_columns,) or (n_folds, n_columns)
        What all other rows get, by fold if there are any.
    names : tuple of str
        Names of the columns.
    fold : Key or None
        The column of the folds that the values are for.
    folds : sequence, length n
        The fold of each row of ``values``, one fold after another.
    """

    group: Any
    levels: Levels
    values: Array
    prior: Floats
    names: tuple[str, ...] = ()
    fold: Key | None = None
    folds: Sequence[Any] = ()


@dataclass(frozen=True, slots=True, eq=False)
class LazyTable:
    """A lazy frame; what is read of it are descriptions, which `moments` and `encode` turn into queries.

    Parameters
    ----------
    frame : LazyFrame
    names : tuple of str
        Its columns, without the target, the weights and the folds.
    dtypes : tuple of DType
    """

    frame: nw.LazyFrame[Any]
    names: tuple[str, ...]
    dtypes: tuple[nw.dtypes.DType, ...]

    @classmethod
    def from_native(cls, X: Any) -> LazyTable:
        """Wrap a lazy frame."""
        refuse_old_narwhals()
        frame = nw.from_native(X)
        with engine_step(engine_of(frame), "reading the schema"):
            schema = frame.collect_schema()
        return cls(frame, tuple(schema), tuple(schema.values()))

    def without(self, columns: Iterable[str]) -> LazyTable:
        """The same table, some of whose columns have another role."""
        some = set(columns)
        kept = [position for position, name in enumerate(self.names) if name not in some]
        return replace(
            self,
            names=tuple(self.names[position] for position in kept),
            dtypes=tuple(self.dtypes[position] for position in kept),
        )

    @property
    def free_order(self) -> Literal[1, 2]:
        """1: squares need another pass over the rows."""
        return 1

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return engine_of(self.frame)

    @property
    def library(self) -> str:
        """Name of the library."""
        return str(self.frame.implementation)

    def kind(self, position: int) -> Kind:
        """Return whether a column holds numbers (booleans too), text (categories too) or something else."""
        dtype = self.dtypes[position]
        if dtype.is_numeric() or dtype == nw.Boolean:
            return "numeric"
        return "text" if dtype in (nw.String, nw.Categorical, nw.Enum) else "other"

    def dtype(self, position: int) -> str:
        """Return the name of a column's type."""
        return str(self.dtypes[position])

    def is_categorical(self, position: int) -> bool:
        """Return whether a text column has the type of categories, not of strings."""
        return self.dtypes[position] in (nw.Categorical, nw.Enum)

    def numbers(self, position: int) -> nw.Expr:
        """Return a numeric column as an expression."""
        if self.kind(position) != "numeric":
            raise NotNumericError(self.names[position], self.dtype(position))
        return as_float(nw.col(self.names[position]), self.dtypes[position])

    def key(self, position: int) -> Key:
        """Return a column whose values are levels."""
        return Key.of(self.names[position], self.dtypes[position], widen=self.engine != "Dask")

    def levels(self, position: int, most: int) -> Levels | None:
        """Return the levels of a column, without null; None if there are more than ``most``."""
        found = [level for level in self.distinct(self.key(position), most + 2) if level is not None]
        return sort_levels(found) if len(found) <= most else None

    def indicators(self, position: int) -> tuple[Levels, list[nw.Expr]]:
        """Return the levels of a column, null last if there is any, and for each whether a row has it."""
        key = self.key(position)
        levels = sort_levels(self.distinct(key))
        return levels, [self.indicator(key, level) for level in levels]

    def distinct(self, key: Key, most: int | None = None) -> list[Any]:
        """Return the distinct values of a column, null included; if there are many, some of them."""
        query = self.frame.select(key.expression.alias("k")).unique()
        home = collect(query if most is None else query.head(most), "finding the levels")
        return key.levels(home["k"].to_list())

    def as_number(self, key: Key) -> nw.Expr:
        """Return a column of numbers or booleans as an expression; NaN is null."""
        if key.kind == "boolean":
            return zero_or_one(key.expression)
        return key.expression.cast(nw.Float64)

    def indicator(self, key: Key, level: Any) -> nw.Expr:
        """Return 1 where a column has a level, or is null if that is the level, else 0."""
        if level is None:
            return zero_or_one(key.expression.is_null())
        return zero_or_one((key.expression == key.value(level)).fill_null(False))

    def count_unusable(self, key: Key) -> int:
        """Return the number of rows in which a column of numbers is null, NaN or infinite."""
        number = self.as_number(key)
        unusable = zero_or_one(number.is_null() | ~number.is_finite()).alias("n")
        home = collect(self.frame.select(unusable).select(nw.col("n").sum()), "checking the target")
        return int(home["n"].to_list()[0] or 0)

    def possible(self, group: LazyFactor, levels: Levels) -> list[int]:
        """Return the positions of the levels that can occur in the columns of a group."""
        return possible(group.keys, levels)[1]

    def constant(self, value: float | None) -> nw.Expr:
        """Return a column of one number, or of nulls."""
        return nw.lit(value, nw.Float64)

    @property
    def n_rows(self) -> int:
        """Unknown: whatever asks for it needs rows."""
        raise self._no_rows()

    def times(self, _position: int) -> Floats | None:
        """Unknown: whatever asks for them needs rows."""
        raise self._no_rows()

    def factorize(self, _position: int) -> Factor:
        """Unknown: whatever asks for it needs rows."""
        raise self._no_rows()

    def _no_rows(self) -> RowsNeededError:
        return RowsNeededError("This needs rows in memory, and {frame}.", "{collect} first.")

    def group(self, columns: Sequence[int], missing: str) -> LazyFactor:
        """Return a group that is made of some columns; nulls are counted if they are an error."""
        keys = tuple(self.key(column) for column in columns)
        if missing == "error":
            wanted = [zero_or_one(key.expression.is_null()).alias(f"n{i}") for i, key in enumerate(keys)]
            nulls = collect(self.frame.select(*wanted).select(nw.all().sum()), "counting nulls")
            for number, key in enumerate(keys):
                if n_nulls := int(nulls[f"n{number}"].to_list()[0] or 0):
                    raise MissingLevelError(key.name, n_nulls)
        return LazyFactor(keys, missing == "level")

    def moments(
        self,
        group: Any,
        covariates: Sequence[Any],
        *,
        names: Sequence[str],
        weights: Any,
        order: Literal[1, 2],
        other_than: Levels | None = None,
    ) -> GroupMoments:
        """Return the moments of the covariates within the levels of a group.

        With ``other_than``, only of levels that are not among these.
        """
        selected = self._select(group.keys, covariates, weights, keeps_null=group.keeps_null)
        if other_than is not None:
            selected = _without_levels(selected, group, other_than)
        found = _collect_moments(selected, names, order, by_fold=False)
        if found:
            return found[0][1]
        nothing = [np.empty(0) for _ in names]
        no_codes = np.empty(0, dtype=np.intp)
        return GroupMoments.from_columns(no_codes, nothing, as_levels([]), covariates=names, order=order)

    def moments_by_fold(
        self,
        group: Any,
        fold: Key,
        covariates: Sequence[Any],
        *,
        names: Sequence[str],
        weights: Any,
        order: Literal[1, 2],
    ) -> list[tuple[Any, GroupMoments]]:
        """Return each fold and the moments of its rows, from the same queries."""
        keys = (*group.keys, fold)
        selected = self._select(keys, covariates, weights, keeps_null=group.keeps_null)
        found = _collect_moments(selected, names, order, by_fold=True)
        return sorted(found, key=lambda pair: (pair[0] is None, pair[0]))

    def total_weight(self, weights: Any) -> float:
        """Return the sum of the weights, or the number of rows."""
        query = self.frame.select(nw.len() if weights is None else weights.alias("w").sum())
        found = collect(query, "counting the rows")
        return float(next(iter(found.values())).to_list()[0] or 0)

    def squares_along(
        self,
        group: Any,
        covariates: Sequence[Any],
        moments: GroupMoments,
        directions: Floats,
        *,
        weights: Any,
    ) -> Floats:
        """Return sums of squares by level of ``moments`` along a direction for each, from its mean.

        Parameters
        ----------
        group : LazyFactor
        covariates : sequence of Expr
        moments : GroupMoments
            Of these rows.
        directions : ndarray, shape (n_levels, p)
        weights : Expr or None

        Returns
        -------
        ndarray, shape (n_levels,)
        """
        parts, rows = possible(group.keys, moments.levels)
        total = np.zeros(moments.n_levels)
        if not rows:
            return total
        selected = self._select(group.keys, covariates, weights, keeps_null=group.keeps_null)
        centers = np.nan_to_num(moments.mean[rows])
        found, squares = sum_squares_along(selected, parts, centers, directions[rows])
        place = level_positions(moments.levels)
        levels = found[0] if len(found) == 1 else list(zip(*found, strict=True))
        total[[place[level] for level in levels]] = squares
        return total

    def pairs(
        self, below: Any, above: Any, weights: Any, *, group: Any = None, other_than: Levels | None = None
    ) -> tuple[Factor, Factor, Floats]:
        """Return the pairs of levels of two groups that rows have, one entry each, and their weights.

        With ``other_than``, only of the rows whose level of ``group`` is not among these.
        """
        keys = (*below.keys, *above.keys)
        if other_than is None:
            selected = self._select(keys, (), weights, keeps_null=True)
        else:  # the keys of the group come first, and are left out when they have served
            n_own = len(group.keys)
            selected = self._select((*group.keys, *keys), (), weights, keeps_null=True)
            frame = _without_levels(selected, group, other_than).frame
            own = [nw.col(f"k{n_own + number}").alias(f"k{number}") for number in range(len(keys))]
            weight = [] if weights is None else ["w"]
            selected = replace(selected, frame=frame.select(*own, *weight), keys=keys)
        found, _ = sum_by_level(selected)
        first, second = found.keys[: len(below.keys)], found.keys[len(below.keys) :]
        return _factor(first), _factor(second), found.weight

    def unknown_levels(self, group: LazyFactor, known: Levels, most: int) -> list[Any]:
        """Return at most so many of the levels that are not known; null only if it may be a level."""
        selected = self._select(group.keys, (), None, keeps_null=group.keeps_null)
        some = _without_levels(selected, group, known, keep_null=group.keeps_null).frame.unique().head(most)
        home = collect(some, "looking for new levels")
        parts = [key.levels(home[f"k{j}"].to_list()) for j, key in enumerate(group.keys)]
        return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))

    def encode(self, keep: Sequence[int], lookups: Sequence[LevelLookup], container: str) -> Any:
        """Return a lazy frame of the kept columns, as they are, followed by the new ones."""
        if container != "default":
            raise LazyOutputError.of_container(self.engine, container)
        n_new = sum(len(lookup.names) for lookup in lookups)
        if n_new > MOST_NEW_COLUMNS:
            raise LazyOutputError.of_columns(n_new, MOST_NEW_COLUMNS)
        with engine_step(self.engine, _ENCODING):
            kept = [nw.col(self.names[position]) for position in keep]
            new: list[nw.Expr] = []
            frame = self.frame
            for number, lookup in enumerate(lookups):
                frame, columns = _join_lookup(frame, lookup, f"__sufrep {number}")
                new += columns
            return frame.select(*kept, *new).to_native()

    def _select(
        self, keys: Sequence[Key], covariates: Sequence[nw.Expr], weights: nw.Expr | None, *, keeps_null: bool
    ) -> Selection:
        """The rows that count, and of these the columns that moments are made of."""
        wanted = [key.expression.alias(f"k{number}") for number, key in enumerate(keys)]
        wanted += [column.alias(f"v{j}") for j, column in enumerate(covariates)]
        frame = self.frame.select(*wanted, *([] if weights is None else [weights.alias("w")]))
        if weights is not None:
            frame = frame.filter((nw.col("w") != 0.0) | nw.col("w").is_null())
        if not keeps_null:
            for number in range(len(keys)):
                frame = frame.filter(~nw.col(f"k{number}").is_null())
        return Selection(frame, keys, len(covariates), weights is not None)


def as_float(column: nw.Expr, dtype: nw.dtypes.DType) -> nw.Expr:
    """A column of numbers as doubles."""
    if dtype == nw.Boolean:
        return zero_or_one(column)
    return column if dtype == nw.Float64 else column.cast(nw.Float64)


def _factor(keys: list[list[Any]]) -> Factor:
    """Levels and codes of a group, given the values of its keys; null is no level."""
    return factorize_objects("", keys[0] if len(keys) == 1 else list(zip(*keys, strict=True)))


def _without_levels(
    selected: Selection, group: LazyFactor, known: Levels, *, keep_null: bool = False
) -> Selection:
    """The rows whose level is not known. Null alone is no new level; as part of a crossed level it may be."""
    frame = selected.frame
    if len(group.keys) == 1 and not keep_null:
        frame = frame.filter(~nw.col("k0").is_null())
    keys = {f"k{number}": key for number, key in enumerate(group.keys)}
    parts, rows = possible(group.keys, known)
    if len(rows):
        frame = join_small(frame, keys, parts, {}, "looking for new levels", how="anti")
    return replace(selected, frame=frame)


def possible(keys: Sequence[Key], levels: Levels) -> tuple[list[list[Any]], list[int]]:
    """The parts of the levels that can occur in the columns of the keys, and the positions of the levels."""
    rows, combinations = [], []
    for row, level in enumerate(levels.tolist()):
        parts = (level,) if len(keys) == 1 else level
        if isinstance(parts, tuple) and len(parts) == len(keys):
            values = zip(parts, keys, strict=True)
            if all(part is None or key.value(part) is not None for part, key in values):
                rows.append(row)
                combinations.append(parts)
    return [list(part) for part in zip(*combinations, strict=True)] or [[] for _ in keys], rows


def _join_lookup(
    frame: nw.LazyFrame[Any], lookup: LevelLookup, prefix: str
) -> tuple[nw.LazyFrame[Any], list[nw.Expr]]:
    """Join the columns of a look-up; and the expressions that give them to rows."""
    keys, names = lookup.group.keys, lookup.names
    parts, rows = possible(keys, lookup.levels)
    priors: list[Any] = [nw.lit(float(prior)) for prior in np.atleast_2d(lookup.prior)[0]]
    if lookup.fold is not None:
        fold = {f"{prefix} fold": lookup.fold}
        frame = frame.with_columns(lookup.fold.expression.alias(f"{prefix} fold"))
        folds = list(dict.fromkeys(lookup.folds))
        columns = {f"{prefix} prior {j}": lookup.prior[:, j] for j in range(len(names))}
        frame = join_small(frame, fold, [folds], columns, _ENCODING, how="left", prefix=f"{prefix} fold")
        keys, parts = (*keys, lookup.fold), [*parts, [lookup.folds[row] for row in rows]]
        priors = [nw.col(column) for column in columns]
    if not rows or not names:
        return frame, [prior.alias(name) for prior, name in zip(priors, names, strict=True)]
    named = {f"{prefix} key {number}": key for number, key in enumerate(keys)}
    frame = frame.with_columns(*(key.expression.alias(name) for name, key in named.items()))
    columns = {f"{prefix} value {j}": lookup.values[rows, j] for j in range(len(names))}
    joined = join_small(frame, named, parts, columns, _ENCODING, how="left", prefix=prefix)
    filled = [
        nw.coalesce(nw.col(column), prior).alias(name)
        for column, prior, name in zip(columns, priors, names, strict=True)
    ]
    return joined, filled


def _collect_moments(
    selected: Selection, names: Sequence[str], order: Literal[1, 2], *, by_fold: bool
) -> list[tuple[Any, GroupMoments]]:
    """Moments of all rows, or of each fold; none if there are no rows."""
    found, selected = sum_by_level(selected)
    _check_weights(found, is_weighted=selected.is_weighted)
    if not len(found.count):
        return []
    for j in np.flatnonzero(~np.isfinite(found.sums).all(axis=0)).tolist():
        _refuse_infinite(selected, j, names[j])
    tables = {"count": found.count, "weight": found.weight, "observed": found.observed, "mean": found.means}
    pooled: dict[Any, dict[str, Any]] = {}
    if order == 2:
        second = sum_second_moments(selected, found, by_fold=by_fold)
        for name, squares in zip(names, second.squares.T, strict=True):
            if not np.isfinite(squares).all():
                raise MagnitudeError(name, "holds numbers with infinite squares", "beyond 1e140", "divide")
        pooled = {
            fold: {"squares": squares, "scatter": scatter}
            for fold, squares, scatter in zip(second.folds, second.squares, second.scatter, strict=True)
        }
        tables |= {
            "mean": second.mean,
            "complete_weight": second.complete_weight,
            "complete_mean": second.complete_mean,
        }
    return [
        (fold, _moments_of(keys, rows, tables, pooled.get(fold, {}), names))
        for fold, keys, rows in _folds(found, by_fold=by_fold)
    ]


def _folds(found: LevelSums, *, by_fold: bool) -> list[tuple[Any, list[list[Any]], list[int]]]:
    """Each fold, the keys of its levels, and their rows in the sums; one fold, 0, if there are none."""
    if not by_fold:
        return [(0, found.keys, list(range(len(found.count))))]
    rows: dict[Any, list[int]] = {}
    for row, fold in enumerate(found.keys[-1]):
        rows.setdefault(fold, []).append(row)
    return [(fold, [[key[row] for row in own] for key in found.keys[:-1]], own) for fold, own in rows.items()]


def _moments_of(
    keys: list[list[Any]],
    rows: list[int],
    tables: dict[str, Any],
    pooled: dict[str, Any],
    names: Sequence[str],
) -> GroupMoments:
    found = keys[0] if len(keys) == 1 else list(zip(*keys, strict=True))
    levels = sort_levels(found)
    position = level_positions(as_levels(found))
    order = [rows[position[level]] for level in levels.tolist()]
    by_level = {name: table[order] for name, table in tables.items()}
    return GroupMoments(levels, tuple(names), **by_level, **pooled)


def _check_weights(found: LevelSums, *, is_weighted: bool) -> None:
    if found.n_bad_weights.any():
        raise SampleWeightError(f"contains NaN, null or infinity in {int(found.n_bad_weights.sum())} row(s)")
    if (found.lowest_weight < 0).any():
        raise SampleWeightError(f"is negative, as low as {found.lowest_weight.min():.4g}")
    if is_weighted and not len(found.count):
        raise SampleWeightError("is zero in every row")


def _refuse_infinite(selected: Selection, j: int, name: str) -> None:
    """Raise an error for a value whose sum is not finite: it is infinite, or too large to be summed."""
    value = nw.col(f"v{j}")
    query = selected.frame.select(zero_or_one(~value.is_finite()).alias("n")).select(nw.col("n").sum())
    n_infinite = int(collect(query, "counting infinite values")["n"].to_list()[0] or 0)
    if n_infinite:
        raise InfiniteValueError(name, n_infinite)
    raise MagnitudeError(name, "holds numbers whose sum is out of range", "beyond 1e140", "divide")
