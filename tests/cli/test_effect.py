"""``sufrep effect``: from a table to a verdict and a report."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sufrep import AIPW
from sufrep._files import open_table
from sufrep._report import _render
from sufrep.cli._effect import treated_value


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Patients of 30 hospitals, whose codes begin with zeros and whose quality acts on treatment and days."""
    rng = np.random.default_rng(0)
    n = 300
    hospital = np.arange(n) % 30
    quality = rng.normal(size=30)[hospital]
    treated = rng.random(n) < 1 / (1 + np.exp(-quality))
    treated[:60] = np.arange(60) < 30  # every hospital has both, but for one
    treated[hospital == 0] = True
    rows = pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "hospital": [f"{code:03d}" for code in hospital],
            "region": [f"r{code % 25}" for code in hospital],
            "age": 60 + 5 * quality + rng.normal(size=n),
            "ward": rng.choice(["a", "b"], n),
            "drug": np.where(treated, "yes", "no"),
            "days": 3.0 * treated + 2 * quality + 0.3 * rng.normal(size=n),
        }
    )
    path = tmp_path_factory.mktemp("effect") / "patients.csv"
    rows.write_csv(path)
    return path


@pytest.fixture(autouse=True)
def _no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundling the scripts takes seconds."""
    monkeypatch.setattr(_render, "drawing_bundle", lambda: "")


ROLES = "--treatment drug --outcome days --group hospital"
FAST = f"{ROLES} --treated yes --drop id region --linear"


def test_the_verdict_the_ladder_and_the_notes_are_printed(sufrep, table):
    result = sufrep(f"effect {table} {FAST} --covariates age")
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0].split() == [
        "adjusted",
        "for",
        "estimate",
        "standard",
        "error",
        "95",
        "%",
        "interval",
        "p",
    ]
    assert lines[1].startswith("raw difference")
    verdict = next(line for line in lines if line.startswith("drug = yes raises days by"))
    assert re.search(r"by [23]\.\d+ \(95 % interval \d.\d+ to \d.\d+\), on average over 290 rows", verdict)
    assert "It cannot detect a violated assumption" in result.out
    assert any(line.startswith("Note: 1 group(s) (000) with 10 row(s) were dropped") for line in lines)
    assert not any(line.startswith("by ") for line in lines)


def test_a_plus_crosses_groups_as_a_blank_does(sufrep, table):
    results = [
        sufrep(
            f"effect {table} --treatment drug --outcome days --group {group} --treated yes --drop id "
            "--linear --json"
        )
        for group in ("hospital region", "hospital+region")
    ]
    assert results[0].code == 0, results[0].err
    assert results[0].out == results[1].out
    result = sufrep(f"effect {table} --treatment drug --outcome days --group hospital,region --treated yes")
    assert "write --group hospital region for several groups" in result.err


def test_subgroups_that_were_asked_for_are_printed(sufrep, table):
    result = sufrep(f"effect {table} {FAST} --covariates age --by ward")
    assert result.code == 0, result.err
    assert re.search(r"^by ward +rows +estimate", result.out, re.MULTILINE)
    assert re.search(r"^ward = a +\d+ ", result.out, re.MULTILINE)


def test_the_results_are_those_of_python(sufrep, table):
    result = sufrep(
        f"effect {table} {ROLES} --treated yes --linear --covariates age ward --cluster none --folds 3 "
        "--repeats 2 --estimand ATT --seed 1 --statistics X W --json"
    )
    assert result.code == 0, result.err
    found = json.loads(result.out)
    model = AIPW(
        LinearRegression(),
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        group="hospital",
        covariates=["age", "ward"],
        estimand="ATT",
        cluster=None,
        n_folds=3,
        n_repeats=2,
        random_state=1,
    )
    rows = open_table(table, text=["hospital"]).read()
    effect = model.fit(rows, treatment="drug", outcome="days", treated="yes").effect_
    assert found["effect"]["estimate"] == pytest.approx(effect.estimate)
    assert found["effect"]["std_error"] == pytest.approx(effect.std_error)
    assert found["effect"]["estimand"] == "ATT"
    assert [each["column"] for each in found["subgroups"]] == ["age", "ward"]


@pytest.mark.parametrize(
    ("options", "parameters", "given"),
    [
        ("--propensity 0.6 --trim 0.05", {"trim": 0.05}, {"propensity": 0.6}),
        ("--propensity known --clip 0.11", {"clip": 0.11}, {"propensity": "known"}),
        ("--weights group --sample-weight known", {"weights": "group"}, {"sample_weight": "known"}),
    ],
)
def test_known_propensities_weights_and_bounds_are_those_of_python(
    sufrep, table, tmp_path, options, parameters, given
):
    rows = open_table(table, text=["hospital"]).read().drop("id", "region")
    rows = rows.with_columns(known=pl.Series(np.linspace(0.1, 0.9, len(rows))))
    drop = "" if "known" in options else "--drop known"
    path, report = tmp_path / "known.csv", tmp_path / "report.html"
    rows.write_csv(path)
    result = sufrep(f"effect {path} {ROLES} --treated yes --linear {options} {drop} --json --html {report}")
    assert result.code == 0, result.err
    model = AIPW(
        LinearRegression(),
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        group="hospital",
        covariates=["age", "ward"],
        **parameters,
    )
    effect = model.fit(rows, treatment="drug", outcome="days", treated="yes", **given).effect_
    assert json.loads(result.out)["effect"]["estimate"] == pytest.approx(effect.estimate)
    for name, value in given.items():
        assert f"{name}={value!r}" in html.unescape(report.read_text("utf-8"))


def test_the_report_is_one_page_with_all_parts_and_code(sufrep, table, tmp_path):
    path = tmp_path / "report.html"
    result = sufrep(f"effect {table} {FAST} --covariates age --html {path}")
    assert result.code == 0, result.err
    assert f"report: {path}" in result.err
    text = path.read_text("utf-8")
    for title in ("What the adjustments do", "Overlap by hospital", "Balance", "Do it in Python"):
        assert title in text
    assert "model = AIPW(" in text
    assert 'id="origin">patients.csv · ' in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    again = sufrep(f"effect {table} {FAST} --covariates age --html {path}")
    assert again.code == 0, "a report of sufrep may be replaced"


def test_another_file_is_not_replaced_without_force(sufrep, table, tmp_path):
    path = tmp_path / "notes.html"
    path.write_text("mine")
    result = sufrep(f"effect {table} {FAST} --html {path}")
    assert result.code == 2
    assert "--force" in result.err
    assert path.read_text() == "mine"
    result = sufrep(f"effect {table} {FAST} --html {table}")
    assert result.code == 2
    assert "is an input" in result.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (f"{ROLES} --estimand ATX", "'ATX' is unknown; did you mean"),
        (f"{ROLES} --statistics Z", "'Z' is unknown; the names are X, W, WX."),
        (f"{ROLES} --covariates drug", "'drug' is also in --treatment."),
        ("--treatment drug --outcome drug --group hospital", "'drug' is also in --treatment."),
        (f"{ROLES} --drop hospital", "'hospital' is also in --group."),
        (f"{ROLES} --cluster days", "'days' is also in --outcome."),
        (f"{ROLES} --drop age --by age", "'age' is also in --drop."),
        (f"{ROLES} --folds 1", "--folds"),
        (f"{ROLES} --weights rows", "'rows' is unknown; did you mean row?"),
        (f"{ROLES} --sample-weight days", "'days' is also in --outcome."),
        (f"{ROLES} --propensity age --covariates age", "'age' is also in --propensity."),
        (f"{ROLES} --trim 0.7", "--trim"),
        ("--treatment drug --outcome days", "Missing option '--group'"),
        (f"{ROLES} --html - --json", "also the file of another option"),
    ],
)
def test_wrong_usage_has_exit_code_2(sufrep, table, options, words):
    result = sufrep(f"effect {table} {options}")
    assert result.code == 2
    assert words in result.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (f"{ROLES} --drop id", "which of them means treated?\nHint: name it, as in --treated yes."),
        (f"{ROLES} --treated maybe --drop id", "--treated maybe is none of them"),
        (f"{ROLES} --treated yes --linear", "Column 'id' is text with 300 levels"),
        ("--treatment drugs --outcome days --group hospital", "'drugs'"),
        (f"{ROLES} --treated yes --by wards", "'wards'"),
        ("--treatment ward --outcome drug --group hospital --treated a --drop id", "not a column of numbers"),
        (f"{FAST} --propensity ages", "'ages'"),
        (f"{FAST} --propensity 1.5", "propensities range from 1.5 to 1.5"),
        (f"{FAST} --propensity 0.2 --trim 0.3", "--trim 0.3 leaves 0 treated and 0 untreated row(s)."),
        (f"{FAST} --folds 99", "use --folds 29, or folds='row' in Python."),
        (
            "--treatment drug --outcome days --group id --treated yes --linear",
            "compare groups that look alike with --statistics X,",
        ),
    ],
)
def test_data_that_cannot_be_used_has_exit_code_1(sufrep, table, options, words):
    result = sufrep(f"effect {table} {options}")
    assert result.code == 1
    assert words in result.err
    assert "Unexpected" not in result.err


def test_a_coarser_cluster_is_no_covariate(sufrep, table):
    result = sufrep(f"effect {table} {ROLES} --treated yes --drop id --linear --cluster region --json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert found["effect"]["n_clusters"] == 25
    assert not [row["column"] for row in found["balance"] if "region" in row["column"]]


@pytest.mark.parametrize(
    ("values", "typed", "value"),
    [
        (["no", "yes"], "yes", "yes"),
        ([1, 2], "2", 2),
        ([1.0, 2.0], "2", 2.0),
        ([True, False], "false", False),
        (["a", "b"], "c", "c"),
        ([1, 2], "x", "x"),
        ([0, 1], None, None),
    ],
)
def test_what_was_typed_is_a_value_of_the_column(values, typed, value):
    found = treated_value(pl.Series(values), typed)
    assert found == value
    assert type(found) is type(value)
