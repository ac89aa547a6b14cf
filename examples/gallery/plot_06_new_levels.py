"""
A new level that has no target yet
==================================

On Monday a house is for sale in a zip code where nothing has been sold before. Target
encoding has no number for it and answers with the overall mean, which tells the model
something false: that this is an average place. But other houses stand there, and their
sizes and ages are known. Those are enough to describe a zip code.
"""

# %%
# Hold out a fifth of the zip codes *whole*: the model sees none of their prices in
# training. Repeat it with five different fifths.

import altair as alt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from sufrep import ColdStartEstimator, DropColumns, MeansEncoder
from sufrep.datasets import load_houses

data = load_houses()
houses, price = pd.DataFrame(data.columns()), np.log(data.y)
booster = HistGradientBoostingRegressor(max_iter=50, random_state=0)
by_target = TargetEncoder(
    target_type="continuous", cv=KFold(5, shuffle=True, random_state=0)
)
target_encoder = make_column_transformer(
    (by_target, ["zipcode"]), remainder="passthrough"
)
models = {
    "no zip code": make_pipeline(DropColumns("zipcode"), booster),
    "target encoding (scikit-learn)": make_pipeline(target_encoder, booster),
    "averages, an average vector for new zip codes": make_pipeline(
        MeansEncoder("zipcode", unseen="prior"), booster
    ),
    "averages, estimated for new zip codes": make_pipeline(
        MeansEncoder("zipcode", shrinkage="auto"), booster
    ),
    "... and a learner that expects new zip codes": ColdStartEstimator(
        MeansEncoder("zipcode", shrinkage="auto"), booster
    ),
}
folds = list(
    GroupKFold(5, shuffle=True, random_state=0).split(houses, price, houses["zipcode"])
)
rows = []
for name, model in models.items():
    scores = -cross_val_score(
        model, houses, price, cv=folds, scoring="neg_mean_squared_error"
    )
    rows += [
        {"model": name, "fold": i, "error": score} for i, score in enumerate(scores)
    ]
found = pd.DataFrame(rows)
without = found[found["model"] == "no zip code"].set_index("fold")["error"]
found["percent"] = 100 * found["error"] / found["fold"].map(without)
found.groupby("model", sort=False)["percent"].mean().round(1)

# %%
# Left of the line, the zip code helps; right of it, one had better left it out. The two
# encodings that answer a new zip code with an average do harm. Estimating the vector
# from the houses that stand there turns the harm into a gain.

base = alt.Chart(found[found["model"] != "no zip code"]).encode(
    y=alt.Y("model", sort=None, title=None, axis=alt.Axis(labelLimit=320))
)
dots = base.mark_circle(size=45, opacity=0.45, color="#868c95").encode(
    x=alt.X(
        "percent",
        title="squared error in % of leaving the zip code out",
        scale=alt.Scale(zero=False),
    )
)
line = (
    alt.Chart(pd.DataFrame({"x": [100]}))
    .mark_rule(strokeDash=[4, 3], color="#8a9099")
    .encode(x="x")
)
(
    line + dots + base.mark_circle(size=170, color="#2f78d6").encode(x="mean(percent)")
).properties(width=400, height=190, title="Houses in zip codes without a single sale")
