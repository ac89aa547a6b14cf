"""Every method in every split with every model; what fails is told, and the rest goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import Ridge

from sufrep import MeansEncoder, compare
from sufrep._compare._run import run_plan, take_rows


class Sensitive(Ridge):
    """Refuses tables of one width, as a learner of the user's may."""

    def __init__(self, width: int = 0) -> None:
        super().__init__()
        self.width = width

    def fit(self, X: Any, y: Any) -> Any:
        if np.shape(X)[1] == self.width:
            raise ValueError(f"{self.width} columns\nare not   enough")
        return super().fit(X, y)


class Nowhere(Ridge):
    """Predicts what is no number."""

    def predict(self, X: Any) -> Any:
        return np.full(len(X), np.nan)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "array"])
def test_rows_of_any_table_can_be_taken(rows, kind):
    X, _ = rows()
    table = {
        "pandas": X,
        "polars": pl.from_pandas(X),
        "pyarrow": pa.Table.from_pandas(X),
        "array": X.to_numpy(),
    }
    taken = take_rows(table[kind], np.array([5, 2]))
    assert type(taken) is type(table[kind])
    assert np.asarray(taken)[:, 1].tolist() == X["size"][[5, 2]].tolist()


def test_outcomes_stand_in_the_order_of_models_methods_and_splits(rows):
    found = compare(
        *rows(),
        group="town",
        methods=["means", "drop"],
        models={"one": Ridge(), "two": Ridge()},
        n_repeats=2,
        cv=2,
    )
    order = [(item.model, item.method, item.repeat, item.fold) for item in found.outcomes]
    methods = ("one_hot", "means", "drop")
    assert order == [
        (model, method, repeat, fold)
        for model in ("one", "two")
        for method in methods
        for repeat in range(2)
        for fold in range(2)
    ]
    assert all(item.fit_seconds > 0 and item.predict_seconds > 0 for item in found.outcomes)


@pytest.mark.parametrize("table", ["rows", "mixed"])
def test_columns_that_a_method_adds_are_counted_beside_the_others(request, table):
    X, y = request.getfixturevalue(table)() if table == "rows" else request.getfixturevalue(table)
    found = compare(X, y, group="town", methods=["means", "drop", "target_encoder"], models="linear")
    added = {item.method: item.n_columns for item in found.summaries}
    n_covariates = 2 if table == "rows" else 2 + 2 + 3
    assert added == {"one_hot": 5, "means": n_covariates, "drop": 0, "target_encoder": 1}


def test_encoders_are_fitted_anew_on_the_training_rows_of_each_split(rows, monkeypatch):
    X, y = rows()
    seen = []
    original = MeansEncoder.fit_transform

    def watched(self, X, y=None):
        seen.append((X.index.tolist(), y.tolist()))
        return original(self, X, y)

    monkeypatch.setattr(MeansEncoder, "fit_transform", watched)
    found = compare(X, y, group="town", methods="means", models="linear", n_jobs=1)
    assert seen == [(split.train.tolist(), y[split.train].tolist()) for split in found.plan.splits]


def test_a_method_that_fails_is_told_and_the_others_go_on(rows, monkeypatch):
    def broken(*_: Any) -> None:
        raise RuntimeError("no luck\n  today " + "x" * 900)

    monkeypatch.setattr(MeansEncoder, "fit_transform", broken)
    found = compare(*rows(), group="town", methods=["means", "drop"], models=["linear", Ridge()])
    last = found.summaries[-2:]
    assert {(item.method, item.model) for item in last} == {("means", "linear"), ("means", "Ridge")}
    assert last[0].failure is not None
    assert last[0].failure.startswith("RuntimeError: no luck today xxx")
    assert len(last[0].failure) == 300
    assert found.best.method == "one_hot"
    assert "means" not in found.plot().to_json()


def test_a_model_that_fails_with_one_method_does_not_stop_the_other_model(rows):
    models = {"sensitive": Sensitive(width=2), "ridge": Ridge()}
    found = compare(*rows(), group="town", methods=["means", "drop"], models=models)
    failed = [(item.method, item.model, item.failure) for item in found.summaries if item.failed]
    assert failed == [("drop", "sensitive", "ValueError: 2 columns are not enough")]


def test_a_score_that_is_no_number_is_a_failure(rows):
    found = compare(*rows(), group="town", methods="drop", models=Nowhere())
    assert {item.failure for item in found.outcomes} == {"ValueError: the mean squared error is nan"}


def test_one_hot_columns_that_would_not_fit_fail_and_dropping_is_the_baseline(rows, monkeypatch):
    monkeypatch.setitem(run_plan.__globals__, "MOST_CELLS", 100.0)
    found = compare(*rows(), group="town", methods=["means", "drop"], models="linear", n_jobs=1)
    assert found.baseline == "drop"
    assert found.summaries[-1].method == "one_hot"
    assert found.summaries[-1].failure == (
        "MemoryError: 0.0 GB would be needed for a column for each of 6 levels; take fewer rows, or pool "
        "rare levels"
    )
    assert "that of leaving the column out" in found.verdict[1]
    assert found.summaries[0].improvement > 0


def test_what_fails_in_some_splits_has_no_score(rows):
    X, y = rows()
    splits = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]

    def picky(model: Any, X: Any, y: Any) -> float:
        if X.shape[1] == 2 and y[0] == first:
            raise ValueError("not these rows")
        return float(model.score(X, y))

    first = y[0]
    found = compare(X, y, group="town", methods="drop", models=Ridge(), cv=splits, scoring=picky, n_jobs=1)
    last = found.summaries[-1]
    assert (last.method, last.failure) == ("drop", "in 1 of 2 splits: ValueError: not these rows")
    assert np.isnan(last.score)


def test_warnings_of_hundreds_of_fits_are_not_repeated(rows, recwarn):
    compare(*rows(), group="town", methods="latent_state", models="linear", folds="grouped", cv=3, n_jobs=1)
    assert len(recwarn) == 0


def test_progress_counts_pieces_and_names_the_last(rows):
    told: list[tuple[int, int, str]] = []
    compare(
        *rows(),
        group="town",
        methods=["means"],
        models="linear",
        cv=2,
        progress=lambda *news: told.append(news),
    )
    assert [(done, total) for done, total, _ in told] == [(i, 4) for i in range(5)]
    assert told[0][2] == ""
    assert {what for *_, what in told[1:]} == {"one_hot", "means"}
