"""pandas, polars and pyarrow frames as tables."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from sufrep._frames._factorize import Factorized, factorize_series
from sufrep._frames._table import Kind, Lookup, dense
from sufrep._levels import is_null
from sufrep.errors import ColumnNameError, LazyFrameError, MissingDependencyError, NotNumericError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sufrep._arrays import Array

_TEXT = (nw.String, nw.Categorical, nw.Enum)


def is_frame(X: Any) -> bool:
    """Tell whether X is a frame of a library that narwhals knows, held in memory."""
    return bool(nw.dependencies.is_into_dataframe(X))


def refuse_lazy(X: Any) -> None:
    """Raise an error if X is a lazy frame of any library."""
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        raise LazyFrameError(X)


@dataclass(frozen=True, slots=True, eq=False)
class FrameTable:
    """An eager frame; nothing is copied until it must be."""

    frame: nw.DataFrame[Any]
    names: tuple[str, ...]
    dtypes: tuple[nw.dtypes.DType, ...]

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
        if not all(isinstance(name, str) for name in names):
            # pandas may name columns by numbers; scikit-learn then calls them by their positions.
            names = tuple(f"x{j}" for j in range(len(names)))
        return cls(frame, names, tuple(frame.schema.values()))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame)

    @property
    def library(self) -> str:
        """Name of the library."""
        return str(self.frame.implementation)

    def _series(self, position: int) -> nw.Series[Any]:
        return self.frame[:, position]

    def kind(self, position: int) -> Kind:
        """Tell numbers (booleans too) from text (categories too) from the rest, such as dates."""
        dtype = self.dtypes[position]
        if dtype.is_numeric() or dtype == nw.Boolean:
            return "numeric"
        if dtype == nw.Object:
            return self._kind_of_objects(position)
        return "text" if dtype in _TEXT else "other"

    def _kind_of_objects(self, position: int) -> Kind:
        """Objects are text as soon as there is text among them, and numbers if there is nothing else."""
        values = [value for value in self._series(position).to_list() if not is_null(value)]
        if any(isinstance(value, str) for value in values):
            return "text"
        numbers = (bool, int, float, Decimal, np.number, np.bool_)
        return "numeric" if all(isinstance(value, numbers) for value in values) else "other"

    def dtype(self, position: int) -> str:
        """Name the type of a column."""
        return str(self.dtypes[position])

    def numbers(self, position: int) -> Array:
        """Return a numeric column as an array, NaN for null; a view where the library allows it."""
        series = self._series(position)
        if self.kind(position) != "numeric":
            # A chunk in which a covariate is null throughout may have lost its type.
            if series.null_count() < self.n_rows:
                raise NotNumericError(self.names[position], str(series.dtype))
            return np.full(self.n_rows, np.nan)
        if series.dtype == nw.Object:
            return np.array([np.nan if is_null(value) else float(value) for value in series.to_list()])
        wide = series.dtype in (nw.Int128, nw.UInt128)
        if wide or series.dtype.is_decimal() or (series.dtype == nw.Boolean and series.null_count()):
            series = series.cast(nw.Float64)
        return series.to_numpy()

    def factorize(self, position: int) -> Factorized:
        """Return the levels of a column and the code of each row."""
        return factorize_series(self._series(position))

    def append(self, keep: Sequence[int], lookups: Sequence[Lookup], container: str) -> Any:
        """Return the kept columns, as they are, followed by the new ones."""
        if container == "polars":
            return _append_polars(self.frame[:, list(keep)].to_polars(), lookups)
        if container == "pandas":
            return _append_pandas(self._kept_pandas(list(keep)), lookups)
        columns = [
            self.numbers(position) if self.kind(position) == "numeric" else self._objects(position)
            for position in keep
        ]
        return dense([column[:, None] for column in columns], lookups, self.n_rows)

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


def _append_polars(kept: Any, lookups: Sequence[Lookup]) -> Any:
    import polars as pl

    new = []
    for lookup in lookups:
        columns = {name: lookup.values[:, j] for j, name in enumerate(lookup.names)}
        table = pl.DataFrame(columns)
        new.append(table if lookup.rows is None or not lookup.names else table[lookup.rows])
    return pl.concat([kept, *new], how="horizontal")


def _append_pandas(kept: Any, lookups: Sequence[Lookup]) -> Any:
    import pandas as pd

    new = [
        pd.DataFrame(lookup.taken(), columns=list(lookup.names), index=kept.index, copy=False)
        for lookup in lookups
    ]
    return pd.concat([kept, *new], axis=1)


def frame_from_columns(columns: Mapping[str, Any], libraries: Sequence[Any]) -> Any:
    """Build a native frame in the first of the libraries that is installed.

    Parameters
    ----------
    columns : mapping of str to sequence
    libraries : sequence of str
        Any of "pandas", "polars" and "pyarrow".
    """
    for library in libraries:
        try:
            return nw.from_dict(dict(columns), backend=library).to_native()
        except ModuleNotFoundError:
            continue
    raise MissingDependencyError(libraries[0], "A table as a frame", "cli")
