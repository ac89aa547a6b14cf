"""
The paper in 30 lines
=====================

A table has a column with 500 categories. They act on the target only through one of
five *hidden states* that nobody recorded. One-hot columns have to learn 500 separate
effects from ten rows each. The averages of the *other* columns tell the states apart,
so that a few numbers for each category do better.

The data are drawn as in the simulations of Johannemann, Hadad, Athey and Wager,
*Sufficient Representations for Categorical Variables*, and the learner is the same for
every bar of the picture: scikit-learn's gradient boosting.
"""

# %%
# Draw training and test rows with the same hidden states, and encode the category in
# four ways. The last bar is what no method can have on real data: the true probability
# of each state in each category.

import altair as alt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from sufrep import make_encoder, simulate

sample = simulate("latent_linear", n=10_000, n_latent=5, levels_per_latent=100, seed=1)
table = pd.DataFrame(sample.X, columns=[f"x{j}" for j in range(1, 21)]).assign(
    category=sample.group
)
train, test = slice(0, 5_000), slice(5_000, 10_000)


def error_of(columns: np.ndarray) -> float:
    """Mean squared error on the test rows."""
    learner = HistGradientBoostingRegressor(random_state=0).fit(
        columns[train], sample.y[train]
    )
    return float(np.mean((sample.y[test] - learner.predict(columns[test])) ** 2))


errors = {"no category at all": error_of(sample.X)}
for method in ("one_hot", "means", "low_rank", "latent_state"):
    encoder = make_encoder(method, "category").fit(table[train])
    errors[method] = error_of(encoder.transform(table))
errors["the true states"] = error_of(
    np.column_stack([sample.X, sample.state_probabilities[sample.codes]])
)
found = pd.DataFrame({"encoding": list(errors), "error": list(errors.values())})
found.round(2)

# %%
# One-hot columns are hardly better than leaving the category out, because trees find no
# use for 500 indicators of ten rows each. Averages of the covariates get most of the
# way to the true states, and estimated hidden states nearly all of it. (Noise that no
# method can predict has an error of 1.)

bars = alt.Chart(found).encode(
    x=alt.X("error", title="mean squared error on new rows (shorter is better)"),
    y=alt.Y("encoding", sort=None, title=None),
    text=alt.Text("error", format=".2f"),
)
(bars.mark_bar(color="#2f78d6") + bars.mark_text(align="left", dx=4)).properties(
    width=520, height=190, title="500 categories that act through 5 hidden states"
)
