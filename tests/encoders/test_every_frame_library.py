"""The same rows give the same numbers in every frame library and with every column type."""

from __future__ import annotations

import datetime as dt
import functools
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sufrep import MeansEncoder, make_encoder

if TYPE_CHECKING:
    from collections.abc import Callable

# Levels of five digits sort in the same way as text and as numbers. Covariates are quarters, which
# float32 holds exactly. Every column has nulls.
RNG = np.random.default_rng(0)
N = 30
Z = [None if j % 9 == 4 else [98001, 98178, 98125, 98052][j % 4] for j in range(N)]
SQFT = [None if j % 7 == 3 else float(v) / 4 for j, v in enumerate(RNG.integers(1000, 9000, N))]
FLOORS = [None if j % 11 == 5 else int(v) for j, v in enumerate(RNG.integers(1, 4, N))]
GARDEN = [None if j % 8 == 6 else bool(v) for j, v in enumerate(RNG.integers(0, 2, N))]
PRICE = RNG.normal(size=N)
NAMES = ("zipcode", "sqft", "floors", "garden")

TEXT = [None if level is None else str(level) for level in Z]
CATEGORIES = ["98178", "unused", "98001", "98052", "98125"]
# What a table must provide: levels in order and their names; means of the covariates; and for the rows to be
# transformed, their covariates too. test_registry.py compares all methods in a few libraries.
KINDS = ["one_hot", "means", "mixed_model"]


def _pandas(group: Any, sqft: Any, floors: Any, garden: Any) -> pd.DataFrame:
    return pd.DataFrame(dict(zip(NAMES, (group, sqft, floors, garden), strict=True)))


def _pandas_text(group: Any) -> pd.DataFrame:
    """Numbers as pandas reads them from a file: floats."""
    floats = [[np.nan if value is None else float(value) for value in column] for column in (FLOORS, GARDEN)]
    return _pandas(group, SQFT, *floats)


def _pandas_typed(sqft: Any, floors: Any, garden: Any, group: Any = None) -> pd.DataFrame:
    typed = [
        pd.array([pd.NA if value is None else value for value in values], dtype=kind)
        for values, kind in zip((SQFT, FLOORS, GARDEN), (sqft, floors, garden), strict=True)
    ]
    return _pandas(TEXT if group is None else group, *typed)


def _polars(group: Any, **types: Any) -> pl.DataFrame:
    columns = {"zipcode": group, "sqft": SQFT, "floors": FLOORS, "garden": GARDEN}
    return pl.DataFrame(columns, schema_overrides=types)


def _pyarrow(group: Any, sqft: Any = None, n_chunks: int = 1) -> pa.Table:
    columns = [group, pa.array(SQFT, sqft), pa.array(FLOORS), pa.array(GARDEN)]
    table = pa.table(dict(zip(NAMES, columns, strict=True)))
    cuts = np.linspace(0, N, n_chunks + 1).astype(int).tolist()
    return pa.concat_tables([table.slice(a, b - a) for a, b in pairwise(cuts)])


