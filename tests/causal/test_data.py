"""Reading a table with a treatment: roles of columns, and what cannot be estimated from it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sufrep.causal._data import number_by_appearance, overlapping_groups, read_effect_data
from sufrep.errors import EffectDataError, UnknownColumnError


def read(table, **changes):
    """The table read with the usual roles."""
    roles = {
        "group": "hospital",
        "covariates": None,
        "cluster": "auto",
        "treatment": "treated",
        "outcome": "outcome",
        "treated": None,
        "propensity": None,
        "sample_weight": None,
    }
    return read_effect_data(table, **(roles | changes))


def assert_same(first, second):
    for name in ("covariates", "treatment", "outcome", "groups", "clusters", "weights"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_every_column_without_another_role_is_a_covariate(patients):
    data = read(
        patients.assign(region=1.0, p=0.5, n=2.0), cluster="region", propensity="p", sample_weight="n"
    )
    assert data.names == ("age", "weight")
    assert set(data.weights) == {2.0}
    assert set(data.propensity) == {0.5}
    assert read(patients, covariates=["age"]).names == ("age",)


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_all_frames_are_read_alike(patients, convert):
    assert_same(read(convert(patients)), read(patients))


def test_arrays_are_read_like_frames(patients):
    codes = patients["hospital"].str[1:].astype(float)
    array = np.column_stack([codes, patients["age"], patients["weight"]])
    found = read(
        array, group=0, treatment=patients["treated"].to_numpy(), outcome=patients["outcome"].tolist()
    )
    assert_same(found, read(patients))
    assert found.names == ("x1", "x2")


@pytest.mark.parametrize(
    ("values", "treated"), [((False, True), None), ((0.0, 1.0), None), (("no", "yes"), "yes"), ((2, 1), 1)]
)
def test_a_treatment_is_any_two_values(patients, values, treated):
    other = patients.assign(treated=np.where(patients["treated"] == 1, values[1], values[0]))
    np.testing.assert_array_equal(read(other, treated=treated).treatment, patients["treated"])


def test_crossed_columns_are_one_group(patients):
    sex = np.arange(400) // 40 % 2
    data = read(patients.assign(sex=sex), group=("hospital", "sex"))
    assert data.n_groups == 80
    assert data.names == ("age", "weight")


def test_a_null_group_is_a_level_of_its_own(patients):
    data = read(patients.assign(hospital=patients["hospital"].where(patients["hospital"] != "h3")))
    assert_same(data, read(patients))


def test_text_of_few_levels_becomes_indicators_and_nulls_one_of_their_own(patients):
    ward = np.array(["b", "a", None, "c"], dtype=object)[np.arange(400) % 4]
    data = read(patients.assign(ward=ward))
    assert data.names == ("age", "weight", "ward=a", "ward is null", "ward=c")
    np.testing.assert_array_equal(data.covariates[:, 3], [value is None for value in ward])


def test_categories_that_do_not_occur_are_no_levels(patients):
    ward = pd.Categorical(np.array(["a", "b"])[np.arange(400) % 2], [str(j) for j in range(50)] + ["b", "a"])
    assert read(patients.assign(ward=ward)).names == ("age", "weight", "ward=b")


def test_text_of_many_levels_that_is_no_group_is_refused(patients):
    with pytest.raises(EffectDataError, match="'name' is text with 400 levels, and no group"):
        read(patients.assign(name=[f"person {j}" for j in range(400)]))


def test_dates_are_no_covariates(patients):
    with pytest.raises(EffectDataError, match=r"'day' holds .* values, neither numbers nor text"):
        read(patients.assign(day=pd.date_range("2020-01-01", periods=400)))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0, 1, 2, 3], "The treatment has 4 values: 0.*; expected two"),
        ([1], "The treatment has one value only: 1"),
        (["a", "b"], r"(?s)values 'a', 'b'; which of them means treated\?.*Hint: name it, as in treated='a'"),
        ([0.0, np.nan], "The treatment is null in 200 row"),
        (np.array([1, None], dtype=object), "The treatment is null in 200 row"),
    ],
)
def test_a_treatment_that_is_not_two_known_values_is_refused(patients, values, message):
    with pytest.raises(EffectDataError, match=message):
        read(patients, treatment=np.resize(values, 400))


def test_a_value_that_means_treated_must_occur(patients):
    with pytest.raises(EffectDataError, match="treated=7 is none of them"):
        read(patients, treated=7)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_outcomes_must_be_known_and_finite(patients, bad):
    patients.loc[[3, 5], "outcome"] = bad
    with pytest.raises(EffectDataError, match="The outcome is null or infinite in 2 row"):
        read(patients)


def test_outcomes_must_be_numbers(patients):
    with pytest.raises(EffectDataError, match="The outcome is not a column of numbers"):
        read(patients.assign(outcome="good"))


def test_the_outcome_is_not_the_treatment(patients):
    with pytest.raises(EffectDataError, match="Treatment and outcome are the same column, 'treated'"):
        read(patients, outcome="treated")
    with pytest.raises(EffectDataError, match="The outcome is the treatment itself"):
        read(patients.assign(outcome=5 - 2 * patients["treated"]))


@pytest.mark.parametrize("copy", [lambda w: w, lambda w: 1 - w, lambda w: 2.5 * w + 1, lambda w: w.map(str)])
def test_a_covariate_is_not_the_treatment(patients, copy):
    with pytest.raises(EffectDataError, match=r"Covariate 'same.*' is the treatment itself"):
        read(patients.assign(same=copy(patients["treated"])))


def test_nulls_of_a_covariate_are_not_the_treatment(patients):
    dose = patients["age"].where(patients["treated"] == 1)
    with pytest.raises(EffectDataError, match="Covariate 'dose' is null for all rows of one arm"):
        read(patients.assign(dose=dose))


def test_infinite_covariates_are_refused(patients):
    patients.loc[7, "age"] = -np.inf
    with pytest.raises(EffectDataError, match="Covariate 'age' is infinite in 1 row"):
        read(patients)


def test_a_column_has_one_role(patients):
    with pytest.raises(EffectDataError, match="Column 'outcome' is a covariate, but also"):
        read(patients, covariates=["age", "outcome"])
    with pytest.raises(UnknownColumnError, match="clinic"):
        read(patients, cluster="clinic")


def test_values_have_one_row_each(patients):
    with pytest.raises(EffectDataError, match=r"The outcome has the shape \(3,\), and X has 400 row"):
        read(patients, outcome=[1.0, 2.0, 3.0])
    with pytest.raises(EffectDataError, match="X has 1 dimension"):
        read(np.zeros(3))


def test_a_cluster_contains_whole_groups(patients):
    region = patients["hospital"].str[-1]
    assert read(patients.assign(region=region), cluster="region").clusters.max() == 9
    assert read(patients, cluster=region.to_numpy()).clusters.max() == 9
    assert read(patients, cluster=None).clusters is None
    with pytest.raises(EffectDataError, match="Group 'h0' has rows in more than one cluster"):
        read(patients, cluster=np.arange(400) // 40)


def test_a_null_cluster_is_refused(patients):
    region = patients["hospital"].where(patients["hospital"] != "h1")
    with pytest.raises(EffectDataError, match="The cluster is null in 10 row"):
        read(patients, cluster=region.to_numpy())
    with pytest.raises(EffectDataError, match="The cluster is null in 10 row"):
        read(patients.assign(region=region), cluster="region")


@pytest.mark.parametrize("weights", [np.full(400, -1.0), np.zeros(400)])
def test_weights_are_at_least_zero_and_some_are_more(patients, weights):
    with pytest.raises(EffectDataError, match="sample_weight is negative, or zero in every row"):
        read(patients, sample_weight=weights)


@pytest.mark.parametrize("known", [0.0, 1.0, 1.5])
def test_known_propensities_are_probabilities_between_0_and_1(patients, known):
    with pytest.raises(EffectDataError, match=f"Known propensities range from {known:g} to {known:g}"):
        read(patients, propensity=known)


def test_groups_without_both_arms_are_dropped_and_named(patients):
    patients.loc[patients["hospital"] == "h2", "treated"] = 1
    patients.loc[patients["hospital"] == "h5", "treated"] = 0
    data, dropped = overlapping_groups(read(patients))
    assert {"h2", "h5"} <= set(dropped)
    assert data.n_groups == 40 - len(dropped)
    assert not patients["hospital"].iloc[data.rows].isin(dropped).any()
    assert tuple(patients["hospital"].iloc[data.rows].unique()) == data.labels
    assert data.groups.max() == data.clusters.max() == data.n_groups - 1


def test_a_treatment_that_is_constant_in_every_group_cannot_be_controlled_for(patients):
    constant = patients.assign(treated=patients["hospital"].str[1:].astype(int) % 2)
    with pytest.raises(
        EffectDataError, match=r"(?s)in all 40 groups.*cannot be controlled for.*Hint.*\('X',\)"
    ):
        overlapping_groups(read(constant))


def test_means_of_groups_skip_nulls(patients):
    data = read(patients)
    columns = np.column_stack([data.outcome, np.where(data.groups == 3, np.nan, data.outcome)])
    columns[0, 1] = np.nan
    expected = pd.DataFrame(columns).groupby(data.groups).mean().to_numpy()
    np.testing.assert_allclose(data.group_means(columns), expected)


def test_codes_are_numbered_in_order_of_appearance():
    numbers, codes = number_by_appearance(np.array([7, 2, 7, -1, 2]))
    assert numbers.tolist() == [0, 1, 0, 2, 1]
    assert codes.tolist() == [7, 2, -1]
