"""Tables of every kind behind one interface; the only package that knows narwhals."""

from __future__ import annotations

from sufrep._frames._eager import (
    ArrayTable,
    FrameTable,
    cross,
    factorize_objects,
    frame_from_columns,
    is_frame,
    is_lazy,
    library_of,
    number_or_nan,
    refuse_other_tables,
    sorted_factor,
    taken,
    with_missing_level,
)
from sufrep._frames._keys import Key
from sufrep._frames._lazy import LazyFactor, LazyTable, LevelLookup
from sufrep._frames._sampling import sample_table
from sufrep._frames._table import Factor, Lookup, Table

__all__ = [
    "ArrayTable",
    "Factor",
    "FrameTable",
    "Key",
    "LazyFactor",
    "LazyTable",
    "LevelLookup",
    "Lookup",
    "Table",
    "cross",
    "factorize_objects",
    "frame_from_columns",
    "is_frame",
    "is_lazy",
    "library_of",
    "number_or_nan",
    "refuse_other_tables",
    "sample_table",
    "sorted_factor",
    "taken",
    "with_missing_level",
]
