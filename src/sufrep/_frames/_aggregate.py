"""Moments as queries: sums by level in one, products of residuals in another.

Sums are plain and by level, so that the rounding of a level is bounded by the size of its own values. (A
pivot that all levels share would lose the digits of the others where one value is huge.) Squares need the
means first: these are joined back, and the products of the residuals are summed over all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import narwhals as nw
import numpy as np

from sufrep._frames._batches import map_batches
from sufrep._frames._keys import Key, not_nan, zero_or_one
from sufrep._frames._upload import SmallColumn, collect, engine_of, upload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sufrep._arrays import Codes, Floats, Mask

_STEP = "collecting the moments"
# Share of the squares that rounding of the means may take.
_NEGLIGIBLE = 1e-11
# Covariates above which products are summed in batches: planners stall at thousands of aggregations.
_MOST_PRODUCTS = {"Spark": 30, "DuckDB": 50}


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The columns of a lazy frame that moments are made of, under names of their own.

    Parameters
    ----------
    frame : LazyFrame
        Columns k0, k1, … (the parts of the level, then the fold if there is one), v0, v1, … (covariates) and
        w (the weight, if there is one).
    keys : sequence of Key
    n_values : int
    is_weighted : bool
    """

    frame: nw.LazyFrame[Any]
    keys: Sequence[Key]
    n_values: int
    is_weighted: bool

    @property
    def key_names(self) -> list[str]:
        """Names of the keys."""
        return [f"k{number}" for number in range(len(self.keys))]

    @property
    def value_names(self) -> list[str]:
        """Names of the values."""
        return [f"v{j}" for j in range(self.n_values)]

    def without_nan(self, columns: Sequence[int]) -> Selection:
        """The same, with null for NaN in some of the values."""
        if not columns:
            return self
        frame = self.frame.with_columns(*(not_nan(nw.col(f"v{j}")).alias(f"v{j}") for j in columns))
        return replace(self, frame=frame)


@dataclass(frozen=True, slots=True, eq=False)
class LevelSums:
    """Sums by combination of keys, in the order in which the engine returned them.

    Attributes
    ----------
    keys : list of list
        The values of each key.
    count : ndarray of int, shape (n,)
    weight : ndarray, shape (n,)
    observed, sums : ndarray, shape (n, p)
    lowest_weight, n_bad_weights : ndarray, shape (n,)
        Smallest weight, and the number of weights that are no finite number.
    """

    keys: list[list[Any]]
    count: Codes
    weight: Floats
    observed: Floats
    sums: Floats
    lowest_weight: Floats
    n_bad_weights: Codes

    @property
    def means(self) -> Floats:
        """Mean of each value, NaN where there is none; (n, p)."""
        known = self.observed > 0
        return np.divide(self.sums, self.observed, out=np.full_like(self.sums, np.nan), where=known)


def sum_by_level(selected: Selection) -> tuple[LevelSums, Selection]:
    """Sums by combination of keys, and what was summed.

    Engines count NaN as a value. Looking at each value first would slow down every query; a NaN shows in its
    sum, and only then the query is repeated without it. (Dask's sums skip NaN, but its counts do not.)
    """
    if engine_of(selected.frame) == "Dask":
        selected = selected.without_nan(range(selected.n_values))
    found = _sum(selected)
    doubtful = np.flatnonzero(np.isnan(found.sums).any(axis=0)).tolist()
    if doubtful:
        selected = selected.without_nan(doubtful)
        found = _sum(selected)
    return found, selected


def _sum_complete_rows(selected: Selection) -> LevelSums:
    """Sums over the rows without any null."""
    complete = ~nw.any_horizontal(
        *(nw.col(name).is_null() for name in selected.value_names), ignore_nulls=False
    )
    return _sum(replace(selected, frame=selected.frame.filter(complete)))


