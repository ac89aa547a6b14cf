"""Reading the data: tables of any library, groups, targets, folds, and notes on them."""

from __future__ import annotations

import warnings
from datetime import date
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, LeaveOneGroupOut, ShuffleSplit, StratifiedKFold

from sufrep import ToNumbers
from sufrep._compare._data import Split, make_splits, read_data, read_target_values, sampled, target_notes
from sufrep._splits import level_folds
from sufrep.errors import (
    ColumnNameError,
    EmptyGroupError,
    IdColumnWarning,
    InvalidParameterError,
    LazyFrameError,
    LengthMismatchError,
    NoRowsError,
    OneLevelError,
    TargetError,
    TimeColumnError,
    UnknownColumnError,
)

# Table and group


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_the_target_may_be_the_name_of_a_column(rows, kind):
    X, y = rows()
    named, given = read(FRAMES[kind](X.assign(price=y)), "price"), read(FRAMES[kind](X), y)
    assert (named.target_name, named.task) == (given.target_name, given.task) == ("price", "regression")
    np.testing.assert_array_equal(named.y, given.y)
    assert list(nw.from_native(named.X).columns) == list(X.columns)
    with pytest.raises(UnknownColumnError, match=r"y names the column 'prize'.*\nHint: did you mean 'price'"):
        read(FRAMES[kind](X.assign(price=y)), "prize")


FRAMES = {
    "pandas": lambda X: X,
    "polars": pl.from_pandas,
    "pyarrow": lambda X: pa.Table.from_pandas(X, preserve_index=False),
    "array": lambda X: X.to_numpy(object),
    "lists": lambda X: X.to_numpy(object).tolist(),
}


def read(X: Any, y: Any, group: Any = "town", task: str = "auto") -> Any:
    return read_data(X, y, group, task)


@pytest.mark.parametrize("kind", FRAMES)
def test_tables_of_all_libraries_give_the_same_data(rows, kind):
    X, y = rows()
    data = read(FRAMES[kind](X), y, group=0)
    assert data.levels.tolist() == list("abcdef")
    assert data.level_names() == list("abcdef")
    np.testing.assert_array_equal(data.codes, X["town"].map("abcdef".index))
    np.testing.assert_array_equal(data.counts, np.bincount(data.codes))
    assert data.group_name == ("x0" if kind in ("array", "lists") else "town")
    assert (data.task, data.target_type, data.target_name) == ("regression", "continuous", "price")


def test_levels_may_be_numbers_of_an_array():
    data = read(np.array([[7, 0.5], [8, 1.5], [7, 2.5]]), [1.0, 2.5, 3.0], group=0)
    assert data.levels.tolist() == [7.0, 8.0]


@pytest.mark.parametrize(
    ("group", "name", "columns"),
    [
        ("town", "town", ["town"]),
        (2, "town", ["town"]),
        (-3, "town", ["town"]),
        (["town"], "town", ["town"]),
        (["view", "town"], "town", ["view", "town"]),
        (("view", "town"), "view:town", ["view", "town"]),
        (["town", ("town", "view")], "town:view", ["view", "town"]),
    ],
)
def test_a_group_goes_by_name_by_position_crossed_or_with_others(mixed, group, name, columns):
    X, y = mixed
    data = read(X, y, group)
    assert (data.group_name, data.columns) == (name, columns)
    assert data.after_to_numbers() is data


@pytest.mark.parametrize("group", [2, ("view", "town"), [("view", "town"), "town"]])
def test_groups_without_names_are_found_at_their_positions_after_to_numbers(mixed, group):
    X, y = mixed
    positions = {"view": 0, "town": 2}

    def numbered(part: Any) -> Any:
        if isinstance(part, (list, tuple)):
            return type(part)(numbered(inner) for inner in part)
        return positions.get(part, part)

    data = read(X.to_numpy(object), y, numbered(group))
    # The columns made of the date come last, and those of the view too unless it is part of a group.
    moved = {0: 0, 2: 1} if group != 2 else {2: 0}
    assert data.moved == moved
    assert data.after_to_numbers().columns == list(moved.values())
    assert data.columns == list(moved)


def test_the_one_text_column_is_the_group_if_none_is_named(rows):
    X, y = rows()
    assert read(X, y, None).group == "town"


