"""
Is the vector enough? Four worlds
=================================

A short vector replaces a category without loss only if the category acts through
something that the other columns show. That is an assumption about your data.
`sufrep.sufficiency_check` looks for evidence against it: does the category still help a
model that already has its vector?
"""

# %%
# Four worlds with 100 clinics and 4,000 patients. In the first, the assumption holds:
# patients are of one of two kinds, which shows in their measurements. In the second the
# kind shows in the outcome only. In the third each clinic has an effect of its own as
# well. In the fourth, clinics differ in how well a treatment works.

import altair as alt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from sufrep import MeansEncoder, MixedModelEncoder, sufficiency_check


def draw(world: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return patients, and their outcomes."""
    rng = np.random.default_rng(world)
    clinic = rng.integers(0, 100, 4_000)
    kind = np.where(rng.random(4_000) < 0.9, clinic % 2, rng.integers(0, 2, 4_000))
    X = rng.normal(size=(4_000, 5))
    effect = rng.normal(size=100)[clinic]
    noise = rng.normal(size=4_000)
    if world in (0, 2):
        X[:, :2] += 2 * kind[:, None]
    outcome = [3 * kind, 3 * kind, 3 * kind + effect, 2 * effect * X[:, 0]][world]
    frame = pd.DataFrame(X, columns=["dose", "age", "weight", "pulse", "stay"]).assign(
        clinic=clinic.astype(str)
    )
    return frame, outcome + X[:, 2] + noise


worlds = [
    "it holds",
    "the kind does not show",
    "clinics have own effects",
    "clinics have own slopes",
]
encoders = {
    "averages of the covariates": MeansEncoder("clinic"),
    "averages, also of the target": MeansEncoder(
        "clinic", shrinkage="auto", use_target=True
    ),
    "mixed model": MixedModelEncoder("clinic"),
}
learner = HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=15, random_state=0)
rows = []
for number, world in enumerate(worlds):
    X, y = draw(number)
    for name, encoder in encoders.items():
        check = sufficiency_check(encoder, X, y, estimator=learner, cv=3)
        rows.append(
            {
                "world": world,
                "encoder": name,
                "error": check.loss,
                "clinic still gains": 100 * check.share,
                "sufficient": "no evidence against it"
                if check.sufficient
                else "not sufficient",
            }
        )
found = pd.DataFrame(rows)
found.round(1)

# %%
# Orange marks a vector that is not enough: on patients that took no part in the fit, a
# model that also knows the clinic is better by the percentage that is shown. Where the
# kind does not show, or clinics have effects of their own, averages of covariates miss
# something, and the check says so. With the target among the averages, the check finds
# nothing that is missing.
#
# The last world is a warning. The check adds an intercept for each clinic, and no
# intercept can show that clinics differ in *slopes*. All three vectors pass, but look
# at the errors in the table: the mixed model's is much the smallest. The check can show
# that a vector is not enough; it cannot prove that it is.

base = alt.Chart(found).encode(
    x=alt.X(
        "encoder",
        sort=None,
        title=None,
        axis=alt.Axis(labelAngle=0, labelLimit=200, orient="top"),
    ),
    y=alt.Y("world", sort=None, title=None, axis=alt.Axis(labelLimit=220)),
)
squares = base.mark_rect(stroke="white", strokeWidth=3).encode(
    color=alt.Color(
        "sufficient",
        title=None,
        scale=alt.Scale(
            domain=["no evidence against it", "not sufficient"],
            range=["#cfe0f7", "#e8a06a"],
        ),
        legend=alt.Legend(orient="bottom"),
    )
)
text = base.transform_calculate(
    label="format(datum['clinic still gains'], '.1f') + ' %'"
).mark_text(fontSize=14, color="#16191d")
(squares + text.encode(text="label:N")).properties(
    width=540,
    height=220,
    title="How much the clinic still adds to its vector, in % of the error",
)
