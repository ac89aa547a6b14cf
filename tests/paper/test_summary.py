"""Improvements over one-hot against pandas, intervals and tests against scipy and against formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from sufrep._paper.published import published_improvements, published_tables
from sufrep._paper.summary import (
    BUG_SUFFIX,
    empirical_improvements,
    method_name,
    simulated_improvements,
)
from sufrep._statistics import paired_p_values

law = settings(deadline=None, max_examples=100)
# Far enough apart that a variance of zero is no rounding error.
numbers = st.integers(-1000, 1000).map(lambda value: value / 8)
samples = st.integers(2, 12).flatmap(lambda n: arrays(float, n, elements=numbers))
CELL = {"model": "xgboost", "setup": "latent_linear", "n_latent": 2, "levels_per_latent": 50}


def simulated(mse: float, method: str = "means", seed: int = 0, **changes: Any) -> dict[str, Any]:
    return {**CELL, "method": method, "seed": seed, "k_index_bug": False, "mse": mse, **changes}


def crossvalidated(mse: float, method: str, fold: int, seed: int = 0, **changes: Any) -> dict[str, Any]:
    record = {"model": "forest", "dataset": "ames", "method": method, "seed": seed, "fold": fold}
    return {**record, "k_index_bug": False, "mse": mse, **changes}


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
    wide = pd.DataFrame(records).pivot(index=[*CELL, "seed"], columns="method", values="mse")
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


def test_a_published_bar_stands_beside_ours_where_the_paper_has_one():
    records = [simulated(1.0, method) for method in ("one_hot", "means", "fisher", "oracle")]
    found = {one.method: one.published for one in simulated_improvements(records)}
    bar = published_improvements()["xgboost", ("latent_linear", 2, 50), "means"]
    assert found == {"means": bar, "fisher": None, "oracle": None}


def test_a_cell_that_the_paper_has_not_has_no_published_bar():
    records = [simulated(1.0, method, n_latent=3) for method in ("one_hot", "means")]
    assert [one.published for one in simulated_improvements(records)] == [None]


def test_the_authors_slip_is_a_method_of_its_own_beside_the_same_bar():
    records = [
        simulated(2.0, "one_hot"),
        simulated(1.0, "low_rank"),
        simulated(1.5, "low_rank", k_index_bug=True),
    ]
    ours, slip = simulated_improvements(records)
    assert (ours.method, ours.mean) == ("low_rank", 0.5)
    assert (slip.method, slip.mean) == ("low_rank" + BUG_SUFFIX, 0.25)
    assert slip.published == ours.published is not None
    assert method_name(records[2]) == slip.method


# Tables


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


def test_a_data_set_that_the_paper_has_not_has_no_published_numbers():
    records = [crossvalidated(1.0, method, 0, dataset="ames_full") for method in ("one_hot", "means")]
    (one,) = empirical_improvements(records, n_folds=4)
    assert (one.published_percent, one.published_p) == (None, None)
