"""``sufrep compare`` and ``sufrep demo``: from a table to a verdict, a report and an encoder."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sufrep as package
from sufrep import compare, load
from sufrep._files import open_table
from sufrep._report import _render

ZIPS = ("01234", "01235", "98178", "98001", "00007", "12345")
LINEAR = "--models linear --methods drop --jobs 1"
FAST = "--models linear --jobs 1 --methods means drop --folds 2"


def houses(n: int = 120) -> pl.DataFrame:
    """Houses in a few zip codes, some of which begin with zeros, whose mean size says what they cost."""
    rng = np.random.default_rng(0)
    place = rng.integers(0, len(ZIPS), n)
    size = rng.normal(100 + 20 * place, 10)
    price = 3 * size + 50 * (place % 2) + rng.normal(size=n)
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "zipcode": [ZIPS[j] for j in place],
            "sqft": size,
            "rooms": rng.integers(1, 6, n),
            "sold": [f"2014-{1 + i % 12:02d}-13" for i in range(n)],
            "view": [("sea", "hill", "🏔")[i % 3] for i in range(n)],
            "price": price,
            "rating": rng.integers(1, 6, n),
            "cheap": price < np.median(price),
        }
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "houses.csv"
    houses().write_csv(path)
    return path


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """A table of numbers beside the zip code."""
    path = tmp_path / "numbers.csv"
    houses().select("zipcode", "sqft", "rooms", "price").write_csv(path)
    return path


@pytest.fixture(autouse=True)
def _no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making the bundle of scripts takes seconds."""
    monkeypatch.setattr(_render, "drawing_bundle", lambda: "")


def code_in(report: Path) -> str:
    """The code of a report, as somebody copies it."""
    (code,) = re.findall(r"<pre[^>]*><code[^>]*>(.*?)</code></pre>", report.read_text("utf-8"), re.DOTALL)
    return unescape(code)


def without_seconds(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if not key.endswith("seconds")}


# What comes out


def test_the_results_are_those_of_python(sufrep, table):
    result = sufrep(f"compare {table} --target price --group zipcode --drop id rating cheap {FAST} --json")
    assert result.code == 0, result.err
    rows = open_table(table, text=["zipcode"], drop=["id", "rating", "cheap"]).read()
    methods = ["means", "drop"]
    found = compare(
        rows.drop("price"), rows["price"], group="zipcode", methods=methods, models="linear", cv=2
    ).to_dict()
    printed = json.loads(result.out)
    for part in ("results", "fold_scores"):
        found[part], printed[part] = (
            [without_seconds(row) for row in half[part]] for half in (found, printed)
        )
    assert printed == json.loads(json.dumps(found))


def test_a_table_and_a_verdict_are_printed(sufrep, numbers):
    result = sufrep(f"compare {numbers} --target price --group zipcode {FAST}")
    lines = result.out.splitlines()
    assert lines[0].split()[:5] == ["method", "model", "mean", "squared", "error"]
    assert [line.split()[0] for line in lines[1:4]] == ["one_hot", "means", "drop"]
    assert "Encode zipcode with ContrastEncoder (one_hot): with linear, it predicts price best." in lines
    assert "\x1b" not in result.out


def test_a_terminal_has_colours(sufrep, numbers, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1m" in sufrep(f"compare {numbers} --target price --group zipcode {FAST}").out


def test_many_methods_are_cut_and_the_rest_is_counted(sufrep, numbers):
    methods = (
        "deviation difference helmert repeated_effect simple_effect permutation multi_permutation fisher"
    )
    options = f"--methods {methods} means low_rank mnl random_intercept drop"
    result = sufrep(
        f"compare {numbers} --target price --group zipcode --models linear --jobs 1 --folds 2 {options}"
    )
    assert "… and 2 more; the report and --json have all." in result.out


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
    place: dict[str, Any] = {}
    exec(code_in(report), place)
    rows = open_table(table, text=["zipcode"], drop=["id", "rating", "cheap"]).read()
    X, y = rows.drop("price"), rows["price"]
    found = compare(X, y, group="zipcode", methods=["means", "drop"], models="linear", cv=2)
    np.testing.assert_array_equal(place["model"].predict(place["X"]), found.fit_best().predict(X))
    levels = set(place["X"]["zipcode"])
    assert levels == (set(ZIPS) if ending == "csv" else {zip_.lstrip("0") for zip_ in ZIPS})


def test_names_that_try_to_be_more_than_text_are_text_in_the_report(sufrep, tmp_path):
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


# What is saved


def test_the_saved_encoder_is_that_of_the_winner(sufrep, numbers, tmp_path):
    saved = tmp_path / "zip.sufrep"
    roles = "--target price --group zipcode --covariates rooms"
    result = sufrep(f"compare {numbers} {roles} {FAST} --save {saved}")
    assert f"sufrep: encoder: {saved}\n" in result.err
    rows = open_table(numbers, text=["zipcode"]).read().select("zipcode", "rooms", "price")
    X, y = rows.drop("price"), rows["price"]
    found = compare(X, y, group="zipcode", methods=["means", "drop"], models="linear", cv=2)
    inside = found.fit_best().named_steps["encoder"]
    np.testing.assert_array_equal(np.asarray(load(saved).transform(X)), np.asarray(inside.transform(X)))


def test_an_encoder_of_a_table_with_text_and_dates_can_be_applied_to_such_tables(sufrep, table, tmp_path):
    saved, out = tmp_path / "zip.sufrep", tmp_path / "out.parquet"
    roles = "--target price --group zipcode --drop id rating cheap"
    result = sufrep(f"compare {table} {roles} {FAST} --save {saved}")
    assert "describes levels by the columns of numbers; text and dates are only in the code" in result.err
    assert load(saved).feature_names_in_.tolist() == ["zipcode", "sqft", "rooms", "sold", "view"]
    assert sufrep(f"apply {saved} {table} --out {out}").code == 0
    assert pl.read_parquet(out).width > houses().width


def test_a_winner_that_is_no_encoder_cannot_be_saved_but_is_told(sufrep, tmp_path):
    path = tmp_path / "noise.csv"
    noise = np.random.default_rng(1).normal(size=120)
    houses().select("zipcode", "sqft").with_columns(price=noise).write_csv(path)
    result = sufrep(f"compare {path} --target price --group zipcode {LINEAR} --save {tmp_path}/zip.sufrep")
    assert "Drop zipcode" in result.out
    assert result.code == 1
    assert "'drop'" in result.err
    assert not (tmp_path / "zip.sufrep").exists()


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


def test_a_guess_of_the_task_is_told(sufrep, table):
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
    result = sufrep(f"demo --html {report} --jobs 1 --seed 3")
    assert result.code == 0, result.err
    assert "sufrep: 3,000 simulated rows, 100 levels that act through 5 hidden states" in result.err
    assert "Encode group with" in result.out
    place: dict[str, Any] = {}
    exec(code_in(report), place)
    assert place["model"].predict(place["X"]).shape == (3_000,)
    assert "seed=3" in code_in(report)
