"""The engines that lazy frames live in, and how a frame gets there and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import narwhals as nw
import polars as pl
import pytest

_NUMBERS = count()


@dataclass(frozen=True)
class Engine:
    """Puts a frame into an engine as a lazy frame."""

    name: str
    put: Callable[[pl.DataFrame], Any]

    def collect(self, native: Any) -> pl.DataFrame:
        """The rows of a lazy frame of this engine."""
        frame = nw.from_native(native)
        assert isinstance(frame, nw.LazyFrame)
        if frame.implementation.is_dask():  # without the index of pandas
            return pl.from_pandas(native.compute().reset_index(drop=True))
        return pl.from_arrow(frame.collect("pyarrow").to_native())


def put_into_polars(frame: pl.DataFrame) -> Any:
    return frame.lazy()


def put_into_duckdb(frame: pl.DataFrame) -> Any:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    return connection.from_arrow(frame.to_arrow())


def put_into_dask(frame: pl.DataFrame) -> Any:
    dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
    return dd.from_pandas(frame.to_pandas(use_pyarrow_extension_array=True), npartitions=2)


def put_into_ibis(frame: pl.DataFrame) -> Any:
    ibis = pytest.importorskip("ibis", reason="Ibis is not installed")
    return ibis.duckdb.connect().create_table("rows", frame.to_arrow())


def into_postgres(connection: Any) -> Callable[[pl.DataFrame], Any]:
    return lambda frame: connection.create_table(f"rows_{next(_NUMBERS)}", frame.to_arrow())


def into_spark(session: Any) -> Callable[[pl.DataFrame], Any]:
    return lambda frame: session.createDataFrame(frame.to_arrow())


IN_PROCESS = {
    "polars": put_into_polars,
    "duckdb": put_into_duckdb,
    "dask": put_into_dask,
    "ibis": put_into_ibis,
}


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The engine that a test names; it is skipped where the engine is not installed."""
    name = request.param
    if name in IN_PROCESS:
        yield Engine(name, IN_PROCESS[name])
        return
    if name == "spark":
        yield Engine(name, into_spark(request.getfixturevalue("spark_session")))
        return
    server = request.getfixturevalue("postgres_server")
    ibis = pytest.importorskip("ibis", reason="Ibis is not installed")
    database = f"lazy_{next(_NUMBERS)}"  # other tests drop all tables of theirs
    with server.connect() as connection:
        connection.execute(f"CREATE DATABASE {database}")
    connection = ibis.postgres.connect(host=str(server.folder), user=server.user, database=database)
    yield Engine(name, into_postgres(connection))
    connection.disconnect()
