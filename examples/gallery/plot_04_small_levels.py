"""
Small levels, and why their averages are shrunk
===============================================

Which schools are best? In every league table the smallest schools are at the top, and
at the bottom. It is not that small schools are special: an average over three pupils is
mostly luck.

The same happens when a category is replaced by averages. A learner that sees the
average of three rows next to that of three hundred cannot know which to trust.
``shrinkage="auto"`` pulls every average towards the overall one, and small levels more
than large ones, by as much as their number of rows says.
"""

# %%
# 300 schools whose true averages are known: their standard deviation is 20 points, and
# pupils of a school differ by 70. There are from 2 to about 200 pupils in a school.

import altair as alt
import numpy as np
import pandas as pd

from sufrep import MeansEncoder

rng = np.random.default_rng(0)
size = np.round(np.exp(rng.uniform(np.log(2), np.log(200), 300))).astype(int)
true_average = rng.normal(500, 20, 300)
school = np.repeat(np.arange(300), size)
pupils = pd.DataFrame(
    {"school": school.astype(str), "score": rng.normal(true_average[school], 70)}
)

rows = []
for name, shrinkage in (("plain averages", None), ("shrunk averages", "auto")):
    encoder = MeansEncoder("school", shrinkage=shrinkage).fit(pupils)
    average = encoder.representations_["school"].lookup(
        [str(number) for number in range(300)]
    )[:, 0]
    rows.append(
        pd.DataFrame({"pupils": size, "off by": average - true_average, "panel": name})
    )
found = pd.concat(rows)
found["schools"] = np.where(
    found["pupils"] < 10, "fewer than 10 pupils", "10 pupils or more"
)
found.groupby(["panel", "schools"])["off by"].apply(
    lambda off: np.sqrt((off**2).mean())
).round(1)

# %%
# Each dot is a school. On the left, plain averages of small schools are off by up to a
# hundred points. On the right, shrunk averages stay within the differences that there
# are between schools. Large schools hardly change: their pupils speak for themselves.

alt.Chart(found).mark_circle(opacity=0.55, color="#2f78d6").encode(
    x=alt.X(
        "pupils",
        scale=alt.Scale(type="log", domain=[1.7, 230]),
        title="pupils of the school",
        axis=alt.Axis(values=[2, 5, 10, 20, 50, 100, 200]),
    ),
    y=alt.Y("off by", title="average minus true average, in points"),
    column=alt.Column("panel", title=None),
).properties(width=290, height=260, title="How far off the averages of 300 schools are")
