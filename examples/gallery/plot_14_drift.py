"""
Levels that move
================

The model has been in use for a year. Some hospitals now treat other patients, and some
are new. The table of vectors still describes last year. `Drift` says which levels are
no longer what they were, without the old rows.
"""

# %%
# Last year's patients of 120 hospitals, and this year's. Six hospitals have specialised
# since, which nobody announced: their patients are of another age and severity. Two
# hospitals are new.

import numpy as np
import pandas as pd

from sufrep import MeansEncoder

rng = np.random.default_rng(0)


def patients(levels: np.ndarray, shift: dict[int, float]) -> pd.DataFrame:
    """Draw from 30 to 200 patients in each hospital."""
    hospital = np.repeat(levels, rng.integers(30, 201, len(levels)))
    moved = np.array([shift.get(level, 0.0) for level in hospital])
    typical = 8 * np.sin(hospital)  # hospitals differ, also without drift
    return pd.DataFrame(
        {
            "hospital": [f"hospital {level}" for level in hospital],
            "age": 60 + typical + 8 * moved + 10 * rng.normal(size=len(hospital)),
            "severity": moved + rng.normal(size=len(hospital)),
        }
    )


last_year = patients(np.arange(120), {})
moved = {7: 1.5, 23: -1.2, 41: 1.0, 66: 0.9, 88: -1.0, 101: 1.3}
this_year = patients(np.arange(122), moved)

encoder = MeansEncoder("hospital").fit(last_year)
drift = encoder.drift(this_year)
print(f"new: {drift.n_new}, moved: {drift.n_moved} of 120")
columns = ["hospital", "status", "rows_then", "rows_now", "covariate", "difference"]
drift.table()[columns].head(9).round(2)

# %%
# The test takes into account that 120 hospitals are looked at: of those that are
# reported, at most five percent have not moved, on average. The picture shows the ones
# that moved, and how far.

drift.plot().properties(width=480, title="Six of 120 hospitals have moved")
