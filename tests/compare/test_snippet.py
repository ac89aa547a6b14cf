"""The code of the report really runs, and gives the winner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier, XGBRegressor

from sufrep import MeansEncoder, make_encoder
from sufrep._compare._data import read_data
from sufrep._compare._run import make_steps
from sufrep._compare._snippet import pipeline_code
from sufrep._models import MODELS, LabelledClassifier
from sufrep.encoders import METHODS


def run(code: str, X: Any, y: Any) -> Any:
    """Run the code as somebody who copies it, and return its model."""
    place = {"X": X, "y": y}
    exec(code, place)
    return place["model"]


def target(y: pd.Series, task: str) -> Any:
    if task == "regression":
        return y
    n_classes = 2 if task == "binary" else 3
    return pd.Series(np.array(["low", "mid", "top"])[pd.qcut(y, n_classes, labels=False)], name="price")


@pytest.mark.parametrize("model", ["xgboost", "linear"])
@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize("method", ["means", "drop", "target_encoder"])
@pytest.mark.parametrize("table", ["rows", "mixed"])
def test_the_code_gives_the_same_predictions_as_the_winner(request, table, method, task, model):
    X, y = request.getfixturevalue(table)() if table == "rows" else request.getfixturevalue(table)
    y = target(y, task)
    if model == "xgboost":
        few = {"n_estimators": 4, "max_depth": 2, "n_jobs": 1, "random_state": 0}
        classes = LabelledClassifier(XGBClassifier(**few))
        estimator: Any = XGBRegressor(**few) if task == "regression" else classes
    else:
        estimator = MODELS["linear"](task != "regression", 0)
    data = read_data(X, y, "town", "auto")
    pipeline = Pipeline([*make_steps(data, method, 0), ("model", estimator)])
    code = pipeline_code(pipeline)
    copied = run(code, X, y)
    ours = pipeline.fit(X, y)
    labelled = model == "xgboost" and task != "regression"
    assert labelled == ("LabelEncoder" in code)
    if task == "regression":
        np.testing.assert_array_equal(copied.predict(X), ours.predict(X))
    else:
        np.testing.assert_array_equal(copied.predict_proba(X), ours.predict_proba(X))
        classes_ = np.unique(y)
        predicted = copied.predict(X)
        assert (classes_[predicted] if labelled else predicted).tolist() == ours.predict(X).tolist()


def test_the_code_of_the_winner_is_what_fit_best_gives(found, rows):
    X, y = rows()
    copied = run(pipeline_code(found.pipeline(*found.best)), X, y)
    np.testing.assert_array_equal(copied.predict(X), found.fit_best().predict(X))


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_the_code_of_every_model_makes_it_again(name, classes):
    model = MODELS[name](classes, 7)
    place: dict[str, Any] = {"X": None, "y": None}
    code = pipeline_code(Pipeline([("encoder", MeansEncoder("town")), ("model", model)]))
    assert code.endswith("\nmodel.fit(X, y)")
    exec(code.removesuffix("model.fit(X, y)").replace("LabelEncoder().fit_transform(y)", "y"), place)
    made = place["model"][-1]
    plain = model.estimator if isinstance(model, LabelledClassifier) else model
    assert repr(made) == repr(plain)


@pytest.mark.parametrize("method", METHODS)
def test_the_code_of_every_encoder_makes_it_again(method):
    encoder = make_encoder(method, ["town", ("town", "street")])
    code = pipeline_code(make_pipeline(encoder, Ridge()))
    place: dict[str, Any] = {"X": None, "y": None}
    exec(code.removesuffix("model.fit(X, y)"), place)
    assert repr(place["model"][0]) == repr(encoder)
    assert f"make_encoder({method!r}, ['town', ('town', 'street')]" in code


def test_the_code_imports_each_name_once_from_its_public_module():
    steps = make_pipeline(
        make_encoder("means", 0, use_target=True, cv=KFold(3)),
        make_pipeline(StandardScaler(), RandomForestClassifier(max_depth=2)),
    )
    assert pipeline_code(steps) == "\n".join(
        [
            "from sklearn.ensemble import RandomForestClassifier",
            "from sklearn.model_selection import KFold",
            "from sklearn.pipeline import make_pipeline",
            "from sklearn.preprocessing import StandardScaler",
            "from sufrep import make_encoder",
            "",
            "# X and y are the table and the target of the comparison",
            "model = make_pipeline(",
            "    make_encoder('means', 0, cv=KFold(n_splits=3, shuffle=False), use_target=True),",
            "    make_pipeline(StandardScaler(), RandomForestClassifier(max_depth=2)),",
            ")",
            "model.fit(X, y)",
        ]
    )


def test_loading_comes_after_the_imports():
    code = pipeline_code(
        make_pipeline(Ridge()), "import polars as pl\n\nX = pl.read_csv('x.csv')\ny = X['y']"
    )
    assert code.splitlines()[:6] == [
        "import polars as pl",
        "from sklearn.linear_model import Ridge",
        "from sklearn.pipeline import make_pipeline",
        "",
        "X = pl.read_csv('x.csv')",
        "y = X['y']",
    ]


@pytest.mark.parametrize("name", ["it's", 'a "b"', "line\nbreak", "back\\slash", "🏔"])
def test_any_column_can_be_named_in_the_code(name):
    X = pd.DataFrame({name: ["a", "b", "a", "b"], "x": [1.0, 2, 3, 4]})
    code = pipeline_code(make_pipeline(make_encoder("means", name), Ridge()))
    assert run(code, X, [1.0, 2, 3, 4]).predict(X).shape == (4,)


def test_a_default_of_nan_is_left_out():
    model = make_pipeline(make_encoder("means", 0), XGBRegressor(missing=np.nan, max_depth=3))
    assert "XGBRegressor(max_depth=3)" in pipeline_code(model)
    model = make_pipeline(make_encoder("means", 0), XGBRegressor(missing=-1.0))
    assert "XGBRegressor(missing=-1.0)" in pipeline_code(model)
