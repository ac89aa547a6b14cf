"""Tables in files and data bases, read and written with polars.

================================  ==========================================================================
``.csv``, ``.tsv``, ``.txt``      separated by comma, semicolon, tab or bar; also ``.csv.gz`` and so on
``.parquet``, ``.pq``             Parquet
``.feather``, ``.arrow``, ...     Arrow IPC, also ``.ipc``
``duckdb:houses.db#sales``        the table ``sales`` of a DuckDB file; ``#sales`` may be left out where the
``sqlite:houses.db#sales``        file has but one table; the same for SQLite
================================  ==========================================================================
"""

from __future__ import annotations

from sufrep._files._sources import TableSource, open_table
from sufrep._files._writing import TableWriter, check_place, check_writable, write_table

__all__ = ["TableSource", "TableWriter", "check_place", "check_writable", "open_table", "write_table"]
