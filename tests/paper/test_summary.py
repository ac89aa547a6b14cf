"""Improvements, benchmark results and published numbers, against formulas written out."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from sufrep._names import SETUPS
from sufrep._paper.summary import (
    BUG_SUFFIX,
    PUBLISHED_METHODS,
    benchmark_results,
    empirical_improvements,
    judgements,
    method_name,
    paired_difference,
    published_comparison,
    published_improvements,
    published_tables,
    simulated_improvements,
)
from sufrep._statistics import paired_p_values

law = settings()
# Far enough apart that a variance of zero is no rounding error.
numbers = st.integers(-1000, 1000).map(lambda value: value / 8)
samples = st.integers(2, 12).flatmap(lambda n: arrays(float, n, elements=numbers))
Record = dict[str, Any]
CELL = {"model": "xgboost", "setup": "latent_linear", "n_latent": 2, "levels_per_latent": 50}


def simulated(mse: float, method: str = "means", seed: int = 0, **changes: Any) -> Record:
    return {**CELL, "method": method, "seed": seed, "k_index_bug": False, "loss": mse, **changes}


def crossvalidated(mse: float, method: str, fold: int, seed: int = 0, **changes: Any) -> dict[str, Any]:
    record = {"model": "forest", "dataset": "ames", "method": method, "seed": seed, "fold": fold}
    return {**record, "k_index_bug": False, "loss": mse, **changes}


def many_simulated(n_seeds: int = 5) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [
        simulated(float(rng.uniform(1, 3)), method, seed, model=model, setup=setup, n_latent=n_latent)
        for model in ("xgboost", "forest")
        for setup in ("global_linear", "latent_linear")
        for n_latent in (2, 10)
        for method in ("means", "one_hot", "oracle")
        for seed in range(n_seeds)
    ]


# Simulations


def test_improvements_are_those_that_pandas_finds():
    records = many_simulated()
    found = simulated_improvements(records)
    wide = pd.DataFrame(records).pivot(index=[*CELL, "seed"], columns="method", values="loss")
    assert len(found) == 2 * 4 * 2
    for one in found:
        mine = wide.loc[(one.model, *one.cell)]
        shares = 1 - mine[one.method] / mine["one_hot"]
        assert one.mean == pytest.approx(shares.mean(), rel=1e-12)
        assert one.mse == pytest.approx(mine[one.method].mean(), rel=1e-12)
        low, high = stats.t.interval(0.95, 4, loc=shares.mean(), scale=shares.std() / math.sqrt(5))
        assert (one.low, one.high) == pytest.approx((low, high), rel=1e-12)
        assert one.n_seeds == 5


def test_improvements_come_in_the_order_of_first_appearance_and_without_one_hot():
    found = simulated_improvements(many_simulated())
    assert [one.method for one in found] == ["means", "oracle"] * 8
    assert list(dict.fromkeys(one.model for one in found)) == ["xgboost", "forest"]


def test_improvements_do_not_depend_on_the_order_of_the_records():
    records = many_simulated()
    shuffled = [records[i] for i in np.random.default_rng(1).permutation(len(records))]
    key = lambda one: (one.model, one.cell, one.method)  # noqa: E731
    assert sorted(simulated_improvements(shuffled), key=key) == sorted(
        simulated_improvements(records), key=key
    )


def test_only_seeds_that_have_both_errors_count():
    records = [
        simulated(1.0, "one_hot", 0),
        simulated(2.0, "one_hot", 1),
        simulated(4.0, "one_hot", 3),
        simulated(9.0, seed=2),
        simulated(1.0, seed=1),
        simulated(3.0, seed=3),
    ]
    (one,) = simulated_improvements(records)
    assert (one.n_seeds, one.mean, one.mse) == (2, 0.375, 2.0)


def test_one_seed_has_a_mean_and_no_interval():
    (one,) = simulated_improvements([simulated(1.0, "one_hot"), simulated(0.75)])
    assert (one.mean, one.n_seeds) == (0.25, 1)
    assert math.isnan(one.low)
    assert math.isnan(one.high)


@pytest.mark.parametrize(
    "records",
    [
        [],
        [simulated(1.0)],
        [simulated(1.0, "one_hot")],
        [simulated(1.0), simulated(1.0, "one_hot", seed=1)],
        [simulated(1.0), simulated(1.0, "one_hot", model="forest")],
        [simulated(1.0), simulated(1.0, "one_hot", levels_per_latent=100)],
    ],
)
def test_without_one_hot_on_the_same_sample_there_is_no_improvement(records):
    assert simulated_improvements(records) == []


def test_the_published_bar_is_added_if_the_paper_has_one():
    records = [simulated(1.0, method) for method in ("one_hot", "means", "fisher", "oracle")]
    found = {one.method: one.published for one in simulated_improvements(records)}
    bar = published_improvements()["xgboost", ("latent_linear", 2, 50), "means"]
    assert found == {"means": bar, "fisher": None, "oracle": None}


def test_a_cell_that_is_not_in_the_paper_has_no_published_bar():
    records = [simulated(1.0, method, n_latent=3) for method in ("one_hot", "means")]
    assert [one.published for one in simulated_improvements(records)] == [None]


def test_the_authors_bug_is_a_method_of_its_own_with_the_same_bar():
    records = [
        simulated(2.0, "one_hot"),
        simulated(1.0, "low_rank"),
        simulated(1.5, "low_rank", k_index_bug=True),
    ]
    ours, bug = simulated_improvements(records)
    assert (ours.method, ours.mean) == ("low_rank", 0.5)
    assert (bug.method, bug.mean) == ("low_rank" + BUG_SUFFIX, 0.25)
    assert bug.published == ours.published is not None
    assert method_name(records[2]) == bug.method


# Real data


def test_percents_and_tests_are_those_of_all_folds_of_all_repetitions():
    rng = np.random.default_rng(0)
    errors = {method: rng.uniform(1, 3, (3, 4)) for method in ("one_hot", "means", "mnl")}
    records = [
        crossvalidated(float(of_method[seed, fold]), method, fold, seed)
        for method, of_method in errors.items()
        for seed in range(3)
        for fold in range(4)
    ]
    found = empirical_improvements(records, n_folds=4)
    assert [one.method for one in found] == ["means", "mnl"]
    for one in found:
        ours, theirs = errors[one.method].ravel(), errors["one_hot"].ravel()
        assert one.percent == pytest.approx(100 * (theirs.sum() - ours.sum()) / theirs.sum(), rel=1e-12)
        assert one.p_plain == pytest.approx(stats.ttest_rel(ours, theirs).pvalue, rel=1e-10)
        assert one.p_corrected == paired_p_values(theirs - ours, 4)[1]
        assert one.n_splits == 12
        paper = published_tables()["forest", "ames", one.method]
        assert (one.published_percent, one.published_p) == (paper["improvement_percent"], paper["p_value"])


def test_folds_are_paired_by_repetition_and_number():
    records = [crossvalidated(2.0, "one_hot", fold, seed) for seed in range(2) for fold in range(2)]
    records += [crossvalidated(1.0, "means", 1, 0), crossvalidated(1.5, "means", 0, 1)]
    records += [crossvalidated(9.0, "means", 5, 0)]
    (one,) = empirical_improvements(records, n_folds=4)
    assert (one.n_splits, one.percent) == (2, 37.5)


@pytest.mark.parametrize("others", [[], [crossvalidated(1.0, "one_hot", 0, dataset="pakistan")]])
def test_without_one_hot_on_the_same_folds_there_is_no_percent(others):
    assert empirical_improvements([crossvalidated(1.0, "means", 0), *others], n_folds=4) == []


def test_a_data_set_that_is_not_in_the_paper_has_no_published_numbers():
    records = [crossvalidated(1.0, method, 0, dataset="ames_full") for method in ("one_hot", "means")]
    (one,) = empirical_improvements(records, n_folds=4)
    assert (one.published_percent, one.published_p) == (None, None)


# The benchmark


def folds(entry: str, errors: list[float | None], dataset: str = "ames", **changes: Any) -> list[Record]:
    """Records of an entry, a fold for each error; None is a failure. The fold f took f + 1 seconds."""
    native = entry in ("xgboost_native", "gpboost")
    names = {"model": entry, "method": "native"} if native else {"model": "xgboost", "method": entry}
    rest = {"dataset": dataset, "seed": 0, "k_index_bug": False, **names, **changes}
    return [
        {
            **rest,
            "fold": fold,
            "loss": loss,
            "failure": None if loss else "ValueError: no",
            "seconds": fold + 1.0,
        }
        for fold, loss in enumerate(errors)
    ]


AMES = [
    *folds("one_hot", [10.0, 12.0, 14.0, 12.0]),
    *folds("sufficient", [9.0, 11.0, 12.0, 10.0]),
    *folds("glmm", [8.0, 12.0, 12.0, 9.0]),
    *folds("xgboost_native", [10.0, 10.0, 13.0, 13.0]),
]
PAKISTAN = [
    *folds("xgboost_native", [4.0, None], "pakistan"),
    *folds("glmm", [3.0, 5.0], "pakistan"),
    *folds("one_hot", [4.0, 6.0], "pakistan"),
    *folds("sufficient", [2.0, 4.0], "pakistan"),
]
KING_COUNTY = [
    *folds("sufficient", [3.0, 3.5], "king_county"),
    *folds("one_hot", [2.0, 2.0], "king_county"),
]
RECORDS = AMES + KING_COUNTY + PAKISTAN


def test_means_ranks_and_differences_to_the_best_by_hand():
    found = {item.entry: item for item in benchmark_results(AMES)}
    assert {name: (item.loss, item.rank) for name, item in found.items()} == {
        "one_hot": (12.0, 4),
        "sufficient": (10.5, 2),
        "glmm": (10.25, 1),
        "xgboost_native": (11.5, 3),
    }
    assert found["sufficient"].percent == 87.5
    # Differences 1, −1, 0, 1 to the best, with variance 2.75 / 3.
    assert found["sufficient"].difference == 0.25
    assert found["sufficient"].standard_error == pytest.approx(math.sqrt(2.75 / 3 / 4))
    assert found["sufficient"].percent_error == pytest.approx(100 * math.sqrt(2.75 / 3 / 4) / 12)
    # 2, −2, 1, 4: variance 6.25, so the error is 2.5 / 2.
    assert (found["xgboost_native"].difference, found["xgboost_native"].standard_error) == (1.25, 1.25)
    assert (found["glmm"].difference, found["glmm"].standard_error) == (0.0, 0.0)
    assert {item.seconds for item in found.values()} == {2.5}
    assert {item.n_folds for item in found.values()} == {4}


def test_results_are_those_that_pandas_and_scipy_find():
    rng = np.random.default_rng(0)
    names = ["one_hot", "sufficient", "drop", "gpboost"]
    errors = pd.DataFrame(rng.uniform(1, 3, (5, 4)), columns=names)
    records = [record for name in names for record in folds(name, errors[name].tolist())]
    best = errors.mean().idxmin()
    for item in benchmark_results(records[::-1]):
        assert item.rank == errors.mean().rank()[item.entry]
        assert item.percent == pytest.approx(100 * errors[item.entry].mean() / errors["one_hot"].mean())
        assert item.difference == pytest.approx((errors[item.entry] - errors[best]).mean())
        assert item.standard_error == pytest.approx(stats.sem(errors[item.entry] - errors[best]))


def test_our_entry_is_compared_with_the_best_other_one():
    pakistan, ames, king_county = judgements(RECORDS)
    assert (pakistan.rank, pakistan.n_ranked, pakistan.other) == (1, 3, "glmm")
    assert (pakistan.percent, pakistan.percent_error, pakistan.verdict) == (-25.0, 0.0, "first")
    assert (ames.rank, ames.n_ranked, ames.other) == (2, 4, "glmm")
    assert ames.percent == pytest.approx(100 * 0.25 / 10.25)
    assert ames.percent_error == pytest.approx(100 * math.sqrt(2.75 / 3 / 4) / 10.25)
    assert ames.verdict == "within one standard error"
    # 1 and 1.5 above 2: 62.5 % ± 12.5 %.
    assert (king_county.rank, king_county.other, king_county.verdict) == (2, "one_hot", "behind")
    assert (king_county.percent, king_county.percent_error) == pytest.approx((62.5, 12.5))


def test_one_fold_that_failed_fails_the_entry_and_takes_no_rank_from_others():
    found = {item.entry: item for item in benchmark_results(PAKISTAN)}
    failed = found.pop("xgboost_native")
    assert failed.rank is None
    assert math.isnan(failed.loss)
    assert {name: item.rank for name, item in found.items()} == {"sufficient": 1, "glmm": 2, "one_hot": 3}


def test_entries_that_have_not_run_in_all_folds_are_left_out():
    records = [record for record in AMES if (record["method"], record["fold"]) != ("glmm", 2)]
    assert {item.entry for item in benchmark_results(records)} == {"one_hot", "sufficient", "xgboost_native"}
    (judged,) = judgements(records)
    assert (judged.rank, judged.other) == (1, "xgboost_native")


def test_a_fold_without_an_error_of_one_hot_does_not_count():
    records = folds("one_hot", [4.0, None, 4.0]) + folds("drop", [2.0, 99.0, 4.0])
    one_hot, drop = benchmark_results(records)
    assert (one_hot.loss, drop.loss, drop.n_folds) == (4.0, 3.0, 2)


@pytest.mark.parametrize(
    "records", [[], folds("sufficient", [1.0, 2.0]), folds("one_hot", [None]) + folds("drop", [1.0])]
)
def test_without_one_hot_there_is_nothing_to_compare(records):
    assert benchmark_results(records) == judgements(records) == []


def test_repetitions_are_folds_too_and_are_paired():
    records = folds("one_hot", [4.0, 6.0]) + folds("one_hot", [5.0, 5.0], seed=1)
    records += folds("drop", [5.0, 7.0], seed=1) + folds("drop", [5.0, 7.0])
    drop = benchmark_results(records)[1]
    assert (drop.n_folds, drop.difference) == (4, 1.0)
    assert drop.standard_error == pytest.approx(stats.sem([1, 1, 0, 2]))


def test_other_models_and_the_bug_are_entries_of_their_own():
    records = folds("one_hot", [2.0]) + folds("one_hot", [1.0], model="forest")
    records += folds("low_rank", [3.0], k_index_bug=True)
    assert [(item.entry, item.rank) for item in benchmark_results(records)] == [
        ("one_hot", 2),
        ("one_hot (forest)", 1),
        ("low_rank (k index)", 3),
    ]


def test_equal_means_share_a_rank():
    records = folds("one_hot", [4.0, 2.0]) + folds("sufficient", [2.0, 4.0]) + folds("drop", [9.0, 9.0])
    assert [item.rank for item in benchmark_results(records)] == [1, 1, 3]
    assert judgements(records)[0].verdict == "first"


def test_a_paired_difference_of_one_fold_has_no_error():
    difference, error = paired_difference(np.array([3.0]), np.array([1.0]))
    assert difference == 2.0
    assert math.isnan(error)


# Published comparisons


def test_published_losses_and_ours_by_hand():
    ours = folds("means", [1.0, 3.0], "wages", model="xgboost_tuned")
    ours += folds("means", [2.0, 4.0], "wages", model="xgboost_tuned", seed=1)
    means, theirs = published_comparison(ours, {"gpboost": [2.5, 3.5]}, 2)
    assert (means.entry, means.is_published, means.losses, means.loss) == ("means", False, (1.5, 3.5), 2.5)
    assert (means.difference, means.standard_error, means.seconds) == (0.0, 0.0, 1.5)
    assert (theirs.entry, theirs.is_published, theirs.loss) == ("gpboost", True, 3.0)
    # 1 and 0 above the best.
    assert (theirs.difference, theirs.standard_error) == (0.5, pytest.approx(0.5))
    assert math.isnan(theirs.seconds)


def test_an_entry_of_ours_may_have_the_name_of_a_published_one():
    found = published_comparison(folds("gpboost", [1.0, 1.0], "wages"), {"gpboost": [2.0, 2.0]}, 2)
    assert [(item.entry, item.is_published) for item in found] == [("gpboost", False), ("gpboost", True)]


@pytest.mark.parametrize("errors", [[1.0], [1.0, None]])
def test_an_entry_without_a_loss_in_every_fold_is_last_and_never_the_best(errors):
    first, last = published_comparison(folds("means", errors, "wages"), {"linear": [5.0, 5.0]}, 2)
    assert (first.entry, first.difference) == ("linear", 0.0)
    np.testing.assert_array_equal(last.losses, [1.0, math.nan])
    assert math.isnan(last.loss)
    assert math.isnan(last.difference)


def test_without_any_complete_entry_there_is_no_best():
    (only,) = published_comparison(folds("means", [1.0], "wages"), {}, 2)
    assert math.isnan(only.difference)


# Published numbers


# The sources call the forest by another name.
MODELS = {"regression_forest": "forest", "xgboost": "xgboost"}


def source(name: str) -> list[dict[str, str]]:
    path = Path(__file__).parents[3] / "shared" / "paper" / name
    if not path.is_file():
        pytest.skip(f"the numbers as first written down are not at {path}")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_figures_have_four_bars_in_twelve_cells_for_two_models():
    bars = published_improvements()
    assert len(bars) == 2 * 12 * 4
    assert set(bars) == {
        (model, (setup, n_latent, levels), method)
        for model in MODELS.values()
        for setup in SETUPS
        for n_latent in (2, 10)
        for levels in (50, 100)
        for method in PUBLISHED_METHODS
    }
    assert all(-0.5 < bar < 0.5 for bar in bars.values())


def test_the_tables_have_four_methods_on_three_data_sets_for_two_models():
    cells = published_tables()
    assert len(cells) == 2 * 3 * 4
    assert {dataset for _, dataset, _ in cells} == {"pakistan", "ames", "king_county"}
    for cell in cells.values():
        assert set(cell) == {"improvement_percent", "p_value"}
        assert 0 < cell["p_value"] < 1


def test_bars_are_those_of_the_source():
    expected = {
        (
            MODELS[row["model"]],
            (row["setup"], int(row["n_latent"]), int(row["levels_per_latent"])),
            method,
        ): float(row[method])
        for row in source("published_simulations.csv")
        for method in PUBLISHED_METHODS
    }
    assert published_improvements() == expected


def test_tables_are_those_of_the_source():
    rows = source("published_empirical.csv")
    found = published_tables()
    assert len(rows) * len(PUBLISHED_METHODS) == sum(map(len, found.values()))
    for row in rows:
        for method in PUBLISHED_METHODS:
            cell = found[MODELS[row["model"]], row["dataset"], method]
            assert cell[row["statistic"]] == float(row[method])


def test_two_numbers_of_the_paper_stand_where_they_should():
    assert published_improvements()["forest", ("global_linear", 10, 100), "means"] == 0.341
    assert published_tables()["xgboost", "king_county", "low_rank"] == {
        "improvement_percent": -3.243,
        "p_value": 0.62293,
    }
