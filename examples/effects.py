"""Treatment effects in three real data sets, by what is controlled for.

    python examples/effects.py DATA_FOLDER

prints the tables of docs/results/effects.md. The folder holds males.csv (R package Ecdat), star.csv (AER) and
learning_mindsets.csv (Atlantic Causal Inference Conference 2018). Outcome models are linear, propensities
logistic; 10 folds, 5 repeats, seed 0.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from doubleml import DoubleMLPanelData, DoubleMLPLPR
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sufrep import AIPW


def wage_panel(folder: Path) -> tuple[Any, Any]:
    """545 men in 8 years: membership in a union, and the logarithm of the wage."""
    rows = read_wages(folder)
    model = make_model(
        "nr", covariates=["exper2", "maried", "health", "school", "ethn", "year"], estimand="ATO"
    )
    return model.fit(rows, treatment="union", outcome="wage", treated="yes"), rows


def read_wages(folder: Path) -> pd.DataFrame:
    """The wage panel, with squared experience; the year is text."""
    rows = pd.read_csv(folder / "males.csv")
    return rows.assign(exper2=rows["exper"] ** 2, year=rows["year"].astype(str))


def panel_model(folder: Path) -> pd.DataFrame:
    """DoubleML's partially linear panel model of the wage panel, by each of its approaches; linear models."""
    rows = read_wages(folder)
    indicators = pd.get_dummies(rows[["maried", "health", "ethn", "year"]], drop_first=True, dtype=float)
    columns = ["exper2", "school", *indicators.columns]
    panel = pd.concat([rows[["nr", "exper2", "school", "wage"]], indicators], axis=1)
    panel = panel.assign(union=(rows["union"] == "yes").astype(float), time=rows["year"].astype(int))
    found = []
    for approach in ("cre_general", "cre_normal", "fd_exact", "wg_approx"):
        np.random.seed(0)  # noqa: NPY002  DoubleML draws its folds from the global generator
        data = DoubleMLPanelData(panel, "wage", "union", "time", "nr", x_cols=columns, static_panel=True)
        model = DoubleMLPLPR(
            data, LinearRegression(), LinearRegression(), n_folds=10, n_rep=5, approach=approach
        ).fit()
        found.append((approach, model.coef[0], model.se[0]))
    return pd.DataFrame(found, columns=["approach", "estimate", "std_error"])


def small_classes(folder: Path) -> tuple[Any, Any]:
    """Project STAR: small or regular classes in kindergarten, and test scores; 79 schools."""
    rows = pd.read_csv(folder / "star.csv", low_memory=False)
    rows = rows[rows["stark"].isin(["small", "regular"]) & rows["readk"].notna() & rows["mathk"].notna()]
    rows = rows.assign(
        score=rows["readk"] + rows["mathk"],
        female=rows["gender"] == "female",
        black=rows["ethnicity"] == "afam",
        free_lunch=rows["lunchk"] == "free",
        experience=rows["experiencek"].fillna(rows["experiencek"].median()),
    )
    model = make_model("schoolidk", covariates=["female", "black", "free_lunch", "experience"])
    return model.fit(rows, treatment="stark", outcome="score", treated="small"), rows


def learning_mindsets(folder: Path) -> tuple[Any, Any]:
    """10,391 pupils in 76 schools: a short course on learning, and grades; schools count the same."""
    rows = pd.read_csv(folder / "learning_mindsets.csv").astype({"C1": str, "XC": str})
    model = make_model("schoolid", weights="group")
    return model.fit(rows, treatment="Z", outcome="Y"), rows


def make_model(group: str, **parameters: Any) -> AIPW:
    """Linear models, ten folds, five repeats."""
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return AIPW(LinearRegression(), logistic, group=group, n_folds=10, n_repeats=5, **parameters)


def main() -> None:
    """Print the ladder of each data set, and how the effect of the course differs between schools."""
    warnings.simplefilter("ignore")  # most persons never change their union: docs/results/effects.md says so
    folder = Path(sys.argv[1])
    for load in (wage_panel, small_classes, learning_mindsets):
        model, rows = load(folder)
        print(f"\n{load.__doc__}\n")
        print(model.effect_.summary())
        print(model.ladder(library="pandas").round(4).to_string(index=False))
        if load is wage_panel:
            print(f"\n{panel_model.__doc__}\n")
            print(panel_model(folder).round(4).to_string(index=False))
    by_school = rows.groupby("schoolid")["X1"].first()
    high = (rows["X1"] > by_school.median()).to_numpy(dtype=float)
    print("\nSchools of high against low X1:")
    print(model.best_linear_projection(high[:, None], library="pandas").round(4).to_string(index=False))
    print("\nBest linear projection on X1:")
    print(model.best_linear_projection(["X1"], library="pandas").round(4).to_string(index=False))


if __name__ == "__main__":
    main()
