"""
Hidden states, recovered and drawn
==================================

Ninety clinics fill in the same forms. Some are trauma centres, some treat the
chronically ill, some do routine surgery, and most do a bit of everything, but no column
says so. Can the mix of patients of a clinic be read from the measurements of its
patients alone?

This example draws clinics whose true mix is known, hides it, and compares what
`LatentStateEncoder` finds.
"""

# %%
# 9,000 patients with 20 measurements each. A patient's kind shifts three of them; two
# thirds of the patients of a clinic are of its main kind. The encoder sees the
# measurements and the clinic's name, and no outcome.

import altair as alt
import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from sufrep import LatentStateEncoder, simulate

sample = simulate(
    "latent_linear",
    n=9_000,
    n_latent=3,
    levels_per_latent=30,
    own_probability=0.67,
    seed=0,
)
patients = pd.DataFrame(
    sample.X, columns=[f"measurement {j}" for j in range(1, 21)]
).assign(clinic=sample.group)
encoder = LatentStateEncoder("clinic", random_state=0).fit(patients)
found = encoder.representations_["clinic"]
print(f"states found: {found.values.shape[1]} (there are 3)")

# %%
# The names of states are arbitrary, so the ones that were found are put into the order
# of the true ones that they resemble most. Clinics are sorted by their true mix.

truth = sample.state_probabilities
found_values = found.lookup(sample.levels)
_, order = linear_sum_assignment(-truth.T @ found_values)
position = np.lexsort((*found_values[:, order].T, truth.argmax(axis=1)))
panels = {"true share": truth, "share that was found": found_values[:, order]}
shares = pd.concat(
    pd.DataFrame(values, columns=["kind 1", "kind 2", "kind 3"])
    .assign(clinic=np.argsort(position) + 1, panel=title)
    .melt(["clinic", "panel"], var_name="kind", value_name="share")
    for title, values in panels.items()
)
error = float(np.abs(truth - found_values[:, order]).mean())
print(f"a share is off by {error:.3f} on average")

# %%
# Each column is a clinic, each row a kind of patient; the darker, the more of them. On
# the left is the truth that the encoder never saw, on the right what it found. The
# three blocks are there, and a share is off by four percentage points on average.

alt.Chart(shares).mark_rect().encode(
    x=alt.X(
        "clinic:O", axis=alt.Axis(values=[1, 30, 60, 90], labelAngle=0), title="clinic"
    ),
    y=alt.Y("kind", title=None),
    color=alt.Color(
        "share",
        scale=alt.Scale(scheme="blues", domain=[0, 1]),
        legend=alt.Legend(format="%"),
    ),
    column=alt.Column("panel", sort=["true share", "share that was found"], title=None),
).properties(width=280, height=130, title="Patients of 90 clinics, by kind")
