"""The paper's public data, prepared as its authors prepared them.

No data are shipped. Each is read from a folder of yours, or, where OpenML has it, fetched from there.
"""

from __future__ import annotations

from sufrep.datasets._dataset import Dataset
from sufrep.datasets._loaders import DATASETS, load_ames, load_dataset, load_king_county, load_pakistan

__all__ = ["DATASETS", "Dataset", "load_ames", "load_dataset", "load_king_county", "load_pakistan"]
