"""Notes on columns that give the target away, or that are functions of the group."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sufrep import compare


def notes(X, y, **options):
    given = {"group": "town", "methods": "means", "models": "linear", "cv": 3, **options}
    return compare(X, y, **given).notes


def test_an_ordinary_table_raises_no_suspicion(rows):
    assert notes(*rows()) == ()


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_columns_that_give_the_target_away_are_named(rows, task):
    X, y = rows(n=600)
    target = {"regression": y, "binary": y > 1, "multiclass": np.digitize(y, [0, 2]).astype(str)}[task]
    away = {"regression": 2.0 * y, "binary": y > 1, "multiclass": np.digitize(y, [0, 2])}[task]
    (note,) = notes(X.assign(tax=away * 1.0, age=X["age"]), target, models="boosting")
    assert "by themselves: 'tax'. Are they known before the target is?" in note


def test_a_perfect_score_without_such_a_column_is_noted_too():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": rng.integers(0, 5, 300).astype(str), "a": rng.normal(size=300)})
    X["b"] = rng.normal(size=300)
    noise = 0.03 * rng.normal(size=300)
    (note,) = notes(X, X["a"] + X["b"] + noise)
    assert note.startswith("Nearly perfect predictions are suspicious: check that every column is known")


def sales(n: int = 600) -> tuple[pd.DataFrame, pd.Series]:
    """Rounded sales by region, which add up to all sales, next to columns that are related to them."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"town": rng.integers(0, 5, n).astype(str), "year": rng.integers(1990, 2015, n) * 1.0})
    liked = rng.gamma(1.0, 1.0, n)
    X["score"] = liked + 0.3 * rng.normal(size=n)
    parts = np.column_stack([share * liked * rng.gamma(2.0, 0.5, n) for share in (1.0, 0.7, 0.3)])
    X[["north", "europe", "japan"]] = parts.round(2)
    return X, pd.Series(parts.sum(axis=1).round(2), name="sales")


@pytest.mark.parametrize("scoring", [None, "r2"])
@pytest.mark.parametrize("missing", [False, True])
def test_columns_that_add_up_to_the_target_are_named(scoring, missing):
    X, y = sales()
    if missing:
        X = X.replace({"japan": {0.0: np.nan}})
    (note,) = notes(X, y, models="boosting", methods="drop", scoring=scoring)
    assert note == (
        "'sales' is nearly a weighted sum of other columns: 'north', 'europe', 'japan'. Are they known "
        "before the target is?"
    )


@pytest.mark.parametrize("change", ["lacks a part", "is a copy", "is noise", "has few rows"])
def test_what_is_no_sum_of_several_columns_is_not_called_one(change):
    X, y = sales(60 if change == "has few rows" else 600)
    if change == "lacks a part":
        X = X.drop(columns="europe")
    if change == "is a copy":
        X = X.assign(dollars=1.1 * y)
    if change == "is noise":
        y = pd.Series(np.random.default_rng(0).normal(size=len(y)))
    assert not any("weighted sum" in note for note in notes(X, y, methods="drop"))


def test_functions_of_the_group_are_named(rows):
    X, y = rows()
    by_town = X["town"].map({"a": 1.0, "b": np.nan, "c": 3.0, "d": 1.0, "e": 7.0, "f": 3.0})
    (note,) = notes(X.assign(height=by_town, one=1.0), y)
    assert note == (
        "The same in all rows of a level of 'town': 'height'. Models can tell levels apart by them, also if "
        "the group is left out."
    )
    assert notes(X.assign(height=by_town + (np.arange(120) == 7)), y) == ()


def test_other_scores_are_not_judged(rows):
    X, y = rows()
    assert notes(X.assign(tax=y), y, scoring="r2") == ()


def test_a_table_of_the_group_alone_has_nothing_to_look_at(rows):
    X, y = rows()
    assert notes(X[["town"]], y, methods="target_mean") == ()
