"""Columns to codes and levels, by the library's own codes where it has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from sufrep._levels import as_levels, is_null, sort_levels
from sufrep.errors import GroupValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Levels, Mask


@dataclass(frozen=True, slots=True, eq=False)
class Factorized:
    """A column as codes.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Position of each row's value in ``levels``, −1 for a null.
    levels : ndarray of object, shape (n_levels,)
        The distinct values that occur, sorted, without null.
    """

    codes: Codes
    levels: Levels

    @classmethod
    def from_distinct(cls, codes: Codes, distinct: Sequence[Any]) -> Factorized:
        """Sort the levels; ``distinct`` are values that all occur, in the order of ``codes``.

        Values that are equal, such as 0.0 and −0.0, become one level.
        """
        levels = sort_levels(dict.fromkeys(distinct))
        rank = {level: code for code, level in enumerate(levels.tolist())}
        # The last entry is for the code −1.
        new = np.fromiter((*(rank[value] for value in distinct), -1), dtype=np.intp)
        ordered = np.array_equal(new[:-1], np.arange(len(distinct)))
        return cls(codes if ordered else new[codes], levels)

    def with_missing_level(self) -> Factorized:
        """Make null a level of its own, the last one, if there is any."""
        null = self.codes < 0
        if not null.any():
            return self
        codes = np.where(null, len(self.levels), self.codes)
        return Factorized(codes, as_levels([*self.levels, None]))


def cross(parts: Sequence[Factorized], *, keep_null: bool) -> Factorized:
    """Make the levels of several columns into tuples, one level for each combination that occurs.

    With ``keep_null`` a null part of a combination is ``None`` in its tuple; without, one null makes
    the whole combination null.
    """
    n_rows = len(parts[0].codes)
    whole: Codes = np.zeros(n_rows, dtype=np.int64)
    for part in parts:
        # Dense codes stay below the number of rows, so the product cannot overflow.
        whole, _ = _dense(whole * (len(part.levels) + 1) + part.codes + 1, np.ones(n_rows, dtype=bool))
    null = np.any([part.codes < 0 for part in parts], axis=0)
    codes, _ = _dense(whole, np.ones(n_rows, dtype=bool) if keep_null else ~null)
    first = _first_rows(codes)
    columns = [np.append(part.levels, [None])[part.codes[first]].tolist() for part in parts]
    return Factorized.from_distinct(codes, list(zip(*columns, strict=True)))


def factorize_numbers(values: Array, valid: Mask | None = None) -> Factorized:
    """Factorize a real, integer or boolean array (n,); NaN is null, as are rows not in ``valid``."""
    values = np.ascontiguousarray(values)
    known = np.ones(len(values), dtype=bool) if valid is None else valid.copy()
    if values.dtype.kind == "f":
        known &= ~np.isnan(values)
        whole = values if known.all() else np.where(known, values, 0.0)
        with np.errstate(invalid="ignore"):
            integers = whole.astype(np.int64)
        if np.array_equal(integers, whole):
            # Whole numbers, such as zip codes, need no sorting of the rows.
            codes, distinct = _dense(integers, known)
            return Factorized.from_distinct(codes, distinct.astype(values.dtype).tolist())
    codes, distinct = _dense(values, known)
    return Factorized.from_distinct(codes, distinct.tolist())


def factorize_objects(column: str, values: Sequence[Any]) -> Factorized:
    """Factorize Python objects."""
    seen: dict[Any, int] = {}
    codes = np.empty(len(values), dtype=np.intp)
    for row, value in enumerate(values):
        try:
            codes[row] = seen.setdefault(value, len(seen))
        except TypeError:
            raise GroupValueError(column, value) from None
    return _without_nulls(codes, list(seen))


def _without_nulls(codes: Codes, distinct: Sequence[Any]) -> Factorized:
    """Sort the levels, the nulls among the distinct values being none; numpy's scalars become Python's."""
    null = np.fromiter((is_null(value) for value in distinct), dtype=bool)
    kept = np.append(np.where(null, -1, np.cumsum(~null) - 1), -1)
    plain = [
        value.item() if isinstance(value, np.generic) else value for value in distinct if not is_null(value)
    ]
    return Factorized.from_distinct(kept[codes], plain)


def factorize_series(series: nw.Series[Any]) -> Factorized:
    """Factorize a column of any frame library."""
    native, implementation = series.to_native(), series.implementation
    if series.dtype.is_float():
        return factorize_numbers(series.to_numpy())
    if series.dtype.is_nested() or series.dtype == nw.Object:
        return factorize_objects(series.name, series.to_list())
    if implementation.is_pyarrow():
        return _factorize_arrow(native)
    if implementation.is_polars():
        return _factorize_polars(native, implementation.to_native_namespace())
    if isinstance(native.dtype, np.dtype) and native.dtype.kind in "biu":
        return factorize_numbers(native.to_numpy())
    if series.dtype in (nw.Categorical, nw.Enum) and hasattr(native, "cat"):
        physical = native.cat.codes.to_numpy()
        codes, present = _dense(physical, physical >= 0)
        return Factorized.from_distinct(codes, native.cat.categories[present].tolist())
    codes, distinct = native.factorize()
    return _without_nulls(codes, distinct.tolist())


def _factorize_polars(native: Any, pl: Any) -> Factorized:
    known = native.is_not_null().to_numpy()
    if native.dtype == pl.Boolean:
        return factorize_numbers(native.fill_null(False).to_numpy(), known)
    if native.dtype.is_integer() and native.dtype not in (pl.Int128, pl.UInt128):
        return factorize_numbers(native.fill_null(0).to_numpy(), known)
    if native.dtype == pl.String:
        # Categories of their own are freed with the column; the global ones would stay.
        physical = native.cast(pl.Categorical(pl.Categories.random())).to_physical()
    elif native.dtype in (pl.Categorical, pl.Enum) or native.dtype.is_temporal():
        physical = native.to_physical()
    else:
        return factorize_objects(native.name, native.to_list())
    codes, _ = _dense(physical.fill_null(0).to_numpy(), known)
    return Factorized.from_distinct(codes, native.gather(_first_rows(codes)).to_list())


def _factorize_arrow(native: Any) -> Factorized:
    encoded = native.dictionary_encode().unify_dictionaries().combine_chunks()
    indices = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    known = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
    # A dictionary of the user's may hold values that do not occur.
    codes, present = _dense(indices, known)
    distinct = encoded.dictionary.to_pylist()
    return _without_nulls(codes, [distinct[position] for position in present])


def _dense(values: Array, known: Mask) -> tuple[Codes, Array]:
    """Return codes (n,), −1 where unknown, that number the distinct known values in increasing order."""
    if not known.any():
        return np.full(len(values), -1, dtype=np.intp), values[:0]
    some = values if known.all() else values[known]
    if values.dtype.kind in "iu" and int(some.max()) - int(some.min()) <= 4 * len(some) + 1024:
        # A range not much wider than the rows needs no sorting.
        wide = some.astype(np.uint64 if values.dtype.kind == "u" else np.int64)  # int8 would overflow
        offsets = (wide - wide.min()).astype(np.intp)
        present = np.zeros(int(offsets.max()) + 1, dtype=bool)
        present[offsets] = True
        inverse = (np.cumsum(present) - 1)[offsets]
        distinct = np.flatnonzero(present).astype(wide.dtype) + wide.min()
    else:
        distinct, inverse = np.unique(some, return_inverse=True)
    if some is values:
        return inverse, distinct
    codes = np.full(len(values), -1, dtype=np.intp)
    codes[known] = inverse
    return codes, distinct


def _first_rows(codes: Codes) -> Codes:
    """Return a row for each of the codes 0, 1, …, all of which occur."""
    rows = np.flatnonzero(codes >= 0)
    first = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.intp)
    first[codes[rows]] = rows
    return first
