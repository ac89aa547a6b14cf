"""Tables in memory: pandas, polars and pyarrow frames, and numpy arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Self

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy import sparse

from sufrep._frames._table import Factor, Kind, Lookup
from sufrep._threads import in_threads
from sufrep.errors import (
    ColumnNameError,
    GroupValueError,
    LazyFrameError,
    MissingDependencyError,
    MissingLibraryError,
    NotNumericError,
    OtherTableError,
    SparseOutputError,
    UnknownLibraryError,
)
from sufrep.moments import GroupMoments
from sufrep.representation import as_levels, is_null, level_order, level_positions, sort_levels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sufrep._arrays import Array, Codes, Columns, Floats, Levels, Mask

_CATEGORIES = (nw.Categorical, nw.Enum)
_TEXT = (nw.String, *_CATEGORIES)
_NUMBERS = (bool, int, float, Decimal, np.number, np.bool_)
# Rows that one thread writes at a time.
_CHUNK = 1 << 15


def is_frame(X: Any) -> bool:
    """Whether X is a frame in memory of a library that narwhals knows."""
    return bool(nw.dependencies.is_into_dataframe(X))


def is_lazy(X: Any) -> bool:
    """Whether X is a lazy frame of a library that narwhals knows."""
    return not is_frame(X) and isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame)


def library_of(X: Any) -> str | None:
    """Name of the library of a frame; None for anything else."""
    return str(nw.from_native(X, eager_only=True).implementation) if is_frame(X) else None


def refuse_other_tables(X: Any) -> None:
    """Raise an error that names the remedy if X, which is no frame, holds columns in another form."""
    wrapped = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(wrapped, nw.LazyFrame):
        raise LazyFrameError(X)
    if isinstance(wrapped, nw.Series):
        raise OtherTableError(X, "a single column", "pass the whole frame, and name the group in it.")
    if isinstance(X, Mapping) and not sparse.issparse(X):  # scipy's dok_matrix is a dict
        raise OtherTableError(
            X, "columns by name", "make it a frame, as in pandas.DataFrame(X) or polars.DataFrame(X)."
        )
    if hasattr(X, "__arrow_c_stream__"):
        # DuckDB's .arrow() returns such a stream, which can be read only once.
        raise OtherTableError(X, "a stream of Arrow data", "read it into a table first: pyarrow.table(X).")


class EagerTable(ABC):
    """The two verbs of every table in memory; what a column is, and its levels, are found out once."""

    __slots__ = ()
    _kinds: dict[int, Kind]
    _factors: dict[int, Factor]

    @property
    def free_order(self) -> Literal[1, 2]:
        """Order of the moments that need no further pass over the rows of a file."""
        return 2

    def kind(self, position: int) -> Kind:
        """Return whether a column holds numbers (booleans too), text (categories too) or something else."""
        if position not in self._kinds:
            self._kinds[position] = self._find_kind(position)
        return self._kinds[position]

    @abstractmethod
    def _find_kind(self, position: int) -> Kind:
        """Find out what a column holds."""

    def factorize(self, position: int) -> Factor:
        """Return the levels of a column and the code of each row."""
        if position not in self._factors:
            self._factors[position] = self._factorize(position)
        return self._factors[position]

    @abstractmethod
    def _factorize(self, position: int) -> Factor:
        """Find the levels of a column."""

    def levels(self, position: int, most: int) -> Levels | None:
        """Return the levels of a column, without null; None if there are more than ``most``."""
        levels = self.factorize(position).levels
        return levels if len(levels) <= most else None

    def indicators(self, position: int) -> tuple[Levels, list[Mask]]:
        """Return the levels of a column, null last if there is any, and for each whether a row has it."""
        factor = with_missing_level(self.factorize(position))
        return factor.levels, [factor.codes == code for code in range(len(factor.levels))]

    def constant(self: Any, value: float | None) -> Floats:
        """Return a column of one number; NaN for null."""
        return np.full(self.n_rows, np.nan if value is None else value)

    def moments(
        self,
        group: Factor,
        covariates: Columns,
        *,
        names: Sequence[str],
        weights: Floats | None,
        order: Literal[1, 2],
    ) -> GroupMoments:
        """Return the moments of the covariates within the levels of a group."""
        return GroupMoments.from_columns(
            group.codes, covariates, group.levels, covariates=names, weights=weights, order=order
        )

    def encode(self, keep: Sequence[int], lookups: Sequence[Lookup], container: str) -> Any:
        """Return the kept columns, as they are, followed by the new ones."""
        if any(sparse.issparse(lookup.values) for lookup in lookups):
            return self._encode_sparse(keep, lookups)
        return self._encode_dense(keep, lookups, container)

    @abstractmethod
    def _encode_dense(self, keep: Sequence[int], lookups: Sequence[Lookup], container: str) -> Any:
        """Return a numpy array, or a frame of the library that ``container`` names."""

    def _encode_sparse(self: Any, keep: Sequence[int], lookups: Sequence[Lookup]) -> sparse.csr_array:
        text = [self.names[position] for position in keep if self.kind(position) != "numeric"]
        if text:
            raise SparseOutputError(text)
        kept = sparse.csr_array(self._encode_dense(keep, [], "default"))
        return sparse.csr_array(sparse.hstack([kept, *map(taken, lookups)], format="csr"))


@dataclass(frozen=True, slots=True, eq=False)
class FrameTable(EagerTable):
    """A frame in memory; columns are copied only where necessary."""

    frame: nw.DataFrame[Any]
    names: tuple[str, ...]
    dtypes: tuple[nw.dtypes.DType, ...]
    has_names: bool
    _kinds: dict[int, Kind] = field(default_factory=dict)
    _factors: dict[int, Factor] = field(default_factory=dict)

    @classmethod
    def from_native(cls, X: Any) -> Self:
        """Wrap a frame; its column names must differ from each other."""
        try:
            frame = nw.from_native(X, eager_only=True)
        except DuplicateError as error:
            raise ColumnNameError(
                f"X has columns that share a name: {error}.\nHint: give every column a name of its own."
            ) from error
        names = tuple(frame.columns)
        has_names = all(isinstance(name, str) for name in names)
        if not has_names:
            # pandas may name columns by numbers; scikit-learn then calls them by their positions.
            names = tuple(f"x{j}" for j in range(len(names)))
        dtypes = tuple(
            _dense(frame[:, j]).dtype if dtype == nw.Unknown else dtype
            for j, dtype in enumerate(frame.schema.values())
        )
        return cls(frame, names, dtypes, has_names)

    def take_out(self, position: int) -> tuple[Any, Self]:
        """A column as its library has it, and the table without it."""
        others = [other for other in range(len(self.names)) if other != position]
        rest = type(self)(
            self.frame[:, others],
            tuple(self.names[other] for other in others),
            tuple(self.dtypes[other] for other in others),
            self.has_names,
        )
        return self.frame[:, position].to_native(), rest

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame)

    @property
    def library(self) -> str:
        """Name of the library."""
        return str(self.frame.implementation)

    def _series(self, position: int) -> nw.Series[Any]:
        return _dense(self.frame[:, position])

    def _find_kind(self, position: int) -> Kind:
        dtype = self.dtypes[position]
        if dtype.is_numeric() or dtype == nw.Boolean:
            return "numeric"
        if dtype == nw.Object:
            return _kind_of_objects(self._series(position).to_list())
        return "text" if dtype in _TEXT else "other"

    def dtype(self, position: int) -> str:
        """Return the name of a column's type."""
        return str(self.dtypes[position])

    def is_categorical(self, position: int) -> bool:
        """Return whether a column has the type of categories."""
        return self.dtypes[position] in _CATEGORIES

    def numbers(self, position: int) -> Array:
        """Return a numeric column as an array, NaN for null; a view where the library allows it."""
        series = self._series(position)
        if self.kind(position) != "numeric":
            # A chunk in which a covariate is null throughout may have lost its type.
            if series.null_count() < self.n_rows:
                raise NotNumericError(self.names[position], str(series.dtype))
            return np.full(self.n_rows, np.nan)
        if series.dtype == nw.Object:
            return np.array([float(number_or_nan(value)) for value in series.to_list()])
        wide = series.dtype in (nw.Int128, nw.UInt128)
        if wide or series.dtype.is_decimal() or (series.dtype == nw.Boolean and series.null_count()):
            series = series.cast(nw.Float64)
        return series.to_numpy()

    def times(self, position: int) -> Floats | None:
        """Return a column of dates or of dates with times as microseconds since 1970, in UTC."""
        series = self._series(position)
        if series.dtype not in (nw.Date, nw.Datetime):
            return None
        null = series.is_null().to_numpy()
        found = series.dt.timestamp("us").fill_null(0).to_numpy().astype(np.float64)
        return np.where(null, np.nan, found)

    def _factorize(self, position: int) -> Factor:
        return factorize_series(self._series(position))

    def _encode_dense(self, keep: Sequence[int], lookups: Sequence[Lookup], container: str) -> Any:
        if container == "polars":
            return _concat_polars(self._kept_polars(list(keep)), lookups)
        if container == "pandas":
            return _concat_pandas(self._kept_pandas(list(keep)), lookups)
        columns = [
            self.numbers(position) if self.kind(position) == "numeric" else self._objects(position)
            for position in keep
        ]
        return dense_rows([column[:, None] for column in columns], lookups, self.n_rows)

    def _kept_polars(self, keep: list[int]) -> Any:
        # polars cannot take over pandas' sparse columns, whose type narwhals does not know.
        unknown = [position for position in keep if self.frame[:, position].dtype == nw.Unknown]
        return self.frame[:, keep].with_columns(*map(self._series, unknown)).to_polars()

    def _kept_pandas(self, keep: list[int]) -> Any:
        if self.frame.implementation.is_pandas():
            # narwhals would lose the index where no column is kept.
            return self.frame.to_native().iloc[:, keep]
        if keep:
            return self.frame[:, keep].to_pandas()
        import pandas as pd

        return pd.DataFrame(index=pd.RangeIndex(self.n_rows))

    def _objects(self, position: int) -> Array:
        values = np.empty(self.n_rows, dtype=object)
        values[:] = self._series(position).to_list()
        return values


