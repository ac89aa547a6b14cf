"""Every data set by its name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sufrep.datasets._benchmarks import (
    load_county_murders,
    load_insteval,
    load_nycflights,
    load_orange_juice,
)
from sufrep.datasets._loaders import load_ames, load_king_county, load_pakistan
from sufrep.errors import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sufrep.datasets._dataset import Dataset
    from sufrep.datasets._sources import Folder

DATASETS: dict[str, Callable[..., Dataset]] = {
    "pakistan": load_pakistan,
    "ames": load_ames,
    "ames_full": partial(load_ames, part="full"),
    "king_county": load_king_county,
    "orange_juice": load_orange_juice,
    "county_murders": load_county_murders,
    "insteval": load_insteval,
    "nycflights": load_nycflights,
}


def load_dataset(name: str, data_dir: Folder = None) -> Dataset:
    """Load one of :data:`DATASETS` by its name.

    Parameters
    ----------
    name : str
        "pakistan", "ames", "ames_full" or "king_county" of the paper; "orange_juice", "county_murders",
        "insteval" or "nycflights" of the further benchmarks.
    data_dir : path, optional
        Folder that holds its file; by default the one that the environment variable ``SUFREP_DATA`` names.

    Returns
    -------
    Dataset
    """
    if name not in DATASETS:
        raise InvalidParameterError("name", name, f"one of {', '.join(DATASETS)}")
    return DATASETS[name](data_dir)
