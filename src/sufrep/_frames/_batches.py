"""What no query expresses, or no planner digests: functions of batches of rows, run where the rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import narwhals as nw

from sufrep._frames._upload import engine_of, engine_step
from sufrep._threads import one_thread

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Rows that DuckDB and Ibis return at once.
_BATCH = 1 << 17


class BatchFunction(Protocol):
    """Makes tables of batches of rows; it is sent to the workers of engines that have any."""

    def __call__(self, batches: Iterable[nw.DataFrame[Any]]) -> Iterator[nw.DataFrame[Any]]:
        """Yield tables that are made of the batches of one part of the rows."""

    def output_types(self, schema: nw.Schema) -> dict[str, nw.dtypes.DType]:
        """Types of the columns of these tables, given those of the batches."""


def map_batches(frame: nw.LazyFrame[Any], function: BatchFunction, step: str) -> list[nw.DataFrame[Any]]:
    """Apply a function to the rows of a lazy frame in batches, and return what it yields, in any order."""
    native, implementation = frame.to_native(), frame.implementation
    with engine_step(engine_of(frame), step), one_thread():
        if implementation.is_polars():
            batches = native.collect_batches(maintain_order=False, engine="streaming")
            return list(function(map(_eager, batches)))
        if implementation.is_duckdb():
            return list(function(_arrow_batches(native.to_arrow_reader(_BATCH))))
        if implementation.is_ibis():
            return list(function(_arrow_batches(_ibis_batches(native))))
        if implementation.is_dask():
            return _map_partitions(native, function)
        return _map_in_arrow(native, function, frame.collect_schema())


def _eager(native: Any) -> nw.DataFrame[Any]:
    return nw.from_native(native, eager_only=True)


def _arrow_batches(batches: Iterable[Any]) -> Iterator[nw.DataFrame[Any]]:
    import pyarrow as pa

    for batch in batches:
        yield _eager(pa.Table.from_batches([batch]))


def _ibis_batches(native: Any) -> Any:
    backend = native.get_backend()
    # Ibis 12 calls this method, which connections of DuckDB 2 do not have.
    if backend.name == "duckdb" and not hasattr(backend.con, "fetch_record_batch"):
        return native.to_pyarrow().to_batches(_BATCH)
    return native.to_pyarrow_batches(chunk_size=_BATCH)


def _map_partitions(native: Any, function: BatchFunction) -> list[nw.DataFrame[Any]]:
    from dask.base import compute
    from dask.delayed import delayed

    def apply(partition: Any) -> list[Any]:
        with one_thread():
            return [table.to_native() for table in function(iter([_eager(partition)]))]

    parts = compute(*(delayed(apply)(part) for part in native.to_delayed()))
    return [_eager(table) for part in parts for table in part]


def _map_in_arrow(native: Any, function: BatchFunction, schema: nw.Schema) -> list[nw.DataFrame[Any]]:
    def apply(batches: Iterator[Any]) -> Iterator[Any]:
        with one_thread():
            for table in function(_arrow_batches(batches)):
                yield from table.to_arrow().to_batches()

    types = function.output_types(schema)
    empty = nw.from_dict({name: [] for name in types}, types, backend="pyarrow")
    return [_eager(native.mapInArrow(apply, _spark_schema(empty.to_native())).toArrow())]


def _spark_schema(table: Any) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(table.schema)
