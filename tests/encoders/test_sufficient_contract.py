"""Frames, pipelines and mistakes, as all encoders take them; and what is said meanwhile."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from sufrep import SufficientEncoder, errors


def drawn(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Six shops that differ much in their targets, and three towns that do not."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 6
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    X["shop"] = np.array(["ann", "bob", "cid", "dan", "eve", "fay"], dtype=object)[codes]
    X["town"] = rng.choice(np.array(["x", "y", "z"], dtype=object), n)
    return X, 2.0 * codes + X["a"].to_numpy() + rng.normal(size=n)


def quick(group: Any = "shop", **parameters: Any) -> SufficientEncoder:
    """Between dropping the column and the mean target, which wins here."""
    return SufficientEncoder(group, **{"estimator": Ridge(), "max_candidates": 2, **parameters})


# Frames, pipelines.


@pytest.mark.parametrize("output", ["pandas", "polars"])
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
def test_every_library_gives_the_same(library, output):
    X, y = drawn()
    columns = {name: X[name].tolist() for name in X.columns}
    make = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "pyarrow": pa.table,
        "numpy": lambda _: X.to_numpy(),
    }
    encoder = quick(2).set_output(transform=output)
    found = encoder.fit_transform(make[library](columns), y)
    assert type(found).__module__.partition(".")[0] == output
    assert list(found.columns) == encoder.get_feature_names_out().tolist()
    expected = quick().fit_transform(X, y)
    np.testing.assert_allclose(
        np.asarray(found)[:, -1].astype(float), expected[:, -1].astype(float), rtol=1e-12
    )


def test_it_is_a_step_that_is_searched_and_cross_validated():
    X, y = drawn()
    X = X.drop(columns="town")
    pipeline = make_pipeline(quick(), Ridge())
    assert cross_val_score(pipeline, X, y, cv=3, error_score="raise").min() > 0.8
    search = GridSearchCV(pipeline, {"sufficientencoder__max_candidates": [1, 2]}, cv=2, error_score="raise")
    assert search.fit(X, y).best_params_ == {"sufficientencoder__max_candidates": 2}


def test_a_clone_has_the_parameters_and_nothing_learnt():
    encoder = quick(max_rows=50, cv=4, verbose=0, random_state=3).fit(*drawn())
    copy = clone(encoder)
    assert repr(copy) == repr(encoder)
    assert [name for name in vars(copy) if name.endswith("_")] == []


# Mistakes.


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (None, "y to be passed"),
        (np.where(np.arange(120) == 3, np.nan, 1.5), "contains NaN or infinity in 1 row"),
        (np.arange(7.0), "X has 120 row"),
        (["text"] * 120, "target_type is 'continuous'"),
    ],
    ids=["none", "nan", "length", "text"],
)
def test_a_target_that_makes_no_sense_leaves_the_encoder_as_it_was(y, text):
    X, price = drawn()
    encoder = quick().fit(X, price)
    before, learnt = encoder.transform(X), dict(vars(encoder))
    for method in (encoder.fit, encoder.fit_transform):
        with pytest.raises(errors.SufrepError, match=text):
            method(X, y)
    assert vars(encoder) == learnt
    np.testing.assert_array_equal(encoder.transform(X), before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("estimator", "ridge"), ("max_candidates", 0), ("max_candidates", 1.5), ("max_rows", 1)),
        *(("target_type", "ordinal"), ("cv", 1), ("verbose", "yes"), ("random_state", -1)),
        *(("missing", "ignore"), ("unseen", "level")),
    ],
)
def test_parameters_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of SufficientEncoder must be"):
        SufficientEncoder("shop", **{name: value}).fit(*drawn())


def test_folds_must_hold_every_row_once():
    with pytest.raises(errors.SplitError, match="120"):
        quick(cv=[(range(60), range(60, 120))]).fit(*drawn())


# Progress.


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_each_candidate_is_a_line_of_progress(verbose, capsys):
    encoder = quick(max_candidates=3, verbose=verbose).fit(*drawn())
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    expected = zip(encoder.report_["candidate"], encoder.report_["loss"], strict=True)
    assert [line.rpartition(" (")[0] for line in lines] == (
        [
            f"[SufficientEncoder] {k} of 3: {name}, loss {loss:.6g}"
            for k, (name, loss) in enumerate(expected, 1)
        ]
        if verbose
        else []
    )


def test_a_person_sees_one_line_grow_that_ends(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    encoder = SufficientEncoder("shop", estimator=Ridge(), verbose=1).fit(drawn()[0][["shop"]], drawn()[1])
    said = capsys.readouterr().err
    assert said.count("\r") == len(encoder.report_["candidate"])
    assert said.endswith("\n")
    assert said.count("\n") == 1
