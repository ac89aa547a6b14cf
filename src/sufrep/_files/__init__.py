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

from sufrep._files._reading import ColumnReading, TableReading
from sufrep._files._sources import TableSource, open_table, table_file
from sufrep._files._writing import TableWriter, check_path, check_writable, write_table

__all__ = [
    "ColumnReading",
    "TableReading",
    "TableSource",
    "TableWriter",
    "check_path",
    "check_writable",
    "open_table",
    "table_file",
    "write_table",
]
