"""Draw what examples/cold_start.py has stored.

python examples/cold_start_figure.py results/cold_start/draws.jsonl docs/results/new-levels.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import altair as alt

from cold_start import SIZES, long_table, read

METHODS = {
    "LightGBM": "LightGBM, natively categorical",
    "TargetEncoder": "TargetEncoder",
    "shrunken means, prior": "shrunken means, average vector",
    "shrunken means, estimate": "shrunken means, estimated vector",
    "shrunken means, cold start": "the same in ColdStartEstimator",
}
COLOURS = ["#b0b6bf", "#8a9099", "#e8a33d", "#6aa5d8", "#1c5d99"]
TITLES = {
    "latent_linear": "Latent linear (simulated)",
    "global_linear": "Global linear (simulated)",
    "king_county": "King County",
    "king_county without coordinates": "King County, no coordinates",
    "orange_juice": "Orange juice",
    "insteval": "InstEval",
    "county_murders": "County murders",
    "wages": "Wages",
}
MOST = 200


def main() -> None:
    """Write the picture."""
    table = long_table(read(Path(sys.argv[1])))
    table = table[table["method"].isin(METHODS) & (table["rows"] != "known")]
    found = table.groupby(["data", "method", "rows"])["error"].agg(["mean", "sem"]).reset_index()
    found = found.assign(
        rows=found["rows"].astype(int),
        method=found["method"].map(METHODS),
        data=found["data"].map(TITLES),
        low=(found["mean"] - found["sem"]).clip(upper=MOST),
        high=(found["mean"] + found["sem"]).clip(upper=MOST),
        mean=found["mean"].clip(upper=MOST),
    )
    base = alt.Chart(found).encode(
        x=alt.X(
            "rows:Q",
            scale=alt.Scale(type="log", domain=[1, 50]),
            axis=alt.Axis(values=list(SIZES), title="rows of the level"),
        ),
        color=alt.Color(
            "method:N",
            scale=alt.Scale(domain=list(METHODS.values()), range=COLOURS),
            legend=alt.Legend(title=None, orient="bottom", columns=3, labelLimit=300),
        ),
    )
    line = base.mark_line(point=True).encode(
        y=alt.Y("mean:Q", scale=alt.Scale(domain=[50, MOST], zero=False), title=None)
    )
    bars = base.mark_rule().encode(y="low:Q", y2="high:Q")
    dropped = alt.Chart(found).mark_rule(strokeDash=[4, 3], color="#555").encode(y=alt.datum(100))
    chart = (
        alt.layer(dropped, bars, line)
        .properties(width=190, height=150)
        .facet(alt.Facet("data:N", sort=list(TITLES.values()), title=None), columns=4)
        .properties(
            title=alt.TitleParams(
                "Squared error on levels without a target, by their number of rows",
                subtitle="Percent of the error without the column (dashed; cut off at 200); means over five "
                "draws and standard errors",
                anchor="start",
            )
        )
        .configure_view(stroke=None)
    )
    chart.save(sys.argv[2], scale_factor=1.5)


if __name__ == "__main__":
    main()
