"""Tables in files and databases, read and written with polars.

================================  ==========================================================================
``.csv``, ``.tsv``, ``.txt``      separated by comma, semicolon, tab or pipe; also ``.csv.gz`` and so on
``.parquet``, ``.pq``             Parquet
``.feather``, ``.arrow``, ...     Arrow IPC, also ``.ipc``
``duckdb:houses.db#sales``        the table ``sales`` of a DuckDB or SQLite database; ``#sales`` may be left
``sqlite:houses.db#sales``        out if the database has only one table
several files                     of one kind, with the same columns and types, are one table
================================  ==========================================================================
"""

from __future__ import annotations

from sufrep._files._kinds import KINDS, is_replaceable, table_kind
from sufrep._files._paths import find_tables, table_files
from sufrep._files._reading import ColumnReading, TableReading
from sufrep._files._scan import reading_errors
from sufrep._files._sinks import (
    batch_sink,
    check_database,
    check_partitions,
    is_database,
    table_sink,
    written_file,
)
from sufrep._files._sources import TableSource, open_table
from sufrep._files._writing import TableWriter, write_table

__all__ = [
    "KINDS",
    "ColumnReading",
    "TableReading",
    "TableSource",
    "TableWriter",
    "batch_sink",
    "check_database",
    "check_partitions",
    "find_tables",
    "is_database",
    "is_replaceable",
    "open_table",
    "reading_errors",
    "table_files",
    "table_kind",
    "table_sink",
    "write_table",
    "written_file",
]
