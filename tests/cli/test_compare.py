"""``sufrep compare`` and ``sufrep demo``: from a table to a verdict, a report and an encoder."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

import sufrep as package
from sufrep import Comparison, DropColumns, MeansEncoder, ToNumbers, compare, load, save
from sufrep._compare import _run
from sufrep._compare._comparison import Best
from sufrep._files import open_table
from sufrep._report import _render

ZIPS = ("01234", "01235", "98178", "98001", "00007", "12345")
LINEAR = "--models linear --methods drop --jobs 1"
FAST = "--models linear --jobs 1 --methods means drop one_hot --folds 2"


def houses(n: int = 120) -> pl.DataFrame:
    """Houses in a few zip codes, some of which begin with zeros, whose mean size determines the price."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, len(ZIPS), n)
    size = rng.normal(100 + 20 * code, 10)
    price = 3 * size + 50 * (code % 2) + rng.normal(size=n)
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "zipcode": [ZIPS[j] for j in code],
            "sqft": size,
            "rooms": rng.integers(1, 6, n),
            "sold": [f"2014-{1 + i % 12:02d}-13" for i in range(n)],
            "view": [("sea", "hill", "🏔")[i % 3] for i in range(n)],
            "price": price,
            "rating": rng.integers(1, 6, n),
            "cheap": price < np.median(price),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def table(folder: Path) -> Path:
    houses().write_csv(folder / "houses.csv")
    return folder / "houses.csv"


@pytest.fixture(scope="module")
def numbers(folder: Path) -> Path:
    """A table of numbers and the zip code."""
    houses().select("zipcode", "sqft", "rooms", "price").write_csv(folder / "numbers.csv")
    return folder / "numbers.csv"


