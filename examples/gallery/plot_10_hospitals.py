"""
The effect of a treatment, with hospitals in the way
====================================================

Patients who get the new treatment do better. But good hospitals use it more often, and
patients of good hospitals do better anyway. No column says how good a hospital is, and
there are 300 of them. What does the treatment itself do?
"""

# %%
# A simulation, so that the answer is known: the treatment adds exactly 1. The quality
# of the hospital is never recorded. It raises the outcome, the chance of being treated,
# and it attracts patients who differ in age and severity.

import altair as alt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression

from sufrep import AIPW

rng = np.random.default_rng(0)
quality = rng.normal(size=300)
hospital = np.repeat(np.arange(300), 20)
age, severity = (
    60 + 10 * rng.normal(size=6_000),
    rng.normal(size=6_000) + 0.5 * quality[hospital],
)
chance = 1 / (1 + np.exp(-quality[hospital] - 0.3 * severity))
treated = (rng.random(6_000) < chance).astype(int)
outcome = (
    1.0 * treated
    + 2 * quality[hospital]
    - severity
    - 0.02 * age
    + rng.normal(size=6_000)
)
patients = pd.DataFrame(
    {"hospital": hospital.astype(str), "age": age, "severity": severity}
)
patients = patients.assign(treated=treated, outcome=outcome)

# %%
# `AIPW` controls for a hospital by the averages of its patients, and by the share of
# them who are treated, which says much about its quality. Errors are clustered by
# hospital.

model = AIPW(LinearRegression(), LogisticRegression(max_iter=1000), group="hospital")
model.fit(patients, treatment="treated", outcome="outcome")
print(model.effect_.summary())

# %%
# Each step of the ladder adjusts for more. The plain difference between treated and
# untreated patients is about twice the truth (the vertical line at 1). Adjusting for
# the columns of the patient makes it worse, because patients of good hospitals are more
# severely ill; the averages of the hospital's patients repair it only in part. With the
# share of treated patients, the estimate agrees with the truth.

truth = (
    alt.Chart(pd.DataFrame({"x": [1.0]}))
    .mark_rule(color="#d2691e", strokeWidth=2)
    .encode(x="x")
)
(model.plot_ladder() + truth).properties(
    title="Effect of the treatment; the truth is 1"
)
