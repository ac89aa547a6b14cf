"""
How sure is a vector?
=====================

A store with five days on record has an average, and so has one with five hundred.
Before you act on the difference between two stores, you want to know how much of it is
chance. Every vector of sufrep has a standard error.
"""

# %%
# Twelve stores, described by the averages of their days. ``table(errors=True)`` adds
# the standard error of each entry: the fewer days, the larger.

import numpy as np
import pandas as pd

from sufrep import MeansEncoder

rng = np.random.default_rng(5)
days_on_record = np.array([5, 6, 8, 10, 15, 20, 30, 50, 80, 120, 250, 500])
store = np.repeat(np.arange(12), days_on_record)
customers, basket = rng.normal(300, 40, 12), rng.normal(25, 4, 12)
days = pd.DataFrame(
    {
        "store": [f"{days_on_record[number]} days" for number in store],
        "customers": rng.normal(customers[store], 60),
        "basket": rng.normal(basket[store], 6),
    }
)
encoder = MeansEncoder("store").fit(days)
encoder.table(errors=True).sort_values("weight").round(1)

# %%
# ``plot`` draws the stores, each labelled with its days on record, and a region around
# each that covers the true vector in 95 of 100 cases. Where regions overlap a lot, as
# those of the smallest stores do, the data cannot tell the stores apart.

encoder.plot()