def _dense(series: nw.Series[Any]) -> nw.Series[Any]:
    """The same column; one of pandas' sparse columns with all its values."""
    native = series.to_native()
    if series.dtype == nw.Unknown and hasattr(native, "sparse"):
        return nw.from_native(native.sparse.to_dense(), series_only=True)
    return series


@dataclass(frozen=True, slots=True, eq=False)
class ArrayTable(EagerTable):
    """An array (n, n_columns) of numbers, text or objects.

    An object column is text if it holds a string; otherwise its values must convert to numbers, and numpy's
    own error reports the first one that does not.
    """

    array: Array
    names: tuple[str, ...]
    _kinds: dict[int, Kind] = field(default_factory=dict)
    _factors: dict[int, Factor] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.array)

    def _find_kind(self, position: int) -> Kind:
        if self.array.dtype.kind in "biuf":
            return "numeric"
        if self.array.dtype.kind == "O" and not _holds_text(list(self.array[:, position])):
            self.numbers(position)  # numpy's error if there is anything else
            return "numeric"
        return "text"

    def dtype(self, _position: int) -> str:
        """Return the name of the array's type."""
        return str(self.array.dtype)

    def is_categorical(self, _position: int) -> bool:
        """Return False: an array has no type for categories."""
        return False

    def numbers(self, position: int) -> Array:
        """Return a column as numbers."""
        column = self.array[:, position]
        if column.dtype.kind in "biuf":
            return column
        values = list(column)
        if _holds_text(values):
            raise NotNumericError(self.names[position], "text")
        return np.array([number_or_nan(value) for value in values], dtype=np.float64)

    def times(self, _position: int) -> Floats | None:
        """Return None: an array holds dates as text only."""
        return None

    def _factorize(self, position: int) -> Factor:
        column = self.array[:, position]
        if column.dtype.kind in "biuf":
            return factorize_numbers(column)
        return factorize_objects(self.names[position], column.tolist())

    def _encode_dense(self, keep: Sequence[int], lookups: Sequence[Lookup], _container: str) -> Any:
        # scikit-learn turns the array into the container that the user asked for.
        if self.array.dtype.kind == "O" and all(self.kind(position) == "numeric" for position in keep):
            blocks = [self.numbers(position)[:, None] for position in keep]
        else:
            blocks = [self.array[:, run] for run in _runs(keep)]
        return dense_rows(blocks, lookups, self.n_rows)


