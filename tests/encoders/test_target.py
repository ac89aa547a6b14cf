"""The target: a quantity or classes, and folds that partition the rows."""

from __future__ import annotations

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedKFold, TimeSeriesSplit

from sufrep import FisherEncoder, MeansEncoder, make_encoder
from sufrep.encoders._target import MOST_CLASSES, check_classes, read_target, split_rows
from sufrep.errors import IntegerClassesWarning, InvalidParameterError, SplitError, TargetError


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        ([0.5, 1.0, 2.0], "continuous"),
        ([0, 1, 1], "binary"),
        ([0.0, 1.0], "binary"),
        ([3, 3, 3], "binary"),
        ([True, False], "binary"),
        (["no", "yes", "no"], "binary"),
        (["low", "mid", "high"], "multiclass"),
        ([0, 1, 2], "multiclass"),
        ([-1.0, 0.0, 4.0], "multiclass"),
        (list(range(MOST_CLASSES)), "multiclass"),
        (list(range(MOST_CLASSES + 1)), "continuous"),
        (np.arange(100, dtype=np.uint8), "continuous"),
        ([f"class {i}" for i in range(30)], "multiclass"),
        (pd.Series(["a", "b", "c"], dtype="category"), "multiclass"),
        (pl.Series([0.25, 0.5]), "continuous"),
        (pd.Series([1.5, 2.0], dtype="Float64"), "continuous"),
    ],
)
def test_the_kind_of_a_target_is_inferred_from_its_values(y, kind):
    assert read_target(y, "auto").kind == kind


def test_the_kind_can_be_given():
    assert read_target([0, 1, 1], "continuous").columns[0].tolist() == [0, 1, 1]
    assert len(read_target([0.5, 1.5, 2.5], "multiclass").columns) == 3
    assert read_target(["1", "2"], "continuous").columns[0].tolist() == [1.0, 2.0]


def test_classes_become_indicators_in_the_order_of_their_names():
    target = read_target(["b", "a", "c", "b"], "auto")
    assert [covariate.name([]) for covariate in target.covariates] == ["target=a", "target=b", "target=c"]
    assert np.column_stack(target.columns).astype(int).tolist() == [
        [0, 1, 0],
        [1, 0, 0],
        [0, 0, 1],
        [0, 1, 0],
    ]


def test_classes_that_are_numbers_are_ordered_by_value():
    target = read_target([10, 9, 10], "auto")
    assert [covariate.level for covariate in target.covariates] == ["9", "10"]


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1))
def test_every_row_is_in_exactly_one_class(y):
    target = read_target(y, "multiclass")
    np.testing.assert_array_equal(np.sum(target.columns, axis=0), np.ones(len(y)))
    assert len(target.columns) == len(set(y))


def test_no_target_is_refused():
    with pytest.raises(TargetError, match=r"the target y is None.*\nHint: call fit\(X, y\)"):
        read_target(None, "auto")


@pytest.mark.parametrize("y", [[1.0, np.nan, np.inf], pd.Series([1, None, None], dtype="Int64")])
def test_unknown_numbers_are_refused_and_counted(y):
    with pytest.raises(TargetError, match=r"y contains NaN or infinity in 2 row\(s\).*\nHint: drop the rows"):
        read_target(y, "auto")


@pytest.mark.parametrize("y", [["a", None], np.array(["a", np.nan], dtype=object), pd.Series(["a", None])])
def test_unknown_classes_are_refused(y):
    with pytest.raises(TargetError, match=r"y contains NaN or None.*\nHint: drop the rows"):
        read_target(y, "auto")


def test_text_is_no_quantity():
    with pytest.raises(TargetError, match=r"target_type is 'continuous'.*\nHint: pass numbers"):
        read_target(["low", "high"], "continuous")


def test_classes_that_share_a_name_are_refused():
    with pytest.raises(TargetError, match=r"same name, such as .*\nHint: convert all classes to text"):
        read_target(np.array([1, "1", 2], dtype=object), "auto")


def test_three_classes_are_not_binary():
    with pytest.raises(TargetError, match=r"y has 3 classes.*\nHint: pass target_type='multiclass'"):
        read_target([0, 1, 2], "binary")
    check_classes("multiclass", 3)


def test_a_column_vector_is_accepted():
    target = read_target(np.array([[0.5], [1.5]]), "auto")
    assert target.columns[0].tolist() == [0.5, 1.5]


def test_numbers_held_as_objects_are_numbers():
    target = read_target(np.arange(60.0).astype(object) / 7, "auto")
    assert target.kind == "continuous"
    assert target.columns[0].dtype == np.float64


DAYS = pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02"]))


@pytest.mark.parametrize(
    "y",
    [
        DAYS.to_numpy(),
        DAYS,
        DAYS.dt.tz_localize("UTC"),
        DAYS.dt.date,
        DAYS - DAYS[0],
        [None, dt.timedelta(1)],
    ],
)
def test_times_are_refused(y):
    with pytest.raises(TargetError, match="Hint: convert times to numbers"):
        read_target(y, "auto")


@pytest.mark.parametrize("y", [np.ones((3, 2)), np.float64(1.0)])
def test_a_target_of_another_shape_is_refused(y):
    with pytest.raises(TargetError, match=r"y should be a 1d array.*\nHint: give one value for each row"):
        read_target(y, "auto")


