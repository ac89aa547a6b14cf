"""Tables of every kind behind one interface; the only place that knows narwhals."""

from __future__ import annotations

from sufrep._frames._array import ArrayTable
from sufrep._frames._factorize import Factorized, cross
from sufrep._frames._frame import FrameTable, frame_from_columns, is_frame, refuse_lazy
from sufrep._frames._table import Lookup, Table, sparse_rows

__all__ = [
    "ArrayTable",
    "Factorized",
    "FrameTable",
    "Lookup",
    "Table",
    "cross",
    "frame_from_columns",
    "is_frame",
    "refuse_lazy",
    "sparse_rows",
]
