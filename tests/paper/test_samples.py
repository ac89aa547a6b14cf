"""What trials work on: the 80/20 split of simulated rows, inner folds without test rows, real files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sufrep import simulate
from sufrep._paper import samples
from sufrep._paper.plan import EmpiricalTrial, Settings, SimulationTrial
from sufrep._paper.samples import TrialData, real_data, simulated_data
from sufrep._splits import level_folds
from sufrep.datasets import Dataset
from sufrep.errors import DataNotFoundError, InvalidParameterError

SETTINGS = Settings(n=600, p=6)
TRIAL = SimulationTrial("latent_linear", 2, 5, "xgboost", "means", seed=3)
AMES = "Id,LotArea,Alley,Neighborhood,GarageYrBlt,GarageQual,PoolQC,SalePrice"


def ames(folder: Path, levels: str) -> Path:
    """One row for each letter, which is its level; row i has area i and price 1,000 + i."""
    rows = [f"{i},{i},NA,{level},2000,TA,NA,{1000 + i}" for i, level in enumerate(levels)]
    (folder / "ames_kaggle.csv").write_text("\n".join([AMES, *rows]) + "\n")
    return folder


# Simulated


def test_a_simulated_sample_is_that_of_its_seed_and_settings():
    sample = simulated_data(TRIAL, replace(SETTINGS, own_probability=0.7))
    drawn = simulate(
        "latent_linear", n=600, p=6, n_latent=2, levels_per_latent=5, own_probability=0.7, seed=3
    )
    np.testing.assert_array_equal(sample.X, drawn.X)
    np.testing.assert_array_equal(sample.codes, drawn.codes)
    np.testing.assert_array_equal(sample.y, drawn.y)
    np.testing.assert_array_equal(sample.truth.conditional_mean, drawn.conditional_mean)
    np.testing.assert_array_equal(sample.truth.state_probabilities, drawn.state_probabilities[drawn.codes])


def test_a_fifth_of_the_rows_of_each_level_is_tested():
    sample = simulated_data(TRIAL, SETTINGS)
    assert sample.test.sum() == 120
    for level in range(10):
        of_level = sample.codes == level
        assert abs(sample.test[of_level].sum() - of_level.sum() / 5) < 1


def test_levels_of_fewer_than_five_rows_are_never_tested():
    sample = simulated_data(replace(TRIAL, levels_per_latent=60), SETTINGS)
    counts = np.bincount(sample.codes)
    assert (counts[sample.codes] < 5).any()
    assert (counts[sample.codes[sample.test]] >= 5).all()
    assert set(sample.codes[sample.test]) <= set(sample.codes[~sample.test])


def test_methods_and_models_of_one_seed_have_the_same_rows_and_split():
    sample = simulated_data(TRIAL, SETTINGS)
    other = simulated_data(replace(TRIAL, method="mnl", model="forest", k_index_bug=True), SETTINGS)
    np.testing.assert_array_equal(sample.y, other.y)
    np.testing.assert_array_equal(sample.test, other.test)


def test_another_seed_draws_other_rows_and_another_split():
    sample, other = simulated_data(TRIAL, SETTINGS), simulated_data(replace(TRIAL, seed=4), SETTINGS)
    assert not np.array_equal(sample.X, other.X)
    assert not np.array_equal(sample.test, other.test)


def test_a_sample_too_small_for_any_test_row_raises():
    with pytest.raises(InvalidParameterError, match=r"n is 30\.\nHint: n must be large enough"):
        simulated_data(replace(TRIAL, levels_per_latent=500), Settings(n=30))


def test_the_table_holds_the_covariates_and_then_the_level():
    sample = simulated_data(TRIAL, SETTINGS)
    np.testing.assert_array_equal(sample.table[:, :-1], sample.X)
    np.testing.assert_array_equal(sample.table[:, -1], sample.codes)


# Inner folds


def marked(n: int = 90) -> TrialData:
    """Rows that carry their own number as only covariate."""
    codes = np.arange(n) % 3
    return TrialData(
        np.arange(n, dtype=float)[:, None], codes, np.arange(n) * 2.0, level_folds(codes, 5, 0) == 0
    )


def test_inner_folds_hold_all_training_rows_and_no_test_row():
    sample = marked()
    for part in sample.inner(3, seed=0):
        np.testing.assert_array_equal(part.X[:, 0], np.flatnonzero(~sample.test))
        np.testing.assert_array_equal(part.y, 2 * part.X[:, 0])
        np.testing.assert_array_equal(part.codes, part.X[:, 0] % 3)


def test_inner_folds_test_each_training_row_once():
    tested = np.sum([part.test for part in marked().inner(3, seed=0)], axis=0)
    np.testing.assert_array_equal(tested, np.ones(72))


def test_inner_folds_have_no_truth():
    sample = simulated_data(TRIAL, SETTINGS)
    assert all(part.truth is None for part in sample.inner(3, seed=0))


def test_inner_folds_follow_their_seed():
    first, same, other = (marked().inner(3, seed)[0].test for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


# Real


def test_a_real_sample_has_the_rows_of_its_file(tmp_path):
    settings = Settings(data_dir=str(ames(tmp_path, "bbbbaaaaac")))
    sample = real_data(EmpiricalTrial("ames", "xgboost", "means", 0, 0), settings)
    np.testing.assert_array_equal(sample.X, np.column_stack([np.arange(10), np.zeros(10)]))
    np.testing.assert_array_equal(sample.y, 1000 + np.arange(10))
    assert sample.codes.tolist() == [1, 1, 1, 1, 0, 0, 0, 0, 0, 2]
    assert sample.truth is None


def test_the_folds_of_a_real_sample_test_each_row_of_a_large_level_once(tmp_path):
    settings = Settings(data_dir=str(ames(tmp_path, "bbbbaaaaac")))
    tests = [
        real_data(EmpiricalTrial("ames", "xgboost", "means", 0, fold), settings).test for fold in range(4)
    ]
    np.testing.assert_array_equal(np.sum(tests, axis=0), [1] * 9 + [0])


def test_the_number_of_folds_is_a_setting(tmp_path):
    settings = Settings(data_dir=str(ames(tmp_path, "aaaaaaaa")), n_folds=2)
    assert real_data(EmpiricalTrial("ames", "xgboost", "means", 0, 1), settings).test.sum() == 4


def test_a_data_set_whose_levels_are_smaller_than_the_folds_raises(tmp_path):
    settings = Settings(data_dir=str(ames(tmp_path, "aaabbb")))
    expected = (
        r"n_folds is 4\.\nHint: n_folds must be at most the number of rows of the largest level of ames, 3\."
    )
    with pytest.raises(InvalidParameterError, match=expected):
        real_data(EmpiricalTrial("ames", "xgboost", "means", 0, 0), settings)


def test_a_repetition_shuffles_the_rows_differently(tmp_path):
    settings = Settings(data_dir=str(ames(tmp_path, "ab" * 20)))
    first, again, other = (
        real_data(EmpiricalTrial("ames", "xgboost", "means", seed, 0), settings).test for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_folder_may_be_set_in_the_environment(tmp_path, monkeypatch):
    from sufrep._paper.samples import _load

    _load.cache_clear()  # no folder is named, so the environment is no part of the key
    monkeypatch.setenv("SUFREP_DATA", str(ames(tmp_path, "aaaabbbb")))
    sample = real_data(EmpiricalTrial("ames", "xgboost", "means", 0, 0), Settings())
    assert len(sample.y) == 8
    _load.cache_clear()


def test_a_folder_without_the_file_raises(tmp_path):
    settings = Settings(data_dir=str(tmp_path))
    with pytest.raises(DataNotFoundError, match=r"king_county\.csv"):
        real_data(EmpiricalTrial("king_county", "xgboost", "means", 0, 0), settings)


def test_covariates_that_are_missing_stay_missing(monkeypatch):
    X = np.array([[1.0, np.nan], [np.nan, 0.0]] * 4)
    data = Dataset("ames", "level", "y", ("a", "b"), X, np.array(["b", "a"] * 4), np.arange(8.0))
    monkeypatch.setattr(samples, "load_dataset", lambda name, folder: data)  # noqa: ARG005
    samples._load.cache_clear()
    sample = real_data(EmpiricalTrial("ames", "xgboost", "means", 0, 0), Settings())
    samples._load.cache_clear()
    np.testing.assert_array_equal(sample.X, X)
    np.testing.assert_array_equal(sample.table, np.column_stack([X, [1, 0] * 4]))
    (first, *_) = sample.inner(3, seed=0)
    np.testing.assert_array_equal(first.X, X[~sample.test])


def given(monkeypatch: pytest.MonkeyPatch, data: Dataset) -> None:
    """Let every data set be this one."""
    samples._load.cache_clear()
    monkeypatch.setattr(samples, "_load", lambda *_: (data, np.unique(data.labels, return_inverse=True)[1]))


def test_folds_that_a_data_set_brings_are_its_folds_whatever_the_seed(monkeypatch):
    folds = np.array([4, 0, 1, 1, 2, 3])
    data = Dataset(
        "wages", "id", "y", ("a",), np.ones((6, 1)), np.array(list("aabbcc")), np.arange(6.0), (), folds
    )
    given(monkeypatch, data)
    for seed, fold in [(0, 1), (1, 1), (0, 4)]:
        trial = EmpiricalTrial("wages", "xgboost_tuned", "means", seed, fold)
        np.testing.assert_array_equal(real_data(trial, Settings(n_folds=2)).test, folds == fold)


def test_all_groups_of_a_data_set_are_the_last_columns_of_its_table(monkeypatch):
    labels = np.array(list("aabbcc"))
    data = Dataset(
        "insteval_sigrist", "d", "y", ("a",), np.ones((6, 1)), labels, np.arange(6.0), (),
        np.array([0, 1, 2, 3, 4, 0]), {"s": labels[::-1], "dept": np.array(list("xyxyxy"))},
    )  # fmt: skip
    monkeypatch.setattr(samples, "load_dataset", lambda *_: data)
    samples._load.cache_clear()
    trial = EmpiricalTrial("insteval_sigrist", "xgboost_tuned", "crossed_effects", 0, 0)
    found = real_data(trial, Settings())
    samples._load.cache_clear()
    assert found.group == [1, 2, 3]
    np.testing.assert_array_equal(
        found.table, np.column_stack([np.ones(6), [0, 0, 1, 1, 2, 2], [2, 2, 1, 1, 0, 0], [0, 1] * 3])
    )
    inner = found.inner(2, 0)[0]
    np.testing.assert_array_equal(inner.table, found.table[1:5])


@pytest.mark.parametrize(
    ("name", "kind"),
    [("ames", "continuous"), ("open_payments", "binary"), ("midwest_survey", "multiclass")],
)
def test_rows_and_inner_folds_know_the_kind_of_their_target(monkeypatch, name, kind):
    data = Dataset(name, "g", "y", ("a",), np.ones((8, 1)), np.array(["b", "a"] * 4), np.arange(8) % 2.0)
    given(monkeypatch, data)
    sample = real_data(EmpiricalTrial(name, "xgboost", "means", 0, 0), Settings())
    assert (sample.target_type, sample.has_classes) == (kind, kind != "continuous")
    assert {part.target_type for part in sample.inner(3, seed=0)} == {kind}


def test_all_groups_of_a_data_set_are_groups_of_its_trials(monkeypatch):
    labels = {"h": np.array(["x", "y", "x", "x"] * 2), "i": np.array(["b", "a", "", "b"] * 2)}
    data = Dataset(
        *("ames", "g", "y", ("a",), np.ones((8, 1)), np.array(["v", "u"] * 4), np.arange(8.0)),
        other_labels=labels,
    )
    monkeypatch.setattr(samples, "load_dataset", lambda name, folder: data)  # noqa: ARG005
    samples._load.cache_clear()
    sample = real_data(EmpiricalTrial("ames", "xgboost", "means", 0, 0), Settings())
    samples._load.cache_clear()
    assert sample.group == [1, 2, 3]
    expected = np.column_stack([np.ones(8), [1, 0] * 4, [0, 1, 0, 0] * 2, [2, 1, 0, 2] * 2])
    np.testing.assert_array_equal(sample.table, expected)
    (first, *_) = sample.inner(3, seed=0)
    np.testing.assert_array_equal(first.table, expected[~sample.test])


@pytest.mark.parametrize(("name", "n_rows"), [("pakistan", 504), ("ames", 1458)])
def test_the_real_data_can_be_cut_into_four_folds(data_dir, name, n_rows):
    settings = Settings(data_dir=str(data_dir))
    tests = [real_data(EmpiricalTrial(name, "xgboost", "means", 0, f), settings).test for f in range(4)]
    sizes = [test.sum() for test in tests]
    assert np.ptp(sizes) <= 1
    assert len(tests[0]) == n_rows
    assert 0.9 * n_rows < sum(sizes) <= n_rows