def _objects(group: Any, null: Any) -> np.ndarray[Any, Any]:
    rows = np.empty((N, 4), dtype=object)
    for j, column in enumerate((group, SQFT, FLOORS, GARDEN)):
        rows[:, j] = [null if value is None else value for value in column]
    return rows


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas str": lambda: _pandas_text(pd.Series(TEXT, dtype="str")),
    "pandas object": lambda: _pandas_text(pd.Series(TEXT, dtype=object)),
    "pandas category": lambda: _pandas_text(pd.Categorical(TEXT, categories=CATEGORIES)),
    "pandas string[python]": lambda: _pandas_text(pd.array(TEXT, dtype="string[python]")),
    "pandas string[pyarrow]": lambda: _pandas_text(pd.array(TEXT, dtype="string[pyarrow]")),
    "pandas arrow string": lambda: _pandas_text(pd.array(TEXT, dtype=pd.ArrowDtype(pa.string()))),
    "pandas arrow dictionary": lambda: _pandas_text(
        pd.arrays.ArrowExtensionArray(pa.array(TEXT).dictionary_encode())
    ),
    "pandas numbers": lambda: _pandas_text([np.nan if level is None else level for level in Z]),
    "pandas Int64": lambda: _pandas_text(pd.array(Z, dtype="Int64")),
    "pandas arrow numbers": lambda: _pandas_text(pd.array(Z, dtype=pd.ArrowDtype(pa.int32()))),
    "pandas objects with pd.NA": lambda: _pandas_text(pd.Series([pd.NA if z is None else z for z in Z])),
    "pandas float32": lambda: _pandas_text(TEXT).astype(dict.fromkeys(NAMES[1:], "float32")),
    "pandas Float64": lambda: _pandas_typed("Float64", "Int64", "boolean"),
    "pandas Float32": lambda: _pandas_typed("Float32", "Int8", "boolean"),
    "pandas arrow": lambda: _pandas_typed(
        *(pd.ArrowDtype(kind) for kind in (pa.float64(), pa.int64(), pa.bool_())),
        group=pd.array(TEXT, dtype=pd.ArrowDtype(pa.large_string())),
    ),
    "pandas arrow float32": lambda: _pandas_typed(
        *(pd.ArrowDtype(kind) for kind in (pa.float32(), pa.uint8(), pa.bool_()))
    ),
    "polars String": lambda: _polars(TEXT),
    "polars Categorical": lambda: _polars(pl.Series(TEXT, dtype=pl.Categorical)),
    "polars Enum": lambda: _polars(pl.Series(TEXT, dtype=pl.Enum(CATEGORIES))),
    "polars Int64": lambda: _polars(Z),
    "polars UInt32": lambda: _polars(Z, zipcode=pl.UInt32),
    "polars Float32": lambda: _polars(TEXT, sqft=pl.Float32, floors=pl.UInt8),
    "polars in chunks": lambda: pl.concat([_polars(TEXT)[:7], _polars(TEXT)[7:]], rechunk=False),
    "pyarrow string": lambda: _pyarrow(pa.array(TEXT)),
    "pyarrow large_string": lambda: _pyarrow(pa.array(TEXT, pa.large_string()), pa.float32()),
    "pyarrow dictionary": lambda: _pyarrow(pa.array(TEXT).dictionary_encode()),
    "pyarrow int64": lambda: _pyarrow(pa.array(Z)),
    "pyarrow in chunks": lambda: _pyarrow(pa.array(TEXT), n_chunks=4),
    "pyarrow dictionary in chunks": lambda: _pyarrow(pa.array(TEXT).dictionary_encode(), n_chunks=3),
    "numpy objects with None": lambda: _objects(TEXT, None),
    "numpy objects with NaN": lambda: _objects(TEXT, float("nan")),
    "numpy objects of numbers": lambda: _objects(Z, None),
    "numpy float64": lambda: _objects(Z, None).astype(np.float64),
    "list": lambda: _objects(TEXT, None).tolist(),
}


def numbers(result: Any) -> np.ndarray[Any, Any]:
    """An array of floats from any output, NaN for every kind of null."""
    if isinstance(result, np.ndarray):
        assert result.dtype == np.float64
        return result
    columns = [result[name].to_list() for name in result.columns]
    rows = [[np.nan if pd.isna(value) else float(value) for value in column] for column in columns]
    return np.array(rows).T


@functools.cache
def expected(method: str) -> dict[str, np.ndarray[Any, Any]]:
    """What plain pandas gives; the two differ where the target is cross-fitted."""
    encoder, frame = make_encoder(method, "zipcode"), _pandas_text(TEXT)
    return {"fit_transform": encoder.fit_transform(frame, PRICE), "transform": encoder.transform(frame)}


@pytest.mark.parametrize("method", KINDS)
@pytest.mark.parametrize("frame", FRAMES)
def test_every_library_and_column_type_gives_the_same_numbers(frame, method):
    encoder = make_encoder(method, 0)
    found = encoder.fit_transform(FRAMES[frame](), PRICE)
    np.testing.assert_allclose(numbers(found), expected(method)["fit_transform"], rtol=1e-8, atol=1e-10)
    for container in ("pandas", "polars"):
        found = encoder.set_output(transform=container).transform(FRAMES[frame]())
        np.testing.assert_allclose(numbers(found), expected(method)["transform"], rtol=1e-8, atol=1e-10)


