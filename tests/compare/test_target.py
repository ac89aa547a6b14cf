"""What is predicted: which task it is, and which targets cannot be predicted at all."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sufrep._compare._target import read_values, target_notes
from sufrep.errors import TargetError

HALVES = [i / 2 for i in range(50)]


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (HALVES, "regression"),
        (np.arange(50), "regression"),
        (pd.Series(range(50), dtype="Int64"), "regression"),
        ([Decimal(i) / 7 for i in range(50)], "regression"),
        (pa.array(HALVES), "regression"),
        ([True, False] * 25, "binary"),
        (np.array([True, False] * 25, dtype=object), "binary"),
        ([0, 1] * 25, "binary"),
        (["a", "b"] * 25, "binary"),
        (pd.Series(["a", "b"] * 25, dtype="category"), "binary"),
        (pl.Series(["a", "b"] * 25).cast(pl.Categorical), "binary"),
        (["a", "b", "😀"] * 20, "multiclass"),
        ([1, "b", "c"] * 20, "multiclass"),
        ([1, 2, 3, 4, 5] * 10, "multiclass"),
        ([Decimal(1), Decimal(2), Decimal(3)] * 10, "multiclass"),
    ],
)
def test_the_task_is_told_from_the_values(y, task):
    values, found = read_values(y, "auto")
    assert found == task
    assert values.dtype.kind in ("f" if task == "regression" else "bifU")
    assert len(values) == len(y)


def test_whole_numbers_may_be_either_and_the_reader_is_told():
    ratings = [1, 2, 3, 4, 5] * 10
    values, task = read_values(ratings, "auto")
    assert target_notes(values, task) == [
        "The target has 5 whole values and was taken for classes; task='regression' takes them for numbers."
    ]
    values, task = read_values(ratings, "regression")
    assert (task, values.dtype) == ("regression", np.float64)
    assert target_notes(values, task) == []
    assert target_notes(*read_values(["a", "b", "c"], "auto")) == []


def test_a_column_of_a_frame_is_a_target():
    assert read_values(np.array(HALVES)[:, None], "auto")[0].shape == (50,)


@pytest.mark.parametrize(
    ("y", "task", "message"),
    [
        (None, "auto", r"The target y is None\.\nHint: give what is to be predicted"),
        ([3] * 9, "auto", r"The target is 3 in every row\.\nHint: there is nothing to predict"),
        ([1.5] * 9, "auto", r"The target is 1\.5 in every row"),
        (["a"] * 9, "auto", "The target is 'a' in every row"),
        ([10**30 + i for i in range(9)], "auto", r"The target is 1e\+30 in every row"),
        ([1.5, np.nan, np.inf], "auto", r"NaN or infinity in 2 row\(s\)\.\nHint: drop the rows"),
        (pd.Series([1, None], dtype="Int64"), "auto", "NaN or infinity in 1 row"),
        (["a", None, "b"], "auto", r"NaN or None\.\nHint: drop the rows"),
        (pd.date_range("2020", periods=9), "auto", r"datetime64.* values\.\nHint: convert times to numbers"),
        (["2020-01-01", "2020-01-02"] * 9, "auto", r"holds dates such as '2020-01-01'\.\nHint: convert"),
        ([f"1,{i:03d}" for i in range(99)], "auto", "99 classes in 99 rows, too many .* first is '1,000'"),
        (HALVES, "multiclass", "50 classes in 50 rows"),
        (HALVES, "binary", r"task='binary', but the target has 50 classes\.\nHint: use task='multiclass'"),
        (["a", "b"] * 9, "regression", r"task='regression' needs numbers, but the target holds 'a'"),
    ],
)
def test_what_cannot_be_predicted_is_told_with_what_to_do(y, task, message):
    with pytest.raises(TargetError, match=message):
        read_values(y, task)


def test_many_classes_are_fine_if_they_come_again():
    assert read_values([f"class {i}" for i in range(40)] * 3, "auto")[1] == "multiclass"
