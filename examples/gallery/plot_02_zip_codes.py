"""
Zip codes and house prices
==========================

You want to predict what a house sells for. The table has its size, its age and its lot,
and a zip code, of which there are 300. The largest has 126 sales, and forty have one or
two. The zip code matters a lot: a square foot in the old centre costs twice as much as
one in the countryside. How should it enter the model?

The table comes with the package (`sufrep.datasets.load_houses`). It is simulated, so it
says how to do it, and not which encoding is best for your data;
:ref:`sphx_glr_gallery_plot_07_compare.py` finds that out.
"""

# %%
# The whole table goes into the encoder, which finds the numeric columns itself. It
# replaces the zip code by the averages of the houses that stand there: their size,
# their age, their lot. The model can then see what kind of place it is.

import altair as alt
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, TargetEncoder

from sufrep import DropColumns, MeansEncoder
from sufrep.datasets import load_houses

data = load_houses()
houses, price = pd.DataFrame(data.columns()), data.y
encoder = MeansEncoder("zipcode", shrinkage="auto").fit(houses)
encoder.table().round(1).head()

# %%
# Put it into a pipeline like any transformer of scikit-learn, next to what else one
# could do.


def for_zipcode(encoder):
    """Encode the zip code, and leave the other columns as they are."""
    return make_column_transformer(
        (encoder, ["zipcode"]), remainder="passthrough", sparse_threshold=0
    )


encoders = {
    "no zip code": DropColumns("zipcode"),
    "one-hot columns (scikit-learn)": for_zipcode(
        OneHotEncoder(handle_unknown="ignore")
    ),
    "target encoding (scikit-learn)": for_zipcode(
        TargetEncoder(
            target_type="continuous", cv=KFold(5, shuffle=True, random_state=0)
        )
    ),
    "averages of the other columns": MeansEncoder("zipcode", shrinkage="auto"),
    "these and the price": MeansEncoder("zipcode", shrinkage="auto", use_target=True),
}
rows = []
for name, step in encoders.items():
    model = make_pipeline(step, HistGradientBoostingRegressor(random_state=0))
    folds = KFold(5, shuffle=True, random_state=0)
    scores = cross_val_score(
        model, houses, price, cv=folds, scoring="neg_mean_absolute_error"
    )
    rows += [
        {"zip code as": name, "fold": i, "error": -score}
        for i, score in enumerate(scores)
    ]
found = pd.DataFrame(rows)
found.groupby("zip code as", sort=False)["error"].mean().round(-2)

# %%
# How far off is the predicted price? Each small dot is one of five folds, the large one
# their average. Every encoding beats leaving the zip code out. The averages of the
# other columns need no price at all, so that they cannot leak one.

base = alt.Chart(found).encode(
    y=alt.Y("zip code as", sort=None, title=None, axis=alt.Axis(labelLimit=220))
)
folds = base.mark_circle(size=45, opacity=0.45, color="#868c95").encode(
    x=alt.X(
        "error",
        title="mean absolute error in dollars",
        scale=alt.Scale(zero=False),
        axis=alt.Axis(format="$,d", tickCount=5),
    )
)
(
    folds + base.mark_circle(size=170, color="#2f78d6").encode(x="mean(error)")
).properties(width=470, height=200, title="Error of the predicted price, out of fold")
