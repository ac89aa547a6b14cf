"""Treatment effects of simulated and of real data."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sufrep import AIPW
from sufrep._simulate_effects import simulate_effects
from sufrep.causal._diagnostics import standardised_differences
from sufrep.errors import EffectDataError, InvalidParameterError, OverlapWarning
from sufrep.solvers.effects import Estimate, Nuisances, combine_repeats, effect_scores, solve_scores

ROLES = {"treatment": "treated", "outcome": "outcome"}


def linear(**parameters):
    """An estimator with linear models."""
    return AIPW(LinearRegression(), LogisticRegression(), **({"group": "hospital"} | parameters))


def fit(table, roles=None, **parameters):
    return linear(**parameters).fit(table, **(ROLES | (roles or {})))


def same_estimates(*fits):
    first = fits[0].effect_
    return all(
        other.effect_.estimate == pytest.approx(first.estimate, abs=1e-12)
        and other.effect_.std_error == pytest.approx(first.std_error, abs=1e-12)
        for other in fits[1:]
    )


# The estimate


def test_the_share_of_treated_rows_removes_a_confounder_that_covariates_do_not_show():
    sample = simulate_effects("silent", seed=0)
    table = pd.DataFrame(sample.X).add_prefix("x").assign(hospital=sample.group)
    roles = {"treatment": sample.treatment, "outcome": sample.outcome}
    ours, without = (fit(table, roles, statistics=names).effect_ for names in (("X", "W"), ("X",)))
    assert ours.interval[0] < 1 < ours.interval[1]
    assert without.interval[0] > 1.2


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATO"])
def test_the_effect_is_the_median_over_repeats_of_what_the_scores_give(patients, estimand):
    model = fit(patients, n_repeats=3, estimand=estimand)
    data = model.fitted_.data
    solved = []
    for each in model.fitted_.nuisances:
        bounded = Nuisances(np.clip(each.propensity, 0.01, 0.99), each.untreated, each.treated)
        scores = effect_scores(estimand, data.treatment, data.outcome, bounded)
        solved.append(solve_scores(scores, np.ones(len(data.rows)), data.groups))
    expected = combine_repeats(solved)
    assert model.effect_.estimate == expected.value
    assert model.effect_.std_error == expected.std_error
    assert len({each.value for each in solved}) == 3
    medians = np.median([each.propensity for each in model.fitted_.nuisances], axis=0)
    np.testing.assert_array_equal(model.propensity_, medians)


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATO"])
def test_the_mean_of_the_scores_is_the_effect(patients, estimand):
    model = fit(patients, estimand=estimand)
    assert model.scores_.mean() == pytest.approx(model.effect_.estimate)


@pytest.mark.parametrize("estimand", ["ATT", "ATO"])
def test_another_estimand_uses_the_same_models(patients, estimand):
    one, other = fit(patients), fit(patients, estimand=estimand)
    assert one.effect(estimand) == other.effect_
    np.testing.assert_array_equal(one.propensity_, other.propensity_)


def test_groups_that_count_the_same_give_mean_and_error_of_their_mean_scores(patients):
    uneven = patients.drop(index=range(0, 80, 3))
    model = fit(uneven, weights="group")
    means = pd.Series(model.scores_).groupby(model.fitted_.data.groups).mean()
    assert model.effect_.estimate == pytest.approx(means.mean(), abs=1e-12)
    assert model.effect_.std_error == pytest.approx(stats.sem(means), abs=1e-12)


def test_groups_still_count_the_same_after_rows_were_trimmed(patients):
    model = fit(patients, weights="group", trim=0.25)
    means = pd.Series(model.scores_).groupby(model.fitted_.data.groups).mean().dropna()
    assert model.effect_.n_trimmed > 0
    assert model.effect_.n_groups == len(means)
    assert model.effect_.estimate == pytest.approx(means.mean(), abs=1e-12)


def test_econml_finds_the_same_effect_with_our_features(patients):
    dr = pytest.importorskip("econml.dr")
    model = fit(patients)
    data = model.fitted_.data
    other = dr.LinearDRLearner(
        model_propensity=LogisticRegression(),
        model_regression=LinearRegression(),
        cv=5,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, about scikit-learn
        other.fit(data.outcome, data.treatment, X=None, W=model.features_, groups=None)
        found = other.intercept_(T=1)
    assert abs(found - model.effect_.estimate) < model.effect_.std_error / 2


def test_outcomes_do_not_change_the_features(patients):
    mixed = patients.assign(outcome=np.random.default_rng(1).permutation(patients["outcome"]))
    for encoder in ("means", "low_rank"):
        one, other = fit(patients, encoder=encoder), fit(mixed, encoder=encoder)
        np.testing.assert_array_equal(one.features_, other.features_)


# What must not matter


def test_names_of_levels_and_the_order_of_categories_do_not_matter(patients):
    patients["ward"] = np.array(list("cab"))[np.arange(400) % 7 % 3]
    renamed = patients.assign(
        hospital=patients["hospital"].map(lambda name: -int(name[1:])),
        ward=patients["ward"].map({"a": "z", "b": "y", "c": "x"}),
    )
    categories = patients.assign(
        hospital=pd.Categorical(patients["hospital"], sorted(set(patients["hospital"]), reverse=True)),
        ward=pd.Categorical(patients["ward"], ["a", "c", "unused", "b"]),
    )
    assert same_estimates(*(fit(table, n_repeats=2) for table in (patients, renamed, categories)))


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_the_kind_of_frame_does_not_matter(patients, convert):
    assert same_estimates(fit(patients), fit(convert(patients)))


def test_arrays_give_the_same_effect_as_frames(patients):
    codes = patients["hospital"].str[1:].astype(int)
    array = np.column_stack([patients[["age", "weight"]], codes])
    roles = {name: patients[column].to_numpy() for name, column in ROLES.items()}
    assert same_estimates(fit(patients), fit(array, roles, group=2))


def test_a_weight_of_two_for_a_group_is_each_of_its_rows_twice(patients):
    counts = 1 + patients["hospital"].str[1:].astype(int) % 3
    twice = pd.concat([patients, patients[counts > 1], patients[counts > 2]])
    for weighting in ("row", "group"):
        weighted = fit(patients, {"sample_weight": counts.to_numpy()}, weights=weighting)
        repeated = fit(twice, weights=weighting)
        assert weighted.effect_.estimate == pytest.approx(repeated.effect_.estimate, abs=1e-4)
        assert weighted.effect_.std_error == pytest.approx(repeated.effect_.std_error, abs=1e-4)


def test_equal_weights_do_not_matter(patients):
    assert same_estimates(fit(patients), fit(patients.assign(n=1.0), {"sample_weight": "n"}))


def test_jobs_do_not_matter(patients):
    assert same_estimates(fit(patients), fit(patients, n_jobs=1))


def test_a_fitted_model_can_be_stored(patients):
    model = fit(patients)
    again = pickle.loads(pickle.dumps(model))
    assert again.effect("ATT") == model.effect("ATT")
    assert not hasattr(clone(model), "effect_")


# Choices


def test_known_propensities_are_a_number_an_array_or_a_column(patients):
    known = [0.5, np.full(400, 0.5), "p"]
    fits = [fit(patients.assign(p=0.5), {"propensity": each}, covariates=["age"]) for each in known]
    assert same_estimates(*fits)
    assert set(fits[0].propensity_) == {0.5}
    assert "mean of treatment" in fits[0].feature_names_


def test_nulls_need_no_filling_for_a_propensity_model_that_is_not_used(patients):
    patients.loc[::9, "age"] = np.nan
    model = AIPW(group="hospital", propensity_model=LogisticRegression(), n_folds=2)
    model.fit(patients, propensity=0.5, **ROLES)
    assert model.effect_.notes[-1:] != ("Nulls of age were replaced by the median, with an indicator.",)
    assert np.isnan(model.features_).any()


def test_the_default_models_are_calibrated_and_take_nulls(patients):
    patients.loc[::9, "age"] = np.nan
    model = AIPW(group="hospital", cluster=None, n_folds=2).fit(patients, **ROLES)
    uncalibrated = clone(model).set_params(calibration=None).fit(patients, **ROLES)
    assert np.isnan(model.features_).any()
    assert model.propensity_.std() < uncalibrated.propensity_.std()
    assert model.effect_.estimate == pytest.approx(1, abs=0.6)


def test_filled_nulls_are_reported(patients):
    patients.loc[::9, "age"] = np.nan
    for encoder in ("means", "low_rank"):
        model = fit(patients, encoder=encoder)
        assert "Nulls of age were replaced by the median, with an indicator." in model.effect_.notes
        assert np.isfinite(model.features_).all()


@pytest.mark.parametrize("encoder", ["low_rank", "latent_state"])
def test_encoders_describe_the_covariates_of_groups(patients, encoder):
    model = fit(patients, encoder=encoder)
    assert model.feature_names_[-1] == "mean of treatment"
    assert model.effect_.estimate == pytest.approx(fit(patients).effect_.estimate, abs=0.3)


def test_clusters_may_be_coarser_than_groups_or_rows(patients):
    region = patients["hospital"].str[1:].astype(int) // 2
    coarse, own, rows = (fit(patients, cluster=each) for each in (region.to_numpy(), "auto", None))
    assert coarse.effect_.n_clusters <= 20 < own.effect_.n_clusters
    assert coarse.effect_.dof == coarse.effect_.n_clusters - 1
    assert rows.effect_.n_clusters is None
    assert np.isinf(rows.effect_.dof)
    assert own.effect_.estimate == rows.effect_.estimate
    assert own.effect_.std_error != rows.effect_.std_error
    named = fit(patients.assign(region=region), cluster="region")
    assert same_estimates(coarse, named)


def test_folds_of_rows_split_groups(patients):
    assert not same_estimates(fit(patients), fit(patients, folds="row"))
    few = patients[patients["hospital"].isin(["h0", "h1", "h2", "h3"])]
    assert fit(few, folds="row", cluster=None).effect_.n_groups <= 4


def test_products_let_linear_models_follow_a_slope_that_the_group_moves():
    sample = simulate_effects("slope", n=5_000, seed=0)
    table = pd.DataFrame(sample.X).add_prefix("x").assign(hospital=sample.group)
    roles = {"treatment": sample.treatment, "outcome": sample.outcome}
    plain = fit(table, roles)
    scaled = AIPW(
        LinearRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        group="hospital",
        statistics=("X", "W", "WX"),
        products=True,
    )
    with_slopes = scaled.fit(table, **roles)
    assert plain.effect_.estimate > 1.5
    assert with_slopes.effect_.interval[0] < 1.1
    assert abs(with_slopes.effect_.estimate - 1) < 0.15


def test_calibration_comes_before_trimming_and_trimming_before_clipping(patients):
    e = fit(patients, calibration="isotonic", estimand="ATO", clip=0).propensity_
    with pytest.warns(OverlapWarning, match=r"outside \[0.3, 0.7\]"):
        model = fit(patients, calibration="isotonic", trim=0.2, clip=0.3)
    np.testing.assert_array_equal(model.propensity_, e)
    keep = (e >= 0.2) & (e <= 0.8)
    assert model.effect_.n_trimmed == (~keep).sum() > 0
    assert model.effect_.n_clipped == ((e < 0.3) | (e > 0.7))[keep].sum() > 0
    assert model.effect_.n_rows == keep.sum()
    np.testing.assert_array_equal(np.isnan(model.scores_), ~keep)
    assert (
        f"{(~keep).sum()} row(s) with propensities outside [0.2, 0.8] were left out"
        in model.effect_.summary()
    )


def test_trimming_away_an_arm_is_refused(patients):
    with pytest.raises(EffectDataError, match=r"trim=0.499 leaves \d+ treated and \d+ untreated row"):
        fit(patients, {"propensity": np.where(patients["treated"] == 1, 0.5, 0.3)}, trim=0.499)


def test_propensities_of_0_and_1_without_bounds_allow_the_effect_weighted_by_overlap_only(patients):
    with pytest.raises(
        EffectDataError, match=r"propensities of \d+ row\(s\) are 0 or 1, and the ATE divides"
    ):
        fit(patients, calibration="isotonic", clip=0)
    assert np.isfinite(fit(patients, calibration="isotonic", clip=0, estimand="ATO").effect_.estimate)


# Groups without overlap


@pytest.fixture
def one_sided(patients):
    """Hospitals with both arms, one where all rows are treated, and one where none is."""
    both = patients.groupby("hospital")["treated"].transform("nunique") == 2
    kept = patients[both].reset_index(drop=True)
    added = kept.iloc[:8].assign(hospital=["all"] * 4 + ["none"] * 4, treated=[1] * 4 + [0] * 4)
    return kept, added


def test_groups_without_both_arms_are_dropped_before_any_fitting(one_sided):
    kept, added = one_sided
    model = fit(pd.concat([added, kept]))
    assert same_estimates(model, fit(kept))
    assert model.dropped_groups_ == model.effect_.dropped_groups == ("all", "none")
    assert model.rows_.tolist() == list(range(8, 8 + len(kept)))
    assert fit(pd.concat([added, kept]), statistics=("X",)).dropped_groups_ == ()


@pytest.mark.parametrize(
    ("estimand", "which", "note"),
    [
        (
            "ATE",
            ["all", "none"],
            "treated in 1 of them, and none in 1. The effect speaks of the other groups.",
        ),
        ("ATT", ["all", "none"], "The effect speaks of the other groups."),
        ("ATT", ["none"], "The ATT is unchanged, because none of their rows is treated."),
        ("ATO", ["all"], "The ATO is unchanged, because they have no weight in it."),
    ],
)
def test_the_changed_estimand_is_stated(one_sided, estimand, which, note):
    kept, added = one_sided
    effect = fit(pd.concat([kept, added[added["hospital"].isin(which)]]), estimand=estimand).effect_
    assert effect.notes[0].startswith(
        f"{len(which)} group(s) ({', '.join(which)}) with {4 * len(which)} row(s)"
    )
    assert effect.notes[0].endswith(note)
    assert effect.dropped_groups == tuple(which)


def test_a_treatment_of_whole_groups_is_refused_unless_the_share_is_left_out(patients):
    whole = patients.assign(treated=patients["hospital"].str[1:].astype(int) % 2)
    with pytest.raises(EffectDataError, match="the group cannot be controlled for"):
        fit(whole)
    model = fit(whole, statistics=("X",))
    assert model.effect_.n_clusters == 40
    assert model.ladder(library="pandas")["step"].tolist() == [
        "raw difference",
        "covariates",
        "+ group means of covariates",
    ]


def test_a_failed_fit_leaves_no_result(patients):
    model = linear()
    with pytest.raises(EffectDataError, match="one value only"):
        model.fit(patients.assign(treated=1), **ROLES)
    assert not hasattr(model, "effect_")


# Warnings


def test_few_clusters_are_reported(patients):
    few = patients[patients["hospital"].str[1:].astype(int) < 12]
    n = few.groupby("hospital")["treated"].nunique().eq(2).sum()
    with pytest.warns(OverlapWarning, match=f"There are {n} clusters; standard errors need about 20"):
        fit(few)


def test_many_clipped_rows_are_reported(patients):
    with pytest.warns(
        OverlapWarning, match=r"The propensities of \d+ of \d+ rows \(\d+%\) are outside \[0.3, 0.7\]"
    ):
        model = fit(patients, clip=0.3)
    assert model.effect_.n_clipped > 0.05 * model.effect_.n_rows


def test_many_dropped_rows_are_reported(patients):
    numbers = patients["hospital"].str[1:].astype(int)
    treated = patients["treated"].where(numbers < 18, numbers % 2)
    with pytest.warns(OverlapWarning) as found:
        fit(patients.assign(treated=treated))
    assert any("of 400 rows (" in str(each.message) and "dropped" in str(each.message) for each in found)


def test_means_of_products_in_small_groups_are_reported(patients):
    with pytest.warns(OverlapWarning, match="'x' marks at most one row of a group"):
        fit(patients.assign(x=(np.arange(400) < 40) * 1.0), statistics=("X", "W", "WX"))
    rng = np.random.default_rng(0)
    more = patients.assign(**{f"x{j}": rng.normal(size=400) for j in range(3)})
    with pytest.warns(OverlapWarning, match="the median group has 10 rows, fewer than 12"):
        fit(more, statistics=("X", "W", "WX"))


def test_unknown_choices_are_refused(patients):
    with pytest.raises(InvalidParameterError, match="statistics"):
        fit(patients, statistics=("Y",))
    with pytest.raises(InvalidParameterError, match="estimand"):
        fit(patients).effect("LATE")
    with pytest.raises(EffectDataError, match=r"There are \d+ clusters for 50 folds"):
        fit(patients, n_folds=50)


# The result


def test_a_result_reads_like_that_of_pyfixest_and_in_words(patients):
    effect = fit(patients).effect_
    tidy = effect.tidy("pandas")
    assert tidy.columns.tolist() == [
        "Coefficient",
        "Estimate",
        "Std. Error",
        "t value",
        "Pr(>|t|)",
        "2.5%",
        "97.5%",
    ]
    expected = Estimate(effect.estimate, effect.std_error, effect.dof)
    assert effect.confint(0.9) == expected.interval(0.9)
    assert (tidy["2.5%"][0], tidy["97.5%"][0]) == effect.interval == expected.interval()
    assert tidy["Pr(>|t|)"][0] == effect.p_value == expected.p_value
    assert effect.summary().startswith("ATE, average effect on all rows: ")
    assert f"{effect.n_rows} rows in {effect.n_groups} groups" in effect.summary()


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATO"])
def test_effective_rows_are_those_of_the_weights_of_the_score(patients, estimand):
    model = fit(patients, estimand=estimand)
    w, e = model.fitted_.data.treatment, np.clip(model.propensity_, 0.01, 0.99)
    v = {"ATE": 1 / e, "ATT": np.ones_like(e), "ATO": 1 - e}[estimand][w == 1]
    assert model.effect_.n_effective["treated"] == pytest.approx(v.sum() ** 2 / (v**2).sum())
    v = {"ATE": 1 / (1 - e), "ATT": e / (1 - e), "ATO": e}[estimand][w == 0]
    assert model.effect_.n_effective["untreated"] == pytest.approx(v.sum() ** 2 / (v**2).sum())


# Diagnostics


def test_effects_of_subgroups_are_those_of_their_scores(patients):
    sex = np.array(["m", "f", None], dtype=object)[np.arange(400) % 3]
    model = fit(patients.assign(sex=sex), covariates=["age"])
    found = model.gate("sex", library="pandas")
    assert found["level"].tolist()[:2] == ["f", "m"]
    assert found["level"].isna().tolist() == [False, False, True]
    own = sex[model.rows_]
    expected = [model.scores_[[value == level for value in own]].mean() for level in ("f", "m", None)]
    np.testing.assert_allclose(found["estimate"], expected)
    assert found["n_rows"].sum() == model.effect_.n_rows
    numbers = model.gate(np.where(sex == "m", 1.0, np.nan), library="pandas")
    assert numbers["estimate"][0] == found["estimate"][1]
    assert len(numbers) == 2
    with pytest.raises(EffectDataError, match=r"shape \(3,\), and X has 400 row"):
        model.gate([1, 2, 3])


def test_a_subgroup_without_treated_rows_has_no_effect_on_the_treated(patients):
    model = fit(patients, estimand="ATT")
    found = model.gate("treated", library="pandas")
    data = model.fitted_.data
    left = (data.outcome - model.outcome_predictions_[:, 0])[data.treatment == 1]
    assert np.isnan(found["estimate"][0])
    assert found["estimate"][1] == pytest.approx(left.mean())


def test_the_projection_is_the_regression_of_the_scores(patients):
    model = fit(patients)
    found = model.best_linear_projection(["age"], library="pandas")
    age = patients["age"].to_numpy()[model.rows_]
    np.testing.assert_allclose(found["estimate"], np.polyfit(age, model.scores_, 1)[::-1])
    assert found["column"].tolist() == ["intercept", "age"]
    arrays = model.best_linear_projection(patients[["age"]].to_numpy(), library="pandas")
    np.testing.assert_array_equal(arrays["std_error"], found["std_error"])
    with pytest.raises(EffectDataError, match="Column 'hospital' does not hold numbers"):
        model.best_linear_projection(["hospital"])
    with pytest.raises(EffectDataError, match=r"Column 'x0' is null or infinite in \d+ row"):
        model.best_linear_projection(np.full(400, np.nan))
    with pytest.raises(EffectDataError, match=r"shape \(2, 1\), and X has 400 row"):
        model.best_linear_projection(np.zeros((2, 1)))
    with pytest.raises(InvalidParameterError, match="estimand"):
        fit(patients, estimand="ATO").best_linear_projection(["age"])


def test_the_ladder_has_a_step_for_each_adjustment_of_the_same_rows(patients):
    patients.loc[::50, "weight"] = np.nan
    model = fit(patients)
    steps = model.ladder(library="pandas").set_index("step")["estimate"]
    assert steps.index.tolist() == [
        "raw difference",
        "covariates",
        "+ group means of covariates",
        "+ share of treated rows",
        "+ means of treatment times covariates",
        "linear fixed effect",
    ]
    kept = patients.iloc[model.rows_]
    means = kept.groupby("treated")["outcome"].mean()
    assert len(kept) < len(patients)
    assert steps.iloc[0] == pytest.approx(means[1] - means[0])
    assert steps.iloc[1] == fit(kept, statistics=()).effect_.estimate
    assert steps.iloc[3] == model.effect_.estimate
    assert steps.iloc[0] > steps.iloc[1] > steps.iloc[3]
    year = patients.assign(year=(np.arange(400) < 40) * 1.0)
    assert "+ means of treatment times covariates" not in fit(year).ladder(library="pandas")["step"].tolist()


def test_weighting_balances_covariates_and_means_of_groups(patients):
    found = fit(patients).balance(library="pandas")
    assert found["column"].tolist() == ["age", "weight", "mean of age", "mean of weight", "mean of treatment"]
    assert found["kind"].tolist() == ["covariate"] * 2 + ["group"] * 3
    assert (found["after"].abs() < found["before"].abs()).all()


def test_standardised_differences_are_in_standard_deviations_of_the_arms():
    rng = np.random.default_rng(0)
    treatment = np.repeat([0.0, 1.0], 50)
    column = rng.normal(size=100) + treatment
    values = np.column_stack([column, np.ones(100), np.where(treatment == 1, np.nan, column)])
    found = standardised_differences(values, treatment, np.ones(100))
    spread = np.sqrt((column[:50].var() + column[50:].var()) / 2)
    assert found[0] == pytest.approx((column[50:].mean() - column[:50].mean()) / spread)
    assert found[1] == 0
    assert np.isnan(found[2])


def test_overlap_is_reported_for_arms_and_for_groups(one_sided):
    table = pd.concat(one_sided)
    model = fit(table)
    arms = model.overlap_report(library="pandas")
    assert arms["rows"].sum() == model.effect_.n_rows
    assert arms["effective rows"].tolist() == list(model.effect_.n_effective.values())
    groups = model.overlap_report(by_group=True, library="pandas").set_index("group")
    assert groups["rows"].sum() == len(table)
    assert groups.index[groups["dropped"]].tolist() == ["all", "none"]
    assert groups["share treated"][["all", "none"]].tolist() == [1, 0]
    assert np.isnan(groups["largest propensity"]["all"])
    own = model.propensity_[table["hospital"].iloc[model.rows_] == "h0"]
    assert groups["smallest propensity"]["h0"] == own.min()


@pytest.mark.parametrize("estimand", ["ATE", "ATT"])
def test_leaving_the_group_out_is_the_benchmark_of_sensitivity(patients, estimand):
    model = fit(patients, estimand=estimand)
    found = model.sensitivity(0.04, 0.05, 0.5)
    kept = patients.iloc[model.rows_]
    short = fit(kept, estimand=estimand, statistics=())
    w, y = kept["treated"].to_numpy(), kept["outcome"].to_numpy()

    def elements(of):
        e, mu = np.clip(of.propensity_, 0.01, 0.99), of.outcome_predictions_
        sigma2 = np.mean((y - np.where(w == 1, mu[:, 1], mu[:, 0])) ** 2)
        if estimand == "ATE":
            alpha = w / e - (1 - w) / (1 - e)
            return sigma2, np.mean(2 * (1 / e + 1 / (1 - e)) - alpha**2)
        p = w.mean()
        alpha = w / p - (1 - w) * e / (p * (1 - e))
        return sigma2, np.mean(2 * w / (p**2 * (1 - e)) - alpha**2)

    (sigma2, nu2), (sigma2_short, nu2_short) = elements(model), elements(short)
    r2, r2_short, ratio = 1 - sigma2 / y.var(), 1 - sigma2_short / y.var(), nu2_short / nu2
    assert found.benchmark["cf_y"] == pytest.approx((r2 - r2_short) / (1 - r2))
    assert found.benchmark["cf_d"] == pytest.approx((1 - ratio) / ratio)
    bias = 0.5 * np.sqrt(0.04 * 0.05 / 0.95 * sigma2 * nu2)
    assert found.bias == pytest.approx(bias)
    assert found.bounds == pytest.approx((model.effect_.estimate - bias, model.effect_.estimate + bias))
    f2 = (model.effect_.estimate / 0.5) ** 2 / (sigma2 * nu2)
    assert found.robustness == pytest.approx((np.sqrt(f2**2 + 4 * f2) - f2) / 2)
    f2 = (model.effect_.interval[0] / 0.5) ** 2 / (sigma2 * nu2)
    assert found.robustness_interval == pytest.approx((np.sqrt(f2**2 + 4 * f2) - f2) / 2)
    assert model.sensitivity(null=model.effect_.interval[1]).robustness_interval == 0


def test_a_constant_outcome_has_no_effect_and_leaves_nothing_to_explain(patients):
    model = fit(patients.assign(outcome=3.0))
    assert model.effect_.estimate == 0
    found = model.sensitivity()
    assert found.bias == 0
    assert np.isnan([found.robustness, *found.benchmark.values()]).all()


def test_sensitivity_takes_shares_and_correlations(patients):
    model = fit(patients)
    for wrong in ({"cf_y": 1.0}, {"cf_d": -0.1}, {"rho": 2.0}):
        with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
            model.sensitivity(**wrong)
    with pytest.raises(InvalidParameterError, match="estimand"):
        fit(patients, estimand="ATO").sensitivity()


# Real data


def real(data_dir, name):
    path = data_dir / "causal" / name
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return pd.read_csv(path)


def repeated(**parameters):
    """An estimator with linear models, and a logistic model of the standardised features."""
    propensity = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return AIPW(LinearRegression(), propensity, n_folds=10, n_repeats=5, **parameters)


def test_the_union_wage_premium_is_near_that_of_linear_fixed_effects(data_dir):
    males = real(data_dir, "males.csv")
    table = males[["nr", "school", "year"]].assign(
        exper2=males["exper"] ** 2,
        married=males["maried"] == "yes",
        health=males["health"] == "yes",
        black=males["ethn"] == "black",
        hispanic=males["ethn"] == "hisp",
        year=males["year"].astype(str),
    )
    roles = {"treatment": males["union"], "treated": "yes", "outcome": males["wage"]}
    with pytest.warns(OverlapWarning, match="rows .55%. were dropped"):
        model = repeated(group="nr", estimand="ATO").fit(table, **roles)
    assert model.effect_.estimate == pytest.approx(0.0798, abs=0.015)
    assert model.effect_.n_rows / len(males) == pytest.approx(0.45, abs=0.01)
    steps = model.ladder(library="pandas").set_index("step")["estimate"]
    assert steps["covariates"] == pytest.approx(0.17, abs=0.005)
    assert steps["linear fixed effect"] == pytest.approx(0.0798, abs=0.0001)
    assert "+ means of treatment times covariates" not in steps


def test_the_growth_mindset_of_schools_that_count_the_same_has_the_published_effect(data_dir):
    pupils = real(data_dir, "learning_mindsets.csv")
    table = pupils.astype({"C1": str, "XC": str})
    model = repeated(group="schoolid", weights="group").fit(table, treatment="Z", outcome="Y")
    assert model.effect_.estimate == pytest.approx(0.247, abs=0.02)
    assert model.effect_.std_error == pytest.approx(0.020, abs=0.005)
    high = pupils["X1"] > pupils.groupby("schoolid")["X1"].first().median()
    effects = model.gate(high.to_numpy(), library="pandas")["estimate"]
    assert -0.194 < effects[1] - effects[0] < -0.040
    slopes = model.best_linear_projection(["X1", "X2", "X3", "X4", "X5"], library="pandas")
    assert slopes.set_index("column")["estimate"]["X1"] == pytest.approx(-0.049, abs=0.02)


def test_small_classes_have_the_effect_of_linear_fixed_effects_within_schools(data_dir):
    star = real(data_dir, "star.csv")
    star = star[star["stark"].isin(["small", "regular"]) & star[["readk", "mathk"]].notna().all(axis=1)]
    table = pd.DataFrame(
        {
            "school": star["schoolidk"],
            "female": star["gender"] == "female",
            "black": star["ethnicity"] == "afam",
            "free lunch": star["lunchk"] == "free",
            "experience": star["experiencek"].fillna(star["experiencek"].median()),
        }
    )
    roles = {"treatment": star["stark"], "treated": "small", "outcome": star["readk"] + star["mathk"]}
    model = repeated(group="school").fit(table, **roles)
    assert model.effect_.estimate == pytest.approx(15.99, abs=1.0)
    without = repeated(group="school", statistics=()).fit(table, **roles)
    assert without.effect_.estimate == pytest.approx(13.4, abs=0.3)


def test_a_seed_that_no_generator_takes_is_refused(patients):
    with pytest.raises(ValueError, match="random_state"):
        AIPW(group="hospital", random_state=2**31).fit(patients, **ROLES)