def _holds_text(values: Sequence[Any]) -> bool:
    # The loop over the values is in C, because there may be millions of them.
    return any(issubclass(kind, str) for kind in set(map(type, values)))


def _kind_of_objects(values: Sequence[Any]) -> Kind:
    """Objects are text if there is any text among them, and numbers if there is nothing else but nulls."""
    if _holds_text(values):
        return "text"
    unsure = {kind for kind in set(map(type, values)) if not issubclass(kind, (*_NUMBERS, type(None)))}
    if not unsure or all(is_null(value) for value in values if type(value) in unsure):
        return "numeric"
    return "other"


def number_or_nan(value: Any) -> Any:
    """A value as it is, NaN for null, and infinity for an integer that is too large for a float."""
    if is_null(value):
        return np.nan
    if isinstance(value, int):
        try:
            return float(value)
        except OverflowError:
            return np.inf if value > 0 else -np.inf
    return value


def _runs(positions: Sequence[int]) -> list[slice]:
    """Split increasing positions into runs of neighbours, which numpy copies as blocks."""
    ends = [*np.flatnonzero(np.diff(positions) != 1).tolist(), len(positions) - 1] if positions else []
    starts = [0, *(end + 1 for end in ends[:-1])]
    return [slice(positions[a], positions[b] + 1) for a, b in zip(starts, ends, strict=False)]


