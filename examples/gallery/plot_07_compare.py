"""
Which encoding for my table?
============================

Nobody can tell you in advance. `sufrep.compare` tries several on your rows, with the
same folds and the same model, says how much each one gains, and whether that may be
chance.
"""

# %%
# Any frame will do. Here it is the simulated house sales of
# :ref:`sphx_glr_gallery_plot_02_zip_codes.py`.

import textwrap

import pandas as pd

import sufrep
from sufrep.datasets import load_houses

data = load_houses()
houses = pd.DataFrame(data.columns()).assign(price=data.y)
comparison = sufrep.compare(
    houses,
    "price",
    group="zipcode",
    methods=["one_hot", "target_mean", "means", "low_rank", "latent_state"],
)
print(textwrap.fill(comparison.verdict[0], 80))

# %%
# The table has one row for each method, the best first. ``improvement`` is relative to
# one-hot columns.

comparison.table()[
    ["method", "score", "improvement", "low", "high", "p_adjusted", "n_columns"]
].round(3)

# %%
# An interval that does not touch the dashed line is a difference that five folds can
# tell from chance. ``drop`` is what the model reaches without the zip code.

comparison.plot().properties(
    width=460, title="What each encoding gains, with 95 % intervals"
)

# %%
# ``comparison.pipeline()`` is the winner, not yet fitted, and
# ``comparison.to_html("report.html")`` writes all of it as one page that works without
# network. On the command line::
#
#     sufrep compare houses.csv --target price --group zipcode --html report.html