def _sum(selected: Selection) -> LevelSums:
    frame, names = selected.frame, selected.value_names
    if selected.is_weighted:
        weight = nw.col("w")
        frame = frame.with_columns(
            zero_or_one(~weight.is_finite() | weight.is_null()).alias("bad"),
            *(nw.when(~nw.col(name).is_null()).then(weight).alias(f"o{name}") for name in names),
            *((nw.col(name) * weight).alias(f"s{name}") for name in names),
        )
        wanted = [
            weight.sum().alias("weight"),
            weight.min().alias("lowest"),
            nw.col("bad").sum().alias("n_bad"),
        ]
        wanted += [nw.col(f"o{name}").sum().alias(f"observed {name}") for name in names]
        wanted += [nw.col(f"s{name}").sum().alias(f"sum {name}") for name in names]
    else:
        wanted = [nw.col(name).count().alias(f"observed {name}") for name in names]
        wanted += [nw.col(name).sum().alias(f"sum {name}") for name in names]
    home = collect(frame.group_by(*selected.key_names).agg(nw.len().alias("count"), *wanted), _STEP)
    count = _numbers(home["count"])
    rows = len(count)

    def table(what: str, null: float) -> Floats:
        found = [_numbers(home[f"{what} {name}"], null) for name in names]
        return np.array(found).reshape(len(names), rows).T

    observed = table("observed", 0.0)
    # A sum of nothing is null or 0; some engines return NaN as null.
    sums = np.where(observed > 0, table("sum", np.nan), 0.0)

    return LevelSums(
        [
            key.levels(home[name].to_list())
            for key, name in zip(selected.keys, selected.key_names, strict=True)
        ],
        count.astype(np.intp),
        _numbers(home["weight"]) if selected.is_weighted else count,
        observed,
        sums,
        _numbers(home["lowest"]) if selected.is_weighted else np.ones(rows),
        _numbers(home["n_bad"]).astype(np.intp) if selected.is_weighted else np.zeros(rows, dtype=np.intp),
    )