_LIBRARIES = ("pandas", "polars", "pyarrow")


def frame_from_columns(
    columns: Mapping[str, Any],
    library: str | None,
    nan_is_null: Sequence[str] = (),
    *,
    preferred: str | None = None,
) -> Any:
    """Build a native frame.

    Parameters
    ----------
    columns : mapping of str to sequence
    library : {"pandas", "polars", "pyarrow"} or None
        None takes the first of them that is installed, after the preferred one.
    nan_is_null : sequence of str
        Columns of floats whose NaN becomes null, where the library distinguishes the two.
    preferred : str or None
        The library that the user's own table is of; others than these three count for nothing.
    """
    if library not in (None, *_LIBRARIES):
        raise UnknownLibraryError(str(library), _LIBRARIES)
    by_default = sorted(_LIBRARIES, key=lambda name: name != preferred)
    libraries: Sequence[Any] = by_default if library is None else (library,)
    for name in libraries:
        try:
            frame = nw.from_dict(dict(columns), backend=name)
            # `fill_nan` came later than the oldest narwhals that is supported.
            known = {column: nw.col(column) for column in nan_is_null}
            return frame.with_columns(
                nw.when(~value.is_nan()).then(value).alias(column) for column, value in known.items()
            ).to_native()
        except ModuleNotFoundError:
            continue
    if library is None:
        raise MissingDependencyError("polars", "A table as a frame", "cli")
    raise MissingLibraryError(library, [name for name in _LIBRARIES if find_spec(name) is not None])


def _concat_polars(kept: Any, lookups: Sequence[Lookup]) -> Any:
    import polars as pl

    new = []
    for lookup in lookups:
        columns = {name: lookup.values[:, j] for j, name in enumerate(lookup.names)}
        table = pl.DataFrame(columns)
        new.append(table if lookup.positions is None or not lookup.names else table[lookup.positions])
    return pl.concat([kept, *new], how="horizontal")