@given(n_rows=st.integers(2, 50), cv=st.integers(2, 10), seed=st.integers(0, 100))
def test_a_number_of_folds_partitions_the_rows(n_rows, cv, seed):
    folds = split_rows(cv, n_rows, np.arange(n_rows), seed)
    assert len(folds) == min(cv, n_rows)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(n_rows))
    for train, test in folds:
        assert not set(train) & set(test)


def test_a_number_of_folds_may_be_numpys():
    y = np.arange(4.0)
    plain, numpys = split_rows(5, 4, y, 0), split_rows(np.int64(5), 4, y, 0)
    for one, other in zip(plain, numpys, strict=True):
        np.testing.assert_array_equal(one[1], other[1])


def test_the_seed_shuffles_the_folds():
    y = np.arange(40)
    one, same, other = (split_rows(4, 40, y, seed)[0][1].tolist() for seed in (1, 1, 2))
    assert one == same != other


def test_one_row_has_no_folds():
    assert split_rows(5, 1, [1.0], 0) == []


@pytest.mark.parametrize("cv", [KFold(3), StratifiedKFold(3), list(KFold(3).split(np.zeros(9)))])
def test_splitters_and_lists_of_folds_are_used_as_they_are(cv):
    folds = split_rows(cv, 9, np.arange(9) % 3, 0)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(9))


def test_folds_by_group_are_given_as_a_list():
    groups = np.arange(9) // 2
    folds = split_rows(GroupKFold(3).split(np.zeros(9), groups=groups), 9, np.arange(9), 0)
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (TimeSeriesSplit(2), r"each of the 9 rows into exactly one test fold; 3 row\(s\) are in none and 0"),
        (ShuffleSplit(2, test_size=0.8, random_state=0), "into exactly one test fold; .* in several"),
        ([(np.arange(5), np.arange(5, 9))], r"5 row\(s\) are in none"),
        ([(np.arange(5), np.arange(9)), (np.arange(5), np.arange(2))], "0 row.* in none and 2 in several"),
        ([(np.arange(5), np.arange(10))], "into exactly one test fold"),
        ([(np.arange(5), np.arange(-9, 0))], r"9 position\(s\) are not between 0 and 8"),
        ([(np.arange(5), np.array([99]))], r"1 position\(s\) are not between 0 and 8"),
    ],
    ids=["time series", "shuffled", "rows left out", "rows twice", "row too many", "negative", "too large"],
)
def test_folds_that_do_not_partition_the_rows_are_refused(cv, message):
    with pytest.raises(SplitError, match=message):
        split_rows(cv, 9, np.arange(9.0), 0)


def test_a_generator_that_is_used_up_is_refused():
    folds = iter(KFold(3).split(np.zeros(9)))
    assert len(split_rows(folds, 9, np.arange(9.0), 0)) == 3
    with pytest.raises(InvalidParameterError, match="a generator works only once"):
        split_rows(folds, 9, np.arange(9.0), 0)


def test_folds_may_be_masks():
    half = np.arange(8) < 4
    folds = split_rows([(half, ~half), (~half, half)], 8, np.arange(8.0), 0)
    assert [test.tolist() for _, test in folds] == [[4, 5, 6, 7], [0, 1, 2, 3]]


@pytest.mark.parametrize("number", [np.int64, np.float32])
def test_numbers_of_numpy_among_objects_are_numbers(number):
    values = np.array([number(value) for value in range(60)], dtype=object)
    assert read_target(values, "auto").kind == "continuous"


def test_folds_that_learn_from_the_rows_they_are_tested_on_are_refused():
    everything = np.arange(4)
    with pytest.raises(SplitError, match="Hint: use a partition"):
        split_rows([(everything, [0, 1]), (everything, [2, 3])], 4, np.arange(4.0), 0)


# Whole numbers that are taken for classes.


@pytest.mark.parametrize("y", [[1, 2, 3, 1], [1.0, 2.0, 3.0, 1.0], pl.Series([1, 2, 3, 1])])
@pytest.mark.parametrize("method", ["means", "fisher", "mixed_model"])
def test_whole_numbers_that_are_taken_for_classes_are_reported(method, y):
    X = pd.DataFrame({"g": ["a", "b", "a", "b"], "x": [1.0, 2.0, 4.0, 3.0]})
    encoder = make_encoder(method, "g", **({"use_target": True} if method == "means" else {}))
    with pytest.warns(
        IntegerClassesWarning, match=r"3 distinct whole numbers.*\nHint: target_type='conti"
    ) as all_:
        encoder.fit(X, y)
    assert len(all_) == 1
    assert all_[0].filename == __file__


@pytest.mark.parametrize(
    ("y", "target_type"),
    [
        ([1, 2, 3, 1], "multiclass"),
        ([1, 2, 3, 1], "continuous"),
        ([0, 1, 1, 0], "auto"),
        (["1", "2", "3", "1"], "auto"),
        ([1.5, 2, 3, 1], "auto"),
    ],
)
def test_targets_that_leave_no_doubt_are_not_reported(y, target_type):
    X = pd.DataFrame({"g": ["a", "b", "a", "b"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FisherEncoder("g", target_type=target_type).fit(X, y)
        MeansEncoder("g").fit(X.assign(x=[1.0, 2, 3, 4]), y)


def test_only_the_first_chunk_reports_whole_numbers():
    X = pd.DataFrame({"g": ["a", "b", "a", "b"]})
    with pytest.warns(IntegerClassesWarning, match="3 distinct") as all_:
        FisherEncoder("g").partial_fit(X, [1, 2, 3, 1]).partial_fit(X, [1, 2, 3, 1])
    assert len(all_) == 1
