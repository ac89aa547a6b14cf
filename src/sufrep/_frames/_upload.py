"""Small tables to and from the session that a lazy frame belongs to."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw

from sufrep.errors import (
    EngineError,
    ForbiddenUploadError,
    MissingDependencyError,
    OldNarwhalsError,
    SufrepError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sufrep._frames._keys import KeyKind

_ENGINES = {"polars": "polars", "duckdb": "DuckDB", "pyspark": "Spark", "dask": "Dask", "ibis": "Ibis"}
# Older versions cannot join relations of DuckDB 2.
_LEAST_NARWHALS = (2, 28)


@dataclass(frozen=True, slots=True, eq=False)
class SmallColumn:
    """A column of a small table: its values, None for null, and what they are."""

    values: Any
    kind: KeyKind
    zone: str | None = None


def engine_of(frame: nw.LazyFrame[Any]) -> str:
    """Name of the engine that executes a lazy frame."""
    name = str(frame.implementation)
    return _ENGINES.get(name.partition("[")[0], name)


@contextmanager
def engine_step(engine: str, step: str) -> Iterator[None]:
    """Report whatever an engine raises as an `EngineError` that says which step failed."""
    try:
        yield
    except (SufrepError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of polars is no Exception
        raise EngineError(engine, step, error) from error


def refuse_old_narwhals() -> None:
    """Raise an error if narwhals is too old for lazy frames."""
    found = tuple(int(part) for part in nw.__version__.split(".")[:2])
    if found < _LEAST_NARWHALS:
        raise OldNarwhalsError(nw.__version__, ".".join(map(str, _LEAST_NARWHALS)))


def collect(frame: nw.LazyFrame[Any], step: str) -> dict[str, nw.Series[Any]]:
    """Execute a query whose result is small, and return its columns."""
    with engine_step(engine_of(frame), step):
        if frame.implementation.is_polars():
            found = frame.collect("polars", engine="streaming")
        else:
            found = frame.collect("pyarrow")
    return {name: found[name] for name in found.columns}


def upload(
    frame: nw.LazyFrame[Any], columns: Mapping[str, SmallColumn], step: str, *, like: Mapping[str, str]
) -> nw.LazyFrame[Any]:
    """Put a small table into the session that a lazy frame belongs to.

    Parameters
    ----------
    frame : LazyFrame
    columns : mapping of str to SmallColumn
    step : str
        What it is for, in case it fails.
    like : mapping of str to str
        Columns that will be compared with a column of the frame. Dask wants both to be of the same type.
    """
    with engine_step(engine_of(frame), step):
        uploaded: nw.LazyFrame[Any] = nw.from_native(_native_table(frame, columns, like))
        return uploaded


def _native_table(
    frame: nw.LazyFrame[Any], columns: Mapping[str, SmallColumn], like: Mapping[str, str]
) -> Any:
    native, implementation = frame.to_native(), frame.implementation
    if implementation.is_polars():
        return _polars_frame(columns).lazy()
    table = _arrow_table(columns)
    if implementation.is_duckdb():
        return _duckdb_relation(native, table)
    if implementation.is_pyspark() or implementation.is_pyspark_connect():
        return native.sparkSession.createDataFrame(table)
    if implementation.is_dask():
        return _dask_frame(table, {mine: native.dtypes[theirs] for mine, theirs in like.items()})
    import ibis

    return ibis.memtable(table)


def _polars_frame(columns: Mapping[str, SmallColumn]) -> Any:
    import polars as pl

    types: dict[KeyKind, Any] = {
        "text": pl.String,
        "integer": pl.Int64,
        "float": pl.Float64,
        "boolean": pl.Boolean,
        "date": pl.Date,
    }
    return pl.DataFrame(
        {
            name: pl.Series(
                column.values,
                dtype=pl.Datetime("us", column.zone) if column.kind == "datetime" else types[column.kind],
            )
            for name, column in columns.items()
        }
    )


def _arrow_table(columns: Mapping[str, SmallColumn]) -> Any:
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise MissingDependencyError("pyarrow", "A lazy frame other than that of polars", "duckdb") from error
    types: dict[KeyKind, Any] = {
        "text": pa.string(),
        "integer": pa.int64(),
        "float": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
    }
    return pa.table(
        {
            name: pa.array(
                column.values,
                type=pa.timestamp("us", column.zone) if column.kind == "datetime" else types[column.kind],
            )
            for name, column in columns.items()
        }
    )


def _duckdb_relation(native: Any, small_table: Any) -> Any:  # noqa: ARG001 - DuckDB reads the variable
    """A relation of the same connection, which only the relation itself knows; it reads a local variable."""
    import duckdb

    try:
        return native.query("sufrep_unused", "SELECT * FROM small_table")
    except duckdb.CatalogException as error:
        raise ForbiddenUploadError from error


def _dask_frame(table: Any, types: Mapping[str, Any]) -> Any:
    import dask.dataframe as dd

    return dd.from_pandas(table.to_pandas().astype(types), npartitions=1)