def _concat_pandas(kept: Any, lookups: Sequence[Lookup]) -> Any:
    import pandas as pd

    new = [
        pd.DataFrame(taken(lookup), columns=list(lookup.names), index=kept.index, copy=False)
        for lookup in lookups
    ]
    return pd.concat([kept, *new], axis=1)


def dense_rows(blocks: Sequence[Array], lookups: Sequence[Lookup], n_rows: int) -> Array:
    """Put kept and new columns next to each other in one array, of objects if a kept column is not numeric.

    Parameters
    ----------
    blocks : sequence of ndarray, each of shape (n, n_columns)
        The kept columns.
    lookups : sequence of Lookup
    n_rows : int

    Returns
    -------
    ndarray, shape (n, n_kept + n_new)
    """
    numeric = all(block.dtype.kind in "biuf" for block in blocks)
    width = sum(block.shape[1] for block in blocks) + sum(len(lookup.names) for lookup in lookups)
    result = np.empty((n_rows, width), dtype=np.float64 if numeric else object)

    def write(start: int) -> None:
        rows, left = slice(start, start + _CHUNK), 0
        for part in (*(block[rows] for block in blocks), *(taken(lookup, rows) for lookup in lookups)):
            result[rows, left : left + part.shape[1]] = part
            left += part.shape[1]

    if n_rows <= _CHUNK:
        write(0)
    else:  # most of the time goes into memory that is touched for the first time, which threads share
        in_threads(write, range(0, n_rows, _CHUNK))
    return result


def taken(lookup: Lookup, rows: slice = slice(None)) -> Any:
    """The new columns of some rows; (n, n_columns)."""
    return lookup.values[rows] if lookup.positions is None else lookup.values[lookup.positions[rows]]


def with_missing_level(factor: Factor) -> Factor:
    """Make null a level of its own, the last one, if there is any."""
    null = factor.codes < 0
    if not null.any():
        return factor
    codes = np.where(null, len(factor.levels), factor.codes)
    return Factor(codes, as_levels([*factor.levels, None]))


def sorted_factor(codes: Codes, distinct: Sequence[Any]) -> Factor:
    """Sort the levels; ``distinct`` are values that all occur, in the order of ``codes``.

    Values that are equal, such as 0.0 and −0.0, become one level.
    """
    # The last entry is for the code −1.
    new = np.full(len(distinct) + 1, -1, dtype=np.intp)
    if len(set(distinct)) == len(distinct):
        order = level_order(distinct)
        levels = as_levels(distinct)[order]
        new[order] = np.arange(len(distinct))
    else:
        levels = sort_levels(dict.fromkeys(distinct))
        rank = level_positions(levels)
        new[:-1] = [rank[value] for value in distinct]
    ordered = np.array_equal(new[:-1], np.arange(len(distinct)))
    return Factor(codes if ordered else new[codes], levels)


def cross(parts: Sequence[Factor], *, keep_null: bool) -> Factor:
    """Make the levels of several columns into tuples, one level for each combination that occurs.

    With ``keep_null`` a null part of a combination is ``None`` in its tuple; without, one null makes
    the whole combination null.
    """
    n_rows = len(parts[0].codes)
    whole: Codes = np.zeros(n_rows, dtype=np.int64)
    for part in parts:
        # Dense codes stay below the number of rows, so the product cannot overflow.
        whole, _ = _number_values(
            whole * (len(part.levels) + 1) + part.codes + 1, np.ones(n_rows, dtype=bool)
        )
    null = np.any([part.codes < 0 for part in parts], axis=0)
    codes, _ = _number_values(whole, np.ones(n_rows, dtype=bool) if keep_null else ~null)
    first = _first_rows(codes)
    columns = [np.append(part.levels, [None])[part.codes[first]].tolist() for part in parts]
    return sorted_factor(codes, list(zip(*columns, strict=True)))


