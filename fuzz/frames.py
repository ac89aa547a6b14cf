"""Columns as plain lists, frames of every library made from them, and the strategies that draw them."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

# A column is {"kind": ..., "values": [...]}; None is a null. Dates are days since 1970, moments microseconds.
Column = dict[str, Any]

LIBRARIES = ("pandas", "pandas nullable", "pandas arrow", "polars", "pyarrow", "numpy")
GROUP_KINDS = ("text", "category", "int64", "uint64", "bool", "float64", "date", "datetime")
COVARIATE_KINDS = ("float64", "float32", "int64", "uint64", "int8", "bool")

_ARROW = {
    "text": pa.string(),
    "category": pa.string(),
    "float64": pa.float64(),
    "float32": pa.float32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "int8": pa.int8(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
}
_POLARS: dict[str, Any] = {
    "text": pl.String,
    "category": pl.Categorical,
    "float64": pl.Float64,
    "float32": pl.Float32,
    "int64": pl.Int64,
    "uint64": pl.UInt64,
    "int8": pl.Int8,
    "bool": pl.Boolean,
    "date": pl.Date,
    "datetime": pl.Datetime("us"),
}
_NULLABLE = {
    "text": "string",
    "float64": "Float64",
    "float32": "Float32",
    "int64": "Int64",
    "uint64": "UInt64",
    "int8": "Int8",
    "bool": "boolean",
}


# Frames


def build(library: str, columns: list[Column], rows: list[int] | None = None) -> Any:
    """A frame whose columns are called x0, x1, …; of some rows, or all."""
    lists = [python_values(column) for column in columns]
    if rows is not None:
        lists = [[values[row] for row in rows] for values in lists]
    kinds = [column["kind"] for column in columns]
    if library == "numpy":
        return _array(kinds, lists)
    made = {
        f"x{j}": _MAKERS[library](kind, values)
        for j, (kind, values) in enumerate(zip(kinds, lists, strict=True))
    }
    if library == "polars":
        return pl.DataFrame(made)
    return pa.table(made) if library == "pyarrow" else pd.DataFrame(made)


def python_values(column: Column) -> list[Any]:
    """The values as Python objects: dates for days, floats of single precision rounded to it."""
    kind, values = column["kind"], column["values"]
    if kind == "date":
        return [None if value is None else dt.date(1970, 1, 1) + dt.timedelta(days=value) for value in values]
    if kind == "datetime":
        start = dt.datetime(1970, 1, 1)
        return [None if value is None else start + dt.timedelta(microseconds=value) for value in values]
    if kind == "float32":
        return [None if value is None else float(np.float32(value)) for value in values]
    return list(values)


def is_null(value: Any) -> bool:
    """Whether a value counts as missing."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _array(kinds: list[str], lists: list[list[Any]]) -> Any:
    if set(kinds) == {"float64"}:
        return np.array([[math.nan if value is None else value for value in values] for values in lists]).T
    rows = np.empty((len(lists[0]), len(lists)), dtype=object)
    for j, values in enumerate(lists):
        for i, value in enumerate(values):
            rows[i, j] = value
    return rows


def _pandas(kind: str, values: list[Any]) -> Any:
    if kind == "category":
        return pd.Categorical(values)
    if kind == "text":
        return pd.Series(values, dtype="str")
    if kind == "datetime":
        return pd.Series(values, dtype="datetime64[us]")
    if kind.startswith("float"):
        return pd.Series([math.nan if value is None else value for value in values], dtype=kind)
    # Integers next to nulls would become floats, which lose digits beyond 2**53.
    if any(value is None for value in values) and kind in ("int64", "uint64", "int8"):
        return _nullable(kind, values)
    if kind == "bool" and all(value is None for value in values):
        return pd.Series([math.nan] * len(values))  # objects that are all null have no type
    has_null = any(value is None for value in values)
    return pd.Series(values, dtype=object if kind == "date" or has_null else kind)


def _nullable(kind: str, values: list[Any]) -> Any:
    return pd.array(values, dtype=_NULLABLE[kind]) if kind in _NULLABLE else _pandas(kind, values)


def _arrow(kind: str, values: list[Any]) -> Any:
    array = pa.array(values, _ARROW[kind])
    return array.dictionary_encode() if kind == "category" else array


_MAKERS: dict[str, Any] = {
    "pandas": _pandas,
    "pandas nullable": _nullable,
    "pandas arrow": lambda kind, values: pd.arrays.ArrowExtensionArray(_arrow(kind, values)),
    "polars": lambda kind, values: pl.Series(values, dtype=_POLARS[kind]),
    "pyarrow": _arrow,
}


# Strategies

_TEXTS = st.one_of(
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(
        ["", " ", "None", "nan", "null", "01", "1", "1.0", "😀", "👩‍🚀", "é", "e\u0301", "\x1b[31m", "\n"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
_EXPONENTS = st.sampled_from([0, 0, 0, 1, 8, 15, 100, 150, 300, -1, -8, -100, -150, -300, -308])


def _floats(limit: int) -> Any:
    """Floats of every size up to 10 ** limit, small whole numbers among them."""
    sized = st.builds(
        lambda digits, exponent: float(f"{digits}e{exponent - 15}"),
        st.integers(-9 * 10**15, 9 * 10**15),
        _EXPONENTS.filter(lambda exponent: abs(exponent) <= limit),
    )
    return st.one_of(st.integers(-3, 3).map(float), sized)


_VALUES: dict[str, Any] = {
    "text": _TEXTS,
    "category": _TEXTS,
    "float64": _floats(308),
    "float32": _floats(37),
    "int64": st.one_of(
        st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**53, 2**53 + 1])
    ),
    "uint64": st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1)),
    "int8": st.integers(-128, 127),
    "bool": st.booleans(),
    "date": st.integers(-200_000, 200_000),
    "datetime": st.integers(-(2**52), 2**52),
}


@st.composite
def columns(draw: Any, n_rows: int, kinds: tuple[str, ...], *, few: bool) -> Column:
    """A column; with ``few``, of few different values, as a group has."""
    kind = draw(st.sampled_from(kinds))
    values = _VALUES[kind]
    if few:
        values = st.sampled_from(draw(st.lists(values, min_size=1, max_size=5)))
    elif draw(st.integers(0, 5)) == 0:
        values = st.just(draw(values))  # a constant
    if draw(st.booleans()):
        values = st.one_of(values, st.none())
    if kind == "float64" and draw(st.integers(0, 4)) == 0:
        values = st.one_of(values, st.just(math.nan))
    return {"kind": kind, "values": draw(st.lists(values, min_size=n_rows, max_size=n_rows))}


def weights(n_rows: int) -> Any:
    """None, or weights of any size, zeros among them."""
    one = st.one_of(
        st.sampled_from([0.0, 1.0, 2.0]),
        st.builds(lambda digits, exponent: digits * 10.0**exponent, st.floats(1, 9), st.integers(-15, 15)),
    )
    return st.one_of(st.none(), st.lists(one, min_size=n_rows, max_size=n_rows))
