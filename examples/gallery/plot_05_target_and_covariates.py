"""
Target and covariates together
==============================

Two shops look alike: the same size, the same street, the same customers. One of them
has the better manager. Averages of the other columns say what *kind* of shop it is, and
cannot see the manager. Averages of the target see the manager, and forget the kind
where a shop has few days on record. They complement each other.
"""

# %%
# 400 shops with 20 days each. A shop's kind is hidden; it shows in two columns and
# moves sales. The manager's effect is the shop's own, and shows in sales only.

import altair as alt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from sufrep import DropColumns, MeansEncoder

rng = np.random.default_rng(0)
shop = rng.integers(0, 400, 8_000)
kind = rng.integers(0, 2, 400)[shop]
manager = 0.8 * rng.normal(size=400)[shop]
days = pd.DataFrame(
    rng.normal(size=(8_000, 4)), columns=["footfall", "basket", "weather", "discount"]
)
days[["footfall", "basket"]] += 1.5 * kind[:, None]
sales = 2 * kind + manager + days["discount"] + rng.normal(size=8_000)
days["shop"] = shop.astype(str)

encoders = {
    "no shop": DropColumns("shop"),
    "averages of the covariates": MeansEncoder("shop", shrinkage="auto"),
    "average of the target": MeansEncoder("shop", covariates=[], use_target=True),
    "both": MeansEncoder("shop", shrinkage="auto", use_target=True),
}
rows = []
for name, encoder in encoders.items():
    model = make_pipeline(encoder, HistGradientBoostingRegressor(random_state=0))
    folds = KFold(5, shuffle=True, random_state=0)
    scores = cross_val_score(
        model, days, sales, cv=folds, scoring="neg_mean_squared_error"
    )
    rows.append({"shop as": name, "error": -scores.mean()})
found = pd.DataFrame(rows)
found.round(3)

# %%
# ``use_target=True`` makes the target one more column to average. The encoder
# cross-fits it inside the pipeline: the average that a training row sees is taken over
# other rows, so that the row's own sales do not leak into it.

bars = alt.Chart(found).encode(
    x=alt.X("error", title="mean squared error, out of fold (noise alone: 1)"),
    y=alt.Y("shop as", sort=None, title=None, axis=alt.Axis(labelLimit=220)),
    text=alt.Text("error", format=".2f"),
)
(bars.mark_bar(color="#2f78d6") + bars.mark_text(align="left", dx=4)).properties(
    width=480, height=150, title="Error of the predicted sales of 400 shops"
)
