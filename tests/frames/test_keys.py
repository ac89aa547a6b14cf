"""Columns of every type as groups of lazy frames."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from tests.lazy.cases import same_rows
from tests.lazy.engines import engine

from sufrep import MeansEncoder
from sufrep.errors import KeyTypeError, UnseenLevelsWarning

__all__ = ["engine"]

N = 40
PICK = np.arange(N) % 4
LEVELS = {
    "text": ["a", 'quoted " and \\ and \n', "😀", ""],
    "category": pl.Series(["a", "b", "c", None], dtype=pl.Categorical),
    "small integers": pl.Series([1, -2, 3, None], dtype=pl.Int8),
    "integers": [2**62, -(2**62), 0, None],
    "huge integers": pl.Series([2**64 - 1, 2**63, 0, None], dtype=pl.UInt64),
    "booleans": [True, False, None, True],
    "floats": [0.5, -0.0, 0.0, None],
    "short floats": pl.Series([0.1, 2.5, -1.0, None], dtype=pl.Float32),
    "dates": [date(2020, 2, 29), date(1900, 1, 1), date(2100, 12, 31), None],
    "datetimes": [datetime(2020, 2, 29, 1, 2, 3, 456789), datetime(1900, 1, 1), datetime(2100, 1, 1), None],
    "zoned datetimes": pl.Series(
        [datetime(2020, 2, 29, 1, 2, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC), None, None]
    ),
    "whole decimals": pl.Series([Decimal(7), Decimal(-3), Decimal(0), None], dtype=pl.Decimal(10, 0)),
    "long decimals": pl.Series([Decimal(10**30), Decimal(-3), Decimal(0), None], dtype=pl.Decimal(38, 0)),
}
# What an engine, or the way into it, cannot hold.
UNKNOWN = {
    "dask": {"category", "huge integers", "whole decimals", "long decimals"},
    "postgres": {"huge integers", "category", "long decimals"},
    "spark": {"huge integers", "datetimes"},  # they get a zone on the way in
    "ibis": {"category"},
}


def rows(levels: object) -> pl.DataFrame:
    series = levels if isinstance(levels, pl.Series) else pl.Series(levels)
    return pl.DataFrame({"id": np.arange(N), "g": series.gather(PICK), "x": np.sqrt(np.arange(N))})


CASES = [
    (engine, name)
    for engine in ("polars", "duckdb", "ibis", "dask", "postgres", "spark")
    for name in LEVELS
    if name not in UNKNOWN.get(engine, ())
]


@pytest.mark.parametrize(("engine", "name"), CASES, indirect=["engine"])
def test_levels_of_every_type_are_those_of_memory(engine, name):
    frame = rows(LEVELS[name])
    eager = MeansEncoder("g").set_output(transform="polars").fit(frame)
    lazy = MeansEncoder("g").fit(engine.put(frame))
    known = eager.representations_["g"].levels.tolist()
    assert lazy.representations_["g"].levels.tolist() == known
    expected = [int if isinstance(level, Decimal) else type(level) for level in known]
    assert [type(level) for level in lazy.representations_["g"].levels] == expected
    same_rows(engine.collect(lazy.transform(engine.put(frame))), eager.transform(frame))
    same_rows(
        engine.collect(eager.set_output(transform="default").transform(engine.put(frame))),
        eager.set_output(transform="polars").transform(frame),
    )


@pytest.mark.parametrize("engine", ["polars", "duckdb"], indirect=True)
@pytest.mark.parametrize("unseen", ["prior", "estimate"])
def test_text_is_never_compared_with_numbers(engine, unseen):
    numbers = rows([1, 2, 3, 4])
    text = numbers.with_columns(pl.col("g").cast(pl.String))
    encoder = MeansEncoder("g", unseen=unseen).fit(engine.put(numbers))
    with pytest.warns(UnseenLevelsWarning, match="holds text values, the levels of fit are of type int"):
        found = engine.collect(encoder.transform(engine.put(text)))
    eager = MeansEncoder("g", unseen=unseen).set_output(transform="polars").fit(numbers)
    with pytest.warns(UnseenLevelsWarning, match="all are new"):
        same_rows(found, eager.transform(text))


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([[1], [2], [3], [4]]),
        pl.Series([{"a": 1}, {"a": 2}, {"a": 3}, None]),
        pl.Series([1.5, 2.5, 0.1, None], dtype=pl.Decimal(10, 2)),
        pl.Series([1, 2, 3, None], dtype=pl.Duration("us")),
    ],
    ids=["list", "struct", "decimal", "interval"],
)
@pytest.mark.parametrize("engine", ["polars", "duckdb"], indirect=True)
def test_what_is_no_key_is_refused(engine, values):
    with pytest.raises(KeyTypeError, match=r"Column 'g' is of type .*\nHint: cast the column to text"):
        MeansEncoder("g").fit(engine.put(rows(values)))


def test_an_identifier_of_duckdb_is_refused():
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    relation = duckdb.connect().sql("SELECT uuid() AS g, 1.0 AS x")
    with pytest.raises(KeyTypeError, match="cast the column to text"):
        MeansEncoder("g").fit(relation)
