"""Public data with a group column of many levels, or several: those of the paper, and further benchmarks.

The paper's data are prepared as its authors prepared them. No data are shipped: each file is read from a
folder of yours with polars or pandas or, where OpenML has the data, downloaded from there. `load_houses`
needs no file: its houses are simulated.
"""

from __future__ import annotations

from sufrep.datasets._classes import load_midwest_survey, load_open_payments
from sufrep.datasets._dataset import Dataset
from sufrep.datasets._houses import load_houses
from sufrep.datasets._loaders import (
    DATASETS,
    load_ames,
    load_county_murders,
    load_dataset,
    load_insteval,
    load_king_county,
    load_nycflights,
    load_orange_juice,
    load_pakistan,
)
from sufrep.datasets._sigrist import (
    PUBLISHED_FOLDS,
    load_insteval_sigrist,
    load_published_insteval,
    load_published_wages,
    load_wages,
)
from sufrep.datasets._text_tables import load_movielens, load_videogame_sales

__all__ = [
    "DATASETS",
    "PUBLISHED_FOLDS",
    "Dataset",
    "load_ames",
    "load_county_murders",
    "load_dataset",
    "load_houses",
    "load_insteval",
    "load_insteval_sigrist",
    "load_king_county",
    "load_midwest_survey",
    "load_movielens",
    "load_nycflights",
    "load_open_payments",
    "load_orange_juice",
    "load_pakistan",
    "load_published_insteval",
    "load_published_wages",
    "load_videogame_sales",
    "load_wages",
]