@pytest.fixture(autouse=True)
def _no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundling the scripts takes seconds."""
    monkeypatch.setattr(_render, "drawing_bundle", lambda: "")


def code_in(report: Path) -> str:
    """The code of a report, as a user copies it."""
    (code,) = re.findall(r"<pre[^>]*><code[^>]*>(.*?)</code></pre>", report.read_text("utf-8"), re.DOTALL)
    return unescape(code)


def without_seconds(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if not key.endswith("seconds")}


# Results


def test_the_results_are_those_of_python(sufrep, table):
    result = sufrep(f"compare {table} --target price --group zipcode --drop id rating cheap {FAST} --json")
    assert result.code == 0, result.err
    rows = open_table(table, text=["zipcode"], drop=["id", "rating", "cheap"]).read()
    methods = ["means", "drop", "one_hot"]
    found = compare(
        rows.drop("price"), rows["price"], group="zipcode", methods=methods, models="linear", cv=2
    ).to_dict()
    printed = json.loads(result.out)
    assert printed["notes"].pop() == "Left out by --drop: 'id', 'rating', 'cheap'."
    for part in ("results", "fold_scores"):
        found[part], printed[part] = (
            [without_seconds(row) for row in half[part]] for half in (found, printed)
        )
    assert printed == json.loads(json.dumps(found))


def test_a_table_and_a_verdict_are_printed(sufrep, numbers):
    result = sufrep(f"compare {numbers} --target price --group zipcode {FAST}")
    lines = result.out.splitlines()
    assert lines[0].split()[:5] == ["method", "model", "typical", "error", "(RMSE)"]
    assert [line.split()[0] for line in lines[1:4]] == ["one_hot", "drop", "means"]
    assert any(line.startswith("Encode zipcode with one-hot columns: typical error") for line in lines)
    # There are two folds, and the baseline is not compared with itself.
    assert ["no test" in line for line in lines[1:4]] == [False, True, True]
    assert lines[4] == "No test: two folds."
    assert "\x1b" not in result.out


def test_measures_have_everyday_names(sufrep, numbers):
    result = sufrep(f"compare {numbers} --target price --group zipcode --scoring rmse {FAST} --json")
    assert json.loads(result.out)["scoring"] == "typical error (RMSE)"


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("zipcode rooms", ["zipcode", "rooms"]),
        ("zipcode+rooms", ("zipcode", "rooms")),
        ("zipcode zipcode+rooms", ["zipcode", ("zipcode", "rooms")]),
    ],
)
def test_several_groups_follow_each_other_and_crossed_ones_are_joined_by_a_plus(
    sufrep, numbers, tmp_path, group, expected
):
    command = f"compare {numbers} --target price --group {group} {FAST} --json"
    result = sufrep(f"{command} --html {tmp_path}/report.html --save {tmp_path}/zip.sufrep")
    assert result.code == 0, result.err
    rows = open_table(numbers, text=["zipcode", "rooms"]).read()
    methods = ["means", "drop", "one_hot"]
    found = compare(rows, "price", group=expected, methods=methods, models="linear", cv=2)
    printed = json.loads(result.out)
    assert printed["group"] == found.plan.data.group_name
    assert [item["score"] for item in printed["results"]] == [item.score for item in found.summaries]
    namespace: dict[str, Any] = {}
    exec(code_in(tmp_path / "report.html"), namespace)
    assert namespace["model"].predict(namespace["X"]).shape == (rows.height,)
    assert load(tmp_path / "zip.sufrep").layout_.group_names(["zipcode", "sqft", "rooms"])


def test_a_terminal_has_colours(sufrep, numbers, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1m" in sufrep(f"compare {numbers} --target price --group zipcode {FAST}").out


def test_a_long_table_is_cut_and_the_rest_is_counted(sufrep, numbers):
    methods = (
        "deviation difference helmert repeated_effect simple_effect permutation multi_permutation fisher"
    )
    options = f"--methods {methods} means low_rank mnl random_intercept drop one_hot"
    result = sufrep(
        f"compare {numbers} --target price --group zipcode --models linear --jobs 1 --folds 2 {options}"
    )
    assert "… and 2 more; see the report or --json for all." in result.out


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_code_of_the_report_really_runs(sufrep, table, tmp_path, ending):
    if ending == "parquet":
        # Levels that are stored as numbers are text to the command, and to its code.
        table = tmp_path / "houses.parquet"
        houses().with_columns(pl.col("zipcode").cast(pl.Int64)).write_parquet(table)
    report = tmp_path / "report.html"
    roles = "--target price --group zipcode --drop id rating cheap"
    result = sufrep(f"compare {table} {roles} {FAST} --html {report}")
    assert result.code == 0, result.err
    assert f"sufrep: report: {report}\n" in result.err
    assert f'id="origin">{table.name} · ' in report.read_text("utf-8")
    namespace: dict[str, Any] = {}
    exec(code_in(report), namespace)
    rows = open_table(table, text=["zipcode"], drop=["id", "rating", "cheap"]).read()
    X, y = rows.drop("price"), rows["price"]
    found = compare(X, y, group="zipcode", methods=["means", "drop", "one_hot"], models="linear", cv=2)
    np.testing.assert_array_equal(namespace["model"].predict(namespace["X"]), found.fit_best().predict(X))
    levels = set(namespace["X"]["zipcode"])
    assert levels == (set(ZIPS) if ending == "csv" else {zip_.lstrip("0") for zip_ in ZIPS})


def test_markup_in_names_is_escaped_in_the_report(sufrep, tmp_path):
    attack = "<script>alert(1)</script>"
    path = tmp_path / "attack.csv"
    names = {"zipcode": attack, "price": f"{attack} price"}
    levels = pl.col("zipcode").replace("01234", attack)
    houses().select("zipcode", "sqft", "price").with_columns(levels).rename(names).write_csv(path)
    report = tmp_path / "report.html"
    result = sufrep(f"compare {path} --target '{attack} price' --group '{attack}' {FAST} --html {report}")
    assert result.code == 0, result.err
    assert f"Encode {attack} with" in result.out
    assert attack not in report.read_text("utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in report.read_text("utf-8")


# The saved encoder


def test_the_saved_encoder_is_the_best_one(sufrep, numbers, tmp_path):
    saved = tmp_path / "zip.sufrep"
    roles = "--target price --group zipcode --covariates rooms"
    result = sufrep(f"compare {numbers} {roles} {FAST} --save {saved}")
    assert f"sufrep: encoder: {saved}\n" in result.err
    rows = open_table(numbers, text=["zipcode"]).read().select("zipcode", "rooms", "price")
    X, y = rows.drop("price"), rows["price"]
    found = compare(X, y, group="zipcode", methods=["means", "drop", "one_hot"], models="linear", cv=2)
    inside = found.fit_best().named_steps["encoder"]
    np.testing.assert_array_equal(np.asarray(load(saved).transform(X)), np.asarray(inside.transform(X)))


@pytest.mark.parametrize("method", ["means", "sufficient", "drop"])
def test_the_file_the_code_and_python_make_the_same_columns(sufrep, table, tmp_path, monkeypatch, method):
    """All routes to the winner, on a table with text and dates, give a model the same predictions."""
    monkeypatch.setattr(Comparison, "best", Best(method, "linear"))
    saved, out, report = tmp_path / "zip.sufrep", tmp_path / "out.parquet", tmp_path / "report.html"
    roles = "--target price --group zipcode --drop id rating cheap"
    result = sufrep(f"compare {table} {roles} {FAST} --save {saved} --html {report}")
    assert result.code == 0, result.err
    assert f"sufrep: encoder: {saved}\n" in result.err
    assert sufrep(f"apply {saved} {table} --out {out}").code == 0
    rows = open_table(table, text=["zipcode"], drop=["id", "rating", "cheap"]).read()
    X, y = rows.drop("price"), rows["price"].to_numpy()
    best = compare(
        X, y, group="zipcode", methods=["means", "drop", "one_hot"], models="linear", cv=2
    ).fit_best()
    namespace: dict[str, Any] = {}
    exec(code_in(report), namespace)
    steps = load(saved)
    assert steps[0].feature_names_in_.tolist() == ["zipcode", "sqft", "rooms", "sold", "view"]
    applied = pl.read_parquet(out)
    assert ("zipcode" in applied.columns) == (method != "drop")
    assert {"view", "view_sea", "sold_month", "cheap"} <= set(applied.columns)
    routes = {
        "fit_best": best[:-1].transform(X),
        "code": namespace["model"][:-1].transform(namespace["X"]),
        "file": steps.transform(X),
        "apply": applied.select(steps.get_feature_names_out().tolist()),
    }
    model = DecisionTreeRegressor(random_state=0)
    expected = clone(model).fit(routes["fit_best"], y).predict(routes["fit_best"])
    for name, columns in routes.items():
        columns = np.asarray(columns, dtype=float)
        predicted = clone(model).fit(columns, y).predict(columns)
        np.testing.assert_allclose(predicted, expected, rtol=1e-9, err_msg=name)


def test_codes_that_look_like_numbers_stay_the_text_that_they_were(sufrep, tmp_path):
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"g": ["01", "02"] * 20, "kind": ["1", "2", "03", "4"] * 10, "x": rng.normal(size=40)})
    steps = make_pipeline(ToNumbers(keep="g"), MeansEncoder("g")).fit(X)
    save(steps, tmp_path / "g.sufrep")  # without a reading, as Python saves it
    X.write_csv(tmp_path / "new.csv")
    assert sufrep(f"apply {tmp_path}/g.sufrep {tmp_path}/new.csv --out {tmp_path}/out.parquet").code == 0
    new = pl.read_parquet(tmp_path / "out.parquet").select(steps.get_feature_names_out().tolist())
    np.testing.assert_array_equal(new.to_numpy(), steps.transform(X))


def test_an_encoder_of_another_library_is_refused_and_ours_is_named(sufrep, numbers, tmp_path, monkeypatch):
    monkeypatch.setattr(Comparison, "best", Best("target_encoder", "linear"))
    saved = tmp_path / "zip.sufrep"
    result = sufrep(f"compare {numbers} --target price --group zipcode {FAST} --save {saved}")
    assert result.code == 1
    assert "Hint: MeansEncoder(group, covariates=[], use_target=True) is sufrep's equivalent" in result.err
    assert not saved.exists()


def test_a_file_that_leaves_the_column_out_has_no_levels_to_compare(sufrep, numbers, tmp_path):
    save(DropColumns("zipcode").fit(pl.read_csv(numbers)), tmp_path / "zip.sufrep")
    result = sufrep(f"drift {tmp_path}/zip.sufrep {numbers}")
    assert result.code == 1
    assert "it leaves the column out, and knows nothing about its levels.\nHint: " in result.err


def test_the_drift_of_a_table_with_text_and_dates_is_that_of_its_numbers(sufrep, table, tmp_path):
    rows = open_table(table, text=["zipcode"], drop=["id"]).read()
    steps = make_pipeline(ToNumbers(keep="zipcode"), MeansEncoder("zipcode")).fit(rows)
    save(steps, tmp_path / "zip.sufrep")
    printed = json.loads(sufrep(f"drift {tmp_path}/zip.sufrep {table} --json").out)
    assert printed == json.loads(json.dumps(steps[1].drift(steps[0].transform(rows)).to_dict()))


def test_two_encoders_in_a_row_are_for_python_only(sufrep, numbers, tmp_path):
    X = pl.read_csv(numbers)
    first = MeansEncoder("zipcode").set_output(transform="polars")
    save(make_pipeline(first, MeansEncoder("rooms")).fit(X), tmp_path / "two.sufrep")
    result = sufrep(f"apply {tmp_path}/two.sufrep {numbers} --out {tmp_path}/out.csv")
    assert result.code == 1
    assert "it holds 2 encoders, or steps after one.\nHint: use it in Python" in result.err


# Options


def test_options_reach_the_comparison(sufrep, table):
    options = "--sample 60 --seed 7 --repeats 2 --new-levels --scoring neg_mean_absolute_error --text rooms"
    result = sufrep(f"compare {table} --target price --group zipcode view {FAST} {options} --drop id --json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert (found["n_rows"], found["random_state"], found["n_splits"]) == (60, 7, 4)
    assert (found["scoring"], found["group"], found["n_levels"]) == ("mean absolute error", "zipcode", 6)


@pytest.mark.parametrize(
    ("options", "task"),
    [
        ("--target rating", "multiclass"),
        ("--target rating --task regression", "regression"),
        ("--target cheap", "binary"),
        ("--target view", "multiclass"),
    ],
)
def test_every_kind_of_target_is_compared(sufrep, table, options, task):
    result = sufrep(f"compare {table} {options} --group zipcode {FAST} --covariates sqft rooms --json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["task"] == task


def test_a_detected_task_is_noted(sufrep, table):
    result = sufrep(f"compare {table} --target rating --group zipcode {FAST} --covariates sqft")
    assert "Note: The target has 5 distinct integers, which are treated as classes" in result.out


# The demonstration


def test_the_demonstration_writes_a_report_whose_code_runs(sufrep, tmp_path, monkeypatch):
    original = package.compare
    few = {"methods": ["means", "low_rank"], "models": "linear", "cv": 2}

    def smaller(*given: Any, **options: Any) -> Any:
        return original(*given, **{**options, **few})

    monkeypatch.setattr(package, "compare", smaller)
    report = tmp_path / "demo.html"
    result = sufrep(f"demo --html {report} --quick --jobs 1 --seed 3")
    assert result.code == 0, result.err
    simulated = "The data are simulated: 4,000 house sales in 300 zip codes."
    assert f"sufrep: {simulated}" in result.err
    assert f"Note: {simulated}" in result.out
    assert simulated in report.read_text("utf-8")
    assert "Encode zipcode with" in result.out
    assert '<p class="subtitle" id="origin">simulated data · ' in report.read_text("utf-8")
    namespace: dict[str, Any] = {}
    exec(code_in(report), namespace)
    assert namespace["model"].predict(namespace["X"]).shape == (4_000,)
    assert "seed=3" in code_in(report)


# Tables and options that cannot be used, or are unusual


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--target zipcode --group zipcode", "'zipcode' is also in --group"),
        (
            "--target price --group zipcode --methods mean",
            "'--methods': 'mean' is unknown; did you mean means",
        ),
        (
            "--target price --group zipcode --models forst",
            "'--models': 'forst' is unknown; did you mean forest",
        ),
        (
            "--target price --group zipcode --scoring rocauc",
            "'--scoring': 'rocauc' is unknown; did you mean roc_auc",
        ),
        ("--target price --group zipcode --scoring rmes", "'rmes' is unknown; did you mean rmse"),
        ("--target price --group zipcode --jobs 0", "it cannot be 0; 1 runs one job at a time"),
        ("--target price --group zipcode --html r.html --save r.html", "is also the file of --html"),
        ("--target price --group zipcode --folds 1", "greater than or equal to 2"),
        ("--target price --group zipcode --task classes", "'classes' is not one of"),
        ("--target price", "Missing option '--group'"),
        ("--group zipcode", "Missing option '--target'"),
    ],
)
def test_wrong_usage_is_reported_before_the_table_is_read(sufrep, tmp_path, options, message):
    result = sufrep(f"compare {tmp_path}/not-there.csv {options}")
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize("option", ["--html", "--save"])
def test_the_table_is_never_replaced(sufrep, table, option):
    result = sufrep(f"compare {table} --target price --group zipcode {option} {table}")
    assert result.code == 2
    assert "is an input, which would be replaced" in result.err


def test_a_sample_is_noted_and_repeated_covariates_count_once(sufrep, numbers):
    options = "--target price --group zipcode --methods drop --models linear --folds 2 --jobs 1"
    result = sufrep(f"compare {numbers} {options} --covariates sqft sqft --sample 50")
    assert result.code == 0, result.err
    assert (
        "Note: Compared on 50 of 120 rows, which belong to 6 of 6 levels drawn at random; --all-rows takes"
        in result.out
    )
    assert "sample" not in sufrep(f"compare {numbers} {options} --sample 120").out


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            "--folds 4",
            2,
            "value for --folds: 4 is not a number of folds from 2 to the number of rows, 3.",
        ),
        (
            "--new-levels --folds 3",
            2,
            "Invalid value for --folds: 3 is not a number of folds from 2 to the number of levels, 2.",
        ),
        ("--task regression", 1, "sufrep: --task regression needs numbers, but the target holds 'u'.\n"),
        ("--task regression", 1, "Hint: --task auto treats text as classes;"),
        (
            "--task binary",
            1,
            "--task binary, but the target has 3 classes.\nHint: use --task multiclass",
        ),
    ],
)
def test_errors_name_the_option_that_was_typed(sufrep, tmp_path, options, code, message):
    (tmp_path / "rows.csv").write_text("g,x,y\na,1,u\nb,2,v\na,3,w\n")
    result = sufrep(f"compare {tmp_path}/rows.csv --target y --group g --models linear {options}")
    assert (result.code, result.out) == (code, "")
    assert message in result.err


def test_notes_name_options_too(sufrep, tmp_path):
    rows = [f"{'ab'[i % 2]},{i % 5},{i % 3}" for i in range(30)]
    (tmp_path / "rows.csv").write_text("\n".join(["g,x,y", *rows]))
    result = sufrep(f"compare {tmp_path}/rows.csv --target y --group g --methods drop {LINEAR}")
    assert result.code == 0, result.err
    assert "distinct integers, which are treated as classes; --task regression treats them" in result.out


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"", "--target y --group g", "is empty: 0 bytes"),
        (b"g,x,y\n", "--target y --group g", "has columns but no rows"),
        (b"g,x,y\na,1,2\nb,2,3\n", "--target yy --group g", "did you mean 'y' for 'yy'?"),
        (b"gg,x,y\na,1,2\nb,2,3\n", "--target y --group g", "did you mean 'gg' for 'g'?"),
        (b"g,x,y\na,1,3\nb,2,3\n", "--target y --group g", "The target is 3 in every row."),
        (b"g,x,y\na,1,3\nb,2,\n", "--target y --group g", "NaN or infinity in 1 row(s)"),
        (b"g,x,y\na,1,u\nb,2,\na,2,v\n", "--target y --group g", "contains NaN or None"),
        (b"g,x,y\na,1,\nb,2,\n", "--target y --group g", "contains NaN or None"),
        (b"g,x,y\na,1,3\na,2,4\n", "--target y --group g", "'g' has only one level, a;"),
        (b"g,x,y\n,1,3\n,2,4\n", "--target y --group g", "'g' has only one level, missing;"),
        (b"g,x,y\na,1,3\n", "--target y --group g", "'g' has only one level, a;"),
        (b"g,x,y\na,1,2020-01-01\nb,2,2020-01-02\n", "--target y --group g", "The target holds dates"),
        (b"g,x,y\na,1,u\nb,2,v\n", "--target y --group g --task regression", "the target holds 'u'"),
    ],
)
def test_unusable_tables_have_code_1_and_a_hint(sufrep, tmp_path, content, options, message):
    (tmp_path / "rows.csv").write_bytes(content)
    result = sufrep(f"compare {tmp_path}/rows.csv {options} --html {tmp_path}/report.html {LINEAR}")
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert "\nHint: " in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "report.html").exists()


def test_a_missing_or_damaged_file_is_reported(sufrep, table, tmp_path):
    result = sufrep(f"compare {table.parent}/house.csv --target price --group zipcode")
    assert result.code == 1
    assert f"Hint: did you mean '{table}'" in result.err
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 this is no Parquet")
    result = sufrep(f"compare {tmp_path}/broken.parquet --target price --group zipcode")
    assert result.code == 1
    assert "cannot be read; it may be damaged" in result.err


@pytest.mark.parametrize("option", ["--html", "--save"])
def test_a_file_that_cannot_be_written_is_reported_before_the_comparison(sufrep, tmp_path, option):
    result = sufrep(f"compare {tmp_path}/not-there.csv --target y --group g {option} {tmp_path}/no/where")
    assert result.code == 1
    assert "there is no folder" in result.err


def test_a_scorer_that_does_not_suit_the_target_is_wrong_usage(sufrep, table):
    result = sufrep(f"compare {table} --target price --group zipcode {FAST} --scoring roc_auc")
    assert (result.code, result.out) == (2, "")
    assert "for --scoring: 'roc_auc' is not a scorer for the target, whose task is regression." in result.err


def test_if_every_method_fails_the_reasons_are_printed_and_the_code_is_1(
    sufrep, table, tmp_path, monkeypatch
):
    def broken(*_: object) -> None:
        raise ValueError("no score today")

    monkeypatch.setattr(_run, "_fit_and_score", broken)
    report = tmp_path / "report.html"
    result = sufrep(f"compare {table} --target price --group zipcode {FAST} --html {report}")
    assert result.code == 1
    assert "means with linear failed: ValueError: no score today" in result.out
    assert "Every method failed on these data." in result.out
    assert "Every method failed on these data." in report.read_text("utf-8")


def test_a_level_in_every_row_gives_a_warning(sufrep, table):
    result = sufrep(f"compare {table} --target price --group id --covariates sqft {FAST}")
    assert result.code == 0
    assert (
        "sufrep: warning: 'id' has a different level in every row and looks like an identifier" in result.err
    )


def test_unusual_tables_are_compared(sufrep, tmp_path):
    """Latin-1, commas as decimals, dates, emoji, huge numbers, a column of nothing and two hundred more."""
    rng = np.random.default_rng(0)
    names = ["ort", "preis", "datum", "bild", "nummer", "nichts", *(f"spalte{j}" for j in range(200))]
    lines = [";".join(names)]
    for i in range(60):
        odd = [("Köln", "Aachen", "Düren")[i % 3], f"{rng.normal():.3f}".replace(".", ",")]
        odd += [f"2014-{1 + i % 12:02d}-13", "ab"[i % 2], str(10**17 + i % 7), ""]
        lines.append(";".join([*odd, *(str(i * j % 11) for j in range(200))]))
    path = tmp_path / "häuser.csv"
    path.write_bytes("\n".join(lines).encode("latin-1"))
    result = sufrep(f"compare {path} --target preis --group ort {FAST} --html {tmp_path}/report.html")
    assert result.code == 0, result.err
    assert "read as Windows-1252 (Latin-1), because it is not UTF-8" in result.err
    assert "commas read as decimal signs in 'preis'" in result.err
    assert "nichts" in result.out
    assert "Köln" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    "levels", [["😀", "👩‍👩‍👧", "🏔"], [str(10**30 + j) for j in range(3)], ["a", "", "NA"]]
)
def test_unusual_levels_are_levels(sufrep, tmp_path, levels):
    path = tmp_path / "odd.csv"
    rows = pl.DataFrame({"g": levels * 10, "x": np.arange(30.0), "y": np.arange(30.0) ** 2 / 7})
    rows.write_csv(path)
    result = sufrep(f"compare {path} --target y --group g {LINEAR} --json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["n_levels"] == 3


# Runs that are stopped


@pytest.fixture
def stopped(tmp_path) -> str:
    """A command that replaces a report, but is stopped before it does."""
    x = np.arange(60.0)
    pl.DataFrame({"zipcode": list("abc") * 20, "sqft": x, "price": x**2}).write_csv(tmp_path / "houses.csv")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/report.html").write_text("old")
    options = "--target price --group zipcode --models linear --jobs 1 --methods means --folds 2"
    return f"compare {tmp_path}/houses.csv {options} --force --html {tmp_path}/reports/report.html"


def test_ctrl_c_leaves_the_old_report_unchanged_and_no_new_one(sufrep, stopped, tmp_path, monkeypatch):
    def press(*_: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(MeansEncoder, "fit_transform", press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    result = sufrep(stopped)
    signal.signal(signal.SIGINT, before)
    assert result.code == 130
    assert result.err.endswith("sufrep: stopped\n")
    assert "Traceback" not in result.err
    assert [(path.name, path.read_text()) for path in tmp_path.glob("reports/*")] == [("report.html", "old")]


WRITING = """
import os, pathlib, sys, time
marker = pathlib.Path(sys.argv.pop(1))
def wait(*_):
    marker.touch()
    time.sleep(60)
