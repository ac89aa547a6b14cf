"""The verdict says what was found, among whom, and what the data cannot show."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from sufrep import AIPW
from sufrep._effect import EffectAnalysis, analyse
from sufrep._effect._analysis import CANNOT_DETECT, number_text


def with_effect(analysis: EffectAnalysis, estimate: float) -> EffectAnalysis:
    """The analysis as if another effect had been estimated."""
    model = copy(analysis.model)
    model.effect_ = replace(model.effect_, estimate=estimate)
    return replace(analysis, model=model)


def test_the_headline_has_the_effect_its_interval_and_the_rows_it_holds_for(analysis):
    effect = analysis.model.effect_
    low, high = effect.interval
    assert analysis.verdict[0] == (
        f"drug = yes raises days by {effect.estimate:.3f} (95 % interval {low:.3f} to {high:.3f}), on "
        "average over 380 rows in the 38 groups (hospital) with treated and untreated rows."
    )
    assert "rows of the same group with the same covariates differ in nothing else" in analysis.verdict[-1]
    assert analysis.verdict[-1].endswith("The data cannot show whether they do.")


@pytest.mark.parametrize(
    ("estimate", "start"),
    [
        (-2.0, "drug = yes lowers days by 2.000 (95 % interval 1.9"),
        (0.01, "No clear effect of drug = yes on days: the estimate is 0.010 (95 % interval -0.0"),
        (-0.01, "No clear effect of drug = yes on days: the estimate is -0.010 (95 % interval -0.0"),
    ],
)
def test_the_verb_follows_the_interval(analysis, estimate, start):
    assert with_effect(analysis, estimate).verdict[0].startswith(start)


def test_the_verdict_compares_with_what_the_covariates_alone_give(analysis):
    steps = {row["step"]: row["estimate"] for row in analysis.ladder}
    assert f"Adjusted for the covariates it is {steps['covariates']:.2f}" in analysis.verdict[1]
    assert "and for hospital as well" in analysis.verdict[1]


@pytest.mark.parametrize(
    ("estimand", "words"),
    [
        ("ATT", "treated rows; estimated from 380 rows in the 38 groups"),
        ("ATO", "weighted by how well treated and untreated rows overlap."),
    ],
)
def test_other_estimands_name_other_rows(analysed, estimand, words):
    found = analysed(estimand=estimand)
    assert words in found.verdict[0]
    assert (found.sensitivity is None) is (estimand == "ATO")
    assert found.sensitivity_text.endswith(CANNOT_DETECT)


def test_dropped_groups_are_counted_and_named(analysis):
    assert analysis.notes[0].startswith("2 group(s) (h00, h01) with 20 row(s) were dropped")
    assert not any("Dropped groups" in note for note in analysis.notes)


def test_the_first_covariates_define_subgroups_unless_columns_are_named(analysis, analysed):
    assert [found.column for found in analysis.subgroups] == ["age", "ward"]
    found = analysed(by=("ward", "hospital"), covariates=["age"])
    assert [each.column for each in found.subgroups] == ["ward"]
    assert found.notes[-1].startswith("No effects by hospital: it has no two subgroups")


def test_all_results_are_plain_values(analysis):
    found: dict[str, Any] = json.loads(json.dumps(analysis.to_dict(), allow_nan=False))
    assert found["effect"]["estimate"] == analysis.model.effect_.estimate
    assert found["effect"]["dropped_groups"] == ["h00", "h01"]
    assert [row["step"] for row in found["ladder"]] == [row["step"] for row in analysis.ladder]
    assert found["sensitivity"]["robustness"] == analysis.sensitivity.robustness


def test_values_that_are_not_finite_become_none(analysed):
    found = analysed(cluster=None).to_dict()
    assert found["effect"]["dof"] is None
    assert found["effect"]["n_clusters"] is None


def test_a_number_has_two_digits_of_its_error():
    assert number_text(0.08213, 0.0231) == "0.082"
    assert number_text(1234.5, 140.0) == "1,234"
    assert number_text(float("nan"), 1.0) == "unknown"
    assert number_text(0.123456, float("nan")) == "0.1235"


def without_columns(patients: pl.DataFrame, *columns: str, **parameters: Any) -> EffectAnalysis:
    model = AIPW(LinearRegression(), LogisticRegression(), group="hospital", **parameters)
    given = {"treatment": "drug", "outcome": "days", "treated": "yes"}
    return analyse(model, patients.drop(columns), **given, progress=lambda *_: None)


def test_without_covariates_the_group_is_adjusted_for(patients):
    found = without_columns(patients, "age", "ward")
    steps = [row["step"] for row in found.ladder]
    assert steps == ["raw difference", "+ share of treated rows", "linear fixed effect"]
    assert "Adjusted for hospital it is" in found.verdict[1]
    assert found.subgroups == ()


def test_a_treatment_of_whole_groups_is_compared_between_groups(patients):
    between = patients.with_columns(
        pl.when(pl.col("hospital") > "h19").then(pl.lit("yes")).otherwise(pl.lit("no")).alias("drug")
    )
    found = without_columns(between, "ward", statistics=("X",))
    assert [row["step"] for row in found.ladder] == [
        *("raw difference", "covariates", "+ group means of covariates")
    ]
    assert found.notes == ()
    assert "and for their means by hospital as well" in found.verdict[1]
    assert "in groups with the same means of covariates, differ in nothing else" in found.verdict[2]
