"""Columns of every library and type become the same levels and codes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sufrep._frames import Factor
from sufrep._frames._eager import (
    cross,
    factorize_numbers,
    factorize_objects,
    factorize_series,
    with_missing_level,
)
from sufrep.errors import GroupValueError
from sufrep.representation import sort_levels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


Values = list[Any]


def series(native: Any) -> nw.Series[Any]:
    """One column of a frame, as the tables hand it on."""
    return nw.from_native(native, series_only=True, allow_series=True)


def naive(values: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """Codes and levels by the definition: None and NaN are null, levels are sorted."""
    null = [value is None or value != value for value in values]
    levels = sort_levels({value for value, none in zip(values, null, strict=True) if not none}).tolist()
    return [-1 if none else levels.index(value) for value, none in zip(values, null, strict=True)], levels


def found(factor: Factor) -> tuple[list[int], list[Any]]:
    return factor.codes.tolist(), factor.levels.tolist()


def enum_of(values: Values) -> pl.Series:
    """An Enum whose categories are not sorted and of which one does not occur."""
    levels = [value for value in dict.fromkeys(values) if value is not None]
    unused = "x" * (1 + max((len(level) for level in levels), default=0))
    return pl.Series(values, dtype=pl.Enum([unused, *reversed(levels)]))


def categories_of(values: Values) -> pd.Series[Any]:
    levels = [value for value in dict.fromkeys(values) if value is not None]
    unused = "x" * (1 + max((len(level) for level in levels), default=0))
    return pd.Series(pd.Categorical(values, categories=[unused, *reversed(levels)]))


def two_dictionaries(values: Values) -> pa.ChunkedArray:
    """Chunks that number the same levels differently."""
    halves = [values[: len(values) // 2], values[len(values) // 2 :]]
    return pa.chunked_array([pa.array(half, pa.string()).dictionary_encode() for half in halves])


TEXT: dict[str, Callable[[Values], Any]] = {
    "pandas str": lambda values: pd.Series(values, dtype="str"),
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "pandas category": categories_of,
    "pandas string[python]": lambda values: pd.Series(pd.array(values, dtype="string[python]")),
    "pandas string[pyarrow]": lambda values: pd.Series(pd.array(values, dtype="string[pyarrow]")),
    "pandas ArrowDtype(string)": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.string())),
    "pandas ArrowDtype(dictionary)": lambda values: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array(values, pa.string()).dictionary_encode())
    ),
    "polars String": lambda values: pl.Series(values, dtype=pl.String),
    "polars Categorical": lambda values: pl.Series(values, dtype=pl.Categorical),
    "polars Enum": enum_of,
    "polars in chunks": lambda values: pl.concat(
        [pl.Series(values[:1], dtype=pl.String), pl.Series(values[1:], dtype=pl.String)], rechunk=False
    ),
    "pyarrow string": lambda values: pa.chunked_array([pa.array(values, pa.string())]),
    "pyarrow large_string": lambda values: pa.chunked_array([pa.array(values, pa.large_string())]),
    "pyarrow string_view": lambda values: pa.chunked_array([pa.array(values, pa.string_view())]),
    "pyarrow dictionary": two_dictionaries,
    "pyarrow in chunks": lambda values: pa.chunked_array([values[:1], values[1:]], type=pa.string()),
    "pyarrow slice": lambda values: pa.chunked_array([pa.array(["cut", *values], pa.string())]).slice(1),
}

# What a text column may hold: anything that all libraries can, so no lone surrogates.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.sampled_from(
    ["None", "nan", "NaN", "missing", "", " ", "😀", "👩‍🚀", "é", "e\u0301", "98178"]
)


@pytest.mark.parametrize("library", TEXT)
@given(values=st.lists(st.none() | texts, min_size=1, max_size=12))
@example(values=["None", None, "nan", "missing", "", "😀", "None"])
@example(values=[None])
def test_text_of_every_library_has_the_levels_and_codes_of_the_definition(library, values):
    assert found(factorize_series(series(TEXT[library](values)))) == naive(values)


NUMBERS: dict[str, Callable[[Values], Any]] = {
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "pandas Int64": lambda values: pd.Series(pd.array(values, dtype="Int64")),
    "pandas ArrowDtype": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.int64())),
    "polars": lambda values: pl.Series(values, dtype=pl.Int64),
    "pyarrow": lambda values: pa.chunked_array([pa.array(values, pa.int64())]),
    "pyarrow dictionary": lambda values: pa.chunked_array([pa.array(values, pa.int64()).dictionary_encode()]),
}

integers = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.integers(2**62, 2**62 + 3)


@pytest.mark.parametrize("library", NUMBERS)
@given(values=st.lists(st.none() | integers, min_size=1, max_size=12))
@example(values=[2**62, None, 2**62 + 1, 2**62])
@example(values=[-(2**63), 2**63 - 1, None])
def test_integers_next_to_nulls_keep_every_digit(library, values):
    assert found(factorize_series(series(NUMBERS[library](values)))) == naive(values)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@given(data=st.data())
def test_integers_of_every_width_are_distinguished(dtype, data):
    limits = np.iinfo(dtype)
    values = data.draw(st.lists(st.integers(int(limits.min), int(limits.max)), min_size=1, max_size=12))
    assert found(factorize_numbers(np.array(values, dtype=dtype))) == naive(values)


def test_the_whole_range_of_int16_is_distinguished():
    values = np.arange(-(2**15), 2**15, dtype=np.int16)
    factor = factorize_numbers(values)
    assert np.array_equal(factor.codes, np.arange(2**16))
    assert factor.levels.tolist() == values.tolist()


FLOATS: dict[str, Callable[[Values], Any]] = {
    "pandas float64": lambda values: pd.Series(values, dtype="float64"),
    "pandas Float64": lambda values: pd.Series(pd.array(values, dtype="Float64")),
    "pandas ArrowDtype": lambda values: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array(values, pa.float64()))
    ),
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "polars": lambda values: pl.Series(values, dtype=pl.Float64),
    "pyarrow": lambda values: pa.chunked_array([pa.array(values, pa.float64())]),
    "pyarrow dictionary": lambda values: pa.chunked_array(
        [pa.array(values, pa.float64()).dictionary_encode()]
    ),
}

floats = st.floats(allow_nan=False) | st.sampled_from([0.0, 1.0, 2.0, 1.5, 2.0**53, 2.0**53 + 2, np.inf])


@pytest.mark.parametrize("library", FLOATS)
@given(values=st.lists(st.none() | floats.map(lambda value: value + 0.0), min_size=1, max_size=12))
def test_floats_have_the_levels_of_the_definition(library, values):
    assert found(factorize_series(series(FLOATS[library](values)))) == naive(values)


@pytest.mark.parametrize("values", [[1.5, float("nan"), None, 0.5], [2.0, float("nan"), None, 0.0]], ids=str)
@pytest.mark.parametrize("library", FLOATS)
def test_nan_is_null_and_no_level(library, values):
    assert found(factorize_series(series(FLOATS[library](values)))) == (
        [1, -1, -1, 0],
        [values[3], values[0]],
    )


@pytest.mark.parametrize("values", [[0.0, -0.0, 1.0], [0.0, -0.0, 1.5]], ids=str)
@pytest.mark.parametrize("library", FLOATS)
def test_zero_and_minus_zero_are_one_level(library, values):
    assert found(factorize_series(series(FLOATS[library](values)))) == ([0, 0, 1], [0.0, values[2]])


def test_nan_that_arithmetic_left_in_a_nullable_column_is_null():
    zero = pd.Series(pd.array([0.0, 1.0, None], dtype="Float64"))
    assert found(factorize_series(series(zero / zero))) == ([-1, 0, -1], [1.0])


BOOLEANS: dict[str, Callable[[Values], Any]] = {
    "pandas boolean": lambda values: pd.Series(pd.array(values, dtype="boolean")),
    "pandas ArrowDtype": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.bool_())),
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "polars": lambda values: pl.Series(values, dtype=pl.Boolean),
    "pyarrow": lambda values: pa.chunked_array([pa.array(values, pa.bool_())]),
}


@pytest.mark.parametrize("values", [[True, None, False, True], [True, False], [None, True]], ids=str)
@pytest.mark.parametrize("library", BOOLEANS)
def test_booleans_stay_booleans(library, values):
    codes, levels = found(factorize_series(series(BOOLEANS[library](values))))
    assert (codes, levels) == naive(values)
    # 1 == True, but their labels differ.
    assert {type(level) for level in levels} == {bool}


DAYS = [dt.date(2020, 2, 29), None, dt.date(1969, 7, 20), dt.date(2020, 2, 29)]
MOMENTS = [dt.datetime(2020, 2, 29, 1, 2, 3, 4), None, dt.datetime(1969, 7, 20), dt.datetime(2020, 2, 29)]
TIMES = [dt.time(1, 2), None, dt.time(0, 0), dt.time(1, 2)]
SPANS = [dt.timedelta(days=1), None, dt.timedelta(seconds=-1), dt.timedelta(days=1)]
BYTES = [b"\xff", None, b"a", b"\xff"]
PRICES = [Decimal("1.50"), None, Decimal("0.25"), Decimal("1.50")]

OTHERS = {
    "pandas days": (DAYS, pd.Series(DAYS, dtype=object)),
    "pandas arrow days": (DAYS, pd.Series(DAYS, dtype=pd.ArrowDtype(pa.date32()))),
    "polars days": (DAYS, pl.Series(DAYS)),
    "pyarrow days": (DAYS, pa.chunked_array([DAYS])),
    "pandas moments": (MOMENTS, pd.Series(MOMENTS)),
    "pandas arrow moments": (MOMENTS, pd.Series(MOMENTS, dtype=pd.ArrowDtype(pa.timestamp("us")))),
    "polars moments": (MOMENTS, pl.Series(MOMENTS)),
    "pyarrow moments": (MOMENTS, pa.chunked_array([MOMENTS])),
    "polars times": (TIMES, pl.Series(TIMES)),
    "pyarrow times": (TIMES, pa.chunked_array([TIMES])),
    "pandas spans": (SPANS, pd.Series(SPANS)),
    "polars spans": (SPANS, pl.Series(SPANS)),
    "pyarrow spans": (SPANS, pa.chunked_array([SPANS])),
    "pandas bytes": (BYTES, pd.Series(BYTES, dtype=object)),
    "polars bytes": (BYTES, pl.Series(BYTES)),
    "pyarrow bytes": (BYTES, pa.chunked_array([BYTES])),
    "pandas prices": (PRICES, pd.Series(PRICES, dtype=object)),
    "pandas arrow prices": (PRICES, pd.Series(PRICES, dtype=pd.ArrowDtype(pa.decimal128(9, 2)))),
    "polars prices": (PRICES, pl.Series(PRICES)),
    "pyarrow prices": (PRICES, pa.chunked_array([PRICES])),
    "polars wide integers": ([2**70, None, 1, 2**70], pl.Series([2**70, None, 1, 2**70], dtype=pl.Int128)),
    "polars objects": (["b", None, "a", "b"], pl.Series(["b", None, "a", "b"], dtype=pl.Object)),
    "pandas categories that are numbers": ([3, None, 1, 3], pd.Series(pd.Categorical([3, None, 1, 3]))),
}


@pytest.mark.parametrize("column", OTHERS)
def test_other_types_have_the_levels_of_the_definition(column):
    values, native = OTHERS[column]
    assert found(factorize_series(series(native))) == naive(values)


NOTHING = {
    "pandas object": pd.Series([None, None], dtype=object),
    "pandas str": pd.Series([None, None], dtype="str"),
    "pandas float": pd.Series([np.nan, np.nan]),
    "pandas Int64": pd.Series(pd.array([None, None], dtype="Int64")),
    "pandas category": pd.Series(pd.Categorical([None, None])),
    "pandas category with levels": pd.Series(pd.Categorical([None, None], categories=["a"])),
    "polars Null": pl.Series([None, None]),
    "polars String": pl.Series([None, None], dtype=pl.String),
    "polars Int64": pl.Series([None, None], dtype=pl.Int64),
    "polars Enum": pl.Series([None, None], dtype=pl.Enum(["a"])),
    "pyarrow null": pa.chunked_array([pa.nulls(2)]),
    "pyarrow string": pa.chunked_array([pa.nulls(2, pa.string())]),
    "pyarrow dictionary": pa.chunked_array([pa.nulls(2, pa.string()).dictionary_encode()]),
}


@pytest.mark.parametrize("column", NOTHING)
def test_a_column_of_nulls_has_no_level(column):
    assert found(factorize_series(series(NOTHING[column]))) == ([-1, -1], [])


def test_null_and_unused_entries_of_a_dictionary_are_no_levels():
    entries = pa.array(["unused", None, "b", "a"])
    encoded = pa.DictionaryArray.from_arrays(pa.array([2, 1, None, 3]), entries)
    assert found(factorize_series(series(pa.chunked_array([encoded])))) == ([1, -1, -1, 0], ["a", "b"])


@pytest.mark.parametrize("null", [None, float("nan"), np.nan, np.float32("nan"), pd.NaT, pd.NA], ids=repr)
def test_every_kind_of_null_among_objects_is_null(null):
    assert found(factorize_objects("zipcode", ["b", null, "a"])) == ([1, -1, 0], ["a", "b"])


@pytest.mark.parametrize("null", [float("nan"), pd.NaT, pd.NA], ids=repr)
def test_every_kind_of_null_in_an_object_column_of_pandas_is_null(null):
    column = pd.Series(["b", null, 7], dtype=object)
    assert found(factorize_series(series(column))) == ([1, -1, 0], [7, "b"])


def test_objects_of_several_types_are_sorted_type_by_type():
    values = ["b", 10, 9.5, None, ("x", 1), "a", dt.date(2020, 1, 1), True]
    levels = factorize_objects("mixed", values).levels.tolist()
    assert levels == [True, 9.5, 10, dt.date(2020, 1, 1), "a", "b", ("x", 1)]


def test_numbers_and_text_that_look_alike_are_two_levels():
    assert found(factorize_objects("zipcode", ["98178", 98178])) == ([1, 0], [98178, "98178"])


def test_numpy_scalars_become_plain_levels():
    values = [np.str_("a"), np.int64(3), np.float64(0.5), np.bool_(False)]
    levels = factorize_objects("mixed", values).levels.tolist()
    assert {type(level) for level in levels} == {str, int, float, bool}


def test_levels_need_be_no_more_than_hashable():
    first, second = UUID(int=1), UUID(int=2)
    assert found(factorize_objects("id", [second, first])) == ([1, 0], [first, second])


@pytest.mark.parametrize("value", [{"a": 1}, [1, 2], {1}, np.array([1]), np.array([1, 2])], ids=repr)
def test_objects_that_are_not_hashable_are_refused_by_the_column_that_holds_them(value):
    with pytest.raises(GroupValueError, match=f"Column 'tags' holds a {type(value).__name__}") as caught:
        factorize_objects("tags", ["a", value])
    assert "Hint: convert the column to text first." in str(caught.value)


NESTED = {
    "pandas lists": pd.Series([[1], [2]], name="tags"),
    "pandas dicts": pd.Series([{"a": 1}, {}], name="tags"),
    "pandas arrays": pd.Series([np.arange(2), np.arange(3)], name="tags"),
    "pandas arrow lists": pd.Series(pd.arrays.ArrowExtensionArray(pa.array([[1], [2]])), name="tags"),
    "polars lists": pl.Series("tags", [[1], [2]]),
    "polars arrays": pl.Series("tags", [[1], [2]], dtype=pl.Array(pl.Int64, 1)),
    "polars structs": pl.Series("tags", [{"a": 1}, {"a": 2}]),
    "polars dicts": pl.Series("tags", [{"a": 1}, {"a": 2}], dtype=pl.Object),
}


@pytest.mark.parametrize("column", NESTED)
def test_nested_columns_are_refused_by_name(column):
    with pytest.raises(GroupValueError, match="Column 'tags' holds"):
        factorize_series(series(NESTED[column]))


@pytest.mark.parametrize("values", [[[1], [2]], [{"a": 1}, {"a": 2}]], ids=["lists", "structs"])
def test_nested_columns_of_pyarrow_are_refused_by_name(values):
    frame = nw.from_native(pa.table({"tags": values}), eager_only=True)
    with pytest.raises(GroupValueError, match="Column 'tags' holds"):
        factorize_series(frame[:, 0])


@given(st.lists(st.none() | texts, min_size=1, max_size=12))
def test_null_becomes_the_last_level(values):
    factor = factorize_objects("zipcode", values)
    whole = with_missing_level(factor)
    assert [whole.levels[code] for code in whole.codes] == values
    assert whole.levels.tolist() == [*factor.levels.tolist(), *([None] if None in values else [])]


def test_a_column_without_null_gets_no_missing_level():
    factor = factorize_objects("zipcode", ["a", "b"])
    assert with_missing_level(factor) is factor


def test_the_missing_level_differs_from_levels_called_missing():
    factor = with_missing_level(factorize_objects("zipcode", ["missing", None, "None", "nan"]))
    assert found(factor) == ([1, 3, 0, 2], ["None", "missing", "nan", None])


parts = st.integers(1, 10).flatmap(
    lambda n: st.lists(
        st.lists(st.none() | st.sampled_from("abc"), min_size=n, max_size=n), min_size=1, max_size=3
    )
)


@given(parts)
def test_crossed_columns_have_the_levels_of_a_column_of_tuples(columns):
    rows = list(zip(*columns, strict=True))
    crossed = cross([factorize_objects("part", column) for column in columns], keep_null=True)
    assert found(crossed) == naive(rows)


@given(parts)
def test_one_null_makes_the_whole_combination_null_unless_nulls_are_kept(columns):
    rows = [None if None in row else row for row in zip(*columns, strict=True)]
    crossed = cross([factorize_objects("part", column) for column in columns], keep_null=False)
    assert found(crossed) == naive(rows)


def test_crossing_many_columns_of_many_levels_does_not_overflow():
    # 500 ** 12 combinations are more than an integer can number.
    rng = np.random.default_rng(0)
    columns = [rng.permutation(500) for _ in range(12)]
    crossed = cross([factorize_numbers(column) for column in columns], keep_null=True)
    assert found(crossed) == naive(list(zip(*(column.tolist() for column in columns), strict=True)))


def test_nothing_has_no_levels():
    assert found(factorize_objects("zipcode", [])) == ([], [])
    assert found(factorize_numbers(np.empty(0))) == ([], [])
    assert found(factorize_series(series(pa.chunked_array([], type=pa.string())))) == ([], [])
