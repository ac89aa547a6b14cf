"""`compare` as users call it: its numbers, table, report and winner."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import fields, replace
from importlib.resources import files
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import ShuffleSplit
from xgboost import XGBRegressor

from sufrep import Comparison, compare, load, make_encoder, save
from sufrep._compare._comparison import Best
from sufrep._compare._page import comparison_page
from sufrep._compare._results import Summary
from sufrep._compare._run import FoldScore
from sufrep._compare._snippet import pipeline_code
from sufrep._names import COMPARED_METHODS
from sufrep._splits import spread_folds
from sufrep.errors import (
    ComparisonError,
    ForeignStepError,
    IdColumnWarning,
    InvalidParameterError,
    MissingDependencyError,
    UnknownLibraryError,
)

METHODS = ["means", "drop", "target_encoder", "one_hot"]


def test_king_county_by_hand(data_dir):
    """One-hot columns and means with boosted trees, every number of the table computed by hand."""
    table = pd.read_csv(data_dir / "king_county.csv").drop(columns=["id", "date"])
    X, y = table.drop(columns="price"), table["price"]
    model = XGBRegressor(n_estimators=10, max_depth=4, n_jobs=1, random_state=0)
    methods = ["means", "one_hot"]
    found = compare(X, y, group="zipcode", methods=methods, models={"xgboost": model}, cv=4)

    covariates = [name for name in X.columns if name != "zipcode"]
    codes = np.unique(X["zipcode"], return_inverse=True)[1]
    losses: dict[str, list[float]] = {"one_hot": [], "means": []}
    squared: dict[str, list[np.ndarray]] = {"one_hot": [], "means": []}
    for train, test in spread_folds(codes, 4, seed=0):
        for method, scores in losses.items():
            if method == "one_hot":
                zips = pd.get_dummies(X["zipcode"]).to_numpy(float)[:, 1:]
                columns = np.column_stack([X[covariates], zips])
                known, new = columns[train], columns[test]
            else:
                encoder = make_encoder("means", "zipcode").fit(X.iloc[train])
                known, new = encoder.transform(X.iloc[train]), encoder.transform(X.iloc[test])
            fitted = XGBRegressor(n_estimators=10, max_depth=4, n_jobs=1, random_state=0).fit(known, y[train])
            squared[method].append((fitted.predict(new) - y[test].to_numpy()) ** 2)
            scores.append(math.sqrt(squared[method][-1].mean()))
    one_hot, means = np.array(losses["one_hot"]), np.array(losses["means"])
    gains = one_hot - means
    # The delta method: the error of a root is the error of the mean square, divided by twice the root.
    variances = [
        np.var(ours / (2 * mine) - theirs / (2 * his), ddof=1) / len(ours)
        for ours, mine, theirs, his in zip(squared["one_hot"], one_hot, squared["means"], means, strict=True)
    ]
    freedom = len(y) - 4
    plain = math.sqrt(np.mean(variances) / 4)
    error = math.sqrt((1 / 4 + 1 / 3) * np.mean(variances))
    half = stats.t.ppf(0.975, freedom) * error
    expected = {
        "score": means.mean(),
        "improvement": gains.mean() / one_hot.mean(),
        "low": (gains.mean() - half) / one_hot.mean(),
        "high": (gains.mean() + half) / one_hot.mean(),
        "p_plain": 2 * stats.t.sf(abs(gains.mean()) / plain, freedom),
        "p_corrected": 2 * stats.t.sf(abs(gains.mean()) / error, freedom),
    }
    rows = found.table().set_index("method")
    for name, value in expected.items():
        assert rows.loc["means", name] == pytest.approx(value, rel=1e-9), name
    assert rows.loc["one_hot", "score"] == pytest.approx(one_hot.mean(), rel=1e-9)
    assert rows["n_columns"].to_dict() == {"one_hot": 69, "means": len(covariates), "drop": 0}


# Invariance


def test_workers_change_nothing_and_a_seed_repeats_everything(rows, without_seconds):
    models = {"linear": "linear", "forest": RandomForestRegressor(5, random_state=0)}
    given: Any = {"group": "town", "methods": ["permutation", *METHODS], "models": models, "cv": 2}
    one = compare(*rows(), n_jobs=1, random_state=3, **given)
    two = compare(*rows(), n_jobs=2, random_state=3, **given)
    pd.testing.assert_frame_equal(without_seconds(one), without_seconds(two))
    assert one.verdict == two.verdict
    other = compare(*rows(), n_jobs=1, random_state=4, **given)
    assert not without_seconds(one).equals(without_seconds(other))


@given(st.lists(st.text("abcxyz", min_size=1, max_size=5), min_size=6, max_size=6, unique=True))
@settings(deadline=None, max_examples=5)
def test_renaming_levels_in_the_same_order_changes_nothing(found, rows, without_seconds, names):
    X, y = rows()
    renamed = X.assign(town=X["town"].map(dict(zip("abcdef", sorted(names), strict=True))))
    again = compare(renamed, y, group="town", methods=METHODS, models="linear")
    pd.testing.assert_frame_equal(without_seconds(again), without_seconds(found))


@pytest.fixture(scope="module", params=["rows", "mixed"])
def expected(request):
    """Comparisons of a pandas frame of numbers, and of one with text and dates."""
    table = request.getfixturevalue(request.param)
    X, y = table() if request.param == "rows" else table
    return compare(X, y, group="town", methods=METHODS, models="linear", cv=2)


@pytest.mark.parametrize(
    "convert",
    [
        pl.from_pandas,
        lambda X: pa.Table.from_pandas(X, preserve_index=False),
        lambda X: X.to_numpy(object),
        lambda X: X.to_numpy(object).tolist(),
        lambda X: X.set_axis(range(X.shape[1]), axis=1),
        lambda X: X.set_index(np.arange(len(X))[::-1]),
    ],
    ids=["polars", "pyarrow", "array", "lists", "numbered columns", "another index"],
)
def test_any_kind_of_table_gives_the_same_results(expected, without_seconds, convert):
    X, y = expected.plan.data.X, expected.plan.data.y
    place = X.columns.get_loc("town")
    other = compare(convert(X), y.tolist(), group=place, methods=METHODS, models="linear", cv=2)
    pd.testing.assert_frame_equal(without_seconds(other), without_seconds(expected), rtol=1e-9)
    predictions = other.fit_best().predict(other.plan.data.X)
    np.testing.assert_allclose(predictions, expected.fit_best().predict(X))


@pytest.mark.parametrize("group", [["town", "view"], ("town", "view"), ["town", ("town", "view")]])
def test_several_groups_and_crossed_ones_are_compared(mixed, group):
    X, y = mixed
    found = compare(X, y, group=group, methods=METHODS, models="linear", cv=2)
    assert not any(item.failed for item in found.summaries)
    assert found.fit_best().predict(X[:5]).shape == (5,)


# Tasks, folds, models


@pytest.mark.parametrize(
    ("cut", "task"),
    [
        (lambda y: y, "regression"),
        (lambda y: y > 1, "binary"),
        (lambda y: pd.qcut(y, 3, ["low", "mid", "top"]), "multiclass"),
    ],
)
def test_every_method_works_for_every_task(rows, cut, task):
    X, y = rows()
    methods = [method for method in COMPARED_METHODS if method not in ("sufficient", "latent_state")]
    found = compare(X, cut(y), group="town", methods=methods, models="linear", cv=2)
    assert found.plan.data.task == task
    assert [(item.method, item.failure) for item in found.summaries if item.failed] == []
    assert found.to_dict()["scoring"] == ("typical error (RMSE)" if task == "regression" else "log loss")


def test_grouped_folds_test_unseen_levels(rows):
    X, y = rows()
    found = compare(X, y, group="town", methods=["means", "drop"], models=Ridge(), cv=3, folds="grouped")
    for split in found.plan.splits:
        assert not set(X["town"][split.train]) & set(X["town"][split.test])


def test_the_corrected_test_uses_the_share_of_test_rows_of_a_splitter(rows):
    X, y = rows()
    cv = ShuffleSplit(10, test_size=0.5, random_state=0)
    # A score that is no mean over rows is tested by its spread over the splits.
    found = compare(X, y, group="town", methods="one_hot", models="linear", cv=cv, scoring="r2")
    drop = next(item for item in found.summaries if item.method == "drop")
    scores = {m: np.array([o.score for o in found.fold_scores if o.method == m]) for m in ("one_hot", "drop")}
    gains = scores["drop"] - scores["one_hot"]
    # As many test rows as training rows: the variance factor is 1/10 + 1.
    t = abs(gains.mean()) / math.sqrt((1 / 10 + 1) * gains.var(ddof=1))
    assert drop.p_corrected == pytest.approx(2 * stats.t.sf(t, 9))
    assert found.n_folds == 10


def test_one_split_gives_scores_without_tests(rows):
    cv = ShuffleSplit(1, random_state=0)
    found = compare(*rows(), group="town", methods=["means", "drop"], models="linear", cv=cv)
    assert all(math.isnan(item.p_corrected) for item in found.summaries)
    assert all(math.isfinite(item.score) for item in found.summaries)
    assert found.to_dict()["n_splits"] == 1


def test_two_folds_give_no_test_in_table_json_and_verdict(rows):
    X, y = rows()
    found = compare(X, y > 1, group="town", methods="one_hot", models="linear", cv=2, scoring="accuracy")
    assert set(found.table()["no_test"]) == {"", "two folds"}
    assert {item["method"]: (item["p_adjusted"], item["no_test"]) for item in found.to_dict()["results"]} == {
        "one_hot": (None, None),
        "drop": (None, "two folds"),
    }
    assert "chance (p" not in repr(found)


def test_a_missing_model_is_noted_and_raises_if_there_is_no_other(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    found = compare(*rows(), group="town", methods="drop", models=("linear", "xgboost"), cv=2)
    assert "xgboost was left out" in found.notes[0]
    assert list(found.plan.models) == ["linear"]
    with pytest.raises(MissingDependencyError, match="not installed"):
        compare(*rows(), group="town", models="xgboost")


@pytest.mark.parametrize("seed", [None, -1, 0.5, True])
def test_a_seed_is_a_whole_number(rows, seed):
    with pytest.raises(InvalidParameterError, match="random_state must be a whole number"):
        compare(*rows(), group="town", random_state=seed)


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        ("n_jobs", 0, "None, a number of parallel jobs"),
        ("n_repeats", 1.5, "a whole number, 1 or more"),
        ("n_repeats", 0, "a whole number, 1 or more"),
        ("methods", 3, "'usual', 'quick', 'all', or a list of names"),
        ("methods", [], "'usual', 'quick', 'all', or a list of names"),
        ("max_rows", 3, "a whole number, 10 or more"),
        ("budget", "soon", "seconds, or a time such as '90s', '2m' or '1h'"),
        ("budget", -1, "seconds, or a time such as '90s', '2m' or '1h'"),
    ],
)
def test_an_invalid_parameter_raises_before_anything_is_run(rows, parameter, value, expected):
    text = f"{parameter} is {value!r}.\nHint: {parameter} must be {expected}"
    with pytest.raises(InvalidParameterError, match=re.escape(text)):
        compare(*rows(), group="town", **{parameter: value})


# Outputs


@pytest.mark.parametrize("library", [None, "pandas", "polars", "pyarrow"])
def test_the_table_is_a_frame_of_the_requested_library(found, library):
    table = found.table(library=library)
    assert type(table).__module__.partition(".")[0] == (library or "pandas")
    names = table.column_names if library == "pyarrow" else list(table.columns)
    assert names[:4] == ["model", "method", "score", "improvement"]
    assert {"p_plain", "p_corrected", "p_adjusted", "fit_seconds", "n_columns", "failure"} <= set(names)


@pytest.mark.parametrize(
    ("convert", "kind"), [(pl.from_pandas, pl.DataFrame), (pa.Table.from_pandas, pa.Table)]
)
def test_the_table_is_by_default_of_the_library_of_the_data(rows, convert, kind):
    X, y = rows()
    found = compare(
        convert(X.assign(price=y)), "price", group="town", methods=["drop"], models="linear", cv=2
    )
    assert isinstance(found.table(), kind)
    assert "predict price" in found.verdict[0]


def test_the_results_are_plain_values_for_json(found):
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert again["best"] == {"method": found.best.method, "model": "linear"}
    assert (again["group"], again["target"], again["baseline"]) == ("town", "price", "one_hot")
    assert (again["n_rows"], again["n_levels"], again["n_folds"], again["random_state"]) == (120, 6, 5, 0)
    assert len(again["results"]) == 4
    assert len(again["fold_scores"]) == 20
    base = next(item for item in again["results"] if item["method"] == "one_hot")
    assert (base["improvement"], base["low"], base["p_adjusted"]) == (0.0, None, None)


SCHEMA = json.loads(files("sufrep._compare").joinpath("comparison.schema.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def failing(rows):
    """A comparison in which everything fails."""

    def broken(*_: Any) -> float:
        raise ValueError("no score")

    return compare(*rows(), group="town", methods="drop", models="linear", scoring=broken, n_jobs=1)


@pytest.mark.parametrize("name", ["found", "attacked", "failing"])
def test_the_json_follows_the_published_schema(request, name):
    comparison = request.getfixturevalue(name)
    document = json.loads(comparison.to_json())
    assert document == json.loads(json.dumps(comparison.to_dict()))
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.check_schema(SCHEMA)
    assert [error.message for error in validator.iter_errors(document)] == []
    # Everything is described, and what is described exists.
    described = {"": SCHEMA, **SCHEMA["$defs"]}
    assert set(described[""]["properties"]) == set(document)
    assert set(described["result"]["properties"]) == {part.name for part in fields(Summary)}
    assert set(described["fold_score"]["properties"]) == {part.name for part in fields(FoldScore)} - {"rows"}
    for properties in (part["properties"] for part in described.values()):
        assert all(property_["description"] for property_ in properties.values())


def test_the_schema_refuses_what_is_not_a_comparison(found):
    validator = jsonschema.Draft202012Validator(SCHEMA)
    good = json.loads(found.to_json())
    for changes in ({"schema_version": 2}, {"results": [{}]}, {"verdict": []}, {"n_rows": None}):
        assert not validator.is_valid({**good, **changes})


def test_json_and_markdown_are_returned_and_written(found, tmp_path):
    assert found.to_json(tmp_path / "found.json") == (tmp_path / "found.json").read_text() == found.to_json()
    assert found.to_markdown(tmp_path / "found.md") == (tmp_path / "found.md").read_text("utf-8")


def test_markdown_has_verdict_results_and_notes_with_names_as_text(found, attacked):
    lines = found.to_markdown().splitlines()
    assert lines[0] == f"## {found.verdict[0]}"
    table = [line for line in lines if line.startswith("|")]
    assert [row.split(" | ")[0] for row in table[2:]] == [f"| {item.method}" for item in found.summaries]
    noted = replace(found, notes=("First | note.", "Second."))
    assert noted.to_markdown().endswith("\n\n- First \\| note.\n- Second.\n")
    failed = replace(found.summaries[-1], failure="a | b")
    failing = replace(found, summaries=[*found.summaries[:-1], failed])
    assert f"| {failed.method} | linear | a \\| b |" in failing.to_markdown()
    assert "<script>" not in attacked.to_markdown()
    assert "\\<script\\>alert(1)\\</script\\>" in attacked.to_markdown()


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<svg")])
def test_charts_are_saved_as_pictures(found, tmp_path, ending, start):
    path = found.save_chart(tmp_path / f"ranking.{ending}")
    assert path.read_bytes().lstrip().startswith(start)
    assert [file.name for file in tmp_path.iterdir()] == [f"ranking.{ending}"]


def test_the_width_of_a_saved_chart_is_that_of_its_plot(found, tmp_path):
    sizes = [
        float(re.search(r'width="([\d.]+)"', path.read_text())[1])
        for width in (400, 700)
        for path in [found.save_chart(tmp_path / "times.svg", "times", width=width)]
    ]
    assert sizes[1] - sizes[0] == pytest.approx(300, abs=10)


def test_the_printed_form_is_the_verdict(found):
    assert repr(found).startswith(
        "<Comparison of 4 methods on 120 rows, 6 levels of 'town'>\nEncode town with"
    )


def test_the_winner_is_fitted_on_all_rows_and_is_the_user_s_own(found, rows):
    X, y = rows()
    model = found.fit_best()
    expected = found.pipeline(*found.best).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert found.fit_best() is not model


@pytest.mark.usefixtures("no_bundle")
def test_the_report_is_written_without_temporary_files(found, tmp_path):
    path = found.to_html(tmp_path / "report.html")
    assert "Encode town with" in path.read_text(encoding="utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


# The winner is what is saved


@pytest.mark.parametrize("method", ["means", "mixed_model", "sufficient", "drop"])
@pytest.mark.parametrize("kind", ["frame", "array"])
def test_every_route_to_the_winner_gives_the_same_predictions(
    mixed, method, kind, tmp_path, monkeypatch, choose
):
    """The evaluated pipeline, `fit_best`, the code of the report, the saved steps; with text and dates."""
    if kind == "array":  # what is chosen does not depend on the container, and judging takes long
        choose("means", "states", "target_mean")
    X, y = mixed
    table, group = (X, "town") if kind == "frame" else (X.to_numpy(object), X.columns.get_loc("town"))
    model = HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5)
    found = compare(table, y, group=group, methods=["drop"], models={"boosting": model}, cv=2)
    monkeypatch.setattr(Comparison, "best", Best(method, "boosting"))
    best = found.fit_best()
    save(best[:-1], tmp_path / "town.sufrep")
    names: dict[str, Any] = {"X": table, "y": y}
    exec(pipeline_code(found.pipeline(*found.best)), names)
    routes = {
        "evaluated": found.pipeline(*found.best).fit(table, y)[:-1],
        "fit_best": best[:-1],
        "code": names["model"][:-1],
        "file": load(tmp_path / "town.sufrep"),
    }
    predictions = {}
    for name, steps in routes.items():
        columns = np.asarray(steps.transform(table), dtype=float)
        assert columns.shape[1] == len(steps.get_feature_names_out())
        predictions[name] = clone(model).fit(columns, y).predict(columns)
    for name, found_there in predictions.items():
        np.testing.assert_allclose(found_there, predictions["fit_best"], rtol=1e-9, err_msg=name)
    assert not {"town", "sold"} & set(routes["file"].get_feature_names_out())
    np.testing.assert_allclose(names["model"].predict(table), best.predict(table), rtol=1e-9)


def test_the_steps_of_a_table_of_numbers_are_one(rows, tmp_path):
    X, y = rows()
    found = compare(X, y, group="town", methods="means", models="linear")
    save(found.fit_best()[:-1], tmp_path / "town.sufrep")
    inside = found.fit_best().named_steps["encoder"]
    again = load(tmp_path / "town.sufrep")
    assert type(again) is type(inside)
    np.testing.assert_array_equal(np.asarray(again.transform(X)), np.asarray(inside.transform(X)))


def test_the_encoder_of_another_library_is_not_saved_and_ours_is_named(rows, tmp_path):
    X, y = rows()
    found = compare(X, y, group="town", methods="target_encoder", models="linear")
    steps = found.pipeline("target_encoder", "linear").fit(X, y)[:-1]
    with pytest.raises(ForeignStepError, match=r"MeansEncoder\(group, covariates=\[\], use_target=True\)"):
        save(steps, tmp_path / "town.sufrep")


def test_an_unknown_library_method_or_model_raises_with_the_known_ones(found):
    with pytest.raises(UnknownLibraryError, match=r"library='foo' .*\nHint: use one of pandas, polars"):
        found.table(library="foo")
    with pytest.raises(InvalidParameterError, match=r"method is 'mean'.*\n.*did you mean 'means'"):
        found.pipeline("mean", "linear")
    with pytest.raises(InvalidParameterError, match=r"model is 'foo'.\nHint: model must be one of linear"):
        found.pipeline("means", "foo")


def test_if_everything_failed_there_is_no_winner(rows):
    def broken(*_: Any) -> float:
        raise ValueError("no score")

    found = compare(*rows(), group="town", methods="drop", models="linear", scoring=broken, n_jobs=1)
    for call in (lambda: found.best, found.fit_best):
        with pytest.raises(ComparisonError, match=r"first reason: ValueError: no score\nHint: look at"):
            call()
    assert found.to_dict()["best"] is None
    assert set(found.table()["failure"]) == {"ValueError: no score"}
    assert found.verdict[0] == "Every method failed on these data."


# Time


def test_in_time_every_fold_is_predicted_from_the_rows_before_it(rows):
    X, y = rows()
    day = np.random.default_rng(2).integers(0, 20, len(X))
    X = X.assign(day=[f"2024-03-{1 + number:02d}" for number in day])
    options = {"group": "town", "methods": ["fisher", "means", "target_encoder"], "models": Ridge()}
    found = compare(X, y, **options, time="day")
    assert found.to_dict()["time"] == "day"
    assert "later, by 'day'," in found.notes[0]
    for split in found.plan.splits:
        pipeline = found.pipeline("fisher", "Ridge").fit(X.iloc[split.train], y.iloc[split.train])
        encoder = pipeline.named_steps["encoder"]
        assert (encoder.cv, encoder.time) == ("ordered", "day_days")
        error = math.sqrt(np.mean((pipeline.predict(X.iloc[split.test]) - y.iloc[split.test]) ** 2))
        (score,) = [s.score for s in found.fold_scores if (s.method, s.fold) == ("fisher", split.fold)]
        assert score == pytest.approx(error)
    # Nothing that is later than the training rows has a part in what is learnt.
    last = day[found.plan.splits[0].test].max()
    other = compare(X, y.where(day <= last, -y), **options, time="day")
    for one, same in zip(found.fold_scores, other.fold_scores, strict=True):
        assert one.score == same.score or one.fold > 0
    assert found.pipeline("means", "Ridge").named_steps["encoder"].time is None  # it has no target to order


def test_the_code_of_a_report_in_time_runs(rows):
    X, y = rows()
    X = X.assign(day=pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(len(X)) % 9, "D"))
    found = compare(X, y, group="town", methods=["mixed_model"], models="linear", time="day")
    code = pipeline_code(found.pipeline("mixed_model", "linear"))
    assert "cv='ordered'" in code
    assert "time='day_days'" in code
    names: dict[str, Any] = {"X": X, "y": y}
    exec(code, names)
    expected = found.pipeline("mixed_model", "linear").fit(X, y).predict(X)
    np.testing.assert_array_equal(names["model"].predict(X), expected)
    assert ("folds", "5, each later than its training rows by day") in comparison_page(found).facts


# What a reviewer found


def test_rows_that_are_tested_together_are_no_independent_evidence(rows):
    for options in ({"folds": "grouped"}, {"cv": ShuffleSplit(4, random_state=0)}):
        found = compare(*rows(), group="town", methods="means", models="linear", **{"cv": 3, **options})
        assert all(item.rows is None for item in found.fold_scores)
    found = compare(*rows(), group="town", methods="means", models="linear", cv=3)
    assert all(len(item.rows) == 40 for item in found.fold_scores)


def test_splits_of_the_user_are_of_all_rows(rows):
    X, y = rows()
    cv = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    found = compare(X, y, group="town", methods="means", models="linear", cv=cv, max_rows=50)
    assert len(found.plan.data.y) == 120
    assert [split.test.tolist() for split in found.plan.splits] == [test.tolist() for _, test in cv]


def test_an_infinite_covariate_does_not_lose_a_comparison(rows):
    X, y = rows()
    X = X.assign(tax=y)
    X.loc[0, "size"] = np.inf
    found = compare(X, y, group="town", methods="drop", models="boosting", cv=3)
    assert np.isfinite(found.summaries[0].score)


def test_a_table_of_the_group_alone_is_compared_with_a_constant(rows):
    X, _ = rows()
    noise = np.random.default_rng(0).normal(size=len(X))
    found = compare(X[["town"]], noise, group="town", methods="target_mean", models="linear")
    assert not any(item.failed for item in found.summaries)
    assert found.best.method == "drop"


def test_an_identifier_next_to_another_group_does_not_decide(rows):
    X, y = rows()
    X = X.assign(id=[f"i{i}" for i in range(len(X))])
    with pytest.warns(IdColumnWarning):
        found = compare(X, y, group=["town", "id"], methods="target_mean", models="linear")
    assert not found.plan.data.is_identifier
    assert "every row has a level of its own" not in found.verdict[0]


@pytest.mark.parametrize("target", ["numbers", "classes"])
def test_a_group_that_is_dropped_from_a_table_of_its_own_leaves_a_constant(target):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": rng.choice(list("abcdefghij"), 300)})
    y = rng.normal(size=300) if target == "numbers" else rng.choice(["no", "yes"], 300)
    found = compare(X, y, group="town", methods=["drop", "target_mean"], models="linear", cv=3, n_jobs=1)
    assert found.best.method == "drop"
    fitted = found.fit_best()
    if target == "numbers":
        np.testing.assert_allclose(fitted.predict(X), y.mean())
    else:
        np.testing.assert_allclose(fitted.predict_proba(X)[:, 1], (y == "yes").mean())
    code = pipeline_code(found.pipeline(*found.best))
    assert "make_pipeline(\n    DropColumns(columns=['town']),\n    Dummy" in code
