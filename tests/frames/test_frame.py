"""Frames of pandas, polars and pyarrow as tables."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from sufrep._frames import (
    FrameTable,
    Lookup,
    frame_from_columns,
    is_frame,
    library_of,
    refuse_other_tables,
)
from sufrep.errors import (
    ColumnNameError,
    LazyFrameError,
    MissingDependencyError,
    MissingLibraryError,
    OtherTableError,
)

FLOATS = [1.5, None, -2.0]
WHOLE = [1, None, -2]
BOOLEANS = [True, None, False]
PRICES = [Decimal("1.50"), None, Decimal("-2.00")]


def column(native) -> FrameTable:
    """A table of one column."""
    if isinstance(native, pd.Series):
        return FrameTable.from_native(pd.DataFrame({"x": native}))
    if isinstance(native, pl.Series):
        return FrameTable.from_native(pl.DataFrame({"x": native}))
    return FrameTable.from_native(pa.table({"x": native}))


def arrow(values, kind) -> pd.Series:
    return pd.Series(values, dtype=pd.ArrowDtype(kind))


NUMERIC = {
    "pandas float64": (FLOATS, pd.Series(FLOATS)),
    "pandas float32": (FLOATS, pd.Series(FLOATS, dtype="float32")),
    "pandas int8": ([1, 2, -2], pd.Series([1, 2, -2], dtype="int8")),
    "pandas bool": ([True, True, False], pd.Series([True, True, False])),
    "pandas Float64": (FLOATS, pd.Series(FLOATS, dtype="Float64")),
    "pandas Float32": (FLOATS, pd.Series(FLOATS, dtype="Float32")),
    "pandas Int64": (WHOLE, pd.Series([1, pd.NA, -2], dtype="Int64")),
    "pandas boolean": (BOOLEANS, pd.Series(BOOLEANS, dtype="boolean")),
    "pandas boolean without null": ([True, False, True], pd.Series([True, False, True], dtype="boolean")),
    "pandas arrow double": (FLOATS, arrow(FLOATS, pa.float64())),
    "pandas arrow float": (FLOATS, arrow(FLOATS, pa.float32())),
    "pandas arrow int32": (WHOLE, arrow(WHOLE, pa.int32())),
    "pandas arrow bool": (BOOLEANS, arrow(BOOLEANS, pa.bool_())),
    "pandas arrow decimal": (PRICES, arrow(PRICES, pa.decimal128(9, 2))),
    "polars Float64": (FLOATS, pl.Series(FLOATS)),
    "polars Float32": (FLOATS, pl.Series(FLOATS, dtype=pl.Float32)),
    "polars Int64": (WHOLE, pl.Series(WHOLE)),
    "polars UInt8": ([1, None, 2], pl.Series([1, None, 2], dtype=pl.UInt8)),
    "polars Int128": (WHOLE, pl.Series(WHOLE, dtype=pl.Int128)),
    "polars Boolean": (BOOLEANS, pl.Series(BOOLEANS)),
    "polars Decimal": (PRICES, pl.Series(PRICES)),
    "pyarrow double": (FLOATS, pa.chunked_array([FLOATS])),
    "pyarrow float": (FLOATS, pa.chunked_array([FLOATS[:1], FLOATS[1:]], type=pa.float32())),
    "pyarrow int64": (WHOLE, pa.chunked_array([WHOLE[:1], WHOLE[1:]])),
    "pyarrow bool": (BOOLEANS, pa.chunked_array([BOOLEANS])),
    "pyarrow decimal": (PRICES, pa.chunked_array([PRICES])),
}


@pytest.mark.parametrize("kind", NUMERIC)
def test_numbers_of_every_type_are_an_array_with_nan_for_null(kind):
    values, native = NUMERIC[kind]
    table = column(native)
    assert table.kind(0) == "numeric"
    numbers = table.numbers(0)
    assert numbers.dtype.kind in "biuf"
    np.testing.assert_array_equal(numbers, [np.nan if value is None else float(value) for value in values])


def test_numbers_without_null_are_a_view():
    polars, arrowed = pl.Series(np.arange(5.0)), pa.chunked_array([np.arange(5.0)])
    assert np.shares_memory(column(polars).numbers(0), polars.to_numpy())
    assert np.shares_memory(column(arrowed).numbers(0), arrowed.chunk(0).to_numpy())


TEXT = {
    "pandas str": pd.Series(["a"]),
    "pandas object": pd.Series(["a"], dtype=object),
    "pandas category": pd.Series(["a"], dtype="category"),
    "pandas string": pd.Series(["a"], dtype="string"),
    "pandas arrow string": arrow(["a"], pa.string()),
    "polars String": pl.Series(["a"]),
    "polars Categorical": pl.Series(["a"], dtype=pl.Categorical),
    "polars Enum": pl.Series(["a"], dtype=pl.Enum(["a"])),
    "pyarrow string": pa.array(["a"]),
    "pyarrow large_string": pa.array(["a"], pa.large_string()),
    "pyarrow dictionary": pa.array(["a"]).dictionary_encode(),
}
OTHER = {
    "pandas moment": pd.Series([dt.datetime(2020, 1, 1)]),
    "pandas arrow day": arrow([dt.date(2020, 1, 1)], pa.date32()),
    "polars day": pl.Series([dt.date(2020, 1, 1)]),
    "polars null": pl.Series([None]),
    "polars list": pl.Series([[1]]),
    "pyarrow day": pa.array([dt.date(2020, 1, 1)]),
    "pyarrow null": pa.nulls(1),
}


@pytest.mark.parametrize("kind", TEXT)
def test_strings_and_categories_are_text(kind):
    assert column(TEXT[kind]).kind(0) == "text"


@pytest.mark.parametrize("values", [[0.0, 2.5, np.nan], [0, 3, 0], [False, True, False]])
def test_sparse_columns_of_pandas_are_numbers(values):
    dense = pd.DataFrame({"x": values, "y": [1.0, 2.0, 3.0]})
    frame = dense.astype({"x": pd.SparseDtype(dense["x"].dtype)})
    table = FrameTable.from_native(frame)
    assert table.kind(0) == "numeric"
    np.testing.assert_array_equal(table.numbers(0), np.asarray(values, dtype=float))
    assert table.factorize(0).levels.tolist() == FrameTable.from_native(dense).factorize(0).levels.tolist()
    kept = table.encode([0], [], "pandas")
    pd.testing.assert_frame_equal(kept, frame[["x"]])
    np.testing.assert_array_equal(table.encode([0], [], "default").ravel(), np.asarray(values, dtype=float))


@pytest.mark.parametrize("values", [[0.0, 2.5, np.nan], [0, 3, 0], [False, True, False]])
def test_sparse_columns_of_pandas_are_kept_in_polars_frames(values):
    dense = pd.DataFrame({"x": values, "y": [1.0, 2.0, 3.0]}, index=[7, 7, 3])
    frame = dense.astype({"x": pd.SparseDtype(dense["x"].dtype)})
    kept = FrameTable.from_native(frame).encode([1, 0], [], "polars")
    assert kept.equals(FrameTable.from_native(dense).encode([1, 0], [], "polars"))


@pytest.mark.parametrize("kind", OTHER)
def test_dates_and_the_like_are_neither_text_nor_numbers(kind):
    assert column(OTHER[kind]).kind(0) == "other"


def test_a_table_knows_its_rows_names_types_and_library():
    table = FrameTable.from_native(pl.DataFrame({"zipcode": ["a", "b"], "sqft": [1.0, 2.0]}))
    assert (table.n_rows, table.names, table.library) == (2, ("zipcode", "sqft"), "polars")
    assert [table.dtype(j) for j in range(2)] == ["String", "Float64"]


def test_columns_named_by_numbers_are_found_by_position():
    assert FrameTable.from_native(pd.DataFrame([["a", 1.0]])).names == ("x0", "x1")


DUPLICATED = {
    "pandas": pd.DataFrame([["a", 1.0, 2.0]], columns=["zipcode", "sqft", "sqft"]),
    "pyarrow": pa.table([["a"], [1.0], [2.0]], names=["zipcode", "sqft", "sqft"]),
}


@pytest.mark.parametrize("library", DUPLICATED)
def test_columns_that_share_a_name_are_refused(library):
    with pytest.raises(ColumnNameError, match=r"columns that share a name.*\n?.*'sqft' 2 times") as caught:
        FrameTable.from_native(DUPLICATED[library])
    assert "Hint: give every column a name of its own." in str(caught.value)


def test_frames_in_memory_are_frames_and_nothing_else_is():
    frames = [pd.DataFrame({"x": [1]}), pl.DataFrame({"x": [1]}), pa.table({"x": [1]})]
    assert all(is_frame(frame) for frame in frames)
    others = [np.eye(2), [[1]], pl.LazyFrame({"x": [1]}), pd.Series([1]), pl.Series([1]), {"x": [1]}, None]
    assert not any(is_frame(other) for other in others)


def test_columns_in_another_form_are_refused_and_what_may_be_an_array_is_not():
    with pytest.raises(LazyFrameError, match="LazyFrame"):
        refuse_other_tables(pl.LazyFrame({"x": [1]}))
    for other in ({"x": [1]}, pd.Series([1]), pa.table({"x": [1]}).to_reader()):
        with pytest.raises(OtherTableError, match=f"{type(other).__name__}, .*expected a frame"):
            refuse_other_tables(other)
    for other in (np.eye(2), [[1]], sparse.dok_matrix(np.eye(2)), None):
        refuse_other_tables(other)


def test_a_column_is_taken_out_of_a_frame():
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        column, rest = FrameTable.from_native(make({"x": [1, 2], "y": [3, 4], "z": ["a", "b"]})).take_out(1)
        assert np.asarray(column).tolist() == [3, 4]
        assert (rest.names, rest.kind(0), rest.kind(1)) == (("x", "z"), "numeric", "text")


def test_the_preferred_library_comes_first_if_none_is_named():
    assert isinstance(frame_from_columns({"x": [1]}, None, preferred="polars"), pl.DataFrame)
    assert isinstance(frame_from_columns({"x": [1]}, None, preferred="modin"), pd.DataFrame)
    assert isinstance(frame_from_columns({"x": [1]}, "pyarrow", preferred="polars"), pa.Table)
    assert [library_of(X) for X in (pl.DataFrame(), pa.table({}), [[1]])] == ["polars", "pyarrow", None]


NEW = Lookup(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0, 1]), ("u", "v"))
ROWS = {"zipcode": ["b", None, "a"], "sqft": [1.5, None, 2.5], "floors": [1, 2, 3]}
FRAMES = {"pandas": pd.DataFrame(ROWS), "polars": pl.DataFrame(ROWS), "pyarrow": pa.table(ROWS)}
both_ways = pytest.mark.parametrize("container", ["pandas", "polars"])
every_library = pytest.mark.parametrize("library", FRAMES)


def as_dict(frame):
    """Columns of a pandas or polars frame as lists, with None for null."""
    columns = {name: frame[name].to_list() for name in frame.columns}
    return {name: [None if value != value else value for value in found] for name, found in columns.items()}


@both_ways
@every_library
def test_kept_columns_come_before_new_ones_in_a_frame(library, container):
    result = FrameTable.from_native(FRAMES[library]).encode([2, 0, 1], [NEW], container)
    assert type(result).__module__.partition(".")[0] == container
    expected = {"floors": [1, 2, 3], "zipcode": ["b", None, "a"], "sqft": [1.5, None, 2.5]}
    assert as_dict(result) == expected | {"u": [3, 1, 3], "v": [4, 2, 4]}


@both_ways
@every_library
def test_nothing_kept_leaves_the_new_columns_of_a_frame(library, container):
    result = FrameTable.from_native(FRAMES[library]).encode([], [NEW], container)
    assert as_dict(result) == {"u": [3, 1, 3], "v": [4, 2, 4]}


@both_ways
@every_library
def test_new_columns_may_be_none(library, container):
    nothing = Lookup(np.empty((2, 0)), np.array([1, 0, 1]))
    result = FrameTable.from_native(FRAMES[library]).encode([2], [nothing, NEW], container)
    assert as_dict(result) == {"floors": [1, 2, 3], "u": [3, 1, 3], "v": [4, 2, 4]}
    result = FrameTable.from_native(FRAMES[library]).encode([2], [nothing], container)
    assert as_dict(result) == {"floors": [1, 2, 3]}


@every_library
def test_a_pandas_frame_without_columns_keeps_its_rows(library):
    nothing = Lookup(np.empty((2, 0)), np.array([1, 0, 1]))
    assert FrameTable.from_native(FRAMES[library]).encode([], [nothing], "pandas").shape == (3, 0)


@every_library
def test_the_default_is_an_array_of_numbers_where_only_numbers_are_kept(library):
    result = FrameTable.from_native(FRAMES[library]).encode([2, 1], [NEW], "default")
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, [[1, 1.5, 3, 4], [2, np.nan, 1, 2], [3, 2.5, 3, 4]])


@every_library
def test_the_default_is_an_array_of_objects_where_text_is_kept(library):
    result = FrameTable.from_native(FRAMES[library]).encode([0, 2], [NEW], "default")
    assert result.dtype == object
    assert result[[0, 2]].tolist() == [["b", 1, 3.0, 4.0], ["a", 3, 3.0, 4.0]]
    assert pd.isna(result[1, 0])


@every_library
def test_lists_that_are_kept_stay_lists(library):
    frame = {
        "pandas": pd.DataFrame({"tags": [[1, 2], [3, 4], [5, 6]]}),
        "polars": pl.DataFrame({"tags": [[1, 2], [3, 4], [5, 6]]}),
        "pyarrow": pa.table({"tags": [[1, 2], [3, 4], [5, 6]]}),
    }[library]
    result = FrameTable.from_native(frame).encode([0], [NEW], "default")
    assert [list(value) for value in result[:, 0]] == [[1, 2], [3, 4], [5, 6]]


INDEXES = {
    "unsorted": pd.Index([7, 3, 5]),
    "duplicated": pd.Index([1, 1, 0]),
    "text": pd.Index(["r3", "r1", "r2"]),
    "dates": pd.DatetimeIndex(["2020-03-01", "2020-01-01", "2020-02-01"]),
    "of two levels": pd.MultiIndex.from_tuples([("b", 1), ("a", 1), ("b", 0)], names=["s", "t"]),
}


@pytest.mark.parametrize("keep", [[0, 1, 2], []], ids=["passthrough", "drop"])
@pytest.mark.parametrize("index", INDEXES)
def test_an_index_of_pandas_is_kept(index, keep):
    frame = FRAMES["pandas"].set_axis(INDEXES[index])
    result = FrameTable.from_native(frame).encode(keep, [NEW], "pandas")
    pd.testing.assert_index_equal(result.index, INDEXES[index])
    assert result["u"].tolist() == [3, 1, 3]


def test_the_frame_given_is_not_changed():
    frame = FRAMES["pandas"].copy()
    result = FrameTable.from_native(frame).encode([1], [NEW], "pandas")
    result.iloc[0, 0] = 99.0
    pd.testing.assert_frame_equal(frame, FRAMES["pandas"])


@every_library
def test_a_table_is_made_in_the_library_asked_for(library):
    frame = frame_from_columns({"level": ["a", None], "weight": np.array([1.0, 2.0])}, library)
    assert type(frame).__module__.partition(".")[0] == library
    assert FrameTable.from_native(frame).names == ("level", "weight")


def test_a_table_is_made_in_the_next_library_if_the_first_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(frame_from_columns({"level": ["a"]}, None), pl.DataFrame)


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    hint = r"'pandas', which is not installed.\nHint: pip install pandas, or use library='polars'"
    with pytest.raises(MissingLibraryError, match=hint):
        frame_from_columns({"level": ["a"]}, "pandas")


def test_without_any_library_the_extra_is_named(monkeypatch):
    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError

    monkeypatch.setattr(nw, "from_dict", missing)
    with pytest.raises(MissingDependencyError, match=r"needs the package 'polars'.*\n.*sufrep\[cli\]"):
        frame_from_columns({"level": ["a"]}, None)


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1, 2.5, None], "numeric"), ([True, None], "numeric"), (["a", 1], "text"), ([{"a": 1}, 2], "other")],
)
def test_objects_of_pandas_are_what_they_hold(values, kind):
    table = FrameTable.from_native(pd.DataFrame({"x": pd.Series(values, dtype=object)}))
    assert table.kind(0) == kind
    if kind == "numeric":
        expected = [np.nan if value is None else float(value) for value in values]
        np.testing.assert_array_equal(table.numbers(0), expected)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, pd.NA, pd.NaT], "numeric"),
        ([pd.NaT, pd.Timestamp("2020-01-01")], "other"),
        ([np.datetime64("NaT", "s"), 1.0], "numeric"),
        ([np.datetime64("2020-01-01"), 1.0], "other"),
        ([np.str_("a"), None], "text"),
    ],
)
def test_nulls_of_any_type_do_not_decide_what_objects_are(values, kind):
    table = FrameTable.from_native(pd.DataFrame({"x": pd.Series(values, dtype=object)}))
    assert table.kind(0) == kind


def test_the_objects_of_a_column_are_looked_at_once(monkeypatch):
    table, looks = FrameTable.from_native(pd.DataFrame({"x": pd.Series([1, None], dtype=object)})), []
    look = FrameTable._series
    monkeypatch.setattr(FrameTable, "_series", lambda self, j: looks.append(j) or look(self, j))
    assert {table.kind(0) for _ in range(5)} == {"numeric"}
    assert looks == [0]