def factorize_numbers(values: Array, valid: Mask | None = None) -> Factor:
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
            codes, distinct = _number_values(integers, known)
            return sorted_factor(codes, distinct.astype(values.dtype).tolist())
    codes, distinct = _number_values(values, known)
    return sorted_factor(codes, distinct.tolist())


def factorize_objects(column: str, values: Sequence[Any]) -> Factor:
    """Factorize Python objects."""
    seen: dict[Any, int] = {}
    codes = np.empty(len(values), dtype=np.intp)
    for row, value in enumerate(values):
        try:
            codes[row] = seen.setdefault(value, len(seen))
        except TypeError:
            raise GroupValueError(column, value) from None
    return _without_nulls(codes, list(seen))


def _without_nulls(codes: Codes, distinct: Sequence[Any]) -> Factor:
    """Sort the levels, the nulls among the distinct values being none; numpy's scalars become Python's."""
    null = np.fromiter((is_null(value) for value in distinct), dtype=bool)
    kept = np.append(np.where(null, -1, np.cumsum(~null) - 1), -1)
    plain = [
        value.item() if isinstance(value, np.generic) else value for value in distinct if not is_null(value)
    ]
    return sorted_factor(kept[codes], plain)


def factorize_series(series: nw.Series[Any]) -> Factor:
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
        codes, present = _number_values(physical, physical >= 0)
        return sorted_factor(codes, native.cat.categories[present].tolist())
    codes, distinct = native.factorize()
    return _without_nulls(codes, distinct.tolist())


def _factorize_polars(native: Any, pl: Any) -> Factor:
    known = native.is_not_null().to_numpy()
    if native.dtype == pl.Boolean:
        return factorize_numbers(native.fill_null(False).to_numpy(), known)
    if native.dtype.is_integer() and str(native.dtype) not in ("Int128", "UInt128"):
        return factorize_numbers(native.fill_null(0).to_numpy(), known)
    if native.dtype == pl.String:
        # Categories of their own are freed with the column; the global ones would stay. Before polars 1.31
        # there were none.
        own = pl.Categorical(pl.Categories.random()) if hasattr(pl, "Categories") else pl.Categorical
        physical = native.cast(own).to_physical()
    elif native.dtype in (pl.Categorical, pl.Enum) or native.dtype.is_temporal():
        physical = native.to_physical()
    else:
        return factorize_objects(native.name, native.to_list())
    codes, _ = _number_values(physical.fill_null(0).to_numpy(), known)
    return sorted_factor(codes, native.gather(_first_rows(codes)).to_list())


def _factorize_arrow(native: Any) -> Factor:
    encoded = native.dictionary_encode().unify_dictionaries().combine_chunks()
    indices = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    known = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
    # A dictionary of the user's may hold values that do not occur.
    codes, present = _number_values(indices, known)
    distinct = encoded.dictionary.to_pylist()
    return _without_nulls(codes, [distinct[position] for position in present])


def _number_values(values: Array, known: Mask) -> tuple[Codes, Array]:
    """Return codes (n,), −1 where unknown, that number the distinct known values in increasing order."""
    if not known.any():
        return np.full(len(values), -1, dtype=np.intp), values[:0]
    some = values if known.all() else values[known]
    if values.dtype.kind in "iu" and int(some.max()) - int(some.min()) <= 4 * len(some) + 1024:
        # A range not much wider than the rows needs no sorting.
        lowest = some.min().astype(np.uint64 if values.dtype.kind == "u" else np.int64)
        # int8 would overflow. Of unsigned numbers too large for int64, the difference is right all the same.
        offsets = np.subtract(some, lowest, dtype=np.int64, casting="unsafe").astype(np.intp, copy=False)
        present = np.zeros(int(offsets.max()) + 1, dtype=bool)
        present[offsets] = True
        inverse = (np.cumsum(present) - 1)[offsets]
        distinct = np.flatnonzero(present).astype(lowest.dtype) + lowest
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
