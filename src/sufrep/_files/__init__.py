"""Tables in files and databases, read and written with polars.

================================  ==========================================================================
``.csv``, ``.tsv``, ``.txt``      separated by comma, semicolon, tab or pipe; also ``.csv.gz`` and so on
``.parquet``, ``.pq``             Parquet
``.feather``, ``.arrow``, ...     Arrow IPC, also ``.ipc``
``duckdb:houses.db#sales``        the table ``sales`` of a DuckDB or SQLite database; ``#sales`` may be left
``sqlite:houses.db#sales``        out if the database has only one table
================================  ==========================================================================
"""

from __future__ import annotations

from sufrep._files._kinds import KINDS, is_replaceable, table_kind
from sufrep._files._paths import find_tables, table_files
from sufrep._files._reading import ColumnReading, TableReading
from sufrep._files._sources import TableSource, open_table
from sufrep._files._writing import TableWriter, write_table

__all__ = [
    "KINDS",
    "ColumnReading",
    "TableReading",
    "TableSource",
    "TableWriter",
    "find_tables",
    "is_replaceable",
    "open_table",
    "table_files",
    "table_kind",
    "write_table",
]