def test_the_numbers_are_the_means_of_the_levels():
    result = MeansEncoder("zipcode").fit_transform(_pandas_text(TEXT))
    for row in range(N):
        for j, column in enumerate((SQFT, FLOORS, GARDEN)):
            same = [column[k] for k in range(N) if TEXT[k] == TEXT[row] and column[k] is not None]
            assert result[row, 3 + j] == pytest.approx(np.mean(same))


@pytest.mark.parametrize("method", KINDS)
@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("frame", ["pandas str", "polars String", "pyarrow string"])
def test_the_output_is_of_the_library_asked_for_under_the_same_names(frame, container, method):
    encoder = make_encoder(method, "zipcode").set_output(transform=container)
    result = encoder.fit_transform(FRAMES[frame](), PRICE)
    assert type(result).__module__.partition(".")[0] == container
    assert list(result.columns) == encoder.get_feature_names_out().tolist()


@pytest.mark.parametrize("used", ["pandas str", "polars String", "pyarrow dictionary"])
@pytest.mark.parametrize("fitted", ["pandas arrow", "polars Enum", "pyarrow large_string"])
def test_rows_to_transform_may_come_from_another_library(fitted, used):
    encoder = MeansEncoder("zipcode", unseen="error").fit(FRAMES[fitted]())
    np.testing.assert_allclose(numbers(encoder.transform(FRAMES[used]())), expected("means")["transform"])


def test_integers_and_equal_floats_are_the_same_level():
    # pandas turns integers next to nulls into floats.
    encoder = MeansEncoder("zipcode", unseen="error").fit(FRAMES["polars Int64"]())
    found = encoder.transform(FRAMES["pandas numbers"]())
    np.testing.assert_allclose(found, expected("means")["transform"])


LEVELS = {
    "numbers beyond the digits of floats": [2**62, 2**62 + 1, None, 2**62 + 1],
    "booleans": [True, False, None, True],
    "emoji": ["😀", "👩‍🚀", None, "😀"],
    "floats": [0.5, -1.25, None, 0.5],
    "days": [dt.date(2020, 2, 29), dt.date(1969, 7, 20), None, dt.date(2020, 2, 29)],
    "moments": [
        dt.datetime(2020, 2, 29, 1, 2),
        dt.datetime(1969, 7, 20),
        None,
        dt.datetime(2020, 2, 29, 1, 2),
    ],
    "text that looks like null": ["None", "nan", None, "missing"],
    "empty text": ["", " ", None, ""],
}
MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    "pandas": lambda values: pd.DataFrame({"g": pd.Series(values, dtype=object), "x": [1.0, 2, 3, 4]}),
    "pandas nullable": lambda values: pd.DataFrame({"g": pd.array(values), "x": [1.0, 2, 3, 4]}),
    "pandas arrow": lambda values: pa.table({"g": values, "x": [1.0, 2, 3, 4]}).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "polars": lambda values: pl.DataFrame({"g": values, "x": [1.0, 2, 3, 4]}),
    "pyarrow": lambda values: pa.table({"g": values, "x": [1.0, 2, 3, 4]}),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("kind", LEVELS)
def test_unusual_levels_are_distinguished_in_every_library(kind, maker):
    frame = MAKERS[maker](LEVELS[kind])
    encoder = MeansEncoder("g", remainder="drop").fit(frame)
    means = {level: np.mean([j + 1 for j in range(4) if LEVELS[kind][j] == level]) for level in LEVELS[kind]}
    levels = encoder.representations_["g"].levels.tolist()
    assert set(levels) == set(LEVELS[kind])
    assert levels[-1] is None
    found = encoder.transform(frame).ravel().tolist()
    assert found == [means[level] for level in LEVELS[kind]]


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("kind", [kind for kind in LEVELS if kind != "text that looks like null"])
def test_one_hot_columns_have_the_same_names_in_every_library(kind, maker):
    encoder = make_encoder("one_hot", "g", remainder="drop")
    names = encoder.fit(MAKERS[maker](LEVELS[kind])).get_feature_names_out().tolist()
    assert names == encoder.fit(MAKERS["pandas"](LEVELS[kind])).get_feature_names_out().tolist()
