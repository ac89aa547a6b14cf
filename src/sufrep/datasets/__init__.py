"""Public data with one group column of many levels: the paper's, and four further benchmarks.

The paper's are prepared as its authors prepared them. No data are shipped. Each is read from a folder of
yours, or, where OpenML has it, fetched from there. ``orange_juice`` and ``nycflights`` are Parquet files,
which polars or pyarrow reads.
"""

from __future__ import annotations

from sufrep.datasets._benchmarks import (
    load_county_murders,
    load_insteval,
    load_nycflights,
    load_orange_juice,
)
from sufrep.datasets._dataset import Dataset
from sufrep.datasets._loaders import load_ames, load_king_county, load_pakistan
from sufrep.datasets._registry import DATASETS, load_dataset

__all__ = [
    "DATASETS",
    "Dataset",
    "load_ames",
    "load_county_murders",
    "load_dataset",
    "load_insteval",
    "load_king_county",
    "load_nycflights",
    "load_orange_juice",
    "load_pakistan",
]