os.fsync = wait
from sufrep._report import _render
_render.drawing_bundle = lambda: ""
from sufrep.cli import main
main()
"""


def test_a_killed_run_leaves_the_old_report_unchanged_and_no_new_one(stopped, tmp_path):
    marker = tmp_path / "reached"
    process = subprocess.Popen(
        [sys.executable, "-c", WRITING, str(marker), *stopped.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        deadline = time.monotonic() + 60
        while not marker.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert marker.exists(), process.communicate()
    finally:
        process.kill()
        process.communicate()
    assert (tmp_path / "reports/report.html").read_text() == "old"
    assert [path.name for path in tmp_path.glob("reports/*.html")] == ["report.html"]


def test_the_saved_encoder_knows_how_the_table_was_read(sufrep, tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"g": ["a", "b", "c", "d"] * 20, "x": rng.normal(size=80), "y": rng.normal(size=80)})
    frame.write_csv(tmp_path / "old.csv", separator=";", decimal_comma=True)
    options = "--target y --group g --methods means --models linear --folds 2 --jobs 1"
    result = sufrep(f"compare {tmp_path}/old.csv {options} --save {tmp_path}/g.sufrep")
    assert result.code == 0, result.err
    reading = load(tmp_path / "g.sufrep").reading_
    assert reading.decimal == ","
    assert reading.kinds() == {"g": "text", "x": "number"}


@pytest.mark.parametrize(
    "command", ["compare d.csv --target y --group g", "encode d.csv --group g --out o.csv"]
)
def test_a_seed_that_no_generator_takes_is_wrong_usage(sufrep, command):
    result = sufrep(f"{command} --seed 99999999999999999999")
    assert result.code == 2
    assert "--seed" in result.err
    assert "2147483647" in result.err


# Time


def test_in_time_folds_are_tested_on_later_rows(sufrep, table, tmp_path):
    report = tmp_path / "report.html"
    options = "--covariates sqft --methods fisher --models linear --jobs 1 --folds 3 --time sold"
    result = sufrep(f"compare {table} --target price --group zipcode {options} --html {report} --json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert (found["time"], found["n_folds"]) == ("sold", 3)
    assert "Every fold is tested on rows that are later, by 'sold'" in found["notes"][0]
    rows = open_table(table, text=["zipcode"]).read().select("zipcode", "sqft", "sold", "price")
    expected = compare(
        rows.drop("price"),
        rows["price"],
        group="zipcode",
        methods=["fisher"],
        models="linear",
        cv=3,
        time="sold",
    )
    scores = [row["score"] for row in found["fold_scores"]]
    assert scores == [row.score for row in expected.fold_scores]
    assert "table.select(['zipcode', 'sqft', 'sold'])" in code_in(report)
    assert "each later than its training rows by sold" in report.read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--time zipcode", "Invalid value for --time: 'zipcode' is also in --group"),
        ("--time price", "Invalid value for --time: 'price' is also the target"),
        ("--time sold --drop sold", "Invalid value for --time: 'sold' is also in --drop"),
        ("--time sold --new-levels", "Invalid value for --time: it cannot be combined with --new-levels"),
        ("--time sold --repeats 2", "Invalid value for --repeats: 2 is not 1, because time is 'sold'"),
        ("--time when", "has no column 'when'"),
        ("--time view", "The time column 'view' holds 'hill'; expected numbers, dates"),
    ],
)
def test_times_that_make_no_sense_are_refused(sufrep, table, options, message):
    result = sufrep(f"compare {table} --target price --group zipcode {LINEAR} {options}")
    assert result.code in (1, 2)
    assert message in " ".join(result.err.split())