def _numbers(series: nw.Series[Any], null: float = 0.0) -> Floats:
    """A column as doubles."""
    return np.asarray(series.cast(nw.Float64).fill_null(null).to_numpy(), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class SecondMoments:
    """Second moments by fold, and the means that belong to them by combination of keys.

    Attributes
    ----------
    folds : list
        The folds; ``[0]`` where there are none.
    scatter : ndarray, shape (n_folds, p, p)
        Over the rows without any null, from the means over these rows.
    squares : ndarray, shape (n_folds, p)
        Over the rows in which the value is not null, from the means over those rows.
    mean, complete_mean : ndarray, shape (n, p)
        Means over the rows that have the value, NaN without any, and over complete rows, 0 without any.
    complete_weight : ndarray, shape (n,)
    """

    folds: list[Any]
    scatter: Floats
    squares: Floats
    mean: Floats
    complete_mean: Floats
    complete_weight: Floats


def sum_second_moments(selected: Selection, found: LevelSums, *, by_fold: bool) -> SecondMoments:
    """Sum the products of residuals, given the sums by level; the last key is the fold, if there is one."""
    complete = None
    if (found.observed < found.weight[:, None] * (1 - 1e-12)).any():
        complete = _sum_complete_rows(selected)
    products = _sum_products(selected, found, complete, by_fold=by_fold)
    weight, mean = (found.weight, found.means) if complete is None else _same_order(found, complete)
    second = SecondMoments(
        products.folds, products.scatter, products.squares, found.means, np.nan_to_num(mean), weight
    )
    folds = found.keys[-1] if by_fold else [0] * len(found.count)
    if _rounding_matters(found, second):
        return _corrected(second, folds, *_sum_residuals(selected, found, complete))
    return second


def _rounding_matters(found: LevelSums, second: SecondMoments) -> bool:
    """Whether the rounding of the means may show in the sums of squares.

    A sum of n numbers is known to about n roundings of its size. Only means that are large next to the spread
    matter, such as those of timestamps (test_moments_far_from_zero_need_a_correction).
    """
    rounding = np.finfo(np.float64).eps * found.count[:, None] * np.abs(np.nan_to_num(found.means))
    return bool(((found.observed * rounding**2).sum(axis=0) > _NEGLIGIBLE * second.squares.sum(axis=0)).any())


def _corrected(
    second: SecondMoments, folds: Sequence[Any], rest: LevelSums, complete_rest: LevelSums
) -> SecondMoments:
    """Take what the residuals still sum to off the squares, and add it to the means.

    This is the corrected two-pass algorithm of Chan, Golub and LeVeque.
    """
    shift = np.nan_to_num(rest.means)
    complete_shift = np.nan_to_num(complete_rest.means)
    scatter, squares = second.scatter.copy(), second.squares.copy()
    for number, fold in enumerate(second.folds):
        own = [row for row, other in enumerate(folds) if other == fold]
        between = complete_shift[own] * second.complete_weight[own, None]
        scatter[number] -= between.T @ complete_shift[own]
        squares[number] -= (rest.observed[own] * shift[own] ** 2).sum(axis=0)
    return replace(
        second,
        scatter=scatter,
        squares=np.maximum(squares, 0.0),
        mean=second.mean + shift,
        complete_mean=second.complete_mean + complete_shift,
    )


class _Products(NamedTuple):
    """Products of residuals by fold: all pairs over complete rows, squares over all rows with the value."""

    folds: list[Any]
    scatter: Floats
    squares: Floats


def _sum_products(
    selected: Selection, found: LevelSums, complete: LevelSums | None, *, by_fold: bool
) -> _Products:
    """Sum the products of residuals; ``complete`` is None if no row has a null."""
    residuals = _residuals(selected, found, complete)
    p = selected.n_values
    fold = [nw.col(selected.key_names[-1]).alias("fold") if by_fold else nw.lit(0).alias("fold")]
    if p > _MOST_PRODUCTS.get(engine_of(selected.frame), _MOST_PRODUCTS["DuckDB"]):
        own = ["w"] if selected.is_weighted else []
        own += [f"{kind}{j}" for kind in ("d", "r")[: 1 + (complete is not None)] for j in range(p)]
        rows = residuals.select(*fold, *own)
        return _sum_in_batches(rows, p, is_weighted=selected.is_weighted, has_nulls=complete is not None)
    pairs = [("d", i, j) for i in range(p) for j in range(i, p)]
    pairs += [("r", j, j) for j in range(p)] if complete is not None else []
    names = [f"{kind}{i} {kind}{j}" for kind, i, j in pairs]
    products = [nw.col(f"{kind}{i}") * nw.col(f"{kind}{j}") for kind, i, j in pairs]
    if selected.is_weighted:
        products = [product * nw.col("w") for product in products]
    if by_fold:
        # Aggregations by group take columns only. Without groups, an engine need not hold all products.
        named = [product.alias(name) for product, name in zip(products, names, strict=True)]
        totals = [nw.col(name).sum() for name in names]
        home = collect(residuals.select(*fold, *named).group_by("fold").agg(*totals), _STEP)
        folds = home["fold"].to_list()
    else:
        totals = [product.sum().alias(name) for product, name in zip(products, names, strict=True)]
        home, folds = collect(residuals.select(*totals), _STEP), [0]
    scatter, squares = np.zeros((len(folds), p, p)), np.zeros((len(folds), p))
    for (kind, i, j), name in zip(pairs, names, strict=True):
        if kind == "d":
            scatter[:, i, j] = scatter[:, j, i] = _numbers(home[name])
        else:
            squares[:, j] = _numbers(home[name])
    if complete is None:
        squares = np.diagonal(scatter, axis1=1, axis2=2).copy()
    return _Products(folds, scatter, squares)


@dataclass(frozen=True, slots=True)
class _MatrixProducts:
    """Sums the products of residuals as matrix products; a row (fold, position, total) for each entry."""

    p: int
    is_weighted: bool
    has_nulls: bool

    def __call__(self, batches: Iterable[nw.DataFrame[Any]]) -> Iterator[nw.DataFrame[Any]]:
        totals: dict[Any, Floats] = {}
        backend: Any = None
        fold_type: Any = None
        for batch in batches:
            backend, fold_type = batch.implementation, batch["fold"].dtype
            folds, codes = np.unique(batch["fold"].to_numpy(), return_inverse=True)
            for code, fold in enumerate(folds.tolist()):
                found = self._products(batch, codes == code)
                totals[fold] = totals[fold] + found if fold in totals else found
        for fold, found in totals.items():
            rows = {"fold": [fold] * found.size, "total": found.ravel(), "position": np.arange(found.size)}
            types = {"fold": fold_type, "total": nw.Float64(), "position": nw.Int64()}
            yield nw.from_dict(rows, types, backend=backend)

    def _products(self, batch: nw.DataFrame[Any], here: Mask) -> Floats:
        """The scatter of complete rows, and below it the squares of all; (p + 1, p)."""
        weight = batch["w"].to_numpy()[here] if self.is_weighted else 1.0
        residuals = np.nan_to_num(self._columns(batch, "d")[:, here])
        scatter = (residuals * weight) @ residuals.T
        if self.has_nulls:
            residuals = np.nan_to_num(self._columns(batch, "r")[:, here])
        return np.vstack([scatter, (weight * residuals**2).sum(axis=1)])

    def _columns(self, batch: nw.DataFrame[Any], kind: str) -> Floats:
        return np.array([batch[f"{kind}{j}"].to_numpy() for j in range(self.p)], dtype=np.float64)

    def output_types(self, schema: nw.Schema) -> dict[str, nw.dtypes.DType]:
        """Types of the columns."""
        return {"fold": schema["fold"], "total": nw.Float64(), "position": nw.Int64()}


def _sum_in_batches(residuals: nw.LazyFrame[Any], p: int, *, is_weighted: bool, has_nulls: bool) -> _Products:
    """Sum the products of residuals as matrix products."""
    function = _MatrixProducts(p, is_weighted, has_nulls)
    totals: dict[Any, Floats] = {}
    for table in map_batches(residuals, function, _STEP):
        positions, found = table["position"].to_numpy(), table["total"].to_numpy()
        folds, codes = np.unique(np.asarray(table["fold"].to_list()), return_inverse=True)
        for code, fold in enumerate(folds.tolist()):
            total = totals.setdefault(fold, np.zeros((p + 1) * p))
            np.add.at(total, positions[codes == code], found[codes == code])
    tables = np.array(list(totals.values())).reshape(len(totals), p + 1, p)
    return _Products(list(totals), tables[:, :p], tables[:, p])


def _sum_residuals(
    selected: Selection, found: LevelSums, complete: LevelSums | None
) -> tuple[LevelSums, LevelSums]:
    """Sums of the residuals by combination of keys, in the order of ``found``.

    They would be 0 if the means were not rounded: those from the means of all rows that have a value and, the
    same where no row has a null, those from the means of complete rows.
    """
    residuals = _residuals(selected, found, complete)

    def summed(kind: str) -> LevelSums:
        values = [nw.col(f"{kind}{j}").alias(f"v{j}") for j in range(selected.n_values)]
        own = ["w"] if selected.is_weighted else []
        frame = residuals.select(*selected.key_names, *own, *values)
        sums = _sum(replace(selected, frame=frame))
        place = {combination: row for row, combination in enumerate(zip(*sums.keys, strict=True))}
        rows = [place[combination] for combination in zip(*found.keys, strict=True)]
        return replace(sums, keys=found.keys, observed=sums.observed[rows], sums=sums.sums[rows])

    from_complete = summed("d")
    return (from_complete if complete is None else summed("r")), from_complete


def _residuals(selected: Selection, found: LevelSums, complete: LevelSums | None) -> nw.LazyFrame[Any]:
    """Keys, w (if there are weights), d0, d1, … and, where there are nulls, r0, r1 and so on.

    d are the residuals from the means over complete rows, null in the others; r those from the means over all
    rows that have the value.
    """
    names = selected.value_names
    means = {f"m{j}": column for j, column in enumerate(found.means.T)}
    if complete is not None:
        means |= {f"c{j}": column for j, column in enumerate(_same_order(found, complete)[1].T)}
    keys = dict(zip(selected.key_names, selected.keys, strict=True))
    joined = join_small(selected.frame, keys, found.keys, means, _STEP)
    wanted = [nw.col(name) for name in selected.key_names]
    wanted += [nw.col("w")] if selected.is_weighted else []
    if complete is None:
        wanted += [(nw.col(name) - nw.col(f"m{j}")).alias(f"d{j}") for j, name in enumerate(names)]
        return joined.select(*wanted)
    whole = ~nw.any_horizontal(*(nw.col(name).is_null() for name in names), ignore_nulls=False)
    wanted += [
        nw.when(whole).then(nw.col(name) - nw.col(f"c{j}")).alias(f"d{j}") for j, name in enumerate(names)
    ]
    wanted += [(nw.col(name) - nw.col(f"m{j}")).alias(f"r{j}") for j, name in enumerate(names)]
    return joined.select(*wanted)


def sum_squares_along(
    selected: Selection, combinations: Sequence[Sequence[Any]], mean: Floats, directions: Floats
) -> tuple[list[list[Any]], Floats]:
    """Sums of squares of the deviations of rows from a mean along a direction, by combination of keys.

    Parameters
    ----------
    selected : Selection
    combinations : sequence of sequence, one for each key
        The levels of each row of ``mean`` and ``directions``.
    mean, directions : ndarray, shape (n_levels, p)
        A value that is null does not deviate.

    Returns
    -------
    keys : list of list
    squares : ndarray
        In the order in which the engine returned them.
    """
    selected = selected.without_nan(range(selected.n_values))
    columns = {f"m{j}": column for j, column in enumerate(mean.T)}
    columns |= {f"a{j}": column for j, column in enumerate(directions.T)}
    keys = dict(zip(selected.key_names, selected.keys, strict=True))
    frame = join_small(selected.frame, keys, combinations, columns, _STEP)
    steps = [
        ((nw.col(name) - nw.col(f"m{j}")) * nw.col(f"a{j}")).fill_null(0.0)
        for j, name in enumerate(selected.value_names)
    ]
    own = ["w"] if selected.is_weighted else []
    frame = frame.select(*selected.key_names, *own, nw.sum_horizontal(*steps).alias("deviation"))
    square = nw.col("deviation") * nw.col("deviation")
    if selected.is_weighted:
        square = square * nw.col("w")
    squares = frame.select(*selected.key_names, square.alias("square"))
    home = collect(squares.group_by(*selected.key_names).agg(nw.col("square").sum()), _STEP)
    found = [key.levels(home[name].to_list()) for name, key in keys.items()]
    return found, _numbers(home["square"])


def _same_order(found: LevelSums, complete: LevelSums) -> tuple[Floats, Floats]:
    """Weight and means over complete rows in the order of all combinations of keys, 0 where there is none."""
    place = {combination: row for row, combination in enumerate(zip(*found.keys, strict=True))}
    rows = [place[combination] for combination in zip(*complete.keys, strict=True)]
    weight, means = np.zeros_like(found.weight), np.zeros_like(found.sums)
    weight[rows], means[rows] = complete.weight, complete.means
    return weight, means


def join_small(
    frame: nw.LazyFrame[Any],
    keys: Mapping[str, Key],
    combinations: Sequence[Sequence[Any]],
    columns: Mapping[str, Floats],
    step: str,
    *,
    how: Literal["inner", "left", "anti"] = "inner",
    prefix: str = "__sufrep",
) -> nw.LazyFrame[Any]:
    """Join columns of numbers, one row for each combination of levels, to the rows of a lazy frame.

    Nulls never match in a join. A key that is null in some combination is therefore joined as two: the value,
    filled, and whether it is null.

    Parameters
    ----------
    frame : LazyFrame
    keys : mapping of str to Key
        Columns of the frame that hold the values of keys, by name.
    combinations : sequence of sequence, one for each key
        The levels of each row of the small table; all can occur in the column.
    columns : mapping of str to ndarray
        Their names must be free in the frame.
    step : str
    how : {"inner", "left", "anti"}
    prefix : str
        Start of the names of columns that are needed on the way.
    """
    small, left, right = {}, [], []
    for number, ((name, key), levels) in enumerate(zip(keys.items(), combinations, strict=True)):
        values = [None if level is None else key.value(level) for level in levels]
        mine, theirs = name, f"{prefix} level {number}"
        if None in values:
            mine = f"{prefix} filled {number}"
            frame = frame.with_columns(
                nw.col(name).fill_null(key.fill).alias(mine), nw.col(name).is_null().alias(f"{mine} is null")
            )
            small[f"{theirs} is null"] = SmallColumn([value is None for value in values], "boolean")
            values = [key.fill if value is None else value for value in values]
            left.append(f"{mine} is null")
            right.append(f"{theirs} is null")
        small[theirs] = SmallColumn(values, key.type, key.zone)
        left.append(mine)
        right.append(theirs)
    small |= {name: SmallColumn(column, "float") for name, column in columns.items()}
    uploaded = upload(frame, small, step, like=dict(zip(right, left, strict=True)))
    return frame.join(uploaded, left_on=left, right_on=right, how=how)