def test_without_a_name_there_must_be_exactly_one_text_column(mixed):
    X, y = mixed
    with pytest.raises(InvalidParameterError, match=r"is None.\n.*text columns of X are 'view', 'sold'"):
        read(X, y, None)
    with pytest.raises(InvalidParameterError, match="X has no text"):
        read(X[["size", "age"]], y, None)


@pytest.mark.parametrize(
    ("group", "error", "message"),
    [
        ("twon", UnknownColumnError, "'twon', which X does not have.\nHint: did you mean 'town'"),
        (("town", "sise"), UnknownColumnError, "did you mean 'size'"),
        (7, UnknownColumnError, "positions run from 0 to 2"),
        ([["town", "age"]], UnknownColumnError, "as a tuple"),
        ([], EmptyGroupError, "names no column"),
    ],
)
def test_unknown_groups_raise_with_a_hint(rows, group, error, message):
    with pytest.raises(error, match=message):
        read(*rows(), group)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X: X.assign(town="a"), OneLevelError, "'town' has only one level, a;"),
        (lambda X: X.assign(town=None), OneLevelError, "'town' has only one level, missing;"),
        (lambda X: X[:1], LengthMismatchError, "X has 1 row.*y has 120"),
        (lambda X: pl.from_pandas(X).lazy(), LazyFrameError, "holds no rows yet"),
        (lambda X: X.set_axis(["town", "x", "x"], axis=1), ColumnNameError, "'x' 2 times"),
        (lambda X: X.assign(price=2.0), None, ""),
    ],
)
def test_tables_that_cannot_be_compared_raise(rows, change, error, message):
    X, y = rows()
    if error is None:
        assert read(change(X), y).target_name == "price"
        return
    with pytest.raises(error, match=message):
        read(change(X), y)


def test_a_table_without_rows_raises(rows):
    X, y = rows()
    with pytest.raises(NoRowsError, match="0 sample"):
        read(X[:0], y[:0])


@pytest.mark.parametrize("y", [np.arange(60) / 7, np.array(["a", "b", "c"] * 20)])
def test_a_table_that_contains_the_target_is_refused(y):
    X = pd.DataFrame({"town": list("abcdef") * 10, "price": y})
    with pytest.raises(TargetError, match=r"column 'price'.\nHint: leave it out, as in X\.drop"):
        read(X, X["price"])


def test_an_unknown_task_raises(rows):
    with pytest.raises(InvalidParameterError, match=r"task is 'classes'.*\n.*'auto' or one of regression"):
        read(*rows(), task="classes")


def test_a_different_level_in_every_row_looks_like_an_identifier(rows):
    X, y = rows()
    with pytest.warns(IdColumnWarning, match=r"'town' has a different level in every row.*\nHint: name"):
        data = read(X.assign(town=range(len(X))), y)
    assert "looks like an identifier" in data.notes[0]


