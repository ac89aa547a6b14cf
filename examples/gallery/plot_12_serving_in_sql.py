"""
Serving vectors in SQL
======================

The model is trained, and new rows arrive in a database where no Python runs. A fitted
encoder is a table from level to vector, so a LEFT JOIN is all that is needed to serve
it. `sufrep` writes that SQL for nine dialects.
"""

# %%
# Fit on the simulated house sales, and write the statements for SQLite, which comes
# with Python. The odd fractions are the vector of an unknown zip code, written so that
# every database reads the same bits.

import sqlite3

import altair as alt
import numpy as np
import pandas as pd

from sufrep import MeansEncoder
from sufrep.datasets import load_houses

data = load_houses()
houses = pd.DataFrame(data.columns())
encoder = MeansEncoder(
    "zipcode", covariates=["living_area", "lot_area", "year_built"], unseen="prior"
).fit(houses)
sql = encoder.to_sql("sqlite", source="offers", table="zipcode_vectors")
print(sql.select)

# %%
# The database now holds the vectors. Offers arrive from known zip codes, from one that
# nobody has seen ("00000"), and one without a zip code.

database = sqlite3.connect(":memory:")
for statement in sql.setup:
    database.execute(statement)
offers = houses.head(8).assign(zipcode=[*houses["zipcode"].head(6), "00000", None])
offers.to_sql("offers", database, index=False)
served = pd.read_sql_query(sql.select, database)

in_python = encoder.set_output(transform="pandas").transform(offers)
columns = [name for name in served if name.startswith("zipcode_mean")]
print(
    "the same bits as in Python:", np.array_equal(served[columns], in_python[columns])
)

# %%
# Each row of the picture is an offer, and shows what the join answers, relative to all
# zip codes. Known zip codes have vectors of their own. The unknown one and the missing
# one get that of an average zip code, so that no offer is lost.

table = encoder.table()
shown = ((served[columns] - table[columns].mean()) / table[columns].std()).round(2)
shown.columns = ["living area", "lot area", "year built"]
shown["offer"] = [
    f"{i + 1}: {name if isinstance(name, str) else 'no zip code'}"
    for i, name in enumerate(offers["zipcode"])
]
long = shown.melt(
    "offer", var_name="average of", value_name="standard deviations from the mean"
)
alt.Chart(long).mark_rect(stroke="white", strokeWidth=2).encode(
    x=alt.X("average of", title=None, axis=alt.Axis(labelAngle=0, orient="top")),
    y=alt.Y("offer", sort=None, title=None),
    color=alt.Color(
        "standard deviations from the mean",
        scale=alt.Scale(scheme="blueorange", domain=[-3, 3]),
        legend=alt.Legend(orient="bottom", gradientLength=300, titleLimit=300),
    ),
).properties(width=380, height=240, title="What the database answers for eight offers")