def test_a_group_that_determines_the_target_is_noted(rows):
    X, _ = rows()
    codes = X["town"].map("abcdef".index)
    data = read(X, codes / 7)
    assert data.notes == (
        "Each level of 'town' has its own value of the target, so the level determines the target; "
        "folds='grouped' tests on levels that training has not seen.",
    )
    assert read(X, codes // 2 / 7).notes == ()


def test_dropped_columns_are_listed(rows):
    X, y = rows()
    X = pl.from_pandas(X).with_columns(
        pl.Series("note", [f"note {i}" for i in range(len(y))]),
        pl.Series("tags", [[1, 2]] * len(y)),
        **{f"text {j}": pl.lit(None, dtype=pl.String) for j in range(9)},
    )
    data = read(X, y)
    listed = "note, tags, text 0, text 1, text 2, text 3, text 4, text 5 and 3 more."
    assert listed in data.notes[0]
    assert not data.all_numeric


def test_dates_nulls_and_two_hundred_columns_are_read(rows):
    X, y = rows()
    numbers = pd.DataFrame({f"c{j}": np.full(len(X), float(j)) for j in range(200)})
    wide = pd.concat([X.assign(sold=date(2020, 1, 1), nothing=np.nan), numbers], axis=1)
    wide["town"] = wide["town"].where(wide["town"] != "a", None)
    data = read(wide, y)
    assert data.level_names() == [*"bcdef", "missing"]
    assert not data.all_numeric
    assert read(wide.drop(columns="sold"), y).all_numeric


def test_columns_may_be_named_by_numbers_in_pandas(mixed):
    X, y = mixed
    data = read(X.set_axis(range(5), axis=1), y, 2)
    assert (data.group, data.moved, data.group_name) == (2, {2: 0}, "x2")


# Target


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
def test_the_task_follows_from_the_values(y, task):
    values, found = read_target_values(y, "auto")
    assert found == task
    assert values.dtype.kind in ("f" if task == "regression" else "bifU")
    assert len(values) == len(y)


def test_integers_may_be_classes_or_numbers_which_is_noted():
    ratings = [1, 2, 3, 4, 5] * 10
    values, task = read_target_values(ratings, "auto")
    assert target_notes(values, task) == [
        "The target has 5 distinct integers, which are treated as classes; task='regression' treats them as "
        "numbers."
    ]
    values, task = read_target_values(ratings, "regression")
    assert (task, values.dtype) == ("regression", np.float64)
    assert target_notes(values, task) == []
    assert target_notes(*read_target_values(["a", "b", "c"], "auto")) == []


def test_a_column_of_a_frame_is_a_target():
    assert read_target_values(np.array(HALVES)[:, None], "auto")[0].shape == (50,)


@pytest.mark.parametrize(
    ("y", "task", "message"),
    [
        (None, "auto", r"The target y is None\.\nHint: pass what is to be predicted"),
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
def test_targets_that_cannot_be_predicted_raise_with_a_hint(y, task, message):
    with pytest.raises(TargetError, match=message):
        read_target_values(y, task)


def test_many_classes_are_fine_if_they_repeat():
    assert read_target_values([f"class {i}" for i in range(40)] * 3, "auto")[1] == "multiclass"


# Folds


law = settings()


def splits_of(codes: Any, **changes: Any) -> Any:
    codes = np.asarray(codes)
    data: Any = SimpleNamespace(
        codes=codes,
        y=np.arange(len(codes)) % 2,
        levels=np.arange(int(codes.max()) + 1, dtype=object),
        time=None,
    )
    options: dict[str, Any] = {"cv": 4, "n_repeats": 1, "folds": "spread", "seed": 0}
    return make_splits(data, **{**options, **changes})


# Levels of four rows or more, each of which is in all folds.
large = st.lists(st.integers(4, 9), min_size=2, max_size=6).map(lambda n: np.repeat(np.arange(len(n)), n))


@law
@given(st.lists(st.integers(0, 9), min_size=4, max_size=40), st.integers(0, 5))
def test_every_row_is_tested_once_and_levels_are_spread_over_the_folds(codes, seed):
    codes = np.unique(codes, return_inverse=True)[1]
    splits, notes = splits_of(codes, seed=seed)
    assert notes == []
    tested = np.sort(np.concatenate([split.test for split in splits]))
    np.testing.assert_array_equal(tested, np.arange(len(codes)))
    for level in np.unique(codes):
        parts = [np.sum(codes[split.test] == level) for split in splits]
        assert max(parts) - min(parts) <= 1
    for split in splits:
        assert sorted([*split.train, *split.test]) == list(range(len(codes)))


@law
@given(large, st.integers(0, 5))
def test_folds_may_be_those_of_the_paper(codes, seed):
    splits, notes = splits_of(codes, seed=seed, folds="paper")
    tested = level_folds(codes, 4, seed)
    assert notes == []
    for split in splits:
        np.testing.assert_array_equal(split.test, np.flatnonzero(tested == split.fold))
        np.testing.assert_array_equal(split.train, np.flatnonzero(tested != split.fold))
        assert set(codes[split.test]) == set(codes[split.train]) == set(codes)


@law
@given(large, st.integers(0, 5))
def test_grouped_folds_test_levels_that_were_never_seen(codes, seed):
    splits, _ = splits_of(codes, folds="grouped", cv=2, seed=seed)
    for split in splits:
        assert not set(codes[split.train]) & set(codes[split.test])
    tested = np.sort(np.concatenate([split.test for split in splits]))
    np.testing.assert_array_equal(tested, np.arange(len(codes)))


def test_repetitions_have_different_folds():
    splits, _ = splits_of(np.repeat([0, 1, 2], 20), n_repeats=3)
    assert [(split.repeat, split.fold) for split in splits] == [(r, f) for r in range(3) for f in range(4)]
    assert len({tuple(split.test) for split in splits}) == 12
    once, _ = splits_of(np.repeat([0, 1, 2], 20), seed=2)
    np.testing.assert_array_equal(splits[8].test, once[0].test)


def test_rows_of_rare_levels_are_never_tested_in_the_paper_s_folds_which_is_noted():
    codes = np.array([0] * 20 + [1] * 3)
    splits, notes = splits_of(codes, folds="paper")
    assert all(set(range(20, 23)) <= set(split.train) for split in splits)
    assert notes == [
        "3 rows of levels with fewer than 4 rows are used for training in every fold and never tested."
    ]


def test_the_paper_s_folds_need_a_level_that_is_large_enough():
    with pytest.raises(InvalidParameterError, match="folds must be 'spread', because no level has 4 rows"):
        splits_of(np.repeat(np.arange(15), 2), folds="paper")


def test_kinds_of_levels_count_training_rows(rows):
    X, y = rows()
    data = read_data(X, y, "town", "auto")
    train = np.concatenate([np.flatnonzero(data.codes == 0), np.flatnonzero(data.codes == 1)[:9]])
    test = np.array([np.flatnonzero(data.codes == code)[-1] for code in (0, 1, 2)])
    assert (data.codes == 0).sum() >= 10
    assert data.level_kinds(Split(0, 0, train, test)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_large_tables_are_compared_on_all_rows_of_some_levels(kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": rng.integers(0, 400, 1000).astype(str), "size": rng.normal(size=1000)})
    given = {"pandas": X, "polars": pl.from_pandas(X), "array": X.to_numpy(object)}[kind]
    data = read_data(given, np.arange(1000.0), 0 if kind == "array" else "town", "regression")
    sample, (note,) = sampled(data, 300, seed=0)
    again, _ = sampled(data, 300, seed=0)
    np.testing.assert_array_equal(sample.y, again.y)
    rows = sample.y.astype(int)
    assert 250 < len(rows) <= 300
    assert np.isin(X["town"], X["town"][rows]).sum() == len(rows)  # all rows of their levels
    assert sample.levels[sample.codes].tolist() == X["town"][rows].tolist()
    assert len(sample.X) == len(rows)
    assert note.startswith(f"Compared on {len(rows)} of 1,000 rows, which belong to ")
    assert note.endswith("max_rows=None takes all rows.")
    assert sampled(data, None, seed=0) == (data, [])
    assert sampled(data, 1000, seed=0) == (data, [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cv": 1}, r"cv is 1\.\nHint: cv must be a number of folds from 2 to the number of rows, 12"),
        ({"cv": 13}, "cv is 13"),
        ({"cv": 4, "folds": "grouped"}, "to the number of levels, 3"),
        ({"folds": "group"}, "folds is 'group'.\nHint: folds must be one of spread, grouped, paper"),
        ({"cv": "x"}, r"a valid list of \(train, test\) \(Expected `cv`"),
        ({"cv": KFold(13)}, "a valid list .*number of splits n_splits=13 greater"),
        ({"cv": [3, 4]}, "a valid list"),
        ({"cv": []}, "one split or more"),
        (
            {"cv": [([0, 1], [2, 12])]},
            r"splits of rows 0 to 12'\.\nHint: cv must be splits of rows 0 to 11",
        ),
        ({"cv": [([0, 1], [2, -1])]}, "splits of rows -1 to 2"),
    ],
)
def test_impossible_folds_raise(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        splits_of(np.repeat([0, 1, 2], 4), **changes)


@pytest.mark.parametrize(
    ("cv", "n_splits"),
    [
        (KFold(3), 3),
        (StratifiedKFold(2), 2),
        (ShuffleSplit(5, random_state=0), 5),
        (LeaveOneGroupOut(), 3),
        (None, 5),
        ([([0, 1, 2], [3, 4])], 1),
        (iter([([0, 1, 2], [3, 4]), ([3, 4], [0])]), 2),
    ],
)
def test_splits_may_be_whatever_scikit_learn_takes(cv, n_splits):
    codes = np.repeat([0, 1, 2], 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        splits, notes = splits_of(codes, cv=cv, n_repeats=7)
    assert [(split.repeat, split.fold) for split in splits] == [(0, fold) for fold in range(n_splits)]
    assert notes == []
    if isinstance(cv, LeaveOneGroupOut):
        assert [set(codes[split.test]) for split in splits] == [{0}, {1}, {2}]


def test_masks_become_positions():
    mask = np.arange(12) < 8
    (split,), _ = splits_of(np.repeat([0, 1, 2], 4), cv=[(mask, ~mask)])
    assert (split.train.tolist(), split.test.tolist()) == ([*range(8)], [8, 9, 10, 11])


# Time


TIMES = {
    "dates": lambda days: pd.Timestamp("2020-02-27") + pd.to_timedelta(days, "D"),
    "text": lambda days: [str(pd.Timestamp("2020-02-27") + pd.Timedelta(day, "D")) for day in days],
    "years": lambda days: days + 1990,
}


@pytest.mark.parametrize("kind", TIMES)
def test_test_rows_are_later_than_training_rows(rows, kind):
    X, y = rows()
    days = np.random.default_rng(1).integers(0, 30, len(X))
    data = read_data(X.assign(sold=TIMES[kind](days)), y, "town", "auto", "sold")
    splits, notes = make_splits(data, cv=5, n_repeats=1, folds="spread", seed=0)
    assert len(splits) == 5
    for split in splits:
        np.testing.assert_array_equal(split.train, np.flatnonzero(days < days[split.test].min()))
    tested = np.concatenate([split.test for split in splits])
    assert len(set(tested)) == len(tested) == len(X) - len(splits[0].train)
    assert notes[0].startswith("Every fold is tested on rows that are later, by 'sold', than all rows")
    assert f"The first {len(splits[0].train)} rows are never tested." in notes[0]
    assert data.time.column == "sold"
    assert data.after_to_numbers().time.column == ("sold" if kind == "years" else "sold_days")


def test_few_times_give_few_folds_and_the_first_two_only_train(rows):
    X, y = rows()
    data = read_data(X.assign(year=np.arange(len(X)) % 4), y, "town", "auto", "year")
    splits, notes = make_splits(data, cv=4, n_repeats=1, folds="spread", seed=0)
    assert [set(split.test % 4) for split in splits] == [{2}, {3}]
    assert notes[1] == "'year' has too few different times for 4 folds; 2 are used."


def test_positions_of_times_move_with_text_and_dates(mixed):
    X, y = mixed
    data = read_data(X.to_numpy(object), y, 2, "auto", 1)
    after = data.after_to_numbers()
    assert (data.time.name, data.time.column) == ("x1", 1)
    numbers = ToNumbers(keep=[2]).fit(X.to_numpy(object))
    assert numbers.get_feature_names_out()[after.time.column] == "x1_days"


@pytest.mark.parametrize(
    ("time", "values", "error", "message"),
    [
        ("when", [1, 2, 3], UnknownColumnError, "time names the column 'when', which X does not have"),
        ("town", [1, 2, 3], TimeColumnError, "'town' is the time and part of the group"),
        ("day", [1, None, 3], TimeColumnError, r"'day' holds 40 null\(s\), the first in row 1"),
        ("day", [1, 1, 1], TimeColumnError, "'day' holds the same time in every row; .* at least three"),
        ("day", [1, 2, 2], TimeColumnError, "'day' holds 2 different times; expected at least three"),
        ("day", ["x", "y", "z"], TimeColumnError, "'day' holds 'x'; expected numbers, dates"),
    ],
)
def test_times_that_leave_nothing_to_test_are_refused(rows, time, values, error, message):
    X, y = rows()
    with pytest.raises(error, match=message):
        read_data(X.assign(day=values * 40), y, "town", "auto", time)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"cv": KFold(3)},
            "cv must be a number of folds, 2 or more, below that of rows, because time is 'day'",
        ),
        ({"cv": 1}, "cv must be a number of folds, 2 or more"),
        ({"cv": 120}, "cv must be a number of folds, 2 or more, below that of rows"),
        ({"n_repeats": 2}, "n_repeats must be 1, because time is 'day', and time has only one order"),
        ({"folds": "grouped"}, "folds must be 'spread', because time is 'day'"),
    ],
)
def test_splits_that_ignore_time_are_refused(rows, options, message):
    X, y = rows()
    data = read_data(X.assign(day=range(120)), y, "town", "auto", "day")
    with pytest.raises(InvalidParameterError, match=message):
        make_splits(data, **{"cv": 4, "n_repeats": 1, "folds": "spread", "seed": 0, **options})


def test_all_groups_are_named_in_words():
    X = pd.DataFrame({"a": list("uv") * 6, "b": list("xyz") * 4, "c": list("klmn") * 3, "x": np.arange(12.0)})
    named = {
        text: read(X, np.arange(12.0), group=group).groups_in_words
        for text, group in (("a", "a"), ("a and b", ["a", "b"]), ("a, b and c", ["a", "b", "c"]))
    }
    assert list(named) == list(named.values())
